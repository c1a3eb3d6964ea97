"""What resource managers say of their own state stands in the dump."""

import threading
from typing import Any

import pytest
from probes import PATIENCE_S, Lab, add_nodes, register, wait_until
from support import RM, Recorder

from yunikorn_actors import SchedulerCore
from yunikorn_actors.drivers.live.clock import RealClock


class Talkative(Recorder):
    def __init__(self, answer: Any) -> None:
        super().__init__()
        self._answer = answer

    def get_state_dump(self) -> str:
        if isinstance(self._answer, Exception):
            raise self._answer
        answer: str = self._answer
        return answer


SILENT = {"empty": "Resource Manager did not register callback"}
ANSWERS: dict[str, tuple[Recorder, Any]] = {
    "nothing": (Recorder(), SILENT),
    "a document": (Talkative('{"pods": [1, {"name": "a"}]}'), {"pods": [1, {"name": "a"}]}),
    "a value": (Talkative("3"), 3),
    "an exception": (
        Talkative(ValueError("no")), {"Error": "get_state_dump raised ValueError('no')"},
    ),
    "no text": (Talkative(b"{}"), {"Error": "get_state_dump returned bytes, not text"}),
}  # fmt: skip


@pytest.mark.parametrize(("rm", "expected"), ANSWERS.values(), ids=ANSWERS)
def test_it_stands_in_the_dump(lab: Lab, rm: Recorder, expected: Any) -> None:
    register(lab.core, rm)
    assert {RM: expected} == lab.core.state_dump()["rm_diagnostics"]


@pytest.mark.parametrize("text", ["", "{", "{}x", "\ud800", "[" * 100_000])
def test_what_is_no_json_is_told(lab: Lab, text: str) -> None:
    register(lab.core, Talkative(text))
    told = lab.core.state_dump()["rm_diagnostics"][RM]["Error"]
    assert told.startswith("get_state_dump returned no JSON: ")


def test_several_and_one_that_comes_again(lab: Lab) -> None:
    register(lab.core, Talkative("1"))
    register(lab.core, Talkative("2"), "rm-2")
    register(lab.core, Recorder())
    assert {RM: SILENT, "rm-2": 2} == lab.core.state_dump()["rm_diagnostics"]
    lab.core.unregister_resource_manager("rm-2")
    assert {RM: SILENT} == lab.core.state_dump()["rm_diagnostics"]


class Stuck(Talkative):
    def __init__(self) -> None:
        super().__init__("{}")
        self.go, self.is_inside = threading.Event(), threading.Event()

    def update_node(self, response: Any) -> None:
        self.is_inside.set()
        assert self.go.wait(PATIENCE_S)
        super().update_node(response)


def test_one_that_is_stuck_holds_up_the_dump_for_a_second() -> None:
    rm = Stuck()
    with SchedulerCore(clock=RealClock(20)) as core:
        register(core, rm)
        add_nodes(core, "n1")
        wait_until(rm.is_inside.is_set)
        dump = core.state_dump()
        late = {"Error": "the resource manager did not answer in time"}
        assert {RM: late} == dump["rm_diagnostics"]
        assert "n1" in dump["partitions"]["[rm-1]default"]["nodes"]
        rm.go.set()
        wait_until(lambda: core.state_dump()["rm_diagnostics"] == {RM: {}})
