"""What a message is for is seen by the way that it goes."""

from pathlib import Path

import pytest
from recordings import in_service, simulate

from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.base import TIMER, Cause, Delivery, is_outside
from yunikorn_actors.messages.codec import type_name
from yunikorn_actors.messages.scheduling import RunCycle
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.view.run_data import Role, role_of

KNOWN = {
    "AllocationsRequested": Role.REQUEST,
    "RMUpdateAllocation": Role.REQUEST,
    "NodesRequested": Role.REQUEST,
    "ProposeAllocations": Role.DECISION,
    "FactsAppended": Role.FACT,
    "RMNewAllocations": Role.CALLBACK,
    "CallUpdateAllocation": Role.CALLBACK,
    "RunCycle": Role.OTHER,
}


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("make", [simulate, in_service])
def test_each_type_of_message_has_one_role(
    path: Path, topology: TopologyName, make: object
) -> None:
    make(path, topology)  # type: ignore[operator]
    with TraceReader(path) as trace:
        roles = {(type_name(it.message), role_of(it)) for it in trace}
    found = {kind: role for kind, role in roles if kind in KNOWN}
    assert found == {kind: KNOWN[kind] for kind in found}
    expected = KNOWN.keys() - ({"ProposeAllocations"} if topology == "fused" else set())
    assert expected <= found.keys()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.trace"


def test_a_message_of_a_later_version_has_a_role_by_its_way() -> None:
    def role(sender: str, mailbox: str) -> Role:
        cause = Cause(sender, 1)
        return role_of(
            Delivery(mailbox, 1, sender, cause, "x", 0, RunCycle(partition="p", epoch=1))
        )

    assert is_outside("gateway")
    assert role("gateway", "rm_proxy") is Role.REQUEST
    assert role("rm_proxy", "context") is Role.REQUEST
    assert role("scheduler:p#1", "context") is Role.DECISION
    assert role("context", "scheduler:p#1") is Role.DECISION
    assert role("context", "rm_proxy") is Role.CALLBACK
    assert role("rm_proxy", "rm:rm-1#1") is Role.CALLBACK
    assert role("event_publisher", "events:1") is Role.CALLBACK
    assert role("context", "reply:1") is Role.CALLBACK
    assert role(TIMER, "context") is Role.OTHER
    assert role("context", "context") is Role.OTHER
