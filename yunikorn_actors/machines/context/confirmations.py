"""Releases that the resource manager does not confirm: each is reported once, and still awaited.

The first release of a partition that waits for its confirmation arms one timer; when all are
confirmed it is cancelled. A release that waits holds up nobody else, so reporting it is all that is
done.
"""

from yunikorn_actors.machines.context.partition_context import PartitionContext
from yunikorn_actors.machines.context.unit_of_work import UnitOfWork
from yunikorn_actors.machines.machine import CancelTimer, SetTimer
from yunikorn_actors.messages.scheduling import ConfirmationDue
from yunikorn_actors.state import facts as f


def watch_confirmations(unit: UnitOfWork, warning_ns: int) -> None:
    """Arm the timer for the first release that waits; cancel it when none does."""
    # The oldest first, as they were asked back in this order: one timer is enough for all of them.
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
    # Set to False first: `_settle` arms the timer anew for what still waits.
    unit.partition.awaits_confirmation = False
    for uuid, application_id in tuple(unit.state.unconfirmed.items()):
        allocation = unit.state.applications[application_id].allocations[uuid]
        # `unconfirmed` holds only what was asked back, so there is a reason.
        assert allocation.releasing is not None
        if allocation.asked_back_ns + warning_ns > unit.now_ns:
            # They are in the order of their times: the rest is younger.
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


# One timer a partition: the epoch keeps a firing for a former life apart.
def _name(partition: PartitionContext) -> str:
    return f"confirm/{partition.name}#{partition.epoch}"
