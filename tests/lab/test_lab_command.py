"""`yunikorn-actors lab`: exit status, text and JSON."""

import itertools
import json
import re
from errno import ENOSPC
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from yunikorn_actors.cli import lab as command
from yunikorn_actors.cli import main
from yunikorn_actors.lab import explore
from yunikorn_actors.lab.run_schedule import Outcome
from yunikorn_actors.lab.shrinking.shrink import Shrinker
from yunikorn_actors.machines.context import commit
from yunikorn_actors.scenario.performer import Stage
from yunikorn_actors.scenario.step_structs import AddAsk, WrittenStep


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
    tape = "tape 2 of ../small.yaml sha256 0123456789ab on fused"
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
        (("explain", "."), ".: cannot be read: "),
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


def test_a_tape_that_cannot_be_read_does_not_stop_the_others(
    small: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("tapes").mkdir()
    Path("tapes/a.tape").write_bytes(b"\xff")
    Path("tapes/b.tape").write_text("tape 2 of gone.yaml sha256 0123456789ab on fused")
    Path("tapes/c.tape").write_text(f"tape 2 of {small} sha256 0123456789ab on fused")
    status, told, complained = lab(capsys, "replay", "tapes")
    assert 2 == status
    assert told.startswith("ok    tapes/c.tape:")
    first, second = complained.splitlines()
    assert "tapes/a.tape: line 1 is not UTF-8" in first
    assert "tapes/b.tape: there is no gone.yaml, neither here nor beside the tape" in second
    assert second.endswith("with --scenario FILE")


@pytest.mark.usefixtures("small")
def test_a_tape_of_a_mutant_is_played_wherever_the_package_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = json.loads(lab(capsys, "mutants", "M01", "--json")[1])
    assert found["tape"].startswith("tape 2 of lab/cases/")
    status, told, _ = lab(capsys, "replay", found["tape"], "--mutant", "M01", "--json")
    assert (1, found["violation"]) == (status, json.loads(told)["violation"])


# -- what may be wished for


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--strategy=luck", "invalid choice: 'luck'"),
        ("--depth=0", "'0' will not do: write a number from 1 to "),
        ("--runs=-1", "'-1' will not do"),
        ("--runs=4294967297", "'4294967297' will not do"),
        ("--runs=9 --time=1s", "not allowed with argument --runs"),
        ("--time=1fortnight", "'1fortnight' is no time: write one like 30s or 2m"),
        ("--time=-1s", "'-1s' is no time"),
        ("--time=0s", "'0s' is no time"),
        ("--seed=x", "'x' will not do: write a number from 0 on"),
        ("--faults=flop", "'flop' is no fault"),
        ("--schedulers=0", "'0' will not do"),
    ],
)
def test_a_bad_value_is_refused_in_one_line(
    small: str, capsys: pytest.CaptureFixture[str], arguments: str, said: str
) -> None:
    with pytest.raises(SystemExit) as left:
        main(("lab", "run", small, *arguments.split()))
    assert 2 == left.value.code
    assert said in capsys.readouterr().err.splitlines()[-1]


def test_no_time_for_threads_is_refused(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(("lab", "threads", small, "--seconds", "0"))
    assert 2 == left.value.code
    assert "'0' will not do: write a number from 1 to" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--schedulers", "65"), "65 schedulers for a partition are not allowed"),
        (("--schedulers", "2", "--topology", "fused"), "fused has no room for several"),
        (
            ("--strategy", "delay", "--faults", "flap"),
            "delay goes through schedules without faults",
        ),
        (("--strategy", "exhaustive", "--faults", "all"), "exhaustive goes through schedules with"),
        (("--strategy", "exhaustive", "--jobs", "2"), "leave --jobs and --executor out"),
        (("--jobs", "257"), "257 processes are not allowed: take at most 256"),
        (("--save", "small.yaml"), "--save small.yaml: no folder can be made there: File exists"),
    ],
)
def test_what_does_not_go_together_is_refused_in_one_line(
    small: str, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    status, told, complained = lab(capsys, "run", small, *arguments)
    assert (2, "", 1) == (status, told, complained.count("\n"))
    assert said in complained


def test_a_time_instead_of_a_number(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, told, _ = lab(capsys, "run", small, "--time", "0.3s", "--json")
    report = json.loads(told)
    assert (0, True) == (status, report["runs"] > 1)
    assert report["seconds"] >= 0.3


@pytest.mark.slow
def test_all_schedules_of_a_kind(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    wishes = ("--strategy", "delay", "--depth", "1", "--runs", "1000")
    assert 0 == lab(capsys, "run", small, *wishes)[0]
    _, told, _ = lab(capsys, "run", small, *wishes)
    assert "exhausted: all schedules of at most 1 delays among the first" in told


def test_all_orders(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Two steps of four, else it takes a while."""
    Path("tiny.yaml").write_text("\n".join(Path(small).read_text().splitlines()[:4]))
    wishes = ("--strategy", "exhaustive", "--check")
    status, told, _ = lab(capsys, "run", "tiny.yaml", *wishes, "--json")
    report = json.loads(told)
    assert 0 == status
    assert f"in {report['orders']} orders" in report["exhausted"]
    _, told, _ = lab(capsys, "run", "tiny.yaml", *wishes, "--runs", "3")
    assert "exhausted" not in told


@pytest.mark.usefixtures("nodes_unchecked")
def test_several_schedulers_stand_on_a_tape_that_is_kept(
    small: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, told, _ = lab(
        capsys, "run", small, "--schedulers", "2", "--strategy", "pct", "--save", "kept", "--json"
    )
    report = json.loads(told)
    assert 1 == status
    assert " on proposing with 2 schedulers" in report["tape"]
    kept = Path(report["saved"]).read_text("utf-8")
    assert [f"# {report['violation']}", *report["tape"].split("; ")] == kept.splitlines()
    status, told, _ = lab(capsys, "replay", "kept", "--json")
    assert (1, report["violation"]) == (status, json.loads(told)["violation"])


def test_tapes_that_are_kept_are_a_test_of_the_fix(
    small: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.MonkeyPatch.context() as planted:
        planted.setattr(commit, "check_node", lambda *_: None)
        assert 1 == lab(capsys, "run", small, "--save", "kept")[0]
        assert 1 == lab(capsys, "replay", "kept")[0]
    assert 0 == lab(capsys, "replay", "kept")[0]


def test_a_file_that_is_not_understood_does_not_stop_the_others(
    small: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("bad.yaml").write_text("steps: 7\n")
    status, told, _ = lab(capsys, "run", "bad.yaml", small, "nowhere.yaml", "--runs", "2", "--json")
    bad, good, nowhere = map(json.loads, told.splitlines())
    assert (2, False, True, False) == (status, bad["ok"], good["ok"], nowhere["ok"])
    assert bad["error"].startswith("bad.yaml:1:")


def test_a_tape_that_is_not_understood_does_not_stop_the_others(
    small: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tape = f"tape 2 of {small} sha256 0123456789ab on fused"
    status, told, complained = lab(capsys, "replay", tape.replace("2 of", "3 of"), tape)
    assert 2 == status
    assert told.startswith("ok    tape:")
    assert "tape:1: the tape is of format 3" in complained


# -- checks, and interruptions


def test_schedules_are_played_twice(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == lab(capsys, "run", small, "--runs", "4", "--check")[0]


def test_what_is_not_determined_is_shown(
    small: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A counter that is kept from run to run gives asks other names."""
    count, act = itertools.count(), Stage.act

    def counting(stage: Stage, written: WrittenStep) -> object:
        step = written.step
        if isinstance(step, AddAsk):
            written = replace(written, step=replace(step, key=f"{step.key}-{next(count)}"))
        return act(stage, written)

    monkeypatch.setattr(Stage, "act", counting)
    assert 0 == lab(capsys, "run", small, "--runs", "1")[0]
    Path("other.yaml").write_text(Path(small).read_text())
    status, told, _ = lab(capsys, "run", small, "other.yaml", "--runs", "3", "--check")
    assert 1 == status
    for name, line in zip((small, "other.yaml"), told.splitlines(), strict=True):
        assert line.startswith(f"FAIL  {name}: two runs of one schedule differ from message ")
        assert re.search(r"AllocationsRequested\(ask k-\d+\) to rm_proxy, then Alloc", line)


def test_an_interruption_tells_what_was_played(
    small: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    third = itertools.count()
    play = explore.explore

    def interrupted(*arguments: Any) -> Outcome:
        if next(third) == 2:
            raise KeyboardInterrupt
        return play(*arguments)

    monkeypatch.setattr(explore, "explore", interrupted)
    status, told, complained = lab(capsys, "run", small, small, "--json")
    assert (130, "") == (status, complained)
    (report,) = map(json.loads, told.splitlines())
    assert (3, True) == (report["runs"], report["ok"])


@pytest.mark.usefixtures("nodes_unchecked")
def test_an_interruption_while_a_tape_is_made_small_loses_nothing(
    small: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Shrinker, "shrink", interrupted)
    status, told, _ = lab(capsys, "run", small, "--json", "--save", "kept")
    report = json.loads(told)
    assert (130, False) == (status, report["ok"])
    assert 1 == lab(capsys, "replay", "kept")[0]


@pytest.mark.usefixtures("nodes_unchecked")
def test_a_race_that_cannot_be_kept_is_not_lost(
    small: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr(command, "keep", full)
    status, told, complaint = lab(capsys, "run", small, "--save", "kept", "--json")
    assert (2, False) == (status, json.loads(told)["ok"])
    assert "--save kept: the tape cannot be kept there: No space left on device" in complaint
    assert 1 == lab(capsys, "replay", json.loads(told)["tape"])[0]
