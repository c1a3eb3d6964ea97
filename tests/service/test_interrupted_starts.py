"""What is begun and not finished is ended: a start that is interrupted, a look that fails."""

import asyncio
import threading
from concurrent.futures import Future

import pytest

pytest.importorskip("grpc")
from looping import on_a_loop, until
from probes import PATIENCE_S

from yunikorn_actors import SchedulerCore
from yunikorn_actors.service.listener import Part, Site, Standing
from yunikorn_actors.service.rpc import admission
from yunikorn_actors.service.rpc.admission import Intake
from yunikorn_actors.service.rpc.grpc_server import RpcPart
from yunikorn_actors.service.service import Serving


class Interrupted(Future[str]):
    """Ctrl-C comes while the first one waits here."""

    has_come = False

    def result(self, timeout: float | None = None) -> str:
        found = super().result(timeout)
        if not self.has_come:
            self.has_come = True
            raise KeyboardInterrupt
        return found


def test_a_grpc_server_whose_start_is_interrupted_is_stopped() -> None:
    with SchedulerCore() as core:
        part = RpcPart(Site(core, "127.0.0.1:0", Standing()))
        part._started = Interrupted()
        starting = threading.Thread(target=start_interrupted, args=(part,), daemon=True)
        starting.start()
        starting.join(PATIENCE_S)
        assert not starting.is_alive(), "it waits for a server that nobody stops"
        assert not part._thread.is_alive()


def start_interrupted(part: Part) -> None:
    with pytest.raises(KeyboardInterrupt):
        part.start()


def test_a_grpc_server_that_was_not_started_can_be_stopped() -> None:
    with SchedulerCore() as core:
        RpcPart(Site(core, "127.0.0.1:0", Standing())).stop(1.0)


def test_an_error_that_ends_a_grpc_server_is_logged(log: pytest.LogCaptureFixture) -> None:
    with SchedulerCore() as core:
        part = RpcPart(Site(core, "127.0.0.1:0", Standing()))
        part.start()
        close = part._close

        async def fail(until: float) -> None:
            await close(until)
            raise RuntimeError("made up")

        part._close = fail  # type: ignore[method-assign]
        part.stop(PATIENCE_S)
        assert not part._thread.is_alive()
    assert "the gRPC server has ended by an error" in log.text


class Starting(Part):
    """A part that is interrupted in the middle of its start."""

    was_stopped = False

    def start(self) -> None:
        raise KeyboardInterrupt

    def stop(self, grace: float) -> None:  # noqa: ARG002
        self.was_stopped = True


def test_a_part_that_is_interrupted_while_it_starts_is_stopped() -> None:
    serving = Serving(SchedulerCore(), {})
    serving.parts["it"] = part = Starting()
    with pytest.raises(KeyboardInterrupt):
        serving.start()
    assert part.was_stopped


@on_a_loop
async def test_connections_are_looked_at_again_after_a_look_that_failed() -> None:
    """Without looks nothing bounds what clients send. Descriptors may be at their limit."""
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setattr(admission, "PERIOD_S", 0.001)
    intake, looks = Intake(), list[int]()

    async def look(port: int) -> None:
        looks.append(port)
        if len(looks) == 1:
            raise OSError("too many open files")

    intake._look = look  # type: ignore[method-assign]
    watching = asyncio.create_task(intake.watch(80))
    await until(lambda: len(looks) > 1 or watching.done())
    assert not watching.done()
    watching.cancel()
    monkeypatch.undo()
