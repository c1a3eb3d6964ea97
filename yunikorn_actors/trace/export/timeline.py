"""When things happen in a picture, what is new in it, and how much it takes."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from yunikorn_actors.messages.base import (
    CONTEXT,
    EVENT_PUBLISHER,
    GATEWAY,
    RM_PROXY,
    Delivery,
    Message,
    is_callback,
    is_reply,
)
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.state.facts import Fact, revisions_of
from yunikorn_actors.trace.filters import DeliveryFilter
from yunikorn_actors.trace.origins.message_parts import facts_of
from yunikorn_actors.trace.read import Header, TraceError, TraceReader

CALLERS: Final = "callers"
"""Who waits for an answer has no mailbox; all of them share a lane."""
SIMULATED: Final = (
    "simulated: handling takes no time, so each message has one nanosecond of the picture; where "
    "all times are equal, the time is the order number"
)


class Step(NamedTuple):
    """A message with its place in the picture."""

    number: int
    """In the order of the recording, from 1."""
    begin_ns: int
    """Since the start of the run."""
    delivery: Delivery
    is_wanted: bool


class Timeline:
    """Gives each message its time.

    In a simulated run many messages have the same time, and handling takes none. There the order
    decides: each message comes at least one nanosecond after the one before it.
    """

    def __init__(self, header: Header) -> None:
        self.is_simulated = header.driver == "sim"
        self.note = SIMULATED if self.is_simulated else ""
        self._start_ns = header.start_ns
        self._last_ns = 0

    def steps(self, trace: TraceReader, sieve: DeliveryFilter) -> Iterator[Step]:
        for number, delivery in enumerate(trace, start=1):
            yield Step(number, self._begin(delivery), delivery, sieve(delivery))

    def since_start(self, at_ns: int) -> int:
        return at_ns - self._start_ns

    def _begin(self, delivery: Delivery) -> int:
        begin_ns = self.since_start(delivery.at_ns)
        if self.is_simulated:
            self._last_ns = begin_ns = max(self._last_ns + 1, begin_ns)
        return begin_ns


def lane_of(address: str) -> str:
    return CALLERS if address == GATEWAY or is_reply(address) else address


def rank_of(lane: str) -> int:
    """Order lanes from the outside inwards, whichever appears first."""
    if lane == CALLERS or is_callback(lane):
        return 0
    kinds = (RM_PROXY, CONTEXT, "scheduler", EVENT_PUBLISHER)
    kind = lane.partition(":")[0]
    return 1 + (kinds.index(kind) if kind in kinds else len(kinds))


class FactsOnce:
    """Facts go to several receivers; here each comes with the message to the first of them."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, int], int] = {}
        """The highest revision so far, for each life of a partition."""

    def of(self, message: Message) -> Iterator[Fact]:
        if not isinstance(message, FactsAppended):
            return
        life = (message.partition, message.epoch)
        last = message.first_revision + revisions_of(message.facts) - 1
        if self._last.get(life, 0) >= last:
            return
        self._last[life] = last
        yield from facts_of(message)


# -- how much a picture takes before nobody can read it


_REMEDY: Final = "narrow it down, with --about, --stimulus, --mailbox, --type, --from or --until"


class TooMuchError(TraceError):
    """More is wanted than the format takes."""


class Limit(NamedTuple):
    what: str
    messages: int

    def of(self, trace: TraceReader, steps: Iterator[Step]) -> Iterator[Step]:
        """Pass on what is taken; raise TooMuchError as soon as it is too much."""
        wanted = 0
        for step in steps:
            wanted += step.is_wanted
            if wanted > self.messages:
                raise TooMuchError(
                    f"{trace.path}: {self.what} takes {self.messages} messages, and more are "
                    f"wanted; {_REMEDY}"
                )
            yield step
