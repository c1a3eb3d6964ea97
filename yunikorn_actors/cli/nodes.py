"""`yunikorn-actors nodes [NODE]`: how full the nodes are, and what runs on one of them."""

import argparse
from collections.abc import Iterator
from typing import Final

from yunikorn_actors.cli.asking import (
    Found,
    Place,
    asking,
    called,
    found_in,
    places,
    tell_found,
    unknown,
)
from yunikorn_actors.cli.reach import add_partition, add_server
from yunikorn_actors.cli.rows import Node
from yunikorn_actors.cli.terminal import is_terminal, tell, width
from yunikorn_actors.domain.quantity import amounts, quantity
from yunikorn_actors.service.rest.client import Client
from yunikorn_actors.trace.tables import table

HEAD: Final = ("node", "takes work", "allocations", "resource", "allocated", "others", "capacity")
LEFT: Final = 4
RUNS: Final = ("application", "key", "resource")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("node", nargs="?", default="", help="only this node, with what runs on it")
    add_partition(parser)
    add_server(parser)


def run(options: argparse.Namespace) -> int:
    return asking(options, _ask)


def _ask(options: argparse.Namespace, client: Client) -> int:
    chosen = places(client, options.partition)
    if not options.node:
        found = [it for place in chosen for it in all_nodes(client, place)]
        tell_found(options, found, HEAD, _cells, LEFT)
        return 0
    found = nodes_called(client, options.node, chosen)
    tell_found(options, found, HEAD, _cells, LEFT)
    for it in () if options.json else found:
        runs = sorted(
            (run.application_id, run.allocation_key, amounts(run.resource))
            for run in it.row.allocations
        )
        if runs:
            tell(None, ("", *table(RUNS, runs, len(RUNS), width())))
    return 0


def all_nodes(client: Client, place: Place) -> list[Found[Node]]:
    return found_in(place, client.get(*place.path("nodes")), Node)


def nodes_called(client: Client, name: str, chosen: list[Place]) -> list[Found[Node]]:
    """Return the node, or those of several partitions; raise UnknownName with names like it."""
    found = called(client, chosen, Node, "node", name)
    if not found:
        names = {it.row.id for place in chosen for it in all_nodes(client, place)}
        raise unknown("node", name, names)
    return found


def _cells(node: Node) -> Iterator[tuple[str, ...]]:
    """A line for each type of resource; on a terminal the name stands in the first alone."""
    name = (node.id, "yes" if node.schedulable else "no", str(len(node.allocations)))
    for number, kind in enumerate(sorted(node.capacity) or [""]):
        shown = ("", "", "") if number and is_terminal() else name
        used = (node.allocated, node.occupied, node.capacity)
        yield (*shown, kind or "-", *(quantity(kind, book.get(kind, 0)) for book in used))
