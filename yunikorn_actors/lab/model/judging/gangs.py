"""Admission and lapse of gangs, and what swaps for their placeholders."""

from yunikorn_actors.lab.model import sums
from yunikorn_actors.lab.model.judging import placements
from yunikorn_actors.lab.model.judging.judged_run import JudgedRun, name_of
from yunikorn_actors.lab.model.rules import (
    admitting,
    gangs,
    ordering,
    placing,
    preemption,
    starting,
)
from yunikorn_actors.state import facts as f
from yunikorn_actors.values.resource import fits_in


def check_admission(run: JudgedRun, fact: f.GangAdmitted) -> None:
    cluster = run.cluster
    app = cluster.apps[fact.application_id]
    asks = [ask for ask in sums.asks_of(cluster, app) if ask.spec.placeholder]
    run.must("gang", gangs.is_held(app) and bool(asks), f"{app.id} admitted, but is not held")
    run.should("gang", starting.may_run(cluster, app), f"{app.id} admitted, but may not run")
    if fact.claims:
        entitled = preemption.claims_all(cluster, asks[0])
        run.must("gang", entitled, f"{app.id} claims more than is guaranteed to its queue")
        return
    fits = gangs.has_room_for_all(cluster, app, claims=False)
    run.must("gang", fits, f"{app.id} admitted, but its queues or limits have no room for all")
    if app.lapsed is not None:
        for other in sums.waiting(cluster):
            first = other.app.lapsed is None and admitting.must_admit(cluster, other)
            text = f"{app.id} admitted again, but {name_of(other)} comes first"
            unsure = other.app.leaf in run.plan.moved
            run.should("gang", other.app is app or not first, text, unsure=unsure)
    first_ask = min(asks, key=ordering.rank_of_ask)
    placements.check_turn(run, first_ask, "admitted")
    run.plan.entering = app


def check_lapse(run: JudgedRun, fact: f.GangLapsed) -> None:
    cluster = run.cluster
    app = cluster.apps[fact.application_id]
    late = app.admitted and cluster.now >= app.bare_since + gangs.gang_timeout(cluster, app)
    bare = not sums.placeholders_of(cluster, app)
    run.must("gang", late and bare, f"{app.id} is held again too early")


def check_swap(run: JudgedRun, fact: f.AskParked) -> None:
    cluster = run.cluster
    ask, held = cluster.asks[fact.application_id, fact.key], cluster.placed[fact.placeholder]
    name = f"{name_of(ask)} for {held.spec.key}"
    mine = held.app is ask.app and held.spec.placeholder
    mine = mine and held.spec.task_group == ask.spec.task_group
    run.must("swap", mine, f"{name}: not a placeholder of its group")
    run.must("swap", fact.placeholder not in cluster.swaps, f"{name}: swapped already")
    run.must("swap", fits_in(ask.size, held.size), f"{name}: it does not fit into that")
    may_swap = starting.may_swap(cluster, ask)
    run.must("swap", may_swap, f"{name}: placeholders of it wait, or it may not run")
    required = ask.spec.required_node in ("", fact.node_id)
    run.must("swap", required, f"{name}: it is bound to {ask.spec.required_node}")
    run.must("swap", fact.crosses == (held.node != fact.node_id), f"{name}: wrong node")
    if fact.crosses:
        node = cluster.nodes[fact.node_id]
        fits = fits_in(ask.size, sums.free_on(cluster, node)) and placing.admits(cluster, node, ask)
        run.must("swap", fits, f"{name}: no room on {node.id}")
    for other in sums.waiting(cluster):
        same = other.app is ask.app and other.spec.task_group == ask.spec.task_group
        first = same and not other.spec.placeholder and ordering.before(cluster, other, ask)
        fits = first and fits_in(other.size, held.size) and not other.spec.required_node
        run.should("swap order", not fits, f"{name}, but {name_of(other)} comes first")


def check_cancelled(run: JudgedRun, fact: f.PlaceholderCancelled) -> None:
    cluster = run.cluster
    ask = cluster.asks[fact.application_id, fact.key]
    suits = any(fits_in(ask.size, p.size) for p in gangs.usable(cluster, ask))
    run.should(
        "swap", not suits, f"{name_of(ask)} fits into a placeholder, {fact.placeholder_key} goes"
    )
