"""Oracles of whole runs: what must have come about when everything was delivered and confirmed.

- `Rest`: nothing waits that could go on, nothing is unconfirmed that was confirmed, nobody is
  parked (G11, G29, G30).
- `Agreement`: the resource manager and the core believe the same to be running.
- `Zero`: when all applications are gone and time has passed, nothing is left (G29).
"""

from collections.abc import Iterable, Iterator

from yunikorn_actors import si
from yunikorn_actors.domain.ids import partition_name
from yunikorn_actors.domain.liveness import Refuses, stuck
from yunikorn_actors.domain.partition import PartitionState
from yunikorn_actors.lab.world import Oracle, World
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.machine import InvariantViolation
from yunikorn_actors.messages.base import RM_PROXY, Delivery, is_callback
from yunikorn_actors.messages.rm_calls import CallUpdateAllocation
from yunikorn_actors.messages.rm_events import (
    AllocationsRequested,
    ApplicationsRequested,
    NodesRequested,
    RegistrationRequested,
    RMLost,
    RMUnregistered,
)
from yunikorn_actors.si.constants import APP_TAG_COMPLETING_DISABLE
from yunikorn_actors.sim.checkers import default_checkers
from yunikorn_actors.sim.simulator import Checker, Simulator


def oracles() -> tuple[Checker, ...]:
    """Return all of them, for one run: those of single messages and those of whole runs."""
    return (*default_checkers(), Rest(), Agreement(), Zero())


def _fail(when: str, faults: Iterable[str]) -> None:
    found = tuple(faults)
    if found:
        raise InvariantViolation(f"{when}: " + "; ".join(found))


class Rest(Oracle):
    def at_rest(self, world: World) -> None:
        for partition in world.context.partitions.values():
            if partition.state.is_held:
                # Its resource manager is lost, and hears and confirms nothing.
                continue
            _fail("at rest", _unfinished(world, partition.state))
            refuses = refusals_of(world.stage.manager(partition.rm_id))
            _fail("at rest", stuck(partition.state, refuses, APP_TAG_COMPLETING_DISABLE))


def refusals_of(manager: si.ResourceManagerCallback | None) -> Refuses:
    """Ask a resource manager itself which ask it refuses on which node."""
    if manager is None:
        return lambda _key, _node: False

    def refuses(key: str, node_id: str) -> bool:
        args = si.PredicatesArgs(allocation_key=key, node_id=node_id)
        return manager.predicates(args) is not None

    return refuses


def _unfinished(world: World, state: PartitionState) -> Iterator[str]:
    for app in state.applications.values():
        for uuid, item in app.allocations.items():
            if item.releasing is not None and not _is_never_confirmed(world, item.spec.key):
                yield f"G29: {item.spec.key} of {app.id} is still to be confirmed"
                if uuid in app.swaps:
                    yield f"G11: {app.swaps[uuid].key} of {app.id} is parked for it"


def _is_never_confirmed(world: World, key: str) -> bool:
    return any(name.partition(" ")[0] == key for name in world.unanswered)


class Zero(Oracle):
    def drained(self, world: World) -> None:
        for partition in world.context.partitions.values():
            _fail("in the end", _left(partition.state))
        timers = list(world.simulator._timers)
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


class Agreement(Oracle):
    """Keep the books that a resource manager has, by what it says and is told."""

    def __init__(self) -> None:
        self._callbacks: dict[str, str] = {}
        """The callback of the last registration of each resource manager."""
        self._running: dict[str, dict[str, si.Allocation]] = {}
        """What was announced to a callback and not ended since, by UUID."""
        self._ended: set[tuple[str, str]] = set()
        """What a resource manager ended by UUID and has not reported since: a callback and a UUID.

        The core announces it all the same if its end crosses the answer to the report.
        """
        self._ended_by_name: dict[tuple[str, str, str], None] = {}
        """Partition, application and key of what was ended without a UUID; each may be empty.

        The core ends all of that name then, also what is still on its way to the callback, and says
        so only to requests of some types: nobody can keep books of it.
        """
        self._withdrawn: dict[tuple[str, str, str], None] = {}
        """Asks that are wanted no more: partition, application, key."""
        self._removed: dict[tuple[str, str], None] = {}
        """Applications that are wanted no more."""

    def delivered(self, _: Simulator, delivery: Delivery) -> None:
        message = delivery.message
        if delivery.mailbox == RM_PROXY:
            match message:
                case RegistrationRequested():
                    self._callbacks[message.request.rm_id] = message.callback
                case RMLost(rm_id=rm_id) | RMUnregistered(rm_id=rm_id):
                    self._callbacks.pop(rm_id, None)
                case AllocationsRequested():
                    self._note_allocations(message.request)
                case ApplicationsRequested():
                    self._note_applications(message.request)
                case NodesRequested():
                    self._note_nodes(message.request)
        elif is_callback(delivery.mailbox) and isinstance(message, CallUpdateAllocation):
            running = self._running.setdefault(delivery.mailbox, {})
            for ended in message.response.released:
                if ended.termination_type is si.TerminationType.STOPPED_BY_RM:
                    running.pop(ended.uuid, None)
            running.update(
                (item.uuid, item)
                for item in message.response.new
                if (delivery.mailbox, item.uuid) not in self._ended
            )

    def _note_allocations(self, request: si.AllocationRequest) -> None:
        wanted: tuple[si.AllocationAsk | si.Allocation, ...] = (
            *request.asks,
            *request.allocations,
        )
        for ask in wanted:
            key = (_partition(request.rm_id, ask), ask.application_id, ask.allocation_key)
            self._withdrawn.pop(key, None)
        releases = request.releases or si.AllocationReleasesRequest()
        for gone in releases.allocation_asks_to_release:
            if gone.allocation_key:
                key = (_partition(request.rm_id, gone), gone.application_id, gone.allocation_key)
                self._withdrawn[key] = None
        callback = self._callbacks.get(request.rm_id, "")
        self._ended.difference_update((callback, item.uuid) for item in request.allocations)
        running = self._running.get(callback, {})
        for end in releases.allocations_to_release:
            running.pop(end.uuid, None)
            if end.uuid:
                self._ended.add((callback, end.uuid))
            else:
                names = (_partition(request.rm_id, end), end.application_id, end.allocation_key)
                self._ended_by_name[names] = None

    def _note_applications(self, request: si.ApplicationRequest) -> None:
        for new in request.new:
            self._removed.pop((_partition(request.rm_id, new), new.application_id), None)
        for old in request.remove:
            partition = _partition(request.rm_id, old)
            self._removed[partition, old.application_id] = None

    def _note_nodes(self, request: si.NodeRequest) -> None:
        for node in request.nodes:
            for item in node.existing_allocations:
                partition = _partition(request.rm_id, item)
                self._withdrawn.pop((partition, item.application_id, item.allocation_key), None)

    def at_rest(self, world: World) -> None:
        _fail("at rest", self._differences(world.context))

    def _differences(self, context: Context) -> Iterator[str]:
        there: dict[str, dict[str, str]] = {}
        for name, partition in context.partitions.items():
            running = there.setdefault(partition.rm_id, {})
            for app in partition.state.applications.values():
                running.update((uuid, it.spec.key) for uuid, it in app.allocations.items())
                if (name, app.id) in self._removed:
                    yield f"G28: {app.id} was removed, and is there"
                for key, ask in app.asks.items():
                    if ask.spec.max_allocations == 1 and (name, app.id, key) in self._withdrawn:
                        yield f"G16: {key} of {app.id} was withdrawn, and is there"
        for rm_id, callback in self._callbacks.items():
            running, believed = there.get(rm_id, {}), self._running.get(callback, {})
            if rm_id not in there:
                yield f"G28: {rm_id} is registered, and has no partition"
            for uuid, item in believed.items():
                if uuid not in running and not self._was_ended_by_name(rm_id, item):
                    yield f"G16: {rm_id} believes that {item.allocation_key} runs, and it does not"

    def _was_ended_by_name(self, rm_id: str, item: si.Allocation) -> bool:
        partition = _partition(rm_id, item)
        return any(
            ended == partition
            and application_id in {"", item.application_id}
            and key in {"", item.allocation_key}
            for ended, application_id, key in self._ended_by_name
        )


def _partition(rm_id: str, item: object) -> str:
    name: str = getattr(item, "partition_name", "") or getattr(item, "partition", "")
    return partition_name(rm_id, name)
