"""Reservations: who may keep which node, and how many are kept."""

from yunikorn_actors.lab.model import sums
from yunikorn_actors.lab.model.judged_cluster import Ask
from yunikorn_actors.lab.model.judging import doubts
from yunikorn_actors.lab.model.judging.judged_run import JudgedRun, name_of
from yunikorn_actors.lab.model.rules import ordering, placing, starting
from yunikorn_actors.lab.model.rules.starting import LIVING
from yunikorn_actors.state import facts as f
from yunikorn_actors.values.resource import fit_in_score, fits_in


def check_reservation(run: JudgedRun, fact: f.ReservationMade) -> None:
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
        run.should("reservation", free, text, unsure=doubts.is_new(run, ask))
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
            unsure = unsure or (other.created > ask.created and not doubts.was_of_age(run, other))
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
