"""`config diff OLD NEW`: what a configuration changes, before it is loaded."""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

from yunikorn_actors.cli.config_text import Unreadable, line_of, name_of, read_text
from yunikorn_actors.cli.terminal import complain, tell
from yunikorn_actors.config import ConfigError, SchedulerConfig, parse_config
from yunikorn_actors.config.diff import ConfigChange, Kind, config_changes
from yunikorn_actors.recording.printable import printable

DIFFERENT: Final = 1
MISUNDERSTOOD: Final = 2
NAMED_MAX: Final = 3
"""Of the queues that inherit one change so many are named; `--json` names all."""


class Mistake(Exception):  # noqa: N818 - it names what is the matter
    """A configuration cannot be read; the lines say where and why."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", metavar="OLD", help="a configuration; - reads standard input")
    parser.add_argument("new", metavar="NEW", help="the one that is to take its place")
    parser.add_argument("--json", action="store_true", help="print one JSON object on a line")


def run(options: argparse.Namespace) -> int:
    try:
        old, new = config_of(options.old), config_of(options.new)
    except Mistake as mistake:
        complain(str(mistake))
        return MISUNDERSTOOD
    changes = tuple(config_changes(old, new))
    tell(changes if options.json else None, map(printable, lines_of(changes)))
    return DIFFERENT if changes else 0


def config_of(file: str) -> SchedulerConfig:
    name = name_of(file)
    try:
        return parse_config(read_text(file))
    except Unreadable as error:
        raise Mistake(f"{name}: {error}") from None
    except ConfigError as error:
        raise Mistake("\n".join(line_of(name, it) for it in error.faults)) from None


def lines_of(changes: Sequence[ConfigChange]) -> Iterator[str]:
    if not changes:
        yield "both mean the same"
    for partition, some in groupby(changes, lambda it: it.partition):
        yield f"partition {partition}"
        own = [it for it in some if it.kind is not Kind.INHERITED]
        for queue, here in groupby(own, lambda it: it.queue):
            yield from _of_place(queue, tuple(here))
    yield from _inherited([it for it in changes if it.kind is Kind.INHERITED])


def _of_place(queue: str, changes: Sequence[ConfigChange]) -> Iterator[str]:
    first, *rest = changes
    whole = first if first.what in {"queue", "partition"} else None
    if queue:
        yield f"  queue {queue}" + ("" if whole is None else f": {_ended(whole)}")
    elif whole is not None:
        yield f"  {_ended(whole)}"
    indent = "    " if queue else "  "
    for it in changes if whole is None else rest:
        kind = it.what if it.kind is Kind.CHANGED or whole else f"{it.what} {it.kind.value}"
        yield f"{indent}{kind}: {_values(it)}"


def _ended(change: ConfigChange) -> str:
    return f"{change.kind.value}; {change.after}" if change.after else change.kind.value


def _values(change: ConfigChange) -> str:
    if change.kind is Kind.ADDED:
        return change.after
    return f"{change.before} -> {change.after}" if change.after else change.before


def _inherited(changes: Iterable[ConfigChange]) -> Iterator[str]:
    """Put together what several queues inherit of one change."""
    queues: dict[tuple[str, str], list[str]] = {}
    for it in changes:
        text = f"{it.what}: {_values(it)}"
        queues.setdefault((it.partition, text), []).append(it.queue)
    for partition in dict.fromkeys(partition for partition, _ in queues):
        yield f"inherited in partition {partition}"
        for (_, text), paths in ((key, it) for key, it in queues.items() if key[0] == partition):
            more = len(paths) - NAMED_MAX
            named = ", ".join(paths[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
            yield f"  {text}, in {named}"
