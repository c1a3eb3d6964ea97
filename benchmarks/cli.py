"""The command: each run in a fresh process, because the peak of memory belongs to a process.

The process of a run prints its JSON object, or says on standard error why it has none. This process
only starts them, one after the other, and reports.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol, get_args

from benchmarks import calibrate, targets
from benchmarks.failure import BenchmarkFailed
from benchmarks.report import report
from benchmarks.run import Run, run
from benchmarks.workloads import WORKLOADS
from yunikorn_actors import CoreError
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.runtime.core_arguments import CoreDriver

RUN_LIMIT_S = 900
HOME = Path(__file__).parent.parent


class Start(Protocol):
    """Make one run elsewhere; return what it printed, which is nothing if it failed."""

    def __call__(self, name: str, topology: TopologyName, driver: CoreDriver) -> str: ...


def in_a_child(name: str, topology: TopologyName, driver: CoreDriver) -> str:
    command = [sys.executable, "-m", "benchmarks", "--one", name, "--topology", topology]
    command += ["--driver", driver]
    try:
        child = subprocess.run(  # noqa: S603 - ourselves
            command, stdout=subprocess.PIPE, text=True, timeout=RUN_LIMIT_S, check=True, cwd=HOME
        )
    except subprocess.SubprocessError as error:
        print(f"{name} {topology}: no figure: {error}", file=sys.stderr)
        return ""
    return child.stdout.strip()


def main(arguments: Sequence[str] | None = None, start: Start = in_a_child) -> int:
    options = _parser().parse_args(arguments)
    topologies = [options.topology] if options.topology else TOPOLOGIES
    if options.one:
        return _one(options.one, topologies[0], options.driver)
    wanted = [
        (name, topology, options.driver)
        for name in options.workloads or WORKLOADS
        for topology in topologies
        for _ in range(options.repeat)
    ]
    runs = list(_runs(start, wanted, as_json=options.json))
    if runs and not options.json:
        print(report(runs))
    return int(len(runs) < len(wanted))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("workloads", nargs="*", type=_workload, help=f"of {', '.join(WORKLOADS)}")
    parser.add_argument("--topology", choices=TOPOLOGIES, help="both, if not given")
    parser.add_argument(
        "--driver", choices=get_args(CoreDriver), default="threads", help="who runs the machines"
    )
    parser.add_argument("--repeat", type=int, default=1, help="runs of each")
    parser.add_argument("--json", action="store_true", help="print one JSON object for each run")
    parser.add_argument("--one", type=_workload, help="make one run in this very process")
    return parser


def _workload(name: str) -> str:
    if name not in WORKLOADS:
        raise argparse.ArgumentTypeError(f"no workload {name!r}: choose of {', '.join(WORKLOADS)}")
    return name


def _one(name: str, topology: TopologyName, driver: CoreDriver) -> int:
    try:
        figures = run(name, topology, calibrate.measure(), targets.cpu_calibration(), driver)
    except (BenchmarkFailed, CoreError) as error:
        print(f"{name} {topology}: {error}", file=sys.stderr)
        return 1
    print(json.dumps(figures))
    return 0


def _runs(
    start: Start, wanted: Sequence[tuple[str, TopologyName, CoreDriver]], *, as_json: bool
) -> Iterator[Run]:
    for name, topology, driver in wanted:
        text = start(name, topology, driver)
        if text and as_json:
            print(text, flush=True)
        if text:
            yield json.loads(text)
