"""A core with the parts that others reach it by: started together, stopped in order."""

import time
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final, NamedTuple, Self

from yunikorn_actors.runtime.system import SchedulerCore
from yunikorn_actors.service.part import Part, Site

STOP_S: Final = 5.0
"""From the signal to the end: an operating system waits hardly longer before it kills."""


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


KINDS: Final[dict[str, Kind]] = {}
"""By the name of the option that says where it listens."""


class NotInstalled(Exception):  # noqa: N818 - named like InvalidRequest
    """What a part needs is not installed."""


class Serving:
    """A core in service: use it in a `with` block."""

    def __init__(self, core: SchedulerCore, addresses: Mapping[str, str]) -> None:
        """`addresses`: where each part listens, by its name in `KINDS`."""
        self.core: Final = core
        self.parts: Final[dict[str, Part]] = {
            name: maker_of(KINDS[name])(Site(core, address)) for name, address in addresses.items()
        }
        self._started: list[Part] = []

    def start(self) -> None:
        """Start the core, then its parts; where one cannot start nothing is left running."""
        try:
            self.core.start()
            for part in self.parts.values():
                part.start()
                self._started.append(part)
        except BaseException:
            self.stop()
            raise

    def stop(self, timeout: float = STOP_S) -> None:
        """Stop what has started, the last first, within this time."""
        deadline = time.monotonic() + timeout
        while self._started:
            self._started.pop().stop(_left(deadline))
        self.core.stop(_left(deadline))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def maker_of(kind: Kind) -> Callable[[Site], Part]:
    """Find what makes a part of this kind."""
    try:
        module = import_module(kind.module)
    except ImportError as error:
        raise NotInstalled(
            f"{kind.title} needs {error.name}, which is not installed: "
            f"pip install 'yunikorn-actors[{kind.extra}]'"
        ) from error
    make: Callable[[Site], Part] = module.make
    return make


def _left(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())
