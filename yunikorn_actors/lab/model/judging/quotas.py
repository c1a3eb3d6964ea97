"""Queues that use more than a lowered maximum: when they come down, and what goes."""

from typing import Any

from yunikorn_actors.checks.state_invariants import total
from yunikorn_actors.lab.model import sums
from yunikorn_actors.lab.model.judged_cluster import Placed, Queue
from yunikorn_actors.lab.model.judging.judged_run import JudgedRun
from yunikorn_actors.lab.model.rules import units
from yunikorn_actors.lab.model.rules.quota_victims import QuotaVictims
from yunikorn_actors.state import facts as f
from yunikorn_actors.values.resource import Resource, add, fits_in_max_undef, sub


def check_armed(run: JudgedRun, fact: f.QuotaPreemptionArmed) -> None:
    cluster = run.cluster
    text = f"{fact.path} is to come down, and is not above its maximum"
    queue = cluster.queues[fact.path]
    run.must("quota", is_above(run, queue), text)
    delay, due = queue.says.quota_preemption_delay_ns, cluster.quota_due.get(fact.path)
    # With another delay the time moves by the difference.
    right = fact.at_ns + delay if due is None else due + delay - run.quota_delays[fact.path]
    run.must("quota", fact.due_ns == right, f"{fact.path} is to come down at another time")
    run.quota_delays[fact.path] = delay


def is_above(run: JudgedRun, queue: Queue) -> bool:
    used = sums.usage(run.cluster, queue)
    return any(used.get(kind, 0) > most for kind, most in (queue.spec.max or {}).items())


def check_enforced(run: JudgedRun, path: str, victims: list[Placed], whom: str) -> None:
    cluster = run.cluster
    queue = cluster.queues[path]
    due = cluster.quota_due.get(path)
    run.must("quota", due is not None and due <= cluster.now, f"{whom} too early")
    over = sub(sums.stays(cluster, queue), queue.spec.max)
    for victim in victims:
        below = queue in victim.app.leaf.up
        run.must("quota", below, f"{whom}: {victim.spec.key} is not of it")
    gone = total(victim.size for victim in victims)
    wanted = {kind: n for kind, n in over.items() if n > 0 and kind in (queue.spec.max or {})}
    least = fits_in_max_undef(gone, wanted)
    run.should("quota", least, f"{whom}: more than the excess")
    _takes_all(run, queue, victims, wanted, whom)
    _takes_these(run, queue, victims, whom)
    inside = {q.path: q for v in victims for q in v.app.leaf.up if queue in q.up}
    for level in inside.values():
        gone = total(v.size for v in victims if level in v.app.leaf.up)
        stays = sums.stays(cluster, level, victims)
        for kind, n in (level.spec.guaranteed or {}).items():
            kept = n <= stays.get(kind, 0) or not gone.get(kind) or kind not in wanted
            run.must("quota", kept, f"{whom}: {level.path} below its guarantee")


def _takes_these(run: JudgedRun, queue: Queue, victims: list[Placed], whom: str) -> None:
    """All of it worked out a second time; what the same plan has placed does not run yet."""
    cluster = run.cluster
    expected = QuotaVictims(cluster).victims_of(queue)
    ran = [it.came <= run.plan.seen for it in cluster.placed.values() if queue in it.app.leaf.up]
    these = {victim.uuid for victim in victims} == expected
    keys = sorted(cluster.placed[uuid].spec.key for uuid in expected)
    run.should("quota", these, f"{whom}, expected {keys}", unsure=not all(ran))


def _takes_all(
    run: JudgedRun, queue: Queue, victims: list[Placed], wanted: Resource, whom: str
) -> None:
    """A leaf without a guarantee takes what it may, the willing and less important first."""
    cluster = run.cluster
    gone = total(victim.size for victim in victims)
    for other in cluster.placed.values():
        if other.app.leaf is not queue or other in victims or other.leaving:
            continue
        bound = bool(other.spec.required_node) or not set(wanted) & set(other.size)
        bound = bound or units.is_bound(other.app, None)
        more = fits_in_max_undef(add(gone, other.size), wanted)
        free = all(not level.spec.guaranteed for level in queue.up)
        run.should("quota", bound or not (more and free), f"{whom}: {other.spec.key} goes as well")
        for victim in victims:
            parts = units.part(cluster, other), units.part(cluster, victim)
            if not units.are_in_order(None, *parts):
                continue
            ranks = _bids(other, parts[0]), _bids(victim, parts[1])
            better = other.size == victim.size and ranks[0] < ranks[1]
            run.should("quota", bound or not better, f"{whom}, but {other.spec.key} goes before")


def _bids(placed: Placed, part: int) -> tuple[Any, ...]:
    """Rank for a quota: plain work before originators before what opted out, then by priority.

    Before the priority comes what it is to its gang.
    """
    spec = placed.spec
    return (not spec.allow_preempt_self, spec.originator, part, spec.priority)
