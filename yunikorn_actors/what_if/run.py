"""One run in virtual time: a core, the resource managers around it, and work that ends.

What happens at one moment happens in this order: what ends, then what is changed, then the core
decides. It drives any simulated core, so what was simulated can be done by the same code.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

from yunikorn_actors import si
from yunikorn_actors.config import ConfigError
from yunikorn_actors.core.registered_managers import StandIn
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.errors import CoreError, InvalidRequest
from yunikorn_actors.machines.context.lifecycle import (
    COMMITMENT_TIMER,
    EXECUTION_TIMER,
    STATE_TIMER,
)
from yunikorn_actors.machines.context.partition_context import PartitionContext
from yunikorn_actors.machines.machine import Send
from yunikorn_actors.machines.planning_loop import PlanningLoop
from yunikorn_actors.messages.base import CONTEXT, EVENT_PUBLISHER, Delivery
from yunikorn_actors.messages.codec import state_digest
from yunikorn_actors.messages.queries import ExplainRequested
from yunikorn_actors.messages.rm_events import Capabilities
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.planning.reasons import WaitingQuestion, Why
from yunikorn_actors.policies.folds import runtime_of
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import Allocation, AskSpec, Beneficiary
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.dump import snapshot
from yunikorn_actors.state.termination import ASKED_BACK
from yunikorn_actors.values.durations import HOUR, NEVER_NS, SECOND
from yunikorn_actors.values.ids import partition_name, short_partition_name
from yunikorn_actors.what_if.answer import Course, Ended, FullName, NotTaken, Placed, Wait, Waiting
from yunikorn_actors.what_if.changes import Change, carry_out, released
from yunikorn_actors.what_if.core_state import Work, context_of, loop_of, work_of

QUIET_NS: Final = HOUR
"""Without an end that is named, a run ends when nothing has happened for so long."""
WATCHED_MAX: Final = 100
"""So many asks that the changes bring are explained at each moment."""
OTHERS_MAX: Final = 500_000
"""Asks and nodes that are looked at to explain all others: beyond that only what waits at the end
is explained."""
MESSAGES_MAX: Final = 50_000_000
"""So many messages a run handles; then it is cut short."""
IDLE_MAX: Final = 10_000
"""So often in a row the core tries in vain; then it is cut short: some things it tries for ever."""

Fits = Callable[[str, str], str | None]
"""Takes the key of an ask and a node, returns why not."""
_OF_STATES: Final = {STATE_TIMER, COMMITMENT_TIMER}
"""Timers of an application that end no work."""
_T: Final = si.TerminationType
_ALWAYS: Final = frozenset({"update_allocation", "update_application", "update_node"})


class World(Protocol):
    """What a simulated resource manager acts for."""

    def receive(self, rm_id: str, response: si.AllocationResponse) -> None: ...

    def refuse(self, rm_id: str, what: str, name: str, reason: str) -> None: ...

    def fits(self, key: str, node: str) -> str | None: ...


class Manager(StandIn):
    """A resource manager that has others take what it gets, and answer what it is asked."""

    def __init__(self, rm_id: str, capabilities: Capabilities, run: World) -> None:
        self.rm_id = rm_id
        self._run = run
        self._capabilities = capabilities

    def answers(self, method: str) -> bool:
        return method in _ALWAYS or self._capabilities.has(method)

    def update_allocation(self, response: si.AllocationResponse) -> None:
        rejected: tuple[Any, ...] = (*response.rejected, *response.rejected_allocations)
        for refused in rejected:
            name = f"{refused.application_id}/{refused.allocation_key}"
            self._run.refuse(self.rm_id, "ask", name, refused.reason)
        self._run.receive(self.rm_id, response)

    def update_application(self, response: si.ApplicationResponse) -> None:
        for refused in response.rejected:
            self._run.refuse(self.rm_id, "application", refused.application_id, refused.reason)

    def update_node(self, response: si.NodeResponse) -> None:
        for refused in response.rejected:
            self._run.refuse(self.rm_id, "node", refused.node_id, refused.reason)

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        return self._run.fits(args.allocation_key, args.node_id)

    def preemption_predicates(
        self, args: si.PreemptionPredicatesArgs
    ) -> si.PreemptionPredicatesResponse | None:
        if self._run.fits(args.allocation_key, args.node_id) is not None:
            return None
        return si.PreemptionPredicatesResponse(success=True, index=args.start_index)


class Run:
    """Has what resource managers get confirmed at once, and their work end."""

    def __init__(
        self,
        simulator: Simulator,
        changes: Sequence[Change] = (),
        *,
        fits: Fits | None = None,
        watched: Sequence[FullName] = (),
        others_max: int | None = None,
        awaited: Mapping[FullName, int] | None = None,
        is_over: Callable[[], bool] | None = None,
        asked_back: Sequence[Work] | None = None,
        let_decide: Callable[[], None] | None = None,
    ) -> None:
        """`watched` are asks that are explained at each moment, whatever that costs.

        With `awaited` the run ends as soon as so many repeats of these have started, and explains
        nothing. It is cut short at the first moment at which `is_over` is true. `asked_back` is of
        `work_of` what was asked back, if that is known: in one moment nothing else ends. A
        simulator that decides nothing yet is let go by `let_decide`.
        """
        self._simulator = simulator
        self._changes = list(reversed(changes))
        self._fits = fits
        self._watched = list(watched)[:WATCHED_MAX]
        self._others_left = OTHERS_MAX if others_max is None else others_max
        self._awaited = None if awaited is None else +Counter(awaited)
        """How many repeats have not started yet."""
        self._is_over = is_over
        self._asked_back = asked_back
        self._let_decide = let_decide
        self._looked: tuple[int, int, bool] | None = None
        """As what waits was last looked at: after how many messages, when, and if at all of it."""
        self._begin_ns = self._latest_ns = simulator.now_ns
        self._ends: list[tuple[int, int, str, Allocation, int | None]] = []
        """When work ends, a number, its partition, what, and why if the core asked it back."""
        self._placed: list[Placed] = []
        self._ended: list[Ended] = []
        self._refused: list[NotTaken] = []
        self._waits: dict[FullName, tuple[object, Wait]] = {}
        """Those that are not over, each with what tells its obstacle from others."""
        self._waits_over: list[Wait] = []
        self._waiting: list[Waiting] = []
        self._given_back: set[str] = set()
        """UUIDs of what ended by itself: the core repeats that."""
        self._nodes_left: dict[str, str] = {}
        """By UUID, the node of what has ended already when its resource manager is told."""
        self._owners: dict[tuple[str, str], tuple[str, str]] = {}
        """The queue and user of each application, by its partition and id."""
        self.counts: Counter[str] = Counter()
        """How often something was assumed."""
        self._failures: dict[str, None] = {}
        simulator.checkers.add(self)

    # -- the run

    def go(self, until_ns: int | None, *, digest: bool = True) -> Course:
        """Run until then, or until nothing happens any more."""
        self._begin(is_moment=until_ns == self._begin_ns)
        first = self._simulator.delivered
        is_cut, idle = False, 0
        while not (is_cut or self._has_all_started):
            self._look()
            next_ns = self._next_ns(until_ns)
            if next_ns is None:
                break
            self._pass_to(next_ns)
            idle = idle + 1 if self._latest_ns < next_ns else 0
            is_cut = (
                idle > IDLE_MAX
                or self._simulator.delivered - first > MESSAGES_MAX
                or (self._is_over is not None and self._is_over())
            )
        if until_ns is None and self._is_restless():
            self.counts["further"] = round(self._seconds)
        if until_ns is not None and not (is_cut or self._has_all_started):
            self._pass_to(until_ns)
        return self._course(is_cut=is_cut, digest=digest)

    @property
    def _has_all_started(self) -> bool:
        return self._awaited is not None and not self._awaited

    def _begin(self, *, is_moment: bool) -> None:
        # All requests of one moment are taken before the core decides, however many they are.
        for registration in self._simulator.managers.registered.values():
            registration.backlog.close()
        for name, app in self._apps():
            self._owners[name, app.id] = app.queue.path, app.spec.user
        at_work = self._asked_back if is_moment else None
        for name, app, allocation in work_of(self._simulator) if at_work is None else at_work:
            self._take_on(name, app, allocation)
        self._make_changes()
        self._settle()
        self._decide()

    def _decide(self) -> None:
        """Let a core that decides nothing yet look at what was changed."""
        if self._let_decide is not None:
            self._let_decide()
            self._settle()

    def _take_on(self, name: str, app: Application, allocation: Allocation) -> None:
        """Know what runs already, and confirm what was asked back."""
        if allocation.releasing is not None:
            if self._release(name, allocation, allocation.releasing):
                self.counts["confirmed"] += 1
            return
        runtime_ns = self._runtime_ns(name, app, allocation)
        ends_ns = allocation.allocated_ns + runtime_ns
        if runtime_ns != NEVER_NS and ends_ns <= self._begin_ns:
            self._assume_on(app, allocation, "overdue")
        elif runtime_ns != NEVER_NS:
            self._end_later(ends_ns, name, allocation)

    def _runtime_ns(self, name: str, app: Application, allocation: Allocation) -> int:  # noqa: ARG002
        """How long it runs: as declared, and a placeholder until something takes its place."""
        runtime_ns = NEVER_NS if allocation.spec.placeholder else runtime_of(app, allocation.spec)
        if runtime_ns == NEVER_NS and not allocation.spec.placeholder:
            self._assume_on(app, allocation, "undeclared")
        return runtime_ns

    def _assume_on(self, app: Application, allocation: Allocation, why: str) -> None:
        """Count that it runs on: to its time limit, if there is one, or without an end."""
        is_limited = allocation.spec.timeout_ms > 0 or EXECUTION_TIMER in app.timers
        self.counts["limited" if is_limited else why] += 1

    def _next_ns(self, until_ns: int | None) -> int | None:
        """When something happens next; None if nothing does in time."""
        known = [self._ends[0][0]] if self._ends else []
        if self._changes:
            known.append(self._due_ns(self._changes[-1]))
        of_core = self._simulator.timers.first_due_ns()
        if of_core is not None and (until_ns is not None or self._may_matter(of_core)):
            known.append(of_core)
        due_ns = min(known, default=None)
        return None if due_ns is None or (until_ns is not None and due_ns > until_ns) else due_ns

    def _may_matter(self, due_ns: int) -> bool:
        """Whether a timer of the core is to be waited for where nothing else is."""
        if self._ends or self._changes or self._comes_of_age():
            return True
        return self._is_waited_for(due_ns - self._latest_ns)

    def _is_waited_for(self, rest_ns: int) -> bool:
        """Whether something waits, for which a core may do nothing for so long."""
        is_waiting = any(it.pending for _, it in self._apps())
        return is_waiting and (rest_ns <= QUIET_NS or rest_ns <= self._longest_rest_ns())

    def _is_restless(self) -> bool:
        """Whether something waits that the core soon looks at again by itself."""
        due_ns = self._simulator.timers.first_due_ns()
        return due_ns is not None and self._is_waited_for(due_ns - self._simulator.now_ns)

    def _comes_of_age(self) -> bool:
        """Whether a timer is armed, however far away, that ends work, or a quota comes due."""
        now_ns = self._simulator.now_ns
        return any(
            due_ns > now_ns
            for partition in self._partitions.values()
            for due_ns in partition.state.quotas.values()
        ) or any(
            timer.due_ns > now_ns and kind not in _OF_STATES
            for _, app in self._apps()
            for kind, timer in app.timers.items()
        )

    def _longest_rest_ns(self) -> int:
        """For how long a planner may do nothing, and then something: as queues and gangs say."""
        queues = [it for part in self._partitions.values() for it in part.state.queues.values()]
        rests: Iterable[tuple[int, ...]] = zip(
            *(it.properties.rests_ns for it in queues), strict=True
        )
        # Gangs hold what they are promised one after the other.
        gangs = sum(app.waiting_placeholders > 0 for _, app in self._apps())
        hold_ns = self._simulator.topology.settings.placeholder_timeout_ns
        return sum(max(it) for it in rests) + (gangs + 1) * hold_ns

    def _pass_to(self, now_ns: int) -> None:
        simulator = self._simulator
        simulator.advance(now_ns - simulator.now_ns)
        ended = 0
        while self._ends and self._ends[0][0] <= now_ns:
            _, _, name, allocation, why = heapq.heappop(self._ends)
            found = self._find(name, allocation.spec.application_id, allocation.uuid)
            if found is not None and (why is not None or found.releasing is None):
                self._latest_ns = now_ns
                if why is None:
                    self._given_back.add(allocation.uuid)
                ended += self._release(name, allocation, _T.STOPPED_BY_RM if why is None else why)
        if ended > 1:
            self.counts["together"] += ended
        self._make_changes()
        self._settle()

    def _due_ns(self, change: Change) -> int:
        """When it is made: one answer for who waits for it and for who makes it."""
        return self._begin_ns + round(change.after_s * SECOND)

    def _make_changes(self) -> None:
        while self._changes and self._due_ns(self._changes[-1]) <= self._simulator.now_ns:
            self._latest_ns = self._simulator.now_ns
            change = self._changes.pop()
            self._make(change)
            if change.is_first:
                self._settle()
                self._decide()

    def _make(self, change: Change) -> None:
        try:
            carry_out(self._simulator, change.request)
        except (CoreError, ConfigError) as error:
            raise InvalidRequest(f"{change.where or 'a change'}: {error}") from None

    def _settle(self) -> None:
        self._simulator.settle()
        if self._simulator.callback_errors:
            raise self._simulator.callback_errors[0]

    # -- what the core says

    receivers = (CONTEXT,)

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        """Take the facts of a step of the core: what its resource manager is told is less."""
        if delivery.mailbox == CONTEXT:
            for effect in simulator.effects:
                if type(effect) is Send and effect.to == EVENT_PUBLISHER:
                    message = effect.message
                    if isinstance(message, FactsAppended):
                        self._take_facts(message)

    def _take_facts(self, message: FactsAppended) -> None:
        for fact in message.facts:
            match fact:
                case f.ApplicationAdded(spec=spec, queue=queue):
                    self._owners[message.partition, spec.application_id] = queue, spec.user
                case f.PolicyFailed(queue=queue, policy=policy, failure=failure, is_slow=False):
                    where = f" of {queue}" if queue else ""
                    self._failures[
                        f"policy {policy}{where} failed: {failure}; what is built in decides there"
                    ] = None
                case f.AllocationReleased(given_back=None, uuid=uuid, node_id=node):
                    if self._simulator.managers.is_registered(message.rm_id):
                        self._nodes_left[uuid] = node
                    else:
                        self._note_end(
                            message.partition, fact.application_id, fact.key, fact.type, node,
                            "its resource manager has left",
                        )  # fmt: skip
                case f.SwapCompleted(placeholder=uuid, placeholder_node=node):
                    self._nodes_left[uuid] = node
                case f.AskRemoved(application_id=application, key=key, type=why):
                    self._note_end(message.partition, application, key, why)

    def receive(self, rm_id: str, response: si.AllocationResponse) -> None:
        """Take an answer of the core as the resource manager does."""
        self._latest_ns = self._simulator.now_ns
        for ended in response.released:
            self._released(partition_name(rm_id, ended.partition_name), ended)
        for new in response.new:
            self._started(partition_name(rm_id, new.partition_name), new)
        gangs = ((it.partition_name, it.application_id) for it in response.new if it.placeholder)
        for name, application in dict.fromkeys(gangs):
            app = self._application(partition_name(rm_id, name), application)
            if app is not None and not app.waiting_placeholders:
                self._ask_for_members(partition_name(rm_id, name), app)

    def refuse(self, rm_id: str, what: str, name: str, reason: str) -> None:
        """Note what the core does not take."""
        own = [it for it, partition in self._partitions.items() if partition.rm_id == rm_id]
        self._refused.append(
            NotTaken(
                what=what, name=name, at_s=self._seconds, reason=reason,
                partition=own[0] if len(own) == 1 else "",
            )
        )  # fmt: skip

    def fits(self, key: str, node: str) -> str | None:
        """Answer a predicate: as the program says, or yes."""
        if self._fits is None:
            self.counts["predicates"] += 1
            return None
        why = self._fits(key, node)
        if not isinstance(why, str | None):
            raise TypeError(f"fits returned {why!r:.80}: return None, or the reason as text")
        return why

    def _released(self, name: str, ended: si.AllocationRelease) -> None:
        node = self._nodes_left.pop(ended.uuid, "")
        # The later form of the interface has asks among them, which facts have told of.
        if not ended.uuid or ended.uuid in self._given_back:
            return
        found = self._find(name, ended.application_id, ended.uuid)
        self._note_end(
            name, ended.application_id, ended.allocation_key, ended.termination_type,
            node if found is None else found.node_id, ended.message,
            None if found is None else found.beneficiary,
        )  # fmt: skip
        if found is not None and ended.termination_type in ASKED_BACK:
            self._confirm(name, found, ended.termination_type)

    def _confirm(self, name: str, allocation: Allocation, why: int) -> None:
        """Give back what the core asks back: at once."""
        self._release(name, allocation, why)

    def _note_end(
        self,
        name: str,
        application: str,
        key: str,
        why: int,
        node: str = "",
        message: str = "",
        whom: Beneficiary | None = None,
    ) -> None:
        queue, user = self._owner(name, application)
        self._ended.append(
            Ended(
                application=application, key=key, queue=queue, user=user, partition=name, node=node,
                at_s=self._seconds, why=_T(why).name, message=message,
                beneficiary=_named(whom),
            )
        )  # fmt: skip

    def _started(self, name: str, new: si.Allocation) -> None:
        """Note a start, and of what has not been released meanwhile when it ends."""
        allocation = self._find(name, new.application_id, new.uuid)
        app = self._application(name, new.application_id)
        ends_ns = None
        if allocation is not None and app is not None:
            runtime_ns = self._runtime_ns(name, app, allocation)
            if runtime_ns != NEVER_NS:
                ends_ns = self._simulator.now_ns + runtime_ns
                self._end_later(ends_ns, name, allocation)
        ask = (name, new.application_id, new.allocation_key)
        if self._awaited and ask in self._awaited:
            self._awaited -= Counter([ask])
        size = new.resource_per_alloc
        queue, user = self._owner(name, new.application_id)
        self._placed.append(
            Placed(
                application=new.application_id,
                key=new.allocation_key,
                queue=queue,
                user=user,
                partition=name,
                node=new.node_id,
                at_s=self._seconds,
                ends_s=None if ends_ns is None else (ends_ns - self._begin_ns) / SECOND,
                is_placeholder=new.placeholder,
                resources={} if size is None else size.amounts(),
                uuid=new.uuid,
            )
        )

    def _ask_for_members(self, name: str, app: Application) -> None:
        """Have the members of a complete gang ask, if its placeholders say how long they run."""
        asked = {it.spec.task_group for it in app.asks.values() if not it.spec.placeholder}
        groups: dict[str, tuple[AskSpec, int]] = {}
        for it in app.allocations.values():
            spec = it.spec
            is_open = spec.placeholder and it.releasing is None and spec.task_group not in asked
            if is_open and runtime_of(app, spec) != NEVER_NS:
                groups[spec.task_group] = spec, groups.get(spec.task_group, (spec, 0))[1] + 1
        asks = tuple(_member(name, spec, count) for spec, count in groups.values())
        if asks:
            self.counts["members"] += sum(it.max_allocations for it in asks)
            request = si.AllocationRequest(rm_id=self._partitions[name].rm_id, asks=asks)
            self._simulator.update_allocation(request)

    # -- what ends

    def _end_later(
        self, ends_ns: int, name: str, allocation: Allocation, why: int | None = None
    ) -> None:
        self.counts["declared"] += 1
        heapq.heappush(self._ends, (ends_ns, self.counts["declared"], name, allocation, why))

    def _release(self, name: str, allocation: Allocation, why: int) -> bool:
        """Give it back, if its resource manager is not away: what such a one has stays."""
        if not self._simulator.managers.is_registered(self._partitions[name].rm_id):
            self.counts["away"] += 1
            return False
        spec = allocation.spec
        request = released(name, spec.application_id, spec.key, allocation.uuid, why)
        self._simulator.update_allocation(request)
        return True

    # -- what is looked at

    @property
    def _seconds(self) -> float:
        return (self._simulator.now_ns - self._begin_ns) / SECOND

    @property
    def _partitions(self) -> Mapping[str, PartitionContext]:
        return context_of(self._simulator).partitions

    def _apps(self) -> Iterator[tuple[str, Application]]:
        for name, partition in self._partitions.items():
            for app in partition.state.applications.values():
                yield name, app

    def _find(self, name: str, application: str, uuid: str) -> Allocation | None:
        app = self._application(name, application)
        return None if app is None else app.allocations.get(uuid)

    def _owner(self, name: str, application: str) -> tuple[str, str]:
        """Return queue and user, also of an application that has gone."""
        app = self._application(name, application)
        if app is None:
            return self._owners.get((name, application), ("", ""))
        return app.queue.path, app.spec.user

    def _application(self, name: str, application: str) -> Application | None:
        """Return it, if it is there: a change may have removed its partition."""
        partition = self._partitions.get(name)
        return None if partition is None else partition.state.applications.get(application)

    def _look(self, *, is_last: bool = False) -> None:
        """Note what is waited for, where that has changed."""
        now = self._simulator.delivered, self._simulator.now_ns
        if self._awaited is not None or self._looked in {(*now, True), (*now, is_last)}:
            return
        causes: Counter[str] = Counter()
        waiting: set[FullName] = set()
        explained: dict[FullName, Why] = {}
        is_whole = True
        for name, partition in self._partitions.items():
            loop = loop_of(self._simulator.machines, partition)
            if loop is None:
                continue
            question = _question(name, waiting=WaitingQuestion(sums=True))
            counted = loop.explain(question, self._simulator.now_ns).counted
            if counted is not None:
                for one in counted.sums:
                    causes[one.cause.value] += one.count
            asks = self._waiting_asks(name)
            waiting.update(asks)
            found: Sequence[Why] = ()
            if not asks.keys() <= {*self._watched}:
                if is_last or self._may_look_at_others(name, asks):
                    found = loop.explain(_question(name), self._simulator.now_ns).waiting
                else:
                    is_whole = False
            explained |= {(name, it.application_id, it.key): it for it in found}
            # Of very many only some are in that list.
            explained |= self._explained(name, loop, explained)
        self._looked = *now, is_whole
        if not self._waiting or self._waiting[-1].causes != causes:
            self._waiting.append(Waiting(at_s=self._seconds, causes=dict(sorted(causes.items()))))
        self._note_waits({name: it for name, it in explained.items() if it.waits}, waiting)

    def _waiting_asks(self, name: str) -> dict[FullName, AskSpec]:
        return {
            (name, app.id, ask.spec.key): ask.spec
            for app in self._partitions[name].state.applications.values()
            if app.swaps or any(app.pending.values())
            for ask in app.asks.values()
            if ask.remaining or ask.parked
        }

    def _may_look_at_others(self, name: str, asks: Mapping[FullName, AskSpec]) -> bool:
        """Whether all that waits may be explained: each size of it looks at every node."""
        if self._others_left > 0:
            sizes = {frozenset(it.resource.items()) for it in asks.values()}
            self._others_left -= len(sizes) * len(self._partitions[name].state.nodes) + len(asks)
            if self._others_left <= 0:
                self.counts["unexplained"] = round(self._seconds)
        return self._others_left > 0

    def _explained(
        self, name: str, loop: PlanningLoop, known: Collection[FullName]
    ) -> dict[FullName, Why]:
        """Explain each ask of the changes by itself."""
        applications = self._partitions[name].state.applications
        found: dict[FullName, Why] = {}
        for ask in self._watched:
            if ask[0] == name and ask[1] in applications and ask not in known:
                asked = _question(*ask)
                for it in loop.explain(asked, self._simulator.now_ns).waiting:
                    found[ask] = it
        return found

    def _note_waits(self, current: Mapping[FullName, Why], waiting: set[FullName]) -> None:
        """End the waits that are over, and begin those for something else.

        Of what only has become more or less, the first words count, and the last ones.
        """
        for name, (obstacle, wait) in tuple(self._waits.items()):
            why = current.get(name)
            if name not in waiting if why is None else _identity(why) != obstacle:
                del self._waits[name]
                self._waits_over.append(replace(wait, until_s=self._seconds))
        for name, why in current.items():
            known = self._waits.get(name)
            from_s, first = (self._seconds, why.reason)
            if known is not None:
                from_s, first = known[1].from_s, known[1].first_text or known[1].text
            partition, application, key = name
            wait = Wait(
                application=application, key=key, queue=why.queue, partition=partition,
                user=self._owner(partition, application)[1], from_s=from_s, until_s=None,
                cause=why.decisive.cause.value, text=why.reason,
                first_text="" if first == why.reason else first,
            )  # fmt: skip
            self._waits[name] = _identity(why), wait

    def _course(self, *, is_cut: bool, digest: bool) -> Course:
        self._look(is_last=True)
        return Course(
            placed=tuple(self._placed),
            ended=tuple(self._ended),
            refused=tuple(self._refused),
            waits=(*self._waits_over, *(it for _, it in self._waits.values())),
            waiting=tuple(self._waiting),
            until_s=self._seconds,
            is_cut=is_cut,
            digest=digest_of(self._simulator) if digest else "",
            has_more=is_cut or self._next_ns(None) is not None or self._is_restless(),
            assumed=dict(self.counts),
            failures=tuple(self._failures),
        )


def digest_of(simulator: Simulator) -> str:
    """Return a digest of the truth, but for how many facts have led there.

    What was found of what waits (`told`, `shortage`, `crowd`) is left out: it is a report of what
    the planner has looked at so far, by which nothing is decided.
    """
    partitions = context_of(simulator).partitions
    states = {name: snapshot(it.state) for name, it in sorted(partitions.items())}
    for state in states.values():
        state["revision"] = 0
        for app in state["applications"].values():
            del app["crowd"]
            for ask in app["asks"]:
                del ask["told"], ask["shortage"]
    return state_digest(states)


def _question(
    name: str, application: str = "", key: str = "", waiting: WaitingQuestion | None = None
) -> ExplainRequested:
    return ExplainRequested(
        partition=name, application_id=application, key=key, reply_to="", waiting=waiting,
        in_units=True,
    )  # fmt: skip


def _identity(why: Why) -> object:
    """What tells it from others: a queue, limit or node, and how much that has in all."""
    it = why.decisive
    return it.cause, it.where, it.never, it.maximum


def _named(whom: Beneficiary | None) -> str:
    if whom is None:
        return ""
    return f"{whom.application_id}/{whom.key}" if whom.key else whom.rule.value


def _member(name: str, spec: AskSpec, count: int) -> si.AllocationAsk:
    return si.AllocationAsk(
        partition_name=short_partition_name(name),
        application_id=spec.application_id,
        allocation_key=f"{spec.task_group or spec.application_id}.member",
        resource_ask=si.Resource.of(spec.resource),
        max_allocations=count,
        priority=spec.priority,
        task_group_name=spec.task_group,
        tags=spec.tags,
        preemption_policy=si.PreemptionPolicy(
            allow_preempt_self=spec.allow_preempt_self,
            allow_preempt_other=spec.allow_preempt_other,
        ),
    )
