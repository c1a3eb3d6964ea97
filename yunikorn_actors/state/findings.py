"""What a planner finds out about an ask that waits."""

from msgspec import Struct

from yunikorn_actors.state.allocations import Ask, WaitingState
from yunikorn_actors.state.gates import GateKind
from yunikorn_actors.values.resource import Resource


class Finding(Struct, frozen=True):
    ask: Ask
    state: WaitingState
    reason: str
    shortage: GateKind | None = None
    """None if the planner did not look."""
    available: Resource = {}
    refusals: dict[str, int] = {}
    """Reasons for which its resource manager refused nodes, and how many."""
