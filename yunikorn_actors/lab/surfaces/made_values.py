"""Values of any type, drawn: some that a run had, some of these changed in one place, some made up.

A function promises something for all that its arguments may be, and a world comes to little of it:
to neither empty nor equal ones, to no text that another thing has, to no option left out.
"""

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from inspect import Parameter, getsource, signature
from textwrap import dedent
from types import FunctionType, NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import replace

from yunikorn_actors.lab.machine_contents import slots_of
from yunikorn_actors.lab.schedules.random_draw import Draw

_ROOMS: Final = (
    "checks", "config", "front.outbox", "machines", "messages", "planning", "policies",
    "service.cluster.recovery_report", "service.read", "si", "state", "trace.fields",
    "trace.filters", "trace.path", "trace.stats", "trace.story", "trace.text", "values", "what_if",
)  # fmt: skip
"""Packages and modules that neither wait, nor open or write anything."""
_KEPT: Final = 24
"""Of one type, or under one name, at most so many; the later ones."""
_DEPTH: Final = 4
_SIZES: Final = (0, 1, 1, 2, 3)
_SIMPLE: Final[dict[type, tuple[Any, ...]]] = {
    str: ("", "a", "b", "root", "root.a", "vcore", "memory", "*", "default", "1", "10m"),
    int: (0, 0, 1, 1, 2, 3, 7, -1, 1000, 4000), float: (0.0, 0.5, 1.0, 2.5, -1.0),
    bool: (True, False), bytes: (b"", b"a"), NoneType: (None,),
}  # fmt: skip
PACKAGE: Final = __package__.partition(".")[0]
_PLAIN: Final = (*_SIMPLE,)


class CannotMake(TypeError):
    """Nothing is known of this type that makes one."""


class Values:
    """Makes values, and knows those that it was shown."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self._known: dict[type, list[Any]] = {}
        self._named: dict[str, list[Any]] = {}
        self._words: list[Any] = []
        """What the function itself names, whose arguments are made."""

    def arguments(
        self, function: FunctionType, of: Mapping[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Make those of a call, some of them of what the function looks for."""
        self._words = _words_of(function)
        made: dict[str, Any] = {}
        for name, hint in of.items():
            alike = [it for it in made if of[it] == hint]
            is_equal = bool(alike) and self.draw.once_in(4)
            made[name] = made[alike[0]] if is_equal else self.make(hint, name)
        kinds = {name: it.kind for name, it in signature(function).parameters.items()}
        return (
            [it for name, it in made.items() if kinds[name] <= Parameter.POSITIONAL_OR_KEYWORD],
            {name: it for name, it in made.items() if kinds[name] is Parameter.KEYWORD_ONLY},
        )

    def show(self, thing: object) -> None:
        """Remember it, and whatever is in it."""
        seen: dict[int, object] = {}
        waiting: list[tuple[str, Any]] = [("", thing)]
        while waiting:
            name, value = waiting.pop()
            if isinstance(value, _PLAIN):
                if name and value is not None:
                    _keep(self._named.setdefault(_singular(name), []), value)
                continue
            if id(value) in seen or isinstance(value, Enum):
                continue
            seen[id(value)] = value
            if isinstance(value, Mapping):
                if {*map(type, value)} == {str} and {*map(type, value.values())} == {int}:
                    _keep(self._known.setdefault(dict, []), {**value})
                waiting += ((name, it) for pair in value.items() for it in pair)
            elif isinstance(value, tuple | list) and not hasattr(value, "_fields"):
                waiting += ((name, it) for it in value)
            elif type(value).__module__.startswith(PACKAGE):
                kind: Any = type(value)
                self._known.setdefault(kind, []).append(value)
                del self._known[kind][:-_KEPT]
                names = (*fields_of(kind), *slots_of(kind))
                waiting += ((it, getattr(value, it, None)) for it in names)
                waiting += getattr(value, "__dict__", {}).items()

    def make(self, hint: Any, name: str = "", depth: int = _DEPTH) -> Any:  # noqa: ANN401
        """Make one of a type that an argument or a field of this name may have."""
        origin, parts = get_origin(hint), get_args(hint)
        if origin is Literal:
            return self.draw.one_of(parts)
        if origin in (Union, UnionType):
            return self.make(self.draw.one_of(parts), name, depth)
        if origin is not None:
            return self._of_parts(origin, parts, name, depth - 1)
        if hint in (Any, object):
            hint = self.draw.one_of(_PLAIN)
        if hint in _PLAIN:
            return self._plain(hint, name)
        if isinstance(hint, type):
            return self._object(hint, depth)
        raise CannotMake(hint)

    def _of_parts(self, origin: Any, parts: tuple[Any, ...], name: str, depth: int) -> Any:  # noqa: ANN401
        if origin is Callable:
            answer = self.make(parts[-1], name, depth)
            return lambda *_, **__: answer
        if origin is tuple and parts[1:] != (...,):
            return tuple(self.make(it, name, depth) for it in parts)
        size = self.draw.one_of(_SIZES) if depth > 0 else 0
        if issubclass(origin, Mapping):
            key, value = parts
            known = self._known.get(dict) if value is int else None
            if known and not self.draw.once_in(3):
                found = self.draw.one_of(known)
                return found if self.draw.once_in(2) else self.changed(found)
            return {self.make(key, name, depth): self.make(value, name, depth) for _ in range(size)}
        if issubclass(origin, Iterable):
            some = [self.make(parts[0], name, depth) for _ in range(size)]
            return some if origin is list else tuple(some)
        raise CannotMake(origin)

    def _plain(self, kind: type, name: str) -> Any:  # noqa: ANN401
        draw = self.draw
        known = [it for it in self._words if type(it) is kind]
        if not known or draw.once_in(2):
            known = [it for it in self._named.get(_singular(name), ()) if type(it) is kind]
        if known and not draw.once_in(4):
            return draw.one_of(known)
        return draw.one_of(_SIMPLE[kind])

    def _object(self, kind: Any, depth: int) -> Any:  # noqa: ANN401
        draw, known = self.draw, self._known.get(kind)
        if issubclass(kind, Enum):
            return draw.one_of([*kind])
        if known and (draw.once_in(2) or not issubclass(kind, Struct)):
            return draw.one_of(known)
        if known and not draw.once_in(3):
            return self.changed(draw.one_of(known), depth)
        if depth <= 0 or not is_inner(kind.__module__):
            raise CannotMake(kind)
        hints = hints_of(kind if fields_of(kind) else vars(kind).get("__init__", kind))
        names = fields_of(kind) or [it for it in hints if it != "return"]
        return kind(**{it: self.make(hints[it], it, depth - 1) for it in names})

    def changed(self, value: Any, depth: int = _DEPTH) -> Any:  # noqa: ANN401
        """Return one that is different in one place; others may be equal."""
        draw = self.draw
        if isinstance(value, Struct) and value.__struct_fields__:
            name = draw.one_of(value.__struct_fields__)
            old = getattr(value, name)
            if isinstance(old, Struct | tuple | list | dict) and old and not draw.once_in(4):
                return replace(value, **{name: self.changed(old, depth)})
            return replace(value, **{name: self.make(hints_of(type(value))[name], name, depth - 1)})
        if isinstance(value, tuple | list) and value and not hasattr(value, "_fields"):
            some, place = [*value], draw.number(len(value))
            ways = (some[:place], [*some, some[place]], some[::-1], *(None,) * 4)
            way = draw.one_of(ways)
            if way is None:
                other = self.changed(some[place], depth)
                if isinstance(other, Struct) and draw.once_in(2):
                    other = self._object(type(other), depth)
                way = [*some[:place], other, *some[place + draw.number(2) :]]
            return type(value)(way)
        if isinstance(value, dict) and value:
            key = draw.one_of([*value])
            if draw.once_in(3):
                return {it: value[it] for it in value if it != key}
            return {**value, key: self.changed(value[key], depth)}
        if type(value) is int:
            return draw.one_of((value - 1, value + 1, 0, 2 * value))
        return value


def is_inner(module: str) -> bool:
    room = module.removeprefix(f"{PACKAGE}.")
    return any(room == it or room.startswith(f"{it}.") for it in _ROOMS)


def _singular(name: str) -> str:
    """One of several users may be the user of something."""
    return name.removesuffix("s")


def _keep(values: list[Any], value: object) -> None:
    if not any(it == value and type(it) is type(value) for it in values):
        values.append(value)
        del values[:-_KEPT]


@cache
def _words_of(function: FunctionType) -> list[str]:
    """Return texts that a function names, and values of options that it knows.

    They are read off its source: a test runner puts others into the code of each assertion.
    """
    try:
        tree = ast.parse(dedent(getsource(function)))
    except (OSError, SyntaxError):
        return []
    found: set[str] = set()
    for part in ast.walk(tree):
        it = part.value if isinstance(part, ast.Constant) else None
        if isinstance(part, ast.Name):
            it = function.__globals__.get(part.id)
        options = [one.value for one in it] if isinstance(it, type(Enum)) else [it]
        found |= {str(one) for one in options if isinstance(one, str)}
    return sorted(found - {function.__doc__ or ""})


@cache
def hints_of(thing: Any) -> dict[str, Any]:  # noqa: ANN401 - a class or a function
    try:
        return get_type_hints(thing)
    except (NameError, TypeError):
        return {}


@cache
def fields_of(kind: Any) -> tuple[str, ...]:  # noqa: ANN401 - a class
    """Name what an object is made of, if it can be made of that."""
    if issubclass(kind, Struct):
        return (*kind.__struct_fields__,)
    if is_dataclass(kind):
        return tuple(it.name for it in fields(kind) if it.init)
    return tuple(getattr(kind, "_fields", ()))
