"""`yunikorn-actors apps [APPLICATION]`: the applications of a service, or all of one of them."""

import argparse
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from yunikorn_actors.cli import FAILED
from yunikorn_actors.cli.queues import queues_called
from yunikorn_actors.cli.rows import (
    Application,
    ExpectedStart,
    ExpectedStarts,
    Units,
    read,
    units_of,
)
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
from yunikorn_actors.cli.service_options import add_partition, add_server, unused
from yunikorn_actors.cli.terminal import complain, tell, width
from yunikorn_actors.recording.plain_text import printable, table
from yunikorn_actors.service.rest.client import Client
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.values.quantity import readable

HEAD: Final = ("application", "queue", "user", "state", "age", "wait", "run", "allocated")
LEFT: Final = 4
SPARE: Final = ("age", "user", "state", "allocated")
WORK: Final = ("key", "resource", "node")
ENDED: Final = ("completed", "rejected")
STATES: Final = (
    "active", "new", "accepted", "starting", "running", "completing", "failing", "resuming", *ENDED,
)  # fmt: skip
_AGES: Final = (("d", 86_400), ("h", 3_600), ("m", 60))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "application", nargs="?", default="", help="only this one, with its asks and allocations"
    )
    parser.add_argument(
        "--state", choices=STATES, metavar="STATE",
        help=f"one of {', '.join(STATES)} (default: active)",
    )  # fmt: skip
    parser.add_argument("--queue", default="", metavar="QUEUE", help="only those of this queue")
    add_partition(parser)
    add_server(parser)


def run(options: argparse.Namespace) -> int:
    if options.application:
        of_all = "one application is shown whatever it is: leave it out, or the application"
        if (mistake := unused(options, ("state", "queue"), of_all)) is not None:
            complain(mistake)
            return FAILED
    return asking(options, _ask)


def _ask(options: argparse.Namespace, client: Client) -> int:
    chosen = asked_partitions(client, options.partition)
    state = options.state or "active"
    if options.application:
        found = applications_called(client, options.application, chosen)
    else:
        found = [it for place in chosen for it in _listed(client, place, state)]
        found = [it for it in found if options.queue in {"", it.row.queue_name}]
        if options.queue and not found:
            # A queue without applications is there; another name is not.
            queues_called(client, options.queue, chosen)
    units = units_of(it.row.used_resource for it in found)
    columns = Columns(HEAD, partial(_cells, units), LEFT, SPARE)
    tell_found(options, found, columns, f"there are no {state} applications")
    if options.application and not options.json:
        for it in found:
            tell(None, _work(it.row, _expected(client, it)))
    return 0


def _listed(client: Client, place: AskedPartition, state: str) -> list[Found[Application]]:
    whole = state in {"active", *ENDED}
    path = place.path("applications", state if whole else "active")
    query = {} if whole else {"status": state}
    return found_in(place, client.get(*path, **query), Application)


def applications_called(
    client: Client, name: str, chosen: list[AskedPartition]
) -> list[Found[Application]]:
    """Return those that live, else those that ended; raise UnknownName with names like it."""
    found = called(client, chosen, Application, "application", name)
    if found:
        return found
    states = ("active", *ENDED)
    known = [it for place in chosen for state in states for it in _listed(client, place, state)]
    found = [it for it in known if it.row.id == name]
    if not found:
        raise unknown("application", name, {it.row.id for it in known})
    return found


def _cells(units: Units, app: Application) -> Iterator[tuple[str, ...]]:
    used = app.used_resource
    yield (
        app.id,
        app.queue_name,
        app.user,
        app.application_state,
        age(time.time_ns() - app.submission_time),
        str(len(app.requests)),
        str(len(app.allocations)),
        ", ".join(f"{it} {units[it].written(used[it])}" for it in sorted(used)),
    )


def _expected(client: Client, found: Found[Application]) -> dict[str, ExpectedStart]:
    """Ask when what waits of it will start."""
    if not found.row.requests:
        return {}
    path = found.place.own_path("expected")
    listed = read(client.get(*path, application=found.row.id), ExpectedStarts)
    return {it.key: it for it in listed.asks}


def _start(expected: ExpectedStart | None) -> str:
    if expected is None:
        return "waits"
    place = f"waits, place {expected.position} of {expected.waiting}"
    if expected.earliest_ns is None or expected.latest_ns is None:
        return place
    now_ns = time.time_ns()
    first, last = (age(it - now_ns) for it in (expected.earliest_ns, expected.latest_ns))
    return f"{place}, starts in {first} to {last}"


def _work(app: Application, expected: Mapping[str, ExpectedStart]) -> Iterator[str]:
    if app.rejected_message:
        yield printable(f"it was rejected: {app.rejected_message}")
    runs = [(it.allocation_key, readable(it.resource), it.node_id) for it in app.allocations]
    waits = [
        (it.allocation_key, readable(it.resource), _start(expected.get(it.allocation_key)))
        for it in app.requests
    ]
    if runs or waits:
        yield ""
        yield from table(WORK, sorted(runs) + sorted(waits), len(WORK), width())


def age(ns: int) -> str:
    """Write how long it is, in the largest unit of which there are two; clocks may differ."""
    seconds = max(0, ns // SECOND)
    found = (f"{seconds // size}{unit}" for unit, size in _AGES if seconds >= 2 * size)
    return next(found, f"{seconds}s")
