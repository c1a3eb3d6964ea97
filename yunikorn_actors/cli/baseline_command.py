"""`lab baseline`: record what the core does in drawn worlds, and compare it with what it did."""

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from yunikorn_actors.cli import NO, lab_options
from yunikorn_actors.lab.baseline import (
    PACKAGED,
    WORLD,
    WORLDS,
    Baseline,
    Change,
    Compared,
    Doer,
    compared,
    read_baseline,
    recorded,
    watched,
)
from yunikorn_actors.lab.baseline_choice import DRAWN, chosen, touched_in
from yunikorn_actors.lab.fan_out import FanOut

_SHOWN_MAX: Final = 3
_TEXT_MAX: Final = 400


def add_arguments(parser: argparse.ArgumentParser, positive: Callable[[str], int]) -> None:
    actions = parser.add_subparsers(dest="verb", required=True, metavar="ACTION")
    compare_ = actions.add_parser("compare", help="play the worlds again, and name the changes")
    lab_options.add_argument(compare_)
    write = actions.add_parser("write", help="record what the core does now in the same worlds")
    choose = actions.add_parser("choose", help="choose other worlds, and record them; takes long")
    for some in (compare_, write, choose):
        some.add_argument(
            "file", nargs="?", type=Path, default=PACKAGED, metavar="FILE",
            help="the baseline (default: that of the package)",
        )  # fmt: skip
        lab_options.add_arguments(some, positive)
    for some in (compare_, write):
        some.add_argument(
            "--runs", type=positive, metavar="N", help="how many worlds (default: all)"
        )
    choose.add_argument(
        "--runs", type=positive, default=WORLDS, metavar="N",
        help=f"how many worlds (default: {WORLDS})",
    )  # fmt: skip
    choose.add_argument(
        "--drawn", type=positive, default=DRAWN, metavar="N",
        help=f"choose from so many, which this process plays (default: {DRAWN})",
    )  # fmt: skip
    compare_.add_argument("--json", action="store_true", help="one JSON object at the end")
    show = actions.add_parser("show", help="print all that is seen of a world")
    show.add_argument("number", type=positive, metavar="N", help="its number")


def run(options: argparse.Namespace) -> int:
    return _VERBS[options.verb](options)


def _compare(options: argparse.Namespace) -> int:
    before = read_baseline(options.file)
    with doer(options) as do:
        found = compared(before, options.runs or len(before.worlds), do)
    print(json.dumps(as_json(found)) if options.json else as_text(found))
    return NO if found.changes else 0


def _write(options: argparse.Namespace) -> int:
    before = read_baseline(options.file if options.file.exists() else PACKAGED)
    numbers = [*before.worlds][: options.runs]
    with doer(options) as do:
        now = recorded(numbers, do)
    now.write(options.file)
    print(f"{_counted(len(numbers))} recorded in {options.file}, {_differing(before, now)}")
    return 0


def _differing(before: Baseline, now: Baseline) -> str:
    """Say what a refactoring wants to know: whether anything is different from outside."""
    pairs = [(before.worlds[it], digests) for it, digests in now.worlds.items()]
    outside = sum(one.outside != other.outside for one, other in pairs)
    inside = sum(one.outside == other.outside and one != other for one, other in pairs)
    return f"{outside} changed since version {before.version}, and {inside} more inside alone"


def _choose(options: argparse.Namespace) -> int:
    drawn = range(1, options.drawn + 1)
    worlds = lab_options.shown(
        touched_in(drawn), lambda one: f"{one.number} worlds of {options.drawn} so far"
    )
    numbers = chosen(worlds, options.runs)
    with doer(options) as do:
        recorded(numbers, do).write(options.file)
    print(f"{_counted(len(numbers))} chosen of {options.drawn} and recorded in {options.file}")
    return 0


def _counted(worlds: int) -> str:
    return f"{worlds} world{'' if worlds == 1 else 's'}"


def _show(options: argparse.Namespace) -> int:
    seen = watched(options.number)
    for sight in seen.outside:
        print(sight.value if sight.what == WORLD else sight)
    for sight in seen.inside:
        print(f"inside, {sight}")
    return 0


_VERBS: Final = {"compare": _compare, "write": _write, "choose": _choose, "show": _show}


@contextmanager
def doer(options: argparse.Namespace) -> Iterator[Doer[Any]]:
    """Yield the function that plays shares: in this process, in several, or on a cluster."""
    pool = lab_options.pool_of(options)
    if pool is None:
        yield map
        return
    with FanOut(pool) as fan_out:
        yield fan_out.each


def as_text(found: Compared) -> str:
    lines = [_change_text(it, found.version) for it in found.changes[:_SHOWN_MAX]]
    mark = "FAIL" if found.changes else "ok  "
    played = f"{_counted(found.worlds)} of the baseline played"
    lines.append(f"{mark}  {played}, {len(found.changes)} changed since version {found.version}")
    return "\n".join(lines)


def _change_text(change: Change, version: str) -> str:
    if change.place == 1 and not change.is_inside:
        return (
            f"FAIL  world {change.number} of the baseline is drawn in another way than before: "
            "record a new one with `lab baseline write`"
        )
    what = (
        f"all that is seen from outside is as it was with version {version}, and inside something "
        "is different"
        if change.is_inside
        else f"the core does not do what version {version} did"
    )
    where = f"thing {change.place} {'inside' if change.is_inside else 'that is seen'}"
    return (
        f"FAIL  world {change.number} of the baseline: {what}\n"
        f"      {where} is now {change.sight:.{_TEXT_MAX}}\n"
        f"      all of it: yunikorn-actors lab baseline show {change.number}"
    )


def as_json(found: Compared) -> dict[str, Any]:
    return {
        "ok": not found.changes,
        "version": found.version,
        "worlds": found.worlds,
        "changes": [
            {
                "world": it.number,
                "thing": it.place,
                "inside": it.is_inside,
                "now": it.sight,
            }
            for it in found.changes
        ],
    }
