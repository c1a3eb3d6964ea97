"""What a recording costs: a workload without one, with one, and with a compressed one, in turn.

`python -m benchmarks.recording W2 --rounds 5` makes each run in a process of its own and prints the
processor time of a placement in the best of the rounds, the median of the paired ratios, and what
1,000 placements take up.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.cli import HOME, RUN_LIMIT_S
from benchmarks.load import Load
from benchmarks.run import measure
from benchmarks.workloads import WORKLOADS
from yunikorn_actors import SchedulerCore, TraceSettings
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName

WAYS: Final = ("not", "plain", "compressed")
Run = dict[str, Any]


def run(name: str, topology: TopologyName, way: str) -> Run:
    """Count what the workload takes; what waits for the disk then is written in no time."""
    with tempfile.TemporaryDirectory(prefix="recording-") as folder:
        path = Path(folder, "run.trace")
        settings = TraceSettings(path=path, compress=way == "compressed")
        with SchedulerCore(topology=topology, trace=None if way == "not" else settings) as core:
            figures = measure(WORKLOADS[name], Load(core))
        size = path.stat().st_size if path.exists() else 0
    return {
        "way": way,
        "cpu_s": figures["cpu_s"],
        "placements": figures["allocations"],
        "bytes": size,
    }


def rounds(name: str, topology: TopologyName, count: int) -> Iterator[list[Run]]:
    for _ in range(count):
        yield [_in_a_child(name, topology, way) for way in WAYS]


def _in_a_child(name: str, topology: TopologyName, way: str) -> Run:
    command = [sys.executable, "-m", "benchmarks.recording", name, "--topology", topology]
    child = subprocess.run(  # noqa: S603 - ourselves
        [*command, "--one", way], stdout=subprocess.PIPE, text=True, timeout=RUN_LIMIT_S,
        check=True, cwd=HOME,
    )  # fmt: skip
    told: Run = json.loads(child.stdout)
    return told


def lines(runs: Sequence[Sequence[Run]]) -> Iterator[str]:
    """Yield a line for each way; a ratio is that to the run without a recording in its round."""
    yield f"{'recorded':<12} {'us each':>8} {'ratio':>6} {'MB for 1,000':>13}"
    for number, way in enumerate(WAYS):
        here = [each[number] for each in runs]
        ratios = [it["cpu_s"] / each[0]["cpu_s"] for it, each in zip(here, runs, strict=True)]
        each_us = min(it["cpu_s"] / it["placements"] * 1e6 for it in here)
        size = statistics.median(it["bytes"] / it["placements"] / 1e3 for it in here)
        yield f"{way:<12} {each_us:>8.1f} {statistics.median(ratios):>6.2f} {size:>13.2f}"


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    if options.one:
        print(json.dumps(run(options.workload, options.topology, options.one)))
        return
    runs = list(rounds(options.workload, options.topology, options.rounds))
    print(*lines(runs), sep="\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recording", description=__doc__)
    parser.add_argument("workload", choices=WORKLOADS, help="what is recorded")
    parser.add_argument("--topology", choices=TOPOLOGIES, default=TOPOLOGIES[0])
    parser.add_argument("--rounds", type=int, default=5, help="how often each is run")
    parser.add_argument("--one", choices=WAYS, help="make one run in this very process")
    return parser


if __name__ == "__main__":
    main()
