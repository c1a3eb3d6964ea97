"""The `jobs.csv` of Batsim, which `evalys` draws: with the processors on which each job ran."""

import heapq
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate, pairwise
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


Piece = tuple[int, int]
"""Numbers side by side: the first of them, and the one behind the last."""


def _rows(table: Table) -> Iterator[tuple[object, ...]]:
    """A job takes the lowest free numbers of its nodes.

    Free numbers are kept in pieces: a job of a hundred million processors costs no more than one.
    """
    sizes = [max(1, ceil(size)) for size in table.run.nodes.values()]
    ends = [*accumulate([0, *sizes])]
    free = {node: [piece] for node, piece in zip(table.run.nodes, pairwise(ends), strict=True)}
    firsts = dict(zip(free, ends, strict=False))
    running: list[tuple[float, int, dict[str, list[Piece]]]] = []
    for at, row in table.by_start():
        while running and running[0][0] <= row["start"]:
            for node, pieces in heapq.heappop(running)[2].items():
                free[node] = _joined([*free[node], *pieces])
        nodes = table.nodes_of.get(at) or [row["node"]]
        each = max(1, ceil(row["size"] / len(nodes)))
        taken = {node: _take(free[node], each * tasks) for node, tasks in Counter(nodes).items()}
        heapq.heappush(running, (row["end"], at, taken))
        # A share of a device has a number while one is free: where none is, the first of its node.
        first = firsts[nodes[0]]
        pieces = _joined([it for some in taken.values() for it in some]) or [(first, first + 1)]
        yield _row(row, pieces, table.declared(at))


def _take(free: list[Piece], wanted: int) -> list[Piece]:
    """Take so many of the lowest free numbers, or all if there are fewer."""
    taken: list[Piece] = []
    while wanted > 0 and free:
        first, end = free.pop(0)
        middle = min(end, first + wanted)
        if middle < end:
            free.insert(0, (middle, end))
        taken.append((first, middle))
        wanted -= middle - first
    return taken


def _joined(pieces: list[Piece]) -> list[Piece]:
    """Put pieces in order, those side by side as one."""
    found: list[Piece] = []
    for first, end in sorted(pieces):
        if found and found[-1][1] == first:
            found[-1] = (found[-1][0], end)
        else:
            found.append((first, end))
    return found


def _row(row: dict[str, Any], pieces: list[Piece], declared_s: float) -> tuple[object, ...]:
    turnaround, count = row["wait"] + row["run"], sum(end - first for first, end in pieces)
    return (
        row["job"], "w0", "delay", row["submit"], count, declared_s or row["run"], 1,
        "COMPLETED_SUCCESSFULLY", row["start"], row["run"], row["end"], row["wait"],
        turnaround, turnaround / max(row["run"], 1e-9), _text_of(pieces), -1, "",
    )  # fmt: skip


def _text_of(pieces: list[Piece]) -> str:
    """Write `0-3 7`."""
    return " ".join(
        f"{first}-{end - 1}" if first + 1 < end else f"{first}" for first, end in pieces
    )
