"""Whether the rules allow a placement, and whether another ask was first."""

from yunikorn_actors.lab.model import sums
from yunikorn_actors.lab.model.judged_cluster import Ask
from yunikorn_actors.lab.model.judging import judged_run
from yunikorn_actors.lab.model.judging.judged_run import JudgedRun, name_of
from yunikorn_actors.lab.model.rules import ordering, placing, starting
from yunikorn_actors.lab.model.rules.starting import LIVING
from yunikorn_actors.state import facts as f
from yunikorn_actors.values.resource import fit_in_score, fits_in


def check_commit(run: JudgedRun, fact: f.AllocationCommitted) -> None:
    cluster = run.cluster
    if not fact.proposal_id:
        return
    ask, name = cluster.asks[fact.application_id, fact.key], f"{fact.application_id}/{fact.key}"
    node = cluster.nodes.get(fact.node_id)
    run.must("ask", ask.left > 0, f"{name} does not wait")
    bar = placing.barred_by(cluster, ask)
    run.must("gate", not bar, f"{name} placed although {bar}")
    assert node is not None, f"{name} on a node that is not there"
    run.must("node", placing.admits(cluster, node, ask), f"{name} may not run on {node.id}")
    room = fits_in(ask.size, sums.free_on(cluster, node))
    run.must("node", room, f"{name} placed on {node.id}, which has no room")
    kept = {item.node for item in sums.keeps_of(cluster, ask)}
    choices = placing.fitting(cluster, ask)
    choices = [n for n in choices if n.id in kept] or choices
    other_order = "node.sort.policy" in ask.app.spec.tags or node.id in kept
    if not any(it.ask is ask for it in cluster.ending):
        run.plan.unpromised.add(fact.uuid)
    text = f"{name} on {node.id}, but {choices[0].id} is its first choice"
    first = other_order or not placing.is_better(cluster, choices[0], node)
    unsure = choices[0].id in run.plan.let_go or bool(
        {choices[0].id, node.id} & run.plan.uncounted.keys()
    )
    run.should("node", first, text, unsure=unsure)
    if run.plan.as_of is not None and run.plan.came.get(node.id, 0) > run.plan.as_of:
        run.plan.uncounted[node.id] = cluster.revision
    check_turn(run, ask, "placed")
    aware = ask.app.leaf.says.application_sort_policy == "stateaware"
    if aware and ask.app.state == "Accepted" and not sums.allocations_of(cluster, ask.app):
        run.plan.moved[ask.app.leaf] = cluster.revision


def check_turn(run: JudgedRun, ask: Ask, what: str) -> None:
    """Nobody before this ask could have been given something."""
    cluster = run.cluster
    entering, run.plan.entering = run.plan.entering, None
    if entering is ask.app and ask.spec.placeholder:
        run.plan.entering = entering
        return
    for mate in sums.waiting(cluster):
        left = entering is mate.app and mate.spec.placeholder
        left = left and placing.is_placeable(cluster, mate)
        text = f"{what} {name_of(ask)} amid the gang of {name_of(mate)}"
        run.should("gang", not left, text, unsure=judged_run.is_new(run, mate))
    mine = _was_kept_for(run, ask)
    for other in sums.waiting(cluster):
        if other is ask or other.app.state not in LIVING:
            continue
        reserved = _was_kept_for(run, other)
        first = ordering.before(cluster, other, ask) if reserved is mine else reserved
        if first and not (mine and reserved):
            name = f"{what} {name_of(ask)}, but {name_of(other)} comes first"
            unsure = judged_run.is_new(run, other) or other.app.leaf in run.plan.moved
            unsure = unsure or judged_run.waits_behind_gangs(run, other)
            unsure = unsure or judged_run.is_for_others(run, other)
            run.should("order", not placing.has_turn(cluster, other), name, unsure=unsure)


def _was_kept_for(run: JudgedRun, ask: Ask) -> bool:
    """Whether it had a reservation when this was planned: one on its way is none yet.

    While more repeats wait than room is promised to, one that goes elsewhere ends no promise,
    so it has no better turn than others.
    """
    cluster, plan = run.cluster, run.plan
    kept = [it for it in sums.keeps_of(cluster, ask) if it.came <= plan.seen or plan.is_fused]
    mine = [it for it in sums.allocations_of(cluster, ask.app) if it.spec is ask.spec]
    mine = [it for it in mine if it.came > plan.seen]
    since = sum(placed.uuid in plan.unpromised for placed in mine)
    if all(it.claims for it in kept) and len(kept) < ask.left + since:
        nodes = {node.id for node in placing.fitting(cluster, ask)}
        return any(it.node in nodes for it in kept)
    return bool(kept)


def check_reservation(run: JudgedRun, fact: f.ReservationMade) -> None:
    """Reservations: who may keep which node, and how many are kept."""
    cluster = run.cluster
    ask, name = cluster.asks[fact.application_id, fact.key], f"{fact.key} keeps {fact.node_id}"
    node = cluster.nodes[fact.node_id]
    if not fact.by_preemption:
        bar = placing.barred_by(cluster, ask)
        run.must("reservation", not bar, f"{name} although {bar}")
    run.must("reservation", fits_in(ask.size, node.capacity), f"{name}, which is too small")
    mine = [kept for kept in cluster.kept if kept.ask is ask]
    run.must("reservation", len(mine) < ask.left, f"{name}: one for each repeat")
    here = [kept for kept in cluster.kept if kept.node == node.id]
    if fact.required:
        fits = ask.spec.required_node == node.id and all(k.required for k in here)
        run.must("reservation", fits, f"{name}: not its own, or kept for others")
        return
    fits = node.takes_work
    run.must("reservation", fits, f"{name}, which takes no work")
    alike = all(kept.claims for kept in here) if fact.by_preemption else not here
    run.must("reservation", alike, f"{name}: kept for others")
    if not fact.by_preemption:
        ordinary = [kept for kept in cluster.kept if not kept.required and not kept.claims]
        run.must("reservation", len(ordinary) < kept_max(run), f"{name}: too many are kept")
        old = cluster.now - ask.created > cluster.settings.reservation_delay_ns
        run.must("reservation", old, f"{name}, and is too young")
        free, text = not placing.fitting(cluster, ask), f"{name}, but could be placed"
        run.should("reservation", free, text, unsure=judged_run.is_new(run, ask))
        score = fit_in_score(sums.free_on(cluster, node), ask.size)
        better = [n for grade, n in could_keep(run, ask) if grade < score - 1e-9]
        better = [n for n in better if n not in run.plan.let_go]
        run.should("reservation", not better, f"{name}, but {better} fit better")
        for other in sums.waiting(cluster):
            first = other.app.state in LIVING and ordering.before(cluster, other, ask)
            first = first and wants_node_kept(run, other) and not placing.fitting(cluster, other)
            open_to = {name for _, name in could_keep(run, other)}
            unsure = other.app.leaf in run.plan.moved or other in run.plan.lost
            unsure = unsure or open_to <= run.plan.let_go.keys()
            unsure = unsure or (
                other.created > ask.created and not judged_run.was_of_age(run, other)
            )
            text = f"{name}, but {name_of(other)} comes first"
            run.should("order", not first, text, unsure=unsure)


def note_dropped(run: JudgedRun, fact: f.ReservationDropped) -> None:
    revision, ended = run.cluster.revision, sums.keepers(run.cluster, fact, fact.node_id)
    run.plan.let_go[fact.node_id] = revision
    run.plan.lost.update((kept.ask, revision) for kept in ended)


def kept_max(run: JudgedRun) -> int:
    cluster = run.cluster
    nodes = [n for n in cluster.nodes.values() if n.takes_work]
    percent = cluster.queues["root"].says.reservation_max_nodes_percent
    return max(2, len(nodes) * percent // 100)


def could_keep(run: JudgedRun, ask: Ask) -> list[tuple[float, str]]:
    cluster = run.cluster
    return [
        (fit_in_score(sums.free_on(cluster, node), ask.size), node.id)
        for node in cluster.nodes.values()
        if node.takes_work and fits_in(ask.size, node.capacity)
        and all(kept.node != node.id for kept in cluster.kept)
    ]  # fmt: skip


def wants_node_kept(run: JudgedRun, ask: Ask) -> bool:
    """Whether nothing but the nodes stands against an ask of age, and one could be kept."""
    cluster = run.cluster
    old = cluster.now - ask.created > cluster.settings.reservation_delay_ns
    if not old or ask.spec.required_node or sums.keeps_of(cluster, ask):
        return False
    # Whether an older application bars it is open where a gang holds that one back.
    may = not placing.barred_by(cluster, ask) and starting.surely_runs(cluster, ask.app)
    return may and bool(could_keep(run, ask))
