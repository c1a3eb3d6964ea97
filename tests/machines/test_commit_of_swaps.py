"""The checks of what a gang proposes: each reason to refuse, alone, and nothing else to be said."""

from collections.abc import Callable

import pytest
from committing import Driver
from msgspec.structs import replace
from written import APP, LEAF, Written

from yunikorn_actors.config import LimitConfig
from yunikorn_actors.machines.context.gangs import check_admission, check_replace
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.applications import ApplicationState
from yunikorn_actors.state.proposals import AdmitGang, CancelPlaceholder, Refusal, Replace

GANG = "gang"


@pytest.fixture
def written() -> Written:
    """A placeholder stands on n1, and its member waits."""
    written = Written()
    written.node("n1", vcore=4)
    written.node("n2", vcore=4)
    written.add(APP)
    written.ask("ph", vcore=3, placeholder=True, task_group="g")
    written.allocate("ph", "n1")
    written.ask("member", vcore=2, task_group="g")
    return written


def _proposal(written: Written, node_id: str) -> Replace:
    app = written.application()
    (placeholder,) = app.allocations
    return Replace(
        proposal_id=1,
        application_id=APP,
        key="member",
        sequence=app.asks["member"].sequence,
        placeholder=placeholder,
        node_id=node_id,
        crosses=node_id != "n1",
    )


def _uuid(written: Written) -> str:
    (uuid,) = written.application().allocations
    return uuid


def _fail(written: Written) -> None:
    written.ask_back(written.recover("r", "n2", vcore=1))
    written.move(APP, ApplicationState.FAILING)


def _reserve_for_another(written: Written) -> None:
    written.add("other")
    written.ask("o", "other", vcore=3)
    written.reserve("o", "n2", "other")


def _ask_again(written: Written) -> None:
    vcore = written.application().asks["member"].spec.resource["vcore"]
    written.withdraw("member")
    written.ask("member", vcore=vcore, task_group="g")


ANYWHERE: list[tuple[str, Refusal, Callable[[Written], object]]] = [
    ("application removed", Refusal.ASK_GONE, lambda w: w.remove(APP)),
    ("asked again under its key", Refusal.ASK_GONE, _ask_again),
    ("member cancelled", Refusal.ASK_GONE, lambda w: w.withdraw("member")),
    ("member parked", Refusal.ASK_PARKED, lambda w: w.park("member", "ph", "n1")),
    ("failing", Refusal.APP_STATE, _fail),
    (
        "another placeholder pending",
        Refusal.GANG_HELD,
        lambda w: w.ask("ph-2", vcore=1, placeholder=True, task_group="g"),
    ),
    ("placeholder gone", Refusal.PLACEHOLDER_GONE, lambda w: w.release(_uuid(w))),
    ("placeholder asked back", Refusal.PLACEHOLDER_GONE, lambda w: w.ask_back(_uuid(w))),
    ("placeholder smaller", Refusal.PLACEHOLDER_GONE, lambda w: w.resize(_uuid(w), vcore=1)),
    (
        "paused resource manager",
        Refusal.RM_PAUSED,
        lambda w: w.record(f.SchedulingHeld(held=True, at_ns=w.now_ns)),
    ),
]
ON_ANOTHER_NODE: list[tuple[str, Refusal, Callable[[Written], object]]] = [
    ("removed node", Refusal.NODE_GONE, lambda w: w.remove_node("n2")),
    ("drained node", Refusal.NODE_DRAINING, lambda w: w.schedule("n2", drained=True)),
    ("full node", Refusal.NODE_FULL, lambda w: w.foreign("f", "n2", vcore=3)),
    ("reserved node", Refusal.NODE_RESERVED, _reserve_for_another),
    (
        "another required node",
        Refusal.NODE_FULL,
        lambda w: w.replace("member", vcore=2, task_group="g", required_node="n1"),
    ),
]
ON_ITS_NODE: list[tuple[str, Callable[[Written], object]]] = [
    ("drained node", lambda w: w.schedule("n1", drained=True)),
    ("full node", lambda w: w.foreign("f", "n1", vcore=1)),
    ("full queue", lambda w: w.reconfigure(LEAF, max={"vcore": 3})),
]


@pytest.mark.parametrize("node_id", ["n1", "n2"])
@pytest.mark.parametrize(
    ("expected", "change"), [c[1:] for c in ANYWHERE], ids=[c[0] for c in ANYWHERE]
)
def test_one_reason_to_refuse(
    expected: Refusal, change: Callable[[Written], object], written: Written, node_id: str
) -> None:
    proposal = _proposal(written, node_id)
    assert check_replace(written.state, proposal) is None
    change(written)
    assert expected is check_replace(written.state, proposal)


@pytest.mark.parametrize(
    ("expected", "change"), [c[1:] for c in ON_ANOTHER_NODE], ids=[c[0] for c in ON_ANOTHER_NODE]
)
def test_one_reason_to_refuse_another_node(
    expected: Refusal, change: Callable[[Written], object], written: Written
) -> None:
    proposal = _proposal(written, "n2")
    assert check_replace(written.state, proposal) is None
    change(written)
    assert expected is check_replace(written.state, proposal)


@pytest.mark.parametrize("change", [c[1] for c in ON_ITS_NODE], ids=[c[0] for c in ON_ITS_NODE])
def test_a_swap_in_place_needs_no_room(
    change: Callable[[Written], object], written: Written
) -> None:
    """It takes what its placeholder holds: neither a drain nor a full queue stands against it."""
    proposal = _proposal(written, "n1")
    change(written)
    assert check_replace(written.state, proposal) is None


def test_a_proposal_that_names_the_wrong_kind_of_swap(written: Written) -> None:
    """Nothing in a proposal is trusted, not even whether it leaves the node."""
    for node_id, crosses in (("n1", True), ("n2", False)):
        proposal = replace(_proposal(written, node_id), crosses=crosses)
        assert Refusal.PLACEHOLDER_GONE is check_replace(written.state, proposal)


def test_a_member_that_requires_another_node_does_not_stay(written: Written) -> None:
    proposal = _proposal(written, "n1")
    written.replace("member", vcore=2, task_group="g", required_node="n2")
    assert Refusal.NODE_FULL is check_replace(written.state, proposal)


# -- wrong on purpose: swaps that no planner would make, all the way through commit


@pytest.fixture
def driver(written: Written) -> Driver:
    return Driver(written, settings=Settings())


def test_one_placeholder_serves_one_member(driver: Driver) -> None:
    driver.written.ask("second", vcore=2, task_group="g")
    second = _of(driver.written, "second", _uuid(driver.written), "n1")
    assert driver.commit(_proposal(driver.written, "n1")) is None
    assert driver.commit(second) is Refusal.PLACEHOLDER_GONE


def test_room_on_another_node_serves_one_swap(driver: Driver) -> None:
    written = driver.written
    written.node("n3", vcore=4)
    written.recover("ph-2", "n1", vcore=1, placeholder=True, task_group="other")
    written.recover("ph-3", "n3", vcore=3, placeholder=True, task_group="g")
    written.ask("second", vcore=3, task_group="g")
    second = _of(written, "second", _named(written, "ph-3"), "n2", crosses=True)
    first = _of(written, "member", _named(written, "ph"), "n2", crosses=True)
    assert driver.commit(first) is None
    assert driver.commit(second) is Refusal.NODE_FULL


@pytest.mark.parametrize("crosses", [False, True])
def test_what_is_no_placeholder_of_its_group_is_not_swapped(
    driver: Driver, *, crosses: bool
) -> None:
    written = driver.written
    for placeholder in _strangers(written):
        node_id = "n2" if crosses else "n1"
        made = _of(written, "member", placeholder, node_id, crosses=crosses)
        assert driver.commit(made) is Refusal.PLACEHOLDER_GONE


def _of(
    written: Written, key: str, placeholder: str, node_id: str, *, crosses: bool = False
) -> Replace:
    return Replace(
        proposal_id=1,
        application_id=APP,
        key=key,
        sequence=written.application().asks[key].sequence,
        placeholder=placeholder,
        node_id=node_id,
        crosses=crosses,
    )


def _named(written: Written, key: str, app: str = APP) -> str:
    (uuid,) = written.application(app).asks[key].uuids
    return uuid


def _strangers(written: Written) -> list[str]:
    """Real work, a placeholder of another group, and one of another application."""
    written.resize_node("n1", vcore=9)
    written.recover("real", "n1", vcore=2, task_group="g")
    written.recover("ph-2", "n1", vcore=2, placeholder=True, task_group="other")
    written.add("other")
    written.recover("ph-3", "n1", "other", vcore=2, placeholder=True, task_group="g")
    names = (("real", APP), ("ph-2", APP), ("ph-3", "other"))
    return [_named(written, key, app) for key, app in names]


# -- an ask of a gang that is placed like any other


def test_a_member_is_placed_when_no_placeholder_of_its_group_stands(driver: Driver) -> None:
    assert driver.allocate("member", "n2", APP) is Refusal.GANG_HELD
    driver.written.release(_uuid(driver.written))
    assert driver.allocate("member", "n2", APP) is None


@pytest.mark.parametrize("task_group", ["", "other"])
def test_who_is_no_member_waits_for_no_placeholder(driver: Driver, task_group: str) -> None:
    driver.written.ask("stranger", vcore=2, task_group=task_group)
    assert driver.allocate("stranger", "n2", APP) is None


# -- a placeholder that is too small


@pytest.fixture
def large(driver: Driver) -> Driver:
    """The member is larger than the placeholder."""
    driver.written.replace("member", vcore=4, task_group="g")
    return driver


def _cancelled(written: Written, placeholder: str = "") -> CancelPlaceholder:
    return CancelPlaceholder(
        proposal_id=1,
        application_id=APP,
        key="member",
        sequence=written.application().asks["member"].sequence,
        placeholder=placeholder or _named(written, "ph"),
    )


def test_a_placeholder_that_is_too_small_goes_once(large: Driver) -> None:
    made = _cancelled(large.written)
    assert large.commit(made) is None
    assert large.commit(made) is Refusal.PLACEHOLDER_GONE


OF_CANCELLING = [
    case for case in ANYWHERE if case[0] not in {"member parked", "placeholder smaller"}
]


@pytest.mark.parametrize(
    ("expected", "change"),
    [
        *(case[1:] for case in OF_CANCELLING),
        (Refusal.PLACEHOLDER_GONE, lambda w: w.resize(_uuid(w), vcore=4)),
    ],
    ids=[*(case[0] for case in OF_CANCELLING), "placeholder larger"],
)
def test_one_reason_not_to_cancel(
    expected: Refusal, change: Callable[[Written], object], large: Driver
) -> None:
    made = _cancelled(large.written)
    change(large.written)
    assert expected is large.commit(made)


def test_what_is_no_placeholder_of_its_group_is_not_cancelled(large: Driver) -> None:
    """All are too small for the member, and none of them is in its way."""
    for placeholder in _strangers(large.written):
        assert large.commit(_cancelled(large.written, placeholder)) is Refusal.PLACEHOLDER_GONE


# -- admission


def _gang(written: Written) -> AdmitGang:
    written.reconfigure(LEAF, max={"vcore": 10})
    written.add(GANG, placeholder_ask={"vcore": 6})
    written.ask("g", GANG, vcore=2, repeats=3, placeholder=True, task_group="g")
    serial = written.application(GANG).serial
    return AdmitGang(proposal_id=1, application_id=GANG, serial=serial)


def _admit_another(written: Written) -> None:
    """It claims 5 and has placed nothing."""
    written.add("other", placeholder_ask={"vcore": 5})
    written.ask("o", "other", vcore=5, placeholder=True, task_group="g")
    written.admit("other")


def _limit_bob(vcore: int, path: str = LEAF) -> Callable[[Written], object]:
    """All that stands already is his as well."""

    def change(written: Written) -> None:
        limits = (LimitConfig(users=("bob",), max_resources={"vcore": vcore}),)
        written.reconfigure(path, limits=limits)

    return change


def _configure(**spec: object) -> Callable[[Written], object]:
    return lambda written: written.reconfigure(LEAF, max={"vcore": 10}, **spec)


def _start_another(written: Written) -> None:
    _configure(properties={"application.sort.policy": "stateaware"})(written)
    written.add("other")
    written.move("other", ApplicationState.STARTING)


def _add_again(written: Written) -> None:
    """Another gang, under the same id."""
    written.remove(GANG)
    _gang(written)


def _fail_gang(written: Written) -> None:
    written.ask_back(written.recover("r", "n2", GANG, vcore=0), GANG)
    written.move(GANG, ApplicationState.FAILING)


def _limit_group(written: Written) -> None:
    _configure(limits=(LimitConfig(groups=("ops",), max_resources={"vcore": 5}),))(written)
    written.link(GANG, "ops")


def _promise_to_another(written: Written) -> None:
    """Others go, or have gone, for it: so much of the quota is not free."""
    written.add("other")
    written.ask("o", "other", vcore=2)
    written.record(
        f.ReservationMade(
            application_id="other",
            key="o",
            node_id="n2",
            required=False,
            resource={"vcore": 2},
            by_preemption=True,
            at_ns=written.now_ns,
        )
    )


def _admit_another_of_the_user(written: Written) -> None:
    """In another leaf: the limit of their user alone brings them together."""
    written.queue("root.other")
    written.add("other", queue="root.other", placeholder_ask={"vcore": 5})
    written.ask("o", "other", vcore=5, placeholder=True, task_group="g")
    written.admit("other")
    limits = (LimitConfig(users=("bob",), max_resources={"vcore": 13}),)
    written.reconfigure("root", limits=limits)


OF_ADMISSION: list[tuple[str, Refusal, Callable[[Written], object]]] = [
    (
        "paused resource manager",
        Refusal.RM_PAUSED,
        lambda w: w.record(f.SchedulingHeld(held=True, at_ns=w.now_ns)),
    ),
    ("removed", Refusal.APP_STATE, lambda w: w.remove(GANG)),
    ("another under its id", Refusal.APP_STATE, _add_again),
    ("failing", Refusal.APP_STATE, _fail_gang),
    ("limit of the leaf", Refusal.APP_LIMIT, _configure(max_applications=1)),
    (
        "applications of the user",
        Refusal.APP_LIMIT,
        _configure(limits=(LimitConfig(users=("bob",), max_applications=1),)),
    ),
    ("another one starts", Refusal.STATEAWARE_BUSY, _start_another),
    ("admitted already", Refusal.GANG_HELD, lambda w: w.admit(GANG)),
    ("no placeholder pending", Refusal.GANG_HELD, lambda w: w.withdraw("g", GANG)),
    ("no room", Refusal.GANG_HELD, lambda w: w.recover("r", "n2", vcore=2)),
    ("what is to come of another", Refusal.GANG_HELD, _admit_another),
    ("what is to come of another of its user", Refusal.GANG_HELD, _admit_another_of_the_user),
    ("what was promised to another", Refusal.GANG_HELD, _promise_to_another),
    ("a limit of its group", Refusal.GANG_HELD, _limit_group),
    ("a limit of its user", Refusal.GANG_HELD, _limit_bob(5)),
    ("a limit of its user in a parent", Refusal.GANG_HELD, _limit_bob(5, "root")),
]


@pytest.mark.parametrize(
    ("expected", "change"), [c[1:] for c in OF_ADMISSION], ids=[c[0] for c in OF_ADMISSION]
)
def test_one_reason_not_to_admit(
    expected: Refusal, change: Callable[[Written], object], written: Written
) -> None:
    proposal = _gang(written)
    assert check_admission(written.state, proposal) is None
    change(written)
    assert expected is check_admission(written.state, proposal)


def test_of_two_gangs_one_has_the_room(driver: Driver) -> None:
    """What is placed of the first, and what is to come of it, is counted once."""
    written = driver.written
    first = _gang(written)
    written.add("second", placeholder_ask={"vcore": 2})
    written.ask("s", "second", vcore=1, repeats=2, placeholder=True, task_group="g")
    serial = written.application("second").serial
    second = AdmitGang(proposal_id=1, application_id="second", serial=serial)
    assert driver.commit(first) is None
    assert driver.commit(first) is Refusal.GANG_HELD
    assert driver.commit(second) is Refusal.GANG_HELD
    assert driver.allocate("g", "n2", GANG) is None
    assert driver.commit(second) is Refusal.GANG_HELD
    written.reconfigure(LEAF, max={"vcore": 11})
    assert driver.commit(second) is None


def test_what_was_placed_of_the_gang_needs_no_more_room(driver: Driver) -> None:
    written = driver.written
    admission = _gang(written)
    written.recover("back", "n2", GANG, vcore=2, placeholder=True, task_group="g")
    written.reconfigure(LEAF, max={"vcore": 9})
    assert driver.commit(admission) is None


def test_no_placeholder_of_a_held_gang_is_placed(driver: Driver) -> None:
    admission = _gang(driver.written)
    assert driver.allocate("g", "n2", GANG) is Refusal.GANG_HELD
    assert driver.commit(admission) is None
    assert driver.allocate("g", "n2", GANG) is None


@pytest.mark.parametrize(("size", "expected"), [(1, None), (2, None), (3, Refusal.GANG_HELD)])
def test_a_gang_that_was_placed_once_waits_for_no_admission(
    driver: Driver, size: int, expected: Refusal | None
) -> None:
    """It was recovered, and a placeholder comes that it has not asked for at the start."""
    written = driver.written
    written.add(GANG, placeholder_ask={"vcore": size, "memory": 0})
    written.recover("back", "n2", GANG, vcore=2, placeholder=True, task_group="g")
    written.ask("more", GANG, vcore=1, placeholder=True, task_group="g")
    assert expected is driver.allocate("more", "n2", GANG)
