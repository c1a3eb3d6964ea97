"""The order of work inside one request, and of its answers.

Asks, then ask releases, then allocation releases; applications added before removed. The outcome is
at most one batch each of rejected, released and new, in that order.
"""

from typing import Any

import pytest
from support import APP, QUEUE, RM, Lab, Recorder, ask, report

from yunikorn_actors import si


class Batches(Recorder):
    """Notes of each response which parts it has and what stands in them."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[dict[str, list[str]]] = []

    def update_allocation(self, response: si.AllocationResponse) -> None:
        super().update_allocation(response)
        parts: dict[str, tuple[Any, ...]] = {
            "rejected": response.rejected,
            "rejected_allocations": response.rejected_allocations,
            "released": response.released,
            "new": response.new,
        }
        keys = {name: [item.allocation_key for item in items] for name, items in parts.items()}
        self.batches.append({name: listed for name, listed in keys.items() if listed})


@pytest.fixture(params=["proposing", "fused"])
def lab(request: pytest.FixtureRequest) -> Lab:
    """An application with one allocation, `old`, and room for more."""
    lab = Lab(topology=request.param, rm=Batches())
    lab.submit(APP)
    lab.nodes(n1=10)
    lab.ask("old")
    lab.settle()
    return lab


def _batches(lab: Lab) -> list[dict[str, list[str]]]:
    assert isinstance(lab.rm, Batches)
    return lab.rm.batches


def _ask_release(key: str) -> si.AllocationAskRelease:
    return si.AllocationAskRelease(application_id=APP, allocation_key=key)


def _release(key: str, **fields: Any) -> si.AllocationRelease:
    return si.AllocationRelease(application_id=APP, allocation_key=key, **fields)


def _releases(
    asks: tuple[si.AllocationAskRelease, ...] = (),
    allocations: tuple[si.AllocationRelease, ...] = (),
) -> si.AllocationReleasesRequest:
    return si.AllocationReleasesRequest(
        allocations_to_release=allocations, allocation_asks_to_release=asks
    )


def test_a_new_key_in_all_three(lab: Lab) -> None:
    """Asked, withdrawn, and then there is nothing to release."""
    before = list(_batches(lab))
    lab.request(asks=(ask("k"),), releases=_releases((_ask_release("k"),), (_release("k"),)))
    lab.settle()
    assert (["old"], []) == (lab.running(), lab.waiting())
    assert before == _batches(lab)


def test_an_allocated_key_in_all_three(lab: Lab) -> None:
    """The ask is known, its withdrawal takes the allocation, the release comes too late."""
    before = len(_batches(lab))
    lab.request(asks=(ask("old"),), releases=_releases((_ask_release("old"),), (_release("old"),)))
    lab.settle()
    assert ([], []) == (lab.running(), lab.waiting())
    assert [{"released": ["old"]}] == _batches(lab)[before:]


def test_a_key_asked_and_released(lab: Lab) -> None:
    """The release takes the ask that came with it."""
    before = list(_batches(lab))
    lab.request(asks=(ask("k"),), releases=_releases((), (_release("k"),)))
    lab.settle()
    assert (["old"], []) == (lab.running(), lab.waiting())
    assert before == _batches(lab)


def test_a_report_and_its_release(lab: Lab) -> None:
    """What is reported and released in one request is told in the order of the interface."""
    before = len(_batches(lab))
    lab.request(allocations=(report("r", "n1"),), releases=_releases((), (_release("r"),)))
    lab.settle()
    told = _batches(lab)[before:]
    assert [{"released": ["r"]}, {"new": ["r"]}] == told
    assert "r" not in [item.spec.key for item in lab.state.applications[APP].allocations.values()]


def test_the_order_of_the_answers(lab: Lab) -> None:
    before = len(_batches(lab))
    lab.request(
        allocations=(report("r1", "n1"), report("bad-2", "ghost"), report("r2", "n1")),
        asks=(ask("bad-1", app="ghost"), ask("bad-3", -1)),
        releases=_releases((), (_release("old"), _release("nothing"))),
    )
    lab.settle()
    assert [
        {"rejected": ["bad-1", "bad-3"], "rejected_allocations": ["bad-2"]},
        {"released": ["old"]},
        {"new": ["r1", "r2"]},
    ] == _batches(lab)[before:]


def test_everything_of_an_application_in_one_batch(lab: Lab) -> None:
    lab.ask("a", "b")
    lab.ask("waits", vcore=99)
    lab.settle()
    before = len(_batches(lab))
    lab.remove(APP)
    lab.settle()
    assert [{"released": ["old", "a", "b"]}] == _batches(lab)[before:]
    assert ("released", "old", "STOPPED_BY_RM") in lab.rm.heard


def test_everything_of_a_node_in_one_batch(lab: Lab) -> None:
    lab.submit("app-2")
    lab.ask("a", app="app-2")
    lab.settle()
    before = len(_batches(lab))
    lab.decommission("n1")
    lab.settle()
    assert [{"released": ["old", "a"]}] == _batches(lab)[before:]


def test_applications_are_added_before_they_are_removed(lab: Lab) -> None:
    ugi = si.UserGroupInformation(user="bob")
    new = si.AddApplicationRequest(application_id="short", queue_name=QUEUE, ugi=ugi)
    gone = si.RemoveApplicationRequest(application_id="short")
    lab.simulator.update_application(si.ApplicationRequest(rm_id=RM, new=(new,), remove=(gone,)))
    lab.settle()
    assert ("short", "accepted") == lab.rm.told("application")[-1]
    assert [APP] == list(lab.state.applications)


def test_nodes_are_worked_in_their_order(lab: Lab) -> None:
    """A node that is made, drained and opened again by one request takes work at the end."""
    actions = (
        si.ActionFromRM.CREATE,
        si.ActionFromRM.DRAIN_NODE,
        si.ActionFromRM.DRAIN_TO_SCHEDULABLE,
        si.ActionFromRM.CREATE,
    )
    size = si.Resource.of({"vcore": 5})
    infos = tuple(
        si.NodeInfo(node_id="n2", action=action, schedulable_resource=size) for action in actions
    )
    lab.simulator.update_node(si.NodeRequest(rm_id=RM, nodes=infos))
    lab.settle()
    assert lab.state.nodes["n2"].is_schedulable
    assert ["accepted", "accepted"] == [answer for _, answer in lab.rm.told("node")][:2]
    assert 3 == len(lab.rm.told("node"))
