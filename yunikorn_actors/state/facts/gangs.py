"""Facts about gangs: their admission, and the asks that are parked for swaps."""

from collections.abc import Iterable
from typing import ClassVar

from yunikorn_actors.state.applications import Application, Incoming, Swap
from yunikorn_actors.state.facts.fact import (
    Base,
    Incident,
    IncidentKind,
    in_amounts,
)
from yunikorn_actors.state.gangs import forget_gang
from yunikorn_actors.state.ledger import strike, write
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.preemption import leaving_books
from yunikorn_actors.values.devices import Devices
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.values.ids import NO_PROPOSAL
from yunikorn_actors.values.resource import Resource, discharge

__all__ = [
    "AskParked",
    "AskUnparked",
    "GangAdmitted",
    "GangFact",
    "GangLapsed",
    "PlaceholderCancelled",
]


class GangAdmitted(Base, frozen=True, kw_only=True):
    """There is room for the whole gang: from here on its placeholders are placed."""

    application_id: str
    serial: int
    queue: str
    commitment: Resource
    """What is still to be placed; it counts as used when another gang is admitted."""
    at_ns: int
    proposal_id: int = NO_PROPOSAL
    claims: bool = False
    """Its queue is guaranteed the room, and others go for it: that is decided with it."""

    def change(self, state: PartitionState) -> None:
        app = state.applications[self.application_id]
        app.is_admitted = True
        app.lapsed_ns = 0
        # From here on its commitment counts against the admission of others.
        state.admitted[app.serial] = app.id

    def in_words(self) -> str:
        return f"{self.application_id} has {in_amounts(self.commitment)} to come"


class GangLapsed(Base, frozen=True, kw_only=True):
    """An admitted gang had no placeholder for too long: it awaits admission anew, behind others."""

    application_id: str
    serial: int
    queue: str
    commitment: Resource
    """What was still to be placed; it counts as used no longer."""
    waited_ns: int
    """How long it had none."""
    at_ns: int

    def change(self, state: PartitionState) -> None:
        """Put the gang back to before its admission; other gangs come first from now on."""
        app = state.applications[self.application_id]
        forget_gang(state, app)
        app.is_admitted = False
        app.lapsed_ns = self.at_ns

    def in_words(self) -> str:
        return f"{self.application_id} had {in_amounts(self.commitment)} to come"

    def incidents(self) -> Iterable[Incident]:
        waited_s = self.waited_ns // SECOND
        what = f"its gang had no placeholder for {waited_s} s and awaits admission anew"
        yield Incident(IncidentKind.TIMEOUT, self.application_id, what)


class AskParked(Base, frozen=True, kw_only=True):
    """One repeat of a real ask waits for the end of its placeholder, neither pending nor charged.

    Only another node than the placeholder's is charged at once.
    """

    application_id: str
    key: str
    resource: Resource
    placeholder: str
    """UUID of the placeholder, whose release has been asked for."""
    node_id: str
    crosses: bool
    at_ns: int
    proposal_id: int = NO_PROPOSAL
    devices: Devices = ()
    """Those that it holds on another node; on its placeholder's it gets that one's."""

    def change(self, state: PartitionState) -> None:
        app = state.applications[self.application_id]
        ask = app.asks[self.key]
        ask.remaining -= 1
        ask.parked += 1
        strike(app.pending_books, self.resource)
        app.swaps[self.placeholder] = Swap(
            placeholder=self.placeholder, key=self.key, node_id=self.node_id, crosses=self.crosses
        )
        # Only another node is charged at once (G05): queues keep the placeholder's charge until the
        # swap ends.
        if self.crosses:
            incoming = Incoming(application_id=app.id, resource=self.resource, devices=self.devices)
            state.nodes[self.node_id].take_in(self.placeholder, incoming)
            # The placeholder's room here is needed no more, but nobody else may plan with it before
            # it is free.
            app.allocations[self.placeholder].is_moving = True

    def in_words(self) -> str:
        return f"{self.application_id} {self.key} parked for {self.placeholder} on {self.node_id}"


class AskUnparked(Base, frozen=True, kw_only=True):
    """The swap is off: the repeat waits again, the placeholder ends without it."""

    application_id: str
    key: str
    resource: Resource
    placeholder: str
    node_id: str
    crosses: bool
    reason: str
    at_ns: int
    frees: bool = False
    """Nobody takes the placeholder's room over. If not, it is for this ask, which lost nothing but
    the node that it was to move to."""

    def change(self, state: PartitionState) -> None:
        app = state.applications[self.application_id]
        swap = app.swaps.pop(self.placeholder)
        ask = app.asks[swap.key]
        ask.remaining += 1
        ask.parked -= 1
        write(app.pending_books, self.resource)
        if swap.crosses:
            state.nodes[swap.node_id].let_out(self.placeholder)
        placeholder = app.allocations[self.placeholder]
        placeholder.is_moving = False
        # Nobody takes its room over: it counts as leaving from now on.
        if self.frees:
            placeholder.is_left_over = True
            write(leaving_books(app, placeholder), placeholder.resource)
        elif self.crosses:
            # It lost its target node and nothing else, so it is tried first when the placeholder is
            # gone.
            _owe(app, swap)

    def in_words(self) -> str:
        ask = f"{self.application_id} {self.key}"
        return f"{ask} no longer parked for {self.placeholder}: {self.reason}"


class PlaceholderCancelled(Base, frozen=True, kw_only=True):
    """A member has come that is larger than its placeholder, which is given up."""

    is_record: ClassVar[bool] = True
    application_id: str
    task_group: str
    key: str
    resource: Resource
    placeholder: str
    placeholder_key: str
    placeholder_resource: Resource
    at_ns: int

    def change(self, state: PartitionState) -> None:
        """The release that follows changes the books; the gang still needs the larger member.

        That release counts what it frees as spared, as for any placeholder that was not needed.
        """
        discharge(state.applications[self.application_id].spared, self.placeholder_resource)

    def in_words(self) -> str:
        return f"{self.placeholder} for {self.key}"


GangFact = GangAdmitted | GangLapsed | AskParked | AskUnparked | PlaceholderCancelled


def _owe(app: Application, swap: Swap) -> None:
    """Remember for which ask the placeholder ends, and forget asks that are done."""
    is_open = {key for key, ask in app.asks.items() if ask.is_open}
    app.owed = {uuid: key for uuid, key in app.owed.items() if key in is_open}
    app.owed[swap.placeholder] = swap.key
