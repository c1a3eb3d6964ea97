"""An oracle of the ways to a core: a program sees the same at each of them.

A drawn program is at a core in its own process, on its own thread. The same program is then on a
loop, or at a core that is served, whose connection may break. What it sees each time has to be
equal, down to the words. What a break shows is worked out: that the connection went away and came
back, and that applications were accepted anew.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import zip_longest
from typing import Any, Final

import msgspec

from yunikorn_actors import si
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces.front_walk import (
    DUMP,
    HEARD,
    Doors,
    Heard,
    OnLoop,
    OnThreads,
    walk,
)

_SEEDS: Final = 1 << 30
_ON_A_LOOP: Final = frozenset({HEARD, DUMP})
"""Not compared with a program on a loop: its requests may go together otherwise, and its callback
receives no responses."""
_IN_A_SERVICE: Final = frozenset({"_simulate"})
"""This service has no read side, which would answer."""
_AFTER_BREAKS: Final = frozenset({HEARD, DUMP, "_simulate", "_explain", "applications"})
"""After a break an application without work is accepted and does not run, and asks wait anew."""
_EVENTS: Final = "events"
_OF_BREAKS: Final = ("connection: ", "application: ")
_FAULTS_MAX: Final = 3


class _Door:
    """One of the ways, and what of it is compared."""

    def __init__(self, name: str, unlike: frozenset[str], seed: int) -> None:
        self.name, self.unlike, self._seed = name, unlike, seed
        self.opened: Any = None

    def __call__(self, arguments: Mapping[str, Any], callback: si.ResourceManagerCallback) -> Any:  # noqa: ANN401 - a door
        self.opened = self._made(arguments, callback)
        return self.opened

    def _made(self, arguments: Mapping[str, Any], callback: si.ResourceManagerCallback) -> Any:  # noqa: ANN401
        if self.name == "a loop":
            return OnLoop(arguments, callback)
        # It needs packages that not everybody has.
        from yunikorn_actors.lab.surfaces.grpc_front import (  # noqa: PLC0415
            ServedDoor,
            ServedLoopDoor,
        )

        kind = ServedLoopDoor if "loop" in self.name else ServedDoor
        breaking = Draw(self._seed) if "breaks" in self.name else None
        return kind(arguments, callback, breaking)


_LOCAL: Final = {"a loop": _ON_A_LOOP}
_SERVED: Final = {
    "a service": _IN_A_SERVICE,
    "a service, on a loop": _ON_A_LOOP | _IN_A_SERVICE,
    "a service that breaks": _AFTER_BREAKS,
    "a service that breaks, on a loop": _AFTER_BREAKS,
}


def differences(draw: Draw) -> Iterator[str]:
    """Draw a program and a door, and yield what it sees there alone."""
    ways = {**_LOCAL, **(_SERVED if find_spec("grpc") else {})}
    name = draw.one_of([*ways])
    seed = draw.number(_SEEDS)
    door = _Door(name, ways[name], seed)
    seen: tuple[list[Heard], list[Heard]] = (
        [*_walked(seed, door, OnThreads)],
        [*_walked(seed, door, door)],
    )
    breaks = getattr(door.opened, "breaks", 0)
    found = 0
    for (what, here), (other, there) in zip_longest(*seen, fillvalue=("nothing more", ())):
        if what == _EVENTS and breaks:
            faults = [*_of_breaks(here, there, breaks)]
        elif breaks and what.startswith("<"):
            # An application: its state may be another one.
            is_same = _plain(here[1:]) == _plain(there[1:])
            faults = [] if is_same else [f"{what}: {there} and not {here}"]
        elif what in door.unlike or _plain((what, here)) == _plain((other, there)):
            faults = []
        else:
            faults = [f"{what}: {_plain(there)} and not {_plain(here)}"]
        yield from (f"a program at {door.name} sees of {fault}" for fault in faults)
        found += len(faults)
        if found > _FAULTS_MAX:
            return


def _walked(seed: int, door: _Door, opened: Callable[..., Any]) -> Iterator[Heard]:
    doors: Doors = opened
    return walk(Draw(seed), doors, is_plain="breaks" in door.name)


def _of_breaks(here: Sequence[str], there: Sequence[str], breaks: int) -> Iterator[str]:
    """Applications are accepted anew after a break; all else goes on as if there were none."""
    kept, others = [it for it in here if not it.startswith(_OF_BREAKS)], list[str]()
    states = list[str]()
    for event in there:
        if not event.startswith(_OF_BREAKS):
            others.append(event)
        elif event.startswith(_OF_BREAKS[0]):
            states.append("away" if "state='away'" in event else "connected")
    if _plain(others) != _plain(kept):
        yield f"events: {_plain(others)} and not {_plain(kept)}"
    if states != ["away", "connected"] * breaks:
        yield f"{breaks} breaks: {states}"


def _plain(value: Any) -> str:  # noqa: ANN401 - whatever is seen
    """Leave out what the calls of a loop are named by, and the order of what has none."""
    text = msgspec.json.encode(value, order="deterministic", enc_hook=str).decode()
    return text.replace("Async", "")
