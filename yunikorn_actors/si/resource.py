"""Amounts of resources, in base units, as the interface nests them: a map of one-field messages."""

from collections.abc import Mapping
from typing import Self

from msgspec import field

from yunikorn_actors.si.wire import Int64, Name, SiMessage


class Quantity(SiMessage, frozen=True, kw_only=True):
    value: Int64 = 0


class Resource(SiMessage, frozen=True, kw_only=True):
    resources: dict[Name, Quantity] = field(default_factory=dict)

    @classmethod
    def of(cls, amounts: Mapping[str, int]) -> Self:
        return cls(resources={name: Quantity(value=amount) for name, amount in amounts.items()})

    def amounts(self) -> dict[str, int]:
        return {name: quantity.value for name, quantity in self.resources.items()}
