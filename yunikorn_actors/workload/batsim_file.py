"""The `jobs.csv` of Batsim, which `evalys` draws: with the processors on which each job ran."""

import heapq
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate, islice
from math import ceil
from pathlib import Path
from typing import Any, Final

from yunikorn_actors.workload.table import Table, write_csv

COLUMNS: Final = (
    "job_id", "workload_name", "profile", "submission_time", "requested_number_of_resources",
    "requested_time", "success", "final_state", "starting_time", "execution_time", "finish_time",
    "waiting_time", "turnaround_time", "stretch", "allocated_resources", "consumed_energy",
    "metadata",
)  # fmt: skip


def write_batsim(table: Table, file: str | Path) -> None:
    """Write what has ended. A node has as many numbers as processors, one node after the other."""
    write_csv(file, COLUMNS, _rows(table))


def _rows(table: Table) -> Iterator[tuple[object, ...]]:
    sizes = [max(1, ceil(size)) for size in table.run.nodes.values()]
    firsts = dict(zip(table.run.nodes, accumulate([0, *sizes]), strict=False))
    # Of each node the numbers that came back, the lowest first, and those that were never used.
    back: dict[str, list[int]] = {node: [] for node in firsts}
    fresh = {
        node: iter(range(firsts[node], firsts[node] + size))
        for node, size in zip(firsts, sizes, strict=True)
    }
    running: list[tuple[float, int, dict[str, list[int]]]] = []
    for at, row in table.by_start():
        while running and running[0][0] <= row["start"]:
            for node, numbers in heapq.heappop(running)[2].items():
                for number in numbers:
                    heapq.heappush(back[node], number)
        nodes = table.nodes_of.get(at) or [row["node"]]
        each = max(1, ceil(row["size"] / len(nodes)))
        taken: dict[str, list[int]] = {}
        for node, tasks in Counter(nodes).items():
            wanted = each * tasks
            some = [heapq.heappop(back[node]) for _ in range(min(wanted, len(back[node])))]
            taken[node] = [*some, *islice(fresh[node], wanted - len(some))]
        heapq.heappush(running, (row["end"], at, taken))
        # A share of a device has a number while one is free: where none is, the first of its node.
        numbers = sorted(it for some in taken.values() for it in some) or [firsts[nodes[0]]]
        yield _row(row, numbers, table.declared(at))


def _row(row: dict[str, Any], numbers: list[int], declared_s: float) -> tuple[object, ...]:
    turnaround = row["wait"] + row["run"]
    return (
        row["job"], "w0", "delay", row["submit"], len(numbers), declared_s or row["run"], 1,
        "COMPLETED_SUCCESSFULLY", row["start"], row["run"], row["end"], row["wait"],
        turnaround, turnaround / max(row["run"], 1e-9), _intervals(numbers), -1, "",
    )  # fmt: skip


def _intervals(numbers: list[int]) -> str:
    """Write `0-3 7`: what is side by side as one."""
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return " ".join(f"{low}-{high}" if low < high else f"{low}" for low, high in found)
