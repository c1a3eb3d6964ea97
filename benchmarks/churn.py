"""What a service holds while resource managers come and go: `python -m benchmarks.churn`.

`yunikorn-actors serve` runs with a journal and with REST. Resource managers of ever new names come
by gRPC, several at a time, have work placed, release a part of it and leave; every few seconds
their process is killed in the middle of that. A record of each judges what it is notified of: a
difference ends the run with exit status 1 and the sentence that says it. Meanwhile YuniKorn's pages
and the metrics are asked for. Each line says what the service and its process for REST hold: memory
in MiB, threads, descriptors; and how large the journal is. The memory grows until the books have
reached their bounds (event records, applications that have ended), and no further.
"""

import argparse
import itertools
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import Queue
from random import Random
from typing import Final, NamedTuple

from benchmarks.asking import ask_from_elsewhere
from benchmarks.cli import HOME
from benchmarks.journal import bytes_in
from benchmarks.recorded import RecordedRemote
from yunikorn_actors import Scheduler

ASKS: Final = 20
SEATS: Final = 2
"""So many resource managers are there at a time."""
REST_S: Final = 0.1
"""Between two lives of a seat."""
LIFE_S: Final = 40.0
"""So long the process of the resource managers lives at most."""
PATIENCE_S: Final = 60.0
"""So long an answer may be on its way."""
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


class Differs(Exception):
    """What a resource manager was notified of is not what it is owed."""


def live(address: str, patience_s: float) -> str:
    """Come and go until this process is ended, or until something is wrong: return that."""
    wrong: Queue[str] = Queue()
    for seat in range(SEATS):
        arguments = (address, seat, patience_s, wrong)
        threading.Thread(target=_live_at, args=arguments, daemon=True).start()
    return wrong.get()


def _live_at(address: str, seat: int, patience_s: float, wrong: Queue[str]) -> None:
    for life in itertools.count():
        rm_id = f"rm-{os.getpid()}-{seat}-{life}"
        try:
            _live_once(RecordedRemote(address), rm_id, patience_s)
        except Exception as error:  # noqa: BLE001 - without it the seat would stay empty
            wrong.put(f"{rm_id} ended with {type(error).__name__}: {error}")
            return
        print(rm_id, flush=True)
        time.sleep(REST_S)


def _live_once(core: RecordedRemote, rm_id: str, patience_s: float) -> None:
    with Scheduler(core=core, rm_id=rm_id) as scheduler:
        scheduler.add_node("node", vcore=ASKS, memory="1Gi")
        application = scheduler.application(f"app-{rm_id}", user="ann")
        asked = [application.ask(f"ask-{n}", vcore=1) for n in range(ASKS + 5)]
        try:
            for lease in [it.result(patience_s) for it in asked[:ASKS]][: ASKS // 2]:
                lease.release()
            for it in asked[ASKS:]:
                it.result(patience_s)
        except TimeoutError:
            differences = core.differences(0) or [f"{rm_id} waits for an answer in vain"]
        else:
            differences = core.differences(patience_s)
    if differences:
        raise Differs("; ".join(differences))


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


def lives(address: str, seconds: float, patience_s: float = PATIENCE_S) -> int:
    """Have resource managers come and go for so long, then kill them; return how many lived."""
    command = [sys.executable, "-m", "benchmarks.churn", "--live", address]
    with subprocess.Popen(  # noqa: S603 - ourselves
        [*command, "--patience", str(patience_s)],
        stdout=subprocess.PIPE, text=True, cwd=HOME,
    ) as child:  # fmt: skip
        try:
            printed, _ = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            child.kill()
            printed, _ = child.communicate()
            return len(printed.splitlines())
    raise Differs(printed.splitlines()[-1] if printed else f"exit status {child.returncode}")


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
    parser.add_argument("--patience", type=float, default=PATIENCE_S, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.live:
        print(live(options.live, options.patience), flush=True)
        return 1
    try:
        for line in lines(options.minutes * 60, options.every):
            print(line, flush=True)
    except Differs as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
