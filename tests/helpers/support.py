"""A small cluster in the simulator, and what a resource manager says to it in few words.

A `Lab` is one simulated core with one registered resource manager that remembers what it was told.
Its verbs post requests and return at once: nothing is handled before `settle`, so requests that
follow each other race with whatever the core does about the earlier ones. The checkers are always
on, and `refusals` counts the races that the scheduler lost.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.checkers import default_checkers
from yunikorn_actors.drivers.simulator.choosers import chooser_of
from yunikorn_actors.drivers.simulator.simulator import Checker, Simulator
from yunikorn_actors.errors import InvalidRequest, UnknownResourceManager
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.context.partition_context import PartitionContext
from yunikorn_actors.machines.scheduler import Scheduler
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import Topology, TopologyName
from yunikorn_actors.messages.base import CONTEXT, EVENT_PUBLISHER, Cause, Delivery, Envelope
from yunikorn_actors.messages.scheduling import (
    ApplicationTimerDue,
    FactsAppended,
    ProposalRejected,
)
from yunikorn_actors.planning.planner import Planner
from yunikorn_actors.policies.registry import NO_POLICIES, Policies
from yunikorn_actors.state.dump import snapshot
from yunikorn_actors.state.facts import Fact
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.values.durations import SECOND

RM = "rm-1"
APP = "app-1"
QUEUE = "root.default"
CONFIG = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: default}]}]}]"
PARTITION = "[rm-1]default"


def in_transit(simulator: Simulator) -> list[Envelope]:
    """Messages that were sent and not delivered yet."""
    return [envelope for queue in simulator.channels.values() for _, envelope in queue]


def limited(vcore: int) -> str:
    """Return the configuration with a max for the one leaf, in cpus."""
    leaf = f"{{name: default, resources: {{max: {{vcore: {vcore}m}}}}}}"
    return f"partitions: [{{name: default, queues: [{{name: root, submitacl: '*', queues: [{leaf}]}}]}}]"


AFTER_HISTORY_NS = Settings().history_ns + Settings().event_push_ns + SECOND
"""By then nobody remembers who has ended, and the last records of it have been pushed."""


class Recorder(si.ResourceManagerCallback):
    """Remembers everything it is told, and keeps the list of what it believes to be running."""

    def __init__(self) -> None:
        self.heard: list[tuple[Any, ...]] = []
        self.running: dict[str, str] = {}
        """UUID to allocation key."""
        self.records: list[si.EventRecord] = []

    def update_allocation(self, response: si.AllocationResponse) -> None:
        for refused in response.rejected + response.rejected_allocations:
            self.heard.append(("rejected", refused.allocation_key, refused.reason))
        for ended in response.released:
            self.heard.append(("released", ended.allocation_key, ended.termination_type.name))
            self.running.pop(ended.uuid, None)
        for new in response.new:
            self.heard.append(("new", new.allocation_key, new.node_id))
            self.running[new.uuid] = new.allocation_key

    def update_application(self, response: si.ApplicationResponse) -> None:
        for accepted in response.accepted:
            self.heard.append(("application", accepted.application_id, "accepted"))
        for refused in response.rejected:
            self.heard.append(("application", refused.application_id, refused.reason))
        for update in response.updated:
            self.heard.append(("state", update.application_id, update.state))

    def update_node(self, response: si.NodeResponse) -> None:
        for accepted in response.accepted:
            self.heard.append(("node", accepted.node_id, "accepted"))
        for refused in response.rejected:
            self.heard.append(("node", refused.node_id, refused.reason))

    def send_event(self, events: tuple[si.EventRecord, ...]) -> None:
        self.records.extend(events)

    def told(self, kind: str) -> list[tuple[Any, ...]]:
        return [line[1:] for line in self.heard if line[0] == kind]


def facts_of(simulator: Simulator, delivery: Delivery) -> list[Fact]:
    """Return what Context recorded while it handled this message; ask right after the delivery."""
    cause = Cause(delivery.mailbox, delivery.step)
    return [
        fact
        for (_, to), queue in simulator.channels.items()
        if to == EVENT_PUBLISHER
        for _, envelope in queue
        if envelope.cause == cause and isinstance(envelope.message, FactsAppended)
        for fact in envelope.message.facts
    ]


def settled(state: PartitionState) -> Any:
    """Return the state without how it came about, and when the resource manager heard of it."""
    return _without(snapshot(state), frozenset({"revision", "told"}))


def _without(value: Any, names: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {key: _without(item, names) for key, item in value.items() if key not in names}
    return [_without(item, names) for item in value] if isinstance(value, list) else value


class Races:
    """Counts what only happens when a race took place."""

    def __init__(self) -> None:
        self.refusals: Counter[str] = Counter()
        """Why proposals were refused."""
        self.stale_timers = 0
        """Firings that changed nothing, because the timer was no longer the one that is armed."""

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        message = delivery.message
        if isinstance(message, ProposalRejected):
            self.refusals[message.reason.value] += 1
        elif isinstance(message, ApplicationTimerDue) and not facts_of(simulator, delivery):
            self.stale_timers += 1


def ask(key: str, vcore: int = 1, *, app: str = APP, **fields: Any) -> si.AllocationAsk:
    amount = si.Resource.of({"vcore": vcore})
    named = {"application_id": app, "allocation_key": key, "resource_ask": amount}
    return si.AllocationAsk(**{**named, **fields})


def report(key: str, node: str, vcore: int = 1, *, app: str = APP, **fields: Any) -> si.Allocation:
    amount = si.Resource.of({"vcore": vcore})
    named = {"application_id": app, "allocation_key": key, "resource_per_alloc": amount}
    return si.Allocation(**{**named, "node_id": node, **fields})


class Lab:
    def __init__(
        self,
        *,
        seed: int = 0,
        topology: TopologyName = "proposing",
        schedulers: int = 1,
        config: str = CONFIG,
        settings: Settings | None = None,
        checkers: tuple[Checker, ...] = (),
        rm: Recorder | None = None,
        policies: Policies = NO_POLICIES,
        **simulated: Any,
    ) -> None:
        self.seed = seed
        self.races = Races()
        self.simulator = Simulator(
            Topology(
                topology,
                settings=settings or Settings(),
                instance="core",
                schedulers=schedulers,
                policies=policies,
            ),
            chooser=chooser_of(seed),
            checkers=(*default_checkers(), self.races, *checkers),
            **simulated,
        )
        self.rm = rm or Recorder()
        self.register(self.rm, config)

    def register(self, rm: Recorder, config: str = CONFIG) -> None:
        self.rm = rm
        request = si.RegisterResourceManagerRequest(rm_id=RM, config=config)
        self.simulator.register_resource_manager(request, rm)

    # -- what the resource manager says

    def nodes(self, **vcores: int) -> None:
        for name, vcore in vcores.items():
            self.node(name, si.ActionFromRM.CREATE, vcore)

    def node(
        self, name: str, action: si.ActionFromRM, vcore: int | None = None, **fields: Any
    ) -> None:
        size = None if vcore is None else si.Resource.of({"vcore": vcore})
        info = si.NodeInfo(node_id=name, action=action, schedulable_resource=size, **fields)
        self.simulator.update_node(si.NodeRequest(rm_id=RM, nodes=(info,)))

    def decommission(self, name: str) -> None:
        self.node(name, si.ActionFromRM.DECOMISSION)

    def submit(
        self,
        *names: str,
        queue: str = QUEUE,
        user: str = "bob",
        groups: tuple[str, ...] = (),
        **fields: Any,
    ) -> None:
        ugi = si.UserGroupInformation(user=user, groups=groups)
        new = tuple(
            si.AddApplicationRequest(application_id=name, queue_name=queue, ugi=ugi, **fields)
            for name in names
        )
        self.simulator.update_application(si.ApplicationRequest(rm_id=RM, new=new))

    def remove(self, *names: str) -> None:
        gone = tuple(si.RemoveApplicationRequest(application_id=name) for name in names)
        self.simulator.update_application(si.ApplicationRequest(rm_id=RM, remove=gone))

    def request(self, **parts: Any) -> None:
        self.simulator.update_allocation(si.AllocationRequest(rm_id=RM, **parts))

    def ask(self, *keys: str, vcore: int = 1, app: str = APP, **fields: Any) -> None:
        self.request(asks=tuple(ask(key, vcore, app=app, **fields) for key in keys))

    def withdraw(self, *keys: str, app: str = APP) -> None:
        gone = tuple(si.AllocationAskRelease(application_id=app, allocation_key=k) for k in keys)
        self.request(releases=si.AllocationReleasesRequest(allocation_asks_to_release=gone))

    def release(self, *keys: str, app: str = APP, **fields: Any) -> None:
        gone = tuple(
            si.AllocationRelease(application_id=app, allocation_key=key, **fields) for key in keys
        )
        self.request(releases=si.AllocationReleasesRequest(allocations_to_release=gone))

    def report(self, *items: si.Allocation) -> None:
        self.request(allocations=items)

    def configure(self, config: str) -> None:
        self.simulator.update_configuration(si.UpdateConfigurationRequest(rm_id=RM, config=config))

    # -- time

    def settle(self) -> None:
        self.simulator.settle()

    def advance(self, seconds: float) -> None:
        self.simulator.advance(int(seconds * SECOND))

    def let_timers_fire(self, seconds: float) -> None:
        """Let time pass without handling anything: what is said next races with the firings."""
        self.settle()
        self.simulator.now_ns += int(seconds * SECOND)
        self.simulator._fire_due()

    # -- what is true

    @property
    def context(self) -> Context:
        context = self.simulator.machines[CONTEXT]
        assert isinstance(context, Context)
        return context

    @property
    def partition(self) -> PartitionContext:
        return self.context.partitions[PARTITION]

    @property
    def state(self) -> PartitionState:
        return self.partition.state

    @property
    def planner(self) -> Planner:
        """The one that decides: Context's own, or that of the scheduler that speaks."""
        planner = self.partition.planner
        return self.schedulers[0].planner if planner is None else planner

    @property
    def schedulers(self) -> list[Scheduler]:
        found: list[Scheduler] = []
        for address in self.partition.schedulers.values():
            scheduler = self.simulator.machines[address]
            assert isinstance(scheduler, Scheduler)
            found.append(scheduler)
        return found

    @property
    def stale_messages(self) -> int:
        """Late messages of a former life of the partition."""
        stale: int = self.simulator.state_dump()["stale_messages"]
        return stale

    def keys_in_flight(self) -> list[str]:
        return sorted(
            held.ask.ask.spec.key for held in self.planner.model.flights.placements.values()
        )

    def running(self) -> list[str]:
        """Keys of what runs; the resource manager must have been told exactly that."""
        truth = {
            uuid: item.spec.key
            for app in self.state.applications.values()
            for uuid, item in app.allocations.items()
        }
        assert truth == self.rm.running
        return sorted(truth.values())

    def waiting(self) -> list[str]:
        return sorted(
            item.spec.key for app in self.state.applications.values() for item in app.waiting_asks()
        )

    def leftovers(self) -> dict[str, Any]:
        """Remove every application, let all timers pass, and return what is not zero (G29)."""
        self.settle()
        self.remove(*self.state.applications)
        self.settle()
        self.simulator.advance(AFTER_HISTORY_NS)
        state = self.state
        left: dict[str, Any] = {
            "finished": state.finished,
            "users": state.users,
            "allocations": state.allocation_count,
            "in flight": self.planner.model.flights.placements,
            "timers": list(self.simulator.timers),
            "callback errors": self.simulator.callback_errors,
        }
        for queue in state.queues.values():
            books = (queue.allocated, queue.pending, queue.preempting)
            left[queue.path] = [book for book in books if any(book.values())]
        for node in state.nodes.values():
            left[node.id] = {
                kind: quantity for kind, quantity in node.allocated.items() if quantity
            }
        return {name: rest for name, rest in left.items() if rest}


def with_everything() -> Lab:
    """One node, `runs` on it, `waits` too large for it, foreign work, a finished application."""
    lab = Lab()
    lab.nodes(n1=10)
    lab.submit(APP, "done")
    lab.ask("end", app="done")
    lab.settle()
    lab.release("end", app="done")
    lab.advance(30)
    lab.ask("runs", vcore=2)
    lab.ask("waits", vcore=99)
    foreign = {si.constants.TAG_FOREIGN: si.constants.FOREIGN_DEFAULT}
    lab.report(report("f", "n1", app="", allocation_tags=foreign))
    lab.settle()
    lab.rm.heard.clear()
    return lab


class Outcome:
    """What came of one call: taken, or refused at the call with nothing taken."""

    def __init__(self, lab: Lab, call: Callable[[], object], *errors: type[Exception]) -> None:
        self.lab = lab
        self.before = lab.simulator.state_dump()
        self.error: Exception | None = None
        known: tuple[type[Exception], ...] = (InvalidRequest, UnknownResourceManager, *errors)
        try:
            call()
        except known as error:
            self.error = error
        if self.error is not None:
            assert lab.simulator.is_at_rest
        lab.settle()
        self.after = lab.simulator.state_dump()
        assert [] == lab.simulator.callback_errors
        if self.error is not None:
            assert str(self.error)
            assert self.before == self.after
            assert [] == lab.rm.heard

    @property
    def has_changed(self) -> bool:
        return bool(self.before["partitions"] != self.after["partitions"])

    def answers(self, kind: str) -> Counter[str]:
        """Count the answers of this kind by id; each says something."""
        told = self.lab.rm.told(kind)
        assert all(words for _, words in told)
        return Counter(id_ for id_, _ in told)


def labs(seeds: int | range, **made_with: Any) -> Iterator[Lab]:
    """One fresh lab for each seed; for so many from 1 on, as 0 is plain first in, first out."""
    for seed in seeds if isinstance(seeds, range) else range(1, seeds + 1):
        yield Lab(seed=seed, **made_with)
