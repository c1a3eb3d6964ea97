"""What is in use and what waits, as it changes over time."""

from collections import Counter
from collections.abc import Sequence

from yunikorn_actors.workload.figures import Series
from yunikorn_actors.workload.jobs import Job, Node
from yunikorn_actors.workload.nodes import Capacity


class Usage:
    def __init__(self, nodes: Sequence[Node], capacity: Capacity, series: Series) -> None:
        self._main, self._total = capacity.main, capacity.total
        self._series = series
        self._whole = capacity.total.get(capacity.main, 1)
        series.wholes["waiting work"] = self._whole
        series.wholes.update({f"used {kind}": amount for kind, amount in self._total.items()})
        self._now: Counter[str] = Counter()
        """Jobs, or amounts in base units."""
        self._free = {node.id: Counter(node.resources) for node in nodes}
        self._fragments: dict[str, list[float]] = {}

    @property
    def waiting(self) -> int:
        """How many jobs wait."""
        return self._now["waiting"]

    def wait(self, job: Job, sign: int) -> None:
        """Count a job as waiting, or no longer."""
        self._now["waiting"] += sign
        self._now["waiting work"] += sign * job.size.get(self._main, 0) * job.tasks

    def use(self, job: Job, node: str, sign: int) -> None:
        """Count a task of a job on a node, or no longer."""
        for kind, amount in job.size.items():
            self._now[f"used {kind}"] += sign * amount
            self._free[node][kind] -= sign * amount
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
