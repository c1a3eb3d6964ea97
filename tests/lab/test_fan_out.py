"""Whoever plays, the report is the same: one process, several, or a cluster; workers may be lost."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
import ranges
from called import KILLED, half_told, is_deaf, never_told
from probes import PATIENCE_S, wait_until
from worker_pools import Frail, Threads, deadly, unchecked

from yunikorn_actors.cli import main
from yunikorn_actors.drivers.simulator.simulator import Checker
from yunikorn_actors.lab.case import case_of, read_case
from yunikorn_actors.lab.coverage import coverage_lines
from yunikorn_actors.lab.explore import Budget, Options, Report, Search
from yunikorn_actors.lab.fan_out import FannedOut, FanOut, Processes, StaysHere, WorkerLost
from yunikorn_actors.lab.oracles.run_oracles import oracles
from yunikorn_actors.lab.workers.dask_pool import DaskPool
from yunikorn_actors.scenario.document import parse_scenario

RUNS = 50
"""Several shares, the last one shorter."""


def wanted(checkers: Callable[[], tuple[Checker, ...]] = oracles, **budget: Any) -> Options:
    return Options(
        faults=("flap", "fire"), checkers=checkers, budget=Budget(**{"runs": RUNS, **budget})
    )


def told(report: Report) -> tuple[Any, ...]:
    """All of it but for the time that it took."""
    finding = report.finding
    return (
        report.runs,
        report.orders,
        report.messages,
        list(coverage_lines(report.coverage, 99)),
        finding and (finding.run, finding.violation, finding.tape, finding.found, finding.size),
    )


def alone(file: str, options: Options) -> Report:
    return Search(read_case(Path(file)), options).run()


@cache
def expected(file: str) -> tuple[Any, ...]:
    """Return what one process finds in the file, which has the same name and text in all tests."""
    report = alone(file, wanted())
    assert (RUNS, None) == (report.runs, report.finding)
    return told(report)


def together(file: str, options: Options, fan_out: FanOut) -> Report:
    return Search(read_case(Path(file)), options, FannedOut(fan_out)).run()


@pytest.fixture(scope="module")
def two() -> Iterator[FanOut]:
    with FanOut(Processes(2)) as fan_out:
        yield fan_out


# -- the same report


def test_two_processes_find_the_core_as_sound(small: str, two: FanOut) -> None:
    assert expected(small) == told(together(small, wanted(), two))


@pytest.mark.usefixtures("nodes_unchecked")
@pytest.mark.slow
def test_two_processes_find_the_same_violation(small: str) -> None:
    options = wanted(unchecked)
    report = alone(small, options)
    assert report.finding is not None
    assert 0 < report.finding.run, "vacuous: it fails in any order"
    assert report.runs < RUNS, "vacuous: nothing is dropped"
    with FanOut(Processes(2)) as fan_out:
        assert told(report) == told(together(small, options, fan_out))


@pytest.mark.slow
def test_two_processes_have_tried_enough_after_the_same_run(small: str, two: FanOut) -> None:
    options = wanted(runs=3000, until_covered=True)
    report = alone(small, options)
    assert report.runs < 3000
    assert told(report) == told(together(small, options, two))


def test_any_executor_will_do(small: str) -> None:
    with FanOut(Threads(2)) as fan_out:
        assert expected(small) == told(together(small, wanted(), fan_out))


def test_a_case_without_a_file_stays(small: str, two: FanOut) -> None:
    text = Path(small).read_text("utf-8")
    case = case_of(parse_scenario(text, "test_jobs.py::test_x"), "0" * 12)
    with pytest.raises(
        StaysHere, match="test_x is no scenario file, and a function of a test stays"
    ):
        Search(case, wanted(), FannedOut(two)).run()


# -- shares


def test_what_is_ready_early_waits_for_its_turn() -> None:
    second_is_done = threading.Event()

    def work(share: int) -> int:
        if share == 0:
            assert second_is_done.wait(PATIENCE_S)
        if share == 1:
            second_is_done.set()
        return share * share

    with FanOut(Threads(2)) as fan_out:
        assert [0, 1, 4, 9, 16, 25] == list(fan_out.each(work, range(6)))


def test_what_was_lost_is_done_again_and_nothing_else() -> None:
    pool = Frail(b=2)
    with FanOut(pool) as fan_out:
        assert list("ABCDEFGH") == list(fan_out.each(str.upper, "abcdefgh"))
    assert list("abbbcdefgh") == pool.given
    assert 3 == pool.gathered


def test_a_crew_may_be_smaller_after_a_loss() -> None:
    pool, letters = Frail(3, 1, a=1), "abcdefghijklmnopqrst"
    pool.loses_all = False
    with FanOut(pool) as fan_out:
        assert list(letters.upper()) == list(fan_out.each(str.upper, letters))


def test_a_share_that_ends_each_worker_is_named() -> None:
    done: list[str] = []
    with FanOut(Frail(c=9)) as fan_out, pytest.raises(WorkerLost, match=r"^c: lost 3 times"):
        done.extend(fan_out.each(str.upper, "abcdefgh"))
    assert ["A", "B"] == done


def test_an_error_of_the_work_is_raised_in_its_turn() -> None:
    done: list[int] = []
    with FanOut(Threads(2)) as fan_out, pytest.raises(ZeroDivisionError):
        done.extend(fan_out.each(lambda share: 6 // share, (1, 2, 0, 3)))
    assert [6, 3] == done


# -- a worker is killed


@pytest.fixture
def killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file that is there after a worker was killed."""
    monkeypatch.setenv(KILLED, str(tmp_path / "killed"))
    return tmp_path / "killed"


def test_a_worker_that_is_killed_changes_nothing(small: str, killed: Path) -> None:
    with FanOut(Processes(2)) as fan_out:
        report = together(small, wanted(deadly), fan_out)
    assert killed.exists()
    assert expected(small) == told(report)


def test_a_worker_that_is_killed_in_the_middle_of_a_result_is_replaced(killed: Path) -> None:
    with FanOut(Processes(2)) as fan_out:
        assert [*range(8)] == list(fan_out.each(half_told, range(8)))
    assert killed.exists()


def test_a_worker_in_the_middle_of_a_result_can_be_dismissed(killed: Path) -> None:
    with FanOut(Processes(2)) as fan_out:
        results = fan_out.each(never_told, range(8))
        assert [0, 1, 2] == [next(results) for _ in range(3)]
        wait_until(killed.exists)


# -- the command


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Return what `lab run` says, but for the seconds."""
    status = main(("lab", "run", *arguments))
    return status, re.sub(r"\d+\.\d+( s\b|})", r"#\1", capsys.readouterr().out)


@pytest.mark.parametrize(
    "form", ranges.first([("--json",), (), ("--coverage", "3")], 1), ids=" ".join
)
@pytest.mark.slow
def test_the_command_says_the_same(
    small: str, capsys: pytest.CaptureFixture[str], form: tuple[str, ...]
) -> None:
    arguments = (small, "--runs", "30", *form)
    assert printed(capsys, *arguments) == printed(capsys, *arguments, "--jobs", "2")


@pytest.mark.usefixtures("nodes_unchecked")
@pytest.mark.slow
def test_the_command_fails_the_same(
    small: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = (
        "from yunikorn_actors.machines.context import commit; commit.check_node = lambda *_: 0"
    )
    Path("sitecustomize.py").write_text(planted.replace("0", "None"))
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()), prepend=os.pathsep)
    status, report = printed(capsys, small, "--faults", "none")
    assert 1 == status
    assert (status, report) == printed(capsys, small, "--faults", "none", "--jobs", "2")


def test_the_command_adds_up(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("other.yaml").write_text(Path(small).read_text("utf-8"), "utf-8")
    counts = printed(capsys, small, "--runs", "9", "--json")[1]
    status, report = printed(capsys, ".", "--runs", "9")
    one = json.loads(counts.replace("#", "0"))
    assert 0 == status
    assert report.splitlines()[-1] == (
        f"2 files: 18 runs, {2 * one['orders']} orders, {2 * one['messages']} messages, "
        "0 violations, # s"
    )


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("dask:host:1", "'dask:host:1' is no executor: write dask://HOST:PORT"),
        ("dask://host", "'dask://host' is no executor: write dask://HOST:PORT"),
        (
            "dask://host:1",
            "needs the package distributed, which is not installed; pip install 'yunikorn-actors[dask]'; in a clone of the repository: pip install -e '.[dask]'",
        ),
    ],
)
def test_an_executor_that_is_none(
    small: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    url: str,
    said: str,
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert 2 == main(("lab", "run", small, "--executor", url))
    complained = capsys.readouterr().err
    assert said in complained
    assert 1 == complained.count("\n")


def test_workers_never_hear_of_ctrl_c(two: FanOut) -> None:
    """They would print where they were, whether they work, wait, or have just begun."""
    assert not is_deaf(None)
    assert [True] * 4 == list(two.each(is_deaf, range(4)))


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_all_of_it(small: str) -> None:
    ours, theirs = os.openpty()
    program = (sys.executable, "-m", "yunikorn_actors", "lab", "run", small)
    with subprocess.Popen(
        (*program, "--runs", "1000000", "--jobs", "2"),
        stdout=subprocess.PIPE,
        stderr=theirs,
        start_new_session=True,
        text=True,
    ) as process:
        try:
            os.close(theirs)
            said = b""
            while b" runs so far" not in said:
                said += os.read(ours, 4096)
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does
            report, _ = process.communicate(timeout=PATIENCE_S)
            wait_until(lambda: not is_there(process.pid))
        finally:
            if is_there(process.pid):
                os.killpg(process.pid, signal.SIGKILL)
    said += rest_of(ours)
    assert 130 == process.returncode
    assert report.startswith("ok    a node leaves while work comes (")
    assert said.endswith(b"\r\x1b[K"), "the progress is wiped, and nobody complains"
    assert b"Traceback" not in said


def is_there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def rest_of(terminal: int) -> bytes:
    """Read to the end, which is an error to Linux."""
    said = b""
    try:
        while data := os.read(terminal, 4096):
            said += data
    except OSError:
        pass
    os.close(terminal)
    return said


# -- a cluster of Dask


@pytest.fixture
def cluster(killed: Path) -> Iterator[str]:
    """Start two workers as processes of their own; return the address of their scheduler."""
    distributed = pytest.importorskip("distributed", reason="the extra `dask` is not installed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
    ) as started:
        assert not killed.exists(), "its workers look for it from their start on"
        yield started.scheduler_address.replace("tcp://", "dask://")


@pytest.mark.slow
def test_a_cluster_says_the_same(
    small: str, cluster: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = (small, "--runs", str(RUNS))
    assert printed(capsys, *arguments) == printed(capsys, *arguments, "--executor", cluster)


@pytest.mark.slow
@pytest.mark.usefixtures("nodes_unchecked")
def test_a_cluster_fails_the_same(small: str, cluster: str) -> None:
    options = wanted(unchecked)
    report = alone(small, options)
    assert report.finding is not None
    with FanOut(DaskPool(cluster)) as fan_out:
        assert told(report) == told(together(small, options, fan_out))


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker_says_the_same(
    small: str, cluster: str, killed: Path
) -> None:
    with FanOut(DaskPool(cluster)) as fan_out:
        report = together(small, wanted(deadly), fan_out)
    assert killed.exists()
    assert told(alone(small, wanted())) == told(report)


_STARTER = """
import os, time
if __name__ == "__main__":
    from yunikorn_actors.lab.fan_out import Processes
    executor = Processes(2).gather()
    for _ in range(4):
        executor.submit(os.getpid).result()
    print("they work", flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("how", ranges.first([signal.SIGKILL, signal.SIGTERM], 1))
def test_no_worker_outlives_who_started_it(tmp_path: Path, how: signal.Signals) -> None:
    program = tmp_path / "starter.py"
    program.write_text(_STARTER)
    # Workers have the same standard output, so its end comes when all of them have ended.
    with subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        assert b"they work\n" == starter.stdout.readline()
        starter.send_signal(how)
        rest: SimpleQueue[bytes] = SimpleQueue()
        threading.Thread(target=lambda: rest.put(starter.communicate()[0]), daemon=True).start()
        assert b"" == rest.get(timeout=PATIENCE_S)
