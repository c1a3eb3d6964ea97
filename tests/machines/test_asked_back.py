"""RmProxy tells a confirmation from a release by the wish of the resource manager.

Context gets the two as two types, and does the same with both: what is asked back stands in its
own state.
"""

from typing import Any

import pytest
from ganging import (
    APP,
    PREEMPTED,
    REPLACED,
    STOPPED,
    TIMED_OUT,
    ask_members,
    confirm,
    gang_lab,
    swapped,
    swapping_lab,
    topologies,
)
from support import PARTITION, RM, Lab

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.machine import Send
from yunikorn_actors.machines.rm_proxy import RmProxy
from yunikorn_actors.machines.rm_proxy.asked_back import RequestedBack
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages.base import CONTEXT, RM_PROXY, Delivery
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.state.facts import AllocationReleased, SwapCompleted

UNKNOWN = si.TerminationType.UNKNOWN_TERMINATION_TYPE
WISHES = (UNKNOWN, STOPPED, si.TerminationType.SCHEDULING_FAILED_ON_RM)
ANSWERS = (TIMED_OUT, PREEMPTED, REPLACED)


def asked(*keys: str, app: str = APP, type_: si.TerminationType = PREEMPTED) -> RequestedBack:
    """RmProxy has sent out that these are asked back; `a` has the UUID `uuid-a`."""
    requested = RequestedBack()
    items = (
        rm.AskedBack(
            partition=PARTITION, application_id=app, uuid=f"uuid-{key}", key=key, type=type_, message=""
        )
        for key in keys
    )  # fmt: skip
    requested.announce(tuple(items))
    return requested


def gone(type_: si.TerminationType = PREEMPTED, **names: Any) -> si.AllocationRelease:
    return si.AllocationRelease(**{"application_id": APP, "termination_type": type_, **names})


@pytest.mark.parametrize("type_", [*WISHES, *ANSWERS], ids=lambda it: it.name)
@pytest.mark.parametrize(
    "names",
    [
        {"uuid": "uuid-a"},
        {"allocation_key": "a"},
        {"uuid": "uuid-a", "allocation_key": "a"},
        {"uuid": "uuid-a", "application_id": ""},
        {"allocation_key": "a", "application_id": ""},
    ],
    ids=["uuid", "key", "both", "uuid alone", "key alone"],
)
def test_what_was_asked_back_is_given_back_with_any_type(
    names: dict[str, str], type_: si.TerminationType
) -> None:
    item = asked("a", "b").release_in(RM, gone(type_, **names))
    assert isinstance(item, rm.GivenBack)
    assert (PREEMPTED, type_) == (item.asked, item.type)


@pytest.mark.parametrize(
    "names",
    [
        {"uuid": "uuid-c"},
        {"allocation_key": "c"},
        {"uuid": "uuid-a", "application_id": "other"},
        {"allocation_key": "a", "application_id": "other"},
        {"allocation_key": "a", "partition_name": "other"},
        {"uuid": "uuid-a", "partition_name": "other"},
    ],
)
def test_what_was_not_asked_back_ends_by_wish_unless_the_type_is_of_the_core(
    names: dict[str, str],
) -> None:
    requested = asked("a", "b")
    assert isinstance(requested.release_in(RM, gone(STOPPED, **names)), rm.ReleaseItem)
    mistaken = requested.release_in(RM, gone(TIMED_OUT, **names))
    assert isinstance(mistaken, rm.GivenBack)
    assert mistaken.asked is None
    assert isinstance(requested.release_in(RM, gone(STOPPED, uuid="uuid-a")), rm.GivenBack)


def test_a_second_confirmation_answers_nothing() -> None:
    requested = asked("a")
    first, second = (requested.release_in(RM, gone(uuid="uuid-a")) for _ in range(2))
    assert isinstance(first, rm.GivenBack)
    assert isinstance(second, rm.GivenBack)
    assert (PREEMPTED, None) == (first.asked, second.asked)


@pytest.mark.parametrize("type_", [*WISHES, *ANSWERS], ids=lambda it: it.name)
def test_all_of_an_application_is_a_wish_and_leaves_nothing(type_: si.TerminationType) -> None:
    requested = asked("a", "b")
    assert isinstance(requested.release_in(RM, gone(type_)), rm.ReleaseItem)
    later = requested.release_in(RM, gone(STOPPED, uuid="uuid-a"))
    assert isinstance(later, rm.ReleaseItem)
    assert [] == requested.uuids


def test_an_end_that_is_announced_is_waited_for_no_more() -> None:
    requested = asked("a", "b")
    ended = rm.AnnouncedRelease(
        partition=PARTITION, application_id=APP, uuid="uuid-a", key="a", type=STOPPED, message=""
    )
    requested.announce((ended,))
    assert ["uuid-b"] == requested.uuids
    assert isinstance(requested.release_in(RM, gone(STOPPED, uuid="uuid-a")), rm.ReleaseItem)


# -- in a core


class Releases:
    """Which releases came to Context, and what they ended."""

    def __init__(self) -> None:
        self.items: list[rm.Released] = []
        self.ends: list[tuple[str, object]] = []

    def delivered(self, _: Simulator, delivery: Delivery) -> None:
        message = delivery.message
        if isinstance(message, rm.RMUpdateAllocation):
            self.items.extend(message.releases)
        if isinstance(message, FactsAppended) and delivery.mailbox == "event_publisher":
            for fact in message.facts:
                if isinstance(fact, AllocationReleased):
                    self.ends.append((fact.key, fact.given_back))
                elif isinstance(fact, SwapCompleted):
                    self.ends.append((fact.placeholder_key, "swapped"))

    def kinds(self) -> list[str]:
        return [f"{type(item).__name__} {item.key}" for item in self.items]


def requested_of(lab: Lab) -> RequestedBack:
    proxy = lab.simulator.machines[RM_PROXY]
    assert isinstance(proxy, RmProxy)
    return proxy.deliveries[RM].requested_back


@topologies
@pytest.mark.parametrize("type_", [REPLACED, STOPPED, TIMED_OUT], ids=lambda it: it.name)
def test_a_swap_is_completed_by_what_is_given_back(
    topology: TopologyName, type_: si.TerminationType
) -> None:
    seen = Releases()
    lab = swapping_lab(crosses=False, topology=topology, checkers=(seen,))
    assert list(lab.state.unconfirmed) == requested_of(lab).uuids
    confirm(lab, "ph-1", type_=type_)
    confirm(lab, "ph-1", type_=type_)
    lab.settle()
    lab.release("real", termination_type=STOPPED)
    lab.settle()
    second = "ReleaseItem ph-1" if type_ is STOPPED else "GivenBack ph-1"
    assert ["GivenBack ph-1", second, "ReleaseItem real"] == seen.kinds()
    assert [("ph-1", "swapped"), ("real", None)] == seen.ends
    assert [] == requested_of(lab).uuids


@topologies
def test_one_request_keeps_the_order_of_wishes_and_confirmations(topology: TopologyName) -> None:
    seen = Releases()
    lab = gang_lab(2, topology=topology, checkers=(seen,))
    ask_members(lab, "real")
    lab.settle()
    asked_back = swapped(lab)
    (other,) = {"ph-1", "ph-2"} - {asked_back}
    items = (gone(STOPPED, allocation_key=other), gone(REPLACED, allocation_key=asked_back))
    lab.request(releases=si.AllocationReleasesRequest(allocations_to_release=items))
    lab.settle()
    assert [f"ReleaseItem {other}", f"GivenBack {asked_back}"] == seen.kinds()
    assert ["real"] == lab.running()


@topologies
def test_after_a_new_registration_the_type_alone_tells(topology: TopologyName) -> None:
    seen = Releases()
    lab = swapping_lab(crosses=False, topology=topology, checkers=(seen,))
    lab.register(type(lab.rm)())
    seen.ends.clear()
    assert [] == requested_of(lab).uuids
    confirm(lab, "ph-1")
    confirm(lab, "ph-1", type_=STOPPED)
    lab.settle()
    assert ["GivenBack ph-1", "ReleaseItem ph-1"] == seen.kinds()
    assert isinstance(seen.items[0], rm.GivenBack)
    assert seen.items[0].asked is None
    assert [] == seen.ends


@topologies
def test_a_wish_that_overtakes_the_request_is_a_wish_and_does_the_same(
    topology: TopologyName,
) -> None:
    """RmProxy handles it before it has heard that the core asks the placeholder back."""
    seen = Releases()
    lab = gang_lab(1, topology=topology, checkers=(seen,))
    ask_members(lab, "real")
    simulator = lab.simulator
    while not lab.state.unconfirmed:
        assert simulator.step(), "vacuous: nothing is asked back"
    assert [] == requested_of(lab).uuids, "vacuous: RmProxy knows of it"
    proxy = simulator.machines[RM_PROXY]
    release = si.AllocationReleasesRequest(
        allocations_to_release=(gone(STOPPED, allocation_key="ph-1"),)
    )
    request = si.AllocationRequest(rm_id=RM, releases=release)
    (*_, sent) = proxy.handle(rm.AllocationsRequested(request=request), simulator.now_ns)
    (item,) = sent.message.releases  # type: ignore[union-attr]
    assert isinstance(item, rm.ReleaseItem)
    lab.request(releases=release)
    lab.settle()
    assert ("ph-1", "swapped") in seen.ends
    assert ["real"] == lab.running()
    assert [] == requested_of(lab).uuids


@topologies
@pytest.mark.parametrize("names", [{"allocation_key": "ph-1"}, {"uuid": "ph-1"}, {}], ids=str)
@pytest.mark.parametrize("type_", ANSWERS, ids=lambda it: it.name)
def test_an_answer_that_overtakes_the_request_ends_it(
    topology: TopologyName, type_: si.TerminationType, names: dict[str, str]
) -> None:
    """It is not echoed, so RmProxy would wait for it for ever."""
    seen = Releases()
    lab = gang_lab(1, topology=topology, checkers=(seen,))
    (uuid,) = lab.state.applications[APP].allocations
    ask_members(lab, "real")
    simulator = lab.simulator
    while not lab.state.unconfirmed:
        assert simulator.step(), "vacuous: nothing is asked back"
    assert [] == requested_of(lab).uuids, "vacuous: RmProxy knows of it"
    named = names | ({"uuid": uuid} if "uuid" in names else {})
    release = si.AllocationReleasesRequest(allocations_to_release=(gone(type_, **named),))
    lab.request(releases=release)
    # RmProxy reads it first: what Context has sent to it waits.
    for channel in [it for it in simulator.channels if it[1] == RM_PROXY and it[0] != CONTEXT]:
        simulator.deliver_from(channel)
    lab.settle()
    assert "ph-1" in [key for key, _ in seen.ends]
    assert [] == requested_of(lab).uuids


def _is_note(effect: object) -> bool:
    return isinstance(effect, Send) and isinstance(effect.message, rm.RMGivenBackUnasked)


def scrambled(item: rm.Released) -> rm.Released:
    """Take it for the other one."""
    names = {name: getattr(item, name) for name in rm.ReleaseItem.__struct_fields__}
    return rm.GivenBack(**names) if isinstance(item, rm.ReleaseItem) else rm.ReleaseItem(**names)


@topologies
@pytest.mark.parametrize("type_", [*WISHES, *ANSWERS], ids=lambda it: it.name)
@pytest.mark.parametrize("key", ["ph-1", "ph-2", "", "nothing"])
def test_context_does_the_same_whatever_rm_proxy_has_taken_it_for(
    topology: TopologyName, key: str, type_: si.TerminationType
) -> None:
    """One of two placeholders is asked back."""
    effects = []
    for is_scrambled in (False, True):
        lab = swapping_lab(2, crosses=False, topology=topology)
        item: rm.Released = rm.ReleaseItem(
            partition=PARTITION, application_id=APP, key=key, type=type_
        )
        if is_scrambled:
            item = scrambled(item)
        message = rm.RMUpdateAllocation(rm_id=RM, releases=(item,))
        found = lab.simulator.machines[CONTEXT].handle(message, lab.simulator.now_ns)
        # That RmProxy is to forget something says only what it has taken it for.
        effects.append([it for it in found if not _is_note(it)])
    assert effects[0] == effects[1]
