"""The command: what it prints, the files that it writes, and how it refuses."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from yunikorn_actors import workload
from yunikorn_actors.cli import main
from yunikorn_actors.workload.replay_summary import duration_signed

SWF = "sample:cluster.swf"


def test_a_log_is_played(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["workload", "run", SWF, "-o", str(tmp_path)])
    out, err = capsys.readouterr()
    assert "236 done" in out
    assert "left out     1: never fits" in out
    assert f"{SWF}:137: 4 fields, and there should be 18" in err
    assert "1 of 237 jobs never fit on these nodes" in err
    rows = [*csv.DictReader((tmp_path / "rows.csv").read_text().splitlines())]
    assert 236 == len(rows) == json.loads((tmp_path / "summary.json").read_text())["done"]
    assert 237 == len((tmp_path / "jobs.csv").read_text().splitlines())


def test_the_summary_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["workload", "run", SWF, "--json", "--limit", "20", "--policy", "fifo"])
    summary = json.loads(capsys.readouterr().out)
    assert ("fifo", 20) == (summary["policy"], summary["done"])


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["nowhere.swf"], "nowhere.swf: No such file or directory"),
        ([SWF, "--nodes", "0"], "nodes 0: write from 1 to"),
        ([SWF, "--strict"], "cluster.swf:137: 4 fields"),
        ([SWF, "--map", "queue=root.{moon}"], "map queue: {moon} is no field"),
        (["sample:openb-pods.csv"], "name the nodes (--nodes)"),
        ([SWF, "--nodes", os.devnull], "write from 1 to 1,000,000 of them"),
        ([SWF, "--nodes", "3x"], "nodes 3x: write N, NxP or the name of a file"),
        ([SWF, "--nodes", "999999999x1"], "write from 1 to 1,000,000 of them"),
        ([SWF, "--map", "user={user:d}"], "map user: {user} is no field, or has a format"),
        ([SWF, "--map", "queue="], "map queue: it is empty"),
        ([SWF, "--policy", "eazy"], "there is no policy 'eazy': use fifo, stateaware, fair, fcfs"),
        ([SWF, "--policy", "fgd"], "as nodesortpolicy: {type: fgd}"),
        ([SWF, "--policy", "binpacking"], "binpacking is an order of nodes"),
        ([SWF, "--limit", "-1"], "limit -1: write a number from 0 to"),
        ([SWF, "--faults", "1.5"], "faults 1.5: write a number from 0 to 1"),
        ([SWF, "--until", "nan"], "until nan: write a number from 0 to"),
        ([SWF, "--scale", "-1"], "scale -1: write a number from 0 to"),
        ([SWF, "--scale", "1e300"], "scale 1e+300: write a number from 0 to"),
    ],
)
def test_it_says_why_not(
    arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 2 == main(["workload", "run", *arguments])
    assert reason in capsys.readouterr().err


JOBS = """
partitions:
  - name: default
    queues: [{name: root, submitacl: "*", queues: [{name: jobs}]}]
"""


@pytest.mark.parametrize("words", [["run", SWF, "--config"], ["compare", SWF, "policy:fcfs"]])
def test_a_configuration_that_takes_no_job_is_named(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (file := tmp_path / "mine.yaml").write_text(JOBS)
    words = [*words, str(file)] if "run" in words else ["compare", *words[2:], str(file), SWF]
    few = ["--limit", "20", *(["--draws", "0"] if "compare" in words else [])]
    assert 1 == main(["workload", *words, *few])
    err = capsys.readouterr().err
    assert "rejects all 20 jobs (failed to place application * application rejected" in err
    assert "there is no queue root.default; queues root.jobs would take it" in err
    assert 0 == main(["workload", *words, *few, "--map", "queue=root.jobs"])


def test_a_campaign_names_the_runs_in_which_no_job_was_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.yaml").write_text(JOBS)
    file = tmp_path / "campaign.yaml"
    file.write_text(f"{{log: {SWF}, config: [mine.yaml], limit: 20, seed: [0, 1]}}")
    words = ["campaign", str(file), "--executor", "serial", "-o", str(tmp_path / "report.csv")]
    assert 1 == main(["workload", *words])
    err = capsys.readouterr().err
    # Each run by all that it differs in from the others.
    for seed in (0, 1):
        run = f"log {SWF}, config mine.yaml, limit 20, seed {seed}"
        assert f"{run}: the configuration rejects all 20 jobs" in err


@pytest.mark.parametrize("given", ["queue=root.ml", "{queue: root.ml}"])
def test_a_campaign_says_which_queues_jobs_go_to(tmp_path: Path, given: str) -> None:
    (tmp_path / "ml.yaml").write_text(JOBS.replace("jobs", "ml"), encoding="utf-8")
    file, report = tmp_path / "campaign.yaml", tmp_path / "report.csv"
    file.write_text(f"{{log: {SWF}, config: ml.yaml, limit: 20, map: {given}}}", encoding="utf-8")
    words = ["campaign", str(file), "--executor", "serial", "-o", str(report)]
    assert 0 == main(["workload", *words])
    assert "20" == next(csv.DictReader(report.read_text().splitlines()))["done"]


def test_a_log_from_a_pipe_is_read_as_often_as_it_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, nodes, page = tmp_path / "log", tmp_path / "nodes", tmp_path / "page.html"
    texts = {log: open_sample("cluster.swf"), nodes: "- {id: a, resources: {vcore: 64}}"}
    variants = ["policy:fcfs", "policy:easy"]
    for start in (["run"], ["compare", "--draws", "1", "-o", str(page), *variants]):
        for file, text in texts.items():
            os.mkfifo(file)
            Thread(target=file.write_text, args=(text,), daemon=True).start()
        assert 0 == main(["workload", *start, str(log), "--nodes", str(nodes), "--limit", "50"])
        for file in texts:
            file.unlink()
        assert not capsys.readouterr().err
    assert "<title>log: fcfs, easy</title>" in page.read_text()


def test_a_log_from_standard_input() -> None:
    command = [sys.executable, "-m", "yunikorn_actors", "workload", "run", "-", "--json"]
    text = open_sample("cluster.swf")
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    summary = json.loads(done.stdout)
    assert ("-", 236) == (summary["log"], summary["done"])


def open_sample(name: str) -> str:
    return (Path(workload.__file__).parent / "samples" / name).read_text(encoding="utf-8")


def test_every_start_fails_and_the_replay_ends(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["workload", "run", SWF, "--limit", "30", "--faults", "1", "--json"])
    summary = json.loads(capsys.readouterr().out)
    assert 30 == summary["done"]
    assert summary["restarts"] >= 30 * 10


def test_a_node_of_a_billion_processors_is_written_as_any_other(tmp_path: Path) -> None:
    given = ["--nodes", "999999999", "--limit", "30", "-o", str(tmp_path)]
    assert 0 == main(["workload", "run", SWF, *given])
    assert 31 == len((tmp_path / "jobs.csv").read_text().splitlines())


def test_scaled_arrivals_make_less_waiting(capsys: pytest.CaptureFixture[str]) -> None:
    waits = []
    for scale in ("1", "4"):
        assert 0 == main(["workload", "run", SWF, "--json", "--scale", scale])
        waits.append(json.loads(capsys.readouterr().out)["wait_s"]["mean"])
    assert waits[1] < waits[0] / 2


def test_a_log_without_jobs_shows_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folder is written all the same; the status says that there is nothing in it."""
    log = tmp_path / "none.swf"
    log.write_text("; MaxProcs: 4\n" + " ".join(["1", "-1", *["3"] * 16]) + "\n", encoding="utf-8")
    assert 1 == main(["workload", "run", str(log), "-o", str(tmp_path / "out")])
    captured = capsys.readouterr()
    assert "no job of it was played (1 no submit)" in captured.err
    assert "0 done" in captured.out


@pytest.mark.parametrize(
    ("seconds", "text"), [(-0.4, "0 s"), (0.2, "0 s"), (-2, "-2 s"), (7_200, "+2.00 h")]
)
def test_what_changes_by_nothing_has_no_sign(seconds: float, text: str) -> None:
    assert text == duration_signed(seconds)
