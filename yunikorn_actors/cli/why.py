"""`yunikorn-actors why APPLICATION [KEY] --dump FILE`: why asks wait, from a state dump."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from yunikorn_actors.cli.dumps import DumpError, told_of
from yunikorn_actors.domain.why import Why, what_became
from yunikorn_actors.trace.show import printable

SHOWN_MAX = 200
"""Longer names are cut where nothing is known of them."""


class Told(NamedTuple):
    """What a dump tells of an application, or of one ask of it, in one partition."""

    lines: tuple[str, ...]
    asks: tuple[Why, ...] = ()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("application", help="id of the application")
    parser.add_argument("key", nargs="?", default="", help="key of one ask; all that wait without")
    parser.add_argument(
        "--dump", required=True, metavar="FILE", help="a state dump as JSON; - reads standard input"
    )
    parser.add_argument("--json", action="store_true", help="print the answers as JSON")


def run(options: argparse.Namespace) -> int:
    app, key = options.application, options.key
    try:
        told = told_of(options.dump, lambda dump: list(_tell(dump, app, key)))
    except DumpError as error:
        print(printable(str(error)), file=sys.stderr)
        return 2
    if options.json:
        asks = [ask for part in told for ask in part.asks]
        print(json.dumps(msgspec.to_builtins(asks), indent=2))
    for part in () if options.json else told:
        for line in part.lines:
            print(printable(line))
    if not told:
        what = f"ask {key:.{SHOWN_MAX}} of " * bool(key) + f"application {app:.{SHOWN_MAX}}"
        print(printable(f"{options.dump}: tells nothing of {what}"), file=sys.stderr)
    return 0 if told else 1


def _tell(dump: dict[str, Any], app: str, key: str) -> Iterator[Told]:
    """Of each partition that knows it; the last that has become of an id is what counts."""
    for name, partition in dump["partitions"].items():
        waiting = dump["waiting"].get(name, {})
        living = partition["applications"].get(app)
        ended = [it for it in partition["finished"] if it["application"] == app]
        asks = _of(waiting, "asks", app, key)
        told = _of_ask(living, asks or _of(waiting, "rejected", app, key), key) if key else None
        if told is not None:
            yield told
        elif living is not None and not key:
            yield _of_application(app, name, living, asks)
        elif living is None and ended:
            state, message = ended[-1]["state"], ended[-1]["message"]
            yield Told((f"application {app} of {name}: {what_became(state, message)}",))


def _of(waiting: dict[str, Any], which: str, app: str, key: str) -> tuple[Why, ...]:
    found = (it for it in waiting.get(which, ()) if it["application_id"] == app)
    return tuple(msgspec.convert(it, Why) for it in found if key in {"", it["key"]})


def _of_ask(living: dict[str, Any] | None, asks: tuple[Why, ...], key: str) -> Told | None:
    if asks:
        return Told(_lines(asks), asks)
    if living is None:
        return None
    if any(it["key"] == key for it in living["asks"]):
        return Told((f"{key} waits; it is not among the asks that the dump explains",))
    nodes = Counter(it["node"] for it in living["allocations"] if it["key"] == key)
    if not nodes:
        return None
    return Told((f"{key} does not wait: {_counted(nodes)}",))


def _counted(nodes: Counter[str]) -> str:
    return "it runs on " + ", ".join(
        node if count == 1 else f"{node} ({count} times)" for node, count in nodes.items()
    )


def _of_application(app: str, name: str, living: dict[str, Any], asks: tuple[Why, ...]) -> Told:
    waiting, running = len(living["asks"]), len(living["allocations"])
    head = (
        f"application {app} of {name}: {living['state']} in {living['queue']}; "
        f"asks that wait: {waiting}, allocations: {running}"
    )
    untold = waiting - sum(why.waits for why in asks)
    more = [f"asks that the dump does not explain: {untold}"] if untold > 0 else []
    return Told((head, *_lines(asks), *more), asks)


def _lines(asks: tuple[Why, ...]) -> tuple[str, ...]:
    return tuple(line for why in asks for line in why.lines())
