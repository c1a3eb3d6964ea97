"""Values as YuniKorn's REST interface writes them: empty ones are left out, amounts are maps."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from yunikorn_actors.values.durations import HOUR, MINUTE, SECOND
from yunikorn_actors.values.resource import Resource, pruned, saturated

Value = dict[str, Any]
"""One object of an answer."""

_UNITS: Final = ((HOUR, "h"), (MINUTE, "m"))


def lean(value: Value, always: Collection[str] = ()) -> Value:
    """Leave out what is empty, zero or false, but for these names."""
    return {name: it for name, it in value.items() if it or name in always}


def used(amounts: Resource | None) -> Resource:
    """Write a usage: what is not used at all is left out."""
    return saturated(pruned(amounts)) if amounts else {}


def most(amounts: Resource | None) -> Resource:
    """Write a limit, or what is left of one: zero is an amount there."""
    return saturated(amounts) if amounts else {}


def percentages(taken: Mapping[str, int], capacity: Mapping[str, int] | None) -> Resource:
    """How much of each kind is taken, rounded down and never capped."""
    return {
        kind: quantity * 100 // capacity[kind]
        for kind, quantity in taken.items()
        if quantity and capacity and capacity.get(kind)
    }


def go_duration(ns: int) -> str:
    """Write a duration as Go does: 90 seconds are `1m30s`."""
    if not ns:
        return "0s"
    if abs(ns) < SECOND:
        return _below_a_second(ns)
    sign, rest, text = "-" if ns < 0 else "", abs(ns), ""
    # Hours may be left out, but not minutes between hours and seconds.
    for unit, letter in _UNITS:
        count, rest = divmod(rest, unit)
        if count or text:
            text += f"{count}{letter}"
    whole, fraction = divmod(rest, SECOND)
    digits = f".{fraction:09}".rstrip("0") if fraction else ""
    return f"{sign}{text}{whole}{digits}s"


def _below_a_second(ns: int) -> str:
    for unit, name in ((1_000_000, "ms"), (1_000, "µs")):
        if abs(ns) >= unit:
            whole, fraction = divmod(abs(ns), unit)
            digits = f".{fraction:0{len(str(unit)) - 1}}".rstrip("0") if fraction else ""
            return f"{'-' if ns < 0 else ''}{whole}{digits}{name}"
    return f"{ns}ns"
