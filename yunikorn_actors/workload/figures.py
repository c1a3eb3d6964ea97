"""Figures of many numbers: means, percentiles by nearest rank, and what changes over time."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import Final

from yunikorn_actors.workload.cluster import Capacity
from yunikorn_actors.workload.jobs import Job, Node

BOUND_S: Final = 10.0
"""A job that is shorter counts as one of so many seconds in its slowdown."""
BINS: Final = 512


def slowdown(wait_s: float, run_s: float) -> float:
    """How many times longer it took than it would have alone, bounded for short jobs."""
    return max(1.0, (wait_s + run_s) / max(run_s, BOUND_S))


def percentile(ordered: Sequence[float], percent: float) -> float:
    """By nearest rank: one of the numbers, none between two."""
    if not ordered:
        return 0.0
    return ordered[max(0, ceil(percent / 100 * len(ordered)) - 1)]


def spread(values: Iterable[float]) -> dict[str, float]:
    """Return mean, median, p95, p99 and maximum."""
    ordered = sorted(values)
    return {
        "mean": sum(ordered) / len(ordered) if ordered else 0.0,
        "median": percentile(ordered, 50),
        "p95": percentile(ordered, 95),
        "p99": percentile(ordered, 99),
        "max": ordered[-1] if ordered else 0.0,
    }


def evenness(values: Sequence[float]) -> float:
    """Jain's index: 1 if all are equal, 1/n if one has everything."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0


class Series:
    """What changes over time, as means over bins of one width; its size does not grow.

    A run that becomes longer than the bins reach doubles their width.
    """

    def __init__(self) -> None:
        self.width_s = 1.0
        self.channels: dict[str, list[float]] = {}
        """Of each the integral over every bin."""
        self.wholes: dict[str, float] = {}
        """Of what a channel is a share."""
        self.now_s = 0.0

    def advance(self, now_s: float, values: Mapping[str, float]) -> bool:
        """Let these values have held until now; say whether a bin was begun."""
        while now_s >= BINS * self.width_s:
            self.width_s *= 2
            for name, bins in self.channels.items():
                self.channels[name] = [sum(bins[at : at + 2]) for at in range(0, len(bins), 2)]
        first, last = int(self.now_s / self.width_s), int(now_s / self.width_s)
        for name, value in values.items():
            if value:
                bins = self.channels.setdefault(name, [])
                bins.extend([0.0] * (last + 1 - len(bins)))
                for at in range(first, last + 1):
                    begin, end = at * self.width_s, (at + 1) * self.width_s
                    bins[at] += value * max(0.0, min(end, now_s) - max(begin, self.now_s))
        self.now_s = now_s
        return last > first

    def means(self, name: str) -> list[float]:
        """Return the mean share of a channel in each bin, up to now."""
        bins = self.channels.get(name, [])
        bins = bins + [0.0] * (ceil(self.now_s / self.width_s) - len(bins))
        whole = self.wholes.get(name, 1.0)
        widths = (min(self.width_s, self.now_s - at * self.width_s) for at in range(len(bins)))
        return [it / whole / width for it, width in zip(bins, widths, strict=True) if width > 0]

    def mean(self, name: str, span_s: float | None = None) -> float:
        """Return the mean share up to now, or as if all had been in such a span."""
        span_s = self.now_s if span_s is None else span_s
        integral = sum(self.channels.get(name, ())) / self.wholes.get(name, 1.0)
        return integral / span_s if span_s else 0.0


class Usage:
    """What is in use and what waits, as it changes over time."""

    def __init__(self, capacity: Capacity, series: Series) -> None:
        self._main, self._total = capacity.main, capacity.total
        self._series = series
        self._whole = capacity.total.get(capacity.main, 1)
        series.wholes["waiting work"] = self._whole
        series.wholes.update({f"used {kind}": amount for kind, amount in self._total.items()})
        self._now: Counter[str] = Counter()
        """Jobs, or amounts in base units."""
        self._free: dict[str, Counter[str]] = {}
        self._fragments: dict[str, list[float]] = {}

    @property
    def waiting(self) -> int:
        """How many jobs wait."""
        return self._now["waiting"]

    def wait(self, job: Job, sign: int) -> None:
        """Count a job as waiting, or no longer."""
        self._now["waiting"] += sign
        self._now["waiting work"] += sign * job.size.get(self._main, 0) * job.tasks

    def has(self, node: Node, before: Node | None = None) -> None:
        """Count what is free on a node that came, or that was another before."""
        free = self._free.setdefault(node.id, Counter())
        free.update(node.resources)
        free.subtract(before.resources if before else {})

    def has_lost(self, node: str) -> None:
        self._free.pop(node, None)

    def use(self, job: Job, node: str, sign: int) -> None:
        """Count a task of a job on a node, or no longer."""
        free = self._free.get(node)
        for kind, amount in job.size.items():
            self._now[f"used {kind}"] += sign * amount
            if free is not None:
                free[kind] -= sign * amount
        queue = f"queue {job.queue}"
        self._series.wholes[queue] = self._whole
        self._now[queue] += sign * job.size.get(self._main, 0)

    def pass_to(self, now_s: float) -> None:
        """Let what is so now count for the time until then."""
        if now_s > self._series.now_s and self._series.advance(now_s, self._now):
            self._note_fragments()

    def fragmentation(self) -> dict[str, float]:
        return {kind: sum(each) / len(each) for kind, each in sorted(self._fragments.items())}

    def _note_fragments(self) -> None:
        """Of what is free, the share that is not on the node that has most of it free."""
        for kind in self._total:
            free = [room[kind] for room in self._free.values()]
            if (whole := sum(free)) > 0:
                self._fragments.setdefault(kind, []).append(1 - max(free) / whole)
