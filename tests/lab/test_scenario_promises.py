"""What a scenario file promises is watched in every order, and only looked at."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.docs.test_docs import blocks_of
from yunikorn_actors.cli import main
from yunikorn_actors.drivers.simulator.checkers import default_checkers
from yunikorn_actors.lab.case import Case, case_of
from yunikorn_actors.lab.explore import Budget, Options, Report, Runs, Search
from yunikorn_actors.lab.mutants.corpus import BY_ID
from yunikorn_actors.lab.mutants.mutant import Mutant
from yunikorn_actors.lab.run_schedule import explore, play, write
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.schedules.strategies import Uniform
from yunikorn_actors.lab.shrinking.shrink import Shrinker
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
DRAINED = """\
name: a node that is drained when it is used
steps:
  - create_node: {id: n1, capacity: {vcore: 2}}
  - add_app: {id: app, queue: root.default}
  - ask: {app: app, key: a, resource: {vcore: 1}}
  - drain_node: n1
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
        (
            f"always: {{one at a time: {AT_MOST_ONE}}}",
            "always one at a time: does not hold (any_of.1.apps.app: expected None, found ",
        ),
        (
            'always: {one at a time: {apps: {app: {allocations: "<= 1"}}}}',
            "always one at a time: does not hold (apps.app.allocations: expected <= 1, found 2)",
        ),
        (
            f"eventually: {{one runs: {ONE_RUNS}}}",
            "eventually one runs: does not hold (queues.root.default.allocated: expected {'vcore': 1}",
        ),
    ],
)
def test_a_broken_promise_is_a_violation_with_a_tape(promise: str, said: str) -> None:
    finding = search(promise).finding
    assert finding is not None
    assert finding.violation.text.startswith(said)
    assert finding.violation == play(case(promise), finding.tape).violation


def test_the_example_of_the_reference_holds() -> None:
    (example,) = (
        block.text
        for block in blocks_of(Path("docs/reference/scenario-format.md").read_text())
        if "\nalways:" in block.text
    )
    found = Search(
        case_of(parse_scenario(example, "example.yaml"), "0" * 12), Options(budget=Budget(runs=8))
    ).run()
    assert found.ok, (found.finding, found.never_held)


@pytest.mark.parametrize(
    "expected",
    [
        "{queues: {root.default: {allocated: {vcore: 0..2}}}}",
        "{nodes: {n1: {schedulable: true}, n2: {schedulable: true}}}",
        "{allocations: {a: {node: n1}}, apps: {app: {queue: root.default}}}",
        "{any_of: [{nodes: {n1: {schedulable: true}}}, {nodes: {n2: null}}]}",
        "{apps: {app: {task_groups: {g: {count: 1}}}}}",
    ],
)
def test_what_is_not_there_yet_breaks_no_promise(expected: str) -> None:
    report = Search(
        case(f"always: {{it holds: {expected}}}"), Options(budget=Budget(runs=4), faults=())
    ).run()
    assert report.ok, report.finding


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("remove_node: n1", "{nodes: {n1: {schedulable: true}}}"),
        ("remove_app: app", "{any_of: [{apps: {app: {allocations: 0..2}}}, {nodes: {n1: null}}]}"),
    ],
)
def test_what_was_there_is_missed(step: str, expected: str) -> None:
    text = f"{TWO}  - {step}\nalways: {{it is there: {expected}}}"
    gone = case_of(parse_scenario(text, "two.yaml"), "0" * 12)
    violation = play(gone, gone.tape()).violation
    assert violation is not None
    assert "found None" in violation.text


def test_a_manager_that_registers_anew_begins_anew() -> None:
    text = f"{TWO}  - lose_rm: rm-1\n  - register: {{}}\nalways: {{n1: {{nodes: {{n1: {{}}}}}}}}"
    lost = case_of(parse_scenario(text, "two.yaml"), "0" * 12)
    outcome = play(lost, lost.tape())
    assert outcome.ok, outcome.violation


@pytest.mark.parametrize(
    ("promise", "found"),
    [
        (f"eventually: {{one runs: {ONE_RUNS}}}", "{'vcore': 2}"),
        (
            "always: {no more than one: {queues: {root: {allocated: {vcore: 0..1}}}}}",
            "{'vcore': 2}",
        ),
        ("eventually: {c runs: {allocations: {c: {node: n1}}}}", "None"),
    ],
)
def test_what_is_broken_undisturbed_keeps_its_steps(
    promise: str,
    found: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    finding = search(promise).finding
    assert finding is not None
    assert (0, None, ()) == (finding.run, finding.tape.steps, finding.tape.entries)
    monkeypatch.chdir(tmp_path)
    Path("two.yaml").write_text(TWO + promise)
    assert 1 == main(("lab", "run", "two.yaml", "--faults", "none"))
    told = capsys.readouterr().out
    assert f"found {found})" in told
    assert "\n      fails undisturbed, with 5 stimuli and " in told


def test_what_only_an_order_breaks_is_not_made_small_to_what_every_order_breaks() -> None:
    """Without an ask each order breaks it: that is another case."""
    text = f"""{DRAINED}
always:
  it is used before: {{any_of: [{{nodes: {{n1: {{schedulable: true}}}}}}, {{nodes: {{n1: {{allocations: 1}}}}}}]}}
"""
    case_ = case_of(parse_scenario(text, "two.yaml"), "0" * 12)
    finding = Search(case_, Options(budget=Budget(runs=80), faults=())).run().finding
    assert finding is not None
    assert finding.run
    assert finding.tape.entries
    assert play(case_, replace(finding.tape, entries=())).ok


def test_what_is_made_small_keeps_the_order_of_the_steps() -> None:
    """A drain before the ask would break it as well, and in every order of messages."""
    text = f"{DRAINED}eventually: {{a runs: {{allocations: {{a: {{node: n1}}}}}}}}"
    case_ = case_of(parse_scenario(text, "two.yaml"), "0" * 12)
    found = write(case_, Uniform(Draw(1, 63)))
    small = Shrinker(case_, "eventually a runs", default_checkers).shrink(found)
    outcome = play(case_, small)
    assert outcome.violation is not None
    assert outcome.keeps_order, small


@pytest.mark.parametrize("kind", ["lose", "register", "flap", "bounce", "drain", "confirm"])
def test_rest_is_not_judged_where_a_fault_took_away_what_was_asked_for(kind: str) -> None:
    steps = f"{TWO}  - release: {{app: app, key: b}}\n"
    text = f"{steps}eventually: {{a runs: {{allocations: {{a: {{node: n1}}, b: null}}}}}}"
    case_ = case_of(parse_scenario(text, "two.yaml"), "0" * 12)
    report = Search(case_, Options(budget=Budget(runs=15), faults=(kind,))).run()
    assert report.ok, report.finding


def test_rest_is_judged_where_only_machines_fail() -> None:
    """The order of the drain and of the ask breaks it, in a run with a failure as in any."""
    text = f"{DRAINED}eventually: {{a runs: {{allocations: {{a: {{node: n1}}}}}}}}"
    case_ = case_of(parse_scenario(text, "two.yaml"), "0" * 12)
    runs = Runs(case=case_, options=Options(faults=("freeze", "fail")), length=40)
    assert any(runs.play(number).violation for number in range(1, 40, 2))


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


def test_what_was_judged_in_no_run_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name that is written wrongly makes a promise that nothing could break."""
    monkeypatch.chdir(tmp_path)
    free = "{n9: {schedulable: true}}"
    always = f"""
always:
  there: {{queues: {{root.default: {{allocated: {{vcore: '<= 2'}}}}}}}}
  gone: {{nodes: {free}}}
  either: {{any_of: [{{nodes: {free}}}, {{queues: {{root.default: {{dynamic: false}}}}}}]}}
"""
    Path("two.yaml").write_text(TWO + always)
    assert 1 == main(("lab", "run", "two.yaml", "--runs", "3"))
    shown = capsys.readouterr().out
    named = [it.strip() for it in shown.splitlines() if "judged in no run" in it]
    reason = "judged in no run, as nothing that it names was there"
    assert named == [f"always either: {reason}", f"always gone: {reason}"]
    assert 1 == main(("lab", "run", "two.yaml", "--runs", "3", "--json"))
    assert json.loads(capsys.readouterr().out)["never_judged"] == ["either", "gone"]


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
