"""The theorem, tested against time: simulate, then do it, in worlds that nobody chose."""

import pytest

from tests import simulated
from tests.simulated import BEGINNINGS, differences, unequal, world
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.what_if.core_state import BEGUN_ANEW, state_of


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_what_was_simulated_happens(topology: TopologyName) -> None:
    found = {number: differences(7, number, topology) for number in range(6)}
    assert not any(found.values()), found


@pytest.mark.parametrize("begin", [*BEGINNINGS, "dump"])
def test_it_does_not_matter_where_the_state_comes_from(begin: str) -> None:
    found = {number: differences(5, number, "fused", begin) for number in range(2)}
    assert not any(found.values()), found


@pytest.mark.parametrize(("number", "topology"), [(24, "proposing"), (307, "fused")])
def test_a_follower_knows_what_managers_are_told(number: int, topology: TopologyName) -> None:
    """How a core plans goes by it: one that tells them why asks wait looks at more at a time."""
    assert differences(24, number, topology, "replica") == []


@pytest.mark.parametrize("begin", ["copy", "replica"])
def test_a_full_backlog_holds_no_request_back(begin: str) -> None:
    """The manager may have two requests unhandled, and at one moment makes six."""
    assert differences(3611, 523, "fused", begin) == []


def test_a_dump_tells_of_swaps_under_way() -> None:
    assert differences(3602, 899, "fused", "dump") == []


@pytest.mark.parametrize(
    ("seed", "number", "topology", "what"),
    [(3612, 206, "proposing", "an empty queue"), (3616, 109, "fused", "a turn")],
)
def test_what_no_state_holds_begins_anew(
    seed: int, number: int, topology: TopologyName, what: str
) -> None:
    """The answer says so; from a copy of the machines nothing begins anew."""
    assert differences(seed, number, topology) == []
    simulated.BEGUN.clear()
    assert differences(seed, number, topology, "image") == []
    assert list(simulated.BEGUN) == [f"{what} ({seed}/{number})"]
    assert any(word in BEGUN_ANEW for word in {"empty", "turn"} & {*what.split()})


@pytest.mark.slow
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_many_worlds(topology: TopologyName) -> None:
    simulated.REFUSED.clear()
    found = {number: differences(11, number, topology) for number in range(300)}
    assert not any(found.values()), {number: it for number, it in found.items() if it}
    assert len(simulated.REFUSED) < 10


def test_a_difference_is_noticed() -> None:
    """What is simulated without the last changes is something else than what is done."""
    different = 0
    for number in range(8):
        found = world(5, number, "fused")
        if found is None or not found.changes:
            continue
        course = simulated.World(found.simulator, found.changes[:0]).simulated(
            state_of(found.simulator), found.simulator
        )
        different += any(unequal(course.course, found.done()))
    assert different > 2
