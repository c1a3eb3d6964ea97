"""What becomes of a process: interrupted, killed, or forgetful."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgpack  # type: ignore[import-untyped]  # it ships no types
import pytest
from probes import PATIENCE_S, wait_until

START = """
import sys, threading
from yunikorn_actors import ResourceManagerCallback, SchedulerCore, si
core = SchedulerCore(trace=sys.argv[1])
config = "partitions: [{name: default, queues: [{name: root, submitacl: '*'}]}]"
class Heard(ResourceManagerCallback):
    def __init__(self):
        self.heard = threading.Event()
    def update_node(self, response):
        self.heard.set()
def work():
    rm = Heard()
    core.register_resource_manager(
        si.RegisterResourceManagerRequest(rm_id="rm-1", config=config), rm
    )
    info = si.NodeInfo(node_id="n1", action=si.ActionFromRM.CREATE)
    core.update_node(si.NodeRequest(rm_id="rm-1", nodes=(info,)))
    assert rm.heard.wait(60)
"""
IN_BLOCK = """
def names():
    return [thread.name for thread in threading.enumerate()]
try:
    with core:
        work()
        print("ready", flush=True)
        {waiting}
except KeyboardInterrupt:
    print("interrupted with", names(), flush=True)
"""
WAITING = {
    "in its own code": "threading.Event().wait(60)",
    "in a call of the core": "core._replies.wait(core._replies.open(), 60)",
    "busy with calls": "while True: core.state_dump()",
}
FORGETFUL = """
core.start()
work()
"""
FOR_EVER = """
core.start()
work()
print("ready", flush=True)
threading.Event().wait(60)
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return tmp_path / "run.trace"


@contextmanager
def started(program: str, trace: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that does not outlive its test, whatever becomes of that."""
    with subprocess.Popen(
        [sys.executable, "-c", START + program, str(trace)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def kinds(trace: Path) -> list[str]:
    with trace.open("rb") as file:
        return [record.get("type", record["record"]) for record in msgpack.Unpacker(file)]


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("waiting", WAITING.values(), ids=WAITING)
def test_an_interrupt_ends_the_block_cleanly(trace: Path, waiting: str) -> None:
    with started(IN_BLOCK.format(waiting=waiting), trace) as process:
        assert process.stdout is not None
        assert "ready\n" == process.stdout.readline()
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert ("interrupted with ['MainThread']\n", "") == (stdout, stderr)
    assert ("header", "footer") == (kinds(trace)[0], kinds(trace)[-1])


def test_a_process_that_forgets_to_stop_exits_and_its_trace_is_whole(trace: Path) -> None:
    with started(FORGETFUL, trace) as process:
        assert ("", "") == process.communicate(timeout=PATIENCE_S)
    assert 0 == process.returncode
    assert "CallUpdateNode" in kinds(trace)


def test_what_a_killed_process_has_recorded_can_be_read(trace: Path) -> None:
    with started(FOR_EVER, trace) as process:
        assert process.stdout is not None
        assert "ready\n" == process.stdout.readline()
        wait_until(lambda: "CallUpdateNode" in kinds(trace))
        process.kill()
        process.communicate(timeout=PATIENCE_S)
    assert -signal.SIGKILL == process.returncode
    assert "header" == kinds(trace)[0]
    assert "footer" not in kinds(trace)


def test_a_trace_that_was_cut_anywhere_can_be_read_up_to_there(trace: Path) -> None:
    with started(FORGETFUL, trace) as process:
        process.communicate(timeout=PATIENCE_S)
    whole, data = kinds(trace), trace.read_bytes()
    for size in range(0, len(data), 97):
        trace.write_bytes(data[:size])
        read = kinds(trace)
        assert whole[: len(read)] == read
