"""Applications are added, rejected and removed, and the run limits that block them are recorded."""

from yunikorn_actors.machines.context.application_placement import queue_for
from yunikorn_actors.machines.context.asks import remove_ask
from yunikorn_actors.machines.context.endings import announce_end, remove_allocation
from yunikorn_actors.machines.context.gangs import gang_refusal
from yunikorn_actors.machines.context.lifecycle import (
    cancel_timers,
    clean_if_empty,
    record_run_limit,
    remember,
    sum_up,
)
from yunikorn_actors.machines.context.recovery_reports import is_application_back
from yunikorn_actors.machines.context.unit_of_work import ApplicationVerdict, UnitOfWork
from yunikorn_actors.machines.machine import Log
from yunikorn_actors.machines.slices import Steps, drawn_off, ends_piece
from yunikorn_actors.messages.scheduling import RunLimitObservation
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.applications import Application, ApplicationSpec
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.placement import PlacementFailed
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.values.resource import has_negative


def add_application(unit: UnitOfWork, spec: ApplicationSpec) -> None:
    """Accept an application into its queue, or reject it with the reason."""
    if is_application_back(unit, spec.application_id):
        # After a restart the resource manager reports what the core knows already. It gets the
        # answer of a new application, and nothing is recorded.
        known = unit.state.applications[spec.application_id]
        unit.announce(ApplicationVerdict(known.id, queue=known.queue.path))
        return
    # Before the placement: that creates queues, and none may be created for an application that is
    # refused anyway.
    reason = _refusal(unit.state, spec)
    if reason is not None:
        reject_application(unit, spec, reason)
        return
    try:
        queue, by_last_resort = queue_for(unit, spec)
    except PlacementFailed as failure:
        reason = f"failed to place application {spec.application_id}: {failure}"
        reject_application(unit, spec, reason, failure.queues)
        return
    # Behind the placement, as the bounds are those of its leaf; a leaf that was made for it goes
    # again.
    reason = gang_refusal(unit.state, queue, spec)
    if reason is not None:
        reject_application(unit, spec, reason)
        clean_if_empty(unit, queue)
        return
    fact = f.ApplicationAdded(
        spec=spec,
        queue=queue.path,
        serial=unit.partition.next_serial(),
        at_ns=unit.now_ns,
        by_last_resort=by_last_resort,
    )
    unit.record(fact)
    if fact.is_elsewhere:
        accepted = f"application {spec.application_id} of {unit.partition.name} was accepted"
        unit.want(Log(text=f"{accepted}: {fact.placement()}", is_warning=by_last_resort))
    unit.announce(
        ApplicationVerdict(spec.application_id, queue=queue.path, by_last_resort=by_last_resort)
    )


def reject_application(
    unit: UnitOfWork, spec: ApplicationSpec, reason: str, queues: tuple[str, ...] = ()
) -> None:
    # Also a rejected one has a serial: the same id may be rejected again and again, and each time
    # is an entry of the history.
    serial = unit.partition.next_serial()
    fact = f.ApplicationRejected(spec=spec, serial=serial, reason=reason, at_ns=unit.now_ns)
    unit.record(fact)
    # Among those that ended, so that a reader of the history finds why it never ran.
    remember(unit, serial)
    unit.announce(ApplicationVerdict(spec.application_id, reason, queues=queues))


def remove_application(unit: UnitOfWork, application_id: str) -> Steps:
    """Remove an application and all that it has; asks go first, so that nothing more is placed."""
    app = unit.state.applications.get(application_id)
    if app is None:
        unit.want(vain_removal(unit.partition.name, application_id))
        return
    # `drawn_off` copies: the facts below take the entries out of this very dictionary.
    for number, ask in enumerate((yield from drawn_off(app.asks.values()))):
        if ask.is_open:
            remove_ask(unit, app, ask, TerminationType.STOPPED_BY_RM)
            yield 1
        elif ends_piece(number):
            # An ask that is not open has allocations alone, and goes with the last of them below.
            yield 1
    for allocation in (yield from drawn_off(app.allocations.values())):
        remove_allocation(unit, app, allocation, TerminationType.STOPPED_BY_RM)
        # Echoed at each end: the resource manager counts what it has lost by these, not by the end
        # of the application (G16).
        announce_end(unit, allocation, f"Application {app.id} Removed")
        yield 1
    # Before it is forgotten: a timer is found by the application that it belongs to.
    cancel_timers(unit, app)
    _forget(unit, app)
    yield 1


def vain_removal(partition: str, application_id: str) -> Log:
    """No warning: it is usual that an application has ended before it is removed."""
    text = f"application {application_id} of {partition} cannot be removed"
    return Log(text=f"{text}: it is unknown or has ended already")


def _forget(unit: UnitOfWork, app: Application) -> None:
    fact = f.ApplicationRemoved(
        application_id=app.id,
        serial=app.serial,
        queue=app.queue.path,
        at_ns=unit.now_ns,
        group=app.counted_in,
    )
    unit.record(fact)
    # After the removal: the summary is final, and its queue may be empty only now.
    sum_up(unit, app)
    clean_if_empty(unit, app.queue)


def _refusal(state: PartitionState, spec: ApplicationSpec) -> str | None:
    if spec.unresolved:
        return spec.unresolved
    if spec.application_id in state.applications:
        return (
            f"adding application {spec.application_id} to partition {state.name}, "
            "but application already existed"
        )
    if has_negative(spec.placeholder_ask):
        return "placeholderAsk contains negative resources"
    return None


def report_run_limits(unit: UnitOfWork, observations: tuple[RunLimitObservation, ...]) -> None:
    """Record which run limits block applications, as far as those still live.

    The planner looked at a replica. An application may have gone since, or come again under its id;
    a serial names one life (H-24).
    """
    for seen in observations:
        app = unit.state.applications.get(seen.application_id)
        if app is not None and app.serial == seen.serial:
            record_run_limit(unit, app, seen.crowd, seen.reason)
