"""Mutants are found by playing, and nothing is found in the core as it is."""

import json
import re
from pathlib import Path

import pytest

from yunikorn_actors.cli import main
from yunikorn_actors.lab.case import PACKAGE, read_case
from yunikorn_actors.lab.mutants.corpus import BY_ID
from yunikorn_actors.lab.mutants.mutant import Kind
from yunikorn_actors.lab.mutants.mutant_search import (
    RUNS_MAX,
    SWARM,
    Hunter,
    SwarmHunter,
    Worlds,
    hunt_all,
)
from yunikorn_actors.lab.mutants.tries import UNDISTURBED, Tries
from yunikorn_actors.lab.oracles.run_oracles import oracles
from yunikorn_actors.lab.run_schedule import play
from yunikorn_actors.lab.tapes.tape import parse_tape

KEYS = {"id", "found", "strategy", "runs", "seconds", "deviations", "stimuli", "tape"}


@pytest.fixture(scope="module")
def hunter() -> Hunter:
    return Hunter(seed=1, runs=300, mutants=[BY_ID["M01"], BY_ID["M28"]])


def test_the_regressed_race_falls_at_once(hunter: Hunter) -> None:
    found = hunter.hunt(BY_ID["M01"])
    assert found.found
    assert UNDISTURBED == found.strategy
    assert "gang" in found.violation


def test_what_needs_a_fault_is_found_and_made_small(hunter: Hunter) -> None:
    found = hunter.hunt(BY_ID["M28"])
    assert found.found
    assert UNDISTURBED != found.strategy
    assert 1 <= found.deviations <= 3
    assert found.stimuli <= 12
    tape = parse_tape(found.tape)
    case = read_case(PACKAGE / tape.scenario, tape.topology)
    assert play(case, tape, oracles()).ok, "the core as it is bears this"
    with BY_ID["M28"].applied():
        violation = play(case, tape, oracles()).violation
    assert violation is not None
    assert found.violation == violation.text


def alarms(seed: int, runs: int) -> list[str]:
    """Return what the oracles say of the same runs on the core as it is."""
    tries = Tries((), seed, runs)
    outcomes = [(tried, tries.play(tried, oracles())) for tried in tries]
    assert runs < len(outcomes)
    return [
        f"{it.violation.text}: {tries.tape(tried).line()}"
        for tried, it in outcomes
        if it.violation is not None
    ]


@pytest.mark.slow
def test_nothing_is_found_where_nothing_is_wrong() -> None:
    assert [] == alarms(seed=2, runs=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 13))
def test_nothing_is_found_with_other_seeds(seed: int) -> None:
    assert [] == alarms(seed, runs=400)


@pytest.mark.slow
def test_most_of_them_are_found() -> None:
    ids = [it.id for it in BY_ID.values() if it.kind is Kind.ORDER]
    results = list(hunt_all(ids, seed=1, runs=RUNS_MAX))
    found = [result for result in results if result.found]
    assert len(found) >= 0.75 * len(results)
    assert sum(result.strategy == UNDISTURBED for result in found) <= 15
    assert [] == [it.id for it in found if it.deviations > 3 or it.stimuli > 12]


def test_drawn_worlds_are_another_place_to_look(capsys: pytest.CaptureFixture[str]) -> None:
    hunter = SwarmHunter(seed=1, worlds=12, mutants=[BY_ID["M103"]])
    found = hunter.hunt(BY_ID["M103"])
    assert (SWARM, True) == (found.strategy, found.found)
    assert "node_id is" in found.violation
    again = ("lab", "swarm", "--seed", "1", "--first", str(found.run), "--runs", "1", "--json")
    assert 0 == main(list(again))
    assert 1 == main([*again, "--mutant", "M103", "--shrink-seconds", "1s"])
    assert "node_id is" in capsys.readouterr().out


def test_what_is_wrong_without_the_mutant_is_not_its_mistake() -> None:
    mutant, other = BY_ID["M115"], BY_ID["M103"]
    touched = dict(Worlds([mutant], seed=1, runs=6))
    with other.applied():
        worlds = Worlds([mutant], seed=1, runs=6)
        wrong = [number for number, ids in worlds if touched[number] and not ids]
        assert wrong, "vacuous: no world that touches the mutant is wrong without it"
        assert not any(worlds.play(number).ok for number in wrong)


def test_what_no_run_has_is_not_looked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["lab", "mutants", "--runs", "1", "M280", "M103"])
    text = capsys.readouterr().out
    assert "M280  not looked for, a test fails with it" in text
    assert "cluster                0 of   1  held by tests" in text
    assert "notified wrongly       1 of   1\n" in text


@pytest.mark.slow
def test_what_stands_beside_the_core_is_in_drawn_worlds(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["lab", "mutants", "--swarm", "20", "M284", "M274"])
    text = capsys.readouterr().out
    assert "M284  found by swarm" in text
    assert "cluster                1 of   1\n" in text


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


@pytest.mark.parametrize(
    ("id_", "said"),
    [
        ("M99", "'M99' is no mutant: next to it are M86 and M102"),
        ("M129", "'M129' is no mutant: next to it are M127 and M130"),
        ("M0", "'M0' is no mutant: next to it are M01"),
        ("M9999", f"'M9999' is no mutant: next to it are {[*BY_ID][-1]}"),
        ("gangs", "'gangs' is no mutant: they are M01 to "),
    ],
)
def test_an_unknown_one_is_refused(id_: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["lab", "mutants", id_])
    assert said in capsys.readouterr().err


def test_the_reference_says_of_each_number_what_it_is_about() -> None:
    text = Path("docs/reference/mutants.md").read_text()
    said = re.findall(r"^- M(\d+) to M(\d+) ", text, re.MULTILINE)
    assert [] == [
        id_ for id_ in BY_ID if not any(int(a) <= int(id_[1:]) <= int(b) for a, b in said)
    ]


@pytest.mark.slow
def test_several_processes_say_the_same() -> None:
    ids = ("M01", "M28")
    alone, together = (
        [(it.id, it.runs, it.tape) for it in hunt_all(ids, seed=1, runs=100, jobs=jobs)]
        for jobs in (1, 2)
    )
    assert alone == together
