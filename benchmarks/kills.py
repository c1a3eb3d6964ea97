"""What is lost when a process is killed while it records.

`python -m benchmarks.kills --times 50` starts a core that is busy, ends its process with SIGKILL,
and compares the last message in the recording with the last call that a callback heard: plain, and
compressed.
"""

import argparse
import mmap
import random
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.cli import HOME
from benchmarks.questions import Manager, Town
from yunikorn_actors import SchedulerCore, TraceSettings, si
from yunikorn_actors.trace.read import TraceReader

TRACE, HEARD = "run.trace", "heard"
_MOMENT = struct.Struct("q")


class Stamping(Manager):
    """Keeps when it heard last in memory that outlives the process."""

    def __init__(self, core: SchedulerCore, shared: mmap.mmap) -> None:
        super().__init__()
        self._core = core
        self._shared = shared

    def update_allocation(self, response: si.AllocationResponse) -> None:
        super().update_allocation(response)
        _MOMENT.pack_into(self._shared, 0, self._core.clock.now_ns())


def be_busy(folder: Path, *, compress: bool) -> None:
    """Work until somebody ends this process."""
    settings = TraceSettings(path=folder / TRACE, compress=compress)
    with (
        (folder / HEARD).open("r+b") as file,
        mmap.mmap(file.fileno(), _MOMENT.size) as shared,
        SchedulerCore(trace=settings) as core,
    ):
        town = Town(core, Stamping(core, shared))
        while True:
            town.live()
            # A flood of calls would leave its own callback no time to hear of anything.
            while not core.is_settled():
                time.sleep(0.001)


def lost_ms(*, compress: bool) -> tuple[float, int]:
    """Kill one, and return how much is missing at the end, and how many messages can be read."""
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        trace, heard = Path(folder, TRACE), Path(folder, HEARD)
        heard.write_bytes(_MOMENT.pack(0))
        command = [sys.executable, "-m", "benchmarks.kills", "--busy", folder]
        child = subprocess.Popen([*command, *["--compress"] * compress], cwd=HOME)  # noqa: S603
        try:
            while not _MOMENT.unpack(heard.read_bytes())[0]:
                if child.poll() is not None:
                    raise RuntimeError("the process that is to be killed has ended by itself")
                time.sleep(0.01)
            time.sleep(random.uniform(0.1, 0.6))
        finally:
            child.kill()
            child.wait()
        with TraceReader(trace) as reader:
            last_ns, messages = 0, 0
            for delivery in reader:
                last_ns, messages = max(last_ns, delivery.at_ns), messages + 1
        return max(0, _MOMENT.unpack(heard.read_bytes())[0] - last_ns) / 1e6, messages


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    if options.busy:
        be_busy(options.busy, compress=options.compress)
        return
    for name, compress in (("plain", False), ("compressed", True)):
        found = sorted(lost_ms(compress=compress) for _ in range(options.times))
        lost, messages = zip(*found, strict=True)
        middle, most = lost[len(lost) // 2], lost[-1]
        print(f"{name}: {len(lost)} killed, all can be read, {min(messages):,} messages and more")
        print(f"  lost: {middle:.0f} ms in the middle, {most:.0f} ms at most", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kills", description=__doc__)
    parser.add_argument("--times", type=int, default=50, help="how many are killed of each kind")
    parser.add_argument("--busy", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--compress", action="store_true", help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    main()
