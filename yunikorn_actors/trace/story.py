"""The life of one thing in a run: an application, an ask, an allocation, a node, a queue, a user.

It follows what a thing becomes: an ask has a key, its allocation a UUID, and the member of a gang
that takes over a placeholder another key and another UUID. What the core has written down as facts
is listed, what was asked for and what was refused. While a member is parked, what becomes of its
placeholder is a part of its life: that it is asked back, and given back.
"""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from yunikorn_actors.messages.base import Cause, Delivery
from yunikorn_actors.messages.codec import type_name
from yunikorn_actors.messages.rm_calls import CallUpdateAllocation
from yunikorn_actors.messages.rm_events import AllocationsRequested
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.trace.filters import with_missing
from yunikorn_actors.trace.origins.batch_origins import BatchOrigins
from yunikorn_actors.trace.origins.cause_index import CauseIndex
from yunikorn_actors.trace.origins.items import Item, Part, item_of, items_in
from yunikorn_actors.trace.origins.message_parts import new_facts_in, texts_in
from yunikorn_actors.trace.origins.stimuli import Stimuli
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.records.record_index import Places
from yunikorn_actors.trace.refused import refusals_in
from yunikorn_actors.trace.text.summary import fact_summary, message_summary
from yunikorn_actors.values.close_names import did_you_mean

_REPLACED: Final = TerminationType.PLACEHOLDER_REPLACED
_ENDS_OF_WAITING: Final = (f.SwapCompleted, f.AskUnparked)
"""With these a member waits for its placeholder no longer."""
_TALK: Final = (AllocationsRequested, CallUpdateAllocation)
_OF_PLACEHOLDERS: Final = (f.AskParked, f.AskUnparked, f.PlaceholderCancelled)
_OF_OTHERS: Final = frozenset({f.SwapCompleted, f.PreemptionDecided, *_OF_PLACEHOLDERS})
"""Facts that are about more asks than the one that they are of."""


class StoryLine(Struct, frozen=True, kw_only=True):
    """One line of a life."""

    at_ns: int
    step: Cause
    """The message in whose handling it happened."""
    stimulus: str
    what: str
    """The type of the fact or of the message."""
    text: str


class NotFound(LookupError):
    """Nothing has this name, or several things do; it says which ones."""


class Subject(Struct, kw_only=True):
    """Whose life it is; what it becomes is added on the way."""

    kind: str
    name: str
    application_id: str = ""
    keys: set[str] = set()
    uuids: set[str] = set()
    placeholders: dict[str, str] = {}
    """What it was parked for: the UUID of each, and its key."""
    parked_for: set[str] = set()
    """The keys of those that it is parked for now."""

    @property
    def known(self) -> int:
        """Return how many names there are of an ask."""
        return len(self.keys) + len(self.uuids) + len(self.placeholders)

    @property
    def title(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def names(self) -> set[str]:
        """Return what stands in all that speaks of it."""
        own = self.keys | self.uuids or {self.name}
        return own.union(self.placeholders, self.placeholders.values())


def story(path: Path, name: str) -> tuple[Subject, list[StoryLine]]:
    """Find out what the name means, and follow it; what it becomes is looked for as well."""
    places = Places(path)
    heads = CauseIndex(path)
    meant = named_in(path, places, name)
    names: set[str] = set()
    subject, lines = meant, list[StoryLine]()
    while not subject.names <= names:
        names |= subject.names
        subject = replace(
            meant, keys=set(meant.keys), uuids=set(meant.uuids), placeholders={}, parked_for=set()
        )
        spoken = _with_neighbours(places, heads, names)
        (lines,) = stories(spoken, [subject], Stimuli(heads.behind))
    return subject, lines


def _with_neighbours(places: Places, heads: CauseIndex, names: set[str]) -> list[Delivery]:
    """Return what speaks of the names, and what was handled together before it."""
    spoken = {Cause(it.mailbox, it.step): it for it in places.speaking_of(names)}
    together = {
        record
        for it in spoken.values()
        if it.cause.step and len(records := heads.records_with(it.cause)) > 1
        for record in records
    }
    for it in places.at(together).values():
        spoken.setdefault(Cause(it.mailbox, it.step), it)
    return sorted(spoken.values(), key=lambda it: heads.record(Cause(it.mailbox, it.step)) or 0)


def stories(
    deliveries: Iterable[Delivery],
    subjects: Iterable[Subject],
    requests: BatchOrigins | None = None,
) -> list[list[StoryLine]]:
    """Read a recording once, and return the life of each.

    `requests` names the request behind each line: if nothing else is given, as Stimuli does.
    """
    requests = requests or Stimuli()
    lives = [_Life(subject) for subject in subjects]
    asks, others, by_name = _Asks(lives), _others(lives), _by_name(lives)
    asked_back: dict[str, _AskedBack] = {}
    for delivery, fact in new_facts_in(deliveries, with_messages=True):
        if fact is None:
            requests.note(delivery)
            message = _Recorded(delivery, requests)
            for life in _concerned(message, asks, by_name):
                life.add_message(message)
            continue
        parts = [_About(part) for part in f.parts_of(fact)]
        if isinstance(fact, f.ReleaseRequested) and fact.type is _REPLACED:
            asked_back[fact.uuid] = _AskedBack(message, fact)
        elif isinstance(fact, f.AskParked) and fact.placeholder in asked_back:
            for life in asks.of(parts[0].names):
                life.park(asked_back[fact.placeholder], fact)
                asks.add(life)
        for part in parts:
            asks.add_fact(message, part)
            _add_fact(message, part, others, part.nodes)
        # Of an application a run is one line.
        if len(parts) > 1 and len({part.application_id for part in parts}) == 1:
            parts = [_All(fact, parts)]
        for part in parts:
            _add_fact(message, part, others, part.owners)
    # Facts stand where they are first reported, which may be behind what they have led to.
    return [sorted(life.lines, key=lambda line: line.at_ns) for life in lives]


# -- what a name means


class _Names:
    """What there is of each kind, in the order in which it was first spoken of."""

    def __init__(self) -> None:
        self.asks: dict[tuple[str, str], None] = {}
        self.uuids: dict[str, tuple[str, str]] = {}
        self.others: dict[str, dict[str, None]] = {
            "application": {}, "node": {}, "queue": {}, "user": {},
        }  # fmt: skip

    def note(self, fact: f.Fact) -> None:
        about = _About(fact)
        for kind, name in (*about.nodes, *about.owners):
            self.others[kind][name] = None
        for key in about.keys:
            self.asks[about.application_id, key] = None
            if about.uuid:
                self.uuids.setdefault(about.uuid, (about.application_id, key))

    def all(self) -> set[str]:
        keys = {key for _, key in self.asks}
        return keys.union(self.uuids, *self.others.values())


def named_in(path: Path, places: Places, name: str) -> Subject:
    """Find what has this name; raise NotFound if it is nothing, or more than one ask."""
    try:
        return _subject_of(places.speaking_of({name, name.partition("/")[2] or name}), name)
    except NotFound:
        # Only who has seen all names can say which of them come near.
        with TraceReader(path) as trace:
            return _subject_of(trace, name)


def _names_in(deliveries: Iterable[Delivery]) -> _Names:
    names = _Names()
    for _, fact in new_facts_in(deliveries):
        for part in f.parts_of(fact):
            names.note(part)
    return names


def subjects_in(deliveries: Iterable[Delivery]) -> list[Subject]:
    """Find all that have a life; an allocation is a part of that of its ask."""
    names = _names_in(deliveries)
    others = [Subject(kind=kind, name=it) for kind, known in names.others.items() for it in known]
    return [*others, *(_ask(application, key) for application, key in names.asks)]


def _subject_of(deliveries: Iterable[Delivery], name: str) -> Subject:
    names = _names_in(deliveries)
    application, slash, key = name.partition("/")
    if slash and (application, key) in names.asks:
        return _ask(application, key)
    if name in names.uuids:
        application, key = names.uuids[name]
        return Subject(
            kind="allocation", name=name, application_id=application, keys={key}, uuids={name}
        )
    owners = [application for application, key in names.asks if key == name]
    if len(owners) > 1:
        forms = ", ".join(f"{owner}/{name}" for owner in owners)
        raise NotFound(f"several applications have an ask {name!r}: write one of {forms}")
    if owners:
        return _ask(owners[0], name)
    for kind, known in names.others.items():
        if name in known:
            return Subject(kind=kind, name=name)
    raise NotFound(f"nothing in it has the name {name!r:.80}{did_you_mean(name, names.all())}")


def _ask(application: str, key: str) -> Subject:
    return Subject(kind="ask", name=f"{application}/{key}", application_id=application, keys={key})


# -- what a fact is about


_KindAndName = tuple[str, str]
"""A kind of thing, and which one."""


class _About:
    """The names in a fact, whatever its fields are called."""

    def __init__(self, fact: f.Fact) -> None:
        spec = getattr(fact, "spec", None)
        self.fact = fact
        self._line: StoryLine | None = None
        self.application_id: str = getattr(
            fact, "application_id", getattr(spec, "application_id", "")
        )
        self.key: str = getattr(fact, "key", getattr(spec, "key", ""))
        self.uuid: str = getattr(fact, "uuid", "")
        nodes = getattr(fact, "node_id", ""), getattr(fact, "placeholder_node", "")
        owners = (
            ("application", self.application_id),
            ("queue", getattr(fact, "queue", getattr(fact, "path", ""))),
            ("user", getattr(fact, "user", getattr(spec, "user", ""))),
        )
        self.nodes: list[_KindAndName] = [("node", it) for it in dict.fromkeys(nodes) if it]
        self.owners: list[_KindAndName] = [it for it in owners if it[1]]

    @property
    def keys(self) -> tuple[str, ...]:
        # Work that is not ours has a key and no application.
        return (self.key,) if self.key and self.application_id else ()

    @property
    def names(self) -> Iterable[str]:
        """Return those by which all asks that it may be about are found."""
        return texts_in(self.fact) if type(self.fact) in _OF_OTHERS else (self.key,)

    def line_in(self, message: "_Recorded") -> StoryLine:
        """Return the line that all lives have of it."""
        self._line = self._line or _written(message, self.fact)
        return self._line


class _All(_About):
    """The names in all parts of a run that is of one application."""

    def __init__(self, run: f.Fact, parts: Iterable[_About]) -> None:
        super().__init__(run)
        self.owners = list(dict.fromkeys(it for part in parts for it in part.owners))


# -- following it


class _Recorded:
    """A message; what all lives have to know of it is worked out once."""

    def __init__(self, delivery: Delivery, requests: BatchOrigins) -> None:
        self.delivery = delivery
        self.requests = requests
        self._lines: dict[tuple[str, str], StoryLine] = {}
        self.asks: AbstractSet[tuple[str, str]] = frozenset()
        """Applications and keys in a request or an answer about asks."""
        if isinstance(delivery.message, _TALK):
            self.asks = {(it.application_id, it.key) for it in items_in(delivery.message)}
        self.refusals: dict[str, list[str]] = {}
        """The reasons, by what was refused."""
        for refusal in refusals_in(delivery):
            self.refusals.setdefault(refusal.id, []).append(refusal.reason)

    @cached_property
    def texts(self) -> dict[str, int]:
        """All texts in it, with their order."""
        texts = dict.fromkeys(texts_in(self.delivery.message))
        return {text: place for place, text in enumerate(texts)}

    @cached_property
    def summary(self) -> str:
        return message_summary(self.delivery.message)

    def led_by(self, subject: Subject) -> str:
        """Return the request that led to what is reported of an ask."""
        whose = subject.keys | subject.parked_for
        named = {key for key in whose if (subject.application_id, key) in self.asks}
        key = min(named or whose, default="")
        item = Item(Part.ASK, subject.application_id, key)
        return self.requests.of(self.delivery, item) if key else self.delivery.stimulus

    def line(self, text: str, stimulus: str) -> StoryLine:
        """Tell it of itself; many lives may have the same line."""
        if (text, stimulus) not in self._lines:
            delivery = self.delivery
            self._lines[text, stimulus] = StoryLine(
                at_ns=delivery.at_ns,
                step=Cause(delivery.mailbox, delivery.step),
                stimulus=stimulus,
                what=type_name(delivery.message),
                text=text,
            )
        return self._lines[text, stimulus]

    @cached_property
    def written_ns(self) -> int:
        """The time of facts that have none: they were written together with others that have."""
        delivery = self.delivery
        beside = delivery.message.facts if isinstance(delivery.message, FactsAppended) else ()
        sent_ns = delivery.at_ns if delivery.sent_ns is None else delivery.sent_ns
        return next((it.at_ns for it in beside if hasattr(it, "at_ns")), sent_ns)


class _Life:
    """The life of one thing so far."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.lines: list[StoryLine] = []

    def add_message(self, message: _Recorded) -> None:
        self.lines.extend(_messages(message, self.subject))

    def park(self, asked_back: "_AskedBack", fact: f.AskParked) -> None:
        """Learn what a member is parked for; its placeholder was asked back right before."""
        subject, (message, asked) = self.subject, asked_back
        is_member = fact.application_id == subject.application_id and fact.key in subject.keys
        if not is_member or asked.key in subject.keys:
            return
        subject.placeholders[fact.placeholder] = asked.key
        subject.parked_for.add(asked.key)
        self.lines.append(_written(message, asked))

    def is_concerned(self, about: _About) -> bool:
        """Say whether a fact is about an ask; it takes the names that it gets by the fact."""
        is_concerned, fact = _of_ask(self.subject, about), about.fact
        if isinstance(fact, _ENDS_OF_WAITING):
            self.subject.parked_for.discard(self.subject.placeholders.get(fact.placeholder, ""))
        return is_concerned


class _AskedBack(NamedTuple):
    """A placeholder that goes for a member, and the message that says so."""

    message: _Recorded
    fact: f.ReleaseRequested


class _Asks:
    """Finds lives of asks and allocations by names: so many lives can be written at once."""

    def __init__(self, lives: Iterable[_Life]) -> None:
        self._by_name: dict[str, dict[int, _Life]] = {}
        for life in lives:
            if life.subject.keys:
                self.add(life)

    def add(self, life: _Life) -> None:
        """Learn the names of a life; it may have got more."""
        for name in life.subject.names:
            self._by_name.setdefault(name, {})[id(life)] = life

    def of(self, names: Iterable[str]) -> Iterable[_Life]:
        """Return those that are spoken of, each once."""
        found: dict[int, _Life] = {}
        for name in names:
            if name in self._by_name:
                found |= self._by_name[name]
        return found.values()

    def add_fact(self, message: _Recorded, about: _About) -> None:
        """Add it to the lives that it names; what they become by it is known at once."""
        for life in self.of(about.names):
            known = life.subject.known
            if life.is_concerned(about):
                life.lines.append(about.line_in(message))
                if life.subject.known > known:
                    self.add(life)


def _others(lives: Iterable[_Life]) -> dict[_KindAndName, list[_Life]]:
    named: dict[_KindAndName, list[_Life]] = {}
    for life in lives:
        if not life.subject.keys:
            named.setdefault((life.subject.kind, life.subject.name), []).append(life)
    return named


def _add_fact(
    message: _Recorded,
    about: _About,
    others: dict[_KindAndName, list[_Life]],
    names: Iterable[_KindAndName],
) -> None:
    for name in names:
        for life in others.get(name, ()):
            life.lines.append(about.line_in(message))


def _by_name(lives: Iterable[_Life]) -> dict[str, list[_Life]]:
    named: dict[str, list[_Life]] = {}
    for life in lives:
        named.setdefault(life.subject.name, []).append(life)
    return named


def _concerned(message: _Recorded, asks: _Asks, by_name: dict[str, list[_Life]]) -> Iterator[_Life]:
    """Yield whose ask was asked for or announced, and what was refused, each once."""
    found = {id(life): life for life in asks.of(key for _, key in message.asks)}
    for name in message.refusals:
        for life in by_name.get(name, ()):
            # The number of a proposal may also be the name of an ask: a name stands in the message.
            if not life.subject.names.isdisjoint(message.texts):
                found[id(life)] = life
    yield from found.values()


def _written(message: _Recorded, fact: f.Fact) -> StoryLine:
    """Tell a fact where and when it was written down, and not where the message came to."""
    item = item_of(next(iter(f.parts_of(fact))))
    return StoryLine(
        at_ns=getattr(fact, "at_ns", message.written_ns),
        step=message.requests.step_of(message.delivery, item),
        stimulus=message.delivery.stimulus
        if item is None
        else message.requests.of(message.delivery, item),
        what=type(fact).__name__,
        text=fact_summary(fact),
    )


def _messages(message: _Recorded, subject: Subject) -> Iterator[StoryLine]:
    """Tell what was asked for and announced of an ask, and what was refused of anything."""
    whose = subject.keys | subject.parked_for
    if any((subject.application_id, key) in message.asks for key in whose):
        keys = list(whose)
        if len(keys) > 1:
            keys = sorted(whose & message.texts.keys(), key=message.texts.__getitem__)
        yield message.line(with_missing(message.summary, keys), message.led_by(subject))
    for reason in message.refusals.get(subject.name, ()):
        yield message.line(f"refused: {reason}", message.led_by(subject))


def _of_ask(subject: Subject, about: _About) -> bool:
    fact = about.fact
    if isinstance(fact, f.SwapCompleted) and _takes_over(subject, fact):
        subject.keys.add(fact.key)
        subject.uuids.add(fact.uuid)
        return True
    if isinstance(fact, f.PreemptionDecided):
        return not subject.uuids.isdisjoint(fact.victims) or (
            fact.beneficiary.application_id == subject.application_id
            and fact.beneficiary.key in subject.keys
        )
    if about.application_id != subject.application_id:
        return False
    if isinstance(fact, _OF_PLACEHOLDERS) and fact.placeholder in subject.uuids:
        return True
    if about.key not in subject.keys:
        return False
    # An allocation has one life of an ask that is asked for again and again.
    if subject.kind == "allocation" and about.uuid and about.uuid not in subject.uuids:
        return False
    if about.uuid:
        subject.uuids.add(about.uuid)
    return True


def _takes_over(subject: Subject, fact: f.SwapCompleted) -> bool:
    return fact.application_id == subject.application_id and (
        fact.placeholder in subject.uuids or fact.key in subject.keys
    )
