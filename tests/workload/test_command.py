"""The command: what it prints, the files that it writes, and how it refuses."""

import csv
import json
from pathlib import Path

import pytest

from yunikorn_actors.cli import main

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
        ([SWF, "--nodes", "0"], "nodes 0: there are none"),
        ([SWF, "--strict"], "line 137: 4 fields"),
        ([SWF, "--map", "queue=root.{moon}"], "map queue: {moon} is no field"),
        (["sample:openb-pods.csv"], "name the nodes (--nodes)"),
    ],
)
def test_it_says_why_not(
    arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 2 == main(["workload", "run", *arguments])
    assert reason in capsys.readouterr().err


def test_scaled_arrivals_make_less_waiting(capsys: pytest.CaptureFixture[str]) -> None:
    waits = []
    for scale in ("1", "4"):
        assert 0 == main(["workload", "run", SWF, "--json", "--scale", scale])
        waits.append(json.loads(capsys.readouterr().out)["wait_s"]["mean"])
    assert waits[1] < waits[0] / 2
