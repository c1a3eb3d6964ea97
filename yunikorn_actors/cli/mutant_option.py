"""`--mutant`: play with a planted mistake in force, to see what the laboratory makes of it."""

import argparse
import re
from bisect import bisect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from yunikorn_actors.lab.fan_out import StaysHere
from yunikorn_actors.lab.mutants.corpus import BY_ID

_ID: Final = re.compile(r"M\d{1,6}")


def add_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--mutant", type=known, metavar="ID",
        help="plant this mistake in the core meanwhile; `lab mutants` looks for all of them",
    )  # fmt: skip


def known(text: str) -> str:
    if text not in BY_ID:
        raise argparse.ArgumentTypeError(f"{text!r:.40} is no mutant: {_near(text)}")
    return text


def _near(text: str) -> str:
    """Name those with the next numbers: not every number has a mutant."""
    known = tuple(BY_ID)
    if _ID.fullmatch(text) is None:
        return f"they are {known[0]} to {known[-1]}, and not every number between has one"
    behind = bisect(known, int(text[1:]), key=lambda id_: int(id_[1:]))
    return f"next to it are {' and '.join(known[max(0, behind - 1) : behind + 1])}"


@contextmanager
def in_force(options: argparse.Namespace) -> Iterator[None]:
    """Have the core of this process make the mistake that is asked for, if one is."""
    id_ = getattr(options, "mutant", None)
    if id_ is None:
        yield
        return
    if getattr(options, "executor", None) is not None or getattr(options, "jobs", 1) > 1:
        raise StaysHere("a mistake is planted in this process alone: leave out who else plays")
    with BY_ID[id_].applied():
        yield
