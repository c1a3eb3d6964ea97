"""Which orders were tried is counted for each mailbox, and says when more runs are in vain."""

from pathlib import Path

import pytest

from yunikorn_actors.cli import main
from yunikorn_actors.lab.case import read_case
from yunikorn_actors.lab.coverage import Coverage, Growth, Pair, coverage_lines, tried_in
from yunikorn_actors.lab.explore import Budget, Options, Search
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages.base import Cause, Delivery
from yunikorn_actors.messages.rm_events import RMLost, RMUnregistered


def run(kinds: str) -> list[Delivery]:
    messages = {"l": RMLost(rm_id="rm"), "u": RMUnregistered(rm_id="rm")}
    return [
        Delivery("box", step, "x", Cause("x", 0), "", 0, messages[kind])
        for step, kind in enumerate(kinds, 1)
    ]


def test_pairs_are_counted() -> None:
    coverage = Coverage()
    coverage.add(tried_in(run("lul"), Settings()))
    assert (2, 4) == (coverage.tried, coverage.possible)
    assert [
        Pair("box", "RMLost", "RMLost"),
        Pair("box", "RMUnregistered", "RMUnregistered"),
    ] == list(coverage.never_tried())
    coverage.add(tried_in(run("ll"), Settings()))
    coverage.add(tried_in(run("lu"), Settings()))
    assert (Growth(1, 2), Growth(2, 3), Growth(3, 3)) == coverage.growth()
    assert {"box": (3, 4)} == coverage.by_mailbox()
    assert 2 / 3 == pytest.approx(coverage.chance_of_new), "u-l and l-l were tried in one run"
    assert not coverage.is_enough


def test_it_is_told() -> None:
    coverage = Coverage()
    for _ in range(50):
        coverage.add(tried_in(run("lul"), Settings()))
    assert [
        "orders: 2 pairs of 4 tried in 50 runs; chance that another run tries a new one: 0.0%, enough",
        "growth: 2 after 1, 2 after 2, 2 after 4, 2 after 8, 2 after 16, 2 after 32, 2 after 50",
        "  box: 2 of 4",
        "never tried, one right before the other:",
        "  box: RMLost, RMLost",
        "  and 1 more",
    ] == list(coverage_lines(coverage, 1))[:6]


def test_exploring_stops_when_it_is_enough(small: str) -> None:
    case = read_case(Path(small))
    wanted = Options(budget=Budget(runs=3000, until_covered=True))
    report = Search(case, wanted).run()
    assert 50 <= report.runs < 3000
    assert report.coverage.is_enough
    assert report.coverage.tried > 20


def test_the_command(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(("lab", "run", small, "--runs", "9", "--coverage", "2"))
    told = capsys.readouterr().out
    assert "tried in 9 runs" in told
    assert "      never tried, one right before the other:\n" in told
    assert "        gangs: 0 of 9; never admitted, lapsed and 7 more\n" in told
