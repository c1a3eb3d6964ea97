"""An oracle of recordings: what is answered of one is what stands in its messages.

The messages of a run are at hand as they were handled. Each answer is worked out from them in the
plainest way, and has to be the same when the file is asked.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces.kept_recording import KeptRecording
from yunikorn_actors.messages.base import Cause, Delivery
from yunikorn_actors.messages.codec import canonical
from yunikorn_actors.messages.rm_calls import CallUpdateAllocation
from yunikorn_actors.messages.rm_events import AllocationsRequested
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.policies.registry import Policy
from yunikorn_actors.state import facts as f
from yunikorn_actors.trace.chain import by_causes, downwards, upwards
from yunikorn_actors.trace.compare_runs import compare
from yunikorn_actors.trace.export.formats import FORMATS
from yunikorn_actors.trace.export.sqlite import query, save
from yunikorn_actors.trace.filters import DeliveryFilter, FilterOptions, moment_of
from yunikorn_actors.trace.path import path_of
from yunikorn_actors.trace.read import TraceError, TraceReader
from yunikorn_actors.trace.recording import Recording
from yunikorn_actors.trace.replay import DifferentError
from yunikorn_actors.trace.scrub.scrub import Scrubbed
from yunikorn_actors.trace.stats import Row, stats
from yunikorn_actors.trace.story import story

_PART: Final = 3
"""One question in so many is asked of one recording: together they take longer than the run."""
_ASKS: Final = 3
"""So many asks are followed."""
_STEPS: Final = 4
_FILTERS: Final = 4
_NAME: Final = re.compile(r"\d")
_NEW_NAME: Final = re.compile(r"^(app|ask|node|text|name|user|core)-\d+")
"""As things are called that have lost their names."""
_SHORT: Final = 4
"""A name of so many letters may be a part of any text."""
_LIFE: Final = (f.AskAdded, f.AllocationCommitted)
"""Facts that are in the life of an ask each time, whatever else is."""


def wrong_answers(
    kept: KeptRecording, path: Path, draw: Draw, policies: Mapping[str, Policy] | None
) -> Iterator[str]:
    """Yield what is answered otherwise than the messages say; a part of the questions is asked."""
    asked = _Asked(kept, path, draw, policies)
    for ask in (
        asked.as_read, asked.cut_off, asked.counts, asked.filtered, asked.chains, asked.lives,
        asked.ways, asked.waits, asked.in_sql, asked.compared, asked.without_names,
    ):  # fmt: skip
        if draw.once_in(_PART):
            yield from (f"{ask.__name__.replace('_', ' ')}: {fault}" for fault in ask())


class _Asked:
    def __init__(
        self, kept: KeptRecording, path: Path, draw: Draw, policies: Mapping[str, Policy] | None
    ) -> None:
        self._kept, self._path, self._draw, self._policies = kept, path, draw, policies
        self._deliveries = kept.deliveries
        self._at = {Cause(it.mailbox, it.step): it for it in self._deliveries}
        self._start_ns = self._deliveries[0].at_ns

    def _opened(self) -> TraceReader:
        return TraceReader(self._path, policies=self._policies)

    # -- the messages themselves

    def as_read(self) -> Iterator[str]:
        with self._opened() as trace:
            read = [*trace]
            if trace.footer is None or trace.footer.took_ns != self._kept.took_ns:
                yield f"it ends with {trace.footer}, not with what was taken: {self._kept.took_ns}"
        if len(read) != len(self._deliveries):
            yield f"{len(read)} messages are read, {len(self._deliveries)} were handled"
        for here, there in zip(read, self._deliveries, strict=False):
            if _plain(here) != _plain(there):
                yield f"{here} is read, {there} was handled"
                return

    def cut_off(self) -> Iterator[str]:
        """Of what was cut off, whole records can be read."""
        data, ends = self._kept.data, self._kept.ends
        place = self._draw.whole(ends[0], len(data) - 1)
        path = self._path.with_name("cut.trace")
        path.write_bytes(data[:place])
        wanted = sum(end <= place for end in ends) - 1
        rest = place - max(end for end in ends if end <= place)
        try:
            with TraceReader(path) as trace:
                found = sum(1 for _ in trace)
                if (found, trace.rest, trace.footer) != (wanted, rest, None):
                    yield f"{found} and {trace.rest} bytes of {wanted} and {rest}, {trace.footer}"
        except TraceError as error:
            yield f"{wanted} records stand there whole, and it is refused: {error}"

    # -- counts

    def counts(self) -> Iterator[str]:
        with self._opened() as trace:
            found = stats(trace, FilterOptions())
        last_ns = max(it.at_ns for it in self._deliveries)
        if (found.messages, found.duration_ns) != (len(self._deliveries), last_ns - self._start_ns):
            yield f"{found.messages} messages in {found.duration_ns} ns"
        wanted = dict[tuple[str, str], list[Delivery]]()
        for it in self._deliveries:
            for kind in ("", type(it.message).__name__):
                wanted.setdefault((it.mailbox, kind), []).append(it)
        rows = {(row.mailbox, row.type): row for row in found.rows}
        if rows.keys() != wanted.keys():
            yield f"it counts {[*rows]}, there are {[*wanted]}"
            return
        for name, some in wanted.items():
            yield from self._of_row(name, rows[name], some)
        slowest = sorted(ns for name in wanted if name[1] for ns in self._took(*name))[-10:]
        if sorted(it.took_ns for it in found.slowest) != slowest:
            yield f"the slowest are {found.slowest}, not {slowest}"

    def _of_row(self, name: tuple[str, str], row: Row, some: list[Delivery]) -> Iterator[str]:
        if row.count != len(some):
            yield f"{row.count} of {name}, there are {len(some)}"
        waited = [it.at_ns - it.sent_ns for it in some if it.sent_ns is not None]
        for spread, times in ((row.waited, waited), (row.took, self._took(*name))):
            found = None if spread is None else (spread.p50, spread.max)
            if found != (_spread(times) if times else None):
                yield f"{name} has {spread} of {times}"
        longest = None if name[1] else _longest(some)
        if row.longest_queue != longest:
            yield f"at most {row.longest_queue} wait for {name}, there are {longest}"

    def _took(self, mailbox: str, kind: str) -> list[int]:
        """How long each took: the next of its mailbox says it, and the end of the last ones."""
        some = [it for it in self._deliveries if it.mailbox == mailbox]
        after = [*(it.previous_took_ns for it in some[1:]), self._kept.took_ns.get(mailbox)]
        return [
            took for it, took in zip(some, after, strict=True)
            if took is not None and kind in {"", type(it.message).__name__}
        ]  # fmt: skip

    # -- filters

    def filtered(self) -> Iterator[str]:
        for _ in range(_FILTERS):
            name, wanted, takes = self._filter()
            with self._opened() as trace:
                found = [(it.mailbox, it.step) for it in wanted.over(trace)]
            truth = [(it.mailbox, it.step) for it in self._deliveries if takes(it)]
            if found != truth:
                yield f"{name}: {found} instead of {truth}"

    def _filter(self) -> tuple[str, FilterOptions, Callable[[Delivery], bool]]:
        draw, it = self._draw, self._draw.one_of(self._deliveries)
        match draw.number(6):
            case 0:
                box = it.mailbox.partition(":")[0]
                return (
                    f"mailbox {box}", FilterOptions(mailbox=(box, "nobody")),
                    lambda one: one.mailbox.split(":")[0] == box,
                )  # fmt: skip
            case 1:
                # The names of fields stand beside them here, and nobody asks about those.
                texts = filter(_NAME.search, _texts(msgspec.to_builtins(it.message)))
                text = draw.one_of(sorted(texts) or ["nothing-1"])
                return (
                    f"about {text!r}", FilterOptions(about=(text,)),
                    lambda one: text in _texts(msgspec.to_builtins(one.message)),
                )  # fmt: skip
            case 2:
                kind = type(it.message).__name__
                return (
                    f"type {kind}", FilterOptions(type=(kind,)),
                    lambda one: type(one.message).__name__ == kind,
                )  # fmt: skip
            case 3:
                after_s = (it.at_ns - self._start_ns) // 10**9
                return (
                    f"from {after_s} s on", FilterOptions(begin=moment_of(f"{after_s}s")),
                    self._from_on(after_s * 10**9),
                )  # fmt: skip
            case 4:
                return (
                    f"up to {it.mailbox}/{it.step}",
                    FilterOptions(end=moment_of(f"{it.mailbox}/{it.step}")),
                    self._up_to(self._deliveries.index(it)),
                )  # fmt: skip
            case _:
                kinds = [type(part).__name__ for one in _facts_in(it) for part in f.parts_of(one)]
                kind = draw.one_of(kinds or ["AskAdded"])
                return f"facts {kind}", FilterOptions(type=(kind,)), lambda one: _has(one, kind)

    def _from_on(self, after_ns: int) -> Callable[[Delivery], bool]:
        """Time may stand still, and go back by nothing: the first that is there begins."""
        first = next(
            number for number, it in enumerate(self._deliveries)
            if it.at_ns - self._start_ns >= after_ns
        )  # fmt: skip
        taken = {id(it) for it in self._deliveries[first:]}
        return lambda one: id(one) in taken

    def _up_to(self, last: int) -> Callable[[Delivery], bool]:
        taken = {id(it) for it in self._deliveries[: last + 1]}
        return lambda one: id(one) in taken

    # -- what led to what

    def chains(self) -> Iterator[str]:
        for _ in range(_STEPS):
            it = self._draw.one_of(self._deliveries)
            step, way = Cause(it.mailbox, it.step), [it]
            while (before := self._at.get(way[0].cause)) is not None:
                way.insert(0, before)
            found = [link.delivery for link in by_causes(step, self._path)]
            if [*map(_plain, found)] != [*map(_plain, way)]:
                yield f"{step} comes of {[*map(_step, found)]}, and not of {[*map(_step, way)]}"
            if upwards(step, self._path)[-1].delivery.step != it.step:
                yield f"the way to {step} does not end there"
            below = downwards(step, self._path)
            if not any(link.is_wanted and _step(link.delivery) == step for link in below):
                yield f"what came of {step} is without itself"

    # -- the life of an ask

    def _asks(self) -> list[tuple[str, str]]:
        """Draw asks that were asked once, under a name that nothing else has."""
        names = Counter[tuple[str, str]]()
        for it in self._deliveries:
            if isinstance(it.message, AllocationsRequested):
                request = it.message.request
                names.update(map(_name_of, (*request.asks, *request.allocations)))
        keys = Counter(key for _, key in names)
        apps = {app for app, _ in names}
        once = [
            (app, key) for (app, key), count in names.items()
            if count == 1 and keys[key] == 1 and app and key and key not in apps and "/" not in key
        ]  # fmt: skip
        return [self._draw.one_of(once) for _ in range(_ASKS)] if once else []

    def _facts(self) -> Iterator[tuple[Delivery, f.Fact]]:
        """Yield each fact with the first message that brings it; of a run each part."""
        seen: set[tuple[str, int, int]] = set()
        for it in self._deliveries:
            if isinstance(it.message, FactsAppended):
                for revision, fact in enumerate(it.message.facts, it.message.first_revision):
                    name = (it.message.partition, it.message.epoch, revision)
                    if name not in seen:
                        seen.add(name)
                        yield from ((it, part) for part in f.parts_of(fact))

    def lives(self) -> Iterator[str]:
        facts = [*self._facts()]
        for app, key in self._asks():
            wanted: dict[str, int] = {}
            for it, fact in facts:
                if isinstance(fact, _LIFE) and _ask_of(fact) == (app, key):
                    wanted.setdefault(type(fact).__name__, getattr(fact, "at_ns", it.at_ns))
            if not wanted:
                continue
            _, lines = story(self._path, f"{app}/{key}")
            found: dict[str, int] = {}
            for line in lines:
                if line.what in wanted:
                    found.setdefault(line.what, line.at_ns)
            if wanted != found:
                yield f"of {app}/{key} it has {found}, and not {wanted}"
            if any(a.at_ns > b.at_ns for a, b in zip(lines, islice(lines, 1, None), strict=False)):
                yield f"the life of {app}/{key} is out of order"

    def ways(self) -> Iterator[str]:
        """How long it took is the time from the request to the answer that has it."""
        for app, key in self._asks():
            begun = next(it for it in self._deliveries if _requests(it, app, key))
            heard = next((it for it in self._deliveries if _announces(it, app, key)), None)
            if not any(_ask_of(fact) == (app, key) for _, fact in self._facts()):
                continue
            way = path_of(self._path, f"{app}/{key}")
            begun_ns = begun.at_ns if begun.sent_ns is None else begun.sent_ns
            if way.began_ns != begun_ns:
                yield f"the way of {app}/{key} begins at {way.began_ns}, not {begun_ns}"
            if heard is None:
                # The end of it may be that it was taken back.
                continue
            if not way.is_whole:
                yield f"the way of {app}/{key} does not come to its end"
            elif way.took_ns != heard.at_ns - begun_ns:
                yield f"{app}/{key} took {way.took_ns}, not {heard.at_ns - begun_ns}"

    def waits(self) -> Iterator[str]:
        """What held an ask holds from when it came, without a gap, until it is placed."""
        facts = [*self._facts()]
        for app, key in self._asks()[:1]:
            try:
                found = Recording(self._path, self._policies).why(key, app)
            except DifferentError as error:
                yield f"it is run again otherwise: {error.as_warning()}"
                continue
            for waits in found:
                for one, other in zip(waits.periods, waits.periods[1:], strict=False):
                    if one.waits and (one.end is None or one.end.at_ns != other.begin.at_ns):
                        yield f"{app}/{key} waits up to {one.end}, and from {other.begin} on"
            came = {
                at_ns for _, fact in facts
                if isinstance(fact, f.AskAdded) and _ask_of(fact) == (app, key)
                for at_ns in (fact.created_ns, fact.at_ns)
            }  # fmt: skip
            begun = [waits.periods[0].begin.at_ns for waits in found if waits.periods]
            if came and begun and min(begun) not in came:
                yield f"{app}/{key} waits from {begun} on, and came at {came}"

    # -- others that read it

    def in_sql(self) -> Iterator[str]:
        path = self._path.with_name("run.sqlite")
        with self._opened() as trace:
            save(trace, DeliveryFilter(FilterOptions(), trace), path)
        wanted = Counter(type(it.message).__name__ for it in self._deliveries)
        sql = "select type, count(*) as count from message group by type"
        found = {row["type"]: row["count"] for row in query(path, sql, 60.0)}
        if found != wanted:
            yield f"messages {found} instead of {wanted}"
        sql = "select count(*) as count, coalesce(sum(effect), 0) as effects from edge"
        edges = [
            number for number, it in enumerate(self._deliveries, 1) if it.cause in self._at
        ]  # fmt: skip
        (row,) = query(path, sql, 60.0)
        if (row["count"], row["effects"]) != (len(edges), sum(edges)):
            yield f"causes {row} instead of {len(edges)}, {sum(edges)}"
        with self._opened() as trace:
            lines = [*FORMATS["jsonl"](trace, DeliveryFilter(FilterOptions(), trace))]
        read = [line for line in map(msgspec.json.decode, lines) if line["record"] == "delivery"]
        if [it["step"] for it in read] != [it.step for it in self._deliveries]:
            yield f"{len(read)} lines of JSON for {len(self._deliveries)} messages"

    def compared(self) -> Iterator[str]:
        """A run is like itself; without a request it is not."""
        if not compare(self._path, self._path).is_same:
            yield "it is not like itself"
        requests = [
            number for number, it in enumerate(self._deliveries)
            if isinstance(it.message, AllocationsRequested) and it.message.request.asks
        ]  # fmt: skip
        if not requests:
            return
        number = self._draw.one_of(requests)
        data, ends = self._kept.data, self._kept.ends
        other = self._path.with_name("other.trace")
        other.write_bytes(data[: ends[number]] + data[ends[number + 1] :])
        found = compare(self._path, other)
        if found.is_same:
            yield f"without {self._deliveries[number]} it is the same"

    def without_names(self) -> Iterator[str]:
        scrubbed = Scrubbed(self._path, self._policies)
        data = b"".join(scrubbed)
        if scrubbed.messages != len(self._deliveries):
            yield f"{scrubbed.messages} messages of {len(self._deliveries)} are left"
        for app, key in self._asks():
            if len(key) <= _SHORT or _NEW_NAME.search(key):
                continue
            # A stimulus of the laboratory may have it, which no core would give.
            if key.encode() in data and not any(key in it.stimulus for it in self._deliveries):
                yield f"{key} of {app} still stands in it"


# -- of single messages


def _plain(it: Delivery) -> tuple[object, ...]:
    return (*it[:6], canonical(it.message), *it[7:])


def _step(it: Delivery) -> Cause:
    return Cause(it.mailbox, it.step)


def _spread(times: list[int]) -> tuple[int, int]:
    """Return the least that half of them do not exceed, and the most."""
    half = min(one for one in times if 2 * sum(it <= one for it in times) >= len(times))
    return half, max(times)


def _longest(some: list[Delivery]) -> int | None:
    """Count at each sending what was sent by then and not handled; itself counts."""
    sent = sorted(it.sent_ns for it in some if it.sent_ns is not None)
    handled = [it.at_ns for it in some if it.sent_ns is not None]
    counts = [
        number - sum(at_ns <= sent_ns for at_ns in handled)
        for number, sent_ns in enumerate(sent, 1)
    ]
    return max(0, *counts) if counts else None


def _texts(value: Any) -> set[str]:  # noqa: ANN401 - plain values
    if isinstance(value, str):
        return {value}
    if isinstance(value, dict):
        return set().union(*map(_texts, value.keys()), *map(_texts, value.values()))
    if isinstance(value, list | tuple):
        return set().union(*map(_texts, value))
    return set()


def _facts_in(it: Delivery) -> tuple[f.Fact, ...]:
    return tuple(it.message.facts) if isinstance(it.message, FactsAppended) else ()


def _has(it: Delivery, kind: str) -> bool:
    return any(
        type(part).__name__ == kind for fact in _facts_in(it) for part in (fact, *f.parts_of(fact))
    )


def _ask_of(fact: f.Fact) -> tuple[str, str]:
    spec = getattr(fact, "spec", None)
    app = getattr(fact, "application_id", getattr(spec, "application_id", ""))
    return app, getattr(fact, "key", getattr(spec, "key", ""))


def _requests(it: Delivery, app: str, key: str) -> bool:
    message = it.message
    return isinstance(message, AllocationsRequested) and any(
        _name_of(one) == (app, key) for one in (*message.request.asks, *message.request.allocations)
    )


def _announces(it: Delivery, app: str, key: str) -> bool:
    message = it.message
    return isinstance(message, CallUpdateAllocation) and any(
        _name_of(one) == (app, key) for one in message.response.new
    )


def _name_of(it: Any) -> tuple[str, str]:  # noqa: ANN401 - an ask, or an allocation
    return it.application_id, it.allocation_key
