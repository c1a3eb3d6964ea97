"""At rest nothing is on its way: whatever waits must have a reason."""

from yunikorn_actors.lab.model import sums
from yunikorn_actors.lab.model.judged_cluster import Ask
from yunikorn_actors.lab.model.judging import applications, judged_run, placements, quotas
from yunikorn_actors.lab.model.judging.judged_run import JudgedRun, LastRest, name_of
from yunikorn_actors.lab.model.rules import admitting, gangs, placing, preemption, starting
from yunikorn_actors.lab.model.rules.starting import LIVING
from yunikorn_actors.values.durations import HOUR, SECOND
from yunikorn_actors.values.resource import fits_in

AGAIN = 15 * SECOND
"""Between two attempts to preempt for one ask."""


def check_rest(run: JudgedRun) -> None:
    """Nothing is on its way: whatever waits must have a reason."""
    cluster = run.cluster
    cluster.answers.clear()
    for ask in sums.waiting(cluster):
        if ask.app.state in LIVING:
            _must_wait(run, ask)
    for app in cluster.apps.values():
        applications.check_at_rest(run, app)
    for kept in cluster.kept:
        run.must("reservation", kept.ask.left > 0, f"{kept.node} is kept for {name_of(kept.ask)}")
        # One of no use ends after an hour, if nothing came free meanwhile.
        useless = cluster.now > kept.since + HOUR and not starting.may_run(cluster, kept.ask.app)
        run.should(
            "reservation", not useless, f"{kept.node} is kept for {name_of(kept.ask)} too long"
        )
    for path in cluster.quota_due:
        if path in cluster.queues:
            text = f"{path} is to come down still, and is not above its maximum"
            run.must("quota", quotas.is_above(run, cluster.queues[path]), text)
    run.last_rest = LastRest(cluster.revision, cluster.now)


def _must_wait(run: JudgedRun, ask: Ask) -> None:
    cluster, name = run.cluster, name_of(ask)
    placeable, unsure = placing.is_placeable(cluster, ask), judged_run.is_for_others(run, ask)
    run.should("waits", not placeable, f"{name} waits and could be placed", unsure=unsure)
    admitted = admitting.must_admit(cluster, ask)
    run.should("waits", not admitted, f"the gang of {name} waits and has room")
    usable = gangs.usable(cluster, ask)
    if usable and starting.may_swap(cluster, ask):
        there = [p for p in usable if ask.spec.required_node in ("", p.node)]
        swap = any(fits_in(ask.size, p.size) for p in there)
        run.should("waits", not swap, f"{name} waits and could be swapped")
        none = not any(fits_in(ask.size, p.size) for p in usable)
        run.should("waits", not none, f"{name} fits into no placeholder, and these stay")
    required = cluster.nodes.get(ask.spec.required_node)
    fits = required is not None and fits_in(ask.size, required.capacity)
    if required is not None and fits and not placing.barred_by(cluster, ask):
        here = [kept for kept in cluster.kept if kept.node == required.id and not kept.required]
        kept = bool(sums.keeps_of(cluster, ask)) or bool(here)
        run.should("waits", kept, f"{name} waits and its node is not kept for it")
    _must_not_preempt(run, ask)
    _must_not_keep(run, ask)


def _must_not_preempt(run: JudgedRun, ask: Ask) -> None:
    cluster = run.cluster
    if ask.spec.required_node:
        kept = sums.keeps_of(cluster, ask)
        there = [p for p in cluster.placed.values() if p.node == ask.spec.required_node]
        tried = any(placed.leaving for placed in there)
        may = kept and not tried and ask.spec.allow_preempt_other
        # With others of a gang it claims only where all of them find room (G31).
        may = may and not (ask.spec.placeholder and ask.app.spec.is_gang)
        if may and not placing.barred_by(cluster, ask):
            node = cluster.nodes[ask.spec.required_node]
            others = [k for k in cluster.kept if k.node == node.id and k.ask is not ask]
            victims = preemption.victims_on(cluster, ask, node, cluster.revision)
            could = not others and victims is not None
            run.should("waits", not could, f"{name_of(ask)} waits and others may go for it")
        return
    could = preemption.could_preempt(cluster, ask)
    waited = preemption.waited_for_preemption(cluster, ask)
    due = ask.created + preemption.preemption_delay(cluster, ask)
    rest = run.last_rest
    came = rest.at_ns < due <= cluster.now and cluster.revision > rest.revision
    if ask.vain_at is None and came:
        # Its time came while more happened: it may have been tried in vain amid it.
        ask.vain_at, ask.could_since = due, None
    if rest.work_ended or not (could and preemption.could_preempt(cluster, ask, rest.revision)):
        # What was placed since the last rest may not have run yet when it was tried, and what
        # has ended since may have run then.
        if waited:
            ask.vain_at = cluster.now
        elif ask.vain_at is None or ask.vain_at > cluster.now:
            # An attempt that was made stays made, even if a longer delay came after it.
            ask.vain_at = due
        ask.could_since = cluster.now if could else None
    elif ask.could_since is None:
        ask.could_since = cluster.now
    if could and waited and ask.could_since is not None:
        vain = ask.vain_at is not None and ask.vain_at <= cluster.now
        due = ask.could_since + AGAIN if vain else ask.could_since
        text = f"{name_of(ask)} waits and others may go for it"
        run.should("waits", cluster.now <= due and vain, text)


def _must_not_keep(run: JudgedRun, ask: Ask) -> None:
    ordinary = [kept for kept in run.cluster.kept if not kept.required and not kept.claims]
    waits = len(ordinary) >= placements.kept_max(run) or not placements.wants_node_kept(run, ask)
    run.should("waits", waits, f"{name_of(ask)} waits and no node is kept")
