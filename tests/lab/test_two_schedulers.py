"""Two schedulers plan for one partition: nothing breaks under any strategy, and the price is told."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from yunikorn_actors.cli import main
from yunikorn_actors.domain.proposals import Proposal, Refusal
from yunikorn_actors.lab.case import read_case
from yunikorn_actors.lab.explore import Budget, Options, Search
from yunikorn_actors.lab.faults import FAULTS
from yunikorn_actors.lab.mutants.tries import CASES
from yunikorn_actors.lab.oracles import oracles
from yunikorn_actors.lab.play import play
from yunikorn_actors.lab.strategies import STRATEGIES, SYSTEMATIC
from yunikorn_actors.messages.base import CONTEXT
from yunikorn_actors.planning.peers import Peers
from yunikorn_actors.planning.planner import Planner

SCENARIOS = Path(__file__).parents[1] / "scenarios"
Refuses = Callable[[Proposal], Refusal | None]
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
        pytest.param(FILES, 5, id="usual"),
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
        monkeypatch.setattr(Peers, "_decider", lambda self, _: self._place)
    faults = () if strategy in SYSTEMATIC else tuple(FAULTS)
    wanted = Options(strategy=strategy, faults=faults, budget=Budget(runs=runs))
    for name in names:
        case = read_case(CASES / f"{name}.yaml").on("proposing", 2)
        report = Search(case, wanted).run()
        assert report.finding is None, f"{report.finding.violation.text}: {report.finding.tape}"
        assert report.refused < report.proposed
        assert report.refused or not is_contested, "vacuous: there was no conflict"


def test_they_wait_for_each_other_in_no_order() -> None:
    """Both had the same facts at rest, and expected of each other what they had planned before."""
    name = "preemption/hard-gang-ends-with-victims-on-the-way"
    report = search(name, strategy="pct", schedulers=2, runs=12).run()
    assert report.finding is None, report.finding.violation.text


def test_an_ask_is_allowed_once_where_time_and_the_resource_manager_allow_it() -> None:
    """Both came before the other schedulers were informed."""
    name = "gang-disturbances/008-target-node-removed"
    report = search(name, strategy="pct", schedulers=3, runs=12).run()
    assert report.finding is None, report.finding.violation.text


@pytest.mark.parametrize(
    "name",
    [
        # A real ask is proposed behind the placeholders of its gang that are in flight.
        "gang-disturbances/011-soft-timeout-of-an-incomplete-gang-during-a-swap",
        # One of these placeholders is refused by the resource manager meanwhile.
        "gang-disturbances/012-hard-timeout-of-an-incomplete-gang-during-a-swap",
        # Several are in flight when the maximum falls: one has room, and all have not.
        "preemption/012-quota-lowered",
        # Asks that have only to wait are proposed behind the one that has the victims.
        "preemption/039-mixed-sizes-on-several-nodes",
    ],
)
def test_what_rests_on_each_other_in_flight_is_void_together(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each message nothing is in flight that is void."""
    refusals: list[Refusal] = []
    void_ones = Planner.void_ones

    def noted(planner: Planner, refuses: Refuses, *among: Any) -> Iterator[int]:
        def judged(proposal: Proposal) -> Refusal | None:
            refusal = refuses(proposal)
            refusals.extend([refusal] if refusal else [])
            return refusal

        return void_ones(planner, judged, *among)

    monkeypatch.setattr(Planner, "void_ones", noted)
    report = search(name, strategy="uniform", schedulers=3, runs=40).run()
    assert report.finding is None, report.finding.violation.text
    assert refusals, "vacuous: the facts were against nothing in flight"


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
    monkeypatch.setattr(Peers, "_decider", lambda self, _: self._place)
    command = ("lab", "run", str(CASES / "gang.yaml"), "--runs", "2", "--schedulers", "2")
    assert 0 == main(command)
    told = capsys.readouterr().out
    assert 0 == main((*command, "--json"))
    counted = json.loads(capsys.readouterr().out.splitlines()[0])
    assert 0 < counted["refused"] < counted["proposed"]
    assert f"{counted['refused']} of {counted['proposed']} proposals were refused" in told
