"""An oracle of policies that decide: who of a leaf may start, and who comes first.

A decision is judged on the truth, if the plan that made it knew all of the truth and no other plan
was under way. No ask starts that the gate of its leaf has to hold. No ask is placed on a node where
an ask before it in the order, of no larger size, would have had room. At rest no ask waits that its
gate would let in. `model/gate_rules.py` has the rules a second time, in plain sums.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import (
    Any,
    Final,
    NamedTuple,
)

from yunikorn_actors.drivers.simulator.checkers import (
    DecisionChecker,
    could_run_somewhere,
    facts_in,
)
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.lab.harness import Oracle
from yunikorn_actors.lab.model.gate_rules import (
    Amounts,
    PlainConservative,
    Room,
    passes_first,
)
from yunikorn_actors.lab.oracles.replanning_oracle import is_still_to_come, planner_at_work
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.context.partition_context import PartitionContext
from yunikorn_actors.machines.machine import InvariantViolation
from yunikorn_actors.messages.base import (
    CALLBACK,
    CONTEXT,
    Delivery,
)
from yunikorn_actors.messages.restart import CoreRestored
from yunikorn_actors.messages.rm_calls import CallPredicates
from yunikorn_actors.messages.scheduling import ProposeAllocations, RunCycle
from yunikorn_actors.planning.model.views import AskView
from yunikorn_actors.planning.planner import Planner
from yunikorn_actors.policies.conservative import Conservative
from yunikorn_actors.policies.folds import Folds, is_part_of_gang, runtime_of
from yunikorn_actors.policies.registry import Policies
from yunikorn_actors.state.allocations import Ask
from yunikorn_actors.state.applications import SCHEDULABLE, Application, ApplicationState
from yunikorn_actors.state.facts import (
    AllocationCommitted,
    AllocationRecovered,
    AllocationReleased,
    AskParked,
    AskUnparked,
    Fact,
    GangAdmitted,
    PreemptionDecided,
    ReservationDropped,
    ReservationMade,
    parts_of,
)
from yunikorn_actors.state.gangs import awaits_admission
from yunikorn_actors.state.limits import limits_of
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.values.durations import NEVER_NS
from yunikorn_actors.values.resource import Resource, charge, discharge, fits_in

PLAIN: Final = Policies({"conservative": PlainConservative})
"""What replicas are followed with, so that there is something to compare the shipped folds with."""
_STRICT: Final = frozenset({"fcfs", "sjf"})
"""Policies whose first without room holds all behind it."""
_ORDERED: Final = frozenset({"largest-first", "dominant-share"})
"""Policies that say who comes first, and no more, by what is seen of the state alone."""
_GATED: Final = _STRICT | {"easy", "conservative"}
_ELSE: Final = (
    AllocationRecovered, AllocationReleased, AskParked, AskUnparked, GangAdmitted,
    PreemptionDecided, ReservationDropped, ReservationMade,
)  # fmt: skip
"""Facts of a plan that does more than to place; what that leaves free is not worked out."""
_Life = tuple[str, int]


class _Waiting(NamedTuple):
    """An ask of a leaf, where it stands in the order of that."""

    turn: tuple[Any, ...]
    app: Application
    ask: Ask

    @property
    def name(self) -> str:
        return f"{self.ask.spec.key} of {self.app.id}"

    @property
    def total(self) -> Resource:
        spec = self.ask.spec
        return {kind: n * spec.max_allocations for kind, n in spec.resource.items()}


class Gates(Oracle):
    receivers: Final = frozenset({CALLBACK, CONTEXT})

    def __init__(self, replicas: DecisionChecker) -> None:
        """The replicas have the folds of `PLAIN`."""
        self._replicas = replicas
        self._is_refused = False
        """Whether a resource manager has been asked, who may have refused what came first."""
        self._begin()

    def _begin(self) -> None:
        """Know nothing: the replicas of a core count their changes from the beginning."""
        self._revisions: dict[_Life, int] = {}
        """When Context had handled the last message."""
        self._promises: dict[_Life, dict[str, PlainConservative]] = {}
        """By queue, as they were then."""
        self._changes: dict[_Life, int] = {}
        self._rested: dict[_Life, tuple[int, int]] = {}

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        if isinstance(delivery.message, CoreRestored):
            self._begin()
        self._is_refused |= isinstance(delivery.message, CallPredicates)
        context = simulator.machines[CONTEXT]
        assert isinstance(context, Context)
        found: list[str] = []
        if delivery.mailbox == CONTEXT and delivery is simulator.last:
            for partition in context.partitions.values():
                found.extend(self._handled(simulator, delivery, partition))
        if simulator.is_at_rest and not self._is_refused:
            for partition in context.partitions.values():
                found.extend(self._at_rest(simulator, partition))
        if found:
            where = f"after {type(delivery.message).__name__} to {delivery.mailbox}"
            raise InvariantViolation(f"{where}: " + "; ".join(found))

    def _handled(
        self, simulator: Simulator, delivery: Delivery, partition: PartitionContext
    ) -> Iterator[str]:
        """Judge what was placed by a plan that knew all, and is the only one under way."""
        state, message = partition.state, delivery.message
        life = (partition.name, partition.epoch)
        before, self._revisions[life] = self._revisions.get(life), state.revision
        if before == state.revision:
            return
        knows_all = isinstance(message, ProposeAllocations) and message.as_of == before
        if isinstance(message, RunCycle):
            # Planned and carried out in one, on the truth.
            knows_all = message.partition == partition.name and partition.loop is not None
        if knows_all and not self._is_refused and len(partition.schedulers) <= 1:
            facts, folds = facts_in(simulator.effects), self._promises.get(life, {})
            plan = _Plan(state, facts.get(partition.name, ()), folds, simulator.now_ns)
            yield from plan.faults()
        yield from self._follow(life, state)

    # -- what conservative leaves have promised

    def _follow(self, life: _Life, state: PartitionState) -> Iterator[str]:
        replica = self._replicas.replica(*life)
        folds = None if replica is None else replica.folds
        if not isinstance(folds, Folds) or folds.changes == self._changes.get(life):
            return
        self._changes[life] = folds.changes
        plain = {
            path: it for path, it in folds.by_queue.items() if isinstance(it, PlainConservative)
        }
        self._promises[life] = {path: deepcopy(it) for path, it in plain.items()}
        for path, fold in self._promises[life].items():
            fold.settle()
            yield from _unlike(state, path, fold)

    # -- at rest

    def _at_rest(self, simulator: Simulator, partition: PartitionContext) -> Iterator[str]:
        life, state = (partition.name, partition.epoch), partition.state
        planner = planner_at_work(simulator, partition)
        moment = state.revision, simulator.now_ns
        if planner is None or state.decides_nothing or self._rested.get(life) == moment:
            return
        if is_still_to_come(simulator, partition):
            return
        self._rested[life] = moment
        for leaf, last in planner.gatekeeper.passes.items():
            # Nothing has happened since, so a gate that goes by run times was right then.
            at_ns = simulator.now_ns if _is_conservative(leaf.queue) else last.now_ns
            yield from self._held_in_vain(planner, leaf.queue, life, at_ns)

    def _held_in_vain(
        self, planner: Planner, leaf: Queue, life: _Life, now_ns: int
    ) -> Iterator[str]:
        policy = leaf.properties.application_policy
        if policy not in _GATED or _has_gangs(planner.state, leaf):
            return
        before: list[_Waiting] = []
        for each in sorted(_Order(planner.state, leaf).waiting()):
            view = planner.model.ask_of(each.app.id, each.ask.spec.key)
            is_held = view is not None and _is_held_by_gate_alone(planner, view)
            if is_held and self._may_start(planner.state, each, before, life, now_ns):
                yield f"the gate of {leaf.path} holds {each.name}, which may start"
            before.append(each)

    def _may_start(
        self,
        state: PartitionState,
        each: _Waiting,
        before: Sequence[_Waiting],
        life: _Life,
        now_ns: int,
    ) -> bool:
        leaf = each.app.queue
        policy = leaf.properties.application_policy
        if not before:
            return policy != "conservative"
        if policy in _STRICT:
            return False
        if policy == "conservative":
            fold = self._promises.get(life, {}).get(leaf.path)
            start_ns = None if fold is None else fold.start_of(_id(each))
            return start_ns is not None and start_ns <= now_ns
        if not _is_plain(state) or each.ask.spec.max_allocations > 1:
            return False
        return _may_pass(state, each, before[0], now_ns)


def _is_conservative(leaf: Queue) -> bool:
    return leaf.properties.application_policy == "conservative"


def _is_held_by_gate_alone(planner: Planner, ask: AskView) -> bool:
    rests = ask.app in planner.backoff.resting
    return not rests and ask in ask.app.leaf.holds and could_run_somewhere(planner, ask)


class _Plan:
    """The placements of one plan, on the state right after it."""

    def __init__(
        self,
        state: PartitionState,
        facts: Iterable[Fact],
        folds: Mapping[str, Any],
        now_ns: int,
    ) -> None:
        self._state, self._folds, self._now_ns = state, folds, now_ns
        parts = [part for fact in facts for part in parts_of(fact)]
        self._places_only = not any(isinstance(it, _ELSE) for it in parts)
        self._aside = {
            (it.application_id, it.key)
            for it in parts
            if isinstance(it, ReservationDropped | AskUnparked)
        }
        """What has a reservation or takes a placeholder's room was decided before others."""
        self._placed = [
            it for it in parts if isinstance(it, AllocationCommitted) and it.proposal_id
        ]

    def faults(self) -> Iterator[str]:
        for number, it in enumerate(self._placed):
            app = self._state.applications[it.application_id]
            ask, leaf = app.asks[it.key], app.queue
            policy = leaf.properties.application_policy
            if not policy or (app.id, it.key) in self._aside or is_part_of_gang(app, ask.spec):
                continue
            order = _Order(self._state, leaf, self._placed, number)
            mine = order.of(app, ask)
            before = sorted(each for each in order.waiting() if each.turn < mine.turn)
            if policy in _GATED:
                yield from self._beyond_gate(policy, leaf, mine, before, number)
            elif policy in _ORDERED and not leaf.properties.backoff_count:
                yield from self._out_of_turn(mine, before)

    def _fold_of(self, leaf: Queue) -> Any:  # noqa: ANN401 - one of the plain ones
        return self._folds.get(leaf.path)

    def _beyond_gate(
        self, policy: str, leaf: Queue, mine: _Waiting, before: list[_Waiting], number: int
    ) -> Iterator[str]:
        if policy == "conservative":
            fold = self._fold_of(leaf)
            start_ns = None if fold is None else fold.start_of(_id(mine))
            if start_ns is not None and start_ns > self._now_ns:
                yield f"{mine.name} starts {start_ns - self._now_ns} ns before its turn"
        elif before and policy in _STRICT:
            yield f"{mine.name} passes {before[0].name}"
        elif before and mine.ask.spec.max_allocations == 1 and self._may_judge(leaf):
            later = self._placed[number:]
            if not _may_pass(self._state, mine, before[0], self._now_ns, later):
                yield f"{mine.name} delays {before[0].name}, which comes before it"

    def _may_judge(self, leaf: Queue) -> bool:
        return self._places_only and _is_plain(self._state) and not _has_gangs(self._state, leaf)

    def _out_of_turn(self, mine: _Waiting, before: Sequence[_Waiting]) -> Iterator[str]:
        """Where one that comes first wants no more, and may run there, it has to be placed."""
        for first in before:
            spec = first.ask.spec
            is_bound = spec.is_choosy or mine.ask.spec.required_node
            is_other = first.app is not mine.app and first.ask is not mine.ask
            may_start = is_other and not is_bound and _needs_no_more(first.app, mine.app)
            if may_start and fits_in(spec.resource, mine.ask.spec.resource):
                yield f"{mine.name} is placed, and {first.name} comes first"


def _needs_no_more(first: Application, mine: Application) -> bool:
    """Whether the first may start wherever the other one may, but for its size."""
    queue, owner = first.queue, (first.spec.user, first.group)
    is_limited = limits_of(queue, *owner) or limits_of(queue, mine.spec.user, mine.group)
    if first.task_groups or (is_limited and owner != (mine.spec.user, mine.group)):
        return False
    has_place = first.state is not ApplicationState.ACCEPTED
    bounds = (limit.max_applications for limit in is_limited)
    return has_place or not any((*bounds, *(it.spec.max_applications for it in queue.lineage)))


# -- the order of a leaf


class _Order:
    """Who comes first in a leaf, as it was before some of what was placed."""

    def __init__(
        self,
        state: PartitionState,
        leaf: Queue,
        placed: Sequence[AllocationCommitted] = (),
        number: int = 0,
    ) -> None:
        """`placed` is all of one plan, of which the one with this number comes next."""
        self._state, self._leaf = state, leaf
        self._taken: dict[str, list[Ask]] = {}
        """What was placed of each application, and waited when the plan began."""
        self._later: dict[str, Resource] = {}
        for at, it in enumerate(placed):
            ask = state.applications[it.application_id].asks[it.key]
            self._taken.setdefault(it.application_id, []).append(ask)
            if at >= number:
                charge(self._later.setdefault(it.application_id, {}), it.resource)

    def waiting(self) -> Iterator[_Waiting]:
        for id_ in self._leaf.applications.values():
            app = self._state.applications[id_]
            if app.state in SCHEDULABLE:
                for ask in app.asks.values():
                    if ask.remaining and not is_part_of_gang(app, ask.spec):
                        yield self.of(app, ask)

    def of(self, app: Application, ask: Ask) -> _Waiting:
        asks = [it for it in app.asks.values() if it.remaining]
        asks += [it for it in self._taken.get(app.id, ()) if not it.remaining]
        urgent = -max(it.spec.priority for it in asks or [ask])
        properties = self._leaf.properties
        rank, own = self._rank(app, asks), self._rank_of_ask(app, ask)
        whose = (urgent, rank) if properties.application_sort_priority else (rank, urgent)
        arrival = app.submitted_ns, app.serial
        turn = (*whose, *arrival, -ask.spec.priority, own, ask.created_ns, ask.sequence)
        return _Waiting(turn, app, ask)

    def _rank(self, app: Application, asks: Sequence[Ask]) -> float:
        match self._leaf.properties.application_policy:
            case "sjf":
                return max((runtime_of(app, it.spec) for it in asks), default=NEVER_NS)
            case "largest-first":
                return -self._share(total_of(it.spec.resource for it in asks))
            case "dominant-share":
                used = dict(app.allocated)
                discharge(used, self._later.get(app.id, {}))
                return self._share(used)
            case _:
                return app.submitted_ns

    def _share(self, sizes: Resource) -> float:
        whole = self._state.capacity
        return max((n / whole[it] for it, n in sizes.items() if n and whole.get(it)), default=0)

    def _rank_of_ask(self, app: Application, ask: Ask) -> Any:  # noqa: ANN401 - by policy
        match self._leaf.properties.application_policy:
            case "sjf":
                return runtime_of(app, ask.spec)
            case "largest-first":
                return sorted(-n * ask.spec.max_allocations for n in ask.spec.resource.values())
            case _:
                return 0


def total_of(sizes: Iterable[Resource]) -> Resource:
    """Return the largest of each type."""
    largest: Resource = {}
    for size in sizes:
        for kind, quantity in size.items():
            largest[kind] = max(quantity, largest.get(kind, 0))
    return largest


def _id(each: _Waiting) -> str:
    return f"{each.app.id}/{each.ask.spec.key}"


# -- what may start beside the first that waits


def _has_gangs(state: PartitionState, leaf: Queue) -> bool:
    apps = (state.applications[id_] for id_ in leaf.applications.values())
    return any(awaits_admission(app) for app in apps)


def _is_plain(state: PartitionState) -> bool:
    """Whether what is free is nobody's: nothing is promised, kept or on its way."""
    nodes = state.nodes.values()
    return not state.reservation_count and not any(
        node.reservations or node.incoming or min(node.available.values(), default=0) < 0
        for node in nodes
    )


def _may_pass(
    state: PartitionState,
    each: _Waiting,
    first: _Waiting,
    now_ns: int,
    later: Sequence[AllocationCommitted] = (),
) -> bool:
    """Whether one may start before the first, if what is placed later is not there yet."""
    leaf, gone = each.app.queue, {it.uuid for it in later}
    open_nodes: Resource = {}
    for node in state.nodes.values():
        if node.is_schedulable:
            charge(open_nodes, node.available)
    free: dict[Any, int] = {**open_nodes}
    bounds = [level for level in leaf.lineage[:-1] if level.spec.max is not None]
    for level in bounds:
        for kind, amount in (level.spec.max or {}).items():
            free[level.path, kind] = amount - level.allocated.get(kind, 0)
    running: list[tuple[int, Amounts]] = []
    for app in state.applications.values():
        for it in app.allocations.values():
            size = _in_bounds(it.resource, [lv for lv in bounds if lv in app.queue.lineage])
            if it.uuid not in gone:
                end_ns = min(NEVER_NS, it.allocated_ns + runtime_of(app, it.spec))
                running.append((end_ns, size))
                continue
            for what, amount in size.items():
                if state.nodes[it.node_id].is_schedulable or not isinstance(what, str):
                    free[what] = free.get(what, 0) + amount
    room = Room(now_ns, free, running)
    runtime_ns = runtime_of(each.app, each.ask.spec)
    head, mine = _in_bounds(first.total, bounds), _in_bounds(each.total, bounds)
    return passes_first(room, head, mine, runtime_ns)


def _in_bounds(size: Resource, bounds: Iterable[Queue]) -> Amounts:
    found: dict[Any, int] = {**size}
    for level in bounds:
        found |= {
            (level.path, kind): n for kind, n in size.items() if kind in (level.spec.max or {})
        }
    return found


def _unlike(state: PartitionState, path: str, plain: PlainConservative) -> Iterator[str]:
    """Compare with what the shipped fold has promised."""
    fold = state.folds.by_queue.get(path) if isinstance(state.folds, Folds) else None
    if isinstance(fold, Conservative):
        shipped = deepcopy(fold)
        shipped._settle()
        found = {id_: max(at_ns, shipped.now_ns) for id_, (_, at_ns) in shipped.waiting.items()}
        expected = {id_: max(at_ns, plain.now_ns) for id_, (_, at_ns) in plain.promised.items()}
        if found != expected:
            yield f"{path} has promised {found}, expected {expected}"
