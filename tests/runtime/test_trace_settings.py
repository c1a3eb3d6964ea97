"""How a core records: how long things took, compressed, in segments, from memory, within bounds."""

import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgpack  # type: ignore[import-untyped]  # it ships no types
import msgspec
import pytest
from probes import add_nodes, register, wait_until
from support import Recorder as Hearing

from yunikorn_actors import SchedulerCore, TraceSettings, __version__, si
from yunikorn_actors.cli import main
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import Topology
from yunikorn_actors.messages.base import Cause, Delivery
from yunikorn_actors.messages.scheduling import RunCycle
from yunikorn_actors.recording import recorder
from yunikorn_actors.recording.recorder import FileRecorder
from yunikorn_actors.trace.read import TraceError, TraceReader
from yunikorn_actors.trace.replay import replay

NODES = 40
HEADER = {
    **Topology("proposing", settings=Settings(), instance="core").described(),
    "driver": "threads",
    "seed": None,
    "start_ns": 0,
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.trace"


def work(core: SchedulerCore, rm: si.ResourceManagerCallback | None = None) -> None:
    hearing = Hearing()
    register(core, rm or hearing)
    for number in range(NODES):
        add_nodes(core, f"n{number}")
    wait_until(core.is_settled)


def deliveries(path: Path) -> list[Delivery]:
    with TraceReader(path) as trace:
        return list(trace)


def verdict(path: Path) -> str:
    with TraceReader(path) as trace:
        return replay(trace).report()


def delivery(number: int, text: str = "p") -> Delivery:
    message = RunCycle(partition=text, epoch=1)
    return Delivery("context", number, "rm_proxy", Cause("rm_proxy", number), "node-1", 0, message)


# -- who wrote it, and how long things took


def test_the_header_tells_what_wrote_it_and_under_which_configuration(path: Path) -> None:
    config = "partitions: [{name: default, queues: [{name: root}]}]"
    with SchedulerCore(trace=path, config=config):
        pass
    with TraceReader(path) as trace:
        header = trace.header
    assert header.package is not None
    assert ("yunikorn-actors", __version__) == (header.package.name, header.package.version)
    assert header.python == sys.version.split()[0]
    assert len(header.config_digest) == 64


class Slow(si.ResourceManagerCallback):
    def update_node(self, response: si.NodeResponse) -> None:  # noqa: ARG002
        time.sleep(0.02)


def test_it_tells_when_messages_were_sent_and_how_long_they_took(path: Path) -> None:
    with SchedulerCore(trace=path) as core:
        work(core, Slow())
        wait_until(core.is_settled)
    with TraceReader(path) as trace:
        found = list(trace)
    assert trace.footer is not None
    told = [it for it in found if it.sent_ns is not None]
    assert all(it.sent_ns is not None and it.sent_ns <= it.at_ns for it in told)
    assert {"rm_proxy", "context", "rm:rm-1#1"} <= {it.mailbox for it in told}
    called = [it for it in found if it.mailbox == "rm:rm-1#1"]
    took = [it.previous_took_ns for it in called[1:]] + [trace.footer.took_ns["rm:rm-1#1"]]
    assert called[0].previous_took_ns is None, "there was no handling before the first one"
    assert all(isinstance(it, int) for it in took)
    assert sum(map(bool, took)) == len(took)
    slow = [it for it in took if it is not None and it >= 20_000_000]
    assert slow, "the time of the resource manager's own code counts"
    # What waited behind a slow call was sent long before it was handled.
    assert any(it.at_ns - it.sent_ns >= 10_000_000 for it in called if it.sent_ns is not None)


# -- compressed, and in segments


def test_a_compressed_recording_is_smaller_and_replays(path: Path) -> None:
    with SchedulerCore(trace=TraceSettings(path=path, compress=True)) as core:
        work(core)
    assert "identical" in verdict(path)
    with SchedulerCore(trace=path.with_suffix(".plain")) as core:
        work(core)
    assert 4 * path.stat().st_size < path.with_suffix(".plain").stat().st_size


def test_a_compressed_recording_that_was_cut_is_read_up_to_there(path: Path) -> None:
    writer = FileRecorder(TraceSettings(path=path, compress=True), HEADER)
    writer.add(delivery(1))
    wait_until(lambda: path.stat().st_size > 0 and len(deliveries(path)) == 1)
    writer.add(delivery(2))
    wait_until(lambda: len(deliveries(path)) == 2)
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    assert 1 == len(deliveries(path))
    writer.close({"states": {}})


def segmented(path: Path, keep: int) -> None:
    settings = TraceSettings(path=path, rotate_bytes=10_000, keep=keep)
    with SchedulerCore(trace=settings) as core:
        register(core, Hearing())
        for part in range(8):
            add_nodes(core, *(f"{part}-{number}-{'x' * 1000}" for number in range(5)))
            wait_until(core.is_settled)
            time.sleep(2 * recorder.GATHER_S)  # what is written at once stays in one segment


def test_segments_are_read_as_one(path: Path) -> None:
    segmented(path, keep=50)
    parts = sorted(file.name for file in path.parent.iterdir())
    assert len(parts) > 3
    assert "identical" in verdict(path)
    assert "identical" in verdict(path.parent), "the folder stands for the recording in it"


def test_where_the_oldest_are_gone_the_rest_is_read_and_a_replay_is_refused(path: Path) -> None:
    segmented(path, keep=1)
    assert 2 == len(list(path.parent.iterdir()))
    with TraceReader(path) as trace:
        assert trace.header.segment > 1
        assert list(trace)
    with pytest.raises(TraceError, match="the beginning of the run is not in it; a replay needs"):
        verdict(path)


# -- a flight recorder


def test_a_flight_recorder_writes_when_it_is_asked(path: Path, tmp_path: Path) -> None:
    asked = tmp_path / "asked.trace"
    settings = TraceSettings(path=path, flight_recorder_bytes=10**7)
    with SchedulerCore(trace=settings) as core:
        work(core)
        core.save_trace(asked)
    assert not path.exists(), "all went well, and nobody asked for the end"
    assert "identical; incomplete" in verdict(asked)


def test_a_flight_recorder_keeps_the_last(path: Path) -> None:
    settings = TraceSettings(path=path, flight_recorder_bytes=20_000)
    with SchedulerCore(trace=settings) as core:
        work(core)
        core.save_trace(path)
    assert path.stat().st_size < 25_000
    # Steps count by mailbox, and the last mailbox may have begun late: the first of all is gone.
    assert ("rm_proxy", 1) not in {(it.mailbox, it.step) for it in deliveries(path)}
    with pytest.raises(TraceError, match="the beginning of the run is not in it"):
        verdict(path)


def test_a_core_that_fails_writes_what_its_flight_recorder_has(path: Path) -> None:
    settings = TraceSettings(path=path, flight_recorder_bytes=10**6)
    core = SchedulerCore(trace=settings, on_failure=lambda _: None).start()
    work(core)
    context = core._actors.machines()["context"]
    context.handle = None  # type: ignore[method-assign,assignment]  # whatever it gets now fails it
    add_nodes(core, "last")
    wait_until(lambda: core.failure is not None)
    core.stop()
    with TraceReader(path) as trace:
        assert [it.step for it in trace]
    assert trace.footer is not None
    assert "context failed" in trace.footer.failure


def test_without_a_flight_recorder_there_is_nothing_to_save(path: Path) -> None:
    with SchedulerCore() as core, pytest.raises(TypeError, match="the core has no flight recorder"):
        core.save_trace(path)


# -- bounds


@pytest.mark.parametrize("field", ["rotate_bytes", "keep", "flight_recorder_bytes"])
@pytest.mark.parametrize("value", [-1, "5", True, 1.5])
def test_a_wrong_setting_is_refused(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"TraceSettings\.{field}: .* is not allowed: give 0"):
        TraceSettings(path="a", **{field: value})


def test_a_pipe_that_nobody_reads_is_refused_at_once(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(OSError, match="begin to read from the pipe first"):
        SchedulerCore(trace=path).start()


def test_only_its_owner_may_read_a_recording(path: Path) -> None:
    with SchedulerCore(trace=path):
        pass
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_waits_for_a_slow_disk_is_bounded_and_what_is_dropped_is_counted(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The disk is a pipe whose reader waits until everything was handed in."""
    monkeypatch.setattr(recorder, "BACKLOG_BYTES_MAX", 200_000)
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    writer = FileRecorder(TraceSettings(path=path), HEADER)
    for number in range(1, 101):
        writer.add(delivery(number, "x" * 10_000))
    assert writer._waiting_bytes <= 200_000
    os.set_blocking(reader, True)
    copy = path.with_suffix(".copy")
    with copy.open("wb") as out, subprocess.Popen(["cat"], stdin=reader, stdout=out):
        os.close(reader)
        wait_until(lambda: writer._waiting_bytes == 0)
        writer.add(delivery(101))
        writer.close({"states": {}})
    with TraceReader(copy) as trace:
        found = [it.step for it in trace]
    assert trace.lost > 50
    assert 101 == found[-1]
    assert 101 == trace.lost + len(found)
    assert main(["trace", "show", str(copy)]) == 0
    told = f"complete; {trace.lost} messages are missing: the disk was too slow for them"
    assert told in capsys.readouterr().out


def test_a_replay_stops_where_messages_are_missing(path: Path) -> None:
    with SchedulerCore(trace=path) as core:
        work(core)
    changed = list(_records(path))
    changed[9] = {"record": "gap", "messages": 1, "mailboxes": {changed[9]["mailbox"]: 1}}
    path.write_bytes(b"".join(map(msgspec.msgpack.encode, changed)))
    with pytest.raises(TraceError, match=r"1 messages are missing.*; a replay needs every message"):
        verdict(path)


# -- read from standard input


def test_a_recording_is_read_from_standard_input(path: Path) -> None:
    with SchedulerCore(trace=TraceSettings(path=path, compress=True)) as core:
        work(core)
    command = [sys.executable, "-m", "yunikorn_actors", "trace", "show", "-", "--limit", "3"]
    with path.open("rb") as file:
        done = subprocess.run(command, stdin=file, capture_output=True, text=True, check=True)
    assert "-: proposing topology, driver threads" in done.stdout
    assert "stopped at the limit of 3" in done.stdout


# -- what a later version has written


def test_a_replay_says_where_fields_could_not_be_compared(path: Path) -> None:
    with SchedulerCore(trace=path) as core:
        work(core)
    changed = list(_records(path))
    changed[0]["package"]["version"] = "9.0.0"
    changed[1]["payload"]["colour"] = "red"
    path.write_bytes(b"".join(map(msgspec.msgpack.encode, changed)))
    assert (
        f"identical; fields of 9.0.0 that {__version__} does not know were not compared"
        in verdict(path)
    )
    changed[2]["step"] += 1
    path.write_bytes(b"".join(map(msgspec.msgpack.encode, changed)))
    assert verdict(path).startswith(f"recorded by 9.0.0, replayed by {__version__}\n")


def test_a_message_of_a_later_version_is_shown_and_not_replayed(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with SchedulerCore(trace=path) as core:
        work(core)
    changed = list(_records(path))
    changed[3] |= {"type": "Teleported", "payload": {"node_id": "moon"}}
    path.write_bytes(b"".join(map(msgspec.msgpack.encode, changed)))
    assert main(["trace", "show", str(path), "--about", "moon"]) == 0
    assert "Teleported with moon" in capsys.readouterr().out
    assert main(["trace", "replay", str(path)]) == 2
    assert "record 4 is a message of type 'Teleported', which this" in capsys.readouterr().err


def _records(path: Path) -> list[dict[str, Any]]:
    with path.open("rb") as file:
        return list(msgpack.Unpacker(file))
