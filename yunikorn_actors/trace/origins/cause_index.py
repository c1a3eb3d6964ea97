"""Who caused whom, and where that stands in a recording.

Every effect stands behind its cause in a recording. So one reading of the heads of records, which
keeps a few numbers for each message, is enough to find all that came before one or of it. Payloads
are read of those messages alone.
"""

from array import array
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Final

from yunikorn_actors.messages.base import CONTEXT, Cause, Delivery
from yunikorn_actors.trace.origins.item_matching import Together
from yunikorn_actors.trace.origins.items import Item, ItemsOnce
from yunikorn_actors.trace.origins.message_parts import texts_in
from yunikorn_actors.trace.origins.origin_queries import (
    Addition,
    OfManager,
    Receives,
    Recorded,
    Written,
    written_in,
)
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.records.record_index import Places

_STEP_BITS: Final = 40
_STEP_MASK: Final = (1 << _STEP_BITS) - 1
_NOBODY: Final = -1


class CauseIndex:
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
        # It is done for each of a million messages: what is looked up here is looked up once.
        number = self._number(mailbox)
        causes = self._causes[number]
        if not causes:
            self._first[number] = step
        # A caller's mailbox counts its answers from one again, and those lead nowhere.
        elif step != self._first[number] + len(causes):
            return
        packed, mixes = _NOBODY, False
        if cause.step:
            by = self._number(cause.mailbox)
            packed = by << _STEP_BITS | cause.step
            position, mixed = cause.step - self._first[by], self._mixed[by]
            # What several led to may have come of each of them: then they were joined.
            if 0 <= position < len(mixed):
                mixes = bool(self._joined[by][position] or mixed[position])
        causes.append(packed)
        self._records[number].append(record)
        self._joined[number].append(joined)
        self._mixed[number].append(mixes)

    def _number(self, mailbox: str) -> int:
        number = self._numbers.get(mailbox)
        if number is None:
            number = self._numbers[mailbox] = len(self._names)
            self._names.append(mailbox)
            self._causes.append(array("q"))
            self._records.append(array("q"))
            self._joined.append(bytearray())
            self._mixed.append(bytearray())
            self._first.append(0)
        return number

    def _at(self, step: Cause) -> tuple[int, int] | None:
        number = self._numbers.get(step.mailbox)
        if number is None:
            return None
        position = step.step - self._first[number]
        return (number, position) if 0 <= position < len(self._causes[number]) else None

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

    def led_by(self, step: Cause) -> list[int]:
        """Return the records of the messages of which a step is the cause."""
        at = self._at(step)
        return [] if at is None else self._effects.get(at[0] << _STEP_BITS | step.step, [])

    @cached_property
    def _effects(self) -> dict[int, list[int]]:
        effects: dict[int, list[int]] = {}
        for records, causes in zip(self._records, self._causes, strict=True):
            for record, cause in zip(records, causes, strict=True):
                if cause != _NOBODY:
                    effects.setdefault(cause, []).append(record)
        return effects

    def last_with(self, step: Cause) -> Cause:
        """Return the last step that was handled together with this one."""
        at = self._at(step)
        assert at is not None
        number, last = at
        while last + 1 < len(self._joined[number]) and self._joined[number][last + 1]:
            last += 1
        return Cause(step.mailbox, self._first[number] + last)


class InFile:
    """What the origins of items are found by, where the recording stays on the disk."""

    def __init__(self, path: Path, heads: CauseIndex) -> None:
        self._heads = heads
        self._places = Places(path)
        self.items_of = ItemsOnce()
        self.additions: dict[Item, list[Addition]] = {}
        self._known: dict[int, Delivery] = {}
        self._together: dict[Cause, Together] = {}
        self._naming: dict[str, list[Delivery]] = {}

    def at(self, step: Cause) -> Delivery | None:
        record = self._heads.record(step)
        found = [] if record is None else self.read([record])
        return found[0] if found else None

    def read(self, records: Iterable[int]) -> list[Delivery]:
        records = list(records)
        self._known.update(self._places.at(it for it in records if it not in self._known))
        return [self._known[record] for record in records if record in self._known]

    def joined_with(self, step: Cause) -> Together:
        if step not in self._together:
            found = self.read(self._heads.records_with(step))
            self._together[step] = Together(found, self.items_of)
        return self._together[step]

    def alone(self, delivery: Delivery) -> Together:
        return Together((delivery,), self.items_of)

    def naming(self, names: Iterable[str], receives: Receives) -> list[Delivery]:
        """Return those that speak of them: an item that has the name does."""
        return self.speaking(names, receives)

    def speaking(self, names: Iterable[str], receives: Receives) -> list[Delivery]:
        return [it for it in self.speaking_of(names) if receives(it.mailbox)]

    def written(self, names: Iterable[str]) -> list[Written]:
        wanted = set(names)
        return list(written_in(self.speaking_of(wanted), wanted))

    def of_manager(self, manager: str) -> Recorded:
        return OfManager(self, manager)

    def speaking_of(self, names: Iterable[str]) -> list[Delivery]:
        """Return the messages in which one of the names stands, in their order."""
        wanted = set(names)
        self.hold(wanted)
        found = {Cause(it.mailbox, it.step): it for name in wanted for it in self._naming[name]}
        return sorted(found.values(), key=self._record)

    def hold(self, names: Iterable[str]) -> None:
        """Read at once what speaks of many names, and what it was handled together with."""
        new = {name: list[Delivery]() for name in names if name not in self._naming}
        if not new:
            return
        held: list[Delivery] = []
        for it in self._places.speaking_of(new):
            named = new.keys() & set(texts_in(it.message))
            for name in named:
                new[name].append(it)
            if named:
                held.append(it)
        self._naming.update(new)
        causes = {it.cause for it in held if it.cause.step}
        self.read({record for it in causes for record in self._heads.records_with(it)})

    def _record(self, delivery: Delivery) -> int:
        return self._heads.record(Cause(delivery.mailbox, delivery.step)) or 0
