"""How an allocation ends: taken out of all books, or asked back and charged until confirmed.

`remove_allocation` is final. `request_release` only asks: the resource manager has to stop the
program first, and until it confirms nobody else may have the room.
"""

from typing import Final

from yunikorn_actors.machines.context.lifecycle import (
    cancel_allocation_timer,
    stop_placeholder_timer,
)
from yunikorn_actors.machines.context.unit_of_work import UnitOfWork
from yunikorn_actors.messages.rm_events import AnnouncedRelease, AskedBack
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
