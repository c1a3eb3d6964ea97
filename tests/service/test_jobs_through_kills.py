"""The published job runner, whose service is killed again and again while its jobs run."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("grpc")
from commands import starting
from probes import wait_until

RUNNER = Path(__file__).parents[2] / "examples/job_runner.py"
PATIENCE_S = 300.0


@pytest.mark.parametrize(
    ("journal", "kills"),
    [
        (True, 2),
        pytest.param(False, 2, marks=pytest.mark.slow),
        pytest.param(True, 20, marks=[pytest.mark.slow, pytest.mark.timeout(900)]),
    ],
)
def test_no_job_is_killed_or_started_twice_or_lost(
    tmp_path: Path, *, journal: bool, kills: int
) -> None:
    random = Random(kills)  # noqa: S311
    began, ended = tmp_path / "began", tmp_path / "ended"
    count = 20 + 16 * kills
    jobs = [
        f"{('web', 'data')[n % 2]}:200m:echo {n} $$ >> {began}; sleep {random.uniform(2, 6):.2f}; "
        f"echo {n} >> {ended}"
        for n in range(count)
    ]
    options = ("--journal", str(tmp_path / "journal")) if journal else ()
    with starting() as start:
        service = start(*options)
        program = subprocess.Popen(
            [sys.executable, "-c", runner_at(service.address), *jobs],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            wait_until(lambda: len(lines(began)) >= 10)
            ran = []
            for _ in range(kills):
                ran.append(len(lines(began)) - len(lines(ended)))
                service.end(signal.SIGKILL)
                before = len(lines(began))
                time.sleep(random.uniform(0, 0.5))
                service = start("--grpc", service.address, *options)
                # It is back, and places: the next kill comes in the middle of that.
                wait_until(lambda before=before: len(lines(began)) > before)
                time.sleep(random.uniform(0, 0.5))
            out, errors = program.communicate(timeout=PATIENCE_S)
        finally:
            program.kill()
            program.communicate()
    assert ("", 0) == (errors, program.returncode), out[-2000:]
    assert all(number > 3 for number in ran), f"vacuous: few ran at some kills: {ran}"
    assert sorted(range(count)) == sorted(int(it.split()[0]) for it in lines(began))
    assert sorted(range(count)) == sorted(map(int, lines(ended)))
    assert count == sum("exit 0" in line for line in out.splitlines())


def runner_at(address: str) -> str:
    """Change it as the README says: `connect` in place of `Scheduler`."""
    text = RUNNER.read_text("utf-8")
    changed = text.replace("Scheduler(QUEUES)", f"connect({address!r}, QUEUES)")
    assert changed != text
    return changed.replace("import Application, Scheduler", "import Application, connect")


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
