"""The oracle of gangs that claim sees a claim for a part of one."""

from pathlib import Path

import pytest

from yunikorn_actors.lab.case import read_case
from yunikorn_actors.lab.mutants.corpus import BY_ID
from yunikorn_actors.lab.oracles.run_oracles import oracles
from yunikorn_actors.lab.run_schedule import play
from yunikorn_actors.machines.context import preemption
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName

SCENARIOS = Path(__file__).parents[1] / "scenarios/preemption"


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_victim_for_a_part_of_a_gang_is_seen(
    topology: TopologyName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two may run on one node each, and on one of them nobody may go."""
    case = read_case(SCENARIOS / "163-more-repeats-than-their-node-has-room-for.yaml", topology)
    assert play(case, case.tape(), oracles()).ok
    monkeypatch.setattr(preemption, "_check_the_others", lambda *_: None)
    monkeypatch.setattr(preemption, "_fit", lambda *_: True)
    with BY_ID["M509"].applied():
        violation = play(case, case.tape(), oracles()).violation
    assert violation is not None
    assert "G31: others go for g, and a of it has no room on its node" in violation.text
