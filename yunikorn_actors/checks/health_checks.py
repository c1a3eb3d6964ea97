"""Health checks: is a core healthy? Thirteen checks over a state dump, each with its finding.

They work on plain values, so a live core, a dump in a file and the end of a recorded run are judged
by the same code. A number that should balance is added up again from its parts.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

Dump = Mapping[str, Any]


class HealthCheck(Struct, frozen=True, kw_only=True):
    name: str
    succeeded: bool
    description: str
    diagnosis: str


class Health(Struct, frozen=True, kw_only=True):
    healthy: bool
    checks: tuple[HealthCheck, ...]


def health_of(dump: Dump) -> Health:
    """Judge a state dump, in the order in which the checks are known to operators."""
    checks = tuple(_run(name, description, find, dump) for name, description, find in CHECKS)
    return Health(healthy=all(check.succeeded for check in checks), checks=checks)


def _run(
    name: str, description: str, find: Callable[[Dump], Iterator[str]], dump: Dump
) -> HealthCheck:
    findings = tuple(find(dump))
    return HealthCheck(
        name=name,
        succeeded=not findings,
        description=description,
        diagnosis="; ".join(findings) or REPORTS.get(name, _nothing)(dump),
    )


def _partitions(dump: Dump) -> Iterator[tuple[str, Any]]:
    yield from dump["partitions"].items()


def _nodes(dump: Dump) -> Iterator[tuple[str, Any]]:
    for name, partition in _partitions(dump):
        for node_id, node in partition["nodes"].items():
            yield f"node {node_id} of {name}", node


def _sum(parts: Iterator[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        for kind, quantity in part.items():
            total[kind] = total.get(kind, 0) + quantity
    return {kind: quantity for kind, quantity in sorted(total.items()) if quantity}


def _negative(amounts: Mapping[str, int]) -> list[str]:
    return sorted(kind for kind, quantity in amounts.items() if quantity < 0)


def _scheduling_errors(dump: Dump) -> Iterator[str]:
    if dump["scheduling_errors"]:
        yield f"{dump['scheduling_errors']} requests named an application that is not there"


def _failed_nodes(dump: Dump) -> Iterator[str]:
    if dump["failed_nodes"]:
        yield f"refused and not registered since: {', '.join(dump['failed_nodes'])}"


def _negative_partitions(dump: Dump) -> Iterator[str]:
    for name, partition in _partitions(dump):
        root = partition["queues"].get("root", {"allocated": {}})
        for what, amounts in (("allocated", root["allocated"]), ("total", partition["capacity"])):
            if kinds := _negative(amounts):
                yield f"{what} of {name} is negative in {', '.join(kinds)}"


def _negative_nodes(dump: Dump) -> Iterator[str]:
    for name, node in _nodes(dump):
        for what in ("allocated", "available", "capacity", "occupied"):
            if kinds := _negative(node[what]):
                yield f"{what} of {name} is negative in {', '.join(kinds)}"


def _partition_totals(dump: Dump) -> Iterator[str]:
    for name, partition in _partitions(dump):
        total = _sum(node["capacity"] for node in partition["nodes"].values())
        if total != partition["capacity"]:
            yield f"total of {name} is {partition['capacity']}, its nodes make {total}"


def _node_totals(dump: Dump) -> Iterator[str]:
    for name, node in _nodes(dump):
        parts = _sum(iter((node["allocated"], node["occupied"], node["available"])))
        if parts != node["capacity"]:
            yield f"capacity of {name} is {node['capacity']}, its parts make {parts}"


def _reservations(_: Dump) -> Iterator[str]:
    """Never fail: the reader judges whether there are too many."""
    yield from ()


def _reserved_share(dump: Dump) -> str:
    nodes = [node for _, node in _nodes(dump)]
    reserved = sum(1 for node in nodes if node["reservations"])
    return f"{reserved} of {len(nodes)} nodes are reserved"


def _nothing(_: Dump) -> str:
    return "nothing found"


def _placed(partition: Any) -> dict[str, str]:  # noqa: ANN401 - plain values
    return {
        item["uuid"]: item["node"]
        for app in partition["applications"].values()
        for item in app["allocations"]
    }


def _orphans_on_nodes(dump: Dump) -> Iterator[str]:
    for name, partition in _partitions(dump):
        placed = _placed(partition)
        for node_id, node in partition["nodes"].items():
            lost = [uuid for uuid in node["allocations"] if placed.get(uuid) != node_id]
            if lost:
                yield (
                    f"node {node_id} of {name} has allocations that belong to no application: "
                    f"{', '.join(lost)}"
                )


def _orphans_on_applications(dump: Dump) -> Iterator[str]:
    for name, partition in _partitions(dump):
        nodes = partition["nodes"]
        lost = [
            uuid
            for uuid, node_id in sorted(_placed(partition).items())
            if node_id not in nodes or uuid not in nodes[node_id]["allocations"]
        ]
        if lost:
            yield f"allocations of {name} are missing on their nodes: {', '.join(lost)}"


def _unconfirmed(dump: Dump) -> Iterator[str]:
    for name, partition in _partitions(dump):
        for id_, app in partition["applications"].items():
            late = [item["key"] for item in app["allocations"] if item["overdue"]]
            if late:
                yield f"{id_} of {name} waits for the end of {', '.join(late)}"


def _failed_machines(dump: Dump) -> Iterator[str]:
    """Dumps of older versions have no such count."""
    for role, count in dump.get("failed_machines", {}).items():
        yield f"the {role} failed and was replaced {count} times"


def _failed_policies(dump: Dump) -> Iterator[str]:
    """A dump names none where all is well, or where it is of an older version."""
    yield from dump.get("failed_policies", ())


def _trace(dump: Dump) -> Iterator[str]:
    """Only a core on threads records itself."""
    if failure := dump.get("trace_failure"):
        yield f"the trace ends early: {failure}"


REPORTS: Mapping[str, Callable[[Dump], str]] = {"Reservation check": _reserved_share}
"""What a check that found no fault says, if it has more to say than that."""
CHECKS: tuple[tuple[str, str, Callable[[Dump], Iterator[str]]], ...] = (
    ("Scheduling errors", "Requests could be handled", _scheduling_errors),
    ("Failed nodes", "Every node that was offered is registered", _failed_nodes),
    ("Negative resources", "No amount of a partition is negative", _negative_partitions),
    ("Negative resources", "No amount of a node is negative", _negative_nodes),
    ("Consistency of data", "A partition's total is the sum of its nodes", _partition_totals),
    (
        "Consistency of data",
        "A node's total is allocated plus occupied plus available",
        _node_totals,
    ),
    ("Reservation check", "How many nodes are reserved is not too many", _reservations),
    (
        "Orphan allocation on node check",
        "Every allocation on a node belongs to an application",
        _orphans_on_nodes,
    ),
    (
        "Orphan allocation on app check",
        "Every allocation of an application is on its node",
        _orphans_on_applications,
    ),
    (
        "Confirmation check",
        "Every release that was asked for is confirmed in time",
        _unconfirmed,
    ),
    ("Failed machines", "No part of the core has failed", _failed_machines),
    ("Policies", "Every policy decides", _failed_policies),
    ("Trace", "What is recorded is recorded whole", _trace),
)
