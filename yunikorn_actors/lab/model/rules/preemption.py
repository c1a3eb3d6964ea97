"""Which asks may have others go, and whether that makes room for them."""

import math
from collections.abc import Sequence

from yunikorn_actors.checks.state_invariants import total
from yunikorn_actors.lab.model import sums
from yunikorn_actors.lab.model.judged_cluster import Ask, Cluster, Kept, Node, Placed, Victims
from yunikorn_actors.lab.model.rules import gangs, placing, starting, units, victim_choice
from yunikorn_actors.values.resource import add, fits_in, sub


def makes_room(
    cluster: Cluster, ask: Ask, node: Node, victims: Victims, ahead: Sequence[Ask] = ()
) -> bool:
    """Whether the ask fits when these and all that was asked back are gone.

    Those ahead of it take their room first, and take it here.
    """
    leaving = [p for p in cluster.placed.values() if p.leaving and not _hands_over(cluster, p)]
    free = sums.free_on(cluster, node)
    for placed in {p.uuid: p for p in (*victims, *leaving)}.values():
        free = add(free, placed.size if placed.node == node.id else {})
    for kept in cluster.kept:
        mine = kept.ask is ask and not kept.claims  # what is promised to it is for a repeat
        spoken = kept.node == node.id and not mine
        free = sub(free, kept.size if spoken and _speaks(cluster, kept) else {})
    if not fits_in(ask.size, sub(free, sums.all_repeats_of(ahead))):
        return False
    if ask.spec.required_node:
        return True
    for queue in ask.app.leaf.up:
        most = sums.total_capacity(cluster) if queue.parent is None else queue.spec.max
        coming = sums.all_repeats_of(other for other in ahead if queue in other.app.leaf.up)
        used = add(sums.spoken_for(cluster, queue, victims), coming)
        if not sums.leaves_room(most, used, ask.size):
            return False
    return True


def only_waits(cluster: Cluster, ask: Ask) -> bool:
    """Whether it needs no victims: a node has room, and what is in its way already leaves."""
    may = waited_for_preemption(cluster, ask) and may_preempt(cluster, ask)
    may = may and victim_choice.is_entitled(cluster, ask)
    return may and any(makes_room(cluster, ask, node, ()) for node in placing.fitting(cluster, ask))


def took_victims_on(cluster: Cluster, node: Node, but: Ask) -> list[Ask]:
    """List for which other asks that require this node all victims have gone."""
    made = (kept for kept in cluster.kept if kept.node == node.id and kept.victims)
    return [kept.ask for kept in made if kept.ask is not but and not _speaks(cluster, kept)]


def _hands_over(cluster: Cluster, placed: Placed) -> bool:
    """Whether a real ask takes the place over, so that it does not come free."""
    swap = cluster.swaps.get(placed.uuid)
    return swap is not None and not swap.crosses


def victims_on(cluster: Cluster, ask: Ask, node: Node, until: float) -> list[Placed] | None:
    """Collect victims on one node, newest first; None where this simple way leads to none."""
    chosen: list[Placed] = []
    here = [p for p in cluster.placed.values() if p.node == node.id and p.came <= until]
    here = [p for p in here if victim_choice.may_go(cluster, ask, p)]
    for unit in victim_choice.units_for(cluster, ask, here):
        if makes_room(cluster, ask, node, chosen):
            break
        torn = len(unit) == 1 and units.tears(cluster, unit[0].app, [*chosen, *unit])
        if torn and units.is_bound(unit[0].app, ask):
            continue
        more = [*chosen, *(p for p in unit if p not in chosen)]
        if ask.spec.required_node or (
            victim_choice.keeps_guarantee(cluster, ask, more)
            and victim_choice.is_in_budget(cluster, more)
        ):
            chosen += [p for p in unit if p not in chosen]
    return chosen if chosen and makes_room(cluster, ask, node, chosen) else None


def may_preempt(cluster: Cluster, ask: Ask) -> bool:
    """Whether an ask may have others go now; quotas above may come free with them."""
    claims = sum(kept.claims for kept in sums.keeps_of(cluster, ask))
    if not ask.spec.allow_preempt_other or claims >= ask.left or gangs.blocked(cluster, ask):
        return False
    held = ask.spec.placeholder and gangs.is_held(ask.app)
    return starting.may_run(cluster, ask.app) and not held and all(
        sums.leaves_room(gate.most, add(gate.used, sums.claimed(cluster, gate.apps, ask)), ask.size)
        for gate in sums.gates(cluster, ask.app) if gate.queue is None
    )  # fmt: skip


def preemption_delay(cluster: Cluster, ask: Ask) -> int:
    return ask.app.leaf.says.preemption_delay_ns or cluster.settings.preemption_delay_ns


def waited_for_preemption(cluster: Cluster, ask: Ask) -> bool:
    return cluster.now >= ask.created + preemption_delay(cluster, ask)


def waiting_of_gang(cluster: Cluster, ask: Ask) -> list[Ask]:
    """Return the placeholders that wait with an ask, of which all have victims or none."""
    if not ask.spec.placeholder or not any(ask.app.spec.placeholder_ask.values()):
        return []
    asks = [other for other in sums.asks_of(cluster, ask.app) if other.spec.placeholder]
    return [other for other in asks if not other.spec.required_node]


def claims_all(cluster: Cluster, ask: Ask) -> bool:
    """Whether the guarantee of its leaf has room for all of its gang that is to come."""
    asks, leaf = waiting_of_gang(cluster, ask), ask.app.leaf
    if not asks:
        return True
    mine = total(kept.size for kept in cluster.kept if kept.claims and kept.ask in asks)
    wanted = sub(sums.all_repeats_of(asks), mine)
    used = add(sums.spoken_for(cluster, leaf), wanted)
    bound = leaf.spec.guaranteed or {}
    return all(used.get(k, 0) <= n for k, n in bound.items() if wanted.get(k, 0) > 0)


def could_preempt(cluster: Cluster, ask: Ask, until: float = math.inf) -> bool:
    """Whether a victim must go for an ask: one node, its willing work, newest first.

    Of those that were placed until some revision; nobody where enough comes free already.
    """
    if not may_preempt(cluster, ask) or placing.fitting(cluster, ask):
        return False
    if not starting.surely_runs(cluster, ask.app):
        return False
    by_guarantee = cluster.config.preemption_enabled and victim_choice.is_entitled(cluster, ask)
    if ask.spec.required_node:
        nodes = [n for n in cluster.nodes.values() if n.id == ask.spec.required_node]
    elif by_guarantee and ask.left == 1:
        # Of a gang all have victims or none: that is more than is looked at here.
        if waiting_of_gang(cluster, ask):
            return False
        nodes = [n for n in cluster.nodes.values() if n.takes_work]
        nodes = [n for n in nodes if all(k.claims for k in cluster.kept if k.node == n.id)]
    else:
        return False
    nodes = [n for n in nodes if fits_in(ask.size, n.capacity)]
    if any(makes_room(cluster, ask, n, ()) for n in nodes):
        return False
    return any(victims_on(cluster, ask, n, until) is not None for n in nodes)


def _speaks(cluster: Cluster, kept: Kept) -> bool:
    """Whether what comes free is spoken for: of a node required, while others still go for it.

    What is left of it once they have gone, and nobody took by force, is not known here.
    """
    return kept.claims or any(uuid in cluster.placed for uuid in kept.victims)
