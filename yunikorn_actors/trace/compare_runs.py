"""Two recordings of one story: where they part, and what was different in the end.

What happened is compared: requests from outside, facts, refusals. Each is known by what it is, not
by its place: the request that it came of, the type, the ids in it and how manieth it is. One
message more in a mailbox shifts all places behind it, and one call more the numbers of all stimuli,
so a request is known by what it says. What came of another request in the other run, as threads
interleave, is found there all the same, and counted. Times, UUIDs and what a run counts by itself
are left out: two runs never have the same. The order of requests is compared by itself.
"""

from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from yunikorn_actors.messages.base import EVENT_PUBLISHER, GATEWAY, Cause, Delivery, Message
from yunikorn_actors.messages.codec import type_name
from yunikorn_actors.messages.queries import (
    EventsRequested,
    ExplainRequested,
    RmDumpRequested,
    StateDumpRequested,
)
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.recording.plain_text import printable
from yunikorn_actors.state.facts import Fact
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.trace.fields import Change, change_line, change_row, changes
from yunikorn_actors.trace.origins.message_parts import facts_of, texts_in
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.refused import Refusal, refusals_in
from yunikorn_actors.trace.state_at import Replicas
from yunikorn_actors.trace.text.show import lacking, place
from yunikorn_actors.trace.text.summary import fact_summary, message_summary
from yunikorn_actors.trace.text.tables import seconds

CONTEXT_LINES: Final = 3
NOBODY: Final = -1
REQUEST: Final = "request"
_QUESTIONS: Final = (StateDumpRequested, ExplainRequested, EventsRequested, RmDumpRequested)
"""To ask changes nothing."""
_OF_ONE_RUN: Final = frozenset(
    {
        *("uuid", "uuids", "proposal_id", "sequence", "first_sequence", "serial", "generation"),
        *("placeholder", "victims", "reply_to", "callback", "started", "state_log", "history"),
    }
)
_IDS: Final = ("application_id", "key", "path", "node_id", "kind")


class Happening(NamedTuple):
    """One thing that happened in a run."""

    name: tuple[str, ...]
    part: Struct
    """The request, the fact or the refusal."""
    at: Cause
    record: int
    stimulus: str
    after_ns: int

    @property
    def what(self) -> dict[str, Any]:
        """Return what two runs are compared by; a refusal has its reason alone."""
        if isinstance(self.part, Refusal):
            return {"reason": self.part.reason}
        plain: dict[str, Any] = _without(msgspec.to_builtins(self.part))
        return plain

    @property
    def text(self) -> str:
        match self.part:
            case Refusal(what=what, id=id_, reason=reason):
                return f"refused {what} {id_} ({reason})"
            case Message() as message:
                return f"{type_name(message)} {message_summary(message)}"
            case fact:
                return f"{type(fact).__name__} {fact_summary(fact)}"  # type: ignore[arg-type]


class Side(Struct, frozen=True, kw_only=True):
    """What one of the runs has at the first difference."""

    happening: Happening | None
    """None if it has nothing of the kind."""
    before: tuple[Happening, ...]
    """What happened last before that."""


class Comparison(Struct, frozen=True, kw_only=True):
    counts: tuple[int, int]
    """How many things happened in each run."""
    only: tuple[int, int]
    """How many of them only in the one, and only in the other."""
    changed: int
    """How many happened in both, and were different."""
    moved: int
    """How many happened in both, and came of another request."""
    sides: tuple[Side, Side] | None
    """The first difference."""
    fields: tuple[Change, ...]
    """What is different there, if it happened in both."""
    ended: tuple[Change, ...]
    """What was different in the end."""
    order: tuple[Happening, Happening] | None
    """The first requests that came in another order, as in the one and as in the other."""
    lacks: tuple[str, str]
    """What is missing in each of the recordings."""

    @property
    def is_same(self) -> bool:
        return self.sides is None and self.order is None and not self.ended


class Alignment(Struct, frozen=True, kw_only=True):
    """Which messages of two runs tell of the same thing; a message is named by its record."""

    same: tuple[tuple[int, int], ...]
    changed: tuple[tuple[int, int], ...]
    """What happened in both, and was different."""
    only: tuple[tuple[int, ...], tuple[int, ...]]
    """What happened only in the one, and only in the other."""


def align(one: Path, other: Path) -> Alignment:
    here, there = runs = (_Run(one), _Run(other))
    partners, _ = _partners(runs)
    met = {partner for partner in partners if partner != NOBODY}
    pairs: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    for number, partner in enumerate(partners):
        if partner != NOBODY:
            is_changed = here.contents[number] != there.contents[partner]
            pairs[is_changed].append((here.records[number], there.records[partner]))
    return Alignment(
        same=tuple(pairs[False]),
        changed=tuple(pairs[True]),
        only=(
            tuple(
                record for record, it in zip(here.records, partners, strict=True) if it == NOBODY
            ),
            tuple(record for number, record in enumerate(there.records) if number not in met),
        ),
    )


def compare(one: Path, other: Path) -> Comparison:
    runs = (_Run(one), _Run(other))
    partners, moved = _partners(runs)
    here, there = (run.contents for run in runs)
    met = {partner for partner in partners if partner != NOBODY}
    different = [
        number for number, partner in enumerate(partners)
        if partner == NOBODY or here[number] != there[partner]
    ]  # fmt: skip
    only_here = partners.count(NOBODY)
    first = next(iter(different), NOBODY)
    is_shared = first != NOBODY and partners[first] != NOBODY
    only_there = (number for number in range(len(there)) if number not in met)
    places = (first, partners[first] if is_shared else next(only_there, NOBODY))
    sides = _sides((one, other), places) if places != (NOBODY, NOBODY) else None
    return Comparison(
        counts=(len(here), len(there)),
        only=(only_here, len(there) - len(met)),
        changed=len(different) - only_here,
        moved=moved,
        sides=sides,
        fields=_fields(sides) if is_shared else (),
        ended=tuple(changes(runs[0].end(), runs[1].end())),
        order=_order((one, other), runs, partners),
        lacks=(runs[0].lacks, runs[1].lacks),
    )


def _partners(runs: "tuple[_Run, _Run]") -> tuple["array[int]", int]:
    """Find what is in both runs; return who is whose partner, and how many came of another request.

    What came of the same request meets first; of what is left the request is not asked for.
    """
    one, other = runs
    partners = array("q", [NOBODY]) * len(one.contents)
    left: tuple[Sequence[int], Sequence[int]]
    left = range(len(one.contents)), range(len(other.contents))
    moved = 0
    for ours, theirs in ((one.stories, other.stories), (one.names, other.names)):
        pairs = list(_pairs(left, (ours, theirs)))
        for number, partner in pairs:
            partners[number] = partner
        met = {partner for _, partner in pairs}
        left = (
            [it for it in left[0] if partners[it] == NOBODY],
            [it for it in left[1] if it not in met],
        )
        moved = len(pairs)
    return partners, moved


def _pairs(
    sides: tuple[Iterable[int], Iterable[int]], names: tuple["array[int]", "array[int]"]
) -> Iterator[tuple[int, int]]:
    """Pair what has the same name, the first with the first, the second with the second."""
    ours, theirs = (
        iter(sorted(side, key=of.__getitem__)) for side, of in zip(sides, names, strict=True)
    )
    here, there = next(ours, None), next(theirs, None)
    while here is not None and there is not None:
        one, other = names[0][here], names[1][there]
        if one == other:
            yield here, there
        if one <= other:
            here = next(ours, None)
        if other <= one:
            there = next(theirs, None)


def _order(
    paths: tuple[Path, Path], runs: "tuple[_Run, _Run]", partners: "array[int]"
) -> tuple[Happening, Happening] | None:
    """Find the first place where requests that came in both runs do not come in the same order."""
    shared = [number for number in runs[0].requests if partners[number] != NOBODY]
    for here, there in zip(shared, sorted(partners[it] for it in shared), strict=True):
        if partners[here] != there:
            first, second = (side.happening for side in _sides(paths, (here, there)))
            assert first is not None
            assert second is not None
            return first, second
    return None


class _Run:
    """All that happened in a run, in few bytes each, and what is left of it in the end."""

    def __init__(self, path: Path) -> None:
        self.names = array("q")
        """A hash of the name of each happening."""
        self.stories = array("q")
        """A hash of its name and of the request that it came of."""
        self.contents = array("q")
        """A hash of what it is."""
        self.records = array("q")
        """The record in which each is reported."""
        self.requests = array("q")
        """Which of them are requests."""
        self._replicas = Replicas()
        with TraceReader(path) as trace:
            self._read(_happenings(trace, self._replicas.take))
            self.lacks = "; ".join(lacking(trace))
            """What is missing in the recording."""

    def _read(self, happenings: Iterator[Happening]) -> None:
        counts: Counter[int] = Counter()
        of_stimulus: dict[str, int] = {}
        for number, it in enumerate(happenings):
            name = hash(it.name)
            if it.name[0] == REQUEST:
                counts[name] += 1
                of_stimulus[it.stimulus] = hash((name, counts[name]))
                self.requests.append(number)
            self.names.append(name)
            self.records.append(it.record)
            self.stories.append(hash((name, of_stimulus.get(it.stimulus, it.stimulus))))
            self.contents.append(hash(msgspec.json.encode(it.what, order="sorted")))

    def end(self) -> dict[str, Any]:
        return {name: _end_of(state) for (name, _), state in self._replicas.states.items()}


def _end_of(state: PartitionState | None) -> dict[str, Any]:
    if state is None:
        return {}
    ended = {it.spec.application_id: it.state.value for it in state.finished.values()}
    living = {app.id: app.state.value for app in state.applications.values()}
    allocations: dict[str, list[str]] = {}
    for app in state.applications.values():
        for allocation in app.allocations.values():
            key = f"{app.id}/{allocation.spec.key}"
            allocations.setdefault(key, []).append(allocation.node_id)
    return {
        "applications": ended | living,
        "allocations": {key: ", ".join(sorted(nodes)) for key, nodes in allocations.items()},
    }


# -- what happened


def _happenings(
    trace: TraceReader, follow: Callable[[FactsAppended], object] = lambda _: None
) -> Iterator[Happening]:
    for delivery in trace:
        message = delivery.message
        if isinstance(message, FactsAppended):
            # Schedulers receive the same.
            if delivery.mailbox == EVENT_PUBLISHER:
                follow(message)
                for fact in facts_of(message):
                    name = (type(fact).__name__, *_ids(fact))
                    yield _happening(trace, delivery, name, fact)
        elif delivery.sender == GATEWAY and not isinstance(message, _QUESTIONS):
            texts = sorted(texts_in(_without(msgspec.to_builtins(message))))
            yield _happening(trace, delivery, (REQUEST, type_name(message), *texts), message)
        else:
            for refusal in refusals_in(delivery):
                yield _happening(trace, delivery, ("refused", refusal.what, refusal.id), refusal)


def _happening(
    trace: TraceReader, delivery: Delivery, name: tuple[str, ...], part: Struct
) -> Happening:
    return Happening(
        name=name, part=part, at=Cause(delivery.mailbox, delivery.step),
        record=trace.number, stimulus=delivery.stimulus,
        after_ns=delivery.at_ns - trace.header.start_ns,
    )  # fmt: skip


def _ids(fact: Fact) -> tuple[str, ...]:
    """What it is about; where something was placed is not who it is."""
    parts = (fact, getattr(fact, "spec", None))
    found = {name: getattr(part, name) for part in parts for name in _IDS if hasattr(part, name)}
    if len(found) > 1 and "key" in found:
        found.pop("node_id", None)
    return tuple(str(found[name]) for name in sorted(found))


def _without(value: Any) -> Any:  # noqa: ANN401 - whatever is in a payload
    """Leave out what is of one run alone."""
    if isinstance(value, dict):
        return {
            name: _without(it) for name, it in value.items() if not _is_of_one_run(str(name), it)
        }
    if isinstance(value, list | tuple):
        return [_without(it) for it in value]
    return value


def _is_of_one_run(name: str, value: object) -> bool:
    """Of the same name, a flag tells what was asked for, and a text who it was in this run."""
    return name.endswith("_ns") or (name in _OF_ONE_RUN and not isinstance(value, bool))


# -- the first difference


def _sides(paths: tuple[Path, Path], numbers: tuple[int, int]) -> tuple[Side, Side]:
    one, other = (_side(path, number) for path, number in zip(paths, numbers, strict=True))
    return one, other


def _side(path: Path, number: int) -> Side:
    """Read again up to there: nothing but numbers was kept. Of nobody, to the end."""
    before: deque[Happening] = deque(maxlen=CONTEXT_LINES)
    with TraceReader(path) as trace:
        for count, it in enumerate(_happenings(trace)):
            if count == number:
                return Side(happening=it, before=tuple(before))
            before.append(it)
    return Side(happening=None, before=tuple(before))


def _fields(sides: tuple[Side, Side] | None) -> tuple[Change, ...]:
    here, there = (None, None) if sides is None else (side.happening for side in sides)
    return () if here is None or there is None else tuple(changes(here.what, there.what))


# -- in words


def comparison_lines(paths: tuple[Path, Path], found: Comparison) -> Iterator[str]:
    yield from _difference_lines(paths, found)
    yield from (
        printable(f"{it}: {lack}") for it, lack in zip(paths, found.lacks, strict=True) if lack
    )


def _difference_lines(paths: tuple[Path, Path], found: Comparison) -> Iterator[str]:
    if found.is_same:
        yield f"the same {found.counts[0]} requests, facts and refusals in both{_moved(found)}"
        return
    if found.order is not None:
        yield "requests came in another order, first:"
        for path, it in zip(paths, found.order, strict=True):
            yield printable(f"  {path}")
            yield f"    > {_said(it)}"
        yield ""
    if found.sides is not None:
        yield "the first difference:"
        yield from chain.from_iterable(map(_side_lines, paths, found.sides))
        yield from (f"    {change_line(it)}" for it in found.fields)
        yield ""
        yield (
            f"{found.changed} are different, {found.only[0]} of {found.counts[0]} are only in "
            f"{paths[0]}, {found.only[1]} of {found.counts[1]} only in {paths[1]}{_moved(found)}"
        )
    yield "different in the end:" if found.ended else "nothing is different in the end"
    yield from map(change_line, found.ended)


def _moved(found: Comparison) -> str:
    return f"; {found.moved} came of another request" if found.moved else ""


def _side_lines(path: Path, side: Side) -> Iterator[str]:
    yield printable(f"  {path}")
    yield from (f"      {_said(it)}" for it in side.before)
    yield f"    > {'nothing of the kind' if side.happening is None else _said(side.happening)}"


def _said(it: Happening) -> str:
    return printable(f"{seconds(it.after_ns)}  {it.stimulus:<14}  {place(it.at)}  {it.text}")


def comparison_rows(paths: tuple[Path, Path], found: Comparison) -> Iterator[dict[str, Any]]:
    """Yield what `comparison_lines` says as plain values, each with its kind under `what`."""
    yield {
        "what": "counts", "changed": found.changed, "moved": found.moved, "only": found.only,
        "of": found.counts, "lacks": found.lacks,
    }  # fmt: skip
    for path, it in zip(paths, found.order or (), strict=False):
        yield {"what": "order", "file": str(path), "is": _row(it)}
    for path, side in zip(paths, found.sides or (), strict=False):
        here = None if side.happening is None else _row(side.happening)
        yield {"what": "first", "file": str(path), "is": here, "before": [*map(_row, side.before)]}
    yield from ({"what": "field", **change_row(it)} for it in found.fields)
    yield from ({"what": "ended", **change_row(it)} for it in found.ended)


def _row(it: Happening) -> dict[str, Any]:
    return {
        "record": it.record, "step": place(it.at), "stimulus": it.stimulus,
        "after_ns": it.after_ns, "text": it.text,
    }  # fmt: skip
