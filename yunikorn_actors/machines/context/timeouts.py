"""Timeouts: what happens when the time of an application, an ask or a gang is over.

A firing is taken only if its timer is the one armed now. The limit of an application runs from its
first run, that of an ask from each of its allocations, that of a gang from its first placeholder,
that of a commitment while its gang has no placeholder. What the core takes back stays charged until
the resource manager confirms. A swap in flight survives all of these but the end of its application
(R-025, H-29).
"""

from yunikorn_actors.machines.context import lifecycle
from yunikorn_actors.machines.context.asks import withdraw_ask
from yunikorn_actors.machines.context.endings import request_release
from yunikorn_actors.machines.context.gangs import (
    PLACEHOLDER_EXPIRED,
    give_back_placeholders,
    lapse,
)
from yunikorn_actors.machines.context.lifecycle import (
    advance,
    allocation_of_timer,
    current_timer,
    fail,
    timer_has_fired,
    work_gone,
)
from yunikorn_actors.machines.context.unit_of_work import UnitOfWork
from yunikorn_actors.machines.slices import Steps, drawn_off, ends_piece
from yunikorn_actors.messages.scheduling import ApplicationTimerDue
from yunikorn_actors.state.applications import Application, ApplicationEvent, ApplicationState
from yunikorn_actors.state.termination import TerminationType

APPLICATION_EXPIRED = "ExecutionTimeout"
ALLOCATION_EXPIRED = "allocation ran longer than its execution timeout"
GANG_EXPIRED = "ResourceReservationTimeout"
PLACEHOLDER_ASK_EXPIRED = "releasing pending placeholders on placeholder timeout"
LEFT_OVER = "releasing placeholders on app complete"
_T = TerminationType


def on_timer(unit: UnitOfWork, message: ApplicationTimerDue) -> Steps:
    # A stale firing does nothing.
    app = current_timer(unit.state, message)
    if app is not None:
        # Forgotten first: what follows may arm a timer of the same kind anew.
        timer_has_fired(unit, app, message.kind)
        yield from expire(unit, app, message.kind)


def expire(unit: UnitOfWork, app: Application, kind: str) -> Steps:
    """Do what is due when this timer has fired, or the rest of it after the core was restarted."""
    match kind:
        case lifecycle.STATE_TIMER:
            yield from _expire_state(unit, app)
        case lifecycle.EXECUTION_TIMER:
            yield from _expire_application(unit, app)
        case lifecycle.PLACEHOLDER_TIMER:
            yield from _expire_gang(unit, app)
        case lifecycle.COMMITMENT_TIMER:
            lapse(unit, app)
        case _:
            _expire_allocation(unit, app, allocation_of_timer(kind))


def _expire_state(unit: UnitOfWork, app: Application) -> Steps:
    """Completed waits for the confirmations of unused placeholders."""
    # Long enough in Starting: the next application of a stateaware leaf may start.
    if app.state is ApplicationState.STARTING:
        advance(unit, app, ApplicationEvent.RUN)
    elif app.state is ApplicationState.COMPLETING:
        yield from give_back_placeholders(unit, app, LEFT_OVER)
        # Completed now, or when the last of them is confirmed.
        work_gone(unit, app)


def _expire_gang(unit: UnitOfWork, app: Application) -> Steps:
    """A gang that is still incomplete fails or is resumed; any other gives back what is unused."""
    fails = app.state is ApplicationState.ACCEPTED and app.spec.is_hard
    for number, ask in enumerate((yield from drawn_off(app.asks.values()))):
        # A hard gang that never ran takes its real asks with it; otherwise only its placeholders
        # go.
        if ask.is_open and (fails or ask.spec.placeholder):
            why = PLACEHOLDER_ASK_EXPIRED if ask.spec.placeholder else GANG_EXPIRED
            withdraw_ask(unit, app, ask, _T.TIMEOUT, why)
            yield 1
        elif ends_piece(number):
            yield 1
    # After the asks, so that no placeholder is placed while the others go.
    yield from give_back_placeholders(unit, app, PLACEHOLDER_EXPIRED)
    # A gang that runs already has members at work: only the rest of its placeholders goes.
    if app.state is ApplicationState.ACCEPTED:
        if fails:
            fail(unit, app, GANG_EXPIRED)
        else:
            advance(unit, app, ApplicationEvent.RESUME, GANG_EXPIRED)
    work_gone(unit, app)


def _expire_application(unit: UnitOfWork, app: Application) -> Steps:
    """A completing application may complete: it has no turn, and if it asks again it ends."""
    if app.state is ApplicationState.COMPLETING:
        return
    for number, ask in enumerate((yield from drawn_off(app.asks.values()))):
        if ask.is_open:
            withdraw_ask(unit, app, ask, _T.TIMEOUT, APPLICATION_EXPIRED)
            yield 1
        elif ends_piece(number):
            yield 1
    # Nothing waits any more, so nothing is placed while the rest is on its way out.
    for allocation in (yield from drawn_off(app.allocations.values())):
        # Announced one by one, and confirmed one by one: until the last it is Failing.
        request_release(unit, allocation, _T.TIMEOUT, APPLICATION_EXPIRED)
        yield 1
    fail(unit, app, APPLICATION_EXPIRED)
    work_gone(unit, app)


def _expire_allocation(unit: UnitOfWork, app: Application, uuid: str) -> None:
    allocation = app.allocations.get(uuid)
    # Gone where a restarted core finishes this (`_rest_of`): in any other case its timer ended with
    # it.
    if allocation is not None:
        request_release(unit, allocation, _T.TIMEOUT, ALLOCATION_EXPIRED)
