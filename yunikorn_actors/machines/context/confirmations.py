"""Releases that the resource manager does not confirm: reported once each, and waited for.

The first release of a partition that is not confirmed arms one timer, and the timer goes when all
are confirmed. What waits for a confirmation holds up nobody else, so nothing is done about it but
to say so.
"""

from yunikorn_actors.domain import facts as f
from yunikorn_actors.machines.context.work import Partition, Work
from yunikorn_actors.machines.machine import CancelTimer, SetTimer
from yunikorn_actors.messages.scheduling import ConfirmationDue


def watch_confirmations(work: Work, partition: Partition, warning_ns: int) -> None:
    """Arm the timer with the first release that waits, and cancel it after the last."""
    if partition.state.unconfirmed:
        _arm(work, partition, work.now_ns + warning_ns)
    else:
        partition.awaits_confirmation = False
        work.timers.append(CancelTimer(name=_name(partition)))


def report_unconfirmed(work: Work, partition: Partition, warning_ns: int) -> None:
    """Report those whose time is up, and come back for the next one."""
    partition.awaits_confirmation = False
    for uuid, application_id in tuple(partition.state.unconfirmed.items()):
        allocation = partition.state.applications[application_id].allocations[uuid]
        assert allocation.releasing is not None
        due_ns = allocation.asked_back_ns + warning_ns
        if due_ns > work.now_ns:
            _arm(work, partition, due_ns)
            return
        work.record(
            partition,
            f.ConfirmationMissed(
                application_id=application_id,
                key=allocation.spec.key,
                uuid=uuid,
                type=allocation.releasing,
                asked_back_ns=allocation.asked_back_ns,
                at_ns=work.now_ns,
            ),
        )


def _arm(work: Work, partition: Partition, due_ns: int) -> None:
    partition.awaits_confirmation = True
    message = ConfirmationDue(partition=partition.name, epoch=partition.epoch)
    work.timers.append(SetTimer(name=_name(partition), due_ns=due_ns, message=message))


def _name(partition: Partition) -> str:
    return f"confirm/{partition.name}#{partition.epoch}"
