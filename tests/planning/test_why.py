"""Why an ask waits: each thing that can refuse it, what it lacks, and that the change frees it."""

from collections.abc import Callable

import pytest
from written import APP, LEAF, Written

from yunikorn_actors.config import LimitConfig
from yunikorn_actors.planning.model.shape import Use
from yunikorn_actors.planning.reasons import Cause, NearMiss, NodeCheck, Obstacle, Why
from yunikorn_actors.planning.why.explain import explain, explain_all
from yunikorn_actors.planning.why.node_obstacles import _WORDS
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.applications import ApplicationState


def why(written: Written, key: str = "a", app: str = APP) -> Why:
    found = explain(written.planner, app, key, written.now_ns)
    assert found is not None
    return found


def obstacle(written: Written, key: str = "a", app: str = APP) -> Obstacle:
    return why(written, key, app).obstacle


def with_node(vcore: int = 10, **leaf: object) -> Written:
    written = Written()
    if leaf:
        written.reconfigure(LEAF, **leaf)
    written.node("n1", vcore=vcore)
    written.add(APP)
    return written


def test_each_check_of_a_node_has_words() -> None:
    """What is refused is worded by the manager; a check without words is counted nowhere."""
    assert {*NodeCheck} - {NodeCheck.REFUSED} == _WORDS.keys()


def test_the_quota_of_a_queue() -> None:
    written = with_node(max={"vcore": 4})
    written.ask("f", vcore=3)
    written.allocate("f", "n1")
    written.ask("a", vcore=2, created_ns=77)
    found = why(written)
    assert (APP, "a", 1, 77, ()) == (
        found.application_id, found.key, found.repeats, found.since_ns, found.reserved,
    )  # fmt: skip
    assert (Cause.QUEUE_LIMIT, LEAF, {"vcore": 1}) == (
        found.obstacle.cause, found.obstacle.where, found.obstacle.lacks,
    )  # fmt: skip
    assert str(found) == (
        "a of app-1: queue root.default has no room for it, vcore 1m short: "
        "vcore 3m of vcore 4m are used; release that much there, or raise the maximum"
    )
    assert ({"vcore": 2}, {"vcore": 3}, {"vcore": 4}, False) == (
        found.obstacle.wanted, found.obstacle.used, found.obstacle.maximum, found.obstacle.never,
    )  # fmt: skip
    written.reconfigure(LEAF, max={"vcore": 5})
    assert Cause.NEXT is obstacle(written).cause


def test_the_parent_comes_after_the_leaf() -> None:
    written = Written()
    written.queue("root.q", leaf=False, max={"vcore": 4})
    written.queue("root.q.leaf", max={"vcore": 8})
    written.node("n1", vcore=10)
    written.add(APP, queue="root.q.leaf")
    written.ask("a", vcore=9)
    assert ("root.q.leaf", {"vcore": 1}) == (obstacle(written).where, obstacle(written).lacks)
    written.replace("a", vcore=6)
    assert ("root.q", {"vcore": 2}) == (obstacle(written).where, obstacle(written).lacks)


def test_what_is_in_flight_counts() -> None:
    written = with_node(max={"vcore": 4})
    written.ask("f", vcore=3)
    assert 1 == len(written.plan())
    written.ask("a", vcore=2)
    assert {"vcore": 1} == obstacle(written).lacks
    assert Cause.ON_ITS_WAY is obstacle(written, "f").cause


def test_what_is_promised_to_the_ask_itself() -> None:
    """It uses up the maximum for everybody else, so it is no obstacle to the ask."""
    written = with_node(vcore=4, max={"vcore": 4})
    written.queue("root.other")
    written.add("other", queue="root.other")
    written.ask("f", "other", vcore=4)
    written.ask_back(written.allocate("f", "n1", "other"), "other")
    written.node("n2", vcore=3)
    written.node("n3", vcore=3)
    written.ask("a", vcore=4)
    written.reserve("a", "n1", promises=True)
    assert (Cause.NODE_KEPT, "n1") == (obstacle(written).cause, obstacle(written).where)
    written.ask("b", vcore=1)
    assert (Cause.QUEUE_LIMIT, LEAF) == (obstacle(written, "b").cause, obstacle(written, "b").where)


def test_the_whole_cluster() -> None:
    written = with_node()
    written.ask("a", vcore=11, gpu=1)
    assert (Cause.CLUSTER_FULL, "root", {"vcore": 1, "gpu": 1}) == (
        obstacle(written).cause, obstacle(written).where, obstacle(written).lacks,
    )  # fmt: skip
    written.node("n2", vcore=11, gpu=1)
    assert Cause.NEXT is obstacle(written).cause


def test_a_limit_of_a_user() -> None:
    limit = LimitConfig(users=("bob",), max_resources={"vcore": 2}, max_applications=1)
    written = with_node(limits=(limit,))
    written.ask("a", vcore=3)
    found = obstacle(written)
    assert (Cause.USER_LIMIT, LEAF, {"vcore": 1}) == (found.cause, found.where, found.lacks)
    assert found.never
    assert found.text == (
        "limit of user bob in root.default can never hold it: "
        "it asks for vcore 3m, and the maximum is vcore 2m"
    )


STARTS: dict[str, tuple[dict[str, object], str]] = {
    "of a queue": ({"max_applications": 1}, "queue root.default"),
    "of a user": (
        {"limits": (LimitConfig(users=("bob",), max_applications=1),)},
        "limit of user bob in root.default",
    ),
}


@pytest.mark.parametrize(("leaf", "who"), STARTS.values(), ids=STARTS)
def test_a_maximum_of_applications(leaf: dict[str, object], who: str) -> None:
    written = with_node(**leaf)
    written.ask("f", vcore=1)
    written.allocate("f", "n1")
    written.move(APP, ApplicationState.RUNNING)
    written.add("second")
    written.ask("a", "second", vcore=1)
    found = obstacle(written, app="second")
    assert (Cause.APP_LIMIT, LEAF) == (found.cause, found.where)
    text = f"{who} has reached its maximum of running applications, 1 of 1: app-1"
    assert (text, 1, 1, ("app-1",)) == (
        found.text, found.running, found.running_max, found.holders,
    )  # fmt: skip


def test_a_maximum_that_many_applications_share() -> None:
    written = with_node(max_applications=4)
    for number in range(2, 7):
        name = f"app-{number}"
        written.add(name)
        written.ask("a", name, vcore=9)
    for number in (2, 3, 4):
        written.recover("r", "n1", f"app-{number}", vcore=1)
    written.reserve("a", "n1", "app-5")
    assert obstacle(written, app="app-6").text == (
        "queue root.default has reached its maximum of running applications, 4 of 4: "
        "app-5 (a node is reserved for it), app-2, app-3 and 1 more"
    )


def test_an_application_that_takes_no_part() -> None:
    written = with_node()
    written.ask("a", vcore=1)
    written.application().state = ApplicationState.RESUMING
    assert (Cause.APP_STATE, "Resuming") == (obstacle(written).cause, obstacle(written).where)


def test_a_resource_manager_that_is_away() -> None:
    written = with_node()
    written.ask("a", vcore=1)
    written.record(f.SchedulingHeld(held=True, at_ns=written.now_ns))
    assert Cause.RM_PAUSED is obstacle(written).cause


def _drained(written: Written) -> None:
    written.schedule("n2", drained=True)


def _kept(written: Written) -> None:
    written.ask("other", vcore=8)
    written.reserve("other", "n2")


def _full(written: Written) -> None:
    written.foreign("f", "n2", vcore=6)


NODES: dict[str, tuple[Callable[[Written], None], dict[str, int], str]] = {
    "drained": (
        _drained, {"NO_WORK": 1, "TOO_SMALL": 1},
        ("of 2 nodes: 1 taking no work, 1 too small (short of vcore on 1); "
        "n1 is nearest, vcore 2m short"),
    ),
    "reserved for others": (
        _kept, {"KEPT": 1, "TOO_SMALL": 1},
        ("of 2 nodes: 1 reserved for others (n2 for other of app-1), 1 too small (short of vcore on 1); "
        "n1 is nearest, vcore 2m short"),
    ),
    "full": (
        _full, {"TOO_SMALL": 1, "FULL": 1},
        ("of 2 nodes: 1 too small, 1 too full (short of vcore on 2); "
        "n2 is nearest, vcore 3m short (others use vcore 6m there)"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("fill", "counts", "text"), NODES.values(), ids=NODES)
def test_no_node_and_which_is_nearest(
    fill: Callable[[Written], None], counts: dict[str, int], text: str
) -> None:
    """One that is full is nearer than one that never could: time may free it."""
    written = with_node(3)
    written.node("n2", vcore=8)
    fill(written)
    written.ask("a", vcore=5)
    found = obstacle(written)
    assert (Cause.NO_NODE, counts, text) == (found.cause, found.nodes, found.text)
    written.node("n3", vcore=5)
    assert Cause.NEXT is obstacle(written).cause


def test_nothing_but_kept_nodes() -> None:
    written = with_node()
    written.ask("other", vcore=8)
    written.reserve("other", "n1")
    written.ask("a", vcore=5)
    found = obstacle(written)
    text = "of 1 node: 1 reserved for others (n1 for other of app-1)"
    assert (None, text, {"n1": "other of app-1"}) == (found.near_miss, found.text, found.kept_for)


def test_an_ask_with_a_node_kept_for_it() -> None:
    written = with_node(4)
    written.node("n2", vcore=3)
    written.ask("f", vcore=3)
    written.allocate("f", "n1")
    written.ask("a", vcore=4, repeats=2)
    written.reserve("a", "n1")
    written.reserve("a", "n1")  # for another repeat
    found = why(written)
    assert ("n1",) == found.reserved
    assert (Cause.NODE_KEPT, "n1", {"vcore": 3}) == (
        found.obstacle.cause, found.obstacle.where, found.obstacle.lacks,
    )  # fmt: skip


def test_a_required_node_that_is_full() -> None:
    """The others do not count, so the text is not of one node of one."""
    written = with_node(3)
    written.node("n2", vcore=8)
    _full(written)
    written.ask("a", vcore=5, required_node="n2")
    found = obstacle(written)
    text = "node n2, which it requires, is too full, vcore 3m short (others use vcore 6m there)"
    assert (Cause.NO_NODE, "n2", text) == (found.cause, found.where, found.text)


def test_a_required_node() -> None:
    """Neither a drain nor the size of the cluster holds it back; its node must be there."""
    written = with_node(2)
    written.ask("a", vcore=3, required_node="n2")
    assert "node n2 is not registered" == obstacle(written).text
    written.node("n2", vcore=4)
    written.schedule("n2", drained=True)
    written.foreign("f", "n2", vcore=2)
    near = NearMiss(node_id="n2", check=NodeCheck.FULL, lacks={"vcore": 1}, foreign={"vcore": 2})
    assert (Cause.NO_NODE, near) == (obstacle(written).cause, obstacle(written).near_miss)
    written.remove_foreign("f")
    assert Cause.NEXT is obstacle(written).cause


def test_what_the_resource_manager_refuses() -> None:
    written = with_node()
    written.node("n2", vcore=10)
    written.node("n3", vcore=1)
    written.ask("a", vcore=2)
    for reason in ("no disk", "no disk"):
        (proposal,) = written.plan()
        written.planner.deny(proposal, reason, written.now_ns, Use.PLACING)
    found = obstacle(written)
    assert (Cause.PREDICATES, {"TOO_SMALL": 1, "REFUSED": 2}, {"no disk": 2}) == (
        found.cause, found.nodes, found.refusals,
    )  # fmt: skip
    assert found.until_ns == written.now_ns + 15 * 10**9
    assert found.text == "its resource manager refuses every node that has room: no disk (2x)"
    written.planner.denials.lift_all()
    assert Cause.NEXT is obstacle(written).cause


def test_what_is_not_known_has_no_reason() -> None:
    written = with_node()
    assert explain(written.planner, APP, "never", 0) is None
    assert explain(written.planner, "nobody", "a", 0) is None


def test_all_of_them_up_to_a_bound() -> None:
    written = with_node(2)
    written.add("other")
    for key in ("a", "b"):
        written.ask(key, vcore=3)
    written.ask("c", "other", vcore=1)
    found = explain_all(written.planner, 10, 0)
    assert [("a", Cause.CLUSTER_FULL), ("b", Cause.CLUSTER_FULL), ("c", Cause.NEXT)] == [
        (item.key, item.obstacle.cause) for item in found.asks
    ]
    first = explain_all(written.planner, 2, 0)
    assert ["a", "b"] == [item.key for item in first.asks]
    assert (3, {"CLUSTER_FULL": 2, "NEXT": 1}) == (first.total, first.causes)
    assert first.causes == found.causes


def _held_gang(**bounds: object) -> Written:
    written = with_node(**bounds)
    written.add("gang", placeholder_ask={"vcore": 4})
    written.ask("ph", "gang", vcore=2, repeats=2, placeholder=True, task_group="g")
    return written


def test_a_gang_that_its_user_may_never_have() -> None:
    written = _held_gang(limits=(LimitConfig(users=("bob",), max_resources={"vcore": 3}),))
    found = obstacle(written, "ph", "gang")
    assert (Cause.GANG_HELD, LEAF) == (found.cause, found.where)
    assert found.text.startswith("limit of user bob in root.default never has room")


def test_a_gang_that_waits_for_what_is_to_come_of_another() -> None:
    written = _held_gang(max={"vcore": 6})
    written.add("other", placeholder_ask={"vcore": 3})
    assert Cause.GANG_HELD is not obstacle(written, "ph", "gang").cause
    written.admit("other")
    found = obstacle(written, "ph", "gang")
    assert (Cause.GANG_HELD, LEAF) == (found.cause, found.where)
    assert found.text == (
        "queue root.default has no room for the whole gang, vcore 1m short: "
        "vcore 0 of vcore 6m are used, and vcore 3m are to come of other gangs"
    )
    assert ({"vcore": 4}, {"vcore": 3}, {"vcore": 1}) == (
        found.wanted, found.promised, found.lacks,
    )  # fmt: skip


def test_a_gang_whose_commitment_has_lapsed() -> None:
    written = _held_gang(max={"vcore": 6})
    written.admit("gang")
    written.lapse("gang")
    written.add("other", placeholder_ask={"vcore": 3})
    written.admit("other")
    found = obstacle(written, "ph", "gang")
    assert Cause.GANG_HELD is found.cause
    lapsed = "its commitment lapsed, because no placeholder could be placed in time"
    assert found.text.endswith(lapsed)
