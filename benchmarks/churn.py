"""What a service holds while resource managers come and go: `python -m benchmarks.churn`.

`yunikorn-actors serve` runs with a journal and with REST. Resource managers of ever new names come
by gRPC, have work placed, release a part of it and leave; every few seconds their process is killed
in the middle of that. Meanwhile YuniKorn's pages and the metrics are asked for. Each line says what
the service and its process for REST hold: memory in MiB, threads, descriptors; and how large the
journal is. The memory grows until the books have reached their bounds (event records, applications
that have ended), and no further.
"""

import argparse
import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from benchmarks.asking import ask_from_elsewhere
from benchmarks.cli import HOME
from benchmarks.journal import bytes_in
from yunikorn_actors import connect

ASKS: Final = 20
REST_S: Final = 0.1
"""Between two lives."""
LIFE_S: Final = 40.0
"""So long the process of the resource managers lives at most."""
PATIENCE_S: Final = 60.0
_MIB: Final = 2**20


class Held(NamedTuple):
    """What a process holds."""

    memory_mib: float
    threads: int
    descriptors: int

    def __str__(self) -> str:
        return f"{self.memory_mib:7.1f} {self.threads:4} {self.descriptors:4}"


def held(pid: int) -> Held:
    process = Path("/proc", str(pid))
    status = dict(it.split(":", 1) for it in (process / "status").read_text().splitlines())
    memory_mib = int(status["VmRSS"].split()[0]) / 1024
    return Held(memory_mib, int(status["Threads"]), len(list((process / "fd").iterdir())))


def reader_of(pid: int) -> int:
    """Find the process that answers by REST: the main thread has started it, and no other."""
    children = Path("/proc", str(pid), "task", str(pid), "children").read_text().split()
    if not children:
        raise RuntimeError("the process that answers by REST has ended and was replaced")
    return int(children[0])


def live(address: str) -> None:
    """Come and go until somebody ends this process."""
    for life in itertools.count():
        rm_id = f"rm-{os.getpid()}-{life}"
        with connect(address, rm_id=rm_id) as scheduler:
            scheduler.add_node("node", vcore=ASKS, memory="1Gi")
            application = scheduler.application(f"app-{life}", user="ann")
            asked = [application.ask(f"ask-{n}", vcore=1) for n in range(ASKS + 5)]
            for lease in [it.result(PATIENCE_S) for it in asked[:ASKS]][: ASKS // 2]:
                lease.release()
            print(rm_id, flush=True)
        time.sleep(REST_S)


@contextmanager
def served(journal: Path) -> Iterator[tuple[int, str, str]]:
    """Give the number of the process, and where it answers by gRPC and by REST."""
    command = [sys.executable, "-m", "yunikorn_actors", "serve", "--journal", str(journal)]
    with subprocess.Popen(  # noqa: S603 - our own interpreter
        [*command, "--grpc", "127.0.0.1:0", "--rest", "127.0.0.1:0"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=HOME,
    ) as service:  # fmt: skip
        assert service.stdout is not None
        try:
            where = dict(service.stdout.readline().split(" on ") for _ in range(2))
            yield service.pid, where["gRPC"].strip(), where["REST"].strip()
        finally:
            service.terminate()


def lives(address: str, seconds: float) -> int:
    """Have resource managers come and go for so long, then kill them; return how many lived."""
    command = [sys.executable, "-m", "benchmarks.churn", "--live", address]
    with subprocess.Popen(  # noqa: S603 - ourselves
        command, stdout=subprocess.PIPE, text=True, cwd=HOME
    ) as child:
        try:
            told, _ = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            child.kill()
            told, _ = child.communicate()
            return len(told.splitlines())
    raise RuntimeError(f"the resource managers have ended by themselves, with {child.returncode}")


def lines(seconds: float, every_s: float) -> Iterator[str]:
    random, count = Random(1), 0
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="churn-")))
        pid, rpc, rest = stack.enter_context(served(folder))
        for mode in ("pages", "metrics"):
            stack.enter_context(ask_from_elsewhere(rest, mode, []))
        yield "minute   lives  service MiB, threads, fds  REST MiB, threads, fds  journal MiB"
        due = began = time.monotonic()
        while (now := time.monotonic()) < began + seconds:
            if now >= due:
                due += every_s
                yield (
                    f"{(now - began) / 60:6.1f} {count:7} {held(pid)!s:>27} "
                    f"{held(reader_of(pid))!s:>23} {bytes_in(folder) / _MIB:12.1f}"
                )
            left_s = began + seconds - now
            count += lives(rpc, min(random.uniform(1.0, LIFE_S), left_s + 1.0))
        yield (
            f"{(time.monotonic() - began) / 60:6.1f} {count:7} {held(pid)!s:>27} "
            f"{held(reader_of(pid))!s:>23} {bytes_in(folder) / _MIB:12.1f}"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.churn", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="so long (default: 60)")
    parser.add_argument("--every", type=float, default=60.0, help="seconds between two lines")
    parser.add_argument("--live", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.live:
        live(options.live)
    for line in lines(options.minutes * 60, options.every):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
