"""Run a body of scenario files beside the repository: `python run_body.py FOLDER`.

Every file runs with a seed on each topology and once on threads and direct; `.ci/release` goes
through hundreds of seeds. There are as many processes as processors, and each runs one file after
the other within a time limit: a file that does not end is a fault like any other, and the next one
has a new process. The files that `not_yet.txt` names wait for a feature: they run as well, and one
of them that passes fails the run, so the list only shrinks.
"""

import multiprocessing
import os
import sys
import time
from collections import deque
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

from yunikorn_actors.machines.topology import TOPOLOGIES
from yunikorn_actors.scenario.runner import RunOptions, run_file

NOT_YET = Path(__file__).with_name("not_yet.txt")
SEEDS = (1,)
"""First in, first out, which is seed 0, is the order of the driver `direct`."""
LIMIT_S = 120
"""For all runs of one file; the longest takes a few seconds on a quiet computer."""
RUNS = (
    *(RunOptions(seeds=SEEDS, topology=topology) for topology in TOPOLOGIES),
    RunOptions(driver="threads"),
    RunOptions(driver="direct"),
)


def waiting_for() -> dict[str, str]:
    """Read which files wait, and for what: `folder/file.yaml  feature`, a file a line."""
    lines = NOT_YET.read_text(encoding="utf-8").splitlines()
    rows = (line.split(maxsplit=1) for line in lines if line and not line.startswith("#"))
    return dict(rows)


def main(folder: Path) -> int:
    waiting = waiting_for()
    files = sorted(folder.rglob("*.yaml"))
    names = {file.relative_to(folder).as_posix(): file for file in files}
    faults = [f"not_yet.txt names {name}, which is not there" for name in waiting.keys() - names]
    runners = deque(_Runner(waiting) for _ in range(os.cpu_count() or 1))
    for name, file in names.items():
        faults.extend(runners[0].faults())
        runners[0].begin(name, file)
        runners.rotate(-1)
    for runner in runners:
        faults.extend(runner.faults())
        runner.close()
    summary = f"{len(names)} files, {len(waiting)} of them wait for a feature, {len(faults)} faults"
    sys.stdout.write("\n".join([*sorted(faults), summary, ""]))
    return 1 if faults or not names else 0


class _Runner:
    """Runs files in a process that can be ended: a loop in a machine ends in no other way."""

    def __init__(self, waiting: dict[str, str]) -> None:
        self._waiting = waiting
        self._name = ""
        self._until = 0.0
        self._start()

    def _start(self) -> None:
        self._ours, theirs = multiprocessing.Pipe()
        self._process = multiprocessing.Process(
            target=_send_faults, args=(theirs, self._ours, self._waiting), daemon=True
        )
        self._process.start()
        theirs.close()

    def begin(self, name: str, file: Path) -> None:
        self._name, self._until = name, time.monotonic() + LIMIT_S
        self._ours.send((name, file))

    def faults(self) -> list[str]:
        """Return the faults of the file that was begun, if one was."""
        if not self._name:
            return []
        name, self._name = self._name, ""
        try:
            if self._ours.poll(max(0.0, self._until - time.monotonic())):
                return list(self._ours.recv())
            fault = f"{name}: does not end within {LIMIT_S} s"
        except EOFError:
            fault = f"{name}: its process ended without a result"
        self.close()
        self._start()
        return [fault]

    def close(self) -> None:
        self._ours.close()
        self._process.kill()
        self._process.join()


def _send_faults(to: Connection, others: Connection, waiting: dict[str, str]) -> None:
    others.close()
    with suppress(EOFError):
        while True:
            name, file = to.recv()
            to.send(_faults(name, file, waiting))


def _faults(name: str, file: Path, waiting: dict[str, str]) -> list[str]:
    outcomes = [run_file(file, options) for options in (RUNS[:1] if name in waiting else RUNS)]
    if name in waiting:
        if outcomes[0].ok:
            return [f"{name} passes: take it off not_yet.txt ({waiting[name]})"]
        return []
    return [
        f"{name} ({options.driver}, {options.topology}, seed {outcome.seed}): "
        f"{outcome.error or outcome.failures}"
        for options, outcome in zip(RUNS, outcomes, strict=True)
        if not outcome.ok
    ]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
