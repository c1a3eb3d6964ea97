"""The checks of what a gang proposes: each reason to refuse, alone, and nothing else to be said."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from written import APP, LEAF, Written

from yunikorn_actors.domain import facts as f
from yunikorn_actors.domain.application import ApplicationState
from yunikorn_actors.domain.config import LimitConfig
from yunikorn_actors.domain.proposals import AdmitGang, Refusal, Replace
from yunikorn_actors.machines.context.gangs import check_admission, check_replace

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


ANYWHERE: list[tuple[str, Refusal, Callable[[Written], object]]] = [
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
    proposal = replace(_proposal(written, "n1"), crosses=True)
    assert Refusal.PLACEHOLDER_GONE is check_replace(written.state, proposal)


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


OF_ADMISSION: list[tuple[str, Refusal, Callable[[Written], object]]] = [
    ("removed", Refusal.APP_STATE, lambda w: w.remove(GANG)),
    ("admitted already", Refusal.GANG_HELD, lambda w: w.admit(GANG)),
    ("no placeholder pending", Refusal.GANG_HELD, lambda w: w.withdraw("g", GANG)),
    ("no room", Refusal.GANG_HELD, lambda w: w.recover("r", "n2", vcore=2)),
    ("what is to come of another", Refusal.GANG_HELD, _admit_another),
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
