"""A core with the parts that others reach it by: started together, stopped in order."""

import time
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple, Self

from yunikorn_actors.service.config_file import ConfigFile
from yunikorn_actors.service.part import Part, Questions, Site, Standing
from yunikorn_actors.service.safety import Access
from yunikorn_actors.service.served import ServedCore

STOP_S: Final = 4.8
"""From the signal to the end of everything; a process is to be gone within 5 seconds."""


class Kind(NamedTuple):
    """A part that there can be; its module has `make(site) -> Part`."""

    title: str
    """As people call it."""
    default: str
    """Where it listens unless it is told otherwise."""
    module: str
    """Imported when it is wanted, as others need not have installed what it needs."""
    extra: str
    """What has to be installed for it: `pip install 'yunikorn-actors[EXTRA]'`."""


KINDS: Final[dict[str, Kind]] = {
    "rest": Kind("REST", "127.0.0.1:9080", "yunikorn_actors.service.rest.process", "service"),
    "grpc": Kind("gRPC", "127.0.0.1:3333", "yunikorn_actors.service.rpc.server", "grpc"),
}
"""By the name of the option that says where it listens."""


class NotInstalled(Exception):  # noqa: N818 - named like InvalidRequest
    """What a part needs is not installed."""


class Serving:
    """A core in service: use it in a `with` block."""

    def __init__(
        self,
        core: ServedCore,
        addresses: Mapping[str, str],
        *,
        ask: Callable[[Standing], Questions] | None = None,
        access: Access | None = None,
        config: Path | None = None,
    ) -> None:
        """`addresses`: where each part listens, by its name in `KINDS`; `config` is followed.

        `ask` makes who answers a read side, where the core is not in this process.
        """
        self.core: Final = core
        self.access: Final = access or Access()
        self.access.check(addresses)
        self.standing: Final = Standing()
        self._questions = None if ask is None else ask(self.standing)
        self.config: Final = None if config is None else ConfigFile(config, core, self.standing)
        self.parts: Final[dict[str, Part]] = {
            name: maker_of(KINDS[name])(self._site(address)) for name, address in addresses.items()
        }
        self._started: list[Part] = []

    def _site(self, address: str) -> Site:
        access = self.access
        return Site(
            self.core,
            address,
            self.standing,
            access.tls,
            access.token,
            access.names,
            access.cors,
            self._questions,
        )

    def start(self) -> Self:
        """Start the core, then its parts; where one cannot start nothing is left running."""
        try:
            self.core.start()
            for part in self.parts.values():
                part.start()
                self._started.append(part)
            if self.config is not None:
                self.config.start()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self, timeout: float = STOP_S) -> None:
        """Stop what has started, the last first, within this time."""
        deadline = time.monotonic() + timeout
        if self.config is not None:
            self.config.stop(_left(deadline))
        while self._started:
            self._started.pop().stop(_left(deadline))
        self.core.stop(_left(deadline))

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def maker_of(kind: Kind) -> Callable[[Site], Part]:
    """Find what makes a part of this kind."""
    try:
        module = import_module(kind.module)
    except ModuleNotFoundError as error:
        raise NotInstalled(
            f"{kind.title} needs the package {error.name}, which is not installed: "
            f"pip install 'yunikorn-actors[{kind.extra}]'"
        ) from error
    make: Callable[[Site], Part] = module.make
    return make


def _left(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())
