"""A node, as its program looks at it and changes it; nothing of it waits for the core."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, Generic, TypeVar

from yunikorn_actors import si
from yunikorn_actors.errors import UnknownName
from yunikorn_actors.front.arguments import shown
from yunikorn_actors.front.lease import BaseLease
from yunikorn_actors.front.operations import Operations
from yunikorn_actors.values.quantity import compared

L = TypeVar("L", bound=BaseLease)
T = TypeVar("T")


class Node(Generic[L]):
    """A node of a scheduler: `s.nodes["node-1"]`. What it says is of the moment of the look.

    Amounts are in base units: thousandths of a cpu, bytes. Once it is removed, or was rejected,
    each look raises `UnknownName`.
    """

    def __init__(self, operations: Operations[L], node_id: str) -> None:
        """Made by `nodes` of a scheduler."""
        self.id: Final = node_id
        self._operations = operations

    @property
    def capacity(self) -> dict[str, int]:
        """How large it is."""
        return self._operations.look_at(self.id).capacity

    @property
    def used(self) -> dict[str, int]:
        """How much of that leases have, and what is kept there for members of gangs."""
        return self._operations.look_at(self.id).used

    @property
    def free(self) -> dict[str, int]:
        """How much is left; less than nothing if it became smaller than what is used."""
        look = self._operations.look_at(self.id)
        return {kind: size - look.used.get(kind, 0) for kind, size in look.capacity.items()}

    @property
    def attributes(self) -> Mapping[str, str]:
        """As it was added with them."""
        return self._operations.look_at(self.id).attributes

    @property
    def drained(self) -> bool:
        """Whether nothing new is placed there."""
        return self._operations.look_at(self.id).is_drained

    @property
    def idle_since(self) -> float | None:
        """Since when it is without work, as `time.monotonic()` tells; None while there is some."""
        return self._operations.look_at(self.id).idle_since

    @property
    def leases(self) -> list[L]:
        """What runs there."""
        return self._operations.leases_on(self.id)

    def resize(
        self,
        *,
        vcore: si.Amount | None = None,
        memory: si.Amount | None = None,
        resources: Mapping[str, si.Amount] | None = None,
    ) -> None:
        """Give it another size, in the units of `add_node`; types that are not named stay.

        What runs there goes on, also on a node that is smaller now.
        """
        self._operations.resize_node(self.id, vcore, memory, resources)

    def drain(self) -> None:
        """Place nothing new there; what runs there goes on."""
        self._operations.change_node(self.id, si.ActionFromRM.DRAIN_NODE, "draining")

    def resume(self) -> None:
        """Place work there again."""
        self._operations.change_node(self.id, si.ActionFromRM.DRAIN_TO_SCHEDULABLE, "resumed")

    def remove(self) -> None:
        """Take it away; the leases there are lost."""
        self._operations.remove_node(self.id)

    def __repr__(self) -> str:
        try:
            look = self._operations.look_at(self.id)
        except UnknownName:
            return f"<Node {self.id}: removed>"
        used, size = compared(
            {kind: look.used.get(kind, 0) for kind in look.capacity}, look.capacity
        )
        return f"<Node {self.id}: {used} of {size}{', drained' if look.is_drained else ''}>"


class Named(Mapping[str, T]):
    """What a scheduler has by name, at each look."""

    def __init__(self, what: str, names: Callable[[], list[str]], make: Callable[[str], T]) -> None:
        self._what = what
        self._names = names
        self._make = make

    def __getitem__(self, name: str) -> T:
        if name not in self:
            some = ", ".join(sorted(self._names())[:5]) or "none"
            raise UnknownName(f"there is no {self._what} {shown(name)} (there: {some})")
        return self._make(name)

    def __contains__(self, name: object) -> bool:
        return name in self._names()

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def __repr__(self) -> str:
        return f"<{len(self)} {self._what}s: {', '.join(self)}>"
