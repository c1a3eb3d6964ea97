"""`lab mutants`: look for each mutant of the corpus, and say how it was found."""

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec.structs import asdict

from yunikorn_actors.cli import FAILED
from yunikorn_actors.cli.lab_options import known
from yunikorn_actors.cli.terminal import complain
from yunikorn_actors.lab.mutants.corpus import BY_ID
from yunikorn_actors.lab.mutants.mutant import UNPLAYED, Kind
from yunikorn_actors.lab.mutants.mutant_search import RUNS_MAX, SWARM, Hunted, hunt_all
from yunikorn_actors.lab.mutants.tries import UNDISTURBED


def add_arguments(parser: argparse.ArgumentParser, whole: Callable[[str], int]) -> None:
    parser.add_argument(
        "ids", nargs="*", type=known, metavar="ID", help="which of them, such as M01"
    )
    parser.add_argument(
        "--seed", type=whole, default=1, metavar="N", help="another seed, other runs (default: 1)"
    )
    parser.add_argument(
        "--runs", type=whole, metavar="N",
        help=f"give up after so many disturbed runs (default: {RUNS_MAX})",
    )  # fmt: skip
    parser.add_argument(
        "--swarm", type=whole, default=0, metavar="N",
        help="look in the first N runs of `lab swarm`, and not in the cases",
    )  # fmt: skip
    parser.add_argument("--jobs", type=whole, default=1, metavar="N", help="processes (default: 1)")
    parser.add_argument("--json", action="store_true", help="one JSON object for each mutant")


def run(options: argparse.Namespace) -> int:
    if options.swarm and options.runs is not None:
        complain("--runs: with --swarm N there are N runs: leave one of them out")
        return FAILED
    begun = time.perf_counter()
    results: list[Hunted] = []
    ids = options.ids or tuple(BY_ID)
    runs = RUNS_MAX if options.runs is None else options.runs
    for result in hunt_all(ids, options.seed, runs, options.jobs, options.swarm):
        results.append(result)
        text = json.dumps(_as_json(result)) if options.json else _as_text(result, options.seed)
        print(text, flush=True)
    if not options.json:
        seconds = time.perf_counter() - begun
        print(*_by_kind(results), sep="\n")
        found = [result for result in results if result.found]
        at_once = sum(result.strategy == UNDISTURBED for result in found)
        how = "" if options.swarm else f", {at_once} of them undisturbed"
        print(
            f"{len(found)} of {len(results)} found{how}, "
            f"with seed {options.seed} in {seconds:.0f} s"
        )
    return 0


def _by_kind(results: Sequence[Hunted]) -> Iterator[str]:
    """Count them by kind, where there are several kinds."""
    by_kind = {kind: [it for it in results if BY_ID[it.id].kind is kind] for kind in Kind}
    present = {kind: hunted for kind, hunted in by_kind.items() if hunted}
    if len(present) > 1:
        for kind, hunted in present.items():
            rest = [it.id for it in hunted if not it.found]
            is_played = kind not in UNPLAYED or any(it.runs for it in hunted)
            what = f"not found: {' '.join(rest)}" if is_played else "held by tests"
            line = f"{kind:20}{sum(it.found for it in hunted):4} of {len(hunted):3}  {what}"
            yield line if rest else line.removesuffix(what).rstrip()


def _as_json(result: Hunted) -> dict[str, Any]:
    kind = BY_ID[result.id].kind.value
    return {**asdict(result), "kind": kind, "seconds": round(result.seconds, 3)}


def _as_text(result: Hunted, seed: int) -> str:
    mutant = BY_ID[result.id]
    if mutant.kind in UNPLAYED and not result.runs:
        return f"{result.id}  not looked for, a test fails with it: {mutant.wrong}"
    took = f"{result.runs} runs, {result.plays} with it, {result.seconds:.1f} s"
    if not result.found:
        return f"{result.id}  not found ({took}): {mutant.wrong}"
    if result.strategy == SWARM:
        again = f"lab swarm --seed {seed} --first {result.run} --runs 1 --mutant {result.id}"
        size = f"run {result.run}: {again}"
    else:
        size = (
            f"{result.deviations} deviations, {result.stimuli} stimuli, "
            f"{result.messages} messages: {result.tape}"
        )
    return "\n".join(
        (
            f"{result.id}  found by {result.strategy} ({took}): {mutant.wrong}",
            f"      {result.violation}",
            f"      {size}",
        )
    )
