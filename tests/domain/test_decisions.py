"""What must hold of a decision when it is recorded: each rule alone."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from written import APP, LEAF, Written

from yunikorn_actors.checks.decision_rules import wrongs
from yunikorn_actors.config import LimitConfig
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import Beneficiary, PreemptionRule
from yunikorn_actors.state.applications import ApplicationEvent, ApplicationSpec, ApplicationState
from yunikorn_actors.state.queues import QueueState
from yunikorn_actors.state.termination import TerminationType

HELD = {"application.sort.policy": "fifo"}


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
    said = wrongs(made.state, committed(made), ())
    assert said[0].startswith(words)


def _gang(made: Written, *, queue: str = LEAF, size: int = 6) -> None:
    made.reconfigure(queue, max={"vcore": 8}, properties=HELD)
    made.add("gang", placeholder_ask={"vcore": size})
    made.ask("ph", "gang", vcore=3, placeholder=True, task_group="g")


def test_a_node_with_too_little_room() -> None:
    made = written()
    made.recover("r", "n1", "other", vcore=8)
    assert _ids(made, committed(made)) == ["G23: node n1 has no room for it"]


def test_a_node_that_is_kept_for_another() -> None:
    made = written()
    made.ask("o", "other", vcore=9)
    made.reserve("o", "n1", "other")
    assert _ids(made, committed(made)) == ["G18: node n1 is kept for another"]
    assert [] == wrongs(made.state, committed(made), (APP,))


def test_asks_that_only_wait_have_two_nodes() -> None:
    made = written()
    made.node("n3", vcore=10)
    made.ask("b", "other", vcore=9, repeats=2)
    made.reserve("b", "n2", "other")
    assert [] == wrongs(made.state, reserved(made), ())
    made.reserve("b", "n3", "other")
    assert _ids(made, reserved(made)) == ["G18: 2 nodes are kept for asks that only wait"]


def test_a_placeholder_comes_after_its_admission() -> None:
    made = written()
    _gang(made)
    fact = replace(committed(made), application_id="gang", key="ph")
    assert _ids(made, fact) == ["G23: its gang is not admitted"]
    made.admit("gang")
    assert [] == wrongs(made.state, fact, ())


def test_a_gang_is_admitted_beside_the_others() -> None:
    made = written()
    _gang(made)
    fact = f.GangAdmitted(
        application_id="gang", serial=0, queue=LEAF, commitment={}, at_ns=0, proposal_id=1
    )
    assert [] == wrongs(made.state, fact, ())
    made.add("first", placeholder_ask={"vcore": 3})
    made.ask("ph-1", "first", vcore=3, placeholder=True, task_group="g")
    made.admit("first")
    assert _ids(made, fact) == ["G23: root.default gets above 8 of vcore"]


def test_a_member_waits_for_its_placeholders() -> None:
    made = written()
    made.ask("ph", vcore=3, placeholder=True, task_group="g")
    made.ask("m", vcore=3, task_group="g")
    fact = replace(committed(made), key="m")
    assert _ids(made, fact) == ["G11: placeholder ph of its gang still waits"]
    assert _ids(made, _parked("n1", crosses=False)) == [
        "G11: placeholder ph of its gang still waits"
    ]
    made.allocate("ph", "n1")
    assert _ids(made, fact) == ["G11: placeholder ph stands, and is to be replaced by it"]


def test_what_was_asked_back_is_not_asked_back_again() -> None:
    made = written()
    uuid = made.recover("r", "n1", vcore=1)
    fact = f.ReleaseRequested(
        application_id=APP, key="r", uuid=uuid, type=TerminationType.TIMEOUT, message="", at_ns=0
    )
    assert [] == wrongs(made.state, fact, ())
    made.record(fact)
    assert _ids(made, fact) == ["G13: it was asked back before, as TIMEOUT"]


def test_a_withdrawal_completes_nothing_that_holds_placeholders() -> None:
    made = written()
    made.ask("ph", vcore=3, placeholder=True, task_group="g")
    fact = f.ApplicationStateChanged(
        application_id=APP,
        serial=made.application().serial,
        queue=LEAF,
        state=ApplicationState.COMPLETING,
        event=ApplicationEvent.COMPLETE,
        message="",
        at_ns=0,
    )
    assert [] == wrongs(made.state, fact, ())
    made.allocate("ph", "n1")
    assert _ids(made, fact) == ["G21: it completes with placeholders, and has never run"]


def test_who_fails_asks_for_nothing() -> None:
    made = written()
    spec = made.application().asks["a"].spec
    fact = f.AskAdded(spec=spec, created_ns=0, sequence=9, at_ns=0)
    assert [] == wrongs(made.state, fact, ())
    _fail(made)
    assert _ids(made, fact) == ["G21: app-1 is Failing, and asks for a"]


def test_a_draining_queue_takes_nobody() -> None:
    made = written()
    fact = f.ApplicationAdded(spec=made.application().spec, queue=LEAF, serial=9, at_ns=0)
    assert [] == wrongs(made.state, fact, ())
    made.record(f.QueueStateChanged(path=LEAF, state=QueueState.DRAINING, at_ns=0))
    assert _ids(made, fact) == [f"G28: queue {LEAF} takes no applications"]


def _sharing() -> tuple[Written, f.PreemptionDecided]:
    """Queue a wants room; b is guaranteed 4 and uses 6 in two pieces."""
    made = Written("root.a", "root.b")
    made.node("n1", vcore=10)
    made.reconfigure("root.a", guaranteed={"vcore": 4})
    made.reconfigure("root.b", guaranteed={"vcore": 4})
    made.add(APP, queue="root.a")
    made.add("other", queue="root.b")
    made.ask("a", vcore=2)
    uuid = made.recover("v-1", "n1", "other", vcore=2)
    made.recover("v-2", "n1", "other", vcore=4)
    beneficiary = Beneficiary(
        rule=PreemptionRule.GUARANTEE, queue="root.a", application_id=APP, key="a"
    )
    fact = f.PreemptionDecided(
        beneficiary=beneficiary, node_id="n1", victims=(uuid,), max={}, at_ns=0, proposal_id=1
    )
    return made, fact


def test_a_queue_gives_down_to_its_guarantee() -> None:
    made, fact = _sharing()
    assert [] == wrongs(made.state, fact, ())
    both = tuple(made.application("other").allocations)
    assert _ids(made, replace(fact, victims=both)) == [
        "G19: root.b is taken below its guarantee of vcore"
    ]
    made.reconfigure("root.b", guaranteed={"vcore": 6})
    assert _ids(made, fact)[0] == "G19: root.b gives, and is not above its guarantee"


def test_a_fence_holds() -> None:
    made, fact = _sharing()
    made.reconfigure("root.a", guaranteed={"vcore": 4}, properties={"preemption.policy": "fence"})
    assert _ids(made, fact) == ["G19: victim v-1 is behind the fence of root.a"]


def test_victims_are_there_and_new() -> None:
    made, fact = _sharing()
    assert _ids(made, replace(fact, victims=("x",))) == ["G12: a victim is gone, or named twice"]
    made.ask_back(fact.victims[0], "other")
    assert _ids(made, fact)[0] == "G12: victim v-1 was asked back before, as TIMEOUT"


def test_nobody_else_goes_while_the_first_are_on_their_way() -> None:
    made, fact = _sharing()
    fact = replace(fact, beneficiary=replace(fact.beneficiary, rule=PreemptionRule.REQUIRED_NODE))
    assert [] == wrongs(made.state, fact, ())
    made.application("other").allocations[fact.victims[0]].beneficiary = fact.beneficiary
    assert _ids(made, fact) == ["G13: others still go for this ask"]


def _ids(made: Written, fact: f.Fact) -> list[str]:
    """Say what is wrong with the fact, without of whom it is."""
    return [line.partition(" (")[0] for line in wrongs(made.state, fact, ())]


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


def test_an_application_counts_in_the_first_group_from_its_queue_upwards() -> None:
    made = Written()
    made.reconfigure("root", limits=(LimitConfig(groups=("ops",), max_applications=1),))
    made.reconfigure(LEAF, limits=(LimitConfig(groups=("dev", "*"), max_applications=1),))
    spec = ApplicationSpec(application_id=APP, user="bob", groups=("ops", "dev"))
    made.record(f.ApplicationAdded(spec=spec, queue=LEAF, serial=1, at_ns=0))

    def linked(group: str) -> list[str]:
        fact = f.ApplicationLinked(application_id=APP, serial=1, old_group="", group=group, at_ns=0)
        return wrongs(made.state, fact, ())

    assert [] == [*linked("dev"), *linked("")]
    for wrong in ("ops", "*"):
        (line,) = linked(wrong)
        assert line.startswith(f"G24: {APP} counts in group {wrong}, expected 'dev'")
