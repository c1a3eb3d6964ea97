"""The simulated resource manager: what it writes down, and what it confirms."""

from typing import Any

import pytest
from support import in_transit

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import Topology
from yunikorn_actors.messages.rm_events import AllocationsRequested
from yunikorn_actors.scenario.document import DEFAULT_QUEUES
from yunikorn_actors.scenario.resource_manager import Confirmation, SimulatedResourceManager

T = si.TerminationType


def registered(confirmation: Confirmation = "auto") -> tuple[Simulator, SimulatedResourceManager]:
    core = Simulator(Topology("proposing", settings=Settings(), instance="test"))
    manager = SimulatedResourceManager(core, "rm-1", confirmation)
    request = si.RegisterResourceManagerRequest(rm_id="rm-1", config=DEFAULT_QUEUES)
    core.register_resource_manager(request, manager)
    core.settle()
    return core, manager


def announce(manager: SimulatedResourceManager, *uuids: str) -> None:
    """Announce allocations whose key is the UUID without its number."""
    manager.update_allocation(
        si.AllocationResponse(
            new=tuple(
                si.Allocation(
                    allocation_key=uuid.partition("/")[0], uuid=uuid, application_id="app"
                )
                for uuid in uuids
            )
        )
    )


def release(manager: SimulatedResourceManager, uuid: str, type_: T, key: str = "") -> None:
    item = si.AllocationRelease(
        partition_name="default",
        application_id="app",
        uuid=uuid,
        allocation_key=key or uuid.partition("/")[0],
        termination_type=type_,
    )
    manager.update_allocation(si.AllocationResponse(released=(item,)))


def sent(core: Simulator) -> list[tuple[str, str, str, T]]:
    """Return the releases under way to the core."""
    return [
        (item.application_id, item.allocation_key, item.uuid, item.termination_type)
        for envelope in in_transit(core)
        if isinstance(envelope.message, AllocationsRequested)
        and envelope.message.request.releases is not None
        for item in envelope.message.request.releases.allocations_to_release
    ]


def view(manager: SimulatedResourceManager, *names: str) -> list[Any]:
    return [manager.view()[name] for name in names]


def test_answers_about_applications() -> None:
    _, manager = registered()
    manager.update_application(
        si.ApplicationResponse(
            rejected=(si.RejectedApplication(application_id="b", reason="no queue"),),
            accepted=(si.AcceptedApplication(application_id="a"),),
            updated=(si.UpdatedApplication(application_id="a", state="Accepted"),),
        )
    )
    manager.update_application(
        si.ApplicationResponse(
            rejected=(si.RejectedApplication(application_id="b", reason="no user"),),
            updated=(si.UpdatedApplication(application_id="a", state="Running"),),
        )
    )
    seen = view(manager, "accepted_apps", "rejected_apps", "app_states")
    assert [["a"], {"b": ["no queue", "no user"]}, {"a": ["Accepted", "Running"]}] == seen
    log = ["rejected_app b", "accepted_app a", "app a Accepted", "rejected_app b", "app a Running"]
    assert [log] == view(manager, "log")


def test_answers_about_nodes_and_containers() -> None:
    _, manager = registered()
    manager.update_node(
        si.NodeResponse(
            rejected=(si.RejectedNode(node_id="n1", reason="twice"),),
            accepted=(si.AcceptedNode(node_id="n2"),),
        )
    )
    for state in (si.SchedulingState.SKIPPED, si.SchedulingState.FAILED):
        manager.update_container_scheduling_state(
            si.UpdateContainerSchedulingStateRequest(allocation_key="k", state=state)
        )
    seen = view(manager, "accepted_nodes", "rejected_nodes", "container_states", "log")
    log = ["rejected_node n1", "accepted_node n2", "container k SKIPPED", "container k FAILED"]
    assert [["n2"], {"n1": ["twice"]}, {"k": "FAILED"}, log] == seen


def test_rejections_of_asks_in_both_forms() -> None:
    _, manager = registered()
    manager.update_allocation(
        si.AllocationResponse(
            rejected=(si.RejectedAllocationAsk(allocation_key="k", reason="one"),),
            rejected_allocations=(si.RejectedAllocation(allocation_key="k", reason="two"),),
        )
    )
    assert [{"k": ["one", "two"]}] == view(manager, "rejected_asks")


def test_new_allocations_by_key_and_by_application() -> None:
    _, manager = registered()
    announce(manager, "k/1", "k/2", "j/1")
    new = {"keys": ["k", "k", "j"], "applications": {"app": 3}}
    assert [new, ["new k", "new k", "new j"]] == view(manager, "new", "log")


def test_what_was_announced_stands_under_released_and_everything_else_under_asks() -> None:
    _, manager = registered()
    announce(manager, "k/1")
    release(manager, "k/1", T.STOPPED_BY_RM)
    release(manager, "", T.TIMEOUT, key="k")
    withdrawn = si.AllocationAskRelease(allocation_key="j", termination_type=T.TIMEOUT)
    manager.update_allocation(si.AllocationResponse(released_asks=(withdrawn,)))
    assert [
        [{"key": "k", "type": "STOPPED_BY_RM"}],
        [{"key": "k", "type": "TIMEOUT"}, {"key": "j", "type": "TIMEOUT"}],
        ["new k", "released k STOPPED_BY_RM", "released_ask k TIMEOUT", "released_ask j TIMEOUT"],
    ] == view(manager, "released", "released_asks", "log")


@pytest.mark.parametrize(
    "request_",
    [
        si.AllocationRequest(
            rm_id="rm-1", allocations=(si.Allocation(allocation_key="k", uuid="u", node_id="n"),)
        ),
        si.AllocationRequest(
            rm_id="rm-1", allocations=(si.Allocation(allocation_key="k", node_id="n"),)
        ),
        si.NodeRequest(
            rm_id="rm-1",
            nodes=(
                si.NodeInfo(
                    node_id="n",
                    existing_allocations=(si.Allocation(allocation_key="k", uuid="u"),),
                ),
            ),
        ),
    ],
)
def test_what_it_reported_itself_is_allocated_too(
    request_: si.AllocationRequest | si.NodeRequest,
) -> None:
    _, manager = registered()
    manager.note(request_)
    release(manager, "u", T.STOPPED_BY_RM, key="k")
    assert [[{"key": "k", "type": "STOPPED_BY_RM"}], []] == view(
        manager, "released", "released_asks"
    )


def test_an_item_without_a_node_is_an_ask() -> None:
    _, manager = registered()
    item = si.Allocation(allocation_key="k", uuid="u")
    manager.note(si.AllocationRequest(rm_id="rm-1", allocations=(item,)))
    release(manager, "u", T.TIMEOUT, key="k")
    assert [[], [{"key": "k", "type": "TIMEOUT"}]] == view(manager, "released", "released_asks")


def test_removed_applications_are_known_until_they_are_submitted_anew() -> None:
    _, manager = registered()
    gone = si.RemoveApplicationRequest(application_id="a")
    manager.note(si.ApplicationRequest(rm_id="rm-1", remove=(gone,)))
    states = [manager.has_removed("[rm-1]default", "a"), manager.has_removed("[rm-1]other", "a")]
    new = si.AddApplicationRequest(application_id="a", partition_name="default")
    manager.note(si.ApplicationRequest(rm_id="rm-1", new=(new,)))
    assert [True, False, False] == [*states, manager.has_removed("[rm-1]default", "a")]


@pytest.mark.parametrize("type_", [T.TIMEOUT, T.PREEMPTED_BY_SCHEDULER, T.PLACEHOLDER_REPLACED])
def test_auto_confirms_what_the_core_released_at_once(type_: T) -> None:
    core, manager = registered()
    announce(manager, "k/1")
    release(manager, "k/1", type_)
    assert [("app", "k", "k/1", type_)] == sent(core)


@pytest.mark.parametrize("type_", [T.STOPPED_BY_RM, T.UNKNOWN_TERMINATION_TYPE])
def test_auto_confirms_nothing_else(type_: T) -> None:
    core, manager = registered()
    announce(manager, "k/1")
    release(manager, "k/1", type_)
    release(manager, "", T.TIMEOUT, key="ask")
    assert sent(core) == []


def test_auto_is_silent_when_nobody_listens_any_more() -> None:
    core, manager = registered()
    announce(manager, "k/1")
    core.unregister_resource_manager("rm-1")
    release(manager, "k/1", T.TIMEOUT)
    assert sent(core) == []
    assert [[{"key": "k", "type": "TIMEOUT"}]] == view(manager, "released")


def test_confirm_all_answers_the_oldest_first_and_each_once() -> None:
    core, manager = registered("manual")
    announce(manager, "b/1", "a/1", "c/1")
    release(manager, "b/1", T.TIMEOUT)
    release(manager, "c/1", T.STOPPED_BY_RM)
    release(manager, "a/1", T.PLACEHOLDER_REPLACED)
    assert sent(core) == []
    manager.confirm_all()
    manager.confirm_all()
    expected = [("app", "b", "b/1", T.TIMEOUT), ("app", "a", "a/1", T.PLACEHOLDER_REPLACED)]
    assert expected == sent(core)


def test_confirm_carries_the_last_uuid_of_the_key_and_is_sent_as_often_as_written() -> None:
    core, manager = registered("manual")
    manager.confirm("app", "k", T.TIMEOUT)
    announce(manager, "k/1", "k/2")
    release(manager, "k/1", T.TIMEOUT)
    release(manager, "k/2", T.TIMEOUT)
    for _ in range(2):
        manager.confirm("app", "k", T.PLACEHOLDER_REPLACED)
    manager.confirm_all()
    swap = ("app", "k", "k/2", T.PLACEHOLDER_REPLACED)
    assert [("app", "k", "", T.TIMEOUT), swap, swap, ("app", "k", "k/1", T.TIMEOUT)] == sent(core)
