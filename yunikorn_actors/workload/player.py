"""Plays a workload on nodes, through the real scheduler, in virtual time.

What happens at one moment happens in this order: what ends, then what is submitted, then the core
decides. Each job is an application of its own, which is removed when the job ends, so the core
holds what is alive and no more.
"""

import heapq
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from random import Random
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.simulator import EPOCH_NS
from yunikorn_actors.errors import ConfigError
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.runtime.virtual_core import VirtualCore
from yunikorn_actors.values import tags
from yunikorn_actors.workload.cluster_config import configured
from yunikorn_actors.workload.formats.openb import DEVICE
from yunikorn_actors.workload.jobs import CPU, GPU, SECOND, VCORE, Job, Node, WorkloadError, ns
from yunikorn_actors.workload.nodes import Capacity
from yunikorn_actors.workload.table import Run, Table
from yunikorn_actors.workload.workload import Workload

RM_ID: Final = "workload"
FOREVER_MS: Final = 10 * 365 * 86_400 * 1_000
"""So long a gang may take to come together: jobs of a log wait for days."""
NOTHING_FOR_S: Final = 86_400
"""When nothing has begun for so long though only the core can still do something, that is all."""
CHECKED_EACH: Final = 50
"""With faults the invariants of so many moments are looked at once."""
LATE_S: Final = 60.0
LOST_S: Final = 600.0

Estimates = Literal["requested", "exact", "x2"]
Jobs = Literal["ask", "gang"]


class Options(Struct, frozen=True, kw_only=True):
    """How a workload is played."""

    jobs: Jobs = "ask"
    """A job as one ask of all its processors, or as a gang of asks of one."""
    estimates: Estimates = "requested"
    """Which run times are declared: those of the log's users, the true ones, or twice those."""
    until_s: float | None = None
    """Cut it off so long after the first submit."""
    faults: float = 0.0
    """Of so large a share of all starts the node is lost, the task is killed or, where the core
    takes it back, the confirmation comes late."""
    seed: int = 0
    stays: bool = False
    """Nothing ends: the cluster is filled."""
    checked: bool = False
    """Look after every message whether the invariants hold."""
    topology: TopologyName = "fused"


def play(
    workload: Workload,
    nodes: Sequence[Node],
    config: str = "",
    policies: Mapping[str, Any] | None = None,
    *,
    policy: str = "",
    options: Options | None = None,
) -> Table:
    """Play it; `config` is the text of a configuration, `policy` that of every leaf.

    `policies` are policies of your own by name, as `SchedulerCore` takes them.
    """
    player = _Player(workload, nodes, config, policies or {}, policy, options or Options())
    return player.play()


@dataclass(slots=True)
class _Alive:
    """A job that waits or runs."""

    job: Job
    row: int
    application: str
    attempt: int = 0
    placed: dict[str, str] = field(default_factory=dict)
    """Of what runs the node, by UUID; of a gang its placeholders too."""
    members: int = 0
    """How many of its tasks run."""
    placeholders: int = 0
    is_running: bool = False
    end_ns: int = 0

    @property
    def key(self) -> str:
        return f"{self.application}.{self.attempt}" if self.attempt else self.application


class _Player(si.ResourceManagerCallback):
    def __init__(
        self,
        workload: Workload,
        nodes: Sequence[Node],
        config: str,
        policies: Mapping[str, Any],
        policy: str,
        options: Options,
    ) -> None:
        self._workload, self._nodes, self._options = workload, list(nodes), options
        self._config = configured(config, policy)
        capacity = Capacity(nodes)
        self._capacity = capacity
        main = capacity.main
        survey = workload.survey
        run = Run(
            log=workload.name,
            format=survey.format,
            policy=policy,
            seed=options.seed,
            bad_lines=workload.findings.bad,
            faults=workload.findings.faults,
            left_out=dict(workload.findings.left_out),
            capacity=capacity.total,
            main=main,
            nodes=len(self._nodes),
            began_s=survey.submitted_s[0],
        )
        self.table = Table(run, SCALES.get(main, 1))
        unix = survey.header.get("UnixStartTime", "")
        self._base_ns = int(unix) * SECOND if unix.isdigit() else EPOCH_NS
        extra: dict[str, Any] = {"policies": policies} if policies else {}
        self._core = VirtualCore(
            topology=options.topology,
            seed=0,
            start_ns=self._base_ns,
            quiet=not options.checked,
            checked=options.checked,
            on_callback_error=self._raised,
            **extra,
        )
        self._errors: list[BaseException] = []
        self._random = Random(options.seed)  # noqa: S311 - a repeatable run, no secret
        self._alive: dict[str, _Alive] = {}
        self._due: list[tuple[int, int, str, str]] = []
        """What will happen: when, a number, what, to whom."""
        self._dues = 0
        self._used: Counter[str] = Counter()
        self._queue_used: Counter[str] = Counter()
        self._waiting = 0
        self._waiting_size = 0.0
        self._planted: Counter[str] = Counter()
        self._free = {node.id: dict(node.resources) for node in nodes}
        self._fragments: dict[str, list[float]] = {}
        self._last_start_ns = 0

    # -- the run

    def play(self) -> Table:
        began_cpu_s = time.process_time()
        with self._core as core:
            self._set_up(core)
            before = core.handled
            self._play(core)
            run = self.table.run
            run.messages = core.handled - before
        run.cpu_s = time.process_time() - began_cpu_s
        run.faults_planted = dict(self._planted)
        run.fragmentation = {
            kind: sum(each) / len(each) for kind, each in sorted(self._fragments.items())
        }
        return self.table

    def _set_up(self, core: VirtualCore) -> None:
        request = si.RegisterResourceManagerRequest(rm_id=RM_ID, config=self._config)
        try:
            core.register_resource_manager(request, self)
        except ConfigError as error:
            raise WorkloadError(f"the configuration is refused: {error}") from error
        for start in range(0, len(self._nodes), 500):
            some = self._nodes[start : start + 500]
            core.update_node(
                si.NodeRequest(rm_id=RM_ID, nodes=tuple(_node_info(node) for node in some))
            )
        core.run_until_idle()

    def _play(self, core: VirtualCore) -> None:
        options, first_s = self._options, self.table.run.began_s
        until_ns = inf if options.until_s is None else self._at(first_s + options.until_s)
        jobs = iter(self._workload.jobs())
        job = next(jobs, None)
        while True:
            submit_ns = inf if job is None else self._at(job.submit_s)
            now = min(submit_ns, self._due[0][0] if self._due else inf)
            # What a timer of the core begins may end before anything else happens.
            now = min(now, self._of_the_core(core, is_all=now == inf))
            if now >= until_ns or now == inf:
                break
            now_ns = int(now)
            self._pass_to(now_ns)
            core.advance_to(now_ns)
            self._end_what_is_due(core, now_ns)
            new: list[Job] = []
            while job is not None and self._at(job.submit_s) <= now_ns:
                new.append(job)
                job = next(jobs, None)
            self._submit(core, new)
            core.run_until_idle()
            self._check_callbacks()
        if until_ns != inf:
            self._pass_to(int(until_ns))
            left = sum(1 for _ in jobs) + (job is not None)
            if left:
                self.table.run.left_out["after the end"] = left
        if not self.table.run.ended_s or until_ns != inf:
            self.table.run.ended_s = self._seconds(
                core.now_ns if until_ns == inf else int(until_ns)
            )

    def _of_the_core(self, core: VirtualCore, *, is_all: bool) -> float:
        """When the next timer of the core is due, if it may do something for what waits."""
        due_ns = core.next_event_ns
        if due_ns is None or not self._waiting:
            return inf
        is_over = is_all and due_ns - self._last_start_ns > NOTHING_FOR_S * SECOND
        return inf if is_over else due_ns

    def _at(self, log_s: float) -> int:
        return self._base_ns + ns(log_s)

    def _seconds(self, at_ns: int) -> float:
        return (at_ns - self._base_ns) / SECOND

    # -- what is submitted

    def _submit(self, core: VirtualCore, jobs: list[Job]) -> None:
        taken = [_as_played(it, self._options) for it in jobs if self._takes(it)]
        if not taken:
            return
        new, asks = [], []
        for job in taken:
            row = self.table.submit(job)
            alive = _Alive(job, row, f"job-{job.id}")
            if alive.application in self._alive:
                raise WorkloadError(f"job {job.id} is in the log twice, and both are alive")
            self._alive[alive.application] = alive
            self._wait(alive, 1)
            new.append(self._application(alive))
            asks.extend(self._asks(alive))
        core.update_application(si.ApplicationRequest(rm_id=RM_ID, new=tuple(new)))
        core.update_allocation(si.AllocationRequest(rm_id=RM_ID, asks=tuple(asks)))

    def _takes(self, job: Job) -> bool:
        if self._capacity.fits(_as_played(job, self._options)):
            return True
        left_out = self.table.run.left_out
        left_out[NEVER_FITS] = left_out.get(NEVER_FITS, 0) + 1
        return False

    def _application(self, alive: _Alive) -> si.AddApplicationRequest:
        job = alive.job
        gang: dict[str, Any] = {}
        if self._options.jobs == "gang":
            whole = {kind: amount * job.tasks for kind, amount in job.size.items()}
            gang = {
                "placeholder_ask": si.Resource.of(whole),
                "execution_timeout_milli_seconds": FOREVER_MS,
                "gang_scheduling_style": "Hard",
            }
        return si.AddApplicationRequest(
            application_id=alive.application,
            queue_name=job.queue,
            ugi=si.UserGroupInformation(user=job.user, groups=(job.group,)),
            **gang,
        )

    def _asks(self, alive: _Alive) -> list[si.AllocationAsk]:
        return [self._ask(alive, placeholder=self._options.jobs == "gang")]

    def _ask(self, alive: _Alive, *, placeholder: bool) -> si.AllocationAsk:
        job, is_gang = alive.job, self._options.jobs == "gang"
        words = {tags.TAG_RUNTIME: f"{_declared(job, self._options.estimates):.9g}"}
        if job.models:
            words[tags.GPU_MODEL] = "|".join(job.models)
        return si.AllocationAsk(
            application_id=alive.application,
            allocation_key=f"{alive.key}{'.placeholder' if placeholder else ''}",
            resource_ask=si.Resource.of(job.size),
            max_allocations=job.tasks,
            priority=job.priority,
            task_group_name="tasks" if is_gang else "",
            placeholder=placeholder,
            tags=words,
            preemption_policy=_PREEMPTION,
        )

    # -- what ends

    def _end_what_is_due(self, core: VirtualCore, now_ns: int) -> None:
        ended: list[si.RemoveApplicationRequest] = []
        while self._due and self._due[0][0] <= now_ns:
            _, _, what, whom = heapq.heappop(self._due)
            alive = self._alive.get(whom)
            if what == "end":
                if alive is not None and alive.is_running and alive.end_ns <= now_ns:
                    self._end(alive, now_ns)
                    ended.append(si.RemoveApplicationRequest(application_id=whom))
            elif what == "kill":
                if alive is not None and alive.is_running:
                    self._planted["killed"] += 1
                    self._put_back(core, alive, tuple(alive.placed), preempted=False)
            elif what == "lose":
                self._lose(core, whom, now_ns)
            elif what == "return":
                node = next(it for it in self._nodes if it.id == whom)
                core.update_node(si.NodeRequest(rm_id=RM_ID, nodes=(_node_info(node),)))
            else:
                self._confirm(what, whom)
        if ended:
            core.update_application(si.ApplicationRequest(rm_id=RM_ID, remove=tuple(ended)))

    def _end(self, alive: _Alive, now_ns: int) -> None:
        now_s = self._seconds(now_ns)
        self.table.ended(alive.row, now_s)
        self.table.run.ended_s = max(self.table.run.ended_s, now_s)
        for uuid in tuple(alive.placed):
            self._take_off(alive, uuid)
        del self._alive[alive.application]

    def _later(self, at_ns: int, what: str, whom: str) -> None:
        self._dues += 1
        heapq.heappush(self._due, (at_ns, self._dues, what, whom))

    # -- what the core says

    def update_allocation(self, response: si.AllocationResponse) -> None:
        now_ns = self._core.now_ns
        for ended in response.released:
            self._released(ended, now_ns)
        for refused in response.rejected:
            self._refused(refused.application_id, refused.reason)
        for new in response.new:
            alive = self._alive.get(new.application_id)
            if alive is None:
                continue
            alive.placed[new.uuid] = new.node_id
            self._put_on(alive, new.node_id)
            if new.placeholder:
                alive.placeholders += 1
                if alive.placeholders == alive.job.tasks:
                    self._send(asks=(self._ask(alive, placeholder=False),))
            else:
                alive.members += 1
                if alive.members == alive.job.tasks:
                    self._begin(alive, new.node_id, now_ns)

    def update_application(self, response: si.ApplicationResponse) -> None:
        for refused in response.rejected:
            self._refused(refused.application_id, refused.reason)

    def update_container_scheduling_state(
        self, request: si.UpdateContainerSchedulingStateRequest
    ) -> None:
        alive = self._alive.get(request.application_id)
        if alive is not None and request.reason:
            self.table.waits_for(alive.row, request.reason)

    def _begin(self, alive: _Alive, node: str, now_ns: int) -> None:
        alive.is_running = True
        self._last_start_ns = now_ns
        self.table.began(alive.row, self._seconds(now_ns), node)
        self._wait(alive, -1)
        if not self._options.stays:
            alive.end_ns = now_ns + ns(alive.job.run_s)
            self._later(alive.end_ns, "end", alive.application)
        if self._options.faults and self._random.random() < self._options.faults:
            part_ns = int(self._random.random() * ns(alive.job.run_s))
            what = self._random.choice(("kill", "lose"))
            self._later(now_ns + part_ns, what, alive.application if what == "kill" else node)

    def _released(self, ended: si.AllocationRelease, now_ns: int) -> None:
        kind = ended.termination_type
        if kind in _TO_CONFIRM:
            if self._options.faults and self._random.random() < self._options.faults:
                self._planted["confirmed late"] += 1
                self._later(now_ns + ns(LATE_S), f"confirm {kind.name}", _packed(ended))
            else:
                self._send(releases=(_confirmation(ended, kind),))
        alive = self._alive.get(ended.application_id)
        if alive is None or ended.uuid not in alive.placed:
            return
        if kind is si.TerminationType.PLACEHOLDER_REPLACED:
            self._take_off(alive, ended.uuid)
        else:
            others = tuple(it for it in alive.placed if it != ended.uuid)
            self._take_off(alive, ended.uuid)
            is_preempted = kind is si.TerminationType.PREEMPTED_BY_SCHEDULER
            self._put_back(self._core, alive, others, preempted=is_preempted)

    def _put_back(
        self, core: VirtualCore, alive: _Alive, uuids: tuple[str, ...], *, preempted: bool
    ) -> None:
        """Stop what is left of a job and ask for all of it again: jobs do not go on in part."""
        for uuid in uuids:
            self._take_off(alive, uuid)
        was_running, alive.is_running = alive.is_running, False
        alive.attempt += 1
        alive.members = alive.placeholders = 0
        self.table.put_back(alive.row, preempted=preempted)
        if was_running:
            self._wait(alive, 1)
        releases = tuple(
            si.AllocationRelease(
                application_id=alive.application,
                uuid=uuid,
                termination_type=si.TerminationType.STOPPED_BY_RM,
            )
            for uuid in uuids
        )
        asked_before = si.AllocationAskRelease(application_id=alive.application)
        core.update_allocation(
            si.AllocationRequest(
                rm_id=RM_ID,
                releases=si.AllocationReleasesRequest(
                    allocations_to_release=releases, allocation_asks_to_release=(asked_before,)
                ),
            )
        )
        self._send(asks=tuple(self._asks(alive)))

    def _lose(self, core: VirtualCore, node: str, now_ns: int) -> None:
        if not any(node in alive.placed.values() for alive in self._alive.values()):
            return
        self._planted["nodes lost"] += 1
        gone = si.NodeInfo(node_id=node, action=si.ActionFromRM.DECOMISSION)
        core.update_node(si.NodeRequest(rm_id=RM_ID, nodes=(gone,)))
        self._later(now_ns + ns(LOST_S), "return", node)

    def _confirm(self, what: str, packed: str) -> None:
        application_id, uuid, key = packed.split("\0")
        kind = si.TerminationType[what.removeprefix("confirm ")]
        ended = si.AllocationRelease(
            application_id=application_id, uuid=uuid, allocation_key=key, termination_type=kind
        )
        self._send(releases=(ended,))

    def _refused(self, application: str, reason: str) -> None:
        alive = self._alive.pop(application, None)
        if alive is not None:
            self.table.rejected(alive.row, reason)
            self._wait(alive, -1)

    def _send(
        self,
        *,
        asks: tuple[si.AllocationAsk, ...] = (),
        releases: tuple[si.AllocationRelease, ...] = (),
    ) -> None:
        ended = si.AllocationReleasesRequest(allocations_to_release=releases) if releases else None
        self._core.update_allocation(si.AllocationRequest(rm_id=RM_ID, asks=asks, releases=ended))

    def _raised(self, raised: Any) -> None:  # noqa: ANN401 - CallbackRaised
        self._errors.append(raised.error)

    def _check_callbacks(self) -> None:
        if self._errors:
            raise self._errors[0]

    # -- what is counted

    def _wait(self, alive: _Alive, change: int) -> None:
        self._waiting += change
        job = alive.job
        self._waiting_size += change * job.size.get(self.table.run.main, 0) * job.tasks

    def _put_on(self, alive: _Alive, node: str) -> None:
        free = self._free[node]
        for kind, amount in alive.job.size.items():
            self._used[kind] += amount
            free[kind] = free.get(kind, 0) - amount
        self._queue_used[alive.job.queue] += alive.job.size.get(self.table.run.main, 0)

    def _take_off(self, alive: _Alive, uuid: str) -> None:
        node = alive.placed.pop(uuid)
        for kind, amount in alive.job.size.items():
            self._used[kind] -= amount
            self._free[node][kind] = self._free[node].get(kind, 0) + amount
        self._queue_used[alive.job.queue] -= alive.job.size.get(self.table.run.main, 0)

    def _pass_to(self, now_ns: int) -> None:
        """Let what is in use now count for the time until then."""
        run, series = self.table.run, self.table.series
        now_s = self._seconds(now_ns) - run.began_s
        duration_s = now_s - series.now_s
        if duration_s <= 0:
            return
        total = run.capacity
        values: dict[str, float] = {"waiting": self._waiting}
        main = total.get(run.main, 1)
        values["waiting work"] = self._waiting_size / main
        for kind, amount in self._used.items():
            run.used[kind] = run.used.get(kind, 0.0) + amount * duration_s
            values[f"used {kind}"] = amount / total.get(kind, 1)
        for queue, amount in self._queue_used.items():
            values[f"queue {queue}"] = amount / main
        if series.advance(now_s, values):
            self._note_fragments()

    def _note_fragments(self) -> None:
        """Of what is free, the share that is not on the node that has most of it free."""
        for kind in self.table.run.capacity:
            free = [room.get(kind, 0) for room in self._free.values()]
            if (whole := sum(free)) > 0:
                self._fragments.setdefault(kind, []).append(1 - max(free) / whole)


NEVER_FITS: Final = "never fits"
_PREEMPTION: Final = si.PreemptionPolicy(allow_preempt_self=True, allow_preempt_other=True)
SCALES: Final = {VCORE: CPU, GPU: DEVICE}
"""What one of a resource is in base units."""
_TO_CONFIRM: Final = frozenset(
    {
        si.TerminationType.TIMEOUT,
        si.TerminationType.PREEMPTED_BY_SCHEDULER,
        si.TerminationType.PLACEHOLDER_REPLACED,
    }
)


def _as_played(job: Job, options: Options) -> Job:
    """Return a job as asked for: with one ask it is one task of the size of all."""
    if options.jobs == "gang" or job.tasks == 1:
        return job
    whole = {kind: amount * job.tasks for kind, amount in job.size.items()}
    return replace(job, size=whole, tasks=1)


def _declared(job: Job, estimates: Estimates) -> float:
    if estimates == "exact":
        return job.run_s
    return max(job.declared_s, job.run_s) if estimates == "requested" else 2 * job.run_s


def _node_info(node: Node) -> si.NodeInfo:
    attributes = {tags.GPU_MODEL: node.model} if node.model else {}
    if node.devices:
        attributes[tags.GPU_DEVICES] = str(node.devices)
    return si.NodeInfo(
        node_id=node.id,
        attributes=attributes,
        action=si.ActionFromRM.CREATE,
        schedulable_resource=si.Resource.of(node.resources),
    )


def _confirmation(ended: si.AllocationRelease, kind: si.TerminationType) -> si.AllocationRelease:
    return si.AllocationRelease(
        application_id=ended.application_id,
        uuid=ended.uuid,
        allocation_key=ended.allocation_key,
        termination_type=kind,
    )


def _packed(ended: si.AllocationRelease) -> str:
    return f"{ended.application_id}\0{ended.uuid}\0{ended.allocation_key}"


def never_fitting(workload: Workload, nodes: Sequence[Node], options: Options) -> int:
    """Count the jobs that have no room even where nothing runs."""
    capacity = Capacity(nodes)
    return sum(not capacity.fits(_as_played(job, options)) for job in workload.jobs())
