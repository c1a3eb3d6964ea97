"""What a replay has found: a row for each job, kept in columns, and files that are made of it."""

import csv
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct, field

from yunikorn_actors.version import extra_command
from yunikorn_actors.workload.figures import Series, evenness, slowdown, spread
from yunikorn_actors.workload.jobs import CPU, DEVICE, GPU, VCORE, Job, WorkloadError

State = Literal["waiting", "running", "done", "rejected"]
STATES: Final[tuple[State, ...]] = ("waiting", "running", "done", "rejected")
COLUMNS: Final = (
    "job", "user", "group", "queue", "size", "tasks", "submit", "start", "end", "wait", "run",
    "slowdown", "state", "node", "preemptions", "restarts", "reason",
)  # fmt: skip
_NUMBERS: Final = {
    "number": "q", "submit": "d", "start": "d", "end": "d", "declared": "d", "size": "d",
    "tasks": "q", "preemptions": "H", "restarts": "H", "state": "B",
}  # fmt: skip
_TEXTS: Final = ("user", "group", "queue", "node", "reason")
_UNKNOWN: Final = -1.0
"""In place of a time: nothing begins before 0."""
OFTEN: Final = 65_535
"""More often is not counted."""
SCALES: Final = {VCORE: CPU, GPU: DEVICE}
"""What one of a resource is in base units."""


class Run(Struct, kw_only=True):
    """What a replay was, beside its jobs."""

    log: str = ""
    format: str = ""
    policy: str = ""
    seed: int = 0
    bad_lines: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    """Jobs of the log that were not played, by reason."""
    capacity: dict[str, int] = field(default_factory=dict)
    main: str = ""
    """The resource in which sizes are counted."""
    nodes: dict[str, float] = field(default_factory=dict)
    """How much of the main resource each has, in its own unit."""
    began_s: float = 0.0
    ended_s: float = 0.0
    """The last end of a job; of a replay that was cut off, where it was."""
    series: Series = field(default_factory=Series)
    """What was in use and what waited, over time."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Under each reason the seconds that jobs waited."""
    fragmentation: dict[str, float] = field(default_factory=dict)
    messages: int = 0
    cpu_s: float = 0.0
    planted: Counter[str] = field(default_factory=Counter)
    """Faults, by kind."""

    @property
    def scale(self) -> int:
        """What one unit of the main resource is in base units."""
        return SCALES.get(self.main, 1)


class Table:
    """Rows of jobs in the order of their submits: iterate over it, or give `rows` to pandas."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.nodes_of: dict[int, list[str]] = {}
        """Of rows whose tasks are on several nodes, that of each task."""
        self._ids: dict[int, str] = {}
        """Of jobs whose id is not their number."""
        codes = _NUMBERS | dict.fromkeys(_TEXTS, "i")
        self._columns: dict[str, array[Any]] = {it: array(code) for it, code in codes.items()}
        self._texts: list[str] = []
        """Texts come again and again: columns have their places here."""
        self._places: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._columns["number"])

    # -- while it is made

    def submit(self, job: Job) -> int:
        """Add a row; return its place."""
        at = len(self)
        if job.id != str(job.number):
            self._ids[at] = job.id
        size = job.size.get(self.run.main, 0) * job.tasks / self.run.scale
        values = (
            job.number, job.submit_s, _UNKNOWN, _UNKNOWN, job.declared_s, size, job.tasks, 0, 0, 0,
            *map(self._place, (job.user, job.group, job.queue, "", "")),
        )  # fmt: skip
        for column, value in zip(self._columns.values(), values, strict=True):
            column.append(value)
        return at

    def began(self, at: int, now_s: float, nodes: list[str]) -> None:
        self._set(at, "running", start=now_s, node=self._place(nodes[-1]))
        if len(nodes) > 1:
            self.nodes_of[at] = nodes

    def ended(self, at: int, now_s: float) -> None:
        self._set(at, "done", end=now_s)

    def put_back(self, at: int, *, preempted: bool) -> None:
        """Count it as waiting again: its work was taken from it."""
        column = "preemptions" if preempted else "restarts"
        counted = {column: min(OFTEN, self._columns[column][at] + 1)}
        self._set(at, "waiting", start=_UNKNOWN, **counted)

    def rejected(self, at: int, reason: str) -> None:
        self._set(at, "rejected", reason=self._place(reason))

    def waited(self, at: int, reasons: dict[str, float]) -> None:
        """Count the seconds under each reason; the row keeps the one with the most."""
        for reason, seconds in reasons.items():
            self.run.reasons[_folded(reason) or "its turn"] += seconds  # type: ignore[assignment]
        self._columns["reason"][at] = self._place(max(reasons, key=lambda it: reasons[it]))

    def _set(self, at: int, state: State, **values: float) -> None:
        for name, value in {**values, "state": STATES.index(state)}.items():
            self._columns[name][at] = value

    def _place(self, text: str) -> int:
        place = self._places.setdefault(text, len(self._texts))
        if place == len(self._texts):
            self._texts.append(text)
        return place

    # -- rows

    def row(self, at: int) -> dict[str, Any]:
        it: dict[str, Any] = {name: column[at] for name, column in self._columns.items()}
        it |= {name: self._texts[it[name]] for name in _TEXTS}
        start, end = (None if it[name] == _UNKNOWN else it[name] for name in ("start", "end"))
        wait = None if start is None else start - it["submit"]
        run = None if end is None or start is None else end - start
        it |= {
            "job": self._ids.get(at) or str(it["number"]), "state": STATES[it["state"]],
            "start": start, "end": end, "wait": wait, "run": run,
            "slowdown": None if wait is None or run is None else slowdown(wait, run),
        }  # fmt: skip
        return {name: it[name] for name in COLUMNS}

    def declared(self, at: int) -> float:
        """Return the run time that was declared for a row; 0 is unknown."""
        return float(self._columns["declared"][at])

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(self.row, range(len(self)))

    def by_start(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the places and rows of what is done, by start."""
        starts, ends = self._columns["start"], self._columns["end"]
        places = (at for at in range(len(self)) if ends[at] != _UNKNOWN)
        return ((at, self.row(at)) for at in sorted(places, key=starts.__getitem__))

    def rows(self) -> list[dict[str, Any]]:
        """Return all rows, as `pandas.DataFrame` takes them."""
        return list(self)

    def waits(self) -> Iterator[float]:
        """Yield how long each job waited that is done."""
        return (wait for wait, _, _ in self._done("size"))

    def slowdowns(self, column: str = "size") -> Iterator[tuple[Any, float]]:
        """Yield what a column has and the slowdown of each job that is done."""
        return ((value, slowdown(wait, run)) for wait, run, value in self._done(column))

    def _done(self, column: str) -> Iterator[tuple[float, float, Any]]:
        columns = (self._columns[it] for it in ("submit", "start", "end", column))
        for submit, start, end, value in zip(*columns, strict=True):
            if end >= 0:
                yield start - submit, end - start, value

    # -- summary

    def summary(self) -> dict[str, Any]:
        """Return the figures of the run, as JSON has them."""
        run, counts, jobs = self.run, Counter(self._columns["state"]), len(self)
        span, waited = run.ended_s - run.began_s, run.reasons.total()
        return {
            "log": run.log,
            "format": run.format,
            "policy": run.policy,
            "jobs": jobs,
            **{state: counts[at] for at, state in enumerate(STATES)},
            "rejections": self._rejections(),
            "left_out": dict(run.left_out),
            "bad_lines": run.bad_lines,
            "wait_s": spread(self.waits()),
            "slowdown": spread(value for _, value in self.slowdowns()),
            "makespan_s": span,
            "utilisation": {it: run.series.mean(f"used {it}", span) for it in run.capacity},
            "fragmentation": run.fragmentation,
            "preemptions": sum(self._columns["preemptions"]),
            "restarts": sum(self._columns["restarts"]),
            "faults": dict(run.planted),
            "fairness": {f"{it}s": self._fairness(it) for it in ("user", "queue")},
            "reasons": {why: it / waited for why, it in run.reasons.most_common(20) if waited},
            "messages_per_job": run.messages / max(1, jobs),
            "jobs_per_cpu_s": jobs / run.cpu_s if run.cpu_s else 0.0,
            "seed": run.seed,
            "digest": self.digest(),
        }

    def digest(self) -> str:
        """Return a digest of what started and ended when and where: equal runs have equal ones."""
        found = sha256()
        for name in ("number", "submit", "start", "end", "state"):
            found.update(self._columns[name].tobytes())
        found.update("\n".join(self._texts[it] for it in self._columns["node"]).encode())
        return found.hexdigest()

    def _rejections(self) -> dict[str, int]:
        """Count the rejected jobs by what the core says of them."""
        columns = (self._columns["state"], self._columns["reason"])
        state = STATES.index("rejected")
        places = Counter(why for at, why in zip(*columns, strict=True) if at == state)
        counts: Counter[str] = Counter()
        for place, count in places.items():
            counts[_folded(self._texts[place])] += count
        return dict(counts.most_common(20))

    def _fairness(self, column: str) -> dict[str, Any]:
        values: dict[int, array[float]] = {}
        for place, value in self.slowdowns(column):
            values.setdefault(place, array("d")).append(value)
        means = {self._texts[place]: sum(it) / len(it) for place, it in values.items()}
        worst = sorted(means.items(), key=lambda it: (-it[1], it[0]))[:5]
        return {"count": len(means), "jain": evenness([*means.values()]), "worst": dict(worst)}

    # -- files

    def to_csv(self, file: str | Path) -> None:
        """Write a line for each job; times are seconds of the log."""
        write_csv(file, COLUMNS, (row.values() for row in self))

    def to_parquet(self, file: str | Path) -> None:
        """Write the rows as Parquet; needs the extra `parquet`."""
        try:
            import pyarrow as pa  # noqa: PLC0415 - an extra
            from pyarrow import parquet  # noqa: PLC0415
        except ImportError:
            raise WorkloadError(f"Parquet is an extra; {extra_command('parquet')}") from None
        parquet.write_table(pa.Table.from_pylist(self.rows()), str(file))


def write_csv(file: str | Path, head: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    with Path(file).open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(map(_cell, row) for row in rows)


def _folded(reason: str) -> str:
    """Leave out what differs from job to job: words with a digit in them."""
    return re.sub(r"\S*\d\S*", "*", reason)


def _cell(value: object) -> object:
    """Write whole seconds without a point, and nothing for what is not known."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else round(value, 9)
    return "" if value is None else value
