"""What a scenario file promises is watched in every order, and only looked at."""

import json
from pathlib import Path

import pytest

from yunikorn_actors.cli import main
from yunikorn_actors.lab.case import Case, case_of
from yunikorn_actors.lab.explore import Budget, Options, Report, Search
from yunikorn_actors.lab.mutants.corpus import BY_ID
from yunikorn_actors.lab.mutants.mutant import Mutant
from yunikorn_actors.lab.random_draw import Draw
from yunikorn_actors.lab.run_schedule import explore, play
from yunikorn_actors.lab.strategies import Uniform
from yunikorn_actors.machines.context import Context
from yunikorn_actors.scenario.document import ScenarioError, parse_scenario

TWO = """\
name: two asks and room for both
steps:
  - create_node: {id: n1, capacity: {vcore: 2}}
  - add_app: {id: app, queue: root.default}
  - ask: {app: app, key: a, resource: {vcore: 1}}
  - ask: {app: app, key: b, resource: {vcore: 1}}
"""
BOTH_RUN = "{queues: {root.default: {allocated: {vcore: 2}}}}"
ONE_RUNS = "{queues: {root.default: {allocated: {vcore: 1}}}}"
AT_MOST_ONE = """{any_of: [{apps: {app: null}}, {apps: {app: {allocations: "<= 1"}}}]}"""
ALL_HOLD = f"""\
always:
  no more than there is: {{any_of: [{{nodes: {{n1: null}}}}, {{nodes: {{n1: {{allocations: "<= 2"}}}}}}]}}
sometimes:
  one of them runs alone: {ONE_RUNS}
  it was announced: {{events: [{{object: app, detail: APP_ALLOC}}]}}
eventually:
  both run: {BOTH_RUN}
"""
NO_ASKS = Mutant(
    id="M00",
    source="",
    wrong="No ask is understood.",
    where=Context._take_allocations,
    old="self._partitions.by_name, message.asks, 0",
    new="self._partitions.by_name, {}[message.rm_id], 0",
)


def case(promises: str) -> Case:
    return case_of(parse_scenario(TWO + promises, "two.yaml"), "0" * 12)


def search(promises: str) -> Report:
    return Search(case(promises), Options(budget=Budget(runs=5))).run()


def test_what_is_kept_is_not_heard_of() -> None:
    report = search(ALL_HOLD)
    assert report.ok, (report.finding, report.never_held)
    assert 5 == report.runs


def test_to_look_changes_nothing() -> None:
    for run in range(3):
        plain, watched = (
            explore(case(promises), Uniform(Draw(1, run))).digest() for promises in ("", ALL_HOLD)
        )
        assert plain == watched


@pytest.mark.parametrize(
    ("promise", "said"),
    [
        (f"always: {{one at a time: {AT_MOST_ONE}}}", "always one at a time: does not hold after"),
        (
            f"eventually: {{one runs: {ONE_RUNS}}}",
            "eventually one runs: does not hold at the end of the run",
        ),
    ],
)
def test_a_broken_promise_is_a_violation_with_a_tape(promise: str, said: str) -> None:
    finding = search(promise).finding
    assert finding is not None
    assert finding.violation.text.startswith(said)
    assert finding.violation == play(case(promise), finding.tape).violation


def test_what_held_in_no_run_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    three = "sometimes: {three run: {queues: {root.default: {allocated: {vcore: 3}}}}}"
    Path("two.yaml").write_text(TWO + three)
    assert 1 == main(("lab", "run", "two.yaml", "--runs", "3"))
    told = capsys.readouterr().out
    assert told.startswith("FAIL  two asks and room for both (3 runs")
    assert "      sometimes three run: held in no run\n" in told
    assert 1 == main(("lab", "run", "two.yaml", "--runs", "3", "--json"))
    shown = json.loads(capsys.readouterr().out)
    assert (False, ["three run"]) == (shown["ok"], shown["never_held"])


def test_a_promise_that_is_none_is_refused_with_its_line() -> None:
    with pytest.raises(ScenarioError, match=r"two\.yaml:7: .*'alocated'"):
        case("always: {x: {queues: {root: {alocated: {vcore: 1}}}}}")


def test_a_mistake_is_in_force_as_long_as_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("two.yaml").write_text(TWO)
    monkeypatch.setitem(BY_ID, "M00", NO_ASKS)
    command = ("lab", "run", "two.yaml", "--runs", "2", "--faults", "none")
    assert 1 == main((*command, "--mutant", "M00", "--explain"))
    told = capsys.readouterr().out
    assert "KeyError('rm-1') in _take_allocations" in told
    assert "      the point of no return: the start; every order fails\n" in told
    assert 0 == main(command)
    assert 2 == main((*command, "--mutant", "M61", "--jobs", "2"))
    assert "a mistake is planted in this process alone" in capsys.readouterr().err
