"""Releases that the resource manager does not confirm: reported once each, and waited for.

The first release of a partition that is not confirmed arms one timer, which is cancelled when all
are confirmed. What waits for a confirmation holds up nobody else, so nothing is done about it but
to say so.
"""

from yunikorn_actors.machines.context.partition_context import PartitionContext
from yunikorn_actors.machines.context.unit_of_work import UnitOfWork
from yunikorn_actors.machines.machine import CancelTimer, SetTimer
from yunikorn_actors.messages.scheduling import ConfirmationDue
from yunikorn_actors.state import facts as f


def watch_confirmations(unit: UnitOfWork, warning_ns: int) -> None:
    """Arm the timer with the first release that waits, and cancel it after the last."""
    for uuid, application_id in unit.state.unconfirmed.items():
        first = unit.state.applications[application_id].allocations[uuid]
        # Not from now on: long work may have asked for it in an earlier slice.
        _arm(unit, first.asked_back_ns + warning_ns)
        return
    unit.partition.awaits_confirmation = False
    unit.want(CancelTimer(name=_name(unit.partition)))


def watch_anew(unit: UnitOfWork, warning_ns: int) -> None:
    """After a restart the time begins again: the former core may have lost the requests."""
    if unit.state.unconfirmed:
        _arm(unit, unit.now_ns + warning_ns)


def report_unconfirmed(unit: UnitOfWork, warning_ns: int) -> None:
    """Report those whose time is up; the timer is then armed for the next one."""
    unit.partition.awaits_confirmation = False
    for uuid, application_id in tuple(unit.state.unconfirmed.items()):
        allocation = unit.state.applications[application_id].allocations[uuid]
        assert allocation.releasing is not None
        if allocation.asked_back_ns + warning_ns > unit.now_ns:
            return
        unit.record(
            f.ConfirmationMissed(
                application_id=application_id,
                key=allocation.spec.key,
                uuid=uuid,
                type=allocation.releasing,
                asked_back_ns=allocation.asked_back_ns,
                at_ns=unit.now_ns,
            )
        )


def _arm(unit: UnitOfWork, due_ns: int) -> None:
    unit.partition.awaits_confirmation = True
    message = ConfirmationDue(partition=unit.partition.name, epoch=unit.partition.epoch)
    unit.want(SetTimer(name=_name(unit.partition), due_ns=due_ns, message=message))


def _name(partition: PartitionContext) -> str:
    return f"confirm/{partition.name}#{partition.epoch}"
