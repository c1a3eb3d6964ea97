"""The books of preemption: what is on its way out, and what its room is for."""

from collections.abc import Iterator

from yunikorn_actors.domain.allocation import Allocation, Reservation
from yunikorn_actors.domain.application import Application
from yunikorn_actors.domain.node import Node
from yunikorn_actors.domain.queue import Queue
from yunikorn_actors.domain.resource import Resource, charge, discharge
from yunikorn_actors.domain.termination import TerminationType


def leaving_books(app: Application, allocation: Allocation) -> tuple[Resource, ...]:
    """Return the books of what was asked back and frees its room; a swap frees none."""
    if not allocation.comes_free:
        return ()
    books = tuple(level.leaving for level in app.queue.lineage)
    if allocation.releasing is TerminationType.PREEMPTED_BY_SCHEDULER:
        books += tuple(level.preempting for level in app.queue.lineage)
    return books


def book_earmark(app: Application, node: Node, reservation: Reservation) -> None:
    """Count room that was promised to one more repeat as used, so that nobody else takes it."""
    for book in (node.promised, *(level.earmarked for level in app.queue.lineage)):
        charge(book, reservation.earmark or {})


def give_up_earmark(app: Application, node: Node, reservation: Reservation) -> None:
    for book in (node.promised, *(level.earmarked for level in app.queue.lineage)):
        discharge(book, reservation.earmark or {})


def on_its_way(node: Node) -> Iterator[Resource]:
    """Yield what comes free on a node when all that was asked back there is gone."""
    for allocation in node.allocations.values():
        if allocation.frees_node:
            yield allocation.resource


def is_overpromised(node: Node) -> bool:
    """Whether less is there, or on its way, than its earmarks promise (G18)."""
    if not any(node.promised.values()):
        return False
    room = dict(node.available)
    for amount in on_its_way(node):
        charge(room, amount)
    return any(0 < quantity > room.get(kind, 0) for kind, quantity in node.promised.items())


def staying(queue: Queue) -> Resource:
    """Return what a queue will use when all that was asked back is gone."""
    used = dict(queue.allocated)
    discharge(used, queue.leaving)
    return used


def expected(queue: Queue) -> Resource:
    """Return what it will use when those are placed, too, for whom others have to go."""
    used = staying(queue)
    charge(used, queue.earmarked)
    return used
