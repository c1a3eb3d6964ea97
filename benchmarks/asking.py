"""Whoever looks at a core, in a process of its own: `python -m benchmarks.asking ADDRESS MODE`.

It asks once a second until its input ends, and then says how long each round took.
"""

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from benchmarks.cli import HOME

P: Final = "/ws/v1/partition/default"
X: Final = "/ws/v1/x/partition/default"
CALLS: Final[dict[str, tuple[str, ...]]] = {
    "followed": (),
    "pages": (
        "/ws/v1/clusters",
        "/ws/v1/partitions",
        "/ws/v1/history/apps",
        "/ws/v1/history/containers",
        "/ws/v1/scheduler/node-utilizations",
        "/ws/v1/scheduler/healthcheck",
        f"{P}/queues",
        f"{P}/applications/active",
    ),
    "nodes": (f"{P}/nodes",),
    "metrics": ("/ws/v1/metrics",),
    "live": (f"{X}/asks", f"{X}/applications"),
    "simulated": ("/ws/v1/x/simulate",),
}
"""What is asked once a second."""
BODIES: Final = {
    "/ws/v1/x/simulate": json.dumps(
        {
            "steps": ["- ask: {app: app-0, key: what-if, resource: {vcore: 1000, memory: 1000}}"],
            "until": 0,
        }
    )
}
"""Of what is posted: would it fit now?"""
STREAMS: Final = {"live": "/ws/v1/x/overview"}
"""What is followed all the time."""
EVERY_S: Final = 1.0
PATIENCE_S: Final = 120.0
YIELDS: Final = 10
"""How far it yields to the core and the read side, as a priority of processes."""


@contextmanager
def ask_from_elsewhere(address: str, mode: str, rounds: list[float]) -> Iterator[None]:
    """Have another process ask as long as this lasts; then add how long each round took."""
    child = subprocess.Popen(  # noqa: S603 - ourselves
        [sys.executable, "-m", "benchmarks.asking", address, mode],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=HOME,
    )  # fmt: skip
    assert child.stdout is not None
    child.stdout.readline()
    try:
        yield
    finally:
        told, _ = child.communicate(timeout=PATIENCE_S)
    rounds += json.loads(told)


def ask(address: str, paths: tuple[str, ...], over: threading.Event) -> list[float]:
    rounds: list[float] = []
    while paths and not over.wait(EVERY_S):
        begin = time.perf_counter()
        for path in paths:
            connection = http.client.HTTPConnection(address, timeout=PATIENCE_S)
            body = BODIES.get(path)
            connection.request("GET" if body is None else "POST", path, body)
            connection.getresponse().read()
            connection.close()
        rounds.append(time.perf_counter() - begin)
    return rounds


def follow(address: str, path: str) -> None:
    """Read a stream for as long as the process lasts."""
    connection = http.client.HTTPConnection(address, timeout=PATIENCE_S)
    connection.request("GET", path)
    with suppress(OSError, http.client.HTTPException):
        for _ in connection.getresponse():
            pass


def main(address: str, mode: str) -> None:
    os.nice(YIELDS)
    print("ready", flush=True)
    over = threading.Event()

    def end() -> None:
        sys.stdin.read()
        over.set()

    threading.Thread(target=end, daemon=True).start()
    if mode in STREAMS:
        threading.Thread(target=follow, args=(address, STREAMS[mode]), daemon=True).start()
    print(json.dumps(ask(address, CALLS[mode], over)))


if __name__ == "__main__":
    main(*sys.argv[1:])
