"""What each metric is made of: the replicas, what was counted, and the actors' own figures."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, chain
from typing import Any, Final

from yunikorn_actors.messages.base import is_manager, manager_of
from yunikorn_actors.recording.meter import BOUNDS_NS
from yunikorn_actors.service.metrics.exposition import Family, Sample, metric_name
from yunikorn_actors.service.read.nodes import by_utilization
from yunikorn_actors.service.read.read_model import ReadSide
from yunikorn_actors.state.applications import ApplicationState
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.values.durations import SECOND

SCHEDULER: Final = "yunikorn_scheduler"
OWN: Final = "yunikorn_actors"
_ENDS: Final = ("completed", "failed", "rejected")
_ACTIVE: Final = ("new", "accepted", "running", "failing", "resuming", "completing")
_RANGES: Final = tuple(
    f"{'[0' if tenth == 0 else f'({tenth * 10}%'},{tenth * 10 + 10}%]" for tenth in range(10)
)

Answer = Mapping[str, Any]
"""What the core has answered: its counts, and its mailboxes."""


Families = Iterator[Family | None]
"""With a pause, None, now and then."""

Queues = list[tuple[PartitionState, Queue]]
"""Of one path, each with its partition."""


def families(side: ReadSide, answer: Answer) -> Families:
    yield from _scheduler(side, answer)
    yield from _usage_of_nodes(side)
    yield from _queues(side)
    yield from _events(side)
    yield from _actors(side, answer)


def _labelled(name: str, counts: Mapping[str, float]) -> list[Sample]:
    return [Sample({name: label}, count) for label, count in counts.items()]


# -- the scheduler


def _scheduler(side: ReadSide, answer: Answer) -> Iterator[Family]:
    event_counts, counts = side.event_counts, answer["counts"]
    attempts = {
        "allocated": event_counts.allocated.total(),
        "released": event_counts.released.total(),
        "rejected": counts["rejected_asks"],
        "error": counts["scheduling_errors"],
    }
    yield Family(
        f"{SCHEDULER}_container_allocation_attempt_total",
        "counter",
        "Allocations made and ended, and asks rejected.",
        _labelled("state", attempts),
    )
    submitted = {name: event_counts.submitted[name] for name in ("new", "accepted", "rejected")}
    yield Family(
        f"{SCHEDULER}_application_submission_total",
        "counter",
        "Applications submitted, by what became of them first.",
        _labelled("result", submitted),
    )
    states = _states(side)
    now = {name: states[name] for name in ("running", "resuming", "failing", "completing")}
    ended = {name: _ended(side, name) for name in ("completed", "failed")}
    yield Family(
        f"{SCHEDULER}_application_total",
        "gauge",
        "Applications by state; those that have ended are counted since the start.",
        _labelled("state", now | ended),
    )
    yield Family(
        f"{SCHEDULER}_node",
        "gauge",
        "Nodes by state.",
        _labelled("state", _node_states(side, answer)),
    )
    metered = answer["mailboxes"]["metered"]
    if metered is not None:
        for what in ("scheduling_latency", "scheduling_cycle"):
            yield Family(
                f"{SCHEDULER}_{what}_milliseconds",
                "histogram",
                "Time of one plan, in seconds whatever the name says.",
                _histogram({}, metered["cycles"]),
            )


def _states(side: ReadSide) -> Counter[str]:
    """Count the active applications by state; Starting is a way of running."""
    states = Counter(
        app.state.value.lower()
        for book in side.books.values()
        for app in book.state.applications.values()
    )
    # YuniKorn has no such state: an application that starts runs.
    states["running"] += states.pop(ApplicationState.STARTING.value.lower(), 0)
    return states


def _ended(side: ReadSide, how: str) -> int:
    return sum(count for (_, end), count in side.event_counts.ended.items() if end == how)


def _node_states(side: ReadSide, answer: Answer) -> dict[str, int]:
    nodes = [node for book in side.books.values() for node in book.state.nodes.values()]
    return {
        "active": sum(node.is_schedulable for node in nodes),
        "draining": sum(node.drained for node in nodes),
        "unhealthy": sum(node.awaited or not node.ready for node in nodes),
        "decommissioned": side.event_counts.nodes_removed,
        "failed": len(answer["counts"]["failed_nodes"]),
    }


def _usage_of_nodes(side: ReadSide) -> Families:
    totals: dict[str, list[int]] = {}
    for book in side.books.values():
        by_kind = yield from by_utilization(book.state)
        for kind, buckets in by_kind.items():
            counts = totals.setdefault(kind, [0] * len(_RANGES))
            for tenth, names in enumerate(buckets):
                counts[tenth] += len(names)
    for kind, counts in totals.items():
        yield Family(
            f"{SCHEDULER}_{metric_name(kind)}_node_usage_total",
            "gauge",
            f"Nodes by how much of their {metric_name(kind)} is used.",
            _labelled("range", dict(zip(_RANGES, counts, strict=True))),
        )


# -- queues


def _queues(side: ReadSide) -> Iterator[Family]:
    """Add up what has one path: several partitions may have a queue of it, as all have a root."""
    by_path: dict[str, Queues] = {}
    for book in side.books.values():
        for path, queue in book.state.queues.items():
            by_path.setdefault(path, []).append((book.state, queue))
    yield Family(
        "yunikorn_queue_app",
        "gauge",
        "Applications of a queue by state; those that have ended are counted since the start.",
        chain.from_iterable(_applications(side, *it) for it in by_path.items()),
    )
    yield Family(
        "yunikorn_queue_app_total",
        "counter",
        "Applications of a queue that have ended, whether or not the queue is still there.",
        [
            Sample({"queue": path, "state": end}, count)
            for (path, end), count in sorted(side.event_counts.ended.items())
        ],
    )
    yield Family(
        "yunikorn_queue_resource",
        "gauge",
        "What a queue has, may have and waits for.",
        chain.from_iterable(_resources(*it) for it in by_path.items()),
    )
    yield from _containers(side)


def _applications(side: ReadSide, path: str, queues: Queues) -> Iterator[Sample]:
    states = Counter(
        app.state.value.lower()
        for partition, queue in queues
        for id_ in queue.applications.values()
        if (app := partition.applications.get(id_)) is not None and app.queue is queue
    )
    states["running"] += states.pop(ApplicationState.STARTING.value.lower(), 0)
    for state in _ACTIVE:
        yield Sample({"queue": path, "state": state}, states[state])
    for end in _ENDS:
        yield Sample({"queue": path, "state": end}, side.event_counts.ended[path, end])


def _resources(path: str, queues: Queues) -> Iterator[Sample]:
    totals: Counter[tuple[str, str]] = Counter()
    for partition, queue in queues:
        parts = {
            "guaranteed": queue.spec.guaranteed,
            # The root has no maximum of its own, and the size of the cluster counts.
            "max": queue.spec.max if queue.parent is not None else partition.capacity,
            "allocated": queue.allocated,
            "pending": queue.pending,
            "preempting": queue.preempting,
            "maxRunningApps": {"apps": queue.spec.max_applications or 0},
        }
        for state, amounts in parts.items():
            for kind, quantity in sorted((amounts or {}).items()):
                totals[state, kind] += quantity
    for (state, kind), quantity in totals.items():
        # Without a maximum the metric is left out.
        if quantity or state != "maxRunningApps":
            yield Sample({"queue": path, "state": state, "resource": kind}, quantity)


def _containers(side: ReadSide) -> Iterator[Family]:
    """Name a metric for each queue, as YuniKorn does; queues of one name are added up."""
    totals: dict[str, Counter[str]] = {}
    for state in ("allocated", "released"):
        for path, count in sorted(getattr(side.event_counts, state).items()):
            totals.setdefault(metric_name(path), Counter())[state] += count
    for name, counts in totals.items():
        yield Family(
            f"yunikorn_{name}_queue_container",
            "counter",
            "Allocations made and ended in a queue.",
            _labelled("state", {it: counts[it] for it in ("allocated", "released")}),
        )


# -- events


def _events(side: ReadSide) -> Iterator[Family]:
    ring = side.events.ring
    answer = {
        # Nothing is lost on the way here: YuniKorn's own counters of loss stay 0.
        "created": ring.next_id,
        "channeled": ring.next_id,
        "not_channeled": 0,
        "processed": ring.next_id,
        "stored": ring.next_id,
        "not_stored": 0,
        "collected": ring.next_id - ring.lowest_id,
    }
    for name, count in answer.items():
        yield Family(f"yunikorn_event_total_{name}", "gauge", "Event records.", [Sample({}, count)])


# -- actors


def _actors(side: ReadSide, answer: Answer) -> Iterator[Family]:
    found = answer["mailboxes"]
    yield Family(
        f"{OWN}_mailbox_length",
        "gauge",
        "Messages that wait for an actor, or are in its hands.",
        _labelled("actor", _by_role(found["lengths"])),
    )
    yield Family(
        f"{OWN}_undelivered_responses",
        "gauge",
        "Calls that a resource manager's callback has not taken yet.",
        _labelled("rm", _undelivered(found["lengths"])),
    )
    yield Family(
        f"{OWN}_unhandled_requests",
        "gauge",
        "Requests of a resource manager that are not handled yet.",
        _labelled("rm", found["unhandled"]),
    )
    yield Family(
        f"{OWN}_callback_errors_total",
        "counter",
        "Exceptions that a callback has raised.",
        _labelled("rm", found["callback_errors"]),
    )
    yield Family(
        f"{OWN}_read_revision",
        "gauge",
        "The last fact of a partition that the read side knows.",
        _labelled("partition", {name: it.state.revision for name, it in side.books.items()}),
    )
    yield Family(
        f"{OWN}_waiting_asks",
        "gauge",
        "Asks that wait, by what they wait for first.",
        [
            Sample({"partition": partition, "reason": cause}, count)
            for partition, causes in answer["causes"].items()
            for cause, count in causes.items()
        ],
    )
    yield from _metered(found["metered"])


def _by_role(lengths: Mapping[str, int]) -> Mapping[str, int]:
    roles: Counter[str] = Counter()
    for address, length in lengths.items():
        roles[address.partition(":")[0]] += length
    return roles


def _undelivered(lengths: Mapping[str, int]) -> Mapping[str, int]:
    return {manager_of(it): length for it, length in lengths.items() if is_manager(it)}


def _metered(metered: Answer | None) -> Iterator[Family]:
    if metered is None:
        return
    actors = metered["actors"]
    yield Family(
        f"{OWN}_messages_total",
        "counter",
        "Messages that an actor was sent.",
        _labelled("actor", {role: it["messages"] for role, it in actors.items()}),
    )
    yield Family(
        f"{OWN}_mailbox_wait_seconds_total",
        "counter",
        "How long messages have waited in a mailbox, all together.",
        _labelled("actor", {role: it["waiting_ns"] / SECOND for role, it in actors.items()}),
    )
    yield Family(
        f"{OWN}_handling_seconds",
        "histogram",
        "How long an actor was busy with a message.",
        [
            sample
            for role, it in actors.items()
            for sample in _histogram({"actor": role}, it["handling"])
        ],
    )
    yield Family(
        f"{OWN}_handling_seconds_max",
        "gauge",
        "The longest that an actor was busy with a message.",
        _labelled("actor", {role: it["worst_ns"] / SECOND for role, it in actors.items()}),
    )
    yield Family(
        f"{OWN}_dead_letters_total",
        "counter",
        "Messages to an address where nobody is any more.",
        [Sample({}, metered["dead_letters"])],
    )


def _histogram(labels: Mapping[str, str], plain: Answer) -> Iterable[Sample]:
    # Prometheus wants sums up to each bound, and not the numbers of each range.
    counts = list(accumulate(plain["counts"]))
    for bound_ns, count in zip(BOUNDS_NS, counts, strict=False):
        yield Sample({**labels, "le": f"{bound_ns / SECOND:g}"}, count, "_bucket")
    yield Sample({**labels, "le": "+Inf"}, counts[-1], "_bucket")
    yield Sample(labels, plain["total_ns"] / SECOND, "_sum")
    yield Sample(labels, counts[-1], "_count")
