"""A drawn log is played by commands, and what they print and write is seen."""

from functools import cache

import pytest

from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces.workload_logs import Said, played
from yunikorn_actors.workload import batsim_file, log_formats, table

RUNS = range(24)


@cache
def _unspoilt(run: int) -> list[Said]:
    return played(Draw(3, run))


def _all() -> list[Said]:
    return [it for run in RUNS for it in played(Draw(3, run))]


def test_it_is_the_same_each_time_and_much_comes_of_it() -> None:
    once = [it for run in RUNS for it in _unspoilt(run)]
    assert once == _all()
    text = " ".join(str(it) for it in once)
    for words in (
        "(swf)", "(batsim)", "(openb)", "wait         mean", "utilisation", "never fits",
        "runs: /page", "no difference between", "there is no policy", "rows.csv", "jobs_per_cpu_s",
    ):  # fmt: skip
        assert words in text, words
    assert "/tmp/" not in text  # noqa: S108


@pytest.mark.parametrize(
    ("place", "name", "spoilt"),
    [
        (batsim_file, "_text_of", lambda _: "0"),
        (table, "evenness", lambda _: 1.0),
        (log_formats, "_seconds", lambda *_: 1.0),
    ],
)
def test_what_is_otherwise_is_seen(
    place: object, name: str, spoilt: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    for run in RUNS:
        before = _unspoilt(run)
        with monkeypatch.context() as patch:
            patch.setattr(place, name, spoilt)
            if before != played(Draw(3, run)):
                return
    pytest.fail("all is said as before")
