"""The read side's process ends at an awkward moment: it is replaced, and nobody waits for ever."""

import asyncio
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import asking_child
import msgspec
import pytest
import ranges
from asking_child import FIRST, SECOND
from probes import PATIENCE_S, wait_until
from served import SETTINGS, Confirming, Served

from yunikorn_actors import NoReply, SchedulerCore
from yunikorn_actors.drivers.live.clock import RealClock
from yunikorn_actors.messages.followers import ManagerLeft
from yunikorn_actors.service.listener import Site, Standing
from yunikorn_actors.service.rest import child, process
from yunikorn_actors.service.rest.pipe import LENGTH_BYTES, Question, Simulate, Simulated, Up, frame
from yunikorn_actors.service.rest.process import Outbox, ProcessPart

Started = subprocess.Popen


@pytest.fixture
def core() -> Iterator[SchedulerCore]:
    with SchedulerCore(settings=SETTINGS) as core:
        yield core


@pytest.fixture
def part(core: SchedulerCore) -> Iterator[ProcessPart]:
    part = ProcessPart(Site(core, "127.0.0.1:0", Standing()))
    yield part
    part.stop(PATIENCE_S)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "WAITS_S", (0.0,))


class Ending:
    """A process of which only the end matters."""

    def __init__(self, *, stays: bool = False) -> None:
        self.was_killed = False
        self._stays = stays

    def wait(self, timeout: float | None = None) -> int:
        if self._stays and not self.was_killed:
            assert timeout is not None, "it is waited for without an end"
            raise subprocess.TimeoutExpired("it", timeout)
        return 0

    def poll(self) -> int:
        return 0

    def kill(self) -> None:
        self.was_killed = True


def read_until_replaced(part: ProcessPart, said: bytes, ending: Ending) -> list[bool]:
    """Have the part read this from a process that then ends; return how it was replaced."""
    replaced: list[bool] = []
    part._replace = lambda *, is_steady: replaced.append(is_steady)  # type: ignore[method-assign]
    part._has_begun = True
    part._process = ending  # type: ignore[assignment]
    ours, theirs = socket.socketpair()
    outbox = Outbox(RealClock(), lambda _: None)
    reading = threading.Thread(target=part._read, args=(outbox, ours, ending), daemon=True)
    with theirs:
        theirs.sendall(said)
    reading.start()
    reading.join(PATIENCE_S)
    assert not reading.is_alive()
    assert not outbox.put(Simulate(1, b"")), "it takes what nobody reads"
    return replaced


def garbage() -> bytes:
    return (4).to_bytes(LENGTH_BYTES, "big") + b"\xc1\xc1\xc1\xc1"


@pytest.mark.parametrize(
    "said",
    [frame(Simulated(1, b"x" * 1_000))[:500], frame(Simulated(1))[: LENGTH_BYTES - 1], garbage()],
    ids=["in mid-entry", "in mid-length", "garbage"],
)
def test_one_that_ends_in_the_middle_of_an_entry_is_replaced(
    part: ProcessPart, said: bytes
) -> None:
    waiting = part._simulating[1] = Future()
    assert [False] == read_until_replaced(part, said, Ending())
    assert isinstance(waiting.exception(0), NoReply)


def test_an_answer_that_nobody_waits_for_any_more_changes_nothing(part: ProcessPart) -> None:
    ending = Ending()
    assert [False] == read_until_replaced(part, frame(Simulated(7)) + frame(Simulated(8)), ending)
    assert not ending.was_killed


@pytest.mark.parametrize("error", [NoReply("busy"), RuntimeError("can't start new thread")])
def test_one_that_cannot_follow_is_replaced(part: ProcessPart, error: Exception) -> None:
    def follow(_: object) -> str:
        raise error

    part._core.followers.follow = follow  # type: ignore[method-assign]
    ending = Ending()
    assert [False] == read_until_replaced(part, b"", ending)
    assert ending.was_killed
    assert str(error) in part._why


def test_one_that_is_silent_and_stays_is_ended(part: ProcessPart) -> None:
    ending = Ending(stays=True)
    assert [False] == read_until_replaced(part, b"", ending)
    assert ending.was_killed


# -- starting another one


def all_started(monkeypatch: pytest.MonkeyPatch) -> list["Started[bytes]"]:
    """Collect the processes that are started from here on."""
    started: list[Started[bytes]] = []

    def start(*arguments: Any, **options: Any) -> "Started[bytes]":
        started.append(Started(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(process.subprocess, "Popen", start)
    return started


def failing_once(call: Callable[..., Any], error: Exception) -> Callable[..., Any]:
    has_failed = threading.Event()

    def fail(*arguments: Any, **options: Any) -> Any:
        if has_failed.is_set():
            return call(*arguments, **options)
        has_failed.set()
        raise error

    return fail


def test_where_no_process_can_be_started_it_is_tried_again(
    core: SchedulerCore, part: ProcessPart, monkeypatch: pytest.MonkeyPatch
) -> None:
    part.start()
    faults: list[str] = []
    part._site.standing.subscribe(
        lambda topic, fault: faults.append(fault) if topic == "rest" else None
    )
    former = part._process
    assert former is not None
    error = BlockingIOError(11, "Resource temporarily unavailable")
    monkeypatch.setattr(process.subprocess, "Popen", failing_once(Started, error))
    former.kill()
    wait_until(lambda: part._process is not former and part._following)
    assert 200 == Served(core, Confirming(core), part).ask("/ws/v1/clusters").status
    assert 2 == len([it for it in faults if it])
    assert "could not be started: [Errno 11]" in faults[-1]


@pytest.mark.parametrize(
    "name", ranges.first(["yunikorn-actors-rest", "yunikorn-actors-rest-line"], 1)
)
def test_where_no_thread_can_be_started_it_is_tried_again(
    core: SchedulerCore,
    part: ProcessPart,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    part.start()
    former = part._process
    assert former is not None
    started = all_started(monkeypatch)
    start = threading.Thread.start
    fail = failing_once(start, RuntimeError("can't start new thread"))

    def start_or_fail(thread: threading.Thread) -> None:
        (fail if thread.name == name else start)(thread)

    monkeypatch.setattr(threading.Thread, "start", start_or_fail)
    former.kill()
    wait_until(lambda: len(started) > 1 and part._process is started[1] and part._following)
    assert started[0].poll() is not None, "it listens, and nobody talks to it"
    assert 200 == Served(core, Confirming(core), part).ask("/ws/v1/clusters").status


def test_a_first_one_that_cannot_be_started_is_told_and_leaves_nothing(
    part: ProcessPart, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = all_started(monkeypatch)
    start = threading.Thread.start

    def start_or_fail(thread: threading.Thread) -> None:
        if thread.name == "yunikorn-actors-rest":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_or_fail)
    with pytest.raises(OSError, match="cannot be started: can't start new thread"):
        part.start()
    (it,) = started
    assert it.poll() is not None


def test_one_that_is_started_while_the_service_stops_is_ended(
    part: ProcessPart, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would have the port for as long as the program lives, and tell what was true once."""
    part.start()
    former = part._process
    assert former is not None
    started: list[Started[bytes]] = []
    is_starting, may_start = threading.Event(), threading.Event()

    def start(*arguments: Any, **options: Any) -> "Started[bytes]":
        is_starting.set()
        assert may_start.wait(PATIENCE_S)
        started.append(Started(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(process.subprocess, "Popen", start)
    former.kill()
    assert is_starting.wait(PATIENCE_S)
    stopping = threading.Thread(target=part.stop, args=(PATIENCE_S,))
    stopping.start()
    wait_until(part._stopping.is_set)
    may_start.set()
    stopping.join(2 * PATIENCE_S)
    assert not stopping.is_alive()
    reader = part._reader
    assert reader is not None
    reader.join(PATIENCE_S)
    assert 1 == len(started)
    assert started[0].poll() is not None


def test_who_stops_it_while_it_starts_is_not_waited_for(part: ProcessPart) -> None:
    spawn = part._spawn

    def stop_first() -> None:
        part.stop(0.0)
        spawn()

    part._spawn = stop_first  # type: ignore[method-assign]
    with pytest.raises(OSError, match="has not begun to listen"):
        part.start()
    assert part._process is None


# -- answers of a former life


def test_an_answer_reaches_the_process_that_has_asked(
    part: ProcessPart, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each numbers its questions from 1, and the first one has ended when it is answered."""
    monkeypatch.setattr(process, "CHILD", asking_child.__name__)
    monkeypatch.setenv(asking_child.FOLDER, str(tmp_path))
    second_asks, first_is_answered = threading.Event(), threading.Event()

    def ask(question: str, *_: str) -> str:
        if question == SECOND:
            second_asks.set()
            assert first_is_answered.wait(PATIENCE_S)
        else:
            assert second_asks.wait(PATIENCE_S)
        return f"answer to the {question}"

    part._questions = SimpleNamespace(ask=ask)  # type: ignore[assignment]
    submit = part._pool.submit

    def submitted(call: Callable[..., None], entry: Question, *rest: Any) -> Any:
        answering = submit(call, entry, *rest)
        if entry.question == FIRST:
            answering.add_done_callback(lambda _: first_is_answered.set())
        return answering

    part._pool.submit = submitted  # type: ignore[method-assign, assignment]
    part.start()
    answers = tmp_path / asking_child.ANSWERS
    wait_until(answers.exists)
    wait_until(lambda: SECOND in answers.read_text("utf-8"))
    assert "1 answer to the second\n" == answers.read_text("utf-8")


def test_who_asks_while_it_is_replaced_is_told_so(
    part: ProcessPart, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "WAITS_S", (PATIENCE_S,))
    part.start()
    assert part._process is not None
    standing = part._site.standing
    part._process.kill()
    wait_until(lambda: standing.read_side_fault)
    found: list[BaseException] = []

    def simulate() -> None:
        try:
            part.simulate(b"{}")
        except NoReply as error:
            found.append(error)

    asking = threading.Thread(target=simulate, daemon=True)
    asking.start()
    asking.join(PATIENCE_S / 2)
    assert ["the read side is being replaced: call again in a while"] == list(map(str, found))
    assert not part._simulating


def test_who_asks_one_that_says_nothing_is_told_so(
    part: ProcessPart, monkeypatch: pytest.MonkeyPatch
) -> None:
    part.start()
    it = part._process
    assert it is not None
    os.kill(it.pid, signal.SIGSTOP)
    monkeypatch.setattr(process, "SIMULATE_S", 0.01)
    with pytest.raises(NoReply, match="has not answered within"):
        part.simulate(b'{"steps": []}')
    os.kill(it.pid, signal.SIGCONT)
    monkeypatch.undo()
    # The late answer is nobody's, and comes before this one.
    assert part.simulate(b'{"steps": []}')
    assert part._process is it


# -- what would leave a read side behind the truth for ever


class Broken:
    def now_ns(self) -> int:
        raise RuntimeError("made up")


def test_one_that_has_missed_a_message_is_given_up() -> None:
    reasons: list[str] = []
    outbox = Outbox(Broken(), reasons.append)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="made up"):
        outbox.receive(ManagerLeft(rm_id="rm-1"))
    assert ["a message for it could not be written down"] == reasons
    assert not outbox.put(Simulate(1, b""))


def test_one_that_nothing_can_be_written_to_is_ended(part: ProcessPart) -> None:
    class Failing(Outbox):
        def next(self) -> bytes:
            raise MemoryError

    part._process = ending = Ending()  # type: ignore[assignment]
    outbox = Failing(RealClock(), lambda _: None)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        part._write(outbox, ours, ending)  # type: ignore[arg-type]
    assert ending.was_killed
    assert "nothing could be written to it: MemoryError" in part._why


def test_a_simulation_that_fails_is_answered_all_the_same() -> None:
    """Somebody in the other process waits for an answer, whatever has happened here."""
    written: list[bytes] = []

    async def simulated(_: bytes) -> bytes:
        raise RuntimeError("made up")

    ours, theirs = socket.socketpair()
    with ours, theirs:
        it = child.Child(ours, theirs)
        it._server = SimpleNamespace(simulated=simulated)  # type: ignore[assignment]
        it._writer = SimpleNamespace(write=written.append)  # type: ignore[assignment]
        asyncio.run(it._simulate(Simulate(3, b"")))
    (data,) = written
    entry = msgspec.msgpack.decode(data[LENGTH_BYTES:], type=Up)
    assert isinstance(entry, Simulated)
    assert (3, "made up") == (entry.number, entry.error)
