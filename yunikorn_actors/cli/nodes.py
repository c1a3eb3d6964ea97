"""`yunikorn-actors nodes [NODE]`: how full the nodes are, and what runs on one of them."""

import argparse
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from yunikorn_actors.cli.rows import Node, Units, units_of
from yunikorn_actors.cli.service_calls import (
    AskedPartition,
    Columns,
    Found,
    asked_partitions,
    asking,
    called,
    found_in,
    tell_found,
    unknown,
)
from yunikorn_actors.cli.service_options import add_partition, add_server
from yunikorn_actors.cli.terminal import is_terminal, tell, width
from yunikorn_actors.recording.plain_text import table
from yunikorn_actors.service.rest.client import Client
from yunikorn_actors.values.quantity import Unit, readable

HEAD: Final = ("node", "takes work", "allocations")
LEFT: Final = 2
FIRST: Final = ("memory", "vcore")
"""Shown where there is little room."""
OF_ONE: Final = (
    "node", "takes work", "allocations", "resource", "allocated", "others", "capacity",
)  # fmt: skip
LEFT_OF_ONE: Final = 4
RUNS: Final = ("application", "key", "resource")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("node", nargs="?", default="", help="only this node, with what runs on it")
    add_partition(parser)
    add_server(parser)


def run(options: argparse.Namespace) -> int:
    return asking(options, _ask)


def _ask(options: argparse.Namespace, client: Client) -> int:
    chosen = asked_partitions(client, options.partition)
    if not options.node:
        found = [it for place in chosen for it in all_nodes(client, place)]
        columns = _columns([it.row for it in found])
        tell_found(options, found, columns, "there are no nodes")
        return 0
    found = nodes_called(client, options.node, chosen)
    units = units_of(
        book for it in found for book in (it.row.capacity, it.row.allocated, it.row.occupied)
    )
    spare = ("others", "takes work", "allocations")
    columns = Columns(OF_ONE, partial(_details, units), LEFT_OF_ONE, spare)
    tell_found(options, found, columns, "there are no nodes")
    if not options.json:
        for it in found:
            runs = sorted(
                (run.application_id, run.allocation_key, readable(run.resource))
                for run in it.row.allocations
            )
            if runs:
                tell(None, ("", *table(RUNS, runs, len(RUNS), width())))
    return 0


def all_nodes(client: Client, place: AskedPartition) -> list[Found[Node]]:
    return found_in(place, client.get(*place.path("nodes")), Node)


def nodes_called(client: Client, name: str, chosen: list[AskedPartition]) -> list[Found[Node]]:
    """Return the node, or those of several partitions; raise UnknownName with names like it."""
    found = called(client, chosen, Node, "node", name)
    if not found:
        names = {it.row.id for place in chosen for it in all_nodes(client, place)}
        raise unknown("node", name, names)
    return found


def _columns(nodes: Sequence[Node]) -> Columns[Node]:
    """A line for each node, with a column for each type of resource: used of what there is."""
    units = units_of(book for it in nodes for book in (it.capacity, it.allocated, it.occupied))
    kinds = sorted(units, key=lambda it: (it not in FIRST, it))

    def cells(node: Node) -> Iterator[tuple[str, ...]]:
        used = (_used(node, kind, units) if kind in node.capacity else "-" for kind in kinds)
        yield (node.id, "yes" if node.schedulable else "no", str(len(node.allocations)), *used)

    spare = (*reversed(kinds[len(FIRST) :]), "allocations", "takes work")
    return Columns((*HEAD, *kinds), cells, LEFT, spare)


def _used(node: Node, kind: str, units: Units) -> str:
    used = node.allocated.get(kind, 0) + node.occupied.get(kind, 0)
    name, size = units[kind]
    plain = Unit("", size)
    return f"{plain.written(used)}/{plain.written(node.capacity[kind])}{name}"


def _details(units: Units, node: Node) -> Iterator[tuple[str, ...]]:
    """A line for each type of resource; on a terminal the name stands in the first alone."""
    name = (node.id, "yes" if node.schedulable else "no", str(len(node.allocations)))
    for number, kind in enumerate(sorted(node.capacity) or [""]):
        shown = ("", "", "") if number and is_terminal() else name
        books = (node.allocated, node.occupied, node.capacity)
        amounts_ = (units[kind].written(book.get(kind, 0)) if kind else "-" for book in books)
        yield (*shown, kind or "-", *amounts_)
