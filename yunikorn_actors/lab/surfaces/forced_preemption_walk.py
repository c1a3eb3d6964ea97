"""A small partition in which work has to go for a number: for a required node, or a lowered quota.

As in `guarantee_walk`, and judged by the same pages: nobody goes that may not, nobody in vain, and
for a node nobody of a kind that goes late where those before it would do.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from yunikorn_actors import si
from yunikorn_actors.lab.model.least_victims import Amounts, Small, Work, kind_of_each
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces.guarantee_walk import CLAIMANT, LEAVES, RM, Played, resource_of
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.values.tags import TAG_REQUIRED_NODE

_DELAYS_S: Final = (3, 7, 20)
_RANKS: Final = {
    "broken": 0, "remains": 0, "surplus": 1, "alone": 2, "application": 2, "whole": 3,
}  # fmt: skip
"""In this order they go."""
Seen = tuple[str, Any, list[str]]


def walk_forced(draw: Draw) -> Iterator[Seen]:
    """Yield who goes, with what is wrong about it."""
    played = Played(draw)
    for rules in played.contest.queues.values():
        # What goes as one is judged where there is a choice.
        rules.unit = "" if rules.unit == "application" else rules.unit
        rules.maximum = None
    played.contest.enforces_quotas = True
    try:
        played.run_all()
        if draw.once_in(2):
            yield from _for_a_node(played, draw)
        else:
            yield from _for_a_quota(played, draw)
    finally:
        played.core.stop()


# -- a required node


def _for_a_node(played: Played, draw: Draw) -> Iterator[Seen]:
    small, core = played.small, played.core
    node, priority = draw.one_of([*small.nodes]), draw.one_of((0, 1, 2, 3))
    size = played.contest.sizes[0]
    ask = si.AllocationAsk(
        allocation_key="bound", application_id=CLAIMANT, partition_name="default",
        resource_ask=resource_of(size), priority=priority, tags={TAG_REQUIRED_NODE: node},
        preemption_policy=si.PreemptionPolicy(allow_preempt_other=True),
    )  # fmt: skip
    core.update_allocation(si.AllocationRequest(asks=(ask,), rm_id=RM))
    core.run_until_idle()
    gone = played.preempted()
    faults = _faults_on(small, node, size, priority, gone)
    yield f"{size} of {priority} requires {node}", sorted(gone), list(faults)


def _faults_on(
    small: Small, node: str, size: Amounts, priority: int, gone: frozenset[str]
) -> Iterator[str]:
    free, kinds = small.rooms()[node], kind_of_each(small)
    may_go = [
        it for it in small.works
        if it.node == node and not it.is_bound and it.priority <= priority
    ]  # fmt: skip
    going = [it for it in may_go if it.key in gone]

    def fits(works: Iterable[Work]) -> bool:
        sizes = [free, *(it.size for it in works)]
        return all(sum(it[at] for it in sizes) >= size[at] for at in (0, 1))

    def turn(it: Work) -> tuple[bool, bool, int]:
        return it.originator, it.opted_out, _RANKS[kinds[it.key]]

    if len(going) < len(gone):
        yield f"{sorted(gone)} go, and of these only {[it.key for it in going]} may"
    elif not gone:
        if fits(may_go) and not fits(()):
            yield "nobody goes, and there would be room"
    elif fits(()) or not fits(going):
        yield f"{sorted(gone)} go, and that is not what is needed"
    else:
        for one in going:
            if fits([it for it in going if it is not one]):
                yield f"{one.key} goes, and is not needed"
        last = max(map(turn, going))
        if fits([it for it in may_go if turn(it) < last]):
            yield f"{sorted(gone)} go, and those that go before them would do"


# -- a lowered quota


def _for_a_quota(played: Played, draw: Draw) -> Iterator[Seen]:
    small, core = played.small, played.core
    used = {path: n for path in LEAVES if (n := small.used(path)) > 0}
    if not used:
        return
    path = draw.one_of([*used])
    rules = small.queues[path]
    least = rules.guaranteed or 0
    if used[path] <= max(least, 1):
        return
    rules.maximum = draw.whole(max(least, 1), used[path] - 1)
    rules.quota_delay_s = draw.one_of(_DELAYS_S)
    excess = used[path] - rules.maximum
    played.reload()
    lowered_s = played.now_s
    core.advance_to((lowered_s + rules.quota_delay_s) * SECOND - 1)
    early = sorted(played.preempted())
    yield "before the delay of the quota is over", early, ["too soon"] if early else []
    played.to(lowered_s + rules.quota_delay_s)
    gone = played.preempted()
    faults = _faults_of_quota(small.running_in(path), excess, gone)
    yield f"{path} has {excess} too much", sorted(gone), list(faults)


def _faults_of_quota(running: Sequence[Work], excess: int, gone: frozenset[str]) -> Iterator[str]:
    may_go = [it for it in running if not it.is_bound]
    going = [it for it in may_go if it.key in gone]
    left = excess - sum(it.size[0] for it in going)
    if len(going) < len(gone):
        yield f"{sorted(gone)} go, and of these only {[it.key for it in going]} may"
    elif left < 0:
        yield f"{sorted(gone)} go, and that is more than {excess}"
    elif more := [it.key for it in may_go if it.key not in gone and it.size[0] <= left]:
        yield f"{sorted(gone)} go of {excess}, and {more} fit in what is left"
