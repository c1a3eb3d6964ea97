"""`yunikorn-actors queues [QUEUE]`: what the queues of a service have, and what they may have."""

import argparse
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from yunikorn_actors.cli.rows import Amounts, Queue, Units, read, units_of
from yunikorn_actors.cli.service_calls import (
    AskedPartition,
    Columns,
    Found,
    asked_partitions,
    asking,
    found_in,
    tell_found,
    unknown,
)
from yunikorn_actors.cli.service_options import add_partition, add_server
from yunikorn_actors.cli.terminal import is_terminal
from yunikorn_actors.service.rest.client import Client

HEAD: Final = (
    "queue", "state", "apps", "resource", "allocated", "pending", "guaranteed", "max",
)  # fmt: skip
LEFT: Final = 4
SPARE: Final = ("state", "apps", "pending", "guaranteed")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("queue", nargs="?", default="", help="only this queue, and those below it")
    add_partition(parser)
    add_server(parser)


def run(options: argparse.Namespace) -> int:
    return asking(options, _ask)


def _ask(options: argparse.Namespace, client: Client) -> int:
    found = queues_called(client, options.queue, asked_partitions(client, options.partition))
    units = units_of(book for it in found for book in _books(it.row))
    columns = Columns(HEAD, partial(_cells, units), LEFT, SPARE)
    tell_found(options, found, columns, "there are no queues")
    return 0


def queues_called(client: Client, name: str, chosen: list[AskedPartition]) -> list[Found[Queue]]:
    """Return a queue with those below it, or all; raise UnknownName with names like it."""
    found = [
        it
        for place in chosen
        for it in found_in(place, list(_flat(client.get(*place.path("queues")))), Queue)
    ]
    named = [it for it in found if not name or f"{it.row.path}.".startswith(f"{name}.")]
    if name and not named:
        raise unknown("queue", name, {it.row.path for it in found})
    return named


def _flat(value: object) -> Iterator[dict[str, Any]]:
    """Yield a queue without those below it, then those."""
    queue = read(value, dict[str, Any])
    children = read(queue.pop("children", []), list[Any])
    yield queue
    for child in children:
        yield from _flat(child)


def _books(queue: Queue) -> tuple[Amounts, ...]:
    return (
        queue.allocated_resource,
        queue.pending_resource,
        queue.guaranteed_resource,
        queue.max_resource,
    )


def _cells(units: Units, queue: Queue) -> Iterator[tuple[str, ...]]:
    """A line for each type of resource; on a terminal the name stands in the first alone."""
    most = f"/{queue.max_running_apps}" if queue.max_running_apps else ""
    name = (queue.path, queue.status, f"{queue.running_apps}{most}")
    books = _books(queue)
    kinds = sorted({kind for book in books for kind in book}) or [""]
    for number, kind in enumerate(kinds):
        shown = ("", "", "") if number and is_terminal() else name
        yield (*shown, kind or "-", *(_amount(units, book, kind) for book in books))


def _amount(units: Units, book: Amounts, kind: str) -> str:
    return units[kind].written(book[kind]) if kind in book else "-"
