"""How facts about applications and their timers change a partition."""

from yunikorn_actors.state import facts as f
from yunikorn_actors.state.applications import (
    COUNTS_AS_RUNNING,
    FINISHED,
    GANG_IS_OVER,
    LEAVES_USER_COUNT,
    TRANSITIONS,
    Application,
    ApplicationEvent,
    ApplicationState,
    FinishedApplication,
    StateEntry,
    StateLog,
    Timer,
)
from yunikorn_actors.state.changes.gangs import dissolve_gang, forget_gang
from yunikorn_actors.state.ledger import attach, count_holding, detach, forget_holding, relink
from yunikorn_actors.state.partition import PartitionState

REJECTED = TRANSITIONS[ApplicationState.NEW, ApplicationEvent.REJECT]


def application_added(state: PartitionState, fact: f.ApplicationAdded) -> None:
    queue = state.queues[fact.queue]
    usages = attach(state.users, fact.spec.user, queue)
    app = Application(fact.spec, serial=fact.serial, queue=queue, usages=usages, now_ns=fact.at_ns)
    state.applications[app.id] = app
    queue.applications[app.serial] = app.id


def application_rejected(state: PartitionState, fact: f.ApplicationRejected) -> None:
    state.rejected[fact.serial] = None
    remember(
        state,
        FinishedApplication(
            spec=fact.spec,
            serial=fact.serial,
            queue="",
            state=REJECTED,
            message=fact.reason,
            state_log=StateLog([StateEntry(fact.at_ns, REJECTED)]),
            submitted_ns=fact.at_ns,
        ),
    )


def remember(state: PartitionState, ended: FinishedApplication) -> None:
    """Several lives of one id may be remembered; the last of them says why it is gone."""
    state.finished[ended.serial] = ended
    state.last_ends[ended.spec.application_id] = ended.serial


def application_state_changed(state: PartitionState, fact: f.ApplicationStateChanged) -> None:
    app = state.applications.get(fact.application_id)
    if app is None or app.serial != fact.serial:
        finished = state.finished[fact.serial]
        finished.state = fact.state
        finished.state_log.note(fact.at_ns, fact.state)
        return
    counted, counts = app.state in COUNTS_AS_RUNNING, fact.state in COUNTS_AS_RUNNING
    if counted is not counts:
        for level in app.queue.lineage:
            level.running_apps += 1 if counts else -1
    if counts and not app.started_ns:
        app.started_ns = fact.at_ns
    app.state = fact.state
    if fact.state in GANG_IS_OVER:
        dissolve_gang(state, app)
    app.state_log.note(fact.at_ns, fact.state)
    if fact.state in LEAVES_USER_COUNT:
        for usage in (*app.usages, *app.group_usages):
            usage.running.pop(app.serial, None)
    count_holding(app)
    if fact.state in FINISHED:
        _detach(state, app)
        ended = FinishedApplication(
            spec=app.spec,
            serial=app.serial,
            queue=app.queue.path,
            state=fact.state,
            message=fact.message,
            state_log=app.state_log,
            submitted_ns=app.submitted_ns,
            started_ns=app.started_ns,
            history=app.history,
        )
        remember(state, ended)


def application_removed(state: PartitionState, fact: f.ApplicationRemoved) -> None:
    app = state.applications[fact.application_id]
    if app.state in COUNTS_AS_RUNNING:
        for level in app.queue.lineage:
            level.running_apps -= 1
    _detach(state, app)


def application_forgotten(state: PartitionState, fact: f.ApplicationForgotten) -> None:
    forget(state, fact.serial)


def forget(state: PartitionState, serial: int) -> None:
    id_ = state.finished.pop(serial).spec.application_id
    if state.last_ends.get(id_) == serial:
        del state.last_ends[id_]
    state.rejected.pop(serial, None)


def application_summarized(state: PartitionState, _: f.ApplicationSummarized) -> None:
    """A record for operators alone: what it sums up has been kept as it came about."""


def _detach(state: PartitionState, app: Application) -> None:
    """The application leaves the active ones, its queue, and the books of its user."""
    forget_holding(app)
    forget_gang(state, app)
    del state.applications[app.id]
    del app.queue.applications[app.serial]
    detach(state.users, app.spec.user, app)
    if app.group:
        detach(state.groups, app.group, app)


def application_linked(state: PartitionState, fact: f.ApplicationLinked) -> None:
    relink(state.groups, state.applications[fact.application_id], fact.group)


def run_limit_met(state: PartitionState, fact: f.ApplicationCrowded) -> None:
    state.applications[fact.application_id].run_limit = fact.crowd


def timer_armed(state: PartitionState, fact: f.TimerArmed) -> None:
    timer = Timer(generation=fact.generation, due_ns=fact.due_ns)
    state.applications[fact.application_id].timers[fact.kind] = timer


def timer_cancelled(state: PartitionState, fact: f.TimerCancelled) -> None:
    state.applications[fact.application_id].timers.pop(fact.kind, None)
