"""Who plays the runs of `lab run` and `lab swarm`: this process, several, or a cluster."""

import argparse
import re
import sys
import time
from bisect import bisect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from yunikorn_actors.lab.explore import Player, Run, Runs, one_by_one
from yunikorn_actors.lab.fan_out import FannedOut, FanOut, Processes, StaysHere, WorkerPool
from yunikorn_actors.lab.mutants.corpus import BY_ID
from yunikorn_actors.lab.workers.dask_pool import DaskPool

_T = TypeVar("_T")

PROGRESS_S: Final = 0.1
"""The time between two lines of progress."""


def add_arguments(parser: argparse.ArgumentParser, positive: Callable[[str], int]) -> None:
    """Add the options; the report is the same with each of them."""
    who = parser.add_mutually_exclusive_group()
    who.add_argument(
        "--jobs",
        type=positive,
        default=1,
        metavar="N",
        help="play in so many processes (default: 1)",
    )
    who.add_argument(
        "--executor", metavar="dask://HOST:PORT", help="play on a cluster: its scheduler's address"
    )


@contextmanager
def player_of(options: argparse.Namespace) -> Iterator[Player]:
    """Give the player that is wanted; on a terminal it shows how far it is."""
    pool = pool_of(options)
    if pool is None:
        yield _with_progress(one_by_one)
        return
    with FanOut(pool) as fan_out:
        yield _with_progress(FannedOut(fan_out))


def pool_of(options: argparse.Namespace) -> WorkerPool | None:
    if options.executor is not None:
        return DaskPool(options.executor)
    return Processes(options.jobs) if options.jobs > 1 else None


def _with_progress(player: Player) -> Player:
    return _Progress(player) if sys.stderr.isatty() else player


class _Progress:
    """A player that says how many runs there were so far."""

    def __init__(self, player: Player) -> None:
        self._player = player

    def __call__(self, runs: Runs, numbers: range) -> Iterator[Run]:
        name = f"{runs.case.scenario.name:.60}"
        yield from shown(
            self._player(runs, numbers), lambda run: f"{name}: {run.number} runs so far"
        )


def shown(items: Iterator[_T], progress: Callable[[_T], str]) -> Iterator[_T]:
    """Pass the items on, and write now and then how far they are."""
    shown_at = time.monotonic()
    try:
        for item in items:
            if time.monotonic() - shown_at > PROGRESS_S:
                shown_at = time.monotonic()
                _overwrite(progress(item))
            yield item
    finally:
        _overwrite("")


def _overwrite(text: str) -> None:
    """Write it over what was there before."""
    print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


# `--mutant`: play with a planted mistake in force, to see what the laboratory makes of it.

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
