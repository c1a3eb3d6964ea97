"""`POST /ws/v1/x/simulate`: a copy of the read side answers, and what was simulated happens."""

import dataclasses
import json
import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import ranges
from probes import wait_until
from served import ANN, P, Response, Served, live, node, register, serving

from tests.what_if.test_simulate import busy
from yunikorn_actors import VirtualCore
from yunikorn_actors.cli import main
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.scheduling import PartitionSnapshot
from yunikorn_actors.scenario.change_steps import parse_changes
from yunikorn_actors.service.read.read_model import ReadSide
from yunikorn_actors.service.rest import simulate_route
from yunikorn_actors.service.rest.process import ProcessPart
from yunikorn_actors.what_if import Answer, Change, Course
from yunikorn_actors.what_if.core_state import BEGUN_ANEW, CoreState, state_of
from yunikorn_actors.what_if.dumps import state_from_dump
from yunikorn_actors.what_if.followed import Snapshots
from yunikorn_actors.what_if.least_change import Wanted, least_changes
from yunikorn_actors.what_if.simulation import simulate

PATH = "/ws/v1/x/simulate"
ASK = "ask: {app: app-1, key: late, resource: {vcore: 4000}, tags: {yunikorn-actors/runtime: '60'}}"


def begin(it: Served) -> None:
    register(it)
    it.nodes(node("n1"))
    it.application("app-1", "root.prod", ANN)
    it.asks("app-1", "first", vcore=6000)


@pytest.fixture
def served() -> Iterator[Served]:
    with serving() as it:
        begin(it)
        yield it


def post(served: Served, **question: Any) -> Response:
    return served.ask(PATH, method="POST", body=json.dumps(question).encode())


def test_what_would_happen_then_happens(served: Served) -> None:
    found = post(served, steps=[f"- {ASK}"]).json
    assert not found["fits"]
    (wait,) = found["answer"]["course"]["waits"]
    assert wait["cause"] in {"NO_NODE", "CLUSTER_FULL"}
    add = "create_node: {id: n2, capacity: {vcore: 8000, memory: 64000000000}}"
    found = post(served, steps=[f"- {add}", f"- {ASK}"]).json
    (placed,) = found["answer"]["course"]["placed"]
    assert (placed["key"], placed["node"], placed["at_s"]) == ("late", "n2", 0.0)
    assert any("app-1/late on n2 at once" in line for line in found["lines"])
    served.nodes(node("n2"))
    served.asks("app-1", "late", vcore=4000)
    assert served.core.explain("app-1", "late").placed == {"n2": 1}


@pytest.mark.slow
def test_a_read_side_in_a_process_of_its_own() -> None:
    with serving(make=lambda site, _: ProcessPart(site)) as it:  # type: ignore[arg-type]
        begin(it)
        truth = {
            name: part["revision"] for name, part in it.core.state_dump()["partitions"].items()
        }
        wait_until(lambda: truth == it.get("/ws/v1/x/mailboxes")["revisions"])
        found = post(it, steps=[f"- {ASK}"]).json
        assert found["answer"]["revisions"] == truth
        assert [wait["key"] for wait in found["answer"]["course"]["waits"]] == ["late"]


def test_the_least_change(served: Served) -> None:
    found = post(served, steps=[f"- {ASK}"], least=True).json
    assert found["fits"]
    assert {"kind": "node", "text": "add a node with vcore 4"}.items() <= (
        found["answer"]["options"][0].items()
    )


MANY = (
    b'{"steps": ["- ask: {app: a, key: k, resource: {vcore: 1}, count: %d}", '
    b'"- create_node: {id: n, capacity: {vcore: 1}, count: 60000}"]}'
)
"""A short body that asks for much, which would take minutes before it is known to be too much."""


def test_what_is_no_question_is_refused(served: Served) -> None:
    for body, why in (
        (b"{", "the body is no question"),
        (b'{"step": []}', "unknown field `step`"),
        (b'{"steps": ["- drain: n1"]}', "steps 1:1: step 1: unknown step 'drain'"),
        (MANY % 10**9, "count: 1000000000 asks and nodes in all; write 100000 at most"),
        (MANY % 60_000, "steps 2: more than 100000 asks and nodes in all: ask for fewer"),
        (b'{"until": -1}', "until: must be seconds"),
        (b'{"steps": ["- drain_node: nope"]}', "steps 1:1: step 1: drain_node: node nope: it is"),
        (b'{"least": true}', "name an ask that is to start"),
        (b'{"least": true, "until": 5}', "until: a search has an end of its own: give within"),
        (b'{"within": 5}', "within: a simulation has no such end: give until, or least"),
        (b'{"waiting": [["app-1", "x"]]}', "waiting: it is what a search lets start"),
        (b'{"least": true, "waiting": [["app-1", "first"]]}', "ask app-1/first: it neither waits"),
    ):
        refused = served.ask(PATH, method="POST", body=body)
        assert (refused.status, why in refused.json["message"]) == (400, True), refused


def test_a_copy_that_takes_too_long_ends(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate_route, "SECONDS_MAX", 1)
    monkeypatch.setattr(simulate_route, "simulate", _endless)
    refused = post(served, steps=[f"- {ASK}"])
    assert (refused.status, "did not end within 1 s" in refused.json["message"]) == (503, True)
    monkeypatch.undo()
    assert post(served, steps=[f"- {ASK}"]).status == 200


def _endless(*_: Any, **__: Any) -> None:
    while True:
        pass


def _side(core: VirtualCore) -> ReadSide:
    simulator = core._simulator
    side = ReadSide(
        settings=simulator.topology.settings, instance="t", start_ns=core.now_ns,
        topology=simulator.topology.name,
    )  # fmt: skip
    taken = Snapshots.of(simulator)
    for described in taken.managers.values():
        side.handle(described, core.now_ns)
    for name, (epoch, image) in taken.images.items():
        snapshot = PartitionSnapshot(partition=name, epoch=epoch, image=image)
        side.handle(snapshot, core.now_ns)
    return side


@pytest.mark.parametrize("topology", ranges.first(TOPOLOGIES, 1))
def test_the_trials_of_a_search_begin_with_one_core(
    topology: TopologyName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is a process of its own: what one of them does is not there for the next."""
    # However busy the computer is, it is no matter of time.
    monkeypatch.setattr(simulate_route, "SEARCH_S", 3_600)
    core = busy(topology)
    ask = "- ask: {app: app, key: '3', resource: {vcore: 2000}}"
    found = simulate_route._found(_side(core), simulate_route.Question(steps=[ask], least=True))
    wanted = Wanted(tuple(parse_changes(ask, "x")))
    known = least_changes(state_of(core._simulator), wanted)
    assert found["answer"] == dataclasses.replace(known, lacks=(BEGUN_ANEW,))
    assert f"  {BEGUN_ANEW}" in found["lines"]
    assert found["answer"].trials > len(found["answer"].options) > 1


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_copy_decides_as_its_core_does(
    topology: TopologyName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The replica itself is taken over; it has to be planned on in the same way."""
    core = busy(topology)
    begun: list[str] = []

    def simulated(state: CoreState, *changes: Change, **more: Any) -> Answer:
        begun.append(state.topology)
        return simulate(state, *changes, **more)

    monkeypatch.setattr(simulate_route, "simulate", simulated)
    ask = (
        "- ask: {app: app, key: '3', resource: {vcore: 2000}, tags: {yunikorn-actors/runtime: '9'}}"
    )
    side = _side(core)
    found = simulate_route._found(side, simulate_route.Question(steps=[ask]))["answer"]
    assert begun == [topology]
    expected = core.simulate(*parse_changes(ask, "x"))
    assert _told(found.course) == _told(expected.course)
    assert _told(found.without) == _told(expected.without)
    assert found.differences == expected.differences


def _told(course: Course | None) -> list[Any]:
    assert course is not None
    placed = [dataclasses.replace(it, uuid="") for it in course.placed]
    return [placed, course.ended, course.waits, course.until_s]


def test_the_command_asks_a_service(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--server", served.part.address, "-c", ASK]) == 1
    assert "app-1/late from the beginning to the end" in capsys.readouterr().out
    assert main(["simulate", "--server", served.part.address, "--least", "-c", ASK]) == 0
    assert "node: add a node with vcore 4" in capsys.readouterr().out
    # As with --dump: a question that is refused has no answer, not even no.
    assert main(["simulate", "--server", served.part.address, "-c", "drain_node: nope"]) == 2
    assert "steps 1:1: step 1: drain_node: node nope: it is" in capsys.readouterr().err


def test_a_full_state_dump_of_a_service_is_a_state(tmp_path: Path) -> None:
    with serving() as it:
        live(it)
        dump = it.get("/debug/fullstatedump")
        state = state_from_dump(dump)
        assert [line for line in state.lacks if "does not take" in line] == []
        course = simulate(state, until=0).course
        (image,) = state.images.values()
        nodes = {node["node_id"]: len(node["allocations"]) for node in image["nodes"]}
        shown = {item["nodeID"]: len(item["allocations"]) for item in it.get(f"{P}/nodes")}
        assert shown == nodes
        asked = {
            (app["applicationID"], request["allocationKey"])
            for app in it.get(f"{P}/applications/active")
            for request in app.get("requests", ())
        }
        started = {(it.application, it.key) for it in course.placed}
        assert asked == started | {(it.application, it.key) for it in course.waits}
        file = tmp_path / "dump.json"
        file.write_text(json.dumps(dump))
        assert main(["simulate", "--dump", str(file), "--until", "0"]) in {0, 1}


@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="there is no such policy here")
def test_long_work_of_a_copy_gets_only_what_nobody_else_wants() -> None:
    def policy_after(seconds: float) -> bytes:
        end_s = time.process_time() + seconds
        # It works no longer than it has to: once it is idle a busy computer gives it nothing.
        while time.process_time() < end_s and os.sched_getscheduler(0) == os.SCHED_OTHER:
            pass
        return b"%d" % os.sched_getscheduler(0)

    for seconds, policy in ((0.0, os.SCHED_OTHER), (8 * simulate_route._SHORT_S, os.SCHED_IDLE)):
        process, reads = simulate_route._forked(partial(policy_after, seconds), 600)
        with os.fdopen(reads, "rb") as pipe:
            assert int(pipe.read()) == policy
        assert os.waitpid(process, 0)[1] == 0
