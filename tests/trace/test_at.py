"""The state at a moment of a recording is the one that the core had then."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import ranges
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from moves import Move, scripts
from playing import Player, settings_of
from recordings import Tape, in_service, node, records, register, rewrite, simulate

from yunikorn_actors import si
from yunikorn_actors.checks.health_checks import health_of
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.codec import state_digest
from yunikorn_actors.trace.fields import change_line, change_row, changes
from yunikorn_actors.trace.filters import Moment
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.replay import DifferentError, replay
from yunikorn_actors.trace.state_at import state_changes, states_at

OF_THE_CALLER = frozenset({"format", "waiting", "rm_diagnostics", "unhandled_requests"})
"""What `state_dump` adds to the state of Context; `callback_errors` comes with these."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.trace"


def state_at(path: Path, record: int) -> dict[str, Any]:
    with TraceReader(path) as trace:
        (state,) = states_at(trace, [Moment(record=record)])
    assert state is not None
    return state


def of_context(state: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in state.items() if k not in {*OF_THE_CALLER, "callback_errors"}}


@ranges.examples(6, 200)
def test_it_is_the_state_of_that_moment(path: Path, examples: int) -> None:
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @seed(4)
    @given(scripts(15), st.sampled_from(TOPOLOGIES), st.integers(0, 2**32 - 1))
    def play(script: list[Move], topology: TopologyName, number: int) -> None:
        tape = Tape(path, topology, number, settings=msgspec.to_builtins(settings_of(number)))
        player = Player(topology, number, settles=number % 2 == 0, checkers=(tape,))
        lived: dict[int, str] = {}
        for move in script:
            player.play(move)
            if tape.messages:
                # Time may have passed since the last message.
                lived[tape.messages + 1] = state_digest(player.context.whole_state(0))
        tape.end(player.simulator)
        with TraceReader(path) as trace:
            states = states_at(trace, [Moment(record=record) for record in lived])
        repeated = [state_digest({**of_context(state), "at_ns": 0}) for state in states if state]
        assert list(lived.values()) == repeated

    play()


def test_foreign_work_on_a_node_counts_once(path: Path) -> None:
    """The state is looked at in a copy, and a copy has its sums already."""
    tape = Tape(path, "fused", 0)
    core = Player("fused", 0, checkers=(tape,)).simulator
    register(core)
    node(core, "n1", si.ActionFromRM.CREATE, 8)
    foreign = si.Allocation(
        allocation_key="daemon",
        allocation_tags={"foreign": "default"},
        node_id="n1",
        resource_per_alloc=si.Resource.of({"vcore": 3}),
    )
    core.update_allocation(si.AllocationRequest(rm_id="rm-1", allocations=(foreign,)))
    core.settle()
    tape.end(core)
    state = state_at(path, tape.messages + 1)
    (found,) = state["partitions"]["[rm-1]default"]["nodes"].values()
    assert found["occupied"] == {"vcore": 3}
    assert found["available"] == {"vcore": 5}


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_dump_of_the_core_has_nothing_more_than_what_callers_add(
    path: Path, topology: TopologyName
) -> None:
    simulate(path, topology)
    recorded = records(path)
    place = next(n for n, it in enumerate(recorded, 1) if it.get("type") == "StateDump")
    state = state_at(path, place)
    plain = msgspec.json.decode(msgspec.json.encode(of_context(state)))
    assert plain == recorded[place - 1]["payload"]["state"]
    assert {*state} - {*of_context(state)} == {*OF_THE_CALLER, "callback_errors"}
    assert [it.name for it in health_of(state).checks if not it.succeeded] == ["Scheduling errors"]


def test_looking_changes_nothing(path: Path) -> None:
    """Also in the middle of what was handled together, as bursts on threads are."""
    in_service(path)
    joined = [n for n, it in enumerate(records(path), 1) if it.get("joined")][:5]
    assert joined, "vacuous: nothing was handled together"
    with TraceReader(path) as trace:
        states = states_at(trace, [Moment(record=n) for n in (*joined, joined[0] - 1)])
    assert None not in states
    with TraceReader(path) as trace:
        assert replay(trace).difference is None


def test_it_comes_no_further_than_the_recording(path: Path) -> None:
    simulate(path)
    with TraceReader(path) as trace:
        assert states_at(trace, [Moment(record=9_999)]) == [None]


def test_what_was_changed_is_another_run(path: Path) -> None:
    recorded = records(simulate(path))
    place = next(it for it in recorded if it.get("type") == "ProposeAllocations")
    place["payload"]["proposals"][0]["node_id"] = "n9"
    rewrite(path, recorded)
    with pytest.raises(DifferentError), TraceReader(path) as trace:
        states_at(trace, [Moment(record=len(recorded) - 1)])


def test_what_is_different_between_two_moments(path: Path) -> None:
    simulate(path)
    recorded = records(path)
    place = next(n for n, it in enumerate(recorded, 1) if it.get("type") == "RMUpdateNode")
    with TraceReader(path) as trace:
        before, after = states_at(trace, [Moment(record=place - 1), Moment(record=place)])
    assert before is not None
    assert after is not None
    lines = [change_line(it) for it in state_changes(before, after)]
    assert any(line.startswith("+ partitions.[rm-1]default.nodes.n1: {") for line in lines)
    assert [] == list(state_changes(before, {**before, "at_ns": before["at_ns"] + 1}))


CHANGED: dict[str, tuple[Any, Any, list[str]]] = {
    "a value": ({"a": {"b": 1}}, {"a": {"b": 2}}, ["  a.b: 1 -> 2"]),
    "a field": ({"a": 1}, {"b": 2}, ["- a: 1", "+ b: 2"]),
    "an item": (["x", "y"], ["x", "z", "u"], ["  1: y -> z", "+ 2: u"]),
    "an item that has a name": (
        [{"key": "a", "n": 1}, {"key": "b", "n": 1}],
        [{"key": "b", "n": 2}],
        ['- a: {"key": "a", "n": 1}', "  b.n: 1 -> 2"],
    ),
    "an order": (
        [{"key": "a"}, {"key": "b"}],
        [{"key": "b"}, {"key": "a"}],
        ['  order: ["a", "b"] -> ["b", "a"]'],
    ),
    "another type": ({"a": [1]}, {"a": None}, ["  a: [1] -> null"]),
    "a truth": ({"a": True}, {"a": False}, ["  a: true -> false"]),
    "nothing": ({"a": [1]}, {"a": [1]}, []),
}


@pytest.mark.parametrize("what", CHANGED)
def test_fields_that_differ_are_named(what: str) -> None:
    one, other, lines = CHANGED[what]
    assert [change_line(it) for it in changes(one, other)] == lines


def test_what_is_missing_is_missing_in_json() -> None:
    assert [change_row(it) for it in changes({"a": None}, {"b": 1})] == [
        {"field": ("a",), "before": None},
        {"field": ("b",), "after": 1},
    ]
