"""The read side in a process of its own, as a part of the service.

One interpreter runs one thread at a time. A read side in the core's process takes its share of that
time for every fact and every page; here the core pays for writing each fact down once, and pages
cost it nothing. A process that ends by itself is replaced, and receives the whole state. One that
ends again and again is replaced ever later, and never given up; health checks report it.

What is written down is handed over in batches, and the other process gives way to the core where
processors are scarce: it may be a little late, and costs less. One that falls too far behind is
replaced as well: to receive the whole state costs less memory than all that has happened.
"""

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from typing import Final

import msgspec

from yunikorn_actors.core.driver import Follower
from yunikorn_actors.drivers.live.clock import Clock
from yunikorn_actors.errors import CoreFailed, CoreStopped, NoReply, Refused
from yunikorn_actors.messages.base import Message
from yunikorn_actors.messages.codec import encode
from yunikorn_actors.messages.restart import EventsRestored
from yunikorn_actors.messages.scheduling import PartitionSnapshot
from yunikorn_actors.policies.loading import places_of
from yunikorn_actors.recording.logs import logger
from yunikorn_actors.service.address import listen_at, named
from yunikorn_actors.service.core_queries import questions_of
from yunikorn_actors.service.listener import READ_SIDE, START_S, Part, Site
from yunikorn_actors.service.log_lines import LogStyle
from yunikorn_actors.service.rest.pipe import (
    IGNORED,
    LENGTH_BYTES,
    Answered,
    Begin,
    CoreMessage,
    Down,
    Question,
    Ready,
    Renewed,
    Simulate,
    Simulated,
    Up,
    frame,
)
from yunikorn_actors.service.tokens import CurrentTokens
from yunikorn_actors.values.masking import masked_str

CHILD: Final = "yunikorn_actors.service.rest"
POOL_SIZE: Final = 4
"""Questions that are answered at a time."""
STUCK_S: Final = 30
"""A process that does not read for this time is ended, and so replaced."""
ENDED: Final = "it ended by itself"
SIMULATE_S: Final = 60.0
"""How long an answer about what would happen may take."""
KILLED_S: Final = 5.0
"""How long the end of a killed process is waited for: one that a disk holds up may stay."""
PAUSE_S: Final = 0.05
"""Between two batches of facts: each wakes two threads, which compete with those of the core."""
BATCH_MAX: Final = 1024 * 1024
"""Bytes; what is larger goes by itself."""
BEHIND_MAX: Final = 64 * 1024 * 1024
"""Bytes of facts that may wait to be read."""
WAITS_S: Final = (0.0, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""Before a process is replaced, each time that it ends; the last one for ever after."""
STEADY_S: Final = 60.0
"""A process that has answered for this time is well; the next end counts as the first."""
_up: Final = msgspec.msgpack.Decoder(Up)


def make(site: Site) -> Part:
    return ProcessPart(site)


class ProcessPart(Part):
    def __init__(self, site: Site) -> None:
        self._site = site
        self._core = site.core
        self._questions = questions_of(site)
        self._tokens = site.tokens or CurrentTokens()
        self._renewing = threading.Lock()
        self._listener: socket.socket | None = None
        self._line: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._outbox = Outbox(site.core.clock, lambda _: None)
        """Of the process of now. Between two it is closed, and takes nothing."""
        # Closed from the start: there is no process yet that would read.
        self._outbox.close()
        self._spawning = threading.Lock()
        """Held while a process is started: who stops finds it, or none is started any more."""
        self._ready = threading.Event()
        self._stopping = threading.Event()
        self._has_begun = False
        """Whether one has listened: until then there is none to replace."""
        self._ends = 0
        """Of processes, without one that was steady in between."""
        self._why = ""
        """Why the process was ended, if it was."""
        self._steady = threading.Timer(STEADY_S, lambda: None)
        self._following = ""
        self._start_ns = 0
        self._numbers = count(1)
        self._simulating: dict[int, Future[Simulated]] = {}
        self._pool = ThreadPoolExecutor(POOL_SIZE, thread_name_prefix="yunikorn-actors-rest")
        self._reader: threading.Thread | None = None

    @property
    def address(self) -> str:
        return self._site.address if self._listener is None else named(self._listener)

    def listen(self) -> None:
        if self._listener is None:
            self._listener = listen_at(self._site.address)

    def start(self) -> None:
        self.listen()
        self._core.measure()
        self._start_ns = self._core.clock.now_ns()
        self._tokens.subscribe(self._renew)
        try:
            self._spawn()
        except RuntimeError as error:
            raise OSError(f"the read side cannot be started: {error}") from error
        self._await_ready()
        self._site.standing.simulate = self.simulate

    def _await_ready(self) -> None:
        """Wait until the first process listens; one that ends after that is replaced."""
        if self._ready.wait(START_S) and self._has_begun:
            return
        ended = None if self._process is None else self._process.poll()
        self.stop(0.0)
        how = f"within {START_S:g} s" if ended is None else f"and has ended with status {ended}"
        raise OSError(f"the read side has not begun to listen {how}")

    def _spawn(self) -> None:
        """Start a process, unless this was stopped; where that fails nothing is left of it."""
        with self._spawning:
            # Looked at under the lock: a stop that comes now finds the process or prevents it.
            if not self._stopping.is_set():
                self._start_process()

    def _start_process(self) -> None:
        assert self._listener is not None
        ours, theirs = socket.socketpair()
        # For sending alone: what is asked may take its time to come.
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", STUCK_S, 0))
        handed = (theirs.fileno(), self._listener.fileno())
        try:
            # Our copy of their end is closed: the line has to end when the process does.
            with theirs, _blocked(IGNORED):
                process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                    [sys.executable, "-m", CHILD, *map(str, handed)],
                    pass_fds=handed,
                    stdin=subprocess.DEVNULL,
                    # Our own search path: the process has to find the same modules.
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                )
        except BaseException:
            ours.close()
            raise
        outbox = Outbox(self._core.clock, partial(self._end_process, process))
        try:
            self._begin(process, ours, outbox)
        except BaseException:
            # Threads may be at their limit.
            outbox.close()
            _kill(process)
            ours.close()
            raise

    def _begin(
        self, process: "subprocess.Popen[bytes]", ours: socket.socket, outbox: "Outbox"
    ) -> None:
        """Say how the read side is made, and have two threads write to it and read from it."""
        self._process, self._line, self._why = process, ours, ""
        logs = self._site.logs or LogStyle(level="")
        tls, topology, tokens = self._site.tls, self._core.topology, self._tokens.now
        outbox.put(
            Begin(
                settings=topology.settings,
                instance=topology.instance,
                start_ns=self._start_ns,
                now_ns=self._core.clock.now_ns(),
                policies=topology.policies.names,
                names=self._site.names,
                cors=self._site.cors,
                token=tokens.full,
                read_token=tokens.read,
                chain=b"" if tls is None else tls.chain,
                key=b"" if tls is None else tls.key,
                clients=b"" if tls is None else tls.clients,
                log_level=logs.level,
                log_format=logs.format,
                topology=topology.name,
                schedulers=topology.schedulers,
                own_policies=tuple(places_of(topology.policies)),
            )
        )
        # Only now: its first entry says how the read side is made. A change of the tokens that came
        # before went to the former outbox, so they are sent again.
        self._outbox = outbox
        self._renew()
        life = (outbox, ours, process)
        threading.Thread(
            target=self._write, args=life, name="yunikorn-actors-rest-line", daemon=True
        ).start()
        reader = threading.Thread(
            target=self._read, args=life, name="yunikorn-actors-rest", daemon=True
        )
        reader.start()
        self._reader = reader

    def _renew(self, _: object = None) -> None:
        # Under a lock, or a call that has read the former tokens would send them last.
        with self._renewing:
            tokens = self._tokens.now
            self._outbox.put(Renewed(tokens.full, tokens.read))

    def _end_process(self, process: "subprocess.Popen[bytes]", why: str) -> None:
        """End a process; the thread that reads from it starts another one.

        The first reason stands: when a process is ended, the thread that writes to it fails too,
        with a reason of its own, and perhaps only after the process was replaced.
        """
        if process is self._process and not self._stopping.is_set():
            self._why = self._why or why
            process.kill()

    def _write(
        self, outbox: "Outbox", line: socket.socket, process: "subprocess.Popen[bytes]"
    ) -> None:
        """Write what waits, until the process ends or does not read for too long."""
        try:
            # Written in one piece for each batch: every write wakes the other process.
            while data := outbox.next():
                line.sendall(data)
                outbox.pause()
        except BlockingIOError:
            self._end_process(process, f"it has not read for {STUCK_S} s")
        except OSError:
            # The thread that reads may find out later: the reason is the same.
            self._end_process(process, ENDED)
        except Exception as error:  # noqa: BLE001 - the edge: it would hear no more, and go on
            self._end_process(process, f"nothing could be written to it: {masked_str(error)}")
        finally:
            # Nothing more is taken, so that facts do not gather for nobody.
            outbox.close()

    # -- what the other process asks

    def _read(
        self, outbox: "Outbox", line: socket.socket, process: "subprocess.Popen[bytes]"
    ) -> None:
        begun = time.monotonic()
        try:
            # On this thread, which also ends it: so none that has ended is followed for, or left
            # out.
            with suppress(CoreStopped, CoreFailed):
                self._following = self._core.followers.follow(outbox)
            self._read_all(outbox, line, process)
        except Exception as error:  # noqa: BLE001 - the edge: whatever it is, another one is started
            logger.error("the read side cannot be read any more", exception=error)
            self._end_process(process, f"nothing can be read from it: {masked_str(error)}")
        _wait_for_the_end(process)
        outbox.close()
        # What is asked after this finds the outbox closed.
        while self._simulating:
            # They would wait for an answer that cannot come any more.
            _, waiting = self._simulating.popitem()
            waiting.set_exception(NoReply("the read side has ended: call again"))
        line.close()
        if self._following:
            self._core.followers.unfollow(self._following)
            self._following = ""
        # Set also at the end: who waits for the first one must not wait for ever.
        was_ready = self._ready.is_set()
        self._ready.set()
        if not self._stopping.is_set() and self._has_begun:
            # One that was never ready counts as another end.
            self._replace(is_steady=was_ready and time.monotonic() - begun > STEADY_S)

    def _read_all(
        self, outbox: "Outbox", line: socket.socket, process: "subprocess.Popen[bytes]"
    ) -> None:
        """Read until the process ends, which may be in the middle of what it says."""
        with line.makefile("rb") as file, suppress(OSError):
            while head := file.read(LENGTH_BYTES):
                size = int.from_bytes(head, "big")
                data = file.read(size)
                if len(head) < LENGTH_BYTES or len(data) < size:
                    return
                entry = _up.decode(data)
                # It answers from here on; only a process that has done that is worth replacing.
                if isinstance(entry, Ready):
                    self._has_begun = True
                    self._ready.set()
                    self._tell_when_steady(process)
                elif isinstance(entry, Simulated):
                    if (waiting := self._simulating.pop(entry.number, None)) is not None:
                        waiting.set_result(entry)
                else:
                    # On threads, as the core may take its time and the line must be read.
                    self._pool.submit(self._answer, entry, outbox)

    def _answer(self, asked: Question, outbox: "Outbox") -> None:
        """Answer the process that has asked: each numbers its questions from 1."""
        try:
            value = self._questions.ask(asked.question, *asked.arguments)
        except Exception as error:  # noqa: BLE001 - the edge: it is the answer
            outbox.put(Answered(asked.number, error=masked_str(error)))
        else:
            outbox.put(Answered(asked.number, value))

    def simulate(self, body: bytes) -> bytes:
        """Say what would happen, to another part of the service; on a thread that may wait."""
        number, waiting = next(self._numbers), Future[Simulated]()
        self._simulating[number] = waiting
        try:
            if not self._outbox.put(Simulate(number, body)):
                raise NoReply("the read side is being replaced: call again in a while")
            found = waiting.result(SIMULATE_S)
        except TimeoutError as error:
            # A `NoReply` is a timeout, too: its own words are better.
            if isinstance(error, NoReply):
                raise
            raise NoReply(f"the read side has not answered within {SIMULATE_S:g} s") from None
        finally:
            self._simulating.pop(number, None)
        if found.error:
            raise Refused(found.error)
        return found.content

    def _replace(self, *, is_steady: bool) -> None:
        """A read side that has ended passes nothing on; the next one receives all of it."""
        if is_steady:
            self._ends = 0
        while True:
            self._ends += 1
            wait_s = WAITS_S[min(self._ends, len(WAITS_S)) - 1]
            fault = f"the read side was replaced {self._ends} times: {self._why or ENDED}"
            # Reported before it is replaced: health checks see it in the meantime.
            logger.warning("{}; the next one comes in {:g} s", fault, wait_s)
            self._site.standing.tell(fault, READ_SIDE)
            if self._stopping.wait(wait_s):
                return
            self._ready.clear()
            try:
                self._spawn()
            except Exception as error:  # noqa: BLE001 - the edge: processes may be at their limit
                self._why = f"another one could not be started: {masked_str(error)}"
            else:
                return

    def _tell_when_steady(self, process: "subprocess.Popen[bytes]") -> None:
        """Have health checks say that all is well, once it has gone on for a while."""
        if not self._ends:
            return

        def tell() -> None:
            # Only if the same one still runs: another has a time of its own.
            if process is self._process and process.poll() is None:
                self._ends = 0
                self._site.standing.tell("", READ_SIDE)

        self._steady.cancel()
        self._steady = threading.Timer(STEADY_S, tell)
        self._steady.daemon = True
        self._steady.start()

    # -- the end

    def stop(self, grace: float) -> None:
        deadline = time.monotonic() + grace
        self._stopping.set()
        self._steady.cancel()
        # Another thread may be starting it: it waits for nothing any more.
        self._ready.set()
        with self._spawning:
            process, line, reader = self._process, self._line, self._reader
        if process is not None and line is not None:
            # The other side ends with the line; who is in the middle of writing is let go.
            with suppress(OSError):
                line.shutdown(socket.SHUT_WR)
            try:
                process.wait(grace)
            except subprocess.TimeoutExpired:
                _kill(process)
        if reader is not None:
            reader.join(max(0.0, deadline - time.monotonic()))
        self._pool.shutdown(wait=False, cancel_futures=True)
        self.close()

    def close(self) -> None:
        if self._listener is not None:
            self._listener.close()


def _kill(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    with suppress(subprocess.TimeoutExpired):
        process.wait(KILLED_S)


def _wait_for_the_end(process: "subprocess.Popen[bytes]") -> None:
    """One that has closed its end of the line is about to end."""
    try:
        process.wait(STUCK_S)
    except subprocess.TimeoutExpired:
        _kill(process)


@contextmanager
def _blocked(numbers: Iterable[int]) -> Iterator[None]:
    """Have a process that is started here receive these only when it ignores them.

    Until it has read its program it would end by one that is sent to the whole group, and a stop
    would look as if the read side had failed.
    """
    former = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)


class Outbox(Follower):
    """What waits to be written to one process: filled by several threads, emptied by one."""

    def __init__(self, clock: Clock, give_up: Callable[[str], None]) -> None:
        """`give_up` is called with the reason when too much waits, or what waits has a gap.

        Then nothing more is taken.
        """
        self._clock = clock
        self._give_up = give_up
        self._changed = threading.Condition()
        self._kept: deque[tuple[bytes, bool]] = deque()
        self._facts = 0
        """Bytes of them, those that are being written included."""
        self._in_hand = 0
        self._urgent = 0
        """How many entries have readers that wait."""
        self._is_pausing = False
        self._is_closed = False

    def receive(self, message: Message) -> None:
        """Queue a message to followers for the process; called on a thread of the core."""
        try:
            payload = msgspec.Raw(encode(message))
            data = frame(CoreMessage(type(message).__name__, self._clock.now_ns(), payload))
        except BaseException:
            # A read side that has missed one message would be wrong for ever.
            self.close()
            self._give_up("a message for it could not be written down")
            raise
        # The whole state is sent once, however large that is; it is not what piles up.
        is_fact = not isinstance(message, PartitionSnapshot | EventsRestored)
        if is_fact and self._facts > BEHIND_MAX:
            self.close()
            self._give_up("it was too far behind")
        self._put(data, is_fact=is_fact)

    def put(self, entry: Down) -> bool:
        """Write down an entry that a reader waits for; False if nothing is taken any more."""
        return self._put(frame(entry), is_fact=False)

    def _put(self, data: bytes, *, is_fact: bool) -> bool:
        with self._changed:
            if self._is_closed:
                return False
            self._kept.append((data, is_fact))
            if is_fact:
                self._facts += len(data)
            else:
                self._urgent += 1
            # While the writer pauses, facts do not wake it.
            if not is_fact or not self._is_pausing:
                self._changed.notify()
            return True

    def next(self) -> bytes:
        """Wait for a batch of frames, the oldest first; nothing once it is closed."""
        with self._changed:
            while not self._kept and not self._is_closed:
                self._changed.wait()
            return b"" if self._is_closed else b"".join(self._batch())

    def _batch(self) -> Iterator[bytes]:
        size = 0
        while self._kept and (not size or size + len(self._kept[0][0]) <= BATCH_MAX):
            data, is_fact = self._kept.popleft()
            size += len(data)
            if is_fact:
                self._in_hand += len(data)
            else:
                self._urgent -= 1
            yield data

    def pause(self) -> None:
        """What was taken is written. Let facts gather, while they are few and nobody waits."""
        with self._changed:
            self._facts -= self._in_hand
            self._in_hand = 0
            # Only while it pauses: afterwards each fact wakes it as before.
            self._is_pausing = True
            self._changed.wait_for(self._is_due, PAUSE_S)
            self._is_pausing = False

    def _is_due(self) -> bool:
        return self._is_closed or self._urgent > 0 or self._facts > BATCH_MAX

    def close(self) -> None:
        """Forget what waits, and take nothing more."""
        with self._changed:
            self._is_closed = True
            self._facts = self._in_hand = 0
            self._kept.clear()
            self._changed.notify()
