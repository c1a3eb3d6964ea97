"""`yunikorn-actors why [APPLICATION [KEY]]`: why asks wait, in a service or in a state dump."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import msgspec

from yunikorn_actors.cli import FAILED, NO
from yunikorn_actors.cli.dump_files import DumpError, answer_from
from yunikorn_actors.cli.service_calls import asking, unknown
from yunikorn_actors.cli.service_options import OF_SERVICE, add_partition, add_server, unused
from yunikorn_actors.cli.terminal import complain, tell_sentences
from yunikorn_actors.cli.why_waiting import (
    Waiting,
    lines_of,
    lines_of_application,
    tell_waiting,
    why_there,
)
from yunikorn_actors.errors import UnknownName
from yunikorn_actors.planning.reasons import Why, what_became
from yunikorn_actors.recording.plain_text import printable

SHOWN_MAX = 200
"""Longer names are cut where nothing is known of them."""
OF_A_SERVICE = (
    "why asks wait is not in it: ask that service (without --dump), or write the dump of a core "
    "with json.dump(core.state_dump(), file); `simulate --dump` takes both"
)
"""What to do with the full state dump of a service."""


class Explained(NamedTuple):
    """What a dump tells of an application, or of one ask of it, in one partition."""

    lines: tuple[str, ...]
    asks: tuple[Why, ...] = ()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "application", nargs="?", default="", help="id of the application; all asks without"
    )
    parser.add_argument("key", nargs="?", default="", help="key of one ask; all that wait without")
    parser.add_argument(
        "--dump", metavar="FILE",
        help="ask a state dump as JSON, not a service; - reads standard input",
    )  # fmt: skip
    add_partition(parser)
    add_server(parser)


def run(options: argparse.Namespace) -> int:
    if options.dump is None:
        return asking(options, why_there)
    no_service = "with --dump no service is asked: leave it out"
    if (mistake := unused(options, OF_SERVICE, no_service)) is not None:
        complain(mistake)
        return FAILED
    return _run(options)


def _run(options: argparse.Namespace) -> int:
    app, key, wanted = options.application, options.key, options.partition
    try:
        if not app:
            return tell_waiting(
                options, answer_from(options.dump, partial(_all, wanted), OF_A_SERVICE)
            )
        explained = answer_from(
            options.dump, lambda dump: list(_tell(dump, wanted, app, key)), OF_A_SERVICE
        )
    except DumpError as error:
        complain(str(error))
        return FAILED
    except UnknownName as error:
        complain(f"{options.dump}: {error}")
        return NO
    asks = [ask for part in explained for ask in part.asks]
    tell_sentences(asks if options.json else None, (it for part in explained for it in part.lines))
    if not explained:
        what = f"ask {key:.{SHOWN_MAX}} of " * bool(key) + f"application {app:.{SHOWN_MAX}}"
        print(printable(f"{options.dump}: tells nothing of {what}"), file=sys.stderr)
    return 0 if explained else NO


def _all(wanted: str, dump: dict[str, Any]) -> dict[str, Waiting]:
    names = _chosen(dump, wanted)
    return {
        name: msgspec.convert(waiting or {}, Waiting)
        for name, waiting in dump["waiting"].items()
        if name in names
    }


def _chosen(dump: dict[str, Any], wanted: str) -> set[str]:
    """Return the partitions of a name, with or without their resource manager; all without."""
    shorts = {name: name.partition("]")[2] for name in dump["partitions"]}
    chosen = {name for name, short in shorts.items() if wanted in {"", name, short}}
    if wanted and not chosen:
        raise unknown("partition", wanted, {*shorts, *shorts.values()})
    return chosen


def _tell(dump: dict[str, Any], wanted: str, app: str, key: str) -> Iterator[Explained]:
    """Of each partition that knows it; the last that has become of an id is what counts."""
    names = _chosen(dump, wanted)
    for name, partition in dump["partitions"].items():
        if name not in names:
            continue
        waiting = dump["waiting"].get(name, {})
        living = partition["applications"].get(app)
        ended = [it for it in partition["finished"] if it["application"] == app]
        asks = _of(waiting, "asks", app, key)
        explained = (
            _of_ask(living, asks or _of(waiting, "rejected", app, key), key) if key else None
        )
        if explained is not None:
            yield explained
        elif living is not None and not key:
            yield _of_application(app, name, living, asks)
        elif living is None and ended:
            state, message = ended[-1]["state"], ended[-1]["message"]
            yield Explained((f"application {app} of {name}: {what_became(state, message)}",))


def _of(waiting: dict[str, Any], which: str, app: str, key: str) -> tuple[Why, ...]:
    found = (it for it in waiting.get(which, ()) if it["application_id"] == app)
    return tuple(msgspec.convert(it, Why) for it in found if key in {"", it["key"]})


def _of_ask(living: dict[str, Any] | None, asks: tuple[Why, ...], key: str) -> Explained | None:
    if asks:
        return Explained(lines_of(asks), asks)
    if living is None:
        return None
    if any(it["key"] == key for it in living["asks"]):
        return Explained((f"{key} waits; it is not among the asks that the dump explains",))
    nodes = Counter(it["node"] for it in living["allocations"] if it["key"] == key)
    if not nodes:
        return None
    return Explained((f"{key} does not wait: {_counted(nodes)}",))


def _counted(nodes: Counter[str]) -> str:
    return "it runs on " + ", ".join(
        node if count == 1 else f"{node} ({count} times)" for node, count in nodes.items()
    )


def _of_application(
    app: str, name: str, living: dict[str, Any], asks: tuple[Why, ...]
) -> Explained:
    waiting, running = len(living["asks"]), len(living["allocations"])
    place = f"{living['state']} in {living['queue']}"
    return Explained(
        lines_of_application(f"{app} of {name}: {place}", waiting, running, asks), asks
    )
