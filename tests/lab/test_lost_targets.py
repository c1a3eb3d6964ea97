"""A member whose swaps lost their nodes goes first, as often as it has repeats and no more."""

from pathlib import Path

import pytest

from yunikorn_actors.lab.case import read_case
from yunikorn_actors.lab.oracles.run_oracles import oracles
from yunikorn_actors.lab.run_schedule import play
from yunikorn_actors.lab.tapes.tape import parse_tape
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName

LOST = Path(__file__).parents[1] / "scenarios/gang-edges/two-lost-targets.yaml"


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_both_placeholders_end_before_the_next_plan(topology: TopologyName) -> None:
    """Without the other application both first tries are owed in one plan, to one repeat."""
    case = read_case(LOST, topology)
    outcome = play(case, parse_tape(f"{case.tape().line()}, steps 0-3 6-8 10-11 13"), oracles())
    assert outcome.ok, outcome.violation
