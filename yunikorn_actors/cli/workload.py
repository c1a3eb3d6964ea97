"""`yunikorn-actors workload`: play logs of real clusters through the scheduler, in virtual time."""

import argparse
import csv
import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, get_args

import msgspec
from msgspec.structs import replace

from yunikorn_actors.errors import ConfigError
from yunikorn_actors.recording.printable import printable
from yunikorn_actors.runtime.config_source import read_file
from yunikorn_actors.trace.read import TraceError
from yunikorn_actors.workload import (
    Mapping,
    Node,
    Options,
    Workload,
    WorkloadError,
    play,
    read_nodes,
)
from yunikorn_actors.workload.campaign import RunJob, campaign_jobs, run_all
from yunikorn_actors.workload.cluster_config import guaranteed_shares
from yunikorn_actors.workload.compare import SHAKE_S, Comparison, compare, duration_signed, fails
from yunikorn_actors.workload.figures import spread
from yunikorn_actors.workload.formats.own import write_jobs
from yunikorn_actors.workload.page import page
from yunikorn_actors.workload.player import Estimates, Jobs, never_fitting
from yunikorn_actors.workload.recorded import Recorded
from yunikorn_actors.workload.summary import summary_lines
from yunikorn_actors.workload.table import Table

UNREADABLE: Final = 2
POLICY: Final = "policy:"
"""Before the name of a policy that stands where a configuration may stand."""
FIGURES: Final = ("mean", "median", "p95", "p99", "max")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    run_ = actions.add_parser("run", help="play a log")
    run_.add_argument("log", metavar="LOG", help="SWF, openb or Batsim, packed or not")
    run_.add_argument("--config", type=Path, metavar="FILE", help="queues.yaml; default: one queue")
    run_.add_argument("--policy", default="", metavar="NAME", help="order of every leaf")
    run_.add_argument("-o", "--output", type=Path, metavar="FOLDER", help="write the files there")
    run_.add_argument("--check", action="store_true", help="check the invariants throughout")
    run_.add_argument("--strict", action="store_true", help="a line that is no job ends it")
    run_.add_argument(
        "--estimates", choices=get_args(Estimates), default="requested",
        help="which run times are declared",
    )  # fmt: skip
    _add_options(run_)
    compare_ = actions.add_parser("compare", help="play a log under several configurations")
    compare_.add_argument(
        "variants", nargs="+", metavar="A.yaml B.yaml ... LOG",
        help=f"configurations, or {POLICY}NAME, and the log; the first is measured against",
    )  # fmt: skip
    compare_.add_argument(
        "--draws", type=int, default=10, metavar="N",
        help="play each so often again with shaken submits (default: %(default)s)",
    )  # fmt: skip
    compare_.add_argument("--shake", type=float, default=SHAKE_S, metavar="SECONDS")
    compare_.add_argument(
        "--fail-if", action="append", default=[], metavar="CONDITION",
        help="status 1 if it holds: 'p95 wait of root.ml > 1.1x'",
    )  # fmt: skip
    compare_.add_argument("-o", "--output", type=Path, metavar="PAGE", help="write the page there")
    _add_options(compare_)
    _add_executor(compare_)
    trace = actions.add_parser("from-trace", help="make a workload of a recording or a journal")
    trace.add_argument("recording", type=Path, metavar="FILE_OR_FOLDER")
    trace.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER")
    campaign = actions.add_parser("campaign", help="make many runs")
    campaign.add_argument("campaign", type=Path, metavar="FILE", help="lists, all combined: YAML")
    campaign.add_argument("-o", "--output", type=Path, required=True, metavar="REPORT")
    _add_executor(campaign)


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
    parser.add_argument("--stay", action="store_true", help="nothing ends: fill the cluster")
    parser.add_argument(
        "--map", action="append", default=[], metavar="KEY=VALUE",
        help="what user, group, queue and memory are, such as queue=root.{group}",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON")


def _add_executor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--executor", default="processes", metavar="WHERE",
        help="serial, processes (default) or dask://HOST:PORT",
    )  # fmt: skip
    parser.add_argument("--workers", type=int, metavar="N", help="so many processes")
    parser.add_argument("--cache", type=Path, metavar="FOLDER", help="keep results, and use them")


def run(options: argparse.Namespace) -> int:
    try:
        return _ACTIONS[options.action](options)
    except (WorkloadError, ConfigError, TraceError) as error:
        print(printable(f"yunikorn-actors workload {options.action}: {error}"), file=sys.stderr)
        return UNREADABLE


# -- run


def _run(options: argparse.Namespace) -> int:
    how = _options(options)
    workload = Workload.read(
        options.log, mapping=Mapping.parse(options.map), is_strict=options.strict,
        limit=options.limit,
    )  # fmt: skip
    if options.scale != 1:
        workload = workload.scaled(options.scale)
    nodes = read_nodes(options.nodes, workload)
    _tell_of_the_log(workload, nodes, how)
    config = "" if options.config is None else read_file(options.config)
    table = play(workload, nodes, config, policy=options.policy, options=how)
    summary = table.summary()
    if options.output is not None:
        _write(table, summary, config, options.output)
    if options.json:
        print(json.dumps(summary))
    else:
        for line in summary_lines(summary):
            print(printable(line))
    return 0


def _options(options: argparse.Namespace) -> Options:
    return Options(
        jobs=options.jobs,
        estimates=getattr(options, "estimates", "requested"),
        until_s=options.until,
        faults=options.faults,
        seed=options.seed,
        stays=options.stay,
        checked=getattr(options, "check", False),
    )


def _tell_of_the_log(workload: Workload, nodes: list[Node], how: Options) -> None:
    """Say before the run what is wrong with the log, and what can never run on these nodes."""
    for fault in workload.findings.faults:
        print(printable(f"{workload.name}:{fault.line}: {fault.what}"), file=sys.stderr)
    if never := never_fitting(workload, nodes, how):
        told = f"{never:,} of {len(workload):,} jobs never fit on these nodes and are left out"
        print(told, file=sys.stderr, flush=True)


def _write(table: Table, summary: dict[str, Any], config: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    table.to_csv(folder / "rows.csv")
    table.to_batsim(folder / "jobs.csv")
    (folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    main = table.run.main
    shares = guaranteed_shares(config, main, table.run.capacity[main])
    text = page({table.run.policy or "as configured": table}, guaranteed=shares)
    (folder / "page.html").write_text(text, encoding="utf-8")


# -- compare


def _compare(options: argparse.Namespace) -> int:
    *given, log = options.variants
    if len(given) < 2:  # noqa: PLR2004 - there is nothing to compare one with
        raise WorkloadError("name two configurations at least, and the log behind them")
    first = RunJob(
        log=log, nodes=options.nodes, mapping=Mapping.parse(options.map), limit=options.limit,
        scale=options.scale, options=_options(options),
    )  # fmt: skip
    variants = {_named(it): replace(first, **_variant(it)) for it in given}
    if len(variants) < len(given):
        raise WorkloadError("two of the configurations have one name")
    found = compare(
        variants, draws=options.draws, shake_s=options.shake, run_all=_all_runs(options)
    )
    if options.output is not None:
        options.output.write_text(found.page(), encoding="utf-8")
    failed = [it for condition in options.fail_if for it in fails(condition, found)]
    if options.json:
        summaries = {name: table.summary() for name, table in found.tables.items()}
        told = {"verdict": found.verdict, "failed": failed, "differences": found.differences}
        print(msgspec.json.encode({**told, "summaries": summaries}).decode())
    else:
        _print_comparison(found)
        for line in failed:
            print(f"failed: {line}")
    return 1 if failed else 0


def _print_comparison(found: Comparison) -> None:
    for name, table in found.tables.items():
        figures = spread(table.waits())
        told = ", ".join(f"{key} {figures[key]:,.2f} s" for key in FIGURES)
        print(printable(f"{name:<16} wait {told}"))
    for difference in found.differences:
        for what, interval in (("shaken", difference.shaken), ("resampled", difference.resampled)):
            if interval is not None:
                low, high = map(duration_signed, interval)
                print(printable(f"{difference.name:<16} {what}: {low} to {high} in the mean"))
    print(printable(found.verdict))


def _named(variant: str) -> str:
    return variant.removeprefix(POLICY) if variant.startswith(POLICY) else Path(variant).stem


def _variant(variant: str) -> dict[str, str]:
    if variant.startswith(POLICY):
        return {"policy": variant.removeprefix(POLICY)}
    return {"config": read_file(Path(variant))}


# -- campaign


def _campaign(options: argparse.Namespace) -> int:
    jobs = campaign_jobs(options.campaign)
    results = _all_runs(options)([job for _, job in jobs])
    names = list(jobs[0][0])
    with options.output.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow((*names, "done", *(f"wait {it}" for it in FIGURES), "slowdown", "digest"))
        for (values, _), result in zip(jobs, results, strict=True):
            waits = (result["wait_s"][it] for it in FIGURES)
            told = (*waits, result["slowdown"]["mean"], result["digest"][:16])
            writer.writerow((*values.values(), result["done"], *told))
    print(f"{len(jobs):,} runs: {options.output}")
    return 0


# -- from elsewhere


def _from_trace(options: argparse.Namespace) -> int:
    recorded = Recorded.read(options.recording)
    folder = options.output
    folder.mkdir(parents=True, exist_ok=True)
    count = write_jobs(recorded.jobs, folder / "jobs.jsonl")
    (folder / "nodes.yaml").write_text("\n".join(recorded.nodes_yaml()) + "\n", encoding="utf-8")
    if recorded.config:
        (folder / "queues.yaml").write_text(recorded.config, encoding="utf-8")
    print(f"{count:,} jobs, {len(recorded.nodes):,} nodes: {folder}")
    for why, number in recorded.left_out.items():
        print(f"{number:,}: {why}")
    return 0


def _all_runs(options: argparse.Namespace) -> Callable[[Sequence[RunJob]], list[dict[str, Any]]]:
    def tell(done: int, of: int) -> None:
        if of and sys.stderr.isatty():
            end = "\n" if done == of else ""
            print(f"\r{done} of {of} runs", end=end, file=sys.stderr, flush=True)

    return partial(
        run_all, executor=options.executor, workers=options.workers, cache=options.cache, tell=tell
    )


_ACTIONS: Final = {
    "run": _run,
    "compare": _compare,
    "campaign": _campaign,
    "from-trace": _from_trace,
}
