"""All that the recording of a run can be asked, in each form in which that is answered."""

from collections.abc import Callable, Iterator, Mapping
from io import StringIO
from pathlib import Path
from typing import Any, Final, get_args

import msgspec

from yunikorn_actors.config import parse_config
from yunikorn_actors.errors import CoreError
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces.command_outputs import said_of_recording
from yunikorn_actors.lab.surfaces.core_inquiries import Answer
from yunikorn_actors.lab.surfaces.kept_recording import FILE, KeptRecording
from yunikorn_actors.lab.surfaces.temporary_folder import temporary_folder
from yunikorn_actors.lab.surfaces.workload_logs import made_of
from yunikorn_actors.machines.machine import InvariantViolation
from yunikorn_actors.messages.base import Cause, Delivery
from yunikorn_actors.messages.codec import type_name
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.policies.registry import Policy
from yunikorn_actors.state.facts import Fact
from yunikorn_actors.trace.chain import NotThere, by_causes, downwards, upwards
from yunikorn_actors.trace.compare_runs import compare, comparison_lines, comparison_rows
from yunikorn_actors.trace.export.formats import FORMATS
from yunikorn_actors.trace.export.sqlite import QueryError, query, save
from yunikorn_actors.trace.fields import change_line, change_row
from yunikorn_actors.trace.filters import (
    DeliveryFilter,
    FilterOptions,
    Moment,
    moment_of,
    strangers,
)
from yunikorn_actors.trace.origins.message_parts import texts_in
from yunikorn_actors.trace.other_configuration import what_if, what_if_lines
from yunikorn_actors.trace.path import path_of
from yunikorn_actors.trace.read import TraceError, TraceReader
from yunikorn_actors.trace.recording import Recording
from yunikorn_actors.trace.refused import grouped
from yunikorn_actors.trace.replay import DifferentError, Extent, outcome_rows, replay
from yunikorn_actors.trace.scrub.scrub import Scrubbed, ScrubError
from yunikorn_actors.trace.state_at import reach_of, state_changes, states_at
from yunikorn_actors.trace.stats import stats
from yunikorn_actors.trace.story import NotFound, story
from yunikorn_actors.trace.text.draw import draw as draw_lines
from yunikorn_actors.trace.text.show import Look, show, shown_rows, tail
from yunikorn_actors.trace.text.tables import (
    chain_lines,
    path_lines,
    refusal_lines,
    stats_lines,
    story_lines,
)
from yunikorn_actors.trace.view.aligned import aligned
from yunikorn_actors.trace.view.objects import WhyOf, objects_of
from yunikorn_actors.trace.view.run_data import Shown, drawn

_REFUSALS: Final = (
    TraceError, CoreError, NotThere, NotFound, DifferentError, ScrubError, InvariantViolation,
)  # fmt: skip
"""What an answer may be as well; where a fault has sent something, machines refuse it again."""
_NAMED: Final = ("application_id", "key", "uuid", "node_id", "queue", "path", "user")
"""Fields whose texts are names that one may ask about."""
_FACTS: Final = tuple(kind.__name__ for kind in get_args(Fact))
_WIDTHS: Final = (0, 0, 60, 100, 160)
_LIMITS: Final = (0, 0, 1, 7)
_SHARE: Final = 2
"""Of the questions one in so many is asked of one recording."""
_CONFIGS: Final = (
    "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: a}]}]}]",
    """
    partitions:
    - name: default
      queues:
      - name: root
        submitacl: '*'
        queues:
        - {name: a, resources: {max: {vcore: 2}}}
        - {name: b, maxapplications: 1}
        - {name: c}
    """,
)
_SQL: Final = (
    "select type, count(*), min(id), sum(took_ns), sum(joined) from message group by 1 order by 1",
    "select type, count(*), min(message), max(revision), min(says) from fact group by 1 order by 1",
    "select id, count(*), max(message) from mention group by id order by 2 desc, 1 limit 20",
    "select count(*), sum(cause), sum(effect) from edge",
    "select mailbox, stimulus, says, payload, sent_ns from message order by id desc limit 5",
    "delete from message", "select nothing from nowhere",
)  # fmt: skip


class RecordingQuestions:
    """Asks one recording; what is asked is drawn."""

    def __init__(
        self, kept: KeptRecording, draw: Draw, policies: Mapping[str, Policy] | None
    ) -> None:
        self._kept, self._draw, self._policies = kept, draw, policies

    def answers(self) -> Iterator[Answer]:
        """Write the recording, and ask."""
        with temporary_folder() as folder:
            self._folder = folder
            self._path = self._kept.write(folder, self._draw)
            asked: tuple[Callable[[], Iterator[Answer]], ...] = (
                self._shown, self._drawn, self._chains, self._lives, self._sums, self._exported,
                self._asked_in_sql, self._pictured, self._run_again, self._compared, self._states,
                self._what_if, self._scrubbed, self._tailed, self._damaged,
                self._as_object, self._by_command, self._played,
            )  # fmt: skip
            for ask in asked:
                if self._draw.once_in(_SHARE):
                    yield from self._tried(ask)

    def _tried(self, ask: Callable[[], Iterator[Answer]]) -> Iterator[Answer]:
        name, answers = ask.__name__.strip("_"), ask()
        while True:
            try:
                what, answer = next(answers)
            except StopIteration:
                return
            except _REFUSALS as error:
                yield f"a recording, {name}", self._plain(f"{type(error).__name__}: {error}")
                return
            yield f"a recording, {what}", self._plain(answer)

    def _plain(self, answer: Any) -> Any:  # noqa: ANN401 - any answer
        """Return it as values that do not name the folder."""
        text = msgspec.json.encode(answer, enc_hook=str, order="sorted").decode()
        return text.replace(self._folder, "")

    # -- what is asked about

    def _names(self) -> list[str]:
        """Name some things of the run, and one that is not there."""
        names: dict[str, None] = {}
        for delivery in self._kept.deliveries:
            names.update(dict.fromkeys(_names_in(msgspec.to_builtins(delivery.message))))
        known = [it for it in names if it]
        found = [self._draw.one_of(known) for _ in range(3) if known]
        return [*found, *(f"{it}/nothing" for it in found[:1]), "nobody"]

    def _delivery(self) -> Delivery:
        return self._draw.one_of(self._kept.deliveries)

    def _step(self) -> Cause:
        it = self._delivery()
        return Cause(it.mailbox, it.step + (1000 if self._draw.once_in(9) else 0))

    def _moment(self) -> Moment:
        draw, it = self._draw, self._delivery()
        after_ms = (it.at_ns - self._kept.deliveries[0].at_ns) // 1_000_000
        return moment_of(
            draw.one_of(
                (
                    f"{after_ms}ms",
                    f"{it.mailbox}/{it.step}",
                    str(draw.whole(1, len(self._kept.deliveries))),
                )
            )
        )

    def _filter(self) -> FilterOptions:
        draw, it = self._draw, self._delivery()
        mailbox = draw.one_of((it.mailbox, it.mailbox.partition(":")[0], "nobody"))
        texts = [*texts_in(it.message)] or ["nothing"]
        kind = draw.one_of((type_name(it.message), *_FACTS))
        return FilterOptions(
            mailbox=(mailbox,) if draw.once_in(5) else (),
            stimulus=(it.stimulus,) if draw.once_in(5) else (),
            type=(kind, "FactsAppended") if draw.once_in(5) else (),
            about=(draw.one_of(texts), "nothing") if draw.once_in(3) else (),
            refused=draw.once_in(8),
            begin=self._moment() if draw.once_in(5) else None,
            end=self._moment() if draw.once_in(5) else None,
        )

    def _opened(self) -> TraceReader:
        return TraceReader(self._path, policies=self._policies)

    # -- the questions

    def _shown(self) -> Iterator[Answer]:
        draw, wanted = self._draw, self._filter()
        look = Look(
            colour=draw.once_in(3), width=draw.one_of(_WIDTHS), full=draw.once_in(4),
            times=draw.once_in(2), limit=draw.one_of(_LIMITS), clock=draw.once_in(2),
        )  # fmt: skip
        out = StringIO()
        with self._opened() as trace:
            yield "how many are shown", show(trace, out, wanted, look)
        yield "as shown", out.getvalue()
        with self._opened() as trace:
            yield "as rows", [*shown_rows(trace, wanted, draw.one_of(_LIMITS))]
        with self._opened() as trace:
            yield "who is not in it", [*strangers(trace, wanted)]

    def _drawn(self) -> Iterator[Answer]:
        draw = self._draw
        lines = draw_lines(
            self._path, self._filter(),
            width=draw.one_of(_WIDTHS), limit=draw.one_of(_LIMITS), clock=draw.once_in(2),
        )  # fmt: skip
        yield "as a picture of lines", [*lines]

    def _chains(self) -> Iterator[Answer]:
        clock = self._draw.once_in(2)
        for way in (upwards, by_causes, downwards):
            for _ in range(2):
                links = way(self._step(), self._path)
                yield (
                    f"a chain, {way.__name__}",
                    (
                        [
                            (it.depth, it.about, it.others, it.together, it.set_off_by)
                            for it in links
                        ],
                        [*chain_lines(self._path, links, clock=clock)],
                    ),
                )
        it = self._delivery()
        about = self._draw.one_of([*texts_in(it.message)] or [""])
        for way in (upwards, downwards):
            yield (
                "a chain of one item",
                [*chain_lines(self._path, way(Cause(it.mailbox, it.step), self._path, about))],
            )

    def _lives(self) -> Iterator[Answer]:
        clock = self._draw.once_in(2)
        for name in self._names():
            yield from self._tried_life(name, clock=clock)

    def _tried_life(self, name: str, *, clock: bool) -> Iterator[Answer]:
        try:
            subject, lines = story(self._path, name)
            yield f"the life of {name}", [*story_lines(self._path, subject, lines, clock=clock)]
            way = path_of(self._path, name)
            yield f"the way of {name}", (way, [*path_lines(way, clock=clock)])
        except NotFound as error:
            yield f"nothing of {name}", str(error)

    def _sums(self) -> Iterator[Answer]:
        wanted = self._filter() if self._draw.once_in(2) else FilterOptions()
        with self._opened() as trace:
            groups = grouped(wanted.over(trace))
            yield "what was refused", (groups, [*refusal_lines(trace, groups)])
        with self._opened() as trace:
            found = stats(trace, wanted)
            yield "its counts", (found, [*stats_lines(trace, found)])

    def _exported(self) -> Iterator[Answer]:
        wanted = self._filter() if self._draw.once_in(2) else FilterOptions()
        for name in {self._draw.one_of([*FORMATS]): None, self._draw.one_of([*FORMATS]): None}:
            with self._opened() as trace:
                yield f"as {name}", [*FORMATS[name](trace, DeliveryFilter(wanted, trace))]

    def _asked_in_sql(self) -> Iterator[Answer]:
        wanted = self._filter() if self._draw.once_in(2) else FilterOptions()
        path = Path(self._folder, "run.sqlite")
        with self._opened() as trace:
            save(trace, DeliveryFilter(wanted, trace), path)
        for sql in _SQL:
            try:
                yield sql, [*query(path, sql, 60.0)]
            except QueryError as error:
                yield sql, str(error)

    def _pictured(self) -> Iterator[Answer]:
        wanted = self._filter() if self._draw.once_in(2) else FilterOptions()
        why = self._draw.one_of([*WhyOf])
        shown = [Shown(FILE, self._path, self._policies)]
        if self._draw.once_in(3):
            shown.append(Shown("other", self._other(), self._policies))
        pictures = [drawn(it, wanted) for it in shown]
        for it, picture in zip(shown, pictures, strict=True):
            yield "as a page", (picture.run, objects_of(it, picture, why))
            yield "payloads of its page", [it.decode() for it in picture.payloads]
        if len(shown) > 1:
            one, other = (it.run.messages.record for it in pictures)
            yield "two beside each other", aligned(shown[0], shown[1], (one, other))

    def _run_again(self) -> Iterator[Answer]:
        for goes_on in (False, True):
            extent = Extent(
                until=self._moment() if self._draw.once_in(2) else None, goes_on=goes_on
            )
            with self._opened() as trace:
                outcome = replay(trace, extent)
            yield "run again", ([*outcome_rows(outcome)], outcome.report())

    def _other(self) -> Path:
        """Write a recording of another run: some messages are left out, or come later."""
        draw, kept = self._draw, self._kept
        records = [kept.data[a:b] for a, b in zip(kept.ends, kept.ends[1:], strict=False)]
        for _ in range(draw.whole(1, 3)):
            place = draw.number(len(records))
            while draw.once_in(2) and not isinstance(kept.deliveries[place].message, FactsAppended):
                place = draw.number(len(records))
            record = records.pop(place)
            if draw.once_in(2):
                records.insert(draw.number(len(records) + 1), record)
        path = Path(self._folder, "other.trace")
        path.write_bytes(kept.data[: kept.ends[0]] + b"".join(records) + kept.data[kept.ends[-1] :])
        return path

    def _compared(self) -> Iterator[Answer]:
        other = self._other()
        with TraceReader(other, policies=self._policies) as trace:
            outcome = replay(trace, Extent(goes_on=True))
        yield "another, run again", ([*outcome_rows(outcome)], outcome.report())
        for paths in ((self._path, self._path), (self._path, other)):
            found = compare(*paths)
            yield "two compared", (
                [*comparison_lines(paths, found)], [*comparison_rows(paths, found)],
            )  # fmt: skip

    def _states(self) -> Iterator[Answer]:
        places = [self._moment(), self._moment()]
        with self._opened() as trace:
            states = [it for it in states_at(trace, places) if it is not None]
        if len(states) < len(places):
            yield "it does not come so far", reach_of(self._path)
        for state in states:
            yield "a state of it", state
        if len(states) == len(places):
            changed = [*state_changes(*states)]
            yield "what changed", ([*map(change_line, changed)], [*map(change_row, changed)])

    def _what_if(self) -> Iterator[Answer]:
        with self._opened() as trace:
            found = what_if(trace, parse_config(self._draw.one_of(_CONFIGS)))
        yield "under another configuration", (
            [*what_if_lines(found)], found.starts, found.as_recorded, found.unlike,
        )  # fmt: skip

    def _scrubbed(self) -> Iterator[Answer]:
        scrubbed, path = Scrubbed(self._path, self._policies), Path(self._folder, "scrubbed.trace")
        path.write_bytes(b"".join(scrubbed))
        yield "without names", (scrubbed.names, scrubbed.messages)
        with TraceReader(path, policies=self._policies) as trace:
            yield (
                "without names it has",
                sorted({it for delivery in trace for it in texts_in(delivery.message)}),
            )

    def _tailed(self) -> Iterator[Answer]:
        """Follow one that is still written, a part at a time."""
        kept, path = self._kept, Path(self._folder, "tailed.trace")
        cuts = sorted(self._draw.whole(kept.ends[0], len(kept.data)) for _ in range(3))
        parts = [kept.data[a:b] for a, b in zip(cuts, [*cuts[1:], len(kept.data)], strict=True)]
        path.write_bytes(kept.data[: cuts[0]])

        def more() -> None:
            with path.open("ab") as file:
                file.write(parts.pop(0))

        out = StringIO()
        tail(path, out, self._filter(), Look(width=self._draw.one_of(_WIDTHS)), more)
        yield "as it grew", out.getvalue()

    def _damaged(self) -> Iterator[Answer]:
        for _ in range(3):
            data, place = self._kept.data, self._draw.number(len(self._kept.data))
            path = Path(self._folder, "damaged.trace")
            flipped = bytes([data[place] ^ 1 << self._draw.number(8)])
            path.write_bytes(
                self._draw.one_of(
                    (data[:place], data[:place] + flipped + data[place + 1 :], data[place:], b"")
                )
            )
            read = 0
            try:
                with TraceReader(path) as trace:
                    for _ in trace:
                        read += 1
                yield "of a damaged one", (read, trace.rest, trace.footer is None)
            except TraceError as error:
                yield "of a damaged one", (read, str(error))

    def _as_object(self) -> Iterator[Answer]:
        recording = Recording(self._path, self._policies)
        it = self._delivery()
        yield "as rows of an object", [*recording.rows()]
        yield "states of an object", [recording.at(f"{it.mailbox}/{it.step}"), recording.at(40)]
        yield (
            "chain of an object",
            [link.depth for link in recording.chain(f"{it.mailbox}/{it.step}", down=True)],
        )
        yield "how it ended", recording.footer is None
        for name in self._names():
            yield "why, of an object", recording.why(name)

    def _by_command(self) -> Iterator[Answer]:
        if not self._policies:
            yield from said_of_recording(self._path, self._names(), str(self._step()), self._draw)

    def _played(self) -> Iterator[Answer]:
        if not self._policies:
            yield from made_of([str(self._path)], "from-trace", self._draw)


def _names_in(value: Any) -> Iterator[str]:  # noqa: ANN401 - plain values
    if isinstance(value, dict):
        for field, part in value.items():
            if isinstance(part, str) and field in _NAMED:
                yield part
            else:
                yield from _names_in(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _names_in(part)
