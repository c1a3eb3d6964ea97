"""The rest of what a read side answers, and a dump, held against single asks and allocations.

`read_answers` looks at which things there are, and at sums. This is about each of them: bounds
and what is left of them, priorities, owners, kinds.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any, Final

from yunikorn_actors.config import LimitConfig
from yunikorn_actors.lab.sides.read_answers import compare, sum_of, walked, whole
from yunikorn_actors.service.read import applications, nodes, queues
from yunikorn_actors.service.read import owner_usage as usage
from yunikorn_actors.service.read.incremental_answers import at_once
from yunikorn_actors.service.read.replica import Book
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.dump import snapshot
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.state.termination import TerminationType

Amounts = dict[str, int]
_LOWEST: Final = -(2**31)
_PREEMPTED: Final = TerminationType.PREEMPTED_BY_SCHEDULER
_HOLDING: Final = ("Accepted", "Resuming")


def wrong_details(book: Book, truth: PartitionState) -> Iterator[str]:
    if not truth.queues:
        return
    tree = at_once(queues.Queues.measured(book, 0)).tree()
    for answer in walked(tree):
        queue = truth.queues.get(answer["queuename"])
        if queue is not None:
            yield from _queue(answer, queue, truth)
    for answer in map(whole, applications.active(book)):
        app = truth.applications.get(answer["applicationID"])
        if app is not None:
            yield from _application(answer, app)
    yield from _nodes(book, truth)
    yield from _owners(book, truth)
    yield from _dump(truth)


# -- queues


def _below(queue: Queue, truth: PartitionState) -> list[Application]:
    return [app for app in truth.applications.values() if queue in app.queue.lineage]


def _most(queue: Queue, truth: PartitionState) -> Amounts | None:
    if queue.parent is None:
        return sum_of((it.capacity, 1) for it in truth.nodes.values())
    return queue.spec.max


def _queue(answer: Mapping[str, Any], queue: Queue, truth: PartitionState) -> Iterator[str]:
    spec, texts = queue.spec, {key: it.lower() for key, it in queue.spec.properties.items()}
    apps = _below(queue, truth)
    policy = texts.get("preemption.policy", "")
    template = spec.template
    expected: dict[str, Any] = {
        "maxResource": _most(queue, truth),
        "guaranteedResource": spec.guaranteed,
        "headroom": _left(queue, truth),
        "preemptingResource": _preempting(apps),
        "isManaged": spec.managed,
        "isPreemptionFence": policy == "fence",
        "preemptionEnabled": policy != "disabled",
        "isPriorityFence": texts.get("priority.policy") == "fence",
        "prioritySorting": texts.get("application.sort.priority") != "disabled",
        "currentPriority": max(
            (_carried(queue, app, ask.spec.priority) for app in apps for ask in app.waiting_asks()),
            default=_LOWEST,
        ),
        "allocatingAcceptedApps": sorted(
            app.id for app in apps if app.allocations and app.state.value in _HOLDING
        ),
        "absUsedCapacity": _shares(_used(apps), _most(queue, truth)),
    }
    if template is not None:
        shown = answer.get("template", {})
        bounds = {
            "maxApplications": template.max_applications,
            "maxResource": template.max,
            "guaranteedResource": template.guaranteed,
        }
        yield from compare(f"the template of {queue.path}", shown, bounds)
    yield from compare(queue.path, answer, expected)


def _used(apps: Iterable[Application]) -> Amounts:
    return sum_of((it.resource, 1) for app in apps for it in app.allocations.values())


def _preempting(apps: Iterable[Application]) -> Amounts:
    return sum_of(
        (it.resource, 1)
        for app in apps
        for it in app.allocations.values()
        if it.releasing is _PREEMPTED
    )


def _left(queue: Queue, truth: PartitionState) -> Amounts | None:
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


def _shares(taken: Amounts, whole_of: Amounts | None) -> Amounts:
    sizes = whole_of or {}
    return {kind: it * 100 // sizes[kind] for kind, it in taken.items() if it and sizes.get(kind)}


# -- applications


def _application(answer: Mapping[str, Any], app: Application) -> Iterator[str]:
    log = [it["applicationState"] for it in answer.get("stateLog", ())]
    if log != [it.state.value for it in app.state_log.entries]:
        yield f"it answers the states {log} of {app.id}"
    yield from compare(app.id, answer, {"groups": list(app.spec.groups)})
    groups = {it["taskGroupName"]: it for it in answer.get("placeholderData", ())}
    for name, group in app.task_groups.items():
        counts = {
            "count": group.count,
            "replaced": group.replaced,
            "timedout": group.timed_out,
        }
        yield from compare(f"group {name} of {app.id}", groups.get(name, {}), counts)
    waiting = {it["allocationKey"]: it for it in answer.get("requests", ())}
    for ask in app.waiting_asks():
        spec = ask.spec
        expected = {
            "resource": {kind: it for kind, it in spec.resource.items() if it},
            "priority": str(spec.priority),
            "requiredNodeId": spec.required_node,
            "placeholder": spec.placeholder,
            "taskGroupName": spec.task_group,
            "originator": spec.originator,
            "requestTime": ask.created_ns,
        }
        yield from compare(f"ask {spec.key}", waiting.get(spec.key, {}), expected)
    running = sorted(_described(it) for it in answer.get("allocations", ()))
    if running != sorted(_described(it) for it in _runs(app)):
        yield f"it answers that {running} run of {app.id}"


def _runs(app: Application) -> Iterator[dict[str, Any]]:
    for it in app.allocations.values():
        yield {
            "allocationKey": it.spec.key,
            "nodeId": it.node_id,
            "resource": {kind: n for kind, n in it.resource.items() if n},
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


# -- nodes, users and groups


def _nodes(book: Book, truth: PartitionState) -> Iterator[str]:
    for answer in nodes.nodes(book):
        node = truth.nodes.get(answer["nodeID"])
        if node is None:
            continue
        foreign = [it for it in truth.foreign.values() if it.node_id == node.id]
        occupied = sum_of([(node.occupied_reported, 1), *((it.resource, 1) for it in foreign)])
        placed = sum_of((it.resource, 1) for it in node.allocations.values())
        placed = sum_of([(placed, 1), *((it.resource, 1) for it in node.incoming.values())])
        kept = [key for (_, key), it in node.reservations.items() for _ in range(it.repeats)]
        expected = {
            "occupied": occupied,
            "utilized": _shares(placed, node.capacity),
            "reservations": kept,
        }
        yield from compare(node.id, answer, expected)
        keys = sorted(it["allocationKey"] for it in answer.get("foreignAllocations", ()))
        if keys != sorted(it.key for it in foreign):
            yield f"it answers foreign work {keys} on {node.id}"


def _owners(book: Book, truth: PartitionState) -> Iterator[str]:
    apps = truth.applications.values()
    for answer in at_once(usage.users(book)):
        name = answer["userName"]
        mine = [app for app in apps if app.spec.user == name]
        yield from _owner(name, answer["queues"], mine, truth, of_group=False)
    for answer in at_once(usage.groups(book)):
        name = answer["groupName"]
        ours = [app for app in apps if app.group == name]
        if sorted(answer.get("applications", ())) != sorted(app.id for app in ours):
            yield f"it answers the applications {answer.get('applications')} of group {name}"
        yield from _owner(name, answer["queues"], ours, truth, of_group=True)


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
        waits = ((it.spec.resource, it.remaining) for app in apps for it in app.asks.values())
        expected = {
            "allocated": _used(apps),
            "pending": sum_of(waits),
            "preempting": _preempting(apps),
            "claimed": sum_of(promised),
            "applications": sorted(app.id for app in apps if app.queue is queue),
            "leaf": queue.spec.leaf,
            "max": _most(queue, truth),
            "max_applications": queue.spec.max_applications,
        }
        yield from compare(f"{path} in a dump", dump["queues"][path], expected)
    for id_, node in truth.nodes.items():
        placed = sum_of((it.resource, 1) for it in node.allocations.values())
        arrives = ((it.resource, 1) for it in node.incoming.values())
        expected = {
            "capacity": sum_of([(node.capacity, 1)]),
            "allocated": sum_of([(placed, 1), *arrives]),
            "schedulable": node.ready and not (node.drained or node.awaited),
        }
        yield from compare(f"{id_} in a dump", dump["nodes"][id_], expected)
