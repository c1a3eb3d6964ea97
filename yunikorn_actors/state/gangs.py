"""The rules of gangs, for the planner that decides and for Context that checks.

A real ask waits while placeholders of its application are pending, and for a swap while its task
group has placeholders. In a leaf that holds gangs no placeholder is placed before the queue path
and the limits of its user and group have room for the whole gang. What is still to come of an
admitted gang is its *commitment*: it counts as used when another gang is admitted, and for nothing
else. A commitment lapses if nothing of it is placed for too long.
"""

from collections.abc import Callable

from yunikorn_actors.config import ApplicationSortPolicy, GangAdmission
from yunikorn_actors.state.allocations import Allocation, AskSpec
from yunikorn_actors.state.applications import Application, ApplicationState, TaskGroup
from yunikorn_actors.state.gates import has_room
from yunikorn_actors.state.limits import Limit, LimitKey, limits_of
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.values.resource import (
    Resource,
    charge,
    component_wise_min,
    fits_in,
    sub,
    sub_only_existing,
)


def suits(spec: AskSpec, placeholder: Allocation) -> bool:
    """Whether an ask may take over this placeholder's room."""
    return is_of_group(spec, placeholder) and fits_in(spec.resource, placeholder.resource)


def is_of_group(spec: AskSpec, placeholder: Allocation) -> bool:
    """Whether an ask is a member of the task group that this is a placeholder of."""
    its = placeholder.spec
    return not spec.placeholder and its.placeholder and spec.task_group == its.task_group


def waits_for_gang(
    app: Application, spec: AskSpec, on_their_way: int = 0, *, is_admitting: bool = False
) -> bool:
    """Whether the gang of the application keeps an ask from being placed, or a node kept for it.

    `on_their_way` placeholders are proposed already; `is_admitting`: the admission is.
    """
    if spec.placeholder:
        return not is_admitting and awaits_admission(app)
    return waits_for_placeholder(app, spec, on_their_way)


def waits_for_placeholder(app: Application, spec: AskSpec, on_their_way: int = 0) -> bool:
    """Whether a real ask must not be placed plainly: its gang, or its group, is not through.

    So many placeholders are on their way already and do not wait.
    """
    if app.waiting_placeholders > on_their_way:
        return True
    return waits_for_swap(app, spec)


def waits_for_swap(app: Application, spec: AskSpec) -> bool:
    """Whether its task group has placeholders: then the ask takes one of them over."""
    group = app.task_groups.get(spec.task_group)
    return group is not None and group.alive > 0


# -- admission


def awaits_admission(app: Application) -> bool:
    """Whether the placeholders of an application wait for its admission."""
    # Nothing waits, so nothing would be held back.
    if app.is_admitted or not app.waiting_placeholders:
        return False
    return app.queue.properties.gang_admission is GangAdmission.HOLD and is_incomplete(app)


def is_incomplete(app: Application) -> bool:
    """Whether there are placeholders that have never been placed."""
    # Reported members were placeholders once: after a restart the rest of the gang is smaller.
    placed, reported = app.placed, app.reported
    return any(
        quantity > placed.get(kind, 0) + reported.get(kind, 0)
        for kind, quantity in app.spec.placeholder_ask.items()
    )


def waiting_room(app: Application) -> Resource:
    """Add up what the placeholders that wait want, those with an earmark included."""
    wanted: Resource = {}
    for ask in app.asks.values():
        if ask.spec.placeholder and ask.remaining:
            size = ask.spec.resource
            charge(wanted, {kind: quantity * ask.remaining for kind, quantity in size.items()})
    return wanted


def is_member(app: Application, spec: AskSpec) -> bool:
    """Whether an ask, or a placeholder, belongs to a task group of the gang.

    Placeholders name the groups. Where not all of them have come, as after a restart for which the
    members alone are reported, any group counts.
    """
    group, placed = spec.task_group, app.placed
    if not group or group in app.task_groups:
        return bool(group)
    return any(
        quantity > placed.get(kind, 0) for kind, quantity in app.spec.placeholder_ask.items()
    )


def is_all_there(app: Application) -> bool:
    """Whether all placeholders of the gang that were never placed have been asked for."""
    return fits_in(unplaced(app), waiting_room(app))


def unplaced(app: Application) -> Resource:
    """Return the part of the gang for which no placeholder has been placed yet."""
    placed, reported = app.placed, app.reported
    return {
        kind: max(0, quantity - placed.get(kind, 0) - reported.get(kind, 0))
        for kind, quantity in app.spec.placeholder_ask.items()
    }


def commitment_of(app: Application) -> Resource:
    """Return what an admitted gang keeps from others: what it has not placed yet.

    A running gang without waiting placeholders has got all that it asked for.
    """
    if app.state is ApplicationState.ACCEPTED or app.waiting_placeholders:
        return unplaced(app)
    return {}


Committed = dict[str | LimitKey, Resource]
"""What the commitments together take of each queue, by its path, and of each limit."""


# Each level and each limit of the path: the room of a gang is taken in all of them.
def commit_room(committed: Committed, app: Application, amount: Resource) -> None:
    for level in app.queue.lineage:
        charge(committed.setdefault(level.path, {}), amount)
    for limit in limits_of(app.queue, app.spec.user, app.group):
        charge(committed.setdefault(limit.key, {}), amount)


def refusing_admission(
    app: Application,
    committed: Committed,
    used: Callable[[Queue], Resource],
    used_of: Callable[[Limit], Resource],
    claimed: Resource | None = None,
) -> Queue | Limit | None:
    """Return the queue or the limit that has no room for the whole gang, if any.

    What is promised counts as used: by preemption to others, and to the admitted gangs. `claimed`
    is what the queues have in `used` of this gang already.
    """
    # The whole rest: a gang that is admitted by halves would hold room and not run.
    need = unplaced(app)
    return _refusing_queue(app, sub(need, claimed), used, committed) or _refusing_limit(
        app, need, used_of, committed
    )


def without_earmarks(expected: Callable[[Queue], Resource]) -> Callable[[Queue], Resource]:
    """What is promised to a queue is taken off its quota already: it counts once."""
    return lambda queue: sub(expected(queue), queue.earmarked)


def _refusing_queue(
    app: Application, need: Resource, used: Callable[[Queue], Resource], committed: Committed
) -> Queue | None:
    """Return the queue whose configured max leaves no room, if any.

    The root stands for the size of the cluster, which does not count: placeholders that find no
    node are what makes it grow.
    """
    for queue in app.queue.lineage[:-1]:
        uncommitted = sub_only_existing(queue.quota(), committed.get(queue.path))
        if not has_room(uncommitted, used(queue), need.items()):
            return queue
    return None


def _refusing_limit(
    app: Application, need: Resource, used: Callable[[Limit], Resource], committed: Committed
) -> Limit | None:
    for limit in limits_of(app.queue, app.spec.user, app.group):
        uncommitted = sub_only_existing(limit.max_resources, committed.get(limit.key))
        if not has_room(uncommitted, used(limit), need.items()):
            return limit
    return None


def refuses_gangs(state: PartitionState, queue: Queue) -> bool:
    """In fair order several gangs could each hold a useless part; a policy says it for itself."""
    # A policy decides for its leaf; without one the sort policy does.
    policy = queue.properties.application_policy
    if policy and state.folds is not None:
        return not state.folds.takes_gangs(policy)
    return queue.properties.application_sort_policy is ApplicationSortPolicy.FAIR


def tightest_max(queue: Queue) -> Resource | None:
    """Return the smallest configured max of every type on the path; absent is unlimited."""
    tightest: Resource | None = None
    for level in queue.lineage[:-1]:
        tightest = component_wise_min(tightest, level.spec.max)
    return tightest


# -- what facts change


def count_placeholders(app: Application, spec: AskSpec, placeholders: int) -> None:
    """Let a task group expect more placeholders, or fewer if negative (G17)."""
    if spec.placeholder:
        app.task_groups.setdefault(spec.task_group, TaskGroup()).count += placeholders


def forget_gang(state: PartitionState, app: Application) -> None:
    """Nothing more of it is to come: it has no commitment."""
    state.admitted.pop(app.serial, None)


def forget_complete_gang(state: PartitionState, app: Application) -> None:
    if app.serial in state.admitted and not is_incomplete(app):
        forget_gang(state, app)


# All that was counted towards it goes; a gang that comes later begins at zero.
def dissolve_gang(state: PartitionState, app: Application) -> None:
    """The gang has failed to come together; placeholders that come later are another gang."""
    forget_gang(state, app)
    app.is_admitted = False
    app.lapsed_ns = 0
    app.placed = {}
    app.reported = {}
    app.spared = {}
