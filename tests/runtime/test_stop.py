"""Stopping: from anywhere, any number of times, with every thread joined (R-140, R-141)."""

import signal
import threading
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pykka
import pytest
from probes import (
    PATIENCE_S,
    Do,
    Hold,
    Notebook,
    Probe,
    add_nodes,
    probed_core,
    register,
    wait_until,
)
from support import Recorder

from yunikorn_actors import CoreError, CoreStopped, NoReply, SchedulerCore, si
from yunikorn_actors.drivers.live.actors import Actor
from yunikorn_actors.machines.machine import (
    CancelTimer,
    Machine,
    Send,
    SetTimer,
    StartMachine,
    StopMachine,
)
from yunikorn_actors.messages.base import EVENT_PUBLISHER, Cause, Envelope
from yunikorn_actors.runtime import scheduler_core as system


class Doing(Recorder):
    """Does something inside the first callback."""

    def __init__(self, do: Callable[[], Any]) -> None:
        super().__init__()
        self._do = do
        self.done = threading.Event()
        self.raised: list[BaseException] = []

    def update_node(self, response: si.NodeResponse) -> None:
        super().update_node(response)
        if not self.done.is_set():
            try:
                self._do()
            except Exception as error:  # noqa: BLE001 - the test looks at all of them
                self.raised.append(error)
            self.done.set()


class Sleeper(Recorder):
    """Stays inside a callback until let go, and not longer than a test has patience."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = threading.Event()
        self.let_go = threading.Event()

    def update_node(self, response: si.NodeResponse) -> None:
        self.inside.set()
        self.let_go.wait(PATIENCE_S)
        super().update_node(response)


def test_stop_joins_every_thread_and_empties_the_registry(ours: Callable[[], list[str]]) -> None:
    core = SchedulerCore().start()
    register(core, Recorder())
    wait_until(core.is_settled)
    # Those of the dispatcher, of the callback, and of the timers.
    assert 3 == len(ours())
    assert 5 == len(pykka.ActorRegistry.get_by_class(Actor))
    core.stop(PATIENCE_S)
    assert [] == ours()
    assert [] == pykka.ActorRegistry.get_by_class(Actor)


def test_stop_may_be_called_again_and_before_start() -> None:
    core = SchedulerCore()
    core.stop(PATIENCE_S)
    assert core._stopped.is_set(), "or the next one would wait for nobody"
    core.stop(PATIENCE_S)
    with pytest.raises(CoreStopped, match="a core is started once; this one is stopped"):
        core.start()
    other = SchedulerCore().start()
    with pytest.raises(CoreStopped, match="a core is started once; this one is running"):
        other.start()
    other.state_dump()
    for _ in range(3):
        other.stop(PATIENCE_S)


def test_stop_right_after_start(ours: Callable[[], list[str]]) -> None:
    """A timer thread that has not begun to wait must not miss that it is to stop."""
    for _ in range(50):
        core = SchedulerCore().start()
        core.stop(PATIENCE_S)
        assert [] == ours()


def test_stop_from_several_threads_at_once(ours: Callable[[], list[str]]) -> None:
    for _ in range(10):
        core = SchedulerCore().start()
        register(core, Recorder())
        left: list[int] = []
        barrier = threading.Barrier(5)

        def stop(
            core: SchedulerCore = core,
            left: list[int] = left,
            barrier: threading.Barrier = barrier,
        ) -> None:
            barrier.wait(PATIENCE_S)
            core.stop(PATIENCE_S)
            left.append(len(ours()))

        stoppers = [threading.Thread(target=stop) for _ in range(5)]
        for thread in stoppers:
            thread.start()
        for thread in stoppers:
            thread.join(PATIENCE_S)
        assert [0] * 5 == left


def test_stop_from_a_callback_is_scheduled(ours: Callable[[], list[str]]) -> None:
    core = SchedulerCore().start()
    rm = Doing(core.stop)
    register(core, rm)
    add_nodes(core, "n1")
    assert rm.done.wait(PATIENCE_S)
    core.stop(PATIENCE_S)
    assert [] == rm.raised
    assert [] == ours()
    with pytest.raises(CoreStopped):
        add_nodes(core, "n2")


class Lingering(SchedulerCore):
    """Everything has stopped, and the thread that did it takes a little longer."""

    def _stop(self, timeout: float) -> None:
        super()._stop(timeout)
        threading.Event().wait(0.2)


def test_the_thread_that_stops_for_a_callback_is_joined_as_well(
    ours: Callable[[], list[str]],
) -> None:
    core = Lingering().start()
    rm = Doing(core.stop)
    register(core, rm)
    add_nodes(core, "n1")
    assert rm.done.wait(PATIENCE_S)
    core.stop(PATIENCE_S)
    assert [] == ours()


def test_stop_from_two_callbacks_and_from_outside(ours: Callable[[], list[str]]) -> None:
    core = SchedulerCore().start()
    barrier = threading.Barrier(3)

    def stop() -> None:
        barrier.wait(PATIENCE_S)
        core.stop()

    rms = {"rm-1": Doing(stop), "rm-2": Doing(stop)}
    for rm_id, rm in rms.items():
        register(core, rm, rm_id)
        add_nodes(core, "n1", rm_id=rm_id)
    stop()
    core.stop(PATIENCE_S)
    assert [] == ours()
    assert [[], []] == [rm.raised for rm in rms.values()]


def test_a_callback_that_does_not_return_is_named_and_left(
    log: StringIO, ours: Callable[[], list[str]]
) -> None:
    core = SchedulerCore().start()
    sleeper, other = Sleeper(), Recorder()
    register(core, sleeper, "rm-1")
    register(core, other, "rm-2")
    add_nodes(core, "n1", rm_id="rm-1")
    assert sleeper.inside.wait(PATIENCE_S)
    for number in range(100):
        add_nodes(core, f"n{number}", rm_id="rm-2")
    wait_until(lambda: len(other.told("node")) == 100)
    core.stop(timeout=0.2)
    assert ["yunikorn-actors-rm:rm-1#1"] == ours()
    assert [] == pykka.ActorRegistry.get_by_class(Actor)
    warnings = [line for line in log.getvalue().splitlines() if " WARNING " in line]
    assert 1 == len(warnings)
    assert "rm:rm-1#1 has not returned from a call after 0.2 s and is left behind" in warnings[0]
    sleeper.let_go.set()


def test_a_callback_that_was_left_hears_nothing_more_when_it_returns(
    ours: Callable[[], list[str]],
) -> None:
    core = SchedulerCore().start()
    sleeper = Sleeper()
    register(core, sleeper)
    add_nodes(core, "n1")
    assert sleeper.inside.wait(PATIENCE_S)
    add_nodes(core, "n2")
    core.state_dump()
    core.stop(timeout=0)
    sleeper.let_go.set()
    wait_until(lambda: not ours())
    assert [("n1", "accepted")] == sleeper.told("node")


def asked_for_events(core: SchedulerCore, raised: list[BaseException]) -> threading.Thread:
    """Return a thread that waits for an answer which never comes."""

    def ask() -> None:
        try:
            core.events()
        except CoreError as error:
            raised.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    wait_until(lambda: core._replies._slots)
    return asking


def test_a_caller_that_waits_is_let_go_by_a_stop() -> None:
    core = probed_core(Notebook(), replaced=(EVENT_PUBLISHER,)).start()
    raised: list[BaseException] = []
    asking = asked_for_events(core, raised)
    core.stop(PATIENCE_S)
    asking.join(PATIENCE_S)
    assert [CoreStopped] == [type(error) for error in raised]


def test_a_late_answer_hurts_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "REPLY_TIMEOUT_S", 0.01)
    notebook = Notebook()
    with probed_core(notebook, replaced=(EVENT_PUBLISHER,)) as core:
        with pytest.raises(NoReply, match="no answer to events-1 within"):
            core.events()
        late = Send(to="reply:1", message=Do(label="late"))
        core._post("a", Do(label="sent", effects=(late, Send(to="b", message=late.message))), "")
        core._go_on()
        wait_until(lambda: notebook.labels("b"))


def test_a_signal_may_stop_the_core_whatever_the_main_thread_is_doing(
    ours: Callable[[], list[str]],
) -> None:
    """Also when it holds the locks of the core: that is where a signal may reach it."""
    core = SchedulerCore().start()
    former = signal.signal(signal.SIGUSR1, lambda *_: core.stop(PATIENCE_S))
    with core._lock, core._actors._lock, core._replies._lock:
        signal.raise_signal(signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, former)
    assert [] == ours()


def test_messages_under_way_do_not_fail_the_core_that_stops() -> None:
    """Actors end one after the other, so some find that the others have ended already."""
    for _ in range(30):
        with SchedulerCore() as core:
            register(core, Recorder())
            for number in range(30):
                add_nodes(core, f"n{number}")
        assert core.failure is None


def test_stop_drops_what_waits_and_does_not_work_it_off(ours: Callable[[], list[str]]) -> None:
    notebook = Notebook()
    core = probed_core(notebook).start()
    core._post("a", Hold(), "")
    core._go_on()
    assert notebook.held.wait(PATIENCE_S)
    for _ in range(100):
        core._post("a", Do(label="late"), "")
        core._go_on()
    core.stop(timeout=0)
    notebook.let_go.set()
    wait_until(lambda: not ours())
    assert [] == notebook.labels("a")


def test_what_a_machine_wants_after_the_stop_is_not_done(ours: Callable[[], list[str]]) -> None:
    """It was inside a handler: no actor starts, no timer fires, nothing fails."""
    notebook = Notebook()
    core = probed_core(notebook).start()
    actor = core._actors.by_address["a"]
    core.stop(PATIENCE_S)
    actor.at = (Cause("a", 1), "")
    for effect in (
        SetTimer(name="bell", due_ns=0, message=Do(label="lost")),
        CancelTimer(name="bell"),
        StartMachine(address="d", kind="probe", arguments={"address": "d"}),
        StopMachine(address="b"),
        StopMachine(address="b"),
    ):
        core.inside.carry_out(actor, effect)
    for address in ("b", "reply:1"):
        message = Do(label="lost")
        assert not core._actors.tell(address, Envelope("a", message, *actor.at))
        core.inside.send_elsewhere(actor, address, message)
    assert [] == notebook.notes
    assert [] == ours()


def test_a_message_to_an_actor_that_has_just_ended_is_dropped_and_not_counted() -> None:
    """It was found alive and had ended by the time of the put: that leaves no open account."""
    core = probed_core(Notebook()).start()
    actor = core._actors.by_address["a"]
    actor.end()
    assert not core._actors.tell("a", Envelope("b", Do(label="lost"), Cause("b", 1), ""))
    assert core.is_settled()
    core.stop(PATIENCE_S)


class Failing(dict[str, Machine]):
    """One machine can be had, and no more."""

    def items(self) -> Any:
        yield "a", Probe("a", Notebook())
        raise MemoryError("no more machines")


def test_a_start_that_fails_leaves_nothing_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ours: Callable[[], list[str]]
) -> None:
    core = SchedulerCore(trace=tmp_path / "run.trace")
    monkeypatch.setattr(core.topology, "first_machines", Failing)
    with pytest.raises(MemoryError, match="no more machines"):
        core.start()
    assert [] == ours()
    with pytest.raises(CoreStopped, match="make another"):
        core.start()


def test_a_callback_cannot_be_opened_in_a_core_that_stops() -> None:
    core = SchedulerCore().start()
    core._actors.silence()
    core.state = "stopped"
    with pytest.raises(CoreStopped):
        register(core, Recorder())
    core.state = "running"
    core.stop(PATIENCE_S)
