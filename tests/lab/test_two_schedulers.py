"""Two schedulers plan for one partition: nothing breaks under any strategy, and the price is told."""

import json

import pytest

from yunikorn_actors.cli import main
from yunikorn_actors.lab.case import read_case
from yunikorn_actors.lab.explore import Budget, Options, Search
from yunikorn_actors.lab.faults import FAULTS
from yunikorn_actors.lab.mutants.tries import CASES
from yunikorn_actors.lab.oracles import oracles
from yunikorn_actors.lab.play import play
from yunikorn_actors.lab.strategies import STRATEGIES, SYSTEMATIC
from yunikorn_actors.messages.base import CONTEXT
from yunikorn_actors.messages.scheduling import ProposeAllocations

FILES = ("commitments", "gang", "preemption")


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("names", "runs"),
    [
        pytest.param(FILES, 5, id="usual"),
        pytest.param(
            [file.stem for file in CASES.glob("*.yaml")], 400, id="all", marks=pytest.mark.slow
        ),
    ],
)
def test_conflicts_are_settled_in_any_order_and_with_faults(
    strategy: str, names: tuple[str, ...], runs: int
) -> None:
    """The oracles look after each message, and at rest at what is left of the conflicts."""
    faults = () if strategy in SYSTEMATIC else tuple(FAULTS)
    wanted = Options(strategy=strategy, faults=faults, budget=Budget(runs=runs))
    for name in names:
        case = read_case(CASES / f"{name}.yaml").on("proposing", 2)
        report = Search(case, wanted).run()
        assert report.finding is None, f"{report.finding.violation.text}: {report.finding.tape}"
        assert 0 < report.refused < report.proposed, "vacuous: there was no conflict"


def test_first_in_first_out_each_decision_is_made_twice() -> None:
    case = read_case(CASES / "gang.yaml")
    alone = play(case, case.tape(), oracles())
    both = play(case.on("proposing", 2), case.on("proposing", 2).tape(), oracles())
    assert 0 == alone.refused
    assert alone.proposed == both.refused == both.proposed - both.refused
    senders = {it.sender for it in both.deliveries if isinstance(it.message, ProposeAllocations)}
    assert 2 == len(senders)
    assert all(it.mailbox != CONTEXT or it.sender != CONTEXT for it in both.deliveries)


def test_the_command_tells_the_price(capsys: pytest.CaptureFixture[str]) -> None:
    command = ("lab", "run", str(CASES / "gang.yaml"), "--runs", "2", "--schedulers", "2")
    assert 0 == main(command)
    told = capsys.readouterr().out
    assert 0 == main((*command, "--json"))
    counted = json.loads(capsys.readouterr().out.splitlines()[0])
    assert 0 < counted["refused"] < counted["proposed"]
    assert f"{counted['refused']} of {counted['proposed']} proposals were refused" in told
