"""A partition at one glance, as the live page shows it: bounded, however large it is.

It has only what facts say. It comes in parts, so that a page is sent the changed parts alone. What
a person asks for by name (an ask, a node, all that waits for one thing) has lists of its own.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

import msgspec

from yunikorn_actors.planning.reasons import WaitingAnswer, WaitingAsk
from yunikorn_actors.service.read.incremental_answers import Pauses, Steps, T, gathered
from yunikorn_actors.service.read.load_history import POINTS_MAX
from yunikorn_actors.service.read.read_model import ReadSide
from yunikorn_actors.service.read.rendering import Value, lean, most, used
from yunikorn_actors.service.read.replica import Book
from yunikorn_actors.state.allocations import Ask
from yunikorn_actors.state.applications import Application, FinishedApplication
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.values.durations import HOUR
from yunikorn_actors.values.masking import masked
from yunikorn_actors.values.resource import Resource

PARTITIONS_MAX: Final = 100
QUEUES_MAX: Final = 500
NODES_MAX: Final = 20_000
LISTED_MAX: Final = 100
"""So many asks or applications are in one list."""
FULL: Final = 10
OPEN, KEPT, CLOSED = range(3)
"""Of a node: it takes work, it is kept for an ask, it is drained or not ready."""
_FIRST_SIGN: Final = ord("0")
_FIRST_KINDS: Final = ("vcore", "memory")


def overview(side: ReadSide, name: str) -> Steps[dict[str, Any]]:
    """Return the parts; of the first partition where none is named."""
    book = side.partition(name) if name else next(iter(side.books.values()), None)
    parts: dict[str, Any] = {"partitions": _partitions(side), "partition": None}
    # Before its configuration there is nothing to show.
    if book is None or not book.state.queues:
        return parts
    queues = yield from _queues(book)
    nodes = yield from _nodes(book)
    return parts | {
        "partition": book.name,
        "cluster": _cluster(book) | {"placed": side.event_counts.allocated.total()},
        "queues": queues,
        "nodes": nodes,
        "troubles": [msgspec.to_builtins(it) for it in book.incidents.newest()],
    }


def _partitions(side: ReadSide) -> list[Value]:
    return [
        {"name": it.name, "short": it.short_name, "rm": it.rm_id, "state": it.state_name}
        for it in islice(side.books.values(), PARTITIONS_MAX)
    ]


def _cluster(book: Book) -> Value:
    state = book.state
    return {
        "capacity": most(state.capacity),
        "allocated": used(state.root.allocated),
        "pending": used(state.root.pending),
        "kinds": _kinds(state.capacity),
        "nodes": len(state.nodes),
        "closed_nodes": len(state.nodes) - state.schedulable_count,
        "allocations": state.allocation_count,
        "applications": dict(Counter(app.state.value for app in state.applications.values())),
        "finished": len(state.finished),
        "waiting_gangs": sum(
            app.spec.is_gang and bool(app.waiting_placeholders)
            for app in state.applications.values()
        ),
    }


def _kinds(capacity: Mapping[str, int]) -> list[str]:
    first = [it for it in _FIRST_KINDS if it in capacity]
    return first + sorted(set(capacity) - set(first))


def _queues(book: Book) -> Steps[Value]:
    asks, applications, pauses = Counter[str](), Counter[str](), Pauses()
    for app in book.state.applications.values():
        waiting_asks = 0
        for ask in app.asks.values():
            waiting_asks += ask.remaining > 0
            if pauses.due:
                yield
        # Of all queues above it, as the page shows trees.
        for level in app.queue.lineage:
            asks[level.path] += waiting_asks
            applications[level.path] += 1
        if pauses.due:
            yield
    listed: list[Value] = []
    for it in islice(_walk(book.state.root), QUEUES_MAX):
        listed.append(_queue(it, asks[it.path], applications[it.path]))
        if pauses.due:
            yield
    return {"listed": listed, "left_out": len(book.state.queues) - len(listed)}


def _walk(queue: Queue) -> Iterator[Queue]:
    """Parents first, in the order of the configuration."""
    yield queue
    for child in sorted(queue.children.values(), key=lambda it: it.spec.position):
        yield from _walk(child)


def _queue(queue: Queue, waiting_asks: int, applications: int) -> Value:
    return lean(
        {
            "path": queue.path,
            "state": queue.state.value,
            "leaf": queue.is_leaf,
            "managed": queue.spec.managed,
            "allocated": used(queue.allocated),
            "pending": used(queue.pending),
            "preempting": used(queue.preempting),
            "max": most(queue.spec.max),
            "guaranteed": used(queue.spec.guaranteed),
            "waiting": waiting_asks,
            "applications": applications,
            "running": queue.running_apps,
            "max_running": queue.spec.max_applications,
        },
        ("path", "state"),
    )


# -- nodes


def _nodes(book: Book) -> Steps[Value]:
    nodes = book.state.nodes
    # One character each: a node costs a page so little that twenty thousand fit.
    signs = yield from gathered(map(sign_of, islice(nodes.values(), NODES_MAX)))
    return {
        "version": nodes_version(book),
        "signs": "".join(signs),
        "left_out": max(0, len(nodes) - NODES_MAX),
    }


def nodes_version(book: Book) -> str:
    """Name the list of nodes; a list of another name has others, or has them elsewhere."""
    return f"{book.epoch}.{book.changes_of_nodes}"


def sign_of(node: Node) -> str:
    """Say in one character how full a node is, and whether it takes work."""
    standing = OPEN if node.is_open else (KEPT if node.is_schedulable else CLOSED)
    return chr(_FIRST_SIGN + standing * (FULL + 1) + _tenths(node.capacity, node.available))


def _tenths(capacity: Resource, available: Resource) -> int:
    """Of what it has least of: 0 is empty, 10 is full, and nothing else is either."""
    fullest = 0
    for kind, amount in capacity.items():
        left = available.get(kind, 0)
        # A type of which nothing is used says nothing about how full it is.
        if left < amount:
            tenths = FULL if left <= 0 else max(1, (amount - left) * FULL // amount)
            fullest = max(fullest, tenths)
    return fullest


def node_names(book: Book) -> Value:
    """Name the nodes, in the order of their signs."""
    return {"version": nodes_version(book), "names": list(islice(book.state.nodes, NODES_MAX))}


# -- how it went on


def course(side: ReadSide, book: Book, hours: int) -> Value:
    """Show the samples of the last hours, and what YuniKorn's history tells of that time."""
    begin_ns = side.now_ns - hours * HOUR
    course = side.courses.by_name.get(book.name)
    samples = [] if course is None else course.last(hours, side.now_ns)
    ran = [it for it in side.history.samples if it.at_ns > begin_ns]
    # Every so many: no picture shows more points.
    some = ran[:: max(1, -(-len(ran) // POINTS_MAX))]
    return {
        "begin_ns": begin_ns,
        "end_ns": side.now_ns,
        "asks": [(it.at_ns, it.asks) for it in samples],
        "oldest_ns": [(it.at_ns, it.oldest_ns) for it in samples],
        "messages": [(it.at_ns, it.messages) for it in samples],
        "wait_ns": [(it.at_ns, it.wait_ns) for it in samples],
        "applications": [(it.at_ns, it.applications) for it in some],
        "allocations": [(it.at_ns, it.containers) for it in some],
    }


# -- what is searched


def asks(book: Book, found: WaitingAnswer) -> Value:
    """Show asks that the core has listed; not those that have gone since."""
    known = ((it, book.state.applications.get(it.application_id)) for it in found.asks)
    listed = [
        _ask(it, app, app.asks[it.key])
        for it, app in known
        if app is not None and it.key in app.asks
    ]
    return {"total": found.total, "asks": listed}


def _ask(found: WaitingAsk, app: Application, ask: Ask) -> Value:
    spec = ask.spec
    return {
        "application": app.id,
        "key": spec.key,
        "queue": app.queue.path,
        "reason": found.cause.value,
        "said": found.text,
        "since_ns": ask.created_ns,
        "priority": spec.priority,
        "repeats": ask.remaining + ask.parked,
        "amounts": used(spec.resource),
        "task_group": spec.task_group,
        "placeholder": spec.placeholder,
    }


def applications(book: Book, text: str) -> Steps[Value]:
    """List applications with this text, those that have not ended first."""
    state, words = book.state, text.lower()
    running = yield from _chosen(
        state.applications.values(),
        lambda it: _has(words, it.id, it.queue.path, it.spec.user, it.state.value),
    )
    ended = yield from _chosen(
        # The newest first: what ended long ago is looked for last.
        reversed(state.finished.values()),
        lambda it: _has(words, it.spec.application_id, it.queue, it.spec.user, it.state.value),
    )
    shown = [_application(it) for it in running[:LISTED_MAX]]
    shown += [_finished(it) for it in ended[: LISTED_MAX - len(shown)]]
    return {"total": len(running) + len(ended), "applications": shown}


def _chosen(items: Iterable[T], is_meant: Callable[[T], bool]) -> Steps[list[T]]:
    found: list[T] = []
    pauses = Pauses()
    for it in items:
        if is_meant(it):
            found.append(it)
        if pauses.due:
            yield
    return found


def _has(words: str, *fields: str) -> bool:
    return not words or any(words in it.lower() for it in fields)


def _application(app: Application) -> Value:
    return {
        "id": app.id,
        "queue": app.queue.path,
        "user": app.spec.user,
        "state": app.state.value,
        "since_ns": app.submitted_ns,
        "allocated": used(app.allocated),
        "pending": used(app.pending),
        "allocations": len(app.allocations),
        "waiting": sum(it.remaining for it in app.asks.values()),
        "gang": app.spec.is_gang,
        "ended": False,
    }


def _finished(app: FinishedApplication) -> Value:
    return {
        "id": app.spec.application_id,
        "queue": app.queue,
        "user": app.spec.user,
        "state": app.state.value,
        "since_ns": app.submitted_ns,
        "message": masked(app.message),
        "gang": app.spec.is_gang,
        "ended": True,
    }
