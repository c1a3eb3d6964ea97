"""Read sides of a run: one follows from the beginning, one begins late, again and again.

What they know and answer is compared with the truth, which is looked at here after every message
and never by what the read side has worked out.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from yunikorn_actors.checks.equality import are_alike
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.lab.harness import LabSimulator, Oracle, World
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces.answers_check import wrong_answers
from yunikorn_actors.lab.surfaces.first_difference import differing
from yunikorn_actors.lab.surfaces.polled_counts import Seen
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.events import EventPublisher
from yunikorn_actors.machines.machine import Effect, InvariantViolation, Machine, Send
from yunikorn_actors.messages.base import (
    CONTEXT,
    EVENT_PUBLISHER,
    Delivery,
    Message,
    follower_address,
    reply_address,
)
from yunikorn_actors.messages.followers import (
    FollowEnded,
    FollowRequested,
    HistoryRequested,
    ManagerDescribed,
    ManagerLeft,
)
from yunikorn_actors.messages.rm_events import RMUpdateAllocation, RMUpdateNode
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.service.cluster.cluster_follower import Managers
from yunikorn_actors.service.read.read_model import ReadSide
from yunikorn_actors.service.read.replica import GapInFacts
from yunikorn_actors.state.dump import snapshot

Told = tuple[ReadSide, Message]


class FedReadSides:
    """Read sides that a run feeds as its core would.

    Context sends them what it sends to any follower; it is taken from the effects, so no message
    more is under way and the order stays what the schedule chose.
    """

    def __init__(self) -> None:
        self.context: Context | None = None
        """The one that they follow."""
        self.sides: dict[str, ReadSide] = {}
        """By their addresses."""

    def leave(self) -> None:
        self.context = None

    def begin(self, simulator: LabSimulator) -> bool:
        """Follow the Context that there is now; False where that has to wait."""
        if (CONTEXT, EVENT_PUBLISHER) in simulator.channels:
            # The records that the event publisher has end where the next facts begin.
            return False
        context = simulator.machines[CONTEXT]
        assert isinstance(context, Context)
        self.context = context
        self.sides.clear()
        return True

    def follow(self, simulator: LabSimulator, address: str) -> list[Told]:
        """Have Context tell how everything stands, and the event publisher what there was."""
        assert self.context is not None
        publisher = simulator.machines.get(EVENT_PUBLISHER)
        if publisher is None or (CONTEXT, EVENT_PUBLISHER) in simulator.channels:
            return []
        if address in self.sides:
            self.context.handle(FollowEnded(follower=address), simulator.now_ns)
        settings = simulator.topology.settings
        side = ReadSide(settings=settings, instance="lab", start_ns=simulator.now_ns)
        self.sides[address] = side
        simulator.overheard[address] = None
        asked = FollowRequested(follower=address, reply_to=reply_address(0))
        history = HistoryRequested(follower=address)
        stand = self.context.handle(asked, simulator.now_ns)
        return self.tell([*stand, *publisher.handle(history, simulator.now_ns)], simulator.now_ns)

    def tell(self, effects: Iterable[Effect], now_ns: int) -> list[Told]:
        """Hand on what is sent to read sides, and return what they have taken."""
        told: list[Told] = []
        for effect in effects:
            if isinstance(effect, Send) and effect.to in self.sides:
                side = self.sides[effect.to]
                side.handle(effect.message, now_ns)
                told.append((side, effect.message))
        return told


_LOOKS: Final = (2, 8, 32)
"""One rest in so many is a moment at which all is compared."""
_RENEWED: Final = 3
"""One look in so many ends the late read side, and another begins."""
_FIRST, _LATE = follower_address(0), follower_address(-1)
"""No follower of a core has these."""
_RECORDS_MAX: Final = 1_000
_TWICE: Final = 20
"""One message in so many comes twice."""


class ReadAlong(Oracle):
    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._often = draw.one_of(_LOOKS)
        self._fed = FedReadSides()
        self._publisher: Machine | None = None
        self._is_whole = True
        """Whether the event publisher is the first one: what waits for one that fails is lost."""
        self._seen = Seen()
        self._compared: dict[str, tuple[ReadSide, int]] = {}
        """By address, the number of the event record behind the last one that was compared."""

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        assert isinstance(simulator, LabSimulator)
        if simulator.has_begun_again:
            # Why asks wait that waited before that, no read side of this core was notified of.
            self._fed.leave()
            return
        if delivery.mailbox == CONTEXT and delivery is simulator.last:
            self._receive(simulator)
        if self._fed.context is not simulator.machines[CONTEXT]:
            self._begin(simulator)
        elif simulator.is_at_rest and not self._draw.number(self._often):
            self._look(simulator, f"after {type(delivery.message).__name__}")
            if not self._draw.number(_RENEWED):
                self._follow(simulator, _LATE)

    def at_rest(self, world: World) -> None:
        self._look_around(world.simulator, "at rest")

    def drained(self, world: World) -> None:
        self._look_around(world.simulator, "in the end")

    def _look_around(self, simulator: LabSimulator, when: str) -> None:
        if self._fed.context is not None:
            self._compared.clear()
            self._look(simulator, when)
            self._follow(simulator, _LATE)
            self._look(simulator, f"{when}, where it begins then")

    # -- following

    def _begin(self, simulator: LabSimulator) -> None:
        if self._fed.begin(simulator):
            self._publisher = simulator.machines.get(EVENT_PUBLISHER)
            self._seen = Seen()
            assert self._fed.context is not None
            self._seen.begin(self._fed.context, simulator.now_ns)
            self._follow(simulator, _FIRST)

    def _follow(self, simulator: LabSimulator, address: str) -> None:
        self._tell_some_again(self._fed.follow(simulator, address), simulator.now_ns)

    def _receive(self, simulator: LabSimulator) -> None:
        context = self._fed.context
        if context is not None and context is simulator.machines[CONTEXT]:
            told = self._fed.tell(simulator.effects, simulator.now_ns)
            self._tell_some_again(told, simulator.now_ns)
            one = len(simulator.taken) == 1 and not _ends_what_it_brings(simulator.taken[0])
            self._seen.look(context, simulator.now_ns, is_one=one)

    def _tell_some_again(self, told: list[Told], now_ns: int) -> None:
        for side, message in told:
            if isinstance(message, FactsAppended) and not self._draw.number(_TWICE):
                # A partition may have ended and begun anew in one step of Context. Nothing of its
                # former life comes behind that: there is one channel.
                book = side.books.get(message.partition)
                if book is not None and book.epoch == message.epoch:
                    _tell_again(side, message, now_ns)

    # -- comparing

    def _look(self, simulator: LabSimulator, when: str) -> None:
        context = self._fed.context
        assert context is not None
        for address, side in self._fed.sides.items():
            side.catch_up(simulator.now_ns)
            name = "read side" if address == _FIRST else "late read side"
            faults = [*self._differences(side, context)]
            faults += self._of_records(simulator.machines.get(EVENT_PUBLISHER), address, side)
            if address == _FIRST and not faults:
                self._seen.catch_up(simulator.now_ns)
                faults = [*self._seen.differences(side, context)]
            if faults:
                raise InvariantViolation(f"{name} {when}: " + "; ".join(faults))

    def _differences(self, side: ReadSide, context: Context) -> Iterator[str]:
        known = {name: book.epoch for name, book in side.books.items()}
        if known != {name: it.epoch for name, it in context.partitions.items()}:
            yield f"it has the partitions {known}"
            return
        managers = [it.registration.rm_id for it in context.registered.managers]
        if sorted(side.managers) != sorted(managers):
            yield f"it has the resource managers {[*side.managers]}, expected {managers}"
        for name, partition in context.partitions.items():
            replica = side.books[name].state
            if not are_alike(partition.state, replica):
                found = differing(snapshot(replica), snapshot(partition.state))
                if found:
                    yield f"of {name} it has {found}"
                    return
            yield from wrong_answers(side.books[name], partition.state)
        for described in side.managers.values():
            yield from _wrong_together(described)

    def _of_records(self, publisher: Machine | None, address: str, side: ReadSide) -> Iterator[str]:
        """Compare those that have come since; all of them at the end."""
        self._is_whole = self._is_whole and publisher is self._publisher
        if not self._is_whole:
            return
        assert isinstance(publisher, EventPublisher)
        ring, theirs = publisher.ring, side.events.ring
        if ring.next_id != theirs.next_id:
            yield f"it has {theirs.next_id} event records, and the core {ring.next_id}"
            return
        known, behind = self._compared.get(address, (None, 0))
        first = max(ring.lowest_id, theirs.lowest_id, ring.next_id - _RECORDS_MAX)
        first = max(first, behind if known is side else 0)
        if ring.read(first, _RECORDS_MAX) != theirs.read(first, _RECORDS_MAX):
            yield "its event records are others than those of the core"
        self._compared[address] = side, ring.next_id


def _ends_what_it_brings(message: Message) -> bool:
    """Whether what comes with it may go with it, or what goes may come again."""
    match message:
        case RMUpdateAllocation():
            return bool(message.asks and (message.releases or message.ask_releases))
        case RMUpdateNode():
            return len(message.nodes) > 1 and any(it.allocations for it in message.nodes)
        case _:
            return False


def _tell_again(side: ReadSide, message: FactsAppended, now_ns: int) -> None:
    book = side.books.get(message.partition)
    if book is None or book.epoch != message.epoch:
        # Another life has begun behind it: none of the former one comes then.
        return
    with suppress(GapInFacts):
        side.handle(message, now_ns)
        raise InvariantViolation(f"read side: it takes facts of {message.partition} twice")


def _wrong_together(whole: ManagerDescribed) -> Iterator[str]:
    """Describe it as the cores of a cluster would, each with one of its partitions."""
    parts = whole.config.partitions
    managers, told = Managers([it.name for it in parts]), None
    for part in parts:
        one = replace(whole, config=replace(whole.config, partitions=(part,)))
        told = managers.described(part.name, one)
    if parts and told != whole:
        yield f"of several cores {whole.rm_id} is described otherwise: {differing(whole, told)}"
    for number, part in enumerate(parts, 1):
        left = managers.left(part.name, whole.rm_id)
        rest = parts[number:]
        wanted: Message = (
            replace(whole, config=replace(whole.config, partitions=rest))
            if rest
            else ManagerLeft(rm_id=whole.rm_id)
        )
        if left != wanted:
            wrong = differing(wanted, left)
            yield f"when it has left {part.name}, {whole.rm_id} is described otherwise: {wrong}"
