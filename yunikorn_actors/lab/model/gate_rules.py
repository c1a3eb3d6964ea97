"""The gates that are shipped, written a second time: who may start, in plain sums over moments.

No profile of free room is kept: what is free at a moment is added up from what runs then. What a
queue allows is a type of its own, by the path of the queue and the type.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from yunikorn_actors.policies.inputs import Arrived, Change, Ended, Job, Left, Sized, Started
from yunikorn_actors.values.durations import NEVER_NS

Kind = str | tuple[str, str]
Amounts = Mapping[Any, int]
"""By `Kind`."""


class Span(NamedTuple):
    """Something takes so much, from a moment up to another one."""

    from_ns: int
    until_ns: int
    size: Amounts


class Room(NamedTuple):
    """What a leaf may use: what is free now, and what comes free of what runs."""

    now_ns: int
    free: Amounts
    running: Sequence[tuple[int, Amounts]]
    """With the moment at which it ends as declared."""

    def at(self, moment_ns: int) -> dict[Any, int]:
        """Work that should have ended counts as if it did now."""
        free = dict(self.free)
        for end_ns, size in self.running:
            if max(end_ns, self.now_ns) <= moment_ns and end_ns < NEVER_NS:
                for kind, amount in size.items():
                    free[kind] = free.get(kind, 0) + amount
        return free

    def earliest(self, size: Amounts) -> int:
        ends = sorted({max(end_ns, self.now_ns) for end_ns, _ in self.running if end_ns < NEVER_NS})
        for moment_ns in (self.now_ns, *ends):
            if holds(self.at(moment_ns), size):
                return moment_ns
        return NEVER_NS


def holds(free: Amounts, size: Amounts) -> bool:
    return all(amount <= free.get(kind, 0) for kind, amount in size.items() if amount > 0)


def passes_first(room: Room, first: Amounts, mine: Amounts, runtime_ns: int) -> bool:
    """Whether one may start before the first that waits: it delays that at no moment (EASY)."""
    shadow_ns = room.earliest(first)
    if runtime_ns < NEVER_NS and room.now_ns + runtime_ns <= shadow_ns:
        return True
    free = room.at(shadow_ns)
    return holds(free, {it: first.get(it, 0) + mine.get(it, 0) for it in (*first, *mine)})


@dataclass
class PlainConservative:
    """Each job is promised a moment when it comes, which only becomes earlier.

    It is a fold, and is given what the shipped one is given.
    """

    now_ns: int = 0
    capacity: dict[str, int] = field(default_factory=dict)
    running: dict[str, tuple[Job, int]] = field(default_factory=dict)
    promised: dict[str, tuple[Job, int]] = field(default_factory=dict)
    new: list[Job] = field(default_factory=list)
    may_move: bool = False

    def application_key(self, _: object) -> int:
        return 0

    def observe(self, fact: Change, now_ns: int) -> None:
        if now_ns > self.now_ns:
            self.settle()
            self.now_ns = now_ns
        match fact:
            case Arrived(job):
                self.new.append(job)
            case Started(job):
                self.settle()
                self.promised.pop(job.id, None)
                self.running[job.id] = (job, now_ns)
            case Ended(job) | Left(job):
                known = job.id in self.running or job.id in self.promised
                self.running.pop(job.id, None)
                self.promised.pop(job.id, None)
                self.new = [it for it in self.new if it.id != job.id]
                self.may_move |= known
            case Sized(capacity):
                self.capacity, self.may_move = dict(capacity), True

    def settle(self) -> None:
        """Those that wait move up in their order, and those that have come get their promises."""
        for id_, (job, at_ns) in self.promised.items():
            self.promised[id_] = (job, max(at_ns, self.now_ns))
        if self.may_move:
            for id_, (job, at_ns) in tuple(self.promised.items()):
                self.promised[id_] = (job, min(at_ns, self._earliest(job)))
        for job in self.new:
            self.promised[job.id] = (job, self._earliest(job))
        self.new, self.may_move = [], False

    def start_of(self, id_: str) -> int | None:
        _, at_ns = self.promised.get(id_, (None, None))
        return at_ns

    def _earliest(self, job: Job) -> int:
        spans = [it for it in self._spans(but=job.id) if it.until_ns > self.now_ns]
        moments = {self.now_ns, *(it.until_ns for it in spans if it.until_ns < NEVER_NS)}
        moments |= {it.from_ns for it in spans if self.now_ns < it.from_ns < NEVER_NS}
        for start_ns in sorted(moments):
            end_ns = job.end_ns(start_ns)
            within = [start_ns, *(it for it in moments if start_ns < it < end_ns)]
            if all(self._has_room(spans, job, moment_ns) for moment_ns in within):
                return start_ns
        return NEVER_NS

    def _has_room(self, spans: Iterable[Span], job: Job, moment_ns: int) -> bool:
        free = dict(self.capacity)
        for span in spans:
            if span.from_ns <= moment_ns < span.until_ns:
                for kind, amount in span.size.items():
                    free[kind] = free.get(kind, 0) - amount
        return holds(free, dict(job.total))

    def _spans(self, *, but: str) -> Iterator[Span]:
        for job, at_ns in self.running.values():
            yield Span(0, job.end_ns(at_ns), dict(job.total))
        for id_, (job, at_ns) in self.promised.items():
            if id_ != but:
                yield Span(at_ns, job.end_ns(at_ns), dict(job.total))
