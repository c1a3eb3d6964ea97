"""Devices one by one: what is asked for, what is decided on an old view, and what leaves.

The checkers of every `Lab` add the parts of each device up after each message.
"""

from typing import Any

import pytest
from confirming import Confirming, Victims, confirming_lab, policy
from devices import (
    GPU_DEVICES,
    device_tags,
    free_on,
    gpu_ask,
    gpu_node,
    gpu_report,
    placed,
    size,
)
from ganging import GROUP, Manager, confirm, topologies
from support import APP, RM, Lab, Recorder, labs

from yunikorn_actors import si
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.planning.preemption.claimant import is_usable
from yunikorn_actors.state.allocations import AskSpec
from yunikorn_actors.state.dump import snapshot
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.snapshot import image_of, restore


class Tagged(Recorder):
    """Remembers the devices that each allocation was announced with."""

    def __init__(self) -> None:
        super().__init__()
        self.devices: dict[str, str | None] = {}
        self.refused: dict[str, str] = {}

    def update_allocation(self, response: si.AllocationResponse) -> None:
        super().update_allocation(response)
        for new in response.new:
            self.devices[new.allocation_key] = new.allocation_tags.get(GPU_DEVICES)

    def update_node(self, response: si.NodeResponse) -> None:
        super().update_node(response)
        self.refused |= {it.node_id: it.reason for it in response.rejected}


@topologies
def test_shares_fill_a_device_and_leave_the_others_whole(topology: TopologyName) -> None:
    lab = Lab(topology=topology, rm=Tagged())
    gpu_node(lab, "n1", 3)
    lab.submit(APP)
    gpu_ask(lab, "a", "b", "c", gpu=500)
    gpu_ask(lab, "d", gpu=300)
    lab.settle()
    assert {"a": (0,), "b": (0,), "c": (1,), "d": (1,)} == {
        key: devices for key, (_, devices) in placed(lab).items()
    }
    assert [0, 200, 1000] == free_on(lab, "n1")
    gpu_ask(lab, "whole", gpu=1000)
    gpu_ask(lab, "two", gpu=2000)
    lab.settle()
    assert ("n1", (2,)) == placed(lab)["whole"]
    assert ["two"] == lab.waiting()
    assert {"a": "0", "b": "0", "c": "1", "d": "1", "whole": "2"} == lab.rm.devices
    lab.release("a", "b")
    lab.settle()
    assert [1000, 200, 0] == free_on(lab, "n1")
    lab.release("c", "d")
    lab.settle()
    assert ("n1", (0, 1)) == placed(lab)["two"]
    assert lab.leftovers() == {}
    assert [1000] * 3 == free_on(lab, "n1")


@topologies
def test_the_sum_of_the_parts_is_no_device(topology: TopologyName) -> None:
    """Of two devices 400 each is free: 800 in all, and an ask for 500 waits."""
    lab = Lab(topology=topology)
    gpu_node(lab, "n1", 2)
    lab.submit(APP)
    gpu_ask(lab, "a", "b", gpu=600)
    gpu_ask(lab, "c", gpu=500)
    lab.settle()
    assert 800 == lab.state.nodes["n1"].available["gpu"]
    assert ["c"] == lab.waiting()
    gpu_ask(lab, "d", gpu=400)
    lab.settle()
    assert ["c"] == lab.waiting()
    lab.release("b")
    lab.settle()
    assert ("n1", (1,)) == placed(lab)["c"]


@topologies
def test_an_ask_names_models(topology: TopologyName) -> None:
    lab = Lab(topology=topology)
    gpu_node(lab, "n1", 2, "T4")
    gpu_node(lab, "n2", 2, "V100")
    lab.submit(APP)
    gpu_ask(lab, "any-of-two", gpu=500, model="A100|V100")
    gpu_ask(lab, "none", gpu=500, model="A100")
    gpu_ask(lab, "whatever", gpu=2000)
    lab.settle()
    assert {"any-of-two": ("n2", (0,)), "whatever": ("n1", (0, 1))} == placed(lab)
    gpu_node(lab, "n3", 1, "A100")
    lab.settle()
    assert ("n3", (0,)) == placed(lab)["none"]


def test_a_node_without_such_attributes_goes_by_amounts_alone() -> None:
    """Of what it calls `gpu` any amount will do, as of every type; a model it has not."""
    lab = Lab()
    lab.simulator.update_node(
        si.NodeRequest(
            rm_id=RM,
            nodes=(
                si.NodeInfo(
                    node_id="n1",
                    action=si.ActionFromRM.CREATE,
                    schedulable_resource=size(8, 100),
                ),
            ),
        )
    )
    lab.submit(APP)
    gpu_ask(lab, "a", gpu=3)
    gpu_ask(lab, "b", gpu=3, model="V100")
    lab.settle()
    assert {"a": ("n1", ())} == placed(lab)


@pytest.mark.parametrize(
    ("attributes", "gpu", "said"),
    [
        ({GPU_DEVICES: "two"}, 2000, "'two' is no number of devices"),
        ({GPU_DEVICES: "2"}, 2, "2 devices are gpu 2000, and its capacity has 2"),
    ],
)
def test_a_node_that_contradicts_itself_is_rejected(
    attributes: dict[str, str], gpu: int, said: str
) -> None:
    rm = Tagged()
    lab = Lab(rm=rm)
    info = si.NodeInfo(
        node_id="n1",
        action=si.ActionFromRM.CREATE,
        attributes=attributes,
        schedulable_resource=size(gpu),
    )
    lab.simulator.update_node(si.NodeRequest(rm_id=RM, nodes=(info,)))
    lab.settle()
    assert said in rm.refused["n1"]
    gpu_node(lab, "n2", 2)
    lab.settle()
    update = si.NodeInfo(
        node_id="n2",
        action=si.ActionFromRM.UPDATE,
        attributes=attributes,
        schedulable_resource=size(gpu),
    )
    lab.simulator.update_node(si.NodeRequest(rm_id=RM, nodes=(update,)))
    lab.settle()
    assert 1 == lab.state.refused_node_actions
    assert [1000, 1000] == free_on(lab, "n2")


# -- decided on an old view


def test_a_report_takes_the_device_that_was_decided_for_an_ask() -> None:
    """The amounts would still do, so Context has to look at the device; then another is chosen."""
    raced = 0
    for lab in labs(range(1, 60)):
        gpu_node(lab, "n1", 2)
        lab.submit(APP)
        lab.settle()
        gpu_ask(lab, "a", gpu=600)
        lab.report(gpu_report("b", "n1", 700, "0"))
        lab.settle()
        assert ("n1", (0,)) == placed(lab)["b"]
        refused = lab.races.refusals.total()
        raced += refused
        if refused:
            assert {"a": ("n1", (1,)), "b": ("n1", (0,))} == placed(lab)
        assert lab.leftovers() == {}
    assert raced, "vacuous: the report never came in between"


@topologies
def test_devices_on_their_way_are_taken(topology: TopologyName) -> None:
    """One plan decides for many: each counts what those before it took of each device."""
    lab = Lab(topology=topology)
    gpu_node(lab, "n1", 4)
    lab.submit(APP)
    gpu_ask(lab, *(f"k{number}" for number in range(8)), gpu=700)
    gpu_ask(lab, *(f"s{number}" for number in range(8)), gpu=300)
    lab.settle()
    assert 8 == len(placed(lab))
    assert not lab.races.refusals
    assert [0, 0, 0, 0] == free_on(lab, "n1")
    assert {f"k{number}": (number,) for number in range(4)} == {
        key: devices for key, (_, devices) in placed(lab).items() if key.startswith("k")
    }


# -- nodes that change


@topologies
def test_a_node_that_grows_has_more_devices(topology: TopologyName) -> None:
    lab = Lab(topology=topology)
    gpu_node(lab, "n1", 1)
    lab.submit(APP)
    gpu_ask(lab, "a", gpu=500)
    gpu_ask(lab, "b", gpu=2000)
    lab.settle()
    assert ["b"] == lab.waiting()
    gpu_node(lab, "n1", 3, action=si.ActionFromRM.UPDATE)
    lab.settle()
    assert {"a": ("n1", (0,)), "b": ("n1", (1, 2))} == placed(lab)
    # Smaller again: what runs stays, and has nothing to give back on devices that are gone.
    gpu_node(lab, "n1", 1, action=si.ActionFromRM.UPDATE)
    lab.settle()
    assert [500] == free_on(lab, "n1")
    lab.release("b")
    gpu_ask(lab, "c", gpu=500)
    lab.settle()
    assert {"a": ("n1", (0,)), "c": ("n1", (0,))} == placed(lab)
    assert lab.leftovers() == {}


@topologies
def test_attributes_alone_change_what_a_node_can_take(topology: TopologyName) -> None:
    lab = Lab(topology=topology)
    gpu_node(lab, "n1", 2, "T4")
    lab.submit(APP)
    gpu_ask(lab, "a", "b", gpu=600)
    gpu_ask(lab, "c", gpu=500)
    gpu_ask(lab, "d", gpu=300, model="V100")
    lab.settle()
    assert ["c", "d"] == lab.waiting()
    info = si.NodeInfo(
        node_id="n1", action=si.ActionFromRM.UPDATE, attributes=device_tags(2, "V100")
    )
    lab.simulator.update_node(si.NodeRequest(rm_id=RM, nodes=(info,)))
    lab.settle()
    assert ["c"] == lab.waiting()
    # It tells its devices apart no longer: the amounts alone count, and are enough.
    lab.release("d")
    plain = si.NodeInfo(node_id="n1", action=si.ActionFromRM.UPDATE, attributes={"zone": "a"})
    lab.simulator.update_node(si.NodeRequest(rm_id=RM, nodes=(plain,)))
    lab.settle()
    assert [] == lab.waiting()
    assert free_on(lab, "n1") is None
    assert lab.leftovers() == {}


def test_what_is_lost_with_a_node_is_placed_on_another() -> None:
    lab = Lab()
    gpu_node(lab, "n1", 1)
    lab.submit(APP)
    gpu_ask(lab, "a", gpu=1000)
    lab.settle()
    gpu_node(lab, "n2", 1)
    gpu_ask(lab, "b", gpu=400)
    lab.settle()
    lab.decommission("n1")
    gpu_ask(lab, "a", gpu=500)
    lab.settle()
    assert {"a": ("n2", (0,)), "b": ("n2", (0,))} == placed(lab)


# -- work that runs already


@topologies
def test_work_that_runs_names_its_devices(topology: TopologyName) -> None:
    lab = Lab(topology=topology, rm=Tagged())
    lab.submit(APP)
    known = (
        gpu_report("a", "n1", 500, "2"),
        gpu_report("b", "n1", 2000, "0,3"),
        gpu_report("unknown", "n1", 300),
        gpu_report("nonsense", "n1", 200, "7"),
    )
    gpu_node(lab, "n1", 4, running=known)
    lab.settle()
    assert {
        "a": ("n1", (2,)),
        "b": ("n1", (0, 3)),
        "nonsense": ("n1", (2,)),
        "unknown": ("n1", (2,)),
    } == placed(lab)
    assert [0, 1000, 0, 0] == free_on(lab, "n1")
    gpu_ask(lab, "c", gpu=1000)
    lab.settle()
    assert ("n1", (1,)) == placed(lab)["c"]


def test_more_than_a_device_has_may_run_there_already() -> None:
    """It is a report: less than nothing is free, and nothing is placed there."""
    lab = Lab()
    lab.submit(APP)
    gpu_node(
        lab,
        "n1",
        2,
        running=(gpu_report("a", "n1", 700, "1"), gpu_report("b", "n1", 700, "1")),
    )
    gpu_ask(lab, "c", "d", gpu=500)
    lab.settle()
    assert [500, -400] == free_on(lab, "n1")
    assert ("n1", (0,)) == placed(lab)["c"]
    assert ["d"] == lab.waiting()


@pytest.mark.parametrize(
    ("gpu", "named", "devices", "free"),
    [
        (700, "", (0,), [300, 1000, 1000]),
        (700, "2", (2,), [1000, 1000, 300]),
        (2000, "0,2", (0, 2), [0, 1000, 0]),
        (2000, "0,3", (), [1000, 1000, 1000]),
        (2000, "", (), [1000, 1000, 1000]),
        (1500, "", (), [1000, 1000, 1000]),
        (0, "", (), [1000, 1000, 1000]),
    ],
)
def test_what_runs_has_another_size_now(
    gpu: int, named: str, devices: tuple[int, ...], free: list[int]
) -> None:
    """Only its resource manager knows of which devices it has more; the amounts count anyway."""
    lab = Lab()
    gpu_node(lab, "n1", 3)
    lab.submit(APP)
    gpu_ask(lab, "a", gpu=500)
    lab.settle()
    (uuid,) = lab.state.owners
    lab.report(gpu_report("a", "n1", gpu, named, uuid=uuid))
    lab.settle()
    assert {"a": ("n1", devices)} == placed(lab)
    assert free == free_on(lab, "n1")
    assert lab.leftovers() == {}


def test_a_snapshot_counts_devices_anew() -> None:
    lab = Lab(rm=Manager(("m", "n1")))
    gang_with_devices(lab)
    gpu_node(lab, "n2", 2)
    members(lab, "m")
    assert lab.state.nodes["n2"].incoming, "vacuous: nothing holds devices for a swap"
    again = PartitionState(lab.state.name)
    restore(again, image_of(lab.state))
    assert snapshot(lab.state) == snapshot(again)
    assert [500, 1000] == again.nodes["n2"].parts


# -- gangs


def gang_with_devices(lab: Lab, *, gpu: int = 500, count: int = 2, number: int = 2) -> None:
    gpu_node(lab, "n1", count, "V100")
    lab.submit(APP, placeholder_ask=size(gpu * number, number))
    keys = [f"ph-{place}" for place in range(number)]
    gpu_ask(lab, *keys, gpu=gpu, task_group_name=GROUP, placeholder=True)
    lab.settle()
    assert keys == lab.running()


def members(lab: Lab, *keys: str, gpu: int = 500, **said: Any) -> None:
    gpu_ask(lab, *keys, gpu=gpu, task_group_name=GROUP, **said)
    lab.settle()


def taken_over(lab: Lab) -> str:
    """Return the key of the placeholder that a swap asked back."""
    app = lab.state.applications[APP]
    (swap,) = app.swaps.values()
    return app.allocations[swap.placeholder].spec.key


@topologies
@pytest.mark.parametrize(("gpu", "free"), [(500, [0]), (200, [300])])
def test_a_member_has_the_device_of_its_placeholder(
    topology: TopologyName, gpu: int, free: list[int]
) -> None:
    lab = Lab(topology=topology, rm=Manager())
    gang_with_devices(lab, count=1)
    members(lab, "m", gpu=gpu)
    confirm(lab, taken_over(lab))
    lab.settle()
    assert ("n1", (0,)) == placed(lab)["m"]
    assert free == free_on(lab, "n1")
    assert lab.leftovers() == {}


@topologies
def test_a_smaller_member_has_one_of_the_whole_devices(topology: TopologyName) -> None:
    lab = Lab(topology=topology, rm=Manager())
    gang_with_devices(lab, gpu=2000, count=4)
    members(lab, "m", gpu=1000)
    members(lab, "share", gpu=300)
    confirm(lab, "ph-0", "ph-1")
    lab.settle()
    assert {"m": ("n1", (0,)), "share": ("n1", (2,))} == placed(lab)
    assert [0, 1000, 700, 1000] == free_on(lab, "n1")


@topologies
def test_a_member_moves_to_devices_of_another_node(topology: TopologyName) -> None:
    """They are its own from the moment on in which it is parked."""
    lab = Lab(topology=topology, rm=Manager(("m", "n1")))
    gang_with_devices(lab)
    gpu_node(lab, "n2", 1)
    members(lab, "m")
    assert [500] == free_on(lab, "n2")
    lab.submit("other")
    gpu_ask(lab, "late", gpu=600, app="other")
    lab.settle()
    assert ("n1", (1,)) == placed(lab)["late"]
    confirm(lab, taken_over(lab))
    lab.settle()
    assert ("n2", (0,)) == placed(lab)["m"]
    assert [500] == free_on(lab, "n2")
    assert lab.leftovers() == {}


@topologies
def test_a_swap_that_is_called_off_gives_the_devices_back(topology: TopologyName) -> None:
    lab = Lab(topology=topology, rm=Manager(("m", "n1")))
    gang_with_devices(lab)
    gpu_node(lab, "n2", 1)
    members(lab, "m")
    assert [500] == free_on(lab, "n2")
    lab.withdraw("m")
    lab.settle()
    assert [1000] == free_on(lab, "n2")


@topologies
def test_a_member_wants_another_model_than_its_placeholder_has(topology: TopologyName) -> None:
    lab = Lab(topology=topology, rm=Manager())
    gang_with_devices(lab)
    members(lab, "m", model="A100")
    assert ["m"] == lab.waiting()
    gpu_node(lab, "n2", 1, "A100")
    lab.settle()
    confirm(lab, taken_over(lab))
    lab.settle()
    assert ("n2", (0,)) == placed(lab)["m"]


# -- preemption, reservations, required nodes

CONTEST = (
    "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: ["
    "{name: rich}, {name: poor, properties: {preemption.delay: 1s}, "
    "resources: {guaranteed: {gpu: 4000}}}]}]}]"
)


def contested(topology: TopologyName = "proposing", *, at_once: bool = True) -> tuple[Lab, Victims]:
    """Two devices: on the first 700 and 200 of `rich`, on the second 800; 300 are free in all."""
    seen = Victims()
    rm = Confirming(at_once=at_once)
    lab = confirming_lab(CONTEST, topology=topology, rm=rm, checkers=(seen,))
    gpu_node(lab, "n1", 2)
    lab.submit("rich", queue="root.rich")
    lab.submit("poor", queue="root.poor")
    for key, gpu in (("r700", 700), ("r800", 800), ("r200", 200)):
        gpu_ask(lab, key, gpu=gpu, app="rich")
        lab.settle()
    assert {"r700": (0,), "r800": (1,), "r200": (1,)} == {
        key: devices for key, (_, devices) in placed(lab).items()
    }
    return lab, seen


@topologies
@pytest.mark.parametrize(
    ("gpu", "victims"),
    [(300, []), (400, ["r700"]), (1000, ["r700"]), (200, [])],
)
def test_victims_make_room_on_one_device(
    topology: TopologyName, gpu: int, victims: list[str]
) -> None:
    """Of two that would do the search takes the one that leaves the fewest to go."""
    lab, seen = contested(topology)
    gpu_ask(lab, "p", gpu=gpu, app="poor", preemption_policy=policy())
    lab.advance(3)
    assert victims == seen.keys()
    assert "p" in placed(lab)
    assert ("n1", (0,)) == placed(lab)["p"]


@topologies
def test_the_victims_of_two_devices_go_for_two_whole_ones(topology: TopologyName) -> None:
    lab, seen = contested(topology)
    gpu_ask(lab, "p", gpu=2000, app="poor", preemption_policy=policy())
    lab.advance(3)
    assert {"r200", "r700", "r800"} == set(seen.keys())
    assert {"p": ("n1", (0, 1))} == placed(lab)


@topologies
def test_nobody_takes_the_device_that_victims_left_for_another(topology: TopologyName) -> None:
    """700 of the device are free before its other user has gone: they are for `p` alone."""
    rm = Confirming(at_once=False)
    lab = confirming_lab(CONTEST, topology=topology, rm=rm)
    gpu_node(lab, "n1", 3)
    lab.submit("rich", queue="root.rich")
    lab.submit("poor", queue="root.poor")
    gpu_ask(lab, "r500", "s500", gpu=500, app="rich")
    gpu_ask(lab, "t200", "u200", "v200", gpu=200, app="rich")
    lab.settle()
    gpu_ask(lab, "u900", gpu=900, app="rich", preemption_policy=policy(willing=False))
    lab.settle()
    assert [0, 400, 100] == free_on(lab, "n1")
    gpu_ask(lab, "p1", gpu=1000, app="poor", preemption_policy=policy())
    lab.advance(3)
    assert {"r500", "s500"} == {item.allocation_key for item in rm.outstanding}
    gpu_ask(lab, "p2", gpu=500, app="poor", preemption_policy=policy())
    lab.advance(3)
    goes = {item.allocation_key: item for item in rm.outstanding}
    (third,) = goes.keys() - {"r500", "s500"}
    assert ("n1", (1,)) == placed(lab)[third]
    confirm_one(rm, goes["r500"])
    # Half of the first is free now, and of all together enough for `p2`: it is not for that.
    assert [500, 400, 100] == free_on(lab, "n1")
    assert ["p1", "p2"] == lab.waiting()
    confirm_one(rm, goes[third])
    assert ("n1", (1,)) == placed(lab)["p2"]
    confirm_one(rm, goes["s500"])
    assert ("n1", (0,)) == placed(lab)["p1"]
    assert [0, 100, 100] == free_on(lab, "n1")


def confirm_one(rm: Confirming, item: si.AllocationRelease) -> None:
    rest = [other for other in rm.outstanding if other is not item]
    rm.outstanding[:] = [item]
    rm.confirm_all()
    rm.outstanding[:] = rest
    rm.lab.settle()


@topologies
def test_an_ask_that_requires_a_node_preempts_on_one_device(topology: TopologyName) -> None:
    seen = Victims()
    lab = confirming_lab(CONTEST, topology=topology, checkers=(seen,))
    gpu_node(lab, "n1", 2)
    lab.submit("rich", queue="root.rich")
    lab.submit("poor", queue="root.poor")
    gpu_ask(lab, "a", "b", gpu=600, app="rich")
    lab.settle()
    tags = {si.constants.TAG_REQUIRED_NODE: "n1"}
    gpu_ask(lab, "p", gpu=1000, app="poor", tags=tags, preemption_policy=policy())
    lab.advance(3)
    assert 1 == len(seen.keys())
    assert "p" in placed(lab)
    # Both devices have other work, and no victims of any kind give three.
    gpu_ask(lab, "never", gpu=3000, app="poor", tags=tags, preemption_policy=policy())
    lab.advance(3)
    assert 1 == len(seen.keys())
    assert 0 == lab.state.reservation_count


@topologies
def test_a_node_that_could_never_hold_it_is_not_reserved(topology: TopologyName) -> None:
    """n1 has the amount, on two devices; only n2 has such a device."""
    lab = Lab(topology=topology)
    gpu_node(lab, "n1", 2, "T4")
    gpu_node(lab, "n2", 1, "V100")
    lab.submit(APP)
    gpu_ask(lab, "a", "b", "c", gpu=600)
    lab.settle()
    gpu_ask(lab, "wants", gpu=700, model="V100")
    lab.advance(5)
    assert ["n2"] == [id_ for id_, node in lab.state.nodes.items() if node.reservations]
    gpu_node(lab, "n2", 1, "T4", action=si.ActionFromRM.UPDATE)
    lab.settle()
    assert 0 == lab.state.reservation_count


def test_a_node_that_is_about_to_open_is_no_place_for_another_model() -> None:
    """Who has it reserved is placed in this very plan; its devices stay what they are."""
    lab = Lab()
    gpu_node(lab, "n1", 2, "T4")
    lab.settle()
    (node,) = lab.state.nodes.values()
    for model, is_such in (("T4", True), ("A100", False)):
        spec = AskSpec(application_id="a", key="k", resource={"gpu": 500}, gpu_model=model)
        assert is_such == is_usable(lab.state, node, spec, is_opening=True)
    gpu_node(lab, "n1", 2, "T4", action=si.ActionFromRM.DRAIN_NODE)
    lab.settle()
    spec = AskSpec(application_id="a", key="k", resource={"gpu": 500})
    assert not is_usable(lab.state, node, spec, is_opening=True)
