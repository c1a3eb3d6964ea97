"""`yunikorn-actors events [ID]`: what has happened in a service, and what happens."""

import argparse
import sys
from collections.abc import Iterable
from enum import IntEnum
from typing import Any, Final

from yunikorn_actors.cli import INTERRUPTED
from yunikorn_actors.cli.rows import Event, Events, read
from yunikorn_actors.cli.service_calls import API, asking, unknown
from yunikorn_actors.cli.service_options import add_server
from yunikorn_actors.cli.terminal import complain, tell
from yunikorn_actors.recording.plain_text import moment, printable
from yunikorn_actors.service.rest.client import Client
from yunikorn_actors.si import ChangeDetail, ChangeType, EventType

COUNT: Final = 20
STORED_MAX: Final = 10_000
"""So many records a service gives at once."""
_INSTANCE: Final = "InstanceUUID"
"""The first line of a stream is about the service."""
_NOTHING: Final = (ChangeType.NONE.name, ChangeDetail.DETAILS_NONE.name)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "id", nargs="?", default="",
        help="only those of this application, ask, node, queue or user",
    )  # fmt: skip
    parser.add_argument(
        "--count", type=_count, default=COUNT, metavar="N",
        help="the last N of those that are stored (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--follow", action="store_true", help="go on with those that come")
    add_server(parser)


def _count(text: str) -> int:
    if text.isascii() and text.isdecimal() and 1 <= int(text[:6]) <= STORED_MAX:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r:.40} is no number from 1 to {STORED_MAX}")


def run(options: argparse.Namespace) -> int:
    return asking(options, _follow if options.follow else _ask)


def _ask(options: argparse.Namespace, client: Client) -> int:
    stored = read(client.get(*API, "events", "batch", count="1"), Events)
    # Of a name as many are looked through as there may be; else only the last are asked for.
    wanted = STORED_MAX if options.id else options.count
    first = max(stored.lowest, stored.highest - wanted + 1)
    query = {"start": str(first), "count": str(wanted)}
    records = read(client.get(*API, "events", "batch", **query), Events).records or []
    chosen = [it for it in records if _is_about(it, options.id)]
    if options.id and not chosen:
        names = {str(it.get(key, "")) for it in records for key in ("objectID", "referenceID")}
        raise unknown("event of", options.id, names)
    if not records:
        complain("no events are stored")
    _tell(options, chosen[-options.count :])
    return 0


def _follow(options: argparse.Namespace, client: Client) -> int:
    """Go on until Ctrl-C, or until the service ends, which is an error."""
    try:
        for record in client.lines(*API, "events", "stream", count=str(options.count)):
            if _INSTANCE not in record and _is_about(record, options.id):
                _tell(options, (record,))
                sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _is_about(record: dict[str, Any], id_: str) -> bool:
    return not id_ or id_ in {record.get("objectID"), record.get("referenceID")}


def _tell(options: argparse.Namespace, records: Iterable[dict[str, Any]]) -> None:
    tell(records if options.json else None, map(_line, records))


def _line(record: dict[str, Any]) -> str:
    event = read(record, Event)
    what = f"{_named(EventType, event.type)} {event.object_id}"
    change = _named(ChangeType, event.event_change_type)
    detail = _named(ChangeDetail, event.event_change_detail)
    changed = " ".join(it for it in (change, detail) if it not in _NOTHING)
    parts = (moment(event.timestamp_nano), what, changed, event.reference_id, event.message)
    return printable("  ".join(part for part in parts if part))


def _named(kind: type[IntEnum], number: int) -> str:
    """Write a value that this version does not know as its number."""
    try:
        return kind(number).name
    except ValueError:
        return str(number)
