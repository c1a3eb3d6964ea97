"""The form of requests: what is let through, and what is refused with which words."""

from itertools import product
from typing import Any

import msgspec
import pytest
import ranges
from hypothesis import given, settings
from hypothesis import strategies as st

from yunikorn_actors import si
from yunikorn_actors.si import form
from yunikorn_actors.si.form import (
    Form,
    compiled,
    plain_allocation,
    plain_ask,
    plain_release,
    plain_request,
    plain_resource,
)

LONGEST = 1024
CONVERT = "convert it before the call"


def ask(**fields: Any) -> si.AllocationAsk:
    return si.AllocationAsk(**{"allocation_key": "ask-1", "application_id": "app-1", **fields})


def asking(*asks: Any) -> si.AllocationRequest:
    return si.AllocationRequest(rm_id="rm-1", asks=asks)


def reporting(**fields: Any) -> si.AllocationRequest:
    return si.AllocationRequest(rm_id="rm-1", allocations=(si.Allocation(**fields),))


def releasing(**fields: Any) -> si.AllocationRequest:
    release = si.AllocationRelease(**fields)
    releases = si.AllocationReleasesRequest(allocations_to_release=(release,))
    return si.AllocationRequest(rm_id="rm-1", releases=releases)


def withdrawing(**fields: Any) -> si.AllocationRequest:
    release = si.AllocationAskRelease(**fields)
    releases = si.AllocationReleasesRequest(allocation_asks_to_release=(release,))
    return si.AllocationRequest(rm_id="rm-1", releases=releases)


def adding(**fields: Any) -> si.ApplicationRequest:
    new = si.AddApplicationRequest(**{"application_id": "app-1", **fields})
    return si.ApplicationRequest(rm_id="rm-1", new=(new,))


def noding(**fields: Any) -> si.NodeRequest:
    return si.NodeRequest(rm_id="rm-1", nodes=(si.NodeInfo(**{"node_id": "n-1", **fields}),))


def registering(**fields: Any) -> si.RegisterResourceManagerRequest:
    return si.RegisterResourceManagerRequest(**{"rm_id": "rm-1", **fields})


SOUND = [
    registering(version="1", build_info={"arch": "arm64"}, config="c" * 4 * 1024 * 1024),
    registering(extra_config={"k": "ä" * 32 * 1024}),
    si.UpdateConfigurationRequest(),
    asking(),
    asking(ask()),
    # Faults of substance: the core refuses these, per item.
    asking(ask(max_allocations=0), ask(max_allocations=-1), ask(partition_name="nowhere")),
    asking(ask(resource_ask=si.Resource.of({"vcore": -(2**63), "memory": 0}))),
    asking(ask(priority=-(2**31), execution_timeout_milli_seconds=2**63 - 1)),
    asking(ask(allocation_key="ä" * 512, tags={"k": "v" * 64 * 1024})),
    asking(ask(preemption_policy=si.PreemptionPolicy(allow_preempt_self=True))),
    reporting(allocation_key="a-1", application_id="app-1"),
    reporting(allocation_key="a-1", allocation_tags={"foreign": ""}),
    releasing(uuid="u-1"),
    releasing(allocation_key="a-1"),
    releasing(application_id="app-1", termination_type=si.TerminationType.TIMEOUT),
    withdrawing(allocation_key="a-1"),
    withdrawing(application_id="app-1"),
    adding(ugi=si.UserGroupInformation(user="ada", groups=("dev", "ops"))),
    adding(placeholder_ask=si.Resource()),
    si.ApplicationRequest(
        rm_id="rm-1", remove=(si.RemoveApplicationRequest(application_id="app-1"),)
    ),
    noding(),
    noding(
        action=si.ActionFromRM.CREATE_DRAIN,
        attributes={"ready": "false"},
        existing_allocations=(si.Allocation(allocation_key="a-1", application_id="app-1"),),
    ),
]


@pytest.mark.parametrize("request_", SOUND)
def test_sound(request_: si.SiMessage) -> None:
    si.check_form(request_, type(request_))


def empty(path: str, owner: str) -> str:
    return f"{path}: must not be empty; every {owner} needs its {path.rpartition('.')[2]}"


NO_RELEASE = "must name what to release; set uuid, allocation_key or application_id"
TOO_LONG = f"must be at most {LONGEST} bytes of UTF-8; shorten it"

FAULTY = [
    # Ids that a request cannot do without.
    (registering(rm_id=""), empty("RegisterResourceManagerRequest.rm_id", "RegisterResourceManagerRequest")),
    (si.AllocationRequest(), empty("AllocationRequest.rm_id", "AllocationRequest")),
    (si.ApplicationRequest(), empty("ApplicationRequest.rm_id", "ApplicationRequest")),
    (si.NodeRequest(), empty("NodeRequest.rm_id", "NodeRequest")),
    (asking(ask(), ask(), ask(), ask(allocation_key="")), empty("AllocationRequest.asks[3].allocation_key", "AllocationAsk")),
    (asking(ask(application_id="")), empty("AllocationRequest.asks[0].application_id", "AllocationAsk")),
    (reporting(application_id="app-1"), empty("AllocationRequest.allocations[0].allocation_key", "Allocation")),
    (reporting(allocation_key="a-1"), "AllocationRequest.allocations[0].application_id: must not be empty; only an allocation with the tag 'foreign' belongs to no application"),
    (releasing(partition_name="default"), f"AllocationRequest.releases.allocations_to_release[0]: {NO_RELEASE}"),
    (withdrawing(partition_name="default"), "AllocationRequest.releases.allocation_asks_to_release[0]: must name what to release; set allocation_key or application_id"),
    (adding(application_id=""), empty("ApplicationRequest.new[0].application_id", "AddApplicationRequest")),
    (si.ApplicationRequest(rm_id="rm-1", remove=(si.RemoveApplicationRequest(),)), empty("ApplicationRequest.remove[0].application_id", "RemoveApplicationRequest")),
    (noding(node_id=""), empty("NodeRequest.nodes[0].node_id", "NodeInfo")),
    (noding(existing_allocations=(si.Allocation(application_id="app-1"),)), empty("NodeRequest.nodes[0].existing_allocations[0].allocation_key", "Allocation")),
    (noding(existing_allocations=(si.Allocation(allocation_key="a-1", allocation_tags={"foreign": "static"}),)), "NodeRequest.nodes[0].existing_allocations[0].application_id: must not be empty; give the application that runs there"),
    # Types.
    (si.AllocationRequest(rm_id=7), f"AllocationRequest.rm_id: must be str, not int; {CONVERT}"),
    (si.AllocationRequest(rm_id="rm-1", asks=[ask()]), f"AllocationRequest.asks: must be tuple, not list; {CONVERT}"),
    (si.AllocationRequest(rm_id="rm-1", asks=None), f"AllocationRequest.asks: must be tuple, not NoneType; {CONVERT}"),
    (si.AllocationRequest(rm_id="rm-1", releases=()), f"AllocationRequest.releases: must be AllocationReleasesRequest, not tuple; {CONVERT}"),
    (asking({"allocationKey": "ask-1"}), f"AllocationRequest.asks[0]: must be AllocationAsk, not dict; {CONVERT}"),
    (asking(si.Allocation()), f"AllocationRequest.asks[0]: must be AllocationAsk, not Allocation; {CONVERT}"),
    (asking(ask(allocation_key=None)), f"AllocationRequest.asks[0].allocation_key: must be str, not NoneType; {CONVERT}"),
    (asking(ask(priority=True)), f"AllocationRequest.asks[0].priority: must be int, not bool; {CONVERT}"),
    (asking(ask(priority=1.0)), f"AllocationRequest.asks[0].priority: must be int, not float; {CONVERT}"),
    (asking(ask(max_allocations=True)), f"AllocationRequest.asks[0].max_allocations: must be int, not bool; {CONVERT}"),
    (asking(ask(placeholder=1)), f"AllocationRequest.asks[0].placeholder: must be bool, not int; {CONVERT}"),
    (asking(ask(originator="yes")), f"AllocationRequest.asks[0].originator: must be bool, not str; {CONVERT}"),
    (asking(ask(tags=())), f"AllocationRequest.asks[0].tags: must be dict, not tuple; {CONVERT}"),
    (asking(ask(tags={"k": 1})), f"AllocationRequest.asks[0].tags['k']: must be str, not int; {CONVERT}"),
    (asking(ask(tags={5: "v"})), f"AllocationRequest.asks[0].tags[<int>]: the key must be str, not int; {CONVERT}"),
    (asking(ask(resource_ask={"vcore": 1})), f"AllocationRequest.asks[0].resource_ask: must be Resource, not dict; {CONVERT}"),
    (asking(ask(resource_ask=si.Resource(resources={"vcore": 1}))), f"AllocationRequest.asks[0].resource_ask.resources['vcore']: must be Quantity, not int; {CONVERT}"),
    (asking(ask(resource_ask=si.Resource.of({"vcore": "1"}))), f"AllocationRequest.asks[0].resource_ask.resources['vcore'].value: must be int, not str; {CONVERT}"),
    (asking(ask(preemption_policy=si.PreemptionPolicy(allow_preempt_self=None))), f"AllocationRequest.asks[0].preemption_policy.allow_preempt_self: must be bool, not NoneType; {CONVERT}"),
    (releasing(uuid="u-1", termination_type=1), f"AllocationRequest.releases.allocations_to_release[0].termination_type: must be TerminationType, not int; {CONVERT}"),
    (releasing(uuid="u-1", termination_type=si.ActionFromRM.CREATE), f"AllocationRequest.releases.allocations_to_release[0].termination_type: must be TerminationType, not ActionFromRM; {CONVERT}"),
    (noding(action=None), f"NodeRequest.nodes[0].action: must be ActionFromRM, not NoneType; {CONVERT}"),
    (adding(ugi="ada"), f"ApplicationRequest.new[0].ugi: must be UserGroupInformation, not str; {CONVERT}"),
    (adding(ugi=si.UserGroupInformation(groups=("dev", 1))), f"ApplicationRequest.new[0].ugi.groups[1]: must be str, not int; {CONVERT}"),
    (registering(config=b"partitions:"), f"RegisterResourceManagerRequest.config: must be str, not bytes; {CONVERT}"),
    (si.UpdateConfigurationRequest(rm_id=1), f"UpdateConfigurationRequest.rm_id: must be str, not int; {CONVERT}"),
    # Ranges.
    (asking(ask(priority=2**31)), "AllocationRequest.asks[0].priority: must lie within -2147483648 and 2147483647; the interface carries no more"),
    (asking(ask(max_allocations=-(2**31) - 1)), "AllocationRequest.asks[0].max_allocations: must lie within -2147483648 and 2147483647; the interface carries no more"),
    (asking(ask(execution_timeout_milli_seconds=2**63)), "AllocationRequest.asks[0].execution_timeout_milli_seconds: must lie within -9223372036854775808 and 9223372036854775807; the interface carries no more"),
    (noding(schedulable_resource=si.Resource.of({"memory": 2**63})), "NodeRequest.nodes[0].schedulable_resource.resources['memory'].value: must lie within -9223372036854775808 and 9223372036854775807; the interface carries no more"),
    # Sizes and UTF-8.
    (asking(ask(allocation_key="k" * (LONGEST + 1))), f"AllocationRequest.asks[0].allocation_key: {TOO_LONG}"),
    (asking(ask(task_group_name="ä" * 513)), f"AllocationRequest.asks[0].task_group_name: {TOO_LONG}"),
    (asking(ask(tags={"k" * (LONGEST + 1): ""})), f"AllocationRequest.asks[0].tags['{'k' * 40}']: the key {TOO_LONG}"),
    (asking(ask(tags={"k": "v" * (64 * 1024 + 1)})), "AllocationRequest.asks[0].tags['k']: must be at most 65536 bytes of UTF-8; shorten it"),
    (asking(ask(allocation_key="a\ud800")), "AllocationRequest.asks[0].allocation_key: has a lone surrogate at character 1, which UTF-8 cannot carry; replace it"),
    (asking(ask(tags={"\udc00": ""})), "AllocationRequest.asks[0].tags['\\udc00']: the key has a lone surrogate at character 0, which UTF-8 cannot carry; replace it"),
    (asking(ask(resource_ask=si.Resource.of({"r" * (LONGEST + 1): 1}))), f"AllocationRequest.asks[0].resource_ask.resources['{'r' * 40}']: the key {TOO_LONG}"),
    (releasing(uuid="u-1", message="m" * (64 * 1024 + 1)), "AllocationRequest.releases.allocations_to_release[0].message: must be at most 65536 bytes of UTF-8; shorten it"),
    (releasing(uuid="u" * (LONGEST + 1)), f"AllocationRequest.releases.allocations_to_release[0].uuid: {TOO_LONG}"),
    (adding(queue_name="q" * (LONGEST + 1)), f"ApplicationRequest.new[0].queue_name: {TOO_LONG}"),
    (adding(ugi=si.UserGroupInformation(user="u" * (LONGEST + 1))), f"ApplicationRequest.new[0].ugi.user: {TOO_LONG}"),
    (adding(partition_name="p" * (LONGEST + 1)), f"ApplicationRequest.new[0].partition_name: {TOO_LONG}"),
    (noding(attributes={"si/arch": "a" * (64 * 1024 + 1)}), "NodeRequest.nodes[0].attributes['si/arch']: must be at most 65536 bytes of UTF-8; shorten it"),
    (si.UpdateConfigurationRequest(config="c" * (4 * 1024 * 1024 + 1)), "UpdateConfigurationRequest.config: must be at most 4194304 bytes of UTF-8; shorten it"),
    (asking(*[ask()] * 100_001), "AllocationRequest.asks: must have at most 100000 items, not 100001; split the request"),
    (asking(ask(tags={str(n): "" for n in range(100_001)})), "AllocationRequest.asks[0].tags: must have at most 100000 items, not 100001; split the request"),
    (asking(ask(resource_ask=si.Resource.of({str(n): 1 for n in range(100_001)}))), "AllocationRequest.asks[0].resource_ask.resources: must have at most 100000 items, not 100001; split the request"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("request_", "text"), FAULTY, ids=[text.partition(":")[0] for _, text in FAULTY]
)
def test_faulty(request_: si.SiMessage, text: str) -> None:
    with pytest.raises(si.InvalidRequest) as raised:
        si.check_form(request_)
    assert text == str(raised.value)


REQUESTS = "RegisterResourceManagerRequest, AllocationRequest, ApplicationRequest, NodeRequest, UpdateConfigurationRequest"


@pytest.mark.parametrize("stranger", [None, {}, ask(), si.AllocationResponse()])
def test_no_request_at_all(stranger: object) -> None:
    with pytest.raises(si.InvalidRequest) as raised:
        si.check_form(stranger)
    name = type(stranger).__name__
    assert f"{name}: is not the request of this call; pass {REQUESTS}" == str(raised.value)


def test_request_of_another_call() -> None:
    with pytest.raises(si.InvalidRequest) as raised:
        si.check_form(noding(), si.AllocationRequest)
    expected = "NodeRequest: is not the request of this call; pass AllocationRequest"
    assert expected == str(raised.value)


def test_a_subclass_is_not_plain_data() -> None:
    class Key(str):
        __slots__ = ()

    with pytest.raises(si.InvalidRequest) as raised:
        si.check_form(asking(ask(allocation_key=Key("ask-1"))))
    expected = f"AllocationRequest.asks[0].allocation_key: must be str, not Key; {CONVERT}"
    assert expected == str(raised.value)


def test_a_field_without_bounds_cannot_be_declared() -> None:
    class Loose(msgspec.Struct, frozen=True, kw_only=True):
        anything: float = 0.0

    with pytest.raises(TypeError):
        compiled(Loose, {})


# The short cut may only say yes where the full check finds nothing.

FULL = {kind: Form(required=extra.required, rule=extra.rule) for kind, extra in form._FORMS.items()}
JUNK = st.sampled_from([None, True, 0, 2**31, 2**63, 1.5, "", "k" * 1025, "ä", "\ud800", (), {}, {1: ""}, {"k": 1}, si.Quantity(), si.Resource(), si.PreemptionPolicy(allow_preempt_other=1)])  # fmt: skip
NAMES = st.sampled_from(["", "a", "k" * 1024])
QUANTITIES = st.builds(si.Quantity, value=st.integers() | JUNK)
RESOURCES = st.builds(
    si.Resource, resources=st.dictionaries(NAMES, QUANTITIES | JUNK, max_size=3) | JUNK
)
ASKS = st.builds(
    si.AllocationAsk,
    allocation_key=NAMES | JUNK,
    application_id=NAMES | JUNK,
    partition_name=NAMES | JUNK,
    resource_ask=RESOURCES | JUNK,
    max_allocations=st.integers() | JUNK,
    priority=st.integers() | JUNK,
    execution_timeout_milli_seconds=st.integers() | JUNK,
    tags=st.dictionaries(NAMES, NAMES) | JUNK,
    task_group_name=NAMES | JUNK,
    placeholder=st.booleans() | JUNK,
    originator=st.booleans() | JUNK,
    preemption_policy=st.builds(si.PreemptionPolicy) | JUNK,
)
REPORTS = st.builds(
    si.Allocation,
    allocation_key=NAMES | JUNK,
    allocation_tags=st.dictionaries(NAMES, NAMES) | JUNK,
    uuid=NAMES | JUNK,
    resource_per_alloc=RESOURCES | JUNK,
    priority=st.integers() | JUNK,
    node_id=NAMES | JUNK,
    application_id=NAMES | JUNK,
    partition_name=NAMES | JUNK,
    task_group_name=NAMES | JUNK,
    placeholder=st.booleans() | JUNK,
    originator=st.booleans() | JUNK,
    preemption_policy=st.builds(si.PreemptionPolicy) | JUNK,
)
RELEASES = st.builds(
    si.AllocationRelease,
    partition_name=NAMES | JUNK,
    application_id=NAMES | JUNK,
    uuid=NAMES | JUNK,
    termination_type=st.sampled_from(si.TerminationType) | JUNK,
    message=NAMES | JUNK,
    allocation_key=NAMES | JUNK,
)
WITH_ASKS = st.builds(
    si.AllocationRequest,
    asks=st.lists(st.just(ask()) | ASKS, max_size=2).map(tuple) | JUNK,
    releases=st.builds(
        si.AllocationReleasesRequest,
        allocations_to_release=st.lists(RELEASES, max_size=2).map(tuple) | JUNK,
        allocation_asks_to_release=st.just(()) | JUNK,
    )
    | JUNK,
    rm_id=st.just("rm") | NAMES | JUNK,
    allocations=st.just(()) | JUNK,
)
PLAIN = [
    (si.AllocationRequest, plain_request, WITH_ASKS),
    (si.AllocationRelease, plain_release, RELEASES),
    (si.AllocationAsk, plain_ask, ASKS),
    (si.Allocation, plain_allocation, REPORTS),
    (si.Resource, plain_resource, RESOURCES),
]


@ranges.examples(100, 2_000)
@pytest.mark.parametrize(("kind", "is_plain", "values"), PLAIN)
def test_what_is_plain_is_sound(kind: type, is_plain: Any, values: Any, examples: int) -> None:
    full = compiled(kind, FULL)

    @given(values)
    @settings(max_examples=examples)
    def agrees(value: object) -> None:
        assert not is_plain(value) or full(value) is None

    agrees()


@pytest.mark.parametrize("sizes", tuple(product(("sound", "junk", "none"), repeat=3)))
def test_a_size_that_asks_share_counts_for_each_of_them(sizes: tuple[str, ...]) -> None:
    junk = si.Resource(resources={"vcore": "much"})  # type: ignore[dict-item]
    shared = {"sound": si.Resource.of({"vcore": 1}), "junk": junk, "none": None}
    asks = tuple(ask(resource_ask=shared[size]) for size in sizes)
    request = si.AllocationRequest(rm_id="rm", asks=asks)
    assert plain_request(request) is ("junk" not in sizes)


PLAIN_ASK = ask(
    partition_name="default",
    resource_ask=si.Resource.of({"memory": 1, "vcore": 2}),
    tags={"k": "v"},
    preemption_policy=si.PreemptionPolicy(),
)
PLAIN_REPORT = si.Allocation(
    allocation_key="a-1",
    allocation_tags={"k": "v"},
    uuid="u-1",
    resource_per_alloc=si.Resource.of({"memory": 1, "vcore": 2}),
    node_id="n-1",
    application_id="app-1",
    partition_name="default",
    preemption_policy=si.PreemptionPolicy(),
)
PLAIN_RELEASE = si.AllocationRelease(
    partition_name="default",
    application_id="app-1",
    uuid="u-1",
    termination_type=si.TerminationType.STOPPED_BY_RM,
    message="done",
    allocation_key="a-1",
)
ORDINARY = {
    si.AllocationRelease: (PLAIN_RELEASE, plain_release),
    si.AllocationAsk: (PLAIN_ASK, plain_ask),
    si.Allocation: (PLAIN_REPORT, plain_allocation),
}
SPOILT = [
    (kind, {name: junk})
    for kind in ORDINARY
    for name in kind.__struct_fields__
    for junk in (7.5, "\ud800", 2**63, "k" * 1025, {1: ""}, (), si.Quantity())
    if (name, junk) != ("message", "k" * 1025)  # A text may be longer than a name.
]


@pytest.mark.parametrize("kind", ORDINARY)
def test_an_ordinary_one_is_plain(kind: type) -> None:
    ordinary, is_plain = ORDINARY[kind]
    assert is_plain(ordinary)


def test_an_ordinary_request_is_plain() -> None:
    releases = si.AllocationReleasesRequest(allocations_to_release=(PLAIN_RELEASE,))
    assert plain_request(
        si.AllocationRequest(rm_id="rm-1", asks=(PLAIN_ASK, ask()), releases=releases)
    )


@pytest.mark.parametrize("kind", [si.AllocationAsk, si.Allocation])
def test_one_without_its_key_is_never_plain(kind: type) -> None:
    ordinary, is_plain = ORDINARY[kind]
    assert not is_plain(msgspec.structs.replace(ordinary, allocation_key=""))


@pytest.mark.parametrize(("kind", "spoilt"), SPOILT)
def test_one_spoilt_field_is_never_plain(kind: type, spoilt: dict[str, Any]) -> None:
    ordinary, is_plain = ORDINARY[kind]
    value = msgspec.structs.replace(ordinary, **spoilt)
    assert not is_plain(value)
    assert compiled(kind, FULL)(value) is not None
