"""R-136: the same request twice does no harm, wherever the core is with the first one."""

from collections.abc import Callable

import pytest
import ranges
from support import APP, Lab, settled

from yunikorn_actors import si
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName

Request = Callable[[Lab], None]

REQUESTS: dict[str, Request] = {
    "node": lambda lab: lab.nodes(n2=5),
    "drain": lambda lab: lab.node("n1", si.ActionFromRM.DRAIN_NODE),
    "decommission": lambda lab: lab.decommission("n1"),
    "application": lambda lab: lab.submit("app-2"),
    "removal": lambda lab: lab.remove(APP),
    "ask": lambda lab: lab.ask("more", vcore=2),
    "withdrawal": lambda lab: lab.withdraw("large"),
    "release": lambda lab: lab.release("runs"),
}


def _after(request: Request, times: int, steps: int, **made_with: object) -> tuple[Lab, bool]:
    """Return the lab at rest, and whether the first one was under way when the next was sent."""
    lab = Lab(**made_with)  # type: ignore[arg-type]
    lab.nodes(n1=9)
    lab.submit(APP)
    lab.ask("runs", vcore=3)
    lab.settle()
    lab.ask("large", vcore=50)
    lab.settle()
    request(lab)
    under_way = False
    for _ in range(times - 1):
        for _ in range(steps):
            lab.simulator.step()
        under_way = not lab.simulator.is_at_rest
        request(lab)
    lab.settle()
    return lab, under_way


def _truth(lab: Lab) -> object:
    """Everything but the record of what was refused because it is so already."""
    state = settled(lab.state)
    del state["finished"], state["remembered"], state["refused_node_actions"]
    return state


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("name", REQUESTS)
@ranges.seeds(40)
def test_twice_is_as_once(name: str, topology: TopologyName, seeds: range) -> None:
    request, met = REQUESTS[name], 0
    for seed in seeds:
        once, _ = _after(request, 1, 0, seed=seed, topology=topology)
        twice, under_way = _after(request, 2, seed % 7, seed=seed, topology=topology)
        assert _truth(once) == _truth(twice)
        assert once.running() == twice.running()
        for kind in ("new", "released"):
            assert once.rm.told(kind) == twice.rm.told(kind), "it is told once"
        met += under_way
        assert twice.leftovers() == {}
    assert met > 0, "vacuous: the first one was always over"
