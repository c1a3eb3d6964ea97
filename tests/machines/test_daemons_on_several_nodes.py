"""Asks that can run on one node alone, on several full nodes at once."""

import pytest
from support import Lab, Recorder, report

from yunikorn_actors import si
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName


class Confirming(Recorder):
    """Confirms what the core takes back."""

    lab: Lab

    def update_allocation(self, response: si.AllocationResponse) -> None:
        super().update_allocation(response)
        for item in response.released:
            if item.termination_type is si.TerminationType.PREEMPTED_BY_SCHEDULER:
                self.lab.release(
                    item.allocation_key,
                    app=item.application_id,
                    termination_type=item.termination_type,
                )


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_each_node_makes_room_for_its_own(topology: TopologyName) -> None:
    rm = Confirming()
    rm.lab = lab = Lab(topology=topology, rm=rm)
    nodes = [f"n{number}" for number in range(4)]
    lab.nodes(**dict.fromkeys(nodes, 10))
    lab.submit("app-1")
    lab.submit("daemons")
    lab.report(*(report(f"w-{name}", name, 10) for name in nodes))
    lab.settle()
    policy = si.PreemptionPolicy(allow_preempt_self=True, allow_preempt_other=True)
    for name in nodes:
        here = {si.constants.TAG_REQUIRED_NODE: name}
        lab.ask(f"d-{name}", app="daemons", vcore=5, tags=here, preemption_policy=policy)
    lab.settle()
    assert sorted(f"d-{name}" for name in nodes) == sorted(lab.running())
