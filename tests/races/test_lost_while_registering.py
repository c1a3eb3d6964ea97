"""A former callback says that its resource manager is lost, or leaves, while that one registers.

The gateway, RmProxy and Context see these calls in one order, so they agree on who is registered.
"""

from collections.abc import Callable

import pytest
import ranges
from support import RM, Lab, Recorder, labs

from yunikorn_actors import UnknownResourceManager, si
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.rm_proxy import RmProxy
from yunikorn_actors.messages.base import RM_PROXY

seeded = ranges.seeds(100)
ENDS: dict[str, tuple[Callable[[Simulator], None], str]] = {
    "lost": (lambda core: core.resource_manager_lost(RM), "Paused"),
    "left": (lambda core: core.unregister_resource_manager(RM), "gone"),
}


class Ending(Recorder):
    """Ends the registration of its resource manager when it hears of a node."""

    def __init__(self, end: Callable[[], None]) -> None:
        super().__init__()
        self._end = end

    def update_node(self, response: si.NodeResponse) -> None:
        super().update_node(response)
        self._end()


def _state(lab: Lab) -> str:
    managers = lab.simulator.state_dump()["managers"]
    return str(managers[RM]["state"]) if RM in managers else "gone"


def _delivers(lab: Lab) -> bool:
    proxy = lab.simulator.machines[RM_PROXY]
    assert isinstance(proxy, RmProxy)
    return RM in proxy.deliveries


@seeded
@pytest.mark.parametrize(("end", "state"), ENDS.values(), ids=ENDS)
def test_everybody_sees_one_order(
    seeds: range, end: Callable[[Simulator], None], state: str
) -> None:
    ended = kept = 0
    for lab in labs(seeds):
        former = Ending(lambda lab=lab: end(lab.simulator))  # type: ignore[misc]
        lab.register(former)
        lab.simulator.settle()
        lab.nodes(n1=10)
        lab.register(Recorder())
        try:
            lab.nodes(n2=10)
        except UnknownResourceManager:
            ended += 1
            lab.settle()
            assert (state, False) == (_state(lab), _delivers(lab))
            assert [] == list(lab.simulator.callbacks)
        else:
            kept += 1
            lab.settle()
            assert ("Running", True) == (_state(lab), _delivers(lab))
            assert [("n2", "accepted")] == lab.rm.told("node")
    assert ended, "vacuous: it was never ended after it had been asked for"
    assert kept, "vacuous: the former callback was always in time"
