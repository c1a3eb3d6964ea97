"""A callback that never returns costs one thread and few messages, whatever calls are made."""

import threading
from collections.abc import Callable
from functools import partial

import pytest
from probes import PATIENCE_S, add_nodes, register, wait_until
from support import RM, Recorder

from yunikorn_actors import CallbackStuck, SchedulerCore, si
from yunikorn_actors.drivers.live.clock import RealClock
from yunikorn_actors.runtime import scheduler_core as system

TIMES = 20


class Stuck(Recorder):
    def __init__(self) -> None:
        super().__init__()
        self.go, self.is_inside = threading.Event(), threading.Event()

    def update_node(self, response: si.NodeResponse) -> None:
        self.is_inside.set()
        assert self.go.wait(PATIENCE_S)
        super().update_node(response)

    def get_state_dump(self) -> str:
        return "{}"


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "CALLBACK_TIMEOUT_S", 0.2)


def _stick(core: SchedulerCore) -> Stuck:
    rm = Stuck()
    register(core, rm)
    add_nodes(core, "n1")
    assert rm.is_inside.wait(PATIENCE_S)
    return rm


def test_whoever_registers_again_and_again_leaves_one_thread(
    ours: Callable[[], list[str]],
) -> None:
    with SchedulerCore() as core:
        former, present = _stick(core), _stick(core)
        wait_until(lambda: "yunikorn-actors-scheduler:[rm-1]default#1" not in ours())
        threads = ours()
        assert {"yunikorn-actors-rm:rm-1#1", "yunikorn-actors-rm:rm-1#2"} < set(threads)
        for _ in range(TIMES):
            with pytest.raises(
                CallbackStuck,
                match=r"former callback rm:rm-1#1 has not returned from CallUpdateNode.*let that",
            ):
                register(core, Recorder())
        assert threads == ours()
        # The refused ones have changed nothing: the present one is still heard.
        add_nodes(core, "n2")
        former.go.set()
        present.go.set()
        wait_until(lambda: len(present.told("node")) == 2)
        wait_until(lambda: "yunikorn-actors-rm:rm-1#1" not in ours())
        register(core, rm := Recorder())
        add_nodes(core, "n3")
        wait_until(lambda: rm.told("node"))


@pytest.mark.parametrize("end", ["resource_manager_lost", "unregister_resource_manager"])
def test_whoever_was_lost_or_left_comes_back_when_its_callback_has_returned(
    end: str, ours: Callable[[], list[str]]
) -> None:
    with SchedulerCore() as core:
        former = _stick(core)
        getattr(core, end)(RM)
        wait_until(lambda: not any(it.startswith("rm:") for it in core._actors.by_address))
        with pytest.raises(CallbackStuck):
            register(core, Recorder())
        register(core, Recorder(), "rm-2")
        former.go.set()
        wait_until(lambda: "yunikorn-actors-rm:rm-1#1" not in ours())
        register(core, Recorder())


def test_a_call_that_is_about_to_return_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "CALLBACK_TIMEOUT_S", PATIENCE_S)
    with SchedulerCore() as core:
        former, present = _stick(core), _stick(core)
        registering = threading.Thread(target=partial(register, core, Recorder()))
        registering.start()
        registering.join(0.05)
        assert registering.is_alive()
        former.go.set()
        registering.join(PATIENCE_S)
        assert not registering.is_alive()
        present.go.set()


def test_whoever_asks_for_its_state_leaves_one_message() -> None:
    with SchedulerCore(clock=RealClock(20)) as core:
        rm = _stick(core)
        (shell,) = (it for it in core._actors._known if it.address.startswith("rm:"))
        for _ in range(TIMES):
            assert "Error" in core.state_dump()["rm_diagnostics"][RM]
        assert shell.received - shell.handled <= 3
        rm.go.set()
        wait_until(lambda: core.state_dump()["rm_diagnostics"] == {RM: {}})
