"""A trace beside a running core: whole, in order, and never in the core's way."""

import errno
import gc
import os
import threading
import weakref
from io import StringIO
from pathlib import Path
from typing import Any

import msgpack  # type: ignore[import-untyped]  # it ships no types
import pytest
from probes import (
    PATIENCE_S,
    Break,
    Do,
    Notebook,
    add_nodes,
    probed_core,
    register,
    wait_until,
)
from recordings import header, write
from support import Recorder

from yunikorn_actors import SchedulerCore, TraceSettings
from yunikorn_actors.checks.health_checks import health_of
from yunikorn_actors.machines.machine import Send
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.base import Cause, Delivery
from yunikorn_actors.messages.codec import FORMAT_VERSION, state_digest
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.recording import recorder
from yunikorn_actors.recording.recorder import FACTS_KEPT, FileRecorder
from yunikorn_actors.recording.trace_file import TraceFile
from yunikorn_actors.runtime import core_trace
from yunikorn_actors.state import facts as f

FIRST_MESSAGES = ["RegistrationRequested", "RMRegistration", "RMRegistered", "Accepted"]


def read(path: Path) -> list[dict[str, Any]]:
    with path.open("rb") as file:
        return list(msgpack.Unpacker(file))


def work(core: SchedulerCore) -> None:
    rm = Recorder()
    register(core, rm)
    for number in range(20):
        add_nodes(core, f"n{number}")
    wait_until(lambda: len(rm.told("node")) == 20)
    wait_until(core.is_settled)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_trace_has_all_that_was_handled_in_order(tmp_path: Path, topology: TopologyName) -> None:
    path = tmp_path / "run.trace"
    with SchedulerCore(topology=topology, instance="core", trace=path) as core:
        work(core)
        handled = core.handled
        machines = core._actors.machines()
    header, *deliveries, footer = read(path)
    assert ("header", FORMAT_VERSION, topology, "threads") == tuple(
        header[key] for key in ("record", "format", "topology", "driver")
    )
    replies = [record for record in deliveries if record["mailbox"].startswith("reply:")]
    assert handled == len(deliveries) - len(replies)
    assert FIRST_MESSAGES == [r["type"] for r in deliveries if r["type"] in FIRST_MESSAGES]
    steps: dict[str, int] = {}
    for record in deliveries:
        mailbox, (sender, step) = record["mailbox"], record["cause"]
        steps[mailbox] = steps.get(mailbox, 0) + 1
        assert steps[mailbox] == record["step"]
        assert step <= steps.get(sender, 0), "an effect stands before its cause"
    states = {address: state_digest(item.canonical_state()) for address, item in machines.items()}
    took_ns = footer.pop("took_ns")
    assert {"record": "footer", "states": states} == footer
    assert took_ns.keys() == {r["mailbox"] for r in deliveries} - {r["mailbox"] for r in replies}


def test_a_trace_can_be_read_while_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "run.trace"
    with SchedulerCore(trace=path) as core:
        wait_until(lambda: [r["record"] for r in read(path)] == ["header"])
        work(core)
        told = "CallUpdateNode"
        wait_until(lambda: len([r for r in read(path) if r.get("type") == told]) == 20)
        assert "footer" not in [record["record"] for record in read(path)]


def test_a_full_disk_ends_the_recording_and_not_the_core(log: StringIO) -> None:
    with SchedulerCore(trace="/dev/full") as core:
        wait_until(lambda: core.trace_failure)
        work(core)
    assert core.trace_failure is not None
    assert errno.ENOSPC == core.trace_failure.errno
    assert 1 == log.getvalue().count("the trace /dev/full ends here, the core goes on")
    assert core.failure is None


def test_whatever_ends_the_thread_of_a_recording_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: StringIO
) -> None:
    """Else what is gathered fills its room, and nobody knows why the trace is short."""

    def fail(*_: object) -> None:
        raise MemoryError("made up")

    monkeypatch.setattr(TraceFile, "write", fail)
    with SchedulerCore(trace=tmp_path / "trace") as core:
        wait_until(lambda: core.trace_failure)
        work(core)
    assert "ends here, the core goes on: [Errno 5] MemoryError('made up')" in log.getvalue()
    assert core.failure is None


def test_where_no_log_takes_it_the_end_of_a_trace_is_printed_and_the_health_tells(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with SchedulerCore(trace="/dev/full") as core:
        wait_until(lambda: core.trace_failure)
        work(core)
        dump = core.state_dump()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("yunikorn_actors: the trace /dev/full ends here, the core goes on: ")
    health = health_of(dump)
    found = [it.diagnosis for it in health.checks if not it.succeeded]
    assert [f"the trace ends early: {core.trace_failure}"] == found


def test_a_reader_that_goes_away_ends_the_recording(tmp_path: Path, log: StringIO) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with SchedulerCore(trace=path) as core:
        wait_until(lambda: _arrived(reader))
        os.close(reader)
        work(core)
        wait_until(lambda: core.trace_failure)
    assert "Broken pipe" in log.getvalue()


def _arrived(reader: int) -> bytes:
    try:
        return os.read(reader, 1)
    except BlockingIOError:
        return b""


def test_a_disk_that_hangs_does_not_hold_up_the_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core_trace, "TRACE_TIMEOUT_S", 0.1)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    notebook = Notebook()
    core = probed_core(notebook, trace=path).start()
    for _ in range(20):
        core._post("a", Do(label="x" * 10_000), "more than a pipe holds")
        core._go_on()
    wait_until(lambda: len(notebook.labels("a")) == 20)
    core.stop(timeout=0.1)
    assert core.trace_failure is not None
    assert errno.ETIMEDOUT == core.trace_failure.errno
    os.close(reader)


BAD_PATHS = {
    "no such directory": ("no/such/run.trace", FileNotFoundError),
    "a directory": (".", IsADirectoryError),
    "below a file": ("file/run.trace", NotADirectoryError),
}


@pytest.mark.parametrize(("name", "kind"), BAD_PATHS.values(), ids=BAD_PATHS)
def test_a_path_that_cannot_be_written_is_an_error_at_the_start(
    tmp_path: Path, name: str, kind: type[OSError]
) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / name
    core = SchedulerCore(trace=path)
    threads = threading.active_count()
    with pytest.raises(kind, match=r"the trace cannot be written: .*; choose a file") as caught:
        core.start()
    assert str(path) == caught.value.filename
    assert threads == threading.active_count()
    core.stop(PATIENCE_S)


def test_a_core_that_fails_leaves_a_trace_that_ends_with_the_blow(tmp_path: Path) -> None:
    path = tmp_path / "run.trace"
    core = probed_core(Notebook(), trace=path).start()
    blow = Send(to="b", message=Break(error="not an exception"))
    core._post("a", Do(label="", effects=(blow,)), "")
    core._go_on()
    wait_until(lambda: core.failure)
    core.stop(PATIENCE_S)
    _, *deliveries, footer = read(path)
    assert ["Do", "Break"] == [record["type"] for record in deliveries]
    assert footer.pop("took_ns").keys() == {"a", "b"}
    assert {"record": "footer", "states": {}, "failure": str(core.failure)} == footer


def test_a_recorder_by_itself_takes_nothing_once_it_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "run.trace"
    written = recorder.FileRecorder(TraceSettings(path=path), {"seed": 7})
    delivery = Delivery("a", 1, "test", Cause("test", 0), "", 0, Do(label="x"))
    written.add(delivery)
    written.close({"states": {}})
    written.add(delivery)
    written.close({"states": {}})
    assert ["header", "delivery", "footer"] == [record["record"] for record in read(path)]
    known = weakref.ref(written)
    del written
    gc.collect()
    assert known() is None, "the end of the process still waits for it"


def test_facts_are_encoded_once_and_recorded_each_time(tmp_path: Path) -> None:
    """Each time they are the same, however many others came in between."""
    put = [
        f.ForeignAllocationPut(key=f"key-{number}", node_id="n", resource={}, at_ns=1)
        for number in range(3 * FACTS_KEPT)
    ]
    told = [
        FactsAppended(partition="p", epoch=1, rm_id="rm-1", first_revision=number, facts=(fact,))
        for number, fact in enumerate(put)
    ]
    path = write(tmp_path / "a.trace", *told, *told, *(it for it in told for _ in range(3)))
    found = [
        record["payload"]["facts"][0]["key"]
        for record in read(path)
        if record["record"] == "delivery"
    ]
    keys = [it.key for it in put]
    assert found == [*keys, *keys, *(key for key in keys for _ in range(3))]


def test_a_secret_beside_a_payload_is_covered(tmp_path: Path) -> None:
    path = tmp_path / "a.trace"
    written = FileRecorder(TraceSettings(path=path), header())
    facts = FactsAppended(partition="p", epoch=1, rm_id="rm-1", first_revision=1, facts=())
    sender = "rm:https://ann:hunter2@farm#1"
    written.add(Delivery("context", 1, sender, Cause(sender, 1), "node-1", 5, facts))
    written.close({"states": {}})
    assert b"hunter2" not in path.read_bytes()
    assert read(path)[1]["payload"]["partition"] == "p"
