"""Whether an ask may be placed, on which nodes, and which of them is the first choice."""

import math

from yunikorn_actors.lab.model import sums
from yunikorn_actors.lab.model.judged_cluster import Ask, Cluster, Node
from yunikorn_actors.lab.model.rules import admitting, gangs, starting
from yunikorn_actors.lab.model.sums import once
from yunikorn_actors.values.resource import add, fits_in, sub


def has_headroom(cluster: Cluster, ask: Ask) -> bool:
    """Whether each maximum has room; promises to others count in queues below the root."""
    mine = sums.redeems(cluster, ask)
    # Where a maximum does not hold all that was promised, what was promised to it is its own.
    ended = [kept.size for kept in cluster.ending if kept.ask is ask and kept.claims]
    its_own = any(size and fits_in(ask.size, size) for size in (mine, *ended))
    for gate in sums.gates(cluster, ask.app):
        promised = sub(sums.claimed(cluster, gate.apps), mine) if gate.queue else {}
        used = gate.used if its_own else add(gate.used, promised)
        if not sums.leaves_room(gate.most, used, ask.size):
            return False
    used = sums.usage(cluster, cluster.queues["root"])
    return bool(ask.spec.required_node) or sums.leaves_room(
        sums.total_capacity(cluster), used, ask.size
    )


def barred_by(cluster: Cluster, ask: Ask) -> str:
    """Say what stands against placing an ask, whatever the nodes are."""
    if not starting.may_run(cluster, ask.app):
        return "its application may not run"
    if ask.spec.placeholder and gangs.is_held(ask.app):
        return "its gang is held"
    if gangs.blocked(cluster, ask):
        return "it waits for placeholders"
    return "" if has_headroom(cluster, ask) else "a quota is used up"


def admits(cluster: Cluster, node: Node, ask: Ask) -> bool:
    """Whether an ask may be placed on a node, if it has room."""
    if ask.spec.required_node:
        return ask.spec.required_node == node.id
    mine = any(kept.node == node.id for kept in sums.keeps_of(cluster, ask))
    others = any(kept.node == node.id and kept.ask is not ask for kept in cluster.kept)
    return node.takes_work and (mine or not others)


def score(cluster: Cluster, node: Node) -> float:
    free, share = sums.free_on(cluster, node), 0.0
    weights = {k: w for k, w in cluster.node_sort.weights.items() if w and k in node.capacity}
    if cluster.node_sort.policy == "least-fragmentation":
        used = {k: 1.0 - free.get(k, 0) / node.capacity[k] for k in sorted(weights)}
        most = max(weights.values(), default=0.0)
        return math.prod(max(0.0, 1.0 - weights[k] / most * u) for k, u in used.items())
    for kind, weight in weights.items():
        share += weight * (1.0 - free.get(kind, 0) / node.capacity[kind])
    share = share / sum(weights.values()) if weights else 0.0
    return 1.0 - share if cluster.node_sort.policy == "binpacking" else share


def is_better(cluster: Cluster, one: Node, two: Node) -> bool:
    """Whether a node comes first, beyond what the last bit of a number may say."""
    a, b = score(cluster, one), score(cluster, two)
    return a < b - 1e-9 or (a == b and one.id < two.id)


@once
def fitting(cluster: Cluster, ask: Ask) -> list[Node]:
    """Return the nodes that could take the ask now, the first choice first."""
    nodes = [n for n in cluster.nodes.values() if fits_in(ask.size, sums.free_on(cluster, n))]
    nodes = [n for n in nodes if admits(cluster, n, ask)]
    return sorted(nodes, key=lambda node: (score(cluster, node), node.id))


def is_placeable(cluster: Cluster, ask: Ask) -> bool:
    return (
        bool(fitting(cluster, ask))
        and not barred_by(cluster, ask)
        and starting.surely_runs(cluster, ask.app)
    )


@once
def has_turn(cluster: Cluster, ask: Ask) -> bool:
    """Whether something must be decided for this ask, if nobody is before it."""
    return is_placeable(cluster, ask) or admitting.must_admit(cluster, ask)
