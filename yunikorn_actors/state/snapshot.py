"""Snapshots: a partition as plain values from which it can be made again, such as a replica.

An image holds what cannot be worked out; every sum is added up again, so a partition that was made
from one has been counted anew. Whatever has an order keeps it, because planning goes by it.
"""

from operator import methodcaller
from typing import Any, Final, TypeVar

from msgspec import convert
from msgspec.structs import replace

from yunikorn_actors.config import PartitionConfig
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import Allocation, Ask, Reservation
from yunikorn_actors.state.applications import (
    COUNTS_AS_RUNNING,
    Application,
    ApplicationSpec,
    ApplicationState,
    FinishedApplication,
    Incoming,
    StateLog,
    Swap,
    TaskGroup,
    Timer,
    Usage,
    UsageHistory,
)
from yunikorn_actors.state.facts import apply
from yunikorn_actors.state.gates import GateKind
from yunikorn_actors.state.ledger import count_holding, relink, waiting, write
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.partition import LongWork, PartitionState
from yunikorn_actors.state.preemption import book_earmark, leaving_books, reserve
from yunikorn_actors.state.queues import QueueSpec, QueueState
from yunikorn_actors.values.recorded_form import as_recorded
from yunikorn_actors.values.resource import Resource, charge, discharge, pruned, saturated

Image = dict[str, Any]
_S = TypeVar("_S")
_COPY: Final = methodcaller("__copy__")

_APPLICATION: Final[dict[str, Any]] = {
    "state": ApplicationState,
    "submitted_ns": int,
    "started_ns": int,
    "state_log": StateLog,
    "timers": dict[str, Timer],
    "asks": dict[str, Ask],
    "allocations": dict[str, Allocation],
    "task_groups": dict[str, TaskGroup],
    "swaps": dict[str, Swap],
    "is_admitted": bool,
    "lapsed_ns": int,
    "placed": Resource,
    "history": UsageHistory,
}
"""What an application is set to be; everything else about it follows."""


def image_of(state: PartitionState) -> Image:
    """Return the state as it would come back from a recording: lists instead of tuples."""
    image: Image = as_recorded(_image_of(state))
    return image


class LivingImage(Image):
    """The image of a state that nobody else needs any more, for a core in the same process.

    Its Context takes the state over. Planners begin with the image, in which asks and allocations
    are copies: encoding and decoding them is most of what an image costs. Sums of allocations are
    in it too (`used`), so they are not added up again.
    """

    def __init__(self, state: PartitionState, *, is_planned_by_context: bool) -> None:
        """Where Context plans by itself nothing begins with copies, so there are none."""
        image, applications = _image_of(state), list(state.applications.values())
        for row in image["applications"]:
            del row["asks"], row["allocations"]
        for row in image["nodes"]:
            del row["allocations"]
        super().__init__(as_recorded(image))
        for row, node in zip(self["nodes"], state.nodes.values(), strict=True):
            # By the very names that applications have: to compare others takes longer.
            row["allocations"] = list(node.allocations)
        for row, app in zip(self["applications"], applications, strict=True):
            row["asks"], row["allocations"] = app.asks, app.allocations
        if not is_planned_by_context:
            # Context and a planner would each change the asks of the other: planners get copies of
            # their own.
            self._copy(applications, state)
        self._state = state

    def _copy(self, applications: list[Application], state: PartitionState) -> None:
        for row, app in zip(self["applications"], applications, strict=True):
            row["asks"], row["allocations"] = _copied_asks(app.asks), _copied(app.allocations)
            row["used"] = {False: pruned(app.allocated), True: pruned(app.placeholders)}
        for row, node in zip(self["nodes"], state.nodes.values(), strict=True):
            # With swaps or devices the sum alone is not enough: then the work is added up one by
            # one.
            if not node.incoming and node.parts is None:
                row["used"] = pruned(node.allocated)

    def give(self, state: PartitionState) -> None:
        """Make an empty state the one that this is of."""
        # Its own folds stay: they know the policies of this core.
        folds = state.folds
        vars(state).update(vars(self._state))
        state.folds = folds
        if folds is not None:
            folds.restore(state, self.get("folds"))


def _copied_asks(asks: dict[str, Ask]) -> dict[str, Ask]:
    copies = _copied(asks)
    # A dictionary of several allocations would be shared by the copies.
    for ask in copies.values():
        if not isinstance(ask.uuids, tuple):
            ask.uuids = dict(ask.uuids)
    return copies


def _copied(structs: dict[str, _S]) -> dict[str, _S]:
    """Copy each of many, without a frame of Python for each."""
    return dict(zip(structs, map(_COPY, structs.values()), strict=True))


def _image_of(state: PartitionState) -> Image:
    image: Image = {
        "revision": state.revision,
        "held": state.suspended,
        "behind": state.is_backpressured,
        "refused_node_actions": state.refused_node_actions,
        "config": state.config,
        "queues": [
            [path, queue.spec, queue.state, list(queue.reserving)]
            for path, queue in state.queues.items()
        ],
        "users": _reserving(state.users),
        "groups": _reserving(state.groups),
        "nodes": [_node(node) for node in state.nodes.values()],
        "foreign": list(state.foreign.values()),
        "applications": [_application(app) for app in state.applications.values()],
        # Sums over a long life may be beyond what a message holds.
        "finished": [
            replace(app, history=app.history.saturated()) for app in state.finished.values()
        ],
        "rejected": list(state.rejected),
        "quotas": state.quotas,
        "admitted": list(state.admitted.values()),
        "unconfirmed": state.unconfirmed,
    }
    # Hardly any queue has a budget, and images of earlier versions have none.
    if preempted := _preempted(state):
        image["preempted"] = preempted
    if state.long_work is not None:
        image["long_work"] = state.long_work
    if state.folds is not None and (folds := state.folds.image()):
        image["folds"] = folds
    return image


def _preempted(state: PartitionState) -> list[Any]:
    return [
        [path, list(map(list, queue.preempted.items()))]
        for path, queue in state.queues.items()
        if queue.preempted
    ]


def _reserving(owners: dict[str, dict[str, Usage]]) -> list[Any]:
    """Who has a place by a reservation, in the order of their rank; queues have none here."""
    return [
        [owner, path, list(usage.reserving)]
        for owner, by_path in sorted(owners.items())
        for path, usage in sorted(by_path.items())
        if usage.reserving
    ]


def _node(node: Node) -> Image:
    return {
        "node_id": node.id,
        "capacity": node.capacity,
        "occupied": node.occupied_reported,
        "attributes": node.attributes,
        "drained": node.drained,
        "ready": node.ready,
        # Hardly any is, and images of earlier versions have none.
        **({"awaited": True} if node.awaited else {}),
        "allocations": list(node.allocations),
        "reservations": list(node.reservations.values()),
        "incoming": node.incoming,
    }


def _application(app: Application) -> Image:
    """Amounts that were added up over time are clamped: a message holds no more."""
    told = {name: getattr(app, name) for name in _APPLICATION}
    return {
        **told,
        "crowd": app.run_limit,
        "placed": saturated(app.placed),
        "history": app.history.saturated(),
        "spec": app.spec,
        "queue": app.queue.path,
        "serial": app.serial,
        "group": app.group,
        "counts": app.serial in app.usages[0].running,
        # Hardly any has it, and images of earlier versions have none.
        **({"owed": app.owed} if app.owed else {}),
        **({"reported": saturated(app.reported)} if any(app.reported.values()) else {}),
        **({"spared": saturated(app.spared)} if any(app.spared.values()) else {}),
    }


def restore(state: PartitionState, image: Image) -> None:
    """Make an empty state the one that an image is of."""
    # Queues and nodes first, then what stands in and on them, then ranks and books that depend on
    # both.
    _restore_cluster(state, image)
    for app in image["applications"]:
        _restore_application(state, app)
    for node in image["nodes"]:
        _restore_work(state, state.nodes[node["node_id"]], node)
    _restore_places(state, image)
    for ended in convert(image["finished"], list[FinishedApplication]):
        state.remember(ended)
    state.rejected = dict.fromkeys(image["rejected"])
    state.quotas = dict(image["quotas"])
    state.admitted = {state.applications[id_].serial: id_ for id_ in image["admitted"]}
    state.unconfirmed = dict(image["unconfirmed"])
    state.suspended, state.is_backpressured = image["held"], image["behind"]
    state.long_work = convert(image.get("long_work"), LongWork | None)
    state.refused_node_actions = image["refused_node_actions"]
    # Last: the facts that were applied here have counted revisions of their own.
    state.revision = image["revision"]
    if state.folds is not None:
        state.folds.restore(state, image.get("folds"))


def _restore_cluster(state: PartitionState, image: Image) -> None:
    if image["config"] is not None:
        state.config = convert(image["config"], PartitionConfig)
    for path, spec, queue_state, _ in image["queues"]:
        # By facts, so that everything that follows from a queue or a node follows here too.
        apply(state, f.QueueAdded(path=path, spec=convert(spec, QueueSpec), at_ns=0))
        state.queues[path].state = QueueState(queue_state)
    for path, entries in image.get("preempted", ()):
        state.queues[path].preempted = dict(entries)
    for node in image["nodes"]:
        sizes = {name: node[name] for name in ("node_id", "capacity", "occupied", "attributes")}
        added = f.NodeAdded(**sizes, drained=node["drained"], ready=node["ready"], at_ns=0)
        apply(state, added)
        if node.get("awaited"):
            apply(state, _awaited(added))
    for foreign in image["foreign"]:
        apply(state, f.ForeignAllocationPut(**foreign, at_ns=0))


def _awaited(node: f.NodeAdded) -> f.NodeScheduleChanged:
    return f.NodeScheduleChanged(
        node_id=node.node_id,
        was_drained=node.drained,
        was_ready=node.ready,
        drained=node.drained,
        ready=node.ready,
        awaited=True,
        at_ns=node.at_ns,
    )


def _restore_places(state: PartitionState, image: Image) -> None:
    """Count which applications have a place without running, in their order of rank."""
    # Counting gives an order of its own; the kept one replaces it, because it decides who starts.
    for app in state.applications.values():
        count_holding(app)
    for path, _, _, serials in image["queues"]:
        state.queues[path].reserving = dict.fromkeys(serials)
    for owners, kept in ((state.users, image["users"]), (state.groups, image["groups"])):
        for owner, path, serials in kept:
            owners[owner][path].reserving = dict.fromkeys(serials)


def _restore_application(state: PartitionState, image: Image) -> None:
    spec = convert(image["spec"], ApplicationSpec)
    apply(
        state, f.ApplicationAdded(spec=spec, queue=image["queue"], serial=image["serial"], at_ns=0)
    )
    app = state.applications[spec.application_id]
    if image["group"]:
        # The group before the state: charging below writes into its books.
        relink(state.groups, app, image["group"])
    for name, kind in _APPLICATION.items():
        setattr(app, name, convert(image[name], kind))
    app.run_limit = GateKind(image["crowd"])
    app.owed = dict(image.get("owed", {}))
    app.reported = dict(image.get("reported", {}))
    app.spared = dict(image.get("spared", {}))
    # The state was set and not reached by facts, so the counts of the queues follow here.
    for level in app.queue.lineage:
        level.running_apps += app.state in COUNTS_AS_RUNNING
    if image["counts"]:
        for usage in (*app.usages, *app.group_usages):
            usage.running[app.serial] = None
    for ask in app.asks.values():
        if ask.remaining:
            write(app.pending_books, waiting(ask.spec, ask.remaining))
            app.waiting_placeholders += ask.remaining * ask.spec.placeholder
    _charge_allocations(app, image.get("used"))
    state.owners.update(dict.fromkeys(app.allocations, app.id))


def _charge_allocations(app: Application, used: dict[bool, Resource] | None) -> None:
    """Write what runs into the books, as one sum for each book: there are few books.

    `used` is that sum, of real allocations and of placeholders, where the image has it.
    """
    # Before the sums, one by one: what leaves differs from one to the next.
    for allocation in app.allocations.values():
        if allocation.comes_free:
            write(leaving_books(app, allocation), allocation.resource)
    if used is None:
        used = {False: {}, True: {}}
        for allocation in app.allocations.values():
            charge(used[allocation.spec.placeholder], allocation.resource)
    write(app.allocated_books, used[False])
    write(app.placeholder_books, used[True])


def _restore_work(state: PartitionState, node: Node, image: Image) -> None:
    """Put on a node what is on it; whom that belongs to is there already."""
    apps, owners = state.applications, state.owners
    work = {uuid: apps[owners[uuid]].allocations[uuid] for uuid in image["allocations"]}
    node.allocations.update(work)
    # Sums from the image where it has them: adding up is most of the work of a restore.
    total: Resource | None = image.get("used")
    if total is None:
        total = {}
        for allocation in work.values():
            charge(total, allocation.resource)
            node.take_devices(allocation.devices, allocation.resource)
    charge(node.allocated, total)
    discharge(node.available, total)
    for placeholder, coming in convert(image["incoming"], dict[str, Incoming]).items():
        node.take_in(placeholder, coming)
    for reservation in convert(image["reservations"], tuple[Reservation, ...]):
        app = state.applications[reservation.application_id]
        reserve(node, reservation)
        book_earmark(app, node, reservation.promised)
        state.reservation_count += reservation.repeats
        app.reservation_count += reservation.repeats
