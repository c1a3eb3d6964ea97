"""Oracles of whole runs: what must have come about when everything was delivered and confirmed.

- `Rest`: nothing waits that could go on, nothing is unconfirmed that was confirmed, nobody is
  parked, nobody counts in a group without a limit (G11, G24, G29, G30).
- `Idle`: an application whose last work has ended is on its way to its end at once (G21).
- `Records`: what each resource manager has requested and was notified of is what the core has (G16,
  G25, G28).
- `Proxied`: what RmProxy keeps for each registration is what its messages say (G16, G25, G27, G28,
  G30).
- `NodesReported`: each node is as its resource manager reported it (G01).
- `Replanning`: at rest a planner that is made anew finds nothing to decide (G30).
- `GangsClaimWhole`: no victim goes for a part of a gang (G31).
- `Waiting`: all ways to ask why asks wait tell the same, and what single asks and nodes make.
- `Gates`: who starts and who waits in a leaf with a policy is what its rules say.
- `ShippedPolicies`: no shipped policy fails, and folds know what waits and runs.
- `Questions`: each question that is asked meanwhile has one answer, and that is true.
- `Timers`: each timer is due when the rules say, and at rest those are armed that serve (G21).
- `Ended`: what the journal of a core that ended has in its files is what the core had.
- `Configurations`: what is read of each configuration is what is written.
- `Zero`: when all applications are gone and time has passed, nothing is left (G29).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from yunikorn_actors import si
from yunikorn_actors.checks.liveness import IDLES, Refuses, stuck
from yunikorn_actors.checks.rm_knowledge import NodeReport, described, of_node
from yunikorn_actors.drivers.simulator.checkers import DecisionChecker, default_checkers, facts_in
from yunikorn_actors.drivers.simulator.notice_checks import RecordChecker
from yunikorn_actors.drivers.simulator.simulator import Checker, Simulator
from yunikorn_actors.lab.harness import Oracle, World
from yunikorn_actors.lab.oracles.configuration_oracle import Configurations
from yunikorn_actors.lab.oracles.gang_oracle import GangsClaimWhole
from yunikorn_actors.lab.oracles.gate_oracle import PLAIN, Gates
from yunikorn_actors.lab.oracles.policy_oracle import ShippedPolicies
from yunikorn_actors.lab.oracles.question_oracle import Questions
from yunikorn_actors.lab.oracles.replanning_oracle import Replanning
from yunikorn_actors.lab.oracles.rm_proxy_oracle import Proxied
from yunikorn_actors.lab.oracles.timer_oracle import Timers
from yunikorn_actors.lab.oracles.waiting_oracle import Waiting
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces import sides
from yunikorn_actors.lab.surfaces.journal_files import Ended
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.context.partition_context import PartitionContext
from yunikorn_actors.machines.machine import InvariantViolation
from yunikorn_actors.messages.base import CONTEXT, Delivery
from yunikorn_actors.messages.rm_events import NodeItem, RMUpdateNode
from yunikorn_actors.si import ActionFromRM
from yunikorn_actors.state.facts import AllocationReleased, AskRemoved, Fact
from yunikorn_actors.state.limits import is_limited
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.values.tag_lookup import is_switched_on
from yunikorn_actors.values.tags import APP_TAG_COMPLETING_DISABLE

# An oracle of nodes: each is as its resource manager reported it last, whatever happened (G01).
#
# What a request says is applied to what was known before it, by the words of the interface alone.
# So it shows that a node takes work again because something else of it was reported.

_Nodes = dict[str, NodeReport]


class NodesReported(Oracle):
    receivers: Final = frozenset({CONTEXT})

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], _Nodes] = {}
        """Of each life of a partition."""
        self._revisions: dict[tuple[str, int], int] = {}
        """At which that was so: facts alone change a node."""
        self._was_at_rest = True

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        # What is handled as one is judged as one.
        if delivery.mailbox != CONTEXT or delivery is not simulator.last:
            return
        context = simulator.machines[CONTEXT]
        assert isinstance(context, Context)
        is_whole = self._was_at_rest and context.is_at_rest
        self._was_at_rest = context.is_at_rest
        reports = [it for it in simulator.taken if isinstance(it, RMUpdateNode)]
        for name, partition in context.partitions.items():
            life = (name, partition.epoch)
            known = self._known.get(life)
            if reports and is_whole and known is not None and partition.awaited is None:
                items = [it for report in reports for it in report.nodes if it.partition == name]
                _compare(_after(known, items), partition.state)
            if self._revisions.get(life) != partition.state.revision:
                self._revisions[life] = partition.state.revision
                self._known[life] = {id_: of_node(it) for id_, it in partition.state.nodes.items()}


def _after(known: _Nodes, items: Sequence[NodeItem]) -> _Nodes:
    nodes = dict(known)
    for item in items:
        node = nodes.get(item.node_id)
        if item.action in {ActionFromRM.CREATE, ActionFromRM.CREATE_DRAIN}:
            made = described(None, item.capacity, item.occupied, item.attributes)
            if node is None and made is not None:
                drained = item.action is ActionFromRM.CREATE_DRAIN
                nodes[item.node_id] = made._replace(drained=drained)
        elif node is None:
            continue
        elif item.action is ActionFromRM.DECOMISSION:
            del nodes[item.node_id]
        elif item.action is ActionFromRM.UPDATE:
            changed = described(node, item.capacity, item.occupied, item.attributes)
            assert changed is not None
            nodes[item.node_id] = changed
        elif item.action is ActionFromRM.DRAIN_NODE:
            nodes[item.node_id] = node._replace(drained=True)
        elif item.action is ActionFromRM.DRAIN_TO_SCHEDULABLE:
            nodes[item.node_id] = node._replace(drained=False)
    return nodes


def _compare(expected: _Nodes, state: PartitionState) -> None:
    if expected.keys() != state.nodes.keys():
        found = sorted(state.nodes)
        raise InvariantViolation(f"G01: the nodes are {found}, reported are {sorted(expected)}")
    for id_, node in state.nodes.items():
        faults = expected[id_].differences(node)
        if faults:
            raise InvariantViolation(f"G01: of {id_} " + "; ".join(faults))


def oracles() -> tuple[Checker, ...]:
    """Return those of the core, for one run: of single messages, and of the whole run."""
    checkers = default_checkers(PLAIN)
    (decisions,) = (it for it in checkers if isinstance(it, DecisionChecker))
    (records,) = (it for it in checkers if isinstance(it, RecordChecker))
    return (
        *checkers,
        Timers(),
        Replanning(),
        GangsClaimWhole(),
        Waiting(),
        Gates(decisions),
        Proxied(),
        NodesReported(),
        ShippedPolicies(),
        Questions(),
        Idle(),
        Rest(),
        Records(records),
        Zero(),
        Ended(),
    )


def all_oracles(draw: Draw | None = None) -> tuple[Checker, ...]:
    """Return those of its journal and its read side as well; they cost as much as the others.

    How its configurations are read is judged with them: that is the same in every run.
    """
    return (*oracles(), Configurations(), *sides(Draw(0) if draw is None else draw))


def _fail(when: str, faults: Iterable[str]) -> None:
    found = tuple(faults)
    if found:
        raise InvariantViolation(f"{when}: " + "; ".join(found))


class Rest(Oracle):
    def at_rest(self, world: World) -> None:
        for partition in world.context.partitions.values():
            if partition.state.decides_nothing:
                # Its resource manager is lost, and hears and confirms nothing.
                continue
            _fail("at rest", _unfinished(world, partition))
            _fail("at rest", _counted_in_vain(partition.state))
            refuses = refusals_of(world.stage.manager(partition.rm_id))
            _fail("at rest", stuck(partition.state, refuses, APP_TAG_COMPLETING_DISABLE))


def _counted_in_vain(state: PartitionState) -> Iterator[str]:
    for app in state.applications.values():
        if app.group and not is_limited(app.queue, app.group):
            yield f"G24: {app.id} counts in group {app.group}, which has no limit any more"


class Idle(Oracle):
    receivers: Final = frozenset({CONTEXT})

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        if delivery.mailbox != CONTEXT or delivery is not simulator.last:
            return
        context = simulator.machines[CONTEXT]
        assert isinstance(context, Context)
        for name, facts in facts_in(simulator.effects).items():
            partition = context.partitions.get(name)
            if partition is not None and partition.state.long_work is None:
                _fail("after an end", _idle(partition.state, facts))


def _idle(state: PartitionState, facts: Iterable[Fact]) -> Iterator[str]:
    """Name applications in which something has ended that was no placeholder, and nothing runs.

    Where an ask of it was withdrawn after that, in the same message, the ask was the last: that
    completes no application that has placeholders (R-029).
    """
    ended: dict[str, None] = {}
    for fact in facts:
        if isinstance(fact, AllocationReleased) and not fact.placeholder:
            ended[fact.application_id] = None
        elif isinstance(fact, AskRemoved):
            ended.pop(fact.application_id, None)
    for id_ in ended:
        app = state.applications.get(id_)
        if (
            app is None
            or app.state not in IDLES
            or is_switched_on(app.spec.tags, APP_TAG_COMPLETING_DISABLE)
        ):
            continue
        if not (any(app.pending.values()) or any(app.allocated.values()) or app.swaps):
            yield f"G21: {app.id} is {app.state.value}, and its last work has ended"


def refusals_of(manager: si.ResourceManagerCallback | None) -> Refuses:
    """Ask a resource manager itself which ask it refuses on which node."""
    if manager is None:
        return lambda _key, _node: False

    def refuses(key: str, node_id: str) -> bool:
        args = si.PredicatesArgs(allocation_key=key, node_id=node_id)
        try:
            return manager.predicates(args) is not None
        except Exception:  # noqa: BLE001 - of whatever kind: the core takes it for a no
            return True

    return refuses


def _unfinished(world: World, partition: PartitionContext) -> Iterator[str]:
    for app in partition.state.applications.values():
        for uuid, item in app.allocations.items():
            # What is not reported after a restart is taken for confirmed, when its time is over.
            if item.releasing is None or partition.awaits(uuid):
                continue
            if not _is_never_confirmed(world, item.spec.key):
                yield f"G29: {item.spec.key} of {app.id} is still to be confirmed"
                if uuid in app.swaps:
                    yield f"G11: {app.swaps[uuid].key} of {app.id} is parked for it"


def _is_never_confirmed(world: World, key: str) -> bool:
    return any(name.partition(" ")[0] == key for name in world.unanswered)


class Zero(Oracle):
    def drained(self, world: World) -> None:
        for partition in world.context.partitions.values():
            _fail("in the end", _left(partition.state))
        timers = list(world.simulator.timers)
        _fail("in the end", [f"G29: timer {name} is armed" for _, name in timers])


def _left(state: PartitionState) -> Iterator[str]:
    books = {
        "applications": state.applications,
        "history": state.finished,
        "users": state.users,
        "groups": state.groups,
        "allocations": state.owners,
        "admitted gangs": state.admitted,
        "unconfirmed releases": state.unconfirmed,
        "reservations": state.reservation_count,
    }
    yield from (f"G29: {name} are left: {book}" for name, book in books.items() if book)
    for path, queue in state.queues.items():
        for name in ("allocated", "pending", "preempting", "leaving", "earmarked"):
            if any(getattr(queue, name).values()):
                yield f"G29: {path} has something {name}"
        if queue.running_apps or queue.allocating or queue.reserving:
            yield f"G29: {path} counts applications"
        if queue.is_to_be_cleaned:
            yield f"G29: {path} is empty and still there"
    for node in state.nodes.values():
        if any(node.allocated.values()) or node.reservations or any(node.promised.values()):
            yield f"G29: {node.id} is in use"


class Records(Oracle):
    """Compares all that resource managers know with all that the core has."""

    def __init__(self, checker: RecordChecker) -> None:
        self._checker = checker

    def at_rest(self, world: World) -> None:
        _fail("at rest", self._checker.differences(world.context))
