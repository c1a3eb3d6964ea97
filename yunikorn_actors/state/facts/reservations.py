"""Which nodes are kept for which asks."""

from typing import ClassVar

from yunikorn_actors.state.allocations import Reservation, WaitingState
from yunikorn_actors.state.facts.fact import Base, Touch, a_place
from yunikorn_actors.state.ledger import count_holding
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.preemption import (
    book_earmark,
    give_up_earmark,
    going_for,
    reserve,
    secure_free_room,
    unreserve,
    victims_going,
    without_one,
)
from yunikorn_actors.values.ids import NO_PROPOSAL
from yunikorn_actors.values.resource import Resource

__all__ = [
    "ReservationDropped",
    "ReservationFact",
    "ReservationMade",
]


class ReservationMade(Base, frozen=True, kw_only=True):
    touches: ClassVar[Touch] = a_place
    application_id: str
    key: str
    node_id: str
    required: bool
    resource: Resource
    """Of the repeat that the node is kept for."""
    by_preemption: bool = False
    """Others have to go for it: the room counts as used from now on."""
    at_ns: int
    proposal_id: int = NO_PROPOSAL

    def change(self, state: PartitionState) -> None:
        app = state.applications[self.application_id]
        ask = app.asks[self.key]
        ask.reserved = (*ask.reserved, self.node_id)
        ask.reported = WaitingState.RESERVED
        node = state.nodes[self.node_id]
        holder = (app.id, self.key)
        had = node.reservations.get(holder)
        gave_up = victims_going(node, holder) if self.required and had is None else ()
        reservation = Reservation(
            application_id=self.application_id,
            key=self.key,
            node_id=self.node_id,
            required=self.required,
            made_ns=self.at_ns,
            earmark=ask.spec.resource if self.by_preemption else None,
            repeats=1 if had is None else had.repeats + 1,
            secured={} if had is None else had.secured,
            former=gave_up if had is None else had.former,
        )
        reserve(node, reservation)
        if self.by_preemption:
            secure_free_room(node, holder, reservation.promised, going_for(node, holder))
        state.reservation_count += 1
        app.reservation_count += 1
        count_holding(app)
        book_earmark(app, node, reservation.earmark or {})


class ReservationDropped(Base, frozen=True, kw_only=True):
    touches: ClassVar[Touch] = a_place
    application_id: str
    key: str
    node_id: str
    reason: str
    resource: Resource
    at_ns: int
    proposal_id: int = NO_PROPOSAL

    def change(self, state: PartitionState) -> None:
        app = state.applications[self.application_id]
        ask = app.asks[self.key]
        place = ask.reserved.index(self.node_id)
        ask.reserved = (*ask.reserved[:place], *ask.reserved[place + 1 :])
        if ask.reported is WaitingState.RESERVED and not ask.reserved:
            ask.reported = WaitingState.UNREPORTED
        node = state.nodes[self.node_id]
        kept = node.reservations[app.id, self.key]
        if kept.repeats > 1:
            reserve(node, without_one(kept, kept.earmark or {}))
        else:
            unreserve(node, (app.id, self.key))
        give_up_earmark(app, node, kept.earmark or {})
        state.reservation_count -= 1
        app.reservation_count -= 1
        count_holding(app)


ReservationFact = ReservationMade | ReservationDropped
