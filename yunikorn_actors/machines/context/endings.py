"""How an allocation ends: taken out of all books, or asked back and charged until confirmed.

`remove_allocation` is final. `request_release` only asks: the resource manager has to stop the
program first, and until it confirms nobody else may have the room.
"""

from typing import Final

from yunikorn_actors.machines.context.lifecycle import (
    cancel_allocation_timer,
    stop_placeholder_timer,
)
from yunikorn_actors.machines.context.partition_context import PartitionContext
from yunikorn_actors.machines.context.unit_of_work import UnitOfWork
from yunikorn_actors.machines.machine import CancelTimer, SetTimer
from yunikorn_actors.messages.rm_events import AnnouncedRelease, AskedBack
from yunikorn_actors.messages.scheduling import ConfirmationDue
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import Allocation, Ask
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.values.ids import NO_PROPOSAL

_PREEMPTED: Final = TerminationType.PREEMPTED_BY_SCHEDULER
ENDS_ASK = frozenset({TerminationType.STOPPED_BY_RM, _PREEMPTED})
"""These also end the ask. An allocation that times out or loses its node just ends."""


def remove_allocation(
    unit: UnitOfWork,
    app: Application,
    allocation: Allocation,
    type_: TerminationType,
    given_back: TerminationType | None = None,
) -> None:
    """Take an allocation out of all books, in one fact (R-041, H-12)."""
    if allocation.spec.timeout_ms > 0:
        cancel_allocation_timer(unit, app, allocation.uuid)
    unit.record(
        # Every fact names queue, user and group: the event publisher has no replica to look them up
        # in.
        f.AllocationReleased(
            application_id=app.id,
            queue=app.queue.path,
            user=app.spec.user,
            group=app.group,
            key=allocation.spec.key,
            uuid=allocation.uuid,
            node_id=allocation.node_id,
            resource=allocation.resource,
            type=type_,
            at_ns=unit.now_ns,
            given_back=given_back,
            placeholder=allocation.spec.placeholder,
            # So that the resource manager is told that the ask is done, where its last allocation
            # ends by a wish. What waits or is parked keeps the ask.
            with_ask=type_ in ENDS_ASK and _is_last(app.asks[allocation.spec.key]),
        )
    )
    if allocation.spec.placeholder:
        # The last placeholder may be the one that has gone: then nothing is left to time out
        # (H-22).
        stop_placeholder_timer(unit, app)


def _is_last(ask: Ask) -> bool:
    """What was asked back before has been announced already."""
    return len(ask.uuids) == 1 and not ask.is_open and ask.taken >= ask.spec.max_allocations


# One way for timeout, preemption and swap: so one mark, `releasing`, keeps a second reason out
# (R-016, G13).
def request_release(
    unit: UnitOfWork,
    allocation: Allocation,
    type_: TerminationType,
    message: str,
    proposal_id: int = NO_PROPOSAL,
) -> None:
    """Ask the resource manager to end an allocation; it stays charged until that is confirmed."""
    # Asked back once: a second request would have a second type, and the answer could be either.
    if not allocation.may_be_released:
        return
    unit.record(
        f.ReleaseRequested(
            application_id=allocation.spec.application_id,
            key=allocation.spec.key,
            uuid=allocation.uuid,
            type=type_,
            message=message,
            at_ns=unit.now_ns,
            proposal_id=proposal_id,
            # Kept with the allocation: its queue may be given another grace while the victim ends.
            grace_ns=_grace_ns(unit, allocation) if type_ is _PREEMPTED else 0,
        )
    )
    ask_back(unit, allocation, message, type_)


def ask_back(
    unit: UnitOfWork, allocation: Allocation, message: str, type_: TerminationType
) -> None:
    """Ask the resource manager to give an allocation back, for the first time or again.

    An allocation that is awaited after a restart is asked back with its report: a manager to which
    it was never announced would confirm nothing.
    """
    if unit.partition.awaits(allocation.uuid):
        return
    # Asked again after a restart, a victim gets what is left of its grace and not all of it.
    left_ns = allocation.asked_back_ns + allocation.grace_ns - unit.now_ns
    grace_ms = max(0, left_ns) // 1_000_000
    if grace_ms:
        message = f"{message}; it has {grace_ms / 1000:g} s to end"
    unit.announce(
        AskedBack(
            partition=unit.partition.name,
            application_id=allocation.spec.application_id,
            uuid=allocation.uuid,
            key=allocation.spec.key,
            type=type_,
            message=message,
            grace_ms=grace_ms,
        )
    )


def _grace_ns(unit: UnitOfWork, victim: Allocation) -> int:
    app = unit.state.applications[victim.spec.application_id]
    return app.queue.properties.preemption_grace_ns


def announce_end(unit: UnitOfWork, allocation: Allocation, message: str) -> None:
    """Announce that an allocation ends, as a rule because its resource manager decided so."""
    unit.announce(
        AnnouncedRelease(
            partition=unit.partition.name,
            application_id=allocation.spec.application_id,
            uuid=allocation.uuid,
            key=allocation.spec.key,
            type=TerminationType.STOPPED_BY_RM,
            message=message,
        )
    )


# Releases that the resource manager does not confirm: each is reported once, and still awaited.
#
# The first release of a partition that waits for its confirmation arms one timer; when all are
# confirmed it is cancelled. A release that waits holds up nobody else, so reporting it is all
# that is done.


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
