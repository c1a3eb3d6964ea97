"""R-056, R-087, R-088, R-101: a resource manager comes back and tells again what it has.

What an application is must not depend on the order in which its parts are told, its state follows
from what it has, and its place among the others from the oldest part.
"""

from itertools import permutations
from typing import Any

from support import APP, RM, Lab, Recorder, ask, report

from yunikorn_actors import si
from yunikorn_actors.machines.topology import TOPOLOGIES
from yunikorn_actors.state.dump import snapshot

OLD = {si.constants.TAG_CREATION_TIME: "1700000000"}
OLDER = {si.constants.TAG_CREATION_TIME: "1600000000"}
OLDEST_NS = 1_600_000_000 * 10**9
PARTS: dict[str, dict[str, Any]] = {
    "driver": {"allocations": (report("driver", "n1", allocation_tags=OLDER),)},
    "executor": {"allocations": (report("executor", "n1", 2, allocation_tags=OLD),)},
    "ask": {"asks": (ask("ask", 99, tags=OLD),)},
}


def _restarted(lab: Lab) -> Lab:
    """A first life with the same work; then the resource manager registers again."""
    lab.submit(APP)
    lab.nodes(n1=10)
    lab.ask("driver")
    lab.settle()
    lab.register(Recorder())
    lab.nodes(n1=10)
    lab.submit(APP)
    lab.settle()
    return lab


def _story(lab: Lab) -> dict[str, Any]:
    app = snapshot(lab.state)["applications"][APP]
    for item in app["asks"]:
        # When it arrived is the order itself.
        del item["sequence"]
    return {
        "keys": sorted(item["key"] for item in app.pop("allocations")),
        **{name: app[name] for name in ("state", "user", "submitted_ns", "asks", "allocated")},
    }


def test_r087_in_any_order() -> None:
    stories = []
    for order in permutations(PARTS):
        lab = _restarted(Lab())
        for name in order:
            lab.request(**PARTS[name])
            lab.settle()
        stories.append(_story(lab))
        assert lab.leftovers() == {}
    assert [stories[0]] * 6 == stories
    assert ("Running", OLDEST_NS) == (stories[0]["state"], stories[0]["submitted_ns"])


def test_r088_an_ask_makes_it_accepted_and_work_makes_it_running() -> None:
    for parts, told in (
        (("ask",), ["Accepted"]),
        (("driver",), ["Accepted", "Running"]),
        (("ask", "driver"), ["Accepted", "Running"]),
        (("driver", "ask"), ["Accepted", "Running"]),
    ):
        lab = _restarted(Lab())
        for name in parts:
            lab.request(**PARTS[name])
        lab.settle()
        assert told == [state for _, state in lab.rm.told("state")]


def test_r088_work_that_comes_with_its_node() -> None:
    lab = Lab()
    lab.submit(APP)
    info = si.NodeInfo(
        node_id="n1",
        action=si.ActionFromRM.CREATE,
        schedulable_resource=si.Resource.of({"vcore": 10}),
        existing_allocations=(report("driver", ""),),
    )
    lab.simulator.update_node(si.NodeRequest(rm_id=RM, nodes=(info,)))
    lab.settle()
    assert [(APP, "Accepted"), (APP, "Running")] == lab.rm.told("state")
    assert [] == lab.rm.told("new")


def _first_served(*, has_older_work: bool) -> str:
    """Let two applications wait, and return the ask that gets the room."""
    lab = Lab()
    lab.submit("app-2")
    lab.advance(1)
    lab.submit(APP)
    lab.ask("two", vcore=3, app="app-2")
    lab.ask("one", vcore=3)
    lab.nodes(small=1)
    lab.settle()
    if has_older_work:
        lab.report(report("driver", "small", allocation_tags=OLDER))
    lab.settle()
    assert lab.waiting() == ["one", "two"]
    lab.nodes(n1=3)
    lab.settle()
    ((key, _),) = [line for line in lab.rm.told("new") if line[0] != "driver"]
    return str(key)


def test_r101_the_oldest_part_gives_the_place() -> None:
    """It came last, so the order is worked out again."""
    assert "two" == _first_served(has_older_work=False)
    assert "one" == _first_served(has_older_work=True)


def test_r088_work_that_comes_with_its_node_and_waits_as_an_ask() -> None:
    """The resource manager asked again before it said what runs: it is not told what it told."""
    for topology in TOPOLOGIES:
        lab = Lab(topology=topology)
        lab.submit(APP)
        lab.ask("driver")
        lab.settle()
        lab.rm.heard.clear()
        info = si.NodeInfo(
            node_id="n1",
            action=si.ActionFromRM.CREATE,
            schedulable_resource=si.Resource.of({"vcore": 10}),
            existing_allocations=(report("driver", "", uuid="old-1"),),
        )
        lab.simulator.update_node(si.NodeRequest(rm_id=RM, nodes=(info,)))
        lab.settle()
        assert [("node", "n1", "accepted"), ("state", APP, "Running")] == lab.rm.heard
        assert ["old-1"] == list(lab.state.nodes["n1"].allocations)
        assert [] == lab.waiting()
