"""The state that a simulation begins with, and the simulator that goes on from it.

A state is what another core would be restored from, and no more: what a planner remembers beside
that follows from it. So it can come from a core, a follower, a journal, a recording or a dump.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from yunikorn_actors.config import SchedulerConfig, parse_config
from yunikorn_actors.core.backlog import Backlog
from yunikorn_actors.core.registered_managers import Registration
from yunikorn_actors.drivers.simulator.choosers import Channel
from yunikorn_actors.drivers.simulator.simulator import EPOCH_NS, Simulator
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.context.partition_context import PartitionContext
from yunikorn_actors.machines.machine import Machine
from yunikorn_actors.machines.planning_loop import PlanningLoop
from yunikorn_actors.machines.rm_proxy.rm_proxy import RmProxy
from yunikorn_actors.machines.scheduler import Scheduler
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import Topology, TopologyName
from yunikorn_actors.messages.base import (
    CONTEXT,
    EVENT_PUBLISHER,
    RM_PROXY,
    Envelope,
    Message,
    manager_of,
)
from yunikorn_actors.messages.restart import (
    CoreRestored,
    EventsRestored,
    KnownManager,
    LastNumbers,
    Registered,
)
from yunikorn_actors.messages.scheduling import FactsMissed, RunCycle
from yunikorn_actors.policies.registry import Policies, Policy
from yunikorn_actors.recording.packed import packed, unpacked
from yunikorn_actors.si import RegisterResourceManagerRequest, ResourceManagerCallback
from yunikorn_actors.state.allocations import Allocation
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.snapshot import image_of

BEGUN_ANEW = (
    "back-offs, the pause between two searches for victims, which of the nodes that are kept for "
    "asks had room first, how long a queue has been empty, how far the turn of a resource manager "
    "has come, and what policies of your own keep beside the facts: they begin anew"
)
"""What machines remember, and no state has."""


REGISTERED = ("rm_id", "version", "policy_group", "build_info", "extra_config")
"""What a resource manager registers with, beside a configuration."""


class CoreState(Struct, frozen=True, kw_only=True):
    """All that a core decides by, as plain values, at one moment."""

    registered: Registered
    images: dict[str, dict[str, Any]]
    """Of each partition, by full name."""
    at_ns: int = EPOCH_NS
    topology: TopologyName = "proposing"
    schedulers: int = 1
    settings: Settings = Settings()
    instance: str = "simulated"
    issued_uuids: int = 0
    last_numbers: dict[str, LastNumbers] = {}
    policies: dict[str, str] = {}
    """The digests of the policies of its own that decided in it; in the same process they are at
    hand."""
    lacks: tuple[str, ...] = ()
    """What the source does not say, and what is assumed instead; a line each."""

    @property
    def revisions(self) -> dict[str, int]:
        """The revision of each partition."""
        return {name: image["revision"] for name, image in self.images.items()}

    def is_away(self, manager: KnownManager) -> bool:
        """Whether a resource manager was lost, and has not come back."""
        images = (self.images[name] for name in manager.epochs)
        return any(it["held"] and not it["behind"] for it in images)

    def config_of(self, group: str) -> SchedulerConfig:
        """Return the configuration that holds for a policy group."""
        return self.registered.brought.get(group) or self.registered.admin or parse_config("")


Work = tuple[str, Application, Allocation]
"""With the name of its partition."""


def work_of(simulator: Simulator, *, asked_back: bool = False) -> Iterator[Work]:
    """Yield what runs, or of that what the core wants back, in an order that every source has.

    It decides what ends first at one moment.
    """
    for name, partition in sorted(context_of(simulator).partitions.items()):
        for app in tuple(partition.state.applications.values()):
            work = app.allocations
            if asked_back:
                # Looked at before they are sorted: these are few.
                work = {uuid: it for uuid, it in work.items() if it.releasing is not None}
            for _, allocation in sorted(work.items()):
                yield name, app, allocation


def context_of(simulator: Simulator) -> Context:
    context = simulator.machines[CONTEXT]
    assert isinstance(context, Context)
    return context


def loop_of(machines: Mapping[str, Machine], partition: PartitionContext) -> PlanningLoop | None:
    """Return what plans for a partition, if that has begun."""
    scheduler = machines.get(partition.planning or "")
    return scheduler.loop if isinstance(scheduler, Scheduler) else partition.loop


def state_of(simulator: Simulator) -> CoreState:
    """Copy the state of a simulated core that is at rest."""
    return state_of_context(context_of(simulator), simulator.topology, simulator.now_ns)


def state_of_context(
    context: Context, topology: Topology, at_ns: int, lacks: tuple[str, ...] = ()
) -> CoreState:
    return CoreState(
        registered=context.registered,
        images={name: image_of(it.state) for name, it in context.partitions.items()},
        at_ns=at_ns,
        topology=topology.name,
        schedulers=topology.schedulers,
        settings=topology.settings,
        instance=topology.instance,
        issued_uuids=context.issued_uuids,
        last_numbers={name: it.last_numbers for name, it in context.partitions.items()},
        lacks=lacks,
    )


class WithoutEvents(Simulator):
    """Nobody asks it for event records, so EventPublisher gets nothing."""

    def _send(self, sender: str, to: str, message: Message) -> None:
        if to != EVENT_PUBLISHER:
            super()._send(sender, to, message)


class Copy(WithoutEvents):
    """A core that goes on from a state; nobody hears its event records, so there are none.

    It decides nothing before `let_decide`: what could start in the state has not started yet, and
    what is changed at its moment comes first.
    """

    def __init__(
        self,
        state: CoreState,
        *,
        groups: Mapping[str, tuple[str, ...]] | None = None,
        policies: Mapping[str, Policy] | None = None,
    ) -> None:
        """`groups` and `policies` are what `VirtualCore` takes under these names."""
        built = Topology(
            state.topology, settings=state.settings, instance=state.instance,
            schedulers=state.schedulers, policies=Policies(policies),
        )  # fmt: skip
        super().__init__(built, accounts=groups)
        self._cycles: list[tuple[Channel, Envelope]] | None = []
        """Rounds of planning that wait; None from when on none does."""
        self.now_ns = state.at_ns
        if state.registered.admin is not None:
            self.managers.resolvers.bring_admin(state.registered.admin)
        self._post(CONTEXT, _restored(state), "copy")
        self.settle()
        self.asked_back = [*work_of(self, asked_back=True)]
        """Found once: to look at all that runs, in a copy of the process, copies all of it."""

    def go_on_with(self, known: KnownManager, callback: ResourceManagerCallback) -> None:
        """Register a resource manager as the one that it was."""
        context = context_of(self)
        brought = context.registered.brought
        registration = known.registration
        request = RegisterResourceManagerRequest(
            **{name: getattr(registration, name) for name in REGISTERED}
        )
        self.managers.register(request, callback, brought.get(registration.policy_group))
        proxy = self.machines[RM_PROXY]
        assert isinstance(proxy, RmProxy)
        # This was no part of a turn where it came back.
        proxy.turns.forget(registration.rm_id)
        for name in known.epochs:
            for app in context.partitions[name].state.applications.values():
                self.managers.resolvers.remember(registration.rm_id, app.spec.user, app.spec.groups)

    def let_decide(self) -> None:
        """Let planners look at what is there by now."""
        cycles, self._cycles = self._cycles, None
        for channel, envelope in cycles or ():
            self.put(channel, envelope)

    def put(self, channel: Channel, envelope: Envelope) -> None:
        if self._cycles is not None and isinstance(envelope.message, RunCycle):
            self._cycles.append((channel, envelope))
        else:
            super().put(channel, envelope)


def machines_of(simulator: Simulator) -> bytes:
    """Pack the machines and timers of a core at rest: most of what a twin costs."""
    copied = {it: each for it, each in simulator.machines.items() if it != EVENT_PUBLISHER}
    # Together: in the fused topology a planner and Context share the truth.
    return packed((copied, simulator.timers))


class Twin(WithoutEvents):
    """A simulated core once more, at rest, with all that its planners remember."""

    asked_back = None

    def __init__(self, original: Simulator, machines_packed: bytes) -> None:
        """`machines_packed` is what `machines_of` returned; several twins may begin with it."""
        super().__init__(original.topology)
        self.now_ns = original.now_ns
        machines, self.timers = unpacked(machines_packed)
        self.machines.update(machines)
        self.managers.resolvers = original.managers.resolvers.copy(lambda: self.now_ns)
        self._addresses = {manager_of(it): it for it in original.callbacks}

    def let_decide(self) -> None:
        """Do nothing: it is at rest, so what could be decided has been."""

    def go_on_with(self, known: KnownManager, callback: ResourceManagerCallback) -> None:
        """Answer in the place of a resource manager."""
        rm_id = known.registration.rm_id
        address = self._addresses[rm_id]
        self.callbacks[address] = callback
        backlog = Backlog(known.registration.extra.unhandled_max)
        self.managers.registered[rm_id] = Registration(address, tells_state=False, backlog=backlog)


def _restored(state: CoreState) -> CoreRestored:
    epochs = {name: epoch for it in state.registered.managers for name, epoch in it.epochs.items()}
    known = tuple(
        FactsMissed(partition=name, epoch=epochs[name], revision=image["revision"])
        for name, image in state.images.items()
    )
    return CoreRestored(
        registered=state.registered,
        images=state.images,
        events=EventsRestored(next_id=0, facts=(), known=known),
        is_reported=True,
        issued_uuids=state.issued_uuids,
        last_numbers=state.last_numbers,
    )
