"""An oracle of operators: each act has one answer, that one, and just its effect.

- A node that is there and is not so already is drained, or takes work again; nothing else of any
  node changes, and the facts name who did it. Any other wish is declined, and nothing changes.
- Who is unregistered has nothing left when that is answered.
- A configuration is in force, when its loading is answered, wherever none was brought. One with
  faults is a fact of each partition, and changes nothing.
- A reader of event records gets each once and in order, from as far back as it wanted. What it was
  too slow for it does not get, and learns how many these were.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from yunikorn_actors.config import ExtraConfig, QueueConfig, SchedulerConfig
from yunikorn_actors.drivers.simulator.checkers import facts_in
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.lab.harness import Oracle, SlowReader, World
from yunikorn_actors.lab.surfaces.event_readers import records_of
from yunikorn_actors.lab.surfaces.first_difference import differing
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.context.manager_registry import ResourceManager
from yunikorn_actors.machines.events import EventPublisher
from yunikorn_actors.machines.machine import InvariantViolation, Send
from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages.base import (
    CONTEXT,
    EVENT_PUBLISHER,
    Delivery,
    Message,
    is_reply,
)
from yunikorn_actors.messages.queries import (
    Accepted,
    Declined,
    EventStreamLeft,
    EventStreamRequested,
)
from yunikorn_actors.messages.restart import CoreRestored
from yunikorn_actors.messages.scheduling import FactsAppended, NodeActionsRefused
from yunikorn_actors.si import EventRecord
from yunikorn_actors.state.facts import AdministratorActed, ConfigurationRefused, Fact
from yunikorn_actors.state.queues import QueueState
from yunikorn_actors.values.ids import partition_name

_Node = tuple[str, int, str]
"""Of which life of which partition."""
_USUAL: Final = ExtraConfig()
_ACTS: Final = (rm.AdminNodeUpdate, rm.AdminConfigUpdate)


class Operators(Oracle):
    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._open: dict[str, Message] = {}
        """Acts without an answer, by the address for it."""
        self._drained: dict[_Node, bool] = {}
        self._wanted: dict[str, type[Message]] = {}
        """What has to come to such an address."""
        self._admin: SchedulerConfig | None = None
        """What was loaded last."""
        self._brought: dict[str, bool] = {}
        """By policy group, whether a member brought queues of its own."""
        self._publisher: EventPublisher | None = None
        self._streams: dict[str, list[EventRecord] | None] = {}
        """What each reader has to get; None where a failure of the publisher has cut it."""

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        message, mailbox = delivery.message, delivery.mailbox
        if isinstance(message, CoreRestored):
            self._begin()
        faults: Iterator[str] = iter(())
        if is_reply(mailbox):
            faults = self._reply(mailbox, message)
        elif mailbox == EVENT_PUBLISHER:
            self._publish(simulator, message)
        elif mailbox == CONTEXT:
            self._note(message)
            if delivery is simulator.last:
                faults = self._of_context(simulator)
        found = tuple(faults)
        if found:
            where = f"after {type(message).__name__} to {mailbox}"
            raise InvariantViolation(f"an operator, {where}: " + "; ".join(found))

    def at_rest(self, world: World) -> None:
        faults = [*self._of_readers(world)]
        if self._open:
            faults.append(f"G25: {[*self._open.values()]} has no answer")
        if faults:
            raise InvariantViolation("an operator, at rest: " + "; ".join(faults))

    # -- answers

    def _note(self, message: Message) -> None:
        match message:
            case rm.AdminNodeUpdate() | rm.AdminConfigUpdate() | rm.RMUnregistered():
                if message.reply_to:
                    self._open[message.reply_to] = message
        if isinstance(message, rm.AdminConfigUpdate):
            self._admin = message.config

    def _reply(self, address: str, answer: Message) -> Iterator[str]:
        act = self._open.pop(address, None)
        wanted = self._wanted.pop(address, None)
        if act is not None and (wanted is None or not isinstance(answer, wanted)):
            is_ = "nothing yet" if wanted is None else wanted.__name__
            yield f"{type(act).__name__} is answered {type(answer).__name__}, expected {is_}"

    # -- what Context does

    def _of_context(self, simulator: Simulator) -> Iterator[str]:
        context = simulator.machines[CONTEXT]
        assert isinstance(context, Context)
        acts = [it for it in simulator.taken if isinstance(it, _ACTS)]
        sends = [it for it in simulator.effects if isinstance(it, Send)]
        if [rm.AdminConfigRefused] == [type(it) for it in simulator.taken]:
            yield from _refused(context, facts_in(simulator.effects))
        for send in sends:
            act = self._open.get(send.to)
            if isinstance(act, rm.AdminNodeUpdate):
                if acts == [act]:
                    yield from self._of_node(context, act, facts_in(simulator.effects))
                else:
                    self._wanted[send.to] = Accepted | Declined  # type: ignore[assignment]
            elif isinstance(act, rm.RMUnregistered):
                self._wanted[send.to] = Accepted
                if act.rm_id in context.registry.managers:
                    yield f"{act.rm_id} is unregistered and still there"
                left = [name for name, it in context.partitions.items() if it.rm_id == act.rm_id]
                if left:
                    yield f"{act.rm_id} is unregistered, and {left} are still there"
            elif isinstance(send.message, rm.RMConfigUpdated) and isinstance(
                self._open.get(send.message.reply_to), rm.AdminConfigUpdate
            ):
                self._wanted[send.message.reply_to] = Accepted
                yield from self._in_force(context)
        self._drained = {
            (name, it.epoch, id_): node.drained
            for name, it in context.partitions.items()
            for id_, node in it.state.nodes.items()
        }

    def _of_node(
        self, context: Context, act: rm.AdminNodeUpdate, facts: Mapping[str, Sequence[Fact]]
    ) -> Iterator[str]:
        partition = context.partitions.get(act.partition)
        before = None
        if partition is not None:
            before = self._drained.get((act.partition, partition.epoch, act.node_id))
        is_done = before is not None and before is not act.drained
        self._wanted[act.reply_to] = Accepted if is_done else Declined
        expected = dict(self._drained)
        if is_done:
            assert partition is not None
            expected[act.partition, partition.epoch, act.node_id] = act.drained
        found = {
            (name, it.epoch, id_): node.drained
            for name, it in context.partitions.items()
            for id_, node in it.state.nodes.items()
        }
        if found != expected:
            yield f"drained are {differing(expected, found)}"
        named = [
            (name, it.by, it.node_id)
            for name, of_partition in facts.items()
            for it in of_partition
            if isinstance(it, AdministratorActed)
        ]
        if named != ([(act.partition, act.by, act.node_id)] if is_done else []):
            yield f"the facts name {named}"
        if facts and not is_done:
            yield f"what is declined leaves facts: {facts}"

    def _in_force(self, context: Context) -> Iterator[str]:
        config = self._admin
        assert config is not None
        for manager in context.registry.managers.values():
            if manager.policy_group in context.registry.configured or manager.is_leaving:
                continue
            yield from _queues_of(context, manager, config)

    # -- event records

    def _publish(self, simulator: Simulator, message: Message) -> None:
        publisher = simulator.machines.get(EVENT_PUBLISHER)
        if not isinstance(publisher, EventPublisher):
            return
        if publisher is not self._publisher:
            # Of one that failed the records are lost, and nobody knows how many.
            self._streams = dict.fromkeys(self._streams)
            self._publisher = publisher
        match message:
            case (
                FactsAppended(rm_id=rm_id, facts=facts)
                | NodeActionsRefused(rm_id=rm_id, refused=facts)
            ) if publisher.wishes.get(rm_id, _USUAL).events_tracked:
                for expected in self._streams.values():
                    if expected is not None:
                        expected.extend(records_of(facts))
            case EventStreamRequested(hearer=hearer, history=history):
                ring = publisher.ring
                first = max(ring.lowest_id, ring.next_id - history)
                self._streams[hearer] = ring.read(first, history) if history else []
            case EventStreamLeft(hearer=hearer):
                self._streams[hearer] = None

    def _of_readers(self, world: World) -> Iterator[str]:
        for address, reader in world.readers.items():
            expected = self._streams.get(address)
            if expected is not None and not reader.has_left:
                yield from _read(address, reader, expected)


def _refused(context: Context, facts: Mapping[str, Sequence[Fact]]) -> Iterator[str]:
    kinds = {name: [type(it) for it in of_partition] for name, of_partition in facts.items()}
    if kinds != {name: [ConfigurationRefused] for name in context.partitions}:
        yield f"a configuration with faults leaves {kinds}"


def _queues_of(
    context: Context, manager: ResourceManager, config: SchedulerConfig
) -> Iterator[str]:
    wanted = {partition_name(manager.rm_id, it.name): it for it in config.partitions}
    found = sorted(name for name, it in context.partitions.items() if it.rm_id == manager.rm_id)
    if found != sorted(wanted):
        yield f"{manager.rm_id} has the partitions {found}, loaded are {sorted(wanted)}"
        return
    for name, described in wanted.items():
        queues = context.partitions[name].state.queues
        for path, queue in _paths(described.root, described.root.name):
            if path not in queues or queues[path].state is QueueState.DRAINING:
                yield f"{path} of {name} was loaded, and is not there"
            elif queue is not described.root and queues[path].spec.max != queue.max:
                yield f"{path} of {name} has {queues[path].spec.max}, loaded was {queue.max}"


def _paths(queue: QueueConfig, path: str) -> Iterator[tuple[str, QueueConfig]]:
    yield path, queue
    for below in queue.children:
        yield from _paths(below, f"{path}.{below.name}")


def _read(address: str, reader: SlowReader, expected: list[EventRecord]) -> Iterator[str]:
    got = [*reader.taken, *reader.feed.kept]
    rest = iter(expected)
    if not all(any(it == record for it in rest) for record in got):
        yield f"{address} gets records that are none of those, or twice, or out of order"
    missed = len(expected) - len(got)
    if missed != reader.feed.overflow:
        yield f"{address} misses {missed} records, and learns of {reader.feed.overflow}"
