"""A partition that is made again from its image is the same one, and a planner sees it as it is.

Drawn worlds are looked at while they run: gangs and swaps in flight, reservations, victims,
limits, queues that drain, applications that have ended. An image travels as bytes, so it does here.
"""

from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from msgspec import Struct, msgpack
from support import Lab, facts_of, with_everything

from yunikorn_actors.checks.model_audit import audit
from yunikorn_actors.checks.state_invariants import violations
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.lab.run_schedule import play as play_tape
from yunikorn_actors.lab.swarm.drawn import drawn
from yunikorn_actors.lab.swarm.swarm_runs import Plan
from yunikorn_actors.lab.swarm.world_parts import Wanted
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.base import CONTEXT, Delivery
from yunikorn_actors.planning.planner import Planner
from yunikorn_actors.policies.folds import Folds
from yunikorn_actors.state.allocations import Allocation, Ask
from yunikorn_actors.state.applications import Application, Usage, UsageHistory
from yunikorn_actors.state.dump import snapshot
from yunikorn_actors.state.facts import apply
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import LimitTable, Queue, QueueState
from yunikorn_actors.state.snapshot import image_of, restore
from yunikorn_actors.values.durations import SECOND

pytestmark = pytest.mark.timeout(1800)
"""For a long run."""
EVERY = 5
"""Every so many messages of Context, so that the test takes no longer than it must."""
SEEN = {
    "allocation", "parked", "crosses", "incoming", "reservation", "claim", "victim", "release",
    "draining", "finished", "gang", "foreign", "timer", "short", "told",
}  # fmt: skip
LIMITED = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: default
            limits:
              - {users: [bob], maxresources: {vcore: 2m}, maxapplications: 2}
              - {groups: [dev, ops], maxresources: {vcore: 4m}, maxapplications: 1}
"""
NAMED = (Queue, Node, Application)


HOLDERS = (PartitionState, Queue, Node, Application, Ask, Allocation)
HARDLY_EVER_SET = {
    "Node.awaited", "Application.owed", "Application.lapsed_ns", "Application.reported",
    "Allocation.charged_s", "Allocation.grace_ns",
}  # fmt: skip
"""Fields to which no world here gives a value: `test_what_is_hardly_ever_set_is_kept` does."""


SELDOM = (65, 94, 166)
"""Worlds in which a queue drains, a gang has lapsed, and something is asked back for a swap that is
off then: those before them have all the rest."""
CROSSES = 3
"""In this world of a swap its member goes to another node."""


def fields_of(holder: type) -> set[str]:
    """Return the names of what a holder of state has, as `Node.drained`."""
    if holder is PartitionState:
        names: Any = vars(PartitionState(""))
    else:
        names = getattr(holder, "__struct_fields__", None) or holder.__slots__  # type: ignore[attr-defined]
    return {f"{holder.__name__}.{name}" for name in names}


def fields_set(holder: Any) -> set[str]:
    """Return those of its fields that are not empty, zero or false."""
    names = fields_of(type(holder))
    return {name for name in names if getattr(holder, name.partition(".")[2])}


def made_again(state: PartitionState) -> PartitionState:
    image = msgpack.decode(msgpack.encode(image_of(state)))
    again = PartitionState(state.name, None if state.folds is None else Folds(state.folds.policies))
    restore(again, image)
    return again


def plain(value: Any, *, inside: bool = False) -> Any:
    """Everything that can be reached, zeros in books aside; what has a name stands for itself.

    A history is read as a message holds it, which is all that an image promises.
    """
    if isinstance(value, UsageHistory):
        value = value.saturated()
    if inside and isinstance(value, NAMED):
        return f"{type(value).__name__} {getattr(value, 'path', None) or value.id}"  # type: ignore[union-attr]
    if isinstance(value, Mapping):
        items = [(key, plain(item, inside=inside)) for key, item in value.items()]
        return [(repr(key), item) for key, item in items if item != 0 or not isinstance(key, str)]
    if isinstance(value, list | tuple):
        return [plain(item, inside=inside) for item in value]
    names: Any = ()
    if isinstance(value, Struct):
        names = value.__struct_fields__
    elif isinstance(value, (*NAMED, LimitTable, Usage)):
        names = type(value).__slots__
    return {name: plain(getattr(value, name), inside=True) for name in names} or value


def parts(state: PartitionState) -> dict[str, Any]:
    """Books are compared without regard to the order in which their types came."""
    kept = {name: it for name, it in vars(state).items() if name != "folds"}
    folds = {} if state.folds is None else state.folds.image()
    return {name: _sorted(plain(value)) for name, value in kept.items()} | {"folds": folds}


ORDERED = {
    "nodes",
    "queues",
    "applications",
    "asks",
    "allocations",
    "foreign",
    "finished",
    "reserving",
}


def _sorted(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _sorted(item, key) for key, item in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], tuple) and name not in ORDERED:
        return sorted((_sorted(item) for item in value), key=repr)
    return [_sorted(item) for item in value] if isinstance(value, list | tuple) else value


class Imaged:
    """Makes each partition again, now and then, and compares all that can be seen of it."""

    def __init__(self, every: int) -> None:
        self.every = every
        self.handled = 0
        self.seen: Counter[str] = Counter()
        self.fields: set[str] = set()

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        context = simulator.machines[CONTEXT]
        assert isinstance(context, Context)
        self.handled += delivery.mailbox == CONTEXT
        if delivery.mailbox == CONTEXT and self.handled % self.every == 0:
            for partition in context.partitions.values():
                self.compare(partition.state)

    def compare(self, state: PartitionState) -> None:
        again = made_again(state)
        assert snapshot(state) == snapshot(again)
        assert parts(state) == parts(again)
        assert list(state.nodes) == list(again.nodes)
        assert list(state.applications) == list(again.applications)
        assert [] == violations(again)
        planner = Planner(again)
        planner.adopt()
        assert [] == audit(planner)
        self.note(state)

    def note(self, state: PartitionState) -> None:
        apps = list(state.applications.values())
        allocations = [item for app in apps for item in app.allocations.values()]
        nodes = list(state.nodes.values())
        asks = [ask for app in apps for ask in app.asks.values()]
        swaps = [swap for app in apps for swap in app.swaps.values()]
        for holder in (state, *state.queues.values(), *nodes, *apps, *asks, *allocations):
            self.fields |= fields_set(holder)
        self.seen.update(
            {
                "allocation": len(allocations),
                "parked": sum(ask.parked for ask in asks),
                "crosses": sum(swap.crosses for swap in swaps),
                "incoming": sum(len(node.incoming) for node in nodes),
                "reservation": state.reservation_count,
                "claim": sum(any(queue.earmarked.values()) for queue in state.queues.values()),
                "victim": sum(item.beneficiary is not None for item in allocations),
                "release": len(state.unconfirmed),
                "limit": sum(bool(queue.spec.limits) for queue in state.queues.values()),
                "draining": sum(q.state is QueueState.DRAINING for q in state.queues.values()),
                "finished": len(state.finished),
                "gang": len(state.admitted),
                "foreign": len(state.foreign),
                "timer": sum(len(app.timers) for app in apps),
                "group": sum(bool(app.group) for app in apps),
                "short": sum(bool(ask.shortage) for ask in asks),
                "told": sum(bool(ask.reported) for ask in asks),
            }
        )


@pytest.mark.parametrize("worlds", [28, pytest.param(1_500, marks=pytest.mark.slow)])
def test_drawn_worlds(worlds: int) -> None:
    seen: Counter[str] = Counter()
    fields: set[str] = set()
    swaps = Plan(wanted=Wanted(only=("one-swap", "waits")))
    runs = (
        *(drawn(1, number) for number in dict.fromkeys((*range(1, worlds + 1), *SELDOM))),
        swaps.drawn(CROSSES),
    )
    for run in runs:
        world, imaged = run.case, Imaged(1 if run is runs[-1] else EVERY)
        outcome = play_tape(world, world.tape(), (imaged,))
        assert outcome.ok, outcome.violation
        seen.update(imaged.seen)
        fields |= imaged.fields
    missing = sorted(SEEN - {what for what, times in seen.items() if times})
    assert [] == missing, f"vacuous: never seen: {missing}"
    unset = set().union(*map(fields_of, HOLDERS)) - fields - HARDLY_EVER_SET
    assert set() == unset, "no world sets these, so nothing shows that an image keeps them"


def test_limits_of_users_and_groups() -> None:
    imaged = Imaged(1)
    lab = Lab(config=LIMITED, checkers=(imaged,))
    lab.nodes(n1=20)
    for number, (user, group) in enumerate((("bob", "dev"), ("eve", "dev"), ("kim", "ops"))):
        app = f"app-{number}"
        lab.submit(app, user=user, groups=(group,))
        lab.ask(f"a{number}", f"b{number}", f"c{number}", vcore=2, app=app)
    lab.settle()
    assert 3 == len(lab.running()), "vacuous: the limits held nothing back"
    lab.remove("app-0")
    lab.settle()
    assert min(imaged.seen["limit"], imaged.seen["group"]) > 0


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_what_is_restored_goes_on_alike(topology: TopologyName) -> None:
    """The next facts have the same effect on both."""
    lab = Lab(topology=topology)
    lab.nodes(n1=4, n2=4)
    lab.submit("app-1")
    lab.ask("a", "b", vcore=2)
    lab.settle()
    again = made_again(lab.state)
    draw = Random(7)  # noqa: S311 - a repeatable workload, no secret
    facts = _facts_of(lab, draw)
    for fact in facts:
        apply(again, fact)
    assert snapshot(lab.state) == snapshot(again)
    assert len(facts) > 10, "vacuous: hardly anything happened"


class Noted:
    """What Context recorded since."""

    def __init__(self) -> None:
        self.facts: list[Any] = []

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        self.facts.extend(facts_of(simulator, delivery))


def _facts_of(lab: Lab, draw: Random) -> list[Any]:
    noted = Noted()
    lab.simulator.checkers.add(noted)
    for number in range(10):
        lab.ask(f"k{number}", vcore=1 + int(draw.random() * 2))
        lab.release(draw.choice(("a", "b", *(f"k{other}" for other in range(number)))))
        lab.settle()
    return noted.facts


def test_an_amount_beyond_what_a_message_holds_is_no_obstacle() -> None:
    lab = with_everything()
    lab.ask("huge", vcore=2**62, max_allocations=2**30)
    lab.settle()
    assert lab.state.root.pending["vcore"] > 2**64
    Imaged(1).compare(lab.state)


def test_a_history_beyond_what_a_message_holds_is_clamped() -> None:
    lab = Lab()
    lab.nodes(n1=2**62)
    lab.submit("app-1")
    lab.ask("huge", "small", vcore=2**61)
    lab.settle()
    lab.simulator.advance(30 * SECOND)
    lab.release("huge")
    lab.settle()
    (app,) = lab.state.applications.values()
    assert app.history != app.history.saturated(), "vacuous: it is not that long"
    Imaged(1).compare(lab.state)


def test_what_is_hardly_ever_set_is_kept() -> None:
    state = with_everything().state
    node, app = next(iter(state.nodes.values())), next(iter(state.applications.values()))
    state.schedulable_count -= node.is_schedulable
    node.awaited = True
    app.owed, app.lapsed_ns = {"uuid-1": "key-1"}, 7
    running = next(iter(app.allocations.values()))
    app.reported = {"vcore": 2}
    running.charged_s, running.grace_ns = 3, 4
    assert HARDLY_EVER_SET <= fields_set(node) | fields_set(app) | fields_set(running)
    assert parts(state) == parts(made_again(state))
