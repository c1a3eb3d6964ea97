"""The invariants of a partition after every message, derived from scratch.

Each check takes the state, works the truth out of the smallest parts (asks, allocations, nodes) and
compares it with the books. The ids (G01 and so on) are those of docs/reference/invariants.md. This
is for simulations and tests, and for a health check on demand: it costs time in the size of the
state. A simulation looks after nearly every message, so sums are loops and not calls.
"""

from collections.abc import Callable, Iterable, Iterator

from yunikorn_actors.checks.configured_queues import described
from yunikorn_actors.state.applications import (
    COUNTS_AS_RUNNING,
    COUNTS_BY_HOLDING,
    FINISHED,
    LEAVES_USER_COUNT,
    Application,
    ApplicationState,
    Swap,
    Usage,
)
from yunikorn_actors.state.device_fit import could_hold
from yunikorn_actors.state.gangs import waits_for_gang
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.partition import LongWorkKind, PartitionState
from yunikorn_actors.state.preemption import is_overdrawn, is_overpromised
from yunikorn_actors.state.queues import Queue, QueueState
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.values.devices import WHOLE
from yunikorn_actors.values.resource import (
    Resource,
    charge,
    describe,
    discharge,
    equals,
    fits_in,
    pruned,
)
from yunikorn_actors.values.tags import GPU, GPU_DEVICES

# What must hold of placeholders and of swaps in flight (G10, G11, G17), derived from scratch.


def links(state: PartitionState) -> Iterator[str]:
    """Every parked repeat has one released placeholder, and what it holds on a node is known."""
    for app in state.applications.values():
        yield from links_of(state, app)
    for node in state.nodes.values():
        for uuid, item in node.incoming.items():
            owner = state.applications.get(item.application_id)
            if owner is None or uuid not in owner.swaps:
                yield f"node {node.id} holds room for {uuid}, which is in no swap"


def links_of(state: PartitionState, app: Application) -> Iterator[str]:
    for uuid, swap in app.swaps.items():
        yield from _link(state, app, uuid, swap)
    linked: dict[str, int] = {}
    for swap in app.swaps.values():
        linked[swap.key] = linked.get(swap.key, 0) + 1
    for key, ask in app.asks.items():
        if ask.parked != linked.get(key, 0):
            yield f"ask {key} has {ask.parked} repeats parked, {linked.get(key, 0)} are linked"


def _link(state: PartitionState, app: Application, uuid: str, swap: Swap) -> Iterator[str]:
    placeholder, ask = app.allocations.get(uuid), app.asks.get(swap.key)
    if placeholder is None or not placeholder.spec.placeholder:
        yield f"{swap.key} is parked for {uuid}, which is no placeholder"
    elif placeholder.releasing is not TerminationType.PLACEHOLDER_REPLACED:
        yield f"{swap.key} is parked for a placeholder that was not asked back for it"
    elif ask is None or ask.spec.task_group != placeholder.spec.task_group:
        yield f"{swap.key} is parked for a placeholder of another task group"
    elif not fits_in(ask.spec.resource, placeholder.resource):
        yield f"{swap.key} is parked for a placeholder that is smaller"
    elif swap.crosses is (swap.node_id == placeholder.node_id):
        # In place means the same node, and across another one.
        where = placeholder.node_id
        yield f"{swap.key} is parked for node {swap.node_id}, its placeholder is on {where}"
    node = state.nodes.get(swap.node_id)
    if node is None or (uuid in node.incoming) is not swap.crosses:
        yield f"{swap.key} is parked for node {swap.node_id}, which does not know it"


def placeholders(state: PartitionState) -> Iterator[str]:
    """Every placeholder that was asked for waits, stands, was replaced or timed out."""
    for app in state.applications.values():
        alive: dict[str, int] = {}
        for item in app.allocations.values():
            if item.spec.placeholder:
                alive[item.spec.task_group] = alive.get(item.spec.task_group, 0) + 1
        waiting = 0
        for ask in app.asks.values():
            if ask.spec.placeholder and ask.remaining:
                alive[ask.spec.task_group] = alive.get(ask.spec.task_group, 0) + ask.remaining
                waiting += ask.remaining
        counted = {name: group.alive for name, group in app.task_groups.items() if group.alive > 0}
        if alive != counted:
            yield f"{app.id} has placeholders {alive}, its groups count {counted}"
        if waiting != app.waiting_placeholders:
            yield f"{app.id} counts {app.waiting_placeholders} waiting placeholders, not {waiting}"


_T = TerminationType


def violations(state: PartitionState) -> list[str]:
    """Return one line for each contradiction, starting with the id of the invariant."""
    return [f"{id_}: {what}" for id_, check in CHECKS for what in check(state)]


def total(parts: Iterable[Resource]) -> Resource:
    """Add up without the functions that keep the books, which are checked by it."""
    found: Resource = {}
    for part in parts:
        for kind, quantity in part.items():
            found[kind] = found.get(kind, 0) + quantity
    return found


def _differ(name: str, book: Resource, truth: Resource) -> Iterator[str]:
    if book != truth and not equals(book, truth):
        yield f"{name} is {describe(pruned(book))}, its parts make {describe(pruned(truth))}"


def _node_arithmetic(state: PartitionState) -> Iterator[str]:
    for node in state.nodes.values():
        parts = (
            *(item.resource for item in node.allocations.values()),
            *(item.resource for item in node.incoming.values()),
        )
        yield from _differ(f"allocated of node {node.id}", node.allocated, total(parts))
        foreign = total(item.resource for item in node.foreign.values())
        charge(foreign, node.occupied_reported)
        yield from _differ(f"occupied of node {node.id}", node.occupied, foreign)
        whole = (node.allocated, node.occupied, node.available)
        yield from _differ(f"capacity of node {node.id}", node.capacity, total(whole))
        yield from devices_on(node)


def devices_on(node: Node) -> Iterator[str]:
    """What is wrong with the devices of a node: the parts of each make one, whole asks get whole.

    Where more was reported as running than a device has, less than nothing of it is free.
    """
    if node.parts is None:
        return
    free = [WHOLE] * int(node.attributes[GPU_DEVICES])
    held = [(item.devices, item.resource) for item in node.allocations.values()]
    held += [(item.devices, item.resource) for item in node.incoming.values()]
    for devices, resource in held:
        count, amount = len(devices), resource.get(GPU, 0)
        if not count:
            continue
        shared = count == 1 and 0 < amount < WHOLE
        if len(set(devices)) < count or not (shared or amount == WHOLE * count):
            yield f"node {node.id} gives devices {devices} for {amount} of {GPU}"
        for device in devices:
            if device < len(free):
                # Shared out in equal parts, as whole asks have whole devices.
                free[device] -= amount // count
    if free != node.parts:
        yield f"of the devices of node {node.id} {node.parts} are free, their parts make {free}"


def capacity(state: PartitionState) -> Iterator[str]:
    truth = total(node.capacity for node in state.nodes.values())
    yield from _differ("capacity of the partition", state.capacity, truth)
    if not all(state.capacity.values()):
        yield f"capacity keeps a type of zero: {describe(state.capacity)}"
    schedulable = sum(node.is_schedulable for node in state.nodes.values())
    if state.schedulable_count != schedulable:
        yield f"{state.schedulable_count} nodes are said to take work, {schedulable} do"


def _pending(app: Application) -> Iterator[Resource]:
    for ask in app.asks.values():
        yield {kind: size * ask.remaining for kind, size in ask.spec.resource.items()}


def _application_arithmetic(state: PartitionState) -> Iterator[str]:
    for app in state.applications.values():
        real = (a.resource for a in app.allocations.values() if not a.spec.placeholder)
        yield from _differ(f"allocated of {app.id}", app.allocated, total(real))
        placeholders = (a.resource for a in app.allocations.values() if a.spec.placeholder)
        yield from _differ(f"placeholders of {app.id}", app.placeholders, total(placeholders))
        yield from _differ(f"pending of {app.id}", app.pending, total(_pending(app)))


def _below(state: PartitionState) -> Iterator[tuple[str, Queue, list[Application]]]:
    """Yield each queue and its path with the applications below it."""
    below: dict[Queue, list[Application]] = {queue: [] for queue in state.queues.values()}
    for app in state.applications.values():
        for queue in app.queue.lineage:
            if queue in below:
                below[queue].append(app)
    for path, queue in state.queues.items():
        yield path, queue, below[queue]


def _queue_arithmetic(state: PartitionState) -> Iterator[str]:
    for path, queue, apps in _below(state):
        charged = (part for app in apps for part in (app.allocated, app.placeholders))
        yield from _differ(f"allocated of {path}", queue.allocated, total(charged))
        pending = (app.pending for app in apps)
        yield from _differ(f"pending of {path}", queue.pending, total(pending))


def _preempting(state: PartitionState) -> Iterator[str]:
    """The sums of victims on their way out, and of the room promised to their asks (G19)."""
    reservations = [it for node in state.nodes.values() for it in node.reservations.values()]
    for path, queue, apps in _below(state):
        items = [
            item for app in apps for item in app.allocations.values() if item.releasing is not None
        ]
        gone = (a.resource for a in items if a.releasing is _T.PREEMPTED_BY_SCHEDULER)
        yield from _differ(f"preempting of {path}", queue.preempting, total(gone))
        leaving = (a.resource for a in items if a.comes_free)
        yield from _differ(f"leaving of {path}", queue.leaving, total(leaving))
        mine = {app.id for app in apps} if reservations else ()
        kept = (item.promised for item in reservations if item.application_id in mine)
        yield from _differ(f"earmarked of {path}", queue.earmarked, total(kept))


def _conservation(state: PartitionState) -> Iterator[str]:
    if "root" not in state.queues:
        return
    nodes = total(node.allocated for node in state.nodes.values())
    for node in state.nodes.values():
        for item in node.incoming.values():
            discharge(nodes, item.resource)
    yield from _differ("allocated of root, compared with the nodes", state.root.allocated, nodes)


def _no_negatives(state: PartitionState) -> Iterator[str]:
    for app in state.applications.values():
        yield from _debts("pending", app.id, app.pending)
        yield from _debts("allocated", app.id, app.allocated)
        yield from _debts("placeholders", app.id, app.placeholders)
    for node in state.nodes.values():
        yield from _debts("occupied", node.id, node.occupied)
    for path, queue in state.queues.items():
        yield from _debts("preempting", path, queue.preempting)
        if queue.running_apps < 0:
            yield f"running applications of {path}: {queue.running_apps}"


def _debts(name: str, of: str, book: Resource) -> Iterator[str]:
    if book and min(book.values()) < 0:
        yield f"{name} of {of} is negative: {describe(book)}"


def _references(state: PartitionState) -> Iterator[str]:
    for app in state.applications.values():
        for uuid, item in app.allocations.items():
            node = state.nodes.get(item.node_id)
            if node is None or node.allocations.get(uuid) is not item:
                yield f"allocation {uuid} of {app.id} is not on its node {item.node_id}"
            ask = app.asks.get(item.spec.key)
            if ask is None or uuid not in ask.uuids:
                yield f"allocation {uuid} of {app.id} has no ask {item.spec.key}"
    for node in state.nodes.values():
        for uuid, item in node.allocations.items():
            owner = state.applications.get(item.spec.application_id)
            if owner is None or owner.allocations.get(uuid) is not item:
                yield f"allocation {uuid} on node {node.id} belongs to nobody"


def foreign_places(state: PartitionState) -> Iterator[str]:
    for key, foreign in state.foreign.items():
        node = state.nodes.get(foreign.node_id)
        if node is None or key not in node.foreign:
            yield f"foreign allocation {key} is on node {foreign.node_id}, which does not have it"


def _single_place(state: PartitionState) -> Iterator[str]:
    seen: dict[str, str] = {}
    for node in state.nodes.values():
        for uuid in node.allocations:
            if uuid in seen:
                yield f"allocation {uuid} is on node {seen[uuid]} and on node {node.id}"
            seen[uuid] = node.id
    # The index by UUID has to agree with the books in both directions.
    owners = {uuid: app.id for app in state.applications.values() for uuid in app.allocations}
    for uuid, id_ in state.owners.items():
        if owners.get(uuid) != id_:
            yield f"allocation {uuid} is listed as one of {id_}, which does not have it"
    for uuid, id_ in owners.items():
        if uuid not in state.owners:
            yield f"allocation {uuid} of {id_} is not listed"


def _running(state: PartitionState) -> Iterator[str]:
    for path, queue, apps in _below(state):
        truth = sum(app.state in COUNTS_AS_RUNNING for app in apps)
        if queue.running_apps != truth:
            yield f"{path} counts {queue.running_apps} running applications, there are {truth}"
        holding = [app.serial for app in apps if app.state in COUNTS_BY_HOLDING and app.allocations]
        if sorted(queue.allocating) != sorted(holding):
            yield f"{path} takes {sorted(queue.allocating)} for allocating, they are {holding}"
        keeping = [
            app.serial
            for app in apps
            # A node that is kept counts only where nothing runs.
            if app.state in COUNTS_BY_HOLDING and app.serial not in holding and is_kept_for(app)
        ]
        if sorted(queue.reserving) != sorted(keeping):
            yield f"{path} takes {sorted(queue.reserving)} for reserving, they are {keeping}"


def is_kept_for(app: Application) -> bool:
    """Whether a node is reserved for one of its asks."""
    return any(ask.reserved for ask in app.asks.values())


def _reservations(state: PartitionState) -> Iterator[str]:
    count = sum(
        item.repeats for node in state.nodes.values() for item in node.reservations.values()
    )
    if count != state.reservation_count:
        yield f"{state.reservation_count} reservations are counted, there are {count}"
    for node in state.nodes.values():
        yield from reservations_on(state, node)
    for app in state.applications.values():
        yield from reservations_of(state, app)


def reservations_on(state: PartitionState, node: Node) -> Iterator[str]:
    """What is wrong with those that a node knows (G18)."""
    kept = tuple(node.reservations.values())
    kinds = {(item.required, item.earmark is None) for item in kept}
    if len(kinds) > 1 or (len(kept) > 1 and kept[0].is_ordinary):
        yield f"node {node.id} is reserved for several that may not share it"
    # Drained or not ready, it keeps only those that require it.
    stays = node.ready and not node.drained
    if not node.is_schedulable and any(
        item.is_ordinary or not (item.required or stays) for item in kept
    ):
        yield f"node {node.id} takes no work, and is reserved for an ask that could run elsewhere"
    promised = total(item.promised for item in kept)
    yield from _differ(f"promised of node {node.id}", node.promised, promised)
    secured = total(item.secured for item in kept)
    yield from _differ(f"secured on node {node.id}", node.secured, secured)
    # Together they would not all fit, whatever comes free.
    if is_overpromised(node):
        yield f"node {node.id} is promised to more asks than will have room"
    if is_overdrawn(node):
        yield f"node {node.id} secures room that was taken by force"
    for item in kept:
        app = state.applications.get(item.application_id)
        ask = None if app is None else app.asks.get(item.key)
        if ask is None or ask.reserved.count(node.id) != item.repeats:
            yield f"node {node.id} is reserved for {item.key}, which does not know it"
        elif item.earmark is not None and item.earmark != ask.spec.resource:
            yield f"node {node.id} promises {item.key} what it does not want"
        elif item.secured and not fits_in(item.secured, item.promised or ask.spec.resource):
            yield f"node {node.id} secures more room for {item.key} than it wants"


def reservations_of(state: PartitionState, app: Application) -> Iterator[str]:
    """What is wrong with those that an application knows (G18)."""
    own = sum(len(ask.reserved) for ask in app.asks.values())
    if app.reservation_count != own:
        yield f"{app.id} counts {app.reservation_count} reservations, there are {own}"
    yield from _reserved_asks(state, app)


def _reserved_asks(state: PartitionState, app: Application) -> Iterator[str]:
    # A gang is over with the first slice of its end; its asks, and what is kept for them, go in
    # those that follow.
    follows = is_being_reloaded(state) or _is_in_hand(state, app)
    for ask in app.asks.values():
        if len(ask.reserved) > ask.remaining:
            yield f"ask {ask.spec.key} has more reservations than repeats that wait"
        if ask.reserved and not follows and waits_for_gang(app, ask.spec):
            yield f"ask {ask.spec.key} has a reservation, and its gang holds it back"
        for node_id in ask.reserved:
            node = state.nodes.get(node_id)
            if node is None or (app.id, ask.spec.key) not in node.reservations:
                yield f"ask {ask.spec.key} has a reservation that {node_id} does not know"
            elif not could_hold(node, ask.spec):
                yield f"ask {ask.spec.key} has a reservation on {node_id}, which is too small"


_UNCONFIRMED = frozenset({ApplicationState.FAILING, ApplicationState.RESUMING})
_TIMED = frozenset({ApplicationState.COMPLETING, ApplicationState.STARTING})


def _life_cycle(state: PartitionState) -> Iterator[str]:
    for app in state.applications.values():
        yield from life_of(state, app)


def life_of(state: PartitionState, app: Application) -> Iterator[str]:
    """What is wrong with the state and the timers of one application (G21).

    Its state follows when long work is done: its time is up (its timer has fired, and its asks go
    one by one), or it is removed with its partition (it is Failing from the first on). What is
    asked back may end in one slice, and the state follow in the next.
    """
    # In the middle of long work the state follows with the last slice.
    if _is_in_hand(state, app):
        return
    if app.state in FINISHED:
        yield f"{app.id} is {app.state.value} and still among the active ones"
    if app.state is ApplicationState.COMPLETING and (
        any(app.pending.values()) or any(app.allocated.values()) or app.swaps
    ):
        yield f"{app.id} is Completing and has work"
    if app.state is ApplicationState.NEW and (app.asks or app.allocations):
        yield f"{app.id} is New and has work"
    if not _timers_are_right(app) or _is_unwatched(state, app):
        yield f"{app.id} is {app.state.value}, its timers are {sorted(app.timers)}"
    if (
        app.state in _UNCONFIRMED
        and state.long_work is None
        and not any(item.releasing is not None for item in app.allocations.values())
    ):
        yield f"{app.id} is {app.state.value} and waits for no confirmation"


def _is_in_hand(state: PartitionState, app: Application) -> bool:
    work = state.long_work
    if work is None:
        return False
    if work.kind in {LongWorkKind.MANAGER, LongWorkKind.RELOAD}:
        return app.state is ApplicationState.FAILING
    return work.kind is LongWorkKind.TIMER and work.id == app.id


def _timers_are_right(app: Application) -> bool:
    """Completing has no timer any more once its leftover placeholders were asked back."""
    if "placeholder" in app.timers and not app.has_placeholders:
        return False
    if app.state is ApplicationState.COMPLETING and app.has_placeholders:
        return True
    return (app.state in _TIMED) is ("state" in app.timers)


def _is_unwatched(state: PartitionState, app: Application) -> bool:
    """What holds room for a gang has a time: placeholders, and without them the commitment."""
    if "placeholder" not in app.timers and any(
        item.spec.placeholder and item.releasing is None for item in app.allocations.values()
    ):
        return True
    # Either placeholders or the commitment has a timer, and never both.
    committed = app.serial in state.admitted and not app.has_placeholders
    return committed is not ("commitment" in app.timers)


def _usage(state: PartitionState) -> Iterator[str]:
    for user, by_path in state.users.items():
        mine = [app for app in state.applications.values() if app.spec.user == user]
        yield from _usages_of(state, user, by_path, mine)
    for group, by_path in state.groups.items():
        ours = [app for app in state.applications.values() if app.group == group]
        yield from _usages_of(state, group, by_path, ours)


def _usages_of(
    state: PartitionState, owner: str, by_path: dict[str, Usage], apps: list[Application]
) -> Iterator[str]:
    for path, usage in by_path.items():
        below = [app for app in apps if state.queues[path] in app.queue.lineage]
        charged = (part for app in below for part in (app.allocated, app.placeholders))
        yield from _differ(f"usage of {owner} in {path}", usage.amounts, total(charged))
        counted = {app.serial for app in below if app.state not in LEAVES_USER_COUNT}
        # Running has to be a part of what may count, and attached is all of them.
        if not counted.issuperset(usage.running) or usage.attached != len(below):
            yield f"{owner} in {path} counts applications that are not there"
        keeping = [
            app.serial
            for app in below
            if app.serial in counted - usage.running.keys() and is_kept_for(app)
        ]
        if sorted(usage.reserving) != sorted(keeping):
            yield f"{owner} in {path} takes {sorted(usage.reserving)} for reserving, not {keeping}"


def _asked_back(state: PartitionState) -> Iterator[str]:
    """An allocation is asked back as a victim exactly if it has a beneficiary."""
    for app in state.applications.values():
        for uuid, item in app.allocations.items():
            if (item.beneficiary is not None) is not (item.releasing is _T.PREEMPTED_BY_SCHEDULER):
                yield f"{uuid} is a victim and not asked back as one, or the reverse"


def is_being_reloaded(state: PartitionState) -> bool:
    return state.long_work is not None and state.long_work.kind is LongWorkKind.RELOAD


def misconfigured(state: PartitionState) -> Iterator[str]:
    """Compare the queues with the configuration, which is in effect when its handler ends (G28).

    A queue that it names takes applications; one that left it drains. A reload that is under way
    has not come to all of them.
    """
    # Half of it is of the former configuration.
    if state.config is None or is_being_reloaded(state):
        return
    named = dict(described(state.config.root))
    for path, queue in state.queues.items():
        if queue.spec.managed and (path in named) is not (queue.state is QueueState.ACTIVE):
            yield f"G28: queue {path} is {queue.state.value}, against the configuration"
        elif path in named and queue.spec != named[path]:
            yield f"G28: queue {path} is {queue.spec}, by the configuration {named[path]}"
    for path in named:
        if path not in state.queues:
            yield f"G28: queue {path} of the configuration is missing"


def _identity(state: PartitionState) -> Iterator[str]:
    for path, queue in state.queues.items():
        if queue.parent is not None and queue.parent.children.get(queue.name) is not queue:
            yield f"queue {path} cannot be reached from its parent"
        for serial, id_ in queue.applications.items():
            app = state.applications.get(id_)
            if app is None or app.serial != serial:
                yield f"queue {path} lists {id_} ({serial}), which is not active"
    for app in state.applications.values():
        queue = app.queue
        if state.queues.get(queue.path) is not queue or app.serial not in queue.applications:
            yield f"{app.id} is in a queue {queue.path} that does not know it"


CHECKS: tuple[tuple[str, Callable[[PartitionState], Iterator[str]]], ...] = (
    ("G01", _node_arithmetic),
    ("G02", capacity),
    ("G03", _application_arithmetic),
    ("G04", _queue_arithmetic),
    ("G05", _conservation),
    ("G06", _no_negatives),
    ("G07", _references),
    ("G08", foreign_places),
    ("G09", _single_place),
    ("G10", links),
    ("G12", _asked_back),
    ("G17", placeholders),
    ("G18", _reservations),
    ("G19", _preempting),
    ("G20", _running),
    ("G21", _life_cycle),
    ("G24", _usage),
    ("G28", _identity),
)
