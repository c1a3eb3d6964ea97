"""Releases that the resource manager does not confirm: reported once each, and waited for.

The first release of a partition that is not confirmed arms one timer, which is cancelled when all
are confirmed. What waits for a confirmation holds up nobody else, so nothing is done about it but
to say so.
"""

from yunikorn_actors.machines.context.partition_context import PartitionContext
from yunikorn_actors.machines.context.unit_of_work import Turn
from yunikorn_actors.machines.machine import CancelTimer, SetTimer
from yunikorn_actors.messages.scheduling import ConfirmationDue
from yunikorn_actors.state import facts as f


def watch_confirmations(turn: Turn, warning_ns: int) -> None:
    """Arm the timer with the first release that waits, and cancel it after the last."""
    for uuid, application_id in turn.state.unconfirmed.items():
        first = turn.state.applications[application_id].allocations[uuid]
        # Not from now on: long work may have asked for it in an earlier slice.
        _arm(turn, first.asked_back_ns + warning_ns)
        return
    turn.partition.awaits_confirmation = False
    turn.want(CancelTimer(name=_name(turn.partition)))


def watch_anew(turn: Turn, warning_ns: int) -> None:
    """After a restart the time begins again: the former core may have lost the requests."""
    if turn.state.unconfirmed:
        _arm(turn, turn.now_ns + warning_ns)


def report_unconfirmed(turn: Turn, warning_ns: int) -> None:
    """Report those whose time is up; the timer is then armed for the next one."""
    turn.partition.awaits_confirmation = False
    for uuid, application_id in tuple(turn.state.unconfirmed.items()):
        allocation = turn.state.applications[application_id].allocations[uuid]
        assert allocation.releasing is not None
        if allocation.asked_back_ns + warning_ns > turn.now_ns:
            return
        turn.record(
            f.ConfirmationMissed(
                application_id=application_id,
                key=allocation.spec.key,
                uuid=uuid,
                type=allocation.releasing,
                asked_back_ns=allocation.asked_back_ns,
                at_ns=turn.now_ns,
            )
        )


def _arm(turn: Turn, due_ns: int) -> None:
    turn.partition.awaits_confirmation = True
    message = ConfirmationDue(partition=turn.partition.name, epoch=turn.partition.epoch)
    turn.want(SetTimer(name=_name(turn.partition), due_ns=due_ns, message=message))


def _name(partition: PartitionContext) -> str:
    return f"confirm/{partition.name}#{partition.epoch}"
