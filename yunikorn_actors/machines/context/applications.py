"""Applications come and go."""

from yunikorn_actors.domain import facts as f
from yunikorn_actors.domain.application import Application, ApplicationSpec
from yunikorn_actors.domain.partition import PartitionState
from yunikorn_actors.domain.placement import PlacementFailed
from yunikorn_actors.domain.resource import has_negative
from yunikorn_actors.domain.termination import TerminationType
from yunikorn_actors.machines.context.asks import remove_ask
from yunikorn_actors.machines.context.endings import remove_allocation
from yunikorn_actors.machines.context.gangs import gang_refusal
from yunikorn_actors.machines.context.lifecycle import (
    arm_history_expiry,
    cancel_timers,
    clean_if_empty,
    forget_rejected,
    record_crowd,
    sum_up,
)
from yunikorn_actors.machines.context.placing import queue_for
from yunikorn_actors.machines.context.work import Partition, Work
from yunikorn_actors.messages.rm_events import Rejected
from yunikorn_actors.messages.scheduling import CrowdObservation


def add_application(work: Work, partition: Partition, spec: ApplicationSpec) -> None:
    """Accept an application into its queue, or reject it with the reason."""
    reason = _refusal(partition.state, spec)
    if reason is not None:
        reject_application(work, partition, spec, reason)
        return
    try:
        queue = queue_for(work, partition, spec)
    except PlacementFailed as failure:
        reason = f"failed to place application {spec.application_id}: {failure}"
        reject_application(work, partition, spec, reason)
        return
    reason = gang_refusal(queue, spec)
    if reason is not None:
        reject_application(work, partition, spec, reason)
        clean_if_empty(work, partition, queue)
        return
    fact = f.ApplicationAdded(
        spec=spec, queue=queue.path, serial=partition.next_serial(), at_ns=work.now_ns
    )
    work.record(partition, fact)
    work.accepted_apps.append(spec.application_id)


def reject_application(
    work: Work, partition: Partition, spec: ApplicationSpec, reason: str
) -> None:
    serial = partition.next_serial()
    fact = f.ApplicationRejected(spec=spec, serial=serial, reason=reason, at_ns=work.now_ns)
    work.record(partition, fact)
    arm_history_expiry(work, partition, serial)
    forget_rejected(work, partition)
    work.rejected_apps.append(Rejected(id=spec.application_id, reason=reason))


def remove_application(work: Work, partition: Partition, application_id: str) -> None:
    """Remove everything at once, asks first, so that nothing of it is scheduled again."""
    app = partition.state.applications.get(application_id)
    if app is None:
        return
    for ask in tuple(app.asks.values()):
        if ask.is_open:
            remove_ask(work, partition, app, ask, TerminationType.STOPPED_BY_RM)
    for allocation in tuple(app.allocations.values()):
        remove_allocation(work, partition, app, allocation, TerminationType.STOPPED_BY_RM)
        work.announce_release(
            partition,
            app.id,
            allocation.spec.key,
            allocation.uuid,
            TerminationType.STOPPED_BY_RM,
            f"Application {app.id} Removed",
        )
    cancel_timers(work, partition, app)
    _forget(work, partition, app)


def _forget(work: Work, partition: Partition, app: Application) -> None:
    fact = f.ApplicationRemoved(
        application_id=app.id,
        serial=app.serial,
        queue=app.queue.path,
        at_ns=work.now_ns,
        group=app.counted_in,
    )
    work.record(partition, fact)
    sum_up(work, partition, app)
    clean_if_empty(work, partition, app.queue)


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


def report_crowds(
    work: Work, partition: Partition, observations: tuple[CrowdObservation, ...]
) -> None:
    """Ignore what was seen of a former life, or of an application that was removed."""
    for seen in observations:
        app = partition.state.applications.get(seen.application_id)
        if app is not None and app.serial == seen.serial:
            record_crowd(work, partition, app, seen.crowd, seen.reason)
