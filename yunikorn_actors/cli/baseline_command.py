"""`lab baseline`: record what the core does in drawn worlds, and compare it with what it did."""

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from yunikorn_actors.cli import executor_options, mutant_option
from yunikorn_actors.cli.exit_status import NO
from yunikorn_actors.lab.baseline import (
    PACKAGED,
    RUNS,
    WORLD,
    Change,
    Compared,
    Doer,
    compared,
    read_baseline,
    recorded,
    seen_in,
)
from yunikorn_actors.lab.fan_out import FanOut

_SHOWN_MAX: Final = 3
_TEXT_MAX: Final = 400


def add_arguments(parser: argparse.ArgumentParser, positive: Callable[[str], int]) -> None:
    actions = parser.add_subparsers(dest="verb", required=True, metavar="ACTION")
    compare_ = actions.add_parser("compare", help="play the worlds again, and name the changes")
    mutant_option.add_argument(compare_)
    write = actions.add_parser("write", help="record what the core does now")
    for some, default in ((compare_, None), (write, RUNS)):
        some.add_argument(
            "file", nargs="?", type=Path, default=PACKAGED, metavar="FILE",
            help="the baseline (default: that of the package)",
        )  # fmt: skip
        some.add_argument(
            "--runs", type=positive, default=default, metavar="N",
            help=f"how many worlds (default: {default or 'all'})",
        )  # fmt: skip
        executor_options.add_arguments(some, positive)
    compare_.add_argument("--json", action="store_true", help="one JSON object at the end")
    show = actions.add_parser("show", help="print all that is seen of a world")
    show.add_argument("number", type=positive, metavar="N", help="which world, from 1 on")


def run(options: argparse.Namespace) -> int:
    return _VERBS[options.verb](options)


def _compare(options: argparse.Namespace) -> int:
    before = read_baseline(options.file)
    with doer(options) as do:
        found = compared(before, options.runs or len(before.worlds), do)
    print(json.dumps(as_json(found)) if options.json else as_text(found))
    return NO if found.changes else 0


def _write(options: argparse.Namespace) -> int:
    with doer(options) as do:
        recorded(options.runs, do).write(options.file)
    print(f"{options.runs} worlds recorded in {options.file}")
    return 0


def _show(options: argparse.Namespace) -> int:
    for sight in seen_in(options.number):
        print(sight.value if sight.what == WORLD else sight)
    return 0


_VERBS: Final = {"compare": _compare, "write": _write, "show": _show}


@contextmanager
def doer(options: argparse.Namespace) -> Iterator[Doer[Any]]:
    """Yield the function that plays shares: in this process, in several, or on a cluster."""
    crew = executor_options.crew_of(options)
    if crew is None:
        yield map
        return
    with FanOut(crew) as fan_out:
        yield fan_out.each


def as_text(found: Compared) -> str:
    lines = [_change_text(it, found.version) for it in found.changes[:_SHOWN_MAX]]
    mark = "FAIL" if found.changes else "ok  "
    worlds = f"{found.worlds} world{'' if found.worlds == 1 else 's'} of the baseline played"
    lines.append(f"{mark}  {worlds}, {len(found.changes)} changed since version {found.version}")
    return "\n".join(lines)


def _change_text(change: Change, version: str) -> str:
    if change.place == 1:
        return (
            f"FAIL  world {change.number} of the baseline is drawn in another way than before: "
            "record a new one with `lab baseline write`"
        )
    return (
        f"FAIL  world {change.number} of the baseline: the core does not do what version "
        f"{version} did\n"
        f"      thing {change.place} that is seen is now {change.sight:.{_TEXT_MAX}}\n"
        f"      all of it: yunikorn-actors lab baseline show {change.number}"
    )


def as_json(found: Compared) -> dict[str, Any]:
    return {
        "ok": not found.changes,
        "version": found.version,
        "worlds": found.worlds,
        "changes": [
            {"world": it.number, "thing": it.place, "now": it.sight} for it in found.changes
        ],
    }
