"""The theorem, tested against time: simulate, then do it, in worlds that nobody chose."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from support import RM

from tests import simulated
from tests.simulated import (
    BEGINNINGS,
    World,
    differences,
    remembers,
    unequal,
    unlike_dump,
    world,
)
from tests.what_if.test_least_change import cluster
from yunikorn_actors import VirtualCore, si
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.base import RM_PROXY
from yunikorn_actors.policies.folds import Folds
from yunikorn_actors.policies.registry import NO_POLICIES
from yunikorn_actors.state.applications import ApplicationState
from yunikorn_actors.state.dump import snapshot
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.snapshot import Image, LivingImage, image_of, restore
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.values.resource import equals
from yunikorn_actors.what_if.changes import Change
from yunikorn_actors.what_if.core_state import BEGUN_ANEW, Copy, context_of, state_of
from yunikorn_actors.what_if.run import digest_of
from yunikorn_actors.what_if.simulation import simulate


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_what_was_simulated_happens(topology: TopologyName) -> None:
    found = {number: differences(7, number, topology) for number in range(6)}
    assert not any(found.values()), found


def test_what_is_seldom_there_stands_at_the_beginning() -> None:
    """Such as a swap under way, or a node on its way out."""
    simulated.RARE.clear()
    for number in range(12):
        found = differences(8, number, TOPOLOGIES[number % 2], "follower", is_rare=True)
        assert not found, (number, found)
    assert len(simulated.RARE) > 3, simulated.RARE


@pytest.mark.parametrize("begin", BEGINNINGS)
def test_it_does_not_matter_where_the_state_comes_from(begin: str) -> None:
    found = {number: differences(5, number, "fused", begin) for number in range(2)}
    assert not any(found.values()), found


def test_a_living_image_counts_as_one_that_is_counted_anew() -> None:
    """Its sums are those of the state that it is of: also where work leaves or has devices."""
    seen: Counter[str] = Counter()
    for number in range(25):
        found = world(77, number, "proposing", is_whole=False)
        for state in () if found is None else _states(found):
            anew, living = (_replica(make, state) for make in (image_of, _living))
            assert snapshot(living) == snapshot(anew), number
            for mine, other in zip(living.nodes.values(), anew.nodes.values(), strict=True):
                assert equals(mine.available, other.available), number
                assert mine.parts == other.parts, number
                seen["devices"] += mine.parts is not None
                seen["work"] += len(mine.allocations)
            for app in living.applications.values():
                seen["placeholders"] += app.has_placeholders
                seen["leaving"] += any(it.comes_free for it in app.allocations.values())
    assert {*seen} == {it for it, count in seen.items() if count}, seen


def _states(found: World) -> list[PartitionState]:
    return [it.state for it in context_of(found.simulator).partitions.values()]


def _replica(make: Callable[[PartitionState], Image], state: PartitionState) -> PartitionState:
    replica = PartitionState(state.name, Folds(NO_POLICIES))
    restore(replica, make(state))
    return replica


def _living(state: PartitionState) -> Image:
    return LivingImage(state, is_planned_by_context=False)


@pytest.mark.parametrize(("number", "topology"), [(24, "proposing"), (307, "fused")])
def test_a_follower_knows_what_managers_are_told(number: int, topology: TopologyName) -> None:
    """How a core plans goes by it: one that tells them why asks wait looks at more at a time."""
    assert differences(24, number, topology, "replica") == []


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_full_backlog_holds_no_request_back(topology: TopologyName) -> None:
    """The manager may have two requests unhandled, and makes six at one moment."""
    core, _ = cluster(topology, node_1=2_000)
    core.update_configuration(
        si.UpdateConfigurationRequest(rm_id=RM, extra_config={"rm.maxUnhandled": "2"})
    )
    core.run_until_idle()
    asks = [
        si.AllocationAsk(
            application_id="job", allocation_key=f"k{priority}", priority=priority,
            resource_ask=si.Resource.of({"vcore": 2_000}),
        )
        for priority in range(6)
    ]  # fmt: skip
    changes = tuple(Change(si.AllocationRequest(rm_id=RM, asks=(ask,))) for ask in asks)
    found = World(core._simulator, changes)
    simulated = found.simulated(state_of(core._simulator)).course
    done = found.done()
    assert [it.key for it in simulated.placed] == [it.key for it in done.placed] == ["k5"]


@pytest.mark.parametrize("node_id", ["node-1", "node-2"])
def test_a_dump_tells_of_swaps_under_way(node_id: str) -> None:
    """Both placeholders are on one node; one has to make room, for a smaller member here or there."""
    core, made = cluster("fused", node_1=2_000)
    made.submit("gang", placeholder_ask=si.Resource.of({"vcore": 2_000}))
    for key in ("hold-1", "hold-2"):
        made.ask("gang", key, 1_000, placeholder=True, task_group_name="tg")
    made.nodes(node_2=2_000)
    only = {si.constants.TAG_REQUIRED_NODE: node_id}
    made.ask("gang", "member", 500, task_group_name="tg", tags=only)
    (part,) = core.state_dump()["partitions"].values()
    (swap,) = part["applications"]["gang"]["swaps"]
    assert (swap["node"], swap["crosses"]) == (node_id, node_id == "node-2")
    assert list(unlike_dump(core._simulator)) == []


def test_to_come_back_as_one_was_is_no_part_of_a_turn() -> None:
    """Managers that share a core take turns: one that has used some has less of its next part."""
    core, _ = cluster("fused", node_1=2_000)
    for rm_id in ("rm-2", "rm-3"):
        other = si.RegisterResourceManagerRequest(rm_id=rm_id)
        core.register_resource_manager(other, si.ResourceManagerCallback())
    copy, state = Copy(state_of(core._simulator)), state_of(core._simulator)
    for known in state.registered.managers:
        copy.go_on_with(known, si.ResourceManagerCallback())
    copy.settle()
    assert "at_context" not in copy.machines[RM_PROXY].canonical_state()


def test_which_kept_node_had_room_first_begins_anew() -> None:
    core, made = cluster("fused", node_1=2_000, node_2=2_000)
    made.submit("other", "job")
    for number in ("1", "2"):
        only = {si.constants.TAG_REQUIRED_NODE: f"node-{number}"}
        made.ask("other", number, 2_000, tags=only)
        made.ask("job", number, 1_000, tags=only)
    found = list(remembers(core._simulator.machines))
    assert found == ["which of the nodes that are kept had room first"]
    assert "which of the nodes that are kept for asks had room first" in BEGUN_ANEW


def test_how_long_a_queue_has_been_empty_begins_anew() -> None:
    """The answer says so; from a copy of the machines nothing begins anew."""
    core = VirtualCore(topology="fused")
    core.start()
    config = "partitions: [{name: default, placementrules: [{name: user, create: true}], "
    config += "queues: [{name: root, submitacl: '*'}]}]"
    request = si.RegisterResourceManagerRequest(rm_id=RM, config=config)
    core.register_resource_manager(request, si.ResourceManagerCallback())
    user = si.UserGroupInformation(user="ann")
    new = si.AddApplicationRequest(application_id="app", ugi=user)
    core.update_application(si.ApplicationRequest(rm_id=RM, new=(new,)))
    core.run_until_idle()
    gone = si.RemoveApplicationRequest(application_id="app")
    core.update_application(si.ApplicationRequest(rm_id=RM, remove=(gone,)))
    core.advance_to(core.now_ns + 6 * SECOND)
    assert list(remembers(core._simulator.machines)) == ["an empty queue"]
    state = state_of(core._simulator)
    anew = simulate(state, until=7.0).course.digest
    copied = simulate(state, until=7.0, origin=core._simulator).course.digest
    core.advance_to(core.now_ns + 7 * SECOND)
    assert anew != copied == digest_of(core._simulator)
    assert "how long a queue has been empty" in BEGUN_ANEW


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


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_copy_of_a_replica_goes_on_with_the_uuids_of_its_core(
    topology: TopologyName, tmp_path: Path
) -> None:
    """Of victims that are alike in all else the UUID decides."""
    core, made = cluster(topology, node_1=4_000)
    made.ask("old", "first", 1_000, max_allocations=2)
    state = BEGINNINGS["replica"](core._simulator, tmp_path)
    more = si.AllocationAsk(
        application_id="old", allocation_key="more", resource_ask=si.Resource.of({"vcore": 1_000})
    )
    request = si.AllocationRequest(rm_id=RM, asks=(more,))
    (placed,) = simulate(state, request, until=0).course.placed
    core.update_allocation(request)
    core.run_until_idle()
    (app,) = (part["applications"]["old"] for part in core.state_dump()["partitions"].values())
    assert placed.uuid in {it["uuid"] for it in app["allocations"]}


def test_a_state_from_a_dump_is_as_far_as_its_core() -> None:
    """Timers, what gangs have had, budgets that are spent, quotas that come due, who is away."""
    seen: Counter[str] = Counter()
    seldom = [(31, number) for number in (96, 195, 207, 344)]
    for name in (*((31, number) for number in range(60)), *seldom, (461, 35), (452, 16)):
        found = world(*name, "proposing", is_whole=False)
        if found is None:
            continue
        assert list(unlike_dump(found.simulator)) == [], name
        for state in _states(found):
            seen["quotas"] += bool(state.quotas)
            seen["budgets"] += any(it.preempted for it in state.queues.values())
            seen["away"] += state.suspended
            for app in state.applications.values():
                seen["timers"] += bool(app.timers)
                seen["admitted"] += app.is_admitted
                seen["swaps"] += bool(app.swaps)
                seen["failing"] += app.state is ApplicationState.FAILING
                seen["spared"] += any(app.spared.values())
    assert {*seen} == {it for it, count in seen.items() if count}, seen
