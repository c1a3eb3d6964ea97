"""A guided search keeps what reached something new as plain files, changes it, and goes on from it."""

import json
from pathlib import Path

import pytest

from yunikorn_actors.cli import main
from yunikorn_actors.lab.coverage import Coverage
from yunikorn_actors.lab.run_schedule import explore
from yunikorn_actors.lab.scenario_documents import document_of
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.swarm.drawn import drawn
from yunikorn_actors.lab.swarm.guided import Corpus, Guided, changed
from yunikorn_actors.lab.swarm.swarm_runs import Plan, Played
from yunikorn_actors.lab.swarm.world_parts import Wanted


def searched(folder: Path, runs: int, first: int = 1) -> tuple[Guided, list[Played]]:
    guided = Guided(Plan(), Corpus(folder))
    return guided, list(guided.play(guided, range(first, first + runs)))


def test_what_is_kept_reaches_something_new_again(tmp_path: Path) -> None:
    _, runs = searched(tmp_path, 5)
    kept = Corpus(tmp_path).runs
    assert 2 < len(kept) <= 5
    by_number = {one.run.number: one.run for one in runs}
    coverage = Coverage()
    for run in kept:
        outcome = explore(run.case, run.schedule(), run.checkers())
        assert outcome.order() == by_number[run.number].order, "a file is a run"
        assert coverage.has_new_features(by_number[run.number].tried)
        coverage.add(by_number[run.number].tried)
    assert not any(coverage.has_new_features(one.run.tried) for one in runs), "all else was known"


def test_it_goes_on_where_it_stopped(tmp_path: Path) -> None:
    searched(tmp_path, 3)
    before = {file.name for file in tmp_path.iterdir()}
    guided, _ = searched(tmp_path, 2, first=4)
    after = {file.name for file in tmp_path.iterdir()}
    assert before < after
    assert guided.first > 4
    assert Guided(Plan(), Corpus(tmp_path)).first == guided.first


@pytest.mark.slow
def test_the_same_search_keeps_the_same(tmp_path: Path) -> None:
    for name in ("one", "other"):
        searched(tmp_path / name, 5)
    one, other = (sorted((tmp_path / name).iterdir()) for name in ("one", "other"))
    assert [file.name for file in one] == [file.name for file in other]
    runs = Corpus(tmp_path / "one").runs
    fresh = {drawn(1, number).case.text for number in range(1, 6)}
    assert any(run.case.text not in fresh for run in runs), "vacuous: nothing was changed"


def test_changes_are_scenarios_and_differ() -> None:
    run, other = drawn(1, 1), drawn(1, 2)
    texts = {changed(run, other, Draw(1, number)).case.text for number in range(1, 21)}
    assert len(texts) > 15
    assert run.case.text not in texts


def test_the_model_does_not_judge_a_registration_that_was_moved_or_repeated() -> None:
    plain = Wanted(only=("gangs", "waits"))
    run, other = drawn(1, 1, plain), drawn(1, 2, plain)
    assert run.is_judged
    judged = []
    for number in range(1, 61):
        one = changed(run, other, Draw(1, number))
        steps = document_of(one.case.text)["steps"]
        judged.append((one.is_judged, any("register" in step for step in steps[1:])))
    assert {(True, False), (False, True)} == set(judged)


def test_what_is_no_run_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("name: x\nsteps: [advance: 1s]\n")
    (tmp_path / "b.yaml").write_text("# run 1 of seed 1, uniform of order 1 on proposing with 1 "
                                     "schedulers, parts: \nname: x\n")  # fmt: skip
    assert [] == Corpus(tmp_path).runs


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "corpus"
    arguments = (
        "lab",
        "swarm",
        "--runs",
        "4",
        "--corpus",
        str(folder),
        "--parts",
        "gangs",
        "--json",
    )
    assert main(arguments) < 2
    first = json.loads(capsys.readouterr().out)
    assert first["reached"]["transitions of applications"] > 0
    kept = len(list(folder.glob("*.yaml")))
    assert kept > 1
    assert main(arguments) < 2
    capsys.readouterr()
    assert len(list(folder.glob("*.yaml"))) > kept
    assert 2 == main((*arguments, "--jobs", "2"))
    assert "depends on those before it" in capsys.readouterr().err
