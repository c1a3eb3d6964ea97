"""The watch and the full check agree: after every message, on sound runs and on corrupted ones.

The runs are those of `searching.py`: gangs, preemption, nodes that come and go, whatever may happen
around them. A corruption is made right after a fact, in one of the parts that the fact is about, as
a mistake in `apply` would make it.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from yunikorn_actors.checks.incremental import Watch
from yunikorn_actors.checks.state_invariants import CHECKS, misconfigured, violations
from yunikorn_actors.checks.touched import touched_by
from yunikorn_actors.drivers.simulator.checkers import facts_in
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.machine import InvariantViolation
from yunikorn_actors.messages.base import CONTEXT, Delivery
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import ForeignAllocation
from yunikorn_actors.state.applications import Application, ApplicationState, Timer
from yunikorn_actors.state.facts import apply
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.state.users import Usage

sys.path.insert(0, str(Path(__file__).parent.parent))

from searching import Run

SEEDS = range(1, 13)
SEEDS_MAX = 60
_PREEMPTED = TerminationType.PREEMPTED_BY_SCHEDULER


class Found(Exception):
    """Both have found something."""


class Both:
    """Asks the watch and works everything out anew, after every message of Context."""

    looks = 0

    def __init__(self) -> None:
        self.watches: dict[str, Watch] = {}

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        context = simulator.machines[CONTEXT]
        assert isinstance(context, Context)
        if delivery.mailbox != CONTEXT or delivery is not simulator.last:
            return
        told = facts_in(simulator.effects)
        for name, partition in context.partitions.items():
            watch = self.watches.get(name)
            if watch is None or watch.state is not partition.state:
                watch = self.watches[name] = Watch(partition.state)
            self.compare(watch, told.get(name, ()))

    def compare(self, watch: Watch, facts: tuple[f.Fact, ...]) -> None:
        state = watch.state
        full = [*violations(state), *misconfigured(state)]
        fast = watch.look(facts) if watch.revision != state.revision else []
        # No assertion: where something is planted, one of the core may fail, and is passed over.
        if bool(full) is not bool(fast) or watch.mistaken:
            pytest.fail(f"after {facts} one says {full}, the other {fast}")
        if full:
            raise Found(full)
        around = Watch(state)
        assert [] == around.look_around()
        assert not around.mistaken
        Both.looks += 1


@pytest.fixture(autouse=True)
def _both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yunikorn_actors.drivers.simulator.checkers.StateChecker", Both)
    monkeypatch.setattr(Both, "looks", 0)


@pytest.mark.parametrize("preempts", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_both_are_content_with_sound_runs(seed: int, preempts: bool) -> None:
    Run(seed, preempts=preempts).play()
    assert Both.looks > 10


# -- corruptions: each says whether there was something to corrupt

Corrupt = Callable[[PartitionState, Application, Node], object]


def _more(book: dict[str, int]) -> None:
    book["vcore"] = book.get("vcore", 0) + 1


def _any(items: Any) -> Any:
    """Return the first; without one there is nothing to corrupt."""
    for item in items:
        return item
    raise LookupError


def _usage(state: PartitionState, app: Application) -> Usage:
    return state.users[app.spec.user][app.queue.path]


def _lose_an_ask(_: PartitionState, app: Application, __: Node) -> None:
    del app.asks[_any(app.allocations.values()).spec.key]


def _double(_: PartitionState, app: Application, node: Node) -> None:
    """An allocation stands on another node as well."""
    item = _any(it for it in app.allocations.values() if it.node_id != node.id)
    node.allocations[item.uuid] = item


def _forget_removal(state: PartitionState, _: Application, __: Node) -> None:
    state.owners["u"] = _any(state.applications)


def _foreign_on(node: Node) -> ForeignAllocation:
    return ForeignAllocation(key="f", node_id=node.id, resource={})


def _misplace(_: PartitionState, app: Application, __: Node) -> None:
    uuid = _any(app.swaps)
    app.swaps[uuid] = replace(app.swaps[uuid], node_id="n9")


def _reserve(_: PartitionState, app: Application, node: Node) -> None:
    ask = _any(ask for ask in app.asks.values() if ask.remaining)
    ask.reserved = (*ask.reserved, node.id)


def _mark(_: PartitionState, app: Application, __: Node) -> None:
    _any(it for it in app.allocations.values() if it.beneficiary is None).releasing = _PREEMPTED


def _arm(_: PartitionState, app: Application, __: Node) -> None:
    kind = "commitment" if "commitment" not in app.timers else "placeholder"
    app.timers[kind] = Timer(generation=1, due_ns=1)


AT_LARGE = {"G02", "G08"}
"""Of the partition as a whole: only facts that reach far can have them wrong."""
CORRUPTIONS: list[tuple[str, Corrupt]] = [
    ("G01", lambda _, __, node: _more(node.allocated)),
    ("G01", lambda _, __, node: _more(node.available)),
    ("G01", lambda _, __, node: _more(node.occupied)),
    ("G02", lambda state, _, __: _more(state.capacity)),
    ("G02", lambda state, _, __: setattr(state, "schedulable_count", 9)),
    ("G03", lambda _, app, __: _more(app.allocated)),
    ("G03", lambda _, app, __: _more(app.placeholders)),
    ("G03", lambda _, app, __: _more(app.pending)),
    ("G04", lambda _, app, __: _more(app.queue.allocated)),
    ("G04", lambda _, app, __: _more(app.queue.pending)),
    ("G04", lambda state, _, __: _more(state.root.pending)),
    ("G05", lambda state, _, __: _more(state.root.allocated)),
    ("G06", lambda _, app, __: app.pending.update(gpu=-1)),
    ("G06", lambda _, app, __: app.allocated.update(gpu=-1)),
    ("G06", lambda _, app, __: app.queue.preempting.update(gpu=-1)),
    ("G06", lambda _, __, node: node.occupied.update(gpu=-1)),
    ("G06", lambda _, app, __: setattr(app.queue, "running_apps", -1)),
    ("G07", lambda _, __, node: node.allocations.pop(_any(node.allocations))),
    ("G07", _lose_an_ask),
    ("G07", lambda _, app, __: app.allocations.pop(_any(app.allocations))),
    ("G08", lambda state, _, node: state.foreign.update(f=_foreign_on(node))),
    ("G09", _double),
    ("G09", _forget_removal),
    ("G09", lambda state, app, _: state.owners.pop(_any(app.allocations))),
    ("G10", _misplace),
    ("G10", lambda _, __, node: node.incoming.pop(_any(node.incoming))),
    ("G10", lambda _, app, __: app.swaps.pop(_any(app.swaps))),
    ("G12", _mark),
    ("G17", lambda _, app, __: setattr(app, "waiting_placeholders", app.waiting_placeholders + 1)),
    ("G17", lambda _, app, __: setattr(_any(app.task_groups.values()), "timed_out", -1)),
    ("G18", lambda state, _, __: setattr(state, "reservation_count", state.reservation_count + 1)),
    ("G18", lambda _, app, __: setattr(app, "reservation_count", app.reservation_count + 1)),
    ("G18", _reserve),
    ("G18", lambda _, __, node: node.reservations.pop(_any(node.reservations))),
    ("G18", lambda _, __, node: _more(node.promised)),
    ("G19", lambda _, app, __: _more(app.queue.preempting)),
    ("G19", lambda _, app, __: _more(app.queue.leaving)),
    ("G19", lambda state, _, __: _more(state.root.earmarked)),
    ("G20", lambda state, _, __: setattr(state.root, "running_apps", state.root.running_apps + 1)),
    ("G20", lambda _, app, __: app.queue.allocating.update({99: None})),
    ("G20", lambda _, app, __: app.queue.reserving.update({99: None})),
    ("G21", lambda _, app, __: setattr(app, "state", ApplicationState.COMPLETED)),
    ("G21", _arm),
    ("G21", lambda _, app, __: app.timers.pop(_any(app.timers))),
    ("G24", lambda state, app, _: _more(_usage(state, app).amounts)),
    ("G24", lambda state, app, _: _usage(state, app).running.update({99: None})),
    ("G24", lambda state, app, _: setattr(_usage(state, app), "attached", 9)),
    ("G24", lambda state, app, _: _usage(state, app).reserving.update({99: None})),
    ("G28", lambda _, app, __: app.queue.applications.pop(app.serial)),
    ("G28", lambda state, app, _: state.root.children.pop(app.queue.name)),
]


def test_each_invariant_is_corrupted() -> None:
    assert {id_ for id_, _ in CHECKS} == {id_ for id_, _ in CORRUPTIONS}


class Planted:
    """Applies facts as ever, and corrupts once, after the given number of chances."""

    def __init__(self, corrupt: Corrupt, chances: int, *, at_large: bool) -> None:
        self._corrupt = corrupt
        self._at_large = at_large
        self._left = chances
        self.is_done = False

    def __call__(self, state: PartitionState, fact: f.Fact) -> None:
        apply(state, fact)
        if not self.is_done and (touched_by((fact,)) is None or not self._at_large):
            for app, node in _parts(state, fact):
                try:
                    self._plant(state, app, node)
                except LookupError:
                    continue

    def _plant(self, state: PartitionState, app: Application, node: Node) -> None:
        if self._left:
            self._left -= 1
            return
        self._corrupt(state, app, node)
        self.is_done = True


def _parts(state: PartitionState, fact: f.Fact) -> Iterator[tuple[Application, Node]]:
    touched = touched_by((fact,))
    apps, nodes = touched if touched is not None else (state.applications, state.nodes)
    for id_ in apps:
        for node_id in nodes:
            if id_ in state.applications and node_id in state.nodes:
                yield state.applications[id_], state.nodes[node_id]
                return


def _outcome(run: Run) -> str:
    try:
        run.play()
    except Found as found:
        return str(found)
    return ""


@pytest.mark.parametrize(("id_", "corrupt"), CORRUPTIONS)
def test_both_find_a_corruption_at_the_same_message(
    id_: str, corrupt: Corrupt, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(1, SEEDS_MAX):
        planted = Planted(corrupt, seed % 3, at_large=id_ in AT_LARGE)
        monkeypatch.setattr("yunikorn_actors.machines.context.unit_of_work.apply", planted)
        with suppress(KeyError, ValueError, AssertionError, InvariantViolation):
            # The core itself may fall over what was planted, before anybody can look.
            found = _outcome(Run(seed, preempts=bool(seed % 2)))
            if found:
                assert id_ in found
                return
    pytest.fail("nothing was there to be corrupted")


class FromNowhere(Both):
    """Corrupts what was sound, and looks around."""

    corrupt: Corrupt

    def compare(self, watch: Watch, _: tuple[f.Fact, ...]) -> None:
        state = watch.state
        for app in state.applications.values():
            for node in state.nodes.values():
                with suppress(LookupError):
                    type(self).corrupt(state, app, node)
                    found = violations(state)
                    assert found == watch.look_around()
                    raise Found(found)


@pytest.mark.parametrize(("id_", "corrupt"), CORRUPTIONS)
def test_what_came_without_a_fact_is_found_by_looking_around(
    id_: str, corrupt: Corrupt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("yunikorn_actors.drivers.simulator.checkers.StateChecker", FromNowhere)
    monkeypatch.setattr(FromNowhere, "corrupt", staticmethod(corrupt), raising=False)
    runs = (Run(seed, preempts=bool(seed % 2)) for seed in range(1, SEEDS_MAX))
    assert id_ in next(filter(None, map(_outcome, runs)))
