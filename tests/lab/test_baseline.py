"""A baseline: what the core did in drawn worlds, compared with what it does."""

import json
from pathlib import Path

import pytest

from yunikorn_actors.cli import lab, main
from yunikorn_actors.lab.baseline import (
    BYTES_MAX,
    PACKAGED,
    RUNS,
    WORLD,
    BadBaseline,
    Baseline,
    Share,
    compare,
    compared,
    digests_of,
    read_baseline,
    recorded,
    seen_in,
)
from yunikorn_actors.lab.mutants.corpus import BY_ID
from yunikorn_actors.version import VERSION

SHARES = 20
STEP = 3
"""One world in so many is played with each change; three do not divide what is looked at in turn."""
WRONG_SUMS = "M16"
"""A mutant: what is released with a whole application stays in the usage of its user."""


def _compared(first: int, step: int) -> None:
    numbers = range(first, min(first + RUNS // SHARES * step, RUNS + 1), step)
    baseline = read_baseline()
    changes = compare(Share(numbers, baseline))
    changed = [it for it, change in zip(numbers, changes, strict=True) if change is not None]
    # A program at the front door has threads, and what it sends may go in one request or in two: a
    # change of the core is there each time.
    assert [None] * len(changed) == compare(Share(changed, baseline))


@pytest.mark.parametrize("first", range(1, RUNS + 1, RUNS // SHARES * STEP))
def test_the_core_does_what_it_did(first: int) -> None:
    """Record a new one with `lab baseline write` where a change of behaviour is meant."""
    _compared(first, STEP)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1, RUNS + 1, RUNS // SHARES))
def test_the_core_does_what_it_did_in_all_worlds(first: int) -> None:
    _compared(first, 1)


def test_the_baseline_of_the_package_is_of_this_version() -> None:
    baseline = read_baseline()
    assert (VERSION, RUNS) == (baseline.version, len(baseline.worlds))


def test_all_kinds_of_things_are_seen() -> None:
    sights = [sight for number in (1, 2, 3, 4, 5) for sight in seen_in(number)]
    whats = " ".join(sight.what for sight in sights)
    for kind in (
        WORLD, "CallUpdateAllocation to rm:", "Accepted to reply:", "queues", "applications", "why",
        "the event records", "what is answered of", "/ws/v1/metrics of", "what would happen",
        "the dump of", "what the next core reads", "requests and answers as JSON", "drained=True for n1 of",
        "what would be reported to another core", "an administrator's configuration", "the end",
    ):  # fmt: skip
        assert kind in whats
    assert {""} == {sight.value for sight in sights if sight.what == "the end"}


def test_what_is_not_recorded_is_not_compared(tmp_path: Path) -> None:
    file = tmp_path / "a.msgpack"
    recorded(2, map).write(file)
    before = read_baseline(file)
    assert [None, None] == [read_baseline().compare(number) for number in (1, 2)]
    assert before.worlds == read_baseline().worlds[:2]
    found = compared(before, 9, map)
    assert (2, ()) == (found.worlds, found.changes)
    assert 2 == compared(before, 9, map, seconds=0.0).worlds, "the first share is played at least"


def test_a_change_is_named_by_the_first_thing_that_is_different(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with BY_ID[WRONG_SUMS].applied():
        changes = [it for it in compare(Share(range(1, 7), read_baseline())) if it is not None]
    change = changes[0]
    before, now = seen_in(change.number), change.sight
    assert now != str(before[change.place - 1])
    with BY_ID[WRONG_SUMS].applied():
        after = seen_in(change.number)
        assert 1 == main(["lab", "baseline", "compare", "--runs", "6"])
    assert now == str(after[change.place - 1])
    assert before[: change.place - 1] == after[: change.place - 1]
    out = capsys.readouterr().out
    assert f"FAIL  world {change.number} of the baseline: the core does not do what" in out
    assert f"thing {change.place} that is seen is now {now[:60]}" in out
    assert f"6 worlds of the baseline played, {len(changes)} changed since version {VERSION}" in out


def test_worlds_that_are_drawn_in_another_way_are_no_change_of_the_core(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.msgpack"
    Baseline(version="0.0.9", seed=5, worlds=(digests_of(seen_in(1, seed=6)),)).write(file)
    assert 1 == main(["lab", "baseline", "compare", str(file)])
    assert "is drawn in another way than before: record a new one" in capsys.readouterr().out


def test_fewer_things_are_a_change() -> None:
    (world,) = recorded(1, map).worlds
    before = Baseline(version="0.0.9", seed=0, worlds=(world + b"zz",))
    change = before.compare(1)
    assert change is not None
    assert (len(world) // 2 + 1, "nothing more") == (change.place, change.sight)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file or directory"),
        (b"", "is no baseline"),
        (b"\x93\x01\x02\x03", "is no baseline"),
        (PACKAGED.read_bytes()[:100], "is no baseline"),
        (b"\0" * (BYTES_MAX + 1), "has more than 16777216 bytes"),
    ],
    ids=["none", "empty", "another", "cut off", "huge"],
)
def test_a_file_that_is_no_baseline(
    content: bytes | None, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.msgpack"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(BadBaseline, match=f"{words}.*lab baseline write"):
        read_baseline(file)
    assert 2 == main(["lab", "baseline", "compare", str(file)])
    assert words in capsys.readouterr().err


def test_a_reader_that_has_seen_enough_is_no_mistake(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_: object) -> int:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setitem(lab._ACTIONS, "baseline", broken)
    monkeypatch.setattr("yunikorn_actors.cli._write_no_more", lambda: None)
    assert 0 == main(["lab", "baseline", "show", "1"])
    assert "" == capsys.readouterr().err


def test_a_search_begins_with_the_baseline(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["lab", "swarm", "--runs", "1"])
    first, *_ = capsys.readouterr().out.splitlines()
    assert f"ok    1 world of the baseline played, 0 changed since version {VERSION}" == first
    assert 1 == main(["lab", "swarm", "--runs", "6", "--mutant", WRONG_SUMS, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert (False, False, 6) == (
        found["ok"], found["baseline"]["ok"], found["baseline"]["worlds"],
    )  # fmt: skip


@pytest.mark.parametrize(
    "words", [["--no-baseline"], ["--first", "2"], ["--without", "gangs"]], ids=lambda it: it[0]
)
def test_a_search_in_chosen_worlds_does_without(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert 0 == main(["lab", "swarm", "--runs", "1", *words])
    assert "baseline" not in capsys.readouterr().out
