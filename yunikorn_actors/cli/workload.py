"""`yunikorn-actors workload`: play logs of real clusters through the scheduler, in virtual time."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Final, get_args

from yunikorn_actors.errors import ConfigError
from yunikorn_actors.recording.printable import printable
from yunikorn_actors.runtime.config_source import read_file
from yunikorn_actors.workload import (
    Mapping,
    Node,
    Options,
    Workload,
    WorkloadError,
    play,
    read_nodes,
)
from yunikorn_actors.workload.player import Estimates, Jobs, never_fitting
from yunikorn_actors.workload.summary import summary_lines
from yunikorn_actors.workload.table import Table

UNREADABLE: Final = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    run_ = actions.add_parser("run", help="play a log")
    run_.add_argument("log", type=Path, metavar="LOG", help="SWF, openb or Batsim, packed or not")
    run_.add_argument("--config", type=Path, metavar="FILE", help="queues.yaml; default: one queue")
    run_.add_argument(
        "--policy", default="", metavar="NAME", help="application order of every leaf"
    )
    run_.add_argument("-o", "--output", type=Path, metavar="FOLDER", help="write the files there")
    run_.add_argument("--json", action="store_true", help="print the summary as JSON")
    _add_options(run_)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--nodes", metavar="FILE|N|NxP",
        help="a file, one node of N processors, or N nodes of P (default: as the log says)",
    )  # fmt: skip
    parser.add_argument(
        "--jobs", choices=get_args(Jobs), default="ask",
        help="a job as one ask, or as a gang of asks of one processor",
    )  # fmt: skip
    parser.add_argument("--until", type=float, metavar="SECONDS", help="cut it off after so long")
    parser.add_argument(
        "--scale", type=float, default=1.0, metavar="X", help="submits X times as far apart"
    )
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N jobs")
    parser.add_argument(
        "--faults", type=float, default=0.0, metavar="RATE",
        help="of so large a share of the starts the node is lost or the job killed",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the faults")
    parser.add_argument("--estimates", choices=get_args(Estimates), default="requested")
    parser.add_argument("--stay", action="store_true", help="nothing ends: fill the cluster")
    parser.add_argument(
        "--check", action="store_true", help="check the invariants after each message"
    )
    parser.add_argument(
        "--map", action="append", default=[], metavar="KEY=VALUE",
        help="what user, group, queue and memory are, such as queue=root.{group}",
    )  # fmt: skip
    parser.add_argument("--strict", action="store_true", help="a line that is no job ends it")


def run(options: argparse.Namespace) -> int:
    try:
        return _ACTIONS[options.action](options)
    except (WorkloadError, ConfigError) as error:
        print(printable(f"yunikorn-actors workload {options.action}: {error}"), file=sys.stderr)
        return UNREADABLE


def _run(options: argparse.Namespace) -> int:
    workload, nodes = _read(options, options.log)
    how = _options(options)
    _tell_of_the_log(workload, nodes, how)
    config = "" if options.config is None else read_file(options.config)
    table = play(workload, nodes, config, policy=options.policy, options=how)
    summary = table.summary()
    if options.output is not None:
        _write(table, summary, options.output)
    if options.json:
        print(json.dumps(summary))
    else:
        for line in summary_lines(summary):
            print(printable(line))
    return 0


def _read(options: argparse.Namespace, log: Path) -> tuple[Workload, list[Node]]:
    workload = Workload.read(
        log, mapping=Mapping.parse(options.map), is_strict=options.strict, limit=options.limit
    )
    if options.scale != 1:
        workload = workload.scaled(options.scale)
    return workload, read_nodes(options.nodes, workload)


def _options(options: argparse.Namespace) -> Options:
    return Options(
        jobs=options.jobs,
        estimates=options.estimates,
        until_s=options.until,
        faults=options.faults,
        seed=options.seed,
        stays=options.stay,
        checked=options.check,
    )


def _tell_of_the_log(workload: Workload, nodes: list[Node], how: Options) -> None:
    """Say before the run what is wrong with the log, and what can never run on these nodes."""
    for fault in workload.findings.faults:
        print(printable(f"{workload.name}:{fault.line}: {fault.what}"), file=sys.stderr)
    if never := never_fitting(workload, nodes, how):
        told = f"{never:,} of {len(workload):,} jobs never fit on these nodes and are left out"
        print(told, file=sys.stderr, flush=True)


def _write(table: Table, summary: dict[str, Any], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    table.to_csv(folder / "rows.csv")
    table.to_batsim(folder / "jobs.csv")
    (folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")


_ACTIONS: Final = {"run": _run}
