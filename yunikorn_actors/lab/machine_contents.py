"""What goes on inside a core: what its machines are sent, what they want, and what they keep.

No caller sees it. A sum that is wrong, a mark that stays or a timer that nobody needs may do no
harm in a small world and much in a large one, so a change of it is worth a look.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Final

from msgspec import Struct

from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.lab.tapes.tape_names import mailbox_name
from yunikorn_actors.machines.machine import Effect, Log, Send
from yunikorn_actors.messages.base import Delivery

_PACKAGE: Final = __package__.partition(".")[0]
_ROOMS: Final = tuple(
    f"{_PACKAGE}.{it}."
    for it in (
        "state", "planning", "machines", "messages", "config", "values", "core", "policies.folds",
    )
)  # fmt: skip
"""Objects of other rooms are tools, which say nothing of the cluster. A policy serves all cores of
a process, and remembers what it found for another."""
_PLAIN: Final = frozenset((int, str, bool, float, bytes, type(None)))


class Course:
    """What each machine was sent, and what it wanted then."""

    def __init__(self) -> None:
        self._of: dict[str, list[Any]] = {}
        self._joined: list[str] = []

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        if delivery.mailbox not in simulator.machines:
            return
        kind = type(delivery.message).__name__
        if delivery is not simulator.last:
            self._joined.append(kind)
            return
        effects = [_wanted(it) for it in simulator.effects if type(it) is not Log]
        course = self._of.setdefault(delivery.mailbox, [])
        course.append([*self._joined, kind, simulator.now_ns, effects])
        self._joined.clear()

    def taken(self) -> Iterator[tuple[str, Any]]:
        """Return what there was since the last time."""
        taken, self._of = self._of, {}
        for mailbox, course in taken.items():
            yield f"what {mailbox} was sent and wanted", course


def _wanted(effect: Effect) -> list[Any]:
    if isinstance(effect, Send):
        return [mailbox_name(effect.to), type(effect.message).__name__, effect.message]
    return [type(effect).__name__, effect]


def kept(simulator: Simulator) -> Iterator[tuple[str, Any]]:
    """Yield what each machine keeps, read off its objects, and the timers that are armed."""
    for address, machine in simulator.machines.items():
        yield f"what {address} keeps", plain(machine)
        yield f"what {address} says it keeps", machine.canonical_state()
    armed = [[*key, type(it.message).__name__] for key, it in simulator.timers.armed()]
    yield "the timers", sorted(armed)


def plain(value: object) -> Any:  # noqa: ANN401 - whatever a machine keeps
    """Read objects of the core as plain values; of others only what they are."""
    return _Reader().plain(value)


class _Reader:
    """Reads objects that know each other: one that was read before is only named."""

    def __init__(self) -> None:
        self._read: dict[int, None] = {}

    def plain(self, value: Any) -> Any:  # noqa: ANN401
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind not in _WAYS:
            _WAYS[kind] = _way_of(kind)
        parts = _WAYS[kind]
        if parts is None:
            return value.name if isinstance(value, Enum) else kind.__name__
        key = id(value)
        if key in self._read:
            return ["that", kind.__name__]
        self._read[key] = None
        return parts(self.plain, value)


_Plain = Callable[[Any], Any]
_Way = Callable[[_Plain, Any], Any]
"""How the parts of an object are read."""
_WAYS: Final[dict[type, _Way | None]] = {}
"""Of each type that was met."""


def _way_of(kind: type) -> _Way | None:
    """Return how such an object is read; None if nobody looks into it."""
    if issubclass(kind, tuple | list | deque):
        return _items
    if issubclass(kind, Mapping):
        return _pairs
    if issubclass(kind, set | frozenset):
        return _members
    if issubclass(kind, Enum) or not f"{kind.__module__}.".startswith(_ROOMS):
        return None
    names = [*kind.__struct_fields__] if issubclass(kind, Struct) else [*slots_of(kind)]

    def attributes(plain: _Plain, value: Any) -> Any:  # noqa: ANN401
        own = getattr(value, "__dict__", {})
        slots = [plain(getattr(value, name, "unset")) for name in names]
        return [kind.__name__, *slots, *map(plain, own.values())]

    return attributes


def _items(plain: _Plain, value: Iterable[Any]) -> list[Any]:
    return [plain(it) for it in value]


def _pairs(plain: _Plain, value: Mapping[Any, Any]) -> list[Any]:
    return [(plain(key), plain(it)) for key, it in value.items()]


def _members(plain: _Plain, value: Iterable[Any]) -> list[str]:
    return sorted(it if type(it) is str else repr(plain(it)) for it in value)


def slots_of(kind: type) -> Iterator[str]:
    """Yield the names of its attributes that have a place of their own."""
    for part in reversed(kind.__mro__):
        slots = vars(part).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__weakref__", "__dict__"):
                yield name
