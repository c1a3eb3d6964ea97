"""Nodes as YuniKorn's REST interface shows them, and how many are how full."""

from functools import partial
from typing import Final

from yunikorn_actors.recording.secret_values import masked_texts
from yunikorn_actors.service.read.applications import allocation
from yunikorn_actors.service.read.incremental_answers import Each, Pauses, Steps, each
from yunikorn_actors.service.read.rendering import Value, lean, most, percentages, used
from yunikorn_actors.service.read.replica import Book
from yunikorn_actors.state.allocations import ForeignAllocation
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.values.tags import FOREIGN_STATIC, HOST_NAME, RACK_NAME, TAG_FOREIGN

ALWAYS: Final = frozenset({"nodeID", "schedulable", "isReserved"})
BUCKETS: Final = 10
_KEYED: Final = frozenset({"allocationKey"})


def nodes(book: Book) -> list[Value] | Each:
    return each(partial(node, book), book.state.nodes.values())


def node(book: Book, it: Node) -> Value:
    state, notes = book.state, book.notes
    reserved = [key for (_, key), kept in it.reservations.items() for _ in range(kept.repeats)]
    return lean(
        {
            "nodeID": it.id,
            "hostName": it.attributes.get(HOST_NAME, ""),
            "rackName": it.attributes.get(RACK_NAME, ""),
            "attributes": masked_texts(it.attributes),
            "capacity": used(it.capacity),
            "allocated": used(it.allocated),
            "occupied": used(it.occupied),
            "available": most(it.available),
            "utilized": percentages(it.allocated, it.capacity),
            "allocations": each(
                # Each of them is shown with its application, which the node does not name.
                lambda placed: allocation(
                    placed, state.applications[state.owners[placed.uuid]], notes
                ),
                it.allocations.values(),
            ),
            "foreignAllocations": each(_foreign, it.foreign.values()),
            "schedulable": it.is_schedulable,
            "isReserved": bool(reserved),
            "reservations": reserved,
        },
        ALWAYS,
    )


def _foreign(item: ForeignAllocation) -> Value:
    return lean(
        {
            "allocationKey": item.key,
            "allocationTags": masked_texts(item.tags),
            "allocationTime": item.created_ns,
            "resource": used(item.resource),
            "priority": str(item.priority),
            "nodeId": item.node_id,
            "preemptable": item.tags.get(TAG_FOREIGN) != FOREIGN_STATIC,
        },
        _KEYED,
    )


def by_utilization(state: PartitionState) -> Steps[dict[str, list[list[str]]]]:
    """Sort the nodes into tenths, for each kind of resource that any node has."""
    tenths: dict[str, list[list[str]]] = {}
    pauses = Pauses()
    for it in state.nodes.values():
        if pauses.due:
            yield
        for kind, capacity in it.capacity.items():
            buckets = tenths.setdefault(kind, [[] for _ in range(BUCKETS)])
            buckets[_tenth(it.allocated.get(kind, 0), capacity)].append(it.id)
    return dict(sorted(tenths.items()))


def _tenth(taken: int, capacity: int) -> int:
    """Count a full tenth among the ones below it, and what is overfull among the fullest."""
    if taken <= 0 or capacity <= 0:
        return 0
    return min(BUCKETS, -(-taken * BUCKETS // capacity)) - 1


def utilizations(book: Book) -> Steps[Value]:
    by_kind = yield from by_utilization(book.state)
    return {
        "clusterId": book.rm_id,
        "partition": book.short_name,
        "utilizations": [
            {"type": kind, "utilization": [_bucket(*it) for it in enumerate(buckets)]}
            for kind, buckets in by_kind.items()
        ],
    }


def _bucket(tenth: int, names: list[str]) -> Value:
    name = f"{tenth * 10}-{tenth * 10 + 10}%"
    return lean({"bucketName": name, "numOfNodes": len(names), "nodeNames": names})
