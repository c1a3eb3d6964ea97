"""Walks beside a world find what is done otherwise, and nothing where all is as it should be."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
import ranges

pytest.importorskip("grpc")
pytest.importorskip("aiohttp")

from yunikorn_actors.errors import NoReply
from yunikorn_actors.front.aio import AsyncScheduler
from yunikorn_actors.lab import observed_run
from yunikorn_actors.lab.baseline import seen_in
from yunikorn_actors.lab.explore import Budget
from yunikorn_actors.lab.oracles import door_oracle, walk_oracle
from yunikorn_actors.lab.oracles.judges import judged_by, walk_drawn
from yunikorn_actors.lab.oracles.walk_oracle import OF_A_WALK, WALKS, WalkBeside, walked
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.swarm.swarm_runs import Plan, Swarm
from yunikorn_actors.service.cluster import recovery_report, split
from yunikorn_actors.service.rest import http_server, request_guard, sessions
from yunikorn_actors.service.rpc import extension, outgoing, statuses

RUNS = 24
WALKED = 14
"""A run with a walk beside it."""


def found(walk: str, runs: Iterable[int] = range(RUNS)) -> Iterator[object]:
    return (it for run in runs for it in walked(walk, 3 * RUNS + run))


@ranges.seeds(RUNS - 1, first=0, usual=4)
@pytest.mark.parametrize("walk", WALKS)
def test_nothing_is_wrong(walk: str, seeds: range) -> None:
    assert [*found(walk, seeds)] == []


def _none(_: Any) -> Any:
    return lambda *_, **__: None


def _true(_: Any) -> Any:
    return lambda *_, **__: True


@pytest.mark.parametrize(
    ("walk", "place", "name", "spoil"),
    [
        ("doors", AsyncScheduler, "drain", _none),
        pytest.param(
            "doors", outgoing, "placements_in", lambda _: lambda _: iter(()), marks=pytest.mark.slow
        ),
        pytest.param(
            "doors", extension.Extension, "_explain", lambda _: _nothing, marks=pytest.mark.slow
        ),
        ("HTTP", request_guard.Guard, "check_host", _none),
        pytest.param("HTTP", request_guard, "_check_same_origin", _none, marks=pytest.mark.slow),
        pytest.param("HTTP", sessions.Attempts, "note_wrong", _none, marks=pytest.mark.slow),
        pytest.param(
            "HTTP", sessions.Sessions, "is_open", lambda _: lambda *_: False, marks=pytest.mark.slow
        ),
        pytest.param(
            "HTTP",
            request_guard,
            "bearer",
            lambda _: lambda it: it.partition(b" ")[2],
            marks=pytest.mark.slow,
        ),
        pytest.param("HTTP", http_server, "GZIP_MIN", lambda _: 1, marks=pytest.mark.slow),
        pytest.param("HTTP", http_server, "_harden", lambda _: _nothing, marks=pytest.mark.slow),
        ("gRPC", statuses, "code_of", lambda _: lambda _: statuses.StatusCode.UNKNOWN),
        pytest.param(
            "gRPC", extension, "encoded_events", lambda _: lambda _: b"", marks=pytest.mark.slow
        ),
        ("cluster", split, "home_of", lambda _: lambda *_: "default"),
        pytest.param(
            "cluster",
            recovery_report,
            "_changed",
            lambda _: lambda it, _: it,
            marks=pytest.mark.slow,
        ),
        pytest.param("gRPC", extension, "PIECE", lambda _: 0, marks=pytest.mark.slow),
    ],
    ids=lambda it: it if isinstance(it, str) else "",
)
def test_what_is_wrong_is_found(
    monkeypatch: pytest.MonkeyPatch, walk: str, place: Any, name: str, spoil: Callable[[Any], Any]
) -> None:
    monkeypatch.setattr(place, name, spoil(getattr(place, name)))
    assert any(found(walk))


async def _nothing(*_: Any) -> None:
    """Add no headers."""


def test_each_door_is_opened() -> None:
    names = {
        Draw(3, run).one_of([*door_oracle._LOCAL, *door_oracle._SERVED]) for run in range(RUNS)
    }
    assert names == {*door_oracle._LOCAL, *door_oracle._SERVED}


def test_a_finding_of_a_walk_is_not_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """No world has a part in it, and a walk takes longer than most worlds."""
    walks: list[int] = []

    def wrong(_: Draw) -> Any:
        walks.append(1)
        yield "wrong"

    monkeypatch.setattr(walk_oracle, "WALKS", {"wrong": ("", wrong)})
    (finding,) = Swarm(Plan(seed=1), Budget(runs=1), first=WALKED).run().findings
    assert finding.violation.kind == f"{OF_A_WALK}, wrong"
    assert finding.repeats
    assert len(walks) <= 4


def test_a_walk_is_named_on_the_tape() -> None:
    judges = [Plan(seed=1).drawn(number).judges for number in range(1, 30)]
    named = [word for words in judges for word in words if word.startswith("walk ")]
    assert 1 <= len(named) <= 3
    assert any(isinstance(it, WalkBeside) for it in judged_by(named))
    assert walk_drawn(3, 4) == "walk 3/4"


def _tired(times: int) -> Callable[[Draw], Any]:
    """Come to no rest, so many times."""
    left = [times]

    def walk(_: Draw) -> Any:
        if left[0]:
            left[0] -= 1
            raise NoReply("the core does not come to rest")
        yield "something", "wrong"

    return walk


@pytest.mark.parametrize("times", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_busy_computer_is_no_end(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """A walk that does not come to rest is walked again, and is a finding the second time."""
    monkeypatch.setitem(observed_run._WALKS, 0, _tired(times))
    seen = [it for it in seen_in(4) if it.what.startswith("at a core, ")]
    expected = "something" if times == 1 else "it does not come to rest, twice"
    assert [it.what for it in seen] == [f"at a core, {expected}"]
    monkeypatch.setitem(walk_oracle.WALKS, "tired", ("", _tired(times)))
    (fault,) = walked("tired", 1)
    assert fault == ("something", "wrong") if times == 1 else "it ends with NoReply" in fault
