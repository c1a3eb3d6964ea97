"""What happens when an application's time is up.

A firing is taken only if it is that of the timer which is armed now. The limit of an application
runs from its first run, the limit of an ask from each of its allocations; what the core takes back
stays charged until the resource manager confirms.
"""

from yunikorn_actors.domain.application import Application, ApplicationEvent, ApplicationState
from yunikorn_actors.domain.termination import TerminationType
from yunikorn_actors.machines.context.asks import withdraw_ask
from yunikorn_actors.machines.context.endings import request_release
from yunikorn_actors.machines.context.lifecycle import (
    EXECUTION_TIMER,
    STATE_TIMER,
    advance,
    allocation_of_timer,
    current_timer,
    on_state_timer,
    settle,
    timer_has_fired,
)
from yunikorn_actors.machines.context.work import Partition, Work
from yunikorn_actors.messages.scheduling import ApplicationTimerDue

APPLICATION_EXPIRED = "ExecutionTimeout"
ALLOCATION_EXPIRED = "allocation ran longer than its execution timeout"


def on_timer(work: Work, partition: Partition, message: ApplicationTimerDue) -> None:
    app = current_timer(partition, message)
    if app is None:
        return
    timer_has_fired(work, partition, app, message.kind)
    if message.kind == STATE_TIMER:
        on_state_timer(work, partition, app)
    elif message.kind == EXECUTION_TIMER:
        _expire_application(work, partition, app)
    else:
        _expire_allocation(work, partition, app, allocation_of_timer(message.kind))


def _expire_application(work: Work, partition: Partition, app: Application) -> None:
    """One that is completing is left to complete: it has nothing, and if it asks again it ends."""
    if app.state is ApplicationState.COMPLETING:
        return
    for ask in tuple(app.asks.values()):
        if ask.remaining:
            withdraw_ask(work, partition, app, ask, TerminationType.TIMEOUT, APPLICATION_EXPIRED)
    for allocation in tuple(app.allocations.values()):
        request_release(
            work, partition, app, allocation, TerminationType.TIMEOUT, APPLICATION_EXPIRED
        )
    advance(work, partition, app, ApplicationEvent.FAIL, APPLICATION_EXPIRED)
    settle(work, partition, app)


def _expire_allocation(work: Work, partition: Partition, app: Application, uuid: str) -> None:
    allocation = app.allocations.get(uuid)
    if allocation is not None:
        request_release(
            work, partition, app, allocation, TerminationType.TIMEOUT, ALLOCATION_EXPIRED
        )
