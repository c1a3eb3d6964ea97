"""`trace what-if`: the same requests under another configuration, and under the same one."""

import json
from pathlib import Path
from typing import Any

import pytest
from probes import wait_until
from recordings import Tape, records, rewrite
from support import RM

from yunikorn_actors import SchedulerCore, si
from yunikorn_actors.cli import main
from yunikorn_actors.config import parse_config
from yunikorn_actors.drivers.live.clock import StandingClock
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.lab.swarm.drawn import drawn
from yunikorn_actors.lab.swarm.world_parts import Wanted
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TOPOLOGIES, Topology, TopologyName
from yunikorn_actors.scenario.performer import Stage
from yunikorn_actors.trace.other_configuration import (
    NO_END,
    WhatIf,
    _Recorded,
    _RecordedRun,
    what_if,
)
from yunikorn_actors.trace.read import TraceError, TraceReader
from yunikorn_actors.values.durations import SECOND

CONFIG = """
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: a
      resources: {max: {vcore: %s}}
    - name: b
"""
both = pytest.mark.parametrize("topology", TOPOLOGIES)


def asked(path: Path, config: str) -> WhatIf:
    with TraceReader(path) as trace:
        return what_if(trace, parse_config(config))


def changes(found: WhatIf) -> list[tuple[str, str, float | None, float | None]]:
    return [(it.key, it.what, it.without_s, it.with_s) for it in found.answer.differences]


# -- a recording in virtual time


class Confirming(si.ResourceManagerCallback):
    """Gives back what is asked back, some seconds later."""

    def __init__(self) -> None:
        self.asked_back: list[si.AllocationRelease] = []

    def update_allocation(self, response: si.AllocationResponse) -> None:
        own = si.TerminationType.STOPPED_BY_RM
        self.asked_back += [it for it in response.released if it.termination_type is not own]


class Day:
    """A simulated core whose run is recorded, with two nodes of four cpus."""

    def __init__(self, path: Path, topology: TopologyName, config: str = CONFIG % 4) -> None:
        self.tape = Tape(path, topology, 0)
        built = Topology(topology, settings=Settings(), instance="t")
        self.core = Simulator(built, checkers=(self.tape,))
        self.callback = Confirming()
        request = si.RegisterResourceManagerRequest(rm_id=RM, config=config)
        self.core.register_resource_manager(request, self.callback)
        for name in ("n1", "n2"):
            room = si.Resource.of({"vcore": 4_000})
            action = si.ActionFromRM.CREATE
            info = si.NodeInfo(node_id=name, action=action, schedulable_resource=room)
            self.core.update_node(si.NodeRequest(rm_id=RM, nodes=(info,)))

    def app(self, name: str, queue: str = "root.a", gang: int = 0) -> None:
        new = si.AddApplicationRequest(
            application_id=name, queue_name=queue, ugi=si.UserGroupInformation(user="ann"),
            placeholder_ask=si.Resource.of({"vcore": gang}) if gang else None,
        )  # fmt: skip
        self.core.update_application(si.ApplicationRequest(rm_id=RM, new=(new,)))

    def ask(self, app: str, *keys: str, vcore: int = 2_000, **fields: Any) -> None:
        asks = tuple(
            si.AllocationAsk(
                application_id=app, allocation_key=key,
                resource_ask=si.Resource.of({"vcore": vcore}), **fields,
            )
            for key in keys
        )  # fmt: skip
        self.core.update_allocation(si.AllocationRequest(rm_id=RM, asks=asks))
        self.core.settle()

    def release(self, *released: si.AllocationRelease) -> None:
        releases = si.AllocationReleasesRequest(allocations_to_release=released)
        self.core.update_allocation(si.AllocationRequest(rm_id=RM, releases=releases))
        self.core.settle()

    def end(self, app: str, key: str) -> None:
        self.release(si.AllocationRelease(application_id=app, allocation_key=key))

    def remove(self, app: str) -> None:
        gone = si.RemoveApplicationRequest(application_id=app)
        self.core.update_application(si.ApplicationRequest(rm_id=RM, remove=(gone,)))
        self.core.settle()

    def confirm(self) -> None:
        asked_back, self.callback.asked_back = self.callback.asked_back, []
        assert asked_back, "vacuous: nothing was asked back"
        self.release(*asked_back)

    def wait(self, seconds: float) -> None:
        self.core.advance(round(seconds * SECOND))

    def over(self) -> None:
        self.tape.end(self.core)


@both
def test_what_starts_later_runs_as_long_as_it_did(topology: TopologyName, tmp_path: Path) -> None:
    day = Day(tmp_path / "a.trace", topology)
    day.app("app")
    day.ask("app", "1", "2", "3")
    day.wait(100)
    day.end("app", "1")
    day.wait(50)
    day.end("app", "2")
    day.wait(10)
    day.end("app", "3")
    day.wait(1)
    day.remove("app")
    day.wait(300)
    day.over()
    same = asked(tmp_path / "a.trace", CONFIG % 4)
    assert (changes(same), same.starts, same.as_recorded) == ([], 3, 3)
    # One at a time: 100, 150 and 60 seconds, and the application goes when its work is done.
    fewer = asked(tmp_path / "a.trace", CONFIG % 2)
    assert changes(fewer) == [("2", "later", 0.0, 100.0), ("3", "later", 100.0, 250.0)]
    starts = {it.key: (it.at_s, it.ends_s) for it in fewer.answer.course.placed}
    assert starts["2"] == (100.0, 250.0)
    assert starts["3"] == (250.0, 310.0)
    # Room for all: they end as long after their starts as then.
    more = asked(tmp_path / "a.trace", CONFIG % 8)
    assert changes(more) == [("3", "earlier", 100.0, 0.0)]


@both
def test_what_starts_behind_its_recorded_release_runs_as_long_as_it_did(
    topology: TopologyName, tmp_path: Path
) -> None:
    """Also where both lie within what counts as one moment: that call does not come again."""
    day = Day(tmp_path / "a.trace", topology)
    day.app("app")
    day.ask("app", "1", "2")
    day.wait(0.005)
    day.end("app", "2")
    day.wait(0.005)
    day.end("app", "1")
    day.wait(1)
    day.ask("app", "3")
    day.end("app", "3")
    day.wait(60)
    day.over()
    fewer = asked(tmp_path / "a.trace", CONFIG % 2)
    starts = {it.key: (it.at_s, it.ends_s) for it in fewer.answer.course.placed}
    assert starts["2"] == (0.01, 0.015)
    assert starts["3"] == (1.01, None), "vacuous: it did not start in its own moment"
    assert not [it for it in fewer.answer.assumptions if "moment" in it]


@both
def test_what_was_released_in_the_moment_of_its_start_is_named(
    topology: TopologyName, tmp_path: Path
) -> None:
    day = Day(tmp_path / "a.trace", topology)
    day.app("app")
    day.ask("app", "1", "2")
    day.wait(10)
    day.ask("app", "3")
    day.end("app", "1")
    day.end("app", "3")
    day.wait(50)
    day.end("app", "2")
    day.over()
    assert not [
        it for it in asked(tmp_path / "a.trace", CONFIG % 4).answer.assumptions if "mom" in it
    ]
    fewer = asked(tmp_path / "a.trace", CONFIG % 2)
    assert changes(fewer)[-1] == ("3", "later", 10.0, 70.0)
    assert (
        "1 allocation was released in the moment in which it started, and so ends when it starts "
        "here: a resource manager may have withdrawn it at that time instead"
    ) in fewer.answer.assumptions


@both
def test_a_gang_asks_for_its_members_when_it_stands(topology: TopologyName, tmp_path: Path) -> None:
    day = Day(tmp_path / "a.trace", topology)
    day.app("first")
    day.ask("first", "1")
    day.app("gang", gang=4_000)
    day.ask("gang", "hold-1", "hold-2", placeholder=True, task_group_name="g")
    day.wait(20)
    day.end("first", "1")
    day.wait(5)
    day.ask("gang", "work-1", "work-2", task_group_name="g")
    day.wait(3)
    day.confirm()
    day.wait(60)
    day.over()
    same = asked(tmp_path / "a.trace", CONFIG % 4)
    assert (changes(same), same.starts, same.as_recorded) == ([], 5, 5)
    assert [it.at_s for it in same.answer.course.placed if it.key.startswith("work")] == [28.0] * 2
    # Another of the gang stands in the way of the first now, so it stands at once.
    more = asked(tmp_path / "a.trace", CONFIG % 8)
    assert ("hold-1", "earlier", 20.0, 0.0) in changes(more)


@both
def test_refused_and_preempted(topology: TopologyName, tmp_path: Path) -> None:
    config = """
partitions:
- name: default
  queues:
  - name: root
    queues:
    - name: a
      submitacl: "*"
      resources: {guaranteed: {vcore: %s}}
      properties: {preemption.delay: 10s}
    - {name: b, submitacl: "%s"}
"""
    day = Day(tmp_path / "a.trace", topology, config % (4, "*"))
    day.app("low", "root.b")
    may = si.PreemptionPolicy(allow_preempt_self=True, allow_preempt_other=True)
    day.ask("low", "1", "2", "3", "4", preemption_policy=may)
    day.app("high")
    day.wait(30)
    day.ask("high", "wants", preemption_policy=may)
    day.wait(40)
    day.confirm()
    day.wait(30)
    day.over()
    same = asked(tmp_path / "a.trace", config % (4, "*"))
    assert (changes(same), same.starts, same.as_recorded) == ([], 5, 5)
    assert len(same.answer.course.preempted) == 1
    none = asked(tmp_path / "a.trace", config % (0, "*"))
    assert [(it.what, it.application) for it in none.answer.differences] == [
        ("does not start", "high"), ("spared", "low"),
    ]  # fmt: skip
    assert none.answer.differences[0].why
    closed = asked(tmp_path / "a.trace", config % (4, "nobody"))
    refused = [it for it in closed.answer.differences if it.what == "refused"]
    assert next((it.application, it.key) for it in refused) == ("low", "")
    assert ("low", "1") in [(it.application, it.key) for it in refused]


# -- the same configuration: worlds that were drawn, and a core on threads


class _Driver:
    def __init__(self, core: Simulator) -> None:
        self.core, self.settle, self.advance = core, core.settle, core.advance


def record_world(path: Path, number: int) -> None:
    """Play a drawn world in one of the topologies, and record it."""
    topology = TOPOLOGIES[number % 2]
    case = drawn(36, number, Wanted()).case.on(topology)
    built = Topology(
        topology, settings=case.scenario.settings, instance="t", schedulers=case.schedulers
    )
    fields = {it: value for it, value in built.described().items() if it != "topology"}
    tape = Tape(path, topology, 0, **fields)
    core = Simulator(built, checkers=(tape,))
    stage = Stage(case.scenario, _Driver(core), None)  # type: ignore[arg-type]
    for step in case.steps:
        stage.act(step)
        core.settle()
        core.callback_errors.clear()
    tape.end(core)


def starts_again(path: Path) -> tuple[int, list[str]]:
    """Return how many starts are recorded, and which are not so under the same configuration."""
    with TraceReader(path) as trace:
        recorded = _Recorded(trace)
        course = _RecordedRun(trace, recorded, None).go(None)
        return len(recorded.starts), [*recorded.unlike(course)]


@pytest.mark.parametrize(
    "numbers",
    [range(5, 13), pytest.param(range(13, 400), marks=pytest.mark.slow)],
    ids=["some", "many"],
)
def test_worlds_are_as_recorded_under_the_same_configuration(
    numbers: range, tmp_path: Path
) -> None:
    starts, unlike = 0, dict[int, list[str]]()
    for number in numbers:
        record_world(tmp_path / "a.trace", number)
        count, others = starts_again(tmp_path / "a.trace")
        starts += count
        if others:
            unlike[number] = others
    assert starts > 3 * len(numbers), "vacuous: hardly anything started"
    assert len(unlike) <= len(numbers) * WORLDS_UNLIKE, unlike


WORLDS_UNLIKE = 0.1
"""The share of worlds in which the order within one moment decided."""


@both
def test_a_core_on_threads_is_as_recorded(topology: TopologyName, tmp_path: Path) -> None:
    path = tmp_path / "a.trace"
    callback = Confirming()
    # However long the threads take, work runs for seconds, and starts when it is asked for.
    clock = StandingClock(SECOND)
    with SchedulerCore(topology=topology, trace=path, clock=clock) as core:

        def pass_a_second() -> None:
            wait_until(core.is_settled)
            clock.move_to(clock.now_ns() + SECOND)
            core.clock_was_moved()

        request = si.RegisterResourceManagerRequest(rm_id=RM, config=CONFIG % 4)
        core.register_resource_manager(request, callback)
        for name in ("n1", "n2"):
            room = si.Resource.of({"vcore": 4_000})
            action = si.ActionFromRM.CREATE
            info = si.NodeInfo(node_id=name, action=action, schedulable_resource=room)
            core.update_node(si.NodeRequest(rm_id=RM, nodes=(info,)))
        ugi = si.UserGroupInformation(user="ann", groups=("staff",))
        app = si.AddApplicationRequest(application_id="app", queue_name="root.a", ugi=ugi)
        core.update_application(si.ApplicationRequest(rm_id=RM, new=(app,)))
        size = si.Resource.of({"vcore": 2_000})
        for keys in (("1", "2"), ("3",), ("4",)):
            asks = tuple(
                si.AllocationAsk(application_id="app", allocation_key=it, resource_ask=size)
                for it in keys
            )
            core.update_allocation(si.AllocationRequest(rm_id=RM, asks=asks))
            pass_a_second()
        for key in ("1", "2", "3"):
            gone = si.AllocationRelease(application_id="app", allocation_key=key)
            releases = si.AllocationReleasesRequest(allocations_to_release=(gone,))
            core.update_allocation(si.AllocationRequest(rm_id=RM, releases=releases))
            pass_a_second()
    same = asked(path, CONFIG % 4)
    assert (changes(same), same.starts, same.as_recorded) == ([], 4, 4)
    more = asked(path, CONFIG % 8)
    assert [it[:2] for it in changes(more)] == [("3", "earlier"), ("4", "earlier")]


# -- the command


@pytest.fixture
def day(tmp_path: Path) -> Path:
    one = Day(tmp_path / "a.trace", "proposing")
    one.app("app")
    one.ask("app", "1", "2", "3")
    one.wait(60)
    one.over()
    return tmp_path / "a.trace"


def test_the_command(day: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = tmp_path / "new.yaml"
    new.write_text(CONFIG % 4)
    assert main(["trace", "what-if", str(day), "--config", str(new)]) == 0
    assert "nothing fares otherwise" in capsys.readouterr().out
    new.write_text(CONFIG % 8)
    assert main(["trace", "what-if", str(day), "--config", str(new)]) == 1
    out = capsys.readouterr().out
    assert "app/3: starts never, with the changes at once on n" in out
    assert "queue root.a: 1 starts" in out
    assert "2 allocations run on to the end" not in out
    assert main(["trace", "what-if", str(day), "--config", str(new), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["starts"], told["as_recorded"]) == (2, 2)
    assert [it["key"] for it in told["answer"]["differences"]] == ["3"]


def test_what_cannot_be_understood(
    day: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = tmp_path / "new.yaml"

    new.write_text("partitions: 3")
    assert main(["trace", "what-if", str(day), "--config", str(new)]) == 2
    assert "a list is expected (write a list)" in capsys.readouterr().err
    new.write_text(CONFIG % 4)
    assert main(["trace", "what-if", str(day), "--config", f"{new}.not"]) == 2
    assert "No such file or directory; name a file" in capsys.readouterr().err
    new.write_text(f"{CONFIG % 4}      properties: {{application.sort.policy: x}}\n")
    assert main(["trace", "what-if", str(day), "--config", str(new)]) == 2
    assert "'x' is no value for it" in capsys.readouterr().err
    new.write_text(CONFIG % 4)
    assert main(["trace", "what-if", str(new), "--config", str(new)]) == 2
    assert "is not the header of a trace" in capsys.readouterr().err


def test_a_recording_without_an_end(day: Path) -> None:
    """It is run again as far as it comes, and what is not known of it is named."""
    rewrite(day, records(day)[:-1])
    assert asked(day, CONFIG % 4).answer.lacks == (NO_END,)


def test_a_recording_must_be_whole(day: Path) -> None:
    gap = {"record": "gap", "messages": 3, "mailboxes": {"context": 3}}
    written = records(day)
    rewrite(day, [*written[:-1], gap, written[-1]])
    with pytest.raises(TraceError, match="3 messages are missing"):
        asked(day, CONFIG % 4)
