"""The command `yunikorn-actors scenario run`: exit status, and what it prints."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from yunikorn_actors.cli import main

HERE = Path(__file__).parent
HOLDS = "name: it holds\nsteps:\n  - create_node: {id: n1}\n  - expect: {nodes: {n1: {}}}\n"
FAILS = "name: it fails\nsteps:\n  - advance: 1s\n  - expect: {nodes: {n1: {}}}\n"
UNREADABLE = "name: x\nsteps:\n  - hope: {}\n"
OUTCOME_KEYS = {"name", "file", "seed", "ok", "failures", "messages", "virtual_ms", "wall_ms", "digest"}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.yaml").write_text(HOLDS)
    (tmp_path / "sub" / "b.yaml").write_text(FAILS)
    (tmp_path / "sub" / "note.txt").write_text("no scenario")
    return tmp_path


def run(*arguments: str | Path) -> int:
    return main(["scenario", "run", *map(str, arguments)])


def objects(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_status_0_when_everything_holds(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder / "a.yaml", "--seeds", "2..5", "--topology", "fused") == 0
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("ok    it holds (")
    assert "1 files, 4 runs, 0 failures" == last


def test_several_schedulers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = folder / "a.trace"
    file = folder / "a.yaml"
    assert run(file, "--schedulers", "3", "--seeds", "0..2", "--trace", trace) == 0
    assert b"scheduler:[rm-1]default#1.2" in trace.read_bytes()
    assert run(folder / "sub" / "b.yaml", "--schedulers", "2", "--json") == 1
    capsys.readouterr()
    assert run(file, "--schedulers", "2", "--topology", "fused") == 2
    told = capsys.readouterr().err
    assert told.startswith("yunikorn-actors scenario run: fused has no room for several schedulers")
    assert run(file, "--schedulers", "65") == 2
    assert "65 schedulers for a partition are not allowed" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run(file, "--schedulers", "two")
    assert "'two' is not a number of schedulers" in capsys.readouterr().err


def test_status_1_when_something_does_not_hold(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(folder, "--seed", "7") == 1
    first, second, failure, last = capsys.readouterr().out.splitlines()
    assert ("ok    it holds (", "FAIL  it fails (seed 7, ") == (first[:16], second[:24])
    file = folder / "sub" / "b.yaml"
    assert f"      {file}:4: step 2: nodes.n1: expected {{}}, is null" == failure
    assert "2 files, 2 runs, 1 failures" == last


def test_status_2_when_a_file_cannot_be_read_and_the_others_still_run(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = folder / "a-bad.yaml"
    bad.write_text(UNREADABLE)
    assert run(folder) == 2
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ok    it holds") or lines[0].startswith("FAIL  ")
    assert any(
        line.startswith(f"FAIL  {bad}:3: steps: step 1: unknown step 'hope'; allowed: add_app, ")
        for line in lines
    )
    assert "3 files, 2 runs, 2 failures" == lines[-1]


def test_json_has_one_object_for_each_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "z.yaml").write_text(UNREADABLE)
    assert run(folder, "--json", "--seeds", "0..3") == 2
    good, bad, unreadable = objects(capsys)
    assert OUTCOME_KEYS == good.keys()
    assert ("it holds", 3, True, []) == tuple(good[k] for k in ("name", "seed", "ok", "failures"))
    failures = [{"step": 2, "path": "nodes.n1", "expected": {}, "actual": None}]
    assert (str(folder / "sub" / "b.yaml"), 0, False, failures, 1000.0) == tuple(
        bad[key] for key in ("file", "seed", "ok", "failures", "virtual_ms")
    )
    assert (str(folder / "z.yaml"), False) == (unreadable.pop("file"), unreadable.pop("ok"))
    assert ["error"] == list(unreadable)


def test_threads_have_no_digest(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder / "a.yaml", "--json", "--driver", "threads", "--time-scale", "50") == 0
    (outcome,) = objects(capsys)
    assert (True, None) == (outcome["ok"], outcome["digest"])
    assert OUTCOME_KEYS == outcome.keys()


def test_trace_writes_a_file(folder: Path) -> None:
    trace = folder / "run.trace"
    assert run(folder / "a.yaml", "--trace", trace) == 0
    assert trace.stat().st_size > 100


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((".", "--trace", "x"), "--trace records one file, and these are 2: name one"),
        (("sub/nothing",), "no *.yaml in"),
        (("a.yaml", "--trace", "no/such/folder"), "the trace cannot be written: "),
    ],
)
def test_status_2_for_what_makes_no_sense(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    text: str,
) -> None:
    (folder / "sub" / "nothing").mkdir()
    monkeypatch.chdir(folder)
    assert run(*arguments) == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ("--seeds", "5..3"),
        ("--seeds", "5"),
        ("--seed", "-1"),
        ("--seed", "x"),
        ("--seed", "1", "--seeds", "1..2"),
        ("--time-scale", "0"),
        ("--topology", "flat"),
        ("--driver", "none"),
    ],
)
def test_status_2_for_arguments_that_are_wrong(arguments: tuple[str, ...], folder: Path) -> None:
    with pytest.raises(SystemExit) as caught:
        run(folder, *arguments)
    assert caught.value.code == 2


def digests(hash_seed: str) -> list[str]:
    command = (
        sys.executable, "-m", "yunikorn_actors", "scenario", "run", str(HERE / "basic"),
        str(HERE / "nodes"), "--json", "--seeds", "0..1",
    )  # fmt: skip
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    found = subprocess.run(command, env=environment, capture_output=True, check=True, text=True)
    return [json.loads(line)["digest"] for line in found.stdout.splitlines()]


@pytest.mark.slow
def test_digests_do_not_depend_on_hashes() -> None:
    first, second = (digests(seed) for seed in ("0", "42"))
    assert first == second
    assert len(first) > 20
