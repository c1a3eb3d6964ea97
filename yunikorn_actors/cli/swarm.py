"""`lab swarm`: explore worlds that are drawn, and keep what is wrong as scenario file and tape."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from yunikorn_actors.cli import INTERRUPTED, baseline_command, lab_options
from yunikorn_actors.cli.policies import add_place_of_policies
from yunikorn_actors.errors import CoreError
from yunikorn_actors.lab.baseline import Compared, compared, read_baseline
from yunikorn_actors.lab.coverage import coverage_lines
from yunikorn_actors.lab.explore import Budget
from yunikorn_actors.lab.fan_out import FanOut
from yunikorn_actors.lab.schedules.random_draw import RUNS_MAX
from yunikorn_actors.lab.swarm.guided import Corpus, Guided
from yunikorn_actors.lab.swarm.swarm_runs import (
    FannedOut,
    Finding,
    Plan,
    Planned,
    Played,
    Player,
    Report,
    Swarm,
    one_by_one,
)
from yunikorn_actors.lab.swarm.world_parts import PARTS, Wanted

_BASELINE_SHARE: Final = 0.4
"""Of the time, at most."""


class Misused(CoreError, ValueError):
    """Options that do not go together."""


LIST_PARTS: Final = "list"
"""Given in place of parts: their names are printed."""


def add_arguments(
    parser: argparse.ArgumentParser,
    *,
    whole: Callable[[str], int],
    positive: Callable[[str], int],
    seconds: Callable[[str], float],
) -> None:
    lab_options.add_argument(parser)
    add_place_of_policies(parser)
    parser.add_argument(
        "--seed", type=whole, default=Plan().seed, metavar="N",
        help=f"another seed, other runs (default: {Plan().seed})",
    )  # fmt: skip
    budget = parser.add_mutually_exclusive_group()
    budget.add_argument(
        "--runs", type=positive, default=Budget().runs, metavar="N",
        help=f"how many runs (default: {Budget().runs})",
    )  # fmt: skip
    budget.add_argument(
        "--time", type=seconds, metavar="T", help="how long to explore, like 30s or 8h"
    )
    parser.add_argument(
        "--first", type=positive, default=1, metavar="N",
        help="the number of the first run (default: 1)",
    )  # fmt: skip
    parser.add_argument(
        "--parts", type=_parts, default=(), metavar="LIST",
        help="each run has these parts and no others; `--parts list` prints their names",
    )  # fmt: skip
    parser.add_argument(
        "--without",
        type=_parts,
        default=(),
        metavar="LIST",
        help="no run has these parts",
    )
    parser.add_argument(
        "--save", "-o", type=Path, metavar="DIR",
        help="keep what is wrong here: scenario files, and the tapes that are played on them",
    )  # fmt: skip
    parser.add_argument(
        "--corpus", type=Path, metavar="DIR",
        help="keep runs that reach something new here, change them in later runs, and go on from "
        "those that are there",
    )  # fmt: skip
    parser.add_argument(
        "--coverage", type=whole, metavar="N",
        help="tell what was reached, and N of each that never was",
    )  # fmt: skip
    parser.add_argument(
        "--no-baseline", action="store_true",
        help="do not compare first what the core does in recorded worlds with what it did; nor is "
        "it where worlds are chosen, by --first, --parts, --without, --policies or --corpus",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="one JSON object at the end")
    lab_options.add_arguments(parser, positive)


def _parts(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def run(options: argparse.Namespace) -> int:
    if options.parts == (LIST_PARTS,):
        print("\n".join(PARTS))
        return 0
    return _search(options)


def _search(options: argparse.Namespace) -> int:
    plan = Plan(
        seed=options.seed, wanted=Wanted(only=options.parts, without=options.without),
        policies=options.policies or "",
    )  # fmt: skip
    budget = Budget(
        runs=options.runs if options.time is None else RUNS_MAX - options.first,
        seconds=options.time,
    )
    try:
        before = _compared(options, budget)
    except KeyboardInterrupt:
        return INTERRUPTED
    if before is not None:
        budget = _left(budget, before)
        if not options.json:
            print(baseline_command.as_text(before), flush=True)
    kept: list[Path | None] = []

    def found(finding: Finding) -> None:
        kept.append(None if options.save is None else finding.keep(options.save))
        if not options.json:
            print(_finding_text(finding, kept[-1], _again(finding, options)), flush=True)

    with _planned(plan, options) as (planned, player, first):
        swarm = Swarm(
            planned, budget, player,
            first=first, shrink_seconds=options.shrink_seconds, found=found,
        )  # fmt: skip
        try:
            report = swarm.run()
            status = 0 if report.ok and not (before and before.changes) else 1
        except KeyboardInterrupt:
            report, status = swarm.report(), INTERRUPTED
    if options.json:
        parts = {} if before is None else {"baseline": baseline_command.as_json(before)}
        print(json.dumps(_as_json(report, kept) | parts | {"ok": not status}), flush=True)
    else:
        print(_as_text(report), flush=True)
    if options.coverage is not None and not options.json:
        for line in coverage_lines(report.coverage, options.coverage):
            print(f"      {line}")
    return status


def _compared(options: argparse.Namespace, budget: Budget) -> Compared | None:
    """Compare with the baseline, where nothing says which worlds are wanted."""
    chosen = options.first > 1 or options.parts or options.without or options.policies
    if options.no_baseline or chosen or options.corpus is not None:
        return None
    seconds = None if budget.seconds is None else budget.seconds * _BASELINE_SHARE
    with baseline_command.doer(options) as do:
        return compared(read_baseline(), budget.runs, do, seconds)


def _left(budget: Budget, before: Compared) -> Budget:
    """Take off the time that the comparison took."""
    if budget.seconds is None:
        return budget
    return replace(budget, seconds=budget.seconds - before.seconds)


@contextmanager
def _planned(plan: Plan, options: argparse.Namespace) -> Iterator[tuple[Planned, Player, int]]:
    """Say what is played, by whom, and from which number on."""
    if options.corpus is None:
        with _player(options) as player:
            yield plan, player, options.first
        return
    if options.jobs > 1 or options.executor is not None:
        raise Misused(
            "a run that is guided depends on those before it: leave --jobs and --executor out, or "
            "give each process a seed and a corpus of its own"
        )
    guided = Guided(plan, Corpus(options.corpus))
    yield guided, _shown(guided.play), max(options.first, guided.first)


@contextmanager
def _player(options: argparse.Namespace) -> Iterator[Player]:
    pool = lab_options.pool_of(options)
    if pool is None:
        yield _shown(one_by_one)
        return
    with FanOut(pool) as fan_out:
        yield _shown(FannedOut(fan_out))


def _shown(player: Player) -> Player:
    """Have a terminal show how far it is."""
    if not sys.stderr.isatty():
        return player

    def play(plan: Planned, numbers: range) -> Iterator[Played]:
        return lab_options.shown(player(plan, numbers), lambda one: f"{one.run.number} runs so far")

    return play


def _again(finding: Finding, options: argparse.Namespace) -> str:
    """Say how the run is played again as it was drawn."""
    if options.corpus is not None:
        return "it was made of other runs, so no command draws it alone"
    words = ["yunikorn-actors lab swarm", f"--seed {finding.drawn.seed}"]
    words.append(f"--first {finding.drawn.number} --runs 1")
    words += [
        f"--{name} {','.join(getattr(options, name))}"
        for name in ("parts", "without")
        if getattr(options, name)
    ]
    words += [
        f"--{name} {value}" for name in ("policies", "mutant") if (value := getattr(options, name))
    ]
    return f"this does: {' '.join(words)}"


def _finding_text(finding: Finding, saved: Path | None, again: str) -> str:
    drawn, tape, outcome = finding.drawn, finding.small.tape, finding.outcome
    how = f"found {outcome.shrunk(finding.found.tape, tape)}"
    lines = [
        f"FAIL  {drawn.case.scenario.name}",
        finding.violation.text,
        how,
    ]
    if not finding.repeats:
        lines.append(f"its tape does not repeat it; {again}")
    elif saved is None:
        lines.append("--save DIR keeps the scenario file and the tape that repeat it")
    else:
        lines.append(f"yunikorn-actors lab replay {saved}")
    return "\n      ".join(lines)


def _as_text(report: Report) -> str:
    rate = report.messages / report.seconds if report.seconds else 0
    counts = (
        f"{report.runs} runs, {report.orders} orders, {report.messages} messages, "
        f"{rate:.0f} in a second, {report.seconds:.1f} s"
    )
    lines = [
        f"{'ok  ' if report.ok else 'FAIL'}  {counts}",
        f"      judged by the model: {report.judged} runs",
        f"      bounds passed: {_counts(report.passed)}",
        f"      violations: {_counts(report.violations)}",
    ]
    return "\n".join(lines)


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"


def _as_json(report: Report, kept: list[Path | None]) -> dict[str, Any]:
    return {
        "ok": report.ok,
        "runs": report.runs,
        "orders": report.orders,
        "messages": report.messages,
        "seconds": round(report.seconds, 3),
        "judged": report.judged,
        "pairs_tried": report.coverage.tried,
        "pairs_possible": report.coverage.possible,
        "reached": report.coverage.counts(),
        "parts": report.parts,
        "passed": report.passed,
        "violations": report.violations,
        "findings": [
            {
                "run": finding.drawn.number,
                "violation": finding.violation.text,
                "deviations": len(finding.small.tape.entries),
                "stimuli": finding.outcome.stimuli,
                "tape": finding.small.tape.line(),
                "saved": None if saved is None else str(saved),
                "by_model": finding.drawn.is_judged,
                "repeats": finding.repeats,
            }
            for finding, saved in zip(report.findings, kept, strict=True)
        ],
    }
