"""The check before a commit: each reason to refuse, alone, and nothing else to be said."""

from collections.abc import Callable

import pytest
from committing import Driver
from msgspec.structs import replace
from written import APP, LEAF, Written, older_waits, start_another

from yunikorn_actors.config import LimitConfig
from yunikorn_actors.machines.context.commit import check_allocate
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.applications import ApplicationState
from yunikorn_actors.state.gangs import awaits_admission
from yunikorn_actors.state.proposals import Allocate, Refusal

STATEAWARE = {"application.sort.policy": "stateaware"}


@pytest.fixture
def written() -> Written:
    written = Written()
    written.node("n1", vcore=10)
    written.add(APP)
    written.ask("a", vcore=3)
    return written


@pytest.fixture
def proposal(written: Written) -> Allocate:
    """Made on the view of before; the case then changes the truth."""
    sequence = written.application().asks["a"].sequence
    return Allocate(proposal_id=1, application_id=APP, key="a", sequence=sequence, node_id="n1")


def _used(written: Written, vcore: int) -> None:
    """Something else takes this much of the node and of the queue."""
    written.add("other")
    written.recover("r", "n1", "other", vcore=vcore)


def _asked_again(written: Written) -> None:
    written.withdraw("a")
    written.ask("a", vcore=3)


def _run_another(written: Written) -> None:
    written.reconfigure(LEAF, max_applications=1)
    written.add("other")
    written.move("other", ApplicationState.RUNNING)


def _run_another_below_root(written: Written) -> None:
    written.reconfigure("root", max_applications=1)
    _used(written, 1)


def _reserve_for_another(written: Written) -> None:
    written.add("other")
    written.ask("o", "other", vcore=9)
    written.reserve("o", "n1", "other")


def _require_another_node(written: Written) -> None:
    written.node("n2", vcore=10)
    written.replace("a", vcore=3, required_node="n2")


def _limit_user(written: Written) -> None:
    limit = LimitConfig(users=("bob",), max_resources={"vcore": 2})
    written.reconfigure(LEAF, limits=(limit,))


def _limit_group(written: Written, **most: object) -> None:
    """It counts in the group from now on, which uses 1 by another user's application."""
    limit = LimitConfig(groups=("ops",), **most)  # type: ignore[arg-type]  # as the case says
    written.reconfigure(LEAF, limits=(limit,))
    written.add("other", user="ann")
    for name in (APP, "other"):
        written.link(name, "ops")
    written.recover("r", "n1", "other", vcore=1)


def _fail(written: Written) -> None:
    written.ask_back(written.recover("r", "n1", vcore=1))
    written.move(APP, ApplicationState.FAILING)


def _wait_for_placeholders(written: Written) -> None:
    written.ask("ph", vcore=1, placeholder=True, task_group="g")


OF_OTHER_KINDS = {
    Refusal.VICTIM_GONE,
    Refusal.PREEMPTION_REFUSED,
    Refusal.RESERVATION_LIMIT,
    Refusal.RESERVATION_GONE,
    Refusal.ASK_PARKED,
    Refusal.PLACEHOLDER_GONE,
}
"""Those answer proposals of other kinds."""

CASES: list[tuple[str, Refusal, Callable[[Written], object]]] = [
    ("removed application", Refusal.ASK_GONE, lambda w: w.remove(APP)),
    ("withdrawn ask", Refusal.ASK_GONE, lambda w: w.withdraw("a")),
    ("allocated meanwhile", Refusal.ASK_GONE, lambda w: w.allocate("a", "n1")),
    ("asked again under its key", Refusal.ASK_GONE, _asked_again),
    ("failing", Refusal.APP_STATE, _fail),
    ("its gang is pending", Refusal.GANG_HELD, _wait_for_placeholders),
    ("limit of the leaf", Refusal.APP_LIMIT, _run_another),
    ("limit of an ancestor", Refusal.APP_LIMIT, _run_another_below_root),
    ("another one starts", Refusal.STATEAWARE_BUSY, start_another),
    ("an older one waits", Refusal.STATEAWARE_BUSY, older_waits),
    ("another node alone will do", Refusal.NODE_FULL, _require_another_node),
    ("removed node", Refusal.NODE_GONE, lambda w: w.remove_node("n1")),
    ("drained node", Refusal.NODE_DRAINING, lambda w: w.schedule("n1", drained=True)),
    ("node not ready", Refusal.NODE_DRAINING, lambda w: w.schedule("n1", ready=False)),
    ("reserved node", Refusal.NODE_RESERVED, _reserve_for_another),
    ("smaller node", Refusal.NODE_FULL, lambda w: w.resize_node("n1", vcore=2)),
    ("foreign work", Refusal.NODE_FULL, lambda w: w.foreign("f", "n1", vcore=8)),
    ("recovered work", Refusal.NODE_FULL, lambda w: _used(w, 8)),
    ("larger ask", Refusal.NODE_FULL, lambda w: w.replace("a", vcore=11)),
    ("a type that the node has not", Refusal.NODE_FULL, lambda w: w.replace("a", gpu=1)),
    ("lower max", Refusal.QUEUE_LIMIT, lambda w: w.reconfigure(LEAF, max={"vcore": 2})),
    ("lower limit of the user", Refusal.USER_LIMIT, _limit_user),
    (
        "lower limit of the group",
        Refusal.USER_LIMIT,
        lambda w: _limit_group(w, max_resources={"vcore": 3}),
    ),
    ("place of the group taken", Refusal.APP_LIMIT, lambda w: _limit_group(w, max_applications=1)),
    ("max of zero", Refusal.QUEUE_LIMIT, lambda w: w.reconfigure(LEAF, max={"vcore": 0})),
    (
        "paused resource manager",
        Refusal.RM_PAUSED,
        lambda w: w.record(f.SchedulingHeld(held=True, at_ns=w.now_ns)),
    ),
]


@pytest.mark.parametrize(("expected", "change"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_one_reason_to_refuse(
    expected: Refusal, change: Callable[[Written], object], written: Written, proposal: Allocate
) -> None:
    assert check_allocate(written.state, proposal) is None
    change(written)
    assert expected is check_allocate(written.state, proposal)


@pytest.mark.parametrize(("expected", "change"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_what_is_refused_is_not_committed(
    expected: Refusal, change: Callable[[Written], object], written: Written, proposal: Allocate
) -> None:
    change(written)
    assert expected is Driver(written, settings=Settings()).commit(proposal)


def test_every_refusal_is_reachable() -> None:
    assert set(Refusal) - OF_OTHER_KINDS == {refusal for _, refusal, _ in CASES}


def test_a_full_root_is_a_limit_of_its_own(written: Written, proposal: Allocate) -> None:
    """The cluster is full although this node has room: another one owes more than it has."""
    written.node("n2", vcore=1)
    written.add("other")
    written.recover("r", "n2", "other", vcore=9)
    assert Refusal.QUEUE_LIMIT is check_allocate(written.state, proposal)


def test_the_maximum_of_each_queue_above_holds() -> None:
    written = Written()
    written.queue("root.team", leaf=False, max={"vcore": 2})
    written.queue("root.team.leaf")
    written.node("n1", vcore=10)
    written.add(APP, queue="root.team.leaf")
    written.ask("a", vcore=3)
    sequence = written.application().asks["a"].sequence
    proposal = Allocate(proposal_id=1, application_id=APP, key="a", sequence=sequence, node_id="n1")
    assert Refusal.QUEUE_LIMIT is check_allocate(written.state, proposal)


def test_a_limit_of_another_type_does_not_count(written: Written, proposal: Allocate) -> None:
    written.reconfigure(LEAF, max={"memory": 0})
    assert check_allocate(written.state, proposal) is None


@pytest.mark.parametrize("vcore", [0, 3, 10])
def test_what_fits_exactly_fits(written: Written, proposal: Allocate, vcore: int) -> None:
    written.reconfigure(LEAF, max={"vcore": vcore})
    written.replace("a", vcore=vcore, memory=0)
    assert check_allocate(written.state, proposal) is None


def test_the_check_changes_nothing(written: Written, proposal: Allocate) -> None:
    before = written.state.revision
    for node_id in ("n1", "gone"):
        check_allocate(written.state, replace(proposal, node_id=node_id))
    assert before == written.state.revision


@pytest.mark.parametrize("fields", [{"users": ("bob",)}, {"groups": ("ops",)}])
def test_who_runs_needs_no_place_of_the_user(
    written: Written, proposal: Allocate, fields: dict[str, tuple[str, ...]]
) -> None:
    """It came back from Completing, and counts again only when something of it is placed."""
    written.move(APP, ApplicationState.RUNNING)
    written.reconfigure(LEAF, limits=(LimitConfig(max_applications=1, **fields),))
    written.link(APP, "ops")
    _used(written, 1)
    assert check_allocate(written.state, proposal) is None


def test_a_type_that_is_not_wanted_does_not_count(written: Written, proposal: Allocate) -> None:
    """The node owes some of it, which the ask names and does not want."""
    written.replace("a", vcore=3, memory=0)
    written.foreign("f", "n1", memory=5)
    assert check_allocate(written.state, proposal) is None


def test_who_is_starting_by_a_swap_bars_others_alone(written: Written, proposal: Allocate) -> None:
    written.reconfigure(LEAF, properties=STATEAWARE)
    written.ask("ph", vcore=1, placeholder=True, task_group="g")
    written.allocate("ph", "n1")
    written.ask("member", vcore=1, task_group="g")
    written.park("member", "ph", "n1")
    assert written.application().is_starting
    assert check_allocate(written.state, proposal) is None
    written.add("second")
    written.ask("b", "second", vcore=1)
    sequence = written.application("second").asks["b"].sequence
    other = replace(proposal, application_id="second", key="b", sequence=sequence)
    assert Refusal.STATEAWARE_BUSY is check_allocate(written.state, other)


def test_only_who_may_start_bars_others(written: Written, proposal: Allocate) -> None:
    """An older one runs already, and the gang of another is held."""
    written.reconfigure(LEAF, properties=STATEAWARE)
    written.add("runs", "gang", placeholder_ask={"vcore": 1})
    written.move("runs", ApplicationState.RUNNING)
    written.ask("more", "runs", vcore=1, created_ns=1)
    written.ask("ph", "gang", vcore=1, created_ns=1, placeholder=True, task_group="g")
    assert awaits_admission(written.application("gang"))
    assert check_allocate(written.state, proposal) is None
    written.admit("gang")
    assert Refusal.STATEAWARE_BUSY is check_allocate(written.state, proposal)


def _check(written: Written, key: str, app: str = APP) -> Refusal | None:
    sequence = written.application(app).asks[key].sequence
    made = Allocate(proposal_id=1, application_id=app, key=key, sequence=sequence, node_id="n1")
    return check_allocate(written.state, made)


def test_an_ask_that_can_run_here_alone_goes_before_reservations(written: Written) -> None:
    _reserve_for_another(written)
    written.ask("here", vcore=3, required_node="n1")
    assert _check(written, "here") is None


def test_an_ask_that_can_run_here_alone_goes_before_drains(written: Written) -> None:
    written.schedule("n1", drained=True)
    assert Refusal.NODE_DRAINING is _check(written, "a")
    written.ask("here", vcore=3, required_node="n1")
    assert _check(written, "here") is None


@pytest.mark.parametrize(("created_ns", "vcore"), [(1, None), (10**9, 1)], ids=["idle", "younger"])
def test_who_has_nothing_to_start_or_came_later_bars_nobody(
    written: Written, created_ns: int, vcore: int | None
) -> None:
    written.reconfigure(LEAF, properties=STATEAWARE)
    written.add("other")
    written.ask("o", "other", vcore=1, created_ns=created_ns)
    if vcore is None:
        written.withdraw("o", "other")
        assert written.application("other").age < written.application().age
    assert _check(written, "a") is None


def test_a_type_of_which_too_much_is_used_bars_no_ask_that_wants_none_of_it(
    written: Written,
) -> None:
    written.resize_node("n1", vcore=10, memory=10)
    written.add("other")
    written.recover("r", "n1", "other", memory=5)
    written.reconfigure(LEAF, max={"memory": 2})
    written.replace("a", vcore=3, memory=0)
    assert _check(written, "a") is None
    written.replace("a", vcore=3, memory=1)
    assert Refusal.QUEUE_LIMIT is _check(written, "a")


def test_who_holds_something_has_its_place_although_too_many_run(written: Written) -> None:
    """The maximum was lowered: nobody else may start, and whoever holds something goes on."""
    written.ask("ph", vcore=1, placeholder=True, task_group="g")
    written.allocate("ph", "n1")
    written.add("runs")
    written.move("runs", ApplicationState.RUNNING)
    written.reconfigure(LEAF, max_applications=1)
    assert ApplicationState.ACCEPTED is written.application().state
    assert _check(written, "a") is None
    written.add("third")
    written.ask("t", "third", vcore=1)
    assert Refusal.APP_LIMIT is _check(written, "t", "third")


def test_a_reservation_takes_a_place_from_others(written: Written) -> None:
    written.add("other")
    written.node("n2", vcore=10)
    written.ask("o", "other", vcore=1)
    written.reserve("o", "n2", "other")
    written.reconfigure(LEAF, max_applications=1)
    assert Refusal.APP_LIMIT is _check(written, "a")
    assert _check(written, "o", "other") is None
