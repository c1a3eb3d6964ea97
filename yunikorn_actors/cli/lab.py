"""The race laboratory: explore the schedules of scenario files, on threads too, and replay tapes.

The exit status is 0 when nothing was wrong, 1 when a violation was found, 2 when a file or a tape
is not understood.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from yunikorn_actors.cli import (
    FAILED,
    INTERRUPTED,
    NO,
    baseline_command,
    lab_options,
    lab_shrink,
    mutants,
    swarm,
)
from yunikorn_actors.cli.policies import add_place_of_policies
from yunikorn_actors.config import parse_duration
from yunikorn_actors.drivers.simulator.simulator import Checker
from yunikorn_actors.errors import CoreError
from yunikorn_actors.lab.case import Case, read_case
from yunikorn_actors.lab.coverage import coverage_lines
from yunikorn_actors.lab.explanation import Explainer, explanation_lines, mermaid, save_trace
from yunikorn_actors.lab.explore import Budget, Options, Report, Search
from yunikorn_actors.lab.narrative import narrative_of, not_played_lines
from yunikorn_actors.lab.oracles.judges import judges_of
from yunikorn_actors.lab.oracles.run_oracles import oracles
from yunikorn_actors.lab.run_schedule import NotRepeatable, Outcome, play
from yunikorn_actors.lab.schedules.faults import FAULTS, RESTART, USUAL_FAULTS
from yunikorn_actors.lab.schedules.random_draw import RUNS_MAX
from yunikorn_actors.lab.schedules.strategies import DEEP, EXHAUSTIVE, STRATEGIES, SYSTEMATIC
from yunikorn_actors.lab.schedules.threads import ThreadReport, ThreadSearch
from yunikorn_actors.lab.tapes.tape import Tape, TapeError
from yunikorn_actors.lab.tapes.tape_files import case_of, keep, kept, read_tape, source_of
from yunikorn_actors.lab.workers.process_pool import seldom_collecting
from yunikorn_actors.machines.settings import InvalidTopology
from yunikorn_actors.machines.topology import TOPOLOGIES, check_topology
from yunikorn_actors.scenario.document import ScenarioError
from yunikorn_actors.values.durations import SECOND


class _UsageError(Exception):
    """The command cannot be carried out; the text says why."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add_run(actions.add_parser("run", help="explore the schedules of scenario files"))
    swarm_ = actions.add_parser("swarm", help="explore worlds that are drawn, each in one order")
    swarm.add_arguments(swarm_, whole=_whole, positive=_positive, seconds=_seconds)
    _add_shrink_seconds(swarm_)
    baseline_ = actions.add_parser("baseline", help="compare what the core does with what it did")
    baseline_command.add_arguments(baseline_, _positive)
    _add_threads(actions.add_parser("threads", help="run scenario files on real threads"))
    _add_replay(actions.add_parser("replay", help="play tapes again"))
    _add_explain(actions.add_parser("explain", help="say how a tape comes to fail"))
    _add_shrink(actions.add_parser("shrink", help="make a failing scenario and its tape small"))
    mutants_ = actions.add_parser("mutants", help="show which planted defects are found, and how")
    mutants.add_arguments(mutants_, _whole)


def _add_run(parser: argparse.ArgumentParser) -> None:
    _add_cases(parser)
    _add_strategy(parser)
    budget = parser.add_mutually_exclusive_group()
    budget.add_argument(
        "--runs", type=_positive, default=Budget().runs, metavar="N",
        help=f"how many schedules of each file (default: {Budget().runs})",
    )  # fmt: skip
    budget.add_argument(
        "--time", type=_seconds, metavar="T", help="how long each file is explored, like 30s or 2m"
    )
    parser.add_argument(
        "--coverage", type=_whole, metavar="N",
        help="tell which orders of messages were tried and what else was reached, and N of each "
        "that never were",
    )  # fmt: skip
    parser.add_argument(
        "--until-covered", action="store_true",
        help="stop when another run would hardly try a new order",
    )  # fmt: skip
    parser.add_argument(
        "--check", action="store_true",
        help="play each schedule twice; the first message that differs is shown",
    )  # fmt: skip
    _add_shrink_seconds(parser)
    parser.add_argument("--save", type=Path, metavar="DIR", help="keep the tapes that fail here")
    parser.add_argument(
        "--explain", action="store_true", help="say of what is found how it comes to fail"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object for each file")
    lab_options.add_arguments(parser, _positive)


def _add_cases(parser: argparse.ArgumentParser) -> None:
    lab_options.add_argument(parser)
    parser.add_argument("paths", nargs="+", type=Path, metavar="FILE_OR_FOLDER")
    add_place_of_policies(parser)
    parser.add_argument("--topology", choices=TOPOLOGIES, default="proposing")
    parser.add_argument(
        "--schedulers", type=_positive, default=1, metavar="N",
        help="so many plan for each partition at once (default: 1); only proposing has several",
    )  # fmt: skip


def _add_strategy(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--strategy", choices=(*STRATEGIES, EXHAUSTIVE), default=Options().strategy)
    parser.add_argument(
        "--depth", type=_positive, metavar="D",
        help="pct: how many events have to come in a certain order; "
        f"delay: how many messages are delayed at most (default: {Options().depth})",
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=_whole, metavar="N",
        help=f"another seed, other schedules (default: {Options().seed})",
    )  # fmt: skip
    parser.add_argument(
        "--faults", type=_faults, metavar="LIST|all|none",
        help=f"what may go wrong, in every second run: {', '.join(FAULTS)} (default: all "
        f"but {RESTART}; none with {' and '.join(SYSTEMATIC)})",
    )  # fmt: skip


def _add_threads(parser: argparse.ArgumentParser) -> None:
    _add_cases(parser)
    parser.add_argument(
        "--seconds", type=_positive, default=10, metavar="N",
        help="how long each file is run again and again (default: 10)",
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=_whole, default=Options().seed, metavar="N",
        help=f"other pauses (default: {Options().seed})",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="one JSON object for each file")


def _add_replay(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tapes", nargs="+", metavar="TAPE_OR_FILE_OR_FOLDER")
    lab_options.add_argument(parser)
    _add_elsewhere(parser)
    parser.add_argument(
        "--runs", type=_positive, default=1, metavar="N", help="play each so often, and compare"
    )
    _add_model(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object for each tape")


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model", action="store_true", help="have the model of the rules judge it too"
    )


def _add_explain(parser: argparse.ArgumentParser) -> None:
    _add_model(parser)
    parser.add_argument("tape", metavar="TAPE_OR_FILE")
    lab_options.add_argument(parser)
    _add_elsewhere(parser)
    parser.add_argument(
        "--mermaid", type=Path, metavar="FILE", help="draw it as a sequence diagram of Mermaid"
    )
    parser.add_argument("--trace", type=Path, metavar="FILE", help="record it as a trace file")


def _add_shrink(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tape", metavar="TAPE_OR_FILE")
    lab_options.add_argument(parser)
    _add_elsewhere(parser)
    _add_shrink_seconds(parser)
    parser.add_argument("--save", type=Path, metavar="DIR", help="keep both as files here")
    parser.add_argument("--json", action="store_true", help="one JSON object")


def _add_shrink_seconds(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--shrink-seconds", type=_seconds, metavar="T",
        help="stop making a finding smaller after this time, like 30s or 2m",
    )  # fmt: skip


def _add_elsewhere(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--scenario", type=Path, metavar="FILE", help="the scenario file, where it is elsewhere now"
    )


def run(options: argparse.Namespace) -> int:
    try:
        with lab_options.in_force(options), seldom_collecting():
            return _ACTIONS[options.action](options)
    except BrokenPipeError:
        raise  # the reader has ended, which is no mistake of anybody
    except (_UsageError, InvalidTopology, ScenarioError, CoreError) as error:
        _complain(error, options)
        return FAILED


def _complain(error: Exception, options: argparse.Namespace) -> None:
    print(f"yunikorn-actors lab {options.action}: {error}", file=sys.stderr)


def _play_files(options: argparse.Namespace, play_file: Callable[[Case], int]) -> int:
    """Go through the files; one that is not understood does not keep the others from it."""
    check_topology(options.topology, options.schedulers)
    status = 0
    for path in list(_files(options.paths)):
        try:
            case = read_case(path, options.topology)
            case = case.on(options.topology, options.schedulers, options.policies or "")
            status = max(status, play_file(case))
        except NotRepeatable as error:
            _print_failure(path, error, options)
            status = max(status, 1)
        except ScenarioError as error:
            _print_misunderstood(path, error, options)
            status = FAILED
        if status == INTERRUPTED:
            break
    return status


def _files(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        found = sorted(path.rglob("*.yaml")) if path.is_dir() else [path]
        if not found:
            raise ScenarioError(f"no *.yaml in {path}: name a folder of scenarios")
        yield from found


def _print_failure(source: object, error: Exception, options: argparse.Namespace) -> None:
    if options.json:
        print(json.dumps({"file": str(source), "ok": False, "error": str(error)}), flush=True)
    else:
        print(f"FAIL  {source}: {error}", flush=True)


def _print_misunderstood(source: object, error: Exception, options: argparse.Namespace) -> None:
    if options.json:
        _print_failure(source, error, options)
    else:
        _complain(error, options)


# --- exploring ------------------------------------------------------------------------------------


def _explore(options: argparse.Namespace) -> int:
    wanted = _wanted(options)
    _make_folder(options.save)
    reports: list[Report] = []
    with lab_options.player_of(options) as player:
        status = _play_files(
            options, lambda case: _explore_case(Search(case, wanted, player), reports, options)
        )
    _print_total(reports, options)
    return status


def _make_folder(save: Path | None) -> None:
    """Find out now whether there can be one, and not when a night is over."""
    try:
        if save is not None:
            save.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _UsageError(f"--save {save}: no folder can be made there: {error.strerror}") from None


def _wanted(options: argparse.Namespace) -> Options:
    faults = options.faults
    if options.strategy not in SYSTEMATIC:
        faults = USUAL_FAULTS if faults is None else faults
    elif faults:
        raise _UsageError(
            f"{options.strategy} goes through schedules without faults: leave --faults out, or "
            "take a strategy that draws, like uniform"
        )
    if options.seed is not None and options.strategy in SYSTEMATIC:
        raise _UsageError(
            f"--seed: {options.strategy} draws nothing: leave it out, or take a strategy that "
            "draws, like uniform"
        )
    if options.depth is not None and options.strategy not in DEEP:
        raise _UsageError(
            f"--depth: {options.strategy} has none: leave it out, or take {' or '.join(DEEP)}"
        )
    if options.strategy == EXHAUSTIVE and (options.jobs > 1 or options.executor is not None):
        raise _UsageError(
            f"{EXHAUSTIVE} goes on from what the runs before have shown: leave --jobs and "
            "--executor out"
        )
    return Options(
        strategy=options.strategy,
        depth=Options().depth if options.depth is None else options.depth,
        seed=Options().seed if options.seed is None else options.seed,
        faults=faults or (),
        plays_twice=options.check,
        shrink_seconds=options.shrink_seconds,
        budget=Budget(
            runs=options.runs if options.time is None else RUNS_MAX,
            seconds=options.time,
            until_covered=options.until_covered,
        ),
    )


def _explore_case(search: Search, reports: list[Report], options: argparse.Namespace) -> int:
    try:
        reports.append(search.run())
    except KeyboardInterrupt:
        reports.append(search.report())
        _print_report(reports[-1], options)
        return INTERRUPTED
    _print_report(reports[-1], options)
    return 0 if reports[-1].ok else 1


def _print_report(report: Report, options: argparse.Namespace) -> None:
    """Keep the tape that fails, and print the report: in any case, for the tape is in it."""
    saved = ""
    try:
        saved = _kept(report, options.save)
    finally:
        for line in _report_lines(report, saved, options):
            print(line, flush=True)


def _kept(report: Report, folder: Path | None) -> str:
    if report.finding is None or folder is None:
        return ""
    try:
        return str(keep(folder, report.finding.tape, report.finding.violation.text))
    except OSError as error:
        raise _UsageError(
            f"--save {folder}: the tape cannot be kept there: {error.strerror}; it is printed above"
        ) from error


def _report_lines(report: Report, saved: str, options: argparse.Namespace) -> Iterator[str]:
    if options.json:
        yield json.dumps(_report_json(report, saved))
        return
    yield _report_text(report, saved, explains=options.explain)
    if options.coverage is not None:
        for line in coverage_lines(report.coverage, options.coverage):
            yield f"      {line}"


def _print_total(reports: list[Report], options: argparse.Namespace) -> None:
    if options.json or len(reports) <= 1:
        return
    found = sum(report.finding is not None for report in reports)
    print(
        f"{len(reports)} files: {sum(report.runs for report in reports)} runs, "
        f"{sum(report.orders for report in reports)} orders, "
        f"{sum(report.messages for report in reports)} messages, {found} violations, "
        f"{sum(report.seconds for report in reports):.1f} s",
        flush=True,
    )


def _report_json(report: Report, saved: str) -> dict[str, Any]:
    finding = report.finding
    shown: dict[str, Any] = {
        "file": report.case.scenario.file,
        "ok": report.ok,
        "runs": report.runs,
        "orders": report.orders,
        "messages": report.messages,
        "proposed": report.proposed,
        "refused": report.refused,
        "pairs_tried": report.coverage.tried,
        "pairs_possible": report.coverage.possible,
        "reached": report.coverage.counts(),
        "seconds": round(report.seconds, 3),
    }
    if report.exhausted:
        shown["exhausted"] = report.exhausted
    if report.never_held:
        shown["never_held"] = report.never_held
    if report.never_judged:
        shown["never_judged"] = report.never_judged
    if saved:
        shown["saved"] = saved
    if finding is not None:
        shown |= {
            "run": finding.run,
            "violation": finding.violation.text,
            "deviations": len(finding.tape.entries),
            "stimuli": finding.outcome.stimuli,
            "shown_after": finding.outcome.messages,
            "tape": finding.tape.line(),
        }
    return shown


def _report_text(report: Report, saved: str, *, explains: bool) -> str:
    finding = report.finding
    counts = (
        f"{report.runs} runs, {report.orders} orders, {report.messages} messages, "
        f"{report.seconds:.1f} s"
    )
    rest = [f"exhausted: {report.exhausted}"] if report.exhausted else []
    if report.case.schedulers > 1:
        rest.append(f"{report.refused} of {report.proposed} proposals were refused")
    rest += [f"sometimes {name}: held in no run" for name in report.never_held]
    rest += [
        f"always {name}: judged in no run, as nothing that it names was there"
        for name in report.never_judged
    ]
    if finding is None:
        return _indented(
            f"{'ok  ' if report.ok else 'FAIL'}  {report.case.scenario.name} ({counts})", *rest
        )
    left, outcome = report.case.explained(finding.tape), finding.outcome
    how = f"found in run {finding.run} {outcome.shrunk(finding.found, left)}:"
    if not finding.run:
        how = f"fails undisturbed, with {outcome.stimuli} stimuli and {outcome.messages} messages:"
    rest += [f"kept in {saved}"] if saved else []
    if explains:
        explained = Explainer(report.case, finding.tape).explain()
        rest += ["", *explanation_lines(explained)]
    return _indented(
        f"FAIL  {report.case.scenario.name} ({counts})",
        finding.violation.text, how, *str(left).splitlines(), *rest,
    )  # fmt: skip


def _indented(head: str, *lines: str) -> str:
    return "\n".join((head, *(f"      {line}".rstrip() for line in lines)))


def _explore_worlds(options: argparse.Namespace) -> int:
    _make_folder(options.save)
    return swarm.run(options)


# --- on threads -----------------------------------------------------------------------------------


def _run_on_threads(options: argparse.Namespace) -> int:
    wanted = Options(seed=options.seed, budget=Budget(seconds=options.seconds))
    return _play_files(options, lambda case: _run_case_on_threads(case, wanted, options))


def _run_case_on_threads(case: Case, wanted: Options, options: argparse.Namespace) -> int:
    search = ThreadSearch(case, wanted)
    try:
        report = search.run()
    except KeyboardInterrupt:
        _print_thread_report(search.report(None), options)
        return INTERRUPTED
    _print_thread_report(report, options)
    return NO if report.finding else 0


def _print_thread_report(report: ThreadReport, options: argparse.Namespace) -> None:
    text = json.dumps(_thread_json(report)) if options.json else _thread_text(report)
    print(text, flush=True)


def _thread_json(report: ThreadReport) -> dict[str, Any]:
    finding = report.finding
    shown: dict[str, Any] = {
        "file": report.case.scenario.file,
        "ok": finding is None,
        "runs": report.runs,
        "messages": report.messages,
        "lost": report.lost,
        "seconds": round(report.seconds, 3),
    }
    if finding is not None:
        shown |= {
            "run": finding.run,
            "violation": finding.violation.text,
            "tape": None if finding.tape is None else finding.tape.line(),
            "why": finding.why,
        }
    return shown


def _thread_text(report: ThreadReport) -> str:
    finding = report.finding
    name = report.case.scenario.name
    counts = f"{report.runs} runs, {report.messages} messages, {report.seconds:.1f} s"
    lines = [f"{'FAIL' if finding else 'ok'.ljust(4)}  {name} ({counts})"]
    if report.lost:
        lines.append(
            f"      {report.lost} recordings were followed in part only; "
            f"the first one up to {report.first_lost}"
        )
    if finding is not None:
        lines += [f"      {finding.violation.text}", f"      in run {finding.run} on threads"]
        if finding.tape is None:
            lines.append(f"      there is no tape of it: {finding.why}")
        else:
            tape = report.case.explained(finding.tape)
            lines.append(f"      by the tape of {len(tape.entries)} deviations:")
            lines += [f"      {line}" for line in str(tape).splitlines()]
    return "\n".join(lines)


# --- replaying ------------------------------------------------------------------------------------


def _replay(options: argparse.Namespace) -> int:
    tapes = [tape for name in options.tapes for tape in kept(name)]
    status = 0
    for name in tapes:
        try:
            status = max(status, _replay_tape(name, options))
        except (ScenarioError, TapeError) as error:
            _print_misunderstood(source_of(name), error, options)
            status = FAILED
    return status


def _replay_tape(name: str, options: argparse.Namespace) -> int:
    tape, source = read_tape(name), source_of(name)
    case = case_of(tape, source, options.scenario)
    outcomes = [
        play(case, tape, judges_of(tape, by_model=options.model)) for _ in range(options.runs)
    ]
    digests = {outcome.digest() for outcome in outcomes}
    _print_replay(source, case, outcomes, len(digests), options)
    return 0 if all(outcome.ok for outcome in outcomes) else 1


def _print_replay(
    source: str, case: Case, outcomes: list[Outcome], digests: int, options: argparse.Namespace
) -> None:
    first = outcomes[0]
    shown: dict[str, Any] = {
        "tape": source,
        "scenario": case.scenario.file,
        "ok": first.ok,
        "violation": None if first.violation is None else first.violation.text,
        "runs": len(outcomes),
        "digests": digests,
        "digest": first.digest(),
        "messages": first.messages,
        "stimuli": first.stimuli,
        "not_played": list(first.not_played),
    }
    if options.json:
        print(json.dumps(shown), flush=True)
        return
    verdict = "ok  " if first.ok else "FAIL"
    alike = f", {len(outcomes)} times the same" if len(outcomes) > 1 and digests == 1 else ""
    print(f"{verdict}  {source}: {case.scenario.name} ({first.messages} messages{alike})")
    if first.violation is not None:
        print(f"      {first.violation.text}")
    for line in not_played_lines(first):
        print(f"      {line}")


# --- explaining -----------------------------------------------------------------------------------


def _explain(options: argparse.Namespace) -> int:
    tape, source = read_tape(options.tape), source_of(options.tape)
    case = case_of(tape, source, options.scenario)
    explained = Explainer(case, tape, checkers=_needed(case, tape, options)).explain()
    if explained.outcome.violation is None:
        print(f"ok    {source}: nothing is wrong, so there is nothing to explain")
        for line in not_played_lines(explained.outcome):
            print(f"      {line}")
        return 0
    print(narrative_of(case, tape, explained.outcome), "", *explanation_lines(explained), sep="\n")
    if options.mermaid is not None:
        options.mermaid.write_text(mermaid(explained), "utf-8")
    if options.trace is not None:
        save_trace(explained, options.trace)
    return 1


def _needed(
    case: Case, tape: Tape, options: argparse.Namespace
) -> Callable[[], tuple[Checker, ...]]:
    """Return what judges the many plays: the dear oracles only where the others see nothing."""
    dear = partial(judges_of, tape, by_model=options.model)
    return dear if play(case, tape, oracles()).ok else oracles


_ACTIONS: Final[dict[str, Callable[[argparse.Namespace], int]]] = {
    "run": _explore,
    "swarm": _explore_worlds,
    "baseline": baseline_command.run,
    "threads": _run_on_threads,
    "replay": _replay,
    "explain": _explain,
    "shrink": lab_shrink.run,
    "mutants": mutants.run,
}


# --- what is typed --------------------------------------------------------------------------------


def _faults(text: str) -> tuple[str, ...]:
    words = {"all": tuple(FAULTS), "none": ()}.get(text, tuple(text.split(",")))
    for word in words:
        if word not in FAULTS:
            raise argparse.ArgumentTypeError(
                f"{word!r} is no fault: write all, none, or some of {','.join(FAULTS)}"
            )
    return words


def _whole(text: str) -> int:
    if not text.isdecimal() or len(text) > len(str(10**12)):
        raise argparse.ArgumentTypeError(f"{text!r:.40} will not do: write a number from 0 on")
    return int(text)


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() and len(text) <= len(str(RUNS_MAX)) else 0
    if not 0 < number <= RUNS_MAX:
        raise argparse.ArgumentTypeError(
            f"{text!r:.40} will not do: write a number from 1 to {RUNS_MAX}"
        )
    return number


def _seconds(text: str) -> float:
    length_ns = parse_duration(text)
    if length_ns is None or length_ns <= 0:
        raise argparse.ArgumentTypeError(f"{text!r:.40} is no time: write one like 30s or 2m")
    return length_ns / SECOND
