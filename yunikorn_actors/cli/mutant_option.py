"""`--mutant`: play with a planted mistake in force, to see what the laboratory makes of it."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from yunikorn_actors.lab.fan_out import StaysHere
from yunikorn_actors.lab.mutants.corpus import BY_ID


def add_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--mutant", type=known, metavar="ID",
        help="plant this mistake in the core meanwhile; `lab mutants` looks for all of them",
    )  # fmt: skip


def known(text: str) -> str:
    if text not in BY_ID:
        names = f"{next(iter(BY_ID))} to {next(reversed(BY_ID))}"
        raise argparse.ArgumentTypeError(f"{text!r:.40} is no mutant: they are {names}")
    return text


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
