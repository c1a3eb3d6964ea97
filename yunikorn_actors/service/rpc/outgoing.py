"""What the core says to one resource manager, on its way from a delivery thread to the streams.

It waits here until a stream has taken it: one that is not open yet, or one that is not read.
Nothing is dropped but events, which are counted instead. So when too much waits the delivery
thread waits as well; what then piles up behind it is the core's to bound, and nobody else notices.

An item leaves once it has gone out: a stream that ends before leaves it to the next one.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future
from itertools import count
from typing import Final, NamedTuple

from msgspec import structs

from yunikorn_actors import si
from yunikorn_actors.core.registered_managers import StandIn
from yunikorn_actors.service.rpc.messages import (
    Answer,
    Grace,
    Kind,
    Placement,
    Records,
    StateDumpRequest,
)
from yunikorn_actors.service.rpc.protobuf import codec
from yunikorn_actors.si.wire import SiMessage

ROOM: Final = 1_000
"""Items that may wait to be taken."""
EVENTS_MAX: Final = 100
"""Of these so many may be events."""
LARGEST: Final = 2 * 1024 * 1024
"""A client that has set nothing takes 4 MB in one message, and ends its stream for more."""
ANSWERS: Final = frozenset({Kind.ALLOCATIONS, Kind.APPLICATIONS, Kind.NODES})
"""What the core tells in any case."""
QUESTIONS: Final = {
    "predicates": Kind.PREDICATES,
    "preemption_predicates": Kind.PREEMPTION_PREDICATES,
    "update_container_scheduling_state": Kind.CONTAINER_STATES,
    "get_state_dump": Kind.STATE,
}
"""What it asks and tells only if that is wanted, by the method of the callback."""


class Item(NamedTuple):
    kind: Kind
    place: int
    """In the order of all; nothing else of this registration has this number."""
    is_question: bool
    data: bytes
    beside: tuple[tuple[str, bytes], ...] = ()
    """Placements and graces, each with its field; only the extension carries them."""


class Outlet(StandIn):
    """The callback of one registration: filled on a thread of the core, emptied on the loop."""

    def __init__(
        self, hears: Collection[Kind], loop: asyncio.AbstractEventLoop, answer_s: float
    ) -> None:
        """`answer_s`: how long the resource manager may take to answer a question."""
        self._hears = ANSWERS | frozenset(hears)
        self._loop = loop
        self._answer_s = answer_s
        self._places = count(1)
        self._changed = threading.Condition()
        """Guards the rest; the delivery thread waits here for room."""
        self._kept: dict[Kind, deque[Item]] = {kind: deque() for kind in Kind}
        self._count = 0
        self._is_bounded = True
        self._is_closed = False
        self._missed = 0
        """Events since the last ones that were kept."""
        self._asked: dict[int, Future[Answer]] = {}
        self._news = asyncio.Event()
        """The loop's: set, and then replaced, whenever something has come."""

    # -- on the delivery thread

    def answers(self, method: str) -> bool:
        # Without a reader for it a question would wait for its time to pass.
        return QUESTIONS[method] in self._hears

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self._say(Kind.ALLOCATIONS, response)

    def update_application(self, response: si.ApplicationResponse) -> None:
        self._say(Kind.APPLICATIONS, response)

    def update_node(self, response: si.NodeResponse) -> None:
        self._say(Kind.NODES, response)

    def update_container_scheduling_state(
        self, request: si.UpdateContainerSchedulingStateRequest
    ) -> None:
        self._say(Kind.CONTAINER_STATES, request)

    def send_event(self, events: tuple[si.EventRecord, ...]) -> None:
        """Nobody waits for a reader of events, here as in the core."""
        if Kind.EVENTS not in self._hears:
            return
        if len(self._kept[Kind.EVENTS]) >= EVENTS_MAX:
            self._missed += len(events)
            return
        missed, self._missed = self._missed, 0
        self._say(Kind.EVENTS, Records(records=events, missed=missed))

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        answer = self._ask(Kind.PREDICATES, args)
        if answer.verdict is None:
            return answer.failure or NO_ANSWER
        return answer.verdict.reason or None

    def preemption_predicates(
        self, args: si.PreemptionPredicatesArgs
    ) -> si.PreemptionPredicatesResponse | None:
        return self._ask(Kind.PREEMPTION_PREDICATES, args).preemption

    def get_state_dump(self) -> str:
        answer = self._ask(Kind.STATE, StateDumpRequest())
        if answer.state is None:
            raise RuntimeError(answer.failure or NO_ANSWER)
        return answer.state

    def _say(self, kind: Kind, message: SiMessage) -> None:
        # Cut into pieces that any client takes.
        for piece, data in pieces(message):
            beside = (
                *(("placements", codec(Placement).encode(it)) for it in placements_in(piece)),
                *(("graces", codec(Grace).encode(it)) for it in graces_in(piece)),
            )
            item = Item(kind, next(self._places), is_question=False, data=data, beside=beside)
            self._put(item)

    def _ask(self, kind: Kind, question: SiMessage) -> Answer:
        data = codec(type(question)).encode(question)
        item = Item(kind, next(self._places), is_question=True, data=data)
        answer: Future[Answer] = Future()
        with self._changed:
            self._asked[item.place] = answer
        self._put(item)
        try:
            return answer.result(self._answer_s)
        except TimeoutError:
            # Nobody waits for the answer any more, so it need not be asked.
            self.taken(item)
            return Answer(failure=f"no answer within {self._answer_s:g} s")
        finally:
            with self._changed:
                del self._asked[item.place]

    def _put(self, item: Item) -> None:
        with self._changed:
            # The delivery thread waits: what is behind it is the core's to bound.
            while self._is_bounded and self._count >= ROOM:
                self._changed.wait()
            if self._is_closed:
                # What asks now is answered at once.
                self._let_go()
                return
            self._kept[item.kind].append(item)
            self._count += 1
        self._on_loop(self._wake)

    # -- on any thread

    def lift(self) -> None:
        """Lift the bound, so that the delivery thread of the core waits for nobody."""
        with self._changed:
            self._is_bounded = False
            self._changed.notify_all()

    def bound(self) -> None:
        """Have it wait again; a registration that was to follow this one was refused."""
        with self._changed:
            self._is_bounded = not self._is_closed

    def close(self) -> None:
        """Take nothing more; what asks is let go without an answer."""
        with self._changed:
            self._is_bounded, self._is_closed = False, True
            self._changed.notify_all()
            self._let_go()

    def _let_go(self) -> None:
        """Called with the lock held."""
        for answer in self._asked.values():
            if not answer.done():
                answer.set_result(Answer(failure="the registration is over"))

    def answered(self, answer: Answer) -> None:
        """An answer that nobody waits for any more changes nothing."""
        with self._changed:
            asked = self._asked.get(answer.number)
            if asked is not None and not asked.done():
                asked.set_result(answer)

    def _on_loop(self, function: Callable[[], None]) -> None:
        """A loop that is closed has nobody who waits for the news."""
        try:
            self._loop.call_soon_threadsafe(function)
        except RuntimeError:
            self.close()

    # -- on the loop

    async def oldest(self, kinds: Collection[Kind]) -> Item:
        """Wait for the oldest of these kinds; it stays here until it is `taken`."""
        while (item := self._oldest(kinds)) is None:
            await self._news.wait()
        return item

    def _oldest(self, kinds: Collection[Kind]) -> Item | None:
        with self._changed:
            heads = [kept[0] for kind in kinds if (kept := self._kept[kind])]
        # The oldest over all kinds, so that the order is that of the core.
        return min(heads, key=lambda item: item.place, default=None)

    def taken(self, item: Item) -> None:
        with self._changed:
            kept = self._kept[item.kind]
            # Given up meanwhile, or taken by a stream that has ended since.
            if item in kept:
                kept.remove(item)
                self._count -= 1
                self._changed.notify_all()

    def is_empty(self, kinds: Collection[Kind]) -> bool:
        return self._oldest(kinds) is None

    def _wake(self) -> None:
        # A new event for the next wait; the old one stays set for those who wait on it.
        self._news.set()
        self._news = asyncio.Event()


NO_ANSWER: Final = "the resource manager gave no answer"


def placements_in(message: SiMessage) -> Iterator[Placement]:
    """Name the queue of each accepted application, and those that a rejected one may ask for."""
    if not isinstance(message, si.ApplicationResponse):
        return
    for taken in message.accepted:
        yield Placement(
            application_id=taken.application_id,
            queue=taken.queue,
            by_last_resort=taken.by_last_resort,
        )
    for refused in message.rejected:
        if refused.queues:
            yield Placement(application_id=refused.application_id, queues=refused.queues)


def graces_in(message: SiMessage) -> Iterator[Grace]:
    """Say how long each victim has to end, if its queue says so."""
    if isinstance(message, si.AllocationResponse):
        for item in message.released:
            if item.grace_ms:
                yield Grace(uuid=item.uuid, milliseconds=item.grace_ms)


def pieces(message: SiMessage) -> Iterator[tuple[SiMessage, bytes]]:
    """Encode a message, as several that say the same in the same order if it is too large."""
    data = codec(type(message)).encode(message)
    if len(data) <= LARGEST or (halves := _halves(message)) is None:
        yield message, data
        return
    for half in halves:
        yield from pieces(half)


def _halves(message: SiMessage) -> tuple[SiMessage, SiMessage] | None:
    """Cut a message with lists in two; None for one item, which cannot be cut."""
    lists = {
        name: value
        for name, value in structs.asdict(message).items()
        if isinstance(value, tuple) and value
    }
    left = sum(map(len, lists.values())) // 2
    if not left:
        return None
    first, rest = dict[str, tuple[object, ...]](), dict[str, tuple[object, ...]]()
    for name, values in lists.items():
        first[name], rest[name] = values[:left], values[left:]
        left -= len(first[name])
    return structs.replace(message, **first), type(message)(**rest)
