"""What must hold of a decision when it is recorded: each rule alone."""

from collections.abc import Callable

import pytest
from written import APP, LEAF, Written

from yunikorn_actors.domain import facts as f
from yunikorn_actors.domain.application import ApplicationState
from yunikorn_actors.domain.config import LimitConfig
from yunikorn_actors.domain.decisions import wrongs


def written() -> Written:
    made = Written()
    made.node("n1", vcore=10)
    made.node("n2", vcore=10)
    made.add(APP, "other")
    made.ask("a", vcore=3)
    return made


def committed(made: Written, node: str = "n1", number: int = 1) -> f.AllocationCommitted:
    return f.AllocationCommitted(
        application_id=APP,
        queue=LEAF,
        user="bob",
        key="a",
        uuid="u",
        node_id=node,
        resource=made.application().asks["a"].spec.resource,
        at_ns=0,
        proposal_id=number,
    )


def reserved(made: Written) -> f.ReservationMade:
    return f.ReservationMade(
        application_id=APP,
        key="a",
        node_id="n1",
        required=False,
        resource=made.application().asks["a"].spec.resource,
        at_ns=0,
    )


def _fail(made: Written) -> None:
    made.ask_back(made.recover("r", "n1", vcore=1))
    made.move(APP, ApplicationState.FAILING)


def _one_place_taken(made: Written, **limit: object) -> None:
    made.reconfigure(LEAF, **limit)
    made.recover("r", "n1", "other", vcore=1)


def _one_place_kept(made: Written, **limit: object) -> None:
    made.reconfigure(LEAF, **limit)
    made.ask("o", "other", vcore=9)
    made.reserve("o", "n2", "other")


OF_BOB = {"limits": (LimitConfig(users=("bob",), max_applications=1),)}
CASES: dict[str, tuple[str, Callable[[Written], object]]] = {
    "away": (
        "G22: nothing is decided",
        lambda w: w.record(f.SchedulingHeld(held=True, at_ns=w.now_ns)),
    ),
    "failing": ("G22: its application is Failing", _fail),
    "node gone": ("G22: node n1 is not registered", lambda w: w.remove_node("n1")),
    "drained": ("G22: node n1 takes no work", lambda w: w.schedule("n1", drained=True)),
    "another node": (
        "G22: the ask requires node n2",
        lambda w: w.replace("a", vcore=3, required_node="n2"),
    ),
    "place": (
        "G23: root.default gets above 1 applications",
        lambda w: _one_place_taken(w, max_applications=1),
    ),
    "place of a user": (
        "G23: bob in root.default gets above 1 applications",
        lambda w: _one_place_taken(w, **OF_BOB),
    ),
    "kept place": (
        "G23: root.default gets above",
        lambda w: _one_place_kept(w, max_applications=1),
    ),
    "kept place of a user": ("G23: bob in root.default", lambda w: _one_place_kept(w, **OF_BOB)),
}
OF_AMOUNTS: dict[str, tuple[str, Callable[[Written], object]]] = {
    "maximum": (
        "G23: root.default gets above 2 of vcore",
        lambda w: w.reconfigure(LEAF, max={"vcore": 2}),
    ),
    "cluster": (
        "G23: root gets above 20 of vcore",
        lambda w: w.recover("r", "n1", "other", vcore=18),
    ),
    "limit of a user": (
        "G23: bob in root.default gets above 2 of vcore",
        lambda w: w.reconfigure(
            LEAF, limits=(LimitConfig(users=("bob",), max_resources={"vcore": 2}),)
        ),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_rule_holds_for_both(case: str) -> None:
    words, change = CASES[case]
    made = written()
    assert [] == [*wrongs(made.state, committed(made), ()), *wrongs(made.state, reserved(made), ())]
    change(made)
    (said,) = wrongs(made.state, committed(made), ())
    assert said.startswith(words)
    assert said.endswith("(AllocationCommitted a of app-1)")
    (said,) = wrongs(made.state, reserved(made), ())
    assert said.startswith(words)


@pytest.mark.parametrize("case", OF_AMOUNTS)
def test_amounts_bound_what_is_placed(case: str) -> None:
    words, change = OF_AMOUNTS[case]
    made = written()
    change(made)
    (said,) = wrongs(made.state, committed(made), ())
    assert said.startswith(words)


def test_what_is_reported_is_no_decision() -> None:
    made = written()
    made.reconfigure(LEAF, max={"vcore": 2})
    assert [] == wrongs(made.state, committed(made, number=0), ())


def test_who_had_a_place_by_a_reservation_needs_no_other() -> None:
    """It is dropped right before; another one has a reservation too, and the places are fewer."""
    made = written()
    _one_place_kept(made, max_applications=1)
    assert [] == wrongs(made.state, committed(made), (APP,))


def test_a_swap_in_place_goes_on_where_nothing_new_may() -> None:
    made = written()
    made.ask("ph", vcore=3, placeholder=True, task_group="g")
    made.allocate("ph", "n1")
    made.ask("m", vcore=3, task_group="g")
    made.schedule("n1", drained=True)
    made.schedule("n2", drained=True)
    assert [] == wrongs(made.state, _parked("n1", crosses=False), ())
    (said,) = wrongs(made.state, _parked("n2", crosses=True), ())
    assert said.startswith("G22: node n2 takes no work")


def _parked(node: str, *, crosses: bool) -> f.AskParked:
    return f.AskParked(
        application_id=APP,
        key="m",
        resource={"vcore": 3},
        placeholder="u",
        node_id=node,
        crosses=crosses,
        at_ns=0,
        proposal_id=1,
    )
