"""Quantities as people write them in a configuration: digits, perhaps a suffix.

Messages carry base units already, so this is the one place where units are read and written. The
base unit of `vcore` is the milli-cpu: a bare number means whole cpus and only there `m` means what
is written. Every other type counts in plain integers. The result always fits in int64.
"""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Final, NamedTuple

from yunikorn_actors.values.resource import INT64_MAX

VCORE: Final = "vcore"
MEMORY: Final = "memory"

UINT64_MAX: Final = 2**64 - 1
"""The largest count, as opposed to a quantity, that a configuration may have."""

_MILLI: Final = 1000
_SHAPE: Final = re.compile(r"([0-9]+)[ \t\n\f\r]*((?:[mkKMGTPE]i?)?)")
_DIGITS_MAX: Final = len(str(INT64_MAX))
_MULTIPLIERS: Final[dict[str, int]] = {
    "": 1,
    **{suffix: 1000**power for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": 1024**power for power, suffix in enumerate("KMGTPE", start=1)},
}
# What one unit of each suffix is in milli-cpu.
_VCORE_MULTIPLIERS: Final[dict[str, int]] = {
    "m": 1,
    **{suffix: multiplier * _MILLI for suffix, multiplier in _MULTIPLIERS.items()},
}
_SUFFIXES: Final = (
    *((f"{letter}i", 1024**power) for power, letter in reversed([*enumerate("MGTPE", start=2)])),
    *((letter, 1000**power) for power, letter in reversed([*enumerate("MGTPE", start=2)])),
)


_OTHER_NAMES: Final = {
    **dict.fromkeys(("cpu", "cpus", "vcpu", "vcpus", "core", "cores", "vcores"), VCORE),
    **dict.fromkeys(("mem", "ram", "memories"), MEMORY),
}
"""How other systems call the types that everybody has."""
_ALIKE: Final = 0.81


class QuantityError(ValueError):
    """A text that is no quantity of its resource type."""


def parse_quantity(kind: str, text: str) -> int:
    """Read the quantity of one resource type in base units."""
    shape = _SHAPE.fullmatch(text.strip())
    if shape is None:
        raise QuantityError(f"invalid quantity {text!r}")
    digits, suffix = shape[1].lstrip("0"), shape[2]
    multipliers = _VCORE_MULTIPLIERS if kind == VCORE else _MULTIPLIERS
    if suffix not in multipliers:
        raise QuantityError(f"invalid suffix {suffix!r} in quantity {text!r}")
    # Length first: the conversion of a very long number is refused by Python itself.
    quantity = None if len(digits) > _DIGITS_MAX else int(digits or "0") * multipliers[suffix]
    if quantity is None or quantity > INT64_MAX:
        raise QuantityError(f"invalid quantity: overflow of 64 bits by {text!r}")
    return quantity


@lru_cache(maxsize=256)
def meant_by(kind: str, words: tuple[str, ...] = ()) -> str | None:
    """Return the type, or the word, of which this type is a slip; None if it may well be meant."""
    known = (VCORE, MEMORY, *words)
    low = kind.lower()
    # What has a prefix or a number in it is no slip of a word.
    if kind in known or not low.isalpha():
        return None
    if low in _OTHER_NAMES or low in known:
        return _OTHER_NAMES.get(low, low)
    near = [word for word in known if sorted(word) == sorted(low)]
    return next(iter(near or get_close_matches(low, known, n=1, cutoff=_ALIKE)), None)


def amounts(resource: Mapping[str, int] | None) -> str:
    """Write amounts as a configuration does, without rounding."""
    known = {} if resource is None else resource
    return ", ".join(f"{kind} {quantity(kind, known[kind])}" for kind in sorted(known))


def readable(resource: Mapping[str, int]) -> str:
    """Write amounts for people, each in the unit that suits it, with three decimals at most."""
    return ", ".join(
        f"{kind} {_own_unit(kind, resource[kind]).written(resource[kind])}"
        for kind in sorted(resource)
    )


def compared(one: Mapping[str, int], other: Mapping[str, int]) -> tuple[str, str]:
    """Write two for people; without rounding if rounding would hide that they differ."""
    texts = readable(one), readable(other)
    if texts[0] == texts[1] and one != other:
        return amounts(one), amounts(other)
    return texts


def _own_unit(kind: str, amount: int) -> "Unit":
    if kind == VCORE and abs(amount) < _MILLI:
        return Unit("m", 1)
    return unit_of(kind, (amount,))


class Unit(NamedTuple):
    """What amounts of one type are written in, so that those of a column compare at a glance."""

    name: str
    size: int

    def written(self, amount: int) -> str:
        """Write an amount with three decimals at most; the unit stands behind it."""
        thousandths = round(amount * _MILLI / self.size)
        if not thousandths:
            return "0" if not amount else f"<0.001{self.name}"
        whole, rest = divmod(thousandths, _MILLI)
        decimals = f".{rest:03d}".rstrip("0") if rest else ""
        return f"{whole}{decimals}{self.name}"


def unit_of(kind: str, amounts_: Iterable[int]) -> Unit:
    """Choose the unit of several amounts: that of the largest, in which the most are whole."""
    if kind == VCORE:
        return Unit("", _MILLI)
    known = [it for it in amounts_ if it]
    largest = max(known, default=0)
    fitting = [Unit(name, size) for name, size in _SUFFIXES if size <= largest]
    binary = [it for it in fitting if it.name.endswith("i")]
    decimal = [it for it in fitting if not it.name.endswith("i")]
    candidates = [family[0] for family in (binary, decimal) if family]

    def whole(unit: Unit) -> int:
        return sum(it * _MILLI % unit.size == 0 for it in known)

    return max(candidates, key=whole, default=Unit("", 1))


def quantity(kind: str, amount: int) -> str:
    """Write an amount in the units of a configuration, without rounding."""
    if kind == VCORE:
        return f"{amount}m" if amount % _MILLI else str(amount // _MILLI)
    exact = (f"{amount // size}{name}" for name, size in _SUFFIXES if amount and not amount % size)
    return next(exact, str(amount))
