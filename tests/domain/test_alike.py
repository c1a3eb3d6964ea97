"""States that differ in anything are not alike; two that came about by the same facts are."""

from collections.abc import Callable
from typing import Any

import pytest
from written import APP, LEAF, Written

from yunikorn_actors.checks.equality import are_alike
from yunikorn_actors.policies.folds import Folds, Unread
from yunikorn_actors.policies.registry import NO_POLICIES
from yunikorn_actors.state.applications import Application, ApplicationState
from yunikorn_actors.state.dump import snapshot
from yunikorn_actors.state.partition import PartitionState


def _state() -> PartitionState:
    written = Written("root.default", "root.other")
    written.node("n1", vcore=10, occupied={"vcore": 1})
    written.node("n2", vcore=10)
    written.foreign("f", "n2", vcore=2)
    written.add(APP)
    written.ask("real", vcore=3)
    written.ask("waits", vcore=4, repeats=2)
    written.allocate("real", "n1")
    written.reserve("waits", "n2")
    written.move(APP, ApplicationState.RUNNING)
    return written.state


def _app(state: PartitionState) -> Application:
    return state.applications[APP]


def test_states_by_the_same_facts_are_alike() -> None:
    assert are_alike(_state(), _state())


def test_states_are_alike_though_each_has_policies_of_its_own() -> None:
    """Truth and replica of a core always have: else comparing them would always be slow."""
    one, other = _state(), _state()
    one.folds, other.folds = Folds(NO_POLICIES), Folds(NO_POLICIES)
    assert are_alike(one, other)
    one.folds.by_queue[LEAF], one.folds._names[LEAF] = Unread(kept=7), "counting"
    assert not are_alike(one, other)


DIFFERENCES: dict[str, Callable[[PartitionState], Any]] = {
    "revision": lambda state: setattr(state, "revision", 1),
    "refusals": lambda state: setattr(state, "refused_node_actions", 1),
    "capacity": lambda state: state.capacity.update(vcore=1),
    "foreign": lambda state: state.foreign.clear(),
    "a queue": lambda state: state.queues.pop("root.other"),
    "state of a queue": lambda state: setattr(state.queues[LEAF], "running_apps", 9),
    "amount of a queue": lambda state: state.queues[LEAF].allocated.update(vcore=9),
    "a node": lambda state: state.nodes.pop("n1"),
    "amount of a node": lambda state: state.nodes["n1"].available.update(vcore=1),
    "place on a node": lambda state: state.nodes["n1"].allocations.clear(),
    "reservation": lambda state: state.nodes["n2"].reservations.clear(),
    "an application": lambda state: state.applications.clear(),
    "state of an application": lambda state: setattr(_app(state), "state", ApplicationState.NEW),
    "an ask": lambda state: setattr(_app(state).asks["waits"], "remaining", 1),
    "an allocation": lambda state: setattr(
        next(iter(_app(state).allocations.values())), "node_id", "n9"
    ),
    "its queue": lambda state: setattr(_app(state), "queue", state.queues["root.other"]),
    "a user": lambda state: state.users.clear(),
    "usage in a queue": lambda state: state.users["bob"].pop(LEAF),
    "amount of a user": lambda state: state.users["bob"][LEAF].amounts.update(vcore=9),
}


@pytest.mark.parametrize("what", DIFFERENCES)
def test_what_differs_is_not_alike(what: str) -> None:
    changed = _state()
    DIFFERENCES[what](changed)
    assert not are_alike(_state(), changed)


def test_zeros_are_left_to_the_snapshots() -> None:
    changed = _state()
    _app(changed).allocated["gpu"] = 0
    assert not are_alike(_state(), changed)
    assert snapshot(_state()) == snapshot(changed)
