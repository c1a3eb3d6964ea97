"""Kinds of expected values: how each is read, and how it is compared with the actual value.

A kind knows nothing of the scheduler. Kinds of single values are leaves, other kinds are made of
kinds. So the path of a difference names it, and only what the file says is compared.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct
from yaml.nodes import Node

from yunikorn_actors.scenario.yaml_reading import (
    INT_TAG,
    Reader,
    mapping,
    optional,
    table,
    text,
    whole,
    wrong,
)

Value: TypeAlias = Any
"""An expected or an actual value; only its kind knows its type."""

_COMPARISON: Final = re.compile(r"(>=|<=|>|<)\s*(-?[0-9]{1,20})")
_RANGE: Final = re.compile(r"(-?[0-9]{1,20})\.\.(-?[0-9]{1,20})")


class Difference(NamedTuple):
    path: str
    expected: Value
    actual: Value

    def under(self, step: str) -> "Difference":
        return self._replace(path=f"{step}.{self.path}" if self.path else step)


class Kind(NamedTuple):
    read: Reader[Value]
    differences: Callable[[Value, Value], Iterable[Difference]]


# --- numbers and amounts --------------------------------------------------------------------------


class Span(Struct, frozen=True, kw_only=True):
    """A range of numbers; None is an open end."""

    written: int | str
    low: int | None = None
    high: int | None = None

    def holds(self, actual: int) -> bool:
        above = self.low is None or actual >= self.low
        return above and (self.high is None or actual <= self.high)


_NONE: Final = Span(written=0, low=0, high=0)
_ENDS: Final[dict[str, Callable[[int], tuple[int | None, int | None]]]] = {
    ">=": lambda end: (end, None),
    ">": lambda end: (end + 1, None),
    "<=": lambda end: (None, end),
    "<": lambda end: (None, end - 1),
}


def read_span(node: Node) -> Span:
    """Read a number, or a comparison such as `>= 3`."""
    if node.tag == INT_TAG:
        number = whole(node)
        return Span(written=number, low=number, high=number)
    written = text(node)
    if comparison := _COMPARISON.fullmatch(written):
        low, high = _ENDS[comparison[1]](int(comparison[2]))
        return Span(written=written, low=low, high=high)
    between = _RANGE.fullmatch(written)
    if between is None or int(between[1]) > int(between[2]):
        raise wrong(node, 'a whole number or a comparison such as ">= 3" or "2..4"')
    return Span(written=written, low=int(between[1]), high=int(between[2]))


def holds_amounts(expected: Mapping[str, Span], actual: Mapping[str, int]) -> bool:
    """Compare all types; one that a side does not name counts as 0 there."""
    return all(
        expected.get(kind, _NONE).holds(actual.get(kind, 0)) for kind in (*expected, *actual)
    )


# --- kinds ----------------------------------------------------------------------------------------


def plain(value: Value) -> Value:
    """Turn an expected value back into the form in which it was written."""
    if isinstance(value, Span):
        return value.written
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value


def leaf(read: Reader[Value], holds: Callable[[Value, Value], bool]) -> Kind:
    def differences(expected: Value, actual: Value) -> Iterator[Difference]:
        if not holds(expected, actual):
            yield Difference("", plain(expected), actual)

    return Kind(read, differences)


def named(kinds: Mapping[str, Kind]) -> Kind:
    """Known names, each with a kind of its own."""

    def differences(expected: Value, actual: Value) -> Iterator[Difference]:
        for name, value in expected.items():
            for difference in kinds[name].differences(value, actual[name]):
                yield difference.under(name)

    return Kind(table({name: kind.read for name, kind in kinds.items()}), differences)


def each(kind: Kind, *, missing: Value = None, fold: Callable[[str], str] = str) -> Kind:
    """Any names, all of one kind; `fold` turns a written name into the one that the view has."""

    def differences(expected: Value, actual: Value) -> Iterator[Difference]:
        for name, value in expected.items():
            for difference in kind.differences(value, actual.get(fold(name), missing)):
                yield difference.under(name)

    return Kind(mapping(kind.read), differences)


def existing(kind: Kind, *, absent: Value = None) -> Kind:
    """An object that may be missing; null expects that it is, `absent` takes its place."""

    def differences(expected: Value, actual: Value) -> Iterable[Difference]:
        if expected is None:
            return () if actual is None else (Difference("", None, actual),)
        actual = absent if actual is None else actual
        if actual is None:
            return (Difference("", plain(expected), None),)
        return kind.differences(expected, actual)

    return Kind(optional(kind.read), differences)


def nothing_or(kind: Kind) -> Kind:
    """Let an empty list or mapping mean that there must be nothing at all."""

    def differences(expected: Value, actual: Value) -> Iterable[Difference]:
        if expected:
            return kind.differences(expected, actual)
        return (Difference("", plain(expected), actual),) if actual else ()

    return Kind(kind.read, differences)


NUMBER: Final = leaf(read_span, lambda expected, actual: expected.holds(actual))
AMOUNTS: Final = leaf(mapping(read_span), holds_amounts)
