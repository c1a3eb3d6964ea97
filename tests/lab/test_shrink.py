"""A failing tape is made as small as it can be, and still fails in the same way."""

from pathlib import Path

import pytest
import ranges

from yunikorn_actors.drivers.simulator.checkers import default_checkers
from yunikorn_actors.lab.case import read_case
from yunikorn_actors.lab.explore import Budget, Finding, Options, Search
from yunikorn_actors.lab.run_schedule import play
from yunikorn_actors.lab.schedules.faults import USUAL_FAULTS
from yunikorn_actors.lab.shrinking.shrink_document import minimal
from yunikorn_actors.lab.tapes.tape import parse_tape


def found(file: str, seed: int, faults: tuple[str, ...] = ()) -> Finding:
    options = Options(seed=seed, budget=Budget(runs=500), faults=faults)
    finding = Search(read_case(Path(file)), options).run().finding
    assert finding is not None
    return finding


@pytest.mark.usefixtures("nodes_unchecked")
@ranges.each("seed", 5, usual=1)
@pytest.mark.parametrize("faults", [(), USUAL_FAULTS])
def test_a_race_is_made_small(small: str, seed: int, faults: tuple[str, ...]) -> None:
    finding = found(small, seed + 1, faults)
    assert len(finding.tape.entries) <= 2
    assert len(finding.tape.entries) <= len(finding.found.entries)
    assert finding.outcome.stimuli <= 6
    again = play(read_case(Path(small)), parse_tape(finding.tape.line()), default_checkers())
    assert finding.violation == again.violation


def test_what_is_needed_is_left() -> None:
    tried = 0

    def fails(left: tuple[int, ...]) -> bool:
        nonlocal tried
        tried += 1
        return {3, 71} <= set(left)

    assert (3, 71) == minimal(range(100), fails)
    assert tried < 60


def test_nothing_is_needed() -> None:
    assert () == minimal(range(100), lambda _: True)
