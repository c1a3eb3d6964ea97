"""What is answered of a recording is judged by the messages of its run."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
import ranges
from msgspec.structs import replace

from yunikorn_actors.lab.oracles import recording_oracle
from yunikorn_actors.lab.run_schedule import explore
from yunikorn_actors.lab.surfaces.replay_check import UNLIKE_MACHINES, Replayed
from yunikorn_actors.lab.swarm.swarm_runs import Plan
from yunikorn_actors.trace import causes, compare_runs, path, read, stats, story
from yunikorn_actors.trace.export import sqlite
from yunikorn_actors.trace.filters import FilterOptions
from yunikorn_actors.trace.origins import cause_index
from yunikorn_actors.trace.scrub import cover

RUNS = range(1, 21)


def found(numbers: Iterable[int]) -> Iterator[str]:
    """Say what is wrong in the recordings of these runs, by the first words."""
    for number in numbers:
        run = Plan(seed=3).drawn(number)
        if not UNLIKE_MACHINES & {*run.faults}:
            outcome = explore(run.case, run.schedule(), (Replayed(),))
            if outcome.violation is not None:
                yield outcome.violation.text.partition("asked: ")[2].partition(":")[0]


@pytest.fixture(autouse=True)
def all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording_oracle, "_PART", 1)


@ranges.seeds(RUNS[-1], usual=3)
def test_nothing_is_wrong(seeds: range) -> None:
    assert [*found(seeds)] == []


def _first(found: Callable[..., Any]) -> Callable[..., Any]:
    """Leave the last of several out."""

    def cut(*arguments: Any, **words: Any) -> Any:
        return list(found(*arguments, **words))[:-1]

    return cut


def _later(waits: Callable[..., Any]) -> Callable[..., Any]:
    """Leave out what held an ask first."""

    def cut(*arguments: Any) -> Any:
        found = waits(*arguments)
        periods = [replace(it, begin=causes.Moment(1, 1)) for it in found.periods]
        return replace(found, periods=tuple(periods))

    return cut


@pytest.mark.parametrize(
    ("place", "name", "spoil", "kind"),
    [
        pytest.param(stats, "_longest", lambda _: lambda _: 0, "counts", marks=pytest.mark.slow),
        pytest.param(stats, "_spread", lambda _: lambda _: None, "counts", marks=pytest.mark.slow),
        pytest.param(
            FilterOptions, "takes", lambda _: lambda *_: True, "filtered", marks=pytest.mark.slow
        ),
        pytest.param(cause_index.CauseIndex, "up", _first, "chains", marks=pytest.mark.slow),
        pytest.param(
            story._Life, "is_concerned", lambda _: lambda *_: False, "lives", marks=pytest.mark.slow
        ),
        pytest.param(
            path._Walk, "_names", lambda _: lambda *_: False, "ways", marks=pytest.mark.slow
        ),
        (causes._Ask, "waits", _later, "waits"),
        pytest.param(
            sqlite._Writer, "write", lambda _: lambda *_: None, "in sql", marks=pytest.mark.slow
        ),
        (compare_runs.Comparison, "is_same", lambda _: True, "compared"),
        pytest.param(
            cover.Cover,
            "_covered",
            lambda _: lambda *it: it[-1],
            "without names",
            marks=pytest.mark.slow,
        ),
        (read, "RECORD_MAX", lambda _: 10, "cut off"),
    ],
    ids=lambda it: it if isinstance(it, str) else "",
)
def test_what_is_wrong_is_found(
    monkeypatch: pytest.MonkeyPatch, place: Any, name: str, spoil: Callable[..., Any], kind: str
) -> None:
    monkeypatch.setattr(place, name, spoil(getattr(place, name)))
    assert kind in found(RUNS)
