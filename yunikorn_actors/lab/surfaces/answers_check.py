"""What a read side answers, and what a dump has, against the truth: one function for each noun.

The truth has books as well; here each number is added up from single asks, allocations and nodes.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from types import GeneratorType
from typing import Any, Final

from yunikorn_actors.config import LimitConfig, PreemptionPolicy
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.service.read import applications, clusters, nodes, queues
from yunikorn_actors.service.read import owner_usage as usage
from yunikorn_actors.service.read.incremental_answers import at_once
from yunikorn_actors.service.read.replica import Book
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.dump import snapshot
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import ROOT, Queue
from yunikorn_actors.state.termination import TerminationType

Amounts = dict[str, int]
_LOWEST: Final = -(2**31)
_PREEMPTED: Final = TerminationType.PREEMPTED_BY_SCHEDULER
_RUNNING: Final = ("Starting", "Running")
"""States in which an application counts as running."""
_HOLDING: Final = ("Accepted", "Resuming")


def wrong_answers(book: Book, truth: PartitionState) -> Iterator[str]:
    yield from _partition(book, truth)
    if not truth.queues:
        return
    yield from _applications(book, truth)
    yield from _queues(book, truth)
    yield from _nodes(book, truth)
    yield from _owners(book, truth)
    yield from _dump(truth)


def compare(what: str, answer: Mapping[str, Any], expected: Mapping[str, Any]) -> Iterator[str]:
    for field, value in expected.items():
        # What is empty is left out of an answer.
        found = answer.get(field)
        if (found or None) != (value or None):
            yield f"it answers {field} {found!r} of {what}, expected {value!r}"


def _one_each(
    what: str, answers: Iterable[Mapping[str, Any]], field: str, names: Iterable[str]
) -> Iterator[str]:
    found, wanted = sorted(it[field] for it in answers), sorted(names)
    if found != wanted:
        yield f"it answers the {what} {found}, expected {wanted}"


def whole(answer: Any) -> Any:  # noqa: ANN401 - an answer, or steps that make it
    return at_once(answer) if isinstance(answer, GeneratorType) else answer


# -- sums


def sum_of(several: Iterable[tuple[Mapping[str, int], int]]) -> Amounts:
    total: Counter[str] = Counter()
    for amounts, times in several:
        for kind, amount in amounts.items():
            total[kind] += amount * times
    return _some(total)


def _some(amounts: Mapping[str, int]) -> Amounts:
    return {kind: amount for kind, amount in amounts.items() if amount}


def _used(apps: Iterable[Application]) -> Amounts:
    return sum_of((it.resource, 1) for app in apps for it in app.allocations.values())


def _waiting(apps: Iterable[Application]) -> Amounts:
    return sum_of((it.spec.resource, it.remaining) for app in apps for it in app.asks.values())


def _preempting(apps: Iterable[Application]) -> Amounts:
    return sum_of(
        (it.resource, 1)
        for app in apps
        for it in app.allocations.values()
        if it.releasing is _PREEMPTED
    )


def _capacity(truth: PartitionState) -> Amounts:
    return sum_of((it.capacity, 1) for it in truth.nodes.values())


def _shares(taken: Amounts, whole_of: Mapping[str, int] | None) -> Amounts:
    sizes = whole_of or {}
    return {kind: it * 100 // sizes[kind] for kind, it in taken.items() if sizes.get(kind)}


# -- the partition


def _partition(book: Book, truth: PartitionState) -> Iterator[str]:
    running = truth.applications.values()
    answer = clusters.partition(book)
    states = Counter(it.state.value for it in running)
    states.update(it.state.value for it in truth.finished.values())
    state = "Active"
    if truth.suspended:
        state = "Behind" if truth.is_backpressured else "Paused"
    expected = {
        "totalNodes": len(truth.nodes),
        "totalContainers": sum(len(it.allocations) for it in running),
        "applications": {**states, "total": states.total()},
        "state": state,
    }
    yield from compare("the partition", answer, expected)
    found = _some(answer.get("capacity", {}).get("capacity", {}))
    if found != _capacity(truth):
        yield f"it answers a capacity of {found}, expected {_capacity(truth)}"


# -- applications


def _applications(book: Book, truth: PartitionState) -> Iterator[str]:
    answers = [whole(it) for it in applications.active(book)]
    yield from _one_each("applications", answers, "applicationID", truth.applications)
    for answer in answers:
        app = truth.applications.get(answer["applicationID"])
        if app is not None:
            yield from _application(answer, app, truth)
    ended = {False: applications.completed(book), True: applications.rejected(book)}
    for is_rejected, some in ended.items():
        known = [
            it.spec.application_id
            for serial, it in truth.finished.items()
            if (serial in truth.rejected) is is_rejected
        ]
        yield from _one_each("ended applications", some, "applicationID", known)


def _application(
    answer: Mapping[str, Any], app: Application, truth: PartitionState
) -> Iterator[str]:
    waiting = [ask for ask in app.asks.values() if ask.remaining]
    placed = [it for it in app.allocations.values() if not it.spec.placeholder]
    reserved = [
        key
        for node in truth.nodes.values()
        for (id_, key), kept in node.reservations.items()
        if id_ == app.id
        for _ in range(kept.repeats)
    ]
    expected = {
        "queueName": app.queue.path,
        "applicationState": app.state.value,
        "user": app.spec.user,
        "groups": list(app.spec.groups),
        "submissionTime": app.submitted_ns,
        "usedResource": sum_of((it.resource, 1) for it in placed),
        "pendingResource": _waiting((app,)),
        "hasReserved": bool(reserved),
        "maxRequestPriority": max((it.spec.priority for it in waiting), default=0),
    }
    yield from compare(app.id, answer, expected)
    log = [it["applicationState"] for it in answer.get("stateLog", ())]
    if log != [it.state.value for it in app.state_log.entries]:
        yield f"it answers the states {log} of {app.id}"
    if sorted(answer.get("reservations", ())) != sorted(reserved):
        yield f"it answers reservations {answer.get('reservations')} of {app.id}, not {reserved}"
    groups = {it["taskGroupName"]: it for it in answer.get("placeholderData", ())}
    for name, group in app.task_groups.items():
        counts = {"count": group.count, "replaced": group.replaced, "timedout": group.timed_out}
        yield from compare(f"group {name} of {app.id}", groups.get(name, {}), counts)
    asks = [*answer.get("requests", ())]
    keys = [it.spec.key for it in waiting]
    yield from _one_each(f"asks of {app.id}", asks, "allocationKey", keys)
    by_key = {it["allocationKey"]: it for it in asks}
    for ask in waiting:
        spec = ask.spec
        expected = {
            "resource": _some(spec.resource),
            "priority": str(spec.priority),
            "requiredNodeId": spec.required_node,
            "placeholder": spec.placeholder,
            "taskGroupName": spec.task_group,
            "originator": spec.originator,
            "requestTime": ask.created_ns,
        }
        yield from compare(f"ask {spec.key}", by_key.get(spec.key, {}), expected)
    running = sorted(_described(it) for it in answer.get("allocations", ()))
    if running != sorted(_described(it) for it in _runs(app)):
        yield f"it answers that {running} run of {app.id}"


def _runs(app: Application) -> Iterator[dict[str, Any]]:
    for it in app.allocations.values():
        yield {
            "allocationKey": it.spec.key,
            "nodeId": it.node_id,
            "resource": _some(it.resource),
            "priority": str(it.spec.priority),
            "placeholder": it.spec.placeholder,
            "preempted": it.releasing is _PREEMPTED,
            "allocationTime": it.allocated_ns,
        }


def _described(item: Mapping[str, Any]) -> tuple[Any, ...]:
    return (
        item["allocationKey"], item["nodeId"], sorted(item.get("resource", {}).items()),
        item["priority"], bool(item.get("placeholder")), bool(item.get("preempted")),
        item["allocationTime"],
    )  # fmt: skip


# -- queues


def _below(queue: Queue, truth: PartitionState) -> list[Application]:
    return [app for app in truth.applications.values() if queue in app.queue.lineage]


def _queues(book: Book, truth: PartitionState) -> Iterator[str]:
    tree = at_once(queues.Queues.measured(book, Settings())).tree()
    answers = [*_walked(tree)]
    yield from _one_each("queues", answers, "queuename", truth.queues)
    for answer in answers:
        queue = truth.queues.get(answer["queuename"])
        if queue is not None:
            yield from _queue(answer, queue, truth)


def _walked(queue: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield queue
    for child in queue.get("children", ()):
        yield from _walked(child)


def _queue(answer: Mapping[str, Any], queue: Queue, truth: PartitionState) -> Iterator[str]:
    spec, texts = queue.spec, {key: it.lower() for key, it in queue.spec.properties.items()}
    apps = _below(queue, truth)
    used, policy = _used(apps), texts.get("preemption.policy", "")
    expected: dict[str, Any] = {
        "allocatedResource": used,
        "pendingResource": _waiting(apps),
        "preemptingResource": _preempting(apps),
        "maxResource": _most(queue, truth),
        "guaranteedResource": spec.guaranteed,
        "headroom": _left(queue, truth),
        "absUsedCapacity": _shares(used, _most(queue, truth)),
        "runningApps": sum(app.state.value in _RUNNING for app in apps),
        "maxRunningApps": spec.max_applications,
        "allocatingAcceptedApps": sorted(
            app.id for app in apps if app.allocations and app.state.value in _HOLDING
        ),
        "status": queue.state.value,
        "isLeaf": spec.leaf,
        "parent": queue.path.rpartition(".")[0],
        "isManaged": spec.managed,
        "isPreemptionFence": policy == PreemptionPolicy.FENCE,
        "preemptionEnabled": policy != "disabled",
        "isPriorityFence": queue.properties.priority_fence,
        "prioritySorting": texts.get("application.sort.priority") != "disabled",
        "currentPriority": max(
            (_carried(queue, app, ask.spec.priority) for app in apps for ask in app.waiting_asks()),
            default=_LOWEST,
        ),
    }
    yield from compare(queue.path, answer, expected)
    if (template := spec.template) is not None:
        bounds = {
            "maxApplications": template.max_applications,
            "maxResource": template.max,
            "guaranteedResource": template.guaranteed,
        }
        shown = answer.get("template", {})
        yield from compare(f"the template of {queue.path}", shown, bounds)


def _most(queue: Queue, truth: PartitionState) -> Mapping[str, int] | None:
    return _capacity(truth) if queue.parent is None else queue.spec.max


def _left(queue: Queue, truth: PartitionState) -> Amounts:
    """On the whole path the least that is left, of what anything there bounds."""
    left: Amounts = {}
    for level in queue.lineage:
        used = _used(_below(level, truth))
        for kind, most in (_most(level, truth) or {}).items():
            rest = most - used.get(kind, 0)
            left[kind] = min(rest, left.get(kind, rest))
    return left


def _carried(queue: Queue, app: Application, priority: int) -> int:
    """Carry a priority up to a queue; each on the way adds its offset, or fences."""
    way = app.queue.lineage[: app.queue.lineage.index(queue) + 1]
    *_, shown = accumulate(way, _raised, initial=priority)
    return shown


def _raised(priority: int, level: Queue) -> int:
    properties = level.properties
    own = 0 if properties.priority_fence else priority
    return max(_LOWEST, min(2**31 - 1, own + properties.priority_offset))


# -- nodes


def _nodes(book: Book, truth: PartitionState) -> Iterator[str]:
    answers = [*nodes.nodes(book)]
    yield from _one_each("nodes", answers, "nodeID", truth.nodes)
    for answer in answers:
        node = truth.nodes.get(answer["nodeID"])
        if node is not None:
            yield from _node(answer, node, truth)
    yield from _utilizations(book, truth)


def _taken(node: Node) -> Amounts:
    """Add up what runs there, and what comes there to take the place of a placeholder elsewhere."""
    runs = [(it.resource, 1) for it in node.allocations.values()]
    return sum_of([*runs, *((it.resource, 1) for it in node.incoming.values())])


def _as_anywhere(node: Node) -> dict[str, Any]:
    """Return what an answer and a dump both have."""
    return {
        "capacity": _some(node.capacity),
        "allocated": _taken(node),
        "schedulable": node.ready and not (node.drained or node.awaited),
    }


def _node(answer: Mapping[str, Any], node: Node, truth: PartitionState) -> Iterator[str]:
    foreign = [it for it in truth.foreign.values() if it.node_id == node.id]
    occupied = sum_of([(node.occupied_reported, 1), *((it.resource, 1) for it in foreign)])
    kept = [key for (_, key), it in node.reservations.items() for _ in range(it.repeats)]
    expected = _as_anywhere(node) | {
        "occupied": occupied,
        "utilized": _shares(_taken(node), node.capacity),
        "isReserved": bool(kept),
        "reservations": kept,
    }
    yield from compare(node.id, answer, expected)
    left = sum_of([(node.capacity, 1), (occupied, -1), (_taken(node), -1)])
    available = _some(answer.get("available", {}))
    if available != left:
        yield f"it answers {available} available on {node.id}, expected {left}"
    runs = (it.spec.key for it in node.allocations.values())
    placed, others = answer.get("allocations", ()), answer.get("foreignAllocations", ())
    yield from _one_each(f"allocations on {node.id}", placed, "allocationKey", runs)
    keys = (it.key for it in foreign)
    yield from _one_each(f"foreign work on {node.id}", others, "allocationKey", keys)


def _utilizations(book: Book, truth: PartitionState) -> Iterator[str]:
    """A node is in the tenth that it fills last: the fifth from over 40 to 50 percent."""
    for of_kind in at_once(nodes.utilizations(book))["utilizations"]:
        kind = of_kind["type"]
        for tenth, bucket in enumerate(of_kind["utilization"]):
            for id_ in bucket.get("nodeNames", ()):
                node = truth.nodes.get(id_)
                if node is None:
                    continue
                used = _taken(node).get(kind, 0)
                share = 10 * used, node.capacity.get(kind, 0)
                low, high = tenth * share[1], (tenth + 1) * share[1]
                is_least = tenth == 0 and share[0] <= 0
                is_most = tenth == nodes.BUCKETS - 1 and share[0] > low
                if not (low < share[0] <= high or is_least or is_most):
                    yield f"it counts {id_} in tenth {tenth} of {kind}, of which it uses {used}"


# -- users and groups


def _owners(book: Book, truth: PartitionState) -> Iterator[str]:
    users = {it["userName"]: it for it in at_once(usage.users(book))}
    groups = {it["groupName"]: it for it in at_once(usage.groups(book))}
    for answers, of_group in ((users, False), (groups, True)):
        owned: dict[str, list[Application]] = {}
        for app in truth.applications.values():
            owned.setdefault(app.group if of_group else app.spec.user, []).append(app)
        for name, apps in owned.items():
            found = answers.get(name, {}).get("queues", {})
            if name and _used(apps) and found.get("queuePath") != ROOT:
                yield f"it does not answer what {name} has in use"
        for name, answer in answers.items():
            apps = owned.get(name, [])
            listed = answer.get("applications", ())
            if of_group and sorted(listed) != sorted(app.id for app in apps):
                yield f"it answers the applications {listed} of group {name}"
            yield from _owner(name, answer["queues"], apps, truth, of_group=of_group)


def _owner(
    name: str,
    answer: Mapping[str, Any],
    apps: list[Application],
    truth: PartitionState,
    *,
    of_group: bool,
) -> Iterator[str]:
    queue = truth.queues.get(answer["queuePath"])
    if queue is None:
        return
    limit = _limit_of(name, queue, of_group=of_group)
    expected: dict[str, Any] = {
        "resourceUsage": _used(app for app in apps if queue in app.queue.lineage),
        "maxResources": None if limit is None else limit.max_resources,
        "maxApplications": 0 if limit is None else limit.max_applications,
    }
    whom = f"{'group' if of_group else 'user'} {name} in {queue.path}"
    yield from compare(whom, answer, expected)
    for below in answer.get("children", ()):
        yield from _owner(name, below, apps, truth, of_group=of_group)


def _limit_of(name: str, queue: Queue, *, of_group: bool) -> LimitConfig | None:
    names = (name,) if of_group else (name, "*")
    return next(
        (
            limit
            for wanted in names
            for limit in queue.spec.limits
            if wanted in (limit.groups if of_group else limit.users)
        ),
        None,
    )


# -- the dump


def _dump(truth: PartitionState) -> Iterator[str]:
    dump = snapshot(truth)
    for path, queue in truth.queues.items():
        apps = _below(queue, truth)
        promised = (
            (it.promised, 1)
            for node in truth.nodes.values()
            for it in node.reservations.values()
            if truth.applications[it.application_id] in apps
        )
        expected = {
            "allocated": _used(apps),
            "pending": _waiting(apps),
            "preempting": _preempting(apps),
            "claimed": sum_of(promised),
            "applications": sorted(app.id for app in apps if app.queue is queue),
            "leaf": queue.spec.leaf,
            "max": _most(queue, truth),
            "max_applications": queue.spec.max_applications,
        }
        yield from compare(f"{path} in a dump", dump["queues"][path], expected)
    for id_, node in truth.nodes.items():
        yield from compare(f"{id_} in a dump", dump["nodes"][id_], _as_anywhere(node))
