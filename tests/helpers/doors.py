"""The front door to a core that is served: what is on its way to it and back is counted."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import pytest

from yunikorn_actors import RemoteCore, SchedulerCore, si
from yunikorn_actors.lab.sides.front_door import QUEUES, Door, Front
from yunikorn_actors.service.rpc.conversation import Conversation
from yunikorn_actors.service.rpc.messages import Told
from yunikorn_actors.service.rpc.outgoing import Item, Outlet
from yunikorn_actors.service.service import Serving


class _Served(SchedulerCore):
    taken = 0

    def submit_checked(self, request: Any) -> None:
        try:
            super().submit_checked(request)
        finally:
            self.taken += 1


class _Remote(RemoteCore):
    asked = 0

    def submit_checked(self, request: Any) -> None:
        self.asked += 1
        super().submit_checked(request)


class ServedDoor:
    """`connect`: a service of the same process has the core."""

    def __init__(
        self,
        core: _Served,
        remote: _Remote,
        callback: si.ResourceManagerCallback,
        said: Counter[str],
    ) -> None:
        self.core: Final = core
        self.scheduler: Final = Front(QUEUES, core=remote, callback=callback)
        self._remote = remote
        self._said = said

    def do(self, call: Callable[[], Any]) -> Any:
        return call()

    def events(self) -> Callable[[], list[Any]]:
        events = self.scheduler.events()

        def ended() -> list[Any]:
            events.close()
            return [*events]

        return ended

    @property
    def is_settled(self) -> bool:
        return (
            self.scheduler.is_settled
            and self._remote.asked == self.core.taken
            and self._said["put"] == self._said["heard"]
        )


def served(patch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return what opens such a door."""
    said: Counter[str] = Counter()
    put, receive = Outlet._put, Conversation._receive

    def counted_put(self: Outlet, item: Item) -> None:
        said["put"] += 1
        put(self, item)

    def counted_receive(self: Conversation, message: Told) -> None:
        receive(self, message)
        said["heard"] += message.registered is None

    patch.setattr(Outlet, "_put", counted_put)
    patch.setattr(Conversation, "_receive", counted_receive)

    @contextmanager
    def opened(
        arguments: Mapping[str, Any], callback: si.ResourceManagerCallback
    ) -> Iterator[Door]:
        said.clear()
        core = _Served(**arguments)
        serving = Serving(core, {"grpc": "127.0.0.1:0"}).start()
        try:
            door = ServedDoor(core, _Remote(serving.parts["grpc"].address), callback, said)
            with door.scheduler:
                yield door
        finally:
            serving.stop()

    return opened
