"""Run scenario files, in the simulator, on threads or direct.

The exit status is 0 when every expectation of every file held, 1 when one did not, 2 when a file
cannot be read.
"""

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, get_args

from yunikorn_actors.cli import FAILED
from yunikorn_actors.cli.policies import add_policies
from yunikorn_actors.machines.settings import InvalidTopology
from yunikorn_actors.machines.topology import TOPOLOGIES, check_topology
from yunikorn_actors.scenario.drivers import DriverName
from yunikorn_actors.scenario.runner import Failure, Outcome, RunOptions, run_file

_NUMBER: Final = re.compile(r"[0-9]{1,18}")
_RANGE: Final = re.compile(r"([0-9]{1,18})\.\.([0-9]{1,18})")
_LONGEST_SHOWN: Final = 400
_FAILURE_KEYS: Final = ("step", "path", "expected", "actual")
_OUTCOME_KEYS: Final = ("name", "file", "seed", "ok", "messages", "virtual_ms", "wall_ms", "digest")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    run_ = actions.add_parser("run", help="run files, and every *.yaml in folders")
    run_.add_argument("paths", nargs="+", type=Path, metavar="FILE_OR_FOLDER")
    seeds = run_.add_mutually_exclusive_group()
    seeds.add_argument(
        "--seed", dest="seeds", type=_seed, default=(0,), metavar="N",
        help="choose the interleaving; 0, the default, is first in, first out",
    )  # fmt: skip
    seeds.add_argument(
        "--seeds", dest="seeds", type=_seeds, metavar="A..B",
        help="run all these seeds; a file stops at the first that fails",
    )  # fmt: skip
    run_.add_argument("--topology", choices=TOPOLOGIES, default="proposing")
    run_.add_argument(
        "--schedulers", type=_schedulers, default=1, metavar="N",
        help="so many plan for each partition at once (default: 1); only proposing has several",
    )  # fmt: skip
    run_.add_argument("--driver", choices=get_args(DriverName), default="sim")
    add_policies(run_)
    run_.add_argument("--trace", type=Path, metavar="FILE", help="write the trace of the last run")
    run_.add_argument("--json", action="store_true", help="one JSON object for each file")
    run_.add_argument(
        "--time-scale", type=_scale, metavar="FACTOR",
        help="on threads or direct: let the clock run, FACTOR times as fast as real time; without "
        "it the clock stands still, and only `advance` moves it",
    )  # fmt: skip


class _UsageError(Exception):
    """The command cannot be carried out; the text says why."""


def run(options: argparse.Namespace) -> int:
    try:
        check_topology(options.topology, options.schedulers)
        return _run_files(_files(options), options)
    except (_UsageError, InvalidTopology) as error:
        print(f"yunikorn-actors scenario run: {error}", file=sys.stderr)
        return FAILED


def _run_files(files: list[Path], options: argparse.Namespace) -> int:
    run_options = RunOptions(
        seeds=options.seeds,
        topology=options.topology,
        schedulers=options.schedulers,
        driver=options.driver,
        time_scale=options.time_scale,
        trace=options.trace,
        policies=options.policies,
    )
    outcomes: list[Outcome] = []
    for file in files:
        outcomes.append(_run_file(file, run_options))
        text = _json(outcomes[-1]) if options.json else _report(outcomes[-1])
        print(text, flush=True)
    if not options.json:
        print(_summary(outcomes))
    return max(_status(outcome) for outcome in outcomes)


def _run_file(file: Path, options: RunOptions) -> Outcome:
    try:
        return run_file(file, options)
    except OSError as error:
        raise _UsageError(
            f"the trace cannot be written: {error.strerror}; name a file in a folder that "
            "may be written to"
        ) from error


def _files(options: argparse.Namespace) -> list[Path]:
    if options.time_scale is not None and options.driver == "sim":
        raise _UsageError(
            "--time-scale: the simulator has virtual time: leave it out, or take --driver threads "
            "or direct"
        )
    files: list[Path] = []
    for path in options.paths:
        found = sorted(path.rglob("*.yaml")) if path.is_dir() else [path]
        if not found:
            raise _UsageError(f"no *.yaml in {path}: name a folder of scenarios")
        files.extend(found)
    if options.trace is not None and len(files) > 1:
        raise _UsageError(f"--trace records one file, and these are {len(files)}: name one")
    return files


# --- what is printed ------------------------------------------------------------------------------


def _status(outcome: Outcome) -> int:
    if outcome.error is not None:
        return FAILED
    return 0 if outcome.ok else 1


def _json(outcome: Outcome) -> str:
    if outcome.error is not None:
        shown: dict[str, Any] = {"file": outcome.file, "ok": False, "error": outcome.error}
    else:
        shown = {key: getattr(outcome, key) for key in _OUTCOME_KEYS}
        shown["failures"] = [
            {key: getattr(failure, key) for key in _FAILURE_KEYS} for failure in outcome.failures
        ]
    return json.dumps(shown)


def _report(outcome: Outcome) -> str:
    if outcome.error is not None:
        return f"FAIL  {outcome.error}"
    verdict = "ok  " if outcome.ok else "FAIL"
    seed = "" if outcome.ok else f"seed {outcome.seed}, "
    head = (
        f"{verdict}  {outcome.name} ({seed}{outcome.messages} messages, {outcome.wall_ms:.1f} ms)"
    )
    return "\n".join((head, *(_line(outcome, failure) for failure in outcome.failures)))


def _line(outcome: Outcome, failure: Failure) -> str:
    return (
        f"      {outcome.file}:{failure.line}: step {failure.step}: {failure.path}: "
        f"expected {_shown(failure.expected)}, is {_shown(failure.actual)}"
    )


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _summary(outcomes: list[Outcome]) -> str:
    runs = sum(outcome.runs for outcome in outcomes)
    failures = sum(not outcome.ok for outcome in outcomes)
    return f"{len(outcomes)} files, {runs} runs, {failures} failures"


# --- what is typed --------------------------------------------------------------------------------


def _seed(text: str) -> tuple[int, ...]:
    if not _NUMBER.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a seed: write a number from 0 on")
    return (int(text),)


def _seeds(text: str) -> Sequence[int]:
    ends = _RANGE.fullmatch(text)
    if ends is None or int(ends[1]) > int(ends[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a range of seeds: write one like 0..50")
    return range(int(ends[1]), int(ends[2]) + 1)


def _schedulers(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of schedulers: write 1 or more")
    return int(text)


def _scale(text: str) -> int:
    if not _NUMBER.fullmatch(text) or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a factor: write a number from 1 on")
    return int(text)
