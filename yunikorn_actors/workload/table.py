"""What a replay has found: a row for each job, kept in columns, and files that are made of it."""

import csv
import re
from array import array
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct, field

from yunikorn_actors.workload.figures import Series, evenness, slowdown, spread
from yunikorn_actors.workload.jobs import Fault, Job, WorkloadError

State = Literal["waiting", "running", "done", "rejected"]
STATES: Final[tuple[State, ...]] = ("waiting", "running", "done", "rejected")
COLUMNS: Final = (
    "job", "user", "group", "queue", "size", "tasks", "submit", "start", "end", "wait", "run",
    "slowdown", "state", "node", "preemptions", "restarts", "reason",
)  # fmt: skip
BATSIM: Final = (
    "job_id", "workload_name", "profile", "submission_time", "requested_number_of_resources",
    "requested_time", "success", "final_state", "starting_time", "execution_time", "finish_time",
    "waiting_time", "turnaround_time", "stretch", "allocated_resources", "consumed_energy",
    "metadata",
)  # fmt: skip


class Names:
    """Texts that come again and again, as small numbers."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return number


class Run(Struct, kw_only=True):
    """What a replay was, beside its jobs."""

    log: str = ""
    format: str = ""
    policy: str = ""
    seed: int = 0
    bad_lines: int = 0
    faults: list[Fault] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)
    """Jobs of the log that were not played, by reason."""
    capacity: dict[str, int] = field(default_factory=dict)
    main: str = ""
    """The resource in which sizes are counted."""
    nodes: int = 0
    began_s: float = 0.0
    ended_s: float = 0.0
    """The last end of a job; of a replay that was cut off, where it was."""
    used: dict[str, float] = field(default_factory=dict)
    """How much of each resource was in use, in base units times seconds."""
    fragmentation: dict[str, float] = field(default_factory=dict)
    messages: int = 0
    cpu_s: float = 0.0
    faults_planted: dict[str, int] = field(default_factory=dict)


class Table:
    """Rows of jobs in the order of their submits: iterate over it, or give `rows` to pandas."""

    def __init__(self, run: Run, scale: int) -> None:
        """`scale` is what one unit of the main resource is in base units."""
        self.run = run
        self.series = Series()
        self.scale = scale
        self._ids: dict[int, str] = {}
        """Of jobs whose id is not their number."""
        self._numbers, self._submits = array("q"), array("d")
        self._starts, self._ends = array("d"), array("d")
        self._declared, self._sizes = array("d"), array("d")
        self._tasks, self._preemptions, self._restarts = array("l"), array("H"), array("H")
        self._states, self._reasons = array("B"), array("l")
        self._users, self._groups, self._queues = array("l"), array("l"), array("l")
        self._nodes = array("l")
        self._names, self._texts, self._node_names = Names(), Names(), Names()

    def __len__(self) -> int:
        return len(self._numbers)

    # -- while it is made

    def submit(self, job: Job) -> int:
        """Add a row; return its place."""
        at = len(self._numbers)
        self._numbers.append(job.number)
        if job.id != str(job.number):
            self._ids[at] = job.id
        self._submits.append(job.submit_s)
        self._starts.append(-1.0)
        self._ends.append(-1.0)
        self._declared.append(job.declared_s)
        self._sizes.append(job.size.get(self.run.main, 0) * job.tasks / self.scale)
        self._tasks.append(job.tasks)
        self._preemptions.append(0)
        self._restarts.append(0)
        self._states.append(0)
        self._reasons.append(self._texts.number(""))
        self._users.append(self._names.number(job.user))
        self._groups.append(self._names.number(job.group))
        self._queues.append(self._names.number(job.queue))
        self._nodes.append(-1)
        return at

    def began(self, at: int, now_s: float, node: str) -> None:
        self._starts[at], self._states[at] = now_s, STATES.index("running")
        self._nodes[at] = self._node_names.number(node)

    def ended(self, at: int, now_s: float) -> None:
        self._ends[at], self._states[at] = now_s, STATES.index("done")

    def put_back(self, at: int, *, preempted: bool) -> None:
        """It waits again, from the beginning of its work."""
        column = self._preemptions if preempted else self._restarts
        column[at] = min(65_535, column[at] + 1)
        self._starts[at], self._states[at] = -1.0, STATES.index("waiting")

    def rejected(self, at: int, reason: str) -> None:
        self._states[at] = STATES.index("rejected")
        self._reasons[at] = self._texts.number(reason)

    def waits_for(self, at: int, reason: str) -> None:
        self._reasons[at] = self._texts.number(reason)

    # -- rows

    def row(self, at: int) -> dict[str, Any]:
        submit, start, end = self._submits[at], self._starts[at], self._ends[at]
        wait = start - submit if start >= 0 else None
        run = end - start if end >= 0 else None
        is_whole = wait is not None and run is not None
        return {
            "job": self._ids.get(at) or str(self._numbers[at]),
            "user": self._names.texts[self._users[at]],
            "group": self._names.texts[self._groups[at]],
            "queue": self._names.texts[self._queues[at]],
            "size": self._sizes[at],
            "tasks": self._tasks[at],
            "submit": submit,
            "start": start if start >= 0 else None,
            "end": end if end >= 0 else None,
            "wait": wait,
            "run": run,
            "slowdown": slowdown(wait, run) if is_whole else None,  # type: ignore[arg-type]
            "state": STATES[self._states[at]],
            "node": self._node_names.texts[self._nodes[at]] if self._nodes[at] >= 0 else "",
            "preemptions": self._preemptions[at],
            "restarts": self._restarts[at],
            "reason": self._texts.texts[self._reasons[at]],
        }

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(self.row, range(len(self)))

    def rows(self) -> list[dict[str, Any]]:
        """Return all rows, as `pandas.DataFrame` takes them."""
        return list(self)

    def waits(self) -> Iterator[float]:
        """Yield how long each job waited that is done."""
        return (start - submit for submit, start, _, _ in self._done())

    def slowdowns(self) -> Iterator[tuple[float, float]]:
        """Yield the size and the slowdown of each job that is done."""
        for submit, start, end, size in self._done():
            yield size, slowdown(start - submit, end - start)

    def _done(self) -> Iterator[tuple[float, float, float, float]]:
        columns = zip(self._submits, self._starts, self._ends, self._sizes, strict=True)
        return (it for it in columns if it[2] >= 0)

    # -- summary

    def summary(self) -> dict[str, Any]:
        """Return the figures of the run, as JSON has them."""
        run, counts = self.run, Counter(STATES[it] for it in self._states)
        done = [at for at in range(len(self)) if self._states[at] == STATES.index("done")]
        waits = {at: self._starts[at] - self._submits[at] for at in done}
        slow = {at: slowdown(waits[at], self._ends[at] - self._starts[at]) for at in done}
        span = run.ended_s - run.began_s
        return {
            "log": run.log,
            "format": run.format,
            "policy": run.policy,
            "jobs": len(self),
            **{state: counts[state] for state in STATES},
            "left_out": dict(run.left_out),
            "bad_lines": run.bad_lines,
            "wait_s": spread(waits.values()),
            "slowdown": spread(slow.values()),
            "makespan_s": span,
            "utilisation": {
                kind: run.used.get(kind, 0.0) / (total * span) if span else 0.0
                for kind, total in run.capacity.items()
            },
            "fragmentation": run.fragmentation,
            "preemptions": sum(self._preemptions),
            "restarts": sum(self._restarts),
            "faults": run.faults_planted,
            "fairness": {
                "users": self._fairness(self._users, slow),
                "queues": self._fairness(self._queues, slow),
            },
            "reasons": self._folded(waits),
            "messages_per_job": run.messages / max(1, len(self)),
            "jobs_per_cpu_s": len(self) / run.cpu_s if run.cpu_s else 0.0,
            "seed": run.seed,
            "digest": self.digest(),
        }

    def digest(self) -> str:
        """Return a digest of what started and ended when and where: equal runs have equal ones."""
        told = sha256()
        for column in (
            self._numbers, self._submits, self._starts, self._ends, self._states, self._nodes,
        ):  # fmt: skip
            told.update(column.tobytes())
        return told.hexdigest()

    def _fairness(self, column: "array[int]", slow: dict[int, float]) -> dict[str, Any]:
        sums: dict[int, list[float]] = {}
        for at, value in slow.items():
            each = sums.setdefault(column[at], [0.0, 0.0])
            each[0] += value
            each[1] += 1
        means = {self._names.texts[name]: total / count for name, (total, count) in sums.items()}
        ordered = sorted(means.items(), key=lambda it: (-it[1], it[0]))
        return {
            "count": len(means),
            "jain": evenness([*means.values()]),
            "worst": dict(ordered[:5]),
        }

    def _folded(self, waits: dict[int, float]) -> dict[str, float]:
        """Return the share of all waiting time of each reason."""
        total, by_reason = sum(waits.values()), Counter[str]()
        for at, wait_s in waits.items():
            if wait_s > 0:
                by_reason[folded(self._texts.texts[self._reasons[at]])] += wait_s  # type: ignore[assignment]
        return {reason: share / total for reason, share in by_reason.most_common(20) if total}

    # -- files

    def to_csv(self, file: str | Path) -> None:
        """Write a line for each job; times are seconds of the log."""
        with Path(file).open("w", encoding="utf-8", newline="") as out:
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow(COLUMNS)
            writer.writerows([_cell(row[name]) for name in COLUMNS] for row in self)

    def to_batsim(self, file: str | Path) -> None:
        """Write the `jobs.csv` of Batsim, which `evalys` draws; only what has ended is there."""
        with Path(file).open("w", encoding="utf-8", newline="") as out:
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow(BATSIM)
            for at, row in enumerate(self):
                if row["state"] == "done":
                    writer.writerow([_cell(it) for it in self._of_batsim(at, row)])

    def _of_batsim(self, at: int, row: dict[str, Any]) -> list[object]:
        turnaround = row["wait"] + row["run"]
        size = max(1, round(row["size"]))
        return [
            row["job"], "w0", "delay", row["submit"], size, self._declared[at] or row["run"], 1,
            "COMPLETED_SUCCESSFULLY", row["start"], row["run"], row["end"], row["wait"],
            turnaround, turnaround / max(row["run"], 1e-9), f"0-{size - 1}" if size > 1 else "0",
            -1, "",
        ]  # fmt: skip

    def to_parquet(self, file: str | Path) -> None:
        """Write the rows as Parquet; needs the extra `parquet`."""
        try:
            import pyarrow as pa  # noqa: PLC0415 - an extra
            from pyarrow import parquet  # noqa: PLC0415
        except ImportError:
            raise WorkloadError("Parquet needs an extra: pip install pyarrow") from None
        parquet.write_table(pa.Table.from_pylist(self.rows()), str(file))


def folded(reason: str) -> str:
    """Return a reason without what differs from job to job: words with a digit in them."""
    return re.sub(r"\S*\d\S*", "*", reason) or "its turn"


def _cell(value: object) -> object:
    """Write whole seconds without a point, and nothing for what is not known."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else round(value, 9)
    return "" if value is None else value
