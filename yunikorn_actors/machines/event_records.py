"""Which event records a fact gives rise to.

A record is built only when somebody reads it, so a fact is turned into builders, one for each
record; the ring keeps the fact and the builder.
"""

from collections.abc import Callable
from typing import Any

from yunikorn_actors.domain import facts as f
from yunikorn_actors.domain.application import ApplicationState
from yunikorn_actors.domain.resource import Resource
from yunikorn_actors.domain.termination import TerminationType
from yunikorn_actors.si import ChangeDetail, ChangeType, EventRecord, EventType
from yunikorn_actors.si import Resource as SiResource

MESSAGE_MAX = 1024

Builder = Callable[[Any], EventRecord]

_D = ChangeDetail

STATE_DETAILS = {
    ApplicationState.ACCEPTED: _D.APP_ACCEPTED,
    ApplicationState.STARTING: _D.APP_STARTING,
    ApplicationState.RUNNING: _D.APP_RUNNING,
    ApplicationState.COMPLETING: _D.APP_COMPLETING,
    ApplicationState.COMPLETED: _D.APP_COMPLETED,
    ApplicationState.FAILING: _D.APP_FAILING,
    ApplicationState.FAILED: _D.APP_FAILED,
    ApplicationState.RESUMING: _D.APP_RESUMING,
    ApplicationState.EXPIRED: _D.APP_EXPIRED,
    ApplicationState.REJECTED: _D.APP_REJECT,
}
_RELEASE_DETAILS = {
    TerminationType.UNKNOWN_TERMINATION_TYPE: _D.ALLOC_NODEREMOVED,
    TerminationType.STOPPED_BY_RM: _D.ALLOC_CANCEL,
    TerminationType.TIMEOUT: _D.ALLOC_TIMEOUT,
    TerminationType.PREEMPTED_BY_SCHEDULER: _D.ALLOC_PREEMPT,
    TerminationType.PLACEHOLDER_REPLACED: _D.ALLOC_REPLACED,
}


def builders_of(fact: f.Fact) -> tuple[Builder, ...]:
    """Return the builders of the records of this fact, in their order."""
    fixed = _FIXED.get(type(fact))
    if fixed is not None:
        return fixed
    if isinstance(fact, f.NodeResized):
        return _of_node_resized(fact)
    if isinstance(fact, f.QueueReconfigured):
        return _of_queue_reconfigured(fact)
    return ()


def _record(
    type_: EventType,
    object_id: str,
    at_ns: int,
    change: ChangeType,
    detail: ChangeDetail,
    *,
    reference: str = "",
    message: str = "",
    resource: Resource | None = None,
) -> EventRecord:
    if len(message) > MESSAGE_MAX:
        message = message[: MESSAGE_MAX - 3] + "..."
    return EventRecord(
        type=type_,
        object_id=object_id,
        message=message,
        timestamp_nano=at_ns,
        event_change_type=change,
        event_change_detail=detail,
        reference_id=reference,
        resource=SiResource.of(resource or {}),
    )


_APP, _NODE, _QUEUE = EventType.APP, EventType.NODE, EventType.QUEUE
_SET, _ADD, _REMOVE = ChangeType.SET, ChangeType.ADD, ChangeType.REMOVE


def _app_new(fact: f.ApplicationAdded | f.ApplicationRejected) -> EventRecord:
    return _record(_APP, fact.spec.application_id, fact.at_ns, _ADD, _D.APP_NEW)


def _app_rejected(fact: f.ApplicationRejected) -> EventRecord:
    id_ = fact.spec.application_id
    return _record(_APP, id_, fact.at_ns, _SET, _D.APP_REJECT, message=fact.reason)


def _queue_app_added(fact: f.ApplicationAdded) -> EventRecord:
    id_ = fact.spec.application_id
    return _record(_QUEUE, fact.queue, fact.at_ns, _ADD, _D.QUEUE_APP, reference=id_)


def _app_state(fact: f.ApplicationStateChanged) -> EventRecord:
    detail = STATE_DETAILS[fact.state]
    return _record(_APP, fact.application_id, fact.at_ns, _SET, detail, message=fact.message)


def _app_removed(fact: f.ApplicationRemoved) -> EventRecord:
    return _record(_APP, fact.application_id, fact.at_ns, _REMOVE, _D.DETAILS_NONE)


def _ask_added(fact: f.AskAdded) -> EventRecord:
    spec = fact.spec
    return _record(
        _APP,
        spec.application_id,
        fact.at_ns,
        _ADD,
        _D.APP_REQUEST,
        reference=spec.key,
        resource=spec.resource,
    )


def _ask_removed(fact: f.AskRemoved) -> EventRecord:
    timeout = fact.type is TerminationType.TIMEOUT
    return _record(
        _APP,
        fact.application_id,
        fact.at_ns,
        _REMOVE,
        _D.REQUEST_TIMEOUT if timeout else _D.REQUEST_CANCEL,
        reference=fact.key,
        resource=fact.resource,
    )


def _app_alloc(fact: f.AllocationCommitted) -> EventRecord:
    return _record(
        _APP,
        fact.application_id,
        fact.at_ns,
        _ADD,
        _D.APP_ALLOC,
        reference=fact.key,
        resource=fact.resource,
    )


def _node_alloc(fact: f.AllocationCommitted) -> EventRecord:
    return _record(
        _NODE,
        fact.node_id,
        fact.at_ns,
        _ADD,
        _D.NODE_ALLOC,
        reference=fact.key,
        resource=fact.resource,
    )


def _app_recovered(fact: f.AllocationRecovered) -> EventRecord:
    spec = fact.spec
    return _record(
        _APP,
        spec.application_id,
        fact.at_ns,
        _ADD,
        _D.APP_ALLOC,
        reference=spec.key,
        resource=spec.resource,
    )


def _node_recovered(fact: f.AllocationRecovered) -> EventRecord:
    spec = fact.spec
    return _record(
        _NODE,
        fact.node_id,
        fact.at_ns,
        _ADD,
        _D.NODE_ALLOC,
        reference=spec.key,
        resource=spec.resource,
    )


def _app_released(fact: f.AllocationReleased) -> EventRecord:
    return _record(
        _APP,
        fact.application_id,
        fact.at_ns,
        _REMOVE,
        _RELEASE_DETAILS[fact.type],
        reference=fact.key,
        resource=fact.resource,
    )


def _node_released(fact: f.AllocationReleased) -> EventRecord:
    return _record(
        _NODE,
        fact.node_id,
        fact.at_ns,
        _REMOVE,
        _D.NODE_ALLOC,
        reference=fact.key,
        resource=fact.resource,
    )


def _node_added(fact: f.NodeAdded) -> EventRecord:
    return _record(
        _NODE,
        fact.node_id,
        fact.at_ns,
        _ADD,
        _D.DETAILS_NONE,
        message="Node added to the scheduler",
        resource=fact.capacity,
    )


def _node_schedulable(fact: f.NodeAdded | f.NodeScheduleChanged) -> EventRecord:
    schedulable = fact.ready and not fact.drained
    return _record(
        _NODE,
        fact.node_id,
        fact.at_ns,
        _SET,
        _D.NODE_SCHEDULABLE,
        message=f"schedulable: {str(schedulable).lower()}",
    )


def _node_capacity(fact: f.NodeResized) -> EventRecord:
    return _record(_NODE, fact.node_id, fact.at_ns, _SET, _D.NODE_CAPACITY, resource=fact.capacity)


def _node_occupied(fact: f.NodeResized) -> EventRecord:
    return _record(_NODE, fact.node_id, fact.at_ns, _SET, _D.NODE_OCCUPIED, resource=fact.occupied)


def _of_node_resized(fact: f.NodeResized) -> tuple[Builder, ...]:
    capacity = (_node_capacity,) if fact.capacity != fact.old_capacity else ()
    occupied = (_node_occupied,) if fact.occupied != fact.old_occupied else ()
    return (*capacity, *occupied)


def _node_removed(fact: f.NodeRemoved) -> EventRecord:
    return _record(
        _NODE,
        fact.node_id,
        fact.at_ns,
        _REMOVE,
        _D.NODE_DECOMISSION,
        message="Node removed from the scheduler",
    )


def _queue_added(fact: f.QueueAdded) -> EventRecord:
    detail = _D.DETAILS_NONE if fact.spec.managed else _D.QUEUE_DYNAMIC
    return _record(_QUEUE, fact.path, fact.at_ns, _ADD, detail)


def _queue_removed(fact: f.QueueRemoved) -> EventRecord:
    detail = _D.DETAILS_NONE if fact.managed else _D.QUEUE_DYNAMIC
    return _record(_QUEUE, fact.path, fact.at_ns, _REMOVE, detail)


def _queue_max(fact: f.QueueReconfigured) -> EventRecord:
    return _record(_QUEUE, fact.path, fact.at_ns, _SET, _D.QUEUE_MAX, resource=fact.spec.max)


def _queue_guaranteed(fact: f.QueueReconfigured) -> EventRecord:
    resource = fact.spec.guaranteed
    return _record(_QUEUE, fact.path, fact.at_ns, _SET, _D.QUEUE_GUARANTEED, resource=resource)


def _queue_type(fact: f.QueueReconfigured) -> EventRecord:
    message = f"leaf queue: {str(fact.spec.leaf).lower()}"
    return _record(_QUEUE, fact.path, fact.at_ns, _SET, _D.QUEUE_TYPE, message=message)


def _of_queue_reconfigured(fact: f.QueueReconfigured) -> tuple[Builder, ...]:
    old, new = fact.old_spec, fact.spec
    changed = (
        (old.max != new.max, _queue_max),
        (old.guaranteed != new.guaranteed, _queue_guaranteed),
        (old.leaf != new.leaf, _queue_type),
    )
    return tuple(builder for differs, builder in changed if differs)


_FIXED: dict[type, tuple[Builder, ...]] = {
    f.AllocationCommitted: (_app_alloc, _node_alloc),
    f.AllocationReleased: (_app_released, _node_released),
    f.AllocationRecovered: (_app_recovered, _node_recovered),
    f.AskAdded: (_ask_added,),
    f.AskRemoved: (_ask_removed,),
    f.ApplicationAdded: (_app_new, _queue_app_added),
    f.ApplicationRejected: (_app_new, _app_rejected),
    f.ApplicationStateChanged: (_app_state,),
    f.ApplicationRemoved: (_app_removed,),
    f.NodeAdded: (_node_added, _node_schedulable),
    f.NodeScheduleChanged: (_node_schedulable,),
    f.NodeRemoved: (_node_removed,),
    f.QueueAdded: (_queue_added,),
    f.QueueRemoved: (_queue_removed,),
}
