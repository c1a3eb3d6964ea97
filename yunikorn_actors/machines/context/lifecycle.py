"""The life of an application: its transitions, and the timers that belong to its states.

Leaving a state cancels its timer. A firing names the life of the application (serial), the kind of
timer and its generation; any firing but that of the timer armed now is stale and does nothing
(R-027, R-051). The tables of transitions are in `state/applications`.
"""

from collections.abc import Iterator

from yunikorn_actors.config import ApplicationSortPolicy
from yunikorn_actors.machines.context.partition_context import PartitionContext
from yunikorn_actors.machines.context.unit_of_work import UnitOfWork
from yunikorn_actors.machines.machine import CancelTimer, Effect, Log, SetTimer
from yunikorn_actors.machines.slices import Steps, ends_piece
from yunikorn_actors.messages.rm_events import ApplicationUpdate
from yunikorn_actors.messages.scheduling import (
    ALLOCATION_TIMER,
    ApplicationTimerDue,
    HistoryExpiryDue,
    QueueCleaningDue,
)
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.applications import (
    COUNTS_AS_RUNNING,
    FINISHED,
    GANG_IS_OVER,
    LEAVES_USER_COUNT,
    Application,
    ApplicationEvent,
    ApplicationState,
    FinishedApplication,
    next_state,
)
from yunikorn_actors.state.gates import GateKind
from yunikorn_actors.state.limits import group_of, is_limited
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.values.durations import MILLISECOND
from yunikorn_actors.values.resource import INT64_MAX, equals
from yunikorn_actors.values.tag_lookup import is_switched_on, tag_of
from yunikorn_actors.values.tags import (
    APP_TAG_COMPLETING_DISABLE,
    APP_TAG_STATE_AWARE_DISABLE,
)

STATE_TIMER = "state"
PLACEHOLDER_TIMER = "placeholder"
COMMITMENT_TIMER = "commitment"
EXECUTION_TIMER = "execution"

# Completing is not among them: it completes by its timer. Resuming and Failing have rules of their
# own below.
_ENDS_WHEN_IDLE = frozenset(
    {ApplicationState.ACCEPTED, ApplicationState.STARTING, ApplicationState.RUNNING}
)


# Running has no transition by RUN; a gang that is being dissolved goes on only when its
# placeholders are gone.
_KEEPS_STATE = frozenset({ApplicationState.RUNNING, ApplicationState.RESUMING})


def advance(unit: UnitOfWork, app: Application, event: ApplicationEvent, message: str = "") -> None:
    """Fire an event; if it is no transition, nothing happens and nothing is announced."""
    # Upstream has the same table as a state machine with callbacks; here it is data, and what
    # follows from a transition is below, in one order.
    state = next_state(app.state, event, stateaware=_is_stateaware(app))
    if state is None:
        return
    # A firing that is in a mailbox already finds its timer gone.
    # All of them: placeholder and execution timers outlive a change of state, not the application.
    if state in FINISHED:
        cancel_timers(unit, app)
    else:
        _cancel_timer(unit, app, STATE_TIMER)
    # Only where the count of its group changes the fact names the group: event records follow from
    # that.
    has_left, leaves = app.state in LEAVES_USER_COUNT, state in LEAVES_USER_COUNT
    unit.record(
        f.ApplicationStateChanged(
            application_id=app.id,
            serial=app.serial,
            queue=app.queue.path,
            state=state,
            event=event,
            message=message,
            at_ns=unit.now_ns,
            group=app.group if has_left is not leaves else "",
        )
    )
    # Reported in the order in which it happens; a transition that follows comes behind it.
    _announce_state(unit, app.id, state, message or event.value)
    delay_ns = _state_timeout(unit, state)
    if delay_ns is not None:
        _arm_timer(unit, app, STATE_TIMER, delay_ns)
    # Behind the fact, which sets when it started.
    if state in COUNTS_AS_RUNNING:
        _limit_execution(unit, app)
    if state in GANG_IS_OVER:
        watch_commitment(unit, app)
    # Last: what is remembered has to have its final state, and the queue may be empty only now.
    if state in FINISHED:
        sum_up(unit, app)
        remember(unit, app.serial)
        clean_if_empty(unit, app.queue)


def _announce_state(unit: UnitOfWork, id_: str, state: ApplicationState, message: str) -> None:
    unit.announce(
        ApplicationUpdate(application_id=id_, state=state, at_ns=unit.now_ns, message=message)
    )


def sum_up(unit: UnitOfWork, app: Application) -> None:
    """Sum up an ended application and what it used, if it ever ran."""
    # It never ran: there is nothing to sum up, and operators expect no line.
    if not app.started_ns:
        return
    fact = f.ApplicationSummarized(
        rm_id=unit.partition.rm_id,
        application_id=app.id,
        serial=app.serial,
        queue=app.queue.path,
        user=app.spec.user,
        state=app.state,
        submitted_ns=app.submitted_ns,
        started_ns=app.started_ns,
        # Sums over a long life may not fit into a message.
        history=app.history.saturated(),
        at_ns=unit.now_ns,
    )
    unit.record(fact)
    unit.want(Log(text=fact.line()))


def _limit_execution(unit: UnitOfWork, app: Application) -> None:
    """The time runs from the first run on; an application that comes back may have used it up."""
    # A gang uses the same field as the time it may take to come together.
    limited = app.spec.timeout_ms > 0 and not app.spec.is_gang
    if limited and EXECUTION_TIMER not in app.timers:
        left_ns = app.started_ns + app.spec.timeout_ms * MILLISECOND - unit.now_ns
        _arm_timer(unit, app, EXECUTION_TIMER, max(0, left_ns))


def link_group(unit: UnitOfWork, app: Application) -> None:
    """Decide once in which group an application counts, when it first wants something."""
    # Chosen once, while New: limits that change later move nothing that runs.
    if app.state is ApplicationState.NEW:
        group = group_of(app.queue, app.spec.groups)
        if group:
            _link(unit, app, group)


def relink_groups(unit: UnitOfWork) -> Steps:
    """A group without limits any more counts no application (R-122).

    An application that has not been charged yet chooses by the limits as they are now (R-118).
    """
    for number, app in enumerate(tuple(unit.state.applications.values())):
        if ends_piece(number):
            yield 1
        group = app.group
        # Accepted and without anything charged: it may still choose.
        if app.state is ApplicationState.ACCEPTED and app.serial not in app.usages[0].running:
            group = group_of(app.queue, app.spec.groups)
        elif group and not is_limited(app.queue, group):
            # What is charged keeps its group, unless that has no limit left here.
            group = ""
        if group != app.group:
            _link(unit, app, group)


def _link(unit: UnitOfWork, app: Application, group: str) -> None:
    unit.record(
        f.ApplicationLinked(
            application_id=app.id,
            serial=app.serial,
            old_group=app.counted_in,
            group=group,
            at_ns=unit.now_ns,
        )
    )


def fail(unit: UnitOfWork, app: Application, message: str) -> None:
    """It is Failing from here on; `work_gone` makes it Failed, when nothing of it is charged."""
    if app.state is not ApplicationState.FAILING:
        advance(unit, app, ApplicationEvent.FAIL, message)


def work_gone(unit: UnitOfWork, app: Application, *, work_ended: bool = False) -> None:
    """Let the state follow after something of the application went away.

    Placeholders keep an application from completing (R-029) until the last real allocation ends:
    then the leftovers are given back on the way. One that is tagged to stay waits for more work.
    """
    # Called after everything that may end work. Which state follows is decided here alone, on the
    # truth.
    if app.state in _ENDS_WHEN_IDLE:
        # Work that ended while others still run decides nothing; placeholders alone do not keep it
        # from completing once real work has ended.
        idles = _has_no_work(app) and (work_ended or not app.allocations)
        if idles and not is_switched_on(app.spec.tags, APP_TAG_COMPLETING_DISABLE):
            advance(unit, app, ApplicationEvent.COMPLETE)
    elif app.state is ApplicationState.FAILING:
        # It waits for the last confirmation: what is charged would belong to nobody.
        if not app.allocations:
            advance(unit, app, ApplicationEvent.FAIL)
    elif app.has_placeholders:
        # For what follows a placeholder counts as held until it is confirmed.
        return
    elif app.state is ApplicationState.RESUMING:
        _resumed(unit, app, work_ended=work_ended)
    elif app.state is ApplicationState.COMPLETING and STATE_TIMER not in app.timers:
        # Its timer has fired while placeholders were left; now they are gone.
        advance(unit, app, ApplicationEvent.COMPLETE)


def _has_no_work(app: Application) -> bool:
    """Nothing waits, nothing real runs, and no swap is about to bring something (R-035, H-08)."""
    # Pending, not asks: an ask with all its repeats parked waits for its swap.
    return not (any(app.pending.values()) or any(app.allocated.values()) or app.swaps)


def _resumed(unit: UnitOfWork, app: Application, *, work_ended: bool) -> None:
    """The last placeholder is gone; members swapped in meanwhile run already.

    Work that was reported meanwhile may have ended with it: then the application completes.
    """
    # Accepted again, and then Running if something real runs already.
    advance(unit, app, ApplicationEvent.RUN)
    if any(app.allocated.values()):
        advance(unit, app, ApplicationEvent.RUN)
    elif work_ended:
        work_gone(unit, app, work_ended=True)


def record_run_limit(unit: UnitOfWork, app: Application, kind: GateKind, reason: str = "") -> None:
    """Record whether a run limit blocks it, on change only."""
    # On change only: the planner finds it anew in each plan.
    if app.run_limit is not kind:
        unit.record(
            f.ApplicationCrowded(
                application_id=app.id,
                serial=app.serial,
                old_crowd=app.run_limit,
                crowd=kind,
                reason=reason,
                at_ns=unit.now_ns,
            )
        )


def work_started(unit: UnitOfWork, app: Application) -> None:
    """A real allocation stands. While the gang is being dissolved that decides nothing."""
    if app.state not in _KEEPS_STATE:
        advance(unit, app, ApplicationEvent.RUN)


def placeholder_placed(unit: UnitOfWork, app: Application, *, recovered: bool = False) -> None:
    """The clock of the gang runs from its first placeholder; the last one lets it run."""
    if PLACEHOLDER_TIMER not in app.timers:
        delay_ns = placeholder_timeout(unit, app, recovered=recovered)
        _arm_timer(unit, app, PLACEHOLDER_TIMER, delay_ns)
    watch_commitment(unit, app)
    run_if_complete(unit, app)


def run_if_complete(unit: UnitOfWork, app: Application) -> None:
    """A gang runs when its placeholders have all that it asks for, placed or resized to it."""
    # Exactly as much as asked for: placeholders of other sizes than declared do not make it
    # complete.
    is_complete = app.spec.is_gang and equals(app.placeholders, app.spec.placeholder_ask)
    if app.state is ApplicationState.ACCEPTED and is_complete:
        advance(unit, app, ApplicationEvent.RUN)


def placeholder_timeout(unit: UnitOfWork, app: Application, *, recovered: bool = False) -> int:
    """A gang that came together before a restart has only the rest of its time (R-031)."""
    spec = app.spec
    delay_ns = unit.settings.placeholder_timeout_ns
    # More than a duration holds is no time of its own.
    if spec.is_gang and 0 < spec.timeout_ms <= INT64_MAX // MILLISECOND:
        delay_ns = spec.timeout_ms * MILLISECOND
    if recovered and spec.created_ns is not None:
        delay_ns = max(MILLISECOND, min(delay_ns, spec.created_ns + delay_ns - unit.now_ns))
    return delay_ns


def stop_placeholder_timer(unit: UnitOfWork, app: Application) -> None:
    """Without a placeholder there is nothing to time out (H-22)."""
    if not app.has_placeholders:
        _cancel_timer(unit, app, PLACEHOLDER_TIMER)
        watch_commitment(unit, app)


def watch_commitment(unit: UnitOfWork, app: Application) -> None:
    """Bound how long an admitted gang keeps its room without a placeholder; then it waits again.

    The time runs from its admission, or from the end of its last placeholder.
    """
    # Not admitted, or it holds a placeholder: no clock runs. Cancelling a timer that is not armed
    # does nothing.
    if app.serial not in unit.state.admitted or app.has_placeholders:
        _cancel_timer(unit, app, COMMITMENT_TIMER)
    elif COMMITMENT_TIMER not in app.timers:
        delay_ns = placeholder_timeout(unit, app)
        _arm_timer(unit, app, COMMITMENT_TIMER, delay_ns)


def current_timer(state: PartitionState, message: ApplicationTimerDue) -> Application | None:
    """Return the application whose armed timer this is; None for a stale firing."""
    # H-24: an id may be submitted again. R-027: a timer may have been armed anew while its firing
    # was on its way.
    app = state.applications.get(message.application_id)
    if app is None or app.serial != message.serial:
        return None
    timer = app.timers.get(message.kind)
    return app if timer is not None and timer.generation == message.generation else None


def arm_allocation_timer(unit: UnitOfWork, app: Application, uuid: str, timeout_ms: int) -> None:
    _arm_timer(unit, app, ALLOCATION_TIMER + uuid, timeout_ms * MILLISECOND)


def allocation_of_timer(kind: str) -> str:
    """Return the UUID of the allocation that this kind of timer belongs to, if it is one."""
    return kind.removeprefix(ALLOCATION_TIMER) if kind.startswith(ALLOCATION_TIMER) else ""


def cancel_allocation_timer(unit: UnitOfWork, app: Application, uuid: str) -> None:
    _cancel_timer(unit, app, ALLOCATION_TIMER + uuid)


def timer_has_fired(unit: UnitOfWork, app: Application, kind: str) -> None:
    """Forget an armed timer that has fired; what follows may arm it anew."""
    unit.record(f.TimerCancelled(application_id=app.id, kind=kind))


def cancel_timers(unit: UnitOfWork, app: Application) -> None:
    for kind in tuple(app.timers):
        _cancel_timer(unit, app, kind)


def _history_timer(partition: PartitionContext, serial: int) -> str:
    return f"history/{partition.name}#{partition.epoch}/{serial}"


def _arm_history_expiry(unit: UnitOfWork, serial: int) -> None:
    _set_history_timer(unit, serial, unit.now_ns)


def _set_history_timer(unit: UnitOfWork, serial: int, ended_ns: int) -> None:
    unit.want(
        SetTimer(
            name=_history_timer(unit.partition, serial),
            # int64 is what a time in a message holds: a history that long never expires.
            due_ns=min(ended_ns + unit.settings.history_ns, INT64_MAX),
            message=HistoryExpiryDue(
                partition=unit.partition.name, epoch=unit.partition.epoch, serial=serial
            ),
        )
    )


def cancelled_histories(partition: PartitionContext) -> Iterator[Effect]:
    """The partition is removed, with the history of its applications."""
    return (
        CancelTimer(name=_history_timer(partition, serial)) for serial in partition.state.finished
    )


def remember(unit: UnitOfWork, serial: int) -> None:
    """Keep the history of an application that has just ended, for its time.

    Many short applications, or repeated rejections, must not fill the memory: the oldest are
    forgotten early. Rejections have a bound of their own, so that they push no others out.
    """
    # Armed before the bounds are looked at: where they leave no room it is this one that is
    # forgotten, and its timer has to be cancelled behind that.
    _arm_history_expiry(unit, serial)
    finished, rejected = unit.state.finished, unit.state.rejected
    while len(rejected) > unit.settings.rejected_max:
        _forget_early(unit, next(iter(rejected)))
    while len(finished) > unit.settings.history_max:
        _forget_early(unit, next(iter(finished)))


def _forget_early(unit: UnitOfWork, serial: int) -> None:
    expire(unit, unit.state.finished[serial])
    unit.want(CancelTimer(name=_history_timer(unit.partition, serial)))


def expire(unit: UnitOfWork, ended: FinishedApplication) -> None:
    """Forget an application that ended.

    Nothing is announced if its id names another life by now: the resource manager would take the
    news for that one.
    """
    id_ = ended.spec.application_id
    expired = next_state(ended.state, ApplicationEvent.EXPIRE, stateaware=False)
    assert expired is not None
    unit.record(
        f.ApplicationStateChanged(
            application_id=id_,
            serial=ended.serial,
            queue=ended.queue,
            state=expired,
            event=ApplicationEvent.EXPIRE,
            message="",
            at_ns=unit.now_ns,
        )
    )
    unit.record(f.ApplicationForgotten(serial=ended.serial, at_ns=unit.now_ns))
    if id_ not in unit.state.applications:
        _announce_state(unit, id_, expired, ApplicationEvent.EXPIRE.value)


def clean_if_empty(unit: UnitOfWork, queue: Queue) -> None:
    """Remove an empty dynamic or draining queue ten seconds after it became empty."""
    # A managed queue that is active stays, empty or not; `clean` looks again when the time comes.
    if not queue.is_to_be_cleaned:
        return
    # Each emptying has a number of its own: a firing for an earlier one does nothing.
    generation = unit.partition.next_timer()
    unit.partition.cleaning[queue.path] = generation
    unit.want(
        SetTimer(
            # The path names the timer, so a later emptying arms the same timer anew.
            name=f"clean/{unit.partition.name}#{unit.partition.epoch}/{queue.path}",
            due_ns=unit.now_ns + unit.settings.queue_cleaning_ns,
            message=QueueCleaningDue(
                partition=unit.partition.name,
                epoch=unit.partition.epoch,
                path=queue.path,
                generation=generation,
            ),
        )
    )


def _is_stateaware(app: Application) -> bool:
    if app.queue.properties.application_sort_policy is not ApplicationSortPolicy.STATEAWARE:
        return False
    # The tag sends one application of such a leaf straight to Running.
    return not tag_of(app.spec.tags, APP_TAG_STATE_AWARE_DISABLE)


def _state_timeout(unit: UnitOfWork, state: ApplicationState) -> int | None:
    if state is ApplicationState.COMPLETING:
        return unit.settings.completing_timeout_ns
    if state is ApplicationState.STARTING:
        return unit.settings.starting_timeout_ns
    return None


def _timer_name(partition: PartitionContext, app: Application, kind: str) -> str:
    # The serial keeps timers of two lives of one id apart.
    return f"{kind}/{partition.name}#{partition.epoch}/{app.serial}"


def _arm_timer(unit: UnitOfWork, app: Application, kind: str, delay_ns: int) -> None:
    # A number of its own, so that the firing of a timer that was armed anew meanwhile is stale.
    generation = unit.partition.next_timer()
    due_ns = min(unit.now_ns + delay_ns, INT64_MAX)
    unit.record(
        f.TimerArmed(application_id=app.id, kind=kind, generation=generation, due_ns=due_ns),
    )
    _set_timer(unit, app, kind, generation, due_ns)


def set_timers_again(unit: UnitOfWork) -> None:
    """The core was restarted: what is armed in the truth is armed nowhere else."""
    timers = [
        (timer.generation, app, kind, timer.due_ns)
        for app in unit.state.applications.values()
        for kind, timer in app.timers.items()
    ]
    # As they were armed: those that are due together fire in that order.
    for generation, app, kind, due_ns in sorted(timers, key=lambda it: it[0]):
        _set_timer(unit, app, kind, generation, due_ns)
    for serial, ended in unit.state.finished.items():
        _set_history_timer(unit, serial, ended.state_log.entries[-1].at_ns)
    for queue in tuple(unit.state.queues.values()):
        # The time of cleaning is not in the state: it begins again.
        clean_if_empty(unit, queue)


def _set_timer(unit: UnitOfWork, app: Application, kind: str, generation: int, due_ns: int) -> None:
    unit.want(
        SetTimer(
            name=_timer_name(unit.partition, app, kind),
            due_ns=due_ns,
            message=ApplicationTimerDue(
                partition=unit.partition.name,
                epoch=unit.partition.epoch,
                application_id=app.id,
                serial=app.serial,
                kind=kind,
                generation=generation,
            ),
        )
    )


def _cancel_timer(unit: UnitOfWork, app: Application, kind: str) -> None:
    # Only one that is armed: a fact for nothing would be a revision for every replica.
    if kind in app.timers:
        unit.record(f.TimerCancelled(application_id=app.id, kind=kind))
        unit.want(CancelTimer(name=_timer_name(unit.partition, app, kind)))
