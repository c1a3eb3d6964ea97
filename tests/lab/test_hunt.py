"""Mutants are found by playing, and nothing is found in the core as it is."""

import json
from pathlib import Path

import pytest

from yunikorn_actors.cli import main
from yunikorn_actors.domain.allocation import Allocation
from yunikorn_actors.lab.case import read_case
from yunikorn_actors.lab.mutants.corpus import BY_ID
from yunikorn_actors.lab.mutants.hunt import CASES, UNDISTURBED, Hunter, hunt_all
from yunikorn_actors.lab.mutants.mutant import Mutant
from yunikorn_actors.lab.oracles import oracles
from yunikorn_actors.lab.play import play
from yunikorn_actors.lab.tape import parse_tape

HARMLESS = Mutant(
    id="harmless",
    source="",
    wrong="",
    where=Allocation.may_be_released,
    old="return self.releasing is None",
    new="return self.releasing is None and True",
)
KEYS = {"id", "found", "strategy", "runs", "seconds", "deviations", "stimuli", "tape"}


@pytest.fixture(scope="module")
def hunter() -> Hunter:
    return Hunter(seed=1, runs=150)


def test_the_regressed_race_falls_at_once(hunter: Hunter) -> None:
    found = hunter.hunt(BY_ID["M01"])
    assert found.found
    assert UNDISTURBED == found.strategy
    assert "G04: allocated of root" in found.violation


def test_what_needs_a_fault_is_found_and_made_small(hunter: Hunter) -> None:
    found = hunter.hunt(BY_ID["M28"])
    assert found.found
    assert UNDISTURBED != found.strategy
    assert 1 <= found.deviations <= 3
    assert found.stimuli <= 12
    tape = parse_tape(found.tape)
    case = read_case(Path(tape.scenario), tape.topology)
    assert play(case, tape, oracles()).ok, "the core as it is bears this"
    with BY_ID["M28"].applied():
        violation = play(case, tape, oracles()).violation
    assert violation is not None
    assert found.violation == violation.text


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    found = Hunter(seed=2, runs=30).hunt(HARMLESS)
    assert not found.found, found.violation
    assert 30 + 2 * len(list(CASES.glob("*.yaml"))) == found.runs


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 13))
def test_nothing_is_found_with_other_seeds(seed: int) -> None:
    found = Hunter(seed=seed, runs=400).hunt(HARMLESS)
    assert not found.found, found.violation


@pytest.mark.slow
def test_most_of_them_are_found() -> None:
    results = list(hunt_all(tuple(BY_ID), seed=1, runs=400))
    found = [result for result in results if result.found]
    assert len(found) >= 0.75 * len(results)
    assert sum(result.strategy == UNDISTURBED for result in found) <= 15
    assert [] == [it.id for it in found if it.deviations > 3 or it.stimuli > 12]


def test_the_command_prints_one_object_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["lab", "mutants", "--json", "--runs", "1", "M01", "M06"])
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first.keys() >= KEYS
    assert ("M01", True) == (first["id"], first["found"])
    assert ("M06", False) == (second["id"], second["found"])


def test_the_command_says_what_it_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["lab", "mutants", "--runs", "1", "M01"])
    text = capsys.readouterr().out
    assert text.startswith("M01  found by undisturbed")
    assert "1 of 1 found, 1 of them undisturbed" in text


def test_an_unknown_one_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["lab", "mutants", "M99"])
    assert "'M99' is no mutant" in capsys.readouterr().err


@pytest.mark.slow
def test_several_processes_say_the_same() -> None:
    ids = ("M01", "M28")
    alone, together = (
        [(it.id, it.runs, it.tape) for it in hunt_all(ids, seed=1, runs=100, jobs=jobs)]
        for jobs in (1, 2)
    )
    assert alone == together
