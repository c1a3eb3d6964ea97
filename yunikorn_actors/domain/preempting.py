"""The books of preemption: what is on its way out, and what its room is for."""

from yunikorn_actors.domain.allocation import Allocation, Reservation
from yunikorn_actors.domain.application import Application
from yunikorn_actors.domain.queue import Queue
from yunikorn_actors.domain.resource import Resource, charge, discharge
from yunikorn_actors.domain.termination import TerminationType

FREES = frozenset({TerminationType.TIMEOUT, TerminationType.PREEMPTED_BY_SCHEDULER})
"""What is asked back for these leaves its room free; a swap does not."""


def leaving_books(app: Application, allocation: Allocation) -> tuple[Resource, ...]:
    """Return the books of what was asked back and frees its room; a swap frees none."""
    match allocation.releasing:
        case TerminationType.PREEMPTED_BY_SCHEDULER:
            return tuple(
                book for level in app.queue.lineage for book in (level.leaving, level.preempting)
            )
        case TerminationType.TIMEOUT:
            return tuple(level.leaving for level in app.queue.lineage)
        case _:
            return ()


def claim(app: Application, reservation: Reservation) -> None:
    """Count room that was preempted for an ask as used, so that nobody else takes it."""
    for level in app.queue.lineage:
        charge(level.claimed, reservation.claim or {})


def give_up_claim(app: Application, reservation: Reservation) -> None:
    for level in app.queue.lineage:
        discharge(level.claimed, reservation.claim or {})


def staying(queue: Queue) -> Resource:
    """Return what a queue will use when all that was asked back is gone."""
    used = dict(queue.allocated)
    discharge(used, queue.leaving)
    return used


def expected(queue: Queue) -> Resource:
    """Return what it will use when those are placed, too, for whom others have to go."""
    used = staying(queue)
    charge(used, queue.claimed)
    return used
