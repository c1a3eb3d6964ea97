"""Amounts of resources, in base units, as the interface nests them: a map of one-field messages."""

from collections.abc import Mapping
from typing import Final, Self, TypeAlias

from msgspec import field

from yunikorn_actors.si.wire import Int64, Name, SiMessage
from yunikorn_actors.values.quantity import QuantityError, parse_quantity

Amount: TypeAlias = int | str
"""As in a configuration: 4 or "500m" of vcore, 1024 or "64Gi" of memory, a count of others."""


class Quantity(SiMessage, frozen=True, kw_only=True):
    """An amount of one resource type, in base units."""

    value: Int64 = 0
    """The number: thousandths of a cpu, bytes, or pieces."""


class Resource(SiMessage, frozen=True, kw_only=True):
    """Amounts by resource type, in base units.

    `vcore` counts thousandths of a cpu, `memory` bytes; other types count pieces.
    """

    resources: dict[Name, Quantity] = field(default_factory=dict)
    """The amounts by the name of their type; `Resource.of` and `amounts` use plain numbers."""

    @classmethod
    def parse(cls, amounts: Mapping[str, Amount] | None = None, /, **named: Amount) -> Self:
        """Read amounts as people write them, in the units of the configuration.

        A bare `vcore` is a whole cpu, `"500m"` is half of one: `parse(vcore=16, memory="64Gi")`.
        A type whose name is no word goes into the mapping: `parse({"nvidia.com/gpu": 2}, vcore=1)`.
        Raises `QuantityError` for what is no quantity.
        """
        written = {**(amounts or {}), **named}
        return cls(
            resources={
                name: Quantity(value=_read(name, amount)) for name, amount in written.items()
            }
        )

    @classmethod
    def of(cls, amounts: Mapping[str, int]) -> Self:
        """Take amounts in base units: `Resource.of({"vcore": 500, "memory": 2 << 30})`."""
        return cls(resources={name: Quantity(value=amount) for name, amount in amounts.items()})

    def amounts(self) -> dict[str, int]:
        """Return plain numbers by type."""
        return {name: quantity.value for name, quantity in self.resources.items()}


_AMOUNTS: Final = "amounts are whole numbers of 63 bits, or text such as '500m' or '64Gi'"


def _read(name: str, amount: Amount) -> int:
    # True is an int as well, and no amount that anyone means.
    if type(amount) not in {int, str}:
        raise QuantityError(f"{name}: {amount!r:.100} is no amount; {_AMOUNTS}")
    try:
        return parse_quantity(name, str(amount))
    except (QuantityError, ValueError) as error:
        raise QuantityError(f"{name}: {error!s:.200}; {_AMOUNTS}") from None
