"""Runs as tables: what was measured, and how it stands against the Go core and the targets."""

from collections.abc import Iterator, Sequence
from statistics import median

from benchmarks.run import Run
from benchmarks.targets import (
    GOALS,
    QUOTIENTS,
    Kind,
    Quotient,
    at_reference,
    calibrated_by,
    scaled,
    times_as_good,
)

COLUMNS = {
    "alloc/s": "allocations_per_s",
    "p50 ms": "latency_ms.p50",
    "p99 ms": "latency_ms.p99",
    "max ms": "latency_ms.max",
    "RSS MiB": "peak_rss_mib",
    "CPU s": "cpu_s",
    "wall s": "wall_s",
    "calibration": "calibration",
}
GOAL_HEAD = (
    "workload",
    "topology",
    "figure",
    "measured",
    "Go",
    "target",
    "stretch",
    "x Go",
    "x target",
)
LEGEND = "Go, target and stretch are scaled to this machine; from x 1.00 on a figure is as good."

Row = tuple[str, ...]
Runs = Sequence[Run]


def report(runs: Runs) -> str:
    groups = _grouped(runs)
    measured = [("workload", "topology", *COLUMNS)]
    measured += [(*group, *_cells(members)) for group, members in groups.items()]
    against = [GOAL_HEAD, *_goal_rows(groups), *_quotient_rows(groups)]
    return f"{_table(measured)}\n\n{_table(against)}\n{LEGEND}"


def figure_of(run: Run, path: str) -> float:
    """Look up a figure by its place in the JSON object, as in `latency_ms.p50`."""
    value = run
    *outer, last = path.split(".")
    for key in outer:
        value = value[key]
    return float(value[last])


Groups = dict[tuple[str, str], list[Run]]


def _grouped(runs: Runs) -> Groups:
    groups: Groups = {}
    for run in runs:
        groups.setdefault((run["workload"], run["topology"]), []).append(run)
    return groups


def _cells(runs: Runs) -> Row:
    return tuple(_spread([figure_of(run, path) for run in runs]) for path in COLUMNS.values())


def _goal_rows(groups: Groups) -> Iterator[Row]:
    for (workload, topology), runs in groups.items():
        for goal in GOALS:
            if goal.workload == workload:
                calibration = median(run[calibrated_by(goal.kind)] for run in runs)
                marks = [
                    None if mark is None else scaled(mark, goal.kind, calibration)
                    for mark in (goal.go, goal.target, goal.stretch)
                ]
                measured = median(figure_of(run, goal.figure) for run in runs)
                yield (workload, topology, goal.figure, *_compared(measured, marks, goal.kind))


def _quotient_rows(groups: Groups) -> Iterator[Row]:
    """Relate workloads of one topology; each figure by the speed the machine had at the time."""
    for quotient in QUOTIENTS:
        for (workload, topology), runs in groups.items():
            under = groups.get((quotient.under, topology))
            if workload == quotient.over and under:
                measured = _typical(runs, quotient) / _typical(under, quotient)
                marks = [quotient.go, quotient.target, quotient.stretch]
                yield (quotient.name, topology, "", *_compared(measured, marks, quotient.kind))


def _typical(runs: Runs, quotient: Quotient) -> float:
    kind = quotient.kind
    return median(
        at_reference(figure_of(run, quotient.figure), kind, run[calibrated_by(kind)])
        for run in runs
    )


def _compared(measured: float, marks: Sequence[float | None], kind: Kind) -> Iterator[str]:
    yield _number(measured)
    yield from map(_number, marks)
    for mark in marks[:2]:
        ratio = None if mark is None else times_as_good(measured, mark, kind)
        yield "-" if ratio is None else f"{ratio:.2f}"


def _spread(figures: Sequence[float]) -> str:
    """Show the median, with the lowest and the highest where there are several."""
    middle = _number(median(figures))
    if len(figures) == 1:
        return middle
    return f"{middle} ({_number(min(figures))}..{_number(max(figures))})"


def _number(figure: float | None) -> str:
    """Write three digits at least, and no more than mean anything."""
    if figure is None:
        return "-"
    decimals = 0 if abs(figure) >= 100 else 1 if abs(figure) >= 10 else 2
    return f"{figure:,.{decimals}f}"


def _table(rows: Sequence[Row]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
