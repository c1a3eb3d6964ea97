"""Event records of the facts about nodes and their reservations."""

from functools import partial

from yunikorn_actors.machines.events.record import Builder, Chosen, Fixed, event_record
from yunikorn_actors.si import ActionFromRM, ChangeDetail, ChangeType, EventRecord, EventType
from yunikorn_actors.state import facts as f

_D = ChangeDetail
_NONE, _SET, _ADD, _REMOVE = ChangeType.NONE, ChangeType.SET, ChangeType.ADD, ChangeType.REMOVE
_NODE = EventType.NODE


def node_added(fact: f.NodeAdded) -> EventRecord:
    return event_record(
        _NODE,
        fact.node_id,
        fact,
        _ADD,
        _D.DETAILS_NONE,
        message="Node added to the scheduler",
        resource=fact.capacity,
    )


def node_schedulable(fact: f.NodeAdded | f.NodeScheduleChanged) -> EventRecord:
    is_awaited = isinstance(fact, f.NodeScheduleChanged) and fact.awaited
    text = str(fact.ready and not (fact.drained or is_awaited)).lower()
    return event_record(
        _NODE, fact.node_id, fact, _SET, _D.NODE_SCHEDULABLE, message=f"schedulable: {text}"
    )


def _node_ready(fact: f.NodeScheduleChanged) -> EventRecord:
    text = str(fact.ready).lower()
    return event_record(_NODE, fact.node_id, fact, _SET, _D.NODE_READY, message=f"ready: {text}")


def of_schedule_change(fact: f.NodeScheduleChanged) -> tuple[Builder, ...]:
    # Readiness first, because schedulability follows from it.
    if fact.ready is not fact.was_ready:
        return (_node_ready, node_schedulable)
    return (node_schedulable,)


def _node_capacity(fact: f.NodeResized) -> EventRecord:
    return event_record(_NODE, fact.node_id, fact, _SET, _D.NODE_CAPACITY, resource=fact.capacity)


def _node_occupied(fact: f.NodeResized) -> EventRecord:
    return event_record(_NODE, fact.node_id, fact, _SET, _D.NODE_OCCUPIED, resource=fact.occupied)


def of_resize(fact: f.NodeResized) -> tuple[Builder, ...]:
    capacity = (_node_capacity,) if fact.capacity != fact.old_capacity else ()
    occupied = (_node_occupied,) if fact.occupied != fact.old_occupied else ()
    return (*capacity, *occupied)


def node_removed(fact: f.NodeRemoved) -> EventRecord:
    return event_record(
        _NODE,
        fact.node_id,
        fact,
        _REMOVE,
        _D.NODE_DECOMISSION,
        message="Node removed from the scheduler",
    )


def node_action_refused(fact: f.NodeActionRefused) -> EventRecord:
    message = f"Node action {ActionFromRM(fact.action).name} refused: {fact.reason}"
    return event_record(_NODE, fact.node_id, fact, _NONE, _D.DETAILS_NONE, message=message)


def reservation(change: ChangeType, fact: f.ReservationMade | f.ReservationDropped) -> EventRecord:
    return event_record(
        _NODE,
        fact.node_id,
        fact,
        change,
        _D.NODE_RESERVATION,
        reference=fact.key,
        resource=fact.resource,
    )


FIXED: Fixed = {
    f.NodeAdded: (node_added, node_schedulable),
    f.NodeRemoved: (node_removed,),
    f.NodeActionRefused: (node_action_refused,),
    f.ReservationMade: (partial(reservation, ChangeType.ADD),),
    f.ReservationDropped: (partial(reservation, ChangeType.REMOVE),),
}
CHOSEN: Chosen = {
    f.NodeResized: of_resize,
    f.NodeScheduleChanged: of_schedule_change,
}
