"""The checks of a reservation: each reason to refuse, alone, and nothing else to be said.

The proposals are made by hand: a scheduler that proposes wrongly harms nothing.
"""

from collections.abc import Callable

import pytest
from committing import Driver
from written import APP, LEAF, Written, older_waits, start_another

from yunikorn_actors.config import LimitConfig
from yunikorn_actors.machines.context.commit import check_allocate
from yunikorn_actors.machines.context.reservations import check_reserve
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.applications import ApplicationState
from yunikorn_actors.state.proposals import Allocate, Refusal, Reserve, Unreserve
from yunikorn_actors.state.reserved_nodes import WAIT_NS
from yunikorn_actors.values.durations import SECOND

DELAY_NS = 2 * SECOND
STATEAWARE = {"application.sort.policy": "stateaware"}
Change = Callable[[Written], object]


@pytest.fixture
def written() -> Written:
    """Two nodes of 10 with 2 free each; the third has what else the cluster has left."""
    written = Written()
    for name in ("n1", "n2", "n3"):
        written.node(name, vcore=10)
    written.add("fills", user="alice")
    for name in ("n1", "n2"):
        written.recover(f"on-{name}", name, "fills", vcore=8)
    written.move("fills", ApplicationState.RUNNING)
    written.recover("on-n3", "n3", "fills", vcore=4)
    written.add(APP)
    written.ask("a", vcore=8)
    return written


def proposal(written: Written, key: str = "a", node: str = "n1", app: str = APP) -> Reserve:
    ask = written.application(app).asks[key]
    return Reserve(proposal_id=1, application_id=app, key=key, sequence=ask.sequence, node_id=node)


def checked(written: Written, made: Reserve) -> Refusal | None:
    return check_reserve(written.state, made, written.now_ns + DELAY_NS + 1, DELAY_NS)


def _asked_again(written: Written) -> None:
    written.withdraw("a")
    written.ask("a", vcore=8)


def _fail(written: Written) -> None:
    written.ask_back(written.recover("r", "n3", vcore=1))
    written.move(APP, ApplicationState.FAILING)


def _wait_for_placeholders(written: Written) -> None:
    written.ask("ph", vcore=1, placeholder=True, task_group="g")


def _run_another(written: Written) -> None:
    written.reconfigure(LEAF, max_applications=1)


def _run_another_below_root(written: Written) -> None:
    written.reconfigure("root", max_applications=1)


def _keep_for_another(written: Written) -> None:
    """Another application has taken the place by a reservation."""
    written.reconfigure(LEAF, max_applications=2)
    written.add("other")
    written.ask("o", "other", vcore=8)
    written.reserve("o", "n2", "other")


def _keep_for_another_of_the_user(written: Written) -> None:
    limit = LimitConfig(users=("bob",), max_applications=1)
    _keep_for_another(written)
    written.reconfigure(LEAF, limits=(limit,))


def _limit_user(written: Written) -> None:
    limit = LimitConfig(users=("bob",), max_resources={"vcore": 7})
    written.reconfigure(LEAF, limits=(limit,))


def _reserve_for_another(written: Written) -> None:
    written.add("other")
    written.ask("o", "other", vcore=8)
    written.reserve("o", "n1", "other")


def _keep_as_many_as_may_be(written: Written) -> None:
    written.add("other")
    for key, node in (("o2", "n2"), ("o3", "n3")):
        written.ask(key, "other", vcore=8)
        written.reserve(key, node, "other")


def _hold(written: Written) -> None:
    written.record(f.SchedulingHeld(held=True, at_ns=written.now_ns))


CASES: dict[str, tuple[Refusal, Change]] = {
    "paused resource manager": (Refusal.RM_PAUSED, _hold),
    "removed application": (Refusal.ASK_GONE, lambda w: w.remove(APP)),
    "withdrawn ask": (Refusal.ASK_GONE, lambda w: w.withdraw("a")),
    "asked again under its key": (Refusal.ASK_GONE, _asked_again),
    "this node is kept for it": (Refusal.ASK_GONE, lambda w: w.reserve("a", "n1")),
    "a node for each repeat": (Refusal.ASK_GONE, lambda w: w.reserve("a", "n2")),
    "failing": (Refusal.APP_STATE, _fail),
    "its gang is pending": (Refusal.GANG_HELD, _wait_for_placeholders),
    "limit of the leaf": (Refusal.APP_LIMIT, _run_another),
    "limit of an ancestor": (Refusal.APP_LIMIT, _run_another_below_root),
    "place taken by a reservation": (Refusal.APP_LIMIT, _keep_for_another),
    "place of the user taken": (Refusal.APP_LIMIT, _keep_for_another_of_the_user),
    "another one starts": (Refusal.STATEAWARE_BUSY, start_another),
    "an older one waits": (Refusal.STATEAWARE_BUSY, older_waits),
    "lower max": (Refusal.QUEUE_LIMIT, lambda w: w.reconfigure(LEAF, max={"vcore": 27})),
    "full cluster": (Refusal.QUEUE_LIMIT, lambda w: w.recover("r", "n3", "fills", vcore=3)),
    "a type that no node has": (Refusal.QUEUE_LIMIT, lambda w: w.replace("a", vcore=8, gpu=1)),
    "lower limit of the user": (Refusal.USER_LIMIT, _limit_user),
    "removed node": (Refusal.NODE_GONE, lambda w: w.remove_node("n1")),
    "smaller node": (Refusal.NODE_FULL, lambda w: w.resize_node("n1", vcore=7)),
    "drained node": (Refusal.NODE_DRAINING, lambda w: w.schedule("n1", drained=True)),
    "reserved node": (Refusal.NODE_RESERVED, _reserve_for_another),
    "enough nodes are kept": (Refusal.RESERVATION_LIMIT, _keep_as_many_as_may_be),
}


@pytest.mark.parametrize(("expected", "change"), CASES.values(), ids=CASES)
def test_one_reason_to_refuse(expected: Refusal, change: Change, written: Written) -> None:
    """A node that stands in for one that goes keeps the cluster as large."""
    made = proposal(written)
    assert checked(written, made) is None
    if expected in {Refusal.NODE_GONE, Refusal.NODE_FULL}:
        written.node("n4", vcore=10)
    change(written)
    assert expected is checked(written, made)


PASSED_BY_A_REQUIRED_NODE = ("full cluster", "drained node", "enough nodes are kept")


@pytest.mark.parametrize("case", PASSED_BY_A_REQUIRED_NODE)
def test_a_required_node_is_kept_all_the_same(case: str, written: Written) -> None:
    written.ask("d", vcore=8, required_node="n1")
    CASES[case][1](written)
    assert checked(written, proposal(written, "d")) is None


@pytest.mark.parametrize(
    "case", ["limit of the leaf", "place taken by a reservation", "lower max", "smaller node"]
)
def test_a_required_node_passes_no_quota(case: str, written: Written) -> None:
    expected, change = CASES[case]
    written.ask("d", vcore=8, required_node="n1")
    change(written)
    assert expected is checked(written, proposal(written, "d"))


def test_no_node_is_kept_twice_for_one_ask(written: Written) -> None:
    """Another repeat may have another node."""
    written.ask("twice", vcore=4, repeats=2)
    written.reserve("twice", "n1")
    assert Refusal.ASK_GONE is checked(written, proposal(written, "twice", "n1"))
    assert checked(written, proposal(written, "twice", "n2")) is None


def test_of_a_type_that_no_node_has_an_ask_may_want_nothing(written: Written) -> None:
    written.replace("a", vcore=8, gpu=0)
    assert checked(written, proposal(written)) is None


def test_nodes_of_asks_that_can_run_nowhere_else_do_not_count(written: Written) -> None:
    """As many are kept as may be kept for asks that only wait."""
    for number in (2, 3):
        written.ask(f"d{number}", vcore=8, required_node=f"n{number}")
        written.reserve(f"d{number}", f"n{number}")
    assert checked(written, proposal(written)) is None


def test_another_node_is_of_no_use(written: Written) -> None:
    written.ask("d", vcore=8, required_node="n1")
    assert Refusal.NODE_FULL is checked(written, proposal(written, "d", "n2"))


def test_an_allocation_does_not_get_the_place_of_a_reservation(written: Written) -> None:
    written.ask("small", vcore=1)
    ask = written.application().asks["small"]
    made = Allocate(
        proposal_id=1, application_id=APP, key="small", sequence=ask.sequence, node_id="n3"
    )
    assert check_allocate(written.state, made) is None
    _keep_for_another(written)
    assert Refusal.APP_LIMIT is check_allocate(written.state, made)
    written.drop("o", "n2", "other")
    assert check_allocate(written.state, made) is None


def test_who_has_the_place_may_use_it(written: Written) -> None:
    """For another node, and another ask, as well."""
    written.reconfigure(LEAF, max_applications=2)
    written.reserve("a", "n1")
    written.ask("b", vcore=2)
    assert checked(written, proposal(written, "b", "n2")) is None
    ask = written.application().asks["b"]
    made = Allocate(proposal_id=1, application_id=APP, key="b", sequence=ask.sequence, node_id="n3")
    assert check_allocate(written.state, made) is None
    written.reconfigure(LEAF, max_applications=1)
    assert Refusal.APP_LIMIT is check_allocate(written.state, made)


def test_only_an_ask_of_age_has_a_node_kept(written: Written) -> None:
    """One that can run nowhere else has it at once."""
    made = proposal(written)
    of_age_ns = written.application().asks["a"].created_ns + DELAY_NS
    found = [check_reserve(written.state, made, of_age_ns + more, DELAY_NS) for more in (0, 1)]
    assert [Refusal.RESERVATION_LIMIT, None] == found
    written.ask("d", vcore=8, required_node="n1")
    assert check_reserve(written.state, proposal(written, "d"), written.now_ns, DELAY_NS) is None


# -- how many nodes are kept, and which of them a repeat gives up that is placed


class Keeping(Driver):
    def keep(self, node: str, key: str = "a") -> Refusal | None:
        return self.commit(proposal(self.written, key, node))

    def give_up(self, node: str = "n1", key: str = "a", app: str = APP) -> Refusal | None:
        return self.commit(self.given_up(node, key, app))

    def given_up(self, node: str = "n1", key: str = "a", app: str = APP) -> Unreserve:
        sequence = self.written.application(app).asks[key].sequence
        return Unreserve(
            proposal_id=1, application_id=app, key=key, sequence=sequence, node_id=node
        )


@pytest.mark.parametrize(
    ("percent", "drained", "most"),
    [("0", 0, 2), ("50", 0, 4), ("50", 1, 4), ("50", 2, 3), ("99", 3, 5), ("100", 3, 6)],
)
def test_a_share_of_the_nodes_that_take_work_is_kept(percent: str, drained: int, most: int) -> None:
    """Rounded down, and two nodes at least; the last ones of nine take no work."""
    written = Written()
    written.reconfigure("root", properties={"reservation.max.nodes.percent": percent})
    names = [f"n{number}" for number in range(9)]
    for name in names:
        written.node(name, vcore=1)
    for name in names[9 - drained :]:
        written.schedule(name, drained=True)
    written.add(APP)
    written.ask("a", vcore=1, repeats=9)
    driver = Keeping(written, later_ns=DELAY_NS, settings=Settings(reservation_delay_ns=DELAY_NS))
    found = [driver.keep(name) for name in names[: 9 - drained]]
    assert [None] * most + [Refusal.RESERVATION_LIMIT] * (9 - drained - most) == found


Kept = dict[str, bool]
"""Names of nodes, and whether room there was promised."""

OF_PLACING: dict[str, tuple[Kept, str, tuple[str, ...]]] = {
    "the node itself": ({"n1": False, "n2": False}, "n2", ("n1",)),
    "the first, if none of them is the node": ({"n1": False, "n2": False}, "n3", ("n2",)),
    "one that only waits goes before a promise": ({"n1": True, "n2": False}, "n3", ("n1",)),
    "a promise stays for the repeat that is left": ({"n1": True}, "n3", ("n1",)),
    "the first promise, if none is left for it": ({"n1": True, "n2": True}, "n3", ("n2",)),
}


def _keep_for_two_repeats(written: Written, kept: Kept) -> Keeping:
    """They have room on each node."""
    written.ask("twice", vcore=2, repeats=2)
    for node, promises in kept.items():
        written.reserve("twice", node, promises=promises)
    return Keeping(written, settings=Settings())


@pytest.mark.parametrize(("kept", "node", "left"), OF_PLACING.values(), ids=OF_PLACING)
def test_a_repeat_that_is_placed_gives_one_node_up(
    written: Written, kept: Kept, node: str, left: tuple[str, ...]
) -> None:
    driver = _keep_for_two_repeats(written, kept)
    assert driver.allocate("twice", node, APP) is None
    assert left == written.application().asks["twice"].reserved


@pytest.mark.parametrize(("most", "expected"), [(23, Refusal.QUEUE_LIMIT), (24, None)])
def test_a_promise_to_another_repeat_counts_for_the_quota(
    written: Written, most: int, expected: Refusal | None
) -> None:
    """Elsewhere 20 are used, and 2 are promised to the repeat that is left."""
    driver = _keep_for_two_repeats(written, {"n1": True})
    written.reconfigure(LEAF, max={"vcore": most})
    assert expected is driver.allocate("twice", "n3", APP)


# -- a node that is given up because it is of no use


@pytest.fixture
def old(written: Written) -> Keeping:
    """A node has been kept for an hour, and its ask has no headroom."""
    written.reserve("a", "n1")
    written.reconfigure(LEAF, max={"vcore": 27})
    return Keeping(written, later_ns=WAIT_NS, settings=Settings())


def _give_up_and_keep(written: Written) -> None:
    written.drop("a", "n1")
    written.reconfigure(LEAF)
    written.reserve("a", "n2")
    written.reconfigure(LEAF, max={"vcore": 27})


def _drop_and_ask_again(written: Written) -> None:
    written.drop("a", "n1")
    _asked_again(written)
    written.reserve("a", "n1")


def _drop_and_remove(written: Written) -> None:
    written.drop("a", "n1")
    written.remove(APP)


def _drop_and_withdraw(written: Written) -> None:
    written.drop("a", "n1")
    written.withdraw("a")


OF_GIVING_UP: dict[str, tuple[Refusal, Change]] = {
    "paused resource manager": (Refusal.RM_PAUSED, _hold),
    "removed application": (Refusal.RESERVATION_GONE, _drop_and_remove),
    "withdrawn ask": (Refusal.RESERVATION_GONE, _drop_and_withdraw),
    "asked again under its key": (Refusal.RESERVATION_GONE, _drop_and_ask_again),
    "dropped": (Refusal.RESERVATION_GONE, lambda w: w.drop("a", "n1")),
    "another node is kept": (Refusal.RESERVATION_GONE, _give_up_and_keep),
    "headroom has come back": (Refusal.RESERVATION_GONE, lambda w: w.reconfigure(LEAF)),
}


@pytest.mark.parametrize("case", OF_GIVING_UP)
def test_one_reason_to_keep_a_node(case: str, old: Keeping) -> None:
    expected, change = OF_GIVING_UP[case]
    made = old.given_up()
    change(old.written)
    assert expected is old.commit(made)


def test_what_was_kept_anew_stays_kept(old: Keeping) -> None:
    """The proposal was about the reservation before this one."""
    old.written.drop("a", "n1")
    old.written.reserve("a", "n1")
    kept = old.written.state.nodes["n1"].reservations[APP, "a"]
    old.later_ns = kept.made_ns + WAIT_NS - 1 - old.written.now_ns
    assert old.give_up() is Refusal.RESERVATION_GONE


OF_NO_USE: dict[str, Change] = {
    "no headroom": lambda w: w.reconfigure(LEAF, max={"vcore": 27}),
    "full cluster": lambda w: w.recover("r", "n3", "fills", vcore=3),
    "lower limit of the user": _limit_user,
    "limit of the leaf": _run_another,
    "another one starts": start_another,
    "place of the user taken": lambda w: w.reconfigure(
        LEAF, limits=(LimitConfig(users=("bob",), max_applications=1),)
    ),
}


@pytest.mark.parametrize("case", OF_NO_USE)
def test_what_is_of_no_use_is_given_up_after_an_hour(case: str, written: Written) -> None:
    written.reserve("a", "n1")
    driver = Keeping(written, later_ns=WAIT_NS, settings=Settings())
    assert driver.give_up() is Refusal.RESERVATION_GONE
    if case == "place of the user taken":
        written.add("second")
        written.recover("r", "n3", "second", vcore=1)
    OF_NO_USE[case](written)
    kept = written.state.nodes["n1"].reservations[APP, "a"]
    driver.later_ns = kept.made_ns + WAIT_NS - 1 - written.now_ns
    assert driver.give_up() is Refusal.RESERVATION_GONE
    driver.later_ns += 1
    assert driver.give_up() is None
    assert {} == written.state.nodes["n1"].reservations


def test_a_full_cluster_is_nothing_to_a_required_node(written: Written) -> None:
    written.ask("d", vcore=8, required_node="n1")
    written.reserve("d", "n1")
    written.recover("r", "n3", "fills", vcore=3)
    driver = Keeping(written, later_ns=WAIT_NS, settings=Settings())
    assert driver.give_up(key="d") is Refusal.RESERVATION_GONE
    written.reconfigure(LEAF, max={"vcore": 27})
    assert driver.give_up(key="d") is None
