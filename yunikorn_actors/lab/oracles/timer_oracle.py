"""Oracle of timers: each is due when the rules say, and at rest exactly those are armed that serve.

When a timer is due is worked out here from what the application asked for and from the settings.
At rest what is armed is compared with the truth in both directions, so a time that never comes
shows at once, and not only in a run that waits for it. Two more times are watched as they begin: a
queue is cleaned away when it was empty for so long without a break, and a maximum that is exceeded
by force is to be enforced from then on.
"""

from collections.abc import Iterable, Iterator
from typing import (
    Any,
    Final,
)

from yunikorn_actors.config import ExtraConfig
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.lab.harness import LabSimulator, Oracle
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.machine import InvariantViolation, Send, SetTimer
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages.base import (
    CONTEXT,
    EVENT_PUBLISHER,
    Delivery,
    Message,
)
from yunikorn_actors.messages.restart import CoreRestored
from yunikorn_actors.messages.scheduling import FactsAppended, QueueCleaningDue
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.applications import Application, ApplicationState
from yunikorn_actors.state.facts import Fact
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.values.durations import MILLISECOND
from yunikorn_actors.values.ids import NO_PROPOSAL
from yunikorn_actors.values.resource import INT64_MAX

_S = ApplicationState
_RUNS: Final = frozenset({_S.STARTING, _S.RUNNING})
_ALLOCATION: Final = "allocation:"
_Recovering = tuple[str, str]
"""A partition, and an application in it."""


class Timers(Oracle):
    receivers: Final = frozenset({CONTEXT})

    def __init__(self) -> None:
        self._warning_ns = ExtraConfig().confirm_warning_ns
        """The longest that a resource manager has wished, or the usual one."""
        self._begin(0)

    def _begin(self, now_ns: int) -> None:
        """Know nothing but the usual times of a core that begins."""
        self._settings = Settings()
        self._recovers: dict[_Recovering, bool] = {}
        """Whether what an application has got last was reported, and not placed."""
        self._began_ns = now_ns
        """When the core began, which may have the journal of another."""
        self._looked_at: dict[str, tuple[int, int, int]] = {}
        """Of each partition the life, the revision and the time at which it was looked at."""
        self._revisions: dict[str, tuple[int, int]] = {}
        self._empty_since: dict[tuple[str, int, str], int] = {}
        """Since when each queue is to be cleaned away, in one life of its partition."""

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        context = simulator.machines[CONTEXT]
        assert isinstance(context, Context)
        if isinstance(delivery.message, CoreRestored):
            self._begin(simulator.now_ns)
        self._settings = simulator.topology.settings
        faults: list[str] = []
        wishes = getattr(delivery.message, "extra", None)
        if isinstance(wishes, ExtraConfig):
            self._warning_ns = max(self._warning_ns, wishes.confirm_warning_ns)
        if delivery.mailbox == CONTEXT and delivery is simulator.last:
            sends = [it for it in simulator.effects if isinstance(it, Send)]
            faults.extend(_in_vain(simulator, delivery.message, sends))
            for told in (it.message for it in sends if it.to == EVENT_PUBLISHER):
                if isinstance(told, FactsAppended):
                    faults.extend(self._armed(context, told, simulator.now_ns))
                    faults.extend(self._cleaned(delivery.message, told, simulator.now_ns))
            faults.extend(self._absent(simulator, context))
            self._look_for_empty_queues(context, simulator.now_ns)
        if simulator.is_at_rest:
            faults.extend(self._at_rest(simulator, context))
        if faults:
            kind = type(delivery.message).__name__
            raise InvariantViolation(f"timers after {kind}: " + "; ".join(faults))

    # -- when they are armed

    def _armed(self, context: Context, appended: FactsAppended, now_ns: int) -> Iterator[str]:
        partition = context.partitions.get(appended.partition)
        for fact in appended.facts:
            self._note(appended.partition, fact)
            if isinstance(fact, f.TimerArmed) and partition is not None:
                app = partition.state.applications.get(fact.application_id)
                if app is not None and fact.kind in app.timers:
                    yield from self._is_due(appended.partition, app, fact, now_ns)
                    if fact.kind == "commitment":
                        yield from _begins(app, appended.facts)
            elif isinstance(fact, f.ConfirmationMissed):
                yield from _is_overdue(context, appended.rm_id, fact)
            elif partition is not None and _is_charged_by_force(fact):
                yield from _unenforced(partition.state, fact)

    def _absent(self, simulator: Simulator, context: Context) -> Iterator[str]:
        """One that is away, or has come back, has the time that it wishes, or the usual one."""
        managers = context.registry.managers
        for it in simulator.effects:
            if isinstance(it, SetTimer) and it.name.startswith(("paused/", "return/")):
                manager = managers.get(it.name.partition("/")[2])
                if manager is not None:
                    wished_ns = manager.extra.paused_timeout_ns
                    due_ns = simulator.now_ns + (wished_ns or self._settings.paused_timeout_ns)
                    if it.due_ns != due_ns:
                        yield f"G21: timer {it.name} is armed {it.due_ns - due_ns} ns too late"

    # -- queues that are empty

    def _cleaned(self, message: Message, told: FactsAppended, now_ns: int) -> Iterator[str]:
        if not isinstance(message, QueueCleaningDue):
            return
        for fact in told.facts:
            if isinstance(fact, f.QueueRemoved) and fact.path == message.path:
                since_ns = self._empty_since.get((told.partition, told.epoch, fact.path), now_ns)
                early_ns = since_ns + self._settings.queue_cleaning_ns - now_ns
                if early_ns > 0:
                    yield f"G21: {fact.path} is cleaned away {early_ns} ns too early"

    def _look_for_empty_queues(self, context: Context, now_ns: int) -> None:
        for name, partition in context.partitions.items():
            state = partition.state
            if self._revisions.get(name) == (partition.epoch, state.revision):
                continue
            self._revisions[name] = partition.epoch, state.revision
            for path, queue in state.queues.items():
                key = name, partition.epoch, path
                if queue.is_to_be_cleaned:
                    self._empty_since.setdefault(key, now_ns)
                elif key in self._empty_since:
                    del self._empty_since[key]

    def _note(self, partition: str, fact: Fact) -> None:
        match fact:
            case f.AllocationRecovered():
                self._recovers[partition, fact.spec.application_id] = True
            case f.AllocationCommitted():
                self._recovers[partition, fact.application_id] = False
            case f.AllocationsCommitted():
                for charged in fact.charged:
                    self._recovers[partition, charged.application_id] = False

    def _is_due(
        self, partition: str, app: Application, armed: f.TimerArmed, now_ns: int
    ) -> Iterator[str]:
        due_ns = min(self._due(partition, app, armed.kind, now_ns), INT64_MAX)
        if armed.due_ns != due_ns:
            late = armed.due_ns - due_ns
            yield f"G21: {armed.kind} of {app.id} is armed {late} ns later than it is due"

    def _due(self, partition: str, app: Application, kind: str, now_ns: int) -> int:
        settings, spec = self._settings, app.spec
        match kind:
            case "state":
                completes = app.state is _S.COMPLETING
                times = settings.completing_timeout_ns, settings.starting_timeout_ns
                return now_ns + times[0 if completes else 1]
            case "execution":
                return max(now_ns, app.started_ns + spec.timeout_ms * MILLISECOND)
            case "placeholder" | "commitment":
                gang_ns = spec.timeout_ms * MILLISECOND if spec.is_gang else 0
                in_range = 0 < gang_ns <= INT64_MAX
                delay_ns = gang_ns if in_range else settings.placeholder_timeout_ns
                was_there = kind == "placeholder" and self._recovers.get((partition, app.id))
                if was_there and spec.created_ns is not None:
                    # Only what is left of the time since the application was made.
                    return max(now_ns + MILLISECOND, min(now_ns, spec.created_ns) + delay_ns)
                return now_ns + delay_ns
            case _:
                allocation = app.allocations.get(kind.removeprefix(_ALLOCATION))
                return now_ns + (allocation.spec.timeout_ms * MILLISECOND if allocation else 0)

    # -- at rest

    def _at_rest(self, simulator: Simulator, context: Context) -> Iterator[str]:
        armed: dict[str, int] | None = None
        for rm_id, manager in context.registry.managers.items():
            if manager.is_lost and f"paused/{rm_id}" not in simulator.timers.dues(CONTEXT):
                yield f"G21: {rm_id} is away, and no timer is armed for its end"
        for name, partition in context.partitions.items():
            state = partition.state
            moment = (partition.epoch, state.revision, simulator.now_ns)
            if self._looked_at.get(name) == moment:
                continue
            self._looked_at[name] = moment
            armed = simulator.timers.dues(CONTEXT) if armed is None else armed
            life = f"{name}#{partition.epoch}"
            yield from self._of_books(state, simulator.now_ns)
            yield from self._of_partition(state, life, armed)

    def _of_books(self, state: PartitionState, now_ns: int) -> Iterator[str]:
        for app in state.applications.values():
            wanted = dict.fromkeys(_wanted(state, app, now_ns))
            for kind in wanted:
                if kind not in app.timers:
                    yield f"G21: {app.id} is {app.state.value} without a timer {kind}"
            for kind in app.timers:
                if kind.startswith(_ALLOCATION) and kind not in wanted:
                    uuid = kind.removeprefix(_ALLOCATION)
                    if uuid not in app.allocations:
                        yield f"G21: {app.id} has a timer {kind}, which has gone"

    def _of_partition(
        self, state: PartitionState, life: str, armed: dict[str, int]
    ) -> Iterator[str]:
        wanted = {
            f"{kind}/{life}/{app.serial}": timer.due_ns
            for app in state.applications.values()
            for kind, timer in app.timers.items()
        }
        for serial, ended in state.finished.items():
            due_ns = ended.state_log.entries[-1].at_ns + self._settings.history_ns
            wanted[f"history/{life}/{serial}"] = min(due_ns, INT64_MAX)
        for name, due_ns in wanted.items():
            if armed.get(name) != due_ns:
                yield f"G21: timer {name} is armed for {armed.get(name)}, and is due at {due_ns}"
        cleaned = {f"clean/{life}/{path}": it for path, it in state.queues.items()}
        for name, queue in cleaned.items():
            if queue.is_to_be_cleaned and name not in armed:
                yield f"G29: {queue.path} is to be cleaned away, and no timer is armed for that"
        yield from self._of_confirmations(state, armed.get(f"confirm/{life}"))
        for name in armed:
            # That of a queue which is in use again, or gone, finds nothing to do.
            may_idle = name in wanted or name.startswith("clean/")
            if f"/{life}/" in name and not may_idle:
                yield f"G21: timer {name} is armed, and serves nothing"

    def _of_confirmations(self, state: PartitionState, armed_ns: int | None) -> Iterator[str]:
        """The first release that is not confirmed in its time is reported then, and each next."""
        waiting = (state.applications[id_].allocations[it] for it, id_ in state.unconfirmed.items())
        asked_ns = [it.asked_back_ns for it in waiting if not it.is_overdue]
        if not asked_ns:
            return
        if armed_ns is None:
            yield "G21: releases are to be confirmed, and no timer is armed for that"
            return
        # A core that begins again asks back again.
        due_ns = max(min(asked_ns), self._began_ns) + self._warning_ns
        if armed_ns > due_ns:
            late = armed_ns - due_ns
            yield f"G21: that a release is not confirmed is reported {late} ns too late"


def _is_overdue(context: Context, rm_id: str, missed: f.ConfirmationMissed) -> Iterator[str]:
    """Whichever timer says so, it is overdue only after the time of its manager."""
    manager = context.registry.managers.get(rm_id)
    extra = ExtraConfig() if manager is None else manager.extra
    early_ns = missed.asked_back_ns + extra.confirm_warning_ns - missed.at_ns
    if early_ns > 0:
        yield f"G21: that {missed.key} is not confirmed is reported {early_ns} ns too early"


def _begins(app: Application, facts: Iterable[Fact]) -> Iterator[str]:
    """The time of a gang without placeholders runs from its admission or the end of its last one.

    Nothing else begins it, nor begins it again.
    """
    begins = f.GangAdmitted | f.AllocationReleased | f.SwapCompleted
    if any(isinstance(it, begins) and it.application_id == app.id for it in facts):
        return
    yield f"G21: the time of the gang of {app.id} begins, and nothing of it has ended"


def _is_charged_by_force(fact: Fact) -> bool:
    """Whether work runs, whatever the quotas say."""
    is_placed = isinstance(fact, f.AllocationCommitted) and fact.proposal_id == NO_PROPOSAL
    return is_placed or isinstance(fact, f.AllocationRecovered | f.AllocationResized)


def _unenforced(state: PartitionState, fact: Any) -> Iterator[str]:  # noqa: ANN401 - one of these
    leaf, config = state.queues.get(fact.queue), state.config
    if leaf is None or config is None or not config.quota_preemption_enabled:
        return
    for queue in leaf.lineage:
        most = queue.spec.max or {}
        is_exceeded = any(queue.allocated.get(kind, 0) > size for kind, size in most.items())
        has_delay = queue.spec.managed and queue.properties.quota_preemption_delay_ns
        if is_exceeded and has_delay and queue.path not in state.quotas:
            yield f"G21: the maximum of {queue.path} is exceeded by force and never enforced"


def _wanted(state: PartitionState, app: Application, now_ns: int) -> Iterable[str]:
    """Name the kinds of timers that an application cannot be without."""
    for uuid, it in app.allocations.items():
        due_ns = it.allocated_ns + it.spec.timeout_ms * MILLISECOND
        if it.spec.timeout_ms > 0 and it.releasing is None and due_ns > now_ns:
            yield f"{_ALLOCATION}{uuid}"
    if app.state in _RUNS and app.spec.timeout_ms > 0 and not app.spec.is_gang:
        yield "execution"
    if app.serial in state.admitted and not app.has_placeholders:
        yield "commitment"


def _in_vain(simulator: Simulator, message: Message, sends: Iterable[Send]) -> Iterator[str]:
    """What was cancelled does nothing, but for what has a time of its own."""
    came_in_vain = simulator.in_vain if isinstance(simulator, LabSimulator) else ()
    if not any(it is message for it in came_in_vain):
        return
    told = [it.message for it in sends if isinstance(it.message, FactsAppended)]
    facts = (fact for it in told for fact in it.facts)
    for fact in (it for it in facts if not isinstance(it, f.ConfirmationMissed)):
        yield f"a timer that was cancelled has come to {type(fact).__name__}"
