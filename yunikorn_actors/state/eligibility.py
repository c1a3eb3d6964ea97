"""Eligibility: whether an ask may be served, by its application, its user and group, and the node.

The same checks decide about a placement, about a swap that takes over the room of a placeholder,
and, without the node, about a reservation and a preemption. A gang that is admitted has to be one
that may start. Planner and Context share them, so the planner proposes nothing that Context would
refuse on the same state.
"""

from yunikorn_actors.config import ApplicationSortPolicy
from yunikorn_actors.state.allocations import Ask, AskSpec, Reservation
from yunikorn_actors.state.applications import SCHEDULABLE, Application, ApplicationState
from yunikorn_actors.state.device_fit import are_free
from yunikorn_actors.state.gangs import awaits_admission, waits_for_gang
from yunikorn_actors.state.gates import has_room
from yunikorn_actors.state.limits import limits_on
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.preemption import room_for
from yunikorn_actors.state.proposals import Refusal
from yunikorn_actors.values.devices import Devices
from yunikorn_actors.values.resource import Resource, fits_in
from yunikorn_actors.values.tags import GPU


def check_application(
    state: PartitionState, app: Application, ask: Ask, *, is_admitting: bool = False
) -> Refusal | None:
    """Check whether the application may have this ask served now, room or not."""
    if app.state not in SCHEDULABLE:
        return Refusal.APP_STATE
    # Most applications are no gang, and then nothing of gangs is asked.
    if app.task_groups and waits_for_gang(app, ask.spec, is_admitting=is_admitting):
        return Refusal.GANG_HELD
    return check_start(state, app) if app.state is ApplicationState.ACCEPTED else None


# Running ones have their place already.
def check_start(state: PartitionState, app: Application) -> Refusal | None:
    """Check whether the queues let the application be among those that run."""
    if app.state is ApplicationState.ACCEPTED:
        if not _may_start(app):
            return Refusal.APP_LIMIT
        if _is_another_starting(state, app):
            return Refusal.STATEAWARE_BUSY
    return None


def check_use(
    state: PartitionState, app: Application, ask: Ask, kept: Reservation
) -> Refusal | None:
    """Check whether a node that is kept is of any use: everything but the room there."""
    return (
        check_application(state, app, ask)
        or check_limits(app, ask.spec.resource)
        or check_quotas(state, app, ask.spec, kept.earmark)
    )


def check_limits(app: Application, resource: Resource) -> Refusal | None:
    """Check what the user and the group may have in every queue of the path."""
    # Only one that has not started takes a place.
    starts = app.state is ApplicationState.ACCEPTED
    for limit, usage in limits_on(app):
        if starts and not usage.places(limit.max_applications).may_start(app.serial):
            return Refusal.APP_LIMIT
        if not has_room(limit.max_resources, usage.amounts, resource.items()):
            return Refusal.USER_LIMIT
    return None


def check_quotas(
    state: PartitionState, app: Application, spec: AskSpec, own: Resource | None = None
) -> Refusal | None:
    """Check the maxima of the path; the free size of the cluster is nothing to a required node."""
    wanted = spec.resource.items()
    # The root apart: its room is the size of the cluster.
    *queues, root = app.queue.lineage
    for queue in queues:
        # What was promised to this very ask must not keep it out.
        quota = queue.quota() if own is None else queue.quota_for(own, queue.allocated)
        if not has_room(quota, queue.allocated, wanted):
            return Refusal.QUEUE_LIMIT
    # A required node may be full while its victims still run: the size of the cluster says nothing
    # about it.
    if spec.required_node or has_room(state.capacity, root.allocated, wanted, True):
        return None
    return Refusal.QUEUE_LIMIT


def check_node(node: Node | None, spec: AskSpec, devices: Devices) -> Refusal | None:
    """Check whether the ask may be placed on this node, with these of its devices."""
    if node is None:
        return Refusal.NODE_GONE
    refusal = check_open(node, spec)
    if refusal is not None:
        return refusal
    # Nearly every node is kept for nobody: then all that is free is for all.
    room = room_for(node, spec, node.available) if node.reservations else node.available
    if not fits_in(spec.resource, room):
        return Refusal.NODE_FULL
    if (GPU in spec.resource or devices) and not are_free(node, spec, devices):
        return Refusal.NODE_FULL
    return None


def check_open(node: Node, spec: AskSpec) -> Refusal | None:
    """Check whether the ask may use the node, room or not.

    If it can run here alone, neither a drain nor the reservations of others stand against it; that
    nobody has reported the node since a restart does, for it may be gone.
    """
    # Also for a required node: an awaited one may be gone.
    if node.awaited:
        return Refusal.NODE_DRAINING
    if spec.required_node:
        return None if spec.required_node == node.id else Refusal.NODE_FULL
    if not node.is_schedulable:
        return Refusal.NODE_DRAINING
    if node.reservations and is_kept_from(node, spec):
        return Refusal.NODE_RESERVED
    return None


def is_kept_from(node: Node, spec: AskSpec) -> bool:
    """Whether the node is reserved, and not for this ask."""
    return bool(node.reservations) and (spec.application_id, spec.key) not in node.reservations


def _may_start(app: Application) -> bool:
    return all(queue.places.may_start(app.serial) for queue in app.queue.lineage)


def _is_another_starting(state: PartitionState, app: Application) -> bool:
    """In a stateaware leaf one application starts at a time, the oldest that waits first."""
    queue = app.queue
    if queue.properties.application_sort_policy is not ApplicationSortPolicy.STATEAWARE:
        return False
    # Only those of its own leaf compete.
    others = (state.applications[id_] for id_ in queue.applications.values())
    return any(
        starts_before(other, app, is_starting=False, awaits_admission=awaits_admission(other))
        for other in others
    )


def starts_before(
    other: Application, app: Application, *, is_starting: bool, awaits_admission: bool
) -> bool:
    """Whether another one of a stateaware leaf is starting, or waits to start and is older.

    A gang that awaits its admission holds up nobody.
    """
    if other is app:
        return False
    if is_starting or other.is_starting:
        return True
    waits = other.state is ApplicationState.ACCEPTED and any(other.pending.values())
    return waits and not awaits_admission and other.age < app.age
