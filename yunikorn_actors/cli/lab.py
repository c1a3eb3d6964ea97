"""The race laboratory: explore the schedules of scenario files, on threads too, and replay tapes.

The exit status is 0 when nothing was wrong, 1 when a violation was found, 2 when a file or a tape
is not understood.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from yunikorn_actors.cli import mutants
from yunikorn_actors.lab.case import Case, read_case
from yunikorn_actors.lab.coverage import coverage_lines
from yunikorn_actors.lab.explain import Explainer, explanation_lines, mermaid, save_trace
from yunikorn_actors.lab.explore import STRATEGIES, Budget, Options, Report, Search
from yunikorn_actors.lab.faults import FAULTS
from yunikorn_actors.lab.oracles import oracles
from yunikorn_actors.lab.play import Outcome, play
from yunikorn_actors.lab.story import told
from yunikorn_actors.lab.tape import TAPE_BYTES_MAX, Tape, TapeError, parse_tape
from yunikorn_actors.lab.threads import ThreadReport, ThreadSearch
from yunikorn_actors.machines.topology import TOPOLOGIES
from yunikorn_actors.scenario.document import ScenarioError

MISUNDERSTOOD: Final = 2
INTERRUPTED: Final = 130


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    run_ = actions.add_parser("run", help="explore the schedules of scenario files")
    run_.add_argument("paths", nargs="+", type=Path, metavar="FILE_OR_FOLDER")
    run_.add_argument("--topology", choices=TOPOLOGIES, default="proposing")
    run_.add_argument("--strategy", choices=STRATEGIES, default="uniform")
    run_.add_argument(
        "--runs", type=_whole, default=Budget().runs, metavar="N",
        help=f"how many schedules of each file (default: {Budget().runs})",
    )  # fmt: skip
    run_.add_argument(
        "--seed", type=_whole, default=Options().seed, metavar="N",
        help=f"another seed, other schedules (default: {Options().seed})",
    )  # fmt: skip
    run_.add_argument(
        "--faults", type=_faults, default=tuple(FAULTS), metavar="LIST|all|none",
        help=f"what may go wrong, in every second run: {', '.join(FAULTS)} (default: all)",
    )  # fmt: skip
    run_.add_argument(
        "--coverage", type=_whole, metavar="N",
        help="tell which orders of messages were tried, and N of those that never were",
    )  # fmt: skip
    run_.add_argument(
        "--until-covered", action="store_true",
        help="stop when another run would hardly try a new order",
    )  # fmt: skip
    run_.add_argument("--json", action="store_true", help="one JSON object for each file")
    threads_ = actions.add_parser("threads", help="run scenario files on real threads")
    threads_.add_argument("paths", nargs="+", type=Path, metavar="FILE_OR_FOLDER")
    threads_.add_argument("--topology", choices=TOPOLOGIES, default="proposing")
    threads_.add_argument(
        "--seconds", type=_whole, default=10, metavar="N",
        help="how long each file is run again and again (default: 10)",
    )  # fmt: skip
    threads_.add_argument(
        "--seed", type=_whole, default=Options().seed, metavar="N",
        help=f"other pauses (default: {Options().seed})",
    )  # fmt: skip
    threads_.add_argument("--json", action="store_true", help="one JSON object for each file")
    replay_ = actions.add_parser("replay", help="play tapes again")
    replay_.add_argument("tapes", nargs="+", metavar="TAPE_OR_FILE_OR_FOLDER")
    replay_.add_argument(
        "--scenario", type=Path, metavar="FILE", help="the scenario file, where it is elsewhere now"
    )
    replay_.add_argument(
        "--runs", type=_whole, default=1, metavar="N", help="play each so often, and compare"
    )
    replay_.add_argument("--json", action="store_true", help="one JSON object for each tape")
    explain_ = actions.add_parser("explain", help="say how a tape comes to fail")
    explain_.add_argument("tapes", nargs=1, metavar="TAPE_OR_FILE")
    explain_.add_argument(
        "--scenario", type=Path, metavar="FILE", help="the scenario file, where it is elsewhere now"
    )
    explain_.add_argument(
        "--mermaid", type=Path, metavar="FILE", help="draw it as a sequence diagram of Mermaid"
    )
    explain_.add_argument("--trace", type=Path, metavar="FILE", help="record it as a trace file")
    mutants_ = actions.add_parser("mutants", help="show which planted defects are found, and how")
    mutants.add_arguments(mutants_, _whole)


def run(options: argparse.Namespace) -> int:
    try:
        return _ACTIONS[options.action](options)
    except (ScenarioError, TapeError, OSError) as error:
        print(f"yunikorn-actors lab {options.action}: {error}", file=sys.stderr)
        return MISUNDERSTOOD


# --- exploring ------------------------------------------------------------------------------------


def _explore(options: argparse.Namespace) -> int:
    wanted = Options(
        strategy=options.strategy,
        seed=options.seed,
        faults=options.faults,
        budget=Budget(runs=options.runs, until_covered=options.until_covered),
    )
    status = 0
    for path in _files(options.paths):
        search = Search(read_case(path, options.topology), wanted)
        try:
            report = search.run()
        except KeyboardInterrupt:
            _print_report(search.report(), options)
            return INTERRUPTED
        _print_report(report, options)
        status = max(status, 1 if report.finding else 0)
    return status


def _files(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        found = sorted(path.rglob("*.yaml")) if path.is_dir() else [path]
        if not found:
            raise ScenarioError(f"no *.yaml in {path}: name a folder of scenarios")
        yield from found


def _print_report(report: Report, options: argparse.Namespace) -> None:
    text = json.dumps(_report_json(report)) if options.json else _report_text(report)
    print(text, flush=True)
    if options.coverage is not None and not options.json:
        for line in coverage_lines(report.coverage, options.coverage):
            print(f"      {line}", flush=True)


def _report_json(report: Report) -> dict[str, Any]:
    finding = report.finding
    shown: dict[str, Any] = {
        "file": report.case.scenario.file,
        "ok": finding is None,
        "runs": report.runs,
        "orders": report.orders,
        "messages": report.messages,
        "pairs_tried": report.coverage.tried,
        "pairs_possible": report.coverage.possible,
        "seconds": round(report.seconds, 3),
    }
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


def _report_text(report: Report) -> str:
    finding = report.finding
    counts = (
        f"{report.runs} runs, {report.orders} orders, {report.messages} messages, "
        f"{report.seconds:.1f} s"
    )
    if finding is None:
        return f"ok    {report.case.scenario.name} ({counts})"
    left, outcome = report.case.explained(finding.tape), finding.outcome
    how = (
        f"found in run {finding.run} by {len(finding.found.entries)} deviations; "
        f"{len(left.entries)} are left, with {outcome.stimuli} stimuli and "
        f"{outcome.messages} messages:"
    )
    lines = (finding.violation.text, how, *str(left).splitlines())
    return "\n".join(
        (f"FAIL  {report.case.scenario.name} ({counts})", *(f"      {line}" for line in lines))
    )


# --- on threads -----------------------------------------------------------------------------------


def _run_on_threads(options: argparse.Namespace) -> int:
    budget = Budget(seconds=options.seconds)
    status = 0
    for path in _files(options.paths):
        case = read_case(path, options.topology)
        search = ThreadSearch(case, Options(seed=options.seed, budget=budget))
        try:
            report = search.run()
        except KeyboardInterrupt:
            _print_thread_report(search.report(None), options)
            return INTERRUPTED
        _print_thread_report(report, options)
        status = max(status, 1 if report.finding else 0)
    return status


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
    status = 0
    for source, text in _tapes(options.tapes):
        tape = parse_tape(text, source)
        case = _case_of(tape, source, options.scenario)
        outcomes = [play(case, tape, oracles()) for _ in range(max(1, options.runs))]
        digests = dict.fromkeys(outcome.digest() for outcome in outcomes)
        _print_replay(source, case, outcomes, len(digests), options)
        status = max(status, *(0 if outcome.ok else 1 for outcome in outcomes))
    return status


def _tapes(names: list[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        if name.startswith("tape "):
            yield "tape", name
            continue
        path = Path(name)
        found = sorted(path.rglob("*.tape")) if path.is_dir() else [path]
        if not found:
            raise TapeError(f"{path}: no *.tape in it: name a folder of tapes")
        yield from ((str(file), _text_of(file)) for file in found)


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(TAPE_BYTES_MAX + 1).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise TapeError(f"{path}: cannot be read: {error}") from None


def _case_of(tape: Tape, source: str, elsewhere: Path | None) -> Case:
    """Find the scenario where the tape says, else beside the tape."""
    named = elsewhere or Path(tape.scenario)
    beside = Path(source).parent / named
    return read_case(named if named.is_file() or not beside.is_file() else beside, tape.topology)


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
    }
    if options.json:
        print(json.dumps(shown), flush=True)
        return
    verdict = "ok  " if first.ok else "FAIL"
    alike = f", {len(outcomes)} times the same" if len(outcomes) > 1 and digests == 1 else ""
    print(f"{verdict}  {source}: {case.scenario.name} ({first.messages} messages{alike})")
    if first.violation is not None:
        print(f"      {first.violation.text}")


# --- explaining -----------------------------------------------------------------------------------


def _explain(options: argparse.Namespace) -> int:
    for source, text in _tapes(options.tapes):
        tape = parse_tape(text, source)
        case = _case_of(tape, source, options.scenario)
        explained = Explainer(case, tape).explain()
        if explained.outcome.violation is None:
            print(f"ok    {source}: nothing is wrong, so there is nothing to explain")
            return 0
        print(told(case, tape, explained.outcome), "", *explanation_lines(explained), sep="\n")
        if options.mermaid is not None:
            options.mermaid.write_text(mermaid(explained), "utf-8")
        if options.trace is not None:
            save_trace(explained, options.trace)
    return 1


_ACTIONS: Final[dict[str, Callable[[argparse.Namespace], int]]] = {
    "run": _explore,
    "threads": _run_on_threads,
    "replay": _replay,
    "explain": _explain,
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
        raise argparse.ArgumentTypeError(f"{text!r} is not a number: write one from 0 on")
    return int(text)
