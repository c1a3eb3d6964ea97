"""The state of one partition, and the only way to change it.

`apply` takes one fact and brings every book up to date. It is dumb on purpose: whoever writes a
fact has checked it, and every holder of this class (Context, the replica of a scheduler, a replay)
goes through the same code. The dictionaries of amounts are changed in place and never replaced,
so an application can keep the tuple of all books that one of its allocations is written into.

Pending counts the repeats that still wait; allocated counts what is charged, placeholders too
(an application counts those apart).
"""

from collections.abc import Callable
from typing import Any

from yunikorn_actors.domain import facts as f
from yunikorn_actors.domain import node_changes
from yunikorn_actors.domain.allocation import (
    Allocation,
    Ask,
    AskSpec,
    ForeignAllocation,
    Reservation,
    WaitingState,
)
from yunikorn_actors.domain.application import (
    COUNTS_AS_RUNNING,
    FINISHED,
    LEAVES_USER_COUNT,
    Application,
    ApplicationState,
    FinishedApplication,
    Timer,
)
from yunikorn_actors.domain.books import (
    attach,
    books_of,
    detach,
    forget_allocating,
    relink,
    strike,
    waiting,
    write,
)
from yunikorn_actors.domain.config import PartitionConfig
from yunikorn_actors.domain.node import Node
from yunikorn_actors.domain.queue import Queue
from yunikorn_actors.domain.resource import Resource, charge, discharge
from yunikorn_actors.domain.user import Usage


class PartitionState:
    """Truth in Context, a replica in Scheduler."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.revision = 0
        self.config: PartitionConfig | None = None
        self.queues: dict[str, Queue] = {}
        self.nodes: dict[str, Node] = {}
        self.capacity: Resource = {}
        """Sum over the nodes: the max of the root queue. A type no node has is absent."""
        self.applications: dict[str, Application] = {}
        self.finished: dict[int, FinishedApplication] = {}
        self.users: dict[str, dict[str, Usage]] = {}
        self.groups: dict[str, dict[str, Usage]] = {}
        self.foreign: dict[str, ForeignAllocation] = {}
        self.allocation_count = 0
        self.reservation_count = 0
        self.refused_node_actions = 0
        self.held = False
        """Its resource manager is away: nothing is decided."""

    @property
    def root(self) -> Queue:
        return self.queues["root"]

    def queue(self, path: str) -> Queue | None:
        """Look a queue up by its path; names of queues ignore case."""
        return self.queues.get(path.lower())

    def apply(self, fact: f.Fact) -> None:
        self.revision += 1
        _APPLY[type(fact)](self, fact)

    # -- the partition and its queues

    def _on_configured(self, fact: f.PartitionConfigured) -> None:
        self.config = fact.config

    def _on_scheduling_held(self, fact: f.SchedulingHeld) -> None:
        self.held = fact.held

    def _on_queue_added(self, fact: f.QueueAdded) -> None:
        parent_path, _, name = fact.path.rpartition(".")
        parent = self.queues[parent_path] if parent_path else None
        queue = Queue(name, fact.spec, parent)
        self.queues[fact.path] = queue
        if parent is not None:
            parent.children[name] = queue

    def _on_queue_reconfigured(self, fact: f.QueueReconfigured) -> None:
        self.queues[fact.path].configure(fact.spec)

    def _on_queue_state_changed(self, fact: f.QueueStateChanged) -> None:
        self.queues[fact.path].state = fact.state

    def _on_queue_removed(self, fact: f.QueueRemoved) -> None:
        queue = self.queues.pop(fact.path)
        if queue.parent is not None:
            del queue.parent.children[queue.name]

    # -- applications

    def _on_application_added(self, fact: f.ApplicationAdded) -> None:
        queue = self.queues[fact.queue]
        usages = attach(self.users, fact.spec.user, queue)
        app = Application(
            fact.spec, serial=fact.serial, queue=queue, usages=usages, now_ns=fact.at_ns
        )
        self.applications[app.id] = app
        queue.applications[app.serial] = app.id

    def _on_application_rejected(self, fact: f.ApplicationRejected) -> None:
        self.finished[fact.serial] = FinishedApplication(
            spec=fact.spec,
            serial=fact.serial,
            queue="",
            state=ApplicationState.REJECTED,
            message=fact.reason,
            state_log=[(fact.at_ns, ApplicationState.REJECTED)],
        )

    def _on_application_state_changed(self, fact: f.ApplicationStateChanged) -> None:
        app = self.applications.get(fact.application_id)
        if app is None or app.serial != fact.serial:
            self.finished[fact.serial].state = fact.state
            return
        counted, counts = app.state in COUNTS_AS_RUNNING, fact.state in COUNTS_AS_RUNNING
        if counted is not counts:
            for level in app.queue.lineage:
                level.running_apps += 1 if counts else -1
        if app.state is ApplicationState.ACCEPTED:
            forget_allocating(app)
        if counts and not app.started_ns:
            app.started_ns = fact.at_ns
        app.state = fact.state
        app.generation += 1
        app.state_log.append((fact.at_ns, fact.state))
        if fact.state in LEAVES_USER_COUNT:
            for usage in (*app.usages, *app.group_usages):
                usage.running.pop(app.serial, None)
        if fact.state in FINISHED:
            self._detach(app)
            self.finished[app.serial] = FinishedApplication(
                spec=app.spec,
                serial=app.serial,
                queue=app.queue.path,
                state=fact.state,
                message=fact.message,
                state_log=app.state_log,
            )

    def _on_application_removed(self, fact: f.ApplicationRemoved) -> None:
        app = self.applications[fact.application_id]
        if app.state in COUNTS_AS_RUNNING:
            for level in app.queue.lineage:
                level.running_apps -= 1
        self._detach(app)

    def _on_application_forgotten(self, fact: f.ApplicationForgotten) -> None:
        del self.finished[fact.serial]

    def _detach(self, app: Application) -> None:
        """The application leaves the active ones, its queue, and the books of its user."""
        forget_allocating(app)
        del self.applications[app.id]
        del app.queue.applications[app.serial]
        detach(self.users, app.spec.user, app)
        if app.group:
            detach(self.groups, app.group, app)

    def _on_application_linked(self, fact: f.ApplicationLinked) -> None:
        relink(self.groups, self.applications[fact.application_id], fact.group)

    def _on_timer_armed(self, fact: f.TimerArmed) -> None:
        timer = Timer(generation=fact.generation, due_ns=fact.due_ns)
        self.applications[fact.application_id].timers[fact.kind] = timer

    def _on_timer_cancelled(self, fact: f.TimerCancelled) -> None:
        self.applications[fact.application_id].timers.pop(fact.kind, None)

    # -- asks

    def _on_ask_added(self, fact: f.AskAdded) -> None:
        spec = fact.spec
        app = self.applications[spec.application_id]
        app.submitted_ns = min(app.submitted_ns, fact.created_ns)
        app.asks[spec.key] = Ask(
            spec=spec,
            created_ns=fact.created_ns,
            sequence=fact.sequence,
            remaining=spec.max_allocations,
        )
        write(app.pending_books, waiting(spec, spec.max_allocations))

    def _on_ask_replaced(self, fact: f.AskReplaced) -> None:
        app = self.applications[fact.spec.application_id]
        ask = app.asks[fact.spec.key]
        strike(app.pending_books, waiting(ask.spec, ask.remaining))
        ask.spec = fact.spec
        ask.remaining = fact.spec.max_allocations - ask.taken
        write(app.pending_books, waiting(ask.spec, ask.remaining))

    def _on_ask_removed(self, fact: f.AskRemoved) -> None:
        app = self.applications[fact.application_id]
        ask = app.asks[fact.key]
        strike(app.pending_books, waiting(ask.spec, ask.remaining))
        ask.remaining = 0
        if not ask.uuids:
            del app.asks[fact.key]

    def _on_ask_reported(self, fact: f.AskReported) -> None:
        self.applications[fact.application_id].asks[fact.key].told = fact.state

    # -- allocations

    def _on_allocation_committed(self, fact: f.AllocationCommitted) -> None:
        app = self.applications[fact.application_id]
        ask = app.asks[fact.key]
        ask.remaining -= 1
        ask.taken += 1
        ask.told = WaitingState.SCHEDULED
        for kind, quantity in ask.spec.resource.items():
            for book in app.pending_books:
                book[kind] -= quantity
        self._place(app, ask, ask.spec, fact.uuid, fact.node_id, fact.at_ns)

    def _on_allocation_recovered(self, fact: f.AllocationRecovered) -> None:
        spec = fact.spec
        app = self.applications[spec.application_id]
        app.submitted_ns = min(app.submitted_ns, fact.created_ns)
        ask = app.asks.get(spec.key)
        if ask is None:
            ask = Ask(spec=spec, created_ns=fact.created_ns, sequence=fact.sequence, remaining=0)
            app.asks[spec.key] = ask
        ask.taken += 1
        self._place(app, ask, spec, fact.uuid, fact.node_id, fact.at_ns)

    def _place(
        self, app: Application, ask: Ask, spec: AskSpec, uuid: str, node_id: str, at_ns: int
    ) -> None:
        resource = spec.resource
        allocation = Allocation(
            uuid=uuid, spec=spec, node_id=node_id, resource=resource, allocated_ns=at_ns
        )
        ask.uuids = (*ask.uuids, uuid) if ask.uuids else (uuid,)
        app.allocations[uuid] = allocation
        self.allocation_count += 1
        write(app.placeholder_books if spec.placeholder else app.allocated_books, resource)
        node = self.nodes[node_id]
        node.allocations[uuid] = allocation
        allocated, available = node.allocated, node.available
        for kind, quantity in resource.items():
            allocated[kind] = allocated.get(kind, 0) + quantity
            available[kind] = available.get(kind, 0) - quantity
        if app.state is ApplicationState.ACCEPTED:
            for level in app.queue.lineage:
                level.allocating[app.serial] = None
        if app.serial not in app.usages[0].running:
            for usage in (*app.usages, *app.group_usages):
                usage.running[app.serial] = None

    def _on_reservation_made(self, fact: f.ReservationMade) -> None:
        ask = self.applications[fact.application_id].asks[fact.key]
        ask.reserved = (*ask.reserved, fact.node_id)
        ask.told = WaitingState.RESERVED
        self.nodes[fact.node_id].reservations[fact.application_id, fact.key] = Reservation(
            application_id=fact.application_id,
            key=fact.key,
            node_id=fact.node_id,
            required=fact.required,
            made_ns=fact.at_ns,
        )
        self.reservation_count += 1

    def _on_reservation_dropped(self, fact: f.ReservationDropped) -> None:
        ask = self.applications[fact.application_id].asks[fact.key]
        ask.reserved = tuple(id_ for id_ in ask.reserved if id_ != fact.node_id)
        if ask.told is WaitingState.RESERVED and not ask.reserved:
            ask.told = WaitingState.UNTOLD
        del self.nodes[fact.node_id].reservations[fact.application_id, fact.key]
        self.reservation_count -= 1

    def _on_allocation_resized(self, fact: f.AllocationResized) -> None:
        app = self.applications[fact.application_id]
        allocation = app.allocations[fact.uuid]
        node = self.nodes[allocation.node_id]
        books = books_of(app, allocation)
        strike(books, allocation.resource)
        discharge(node.allocated, allocation.resource)
        charge(node.available, allocation.resource)
        allocation.resource = fact.resource
        write(books, fact.resource)
        charge(node.allocated, fact.resource)
        discharge(node.available, fact.resource)

    def _on_release_requested(self, fact: f.ReleaseRequested) -> None:
        self.applications[fact.application_id].allocations[fact.uuid].releasing = fact.type

    def _on_allocation_released(self, fact: f.AllocationReleased) -> None:
        app = self.applications[fact.application_id]
        allocation = app.allocations.pop(fact.uuid)
        self.allocation_count -= 1
        strike(books_of(app, allocation), allocation.resource)
        node = self.nodes[allocation.node_id]
        del node.allocations[fact.uuid]
        discharge(node.allocated, allocation.resource)
        charge(node.available, allocation.resource)
        if not app.allocations:
            forget_allocating(app)
        ask = app.asks[allocation.spec.key]
        ask.uuids = tuple(uuid for uuid in ask.uuids if uuid != fact.uuid)
        if not ask.uuids and not ask.remaining:
            del app.asks[allocation.spec.key]


_APPLY: dict[type, Callable[[PartitionState, Any], None]] = {
    f.PartitionConfigured: PartitionState._on_configured,
    f.SchedulingHeld: PartitionState._on_scheduling_held,
    f.QueueAdded: PartitionState._on_queue_added,
    f.QueueReconfigured: PartitionState._on_queue_reconfigured,
    f.QueueStateChanged: PartitionState._on_queue_state_changed,
    f.QueueRemoved: PartitionState._on_queue_removed,
    f.NodeAdded: node_changes.node_added,
    f.NodeResized: node_changes.node_resized,
    f.NodeAttributesReplaced: node_changes.node_attributes_replaced,
    f.NodeScheduleChanged: node_changes.node_schedule_changed,
    f.NodeRemoved: node_changes.node_removed,
    f.NodeActionRefused: node_changes.node_action_refused,
    f.ApplicationAdded: PartitionState._on_application_added,
    f.ApplicationRejected: PartitionState._on_application_rejected,
    f.ApplicationStateChanged: PartitionState._on_application_state_changed,
    f.ApplicationLinked: PartitionState._on_application_linked,
    f.ApplicationRemoved: PartitionState._on_application_removed,
    f.ApplicationForgotten: PartitionState._on_application_forgotten,
    f.TimerArmed: PartitionState._on_timer_armed,
    f.TimerCancelled: PartitionState._on_timer_cancelled,
    f.AskAdded: PartitionState._on_ask_added,
    f.AskReplaced: PartitionState._on_ask_replaced,
    f.AskRemoved: PartitionState._on_ask_removed,
    f.AskReported: PartitionState._on_ask_reported,
    f.AllocationCommitted: PartitionState._on_allocation_committed,
    f.AllocationRecovered: PartitionState._on_allocation_recovered,
    f.ReservationMade: PartitionState._on_reservation_made,
    f.ReservationDropped: PartitionState._on_reservation_dropped,
    f.AllocationResized: PartitionState._on_allocation_resized,
    f.ReleaseRequested: PartitionState._on_release_requested,
    f.AllocationReleased: PartitionState._on_allocation_released,
    f.ForeignAllocationPut: node_changes.foreign_put,
    f.ForeignAllocationRemoved: node_changes.foreign_removed,
}
