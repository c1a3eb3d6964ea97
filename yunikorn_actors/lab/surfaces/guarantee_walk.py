"""A small partition in which work has to go for a guarantee, judged by looking at all sets of it.

Worlds hardly come to the states in which one choice of victims is better than another: several
gangs that could go, priorities, budgets, asks that share what goes. So these are drawn by
themselves, each played in a core in virtual time, with a resource manager that confirms at once.
"""

from collections.abc import Iterator
from typing import Any, Final

from yunikorn_actors import si
from yunikorn_actors.config import PreemptionPolicy
from yunikorn_actors.lab.model.least_victims import (
    Amounts,
    Claim,
    Job,
    QueueRules,
    Small,
    Work,
    faults_of,
)
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.runtime.virtual_core import VirtualCore
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.values.tags import TAG_REQUIRED_NODE, TAG_RUNTIME

RM: Final = "rm"
ASKING, _SHARED = "root.shared.asking", "root.shared"
LEAVES: Final = ("root.shared.one", "root.shared.two", "root.far")
_STYLES: Final = ("Hard", "Hard", "HARD", "Soft", "")
"""Their case means nothing."""
_DELAY_S: Final = 20
_ROUND_S: Final = 10
_LOOKS_FOR_S: Final = 480
"""So long is looked on after the first search: all budgets and cooldowns end in that time."""
_PRIORITY: Final = 2
"""Of the claim."""
_PRIORITIES, _OF_GANGS = (0, 0, 1, 1, 2, 2, 3), (0, 0, 1)
CLAIMANT, _FIRST = "claims", "a0-0"
"""The application that claims, and its first ask."""
_WORKS_MAX: Final = 9
_TYPES: Final = ("vcore", "memory")
_PREEMPTED: Final = si.TerminationType.PREEMPTED_BY_SCHEDULER
_WANTED_BACK: Final = (_PREEMPTED, si.TerminationType.TIMEOUT)
"""A gang that has lost all but its placeholders is over after a while: these time out."""


class Contest:
    """One of them, as it is drawn."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self.has_memory = draw.once_in(3)
        self._of_gangs = draw.once_in(2)
        """Whether hardly anything but whole gangs runs, so that one is compared with another."""
        self.queues = {it.path: it for it in self._queues()}
        self.enforces_quotas = False
        self.nodes: dict[str, Amounts] = {}
        self.jobs: dict[str, Job] = {}
        self.rounds: list[list[Work]] = [[], [], []]
        """What begins together, each some time after the one before it."""
        self._jobs()
        self.is_gang = draw.once_in(2)
        self.sizes = self._claimed()
        """What is asked for, the alike behind each other."""
        self._bounds()

    def _size(self, most: int) -> Amounts:
        draw = self._draw
        return draw.whole(1, most), draw.whole(0, 3) if self.has_memory else 0

    def _queues(self) -> Iterator[QueueRules]:
        draw = self._draw
        yield QueueRules(path="root")
        yield QueueRules(
            path=_SHARED, parent="root", fences_preemption=not draw.once_in(3),
            offset=draw.one_of((0, 0, 0, 1)), fences_priority=draw.once_in(6),
        )  # fmt: skip
        yield QueueRules(
            path=ASKING, parent=_SHARED,
            offset=draw.one_of((0, 0, 0, 1)), fences_priority=draw.once_in(6),
        )  # fmt: skip
        for path in LEAVES:
            rules = QueueRules(path=path, parent=path.rpartition(".")[0])
            if draw.once_in(5):
                rules.offset = draw.whole(-1, 2)
                rules.fences_priority = draw.once_in(2)
            if draw.once_in(4):
                rules.budget, rules.window_s = draw.whole(1, 4), draw.one_of((60, 120))
                if draw.once_in(3):
                    rules.budget, rules.budget_is_share = draw.one_of((25, 50, 60)), True
            if draw.once_in(4):
                rules.cooldown_s = draw.one_of((30, 45, 60, 90))
            if draw.once_in(8):
                rules.unit = draw.one_of(("allocation", "application"))
            rules.is_disabled = draw.once_in(15)
            yield rules

    def _jobs(self) -> None:
        draw = self._draw
        for number in range(draw.whole(1, 3)):
            self.nodes[f"n{number}"] = draw.whole(0, 2), draw.whole(0, 2)
        names = [*self.nodes]
        for number in range(draw.whole(4, 6) if self._of_gangs else draw.whole(2, 6)):
            style = "Hard" if self._of_gangs else draw.one_of(_STYLES)
            job = Job(id=f"job-{number}", queue=draw.one_of(LEAVES), style=style)
            if draw.once_in(3):
                job.runtime_s = draw.one_of((60, 600, 3600))
            self.jobs[job.id] = job
            group = [self._work(job, names) for _ in range(draw.whole(1, 3 - self._of_gangs))]
            if style:
                # A task group is known by its placeholders, and no placeholder is a driver.
                group[0].is_placeholder, group[0].originator = True, False
                asked = sum(it.size[0] for it in group), sum(it.size[1] for it in group)
                # A gang that has lost a member, or has not all of them yet.
                job.asked = (asked[0] + draw.once_in(6), asked[1])
                if draw.once_in(5):
                    self._work(job, names, in_group=False)
            if sum(map(len, self.rounds)) >= _WORKS_MAX:
                break

    def _work(self, job: Job, nodes: list[str], *, in_group: bool = True) -> Work:
        draw = self._draw
        turn = draw.number(len(self.rounds))
        work = Work(
            key=f"w{sum(map(len, self.rounds))}", job=job.id, node=draw.one_of(nodes),
            size=self._size(3), since_s=turn * _ROUND_S,
            priority=draw.one_of(_OF_GANGS if self._of_gangs else _PRIORITIES),
            opted_out=draw.once_in(6), originator=draw.once_in(8), is_bound=draw.once_in(20),
            in_group=in_group,
        )  # fmt: skip
        self.nodes[work.node] = (
            self.nodes[work.node][0] + work.size[0], self.nodes[work.node][1] + work.size[1]
        )  # fmt: skip
        self.rounds[turn].append(work)
        return work

    def _claimed(self) -> tuple[Amounts, ...]:
        draw = self._draw
        if not self.is_gang:
            return (self._size(4),) * draw.whole(1, 5)
        sizes = {self._size(4): draw.whole(1, 2) for _ in range(draw.whole(1, 3))}
        return tuple(size for size, number in sizes.items() for _ in range(number))

    def _bounds(self) -> None:
        """Draw what is guaranteed, and the maximum of the queue above."""
        draw = self._draw
        for path in LEAVES:
            used = sum(it.size[0] for its in self.rounds for it in its if self._queue(it) == path)
            if used and draw.once_in(2):
                self.queues[path].guaranteed = draw.whole(1, used)
        total = sum(size[0] for size in self.sizes)
        lower = draw.number(total) if draw.once_in(5) else 0
        self.queues[ASKING].guaranteed = total - lower
        shared = self.queues[_SHARED]
        if shared.fences_preemption and not self.is_gang and draw.once_in(2):
            used = sum(
                it.size[0] for its in self.rounds for it in its if self._queue(it) != LEAVES[-1]
            )
            below = [it.guaranteed or 0 for it in self.queues.values() if it.parent == _SHARED]
            shared.maximum = max(used + draw.whole(0, total), sum(below), total)

    def _queue(self, work: Work) -> str:
        return self.jobs[work.job].queue

    # -- as requests

    def config(self) -> str:
        lines = ["partitions:", "- name: default"]
        if self.enforces_quotas:
            lines.append("  preemption: {quotapreemptionenabled: true}")
        return "\n".join([*lines, "  queues:", *self._lines("root", "  ")])

    def _lines(self, path: str, indent: str) -> Iterator[str]:
        rules = self.queues[path]
        yield f"{indent}- name: {path.rpartition('.')[2]}"
        if path == "root":
            yield f'{indent}  submitacl: "*"'
        amounts = {"guaranteed": rules.guaranteed, "max": rules.maximum}
        bounds = [f"{name}: {{vcore: {n}m}}" for name, n in amounts.items() if n is not None]
        if bounds:
            yield f"{indent}  resources: {{{', '.join(bounds)}}}"
        properties = ", ".join(f"{name}: {text}" for name, text in _properties(rules))
        if properties:
            yield f"{indent}  properties: {{{properties}}}"
        below = [it for it in self.queues.values() if it.parent == path]
        if below:
            yield f"{indent}  queues:"
        for it in below:
            yield from self._lines(it.path, f"{indent}  ")

    def beginning(self) -> tuple[si.NodeRequest, si.ApplicationRequest]:
        nodes = tuple(
            si.NodeInfo(
                node_id=name, action=si.ActionFromRM.CREATE, schedulable_resource=resource_of(size)
            )
            for name, size in self.nodes.items()
        )
        total = sum(size[0] for size in self.sizes), sum(size[1] for size in self.sizes)
        asked = total if self.is_gang else (0, 0)
        claims = Job(id=CLAIMANT, queue=ASKING, style="Hard" * self.is_gang, asked=asked)
        apps = tuple(_application(job) for job in (*self.jobs.values(), claims))
        return si.NodeRequest(nodes=nodes, rm_id=RM), si.ApplicationRequest(new=apps, rm_id=RM)

    def asks(self) -> si.AllocationRequest:
        """Ask for each size that is claimed, in one ask or in several."""
        draw = self._draw
        asks: list[si.AllocationAsk] = []
        for size in dict.fromkeys(self.sizes):
            count, repeats = self.sizes.count(size), draw.once_in(2)
            for number in range(1 if repeats else count):
                key = f"a{len(asks)}-{number}"
                asks.append(
                    si.AllocationAsk(
                        allocation_key=key,
                        application_id=CLAIMANT,
                        partition_name="default",
                        resource_ask=resource_of(size),
                        priority=_PRIORITY,
                        max_allocations=count if repeats else 1,
                        placeholder=self.is_gang,
                        task_group_name=f"t{size}" if self.is_gang else "",
                        preemption_policy=si.PreemptionPolicy(
                            allow_preempt_self=True, allow_preempt_other=True
                        ),
                    )
                )  # fmt: skip
        return si.AllocationRequest(asks=tuple(asks), rm_id=RM)

    def reports(self, works: list[Work]) -> si.AllocationRequest:
        items = tuple(
            si.Allocation(
                allocation_key=it.key, application_id=it.job, partition_name="default",
                node_id=it.node, uuid=it.key, resource_per_alloc=resource_of(it.size),
                priority=it.priority, originator=it.originator,
                placeholder=it.is_placeholder,
                task_group_name="t" if it.in_group and self.jobs[it.job].style else "",
                allocation_tags={TAG_REQUIRED_NODE: it.node} if it.is_bound else {},
                preemption_policy=si.PreemptionPolicy(allow_preempt_self=not it.opted_out),
            )
            for it in works
        )  # fmt: skip
        return si.AllocationRequest(allocations=items, rm_id=RM)


def _properties(rules: QueueRules) -> Iterator[tuple[str, str]]:
    if rules.path == ASKING:
        yield "preemption.delay", f"{_DELAY_S}s"
    if rules.fences_preemption:
        yield "preemption.policy", PreemptionPolicy.FENCE.value
    elif rules.is_disabled:
        yield "preemption.policy", PreemptionPolicy.DISABLED.value
    if rules.offset:
        yield "priority.offset", f'"{rules.offset}"'
    if rules.fences_priority:
        yield "priority.policy", PreemptionPolicy.FENCE.value
    if rules.budget is not None:
        sign = "%" if rules.budget_is_share else ""
        yield "preemption.budget", f"{rules.budget}{sign}/{rules.window_s}s"
    if rules.cooldown_s:
        yield "preemption.cooldown", f"{rules.cooldown_s}s"
    if rules.unit:
        yield "preemption.unit", rules.unit
    if rules.quota_delay_s:
        yield "quota.preemption.delay", f"{rules.quota_delay_s}s"


def resource_of(size: Amounts) -> si.Resource:
    """Return an amount in base units."""
    return si.Resource.of({kind: n for kind, n in zip(_TYPES, size, strict=True) if n})


def _application(job: Job) -> si.AddApplicationRequest:
    tags = {} if job.runtime_s is None else {TAG_RUNTIME: str(job.runtime_s)}
    return si.AddApplicationRequest(
        application_id=job.id, queue_name=job.queue, partition_name="default", tags=tags,
        ugi=si.UserGroupInformation(user="ann"), gang_scheduling_style=job.style,
        placeholder_ask=resource_of(job.asked) if job.style else None,
    )  # fmt: skip


class _Manager(si.ResourceManagerCallback):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.new: list[si.Allocation] = []
        self.wanted_back: list[si.AllocationRelease] = []
        self.refused: list[Any] = []

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.new += response.new
        self.wanted_back += (it for it in response.released if it.termination_type in _WANTED_BACK)
        self.refused += [*response.rejected, *response.rejected_allocations]

    def update_application(self, response: si.ApplicationResponse) -> None:
        self.refused += response.rejected


class Played:
    """A contest in a core, step by step, and what is known of it outside."""

    def __init__(self, draw: Draw) -> None:
        self.contest = Contest(draw)
        self.core: Final = VirtualCore(
            topology=draw.one_of(("proposing", "fused")), schedulers=1, start_ns=0
        )
        self.manager = _Manager()
        jobs = {**self.contest.jobs, CLAIMANT: Job(id=CLAIMANT, queue=ASKING)}
        self.small = Small(
            queues=self.contest.queues, jobs=jobs, nodes=self.contest.nodes, works=[]
        )
        self.left: list[Amounts] = list(self.contest.sizes)
        """What waits."""

    def run_all(self) -> None:
        """Have all run that runs."""
        core, contest = self.core.start(), self.contest
        core.register_resource_manager(
            si.RegisterResourceManagerRequest(
                rm_id=RM, version="1", policy_group="queues", config=contest.config()
            ),
            self.manager,
        )
        nodes, apps = contest.beginning()
        core.update_node(nodes)
        core.update_application(apps)
        for number, works in enumerate(contest.rounds):
            self.to(number * _ROUND_S)
            core.update_allocation(contest.reports(works))
            core.run_until_idle()
            self.small.works += works

    def begin(self) -> int:
        """Have all run that runs, and make the claim; return when."""
        self.run_all()
        self.core.update_allocation(self.contest.asks())
        self.core.run_until_idle()
        self.see_placed()
        return self.now_s

    def reload(self) -> None:
        """Have what the queues are now be in force."""
        self.core.update_configuration(
            si.UpdateConfigurationRequest(
                rm_id=RM, policy_group="queues", config=self.contest.config()
            )
        )
        self.core.run_until_idle()

    @property
    def now_s(self) -> int:
        return self.core.now_ns // SECOND

    def to(self, moment_s: int) -> None:
        self.core.advance_to(moment_s * SECOND)

    def see_placed(self) -> list[str]:
        """Note what was placed, and return it in words."""
        # What was reported comes back as well.
        placed = [it for it in self.manager.new if it.application_id == CLAIMANT]
        self.manager.new = []
        for it in placed:
            amounts = {} if it.resource_per_alloc is None else it.resource_per_alloc.amounts()
            size = amounts.get(_TYPES[0], 0), amounts.get(_TYPES[1], 0)
            self.left.remove(size)
            self.small.works.append(
                Work(key=it.uuid, job=CLAIMANT, node=it.node_id, size=size, since_s=self.now_s)
            )
        return [f"{it.allocation_key} on {it.node_id}" for it in placed]

    def preempted(self) -> frozenset[str]:
        """Return what is wanted back for the claim."""
        return frozenset(
            it.uuid for it in self.manager.wanted_back if it.termination_type is _PREEMPTED
        )

    def see_preempted(self) -> Iterator[str]:
        """Judge what is wanted back now, confirm it, and have the room used."""
        manager, small, now_s = self.manager, self.small, self.now_s
        gone = self.preempted()
        others = {it.uuid for it in manager.wanted_back} - gone
        small.works = [it for it in small.works if it.key not in others]
        claim = Claim(
            queue=ASKING, priority=_PRIORITY, sizes=tuple(self.left), is_gang=self.contest.is_gang
        )
        # What others leave is used when it is confirmed.
        if self.left and (gone or not others):
            yield from faults_of(small, claim, gone, now_s)
        elif gone:
            yield f"{sorted(gone)} go, and nothing waits"
        for uuid in sorted(gone):
            (work,) = (it for it in small.works if it.key == uuid)
            small.works.remove(work)
            small.went.setdefault(small.jobs[work.job].queue, []).append(now_s)
        confirmed = tuple(
            si.AllocationRelease(
                partition_name="default", application_id=it.application_id, uuid=it.uuid,
                termination_type=it.termination_type,
            )
            for it in manager.wanted_back
        )  # fmt: skip
        manager.wanted_back = []
        releases = si.AllocationReleasesRequest(allocations_to_release=confirmed)
        self.core.update_allocation(si.AllocationRequest(releases=releases, rm_id=RM))
        self.core.run_until_idle()


def walk_contest(draw: Draw) -> Iterator[tuple[str, Any, list[str]]]:
    """Yield what goes and what is placed then, moment by moment, with what is wrong about it."""
    played = Played(draw)
    try:
        yield from _walk(played)
    finally:
        played.core.stop()


def _walk(played: Played) -> Iterator[tuple[str, Any, list[str]]]:
    manager, core = played.manager, played.core
    due_s = played.begin() + _DELAY_S
    if manager.refused:
        yield "what is refused", manager.refused, [f"it refuses {manager.refused}"]
        return
    core.advance_to(due_s * SECOND - 1)
    early = [it.uuid for it in manager.wanted_back]
    yield "before the delay is over", early, ["it is not over yet"] if early else []
    if played.left:
        yield "who would go", core.explain(CLAIMANT, _FIRST), []
    end_s = due_s + _LOOKS_FOR_S
    moment_s = due_s
    while True:
        played.to(moment_s)
        if manager.wanted_back or moment_s in {due_s, end_s}:
            gone = [(it.uuid, it.message) for it in manager.wanted_back]
            faults = list(played.see_preempted())
            yield f"goes after {moment_s - due_s} s", [gone, played.see_placed()], faults
            if faults or moment_s == end_s:
                return
        following_ns = core.next_event_ns
        following_s = end_s if following_ns is None else -(-following_ns // SECOND)
        moment_s = min(end_s, max(moment_s + 1, following_s))
