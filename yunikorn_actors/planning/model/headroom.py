"""How much more the queues of an application take, and the limits that count for it."""

from collections.abc import Iterable

from yunikorn_actors.planning.model.views import AskView, Gate
from yunikorn_actors.state.gates import GateKind
from yunikorn_actors.values.resource import Resource


def available_to(ask: AskView, shortage: GateKind) -> Resource:
    """Return what is left of each type that it asks for and that anything bounds."""
    if shortage is GateKind.NONE:
        return {}
    levels, limits = ask.app.leaf.limits, ask.app.limits
    queue = shortage is GateKind.QUEUE
    gates: tuple[Gate, ...] = levels if queue else limits
    kinds = [kind for kind, _ in ask.shape.wanted]
    # The cluster has nothing of a type that no node has.
    nothing = dict.fromkeys(kinds, 0) if queue else {}
    return nothing | _least(kinds, (gate.room() for gate in gates))


def _least(kinds: list[str], rooms: Iterable[Resource]) -> Resource:
    least: Resource = {}
    for room in rooms:
        for kind in kinds:
            if kind in room:
                least[kind] = min(room[kind], least.get(kind, room[kind]))
    return least
