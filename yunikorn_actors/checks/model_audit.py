"""The audit of the planner's model: it must be the replica plus what is in flight.

Everything is worked out again from the replica and the decisions in flight and compared with what
the planner keeps up to date step by step. For simulations and tests, where it runs after every
message of a planner: so what is most often nothing (decisions in flight, promises) is asked for
before it is added up, and no text is made of what is right.
"""

from collections.abc import Iterator

from yunikorn_actors.planning.model.nodes import NodeIndex, NodeView
from yunikorn_actors.planning.model.partition_model import Model
from yunikorn_actors.planning.model.sorted_collections import NO_PRIORITY
from yunikorn_actors.planning.model.views import (
    AppView,
    AskView,
    Kind,
    Lane,
    QueueView,
    Rank,
    order_of,
)
from yunikorn_actors.planning.planner import Planner
from yunikorn_actors.planning.stages.gating import Gatekeeper
from yunikorn_actors.policies.folds import is_part_of_gang, job_of_ask, job_of_gang
from yunikorn_actors.policies.inputs import Job
from yunikorn_actors.state.allocations import Ask
from yunikorn_actors.state.gangs import waits_for_gang
from yunikorn_actors.state.gates import has_room
from yunikorn_actors.values.resource import (
    Resource,
    charge,
    describe,
    discharge,
    equals,
    pruned,
)


def audit(planner: Planner) -> list[str]:
    """Return one line for each part of the planner's view that is not what it should be."""
    model = planner.model
    return [
        *_nodes(model, _kept_on_their_way(planner)),
        *_queues(model),
        *_gates(model),
        *_asks(model),
        *_order(model),
        *_jobs(model, planner.gatekeeper),
    ]


def _differ(name: str, kept: Resource, truth: Resource) -> Iterator[str]:
    if not equals(kept, truth):
        yield f"{name} is {describe(pruned(kept))}, should be {describe(pruned(truth))}"


def _nodes(model: Model, kept: list[NodeView | None]) -> Iterator[str]:
    index, flown_to = model.nodes, dict.fromkeys(_flown_to(model))
    if index.views.keys() != model.state.nodes.keys():
        yield f"the planner knows nodes {sorted(index.views)}"
        return
    entries = [view.entry for view in index.in_order()]
    if entries != sorted(entry for entry in entries if entry is not None):
        yield "nodes are out of order"
    for id_, view in index.views.items():
        free = model.state.nodes[id_].available
        if view in flown_to:
            free = dict(free)
            for amount in model.flights.coming_to(view):
                discharge(free, amount)
        if view.free != free:
            yield from _differ(f"free of node {id_}", view.free, free)
        if view.coming or view in flown_to:
            coming = sorted(model.flights.devices_to(view))
            if sorted(view.coming) != coming:
                yield f"devices {view.coming} of node {id_} are to be taken, should be {coming}"
        yield from _place(index, view, kept.count(view) if kept else 0)


def _flown_to(model: Model) -> Iterator[NodeView]:
    """Yield the nodes on which something is decided to be placed."""
    yield from (flight.node for flight in model.flights.placements.values())
    yield from (swap.node for swap in model.flights.swaps.values() if swap.node is not None)


def _place(index: NodeIndex, view: NodeView, keeping: int) -> Iterator[str]:
    if view.keeping != keeping:
        yield f"node {view.id} is to be kept {view.keeping} times, {keeping} are on their way"
    if (view.entry is not None) is not view.is_open:
        yield f"node {view.id} is in the order although it takes no work, or the reverse"
    if view.entry is not None and view.entry != index.runs.entry_of(view):
        yield f"node {view.id} stands by another score than it has"


def _kept_on_their_way(planner: Planner) -> list[NodeView | None]:
    # Nearly always: the lists below would be empty.
    if not planner.reserver.in_flight and not planner.preemptor.decisions.in_flight:
        return []
    reserved = [flight.node for flight in planner.reserver.in_flight.values()]
    return [*reserved, *(flight.node for flight in planner.preemptor.decisions.in_flight.values())]


def _queues(model: Model) -> Iterator[str]:
    if model.tree.queues.keys() != model.state.queues.keys():
        yield f"the planner knows queues {sorted(model.tree.queues)}"
        return
    placements = model.flights.placements.values()
    totals = _totals(model)
    for path, view in model.tree.queues.items():
        used = model.state.queues[path].allocated
        if placements:
            used = dict(used)
            for flight in placements:
                if view in flight.ask.app.leaf.lineage:
                    charge(used, flight.resource)
        if view.used != used:
            yield from _differ(f"used of queue {path}", view.used, used)
        total = totals.get(view, 0)
        if total != view.waiting:
            yield f"{view.waiting} wait in queue {path}, should be {total}"


def _totals(model: Model) -> dict[QueueView, int]:
    """Add up what waits below each queue."""
    # Plain, as all counts here: a `Counter` for each look is a twentieth of all looks.
    totals: dict[QueueView, int] = {}
    for app in model.apps.values():
        if waiting := _waiting(app):
            for level in app.leaf.lineage:
                totals[level] = totals.get(level, 0) + waiting
    return totals


def _gates(model: Model) -> Iterator[str]:
    """Compare what the model keeps of gates, to save each try the work, with the rules."""
    for path, view in model.tree.queues.items():
        if view.is_quota:
            redeemed = _redeemed(model, view) if model.flights.serving else {}
            if view.redeemed != redeemed:
                yield from _differ(f"redeemed in queue {path}", view.redeemed, redeemed)
        sizes = view.queue.quota(view.redeemed) if view.is_quota else model.state.capacity
        if view.limit != sizes and not model.requeue.measures.is_stale:
            yield f"queue {path} allows {describe(view.limit)}, should {describe(sizes)}"
    for app in model.apps.values():
        for limit in app.limits:
            for shape in app.piles:
                sizes, used = limit.limit.max_resources, limit.used()
                if limit.room_for(shape.wanted) is not has_room(sizes, used, shape.wanted):
                    yield f"{limit.name} has room for {shape.wanted}, or the reverse"


def _redeemed(model: Model, queue: QueueView) -> Resource:
    """Add up the promises below the queue that decisions in flight use."""
    total: Resource = {}
    served = dict.fromkeys((ask.app, ask.ask.spec.key) for ask, _ in model.flights.serving)
    for app, key in served:
        if queue in app.leaf.lineage:
            for earmark in model.amounts.earmarks_in_use(app, key):
                charge(total, earmark)
    return total


def _waiting(app: AppView) -> int:
    total = 0
    for ask in app.asks.values():
        left = ask.ask.remaining - ask.inflight
        if left > 0:
            total += ask.shape.total * left
    return total


def _asks(model: Model) -> Iterator[str]:
    placing: dict[AppView, int] = {}
    for flight in model.flights.placements.values():
        if flight.ask.is_placeholder:
            placing[flight.ask.app] = placing.get(flight.ask.app, 0) + 1
    for app in model.apps.values():
        if app.placing != placing.get(app, 0):
            placed = placing.get(app, 0)
            yield f"{app.app.id} places {app.placing} placeholders, should be {placed}"
        yield from _counts(app)
        for key, ask in app.app.asks.items():
            view = app.asks.get(key)
            inflight = 0 if view is None else view.inflight
            kept = 0 if view is None else view.open
            wanted = max(0, ask.remaining - inflight)
            if wanted and (_waits_for_gang(app, ask) or view in model.set_aside):
                wanted = 0
            if (
                app.leaf.decider.gate
                and view is not None
                and not is_part_of_gang(app.app, ask.spec)
            ):
                wanted = min(wanted, int(view.is_let_in))
            if kept != wanted:
                yield f"ask {key}: {kept} may be tried, {ask.remaining} wait, {inflight} in flight"


def _counts(app: AppView) -> Iterator[str]:
    waits: dict[Kind, int] = {}
    opens: dict[Kind, int] = {}
    for ask in app.asks.values():
        kind = (ask.shape, ask.is_placeholder)
        if ask.waiting > 0:
            waits[kind] = waits.get(kind, 0) + ask.waiting
        if ask.open > 0:
            opens[kind] = opens.get(kind, 0) + ask.open
    for name, kept, counted in (("wait", app.waits, waits), ("are open", app.opens, opens)):
        if kept != counted:
            yield f"of {app.app.id} {[*kept.values()]} {name}, should be {[*counted.values()]}"


def _jobs(model: Model, gatekeeper: Gatekeeper) -> Iterator[str]:
    """What waits for a gate; the keys are left out, because no policy is to be asked for them."""
    for leaf, jobs in gatekeeper.waiting.items():
        if jobs.decider is leaf.decider:
            for app, kept in jobs.unchanged():
                if model.apps.get(app.app.serial) is not app:
                    continue
                waits = _jobs_of(app) if leaf.members.get(app.app.serial) is app else {}
                if kept != waits:
                    yield f"of {app.app.id} {[*kept.values()]} come up, should {[*waits.values()]}"


def _jobs_of(app: AppView) -> dict[AskView | AppView, Job]:
    if not app.is_schedulable:
        return {}
    found: dict[AskView | AppView, Job] = {
        ask: job_of_ask(app.app, ask.ask)
        for ask in app.asks.values()
        if ask.waiting and not is_part_of_gang(app.app, ask.ask.spec)
    }
    if app.awaiting_gang is not None:
        found[app] = job_of_gang(app.app)
    return found


def _waits_for_gang(app: AppView, ask: Ask) -> bool:
    """Whether its gang keeps an ask from being tried, with what is decided and not resolved yet."""
    return waits_for_gang(app.app, ask.spec, app.placing, is_admitting=app.is_admitting)


def _order(model: Model) -> Iterator[str]:
    for path, view in model.tree.queues.items():
        if (view.entry is not None) is not (view.has_work and view.parent is not None):
            yield f"queue {path} has something to try and is not shown, or the reverse"
        entries = [child.entry for _, child in view.children]
        # Between a change and the next plan the old order stands: it is put right in stage
        # `measure`.
        if not model.requeue.measures.is_stale and not model.requeue.measures.leaves:
            if entries != sorted(entry for entry in entries if entry is not None):
                yield f"children of {path} are out of order"
            for key, child in view.children:
                if key != child.key():
                    yield f"queue {child.queue.path} stands by {key}, should by {child.key()}"
            if view.priority != view.exported_priority():
                yield f"queue {path} shows priority {view.priority}"
        priorities = _priorities(view)
        if view.priorities.counts != priorities:
            yield f"queue {path} counts priorities {view.priorities.counts}, should {priorities}"
        found = [*_lanes(view)] if view.lanes else []
        yield from found
        # A lane that is open alone is the first.
        if (
            not found
            and len(view.open_lanes) > 1
            and view.open_lanes.first() is not min(view.open_lanes, key=_rank).first
        ):
            yield f"another ask than the first is tried in {path}"


def _priorities(view: QueueView) -> dict[int, int]:
    """Count those of whatever has something to try: the root keeps applications too, as a leaf."""
    own: dict[int, int] = {}
    shown = [app.priority for app in view.members.values()]
    shown += [below.priority for below in view.below]
    for priority in shown:
        if priority != NO_PRIORITY:
            own[priority] = own.get(priority, 0) + 1
    return own


def _rank(lane: Lane) -> Rank:
    return lane.rank


def _lanes(view: QueueView) -> Iterator[str]:
    for lane in view.lanes.values():
        if lane.is_open is not (lane in view.open_lanes):
            yield f"a lane of {view.queue.path} is open and not tried, or the reverse"
        if lane.apps != sorted(lane.apps):
            yield f"applications of {view.queue.path} are out of order"
        yield from _applications(lane)


def _applications(lane: Lane) -> Iterator[str]:
    for _, app in lane.apps:
        pile = app.piles.get(lane.shape)
        if not pile:
            yield f"{app.app.id} stands in a lane without an ask of its shape"
        elif list(pile) != sorted(pile, key=order_of):
            yield f"asks of {app.app.id} are out of order"
        tops: dict[int, int] = {}
        for each in app.piles.values():
            if each:
                priority = each.head[0].order.priority
                tops[priority] = tops.get(priority, 0) + 1
        if tops != app.heads:
            yield f"{app.app.id} has piles by priority {tops}, counts {app.heads}"
