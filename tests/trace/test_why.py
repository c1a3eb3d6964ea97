"""Why an ask waited, told from its recording, is what the core would have said at the time."""

import threading
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
import ranges
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from moves import Move, scripts
from playing import Player, settings_of
from recordings import (
    Tape,
    ask,
    in_service,
    node,
    records,
    register,
    release,
    remove,
    rewrite,
    simulate,
    submit,
)  # fmt: skip

from yunikorn_actors import SchedulerCore, si
from yunikorn_actors.drivers.simulator.choosers import Channel
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.base import Message
from yunikorn_actors.messages.scheduling import RunCycle
from yunikorn_actors.planning.reasons import Cause, Why
from yunikorn_actors.planning.why.explain import explain
from yunikorn_actors.runtime.scheduler_core import CoreDriver
from yunikorn_actors.trace.causes import PREEMPTED, Answer, Period, Waits, named, why, why_of
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.text.tables import wait_lines
from yunikorn_actors.values.durations import SECOND

USUAL = 8
EXPECTED = {Cause.NO_NODE, Cause.CLUSTER_FULL, Cause.QUEUE_LIMIT, Cause.PLACED}


class Said(NamedTuple):
    """What the core said itself, and after which record."""

    record: int
    partition: str
    why: Why


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.trace"


def everybody(application_id: str, key: str) -> bool:  # noqa: ARG001
    return True


def answered(path: Path, key: str, application_id: str = "") -> Answer:
    with TraceReader(path) as trace:
        return why(trace, named({f"{application_id}/{key}" if application_id else key}))


def waited(path: Path, key: str) -> Waits:
    (waits,) = answered(path, key).waits
    return waits


def true_at(waits: Waits, record: int) -> Period | None:
    """Why it waits then, or where it was placed; what it is preempted for is said beside that."""
    periods = [period for period in waits.periods if period.cause != PREEMPTED]
    number = bisect_right([period.begin.record for period in periods], record)
    return periods[number - 1] if number else None


def asked_live(player: Player, record: int) -> Iterator[Said]:
    """Ask the planners themselves: a question to the core would be a message more."""
    for partition in player.context.partitions.values():
        planner = player.planner(partition)
        for app in planner.state.applications.values():
            for key in app.asks:
                said = explain(planner, app.id, key, player.simulator.now_ns)
                assert said is not None
                yield Said(record, partition.name, said)


def disagreements(said: list[Said], answer: Answer) -> list[tuple[Said, Period | None]]:
    asks = {(it.partition, it.application_id, it.key): it for it in answer.waits}
    return [
        (it, told)
        for it in said
        if not agrees(
            it.why,
            told := true_at(asks[it.partition, it.why.application_id, it.why.key], it.record),
        )
    ]


def agrees(live: Why, told: Period | None) -> bool:
    """Where it was placed is said in other words."""
    if told is None or told.cause != live.decisive.cause:
        return False
    return not live.waits or told.text == live.decisive.text


@ranges.examples(USUAL, 300)
def test_it_is_what_the_core_says_itself(path: Path, examples: int) -> None:
    seen: Counter[Cause] = Counter()

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @seed(3)
    @given(scripts(20), st.sampled_from(TOPOLOGIES), st.integers(0, 2**32 - 1))
    def play(script: list[Move], topology: TopologyName, number: int) -> None:
        tape = Tape(path, topology, number, settings=msgspec.to_builtins(settings_of(number)))
        player = Player(topology, number, settles=True, checkers=(tape,))
        said: list[Said] = []
        for move in script:
            player.play(move)
            said += asked_live(player, tape.messages + 1)
        tape.end(player.simulator)
        with TraceReader(path) as trace:
            answer = why(trace, everybody)
        assert answer.difference is None
        assert [] == disagreements(said, answer)
        seen.update(it.why.decisive.cause for it in said)

    play()
    missing = sorted(EXPECTED - seen.keys())
    assert [] == missing, f"vacuous: never seen: {missing}"


def settle(core: SchedulerCore) -> None:
    deadline = time.monotonic() + 20
    while not core.is_settled():
        assert time.monotonic() < deadline, "the core did not come to rest"
        threading.Event().wait(0.005)


@pytest.mark.parametrize("driver", ["threads", "direct"])
@pytest.mark.parametrize(
    ("topology", "schedulers"), [("proposing", 1), ("proposing", 2), ("fused", 1)]
)
def test_of_a_run_on_threads(
    path: Path, topology: TopologyName, schedulers: int, driver: CoreDriver
) -> None:
    said: list[Why] = []
    with SchedulerCore(topology=topology, schedulers=schedulers, driver=driver, trace=path) as core:
        register(core)
        node(core, "n1", si.ActionFromRM.CREATE, 4)
        submit(core, "app-1")
        for change in (
            lambda: ask(core, "app-1", "a", vcore=3),
            lambda: ask(core, "app-1", "b", vcore=2),
            lambda: node(core, "n2", si.ActionFromRM.CREATE, 1),
        ):
            change()
            settle(core)
            said.append(core.explain("app-1", "b" if said else "a"))
        release(core, "app-1", "a")
        settle(core)
    waits = waited(path, "app-1/b")
    shown = answered(path, "b").grouped()
    assert shown.has_times
    first, second, *_, last = shown.waits[0].periods
    assert [it.cause for it in (first, second, last)] == ["CLUSTER_FULL", "NO_NODE", "PLACED"]
    assert [it.text for it in (first, second)] == [it.decisive.text for it in said[1:]]
    assert first.held_by == ("app-1 vcore 3m",)
    assert (last.text, last.end) == ("placed on n1", None)
    assert waits.spent() == shown.waits[0].spent()
    assert waits.spent().at_ns == last.begin.at_ns - said[1].since_ns > 0


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_an_ask_that_came_and_went_at_once_is_told_of(path: Path, topology: TopologyName) -> None:
    in_service(path, topology)
    with TraceReader(path) as trace:
        answer = why(trace, everybody)
    assert [it.key for it in answer.waits if not it.periods] == []
    assert {it.periods[-1].cause for it in answer.waits} <= {"PLACED", "WITHDRAWN"}


def test_what_the_planner_never_learned_of_is_said_to_be_so(path: Path) -> None:
    recorded = records(simulate(path))
    place = next(n for n, it in enumerate(recorded) if it.get("type") == "RMUpdateAllocation")
    rewrite(path, recorded[: place + 1])
    key = recorded[place]["payload"]["asks"][0]["spec"]["key"]
    lines = list(wait_lines(answered(path, key)))
    assert lines[-1] == "the recording ends before its planner learned of it"


# -- what ended it


def test_where_it_was_placed_is_the_last_line(path: Path) -> None:
    simulate(path)
    *_, last = waited(path, "a").periods
    assert (last.cause, last.text, last.waits, last.end) == ("PLACED", "placed on n1", False, None)


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize(
    ("change", "cause", "text"),
    [
        ("release", "WITHDRAWN", "it was taken back"),
        ("remove", "WITHDRAWN", "its resource manager took it back"),
        ("register", "PARTITION_CLOSED", "its partition was closed, with all that was in it"),
    ],
)
def test_what_ended_it_is_told(
    path: Path, topology: TopologyName, change: str, cause: str, text: str
) -> None:
    tape = Tape(path, topology, 0)
    player = Player(topology, 0, checkers=(tape,))
    core = player.simulator
    register(core)
    submit(core, "app-1")
    ask(core, "app-1", "a")
    core.settle()
    {
        "release": lambda: release(core, "app-1", "a"),
        "remove": lambda: remove(core, "app-1"),
        "register": lambda: register(core),
    }[change]()
    core.settle()
    tape.end(core)
    *_, waiting, last = waited(path, "a").periods
    assert (waiting.cause, waiting.text) == ("NO_NODE", "there is no node")
    assert (last.cause, last.text) == (cause, text)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_an_ask_that_comes_again_is_told_of_again(path: Path, topology: TopologyName) -> None:
    """Also where it is placed in the step in which it comes, so that it was never seen to wait."""
    tape = Tape(path, topology, 0)
    player = Player(topology, 0, checkers=(tape,))
    core = player.simulator
    register(core)
    submit(core, "app-1")
    ask(core, "app-1", "a", vcore=-1)
    core.settle()
    for name in ("n1", "n2"):
        node(core, name, si.ActionFromRM.CREATE, 4)
        ask(core, "app-1", "a", vcore=3)
        core.settle()
        release(core, "app-1", "a")
        node(core, name, si.ActionFromRM.DECOMISSION)
        core.settle()
    tape.end(core)
    refused, *told = (it for it in waited(path, "a").periods if not it.waits)
    assert refused.cause == "REJECTED"
    assert [it.text for it in told if it.cause == "PLACED"] == ["placed on n1", "placed on n2"]


@pytest.mark.parametrize("topology", ranges.first(TOPOLOGIES, 1))
def test_it_ends_where_no_more_can_come_of_it(path: Path, topology: TopologyName) -> None:
    in_service(path, topology)
    with TraceReader(path) as trace:
        whole = why(trace, everybody)
    some = whole.waits[::15]
    for waits in some:
        (found,) = why_of(path, {f"{waits.application_id}/{waits.key}"}).waits
        assert found == waits
    assert any(not it.periods[-1].waits for it in some), "vacuous: all wait to the end"


# -- as people read it


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_the_time_before_the_first_plan_counts(path: Path, topology: TopologyName) -> None:
    """The planner is slow to look at it, and places it then."""
    tape = Tape(path, topology, 0)
    core = Player(topology, 0, checkers=(tape,)).simulator
    register(core)
    node(core, "n1", si.ActionFromRM.CREATE, 8)
    submit(core, "app-1")
    core.settle()
    ask(core, "app-1", "a")
    came_ns = core.now_ns
    slow = held(core, RunCycle)
    core.now_ns += 5 * SECOND
    core.deliver_from(slow)
    core.settle()
    tape.end(core)
    first, last = waited(path, "a").periods
    assert first.waits
    assert (first.begin.at_ns, last.begin.at_ns) == (came_ns, came_ns + 5 * SECOND)
    assert last.cause == "PLACED"


def held(core: Simulator, kind: type[Message]) -> Channel:
    """Deliver all but messages of this kind; return the channel on which one waits."""
    while True:
        waiting = {channel: it[0][1].message for channel, it in core.channels.items()}
        others = [channel for channel, it in waiting.items() if not isinstance(it, kind)]
        if not others:
            (channel,) = waiting
            return channel
        core.deliver_from(others[0])


def test_people_read_amounts_in_units_and_only_what_is_missing(path: Path) -> None:
    """How much is used of how much is for programs, in the words of the core."""
    tape = Tape(path, "proposing", 0)
    player = Player("proposing", 0, checkers=(tape,))
    core = player.simulator
    register(core)
    node(core, "n1", si.ActionFromRM.CREATE, 4000)
    submit(core, "app-1")
    ask(core, "app-1", "a", vcore=4000)
    core.settle()
    ask(core, "app-1", "b", vcore=1500)
    core.settle()
    tape.end(core)
    (period,) = waited(path, "b").periods
    assert period.text == (
        "the whole cluster has no room for it, vcore 1.5 short: vcore 4 of vcore 4 are used"
    )
    assert period.held_by == ("app-1 vcore 4",)
    head, *_, row = wait_lines(answered(path, "b"))
    assert head.startswith("b of app-1 (vcore 1.5) in ")
    assert "the whole cluster has no room for it, vcore 1.5 short  allocation-" in row
    assert row.endswith("  app-1 vcore 4")
