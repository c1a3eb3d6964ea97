"""Facts about asks, and about the nodes that are kept for them."""

from collections.abc import Iterable, Iterator
from typing import ClassVar

from msgspec.structs import replace

from yunikorn_actors.state.allocations import Ask, AskSpec, Reservation, WaitingState
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.facts.fact import (
    Base,
    Incident,
    IncidentKind,
    ask_in_words,
    in_amounts,
    in_list,
    repeats_of,
)
from yunikorn_actors.state.gangs import count_placeholders, forget_complete_gang
from yunikorn_actors.state.gates import GateKind
from yunikorn_actors.state.ledger import count_holding, strike, waiting, write
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.preemption import (
    book_earmark,
    give_up_earmark,
    going_for,
    reserve,
    resize_reservation,
    secure_free_room,
    unreserve,
    victims_going,
    without_one,
)
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.values.ids import NO_PROPOSAL
from yunikorn_actors.values.resource import Resource, charge

__all__ = [
    "AskAdded",
    "AskFact",
    "AskRefused",
    "AskRemoved",
    "AskReplaced",
    "AskReported",
    "AskShortageChanged",
    "AsksAdded",
    "ReservationDropped",
    "ReservationFact",
    "ReservationMade",
]


class AskAdded(Base, frozen=True, kw_only=True):
    spec: AskSpec
    created_ns: int
    sequence: int
    at_ns: int

    def change(self, state: PartitionState) -> None:
        spec = self.spec
        app = state.applications[spec.application_id]
        # An application is as old as its oldest ask.
        app.submitted_ns = min(app.submitted_ns, self.created_ns)
        app.asks[spec.key] = Ask(
            spec=spec,
            created_ns=self.created_ns,
            sequence=self.sequence,
            remaining=spec.max_allocations,
        )
        _wait(app, spec, spec.max_allocations)
        if spec.placeholder:
            count_placeholders(app, spec, spec.max_allocations)

    def in_words(self) -> str:
        return ask_in_words(self.spec)


class AsksAdded(Base, frozen=True, kw_only=True):
    """A run: asks of one application that came one right after the other, of one size."""

    application_id: str
    specs: tuple[AskSpec, ...]
    first_sequence: int
    """Of the first; each has the next one."""
    at_ns: int

    @property
    def count(self) -> int:
        return len(self.specs)

    def created_ns(self, spec: AskSpec) -> int:
        return self.at_ns if spec.created_ns is None else spec.created_ns

    def parts(self) -> Iterator[AskAdded]:
        """Say it one by one."""
        for sequence, spec in enumerate(self.specs, self.first_sequence):
            yield AskAdded(
                spec=spec,
                created_ns=self.created_ns(spec),
                sequence=sequence,
                at_ns=self.at_ns,
            )

    def change(self, state: PartitionState) -> None:
        """What `AskAdded` changes, for each of a run; books are written once."""
        # A run counts as its parts, of which one is counted already.
        state.revision += self.count - 1
        app = state.applications[self.application_id]
        asks, repeats = app.asks, 0
        for sequence, spec in enumerate(self.specs, self.first_sequence):
            created_ns = self.created_ns(spec)
            app.submitted_ns = min(app.submitted_ns, created_ns)
            asks[spec.key] = Ask(
                spec=spec, created_ns=created_ns, sequence=sequence, remaining=spec.max_allocations
            )
            if spec.placeholder:
                count_placeholders(app, spec, spec.max_allocations)
            repeats += spec.max_allocations
        _wait(app, self.specs[0], repeats)

    def in_words(self) -> str:
        size = in_amounts(self.specs[0].resource) if self.specs else ""
        keys = in_list("", (f"{spec.key}{repeats_of(spec)}" for spec in self.specs))
        return f"{len(self.specs)} of {self.application_id} {size} each:{keys}"


class AskReplaced(Base, frozen=True, kw_only=True):
    """Sent again under its key: every field is new but the creation time."""

    spec: AskSpec
    at_ns: int

    def change(self, state: PartitionState) -> None:
        app = state.applications[self.spec.application_id]
        ask = app.asks[self.spec.key]
        # Taken out as it was and put back as it is now: repeats and size may both change.
        _wait(app, ask.spec, -ask.remaining)
        count_placeholders(app, ask.spec, -ask.remaining)
        # What swaps hold elsewhere, and what reservations were promised, follow the new size
        # (H-15).
        resize_incoming(state, app, self.spec)
        for node_id in dict.fromkeys(ask.reserved):
            resize_reservation(app, state.nodes[node_id], self.spec.key, self.spec.resource)
        ask.spec = self.spec
        # Decided repeats stay decided.
        ask.remaining = self.spec.max_allocations - ask.taken - ask.parked
        _wait(app, ask.spec, ask.remaining)
        count_placeholders(app, ask.spec, ask.remaining)

    def in_words(self) -> str:
        return ask_in_words(self.spec)


class AskRemoved(Base, frozen=True, kw_only=True):
    """What still waited of the ask is gone; its allocations live on."""

    application_id: str
    key: str
    resource: Resource
    type: TerminationType
    at_ns: int

    def change(self, state: PartitionState) -> None:
        app = state.applications[self.application_id]
        ask = app.asks[self.key]
        _wait(app, ask.spec, -ask.remaining)
        if ask.spec.placeholder:
            # A placeholder that never came counts as timed out (G17).
            app.task_groups[ask.spec.task_group].timed_out += ask.remaining
            if app.is_admitted:
                # It will not come, so nobody waits for its room any more.
                charge(app.placed, waiting(ask.spec, ask.remaining))
                forget_complete_gang(state, app)
        ask.remaining = 0
        # If it is sent again while work of it runs, what it lacks then is news.
        ask.shortage = GateKind.NONE
        if ask.is_over:
            del app.asks[self.key]

    def in_words(self) -> str:
        return f"{self.application_id} {self.key} {self.type.name}"

    def incidents(self) -> Iterable[Incident]:
        if self.type is TerminationType.TIMEOUT:
            what = "asks were withdrawn: their time was over"
            yield Incident(IncidentKind.TIMEOUT, self.application_id, what, self.key)


class AskReported(Base, frozen=True, kw_only=True):
    """The resource manager is notified how an ask that waits is doing."""

    is_record: ClassVar[bool] = True
    application_id: str
    key: str
    state: WaitingState
    reason: str
    at_ns: int
    of_shortage: bool = False
    """That has a fact of its own."""

    def change(self, state: PartitionState) -> None:
        state.applications[self.application_id].asks[self.key].reported = self.state

    def in_words(self) -> str:
        return f"{self.application_id} {self.key} {self.state.value}"


class AskShortageChanged(Base, frozen=True, kw_only=True):
    """What is left for an ask is too little, or was and is not any more."""

    is_record: ClassVar[bool] = True
    application_id: str
    key: str
    queue: str
    old_shortage: GateKind
    shortage: GateKind
    resource: Resource
    available: Resource
    at_ns: int

    def change(self, state: PartitionState) -> None:
        state.applications[self.application_id].asks[self.key].shortage = self.shortage

    def in_words(self) -> str:
        return f"{self.key}: {self.shortage.value or 'none'}"


class AskRefused(Base, frozen=True, kw_only=True):
    """The resource manager has refused every node that has room for the ask."""

    is_record: ClassVar[bool] = True
    application_id: str
    key: str
    refusals: dict[str, int]
    """The reasons, and of how many nodes."""
    at_ns: int

    def change(self, state: PartitionState) -> None:
        state.applications[self.application_id].asks[self.key].refused_ns = self.at_ns

    def incidents(self) -> Iterable[Incident]:
        for reason in sorted(self.refusals):
            what = f"its resource manager refuses every node with room: {reason}"
            yield Incident(IncidentKind.REFUSED, self.application_id, what, self.key)


AskFact = (
    AskAdded | AsksAdded | AskReplaced | AskRemoved | AskReported | AskShortageChanged | AskRefused
)


def _wait(app: Application, spec: AskSpec, repeats: int) -> None:
    """Let `repeats` more wait, or fewer if it is negative."""
    # Nearly every ask is for one.
    if repeats == 1:
        write(app.pending_books, spec.resource)
    elif repeats >= 0:
        write(app.pending_books, waiting(spec, repeats))
    else:
        strike(app.pending_books, waiting(spec, -repeats))
    if spec.placeholder:
        app.waiting_placeholders += repeats


def resize_incoming(state: PartitionState, app: Application, spec: AskSpec) -> None:
    """What a parked ask holds on another node follows its size."""
    for swap in app.swaps.values():
        if swap.key == spec.key and swap.crosses:
            node = state.nodes[swap.node_id]
            incoming = node.incoming[swap.placeholder]
            node.let_out(swap.placeholder)
            node.take_in(swap.placeholder, replace(incoming, resource=spec.resource))


class ReservationMade(Base, frozen=True, kw_only=True):
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
        # At the end: the oldest reservations are used and given up first.
        ask.reserved = (*ask.reserved, self.node_id)
        ask.reported = WaitingState.RESERVED
        node = state.nodes[self.node_id]
        holder = (app.id, self.key)
        had = node.reservations.get(holder)
        # Victims that still go for a former reservation of this ask: their room was given up with
        # it.
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
        # One entry a repeat: several repeats may have earmarks on one node.
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
