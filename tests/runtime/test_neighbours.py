"""A core among the actors of others: pykka has one registry for the whole process."""

from io import StringIO

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
        wait_until(lambda: core._state == "stopped")
        with pytest.raises(CoreStopped):
            add_nodes(core, "n1")
    assert core.failure is None
    assert "was stopped from outside, so the core stops" in log.getvalue()


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
