"""The resource manager of a benchmark: it submits, releases, and keeps its own books.

The callback does nothing but stamp the time and pass the response on; all books are kept on the
thread of the workload, which takes the responses when it has nothing to send. An ask is waiting
from the call that submitted it until it is announced, then held until it is released, so that
whatever is announced twice, never, or unasked shows. Every wait ends: with news, with the failure
of the core, or after `patience_s` without any news.
"""

import math
import time
from array import array
from collections import deque
from collections.abc import Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import Any

from msgspec import Struct

from benchmarks.cluster import RM_ID, Cluster
from benchmarks.failure import CheckFailed, Stalled, TurnedDown
from yunikorn_actors import SchedulerCore, si

POLL_S = 0.25
SETTLE_POLL_S = 0.005

BY_CORE = (
    si.TerminationType.PREEMPTED_BY_SCHEDULER,
    si.TerminationType.PLACEHOLDER_REPLACED,
)
PREEMPTS = si.PreemptionPolicy(allow_preempt_self=True, allow_preempt_other=True)

Size = Mapping[str, int]


class Held(Struct, frozen=True, gc=False):
    """An allocation that was announced.

    What a benchmark keeps of a hundred thousand of them should not be what collections visit.
    """

    application_id: str
    uuid: str
    size: Size
    """That was asked for."""


class Submission(Struct, frozen=True):
    """What the asks of one request share."""

    application_id: str
    at: float
    size: Size
    latencies_s: "array[float]"
    """Where their latencies are kept."""


class Timing(Struct, frozen=True, kw_only=True):
    """A stretch from the first ask that was sent to the last allocation that was announced."""

    wall_s: float
    cpu_s: float
    latencies_s: Sequence[float]

    @property
    def allocations_per_s(self) -> float:
        return len(self.latencies_s) / self.wall_s

    def latency_ms(self, *percents: float) -> list[float]:
        """Return the nearest-rank percentiles."""
        ranked = sorted(self.latencies_s)
        ranks = (max(1, math.ceil(percent / 100 * len(ranked))) for percent in percents)
        return [ranked[rank - 1] * 1e3 for rank in ranks]


Response = si.AllocationResponse | si.NodeResponse


class Inbox(si.ResourceManagerCallback):
    def __init__(self) -> None:
        self.responses: SimpleQueue[tuple[float, Response]] = SimpleQueue()
        self.turned_down: list[str] = []

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.responses.put((time.perf_counter(), response))

    def update_application(self, response: si.ApplicationResponse) -> None:
        for item in response.rejected:
            self.turned_down.append(f"application {item.application_id}: {item.reason}")

    def update_node(self, response: si.NodeResponse) -> None:
        self.responses.put((time.perf_counter(), response))
        for item in response.rejected:
            self.turned_down.append(f"node {item.node_id}: {item.reason}")


class Load:
    def __init__(self, core: SchedulerCore, patience_s: float = 30.0) -> None:
        self.core = core
        self.waiting: dict[str, Submission] = {}
        """Asks that have not been announced, by key; a key is used once in a run."""
        self.held: deque[Held] = deque()
        """Allocations that were announced and not released, the oldest first."""
        self.taken_back: dict[str, None] = {}
        """UUIDs of allocations that the core has taken back."""
        self._arriving: dict[str, tuple[si.Allocation, ...]] = {}
        """What was reported with each node that has not been accepted yet."""
        self.rm_id = RM_ID
        self.unconfirmed = 0
        """Releases that the core has not echoed."""
        self._patience_s = patience_s
        self._inbox = Inbox()
        self.begin()

    def set_up(self, cluster: Cluster) -> None:
        self.rm_id = cluster.rm_id
        self.core.register_resource_manager(cluster.registration(), self._inbox)
        if not cluster.comes_later:
            for nodes in cluster.node_requests():
                self.core.update_node(nodes)
        for application in cluster.application_requests():
            self.core.update_application(application)
        self.settle()

    # -- the clock

    def begin(self) -> None:
        """Measure from the next ask on."""
        self._latencies_s = array("d")
        self._began: float | None = None
        self._ended = self._cpu_began = 0.0

    def timing(self) -> Timing:
        """Return what was measured; call it as soon as the last allocation was announced."""
        assert self._began is not None
        return Timing(
            wall_s=self._ended - self._began,
            cpu_s=time.process_time() - self._cpu_began,
            latencies_s=self._latencies_s,
        )

    # -- to the core

    def submit(
        self,
        application_id: str,
        keys: Sequence[str],
        size: Size,
        apart: "array[float] | None" = None,
        **shared: Any,  # noqa: ANN401 - fields of an ask
    ) -> None:
        """Send equal asks of one application in one request; some are timed apart from the rest."""
        resource = si.Resource.of(size)
        asks = tuple(
            si.AllocationAsk(
                application_id=application_id,
                allocation_key=key,
                resource_ask=resource,
                **shared,
            )
            for key in keys
        )
        request = si.AllocationRequest(rm_id=self.rm_id, asks=asks)
        latencies_s = self._latencies_s if apart is None else apart
        submission = Submission(application_id, self._stamp(), size, latencies_s)
        for key in keys:
            self.waiting[key] = submission
        self.core.update_allocation(request)

    def report(self, running: tuple[si.Allocation, ...], size: Size) -> None:
        """Say what runs, each by itself; the core announces it."""
        self._await(running, size)
        self.core.update_allocation(si.AllocationRequest(rm_id=self.rm_id, allocations=running))

    def report_nodes(self, request: si.NodeRequest, size: Size) -> None:
        """Register nodes with what runs on them: it is held when its node is accepted."""
        for node in request.nodes:
            self._await(node.existing_allocations, size)
            self._arriving[node.node_id] = node.existing_allocations
        self.core.update_node(request)

    def _await(self, running: tuple[si.Allocation, ...], size: Size) -> None:
        at = self._stamp()
        for item in running:
            submission = Submission(item.application_id, at, size, self._latencies_s)
            self.waiting[item.allocation_key] = submission

    def _stamp(self) -> float:
        """Return the time; the first is when the measured stretch begins."""
        at = time.perf_counter()
        if self._began is None:
            self._began, self._cpu_began = at, time.process_time()
        return at

    def release_oldest(self) -> None:
        oldest = self.held.popleft()
        release = si.AllocationRelease(
            application_id=oldest.application_id,
            uuid=oldest.uuid,
            termination_type=si.TerminationType.STOPPED_BY_RM,
        )
        releases = si.AllocationReleasesRequest(allocations_to_release=(release,))
        self.unconfirmed += 1
        self.core.update_allocation(si.AllocationRequest(rm_id=self.rm_id, releases=releases))

    def withdraw_all(self) -> None:
        """Take back every ask that waits; the core must be settled."""
        applications = dict.fromkeys(ask.application_id for ask in self.waiting.values())
        gone = tuple(si.AllocationAskRelease(application_id=id_) for id_ in applications)
        self.waiting.clear()
        releases = si.AllocationReleasesRequest(allocation_asks_to_release=gone)
        self.core.update_allocation(si.AllocationRequest(rm_id=self.rm_id, releases=releases))

    def _confirm(self, released: tuple[si.AllocationRelease, ...]) -> None:
        """What the core takes back ends at once; the rest are echoes."""
        gone = tuple(it for it in released if it.termination_type in BY_CORE)
        self.unconfirmed -= len(released) - len(gone)
        if gone:
            self.taken_back.update(dict.fromkeys(it.uuid for it in gone))
            releases = si.AllocationReleasesRequest(allocations_to_release=gone)
            self.core.update_allocation(si.AllocationRequest(rm_id=self.rm_id, releases=releases))

    def forget_taken_back(self) -> None:
        """They are held no longer; looking for each of them at its end would take its time."""
        self.held = deque(held for held in self.held if held.uuid not in self.taken_back)

    # -- from the core

    def answer_to_release(self, within_s: float) -> float | None:
        """Release the oldest; return how long the next announcement took, None if it was longer."""
        self.receive_ready()
        released = time.perf_counter()
        self.release_oldest()
        while self._ended < released:
            left_s = released + within_s - time.perf_counter()
            try:
                self._take(*self._inbox.responses.get(timeout=max(0.0, left_s)))
            except Empty:
                return None
        return self._ended - released

    def receive(self) -> None:
        """Wait for a response, then take all that have come."""
        self._take(*self._next())
        self.receive_ready()

    def receive_ready(self) -> None:
        responses = self._inbox.responses
        while not responses.empty():
            self._take(*responses.get_nowait())

    def receive_all(self) -> None:
        """Wait until every ask has been announced."""
        while self.waiting:
            self.receive()

    def settle(self) -> None:
        """Wait until nothing is under way in the core, and take what it said."""
        deadline = time.monotonic() + self._patience_s
        while not self.core.is_settled():
            self._go_on_until(deadline, "the core does not come to rest")
            time.sleep(SETTLE_POLL_S)
        self.receive_ready()
        if self._inbox.turned_down:
            raise TurnedDown("; ".join(self._inbox.turned_down[:5]))

    def _next(self) -> tuple[float, Response]:
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                return self._inbox.responses.get(timeout=min(POLL_S, self._patience_s))
            except Empty:
                self._go_on_until(deadline, f"{len(self.waiting)} asks wait and nothing comes")

    def _go_on_until(self, deadline: float, complaint: str) -> None:
        if self.core.failure is not None:
            raise self.core.failure
        if time.monotonic() > deadline:
            raise Stalled(f"{complaint}: gave up after {self._patience_s:g} s without progress")

    def _take(self, at: float, response: Response) -> None:
        if isinstance(response, si.NodeResponse):
            for node in response.accepted:
                self._hold(at, self._arriving.pop(node.node_id, ()))
            return
        self._hold(at, response.new)
        self._confirm(response.released)
        for refused in response.rejected:
            raise TurnedDown(f"ask {refused.allocation_key}: {refused.reason}")

    def _hold(self, at: float, allocations: tuple[si.Allocation, ...]) -> None:
        for item in allocations:
            submission = self.waiting.pop(item.allocation_key, None)
            if submission is None:
                raise CheckFailed(f"{item.allocation_key} was announced twice, or never asked for")
            submission.latencies_s.append(at - submission.at)
            self.held.append(Held(item.application_id, item.uuid, submission.size))
            if submission.latencies_s is self._latencies_s:
                self._ended = at
