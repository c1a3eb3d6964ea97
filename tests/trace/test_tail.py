"""A run is followed while it is recorded, through a full file into the next one."""

import io
import threading
from pathlib import Path

import pytest
from probes import wait_until
from recordings import header

from yunikorn_actors import TraceSettings
from yunikorn_actors.messages.base import Cause, Delivery
from yunikorn_actors.messages.scheduling import RunCycle
from yunikorn_actors.recording.recorder import FileRecorder
from yunikorn_actors.trace.filters import FilterOptions
from yunikorn_actors.trace.text.show import TAIL, Look, tail


def delivery(number: int) -> Delivery:
    message = RunCycle(partition=f"p{number}" + "x" * 300, epoch=1)
    return Delivery("context", number, "rm_proxy", Cause("rm_proxy", number), "node-1", 0, message)


class Followed:
    """Follows a recording on another thread."""

    def __init__(self, path: Path, wanted: FilterOptions | None = None) -> None:
        self.out = io.StringIO()
        self.waits = threading.Semaphore(0)
        self._go_on = threading.Semaphore(0)
        arguments = (path, self.out, wanted or FilterOptions(), Look(), self._pause)
        self.thread = threading.Thread(target=tail, args=arguments, daemon=True)
        self.thread.start()

    def _pause(self) -> None:
        self.waits.release()
        self._go_on.acquire(timeout=0.05)

    def has(self, text: str) -> bool:
        return text in self.out.getvalue()


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("rotate_bytes", [0, 2_000])
def test_what_is_written_comes_out(tmp_path: Path, *, compress: bool, rotate_bytes: int) -> None:
    path = tmp_path / "run.trace"
    settings = TraceSettings(path=path, compress=compress, rotate_bytes=rotate_bytes, keep=50)
    writer = FileRecorder(settings, header())
    for number in range(1, 31):
        writer.add(delivery(number))
    wait_until(lambda: writer._waiting_bytes == 0)
    followed = Followed(path)
    wait_until(lambda: followed.has(" p30x"))
    assert TAIL == followed.out.getvalue().count("RunCycle")
    for number in range(31, 61):
        writer.add(delivery(number))
        if number % 10 == 0:
            wait_until(lambda seen=number: followed.has(f" p{seen}x"))  # type: ignore[misc]
    assert TAIL + 30 == followed.out.getvalue().count("RunCycle")
    writer.close({"states": {}})
    followed.thread.join(20)
    assert followed.out.getvalue().endswith("\ncomplete\n")
    assert len(list(tmp_path.iterdir())) > (2 if rotate_bytes and not compress else 0)


def test_only_what_is_wanted_comes_out(tmp_path: Path) -> None:
    path = tmp_path / "run.trace"
    writer = FileRecorder(TraceSettings(path=path), header())
    followed = Followed(path, FilterOptions(stimulus=("nobody",)))
    writer.add(delivery(1))
    writer.close({"states": {}})
    followed.thread.join(20)
    assert followed.out.getvalue() == "\ncomplete\n"
