"""Who may go for an ask: fences, priorities, cooldowns, budgets and guarantees."""

import math
from collections.abc import Iterable, Iterator
from typing import Any

from yunikorn_actors.checks.state_invariants import total
from yunikorn_actors.lab.model import sums
from yunikorn_actors.lab.model.judged_cluster import Ask, Cluster, Placed, Queue, Victims
from yunikorn_actors.lab.model.rules import ordering, units
from yunikorn_actors.values.resource import add, match_any, sub


def meeting(one: Queue, two: Queue) -> Queue:
    return next(queue for queue in one.up if queue in two.up)


def is_below_fence(cluster: Cluster, ask: Ask, victim: Placed) -> bool:
    """Whether the ask's way up to where both paths meet passes no fence."""
    meet = meeting(ask.app.leaf, victim.app.leaf)
    for queue in ask.app.leaf.up:
        if queue is meet:
            return True
        promised = sums.claimed(cluster, sums.applications_below(cluster, queue), ask)
        used = add(sums.stays(cluster, queue), promised)
        full = not sums.leaves_room(queue.spec.max, used, ask.size)
        if queue.says.preemption_policy == "fence" or full:
            return False
    return False


def may_go(cluster: Cluster, ask: Ask, victim: Placed) -> bool:
    """Whether the rules let one allocation go for an ask, guarantees apart."""
    mine, theirs = ask.app.leaf, victim.app.leaf
    # What is bound together goes whole, of use or not.
    bound = units.is_bound(victim.app, ask)
    if victim.leaving or victim.spec.required_node:
        return False
    if not bound and not match_any(victim.size, ask.size):
        return False
    if ask.spec.required_node:
        if bound and victim.app is ask.app:
            return False
        # What is bound together goes with a part that is there.
        here = bound or victim.node == ask.spec.required_node
        return here and victim.spec.priority <= ask.spec.priority
    if mine is theirs or theirs.says.preemption_policy == "disabled":
        return False
    meet = meeting(mine, theirs)
    if cluster.now - victim.since < theirs.says.preemption_cooldown_ns:
        return False
    priority = ordering.shown_priority(ask.spec.priority, mine, meet)
    urgent = priority >= ordering.shown_priority(victim.spec.priority, theirs, meet)
    source = entitling_queue(ask)
    own = any(q.spec.guaranteed for q in theirs.up[: theirs.up.index(meet)])
    inside = source is not mine and source in theirs.up and not own
    return urgent and is_below_fence(cluster, ask, victim) and not inside


def is_in_budget(cluster: Cluster, victims: Victims) -> bool:
    """Whether no queue loses more within its time than it allows, for a guarantee."""
    for leaf in {id(v.app.leaf): v.app.leaf for v in victims}.values():
        budget = leaf.says.preemption_budget
        if not budget.window_ns:
            continue
        gone = sum(at > cluster.now - budget.window_ns for at in leaf.gone)
        runs = sum(p.app.leaf is leaf for p in cluster.placed.values() if _runs_on(cluster, p))
        most = math.ceil((runs + gone) * budget.most / 100) if budget.is_share else budget.most
        if gone + sum(v.app.leaf is leaf for v in victims) > most:
            return False
    return True


def _runs_on(cluster: Cluster, placed: Placed) -> bool:
    return not placed.leaving or placed.uuid in cluster.swaps


def entitling_queue(ask: Ask) -> Queue | None:
    """Return the queue whose guarantee entitles the ask: its leaf, or the next above it."""
    return next((q for q in ask.app.leaf.up if q.spec.guaranteed), None)


def is_entitled(cluster: Cluster, ask: Ask, victims: Victims = ()) -> bool:
    """Whether a guarantee has room for the ask, once these are gone."""
    queue = entitling_queue(ask)
    if queue is None or not match_any(queue.spec.guaranteed, ask.size):
        return False
    used = sums.spoken_for(cluster, queue, victims)
    return sums.leaves_room(queue.spec.guaranteed, used, ask.size)


def keeps_guarantee(cluster: Cluster, ask: Ask, victims: Victims) -> bool:
    """Whether every queue that gives is above its guarantee before and not below it after.

    What is promised to it counts as used. It is above in a type of each of its victims.
    """
    if len(victims) > 1 and not all(keeps_guarantee(cluster, ask, [one]) for one in victims):
        return False
    for victim in victims:
        giving = victim.app.leaf.up[
            : victim.app.leaf.up.index(meeting(ask.app.leaf, victim.app.leaf))
        ]
        due_of_all = {kind for queue in giving for kind in queue.spec.guaranteed or {}}
        if due_of_all and not any(ask.size.get(k) and victim.size.get(k) for k in due_of_all):
            return False
        for queue in giving:
            gone = total(v.size for v in victims if queue in v.app.leaf.up)
            before = sums.spoken_for(cluster, queue)
            due = {k: n for k, n in (queue.spec.guaranteed or {}).items() if gone.get(k)}
            wanted = [kind for kind in due if ask.size.get(kind)] or list(due)
            if due and not any(before.get(kind, 0) > due[kind] for kind in wanted):
                return False
            after = sub(before, gone)
            if any(before.get(kind, 0) >= n > after.get(kind, 0) for kind, n in due.items()):
                return False
    return True


def units_for(cluster: Cluster, ask: Ask, here: Iterable[Placed]) -> Iterator[list[Placed]]:
    """Yield what goes as one of some work, the more willing first."""
    seen: set[str] = set()
    for placed in sorted(here, key=lambda item: willing(item, ask)):
        unit = [placed]
        if units.is_bound(placed.app, ask) and units.tears(cluster, placed.app, unit):
            unit = units.stay_of(cluster, placed.app)
        if placed.uuid not in seen and all(may_go(cluster, ask, p) for p in unit):
            seen |= {p.uuid for p in unit}
            yield unit


def willing(placed: Placed, ask: Ask) -> tuple[Any, ...]:
    """Rank victims: what opted out goes last, but before originators on a node that is required."""
    marks = (not placed.spec.allow_preempt_self, placed.spec.originator)
    return (*(marks[::-1] if ask.spec.required_node else marks), -placed.created)
