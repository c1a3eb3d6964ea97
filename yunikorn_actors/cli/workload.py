"""`yunikorn-actors workload`: play logs of real clusters through the scheduler, in virtual time."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any, Final, get_args

import msgspec
from msgspec.structs import replace

from yunikorn_actors.cli import FAILED, NO
from yunikorn_actors.cli.policies import add_place_of_policies, add_policies
from yunikorn_actors.cli.service_options import read_twice
from yunikorn_actors.errors import ConfigError
from yunikorn_actors.lab.fan_out import TooMany, WorkerLost
from yunikorn_actors.lab.workers.dask_pool import NoExecutor
from yunikorn_actors.recording.plain_text import printable
from yunikorn_actors.runtime.core_arguments import read_file
from yunikorn_actors.trace.read import TraceError
from yunikorn_actors.workload import Mapping, Options, WorkloadError, play
from yunikorn_actors.workload.batsim_file import write_batsim
from yunikorn_actors.workload.campaign import PROCESSES, Result, RunJob, campaign_jobs, run_all
from yunikorn_actors.workload.cluster import guaranteed_shares
from yunikorn_actors.workload.compare import SHAKE_S, Comparison, Condition, compare
from yunikorn_actors.workload.figures import spread
from yunikorn_actors.workload.lives import Lives
from yunikorn_actors.workload.page import page
from yunikorn_actors.workload.player import Estimates, Jobs, never_fitting
from yunikorn_actors.workload.recorded import read_recorded
from yunikorn_actors.workload.replay_summary import (
    duration_signed,
    summary_lines,
    why_nothing_ran,
)
from yunikorn_actors.workload.table import Table, write_csv
from yunikorn_actors.workload.yunikorn import read_yunikorn

POLICY: Final = "policy:"
"""Before the name of a policy that stands where a configuration may stand."""
FIGURES: Final = ("mean", "median", "p95", "p99", "max")


Arguments = dict[str, dict[str, Any]]
"""Arguments by name."""
_OF_A_RUN: Final[Arguments] = {
    "--nodes": {"metavar": "FILE|N|NxP", "help": "a file, one node of N processors, or N nodes of "
                "P (default: as the log says)"},
    "--jobs": {"choices": get_args(Jobs), "default": "ask",
               "help": "a job as one ask, or as a gang of asks of one processor"},
    "--estimates": {"choices": get_args(Estimates), "default": "requested",
                    "help": "which run times are declared"},
    "--until": {"dest": "until_s", "type": float, "metavar": "SECONDS",
                "help": "cut it off after so long"},
    "--scale": {"type": float, "default": 1.0, "metavar": "X",
                "help": "submits X times as far apart"},
    "--limit": {"type": int, "metavar": "N", "help": "only the first N jobs"},
    "--faults": {"type": float, "default": 0.0, "metavar": "RATE",
                 "help": "of so large a share of the starts the node is lost or the job killed"},
    "--seed": {"type": int, "metavar": "S", "help": "of the faults (default: 0)"},
    "--stay": {"dest": "stays", "action": "store_true", "help": "nothing ends: fill the cluster"},
    "--check": {"dest": "checked", "action": "store_true",
                "help": "check the invariants throughout"},
    "--map": {"action": "append", "default": [], "metavar": "KEY=VALUE",
              "help": "what user, group, queue and memory are, such as queue=root.{group}"},
    "--json": {"action": "store_true", "help": "print JSON"},
}  # fmt: skip
_OF_MANY: Final[Arguments] = {
    "--executor": {"default": PROCESSES, "metavar": "WHERE",
                   "help": "serial, processes (default) or dask://HOST:PORT"},
    "--workers": {"type": int, "metavar": "N", "help": "so many processes"},
    "--cache": {"type": Path, "metavar": "FOLDER", "help": "keep results, and use them"},
}  # fmt: skip
_OF_COMPARE: Final[Arguments] = {
    "--draws": {"type": int, "default": 10, "metavar": "N",
                "help": "play each so often again with shaken submits (default: %(default)s)"},
    "--shake": {"type": float, "default": SHAKE_S, "metavar": "SECONDS",
                "help": "submits come up to so much later (default: %(default)s)"},
    "--shake-runs": {"type": float, "default": 0.0, "metavar": "SHARE",
                     "help": "run times differ by about such a share, as 0.2 (default: not)"},
    "--fail-if": {"action": "append", "default": [], "metavar": "CONDITION",
                  "help": "status 1 if it holds: 'p95 wait of root.ml > 1.1x'"},
}  # fmt: skip
_CONFIG: Final[dict[str, Any]] = {"type": Path, "metavar": "FILE",
                                  "help": "queues.yaml; default: one queue"}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    run_ = actions.add_parser("run", help="play a log")
    run_.add_argument(
        "log", metavar="LOG", help="SWF, openb or Batsim, packed or not; - is standard input"
    )
    run_.add_argument("--config", **_CONFIG)
    run_.add_argument("--policy", default="", metavar="NAME", help="order of every leaf")
    add_policies(run_)
    run_.add_argument("--parquet", action="store_true", help="write the rows as Parquet as well")
    run_.add_argument("--strict", action="store_true", help="a line that is no job ends it")
    _add(run_, _OF_A_RUN, "FOLDER")
    compare_ = actions.add_parser("compare", help="play a log under several configurations")
    compare_.add_argument(
        "variants", nargs="+", metavar="A.yaml B.yaml ... LOG",
        help=f"configurations, or {POLICY}NAME, and the log; the first is measured against",
    )  # fmt: skip
    add_place_of_policies(compare_)
    _add(compare_, _OF_COMPARE | _OF_A_RUN | _OF_MANY, "PAGE")
    campaign = actions.add_parser("campaign", help="make many runs")
    campaign.add_argument("campaign", type=Path, metavar="FILE", help="lists, all combined: YAML")
    add_place_of_policies(campaign)
    _add(campaign, _OF_MANY, "REPORT", is_needed=True)
    trace = actions.add_parser("from-trace", help="make a workload of a recording or a journal")
    trace.add_argument("recording", type=Path, metavar="FILE_OR_FOLDER")
    trace.add_argument("--partition", default="", metavar="NAME", help="of several this one")
    _add(trace, {}, "FOLDER", is_needed=True)
    yunikorn = actions.add_parser("from-yunikorn", help="make a workload of a YuniKorn cluster")
    yunikorn.add_argument(
        "answers", nargs="+", type=Path, metavar="FILE",
        help="its full state dump, and its events: a batch or a stream",
    )  # fmt: skip
    _add(yunikorn, {}, "FOLDER", is_needed=True)


def _add(parser: argparse.ArgumentParser, table: Arguments, output: str, *,
         is_needed: bool = False) -> None:  # fmt: skip
    for name, given in table.items():
        parser.add_argument(name, **given)
    parser.add_argument(
        "-o", "--output", type=Path, required=is_needed, metavar=output, help="write it there"
    )


def run(options: argparse.Namespace) -> int:
    try:
        with TemporaryDirectory() as folder:
            options.folder = Path(folder)
            return _ACTIONS[options.action](options)
    except (WorkloadError, ConfigError, TraceError, NoExecutor, TooMany, WorkerLost) as error:
        print(printable(f"yunikorn-actors workload {options.action}: {error}"), file=sys.stderr)
        return FAILED


def _kept(options: argparse.Namespace, name: str) -> str:
    """Keep what can be read only once in a file, as a pipe: a log is read again and again."""
    file = Path("/dev/stdin" if name == "-" else name)
    if not file.exists() or ((file.is_file() or file.is_dir()) and file.parts[:2] != ("/", "dev")):
        return name
    kept = Path(mkdtemp(dir=options.folder)) / file.name
    with file.open("rb") as data, kept.open("wb") as out:
        copyfileobj(data, out)
    return str(kept)


def _job(options: argparse.Namespace, log: str) -> RunJob:
    if (mistake := read_twice(**{"LOG": log, "--nodes": options.nodes})) is not None:
        raise WorkloadError(mistake)
    if options.seed is not None and not options.faults:
        raise WorkloadError("--seed: it is of the faults: leave it out, or give --faults RATE")
    options.seed = options.seed or 0
    nodes = options.nodes and _kept(options, options.nodes)
    given = {name: it for name, it in vars(options).items() if name in Options.__struct_fields__}
    return RunJob(
        log=_kept(options, log), nodes=nodes, mapping=Mapping.parse(options.map),
        limit=options.limit, scale=options.scale, options=Options(**given),
    )  # fmt: skip


def _run(options: argparse.Namespace) -> int:
    if options.parquet and options.output is None:
        raise WorkloadError("--parquet: rows are written to a folder: name it with -o")
    job = _job(options, options.log)
    workload, nodes = job.inputs(is_strict=options.strict)
    workload.name = options.log
    for fault in workload.findings.faults:
        _say(f"{workload.name}:{fault.line}: {fault.what}")
    if never := never_fitting(workload, nodes, job.options):
        _say(f"{never:,} of {len(workload):,} jobs never fit on these nodes and are left out")
    config = "" if options.config is None else read_file(options.config)
    table = play(
        workload, nodes, config, policies=options.policies.given, policy=options.policy,
        options=job.options,
    )  # fmt: skip
    summary = table.summary()
    if options.output is not None:
        _write(table, summary, config, options.output)
        if options.parquet:
            table.to_parquet(options.output / "rows.parquet")
    lines = [json.dumps(summary)] if options.json else map(printable, summary_lines(summary))
    print("\n".join(lines))
    return _nothing_ran({workload.name: summary})


def _nothing_ran(summaries: dict[str, dict[str, Any]]) -> int:
    """Name the runs that show nothing; return the exit status."""
    reasons = {name: why for name, it in summaries.items() if (why := why_nothing_ran(it))}
    for name, why in reasons.items():
        _say(f"{name}: {why}")
    return NO if reasons else 0


def _say(text: str) -> None:
    print(printable(text), file=sys.stderr, flush=True)


def _write(table: Table, summary: dict[str, Any], config: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    table.to_csv(folder / "rows.csv")
    write_batsim(table, folder / "jobs.csv")
    (folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    main = table.run.main
    shares = guaranteed_shares(config, main, table.run.capacity[main])
    text = page({table.run.policy or "as configured": table}, guaranteed=shares)
    (folder / "page.html").write_text(text, encoding="utf-8")


def _compare(options: argparse.Namespace) -> int:
    *given, log = options.variants
    if len(given) < 2:  # noqa: PLR2004 - there is nothing to compare one with
        raise WorkloadError("name two configurations at least, and the log behind them")
    conditions = [Condition.parse(it) for it in options.fail_if]
    first = replace(_job(options, log), policies=options.policies or "")
    variants = {_named(it): replace(first, **_variant(it)) for it in given}
    if len(variants) < len(given):
        raise WorkloadError("two of the configurations have one name: give one file another")
    found = compare(
        variants, draws=options.draws, shake_s=options.shake, shake_runs=options.shake_runs,
        run_all=_all_runs(options),
    )  # fmt: skip
    if options.output is not None:
        options.output.write_text(found.page(), encoding="utf-8")
    failed = [it for condition in conditions for it in condition.failed(found)]
    summaries = {name: table.summary() for name, table in found.tables.items()}
    if options.json:
        fields = {"verdict": found.verdict, "failed": failed, "differences": found.differences}
        print(msgspec.json.encode({**fields, "summaries": summaries}).decode())
    else:
        _print_comparison(found)
        for line in failed:
            print(f"failed: {line}")
    return _nothing_ran(summaries) or int(bool(failed))


def _print_comparison(found: Comparison) -> None:
    for name, table in found.tables.items():
        figures = spread(table.waits())
        waits = ", ".join(f"{key} {figures[key]:,.2f} s" for key in FIGURES)
        print(printable(f"{name:<16} wait {waits}"))
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


def _campaign(options: argparse.Namespace) -> int:
    jobs = campaign_jobs(options.campaign)
    if options.policies:
        jobs = [(fields, replace(job, policies=options.policies)) for fields, job in jobs]
    results = _all_runs(options)([job for _, job in jobs])
    rows = [
        (*values.values(), result["done"], *(result["wait_s"][it] for it in FIGURES),
         result["slowdown"]["mean"], result["digest"][:16])
        for (values, _), result in zip(jobs, results, strict=True)
    ]  # fmt: skip
    waits = (f"wait {it}" for it in FIGURES)
    write_csv(options.output, (*jobs[0][0], "done", *waits, "slowdown", "digest"), rows)
    print(f"{len(jobs):,} runs: {options.output}")
    made = zip(jobs, results, strict=True)
    named = (
        (", ".join(f"{name} {value}" for name, value in fields.items()), result)
        for (fields, _), result in made
    )
    return _nothing_ran(dict(named))


def _all_runs(options: argparse.Namespace) -> Callable[[Sequence[RunJob]], list[Result]]:
    if options.workers is not None and options.executor != PROCESSES:
        raise WorkloadError(f"--workers: {options.executor} has its own: leave it out")

    def progress(done: int, of: int) -> None:
        if of and sys.stderr.isatty():
            end = "\n" if done == of else ""
            print(f"\r{done} of {of} runs", end=end, file=sys.stderr, flush=True)

    return partial(
        run_all, executor=options.executor, workers=options.workers, cache=options.cache,
        progress=progress,
    )  # fmt: skip


def _from_trace(options: argparse.Namespace) -> int:
    return _written(read_recorded(options.recording, options.partition), options.output)


def _from_yunikorn(options: argparse.Namespace) -> int:
    names = {f"FILE {number}": it for number, it in enumerate(options.answers, 1)}
    if (mistake := read_twice(**names)) is not None:
        raise WorkloadError(mistake)
    answers = [_kept(options, str(it)) for it in options.answers]
    return _written(read_yunikorn(answers), options.output)


def _written(lives: Lives, folder: Path) -> int:
    for fault in lives.findings.faults:
        _say(f"{fault.what}")
    lives.write(folder)
    nodes = {node.id for node in lives.nodes}
    left_out, assumed = lives.findings.left_out, lives.findings.assumed
    print(f"{len(lives.jobs):,} jobs, {len(nodes):,} nodes: {folder}")
    for what, counted in (("left out", left_out), ("assumed", assumed)):
        for why, number in counted.items():
            print(f"{what} {number:,}: {why}")
    return 0


_ACTIONS: Final = {
    "run": _run,
    "compare": _compare,
    "campaign": _campaign,
    "from-trace": _from_trace,
    "from-yunikorn": _from_yunikorn,
}
