"""Every message and every fact can be told in one line."""

from typing import Any, get_args

import pytest
from drawn import values_of
from hypothesis import given, settings

from yunikorn_actors import si
from yunikorn_actors.messages import predicates as p
from yunikorn_actors.messages import rm_calls as c
from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages import scheduling as s
from yunikorn_actors.messages.base import Message
from yunikorn_actors.messages.codec import MESSAGE_TYPES
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import WaitingState
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.trace.text.summary import fact_summary, message_summary

EXAMPLES = 10


@pytest.mark.parametrize("kind", MESSAGE_TYPES.values(), ids=lambda kind: kind.__name__)
def test_each_message_has_a_summary(kind: type) -> None:
    @settings(max_examples=EXAMPLES)
    @given(message=values_of(kind))
    def told(message: Any) -> None:
        assert isinstance(message_summary(message), str)

    told()


@pytest.mark.parametrize("kind", get_args(f.Fact), ids=lambda kind: kind.__name__)
def test_each_fact_has_a_summary(kind: type) -> None:
    @settings(max_examples=EXAMPLES)
    @given(fact=values_of(kind))
    def told(fact: Any) -> None:
        assert isinstance(fact_summary(fact), str)

    told()


RELEASE = si.AllocationRelease
WAITS = rm.ContainerState(
    application_id="app-1", key="a", state=WaitingState.SKIPPED, reason="queue root.a is full"
)
STATE = si.UpdateContainerSchedulingStateRequest(
    application_id="app-1", allocation_key="a", state=si.SchedulingState.FAILED
)
UP_TO_2 = si.PreemptionPredicatesResponse(success=True, index=2)
TOLD: list[tuple[Message, str]] = [
    (
        rm.RMContainerSchedulingState(rm_id="rm-1", states=(WAITS,)),
        "asks app-1 a SKIPPED (queue root.a is full)",
    ),
    (c.CallUpdateContainerSchedulingState(requests=(STATE,)), "asks app-1 a FAILED"),
    (rm.RMHeldBack(rm_id="rm-1", callback="rm:rm-1#1", held=True), "rm-1 is backpressured"),
    (rm.RMHeldBack(rm_id="rm-1", callback="rm:rm-1#1", held=False), "rm-1 takes its messages"),
    (
        c.CallPredicates(call_id=1, args=si.PredicatesArgs(allocation_key="a", node_id="n1")),
        "a -> n1",
    ),
    (p.PredicatesAnswered(call_id=1, reason=""), "yes"),
    (p.PredicatesChecked(partition="x", epoch=1, question_id=1, reason="no disk"), "no disk"),
    (p.PreemptionPredicatesAnswered(call_id=1, response=UP_TO_2), "yes, up to 2"),
    (p.PreemptionPredicatesAnswered(call_id=1, response=si.PreemptionPredicatesResponse()), "no"),
    (
        rm.AllocationsRequested(
            request=si.AllocationRequest(
                asks=(si.AllocationAsk(application_id="app-1", allocation_key="a"),),
                releases=si.AllocationReleasesRequest(
                    allocations_to_release=(
                        RELEASE(allocation_key="b"), RELEASE(uuid="u"), RELEASE(application_id="app-2"),
                    ),
                    allocation_asks_to_release=(si.AllocationAskRelease(allocation_key="c"),),
                ),
                rm_id="rm-1",
            )
        ),
        "asks a; takes back asks c; releases b, u, all of app-2",
    ),
    (
        rm.RMUpdateAllocation(
            rm_id="rm-1",
            ask_releases=(rm.AskReleaseItem(partition="p", key="a"),),
            releases=(rm.ReleaseItem(partition="p", application_id="app-1"),),
        ),
        "takes back asks a; releases all of app-1",
    ),
    (
        rm.NodesRequested(
            request=si.NodeRequest(
                nodes=(si.NodeInfo(node_id="n1", action=si.ActionFromRM.DRAIN_NODE),)
            )
        ),
        "nodes n1 DRAIN_NODE",
    ),
    (
        rm.RMApplicationUpdate(
            rm_id="rm-1", accepted=(rm.Accepted(id="app-1"),), rejected=(rm.Rejected(id="app-2", reason="no queue"),)
        ),
        "accepted app-1; rejected app-2 (no queue)",
    ),
    (
        c.CallUpdateAllocation(
            response=si.AllocationResponse(
                new=(si.Allocation(allocation_key="a", node_id="n1"),),
                released=(RELEASE(allocation_key="b", termination_type=TerminationType.TIMEOUT),),
                rejected=(si.RejectedAllocationAsk(allocation_key="c", reason="no"),),
            )
        ),
        "new a -> n1; asks back b; rejected c (no)",
    ),
    (s.RunCycle(partition="[rm-1]default", epoch=1), "[rm-1]default"),
]  # fmt: skip


@pytest.mark.parametrize(("message", "expected"), TOLD, ids=[type(it).__name__ for it, _ in TOLD])
def test_a_summary_names_what_one_looks_for(message: Message, expected: str) -> None:
    assert expected == message_summary(message)


FACTS: list[tuple[f.Fact, str]] = [
    (f.SchedulingHeld(held=True, at_ns=1), "suspended"),
    (
        f.NodeScheduleChanged(
            node_id="n1", was_drained=False, was_ready=True, drained=True, ready=False, at_ns=1
        ),
        "n1 drained, not ready",
    ),
    (f.NodeRemoved(node_id="n1", at_ns=1), "n1"),
    (
        f.NodeResized(
            node_id="n1", old_capacity={}, old_occupied={}, capacity={"vcore": 2}, occupied={},
            at_ns=1,
        ),
        "n1 nothing occupied nothing -> vcore=2 occupied nothing",
    ),
    (f.TimerArmed(application_id="app-1", kind="state", generation=1, due_ns=1), "app-1 state"),
]  # fmt: skip


@pytest.mark.parametrize(("fact", "expected"), FACTS, ids=[type(it).__name__ for it, _ in FACTS])
def test_a_fact_is_told_by_what_it_is_about(fact: f.Fact, expected: str) -> None:
    assert expected == fact_summary(fact)
