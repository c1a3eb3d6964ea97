"""How long an import takes: `python -m benchmarks.imports`, above what a bare interpreter takes.

Each figure is the median over pairs of fresh processes, one bare and one with the import, in turn:
so what else the computer does is in both. Time on the processor is less noisy than that of a clock.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from statistics import median
from typing import Final, NamedTuple

PROGRAMS: Final = (
    "import yunikorn_actors",
    "from yunikorn_actors import si",
    "from yunikorn_actors import SchedulerCore",
    "from yunikorn_actors import AsyncSchedulerCore",
)
BARE: Final = "pass"


class Took(NamedTuple):
    clock_ms: float
    cpu_ms: float


def took(program: str) -> Took:
    # Compiled modules are written, whatever the environment says: only the first process compiles.
    environment = {it: v for it, v in os.environ.items() if it != "PYTHONDONTWRITEBYTECODE"}
    begin = time.perf_counter()
    child = os.posix_spawn(sys.executable, [sys.executable, "-c", program], environment)
    _, status, used = os.wait4(child, 0)
    clock_ms = (time.perf_counter() - begin) * 1e3
    if status:
        raise SystemExit(f"{program!r} ended with {os.waitstatus_to_exitcode(status)}")
    return Took(clock_ms, (used.ru_utime + used.ru_stime) * 1e3)


def above_bare(program: str, pairs: int) -> Took:
    took(program)
    both = [(took(BARE), took(program)) for _ in range(pairs)]
    return Took(
        median(full.clock_ms - bare.clock_ms for bare, full in both),
        median(full.cpu_ms - bare.cpu_ms for bare, full in both),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.imports", description=__doc__)
    parser.add_argument("--pairs", type=int, default=25, help="pairs of processes for each")
    pairs = parser.parse_args(arguments).pairs
    print(f"{'above a bare interpreter':46} {'clock':>8} {'cpu':>8}")
    for program in PROGRAMS:
        figures = above_bare(program, pairs)
        print(f"{program:46} {figures.clock_ms:5.1f} ms {figures.cpu_ms:5.1f} ms", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
