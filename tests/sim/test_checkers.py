"""The checkers of a simulated run speak up: one lie for each rule of the state and of the views."""

from collections.abc import Callable
from typing import Any

import pytest
from support import APP, CONFIG, PARTITION, Lab, labs, limited, report

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.checkers import SMALL
from yunikorn_actors.machines.machine import InvariantViolation
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.base import CONTEXT, TIMER, Cause, Envelope
from yunikorn_actors.messages.scheduling import PlanningDue
from yunikorn_actors.planning.model.tree import Tree
from yunikorn_actors.state.proposals import Refusal

# -- the checkers of the state and of the views


def _lab(topology: Any = "proposing") -> Lab:
    lab = Lab(topology=topology)
    lab.submit(APP)
    lab.nodes(n1=10)
    lab.ask("a")
    lab.settle()
    return lab


def _corrupt_truth(lab: Lab) -> None:
    lab.state.nodes["n1"].available["vcore"] = 99


def _corrupt_view(lab: Lab) -> None:
    lab.planner.model.nodes.views["n1"].free["vcore"] = 99


def _corrupt_replica(lab: Lab) -> None:
    lab.planner.state.refused_node_actions += 1


def _forget_a_proposal(lab: Lab) -> None:
    """Decided, and told to nobody."""
    lab.ask("b")
    while not lab.planner.has_work:
        assert lab.simulator.step()
    lab.planner.plan(1, lab.simulator.now_ns)


def _rest_for_ever(lab: Lab) -> None:
    planner = lab.planner
    (app,) = planner.model.apps.values()
    planner.backoff.resting[app] = lab.simulator.now_ns - 1


def _leave_work(lab: Lab) -> None:
    lab.planner.requeue.measures.is_stale = True


@pytest.mark.parametrize(
    ("topology", "words", "corrupt"),
    [
        ("proposing", "G01: capacity of node n1", _corrupt_truth),
        ("fused", "G01: capacity of node n1", _corrupt_truth),
        ("fused", "free of node n1", _corrupt_view),
        ("proposing", "the replica of .*default.* is not the truth", _corrupt_replica),
        ("proposing", "at rest and 1 proposals are unresolved", _forget_a_proposal),
        ("proposing", "at rest and something could be decided", _leave_work),
        ("proposing", f"{APP} rests longer than it should", _rest_for_ever),
        ("fused", f"{APP} rests longer than it should", _rest_for_ever),
    ],
)
def test_a_corrupted_core_is_caught(
    topology: str, words: str, corrupt: Callable[[Lab], None]
) -> None:
    lab = _lab(topology)
    corrupt(lab)
    with pytest.raises(InvariantViolation, match=words):
        lab.simulator.state_dump()


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_rest_is_not_too_long_while_a_timer_is_late(topology: TopologyName) -> None:
    """Another was fired before its time, so time has gone on; this one is still to fire."""
    lab = _lab(topology)
    _rest_for_ever(lab)
    now_ns, due = lab.simulator.now_ns, PlanningDue(partition=PARTITION, epoch=1)
    lab.simulator.timers.arm(
        CONTEXT, "late", now_ns - 1, Envelope(TIMER, due, Cause(CONTEXT, 1), "late")
    )
    lab.simulator.state_dump()
    lab.simulator.timers.cancel(CONTEXT, "late")
    with pytest.raises(InvariantViolation, match="rests longer than it should"):
        lab.simulator.state_dump()


def test_a_corrupted_core_that_nobody_asks_for_its_state_is_caught_at_the_next_fact() -> None:
    lab = _lab()
    _corrupt_truth(lab)
    lab.nodes(n9=1)
    with pytest.raises(InvariantViolation, match="G01: capacity of node n1"):
        lab.settle()


def test_the_view_of_a_scheduler_is_caught_when_it_works() -> None:
    lab = _lab()
    _corrupt_view(lab)
    lab.ask("b")
    with pytest.raises(InvariantViolation, match="free of node n1"):
        lab.settle()


def _large(topology: str, corrupt: Callable[[Lab], None]) -> Lab:
    """More waits than is added up after each change, and something has gone wrong since."""
    lab = _lab(topology)
    lab.ask(*(f"many-{number}" for number in range(2 * SMALL)), vcore=20)
    lab.settle()
    lab.simulator.state_dump()
    corrupt(lab)
    lab.ask("one", vcore=20)
    lab.settle()
    return lab


def _corrupt_sum(lab: Lab) -> None:
    lab.state.root.pending["vcore"] += 1


CORRUPTIONS = [
    ("fused", "G04: pending of root", _corrupt_sum),
    ("fused", "free of node n1", _corrupt_view),
    ("proposing", "free of node n1", _corrupt_view),
]


def _ask_and_settle(lab: Lab, count: int) -> None:
    for number in range(count):
        lab.ask(f"more-{number}", vcore=20)
        lab.settle()


@pytest.mark.parametrize(("topology", "words", "corrupt"), CORRUPTIONS)
def test_a_corruption_of_a_large_state_is_caught_when_a_twentieth_has_changed(
    topology: str, words: str, corrupt: Callable[[Lab], None]
) -> None:
    lab = _large(topology, corrupt)
    with pytest.raises(InvariantViolation, match=words):
        _ask_and_settle(lab, SMALL // 5)


@pytest.mark.parametrize(("topology", "words", "corrupt"), CORRUPTIONS)
def test_a_corruption_of_a_large_state_is_caught_under_way_when_a_fifth_has_changed(
    topology: str, words: str, corrupt: Callable[[Lab], None]
) -> None:
    lab = _large(topology, corrupt)
    for number in range(SMALL):
        lab.ask(f"more-{number}", vcore=20)
    with pytest.raises(InvariantViolation, match=words):
        lab.settle()
    assert not lab.simulator.is_at_rest


# -- decisions: each gate at commit is opened in turn, and a decision on an old view comes through


def _take_the_limit_away(lab: Lab) -> None:
    lab.ask("a", "b", "c", vcore=3)
    lab.configure(limited(4))


def _drain(lab: Lab) -> None:
    lab.ask("a", "b")
    lab.node("n1", si.ActionFromRM.DRAIN_NODE)


ONE = CONFIG.replace("{name: default}", "{name: default, maxapplications: 1}")
ONE_OF_BOB = CONFIG.replace(
    "{name: default}", "{name: default, limits: [{limit: o, users: [bob], maxapplications: 1}]}"
)
SMALL_OF_BOB = CONFIG.replace(
    "{name: default}",
    "{name: default, limits: [{limit: o, users: [bob], maxresources: {vcore: 4m}}]}",
)


def _bring_another(lab: Lab) -> None:
    lab.submit("other")
    lab.ask("a")
    lab.report(report("forced", "n1", app="other"))


def _bring_more(lab: Lab) -> None:
    lab.ask("a", vcore=3)
    lab.report(report("forced", "n1", vcore=3))


def _keep_and_bring_another(lab: Lab) -> None:
    lab.submit("other")
    foreign = {si.constants.TAG_FOREIGN: si.constants.FOREIGN_DEFAULT}
    lab.report(report("f", "n1", vcore=1, app="", allocation_tags=foreign))
    lab.settle()
    lab.ask("large", vcore=10, tags={si.constants.TAG_CREATION_TIME: "1"})
    lab.report(report("forced", "n2", app="other"))


OPENED: dict[str, tuple[str, str, str, Callable[[Lab], None]]] = {
    "quotas": ("commit.check_quotas", limited(9), "G23: root.default gets", _take_the_limit_away),
    "nodes": ("commit.check_node", CONFIG, "G22: node n1 takes no work", _drain),
    "limits": ("commit.check_limits", SMALL_OF_BOB, "G23: bob in root.default gets", _bring_more),
    "places": (
        "commit.check_application", ONE, "G23: root.default gets above 1 app", _bring_another,
    ),
    "places of a user": (
        "commit.check_limits", ONE_OF_BOB, "G23: bob in root.default gets above 1 a", _bring_another,
    ),
    "places by a reservation": (
        "reservations.check_application",
        ONE,
        "G23: root.default gets above 1 app",
        _keep_and_bring_another,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", OPENED)
def test_a_gate_that_stands_open_is_found(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, config, words, provoke = OPENED[case]
    monkeypatch.setattr(f"yunikorn_actors.machines.context.{gate}", lambda *_: None)
    monkeypatch.setattr("yunikorn_actors.drivers.simulator.checkers.could_run", lambda _: [])
    with pytest.raises(InvariantViolation, match=words):
        _run(config, provoke)


def _run(config: str, provoke: Callable[[Lab], None]) -> None:
    for lab in labs(100, config=config):
        lab.nodes(n1=10, n2=9)
        lab.submit(APP)
        lab.settle()
        provoke(lab)
        lab.settle()


@pytest.mark.parametrize("topology", ["proposing", "fused"])
def test_what_context_refuses_on_the_facts_of_the_plan_is_found(
    topology: TopologyName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planner decides by other rules than Context."""
    lab = _lab(topology)
    check = "yunikorn_actors.machines.context.commit.check_limits"
    monkeypatch.setattr(check, lambda *_: Refusal.USER_LIMIT)
    lab.ask("b")
    with pytest.raises(InvariantViolation, match="refused with USER_LIMIT on the facts of the pl"):
        lab.settle()


def test_a_waiting_ask_that_nothing_wakes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab()
    lab.nodes(n1=10, n2=2)
    lab.submit(APP)
    lab.ask("a", vcore=8)
    lab.settle()
    lab.ask("b", vcore=3)
    lab.settle()
    monkeypatch.setattr(Tree, "wake_shapes", lambda *_: None)
    lab.release("a")
    with pytest.raises(InvariantViolation, match="at rest and b could run"):
        lab.settle()
