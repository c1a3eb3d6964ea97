"""The command `serve` in a process of its own."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from calling import PATIENCE_S

COMMAND = ("-m", "yunikorn_actors")


class Running:
    def __init__(
        self, *options: str, program: tuple[str, ...] = COMMAND, rest: bool = False
    ) -> None:
        """Serve gRPC on some port of this computer, and REST if it is wanted."""
        addresses = ("--grpc", "127.0.0.1:0", "--rest", "127.0.0.1:0" if rest else "off")
        command = [sys.executable, *program, "serve", *addresses, *options]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
        assert self.process.stdout is not None
        addressed: dict[str, str] = {}
        while " on 127.0.0.1:" in (line := self.process.stdout.readline()):
            addressed[line.split()[0]] = line.split()[-1]
        assert line.startswith("ready"), (line, self.process.communicate())
        self.address = addressed["gRPC"]
        self.rest = addressed.get("REST", "")

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, errors


@contextmanager
def starting() -> Iterator[Callable[..., Running]]:
    """Start commands that end with this, however it ends."""
    started: list[Running] = []

    def start(*options: str, program: tuple[str, ...] = COMMAND, rest: bool = False) -> Running:
        started.append(Running(*options, program=program, rest=rest))
        return started[-1]

    try:
        yield start
    finally:
        for it in started:
            it.process.kill()
            it.process.communicate()


class Held(NamedTuple):
    memory: int
    """Kilobytes."""
    threads: int
    descriptors: int


def held(pid: int) -> Held:
    """Look what a process holds."""
    status = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
    )
    descriptors = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return Held(int(status["VmRSS"].split()[0]), int(status["Threads"]), descriptors)
