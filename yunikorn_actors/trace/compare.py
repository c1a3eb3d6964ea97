"""Two recordings of one story: where they part, and what was different in the end.

What happened is compared: requests from outside, facts, refusals. Each is known by what it is, not
by its place: the type, the ids in it and how manieth it is. One message more in a mailbox shifts
all places behind it, and one call more the numbers of all stimuli. Times, UUIDs and what a run
counts by itself are left out: two runs never have the same. The order of requests is compared by
itself.
"""

from collections import Counter, deque
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from yunikorn_actors.domain.changes import apply
from yunikorn_actors.domain.facts import Fact
from yunikorn_actors.domain.partition import PartitionState
from yunikorn_actors.messages.base import EVENT_PUBLISHER, GATEWAY, Cause, Delivery
from yunikorn_actors.messages.codec import type_name
from yunikorn_actors.messages.queries import (
    EventsRequested,
    ExplainRequested,
    RmDumpRequested,
    StateDumpRequested,
)
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.trace.fields import Change, change_line, change_row, changes
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.refusals import refusals_in
from yunikorn_actors.trace.show import place, printable
from yunikorn_actors.trace.summary import fact_summary, message_summary
from yunikorn_actors.trace.tables import seconds
from yunikorn_actors.trace.wanted import facts_of, texts_in

CONTEXT_LINES: Final = 3
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
    what: dict[str, Any]
    text: str
    at: Cause
    record: int
    stimulus: str
    after_ns: int


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
    sides: tuple[Side, Side] | None
    """The first difference."""
    fields: tuple[Change, ...]
    """What is different there, if it happened in both."""
    ended: tuple[Change, ...]
    """What was different in the end."""
    order: tuple[Happening, Happening] | None
    """The first requests that came in another order, as in the one and as in the other."""

    @property
    def is_same(self) -> bool:
        return self.sides is None and self.order is None and not self.ended


def compare(one: Path, other: Path) -> Comparison:
    runs = (_Run(one), _Run(other))
    theirs = dict(runs[1].known)
    changed, first, partner, only_here = 0, 0, 0, 0
    for name, (record, content) in runs[0].known.items():
        found = theirs.pop(name, None)
        if found is not None and found[1] == content:
            continue
        changed += found is not None
        only_here += found is None
        if not first:
            first, partner = record, 0 if found is None else found[0]
    theirs_first = next((record for record, _ in theirs.values()), 0)
    records = (first, partner or theirs_first)
    sides = _sides((one, other), records) if any(records) else None
    return Comparison(
        counts=(len(runs[0].known), len(runs[1].known)),
        only=(only_here, len(theirs)),
        changed=changed,
        sides=sides,
        fields=_fields(sides) if partner else (),
        ended=tuple(changes(runs[0].end(), runs[1].end())),
        order=_order((one, other), runs),
    )


def _order(
    paths: tuple[Path, Path], runs: "tuple[_Run, _Run]"
) -> tuple[Happening, Happening] | None:
    """Find the first place where requests that came in both runs do not come in the same order."""
    one, other = (
        [name for name in run.requests if name in against.known]
        for run, against in (runs, runs[::-1])
    )
    for here, there in zip(one, other, strict=True):
        if here != there:
            numbers = (runs[0].known[here][0], runs[1].known[there][0])
            first, second = (side.happening for side in _sides(paths, numbers))
            assert first is not None
            assert second is not None
            return first, second
    return None


class _Run:
    """All that happened in a run, in few bytes each, and what is left of it in the end."""

    def __init__(self, path: Path) -> None:
        self.known: dict[int, tuple[int, int]] = {}
        """By a hash of the name: the number of the happening, and a hash of what it is."""
        self.requests: list[int] = []
        self._states: dict[tuple[str, int], PartitionState | None] = {}
        """None where facts are missing, or contradict each other."""
        counts: Counter[tuple[str, ...]] = Counter()
        with TraceReader(path) as trace:
            for number, it in enumerate(_happenings(trace, self._follow), 1):
                counts[it.name] += 1
                content = hash(msgspec.json.encode(it.what, order="sorted"))
                name = hash((it.name, counts[it.name]))
                self.known[name] = (number, content)
                if it.name[0] == REQUEST:
                    self.requests.append(name)

    def _follow(self, message: FactsAppended) -> None:
        """Keep a replica, as a scheduler does; one whose facts make no sense is given up."""
        life = (message.partition, message.epoch)
        state = self._states.setdefault(life, PartitionState(message.partition))
        if state is None or message.first_revision != state.revision + 1:
            self._states[life] = None
            return
        try:
            for fact in message.facts:
                apply(state, fact)
        except Exception:  # noqa: BLE001 - a recording comes from anywhere
            self._states[life] = None

    def end(self) -> dict[str, Any]:
        return {name: _end_of(state) for (name, _), state in self._states.items()}


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


def _happenings(trace: TraceReader, follow: Any = lambda _: None) -> Iterator[Happening]:  # noqa: ANN401
    for delivery in trace:
        if isinstance(delivery.message, FactsAppended):
            # Schedulers are told the same.
            if delivery.mailbox == EVENT_PUBLISHER:
                follow(delivery.message)
                yield from _told(trace, delivery)
        elif delivery.sender == GATEWAY and not isinstance(delivery.message, _QUESTIONS):
            kind, what = type_name(delivery.message), _plain(delivery.message)
            text = f"{kind} {message_summary(delivery.message)}"
            yield _happening(trace, delivery, (REQUEST, kind, *sorted(texts_in(what))), what, text)
        else:
            for refusal in refusals_in(delivery):
                name = ("refused", refusal.what, refusal.id)
                text = f"refused {refusal.what} {refusal.id} ({refusal.reason})"
                yield _happening(trace, delivery, name, {"reason": refusal.reason}, text)


def _told(trace: TraceReader, delivery: Delivery) -> Iterator[Happening]:
    for fact in facts_of(delivery.message):
        kind = type(fact).__name__
        yield _happening(
            trace, delivery, (kind, *_ids(fact)), _plain(fact), f"{kind} {fact_summary(fact)}"
        )


def _happening(
    trace: TraceReader, delivery: Delivery, name: tuple[str, ...], what: dict[str, Any], text: str
) -> Happening:
    return Happening(
        name=name, what=what, text=text, at=Cause(delivery.mailbox, delivery.step),
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


def _plain(part: Struct) -> dict[str, Any]:
    plain: dict[str, Any] = _without(msgspec.to_builtins(part))
    return plain


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
    """Read again up to there: nothing but numbers was kept. Without a number, to the end."""
    before: deque[Happening] = deque(maxlen=CONTEXT_LINES)
    with TraceReader(path) as trace:
        for count, it in enumerate(_happenings(trace), 1):
            if count == number:
                return Side(happening=it, before=tuple(before))
            before.append(it)
    return Side(happening=None, before=tuple(before))


def _fields(sides: tuple[Side, Side] | None) -> tuple[Change, ...]:
    here, there = (None, None) if sides is None else (side.happening for side in sides)
    return () if here is None or there is None else tuple(changes(here.what, there.what))


# -- in words


def comparison_lines(paths: tuple[Path, Path], found: Comparison) -> Iterator[str]:
    if found.is_same:
        yield f"the same {found.counts[0]} requests, facts and refusals in both"
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
            f"{paths[0]}, {found.only[1]} of {found.counts[1]} only in {paths[1]}"
        )
    yield "different in the end:" if found.ended else "nothing is different in the end"
    yield from map(change_line, found.ended)


def _side_lines(path: Path, side: Side) -> Iterator[str]:
    yield printable(f"  {path}")
    yield from (f"      {_said(it)}" for it in side.before)
    yield f"    > {'nothing of the kind' if side.happening is None else _said(side.happening)}"


def _said(it: Happening) -> str:
    return printable(f"{seconds(it.after_ns)}  {it.stimulus:<14}  {place(it.at)}  {it.text}")


def comparison_rows(paths: tuple[Path, Path], found: Comparison) -> Iterator[dict[str, Any]]:
    """Yield what `comparison_lines` says as plain values, each with its kind under `what`."""
    yield {
        "what": "counts", "changed": found.changed, "only": found.only, "of": found.counts,
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
