"""The theorem, tested against time: simulate, then do it, in worlds that nobody chose."""

import pytest

from tests.simulated import differences
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_what_was_simulated_happens(topology: TopologyName) -> None:
    found = {number: differences(7, number, topology) for number in range(6)}
    assert not any(found.values()), found
