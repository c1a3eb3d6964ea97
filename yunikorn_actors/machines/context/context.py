"""Context: registered resource managers, their partitions, and a handler for each message.

The handlers stand here; what they decide is in the modules beside this one. Each message has an
order key (`_ORDER_KEYS`), the resource manager that it concerns: behind long work for that one it
waits.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from msgspec import to_builtins

from yunikorn_actors.config import SchedulerConfig
from yunikorn_actors.machines.context.applications import (
    add_application,
    remove_application,
    report_run_limits,
    vain_removal,
)
from yunikorn_actors.machines.context.asks import ADDED_IN_ONE, take_from
from yunikorn_actors.machines.context.commit import commit_all, report_waiting
from yunikorn_actors.machines.context.config_changes import clean
from yunikorn_actors.machines.context.endings import report_unconfirmed
from yunikorn_actors.machines.context.lifecycle import expire
from yunikorn_actors.machines.context.manager_registry import Registry, ResourceManager
from yunikorn_actors.machines.context.nodes import act_on_drained, act_on_node, refuse_stray
from yunikorn_actors.machines.context.partition_context import PartitionContext
from yunikorn_actors.machines.context.partitions import Partitions
from yunikorn_actors.machines.context.releases import release_allocations, release_asks
from yunikorn_actors.machines.context.timeouts import on_timer
from yunikorn_actors.machines.context.unit_of_work import (
    AllEnded,
    ApplicationVerdict,
    ContextJob,
    NodeVerdict,
    Work,
    rejected_ask,
)
from yunikorn_actors.machines.machine import (
    Effect,
    Joining,
    Send,
)
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.slices import FRESH, Slices, Steps
from yunikorn_actors.messages import predicates as p
from yunikorn_actors.messages import restart
from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages import scheduling as s
from yunikorn_actors.messages.base import RM_PROXY, Message
from yunikorn_actors.messages.followers import CatchUpRequested, FollowEnded, FollowRequested
from yunikorn_actors.messages.queries import (
    Accepted,
    CountsRequested,
    Declined,
    ExplainRequested,
    Explanation,
    StateDump,
    StateDumpRequested,
)
from yunikorn_actors.policies.folds import digests_in_use
from yunikorn_actors.policies.registry import NO_POLICIES, Policies
from yunikorn_actors.si import ActionFromRM
from yunikorn_actors.state.dump import add_declared, snapshot
from yunikorn_actors.state.partition import Followed, LongWorkKind
from yunikorn_actors.values.ids import scheduler_of

Handled = list[Effect] | ContextJob
"""What a handler did, or what it is about to do in one slice or several."""
_Due = s.ApplicationTimerDue | s.HistoryExpiryDue | s.QueueCleaningDue | s.ConfirmationDue


class Context(Joining):
    """A handler for each message; what they decide is in the modules beside this one."""

    joined = frozenset({rm.RMUpdateAllocation})
    """Requests about allocations come in bursts; those of one resource manager join."""

    def __init__(
        self,
        *,
        settings: Settings,
        schedulers: int,
        instance: str,
        policies: Policies = NO_POLICIES,
    ) -> None:
        """`schedulers`: how many each partition has; with 0 Context plans by itself."""
        self._partitions = Partitions(
            settings=settings, schedulers=schedulers, instance=instance, policies=policies
        )

    @property
    def partitions(self) -> dict[str, PartitionContext]:
        return self._partitions.by_name

    @property
    def registry(self) -> Registry:
        return self._partitions.registry

    @property
    def slices(self) -> Slices:
        """The long work that is under way."""
        return self._partitions.slices

    @property
    def registered(self) -> restart.Registered:
        """All that it knows outside of its partitions."""
        return self._partitions.registered()

    def config_of(self, group: str) -> SchedulerConfig:
        """Return the configuration that holds for a policy group."""
        return self._partitions.registry.config_of(group)

    @property
    def issued_uuids(self) -> int:
        return self._partitions.uuids.issued

    def handle(self, message: Message, now_ns: int) -> list[Effect]:
        kind = type(message)
        handler, slices = HANDLERS[kind], self._partitions.slices
        # One dictionary look-up a message where nothing is under way, which is nearly always.
        if slices.jobs and kind in _ORDER_KEYS:
            # It may have to wait.
            return slices.do(
                _ORDER_KEYS[kind](self, message), partial(handler, self, message), now_ns
            )
        handled = handler(self, message, now_ns)
        if isinstance(handled, list):
            return handled
        # The job is new and nothing of its key is under way, or the branch above would have been
        # taken.
        return slices.begin(_ORDER_KEYS[kind](self, message), handled)

    @property
    def is_at_rest(self) -> bool:
        """Whether no long work is under way."""
        return not self._partitions.slices.jobs

    @property
    def changes(self) -> int:
        """How often anything has changed outside of the partitions that another core must know."""
        return self._partitions.registry.changes

    def joins(self, first: Message, message: Message) -> bool:
        """Whether a message that waits behind another one may be handled together with it."""
        # Of one resource manager only: requests of several would have to be answered by several
        # messages each, in an order that nobody asked for.
        assert isinstance(first, rm.RMUpdateAllocation)
        return type(message) is rm.RMUpdateAllocation and message.rm_id == first.rm_id

    def handle_together(self, messages: Iterator[Message], now_ns: int) -> list[Effect]:
        """Each request to its end, as by itself; what they led to is sent at once."""
        first = next(messages)
        assert isinstance(first, rm.RMUpdateAllocation)
        rm_id, slices = first.rm_id, self._partitions.slices
        # Under way: each request becomes a task of its own behind that work, in the order of
        # arrival (G26).
        if rm_id not in slices.jobs:
            # Those behind the first belong to this moment: they are not taken in a later slice.
            steps = partial(self._take_requests, first, messages)
            return slices.begin(rm_id, self._partitions.job(rm_id, now_ns, steps))
        for message in (first, *messages):
            assert isinstance(message, rm.RMUpdateAllocation)
            slices.do(rm_id, partial(self._on_rm_update_allocation, message), now_ns)
        return []

    def _take_requests(
        self, first: rm.RMUpdateAllocation, following: Iterator[Message], job: ContextJob
    ) -> Steps:
        # A pause lets messages of others come in between. What is behind it in the mailbox stays
        # there, and is handled in its order.
        yield from self._take_allocations(job.work, first)
        # Each message is asked for only when the one before it is done: the driver may stop by its
        # clock (ADR 18).
        while not job.was_paused and (message := next(following, None)) is not None:
            assert isinstance(message, rm.RMUpdateAllocation)
            self._partitions.end_request(job.work)
            yield FRESH
            yield from self._take_allocations(job.work, message)
        yield from self._partitions.send_out_job(job)

    def folds(self) -> dict[str, Any]:
        """Return what policies keep, and what has failed, by partitions where there is any."""
        return self._of_folds(lambda folds: folds.image())

    def _of_folds(self, give: Callable[[Followed], dict[str, Any]]) -> dict[str, Any]:
        states = {name: it.state.folds for name, it in sorted(self.partitions.items())}
        given = {name: give(it) for name, it in states.items() if it is not None}
        return {name: it for name, it in given.items() if it}

    def whole_state(self, now_ns: int) -> dict[str, Any]:
        """Return it with what was declared and the time, which digests have never had."""
        state = self.canonical_state()
        for name, partition in self.partitions.items():
            add_declared(state["partitions"][name], partition.state)
        for rm_id, manager in self._partitions.registry.managers.items():
            state["managers"][rm_id] |= {
                "generation": manager.generation,
                "capabilities": to_builtins(manager.capabilities),
            }
        policies = self._partitions.policies.digests
        used = digests_in_use(policies, (it.state for it in self.partitions.values()))
        return {**state, **({"policies": used} if used else {}), "at_ns": now_ns}

    def canonical_state(self) -> dict[str, Any]:
        folds = self._of_folds(lambda it: it.kept())
        failed_policies = self._partitions.failed_policies()
        # Sorted: a digest must not depend on the order in which things came about.
        return {
            "managers": {
                rm_id: manager.canonical()
                for rm_id, manager in sorted(self._partitions.registry.managers.items())
            },
            "partitions": {
                name: snapshot(partition.state)
                for name, partition in sorted(self.partitions.items())
            },
            "asking": {
                name: partition.loop.canonical_predicate_gate()
                for name, partition in sorted(self.partitions.items())
                if partition.loop is not None and partition.loop.predicate_gate is not None
            },
            **({} if self.is_at_rest else {"long_work": self._partitions.slices.canonical_state()}),
            "issued_uuids": self._partitions.uuids.issued,
            "stale_messages": self._partitions.stale,
            "scheduling_errors": self._partitions.scheduling_errors,
            "refused_node_actions": self._partitions.refused_node_actions,
            "failed_machines": self._partitions.failures.canonical(),
            **({"failed_policies": failed_policies} if failed_policies else {}),
            **({"folds": folds} if folds else {}),
            "failed_nodes": [
                f"{id_} of {rm_id}" for rm_id, id_ in sorted(self._partitions.failed_nodes)
            ],
        }

    # -- resource managers

    def _on_rm_registration(self, message: rm.RMRegistration, now_ns: int) -> Handled:
        """Register anew: remove everything of an earlier registration first (G25, H-19).

        The first one after a restart of the core is no clean slate: what runs goes on.
        """
        # Nothing is removed before the new registration is known to be possible: a refused one
        # leaves the former life alone.
        reason = self._partitions.registry.conflict(message)
        if reason is not None:
            return [
                Send(
                    to=RM_PROXY,
                    message=rm.RMRegistrationRejected(
                        rm_id=message.rm_id,
                        callback=message.callback,
                        reason=reason,
                        reply_to=message.reply_to,
                    ),
                )
            ]
        return self._partitions.job(message.rm_id, now_ns, partial(self._register, message))

    def _register(self, message: rm.RMRegistration, job: ContextJob) -> Steps:
        partitions, registry = self._partitions, self._partitions.registry
        former = registry.managers.get(message.rm_id)
        # Missing since a restart of the core: its partitions go on and are compared with its
        # reports. In any other case the former life goes with all that it had (H-19).
        is_back = former is not None and former.is_missing
        after: list[Effect] = []
        if is_back:
            after = partitions.come_back(message, job.now_ns)
        else:
            # Others may register between two slices, and must not take the group away from this
            # one.
            registry.expect(message)
            yield from partitions.retire(job, message.rm_id)
            registry.add(message)
        manager = registry.managers[message.rm_id]
        answer = rm.RMRegistered(
            rm_id=message.rm_id,
            callback=message.callback,
            extra=message.extra,
            reply_to=message.reply_to,
        )
        # RmProxy knows the callback before the first message for it comes: the partitions begin
        # after this.
        configured = partitions.configured(manager)
        job.out.extend([Send(to=RM_PROXY, message=answer), *configured, *after])
        yield from partitions.reload_all_of(manager, job, AllEnded(list))

    def _on_core_restored(self, message: restart.CoreRestored, now_ns: int) -> list[Effect]:
        return self._partitions.restore(message, now_ns)

    def _on_return_due(self, message: restart.ReturnDue, now_ns: int) -> Handled:
        manager = self._partitions.registry.managers.get(message.rm_id)
        # A timer of an earlier return: another registration has come since.
        if manager is None or manager.generation != message.generation:
            return []
        steps = partial(self._partitions.end_return, manager)
        return self._partitions.job(message.rm_id, now_ns, steps)

    def _on_rm_lost(self, message: rm.RMLost, now_ns: int) -> list[Effect]:
        """State and timers go on; nothing is decided until it registers again."""
        manager = self._partitions.registry.managers.get(message.rm_id)
        # Lost twice is lost once: its timer runs.
        if manager is None or manager.is_lost:
            return []
        return self._partitions.lose(manager, now_ns)

    def _on_rm_held_back(self, message: rm.RMHeldBack, now_ns: int) -> list[Effect]:
        """No pause: its requests are taken and no timer runs. A former life is not meant."""
        manager = self._partitions.registry.managers.get(message.rm_id)
        # Its callback has changed: the news is of one that gets no more calls.
        if manager is None or manager.callback != message.callback or manager.is_lost:
            return []
        manager.is_backpressured = message.held
        return self._partitions.follow_backpressure(manager, now_ns)

    def _on_requests_marked(self, message: rm.RequestsMarked, _: int) -> list[Effect]:
        # Sent back through RmProxy, so that it comes behind all answers to the requests before it.
        handled = rm.RequestsHandled(
            rm_id=message.rm_id, callback=message.callback, count=message.count
        )
        return [Send(to=RM_PROXY, message=handled)]

    def _on_turn_marked(self, message: rm.TurnMarked, _: int) -> list[Effect]:
        return [Send(to=RM_PROXY, message=rm.TurnHandled(rm_id=message.rm_id))]

    def _on_rm_unregistered(self, message: rm.RMUnregistered, now_ns: int) -> Handled:
        return self._partitions.job(message.rm_id, now_ns, partial(self._unregister, message))

    def _unregister(self, message: rm.RMUnregistered, job: ContextJob) -> Steps:
        manager = self._partitions.registry.managers.get(message.rm_id)
        # `by` is empty where the resource manager leaves by its own wish: that is no act of an
        # administrator.
        if message.by and manager is not None:
            what = f"Resource manager {message.rm_id} unregistered"
            # Before the partitions go: they are the ones whose events report it.
            facts = self._partitions.report_act(what, message.by, job.now_ns, manager.partitions)
            job.out.extend(facts)
        yield from self._partitions.retire(job, message.rm_id)
        # Last: nothing is left when the caller has its answer.
        if message.reply_to:
            job.out.append(Send(to=message.reply_to, message=Accepted()))

    def _on_rm_partitions_remove(self, message: rm.RMPartitionsRemove, now_ns: int) -> Handled:
        manager = self._partitions.registry.managers.get(message.rm_id)
        # A timer of a former loss: it has registered again meanwhile.
        if manager is None or manager.generation != message.generation:
            return []
        steps = partial(self._partitions.retire, rm_id=message.rm_id)
        return self._partitions.job(message.rm_id, now_ns, steps)

    # -- configuration

    def _on_rm_config_update(self, message: rm.RMConfigUpdate, now_ns: int) -> Handled:
        manager = self._partitions.registry.managers.get(message.rm_id)
        reason = None
        if manager is None or manager.is_lost:
            reason = f"resource manager {message.rm_id!r} is not registered: register it first"
        elif message.policy_group not in {"", manager.policy_group}:
            reason = (
                f"resource manager {message.rm_id!r} is in policy group "
                f"{manager.policy_group!r}, not {message.policy_group!r}: register it anew"
            )
        if manager is None or reason is not None:
            rejected = rm.RMConfigRejected(reason=reason or "", reply_to=message.reply_to)
            return [Send(to=RM_PROXY, message=rejected)]
        steps = partial(self._update_configuration, message, manager)
        return self._partitions.job(manager.rm_id, now_ns, steps)

    def _update_configuration(
        self, message: rm.RMConfigUpdate, manager: ResourceManager, job: ContextJob
    ) -> Steps:
        # What the resource manager brings takes effect even where its configuration is equal:
        # `reload` would skip it.
        manager.extra_config, manager.extra = message.extra_config, message.extra
        self._partitions.registry.bring(manager.policy_group, message.config)
        job.out.extend(self._partitions.configured(manager))
        answer = rm.RMConfigUpdated(
            rm_id=manager.rm_id, extra=message.extra, reply_to=message.reply_to
        )
        # The answer last: a caller that has it finds everything in effect.
        # Members of the group are reloaded by jobs of their own; the answer waits for all of them.
        end = AllEnded(lambda: [*self._partitions.show(manager), Send(to=RM_PROXY, message=answer)])
        yield from self._partitions.reload_all_of(manager, job, end)

    def _on_admin_config_update(self, message: rm.AdminConfigUpdate, now_ns: int) -> list[Effect]:
        self._partitions.registry.bring_all(message.config)
        # Also the groups that have a configuration of their own: for those nothing changes, and
        # `reload` finds that out.
        groups = dict.fromkeys(m.policy_group for m in self._partitions.registry.managers.values())

        def tell() -> list[Effect]:
            facts: list[Effect] = []
            if message.by:
                facts = self._partitions.report_act("Configuration loaded", message.by, now_ns)
            answer = rm.RMConfigUpdated(reply_to=message.reply_to)
            return [*facts, Send(to=RM_PROXY, message=answer)]

        end = AllEnded(tell)
        effects = [
            effect
            for group in groups
            for effect in self._partitions.reload_group(group, end, now_ns)
        ]
        # One for this call itself: without any group the answer goes out at once.
        return [*effects, *end.arrived()]

    def _on_admin_config_refused(self, message: rm.AdminConfigRefused, now_ns: int) -> list[Effect]:
        return self._partitions.report_refusal(message.reason, now_ns)

    def _on_admin_node_update(self, message: rm.AdminNodeUpdate, now_ns: int) -> list[Effect]:
        """Do what its resource manager could have asked for, and may take back."""
        partition = self.partitions.get(message.partition)
        if partition is None:
            gone = Declined(reason=f"no partition {message.partition} is there")
            return [Send(to=message.reply_to, message=gone)]
        work = self._partitions.work(partition.rm_id, now_ns)
        reason = act_on_drained(work.unit(partition), message)
        answer = Declined(reason=reason) if reason else Accepted()
        # The answer last: a caller that has it finds the node so.
        return [*self._partitions.send_out(work), Send(to=message.reply_to, message=answer)]

    # -- requests of resource managers

    def _take_allocations(self, work: Work, message: rm.RMUpdateAllocation) -> Steps:
        """Asks first, then releases of asks, then releases of allocations."""
        # So an ask that comes and goes in one request leaves nothing behind, and a release finds
        # the ask that it means.
        partitions, asks, taken = self._partitions.by_name, message.asks, 0
        while taken < len(asks):
            partition = partitions.get(asks[taken].partition)
            if partition is not None:
                # Runs are found among neighbours of one partition; a request may name several.
                run = take_from(work.unit(partition), asks, taken)
                taken += run
                # One fact for all: an ask in a run is much less work than one by itself.
                yield 1 + run // ADDED_IN_ONE
            else:
                # A partition that is gone or was never there: each ask is answered by itself
                #
                work.announce(_without_partition(asks[taken]))
                taken += 1
                yield 1
        for ask_release in message.ask_releases:
            # Releases for a partition that is gone are of things that are gone with it: not
            # answered (G15).
            if (partition := partitions.get(ask_release.partition)) is not None:
                yield from release_asks(work.unit(partition), ask_release)
        for release in message.releases:
            if (partition := partitions.get(release.partition)) is not None:
                yield from release_allocations(work.unit(partition), release)

    def _on_rm_update_allocation(self, message: rm.RMUpdateAllocation, now_ns: int) -> Handled:
        steps = partial(self._take_requests, message, iter(()))
        return self._partitions.job(message.rm_id, now_ns, steps)

    def _on_rm_update_application(self, message: rm.RMUpdateApplication, now_ns: int) -> Handled:
        steps = partial(self._update_applications, message)
        return self._partitions.job(message.rm_id, now_ns, steps)

    def _update_applications(self, message: rm.RMUpdateApplication, job: ContextJob) -> Steps:
        work = job.work
        for new in message.added:
            yield 1
            partition = self.partitions.get(new.partition)
            if partition is None:
                id_ = new.spec.application_id
                reason = (
                    f"Failed to add application {id_} to partition {new.partition}, "
                    "partition doesn't exist"
                )
                work.announce(ApplicationVerdict(id_, reason))
            else:
                add_application(work.unit(partition), new.spec)
        for old in message.removed:
            yield 1
            partition = self.partitions.get(old.partition)
            if partition is None:
                # The state that is wanted is reached already: the log says so, and nobody is told
                # that it failed.
                work.wanted.append(vain_removal(old.partition, old.application_id))
                continue
            # From here on half of an application may be gone when a slice ends; a restart has to
            # finish that (see `_rest_of`).
            unit = job.now_doing(work.unit(partition), LongWorkKind.APPLICATION, old.application_id)
            yield from remove_application(unit, old.application_id)
        yield from self._partitions.send_out_job(job)

    def _on_rm_update_node(self, message: rm.RMUpdateNode, now_ns: int) -> Handled:
        steps = partial(self._update_nodes, message)
        return self._partitions.job(message.rm_id, now_ns, steps)

    def _update_nodes(self, message: rm.RMUpdateNode, job: ContextJob) -> Steps:
        work = job.work
        for item in message.nodes:
            partition = self.partitions.get(item.partition)
            if partition is not None:
                # Only a removal leaves something half done between two slices.
                is_removal = item.action is ActionFromRM.DECOMISSION
                kind = LongWorkKind.NODE if is_removal else LongWorkKind.REQUEST
                unit = job.now_doing(work.unit(partition), kind, item.node_id if is_removal else "")
                yield from act_on_node(unit, item)
            elif item.action.name.startswith("CREATE"):
                # Create is the only action with an answer; all others leave a fact, and here there
                # is no partition to write it in.
                reason = f"failed to find partition {item.partition} for new node {item.node_id}"
                work.announce(NodeVerdict(item.node_id, reason))
            else:
                refuse_stray(work, item)
        yield from self._partitions.send_out_job(job)

    # -- scheduling

    def _on_propose_allocations(self, message: s.ProposeAllocations, now_ns: int) -> list[Effect]:
        partition = self._partitions.current(message.partition, message.epoch)
        if partition is None:
            # A former life of the partition, or a partition that is gone: current() has counted it.
            return []
        # All of one scheduler, as each sends its own.
        scheduler = partition.schedulers.get(scheduler_of(message.proposals[0].proposal_id))
        if scheduler is None:
            # The machine that made them has failed, and nobody waits for its answer.
            # Its successor began with a snapshot and plans for the same asks anew.
            self._partitions.stale += len(message.proposals)
            return []
        work = self._partitions.work(partition.rm_id, now_ns)
        refusals: list[Effect] = []
        for proposal, reason in commit_all(work.unit(partition), message.proposals):
            refusal = s.ProposalRejected(proposal_id=proposal.proposal_id, reason=reason)
            refusals.append(Send(to=scheduler, message=refusal))
        # Behind the facts: the scheduler knows what was faster before it plans for the ask again.
        return [*self._partitions.send_out(work), *refusals]

    def _on_token_passed(self, message: s.TokenPassed, _: int) -> list[Effect]:
        partition = self._partitions.current(message.partition, message.epoch)
        return [] if partition is None else partition.pass_token(message)

    def _on_report_waiting(self, message: s.ReportWaiting, now_ns: int) -> Handled:
        partition = self._partitions.current(message.partition, message.epoch)
        if partition is None:
            return []
        steps = partial(self._report_waiting, message, partition)
        return self._partitions.job(partition.rm_id, now_ns, steps)

    def _report_waiting(
        self, message: s.ReportWaiting, partition: PartitionContext, job: ContextJob
    ) -> Steps:
        unit = job.work.unit(partition)
        for found in message.observations:
            report_waiting(unit, (found,))
            yield 1
        for crowd in message.crowds:
            report_run_limits(unit, (crowd,))
            yield 1
        yield from self._partitions.send_out_job(job)

    def _on_report_policy_failed(self, message: s.ReportPolicyFailed, now_ns: int) -> list[Effect]:
        # Without a partition it is a policy that was found to fail where all use it.
        if message.partition:
            current = self._partitions.current(message.partition, message.epoch)
            partitions = [] if current is None else [current]
        else:
            partitions = [*self._partitions.by_name.values()]
        effects: list[Effect] = []
        for partition in partitions:
            effects += self._partitions.report_policy(partition, message, now_ns)
        return effects

    def _on_planning(
        self, message: s.RunCycle | s.PlanningDue | p.Checked, now_ns: int
    ) -> list[Effect]:
        """Plan on the truth itself.

        A decision is never out of date there: only a proposal that waited for a predicate may be
        refused.
        """
        loop = self._partitions.loop_of(message)
        return [] if loop is None else loop.handle(message, now_ns)

    def _on_denials_lifted(self, message: p.DenialsLifted, now_ns: int) -> list[Effect]:
        own = (it for it in self.partitions.values() if it.rm_id == message.rm_id)
        loops = (partition.loop for partition in own if partition.loop is not None)
        return [effect for loop in loops for effect in loop.handle(message, now_ns)]

    def _on_denials_changed(self, message: p.NodeDenied | p.NodesAllowed, _: int) -> list[Effect]:
        """Pass answers on to the other schedulers: only the scheduler that asked has them."""
        partition = self._partitions.current(message.partition, message.epoch)
        schedulers = {} if partition is None else partition.schedulers
        others = (to for number, to in schedulers.items() if number != message.scheduler)
        return [Send(to=to, message=message) for to in others]

    def _on_machine_failed(self, message: s.MachineFailed, now_ns: int) -> list[Effect]:
        return self._partitions.replace(message, now_ns)

    # -- timers

    def _on_timer_due(self, message: _Due, now_ns: int) -> Handled:
        """Do what is due now, unless the partition has begun another life."""
        partition = self._partitions.current(message.partition, message.epoch)
        if partition is None:
            return []
        steps = partial(self._do_what_is_due, message, partition)
        return self._partitions.job(partition.rm_id, now_ns, steps)

    def _do_what_is_due(self, message: _Due, partition: PartitionContext, job: ContextJob) -> Steps:
        unit = job.work.unit(partition)
        match message:
            case s.ApplicationTimerDue(application_id=id_, kind=kind):
                # An application may have ten thousand asks to withdraw: a restart in between has to
                # know which timer it was.
                yield from on_timer(job.now_doing(unit, LongWorkKind.TIMER, id_, kind), message)
            case s.HistoryExpiryDue():
                # It may have been forgotten early, to keep the bound.
                if (ended := partition.state.finished.get(message.serial)) is not None:
                    expire(unit, ended)
            case s.QueueCleaningDue():
                clean(unit, message.path, message.generation)
            case s.ConfirmationDue():
                report_unconfirmed(unit, self._partitions.confirm_warning_ns(partition))
        yield from self._partitions.send_out_job(job)

    def _on_run_slice(self, _: s.RunSlice, now_ns: int) -> list[Effect]:
        return self._partitions.slices.go_on(now_ns)

    # -- questions

    def _on_state_dump_requested(self, message: StateDumpRequested, now_ns: int) -> list[Effect]:
        # The whole state has what digests never had, so the two are kept apart.
        state = self.whole_state(now_ns) if message.is_whole else self.canonical_state()
        return [Send(to=message.reply_to, message=StateDump(state=state))]

    def _on_counts_requested(self, message: CountsRequested, _: int) -> list[Effect]:
        return [Send(to=message.reply_to, message=self._partitions.counts())]

    def _on_follow_requested(self, message: FollowRequested, _: int) -> list[Effect]:
        stand = self._partitions.follow(message.follower)
        return [*stand, Send(to=message.reply_to, message=Accepted())]

    # Straight back, through the mailbox: whoever gets it has got every fact before it.
    def _on_catch_up_requested(self, message: CatchUpRequested, _: int) -> list[Effect]:
        return [Send(to=message.follower, message=message)]

    def _on_follow_ended(self, message: FollowEnded, _: int) -> list[Effect]:
        self._partitions.unfollow(message.follower)
        return []

    def _on_explain_requested(self, message: ExplainRequested, now_ns: int) -> list[Effect]:
        return self._partitions.explain(message, now_ns)

    def _on_explanation(self, message: Explanation, now_ns: int) -> list[Effect]:
        return self._partitions.explained(message, now_ns)


HANDLERS: dict[type, Callable[[Context, Any, int], Handled]] = {
    restart.CoreRestored: Context._on_core_restored,
    restart.ReturnDue: Context._on_return_due,
    rm.RMRegistration: Context._on_rm_registration,
    rm.RMHeldBack: Context._on_rm_held_back,
    rm.RequestsMarked: Context._on_requests_marked,
    rm.TurnMarked: Context._on_turn_marked,
    rm.RMLost: Context._on_rm_lost,
    rm.RMUnregistered: Context._on_rm_unregistered,
    rm.RMPartitionsRemove: Context._on_rm_partitions_remove,
    rm.RMConfigUpdate: Context._on_rm_config_update,
    rm.AdminConfigUpdate: Context._on_admin_config_update,
    rm.AdminConfigRefused: Context._on_admin_config_refused,
    rm.AdminNodeUpdate: Context._on_admin_node_update,
    rm.RMUpdateAllocation: Context._on_rm_update_allocation,
    rm.RMUpdateApplication: Context._on_rm_update_application,
    rm.RMUpdateNode: Context._on_rm_update_node,
    s.ProposeAllocations: Context._on_propose_allocations,
    s.TokenPassed: Context._on_token_passed,
    s.ReportWaiting: Context._on_report_waiting,
    s.ReportPolicyFailed: Context._on_report_policy_failed,
    s.MachineFailed: Context._on_machine_failed,
    s.RunCycle: Context._on_planning,
    s.RunSlice: Context._on_run_slice,
    s.PlanningDue: Context._on_planning,
    s.ApplicationTimerDue: Context._on_timer_due,
    s.HistoryExpiryDue: Context._on_timer_due,
    s.QueueCleaningDue: Context._on_timer_due,
    s.ConfirmationDue: Context._on_timer_due,
    p.PredicatesChecked: Context._on_planning,
    p.PreemptionPredicatesChecked: Context._on_planning,
    p.DenialsLifted: Context._on_denials_lifted,
    p.NodeDenied: Context._on_denials_changed,
    p.NodesAllowed: Context._on_denials_changed,
    StateDumpRequested: Context._on_state_dump_requested,
    CountsRequested: Context._on_counts_requested,
    FollowRequested: Context._on_follow_requested,
    CatchUpRequested: Context._on_catch_up_requested,
    FollowEnded: Context._on_follow_ended,
    ExplainRequested: Context._on_explain_requested,
    Explanation: Context._on_explanation,
}


def _without_partition(item: rm.AskItem) -> rm.RejectedAsk:
    spec = item.spec
    reason = (
        f"Failed to find partition {item.partition}, for application "
        f"{spec.application_id} and allocation {spec.key}"
    )
    return rejected_ask(spec, reason)


def _of_manager(_: Context, message: Any) -> str:  # noqa: ANN401 - it has one
    rm_id: str = message.rm_id
    return rm_id


def _of_partition(context: Context, message: Any) -> str:  # noqa: ANN401 - it has one
    partition = context.partitions.get(message.partition)
    return "" if partition is None else partition.rm_id


_ORDER_KEYS: dict[type, Callable[[Context, Any], str]] = {
    **dict.fromkeys(
        (
            restart.ReturnDue,
            rm.RMRegistration,
            rm.RMHeldBack,
            rm.RequestsMarked,
            rm.TurnMarked,
            rm.RMLost,
            rm.RMUnregistered,
            rm.RMPartitionsRemove,
            rm.RMConfigUpdate,
            rm.RMUpdateAllocation,
            rm.RMUpdateApplication,
            rm.RMUpdateNode,
            p.DenialsLifted,
        ),
        _of_manager,
    ),
    **dict.fromkeys(
        (
            rm.AdminNodeUpdate,
            s.ProposeAllocations,
            s.TokenPassed,
            s.ReportPolicyFailed,
            s.ReportWaiting,
            s.RunCycle,
            s.PlanningDue,
            s.ApplicationTimerDue,
            s.HistoryExpiryDue,
            s.QueueCleaningDue,
            s.ConfirmationDue,
            p.PredicatesChecked,
            p.PreemptionPredicatesChecked,
        ),
        _of_partition,
    ),
}
"""Whom each message concerns: it waits behind long work for that resource manager.

All others are handled at once: they change nothing but what stands beside the partitions.
"""
