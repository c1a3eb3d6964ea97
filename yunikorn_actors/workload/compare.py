"""Compares configurations and policies on one log: paired for each job, with honest intervals.

A run is deterministic, so what varies is the input. Two questions are answered apart: what if the
submits had come some seconds later (every variant is played again on the same shaken submits), and
what if the log had had other weeks (blocks of the log are drawn again, without another run).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from math import ceil, sqrt
from random import Random
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from yunikorn_actors.recording.plain_text import printable
from yunikorn_actors.workload.campaign import Result, RunJob
from yunikorn_actors.workload.cluster import guaranteed_shares
from yunikorn_actors.workload.figures import percentile, spread
from yunikorn_actors.workload.jobs import WorkloadError, check_number
from yunikorn_actors.workload.page import page, section_table
from yunikorn_actors.workload.replay_summary import duration, duration_signed
from yunikorn_actors.workload.table import Table

WEEK_S: Final = 7 * 86_400
BLOCKS_MIN: Final = 6
"""A log with fewer weeks is drawn in that many parts."""
RESAMPLES: Final = 1_000
SHAKE_S: Final = 60.0
_CONDITION: Final = re.compile(
    r"\s*(mean|median|p95|p99|max) +(wait|slowdown)(?: +of +(\S+))? *([<>]) *"
    r"([0-9]{1,15}(?:\.[0-9]{1,15})?)(x?)\s*"
)

Interval = tuple[float, float]
Row = dict[str, Any]


class Difference(Struct, kw_only=True):
    """What a variant does to the waits of the first one."""

    name: str
    first: float
    """The mean wait of the first variant, of the jobs that both have done."""
    other: float
    shaken: Interval | None
    """Of the difference of means, over runs with shaken submits: from the least to the most."""
    resampled: Interval
    """95 % of the difference of means, over blocks of the log drawn again."""
    fewer: int
    """So many jobs wait less than with the first."""
    more: int
    undone: int
    """So many jobs that are done with the first are not with this."""
    groups: list[tuple[str, str, int, float, float]]
    """Kind, name, jobs, and both mean waits, of users, queues, sizes and hours."""

    @property
    def change(self) -> float:
        return self.other - self.first

    def verdict(self, first: str) -> str:
        """Say in one sentence who wins; a difference that may be none is called that."""
        lows, highs = zip(*filter(None, (self.shaken, self.resampled)), strict=True)
        low, high = min(lows), max(highs)
        means = f"{duration(self.other)} in place of {duration(self.first)}"
        counts = f"{self.fewer:,} jobs wait less and {self.more:,} more"
        if self.undone:
            counts += f", and {self.undone:,} are not done at all"
        if low <= 0 <= high:
            return f"no difference between {self.name} and {first} can be told: {means}; {counts}"
        word = "less" if self.change < 0 else "more"
        span = f"{duration_signed(low)} to {duration_signed(high)}"
        return f"with {self.name} jobs wait {word} than with {first}: {means} ({span}); {counts}"


class Comparison(Struct, kw_only=True):
    tables: dict[str, Table]
    differences: list[Difference]
    guaranteed: dict[str, float]

    @property
    def verdict(self) -> str:
        first = next(iter(self.tables))
        return "; ".join(it.verdict(first) for it in self.differences)

    def page(self) -> str:
        measure = next(iter(self.tables))
        added = "".join(
            section_table(
                f"Who wins with {it.name}, and who loses",
                ("kind", "name", "jobs", measure, it.name, "change"),
                [(kind, name, f"{jobs:,}", duration(first), duration(other),
                  duration_signed(other - first)) for kind, name, jobs, first, other in it.groups],
                "mean waits of the jobs that both have done; the largest sum of changes first",
            )
            for it in self.differences
        )  # fmt: skip
        return page(self.tables, verdict=self.verdict, guaranteed=self.guaranteed, added=added)


def compare(
    variants: dict[str, RunJob],
    *,
    draws: int = 0,
    shake_s: float = SHAKE_S,
    shake_runs: float = 0.0,
    run_all: Callable[[Sequence[RunJob]], list[Result]],
) -> Comparison:
    """Play each variant, the first one being what others are measured against.

    Each is played so often again with other submits and run times: the same in all variants.
    """
    check_number("draws", draws)
    tables = {name: job.play() for name, job in variants.items()}
    shaken = {"shake_s": shake_s, "shake_runs": shake_runs}
    drawn = [
        replace(job, **shaken, options=replace(job.options, seed=1 + draw))
        for draw in range(draws)
        for job in variants.values()
    ]
    means = [result["wait_s"]["mean"] for result in run_all(drawn)]
    (_, first), *others = tables.items()
    differences = []
    for at, (name, table) in enumerate(others, 1):
        changes = [means[draw + at] - means[draw] for draw in range(0, len(means), len(tables))]
        interval = (min(changes), max(changes)) if changes else None
        differences.append(_difference(name, first, table, interval))
    capacity, main = first.run.capacity, first.run.main
    *_, last = variants.values()
    shares = guaranteed_shares(last.config, main, capacity.get(main, 0))
    return Comparison(tables=tables, differences=differences, guaranteed=shares)


def _difference(name: str, first: Table, other: Table, shaken: Interval | None) -> Difference:
    done = [both for both in zip(first, other, strict=True) if both[0]["state"] == "done"]
    pairs = [(one, two) for one, two in done if two["state"] == "done"]
    changes = [two["wait"] - one["wait"] for one, two in pairs]
    return Difference(
        name=name, shaken=shaken, groups=_groups(pairs), undone=len(done) - len(pairs),
        first=_mean([one["wait"] for one, _ in pairs]),
        other=_mean([two["wait"] for _, two in pairs]),
        resampled=_resampled([one["submit"] for one, _ in pairs], changes),
        fewer=sum(it < 0 for it in changes), more=sum(it > 0 for it in changes),
    )  # fmt: skip


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _resampled(submits: Sequence[float], changes: Sequence[float]) -> Interval:
    """Return 95 % of the mean change over blocks drawn with replacement, by a fixed seed.

    Few blocks drawn again differ less than other blocks would, so it is widened as Student's
    distribution is wider than the normal one.
    """
    if not changes:
        return 0.0, 0.0
    begin, span = submits[0], submits[-1] - submits[0]
    width = min(float(WEEK_S), span / BLOCKS_MIN) or 1.0
    last = max(BLOCKS_MIN, ceil(span / width)) - 1
    blocks: dict[int, list[float]] = {}
    for submit, change in zip(submits, changes, strict=True):
        blocks.setdefault(min(last, int((submit - begin) / width)), []).append(change)
    sums = [(sum(it), len(it)) for it in blocks.values()]
    random = Random(1)  # noqa: S311 - a repeatable draw, no secret
    draws = (zip(*random.choices(sums, k=len(sums)), strict=True) for _ in range(RESAMPLES))
    means = sorted(sum(totals) / sum(counts) for totals, counts in draws)
    mean, wider = _mean(changes), _widening(len(sums))
    low, high = (mean + wider * (percentile(means, it) - mean) for it in (2.5, 97.5))
    return low, high


def _widening(blocks: int) -> float:
    """How many times as wide Student's 95 % are as those of a sample that is taken for all."""
    if blocks == 1:
        return 1.0
    z, free = 1.959964, blocks - 1
    student = (
        z + (z**3 + z) / (4 * free) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * free**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * free**3)
    )  # fmt: skip
    return student / z * sqrt(blocks / free)


def _groups(pairs: Sequence[tuple[Row, Row]]) -> list[tuple[str, str, int, float, float]]:
    """Return whose waits changed most: the sum of changes of each user, queue, size and hour."""
    sums: dict[tuple[str, str], list[float]] = {}
    for one, two in pairs:
        for key in _keys(one):
            each = sums.setdefault(key, [0.0, 0.0, 0.0])
            for at, value in enumerate((1, one["wait"], two["wait"])):
                each[at] += value
    order = sorted(sums.items(), key=lambda it: (-abs(it[1][2] - it[1][1]), it[0]))
    found = []
    for kind in ("user", "queue", "size", "hour"):
        some = [(key, it) for key, it in order if key[0] == kind][:8]
        found += [(*key, int(n), a / n, b / n) for key, (n, a, b) in some]
    return found


def _keys(row: Row) -> Iterator[tuple[str, str]]:
    yield "user", row["user"]
    yield "queue", row["queue"]
    yield "size", f"up to {1 << max(0, int(row['size'] - 1e-9).bit_length())}"
    yield "hour", f"{int(row['submit'] // 3600) % 24:02} h"


class Condition(Struct, frozen=True):
    """A bound on a figure, such as `p95 wait of root.ml > 1.1x`.

    With `x` the figure is measured against the first variant, else by itself.
    """

    text: str
    statistic: str
    figure: str
    whose: str | None
    sign: str
    bound: float
    is_multiple: bool

    @classmethod
    def parse(cls, text: str) -> "Condition":
        found = _CONDITION.fullmatch(text)
        if found is None:
            raise WorkloadError(
                f"condition {text!r}: write it like 'p95 wait of root.ml > 1.1x': mean, median, "
                "p95, p99 or max, of wait or slowdown, of a queue or a user, < or >, a number"
            )
        statistic, figure, whose, sign, bound, multiple = found.groups()
        return cls(text.strip(), statistic, figure, whose, sign, float(bound), bool(multiple))

    def failed(self, comparison: Comparison) -> list[str]:
        """Return for which variants it holds."""
        (_, first), *others = ((it, self._value(table)) for it, table in comparison.tables.items())
        limit = self.bound * (first if self.is_multiple else 1)
        return [
            printable(f"{name}: {self.text}: {value:,.2f} {self.sign} {limit:,.2f}")
            for name, value in others
            if (value > limit if self.sign == ">" else value < limit)
        ]

    def _value(self, table: Table) -> float:
        rows = [
            row
            for row in table
            if row["state"] == "done" and self.whose in {None, row["queue"], row["user"]}
        ]
        if self.whose is not None and not rows:
            raise WorkloadError(f"no job of {self.whose} is done: it is no queue or user that ran")
        return spread(row[self.figure] for row in rows)[self.statistic]
