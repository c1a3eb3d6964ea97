"""`trace show --json`, and the time of day beside the time since the start."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from recordings import in_service, records, rewrite, simulate

from yunikorn_actors.cli import main

Screen = pytest.CaptureFixture[str]
KEYS = [
    "record", "at_ns", "since_start_ns", "clock", "mailbox", "step", "joined", "sender", "cause",
    "stimulus", "waited_ns", "step_before_took_ns", "type", "text", "payload",
]  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.trace"


def rows(capsys: Screen, path: Path, *options: str, status: int = 0) -> list[dict[str, Any]]:
    assert main(["trace", "show", str(path), "--json", *options]) == status
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def messages(path: Path) -> list[dict[str, Any]]:
    return [it for it in records(path) if it["record"] == "delivery"]


@pytest.mark.parametrize("make", [simulate, in_service])
def test_each_message_is_one_document_on_a_line(
    path: Path, capsys: Screen, make: Callable[[Path], Path]
) -> None:
    found, recorded = rows(capsys, make(path)), messages(path)
    assert all(list(row) == KEYS for row in found)
    assert [row["payload"] for row in found] == [it["payload"] for it in recorded]
    assert [row["step"] for row in found] == [f"{it['mailbox']}/{it['step']}" for it in recorded]
    assert [row["at_ns"] for row in found] == [it["at_ns"] for it in recorded]
    start_ns = records(path)[0]["start_ns"]
    for row, it in zip(found, recorded, strict=True):
        assert row["since_start_ns"] == it["at_ns"] - start_ns
        assert row["waited_ns"] == (it["at_ns"] - it["sent_ns"] if "sent_ns" in it else None)
        assert row["cause"] == ("/".join(map(str, it["cause"])) if it["cause"][1] else None)
        seconds = datetime.fromisoformat(row["clock"]).replace(microsecond=0).timestamp()
        assert int(seconds) == it["at_ns"] // 10**9
        assert row["clock"].endswith(f".{it['at_ns'] % 10**9:09}Z")


@pytest.mark.parametrize(
    "options",
    [
        ["--about", "app-1"], ["--stimulus", "allocation-7"], ["--type", "AskAdded"],
        ["--mailbox", "context"], ["--refused"], ["--from", "10", "--to", "20"],
        ["--limit", "3"], ["--about", "d", "--mailbox", "scheduler"],
    ],
)  # fmt: skip
def test_filters_choose_the_same_messages_as_in_lines(
    path: Path, capsys: Screen, options: list[str]
) -> None:
    simulate(path)
    found = rows(capsys, path, *options)
    assert main(["trace", "show", str(path), *options]) == 0
    shown = capsys.readouterr().out
    assert 0 < len(found) < len(messages(path))
    assert [f"-> {row['step']}" in shown for row in found] == [True] * len(found)
    assert shown.count(" -> ") - shown.count("cause -> mailbox") >= len(found)


def test_names_cannot_steer_a_terminal_and_an_open_end_is_told_apart(
    path: Path, capsys: Screen
) -> None:
    simulate(path)
    text = json.dumps(records(path)).replace("app-1", "\\u001b[2J\\u202e")
    rewrite(path, json.loads(text)[:-1])
    assert main(["trace", "show", str(path), "--json"]) == 0
    out, err = capsys.readouterr()
    assert {"\x1b", "\u202e"}.isdisjoint(out)
    assert any("\x1b[2J\u202e" in json.loads(line)["text"] for line in out.splitlines())
    assert "incomplete: the run is still being recorded" in err


def test_a_name_that_occurs_nowhere_is_told(path: Path, capsys: Screen) -> None:
    assert rows(capsys, simulate(path), "--about", "app-11", status=1) == []


@pytest.mark.parametrize("command", [["show"], ["story", "app-1"], ["draw"], ["tail"]])
def test_the_time_of_day_stands_beside_the_time_since_the_start(
    path: Path, capsys: Screen, command: list[str]
) -> None:
    simulate(path)
    start_ns = records(path)[0]["start_ns"]
    name, *rest = command
    assert main(["trace", name, str(path), *rest]) == 0
    assert "T00:" not in capsys.readouterr().out.replace("started 2026-01-01T00:00", "")
    assert main(["trace", name, str(path), *rest, "--clock"]) == 0
    lines = capsys.readouterr().out.splitlines()
    told = [line.split()[:2] for line in lines if "T00:" in line and "started" not in line]
    assert len(told) > 5
    for milliseconds, clock in told:
        at = datetime.fromtimestamp(start_ns / 1e9 + float(milliseconds) / 1e3, UTC)
        assert abs(datetime.fromisoformat(clock) - at).total_seconds() < 2e-6
        assert clock.endswith("Z")
    heads = [line.split() for line in lines if line.split()[:2] == ["ms", "clock"]]
    assert len(heads) == (0 if name == "tail" else 1)


def test_a_drawing_with_times_has_its_columns_below_each_other(path: Path, capsys: Screen) -> None:
    simulate(path)
    assert main(["trace", "draw", str(path), "--limit", "30"]) == 0
    plain = capsys.readouterr().out.splitlines()
    assert main(["trace", "draw", str(path), "--limit", "30", "--clock"]) == 0
    timed = capsys.readouterr().out.splitlines()
    wide = timed[0].index(plain[0])
    assert wide > 30
    assert [line[wide:] for line in timed] == plain


def test_each_command_that_prints_times_prints_the_time_of_day(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = simulate(tmp_path / "a.trace")
    for command in (["chain", "rm_proxy/5"], ["path", "b"], ["why", "app-2/e"]):
        name, what = command
        main(["trace", name, str(path), what])
        assert "T00:00" not in capsys.readouterr().out
        main(["trace", name, str(path), what, "--clock"])
        assert "T00:00" in capsys.readouterr().out, name
