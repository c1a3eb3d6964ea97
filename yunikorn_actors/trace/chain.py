"""What led to a message, and what it led to.

Every effect stands behind its cause in a recording. So one reading of the heads of records, which
keeps a few numbers for each message, is enough to find all that came before one or of it. Payloads
are read of those messages alone.

A message with items is followed by one of them: see `origins`.
"""

from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from yunikorn_actors.messages.base import CONTEXT, Cause, Delivery, Message
from yunikorn_actors.trace.alike import did_you_mean
from yunikorn_actors.trace.items import Item, items_in
from yunikorn_actors.trace.origins import origins
from yunikorn_actors.trace.places import Places
from yunikorn_actors.trace.read import TraceReader

_STEP_BITS: Final = 40
_STEP_MASK: Final = (1 << _STEP_BITS) - 1
_NOBODY: Final = -1


class Link(Struct, frozen=True, kw_only=True):
    """A message of the chain, and how many messages lead to it in the chain."""

    depth: int
    delivery: Delivery
    is_wanted: bool = False
    """Whether it is the one that was asked about."""
    about: str = ""
    """The item by which the chain goes on here: a key, or an application."""
    others: int = 0
    """How many more items the message has."""
    together: int = 1
    """How many messages were handled together, this one among them."""
    set_off_by: Cause | None = None
    """Its cause, if that is not the link before it."""


class NotThere(LookupError):  # noqa: N818 - it says what is the matter
    """The recording has no such step, or the step is not about such an item; it says which."""


class Heads:
    """Who caused whom, which were handled together, and where they stand."""

    def __init__(self, path: Path) -> None:
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []
        self._causes: list[array[int]] = []
        """The causes of the steps of each mailbox."""
        self._records: list[array[int]] = []
        self._joined: list[bytearray] = []
        self._mixed: list[bytearray] = []
        """Whether it came, perhaps by others, of several that were handled together."""
        self._first: list[int] = []
        """The number of the first step of each mailbox that is in the recording."""
        with TraceReader(path) as trace:
            for head in trace.heads():
                self._note(head.mailbox, head.step, head.cause, trace.number, joined=head.joined)

    def _note(self, mailbox: str, step: int, cause: Cause, record: int, *, joined: bool) -> None:
        number = self._number(mailbox)
        causes = self._causes[number]
        if not causes:
            self._first[number] = step
        # A caller's mailbox counts its answers from one again, and those lead nowhere.
        if step == self._first[number] + len(causes):
            causes.append(self._packed(cause))
            self._records[number].append(record)
            self._joined[number].append(joined)
            self._mixed[number].append(self._mixes(cause))

    def _number(self, mailbox: str) -> int:
        number = self._numbers.setdefault(mailbox, len(self._names))
        if number == len(self._names):
            self._names.append(mailbox)
            self._causes.append(array("q"))
            self._records.append(array("q"))
            self._joined.append(bytearray())
            self._mixed.append(bytearray())
            self._first.append(0)
        return number

    def _packed(self, cause: Cause) -> int:
        return self._number(cause.mailbox) << _STEP_BITS | cause.step if cause.step else _NOBODY

    def _at(self, step: Cause) -> tuple[int, int] | None:
        number = self._numbers.get(step.mailbox)
        if number is None:
            return None
        position = step.step - self._first[number]
        return (number, position) if 0 <= position < len(self._causes[number]) else None

    def _mixes(self, cause: Cause) -> bool:
        """Whether what this step led to may have come of others too: then it was joined to them."""
        at = self._at(cause)
        return at is not None and bool(self._joined[at[0]][at[1]] or self._mixed[at[0]][at[1]])

    def is_mixed(self, step: Cause) -> bool:
        at = self._at(step)
        return at is not None and bool(self._mixed[at[0]][at[1]])

    def behind(self, step: Cause) -> int | None:
        """Return the step of Context that led to a mixed one; None if it came of one message."""
        if not self.is_mixed(step):
            return None
        at = self._cause(step)
        while at is not None and at.mailbox != CONTEXT:
            at = self._cause(at)
        return 0 if at is None else at.step

    def record(self, step: Cause) -> int | None:
        """Return the number of the record of a step."""
        at = self._at(step)
        return None if at is None else self._records[at[0]][at[1]]

    def records_with(self, step: Cause) -> list[int]:
        """Return the records of what was handled together with a step, up to that."""
        at = self._at(step)
        if at is None:
            return []
        number, last = at
        first = last
        while self._joined[number][first] and first:
            first -= 1
        return list(self._records[number][first : last + 1])

    def up(self, step: Cause) -> list[Cause]:
        """Return the step and all before it by their causes, the first one first."""
        found: list[Cause] = []
        at: Cause | None = step
        while at is not None:
            found.append(at)
            at = self._cause(at)
        return found[::-1]

    def _cause(self, step: Cause) -> Cause | None:
        """Return what caused a step; None if it came from outside, or that is not recorded."""
        at = self._at(step)
        packed = _NOBODY if at is None else self._causes[at[0]][at[1]]
        if packed == _NOBODY:
            return None
        cause = Cause(self._names[packed >> _STEP_BITS], packed & _STEP_MASK)
        return None if self._at(cause) is None else cause

    def down(self, step: Cause) -> list[int]:
        """Return the records of a step and of all that it led to.

        What several messages led to that were handled together, each of them may have led to.
        """
        at = self._at(step)
        if at is None:
            return []
        begin = self._records[at[0]][at[1]]
        reached = {self._key(step), self._key(self.last_with(step))}
        found = [begin]
        for record, own, cause in sorted(self._behind(begin)):
            if cause in reached and own not in reached:
                reached.add(own)
                found.append(record)
        return found

    def last_with(self, step: Cause) -> Cause:
        """Return the last step that was handled together with this one."""
        at = self._at(step)
        assert at is not None
        number, last = at
        while last + 1 < len(self._joined[number]) and self._joined[number][last + 1]:
            last += 1
        return Cause(step.mailbox, self._first[number] + last)

    def _behind(self, begin: int) -> Iterator[tuple[int, int, int]]:
        """Yield the messages behind a record, each with its own number and that of its cause."""
        for number, first in enumerate(self._first):
            columns = zip(self._records[number], self._causes[number], strict=True)
            for step, (record, cause) in enumerate(columns, first):
                if record > begin:
                    yield record, number << _STEP_BITS | step, cause

    def _key(self, step: Cause) -> int:
        return self._numbers[step.mailbox] << _STEP_BITS | step.step


class _InFile:
    """What the origins of items are found by, where the recording stays on the disk."""

    def __init__(self, path: Path, heads: Heads) -> None:
        self._heads = heads
        self._places = Places(path)
        self._known: dict[int, Delivery] = {}
        self._naming: dict[frozenset[str], list[Delivery]] = {}

    def at(self, step: Cause) -> Delivery | None:
        record = self._heads.record(step)
        found = [] if record is None else self.read([record])
        return found[0] if found else None

    def read(self, records: list[int]) -> list[Delivery]:
        missing = [record for record in records if record not in self._known]
        self._known.update(self._places.at(missing))
        return [self._known[record] for record in records if record in self._known]

    def joined_with(self, step: Cause) -> list[Delivery]:
        return self.read(self._heads.records_with(step))

    def naming(self, names: Iterable[str], mailbox: str) -> list[Delivery]:
        wanted = frozenset(names)
        if wanted not in self._naming:
            self._naming[wanted] = list(self._places.speaking_of(wanted))
        return [it for it in self._naming[wanted] if it.mailbox.startswith(mailbox)]


def upwards(step: Cause, path: Path, about: str = "") -> list[Link]:
    """Return what led to a step, from outside down to it; by the item that is named, or the first.

    A message without items is followed by causes.
    """
    heads = Heads(path)
    recorded = _InFile(path, heads)
    last = recorded.at(step)
    if last is None:
        raise NotThere(f"there is no step {step.mailbox}/{step.step}")
    item = _item(last, about)
    if item is None:
        return _by_causes(step, heads, recorded)
    way = origins(recorded, last, item)
    set_off = [None, *(it.set_off_by for it in way[:-1])]
    return [
        Link(
            depth=depth,
            delivery=it.delivery,
            is_wanted=it.delivery is last,
            about=it.item.key or it.item.application_id,
            others=len(items_in(it.delivery.message)) - 1,
            together=it.together,
            set_off_by=set_off_by,
        )
        for depth, (it, set_off_by) in enumerate(zip(way, set_off, strict=True))
    ]


def _item(delivery: Delivery, about: str) -> Item | None:
    items = items_in(delivery.message)
    if not about:
        return items[0] if items else None
    for it in items:
        if about in {it.key, it.uuid, it.application_id, f"{it.application_id}/{it.key}"}:
            return it
    near = did_you_mean(about, {name for it in items for name in it.names})
    raise NotThere(f"{delivery.mailbox}/{delivery.step} is not about {about!r:.80}{near}")


def by_causes(step: Cause, path: Path) -> list[Link]:
    """Return what led to a step by causes alone, from outside down to it."""
    heads = Heads(path)
    if heads.record(step) is None:
        raise NotThere(f"there is no step {step.mailbox}/{step.step}")
    return _by_causes(step, heads, _InFile(path, heads))


def _by_causes(step: Cause, heads: Heads, recorded: _InFile) -> list[Link]:
    records = [heads.record(it) for it in heads.up(step)]
    found = recorded.read([record for record in records if record is not None])
    return [
        Link(depth=depth, delivery=it, is_wanted=depth == len(found) - 1)
        for depth, it in enumerate(found)
    ]


def downwards(step: Cause, path: Path) -> list[Link]:
    """Return a step and all that it led to by causes, each behind what caused it.

    Of what it was handled together with, that is left out which is about other items.
    """
    heads = Heads(path)
    records = heads.down(step)
    if not records:
        raise NotThere(f"there is no step {step.mailbox}/{step.step}")
    last = heads.last_with(step)
    read = Places(path).at(records)
    wanted = read.pop(records[0])
    mine = _Mine(items_in(wanted.message) if len(heads.records_with(last)) > 1 else [])
    first = Link(depth=0, delivery=wanted, is_wanted=True)
    known = {step: first, last: first}
    below: dict[Cause, list[Link]] = {}
    for delivery in read.values():
        above = known.get(delivery.cause)
        at = Cause(delivery.mailbox, delivery.step)
        if above is None or not mine.takes(delivery.message):
            continue
        link = known[at] = Link(depth=above.depth + 1, delivery=delivery)
        own = Cause(above.delivery.mailbox, above.delivery.step)
        below.setdefault(own, []).append(link)
    return _in_order(first, below)


class _Mine:
    """Whether a message is about one of these items, or about none at all."""

    def __init__(self, items: list[Item]) -> None:
        self._names = {name for it in items for name in it.names}

    def takes(self, message: Message) -> bool:
        if not self._names:
            return True
        items = items_in(message)
        return not items or any(
            not self._names.isdisjoint((it.key, it.uuid, it.application_id)) for it in items
        )


def _in_order(first: Link, below: dict[Cause, list[Link]]) -> list[Link]:
    found: list[Link] = []
    rest = [first]
    while rest:
        link = rest.pop()
        found.append(link)
        at = Cause(link.delivery.mailbox, link.delivery.step)
        rest.extend(reversed(below.get(at, ())))
    return found
