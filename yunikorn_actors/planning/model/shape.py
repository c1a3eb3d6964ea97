"""Shapes: asks of one size, so that one answer serves them all.

An ask that can run on one node alone is a shape of its own: it waits for that node. So is an ask to
which its resource manager has refused nodes.
"""

from enum import Enum

from yunikorn_actors.state.allocations import AskSpec
from yunikorn_actors.state.device_fit import are_so_many
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.values.devices import is_of_model
from yunikorn_actors.values.resource import INT64_MAX
from yunikorn_actors.values.tags import GPU

NEVER = -1
Wanted = tuple[tuple[str, int], ...]
ShapeKey = tuple[Wanted, str, str, str, str]
"""Amounts, the models of devices that will do, and for an ask by itself its required node, its
application and its key."""


class Use(Enum):
    """What a resource manager may refuse: the use of a node for an ask."""

    PLACING = "PLACING"
    KEEPING = "KEEPING"
    PREEMPTING = "PREEMPTING"


class Denial:
    """What a resource manager refused to one ask: nodes, each with the reason."""

    __slots__ = ("due_ns", "elsewhere", "refused", "rounds")

    def __init__(self, rounds: int) -> None:
        self.refused: dict[Use, dict[str, str]] = {use: {} for use in Use}
        self.elsewhere: set[tuple[Use, str]] = set()
        """Of these, what was refused to another planner, and not to this one."""
        self.rounds = rounds
        """How often it was lifted without a request of the resource manager."""
        self.due_ns = 0

    # The resource manager has made a request: what another planner heard may be outdated.
    def allow_elsewhere(self) -> bool:
        """Forget what was refused to other planners; return whether anything is left."""
        for use, node_id in self.elsewhere:
            del self.refused[use][node_id]
        self.elsewhere.clear()
        return any(self.refused.values())


class Shape:
    __slots__ = (
        "denial",
        "devices",
        "hopeless_at",
        "is_choosy",
        "key",
        "models",
        "oldest_ns",
        "required_node",
        "total",
        "waits_for_node",
        "wanted",
    )

    def __init__(self, key: ShapeKey, denial: Denial | None = None) -> None:
        self.key = key
        self.denial = denial
        amounts, self.models, self.required_node, _, _ = key
        self.is_choosy = bool(self.models or self.required_node)
        """Whether room is not enough, as of its asks."""
        self.wanted: Wanted = amounts
        """The positive amounts: asking for nothing of a type always fits."""
        self.total, wants_all = 0, True
        for _, quantity in amounts:
            self.total += quantity
            wants_all = wants_all and quantity > 0
        # A type of which nothing is wanted never refuses.
        if not wants_all:
            self.wanted = tuple([amount for amount in amounts if amount[1] > 0])
        self.devices = dict(self.wanted).get(GPU, 0)
        """The amount of devices; if there is one, room for the amounts is not enough on a node."""
        self.hopeless_at = NEVER
        """At this count of node changes no node could hold it even when empty."""
        self.oldest_ns = INT64_MAX
        """No ask of this shape is older than that, those of blocked applications included."""
        self.waits_for_node = False
        """No node has room for it; the first that gains enough says so."""

    @property
    def names_models(self) -> bool:
        """Whether not every model of devices will do."""
        return bool(self.models)

    def takes_model_of(self, node: Node) -> bool:
        return is_of_model(node.model, self.models)

    def could_have_devices_of(self, node: Node) -> bool:
        """Whether the devices of the node are such as it wants, free or not."""
        amount = self.devices
        return amount <= 0 or (self.takes_model_of(node) and are_so_many(node, amount))

    def is_refused(self, node_id: str, use: Use) -> bool:
        return self.denial is not None and node_id in self.denial.refused[use]


def shape_key(spec: AskSpec) -> ShapeKey:
    # One that requires a node shares it with nobody, nor does one with refused nodes.
    return own_key(spec) if spec.required_node else (*spec.demand, "", "", "")


def own_key(spec: AskSpec) -> ShapeKey:
    return (*spec.demand, spec.required_node, spec.application_id, spec.key)
