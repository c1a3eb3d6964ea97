"""Event records of applications: their coming and going, states, run limits and groups.

That an application counts in a group is an event of the group.
"""

from functools import partial

from yunikorn_actors.machines.events.record import (
    Builder,
    Chosen,
    Fixed,
    event_record,
    without_runtime,
)
from yunikorn_actors.si import ChangeDetail, ChangeType, EventRecord, EventType
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.applications import FINISHED, LEAVES_USER_COUNT, ApplicationState
from yunikorn_actors.state.gates import GateKind

_D = ChangeDetail
_NONE, _SET, _ADD, _REMOVE = ChangeType.NONE, ChangeType.SET, ChangeType.ADD, ChangeType.REMOVE
_APP = EventType.APP
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


def app_new(fact: f.ApplicationAdded | f.ApplicationRejected) -> EventRecord:
    """Record a new application, with its queue where it got another one than it asked for."""
    id_ = fact.spec.application_id
    texts = [without_runtime(f"application '{id_}'", fact.spec.tags)]
    if isinstance(fact, f.ApplicationAdded) and fact.is_elsewhere:
        texts.insert(0, fact.placement())
    return event_record(_APP, id_, fact, _ADD, _D.APP_NEW, message="; ".join(filter(None, texts)))


def app_rejected(fact: f.ApplicationRejected) -> EventRecord:
    id_ = fact.spec.application_id
    return event_record(_APP, id_, fact, _SET, _D.APP_REJECT, message=fact.reason)


def queue_app_added(fact: f.ApplicationAdded) -> EventRecord:
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


def of_state_change(fact: f.ApplicationStateChanged) -> tuple[Builder, ...]:
    """Record a new state; an ask during completing also counts the application in again."""
    # It has left its queue with its last state; Expired comes long after and is a state alone.
    if fact.state in FINISHED and fact.state is not ApplicationState.EXPIRED:
        return (_app_state, _app_gone, _queue_app_gone)
    if not fact.group:
        return (_app_state,)
    return (_app_state, _app_parted if fact.state in LEAVES_USER_COUNT else _app_linked)


def of_removal(fact: f.ApplicationRemoved) -> tuple[Builder, ...]:
    gone = (_app_gone, _queue_app_gone)
    return (*gone, _app_parted) if fact.group else gone


def app_summary(fact: f.ApplicationSummarized) -> EventRecord:
    what = fact.application_id
    return event_record(_APP, what, fact, _NONE, _D.DETAILS_NONE, message=fact.line())


def _app_runnable(detail: ChangeDetail, fact: f.ApplicationCrowded) -> EventRecord:
    return event_record(_APP, fact.application_id, fact, _NONE, detail)


def _app_not_runnable(detail: ChangeDetail, fact: f.ApplicationCrowded) -> EventRecord:
    return event_record(_APP, fact.application_id, fact, _NONE, detail, message=fact.reason)


_RUNNABLE: dict[GateKind, tuple[Builder, ...]] = {
    GateKind.NONE: (),
    GateKind.QUEUE: (partial(_app_runnable, _D.APP_RUNNABLE_QUEUE),),
    GateKind.QUOTA: (partial(_app_runnable, _D.APP_RUNNABLE_QUOTA),),
}
_CANNOT_RUN: dict[GateKind, tuple[Builder, ...]] = {
    GateKind.NONE: (),
    GateKind.QUEUE: (partial(_app_not_runnable, _D.APP_CANNOTRUN_QUEUE),),
    GateKind.QUOTA: (partial(_app_not_runnable, _D.APP_CANNOTRUN_QUOTA),),
}


def of_run_limit(fact: f.ApplicationCrowded) -> tuple[Builder, ...]:
    # The old reason ends before the new one begins.
    return (*_RUNNABLE[fact.old_crowd], *_CANNOT_RUN[fact.crowd])


def _app_parted(fact: f.ApplicationRemoved | f.ApplicationStateChanged) -> EventRecord:
    return event_record(
        _USER, fact.group, fact, _REMOVE, _D.UG_APP_LINK, reference=fact.application_id
    )


def _app_linked(fact: f.ApplicationLinked | f.ApplicationStateChanged) -> EventRecord:
    return event_record(
        _USER, fact.group, fact, _SET, _D.UG_APP_LINK, reference=fact.application_id
    )


def _app_unlinked(fact: f.ApplicationLinked) -> EventRecord:
    return event_record(
        _USER, fact.old_group, fact, _REMOVE, _D.UG_APP_LINK, reference=fact.application_id
    )


def of_link(fact: f.ApplicationLinked) -> tuple[Builder, ...]:
    unlinked = (_app_unlinked,) if fact.old_group else ()
    linked = (_app_linked,) if fact.group else ()
    return (*unlinked, *linked)


FIXED: Fixed = {
    f.ApplicationAdded: (app_new, queue_app_added),
    f.ApplicationRejected: (app_new, app_rejected),
    f.ApplicationSummarized: (app_summary,),
}
CHOSEN: Chosen = {
    f.ApplicationStateChanged: of_state_change,
    f.ApplicationRemoved: of_removal,
    f.ApplicationLinked: of_link,
    f.ApplicationCrowded: of_run_limit,
}
