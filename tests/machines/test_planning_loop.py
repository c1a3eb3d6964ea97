"""How much one planner may have in flight, with a Scheduler and inside Context."""

import pytest
from ganging import GROUP, gang_lab, topologies
from picky import Picky
from support import APP, Lab

from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.scheduler import Scheduler
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.messages.base import Delivery
from yunikorn_actors.planning.planner import Planner

BOUND = 4
SETTINGS = Settings(inflight_max=BOUND)


class Most:
    """The most that was in flight at any moment, while questions were out."""

    def __init__(self) -> None:
        self.most = 0

    def delivered(self, simulator: Simulator, _: Delivery) -> None:
        for machine in simulator.machines.values():
            if isinstance(machine, Scheduler):
                self._see(machine.planner)
            elif isinstance(machine, Context):
                for partition in machine.partitions.values():
                    self._see(partition.planner)

    def _see(self, planner: Planner | None) -> None:
        if planner is not None:
            self.most = max(self.most, planner.in_flight_count)


@topologies
def test_allocations_that_wait_for_a_word_are_bounded(topology: TopologyName) -> None:
    seen = Most()
    lab = Lab(topology=topology, rm=Picky(), settings=SETTINGS, checkers=(seen,))
    lab.submit(APP)
    lab.nodes(n1=100)
    lab.ask("a", max_allocations=40)
    lab.settle()
    assert (BOUND, 40) == (seen.most, len(lab.running()))


@topologies
@pytest.mark.parametrize("spare", [0, 100])
def test_swaps_that_wait_for_a_word_are_bounded(topology: TopologyName, spare: int) -> None:
    seen = Most()
    lab = gang_lab(9, topology=topology, spare=spare, settings=SETTINGS, checkers=(seen,))
    seen.most = 0  # all placeholders of a gang stand in the plan that admits it, however many
    lab.ask(*(f"r-{number}" for number in range(9)), task_group_name=GROUP)
    lab.settle()
    assert BOUND == seen.most
    assert 9 == len([key for key, _ in lab.rm.told("released")]), "every member has its swap"
