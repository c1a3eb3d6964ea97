"""What a read side answers, against sums of what is in the truth.

The truth has books as well; here each number is added up from single asks, allocations and nodes.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from types import GeneratorType
from typing import Any, Final

from yunikorn_actors.service.read import applications, clusters, nodes, queues
from yunikorn_actors.service.read import owner_usage as usage
from yunikorn_actors.service.read.incremental_answers import at_once
from yunikorn_actors.service.read.replica import Book
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import ROOT

Amounts = Mapping[str, int]
_DELAY_NS: Final = 0
_RUNNING: Final = frozenset({"Starting", "Running"})
"""States in which an application counts as running."""


def wrong_answers(book: Book, truth: PartitionState) -> Iterator[str]:
    yield from _partition(book, truth)
    if not truth.queues:
        return
    yield from _applications(book, truth)
    yield from _queues(book, truth)
    yield from _nodes(book, truth)
    yield from _owners(book, truth)


def sum_of(several: Iterable[tuple[Amounts, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for amounts, times in several:
        for kind, amount in amounts.items():
            total[kind] += amount * times
    return {kind: amount for kind, amount in total.items() if amount}


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


def _placed(app: Application, *, placeholder: bool) -> dict[str, int]:
    standing = app.allocations.values()
    return sum_of((it.resource, 1) for it in standing if it.spec.placeholder is placeholder)


def _waiting(app: Application) -> dict[str, int]:
    return sum_of((ask.spec.resource, ask.remaining) for ask in app.asks.values())


def _partition(book: Book, truth: PartitionState) -> Iterator[str]:
    running = truth.applications.values()
    capacity = sum_of((it.capacity, 1) for it in truth.nodes.values())
    answer = clusters.partition(book)
    states = Counter(it.state.value for it in running)
    states.update(it.state.value for it in truth.finished.values())
    expected = {
        "totalNodes": len(truth.nodes),
        "totalContainers": sum(len(it.allocations) for it in running),
        "applications": {**states, "total": states.total()},
        "state": ("Behind" if truth.is_backpressured else "Paused")
        if truth.suspended
        else "Active",
    }
    yield from compare("the partition", answer, expected)
    sizes = answer.get("capacity", {})
    found = {kind: it for kind, it in sizes.get("capacity", {}).items() if it}
    if found != capacity:
        yield f"it answers a capacity of {found}, expected {capacity}"


def whole(answer: Any) -> Mapping[str, Any]:  # noqa: ANN401 - an answer, or steps that make it
    return at_once(answer) if isinstance(answer, GeneratorType) else answer


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
        "submissionTime": app.submitted_ns,
        "usedResource": _placed(app, placeholder=False),
        "pendingResource": _waiting(app),
        "hasReserved": bool(reserved),
        "maxRequestPriority": max((it.spec.priority for it in waiting), default=0),
    }
    yield from compare(app.id, answer, expected)
    if sorted(answer.get("reservations", ())) != sorted(reserved):
        yield f"it answers reservations {answer.get('reservations')} of {app.id}, not {reserved}"
    asks = [*answer.get("requests", ())]
    yield from _one_each(
        f"asks of {app.id}", asks, "allocationKey", (it.spec.key for it in waiting)
    )
    standing = [*answer.get("allocations", ())]
    keys = (it.spec.key for it in app.allocations.values())
    yield from _one_each(f"allocations of {app.id}", standing, "allocationKey", keys)
    places = (it.node_id for it in app.allocations.values())
    yield from _one_each(f"nodes of {app.id}", standing, "nodeId", places)


def _queues(book: Book, truth: PartitionState) -> Iterator[str]:
    tree = at_once(queues.Queues.measured(book, _DELAY_NS)).tree()
    answers = [*walked(tree)]
    yield from _one_each("queues", answers, "queuename", truth.queues)
    allocated: dict[str, list[Amounts]] = {}
    pending: dict[str, list[Amounts]] = {}
    running: Counter[str] = Counter()
    for app in truth.applications.values():
        for level in app.queue.lineage:
            books = allocated.setdefault(level.path, [])
            books += (it.resource for it in app.allocations.values())
            pending.setdefault(level.path, []).append(_waiting(app))
            running[level.path] += app.state.value in _RUNNING
    for answer in answers:
        path = answer["queuename"]
        queue = truth.queues.get(path)
        if queue is None:
            continue
        expected = {
            "allocatedResource": sum_of((it, 1) for it in allocated.get(path, ())),
            "pendingResource": sum_of((it, 1) for it in pending.get(path, ())),
            "runningApps": running[path],
            "status": queue.state.value,
            "isLeaf": queue.spec.leaf,
            "parent": path.rpartition(".")[0],
            "maxRunningApps": queue.spec.max_applications,
        }
        yield from compare(path, answer, expected)


def walked(queue: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield queue
    for child in queue.get("children", ()):
        yield from walked(child)


def _nodes(book: Book, truth: PartitionState) -> Iterator[str]:
    answers = [*nodes.nodes(book)]
    yield from _one_each("nodes", answers, "nodeID", truth.nodes)
    for answer in answers:
        node = truth.nodes.get(answer["nodeID"])
        if node is not None:
            yield from _node(answer, node)
    yield from _utilizations(book, truth)


def _utilizations(book: Book, truth: PartitionState) -> Iterator[str]:
    """A node is in the tenth that it fills last: the fifth from over 40 to 50 percent."""
    for of_kind in at_once(nodes.utilizations(book))["utilizations"]:
        kind = of_kind["type"]
        for tenth, bucket in enumerate(of_kind["utilization"]):
            for id_ in bucket.get("nodeNames", ()):
                node = truth.nodes.get(id_)
                if node is None:
                    continue
                used = _used(node).get(kind, 0)
                share = 10 * used, node.capacity.get(kind, 0)
                low, high = tenth * share[1], (tenth + 1) * share[1]
                is_least = tenth == 0 and share[0] <= 0
                is_most = tenth == nodes.BUCKETS - 1 and share[0] > low
                if not (low < share[0] <= high or is_least or is_most):
                    yield f"it counts {id_} in tenth {tenth} of {kind}, of which it uses {used}"


def _node(answer: Mapping[str, Any], node: Node) -> Iterator[str]:
    placed = [*node.allocations.values()]
    expected = {
        "capacity": sum_of([(node.capacity, 1)]),
        "allocated": _used(node),
        "schedulable": node.ready and not (node.drained or node.awaited),
        "isReserved": bool(node.reservations),
    }
    yield from compare(node.id, answer, expected)
    left = sum_of([(node.capacity, 1), (answer.get("occupied", {}), -1)])
    left = sum_of([(left, 1), (_used(node), -1)])
    available = {kind: it for kind, it in answer.get("available", {}).items() if it}
    if available != left:
        yield f"it answers {available} available on {node.id}, expected {left}"
    keys = (it.spec.key for it in placed)
    yield from _one_each(
        f"allocations on {node.id}", answer.get("allocations", ()), "allocationKey", keys
    )


def _used(node: Node) -> dict[str, int]:
    """Add up what runs there, and what comes there to take the place of a placeholder elsewhere."""
    runs = ((it.resource, 1) for it in node.allocations.values())
    return sum_of([*runs, *((it.resource, 1) for it in node.incoming.values())])


def _owners(book: Book, truth: PartitionState) -> Iterator[str]:
    users = {it["userName"]: it for it in at_once(usage.users(book))}
    groups = {it["groupName"]: it for it in at_once(usage.groups(book))}
    of_users: dict[str, list[Amounts]] = {}
    of_groups: dict[str, list[Amounts]] = {}
    for app in truth.applications.values():
        for used, owner in ((of_users, app.spec.user), (of_groups, app.group)):
            mine = used.setdefault(owner, [])
            mine += (it.resource for it in app.allocations.values())
    for answers, in_use in ((users, of_users), (groups, of_groups)):
        for owner, several in in_use.items():
            wanted = sum_of((it, 1) for it in several)
            found = answers.get(owner, {}).get("queues", {})
            if owner and wanted:
                if found.get("queuePath") != ROOT:
                    yield f"it does not answer what {owner} has in use"
                yield from compare(owner, found, {"resourceUsage": wanted})
