"""The three programs on the front do their work, end with ctrl-C, and stay short."""

import ast
import json
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path

import pytest
from probes import wait_until

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = ("job_runner.py", "http_service.py", "gang_recovery.py", "autoscaler.py", "spread.py")
LINES_MAX = 40
PATIENCE_S = 60.0


def lines_of_code(text: str) -> int:
    """Count the lines that are neither blank, nor a comment, nor part of a docstring."""
    told: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        has_docstring = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        if isinstance(node, has_docstring) and ast.get_docstring(node) is not None:
            told.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(
        1 for number, line in lines
        if number not in told and line.strip() and not line.strip().startswith("#")
    )  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_short(name: str) -> None:
    assert lines_of_code((EXAMPLES / name).read_text("utf-8")) <= LINES_MAX


def test_lines_are_counted() -> None:
    assert 3 == lines_of_code(
        '"""One.\n\nTwo."""\n\n# three\nx = 1\n\n\ndef f():\n    """F."""\n    # g\n    return x\n'
    )


def command(name: str, *arguments: str) -> list[str]:
    return [sys.executable, str(EXAMPLES / name), *arguments]


def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(name, *arguments), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


@contextmanager
def running(name: str, *arguments: str) -> "Iterator[subprocess.Popen[str]]":
    """Start it as a terminal would: it hears of ctrl-C, whatever the shell of the tests does."""
    program = subprocess.Popen(
        command(name, *arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )  # fmt: skip
    try:
        yield program
    finally:
        program.kill()
        # Read no more: what it started may have its pipes, and outlive it.
        for pipe in (program.stdout, program.stderr):
            assert pipe is not None
            pipe.close()
        program.wait(timeout=PATIENCE_S)


def interrupted(program: "subprocess.Popen[str]") -> tuple[int, str, str]:
    program.send_signal(signal.SIGINT)
    out, err = program.communicate(timeout=PATIENCE_S)
    return program.returncode, out, err


def is_there(pid: int) -> bool:
    """A process that has ended and was not waited for is none any more."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


# -- the job runner


def test_jobs_run_and_their_results_are_told() -> None:
    done = run("job_runner.py")
    assert (3, "") == (done.returncode, done.stderr)
    lines = {line.strip() for line in done.stdout.splitlines()}
    assert {"built", "tested", "sorted", "web-1 on here: exit 0", "data-4 on here: exit 3"} <= lines


def test_jobs_of_a_team_wait_for_their_queue(tmp_path: Path) -> None:
    """Each makes the same folder, which fails while another one runs."""
    jobs = [f"web:2:mkdir {tmp_path}/only && sleep 0.2 && rmdir {tmp_path}/only" for _ in range(3)]
    done = run("job_runner.py", *jobs)
    assert (0, "") == (done.returncode, done.stderr)


def test_ctrl_c_ends_the_processes(tmp_path: Path) -> None:
    note = f"echo $$ >> {tmp_path}/pids; sleep 1000; true"
    with running("job_runner.py", f"web:2:{note}", f"data:2:{note}", f"data:2:{note}") as program:
        pids = tmp_path / "pids"
        wait_until(lambda: pids.exists() and pids.read_text().count("\n") == 2)
        code, out, err = interrupted(program)
    assert (130, "") == (code, err)
    assert 2 == out.count("the scheduler was closed")
    assert not any(is_there(int(pid)) for pid in pids.read_text().split())


# -- replicas over zones


def test_replicas_stay_spread_when_a_node_is_lost() -> None:
    done = run("spread.py")
    assert (0, "") == (done.returncode, done.stderr)
    first, last = done.stdout.splitlines()
    assert "at first: east 2 north 2 south 2" == first
    assert re.fullmatch("after the loss of a node with [12]: east 2 north 2 south 2", last), last


# -- the service


def said(url: str, job: object = None) -> tuple[int, str]:
    data = None if job is None else json.dumps(job).encode()
    try:
        with urllib.request.urlopen(url, data, PATIENCE_S) as response:  # noqa: S310
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_the_service_takes_jobs_and_tells_how_they_are_doing() -> None:
    with running("http_service.py", "0") as program:
        assert program.stdout is not None
        url = program.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", url)
        assert 200 == said(f"{url}long", {"vcore": 3, "seconds": 1000})[0]
        wait_until(lambda: "placed" in said(f"{url}long")[1])
        assert 200 == said(f"{url}short", {"vcore": "500m", "seconds": 0.01})[0]
        wait_until(lambda: "released" in said(f"{url}short")[1])
        assert 200 == said(f"{url}waits", {"vcore": 2, "seconds": 1})[0]
        wait_until(lambda: "short" in said(f"{url}waits")[1])
        for job in ({"vcore": 0.5, "seconds": 1}, [], {"vcore": 1}):
            assert 400 == said(f"{url}wrong", job)[0]
        code, text = said(f"{url}long", {"vcore": 3, "seconds": 1})
        assert (400, "Duplicate") == (code, text.partition(":")[0])
        assert 400 == said(f"{url}wrong")[0]
        code, _, err = interrupted(program)
    assert (0, "") == (code, err)


# -- the gang


def test_a_gang_goes_on_after_a_crash() -> None:
    done = run("gang_recovery.py")
    assert (0, "") == (done.returncode, done.stderr)
    lines = done.stdout.splitlines()
    assert ["worker-1", "worker-2"] == [line.split()[0] for line in lines[:2]]
    assert "it has crashed" == lines[2]
    assert ["worker-1", "worker-2"] == sorted(line.split()[0] for line in lines[3:5])
    assert all(line.endswith("already") for line in lines[3:5])
    assert [True, True] == [lines[5].startswith("worker-3 starts"), lines[6] == "all are done"]


# -- the autoscaler


def test_nodes_come_and_go_with_the_work() -> None:
    done = run("autoscaler.py", "20")
    assert (0, "") == (done.returncode, done.stderr)
    *lines, last = done.stdout.splitlines()
    assert "20 jobs are done" == last
    came = [line.split()[1] for line in lines if line.startswith("+")]
    went = [line.split()[1] for line in lines if line.startswith("-")]
    assert sorted(came) == sorted(went)
    there = list(accumulate(1 if line.startswith("+") else -1 for line in lines))
    assert 3 == max(there)
    assert 0 == there[-1]
