"""The way of one ask, from the call to the callback, and where its time went."""

from pathlib import Path
from typing import Final

from msgspec import Struct

from yunikorn_actors.messages.base import Cause, Delivery
from yunikorn_actors.messages.rm_calls import CallUpdateAllocation
from yunikorn_actors.messages.rm_events import (
    AllocationsRequested,
    RMNewAllocations,
    RMUpdateAllocation,
)
from yunikorn_actors.messages.scheduling import FactsAppended, ProposeAllocations
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.proposals import Allocate, Replace
from yunikorn_actors.trace.origins.message_parts import facts_of, keys_in
from yunikorn_actors.trace.records.record_index import Places
from yunikorn_actors.trace.story import NotFound, Subject, named_in


class Part(Struct, frozen=True, kw_only=True):
    """What happened between two moments."""

    what: str
    took_ns: int
    step: Cause
    """The message with which it ended."""


class Way(Struct, frozen=True, kw_only=True):
    ask: str
    began_ns: int
    parts: tuple[Part, ...]
    is_whole: bool
    """Whether the resource manager has heard of it."""

    @property
    def took_ns(self) -> int:
        return sum(part.took_ns for part in self.parts)


class _Walk:
    def __init__(self, subject: Subject) -> None:
        self._application = subject.application_id
        (self._key,) = subject.keys
        self.began_ns = 0
        self.parts: list[Part] = []
        self._at_ns = 0
        self._next = 0

    @property
    def is_over(self) -> bool:
        return self._next == len(_STAGES)

    def take(self, delivery: Delivery) -> None:
        """Go on where a message is the next one of the way; stages may be left out (fused)."""
        for number in range(self._next, len(_STAGES)):
            what, kind, mailbox = _STAGES[number]
            is_there = delivery.mailbox.startswith(mailbox) and isinstance(delivery.message, kind)
            if is_there and self._names(delivery):
                self._reach(number, what, delivery)
                return
            if number == 0:
                return  # the way begins with the request

    def _names(self, delivery: Delivery) -> bool:
        message = delivery.message
        match message:
            case FactsAppended():
                return any(self._is_added(fact) for fact in facts_of(message))
            case ProposeAllocations():
                return any(
                    (it.application_id, it.key) == (self._application, self._key)
                    for it in message.proposals
                    if isinstance(it, Allocate | Replace)
                )
        return any(pair == (self._application, self._key) for pair in keys_in(message))

    def _is_added(self, fact: f.Fact) -> bool:
        if not isinstance(fact, f.AskAdded | f.AskReplaced):
            return False
        return (fact.spec.application_id, fact.spec.key) == (self._application, self._key)

    def _reach(self, number: int, what: str, delivery: Delivery) -> None:
        if number == 0:
            self.began_ns = self._at_ns = delivery.sent_ns or delivery.at_ns
        at_ns = max(self._at_ns, delivery.at_ns)
        step = Cause(delivery.mailbox, delivery.step)
        self.parts.append(Part(what=what, took_ns=at_ns - self._at_ns, step=step))
        self._at_ns, self._next = at_ns, number + 1


_STAGES: Final = (
    ("the call waited for RmProxy", AllocationsRequested, "rm_proxy"),
    ("RmProxy checked it, and it waited for Context", RMUpdateAllocation, "context"),
    ("Context took it, and told the scheduler", FactsAppended, "scheduler:"),
    ("it waited for a place, and the proposal for Context", ProposeAllocations, "context"),
    ("Context committed it, and told RmProxy", RMNewAllocations, "rm_proxy"),
    ("RmProxy told the callback, which was free for it", CallUpdateAllocation, "rm:"),
)
"""What has happened when such a message is handled there; in `fused` there is no scheduler."""


def path_of(path: Path, name: str) -> Way:
    """Tell where its time went; raise NotFound if no ask has this name."""
    places = Places(path)
    subject = named_in(path, places, name)
    if not subject.keys:
        raise NotFound(f"{subject.title} is no ask: only asks have a way to the callback")
    walk = _Walk(subject)
    for delivery in places.speaking_of(subject.keys):
        walk.take(delivery)
        if walk.is_over:
            break
    ask = f"{subject.application_id}/{next(iter(subject.keys))}"
    return Way(ask=ask, began_ns=walk.began_ns, parts=tuple(walk.parts), is_whole=walk.is_over)
