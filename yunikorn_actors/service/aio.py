"""A core in another process and the front door to it, for programs on an event loop."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from yunikorn_actors.front import arguments
from yunikorn_actors.front.aio import AsyncScheduler
from yunikorn_actors.front.arguments import Queues
from yunikorn_actors.runtime.aio import AsyncCore
from yunikorn_actors.runtime.async_callback import AnyCallback
from yunikorn_actors.runtime.core_arguments import check_forms
from yunikorn_actors.runtime.failure_hooks import OnCallbackError
from yunikorn_actors.service.reconnecting import Reconnecting, read_give_up_after
from yunikorn_actors.service.remote import RemoteCore, Token


class AsyncRemoteCore(AsyncCore[RemoteCore]):
    """The calls of `RemoteCore`, each to be awaited."""

    def __init__(
        self,
        address: str,
        *,
        token: Token = "",
        ca: str | Path | None = None,
        cert: str | Path | None = None,
        key: str | Path | None = None,
        wait: float = 0.0,
        on_callback_error: OnCallbackError | None = None,
    ) -> None:
        """As `RemoteCore`; the hook is called on the event loop."""
        check_forms(on_callback_error=on_callback_error)
        on_loop = self._on_loop(on_callback_error)
        self.remote: Final = RemoteCore(
            address, token=token, ca=ca, cert=cert, key=key, wait=wait, on_callback_error=on_loop
        )
        super().__init__(self.remote)

    async def simulate_steps(
        self,
        *steps: str,
        until: float | None = None,
        compare: bool = True,
        least: bool = False,
        within: float = 0.0,
        waiting: Sequence[tuple[str, str]] = (),
    ) -> dict[str, Any]:
        """Say what would happen with these steps; see `RemoteCore`."""
        asked = partial(
            self.remote.simulate_steps, *steps, until=until, compare=compare, least=least,
            within=within, waiting=waiting,
        )  # fmt: skip
        return await self._call(None, asked)


def connect_async(
    address: str = "127.0.0.1:3333",
    queues: Queues | None = None,
    *,
    token: Token = "",
    ca: str | Path | None = None,
    cert: str | Path | None = None,
    key: str | Path | None = None,
    wait: float = 0.0,
    give_up_after: float | None = None,
    grace: float = arguments.GRACE_S,
    callback: AnyCallback | None = None,
    rm_id: str = "rm-1",
    partition: str = "",
) -> AsyncScheduler:
    """Make an `AsyncScheduler` as `connect` makes a `Scheduler`.

    ```python
    async with connect_async("127.0.0.1:3333") as s:
        await s.add_node("node-1", vcore=16, memory="64Gi")
    ```
    """
    core = AsyncRemoteCore(address, token=token, ca=ca, cert=cert, key=key, wait=wait)
    core.remote.default_config = arguments.OPEN_QUEUE if queues is None else None
    patience = read_give_up_after(give_up_after)
    scheduler = AsyncScheduler(
        queues, grace=grace, callback=callback, core=core, rm_id=rm_id, partition=partition
    )
    if patience:
        Reconnecting(core.remote, scheduler._operations, patience)
    return scheduler
