"""Messages on the wire: every field by its wire name, nothing lost, nothing misread."""

import gc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect

from yunikorn_actors import si
from yunikorn_actors.si.wire import BESIDE

WIRE_NAMES = {
    si.RegisterResourceManagerRequest: "rmID version policyGroup buildInfo config extraConfig",
    si.RegisterResourceManagerResponse: "",
    si.AllocationRequest: "asks releases rmID allocations",
    si.ApplicationRequest: "new remove rmID",
    si.NodeRequest: "nodes rmID",
    si.AllocationResponse: "new released releasedAsks rejected rejectedAllocations",
    si.ApplicationResponse: "rejected accepted updated",
    si.NodeResponse: "rejected accepted",
    si.UpdatedApplication: "applicationID state stateTransitionTimestamp message",
    si.RejectedApplication: "applicationID reason",
    si.AcceptedApplication: "applicationID",
    si.RejectedNode: "nodeID reason",
    si.AcceptedNode: "nodeID",
    si.Resource: "resources",
    si.Quantity: "value",
    si.AllocationAsk: "allocationKey applicationID partitionName resourceAsk maxAllocations priority executionTimeoutMilliSeconds tags taskGroupName placeholder Originator preemptionPolicy",
    si.PreemptionPolicy: "allowPreemptSelf allowPreemptOther",
    si.AddApplicationRequest: "applicationID queueName partitionName ugi tags executionTimeoutMilliSeconds placeholderAsk gangSchedulingStyle",
    si.RemoveApplicationRequest: "applicationID partitionName",
    si.UserGroupInformation: "user groups",
    si.Allocation: "allocationKey allocationTags UUID resourcePerAlloc priority nodeID applicationID partitionName taskGroupName placeholder originator preemptionPolicy",
    si.AllocationReleasesRequest: "allocationsToRelease allocationAsksToRelease",
    si.AllocationRelease: "partitionName applicationID UUID terminationType message allocationKey",
    si.AllocationAskRelease: "partitionName applicationID allocationKey terminationType message",
    si.NodeInfo: "nodeID action attributes schedulableResource occupiedResource existingAllocations",
    si.RejectedAllocationAsk: "allocationKey applicationID reason",
    si.RejectedAllocation: "allocationKey applicationID reason",
    si.PredicatesArgs: "allocationKey nodeID allocate",
    si.PreemptionPredicatesArgs: "allocationKey nodeID preemptAllocationKeys startIndex",
    si.PreemptionPredicatesResponse: "success index",
    si.UpdateContainerSchedulingStateRequest: "applicartionID allocationKey state reason",
    si.UpdateConfigurationRequest: "rmID policyGroup config extraConfig",
    si.EventRecord: "type objectID message timestampNano eventChangeType eventChangeDetail referenceID resource",
}
KINDS = list(WIRE_NAMES)


def is_sent(field: inspect.Field) -> bool:
    """Whether the interface has it; a few fields are for callers in Python alone."""
    return BESIDE not in (getattr(field.type, "extra", None) or {})


def some(declared: inspect.Type) -> st.SearchStrategy[Any]:
    match declared.type if isinstance(declared, inspect.Metadata) else declared:
        case inspect.StrType():
            return st.text(max_size=8)
        case inspect.IntType(ge=low, le=high):
            return st.integers(low, high)
        case inspect.BoolType():
            return st.booleans()
        case inspect.EnumType(cls=kind):
            return st.sampled_from(list(kind))
        case inspect.UnionType(types=(message, inspect.NoneType())):
            return st.none() | some(message)
        case inspect.VarTupleType(item_type=item):
            return st.lists(some(item), max_size=2).map(tuple)
        case inspect.DictType(key_type=key, value_type=value):
            return st.dictionaries(some(key), some(value), max_size=2)
        case inspect.StructType(cls=kind, fields=fields):
            return st.builds(kind, **{it.name: some(it.type) for it in fields if is_sent(it)})
    raise TypeError(declared)


def test_the_table_has_every_message() -> None:
    exported = (getattr(si, name) for name in si.__all__)
    messages = {
        it
        for it in exported
        if isinstance(it, type) and issubclass(it, si.SiMessage) and it is not si.SiMessage
    }
    assert messages == set(KINDS)


def kinds_within(declared: inspect.Type) -> set[type]:
    match declared.type if isinstance(declared, inspect.Metadata) else declared:
        case inspect.StructType(cls=kind, fields=fields):
            return {kind}.union(*(kinds_within(field.type) for field in fields))
        case inspect.UnionType(types=(part, inspect.NoneType())):
            return kinds_within(part)
        case inspect.VarTupleType(item_type=part) | inspect.DictType(value_type=part):
            return kinds_within(part)
    return set()


@pytest.mark.parametrize("kind", KINDS)
def test_none_leads_back_to_itself_so_the_collector_may_pass_them_over(kind: type[Any]) -> None:
    form = inspect.type_info(kind)
    assert isinstance(form, inspect.StructType)
    assert kind not in set().union(*(kinds_within(field.type) for field in form.fields))
    assert not gc.is_tracked(kind(**{name: {} for name in kind.__struct_fields__}))


@pytest.mark.parametrize("kind", KINDS)
def test_wire_names(kind: type[si.SiMessage]) -> None:
    form = inspect.type_info(kind)
    assert isinstance(form, inspect.StructType)
    assert WIRE_NAMES[kind].split() == [it.encode_name for it in form.fields if is_sent(it)]


@pytest.mark.parametrize("kind", KINDS)
def test_unset_message_is_an_empty_object(kind: type[si.SiMessage]) -> None:
    assert si.to_json(kind()) == b"{}"
    assert kind() == si.from_json(kind, b"{}")


@pytest.mark.parametrize("kind", KINDS)
def test_round_trip(kind: type[si.SiMessage]) -> None:
    @given(some(inspect.type_info(kind)))
    def round_trip(message: si.SiMessage) -> None:
        assert message == si.from_json(kind, si.to_json(message))

    round_trip()


GOLDEN = [
    (
        si.AllocationAsk(
            allocation_key="ask-1",
            application_id="app-1",
            resource_ask=si.Resource.of({"vcore": 500}),
            max_allocations=2,
            originator=True,
            preemption_policy=si.PreemptionPolicy(),
        ),
        b'{"allocationKey":"ask-1","applicationID":"app-1","resourceAsk":{"resources":{"vcore":{"value":500}}},"maxAllocations":2,"Originator":true,"preemptionPolicy":{}}',
    ),
    (si.AllocationAsk(max_allocations=1), b"{}"),
    (si.AllocationAsk(max_allocations=0), b'{"maxAllocations":0}'),
    (
        si.Allocation(uuid="u-1", node_id="n-1", originator=True),
        b'{"UUID":"u-1","nodeID":"n-1","originator":true}',
    ),
    (
        si.UpdateContainerSchedulingStateRequest(
            application_id="app-1", allocation_key="ask-1", state=si.SchedulingState.FAILED
        ),
        b'{"applicartionID":"app-1","allocationKey":"ask-1","state":4}',
    ),
    (
        si.NodeRequest(
            nodes=(si.NodeInfo(node_id="n-1", action=si.ActionFromRM.DECOMISSION),), rm_id="rm-1"
        ),
        b'{"nodes":[{"nodeID":"n-1","action":4}],"rmID":"rm-1"}',
    ),
    (
        si.AllocationRequest(
            releases=si.AllocationReleasesRequest(
                allocation_asks_to_release=(
                    si.AllocationAskRelease(
                        application_id="app-1", termination_type=si.TerminationType.TIMEOUT
                    ),
                )
            ),
            rm_id="rm-1",
            allocations=(si.Allocation(allocation_key="a-1"),),
        ),
        b'{"releases":{"allocationAsksToRelease":[{"applicationID":"app-1","terminationType":2}]},"rmID":"rm-1","allocations":[{"allocationKey":"a-1"}]}',
    ),
    (si.Resource.of({"memory": 0}), b'{"resources":{"memory":{}}}'),
    (
        si.EventRecord(
            type=si.EventType.NODE,
            object_id="n-1",
            timestamp_nano=7,
            event_change_detail=si.ChangeDetail.NODE_DECOMISSION,
        ),
        b'{"type":3,"objectID":"n-1","timestampNano":7,"eventChangeDetail":300}',
    ),
]


@pytest.mark.parametrize(("message", "text"), GOLDEN)
def test_golden_bytes(message: si.SiMessage, text: bytes) -> None:
    assert text == si.to_json(message)
    assert message == si.from_json(type(message), text)


def test_amounts_are_those_given() -> None:
    amounts = {"memory": 2**63 - 1, "vcore": 0, "gpu": -1}
    assert amounts == si.Resource.of(amounts).amounts()


UNREADABLE = [
    (b"", "AllocationRequest: Input data was truncated - at `$`"),
    (b"{}x", "AllocationRequest: JSON is malformed: trailing characters (byte 3) - at `$`"),
    (b"[]", "AllocationRequest: Expected `object`, got `array` - at `$`"),
    (
        b'{"rmId":"rm-1"}',
        "AllocationRequest: Object contains unknown field `rmId` - at `$`",
    ),
    (
        b'{"asks":[{},{"originator":true}]}',
        "AllocationRequest: Object contains unknown field `originator` - at `$.asks[1]`",
    ),
    (
        b'{"asks":[{"allocationKey":7}]}',
        "AllocationRequest: Expected `str`, got `int` - at `$.asks[0].allocationKey`",
    ),
    (
        b'{"asks":[{"priority":2147483648}]}',
        "AllocationRequest: Expected `int` <= 2147483647 - at `$.asks[0].priority`",
    ),
    (
        b'{"releases":{"allocationsToRelease":[{"terminationType":9}]}}',
        "AllocationRequest: Invalid enum value 9 - at `$.releases.allocationsToRelease[0].terminationType`",
    ),
    (b'{"rmID":"\xff"}', "AllocationRequest: byte 9 is not UTF-8 - at `$`"),
]


@pytest.mark.parametrize(("data", "text"), UNREADABLE)
def test_unreadable(data: bytes, text: str) -> None:
    with pytest.raises(si.SiDecodeError) as raised:
        si.from_json(si.AllocationRequest, data)
    assert text == str(raised.value)


def test_size_is_limited() -> None:
    data = si.to_json(si.AcceptedNode(node_id="n-1"))
    assert si.AcceptedNode(node_id="n-1") == si.from_json(si.AcceptedNode, data, limit=len(data))
    with pytest.raises(si.SiDecodeError) as raised:
        si.from_json(si.AcceptedNode, data, limit=len(data) - 1)
    assert (
        str(raised.value)
        == "AcceptedNode: 16 bytes exceed the limit of 15; send it in smaller requests - at `$`"
    )


def test_the_limit_by_default_is_64_mib() -> None:
    assert si.LARGEST_JSON == 64 * 1024 * 1024
    with pytest.raises(si.SiDecodeError):
        si.from_json(si.AcceptedNode, b" " * si.LARGEST_JSON + b"{}")
