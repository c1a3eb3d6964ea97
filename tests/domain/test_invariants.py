"""Each invariant speaks up: one corruption of a sound state for each line it can say."""

from collections.abc import Callable
from typing import TypeAlias

import pytest
from msgspec.structs import replace
from written import APP, LEAF, Written

from yunikorn_actors.checks.configured_queues import described
from yunikorn_actors.checks.state_invariants import CHECKS, misconfigured, violations
from yunikorn_actors.config import parse_config
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import Allocation, Ask, ForeignAllocation
from yunikorn_actors.state.applications import ApplicationState, TaskGroup, Timer
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import Queue, QueueSpec, QueueState
from yunikorn_actors.state.termination import TerminationType

_PREEMPTED = TerminationType.PREEMPTED_BY_SCHEDULER
Corrupt: TypeAlias = Callable[[PartitionState], object]


@pytest.fixture
def written() -> Written:
    """Two nodes, a foreign allocation, and an application with an ask and one of each kind."""
    written = Written("root.default", "root.other")
    written.node("n1", vcore=10, occupied={"vcore": 1})
    written.node("n2", vcore=10)
    written.foreign("f", "n2", vcore=2)
    written.add(APP)
    written.ask("real", vcore=3)
    written.ask("held", vcore=2, placeholder=True, task_group="g")
    written.ask("waits", vcore=4, repeats=2)
    written.allocate("real", "n1")
    written.allocate("held", "n2")
    written.reserve("waits", "n2")
    written.move(APP, ApplicationState.RUNNING)
    return written


@pytest.fixture
def state(written: Written) -> PartitionState:
    return written.state


def _uuid(state: PartitionState, key: str) -> str:
    (uuid,) = state.applications[APP].asks[key].uuids
    return uuid


def _ask(state: PartitionState) -> Ask:
    return state.applications[APP].asks["waits"]


def _reserve(state: PartitionState, key: str) -> None:
    reservations = state.nodes["n2"].reservations
    (known,) = reservations.values()
    reservations[APP, key] = replace(known, key=key)


def _secure(state: PartitionState, vcore: int, *, required: bool) -> None:
    reservations = state.nodes["n2"].reservations
    ((holder, known),) = reservations.items()
    reservations[holder] = replace(known, required=required, secured={"vcore": vcore})


def _put_on_second_node(state: PartitionState) -> None:
    uuid = _uuid(state, "real")
    state.nodes["n2"].allocations[uuid] = state.nodes["n1"].allocations[uuid]


def _forget_application(state: PartitionState) -> None:
    app = state.applications.pop(APP)
    state.queues[LEAF].applications[app.serial] = APP


def _detach_leaf(state: PartitionState) -> None:
    del state.root.children["other"]


def _other_object(state: PartitionState) -> None:
    old = state.queues[LEAF]
    state.queues[LEAF] = state.root.children["default"] = Queue("default", old.spec, state.root)


def _real(state: PartitionState) -> Allocation:
    return state.applications[APP].allocations[_uuid(state, "real")]


def _set(state: PartitionState, app_state: ApplicationState) -> None:
    state.applications[APP].state = app_state


CORRUPTIONS: list[tuple[str, str, Corrupt]] = [
    ("G01", "allocated of node n1", lambda s: s.nodes["n1"].allocated.update(vcore=4)),
    ("G01", "occupied of node n2", lambda s: s.nodes["n2"].foreign.clear()),
    ("G01", "occupied of node n1", lambda s: s.nodes["n1"].occupied.update(vcore=0)),
    ("G01", "capacity of node n1", lambda s: s.nodes["n1"].available.update(vcore=9)),
    ("G02", "capacity of the partition", lambda s: s.capacity.update(vcore=19)),
    ("G02", "keeps a type of zero", lambda s: s.capacity.update(gpu=0)),
    ("G03", "allocated of app-1", lambda s: s.applications[APP].allocated.update(vcore=0)),
    ("G03", "placeholders of app-1", lambda s: s.applications[APP].placeholders.update(vcore=0)),
    ("G03", "pending of app-1", lambda s: s.applications[APP].pending.update(vcore=4)),
    ("G04", "allocated of root.default", lambda s: s.queues[LEAF].allocated.update(vcore=6)),
    ("G04", "allocated of root ", lambda s: s.root.allocated.update(vcore=6)),
    ("G04", "pending of root.other", lambda s: s.queues["root.other"].pending.update(vcore=1)),
    ("G05", "compared with the nodes", lambda s: s.root.allocated.update(vcore=4)),
    ("G06", "pending of app-1 is negative", lambda s: s.applications[APP].pending.update(gpu=-1)),
    ("G06", "allocated of app-1 is negative", lambda s: s.applications[APP].allocated.update(x=-1)),
    ("G06", "placeholders of app-1 is", lambda s: s.applications[APP].placeholders.update(x=-1)),
    ("G06", "preempting of root is negative", lambda s: s.root.preempting.update(vcore=-1)),
    ("G06", "occupied of n1 is negative", lambda s: s.nodes["n1"].occupied.update(vcore=-1)),
    ("G06", "running applications of root: -1", lambda s: setattr(s.root, "running_apps", -1)),
    ("G07", "is not on its node n1", lambda s: s.nodes["n1"].allocations.clear()),
    ("G07", "has no ask real", lambda s: s.applications[APP].asks.pop("real")),
    ("G07", "belongs to nobody", lambda s: s.applications[APP].allocations.clear()),
    ("G08", "which does not have it", lambda s: s.nodes["n2"].foreign.clear()),
    ("G08", "foreign allocation f is on node n9", lambda s: s.foreign.update(f=_at(s, "n9"))),
    ("G09", "is on node n1 and on node n2", _put_on_second_node),
    ("G02", "9 nodes are said to take work", lambda s: setattr(s, "schedulable_count", 9)),
    ("G09", "u is listed as one of app-1, which", lambda s: s.owners.update(u=APP)),
    ("G09", "is not listed", lambda s: s.owners.clear()),
    ("G18", "reserved for several", lambda s: _reserve(s, "other")),
    ("G18", "n2 takes no work, and is reserved", lambda s: setattr(s.nodes["n2"], "ready", False)),
    ("G18", "is reserved for waits, which", lambda s: setattr(_ask(s), "reserved", ())),
    ("G18", "more reservations than repeats", lambda s: setattr(_ask(s), "remaining", 0)),
    ("G18", "that n2 does not know", lambda s: s.nodes["n2"].reservations.clear()),
    ("G18", "n2, which is too small", lambda s: setattr(s.nodes["n2"], "capacity", {})),
    ("G18", "secures more room for waits", lambda s: _secure(s, 99, required=False)),
    ("G18", "secures room that was taken", lambda s: _secure(s, 99, required=True)),
    ("G18", "0 reservations are counted", lambda s: setattr(s, "reservation_count", 0)),
    (
        "G18",
        "app-1 counts 0 reservations",
        lambda s: setattr(s.applications[APP], "reservation_count", 0),
    ),
    ("G19", "preempting of root ", lambda s: s.root.preempting.update(vcore=1)),
    ("G19", "leaving of root ", lambda s: s.root.leaving.update(vcore=1)),
    ("G19", "earmarked of root ", lambda s: s.root.earmarked.update(vcore=1)),
    ("G20", "root counts 2 running", lambda s: setattr(s.root, "running_apps", 2)),
    ("G20", "root takes [99] for alloc", lambda s: s.root.allocating.update({99: None})),
    ("G20", "root takes [99] for reserving", lambda s: s.root.reserving.update({99: None})),
    ("G21", "still among the active ones", lambda s: _set(s, ApplicationState.COMPLETED)),
    ("G21", "is Completing and has work", lambda s: _set(s, ApplicationState.COMPLETING)),
    ("G21", "is New and has work", lambda s: _set(s, ApplicationState.NEW)),
    ("G12", "is a victim and not", lambda s: setattr(_real(s), "releasing", _PREEMPTED)),
    ("G21", "its timers are ['pl", lambda s: _set(s, ApplicationState.STARTING)),
    ("G21", "its timers are []", lambda s: s.applications[APP].timers.clear()),
    (
        "G21",
        "its timers are ['commitment', 'placeholder']",
        lambda s: s.applications[APP].timers.update(commitment=Timer(generation=1, due_ns=1)),
    ),
    (
        "G21",
        "its timers are ['placeholder', 'state']",
        lambda s: s.applications[APP].timers.update(state=Timer(generation=1, due_ns=1)),
    ),
    ("G24", "usage of bob in root", lambda s: s.users["bob"]["root"].amounts.update(vcore=1)),
    ("G24", "that are not there", lambda s: s.users["bob"]["root"].running.update({99: None})),
    ("G24", "that are not there", lambda s: setattr(s.users["bob"]["root"], "attached", 2)),
    (
        "G24",
        "bob in root takes [99] for reserving",
        lambda s: s.users["bob"]["root"].reserving.update({99: None}),
    ),
    ("G28", "cannot be reached from its parent", _detach_leaf),
    ("G28", "which is not active", _forget_application),
    ("G28", "that does not know it", lambda s: s.queues[LEAF].applications.clear()),
    ("G28", "that does not know it", _other_object),
]


def _at(state: PartitionState, node_id: str) -> ForeignAllocation:
    return replace(state.foreign["f"], node_id=node_id)


def test_a_sound_state_has_nothing_to_say(state: PartitionState) -> None:
    assert [] == violations(state)
    assert [] == violations(PartitionState("empty"))


@pytest.mark.parametrize(("id_", "words", "corrupt"), CORRUPTIONS)
def test_a_corruption_is_named(
    id_: str, words: str, corrupt: Corrupt, state: PartitionState
) -> None:
    corrupt(state)
    found = violations(state)
    assert any(line.startswith(f"{id_}: ") and words in line for line in found), found


@pytest.fixture
def swapping(written: Written) -> PartitionState:
    """The held placeholder stands on n2 and is being swapped for room on n1."""
    written.ask("member", vcore=2, task_group="g")
    written.park("member", "held", "n1")
    return written.state


def _swap(state: PartitionState, **changes: object) -> None:
    app = state.applications[APP]
    ((uuid, swap),) = app.swaps.items()
    app.swaps[uuid] = replace(swap, **changes)


def _placeholder(state: PartitionState) -> Allocation:
    return state.applications[APP].allocations[_uuid(state, "held")]


def _group(state: PartitionState) -> TaskGroup:
    return state.applications[APP].task_groups["g"]


GANG_CORRUPTIONS: list[tuple[str, str, Corrupt]] = [
    ("G10", "not asked back for it", lambda s: setattr(_placeholder(s), "releasing", None)),
    ("G10", "of another task group", lambda s: _swap(s, key="real")),
    ("G10", "that is smaller", lambda s: setattr(_placeholder(s), "resource", {"vcore": 1})),
    ("G10", "its placeholder is on n2", lambda s: _swap(s, node_id="n2")),
    ("G10", "which does not know it", lambda s: s.nodes["n1"].incoming.clear()),
    ("G10", "has 1 repeats parked", lambda s: s.applications[APP].swaps.clear()),
    ("G10", "which is in no swap", lambda s: s.applications[APP].swaps.clear()),
    ("G17", "its groups count {'g': 2}", lambda s: setattr(_group(s), "count", 2)),
    ("G17", "its groups count {}", lambda s: setattr(_group(s), "timed_out", 1)),
    ("G17", "counts 1 waiting", lambda s: setattr(s.applications[APP], "waiting_placeholders", 1)),
]


def test_a_sound_swap_has_nothing_to_say(swapping: PartitionState) -> None:
    assert [] == violations(swapping)


@pytest.mark.parametrize(("id_", "words", "corrupt"), GANG_CORRUPTIONS)
def test_a_corrupt_swap_is_named(
    id_: str, words: str, corrupt: Corrupt, swapping: PartitionState
) -> None:
    corrupt(swapping)
    found = violations(swapping)
    assert any(line.startswith(f"{id_}: ") and words in line for line in found), found


def test_each_invariant_is_shown_to_fire() -> None:
    shown = (*CORRUPTIONS, *GANG_CORRUPTIONS)
    assert {id_ for id_, _ in CHECKS} == {id_ for id_, _, _ in shown}


def _configured(written: Written) -> PartitionState:
    text = "partitions: [{name: default, queues: [{name: root, queues: [{name: default}, {name: other}]}]}]"
    (config,) = parse_config(text).partitions
    written.record(f.PartitionConfigured(config=config))
    for path, spec in described(config.root):
        written.state.queues[path].configure(spec)
    return written.state


def test_queues_follow_the_configuration(written: Written) -> None:
    state = _configured(written)
    assert [] == list(misconfigured(state))
    assert [] == list(misconfigured(PartitionState("empty")))


@pytest.mark.parametrize(
    ("words", "corrupt"),
    [
        ("is Draining, against", lambda s: setattr(s.queues[LEAF], "state", QueueState.DRAINING)),
        (
            "by the configuration",
            lambda s: s.queues[LEAF].configure(QueueSpec(leaf=True, max={"v": 1})),
        ),
        ("is missing", lambda s: s.queues.pop(LEAF)),
    ],
)
def test_a_queue_against_the_configuration_is_named(
    words: str, corrupt: Corrupt, written: Written
) -> None:
    state = _configured(written)
    corrupt(state)
    (line,) = misconfigured(state)
    assert line.startswith("G28: ")
    assert words in line
