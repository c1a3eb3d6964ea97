"""`lab mutants`: look for each mutant of the corpus, and say how it was found."""

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

from msgspec.structs import asdict

from yunikorn_actors.cli.mistake import known
from yunikorn_actors.lab.mutants.corpus import BY_ID
from yunikorn_actors.lab.mutants.hunt import RUNS_MAX, Hunted, hunt_all
from yunikorn_actors.lab.mutants.tries import UNDISTURBED


def add_arguments(parser: argparse.ArgumentParser, whole: Callable[[str], int]) -> None:
    parser.add_argument(
        "ids", nargs="*", type=known, metavar="ID", help="which of them, such as M01"
    )
    parser.add_argument(
        "--seed", type=whole, default=1, metavar="N", help="another seed, other runs (default: 1)"
    )
    parser.add_argument(
        "--runs", type=whole, default=RUNS_MAX, metavar="N",
        help=f"give up after so many disturbed runs (default: {RUNS_MAX})",
    )  # fmt: skip
    parser.add_argument("--jobs", type=whole, default=1, metavar="N", help="processes (default: 1)")
    parser.add_argument("--json", action="store_true", help="one JSON object for each mutant")


def run(options: argparse.Namespace) -> int:
    begun = time.perf_counter()
    results: list[Hunted] = []
    for result in hunt_all(options.ids or tuple(BY_ID), options.seed, options.runs, options.jobs):
        results.append(result)
        print(json.dumps(_as_json(result)) if options.json else _as_text(result), flush=True)
    if not options.json:
        seconds = time.perf_counter() - begun
        found = [result for result in results if result.found]
        at_once = sum(result.strategy == UNDISTURBED for result in found)
        print(
            f"{len(found)} of {len(results)} found, {at_once} of them undisturbed, "
            f"with seed {options.seed} in {seconds:.0f} s"
        )
    return 0


def _as_json(result: Hunted) -> dict[str, Any]:
    return {**asdict(result), "seconds": round(result.seconds, 3)}


def _as_text(result: Hunted) -> str:
    mutant = BY_ID[result.id]
    took = f"{result.runs} runs, {result.plays} with it, {result.seconds:.1f} s"
    if not result.found:
        return f"{result.id}  not found ({took}): {mutant.wrong}"
    size = f"{result.deviations} deviations, {result.stimuli} stimuli, {result.messages} messages"
    return "\n".join(
        (
            f"{result.id}  found by {result.strategy} ({took}): {mutant.wrong}",
            f"      {result.violation}",
            f"      {size}: {result.tape}",
        )
    )
