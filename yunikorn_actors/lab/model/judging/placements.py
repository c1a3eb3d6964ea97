"""Whether the rules allow a placement, and whether another ask was first."""

from yunikorn_actors.lab.model import sums
from yunikorn_actors.lab.model.judged_cluster import Ask
from yunikorn_actors.lab.model.judging import doubts
from yunikorn_actors.lab.model.judging.judged_run import JudgedRun, name_of
from yunikorn_actors.lab.model.rules import ordering, placing
from yunikorn_actors.lab.model.rules.starting import LIVING
from yunikorn_actors.state import facts as f
from yunikorn_actors.values.resource import fits_in


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
        run.should("gang", not left, text, unsure=doubts.is_new(run, mate))
    mine = _was_kept_for(run, ask)
    for other in sums.waiting(cluster):
        if other is ask or other.app.state not in LIVING:
            continue
        reserved = _was_kept_for(run, other)
        first = ordering.before(cluster, other, ask) if reserved is mine else reserved
        if first and not (mine and reserved):
            name = f"{what} {name_of(ask)}, but {name_of(other)} comes first"
            unsure = doubts.is_new(run, other) or other.app.leaf in run.plan.moved
            unsure = unsure or doubts.waits_behind_gangs(run, other)
            unsure = unsure or doubts.is_for_others(run, other)
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
