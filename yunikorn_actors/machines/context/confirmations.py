"""Releases that the resource manager does not confirm: reported once each, and waited for.

The first release of a partition that is not confirmed arms one timer, which is cancelled when all
are confirmed. What waits for a confirmation holds up nobody else, so nothing is done about it but
to say so.
"""

from yunikorn_actors.domain import facts as f
from yunikorn_actors.machines.context.partition_context import PartitionContext
from yunikorn_actors.machines.context.turn import Turn
from yunikorn_actors.machines.machine import CancelTimer, SetTimer
from yunikorn_actors.messages.scheduling import ConfirmationDue


def watch_confirmations(turn: Turn, warning_ns: int) -> None:
    """Arm the timer with the first release that waits, and cancel it after the last."""
    if turn.state.unconfirmed:
        _arm(turn, turn.now_ns + warning_ns)
    else:
        turn.partition.awaits_confirmation = False
        turn.want(CancelTimer(name=_name(turn.partition)))


def report_unconfirmed(turn: Turn, warning_ns: int) -> None:
    """Report those whose time is up, and come back for the next one."""
    turn.partition.awaits_confirmation = False
    for uuid, application_id in tuple(turn.state.unconfirmed.items()):
        allocation = turn.state.applications[application_id].allocations[uuid]
        assert allocation.releasing is not None
        due_ns = allocation.asked_back_ns + warning_ns
        if due_ns > turn.now_ns:
            _arm(turn, due_ns)
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
