"""Amounts as a configuration has them, and times, for people to read."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from yunikorn_actors.domain.quantity import VCORE

_MILLI: Final = 1000
_SUFFIXES: Final = (
    *((f"{letter}i", 1024**power) for power, letter in reversed([*enumerate("MGTPE", start=2)])),
    *((letter, 1000**power) for power, letter in reversed([*enumerate("MGTPE", start=2)])),
)


def amounts(resource: Mapping[str, int] | None) -> str:
    known = {} if resource is None else resource
    return ", ".join(f"{kind} {quantity(kind, known[kind])}" for kind in sorted(known))


def quantity(kind: str, amount: int) -> str:
    """Write an amount in the units of a configuration, without rounding."""
    if kind == VCORE:
        return f"{amount}m" if amount % _MILLI else str(amount // _MILLI)
    exact = (f"{amount // size}{name}" for name, size in _SUFFIXES if amount and not amount % size)
    return next(exact, str(amount))


def moment(ns: int) -> str:
    """Write a time; outside the calendar it is the number."""
    seconds, rest_ns = divmod(ns, 1_000_000_000)
    try:
        written = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return str(ns)
    return f"{written}.{rest_ns // 1_000_000:03}Z"


_AGES: Final = (("d", 86_400), ("h", 3_600), ("m", 60))


def age(ns: int) -> str:
    """Write how long it is, in the largest unit of which there are two; clocks may differ."""
    seconds = max(0, ns // 1_000_000_000)
    found = (f"{seconds // size}{unit}" for unit, size in _AGES if seconds >= 2 * size)
    return next(found, f"{seconds}s")
