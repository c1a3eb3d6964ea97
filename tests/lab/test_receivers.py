"""A checker that names its receivers is asked about nothing else, and knows nothing less by that."""

from pathlib import Path
from typing import Final

import pytest

from yunikorn_actors.drivers.simulator.simulator import Checker, Simulator
from yunikorn_actors.lab.case import read_case
from yunikorn_actors.lab.oracles.run_oracles import oracles
from yunikorn_actors.lab.run_schedule import play
from yunikorn_actors.machines.topology import TOPOLOGIES
from yunikorn_actors.messages.base import CONTEXT, EVENT_PUBLISHER, RM_PROXY, Delivery, role_of

CASES: Final = Path(__file__).parents[2] / "yunikorn_actors/lab/cases"


class Named:
    """Notes what it is shown."""

    receivers = frozenset({CONTEXT})

    def __init__(self) -> None:
        self.shown: list[tuple[str, bool]] = []

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        self.shown.append((role_of(delivery.mailbox), simulator.is_at_rest))


class Unnamed:
    """The same, of whatever comes."""

    def __init__(self) -> None:
        self.shown: list[tuple[str, bool]] = []

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        self.shown.append((role_of(delivery.mailbox), simulator.is_at_rest))


def test_it_is_shown_what_comes_to_its_receivers_and_what_ends_in_rest() -> None:
    case = read_case(CASES / "gang.yaml")
    named, any_ = Named(), Unnamed()
    play(case, case.tape(), (named, any_))
    assert named.shown == [it for it in any_.shown if it[0] == CONTEXT or it[1]]
    roles = {role for role, _ in any_.shown}
    assert roles >= {CONTEXT, RM_PROXY, EVENT_PUBLISHER, "scheduler", "rm", "reply"}
    assert any(role != CONTEXT for role, _ in named.shown)
    assert len(named.shown) < len(any_.shown)


class Beside:
    """Shows a checker what it is not shown, which is to change nothing."""

    def __init__(self, checkers: tuple[Checker, ...]) -> None:
        self.checkers = [it for it in checkers if hasattr(it, "receivers")]
        self.shown = 0

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        if simulator.is_at_rest:
            return
        role = role_of(delivery.mailbox)
        for checker in self.checkers:
            if role not in checker.receivers:  # type: ignore[attr-defined] - it has some
                before = repr(vars(checker))
                checker.delivered(simulator, delivery)
                assert repr(vars(checker)) == before, f"{checker} looks at {role}"
                self.shown += 1


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("name", ["gang", "two-managers", "swap-across"])
def test_it_would_learn_nothing_from_the_others(name: str, topology: str) -> None:
    case = read_case(CASES / f"{name}.yaml", topology)
    checkers = oracles()
    beside = Beside(checkers)
    assert play(case, case.tape(), (*checkers, beside)).violation is None
    assert len(beside.checkers) > 12
    assert beside.shown > 500
