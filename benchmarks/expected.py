"""Whether expected starts hold: `python -m benchmarks.expected LOG [--nodes N] [--policy NAME]`.

Plays a log on a core in virtual time, asks at each submission when what waits will start, and
prints how many of the first intervals held and how wide they were; and the same of intervals around
the mean of the past waits, which are widened and narrowed in the same way.
"""

import argparse
import time
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from math import exp
from typing import NamedTuple

from yunikorn_actors import si
from yunikorn_actors.planning.expected import MISSES, STEP, Expected
from yunikorn_actors.runtime.virtual_core import VirtualCore
from yunikorn_actors.values import tags
from yunikorn_actors.workload.cluster import Capacity, configured, read_nodes
from yunikorn_actors.workload.job_stream import Workload
from yunikorn_actors.workload.jobs import Job, Node

SECOND = 10**9
MINUTE_NS = 60 * SECOND
KEPT = 200
"""Past waits in the mean."""
FIRST_NS = 6_000 * SECOND
"""The width of its first intervals, to either side."""
RM_ID = "benchmark"


class Judged(NamedTuple):
    asked_ns: int
    expected: Expected
    started_ns: int


class Cluster(si.ResourceManagerCallback):
    """Each job is an application with one ask, which is removed when it has run."""

    def __init__(self, nodes: Iterable[Node], policy: str, factor: float) -> None:
        self.factor = factor
        self.core = VirtualCore(topology="fused", quiet=True, start_ns=SECOND)
        self.jobs: dict[str, Job] = {}
        self.first: dict[str, tuple[int, Expected]] = {}
        self.judged: list[Judged] = []
        self.ends: list[tuple[int, str]] = []
        self.cpu_s = 0.0
        self.questions = 0
        self.core.start()
        config = configured("", policy)
        request = si.RegisterResourceManagerRequest(rm_id=RM_ID, config=config)
        self.core.register_resource_manager(request, self)
        for node in nodes:
            info = si.NodeInfo(
                node_id=node.id, action=si.ActionFromRM.CREATE,
                schedulable_resource=si.Resource.of(node.resources),
            )  # fmt: skip
            self.core.update_node(si.NodeRequest(rm_id=RM_ID, nodes=(info,)))
        self.core.expected()

    def update_allocation(self, response: si.AllocationResponse) -> None:
        for new in response.new:
            id_, now_ns = new.application_id, self.core.now_ns
            heappush(self.ends, (now_ns + round(self.jobs[id_].run_s * SECOND), id_))
            if id_ in self.first:
                self.judged.append(Judged(*self.first.pop(id_), now_ns))

    def play(self, jobs: Iterator[Job]) -> None:
        began_s: float | None = None
        for job in jobs:
            began_s = job.submit_s if began_s is None else began_s
            at_ns = 2 * SECOND + round((job.submit_s - began_s) * SECOND)
            self._end_until(at_ns)
            self.core.advance_to(max(at_ns, self.core.now_ns))
            self._submit(job)
        self._end_until(2**62)

    def _end_until(self, at_ns: int) -> None:
        while self.ends and self.ends[0][0] <= at_ns:
            end_ns, id_ = heappop(self.ends)
            self.core.advance_to(max(end_ns, self.core.now_ns))
            gone = si.RemoveApplicationRequest(application_id=id_)
            self.core.update_application(si.ApplicationRequest(rm_id=RM_ID, remove=(gone,)))
            self.core.run_until_idle()

    def _submit(self, job: Job) -> None:
        self.jobs[job.id] = job
        user = si.UserGroupInformation(user=job.user, groups=(job.group,))
        new = si.AddApplicationRequest(application_id=job.id, queue_name=job.queue, ugi=user)
        whole = {kind: amount * job.tasks for kind, amount in job.size.items()}
        declared_s = max(job.declared_s, job.run_s) * self.factor
        ask = si.AllocationAsk(
            application_id=job.id, allocation_key=job.id, resource_ask=si.Resource.of(whole),
            tags={tags.TAG_RUNTIME: f"{declared_s:.9g}"},
        )  # fmt: skip
        self.core.update_application(si.ApplicationRequest(rm_id=RM_ID, new=(new,)))
        self.core.update_allocation(si.AllocationRequest(rm_id=RM_ID, asks=(ask,)))
        self.core.run_until_idle()
        begin_s = time.process_time()
        found = self.core.expected(job.id)
        self.cpu_s += time.process_time() - begin_s
        self.questions += 1
        for it in found:
            self.first.setdefault(job.id, (self.core.now_ns, it))


def figures(held: list[tuple[int, int, int]]) -> str:
    """Say of intervals, each with the start, how many held and how wide they were."""
    before = sum(start < begin for begin, end, start in held)
    behind = sum(start > end for begin, end, start in held)
    widths = sorted((end - begin) / MINUTE_NS for begin, end, _ in held)
    share = 100 / max(1, len(held))
    return (
        f"{100 - share * (before + behind):.1f} % held of {len(held)} ({share * before:.1f} % were "
        f"earlier, {share * behind:.1f} % later), {sum(widths) / max(1, len(held)):.0f} minutes "
        f"wide in the mean, {widths[len(widths) // 2]:.0f} in the median"
    )


def around_the_mean(judged: list[Judged], step: float) -> list[tuple[int, int, int]]:
    """Return intervals around the mean of past waits, in the order of the starts."""
    events: list[tuple[int, int, int]] = []
    for number, it in enumerate(judged):
        heappush(events, (it.asked_ns, 1, number))
        heappush(events, (it.started_ns, 0, number))
    waits: list[int] = []
    before = behind = float(FIRST_NS)
    intervals: dict[int, tuple[int, int]] = {}
    held: list[tuple[int, int, int]] = []
    while events:
        at_ns, kind, number = heappop(events)
        if kind == 1:
            recent = waits[-KEPT:]
            mean_ns = sum(recent) // max(1, len(recent))
            begin_ns = max(at_ns, at_ns + mean_ns - round(before))
            intervals[number] = begin_ns, at_ns + mean_ns + round(behind)
            continue
        begin_ns, end_ns = intervals[number]
        waits.append(at_ns - judged[number].asked_ns)
        held.append((begin_ns, end_ns, at_ns))
        before *= exp(step * ((at_ns < begin_ns) - MISSES))
        behind *= exp(step * ((at_ns > end_ns) - MISSES))
    return held


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("log")
    parser.add_argument("--nodes")
    parser.add_argument("--policy", default="")
    parser.add_argument(
        "--factor", type=float, default=1.0, help="declare so many times what the log says"
    )
    options = parser.parse_args()
    workload = Workload.read(options.log)
    nodes = read_nodes(options.nodes, workload)
    capacity = Capacity(nodes)
    cluster = Cluster(nodes, options.policy, options.factor)
    cluster.play(it for it in workload.jobs() if capacity.fits(it))
    judged = [it for it in cluster.judged if it.expected.latest_ns is not None]
    print(f"{options.log.rpartition('/')[2]}, {options.policy or 'fifo'}: {len(judged)} waited")
    known = [
        (it.expected.earliest_ns or 0, it.expected.latest_ns or 0, it.started_ns) for it in judged
    ]
    print(f"  expected starts:   {figures(known)}")
    for step in (STEP, 2 * STEP):
        print(f"  mean of the past:  {figures(around_the_mean(judged, step))}")
    each_ms = 1000 * cluster.cpu_s / max(1, cluster.questions)
    print(f"  {cluster.questions} questions, {each_ms:.2f} ms of CPU each")


if __name__ == "__main__":
    main()
