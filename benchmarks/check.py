"""The check at the end of a run: the books of the core against what it announced.

Four sums must be one: what was announced, what the applications hold on nodes, what the nodes have
given away, and what the queues count. The allocations of the nodes are compared one by one as well.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.failure import CheckFailed
from benchmarks.load import Load

SHOWN = 3


def check(load: Load) -> None:
    """Raise CheckFailed, saying what differs, unless the run did what it was to do."""
    partition = load.core.state_dump()["partitions"][f"[{load.rm_id}]default"]
    found = [
        *unfinished(load),
        *differing_allocations(partition, load),
        *differing_sums(partition, load),
    ]
    if found:
        raise CheckFailed("; ".join(found))


def unfinished(load: Load) -> list[str]:
    found = []
    if load.waiting:
        found.append(f"{len(load.waiting)} asks were not allocated ({_some(load.waiting)})")
    if load.unconfirmed:
        found.append(f"{load.unconfirmed} releases were not confirmed")
    return found


def differing_allocations(partition: Mapping[str, Any], load: Load) -> list[str]:
    announced = {held.uuid for held in load.held}
    on_nodes = {uuid for node in partition["nodes"].values() for uuid in node["allocations"]}
    kinds = {
        "announced allocations are on no node": announced - on_nodes,
        "allocations on nodes were not announced": on_nodes - announced,
    }
    return [f"{len(uuids)} {what} ({_some(uuids)})" for what, uuids in kinds.items() if uuids]


def differing_sums(partition: Mapping[str, Any], load: Load) -> list[str]:
    announced = total(held.size for held in load.held)
    queues = partition["queues"]
    sums = {
        "the allocations of the applications": total(
            allocation["resource"]
            for application in partition["applications"].values()
            for allocation in application["allocations"]
        ),
        "the nodes": total(node["allocated"] for node in partition["nodes"].values()),
        "the leaf queues": total(queue["allocated"] for queue in queues.values() if queue["leaf"]),
        "the root queue": total([queues["root"]["allocated"]]),
    }
    return [
        f"{who} sum up to {amounts}, announced was {announced}"
        for who, amounts in sums.items()
        if amounts != announced
    ]


def total(amounts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Add up; types of which nothing is left are left out."""
    sums: dict[str, int] = {}
    for item in amounts:
        for name, amount in item.items():
            sums[name] = sums.get(name, 0) + amount
    return {name: amount for name, amount in sorted(sums.items()) if amount}


def _some(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)[:SHOWN]) + ", ..."
