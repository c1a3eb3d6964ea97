"""The report of many runs is the same from one process, from several and from a cluster of Dask."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from probes import PATIENCE_S

from yunikorn_actors.cli import main
from yunikorn_actors.workload import Options
from yunikorn_actors.workload.campaign import RunJob, run_all

SWF = "sample:cluster.swf"
RUNS = 100
JOBS = [
    RunJob(log=SWF, limit=30, shake_s=60, shake_runs=0.1, options=Options(seed=seed))
    for seed in range(RUNS)
]


@pytest.fixture
def cluster() -> Iterator[Any]:
    """Start two workers as processes of their own."""
    distributed = pytest.importorskip("distributed", reason="the extra `dask` is not installed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
    ) as started:
        yield started


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.filterwarnings("ignore")
def test_a_hundred_runs_are_the_same_wherever_they_are_made(cluster: Any) -> None:
    serial = run_all(JOBS, executor="serial")
    assert RUNS == len({it["digest"] for it in serial})
    killed: list[int] = []

    def kill_one(done: int, _: int) -> None:
        if done == 10:
            worker = cluster.workers[0].process.pid
            os.kill(worker, signal.SIGKILL)
            killed.append(worker)

    url = cluster.scheduler_address.replace("tcp://", "dask://")
    assert serial == run_all(JOBS, executor=url, progress=kill_one)
    assert killed, "no worker was killed"
    assert serial == run_all(JOBS, executor="processes", workers=2)


def campaign(folder: Path, runs: int) -> tuple[str, ...]:
    file = folder / "campaign.yaml"
    file.write_text(f"{{log: '{SWF}', shake_s: 60, seed: {[*range(runs)]}}}", encoding="utf-8")
    return ("workload", "campaign", str(file), "--workers", "2", "--cache", str(folder / "kept"))


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_ctrl_c_keeps_what_was_made(tmp_path: Path) -> None:
    given = campaign(tmp_path, 40)
    kept, report = tmp_path / "kept", tmp_path / "report.csv"
    command = (sys.executable, "-m", "yunikorn_actors", *given, "-o", str(report))
    with subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True) as process:
        deadline = time.monotonic() + PATIENCE_S
        while len([*kept.glob("*.json")]) < 3:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, complaint = process.communicate(timeout=PATIENCE_S)
    assert (130, b"interrupted\n") == (process.returncode, complaint)
    made = {it: it.stat().st_mtime_ns for it in kept.glob("*.json")}
    assert 3 <= len(made) < 40, "it was interrupted while it made runs"
    assert not report.exists()
    assert 0 == main([*given, "-o", str(report)])
    assert made.items() <= {it: it.stat().st_mtime_ns for it in kept.glob("*.json")}.items()
    alone = tmp_path / "alone.csv"
    assert 0 == main([*given[:3], "-o", str(alone), "--executor", "serial"])
    assert alone.read_text() == report.read_text()


def test_a_cluster_that_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    given = campaign(tmp_path, 2)[:3]
    assert 2 == main([*given, "-o", str(tmp_path / "r"), "--executor", "dask://127.0.0.1:1"])
    assert "pip install -e '.[dask]'" in capsys.readouterr().err


def test_a_log_is_found_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers of a cluster were started elsewhere."""
    monkeypatch.chdir(tmp_path)
    log = Path("a.swf")
    log.write_text("1 0 -1 60 1 -1 -1 1 -1 -1 1 1 1 -1 1 -1 -1 -1", encoding="utf-8")
    seen: list[Path] = []

    def leave(done: int, _: int) -> None:
        if not done:
            (tmp_path / "elsewhere").mkdir()
            os.chdir(tmp_path / "elsewhere")
            seen.append(Path.cwd())

    (result,) = run_all([RunJob(log=str(log), nodes="1")], executor="serial", progress=leave)
    assert not seen[0].samefile(tmp_path)
    assert 60 == result["makespan_s"]
