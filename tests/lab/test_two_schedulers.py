"""Two schedulers plan for one partition: nothing breaks under any strategy, and the price is told."""

import json
from pathlib import Path

import pytest
import ranges
from contesting import contest

from yunikorn_actors.cli import main
from yunikorn_actors.lab.case import read_case
from yunikorn_actors.lab.explore import Budget, Options, Search
from yunikorn_actors.lab.mutants.tries import CASES
from yunikorn_actors.lab.oracles.run_oracles import oracles
from yunikorn_actors.lab.run_schedule import play
from yunikorn_actors.lab.schedules.faults import FAULTS
from yunikorn_actors.lab.schedules.strategies import STRATEGIES, SYSTEMATIC
from yunikorn_actors.lab.tapes.tape import parse_tape
from yunikorn_actors.machines.rm_proxy.predicate_calls import NOBODY
from yunikorn_actors.messages.base import CONTEXT
from yunikorn_actors.messages.predicates import PredicatesChecked

SCENARIOS = Path(__file__).parents[1] / "scenarios"
FILES = ("commitments", "gang", "preemption")


def search(name: str, *, strategy: str, schedulers: int, runs: int) -> Search:
    wanted = Options(
        strategy=strategy, faults=tuple(FAULTS), budget=Budget(runs=runs), shrinks=False
    )
    return Search(read_case(SCENARIOS / f"{name}.yaml").on("proposing", schedulers), wanted)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("names", "runs"),
    [
        pytest.param(FILES, 1, id="usual"),
        pytest.param(
            [file.stem for file in CASES.glob("*.yaml")], 400, id="all", marks=pytest.mark.slow
        ),
    ],
)
@pytest.mark.parametrize("is_contested", [False, True])
def test_conflicts_are_settled_in_any_order_and_with_faults(
    strategy: str,
    names: tuple[str, ...],
    runs: int,
    is_contested: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The oracles look after each message, and at rest at what is left of the conflicts."""
    if is_contested:
        contest(monkeypatch)
    faults = () if strategy in SYSTEMATIC else tuple(FAULTS)
    wanted = Options(strategy=strategy, faults=faults, budget=Budget(runs=runs))
    for name in names:
        case = read_case(CASES / f"{name}.yaml").on("proposing", 2)
        report = Search(case, wanted).run()
        assert report.finding is None, f"{report.finding.violation.text}: {report.finding.tape}"
        assert report.refused < report.proposed
        assert report.refused or not is_contested, "vacuous: there was no conflict"


@pytest.mark.parametrize(
    ("name", "schedulers"),
    [
        ("preemption/hard-gang-ends-with-victims-on-the-way", 2),
        # An ask is allowed by time and by the resource manager.
        ("gang-disturbances/008-target-node-removed", 3),
        # One is replaced that has asked about a placeholder.
        ("gang-disturbances/placeholder-reported-while-the-gang-resumes", 2),
    ],
)
@pytest.mark.parametrize("strategy", ["pct", "uniform"])
@ranges.examples(4, 24)
def test_something_is_left_undone_in_no_order(
    name: str, schedulers: int, strategy: str, examples: int
) -> None:
    report = search(name, strategy=strategy, schedulers=schedulers, runs=examples).run()
    assert report.finding is None, report.finding.violation.text


AWAY_TAPE = """\
hold AllocationsRequested(ask ph-a) from gateway to rm_proxy until after the end
restart core by 271498 after ProposeAllocations(AdmitGang gang) from scheduler to context
hold FactsAppended(NodeScheduleChanged n1) from context to scheduler until after the end
hold RegistrationRequested(restart core by 271498) from gateway to rm_proxy until after the end
"""


def test_a_manager_that_comes_back_to_a_core_is_asked_anew() -> None:
    """A scheduler has asked before it knew that the nodes are not reported yet."""
    file = SCENARIOS / "gang-disturbances/008-target-node-removed.yaml"
    case = read_case(file).on("proposing", 3)
    tape = parse_tape(f"{case.tape().header()}, steps 0-5\n{AWAY_TAPE}")
    outcome = play(case, tape, oracles())
    checked = [it.message for it in outcome.deliveries if isinstance(it.message, PredicatesChecked)]
    assert [NOBODY] * 4 == [it.reason for it in checked if it.reason], "the race did not happen"
    assert outcome.violation is None, outcome.violation.text


def test_first_in_first_out_each_decision_is_made_once() -> None:
    case = read_case(CASES / "gang.yaml")
    alone = play(case, case.tape(), oracles())
    both = play(case.on("proposing", 2), case.on("proposing", 2).tape(), oracles())
    assert 0 == alone.refused == both.refused
    assert alone.proposed == both.proposed
    assert all(it.mailbox != CONTEXT or it.sender != CONTEXT for it in both.deliveries)


def test_the_command_tells_the_price(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    contest(monkeypatch)
    command = ("lab", "run", str(CASES / "gang.yaml"), "--runs", "2", "--schedulers", "2")
    assert 0 == main(command)
    told = capsys.readouterr().out
    assert 0 == main((*command, "--json"))
    counted = json.loads(capsys.readouterr().out.splitlines()[0])
    assert 0 < counted["refused"] < counted["proposed"]
    assert f"{counted['refused']} of {counted['proposed']} proposals were refused" in told
