"""How each fact changes the cluster of the model."""

from collections.abc import Callable
from typing import Any

from yunikorn_actors.checks.state_invariants import total
from yunikorn_actors.lab.model import sums
from yunikorn_actors.lab.model.judged_cluster import (
    App,
    Ask,
    Cluster,
    Kept,
    Node,
    Placed,
    Queue,
    Swap,
)
from yunikorn_actors.lab.model.rules import gangs, units
from yunikorn_actors.machines.context.lifecycle import PLACEHOLDER_TIMER
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import AskSpec
from yunikorn_actors.values.durations import MILLISECOND
from yunikorn_actors.values.resource import Resource, charge, discharge

ENDED = ("Completed", "Failed", "Rejected", "Expired")

_Placing = f.AllocationCommitted | f.AllocationRecovered | f.SwapCompleted


def apply(cluster: Cluster, fact: f.Fact) -> None:
    change = CHANGES.get(type(fact))
    if change is not None:
        cluster.answers.clear()
        cluster.now = max(cluster.now, getattr(fact, "at_ns", 0))
        change(cluster, fact)


def _configured(cluster: Cluster, fact: f.PartitionConfigured) -> None:
    cluster.config, cluster.node_sort = fact.config, fact.config.node_sort


def _queue(cluster: Cluster, fact: f.QueueAdded | f.QueueReconfigured) -> None:
    parent = cluster.queues.get(fact.path.rpartition(".")[0])
    cluster.queues.setdefault(fact.path, Queue(fact.path, parent)).configure(fact.spec)


def _node(cluster: Cluster, fact: f.NodeAdded) -> None:
    cluster.nodes[fact.node_id] = Node(fact.node_id)
    _node_resized(cluster, fact)
    _node_schedule(cluster, fact)


def _node_resized(cluster: Cluster, fact: f.NodeAdded | f.NodeResized) -> None:
    node = cluster.nodes[fact.node_id]
    node.capacity = {kind: n for kind, n in fact.capacity.items() if n}
    node.occupied = fact.occupied


def _node_schedule(cluster: Cluster, fact: f.NodeAdded | f.NodeScheduleChanged) -> None:
    is_awaited = isinstance(fact, f.NodeScheduleChanged) and fact.awaited
    node = cluster.nodes[fact.node_id]
    node.takes_work = fact.ready and not (fact.drained or is_awaited)


def _app(cluster: Cluster, fact: f.ApplicationAdded) -> None:
    leaf = cluster.queues[fact.queue]
    cluster.apps[fact.spec.application_id] = App(fact.spec, fact.serial, leaf, fact.at_ns)


def _app_state(cluster: Cluster, fact: f.ApplicationStateChanged) -> None:
    app = cluster.apps.get(fact.application_id)
    if app is None or app.serial != fact.serial:
        return
    app.state, app.entered = fact.state.value, fact.at_ns
    if app.state in ("Starting", "Running") and app.started is None:
        app.started = fact.at_ns
    if app.state in ("Resuming", "Failing"):
        # Placeholders that come later are another gang.
        app.timed_out, app.admitted, app.lapsed, app.placed = True, False, None, {}
        app.spared, app.reported = {}, {}
    if app.state in ("Completing", "Failing", *ENDED):
        app.counts = False
    if app.state in ENDED:
        _forget(cluster, app)


def _forget(cluster: Cluster, app: App) -> None:
    del cluster.apps[app.id]
    cluster.asks = {key: ask for key, ask in cluster.asks.items() if ask.app is not app}


def _ask(cluster: Cluster, fact: f.AskAdded | f.AllocationRecovered) -> Ask:
    spec, app = fact.spec, cluster.apps[fact.spec.application_id]
    ask = Ask(app, spec, fact.created_ns, fact.sequence, spec.max_allocations)
    app.age = min(app.age, ask.created)
    cluster.asks[app.id, spec.key] = ask
    if spec.placeholder:
        app.groups.add(spec.task_group)
    return ask


def _ask_again(cluster: Cluster, fact: f.AskReplaced) -> None:
    ask = cluster.asks[fact.spec.application_id, fact.spec.key]
    parked = sum(swap.ask is ask for swap in cluster.swaps.values())
    ask.spec = fact.spec
    if fact.spec.placeholder:
        ask.app.groups.add(fact.spec.task_group)
    ask.left = fact.spec.max_allocations - ask.taken - parked
    for kept in cluster.kept:
        if kept.ask is ask:
            kept.size = ask.size


def _ask_removed(cluster: Cluster, fact: f.AskRemoved) -> None:
    ask = cluster.asks[fact.application_id, fact.key]
    if ask.app.admitted and ask.spec.placeholder:
        # It will not come any more, so no room is kept for it.
        charge(ask.app.placed, total(ask.size for _ in range(ask.left)))
    ask.left = 0


def _take(cluster: Cluster, fact: _Placing, ask: Ask, spec: AskSpec, size: Resource) -> None:
    app = ask.app
    cluster.placed[fact.uuid] = Placed(
        app, spec, fact.uuid, fact.node_id, size, fact.at_ns, ask.created, cluster.revision
    )
    app.counts = True
    app.reals += not spec.placeholder
    if spec.placeholder:
        charge(app.placed, size)
        if _is_first_of_gang(app):
            app.gang_since, app.gang_expired = fact.at_ns, False


def _committed(cluster: Cluster, fact: f.AllocationCommitted) -> None:
    ask = cluster.asks[fact.application_id, fact.key]
    ask.left, ask.taken = ask.left - 1, ask.taken + 1
    _take(cluster, fact, ask, ask.spec, fact.resource)


def _recovered(cluster: Cluster, fact: f.AllocationRecovered) -> None:
    ask = cluster.asks.get((fact.spec.application_id, fact.spec.key))
    if ask is None:
        ask = _ask(cluster, fact)
        ask.left = 0
    ask.taken += 1
    app = ask.app
    app.age = min(app.age, fact.created_ns)
    if not fact.spec.placeholder and units.is_member(app, fact.spec):
        charge(app.reported, fact.spec.resource)
    is_first = fact.spec.placeholder and _is_first_of_gang(app)
    _take(cluster, fact, ask, fact.spec, fact.spec.resource)
    if is_first and app.spec.created_ns is not None:
        # It has what is left of its time, or one moment more.
        rest = fact.at_ns + MILLISECOND - gangs.gang_timeout(cluster, app)
        app.gang_since = max(rest, min(fact.at_ns, app.spec.created_ns))


def _is_first_of_gang(app: App) -> bool:
    return app.gang_since is None or app.gang_expired


def _timer_cancelled(cluster: Cluster, fact: f.TimerCancelled) -> None:
    app = cluster.apps.get(fact.application_id)
    if fact.kind == PLACEHOLDER_TIMER and app is not None and gangs.gang_is_over(cluster, app):
        app.gang_expired = True


def _released(
    cluster: Cluster, fact: f.AllocationReleased | f.SwapCompleted, uuid: str = ""
) -> None:
    gone = cluster.placed.pop(uuid or fact.uuid)
    if gone.spec.placeholder and gone.leaving == "TIMEOUT" and not uuid:
        charge(gone.app.spared, gone.size)
    if not any(p.spec.placeholder for p in cluster.placed.values() if p.app is gone.app):
        gone.app.gang_since = None
        if gone.spec.placeholder:
            gone.app.bare_since = fact.at_ns


def _swapped(cluster: Cluster, fact: f.SwapCompleted) -> None:
    ask = cluster.swaps.pop(fact.placeholder).ask
    ask.taken += 1
    charge(ask.app.spared, cluster.placed[fact.placeholder].size)
    discharge(ask.app.spared, fact.resource)
    _released(cluster, fact, fact.placeholder)
    _take(cluster, fact, ask, ask.spec, fact.resource)


def _admitted(cluster: Cluster, fact: f.GangAdmitted) -> None:
    app = cluster.apps[fact.application_id]
    app.admitted, app.lapsed, app.bare_since = True, None, fact.at_ns


def _lapsed(cluster: Cluster, fact: f.GangLapsed) -> None:
    app = cluster.apps[fact.application_id]
    app.admitted, app.lapsed = False, fact.at_ns


def _parked(cluster: Cluster, fact: f.AskParked) -> None:
    ask = cluster.asks[fact.application_id, fact.key]
    ask.left -= 1
    cluster.swaps[fact.placeholder] = Swap(ask, fact.node_id, fact.crosses, fact.resource)


def _unparked(cluster: Cluster, fact: f.AskUnparked) -> None:
    swap = cluster.swaps.pop(fact.placeholder)
    swap.ask.left += 1
    if fact.crosses and swap.node not in cluster.nodes:
        cluster.owed.append(swap.ask)


def _kept(cluster: Cluster, fact: f.ReservationMade) -> None:
    ask, claims = cluster.asks[fact.application_id, fact.key], fact.by_preemption
    kept = Kept(
        ask, fact.node_id, fact.resource, fact.required, claims, cluster.revision, fact.at_ns
    )
    if claims:
        # Its victims are marked before the node is kept.
        kept.victims = cluster.marked.pop((fact.application_id, fact.key, fact.node_id), [])
    cluster.kept.append(kept)


def _dropped(cluster: Cluster, fact: f.ReservationDropped) -> None:
    for kept in sums.keepers(cluster, fact, fact.node_id)[:1]:
        cluster.kept.remove(kept)
        cluster.ending.append(kept)


def _asked_back(cluster: Cluster, fact: f.ReleaseRequested) -> None:
    cluster.placed[fact.uuid].leaving = fact.type.name


def _marked(cluster: Cluster, fact: f.VictimMarked) -> None:
    leaf = cluster.queues[fact.queue]
    if leaf.says.preemption_budget.window_ns:
        leaf.gone.append(fact.at_ns)
    whom = fact.beneficiary
    keepers = sums.keepers(cluster, whom, fact.node_id)
    for kept in keepers:
        kept.victims.append(fact.uuid)
    if not keepers:
        named = (whom.application_id, whom.key, fact.node_id)
        cluster.marked.setdefault(named, []).append(fact.uuid)


def _decided(cluster: Cluster, fact: f.PreemptionDecided) -> None:
    """A maximum is enforced once."""
    if not fact.beneficiary.key:
        cluster.quota_due.pop(fact.beneficiary.queue, None)


def _resized(cluster: Cluster, fact: f.AllocationResized) -> None:
    cluster.placed[fact.uuid].size = fact.resource


def _linked(cluster: Cluster, fact: f.ApplicationLinked) -> None:
    cluster.apps[fact.application_id].group = fact.group


def _foreign(cluster: Cluster, fact: f.ForeignAllocationPut) -> None:
    for node in cluster.nodes.values():
        node.foreign.pop(fact.key, None)
    cluster.nodes[fact.node_id].foreign[fact.key] = fact.resource


CHANGES: dict[type, Callable[[Cluster, Any], Any]] = {
    f.PartitionConfigured: _configured,
    f.QueueAdded: _queue,
    f.QueueReconfigured: _queue,
    f.QueueRemoved: lambda it, fact: it.queues.pop(fact.path),
    f.NodeAdded: _node,
    f.NodeResized: _node_resized,
    f.NodeScheduleChanged: _node_schedule,
    f.NodeRemoved: lambda it, fact: it.nodes.pop(fact.node_id),
    f.ApplicationAdded: _app,
    f.ApplicationStateChanged: _app_state,
    f.ApplicationLinked: _linked,
    f.ApplicationRemoved: lambda it, fact: _forget(it, it.apps[fact.application_id]),
    f.AskAdded: _ask,
    f.AskReplaced: _ask_again,
    f.AskRemoved: _ask_removed,
    f.AllocationCommitted: _committed,
    f.AllocationRecovered: _recovered,
    f.AllocationReleased: _released,
    f.AllocationResized: _resized,
    f.GangAdmitted: _admitted,
    f.GangLapsed: _lapsed,
    f.AskParked: _parked,
    f.AskUnparked: _unparked,
    f.SwapCompleted: _swapped,
    f.PlaceholderCancelled: lambda it, fact: charge(
        it.apps[fact.application_id].spared, {k: -n for k, n in fact.placeholder_resource.items()}
    ),
    f.ReservationMade: _kept,
    f.ReservationDropped: _dropped,
    f.ReleaseRequested: _asked_back,
    f.VictimMarked: _marked,
    f.PreemptionDecided: _decided,
    f.TimerCancelled: _timer_cancelled,
    f.ForeignAllocationPut: _foreign,
    f.ForeignAllocationRemoved: lambda it, fact: it.nodes[fact.node_id].foreign.pop(fact.key, None),
    f.QuotaPreemptionArmed: lambda it, fact: it.quota_due.update({fact.path: fact.due_ns}),
    f.QuotaPreemptionCleared: lambda it, fact: it.quota_due.pop(fact.path, None),
}
