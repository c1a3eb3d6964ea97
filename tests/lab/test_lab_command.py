"""`yunikorn-actors lab`: exit status, text and JSON."""

import json
from pathlib import Path

import pytest

from yunikorn_actors.cli import main


def lab(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(("lab", *arguments))
    told = capsys.readouterr()
    return status, told.out, told.err


def test_a_sound_core_is_found_sound(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, told, _ = lab(capsys, "run", small, "--runs", "5", "--json")
    report = json.loads(told)
    assert (0, True, 5) == (status, report["ok"], report["runs"])
    assert report["orders"] > 1


@pytest.mark.usefixtures("nodes_unchecked")
def test_a_race_is_found_and_replayed(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, told, _ = lab(capsys, "run", small, "--json")
    found = json.loads(told)
    assert (1, False) == (status, found["ok"])
    assert found["run"] > 0, "vacuous: it fails in any order"
    status, told, _ = lab(capsys, "replay", found["tape"], "--runs", "20", "--json")
    replayed = json.loads(told)
    assert (1, 20, 1) == (status, replayed["runs"], replayed["digests"])
    assert found["violation"] == replayed["violation"]


@pytest.mark.usefixtures("nodes_unchecked")
def test_a_report_shows_the_tape(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, told, _ = lab(capsys, "run", small, "--faults", "none")
    assert 1 == status
    assert told.startswith("FAIL  a node leaves while work comes (")
    assert "step 4 (remove_node n1)" in told


@pytest.mark.usefixtures("small")
def test_faults_are_named_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    counts = {
        faults: json.loads(
            lab(capsys, "run", "small.yaml", "--runs", "9", "--faults", faults, "--json")[1]
        )["messages"]
        for faults in ("none", "flap", "flap,fire")
    }
    assert 3 == len(set(counts.values())), "each choice of faults gives other runs"
    with pytest.raises(SystemExit) as left:
        main(("lab", "run", "small.yaml", "--faults", "flap,flop"))
    assert 2 == left.value.code
    assert "'flop' is no fault: write all, none, or some of confirm," in capsys.readouterr().err


@pytest.mark.usefixtures("small")
def test_a_folder_of_tapes_is_replayed(capsys: pytest.CaptureFixture[str]) -> None:
    Path("tapes").mkdir()
    tape = "tape 1 of ../small.yaml sha256 0123456789ab on fused"
    Path("tapes/a.tape").write_text(f"# once it failed\n{tape}\ndo step 4 after step 3\n")
    Path("tapes/b.tape").write_text(f"{tape}\n")
    status, told, _ = lab(capsys, "replay", "tapes")
    assert 0 == status
    assert ["ok    tapes/a.tape:", "ok    tapes/b.tape:"] == [
        line.split(" a node")[0] for line in told.splitlines()
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "nowhere.yaml"), "nowhere.yaml: cannot be read"),
        (("run", "."), ""),
        (("replay", "tape of nothing"), "tape:1: 'tape of nothing' is no header"),
        (("replay", "nowhere.tape"), "nowhere.tape: cannot be read"),
        (("replay", "."), "no *.tape in it"),
    ],
)
def test_what_is_not_understood(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    status, _, complained = lab(capsys, *arguments)
    assert 2 == status
    assert said in complained
