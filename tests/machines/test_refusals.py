"""The call contract, case by case: who is told what, and that nothing else happens."""

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from support import APP, QUEUE, RM, Lab, Outcome, ask, report, with_everything

from yunikorn_actors import si
from yunikorn_actors.errors import InvalidRequest, UnknownAsk, UnknownResourceManager
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.snapshot import image_of, restore
from yunikorn_actors.values.resource import INT64_MAX

HUGE = "x" * 1_000_000
CREATE = si.ActionFromRM.CREATE
Call: TypeAlias = Callable[[Lab], None]


def _release(**fields: Any) -> si.AllocationReleasesRequest:
    return si.AllocationReleasesRequest(allocations_to_release=(si.AllocationRelease(**fields),))


def _withdraw(**fields: Any) -> si.AllocationReleasesRequest:
    gone = si.AllocationAskRelease(**fields)
    return si.AllocationReleasesRequest(allocation_asks_to_release=(gone,))


def _as(rm_id: str) -> Call:
    return lambda lab: lab.simulator.update_allocation(si.AllocationRequest(rm_id=rm_id))


def _nodes(*infos: Any) -> Call:
    return lambda lab: lab.simulator.update_node(si.NodeRequest(rm_id=RM, nodes=infos))


AT_THE_CALL: dict[str, tuple[type[Exception], Call]] = {
    "no resource manager": (InvalidRequest, _as("")),
    "unknown resource manager": (UnknownResourceManager, _as("rm-2")),
    "id of a megabyte": (InvalidRequest, lambda lab: lab.submit(HUGE)),
    "key of a megabyte": (InvalidRequest, lambda lab: lab.ask(HUGE)),
    "no application id": (InvalidRequest, lambda lab: lab.ask("k", app="")),
    "no key": (InvalidRequest, lambda lab: lab.ask("")),
    "no node id": (InvalidRequest, _nodes(si.NodeInfo(action=CREATE))),
    "a list of asks": (InvalidRequest, lambda lab: lab.request(asks=[ask("k")])),
    "a number for a name": (InvalidRequest, lambda lab: lab.request(asks=(ask("k", app=7),))),  # type: ignore[arg-type]  # the point of the case
    "an amount beyond int64": (InvalidRequest, lambda lab: lab.ask("k", vcore=INT64_MAX + 1)),
    "repeats beyond int32": (InvalidRequest, lambda lab: lab.ask("k", max_allocations=2**31)),
    "an action by number": (InvalidRequest, lambda lab: lab.node("n2", 1, 5)),  # type: ignore[arg-type]  # the point of the case
    "a type by number": (InvalidRequest, lambda lab: lab.release("k", termination_type=1)),
    "a release of nothing at all": (InvalidRequest, lambda lab: lab.request(releases=_release())),
    "a withdrawal of nothing at all": (
        InvalidRequest,
        lambda lab: lab.request(releases=_withdraw(partition_name="default")),
    ),
    "a report without application": (
        InvalidRequest,
        lambda lab: lab.report(report("k", "n1", app="")),
    ),
    "one bad item among good ones": (
        InvalidRequest,
        lambda lab: lab.request(asks=(ask("good"), ask(""))),
    ),
}


@pytest.mark.parametrize("case", AT_THE_CALL)
def test_bad_form_is_refused_at_the_call(case: str) -> None:
    """`Outcome` sees to it that nothing was posted, said or changed."""
    expected, call = AT_THE_CALL[case]
    lab = with_everything()
    outcome = Outcome(lab, lambda: call(lab))
    assert type(outcome.error) is expected


# -- one rejection for each item, and nothing else

COMPLETED = (
    "it is Completed, because it had no work for a while; submit it again, with tag "
    "application.completing.disable=true if it is to stay"
)

PER_ITEM: dict[str, tuple[list[tuple[str, str]], Call]] = {
    "unknown partition": (
        [("k", "Failed to find partition [rm-1]gpu, for application app-1 and allocation k")],
        lambda lab: lab.ask("k", partition_name="gpu"),
    ),
    "unknown application": (
        [("k", "failed to find application ghost")],
        lambda lab: lab.ask("k", app="ghost"),
    ),
    "completed application": (
        [("k", f"failed to find application done: {COMPLETED}")],
        lambda lab: lab.ask("k", app="done"),
    ),
    "nothing wanted": (
        [("k", "allocation contains no resources")],
        lambda lab: lab.ask("k", resource_ask=None),
    ),
    "zero wanted": (
        [("k", "allocation contains no resources")],
        lambda lab: lab.ask("k", vcore=0),
    ),
    "less than nothing wanted": (
        [("k", "allocation contains negative resources")],
        lambda lab: lab.ask("k", vcore=-1),
    ),
    "no repeats": (
        [("k", "maxAllocations must be at least 1, not 0")],
        lambda lab: lab.ask("k", max_allocations=0),
    ),
    "negative repeats": (
        [("k", "maxAllocations must be at least 1, not -7")],
        lambda lab: lab.ask("k", max_allocations=-7),
    ),
    "twice the same fault": (
        [("k", "failed to find application ghost")] * 2,
        lambda lab: lab.ask("k", "k", app="ghost"),
    ),
    "report on an unknown node": (
        [("k", "failed to find node ghost")],
        lambda lab: lab.report(report("k", "ghost")),
    ),
    "report of an unknown application": (
        [("k", "failed to find application ghost")],
        lambda lab: lab.report(report("k", "n1", app="ghost")),
    ),
    "UUID of another allocation": (
        [("k", "UUID core-2 belongs to another allocation")],
        lambda lab: lab.report(report("k", "n1", uuid="core-2")),
    ),
    "UUID without a node": (
        [
            (
                "k",
                "an ask has no UUID: only a running allocation, which names its node, may bring one",
            )
        ],
        lambda lab: lab.report(report("k", "", uuid="u")),
    ),
    "foreign without a node": (
        [("k", "trying to add a foreign request (non-allocation) k")],
        lambda lab: lab.report(report("k", "", app="", allocation_tags={"foreign": "static"})),
    ),
    "foreign on an unknown node": (
        [("k", "failed to find node ghost for allocation k")],
        lambda lab: lab.report(report("k", "ghost", app="", allocation_tags={"foreign": "x"})),
    ),
    "foreign and negative": (
        [("k", "allocation contains negative resources")],
        lambda lab: lab.report(report("k", "n1", -1, app="", allocation_tags={"foreign": "x"})),
    ),
}


@pytest.mark.parametrize("case", PER_ITEM)
def test_bad_substance_is_rejected_once_and_changes_nothing(case: str) -> None:
    expected, call = PER_ITEM[case]
    lab = with_everything()
    outcome = Outcome(lab, lambda: call(lab))
    assert outcome.error is None
    assert expected == lab.rm.told("rejected")
    assert [("rejected", *line) for line in expected] == lab.rm.heard
    assert not outcome.has_changed


def test_the_good_items_of_a_request_are_taken() -> None:
    lab = with_everything()
    lab.request(asks=(ask("bad", app="ghost"), ask("good"), ask("worse", -1)))
    lab.settle()
    assert ["bad", "worse"] == [key for key, _ in lab.rm.told("rejected")]
    assert ["good", "runs"] == lab.running()


def test_a_key_twice_in_one_request_is_one_ask() -> None:
    """The second replaces the first, which waits."""
    lab = with_everything()
    lab.request(asks=(ask("k", 1), ask("k", 3)))
    lab.settle()
    assert ["k", "runs"] == lab.running()
    assert {"vcore": 5} == lab.state.nodes["n1"].allocated


# -- no answer

NOTHING: dict[str, Call] = {
    "empty request": lambda lab: lab.request(),
    "unknown key": lambda lab: lab.release("ghost"),
    "unknown UUID": lambda lab: lab.request(releases=_release(uuid="ghost")),
    "unknown application": lambda lab: lab.release("runs", app="ghost"),
    "finished application": lambda lab: lab.release("end", app="done"),
    "unknown partition": lambda lab: lab.release("runs", partition_name="gpu"),
    "withdrawal of an unknown key": lambda lab: lab.withdraw("ghost"),
    "withdrawal for an unknown application": lambda lab: lab.withdraw("waits", app="ghost"),
    "withdrawal in an unknown partition": lambda lab: lab.request(
        releases=_withdraw(partition_name="gpu", application_id=APP, allocation_key="waits")
    ),
    "timeout of an ask that waits": lambda lab: lab.release(
        "waits", termination_type=si.TerminationType.TIMEOUT
    ),
    "removal of an unknown application": lambda lab: lab.remove("ghost"),
    "removal of a finished application": lambda lab: lab.remove("done"),
    "action on a node in an unknown partition": _nodes(
        si.NodeInfo(
            node_id="n1",
            action=si.ActionFromRM.DECOMISSION,
            attributes={si.constants.NODE_PARTITION: "gpu"},
        )
    ),
}


@pytest.mark.parametrize("case", NOTHING)
def test_nothing_to_do_is_no_error_and_no_answer(case: str) -> None:
    lab = with_everything()
    outcome = Outcome(lab, lambda: NOTHING[case](lab))
    assert outcome.error is None
    assert [] == lab.rm.heard
    assert not outcome.has_changed


# -- applications and nodes: each new one has one answer


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"partition_name": "gpu"}, "Failed to add application new to partition [rm-1]gpu, "),
        ({"user": ""}, "empty user cannot resolve"),
        ({"user": "a b"}, "invalid username, it contains invalid characters"),
        (
            {"placeholder_ask": si.Resource.of({"vcore": -1})},
            "placeholderAsk contains negative resources",
        ),
    ],
)
def test_a_bad_application(fields: dict[str, Any], reason: str) -> None:
    lab = with_everything()
    lab.submit("new", **fields)
    lab.settle()
    ((id_, told),) = lab.rm.told("application")
    assert "new" == id_
    assert told.startswith(reason)
    assert "new" not in lab.state.applications


def test_an_application_without_user() -> None:
    lab = with_everything()
    new = si.AddApplicationRequest(application_id="new", queue_name=QUEUE)
    lab.simulator.update_application(si.ApplicationRequest(rm_id=RM, new=(new,)))
    lab.settle()
    ((id_, told),) = lab.rm.told("application")
    assert "new" == id_
    assert told.startswith("empty user cannot resolve")


def test_an_application_twice_in_one_request() -> None:
    lab = with_everything()
    lab.submit("new", "new")
    lab.settle()
    assert [("new", "accepted")] == lab.rm.told("application")[:1]
    assert 2 == len(lab.rm.told("application"))
    assert "new" in lab.state.applications


FAIR = (
    "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: "
    "[{name: default, properties: {application.sort.policy: fair}}]}]}]"
)


def test_a_placeholder_of_who_is_no_gang_is_rejected_in_a_fair_leaf() -> None:
    """What stands already is taken, and so is all that is no placeholder."""
    lab = Lab(config=FAIR)
    lab.nodes(n1=9)
    lab.submit(APP)
    member = {"task_group_name": "g"}
    lab.report(report("stands", "n1", placeholder=True, **member))
    lab.ask("ph", placeholder=True, **member)
    lab.ask("real")
    lab.settle()
    ((key, reason),) = lab.rm.told("rejected")
    assert "ph" == key
    assert "unsupported sort type" in reason
    assert ["real", "stands"] == lab.running()


def test_placeholders_of_a_gang_that_was_taken_are_taken_when_its_leaf_becomes_fair() -> None:
    lab = Lab()
    lab.nodes(n1=9)
    lab.submit(APP, placeholder_ask=si.Resource.of({"vcore": 1}))
    lab.submit("plain")
    lab.ask("before", app="plain", placeholder=True, task_group_name="g")
    lab.configure(FAIR)
    lab.ask("ph", placeholder=True, task_group_name="g")
    lab.settle()
    assert [] == lab.rm.told("rejected")
    assert ["before", "ph"] == lab.running()


def _node(name: str, vcore: int, **fields: Any) -> si.NodeInfo:
    size = si.Resource.of({"vcore": vcore})
    return si.NodeInfo(
        **{"node_id": name, "action": CREATE, "schedulable_resource": size, **fields}
    )


@pytest.mark.parametrize(
    ("info", "reason"),
    [
        (_node("n1", 5), "node n1 is registered already"),
        (_node("n2", -5), "node n2 has a negative amount"),
        (_node("n2", 5, occupied_resource=si.Resource.of({"vcore": -1})), "negative amount"),
        (
            _node("n2", 5, attributes={si.constants.NODE_PARTITION: "gpu"}),
            "failed to find partition",
        ),
    ],
)
def test_a_bad_node(info: si.NodeInfo, reason: str) -> None:
    lab = with_everything()
    outcome = Outcome(lab, lambda: _nodes(info)(lab))
    ((id_, told),) = lab.rm.told("node")
    assert info.node_id == id_
    assert reason in told
    assert not outcome.has_changed


def test_a_node_twice_in_one_request() -> None:
    lab = with_everything()
    _nodes(_node("n2", 5), _node("n2", 7))(lab)
    lab.settle()
    assert ("n2", "accepted") in lab.rm.told("node")
    assert 2 == len(lab.rm.told("node"))
    assert {"vcore": 5} == lab.state.nodes["n2"].capacity


def test_a_node_shrinks_below_nothing() -> None:
    """Not a create, so nobody is told; the refusal is counted."""
    lab = with_everything()
    _nodes(_node("n1", -5, action=si.ActionFromRM.UPDATE))(lab)
    lab.settle()
    assert {"vcore": 10} == lab.state.nodes["n1"].capacity
    assert ([], 1) == (lab.rm.heard, lab.state.refused_node_actions)


def test_a_node_comes_with_what_nobody_knows() -> None:
    """The node is accepted; what is unknown of its work is rejected by itself."""
    existing = (report("ghostly", "", app="ghost"), report("fine", ""), report("bad", "", -1))
    lab = with_everything()
    _nodes(_node("n2", 5, existing_allocations=existing))(lab)
    lab.settle()
    assert [("n2", "accepted")] == lab.rm.told("node")
    assert ["ghostly", "bad"] == [key for key, _ in lab.rm.told("rejected")]
    assert {"vcore": 1} == lab.state.nodes["n2"].allocated
    assert [] == lab.rm.told("new")


# -- what has become of an application that is not there


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_explain_says_that_an_application_has_ended(topology: TopologyName) -> None:
    lab = Lab(topology=topology)
    lab.submit(APP)
    lab.nodes(n1=10)
    lab.ask("a")
    lab.settle()
    lab.release("a")
    lab.advance(30)
    with pytest.raises(UnknownAsk, match="failed to find application app-1: it is Completed"):
        lab.simulator.explain(APP, "a")


def test_the_last_life_says_why_an_application_is_gone() -> None:
    """Also of a replica that starts from an image; and nothing is kept of one that is forgotten."""
    lab = Lab(settings=Settings(rejected_max=1))
    lab.submit(APP, queue="root.not a name")
    lab.submit("other", queue="root.not a name")
    lab.settle()
    assert ["other"] == list(lab.state.last_ends)
    lab.ask("k", app="other")
    lab.settle()
    [(_, words)] = lab.rm.told("rejected")
    assert words.startswith("failed to find application other: it is Rejected (failed to place")
    again = PartitionState(lab.state.name)
    restore(again, image_of(lab.state))
    assert lab.state.last_ends == again.last_ends
    assert {} == lab.leftovers()
    assert {} == lab.state.last_ends
