"""A core among the actors of others: pykka has one registry for the whole process."""

import threading
from io import StringIO
from typing import Any

import pykka
import pytest
from probes import PATIENCE_S, add_nodes, register, wait_until
from support import Recorder

from yunikorn_actors import CoreStopped, SchedulerCore, si


class Raising(Recorder):
    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self._error = error

    def update_node(self, response: si.NodeResponse) -> None:
        super().update_node(response)
        raise self._error


def test_a_stop_of_all_actors_of_the_process_stops_the_core(log: StringIO) -> None:
    with SchedulerCore() as core:
        register(core, Recorder())
        pykka.ActorRegistry.stop_all(timeout=PATIENCE_S)
        wait_until(lambda: core.state == "stopped")
        with pytest.raises(CoreStopped):
            add_nodes(core, "n1")
    assert core.failure is None
    assert "was stopped from outside, so the core stops" in log.getvalue()


def test_an_actor_may_be_stopped_from_outside_before_it_has_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = pykka.ActorRegistry.register

    def register_and_stop(ref: pykka.ActorRef[Any]) -> None:
        known(ref)
        ref.stop(block=False)

    for _ in range(20):
        core = SchedulerCore()
        with monkeypatch.context() as patched:
            patched.setattr(pykka.ActorRegistry, "register", register_and_stop)
            core.start()
        assert core._stopped.wait(PATIENCE_S)
        core.stop(PATIENCE_S)
        assert core.failure is None


def test_a_thread_that_cannot_be_had_leaves_no_actor(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be in the registry for ever, and whoever stops all actors would wait for it."""
    start = threading.Thread.start

    def refused(thread: threading.Thread) -> None:
        if thread.name.startswith("yunikorn-actors-rm:"):
            raise RuntimeError("can't start new thread")
        start(thread)

    with SchedulerCore() as core:
        before = pykka.ActorRegistry.get_all()
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refused)
            with pytest.raises(RuntimeError, match="can't start new thread"):
                register(core, Recorder())
        assert before == pykka.ActorRegistry.get_all()
        register(core, Recorder())


def test_a_broadcast_to_all_actors_of_the_process_is_not_for_the_core() -> None:
    with SchedulerCore() as core:
        for message in ("hello", None, {"some": "thing"}):
            pykka.ActorRegistry.broadcast(message)
        core.state_dump()
        wait_until(core.is_settled)


@pytest.mark.parametrize("error", [SystemExit("mine"), KeyboardInterrupt(), GeneratorExit()])
def test_a_callback_that_wants_to_exit_takes_nobody_with_it(error: BaseException) -> None:
    """Pykka would stop every actor of the process for it."""
    foreign = pykka.ThreadingActor.start()
    try:
        with SchedulerCore() as core:
            rm = Raising(error)
            register(core, rm)
            for name in ("n1", "n2"):
                add_nodes(core, name)
            wait_until(lambda: len(rm.told("node")) == 2)
            core.state_dump()
        assert foreign.is_alive()
    finally:
        foreign.stop()


def test_foreign_actors_are_left_alone() -> None:
    foreign = pykka.ThreadingActor.start()
    try:
        with SchedulerCore() as core:
            core.state_dump()
        assert foreign.is_alive()
        assert [foreign] == pykka.ActorRegistry.get_all()
    finally:
        foreign.stop()
