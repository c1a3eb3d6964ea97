"""What preemption may do: pure functions of queues, allocations and expected usage.

For a guarantee: an ask looks for victims below its fence, never in its own leaf. A victim is not
more important than the ask, compared in the queue where their paths meet. A queue that gives never
ends below its guarantee, and the queue that takes never ends above.

The expected usage is what queues will use when everything that was decided has happened. What was
asked back counts as gone and what was promised counts as used. So two asks never count on the same
room, and two decisions that are harmless alone never take a queue below its guarantee together.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

from yunikorn_actors.config import PreemptionPolicy
from yunikorn_actors.state.allocations import Allocation, Ask, AskSpec
from yunikorn_actors.state.preemption import expected
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.values.resource import Resource, charge, discharge, match_any


class ExpectedUsage:
    """The expected usage of queues, and trial changes to it."""

    def __init__(self, of: Callable[[Queue], Resource] = expected) -> None:
        self._of = of
        self._used: dict[str, Resource] = {}

    def of(self, queue: Queue) -> Resource:
        used = self._used.get(queue.path)
        # Filled as it is asked for: most queues of a large tree take no part in a search.
        if used is None:
            used = self._used[queue.path] = self._of(queue)
        return used

    def add(self, leaf: Queue, amount: Resource) -> None:
        known = self._used
        for level in leaf.lineage:
            # Worked out first, if it is not known: an amount must not be added to nothing.
            charge(known.get(level.path) or self.of(level), amount)

    def take(self, leaf: Queue, amount: Resource) -> None:
        known = self._used
        for level in leaf.lineage:
            discharge(known.get(level.path) or self.of(level), amount)


Reach = dict[str, int | None]
"""Path of a leaf to the highest priority that may be a victim there; None is any."""


# -- the asking side


def delay_of(leaf: Queue, otherwise_ns: int) -> int:
    """Return how long an ask has to wait before victims may be preempted for it."""
    delay_ns = leaf.properties.preemption_delay_ns
    return otherwise_ns if delay_ns is None else delay_ns


Bounds = dict[str, Resource]
"""Path of a queue to what it is guaranteed, which bounds what may be taken for it."""


def bounds_of(leaf: Queue, wanted: Resource) -> Bounds:
    """Return which guarantees bound the asking side, or none where nothing entitles the ask.

    The leaf's own guarantee alone if it has one, else those of all its ancestors.
    """
    # A guarantee of its own is the narrower bound; only without one its ancestors' guarantees
    # count.
    queues = (leaf,) if leaf.spec.guaranteed else leaf.lineage
    bounds = {queue.path: queue.spec.guaranteed for queue in queues if queue.spec.guaranteed}
    # Nothing that is wanted is guaranteed anywhere: the ask is entitled to nothing.
    entitled = any(wanted.get(kind, 0) > 0 for bound in bounds.values() for kind in bound)
    return bounds if entitled else {}


def excess(limit: Resource | None, used: Resource, wanted: Resource) -> tuple[str, ...]:
    """Name the wanted types of which more is used than the limit allows, if it names them."""
    found: tuple[str, ...] = ()
    if not limit:
        return found
    # A loop, as this is asked most of all and hardly ever finds anything.
    for kind, quantity in wanted.items():
        if quantity > 0 and kind in limit and used.get(kind, 0) > limit[kind]:
            found += (kind,)
    return found


def fence_of(leaf: Queue, wanted: Resource, usage: ExpectedUsage, bounds: Bounds) -> Queue:
    """Return the first queue that fences its asks in, or whose own work must be preempted.

    It must if the maximum of the queue, or the guarantee that bounds it, leaves no room for the
    ask. The usage includes the ask already.
    """
    for level in leaf.lineage:
        if level.properties.preemption_policy is PreemptionPolicy.FENCE:
            return level
        # The usage includes the ask: a queue that is above now has to make room itself.
        used = usage.of(level)
        if level.parent is not None and excess(level.spec.max, used, wanted):
            return level
        if excess(bounds.get(level.path), used, wanted):
            return level
    # No fence and no bound: the search goes up to the root.
    return leaf.lineage[-1]


def reach_of(leaf: Queue, spec: AskSpec, usage: ExpectedUsage, bounds: Bounds) -> Reach:
    """Return the leaves in which an ask may look for victims: those below its fence."""
    reach: Reach = {}
    priority, fence = spec.priority, fence_of(leaf, spec.resource, usage, bounds)
    # Its fence is the leaf itself, in which no ask looks for victims.
    if leaf is fence:
        return reach
    for child, level in pairwise(leaf.lineage):
        # Offsets and fences of priority change the number on the way up.
        priority = child.properties.priority_outside(priority)
        for sibling in level.children.values():
            if sibling is not child:
                reach.update(_inside(sibling, priority))
        if level is fence:
            break
    return reach


def importance(asking: Queue, priority: int, other: Queue, other_priority: int) -> int:
    """Say how much more important work of another leaf is than an ask, where their paths meet.

    Negative is less important; of victims in several queues the least is the least important.
    """
    paths = frozenset(queue.path for queue in asking.lineage)
    # Compared where both paths meet: below it each has its own offsets.
    meet = next(queue for queue in other.lineage if queue.path in paths)
    return _seen_from(meet, other, other_priority) - _seen_from(meet, asking, priority)


def _seen_from(top: Queue, leaf: Queue, priority: int) -> int:
    for queue in leaf.lineage:
        if queue is top:
            break
        priority = queue.properties.priority_outside(priority)
    return priority


def _inside(queue: Queue, priority: int | None) -> Iterator[tuple[str, int | None]]:
    """Yield the leaves below, each with what is not too important there."""
    properties = queue.properties
    # A fence makes all work below as important as its offset: all of it is in reach, or nothing.
    if priority is not None and properties.priority_fence:
        if properties.priority_offset > priority:
            return
        priority = None
    elif priority is not None:
        priority -= properties.priority_offset
    if not queue.is_leaf:
        for child in queue.children.values():
            yield from _inside(child, priority)
    elif properties.preemption_policy is not PreemptionPolicy.DISABLED:
        # A queue with preemption disabled protects its work from everybody.
        yield queue.path, priority


# -- the giving side


def may_be_preempted(allocation: Allocation, wanted: Resource) -> bool:
    """Whether it may be a victim at all, and is of use."""
    # Of no use if it gives nothing of what is short, whatever else it frees.
    return is_movable(allocation) and match_any(allocation.resource, wanted)


def is_movable(allocation: Allocation) -> bool:
    """Whether it is not bound to its node and not on its way out (G12)."""
    return allocation.may_be_released and not allocation.spec.required_node


def is_reached(reach: Reach, leaf: Queue, priority: int) -> bool:
    """Whether work of this priority in a leaf may make room."""
    if leaf.path not in reach:
        return False
    limit = reach[leaf.path]
    # Not in reach at all, or too important there.
    return limit is None or priority <= limit


def guards(asking: Queue, giving: Queue) -> tuple[Queue, ...]:
    """Return the queues whose guarantees protect work of the giving leaf from the asking one."""
    # Above the point where both paths meet the guarantees are the same, and protect nothing.
    common = frozenset(queue.path for queue in asking.lineage)
    return tuple(q for q in giving.lineage if q.spec.guaranteed and q.path not in common)


def share_a_guarantee(asking: Queue, giving: Queue) -> bool:
    """Whether both share only the guarantee of a common ancestor, so that neither is entitled."""
    # A guarantee of its own, or one that protects the other: then it is decided elsewhere.
    if asking.spec.guaranteed or guards(asking, giving):
        return False
    return any(queue.spec.guaranteed for queue in giving.lineage)


def is_named_by(guards: Iterable[Queue], victim: Resource, wanted: Resource) -> bool:
    """Whether a guarantee names a type that is wanted and that the victim has.

    If none does, no queue can be above its guarantee in such a type, so all work stays there.
    """
    for queue in guards:
        for kind in queue.spec.guaranteed or ():
            if wanted.get(kind, 0) > 0 and victim.get(kind, 0) > 0:
                return True
    return False


def may_give(queue: Queue, used: Resource, victim: Resource, wanted: Resource) -> bool:
    """Whether a queue is above its guarantee, and stays at it without the victim.

    It must be above in a wanted type, if it has a guarantee for one. A type in which it is below
    its guarantee already forbids nothing then.
    """
    # A loop: the search asks it of each candidate with each set of gangs.
    is_named = is_wanted = is_above = is_above_wanted = False
    for kind, least in (queue.spec.guaranteed or {}).items():
        size, has = victim.get(kind, 0), used.get(kind, 0)
        if size <= 0:
            continue
        # Here it would go below: from at or above to below the guarantee.
        if has >= least > has - size:
            return False
        is_named = True
        is_above = is_above or has > least
        if wanted.get(kind, 0) > 0:
            is_wanted = True
            is_above_wanted = is_above_wanted or has > least
    # Where no wanted type is named, any type above its guarantee will do.
    return not is_named or (is_above_wanted if is_wanted else is_above)


# -- order

Order = tuple[bool, bool, int, int, int, str]


def order_of(allocation: Allocation, ask: Ask) -> Order:
    """Order victims: opted-out work last of all, originators before it, the newest first."""
    spec = allocation.spec
    return (
        not spec.allow_preempt_self,
        spec.originator,
        -ask.created_ns,
        -ask.sequence,
        -allocation.allocated_ns,
        allocation.uuid,
    )
