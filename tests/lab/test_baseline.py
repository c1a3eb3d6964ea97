"""A baseline: what the core did in drawn worlds, compared with what it does."""

import json
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from unspoilt import seen_unspoilt

from yunikorn_actors.cli import lab, main
from yunikorn_actors.lab.baseline import (
    BYTES_MAX,
    PACKAGED,
    WORLD,
    BadBaseline,
    Baseline,
    Digests,
    Share,
    compare,
    compared,
    digests_of_world,
    read_baseline,
    recorded,
    seen_in,
    watched,
)
from yunikorn_actors.lab.mutants.corpus import BY_ID
from yunikorn_actors.lab.mutants.mutant import Mutant
from yunikorn_actors.lab.observed_run import TURNS, WHOLE
from yunikorn_actors.version import VERSION

SHARES = 12
WRONG_SUMS = "M16"
"""A mutant: what is released with a whole application stays in the usage of its user."""
NUMBERS = [*read_baseline().worlds]
AN_HOUR = 256
"""In this world a gang waits for an hour of it, which takes as long as ten others."""
WHOLE_ONES = [
    [it for it in NUMBERS if it <= WHOLE and it % (2 * TURNS) == turn and it != AN_HOUR]
    for turn in range(2 * TURNS)
]
"""By what stands beside the core in them."""
OF_THE_CORE = [it for it in NUMBERS if it > WHOLE]
USUAL = (*(some[0] for some in WHOLE_ONES), *OF_THE_CORE[:32])
"""Played with each change. Those that show most come first. A world of the core alone takes a sixth
of the time of a whole one, and touches as much: so there are two of these for each turn."""
WORLDS_MIN = 300
UNSEEN = Mutant(
    id="", source="", wrong="", where="machines.planning_loop:PlanningLoop.__init__",
    old="self._looked_ns = 0", new="self._looked_ns = 1",
)  # fmt: skip
"""A planner that may have looked a nanosecond ago does what one does that never has."""


def _compared(numbers: Sequence[int]) -> None:
    baseline = read_baseline()
    assert [None] * len(numbers) == compare(Share(numbers, baseline))


@pytest.mark.parametrize("first", range(SHARES))
def test_the_core_does_what_it_did(first: int) -> None:
    """Record a new one with `lab baseline write` where a change of behaviour is meant."""
    _compared(USUAL[first::SHARES])


@pytest.mark.slow
@pytest.mark.parametrize("first", range(SHARES))
def test_the_core_does_what_it_did_in_all_worlds(first: int) -> None:
    _compared(NUMBERS[first::SHARES])


def test_the_baseline_of_the_package_is_of_this_version() -> None:
    baseline = read_baseline()
    assert VERSION == baseline.version
    assert len(baseline.worlds) > WORLDS_MIN


def test_all_kinds_of_things_are_seen() -> None:
    sights = [sight for number in (1, 2, 3, 4, 5) for sight in seen_unspoilt(number)]
    whats = " ".join(sight.what for sight in sights)
    for kind in (
        WORLD, "CallUpdateAllocation to rm:", "Accepted to reply:", "queues", "applications", "why",
        "the event records", "what is answered of", "/ws/v1/metrics of", "what would happen",
        "the dump of", "what the next core reads", "requests and answers as JSON", "drained=True for n1 of",
        "what would be reported to another core", "an administrator's configuration", "the end",
        "at a service (grpc)", "what is said to", "a node of rm-1 that is refused",
        "what the rules say of other queues",
    ):  # fmt: skip
        assert kind in whats
    assert {""} == {sight.value for sight in sights if sight.what == "the end"}


def test_what_goes_on_inside_is_seen_as_well() -> None:
    whats = {sight.what for sight in watched(1).inside}
    for machine in ("rm_proxy", "context", "event_publisher"):
        for what in ("was sent and wanted", "keeps", "says it keeps"):
            assert f"at rest, what {machine} {what}" in whats
    assert {"in the end, what context keeps", "at rest, the timers"} < whats


def test_what_is_not_recorded_is_not_compared(tmp_path: Path) -> None:
    file, first = tmp_path / "a.msgpack", OF_THE_CORE[:2]
    recorded(first, map).write(file)
    before = read_baseline(file)
    assert [None, None] == [read_baseline().compare(number) for number in first]
    assert before.worlds == {it: read_baseline().worlds[it] for it in first}
    found = compared(before, 9, map)
    assert (2, ()) == (found.worlds, found.changes)
    assert 2 == compared(before, 9, map, seconds=0.0).worlds, "the first share is played at least"


def test_the_same_worlds_are_recorded_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, worlds = tmp_path / "a.msgpack", read_baseline().worlds
    one, other = OF_THE_CORE[:2]
    Baseline(
        version="0.0.9", seed=0,
        worlds={other: Digests(b"xx", b"xx"), one: Digests(worlds[one].outside, b"xx")},
    ).write(file)  # fmt: skip
    assert 0 == main(["lab", "baseline", "write", str(file)])
    assert "1 changed since version 0.0.9, and 1 more inside alone" in capsys.readouterr().out
    written = read_baseline(file)
    assert (VERSION, [other, one]) == (written.version, [*written.worlds])
    assert 0 == main(["lab", "baseline", "write", str(file), "--runs", "1"])
    assert [other] == [*read_baseline(file).worlds]
    assert "1 world recorded in" in capsys.readouterr().out


def test_a_change_is_named_by_the_first_thing_that_is_different(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    baseline, file = read_baseline(), tmp_path / "a.msgpack"
    with BY_ID[WRONG_SUMS].applied():
        changes = (baseline.compare(it) for it in OF_THE_CORE)
        change = next(it for it in changes if it is not None and not it.is_inside)
    worlds = {change.number: baseline.worlds[change.number]}
    msgspec.structs.replace(baseline, worlds=worlds).write(file)
    before, now = seen_unspoilt(change.number), change.sight
    assert now != str(before[change.place - 1])
    with BY_ID[WRONG_SUMS].applied():
        after = seen_in(change.number)
        assert 1 == main(["lab", "baseline", "compare", str(file)])
    assert now == str(after[change.place - 1])
    assert before[: change.place - 1] == after[: change.place - 1]
    out = capsys.readouterr().out
    assert f"FAIL  world {change.number} of the baseline: the core does not do what" in out
    assert f"thing {change.place} that is seen is now {now[:60]}" in out
    assert f"1 world of the baseline played, 1 changed since version {VERSION}" in out


def test_a_change_inside_alone_is_named_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    with UNSEEN.applied():
        assert 1 == main(["lab", "baseline", "compare", "--runs", "1"])
        inside = watched(NUMBERS[0]).inside
    out = capsys.readouterr().out
    assert f"world {NUMBERS[0]} of the baseline: all that is seen from outside is as it was" in out
    assert any(f"inside is now {str(sight)[:60]}" in out for sight in inside)


def test_worlds_that_are_drawn_in_another_way_are_no_change_of_the_core(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.msgpack"
    number = OF_THE_CORE[0]
    worlds = {number: digests_of_world(number, seed=6)}
    Baseline(version="0.0.9", seed=5, worlds=worlds).write(file)
    assert 1 == main(["lab", "baseline", "compare", str(file)])
    assert "is drawn in another way than before: record a new one" in capsys.readouterr().out


def test_fewer_things_are_a_change() -> None:
    number = OF_THE_CORE[0]
    outside, inside = msgspec.structs.astuple(read_baseline().worlds[number])
    for wrong, count, is_inside in (
        (Digests(outside + b"zz", inside), len(outside), False),
        (Digests(outside, inside + b"zz"), len(inside), True),
    ):
        before = Baseline(version="0.0.9", seed=0, worlds={number: wrong})
        change = before.compare(number)
        assert change is not None
        assert (count // 2 + 1, "nothing more") == (change.place, change.sight)
        assert is_inside == change.is_inside


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
    with UNSEEN.applied():
        assert 1 == main(["lab", "swarm", "--runs", "1", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert (False, False, 1) == (
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
