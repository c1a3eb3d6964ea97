"""What a journal costs a core, and how long the next one takes: `python -m benchmarks.journal`.

A workload runs with a journal and without one, in turn. While it runs the folder is looked at, so
that it shows how large it gets. Then a core is started from what is there.
"""

import argparse
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from benchmarks.load import Load
from benchmarks.run import Run, measure
from benchmarks.workloads import WORKLOADS, Churn
from yunikorn_actors import SchedulerCore
from yunikorn_actors.recording.meter import Meter

LOOK_S: Final = 0.2
_MIB: Final = 2**20


@contextmanager
def watched(folder: Path) -> Iterator[list[int]]:
    """Look now and then how many bytes there are."""
    sizes: list[int] = [0]
    over = threading.Event()

    def look() -> None:
        while not over.wait(LOOK_S):
            sizes.append(bytes_in(folder))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield sizes
    finally:
        over.set()
        looking.join()


def bytes_in(folder: Path) -> int:
    total = 0
    for file in folder.iterdir():
        try:
            total += file.stat().st_size
        except FileNotFoundError:
            # It went between the two calls.
            continue
    return total


def run(workload: Churn, folder: Path | None) -> Run:
    with SchedulerCore(journal=folder) as core:
        core.inside.meter = Meter()
        if folder is None:
            figures = measure(workload, Load(core))
        else:
            with watched(folder) as sizes:
                figures = measure(workload, Load(core))
            figures["most_mib"] = round(max(sizes) / _MIB, 1)
        worst_ns = core.inside.meter.plain()["actors"]["context"]["worst_ns"]
    return {**figures, "context_worst_ms": round(worst_ns / 1e6, 1)}


def starts(folder: Path) -> str:
    """Say how long the next core takes until it takes requests."""
    size = bytes_in(folder) / _MIB
    began, cpu_began = time.perf_counter(), time.process_time()
    with SchedulerCore(journal=folder):
        took_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu_began
    return (
        f"{size:.0f} MiB; the next core begins after {took_s:.2f} s, {cpu_s:.2f} s of a processor"
    )


def counted(text: str) -> int:
    """Read how many there are to be."""
    count = int(text) if text.isascii() and text.isdecimal() else 0
    if count < 1:
        raise argparse.ArgumentTypeError(f"give a whole number above 0, not {text!r}")
    return count


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.journal", description=__doc__)
    parser.add_argument("--pairs", type=counted, default=30_000)
    parser.add_argument("--running", type=counted, default=2_000)
    parser.add_argument("--nodes", type=counted, default=1_000)
    parser.add_argument("--rounds", type=counted, default=1)
    parser.add_argument("--alone", action="store_true", help="a run without a journal as well")
    options = parser.parse_args(arguments)
    churn = WORKLOADS["W5"]
    assert isinstance(churn, Churn)
    cluster = replace(churn.cluster, nodes=options.nodes)
    churn = replace(churn, cluster=cluster, pairs=options.pairs, running=options.running)
    for _ in range(options.rounds):
        if options.alone:
            _print("alone", run(churn, None))
        with tempfile.TemporaryDirectory(prefix="journal-") as name:
            _print("journal", run(churn, Path(name)))
            print(starts(Path(name)), flush=True)


def _print(mode: str, found: Run) -> None:
    print(
        f"{mode:8} {found['pairs_per_s']:8,.0f} pairs/s  {found['cpu_us_each']:7.1f} us each  "
        f"p99 {found['latency_ms']['p99']:7.0f} ms  longest handler of Context "
        f"{found['context_worst_ms']:6.1f} ms  at most {found.get('most_mib', 0):7.1f} MiB",
        flush=True,
    )


if __name__ == "__main__":
    main()
