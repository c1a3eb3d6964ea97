"""Which event records a fact gives rise to.

A record is built only when somebody reads it. A fact is turned into builders, one for each record,
and the ring keeps the fact and the builders. How many records there are is known at once, so they
can be numbered; what they say is worked out from the fact alone.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from yunikorn_actors.domain import facts as f
from yunikorn_actors.domain.application import FINISHED, ApplicationState, Crowd
from yunikorn_actors.domain.config import LimitConfig
from yunikorn_actors.domain.queue import QueueSpec
from yunikorn_actors.domain.termination import TerminationType
from yunikorn_actors.machines import preemption_records
from yunikorn_actors.machines.allocation_records import (
    of_commitment,
    of_recovery,
    of_release,
    of_resize,
)
from yunikorn_actors.machines.event_record import Builder, event_record
from yunikorn_actors.machines.gang_records import of_swap, too_small, unconfirmed
from yunikorn_actors.si import ActionFromRM, ChangeDetail, ChangeType, EventRecord, EventType

_D = ChangeDetail
_NONE, _SET, _ADD, _REMOVE = ChangeType.NONE, ChangeType.SET, ChangeType.ADD, ChangeType.REMOVE
_REQUEST, _APP, _NODE = EventType.REQUEST, EventType.APP, EventType.NODE
_QUEUE, _USER = EventType.QUEUE, EventType.USERGROUP

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


def builders_of(fact: f.Fact) -> tuple[Builder, ...]:
    """Return the builders of the records of this fact, in their order."""
    kind = type(fact)
    fixed = _FIXED.get(kind)
    if fixed is not None:
        return fixed
    chosen = _CHOSEN.get(kind)
    return () if chosen is None else chosen(fact)


# -- applications and asks


def _app_new(fact: f.ApplicationAdded | f.ApplicationRejected) -> EventRecord:
    return event_record(_APP, fact.spec.application_id, fact, _ADD, _D.APP_NEW)


def _app_rejected(fact: f.ApplicationRejected) -> EventRecord:
    id_ = fact.spec.application_id
    return event_record(_APP, id_, fact, _SET, _D.APP_REJECT, message=fact.reason)


def _queue_app_added(fact: f.ApplicationAdded) -> EventRecord:
    id_ = fact.spec.application_id
    return event_record(_QUEUE, fact.queue, fact, _ADD, _D.QUEUE_APP, reference=id_)


def _app_state(fact: f.ApplicationStateChanged) -> EventRecord:
    detail = STATE_DETAILS[fact.state]
    return event_record(_APP, fact.application_id, fact, _SET, detail, message=fact.message)


def _app_gone(fact: f.ApplicationRemoved | f.ApplicationStateChanged) -> EventRecord:
    return event_record(_APP, fact.application_id, fact, _REMOVE, _D.DETAILS_NONE)


def _queue_app_gone(fact: f.ApplicationRemoved | f.ApplicationStateChanged) -> EventRecord:
    return event_record(
        _QUEUE, fact.queue, fact, _REMOVE, _D.QUEUE_APP, reference=fact.application_id
    )


def _of_state_change(fact: f.ApplicationStateChanged) -> tuple[Builder, ...]:
    if fact.state in FINISHED and fact.state is not ApplicationState.EXPIRED:
        return (_app_state, _app_gone, _queue_app_gone)
    return (_app_state,)


def _app_runnable(detail: ChangeDetail, fact: f.ApplicationCrowded) -> EventRecord:
    return event_record(_APP, fact.application_id, fact, _NONE, detail)


def _app_crowded(detail: ChangeDetail, fact: f.ApplicationCrowded) -> EventRecord:
    return event_record(_APP, fact.application_id, fact, _NONE, detail, message=fact.reason)


_RUNNABLE: dict[Crowd, tuple[Builder, ...]] = {
    Crowd.NONE: (),
    Crowd.QUEUE: (partial(_app_runnable, _D.APP_RUNNABLE_QUEUE),),
    Crowd.QUOTA: (partial(_app_runnable, _D.APP_RUNNABLE_QUOTA),),
}
_CANNOT_RUN: dict[Crowd, tuple[Builder, ...]] = {
    Crowd.NONE: (),
    Crowd.QUEUE: (partial(_app_crowded, _D.APP_CANNOTRUN_QUEUE),),
    Crowd.QUOTA: (partial(_app_crowded, _D.APP_CANNOTRUN_QUOTA),),
}


def _of_crowd(fact: f.ApplicationCrowded) -> tuple[Builder, ...]:
    return (*_RUNNABLE[fact.old_crowd], *_CANNOT_RUN[fact.crowd])


def _ask_added(fact: f.AskAdded | f.AskReplaced) -> EventRecord:
    spec = fact.spec
    return event_record(
        _APP,
        spec.application_id,
        fact,
        _ADD,
        _D.APP_REQUEST,
        reference=spec.key,
        resource=spec.resource,
    )


def _ask_removed(fact: f.AskRemoved) -> EventRecord:
    timeout = fact.type is TerminationType.TIMEOUT
    detail = _D.REQUEST_TIMEOUT if timeout else _D.REQUEST_CANCEL
    return event_record(
        _APP,
        fact.application_id,
        fact,
        _REMOVE,
        detail,
        reference=fact.key,
        resource=fact.resource,
    )


def _ask_reported(fact: f.AskReported) -> EventRecord:
    message = f"Request '{fact.key}' is {fact.state.value}: {fact.reason}"
    return event_record(
        _REQUEST,
        fact.key,
        fact,
        _NONE,
        _D.DETAILS_NONE,
        reference=fact.application_id,
        message=message,
    )


# -- nodes


def _node_added(fact: f.NodeAdded) -> EventRecord:
    return event_record(
        _NODE,
        fact.node_id,
        fact,
        _ADD,
        _D.DETAILS_NONE,
        message="Node added to the scheduler",
        resource=fact.capacity,
    )


def _node_schedulable(fact: f.NodeAdded | f.NodeScheduleChanged) -> EventRecord:
    text = str(fact.ready and not fact.drained).lower()
    return event_record(
        _NODE, fact.node_id, fact, _SET, _D.NODE_SCHEDULABLE, message=f"schedulable: {text}"
    )


def _node_ready(fact: f.NodeScheduleChanged) -> EventRecord:
    text = str(fact.ready).lower()
    return event_record(_NODE, fact.node_id, fact, _SET, _D.NODE_READY, message=f"ready: {text}")


def _of_schedule_change(fact: f.NodeScheduleChanged) -> tuple[Builder, ...]:
    if fact.ready is not fact.was_ready:
        return (_node_ready, _node_schedulable)
    return (_node_schedulable,)


def _node_capacity(fact: f.NodeResized) -> EventRecord:
    return event_record(_NODE, fact.node_id, fact, _SET, _D.NODE_CAPACITY, resource=fact.capacity)


def _node_occupied(fact: f.NodeResized) -> EventRecord:
    return event_record(_NODE, fact.node_id, fact, _SET, _D.NODE_OCCUPIED, resource=fact.occupied)


def _of_resize(fact: f.NodeResized) -> tuple[Builder, ...]:
    capacity = (_node_capacity,) if fact.capacity != fact.old_capacity else ()
    occupied = (_node_occupied,) if fact.occupied != fact.old_occupied else ()
    return (*capacity, *occupied)


def _node_removed(fact: f.NodeRemoved) -> EventRecord:
    return event_record(
        _NODE,
        fact.node_id,
        fact,
        _REMOVE,
        _D.NODE_DECOMISSION,
        message="Node removed from the scheduler",
    )


def _node_action_refused(fact: f.NodeActionRefused) -> EventRecord:
    message = f"Node action {ActionFromRM(fact.action).name} refused: {fact.reason}"
    return event_record(_NODE, fact.node_id, fact, _NONE, _D.DETAILS_NONE, message=message)


def _reservation(change: ChangeType, fact: f.ReservationMade | f.ReservationDropped) -> EventRecord:
    return event_record(
        _NODE,
        fact.node_id,
        fact,
        change,
        _D.NODE_RESERVATION,
        reference=fact.key,
        resource=fact.resource,
    )


def _foreign_put(fact: f.ForeignAllocationPut) -> EventRecord:
    return event_record(
        _NODE,
        fact.node_id,
        fact,
        _ADD,
        _D.NODE_ALLOC,
        reference=fact.key,
        resource=fact.resource,
    )


def _foreign_removed(fact: f.ForeignAllocationRemoved) -> EventRecord:
    return event_record(
        _NODE,
        fact.node_id,
        fact,
        _REMOVE,
        _D.NODE_ALLOC,
        reference=fact.key,
        resource=fact.resource,
    )


# -- queues


def _queue_added(fact: f.QueueAdded) -> EventRecord:
    detail = _D.DETAILS_NONE if fact.spec.managed else _D.QUEUE_DYNAMIC
    return event_record(_QUEUE, fact.path, fact, _ADD, detail)


def _queue_removed(fact: f.QueueRemoved) -> EventRecord:
    detail = _D.DETAILS_NONE if fact.managed else _D.QUEUE_DYNAMIC
    return event_record(_QUEUE, fact.path, fact, _REMOVE, detail)


def _queue_config(fact: f.QueueReconfigured) -> EventRecord:
    return event_record(_QUEUE, fact.path, fact, _SET, _D.QUEUE_CONFIG)


def _queue_max(fact: f.QueueReconfigured) -> EventRecord:
    return event_record(_QUEUE, fact.path, fact, _SET, _D.QUEUE_MAX, resource=fact.spec.max)


def _queue_guaranteed(fact: f.QueueReconfigured) -> EventRecord:
    resource = fact.spec.guaranteed
    return event_record(_QUEUE, fact.path, fact, _SET, _D.QUEUE_GUARANTEED, resource=resource)


def _queue_type(fact: f.QueueReconfigured) -> EventRecord:
    message = f"leaf queue: {str(fact.spec.leaf).lower()}"
    return event_record(_QUEUE, fact.path, fact, _SET, _D.QUEUE_TYPE, message=message)


def _limit(
    owner: str,
    change: ChangeType,
    detail: ChangeDetail,
    fact: f.QueueAdded | f.QueueReconfigured,
) -> EventRecord:
    return event_record(_USER, owner, fact, change, detail, reference=fact.path)


def _limit_changes(old: QueueSpec | None, new: QueueSpec) -> tuple[Builder, ...]:
    """One record for each user and group whose limit is new, another, or gone."""
    builders: list[Builder] = []
    for detail, names in ((_D.UG_USER_LIMIT, _users), (_D.UG_GROUP_LIMIT, _groups)):
        before = names(old.limits) if old is not None else {}
        after = names(new.limits)
        for owner, limit in after.items():
            if before.get(owner) != limit:
                builders.append(partial(_limit, owner, _SET, detail))
        gone = [owner for owner in before if owner not in after]
        builders.extend(partial(_limit, owner, _REMOVE, detail) for owner in gone)
    return tuple(builders)


def _users(limits: tuple[LimitConfig, ...]) -> dict[str, LimitConfig]:
    return {user: limit for limit in limits for user in limit.users}


def _groups(limits: tuple[LimitConfig, ...]) -> dict[str, LimitConfig]:
    return {group: limit for limit in limits for group in limit.groups}


def _app_linked(fact: f.ApplicationLinked) -> EventRecord:
    return event_record(
        _USER, fact.group, fact, _SET, _D.UG_APP_LINK, reference=fact.application_id
    )


def _app_unlinked(fact: f.ApplicationLinked) -> EventRecord:
    return event_record(
        _USER, fact.old_group, fact, _REMOVE, _D.UG_APP_LINK, reference=fact.application_id
    )


def _of_link(fact: f.ApplicationLinked) -> tuple[Builder, ...]:
    unlinked = (_app_unlinked,) if fact.old_group else ()
    linked = (_app_linked,) if fact.group else ()
    return (*unlinked, *linked)


def _of_queue_added(fact: f.QueueAdded) -> tuple[Builder, ...]:
    return (_queue_added, *_limit_changes(None, fact.spec))


def _of_queue_change(fact: f.QueueReconfigured) -> tuple[Builder, ...]:
    old, new = fact.old_spec, fact.spec
    changed = (
        (new.managed, _queue_config),
        (old.max != new.max, _queue_max),
        (old.guaranteed != new.guaranteed, _queue_guaranteed),
        (old.leaf != new.leaf, _queue_type),
    )
    found = tuple(builder for differs, builder in changed if differs)
    return (*found, *_limit_changes(old, new))


_FIXED: dict[type, tuple[Builder, ...]] = {
    f.AskAdded: (_ask_added,),
    f.AskReplaced: (_ask_added,),
    f.AskRemoved: (_ask_removed,),
    f.AskReported: (_ask_reported,),
    f.ApplicationAdded: (_app_new, _queue_app_added),
    f.ApplicationRejected: (_app_new, _app_rejected),
    f.ApplicationRemoved: (_app_gone, _queue_app_gone),
    f.NodeAdded: (_node_added, _node_schedulable),
    f.NodeRemoved: (_node_removed,),
    f.NodeActionRefused: (_node_action_refused,),
    f.ReservationMade: (partial(_reservation, _ADD),),
    f.ReservationDropped: (partial(_reservation, _REMOVE),),
    f.ForeignAllocationPut: (_foreign_put,),
    f.ForeignAllocationRemoved: (_foreign_removed,),
    f.QueueRemoved: (_queue_removed,),
    f.VictimMarked: (preemption_records.victim,),
    f.PreemptionFailed: (preemption_records.no_victim,),
    f.PlaceholderCancelled: (too_small,),
    f.ConfirmationMissed: (unconfirmed,),
}
_CHOSEN: dict[type, Callable[[Any], tuple[Builder, ...]]] = {
    f.AllocationCommitted: of_commitment,
    f.AllocationRecovered: of_recovery,
    f.AllocationReleased: of_release,
    f.AllocationResized: of_resize,
    f.SwapCompleted: of_swap,
    f.ApplicationStateChanged: _of_state_change,
    f.NodeResized: _of_resize,
    f.NodeScheduleChanged: _of_schedule_change,
    f.PreemptionDecided: preemption_records.of_decision,
    f.QueueAdded: _of_queue_added,
    f.QueueReconfigured: _of_queue_change,
    f.ApplicationLinked: _of_link,
    f.ApplicationCrowded: _of_crowd,
}
