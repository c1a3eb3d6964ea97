"""Plays a workload on nodes, through the real scheduler, in virtual time.

What happens at one moment happens in this order: what ends, then how nodes change, then what is
submitted, then the core decides. A job that names no application is one of its own, which is
removed when the job ends, so the core holds what is alive and no more.
"""

import heapq
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from random import Random
from typing import Any, Final, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.config.node_order import NODE_ORDERS
from yunikorn_actors.config.policy_names import PolicyNames
from yunikorn_actors.drivers.simulator.simulator import EPOCH_NS
from yunikorn_actors.errors import ConfigError
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.policies.built_in import APPLICATION_ORDERS
from yunikorn_actors.policies.fgd import Fgd, Kind, typical
from yunikorn_actors.policies.registry import Policies
from yunikorn_actors.runtime.virtual_core import VirtualCore
from yunikorn_actors.state.termination import ASKED_BACK
from yunikorn_actors.values import tags
from yunikorn_actors.values.resource import INT64_MAX
from yunikorn_actors.workload.cluster import Capacity, configured
from yunikorn_actors.workload.figures import Usage
from yunikorn_actors.workload.job_stream import Workload
from yunikorn_actors.workload.jobs import (
    GPU,
    SECOND,
    SECONDS_MAX,
    VCORE,
    Job,
    Node,
    WorkloadError,
    check_number,
    ns,
)
from yunikorn_actors.workload.table import Run, Table


class NodeChange(NamedTuple):
    """A node that comes, leaves or becomes another one."""

    at_s: float
    id: str
    after: Node | None
    """None if it leaves."""


def node_changes(nodes: Sequence[Node]) -> list[NodeChange]:
    """Return when nodes come, leave or become others: one that follows at once is a change."""
    ordered = sorted(nodes, key=lambda it: it.from_s)
    comes = [NodeChange(it.from_s, it.id, it) for it in ordered]
    begins = {(it.at_s, it.id) for it in comes}
    leaves = [
        NodeChange(it.until_s, it.id, None)
        for it in ordered
        if it.until_s is not None and (it.until_s, it.id) not in begins
    ]
    return sorted(leaves + comes, key=lambda it: it.at_s)


def node_info(node: Node) -> si.NodeInfo:
    """Report a node that comes."""
    action = si.ActionFromRM.CREATE_DRAIN if node.drained else si.ActionFromRM.CREATE
    return si.NodeInfo(
        node_id=node.id, attributes=_attributes(node), action=action,
        schedulable_resource=si.Resource.of(node.resources),
    )  # fmt: skip


def changed_node(before: Node, after: Node) -> Iterator[si.NodeInfo]:
    yield replace(node_info(after), action=si.ActionFromRM.UPDATE)
    if before.drained != after.drained:
        ends, begins = si.ActionFromRM.DRAIN_TO_SCHEDULABLE, si.ActionFromRM.DRAIN_NODE
        yield si.NodeInfo(node_id=after.id, action=begins if after.drained else ends)


def _attributes(node: Node) -> dict[str, str]:
    attributes = {tags.GPU_MODEL: node.model} if node.model else {}
    if node.devices:
        attributes[tags.GPU_DEVICES] = str(node.devices)
    return attributes


RM_ID: Final = "workload"
FGD: Final = "fgd"
"""A node order that has to know what is typical: of the log that is played."""
FOREVER_MS: Final = 10 * 365 * 86_400 * 1_000
"""So long a gang may take to come together: jobs of a log wait for days."""
LAST_NS: Final = INT64_MAX - FOREVER_MS * 1_000_000
"""A replay is cut off before time has no more numbers."""
NOTHING_FOR_S: Final = 86_400
"""When nothing has begun for so long though only the core can still do something, that is all."""
LATE_S: Final = 60.0
LOST_S: Final = 600.0
RESTARTS_MAX: Final = 10
"""A job that began again so often fails no more: else a replay in which all fail has no end."""
NEVER_FITS: Final = "never fits"
NODES_AT_ONCE: Final = 500
_PREEMPTED: Final = si.TerminationType.PREEMPTED_BY_SCHEDULER
_REPLACED: Final = si.TerminationType.PLACEHOLDER_REPLACED

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
    takes it back, the confirmation comes late. After ten restarts a job causes no more faults."""
    seed: int = 0
    stays: bool = False
    """Nothing ends: the cluster is filled."""
    checked: bool = False
    """Look after every message whether the invariants hold."""
    topology: TopologyName = "fused"

    def __post_init__(self) -> None:
        check_number("faults", self.faults, 1)
        check_number("until", self.until_s or 0.0)

    def as_played(self, job: Job) -> Job:
        """Return a job as it is asked for: with one ask it is one task of the size of all."""
        if self.jobs == "gang":
            return replace(job, gang=True)
        is_one = job.gang or job.tasks == 1
        return job if is_one else replace(job, size=_times(job.size, job.tasks), tasks=1)

    def declared(self, job: Job) -> float:
        if self.estimates == "requested":
            return max(job.declared_s, job.run_s)
        return job.run_s if self.estimates == "exact" else 2 * job.run_s


def _check_order(policy: str, names: PolicyNames) -> None:
    known = [*map(str, APPLICATION_ORDERS), *names.applications]
    if not policy or policy in known:
        return
    if policy in {*NODE_ORDERS, *names.nodes}:
        raise WorkloadError(
            f"{policy} is an order of nodes and not of applications: name it in a configuration, "
            f"as nodesortpolicy: {{type: {policy}}}"
        )
    raise WorkloadError(f"there is no policy {policy!r:.60}: use {', '.join(known)}")


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

    `policies` are policies of your own by name, as `SchedulerCore` takes them. The node order `fgd`
    takes what is typical from the workload.
    """
    given = dict(policies or {})
    _check_order(policy, Policies(given).names)
    config = configured(config, policy)
    if FGD in config and FGD not in given:
        given[FGD] = partial(Fgd, typical(map(_kind, workload.jobs())))
    return _Player(workload, nodes, config, given, policy, options or Options()).play()


def never_fitting(workload: Workload, nodes: Sequence[Node], options: Options) -> int:
    """Count the jobs that have no room even where nothing runs."""
    capacity = Capacity(nodes)
    return sum(not capacity.fits(options.as_played(job)) for job in workload.jobs())


@dataclass(slots=True)
class _Alive:
    """A job that waits or runs."""

    job: Job
    row: int
    name: str
    """Of its asks; of its application too, where that is its own."""
    application: str
    since_s: float
    """When it began to wait under this reason."""
    reason: str = ""
    reasons: dict[str, float] = field(default_factory=dict)
    attempt: int = 0
    keys: list[str] = field(default_factory=list)
    """Of its asks so far."""
    placed: dict[str, str] = field(default_factory=dict)
    """Of what runs the node, by UUID; of a gang its placeholders too."""
    members: int = 0
    """How many of its tasks run."""
    placeholders: int = 0
    is_running: bool = False

    def waits_for(self, reason: str, now_s: float) -> None:
        if now_s > self.since_s:
            self.reasons[self.reason] = self.reasons.get(self.reason, 0) + now_s - self.since_s
        self.since_s, self.reason = now_s, reason


class _Player(si.ResourceManagerCallback):
    def __init__(
        self, workload: Workload, nodes: Sequence[Node], config: str,
        policies: Mapping[str, Any], policy: str, options: Options,
    ) -> None:  # fmt: skip
        self._workload, self._options, self._config = workload, options, config
        self._nodes: dict[str, Node] = {}
        """Those that are there now."""
        self._capacity = capacity = Capacity(nodes)
        survey, findings, main = workload.survey, workload.findings, capacity.main
        self._run = Run(
            log=workload.name, format=survey.format, policy=policy, seed=options.seed,
            bad_lines=findings.bad, left_out=Counter(findings.left_out), capacity=capacity.total,
            main=main, began_s=survey.submitted_s[0],
        )  # fmt: skip
        for it in nodes:
            size = it.resources.get(main, 0) / self._run.scale
            self._run.nodes[it.id] = max(size, self._run.nodes.get(it.id, 0.0))
        self.table = Table(self._run)
        self._usage = Usage(capacity, self._run.series)
        unix = survey.header.get("UnixStartTime", "")
        is_time = unix.isdecimal() and int(unix) <= SECONDS_MAX
        self._base_ns = int(unix) * SECOND if is_time else EPOCH_NS
        # Where nothing ends a node would be kept for ever for what waits.
        settings = Settings(reservation_delay_ns=LAST_NS) if options.stays else None
        self._errors: list[BaseException] = []
        self._core = VirtualCore(
            settings=settings, topology=options.topology, start_ns=self._base_ns,
            quiet=not options.checked, checked=options.checked, policies=policies or None,
            on_callback_error=lambda raised: self._errors.append(raised.error),
        )  # fmt: skip
        self._random = Random(options.seed)  # noqa: S311 - a repeatable run, no secret
        self._alive: dict[str, _Alive] = {}
        self._of_key: dict[str, _Alive] = {}
        """By the keys of their asks."""
        self._shared: dict[str, set[str]] = {}
        """Of applications that several jobs name those that wait or run."""
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        """What will happen: when, a number, what."""
        self._changes = [*reversed(node_changes(nodes))]
        """When nodes come, leave or become others; the next is the last of the list."""
        self._dues = 0
        self._ended: list[si.RemoveApplicationRequest] = []
        self._released_by_end: list[si.AllocationRelease] = []
        """Of jobs that have ended in an application that others use."""
        self._last_start_ns = 0

    # -- the run

    def play(self) -> Table:
        began_cpu_s = time.process_time()
        with self._core as core:
            self._set_up(core)
            before = core.handled
            self._play(core)
            self._run.messages = core.handled - before
        for alive in self._alive.values():
            if not alive.is_running:
                self._stop_waiting(alive)
        self._run.cpu_s = time.process_time() - began_cpu_s
        self._run.fragmentation = self._usage.fragmentation()
        return self.table

    def _set_up(self, core: VirtualCore) -> None:
        request = si.RegisterResourceManagerRequest(rm_id=RM_ID, config=self._config)
        try:
            core.register_resource_manager(request, self)
        except ConfigError as error:
            raise WorkloadError(f"the configuration is refused: {error}") from error
        self._change_nodes(self._base_ns)
        core.run_until_idle()

    def _play(self, core: VirtualCore) -> None:
        run, until_s = self._run, self._options.until_s
        until_ns = LAST_NS if until_s is None else min(LAST_NS, self._at(run.began_s + until_s))
        jobs = iter(self._workload.jobs())
        job = next(jobs, None)
        while True:
            submit_ns = inf if job is None else self._at(job.submit_s)
            changes_ns = self._node_ns(self._changes[-1]) if self._changes else inf
            # A node that comes when nothing waits and nothing will changes no more.
            if submit_ns == inf and not self._alive:
                changes_ns = inf
            now = min(submit_ns, changes_ns, self._due[0][0] if self._due else inf)
            # What a timer of the core begins may end before anything else happens.
            now = min(now, self._of_the_core(core, is_all=now == inf))
            if now >= until_ns:
                break
            now_ns = int(now)
            self._usage.pass_to(self._seconds(now_ns) - run.began_s)
            core.advance_to(now_ns)
            self._do_what_is_due(now_ns)
            self._change_nodes(now_ns)
            new: list[Job] = []
            while job is not None and self._at(job.submit_s) <= now_ns:
                new.append(job)
                job = next(jobs, None)
            self._submit(core, new)
            core.run_until_idle()
            if self._errors:
                raise self._errors[0]
        if now < inf or until_s is not None:
            run.ended_s = self._seconds(until_ns)
            self._usage.pass_to(run.ended_s - run.began_s)
        elif not run.ended_s:
            run.ended_s = self._now_s
        if left := sum(1 for _ in jobs) + (job is not None):
            run.left_out["after the end"] = left

    def _of_the_core(self, core: VirtualCore, *, is_all: bool) -> float:
        """When the next timer of the core is due, if it may do something for what waits."""
        due_ns = core.next_event_ns
        if due_ns is None or not self._usage.waiting:
            return inf
        is_over = is_all and due_ns - self._last_start_ns > NOTHING_FOR_S * SECOND
        return inf if is_over else due_ns

    def _at(self, log_s: float) -> int:
        return self._base_ns + ns(log_s)

    def _seconds(self, at_ns: int) -> float:
        return (at_ns - self._base_ns) / SECOND

    @property
    def _now_s(self) -> float:
        return self._seconds(self._core.now_ns)

    def _after(self, seconds: float, what: Callable[[], None]) -> None:
        self._dues += 1
        heapq.heappush(self._due, (self._core.now_ns + ns(seconds), self._dues, what))

    def _do_what_is_due(self, now_ns: int) -> None:
        while self._due and self._due[0][0] <= now_ns:
            heapq.heappop(self._due)[2]()
        if self._ended:
            remove, self._ended = tuple(self._ended), []
            self._core.update_application(si.ApplicationRequest(rm_id=RM_ID, remove=remove))
        if self._released_by_end:
            releases, self._released_by_end = tuple(self._released_by_end), []
            self._update(releases=releases)

    # -- what is submitted

    def _submit(self, core: VirtualCore, jobs: list[Job]) -> None:
        new, asks = [], []
        for job in map(self._options.as_played, jobs):
            if not self._capacity.fits(job):
                self._run.left_out[NEVER_FITS] += 1
                continue
            row = self.table.submit(job)
            # Ids of a log come again.
            is_again = f"job-{job.id}" in self._alive
            name = f"job-{job.id}#{row}" if is_again else f"job-{job.id}"
            # A gang is an application.
            shared = "" if job.gang else job.application
            alive = self._alive[name] = _Alive(job, row, name, shared or name, self._now_s)
            self._usage.wait(job, 1)
            # One that was idle for long has completed and has to come again.
            if not shared or not self._shared.get(shared):
                new.append(self._application(alive))
            if shared:
                self._shared.setdefault(shared, set()).add(name)
            asks.append(self._ask(alive))
        if asks:
            if new:
                core.update_application(si.ApplicationRequest(rm_id=RM_ID, new=tuple(new)))
            self._update(*asks)

    def _application(self, alive: _Alive) -> si.AddApplicationRequest:
        job = alive.job
        gang: dict[str, Any] = {}
        if job.gang:
            gang = {
                "placeholder_ask": si.Resource.of(_times(job.size, job.tasks)),
                "execution_timeout_milli_seconds": FOREVER_MS,
                "gang_scheduling_style": "Hard",
            }
        return si.AddApplicationRequest(
            application_id=alive.application, queue_name=job.queue,
            ugi=si.UserGroupInformation(user=job.user, groups=(job.group,)), **gang,
        )  # fmt: skip

    def _ask(self, alive: _Alive, *, is_member: bool = False) -> si.AllocationAsk:
        """Return the ask of a job: of a gang first that of its placeholders."""
        job = alive.job
        is_placeholder = job.gang and not is_member
        words = {tags.TAG_RUNTIME: f"{self._options.declared(job):.9g}"}
        if job.models:
            words[tags.GPU_MODEL] = "|".join(job.models)
        if job.node:
            words[tags.TAG_REQUIRED_NODE] = job.node
        key = f"{alive.name}.{alive.attempt}" if alive.attempt else alive.name
        if is_placeholder:
            key += ".placeholder"
        alive.keys.append(key)
        self._of_key[key] = alive
        preemption = si.PreemptionPolicy(
            allow_preempt_self=job.preemptible, allow_preempt_other=job.may_preempt
        )
        return si.AllocationAsk(
            application_id=alive.application, resource_ask=si.Resource.of(job.size),
            allocation_key=key, max_allocations=job.tasks, priority=job.priority,
            placeholder=is_placeholder, task_group_name="tasks" if job.gang else "", tags=words,
            preemption_policy=preemption,
        )  # fmt: skip

    # -- what the core says

    def update_allocation(self, response: si.AllocationResponse) -> None:
        for ended in response.released:
            self._released(ended)
        for refused in response.rejected:
            self._refused(self._of_key.get(refused.allocation_key), refused.reason)
        for new in response.new:
            if (alive := self._of_key.get(new.allocation_key)) is not None:
                self._placed(alive, new)

    def update_application(self, response: si.ApplicationResponse) -> None:
        for refused in response.rejected:
            # One that several jobs share is there already unless it has completed; if it is
            # refused for another reason, so are its asks.
            self._refused(self._alive.get(refused.application_id), refused.reason)

    def update_container_scheduling_state(
        self, request: si.UpdateContainerSchedulingStateRequest
    ) -> None:
        alive = self._of_key.get(request.allocation_key)
        if alive is not None and request.reason and not alive.is_running:
            alive.waits_for(request.reason, self._now_s)

    def _placed(self, alive: _Alive, new: si.Allocation) -> None:
        job = alive.job
        alive.placed[new.uuid] = new.node_id
        self._usage.use(job, new.node_id, 1)
        if new.placeholder:
            alive.placeholders += 1
            if alive.placeholders == job.tasks:
                self._update(self._ask(alive, is_member=True))
        else:
            alive.members += 1
            if alive.members == job.tasks:
                self._begin(alive, new.node_id)

    def _begin(self, alive: _Alive, node: str) -> None:
        job, options = alive.job, self._options
        alive.is_running = True
        self._last_start_ns = self._core.now_ns
        self._stop_waiting(alive)
        self.table.began(alive.row, self._now_s, [*alive.placed.values()])
        if not options.stays:
            self._after(job.run_s, partial(self._end, alive, alive.attempt))
        if alive.attempt < RESTARTS_MAX and self._goes_wrong():
            part_s = self._random.random() * job.run_s
            is_killed = self._random.random() < 0.5  # noqa: PLR2004 - one of two
            what = partial(self._kill, alive) if is_killed else partial(self._lose, node)
            self._after(part_s, what)

    def _stop_waiting(self, alive: _Alive) -> None:
        self._usage.wait(alive.job, -1)
        alive.waits_for("", self._now_s)
        if alive.reasons:
            self.table.waited(alive.row, alive.reasons)

    def _end(self, alive: _Alive, attempt: int) -> None:
        if not alive.is_running or alive.attempt != attempt:
            return
        self.table.ended(alive.row, self._now_s)
        self._run.ended_s = max(self._run.ended_s, self._now_s)
        if alive.application == alive.name:
            self._ended.append(si.RemoveApplicationRequest(application_id=alive.name))
        else:
            self._released_by_end += _releases(alive)
        for uuid in tuple(alive.placed):
            self._take_off(alive, uuid)
        self._forget(alive)

    def _forget(self, alive: _Alive) -> None:
        # Its end may be due still.
        alive.is_running = False
        del self._alive[alive.name]
        for key in alive.keys:
            del self._of_key[key]
        if alive.application != alive.name:
            self._shared[alive.application].remove(alive.name)

    def _released(self, ended: si.AllocationRelease) -> None:
        kind = ended.termination_type
        if kind in ASKED_BACK:
            # A confirmation repeats the request.
            if self._goes_wrong():
                self._run.planted["confirmed late"] += 1
                self._after(LATE_S, partial(self._update, releases=(ended,)))
            else:
                self._update(releases=(ended,))
        alive = self._of_key.get(ended.allocation_key)
        if alive is not None and ended.uuid in alive.placed:
            self._take_off(alive, ended.uuid)
            if kind is not _REPLACED and alive.job.is_cut_short and alive.is_running:
                self._end(alive, alive.attempt)
            elif kind is not _REPLACED:
                self._put_back(alive, preempted=kind is _PREEMPTED)

    def _put_back(self, alive: _Alive, *, preempted: bool) -> None:
        """Stop what is left of a job and ask for all of it again: jobs do not go on in part."""
        releases = _releases(alive)
        for uuid in tuple(alive.placed):
            self._take_off(alive, uuid)
        if alive.is_running:
            self._usage.wait(alive.job, 1)
            alive.since_s = self._now_s
        alive.is_running = False
        alive.attempt += 1
        alive.members = alive.placeholders = 0
        self.table.put_back(alive.row, preempted=preempted)
        asked_before = tuple(
            si.AllocationAskRelease(application_id=alive.application, allocation_key=it)
            for it in alive.keys
        )
        self._update(releases=releases, asks_released=asked_before)
        self._update(self._ask(alive))

    def _take_off(self, alive: _Alive, uuid: str) -> None:
        self._usage.use(alive.job, alive.placed.pop(uuid), -1)

    def _refused(self, alive: _Alive | None, reason: str) -> None:
        if alive is not None:
            self._forget(alive)
            self._stop_waiting(alive)
            self.table.rejected(alive.row, reason)

    def _update(
        self, *asks: si.AllocationAsk, releases: tuple[si.AllocationRelease, ...] = (),
        asks_released: tuple[si.AllocationAskRelease, ...] = (),
    ) -> None:  # fmt: skip
        ended = si.AllocationReleasesRequest(
            allocations_to_release=releases, allocation_asks_to_release=asks_released
        )
        self._core.update_allocation(si.AllocationRequest(rm_id=RM_ID, asks=asks, releases=ended))

    # -- faults

    def _goes_wrong(self) -> bool:
        return bool(self._options.faults) and self._random.random() < self._options.faults

    def _kill(self, alive: _Alive) -> None:
        if alive.is_running and alive.name in self._alive:
            self._run.planted["killed"] += 1
            self._put_back(alive, preempted=False)

    def _lose(self, node: str) -> None:
        if any(node in alive.placed.values() for alive in self._alive.values()):
            self._run.planted["nodes lost"] += 1
            self._update_nodes(si.NodeInfo(node_id=node, action=si.ActionFromRM.DECOMISSION))
            self._after(LOST_S, partial(self._find_again, node))

    def _find_again(self, node: str) -> None:
        if (it := self._nodes.get(node)) is not None:
            self._update_nodes(node_info(it))

    # -- nodes

    def _node_ns(self, change: NodeChange) -> int:
        return self._at(self._run.began_s + change.at_s) if change.at_s else self._base_ns

    def _change_nodes(self, now_ns: int) -> None:
        """Let nodes come, leave and become others, as they do by now."""
        infos: list[si.NodeInfo] = []
        while self._changes and self._node_ns(self._changes[-1]) <= now_ns:
            change = self._changes.pop()
            before, after = self._nodes.pop(change.id, None), change.after
            if after is not None:
                self._nodes[after.id] = after
                self._usage.has(after, before)
                infos += [node_info(after)] if before is None else changed_node(before, after)
            elif before is not None:
                self._usage.has_lost(before.id)
                infos.append(si.NodeInfo(node_id=before.id, action=si.ActionFromRM.DECOMISSION))
        for start in range(0, len(infos), NODES_AT_ONCE):
            self._update_nodes(*infos[start : start + NODES_AT_ONCE])

    def _update_nodes(self, *infos: si.NodeInfo) -> None:
        self._core.update_node(si.NodeRequest(rm_id=RM_ID, nodes=infos))


def _times(size: dict[str, int], tasks: int) -> dict[str, int]:
    return {kind: amount * tasks for kind, amount in size.items()}


def _kind(job: Job) -> Kind:
    return Kind(job.size.get(VCORE, 0), job.size.get(GPU, 0), "|".join(job.models))


def _releases(alive: _Alive) -> tuple[si.AllocationRelease, ...]:
    why = si.TerminationType.STOPPED_BY_RM
    return tuple(
        si.AllocationRelease(application_id=alive.application, uuid=uuid, termination_type=why)
        for uuid in alive.placed
    )
