"""A callback that has predicates, on every driver: it may raise, be slow, or call back in."""

import threading

import pytest
from probes import Lab, add_nodes, has_refusals, register, wait_until
from support import APP, RM, Recorder, ask

from yunikorn_actors import SchedulerCore, WouldBlock, si
from yunikorn_actors.drivers.live.clock import RealClock
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName


def submit(core: SchedulerCore | Simulator, *keys: str, rm_id: str = RM) -> None:
    ugi = si.UserGroupInformation(user="bob")
    app = si.AddApplicationRequest(application_id=APP, queue_name="root.default", ugi=ugi)
    core.update_application(si.ApplicationRequest(rm_id=rm_id, new=(app,)))
    asks = tuple(ask(key) for key in keys)
    core.update_allocation(si.AllocationRequest(rm_id=rm_id, asks=asks))


class Raising(Recorder):
    """Fails in each way in which a callback can, and agrees to n2."""

    def __init__(self) -> None:
        super().__init__()
        self.raised: list[str] = []

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        if args.node_id == "n2":
            return None
        self.raised.append(args.allocation_key)
        raise ValueError("what?") if len(self.raised) % 2 else SystemExit("enough")


def test_a_predicate_that_raises_has_not_agreed(every_lab: Lab) -> None:
    rm = Raising()
    register(every_lab.core, rm)
    add_nodes(every_lab.core, "n1", "n2")
    submit(every_lab.core, "a", "b", "c")
    every_lab.rest()
    assert {"n2"} == {node for _, node in rm.told("new")}
    assert ["a", "b", "c"] == sorted(rm.running.values())
    assert len(rm.raised) > 1, "vacuous: it raised in one way alone"


class Talkative(Recorder):
    """Makes a request from inside the question, and one that would wait for its answer."""

    def __init__(self, lab: Lab) -> None:
        super().__init__()
        self._lab = lab
        self.blocked = 0

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        core = self._lab.core
        core.update_allocation(si.AllocationRequest(rm_id=RM))
        try:
            core.state_dump()
        except WouldBlock:
            self.blocked += 1
        return "no" if args.node_id == "n1" else None


def test_a_predicate_may_call_back_in(every_lab: Lab) -> None:
    """Its own request came before its no, so the no holds and nothing turns in circles."""
    rm = Talkative(every_lab)
    register(every_lab.core, rm)
    add_nodes(every_lab.core, "n1", "n2")
    submit(every_lab.core, "a", "b")
    every_lab.rest()
    assert [("a", "n2"), ("b", "n2")] == sorted(rm.told("new"))
    assert rm.blocked >= 3


class Sleeping(Recorder):
    """Stays in the first question until it is let go; agrees to every other at once."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.is_in = threading.Event()
        self.let_go = threading.Event()

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        self.asked.append(args.allocation_key)
        if len(self.asked) == 1:
            self.is_in.set()
            self.let_go.wait(60)
        return None


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_no_answer_within_a_second_is_a_no(topology: TopologyName) -> None:
    """The second is one of the world, also where the clock of the core runs faster."""
    with SchedulerCore(topology=topology, clock=RealClock(100)) as core:
        slow, quick = Sleeping(), Recorder()
        register(core, slow)
        register(core, quick, "rm-2")
        for rm_id in (RM, "rm-2"):
            add_nodes(core, "n1", rm_id=rm_id)
            submit(core, "a", rm_id=rm_id)
        assert slow.is_in.wait(60)
        wait_until(lambda: quick.running)
        partition = "[rm-1]default"
        assert 0 == core.state_dump()["partitions"][partition]["allocations"]
        slow.let_go.set()
        wait_until(lambda: slow.running)
        assert ["a"] == list(slow.running.values())


def test_what_comes_too_late_is_not_believed() -> None:
    with SchedulerCore() as core:
        slow = Sleeping()
        register(core, slow)
        add_nodes(core, "n1")
        submit(core, "a")
        assert slow.is_in.wait(60)
        wait_until(lambda: has_refusals(core))
        slow.let_go.set()
        wait_until(core.is_settled)
        assert {} == slow.running
        core.update_allocation(si.AllocationRequest(rm_id=RM))
        wait_until(lambda: slow.running)
        assert ["a", "a"] == slow.asked
