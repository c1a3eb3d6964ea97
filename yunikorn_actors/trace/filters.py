"""Which messages of a recording a command is asked about: the filters that all commands share."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from msgspec import Struct

from yunikorn_actors.config import parse_duration
from yunikorn_actors.messages.base import Cause, Delivery
from yunikorn_actors.messages.codec import MESSAGE_TYPES, type_name
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.state.facts import Fact
from yunikorn_actors.trace.origins.items import item_of
from yunikorn_actors.trace.origins.message_parts import facts_of, texts_in
from yunikorn_actors.trace.origins.stimuli import Stimuli
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.refused import is_refusal
from yunikorn_actors.values.close_names import did_you_mean

_WORD_ENDS: Final = re.compile(r"[,;()\[\]]")


class Moment(Struct, frozen=True, kw_only=True):
    """A place in a recording: so long after its start, a step of a mailbox, or a record."""

    after_ns: int | None = None
    step: Cause | None = None
    record: int | None = None

    def is_reached(self, trace: TraceReader, delivery: Delivery) -> bool:
        """Whether this message is there, or behind it if it is a time."""
        if self.after_ns is not None:
            return delivery.at_ns - trace.header.start_ns >= self.after_ns
        if self.step is not None:
            return (delivery.mailbox, delivery.step) == self.step
        return trace.number == self.record


def moment_of(text: str) -> Moment:
    """Read `3s`, `2900ms`, `context/751` or the number of a record; raise ValueError."""
    mailbox, slash, step = text.rpartition("/")
    if slash and mailbox and step.isdecimal():
        return Moment(step=Cause(mailbox, int(step)))
    if text.isdecimal():
        return Moment(record=int(text))
    after_ns = parse_duration(text)
    if after_ns is None:
        raise ValueError(
            f"{text!r:.80} is no place in a recording: give a time since its start such as 2900ms, "
            "a step such as context/751, or the number of a record"
        )
    return Moment(after_ns=after_ns)


class FilterOptions(Struct, frozen=True, kw_only=True):
    """Messages that pass all given conditions; of several values for one of them, any will do."""

    mailbox: tuple[str, ...] = ()
    """Addresses, or the parts before their colons: `scheduler` means all schedulers."""
    stimulus: tuple[str, ...] = ()
    type: tuple[str, ...] = ()
    """Types of messages, and of the facts in them."""
    about: tuple[str, ...] = ()
    """Ids; the payload must contain one of them."""
    along: tuple[str, ...] = ()
    """More ids that belong to those: what contains one of these alone is wanted as well."""
    refused: bool = False
    """Only messages that refuse something."""
    begin: Moment | None = None
    end: Moment | None = None

    def over(self, trace: TraceReader) -> Iterator[Delivery]:
        """Yield what is wanted of a recording, in its order."""
        return filter(DeliveryFilter(self, trace), trace)

    def takes(self, delivery: Delivery, stimuli: Collection[str] = ()) -> bool:
        """Say it of a message; `stimuli` are those of its items, if they are known."""
        mailbox, message = delivery.mailbox, delivery.message
        return (
            (not self.mailbox or not {mailbox, mailbox.partition(":")[0]}.isdisjoint(self.mailbox))
            and (
                not self.stimulus
                or not set(self.stimulus).isdisjoint(stimuli or (delivery.stimulus,))
            )
            and (not self.type or self._is_of_type(delivery))
            and (not self.refused or is_refusal(delivery))
            and self.speaks_of(message)
        )

    def _is_of_type(self, delivery: Delivery) -> bool:
        message = delivery.message
        return type_name(message) in self.type or any(
            type(fact).__name__ in self.type for fact in facts_of(message)
        )

    @property
    def chooses_facts(self) -> bool:
        """Whether of a wanted message some facts are wanted, and others not."""
        return bool(self.about or self._fact_types())

    def takes_fact(self, fact: Fact) -> bool:
        kinds = self._fact_types()
        return (not kinds or type(fact).__name__ in kinds) and self.speaks_of(fact)

    def _fact_types(self) -> list[str]:
        return [name for name in self.type if name not in MESSAGE_TYPES]

    def speaks_of(self, part: Struct) -> bool:
        return not self.about or any(True for _ in _mentioned(part, self.about + self.along))

    def named(self, text: str, part: Struct) -> str:
        """Add what was asked for to a summary that has cut it off."""
        return with_missing(text, _mentioned(part, self.about)) if self.about else text


class DeliveryFilter:
    """Says of each message of a recording, in their order, whether it is wanted."""

    def __init__(self, wanted: FilterOptions, trace: TraceReader) -> None:
        self.wanted = wanted
        self.taken = 0
        """How many were."""
        self._trace = trace
        self._has_begun = wanted.begin is None
        self._has_ended = False
        self._stimuli = Stimuli() if wanted.stimulus else None
        self._last: Delivery | None = None

    def __call__(self, delivery: Delivery) -> bool:
        wanted, trace = self.wanted, self._trace
        self._last = delivery
        stimuli: set[str] = set()
        if self._stimuli is not None:
            self._stimuli.note(delivery)
            stimuli = self._stimuli.of_all(delivery)
        self._has_begun = self._has_begun or _is_reached(wanted.begin, trace, delivery)
        takes = self._has_begun and not self._has_ended and wanted.takes(delivery, stimuli)
        # The recording is read to its end all the same: whether it is whole is seen there.
        self._has_ended = self._has_ended or _is_reached(wanted.end, trace, delivery)
        self.taken += takes
        return takes

    def parts_of(self, message: FactsAppended) -> tuple[Sequence[Fact], int]:
        """Return the facts wanted of the message that was asked about last, and how many are not.

        Of a run those parts alone that are wanted.
        """
        if not (self.wanted.chooses_facts or self.wanted.stimulus):
            return message.facts, 0
        parts = tuple(facts_of(message))
        taken = tuple(filter(self._takes_fact, parts))
        others = len(parts) - len(taken)
        return (taken if others or self.wanted.chooses_facts else message.facts), others

    def _takes_fact(self, fact: Fact) -> bool:
        return self.wanted.takes_fact(fact) and (
            self._stimuli is None or self._stimulus_of(fact, self._stimuli) in self.wanted.stimulus
        )

    def _stimulus_of(self, fact: Fact, stimuli: Stimuli) -> str:
        assert self._last is not None
        item = item_of(fact)
        return self._last.stimulus if item is None else stimuli.of(self._last, item)


def _is_reached(moment: Moment | None, trace: TraceReader, delivery: Delivery) -> bool:
    return moment is not None and moment.is_reached(trace, delivery)


def strangers(trace: TraceReader, wanted: FilterOptions) -> Iterator[str]:
    """Yield a sentence for each name that was asked for and that occurs nowhere in a recording."""
    known: dict[str, set[str]] = {"id": set(), "stimulus": set(), "mailbox": set()}
    for delivery in trace:
        known["id"].update(texts_in(delivery.message))
        known["stimulus"].add(delivery.stimulus)
        known["mailbox"].update((delivery.mailbox, delivery.mailbox.partition(":")[0]))
    asked = {"id": wanted.about, "stimulus": wanted.stimulus, "mailbox": wanted.mailbox}
    for kind, names in asked.items():
        for name in names:
            if name not in known[kind]:
                yield f"no {kind} {name!r:.80} occurs in it{did_you_mean(name, known[kind])}"


def with_missing(text: str, ids: Iterable[str]) -> str:
    """Add those of the ids to a summary that do not stand in it."""
    words = _words(text)
    missing = dict.fromkeys(id_ for id_ in ids if id_ not in words)
    return f"{text} with {', '.join(missing)}".lstrip() if missing else text


@lru_cache(maxsize=16)
def _words(text: str) -> frozenset[str]:
    """Remember them: one text may be asked for each of many ids."""
    return frozenset(_WORD_ENDS.sub(" ", text).split())


def _mentioned(part: Struct, ids: tuple[str, ...]) -> Iterator[str]:
    return (text for text in texts_in(part) if text in ids)
