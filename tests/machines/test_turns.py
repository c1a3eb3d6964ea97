"""Resource managers take turns at Context: one that asks for much does not hold the others up."""

import pytest
import ranges
from support import CONFIG, Recorder, ask

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.checkers import default_checkers
from yunikorn_actors.drivers.simulator.choosers import chooser_of
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.machine import Effect, Send
from yunikorn_actors.machines.rm_proxy import RmProxy
from yunikorn_actors.machines.rm_proxy.flow_control import ManagerTurns
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TOPOLOGIES, Topology, TopologyName
from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages.base import CONTEXT, RM_PROXY, Delivery, Message

BUSY, OTHER = "rm-1", "rm-2"


def request(number: int) -> rm.RMUpdateApplication:
    """Any message will do; this one says who sent it."""
    return rm.RMUpdateApplication(rm_id=f"{number}")


def sent(effects: list[Effect]) -> list[str]:
    messages: list[Message] = [it.message for it in effects if isinstance(it, Send)]
    return ["mark" if isinstance(it, rm.TurnMarked) else it.rm_id for it in messages]  # type: ignore[attr-defined]


def test_a_part_goes_out_and_a_mark_behind_it() -> None:
    turns = ManagerTurns(2)
    out = [sent(turns.send(BUSY, request(number))) for number in range(6)]
    assert [["0"], ["1", "mark"], [], [], [], []] == out
    assert ["2", "3", "mark"] == sent(turns.handled(BUSY))
    assert ["4", "5", "mark"] == sent(turns.handled(BUSY))
    assert [] == sent(turns.handled(BUSY))
    assert {} == turns.canonical_state()


def test_others_go_out_meanwhile() -> None:
    turns = ManagerTurns(1)
    assert ["0", "mark"] == sent(turns.send(BUSY, request(0)))
    assert [] == sent(turns.send(BUSY, request(1)))
    assert ["2", "mark"] == sent(turns.send(OTHER, request(2)))


def test_one_that_is_alone_takes_no_turns() -> None:
    turns = ManagerTurns(1)
    for number in range(3):
        assert [str(number)] == sent(turns.send(BUSY, request(number), alone=True))
    assert {} == turns.canonical_state()


def test_what_waits_stays_in_front_of_what_comes() -> None:
    """The other one may have left meanwhile."""
    turns = ManagerTurns(1)
    turns.send(BUSY, request(0))
    assert [] == sent(turns.send(BUSY, request(1)))
    assert [] == sent(turns.send(BUSY, request(2), alone=True))
    assert ["1", "mark"] == sent(turns.handled(BUSY))


def test_whoever_has_gone_leaves_nothing() -> None:
    turns = ManagerTurns(3)
    turns.send(BUSY, request(0))
    assert {"at_context": {BUSY: 1}} == turns.canonical_state()
    assert ["gone"] == sent(turns.send(BUSY, rm.RMLost(rm_id="gone")))
    assert {} == turns.canonical_state()


@pytest.mark.parametrize("in_front", range(1, 5))
def test_whoever_comes_after_it_has_a_whole_turn(in_front: int) -> None:
    """However much of a part was used up when the last message of the former one went out."""
    turns = ManagerTurns(3)
    for number in range(in_front):
        turns.send(BUSY, request(number))
    turns.send(BUSY, rm.RMLost(rm_id="gone"))
    while turns.canonical_state().get("to_context"):
        turns.handled(BUSY)
    assert {} == turns.canonical_state()


class AtContext:
    """Whose requests Context handled, in their order."""

    def __init__(self) -> None:
        self.rm_ids: list[str] = []
        self.marks = 0

    def delivered(self, _: Simulator, delivery: Delivery) -> None:
        if delivery.mailbox == CONTEXT:
            if isinstance(delivery.message, rm.RMUpdateAllocation):
                self.rm_ids.append(delivery.message.rm_id)
            self.marks += isinstance(delivery.message, rm.TurnMarked)


class Cluster:
    def __init__(self, topology: TopologyName, turn_max: int, seed: int = 0) -> None:
        self.seen = AtContext()
        self.core = Simulator(
            Topology(topology, settings=Settings(turn_max=turn_max), instance="core"),
            chooser=chooser_of(seed),
            checkers=(*default_checkers(), self.seen),
        )
        self.rms = {rm_id: Recorder() for rm_id in (BUSY, OTHER)}
        for rm_id in self.rms:
            self.register(rm_id)

    def register(self, rm_id: str) -> None:
        request = si.RegisterResourceManagerRequest(rm_id=rm_id, config=CONFIG)
        self.rms[rm_id] = Recorder()
        self.core.register_resource_manager(request, self.rms[rm_id])
        size = si.Resource.of({"vcore": 100})
        node = si.NodeInfo(node_id="n1", action=si.ActionFromRM.CREATE, schedulable_resource=size)
        self.core.update_node(si.NodeRequest(rm_id=rm_id, nodes=(node,)))
        new = si.AddApplicationRequest(
            application_id="app-1",
            queue_name="root.default",
            ugi=si.UserGroupInformation(user="bob"),
        )
        self.core.update_application(si.ApplicationRequest(rm_id=rm_id, new=(new,)))

    def ask(self, rm_id: str, key: str) -> None:
        asks = (ask(key),)
        self.core.update_allocation(si.AllocationRequest(rm_id=rm_id, asks=asks))


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_burst_of_one_is_no_queue_for_the_other(topology: TopologyName) -> None:
    places = []
    for turn_max in (10, 1_000):
        cluster = Cluster(topology, turn_max)
        cluster.core.settle()
        for number in range(50):
            cluster.ask(BUSY, f"k{number}")
        cluster.ask(OTHER, "k")
        cluster.core.settle()
        assert 51 == len(cluster.seen.rm_ids)
        assert 50 == len(cluster.rms[BUSY].running)
        places.append(cluster.seen.rm_ids.index(OTHER))
    with_turns, without = places
    assert with_turns <= 5, "five asks and their requests are ten items"
    assert without == 50, "vacuous: nobody is held up"


@pytest.mark.parametrize("topology", TOPOLOGIES)
@ranges.seeds(100, usual=10)
def test_whatever_ends_a_registration_comes_behind_what_waits(
    seeds: range, topology: TopologyName
) -> None:
    marks = 0
    for seed in seeds:
        cluster = Cluster(topology, 1, seed)
        for number in range(5):
            cluster.ask(BUSY, f"k{number}")
            cluster.ask(OTHER, f"k{number}")
        cluster.core.resource_manager_lost(BUSY)
        cluster.core.unregister_resource_manager(OTHER)
        for rm_id in (BUSY, OTHER):
            cluster.register(rm_id)
            cluster.ask(rm_id, "new")
        cluster.core.settle()
        assert 12 == len(cluster.seen.rm_ids)
        assert [["new"], ["new"]] == [list(it.running.values()) for it in cluster.rms.values()]
        state = cluster.core.machines["rm_proxy"].canonical_state()
        assert not {"at_context", "to_context"} & state.keys()
        marks += cluster.seen.marks
    assert marks > 10 * len(seeds), "vacuous: nothing had to wait"


def test_one_that_is_not_let_in_is_not_counted() -> None:
    cluster = Cluster("proposing", turn_max=5)
    other = CONFIG.replace("default", "other")
    request = si.RegisterResourceManagerRequest(rm_id="third", config=other)
    with pytest.raises(ValueError, match="policy group"):
        cluster.core.register_resource_manager(request, Recorder())
    proxy = cluster.core.machines[RM_PROXY]
    assert isinstance(proxy, RmProxy)
    assert "third" not in proxy.canonical_state().get("at_context", {})
