"""A resource manager that does not take what it is told is held back, and loses nothing."""

from collections import Counter

import pytest
from support import APP, CONFIG, RM, Lab, Recorder

from yunikorn_actors import si
from yunikorn_actors.config import ExtraConfig, parse_config
from yunikorn_actors.drivers.simulator.choosers import Channel, Channels, Fifo, oldest
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.base import Delivery, is_callback
from yunikorn_actors.messages.rm_calls import CallMark
from yunikorn_actors.messages.rm_events import ConfigurationRequested, RMHeldBack
from yunikorn_actors.planning.reasons import Cause

MOST = 8
HELD = "its resource manager does not take its messages: nothing new is decided for it"
GOES_ON = "its resource manager takes its messages again"


class CallbackAsleep(Fifo):
    """Delivers nothing to the callback of the first resource manager until it is woken."""

    def __init__(self) -> None:
        self.is_asleep = False

    def choose(self, channels: Channels) -> Channel:
        if not self.is_asleep:
            return oldest(channels)
        awake = {it: queue for it, queue in channels.items() if not it[1].startswith(f"rm:{RM}#")}
        return oldest(awake or channels)


class Said:
    """What RmProxy told Context of who is behind."""

    def __init__(self) -> None:
        self.held: list[bool] = []

    def delivered(self, _: Simulator, delivery: Delivery) -> None:
        if isinstance(delivery.message, RMHeldBack):
            self.held.append(delivery.message.held)


class Slow:
    """A lab whose callback can be put to sleep."""

    def __init__(self, topology: TopologyName = "proposing", most: int = MOST) -> None:
        self.said = Said()
        self.lab = Lab(topology=topology, checkers=(self.said,))
        self.chooser = CallbackAsleep()
        self.lab.simulator._chooser = self.chooser
        self.bound(most)
        self.lab.nodes(n1=1000)
        self.lab.submit(APP)
        self.lab.settle()

    def bound(self, most: int) -> None:
        extra = {"rm.maxUndelivered": str(most)}
        request = si.UpdateConfigurationRequest(rm_id=RM, config=CONFIG, extra_config=extra)
        self.lab.simulator.update_configuration(request)

    def sleep(self) -> None:
        self.chooser.is_asleep = True

    def wake(self) -> None:
        self.chooser.is_asleep = False
        self.lab.settle()

    def work(self) -> None:
        """Let the core do all it can without the callback."""
        simulator = self.lab.simulator
        while any(not to.startswith(f"rm:{RM}#") for _, to in simulator.channels):
            assert simulator.step()

    def behind(self) -> int:
        """How many calls the callback has not taken."""
        return sum(
            1
            for (_, to), queue in self.lab.simulator.channels.items()
            if is_callback(to)
            for _, envelope in queue
            if not isinstance(envelope.message, CallMark)
        )

    def ask_one_by_one(self, count: int, start: int = 0) -> None:
        for number in range(start, start + count):
            self.lab.ask(f"k{number}")
            self.work()


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_nothing_new_is_decided_above_the_bound(topology: TopologyName) -> None:
    slow = Slow(topology)
    slow.sleep()
    slow.ask_one_by_one(4 * MOST)
    assert [True] == slow.said.held
    assert slow.behind() == MOST + 1
    truth = slow.lab.state
    assert truth.suspended
    assert 0 < truth.allocation_count < 4 * MOST
    assert len(slow.lab.waiting()) == 4 * MOST - truth.allocation_count
    slow.wake()
    assert [True, False] == slow.said.held
    assert [f"k{number}" for number in range(4 * MOST)] == [k for k, _ in slow.lab.rm.told("new")]
    assert len(slow.lab.running()) == 4 * MOST
    assert slow.lab.leftovers() == {}


def test_requests_are_taken_and_answered_meanwhile() -> None:
    slow = Slow()
    slow.sleep()
    slow.ask_one_by_one(2 * MOST)
    before = slow.behind()
    slow.lab.submit("late")
    slow.lab.nodes(n2=5)
    slow.lab.release("k0")
    slow.work()
    assert slow.lab.state.suspended
    assert "late" in slow.lab.state.applications
    assert slow.behind() > before, "answers are no decisions"
    slow.wake()
    assert ("late", "accepted") in slow.lab.rm.told("application")
    assert ("n2", "accepted") in slow.lab.rm.told("node")
    assert ("k0", "STOPPED_BY_RM") in slow.lab.rm.told("released")
    assert slow.lab.leftovers() == {}


def test_it_goes_on_below_half() -> None:
    slow = Slow()
    slow.sleep()
    slow.ask_one_by_one(2 * MOST)
    simulator, taken = slow.lab.simulator, 0
    while slow.lab.state.suspended:
        channel = next(channel for channel in simulator.channels if is_callback(channel[1]))
        _, envelope = simulator.channels[channel].popleft()
        simulator._deliver(channel[1], envelope)
        taken += not isinstance(envelope.message, CallMark)
        slow.work()
    assert taken == MOST + 1 - (MOST // 2 - 1)
    slow.wake()
    assert slow.lab.leftovers() == {}


def test_no_timer_runs_and_nothing_is_removed() -> None:
    slow = Slow()
    slow.sleep()
    slow.ask_one_by_one(2 * MOST)
    simulator = slow.lab.simulator
    assert not [name for _, name in simulator.timers if name.startswith("paused/")]
    dump = slow.lab.context.canonical_state()["managers"][RM]
    assert ("Running", True) == (dump["state"], dump["held_back"])
    slow.wake()
    assert slow.lab.leftovers() == {}


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_it_is_told_to_whoever_asks(topology: TopologyName) -> None:
    slow = Slow(topology)
    slow.sleep()
    slow.ask_one_by_one(2 * MOST)
    simulator = slow.lab.simulator
    why = simulator.explain(APP, slow.lab.waiting()[0])
    assert why.obstacle.cause is Cause.RM_PAUSED
    assert why.obstacle.text == "its resource manager does not take its messages"
    assert _records(slow) == [HELD]
    partition = simulator.state_dump()["partitions"]["[rm-1]default"]
    assert (True, True) == (partition["held"], partition["behind"])
    slow.wake()
    partition = simulator.state_dump()["partitions"]["[rm-1]default"]
    assert (False, False) == (partition["held"], partition["behind"])
    assert _records(slow) == [HELD, GOES_ON]


def test_one_that_is_lost_while_it_is_behind_is_away() -> None:
    slow = Slow()
    slow.sleep()
    slow.ask_one_by_one(2 * MOST)
    key = slow.lab.waiting()[0]
    slow.lab.simulator.resource_manager_lost(RM)
    slow.work()
    why = slow.lab.simulator.explain(APP, key)
    assert why.obstacle.text == "its resource manager is away, so its partitions are suspended"
    assert _records(slow) == [HELD]


def _records(slow: Slow) -> list[str]:
    records = slow.lab.simulator.events().records
    return [item.message for item in records if item.message in {HELD, GOES_ON}]


def test_another_resource_manager_goes_on() -> None:
    slow = Slow()
    other = Recorder()
    request = si.RegisterResourceManagerRequest(rm_id="rm-2", config=CONFIG)
    slow.lab.simulator.register_resource_manager(request, other)
    slow.sleep()
    slow.ask_one_by_one(2 * MOST)
    infos = (si.NodeInfo(node_id="theirs", action=si.ActionFromRM.CREATE),)
    slow.lab.simulator.update_node(si.NodeRequest(rm_id="rm-2", nodes=infos))
    slow.work()
    assert [("theirs", "accepted")] == other.told("node")
    assert not slow.lab.context.partitions["[rm-2]default"].state.suspended
    slow.wake()


def test_a_new_registration_is_not_held_for_the_former_one() -> None:
    """The word of who is behind overtakes nobody, but it may come after the new registration."""
    for seed in range(1, 30):
        said = Said()
        lab = Lab(seed=seed, checkers=(said,))
        extra = {"rm.maxUndelivered": "1"}
        request = si.UpdateConfigurationRequest(rm_id=RM, config=CONFIG, extra_config=extra)
        lab.simulator.update_configuration(request)
        lab.nodes(n1=100)
        lab.submit(APP)
        for number in range(20):
            lab.ask(f"k{number}")
        while True not in said.held and lab.simulator.step():
            pass
        lab.register(Recorder())
        lab.settle()
        assert not lab.state.suspended


def test_a_partition_that_comes_meanwhile_is_held_too() -> None:
    slow = Slow()
    slow.sleep()
    slow.ask_one_by_one(2 * MOST)
    two = CONFIG.replace("]}]}]", "]}]}, {name: more, queues: [{name: root}]}]")
    slow.lab.simulator._post(
        "rm_proxy", _reload(two, {"rm.maxUndelivered": str(MOST)}), "configuration"
    )
    slow.work()
    assert slow.lab.context.partitions["[rm-1]more"].state.suspended
    slow.wake()
    held = Counter(p.state.suspended for p in slow.lab.context.partitions.values())
    assert Counter({False: 2}) == held


def test_the_bound_may_change_under_way() -> None:
    slow = Slow(most=10_000)
    slow.sleep()
    slow.ask_one_by_one(3 * MOST)
    assert not slow.said.held
    slow.chooser.is_asleep = False
    slow.bound(MOST)
    slow.sleep()
    slow.ask_one_by_one(3 * MOST, start=100)
    assert True in slow.said.held
    slow.wake()
    assert not slow.lab.state.suspended
    assert len(slow.lab.running()) == 6 * MOST


def _reload(text: str, extra: dict[str, str]) -> ConfigurationRequested:
    request = si.UpdateConfigurationRequest(rm_id=RM, config=text, extra_config=extra)
    return ConfigurationRequested(
        request=request,
        config=parse_config(text),
        extra=ExtraConfig.of(extra),
        reply_to="reply:0",
    )
