"""The recorder: writes what is delivered while the core runs: header, records, footer.

Records are gathered where messages are handled and written by a thread of the recorder, so that no
handler ever waits for a disk. What is gathered is written at once after a pause and every 50 ms
otherwise: of a process that is killed no more than that is missing, and the rest can be read up to
its last whole record. A disk that is too slow loses records, which are counted in their place; one
that is full ends the recording. Neither ends the core.

A flight recorder keeps the last records in memory, and writes them when an operator asks for them
or the core fails.
"""

import atexit
import errno
import platform
import threading
from abc import ABC, abstractmethod
from collections import Counter, deque
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from yunikorn_actors.messages.base import GATEWAY, Delivery, Message, is_callback
from yunikorn_actors.messages.codec import FORMAT_VERSION, encode, state_digest, timed_record_of
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.recording.logs import alarm, logger
from yunikorn_actors.recording.secret_values import masked_record, may_hold_secrets, salted
from yunikorn_actors.recording.trace_file import TraceFile
from yunikorn_actors.values.masking import masked_repr
from yunikorn_actors.version import VERSION

GATHER_S: Final = 0.05
CLOSE_TIMEOUT_S: Final = 30.0
FACTS_KEPT: Final = 64
"""Payloads of facts that are kept for the next machine that handles the same message."""
BACKLOG_BYTES_MAX: Final = 64 * 2**20
"""The most that waits for the disk; records that come above it are dropped and counted."""


class TraceSettings(Struct, frozen=True, kw_only=True):
    """Where and how a core records its run."""

    path: str | Path
    """The file, or a pipe with a reader."""
    compress: bool = False
    """About ten times smaller; every command recognises it."""
    rotate_bytes: int = 0
    """Begin another file when one has this size; 0 writes a single one."""
    keep: int = 5
    """How many files are kept beside the newest one, with `rotate_bytes`."""
    flight_recorder_bytes: int = 0
    """Keep the last records in memory, up to this many bytes, and write them to `path` only if the
    core fails, or elsewhere by `save_trace`; 0 writes all of them as they come."""

    def __post_init__(self) -> None:
        for name in ("rotate_bytes", "keep", "flight_recorder_bytes"):
            value = getattr(self, name)
            if type(value) is not int or value < 0:
                raise ValueError(
                    f"TraceSettings.{name}: {value!r:.100} is not allowed: give 0 or more"
                )


class Recorder(ABC):
    """Takes records from the threads of the core."""

    def __init__(self, settings: TraceSettings, header: dict[str, Any]) -> None:
        self.path = Path(settings.path)
        self.failure: OSError | None = None
        self._header = header
        self._cover = salted()
        self._took_ns: dict[str, int] = {}
        """How long the last handling took, by mailbox; each entry is its mailbox's own."""
        self._is_wary = False
        """Whether a message from outside may hold a secret."""
        self._facts: dict[int, tuple[Message, msgspec.Raw]] = {}
        """By its identity a message that one has handled, and its payload: it is kept with it, so
        no other has its identity meanwhile."""

    def add(self, delivery: Delivery) -> None:
        # Of the handling before: a record is written before its own message is handled.
        took_ns = self._took_ns.pop(delivery.mailbox, None)
        data = encode(timed_record_of(delivery, took_ns, self._payload_of(delivery.message)))
        # What machines send comes of what they received: until then nothing has to be looked for.
        if not self._is_wary and _is_from_outside(delivery):
            self._is_wary = may_hold_secrets(data)
        if self._is_wary:
            data = masked_record(data, self._cover)
        self._gather(delivery.mailbox, data)

    def _payload_of(self, message: Message) -> Message | msgspec.Raw:
        """Encode facts, once: at least two machines handle them."""
        if type(message) is not FactsAppended:
            return message
        # The second one takes it away; two that come at once do the same work.
        _, payload = self._facts.pop(id(message), (message, None))
        if payload is None:
            payload = msgspec.Raw(encode(message))
            # Bounded: some machine may never handle its own.
            if len(self._facts) >= FACTS_KEPT:
                self._facts.clear()
            self._facts[id(message)] = message, payload
        return payload

    def digest_of(self, state: dict[str, Any]) -> str:
        """Return the digest that a machine's state has in the replay, which knows no secrets."""
        return state_digest(msgspec.msgpack.decode(masked_record(encode(state), self._cover)))

    def took(self, mailbox: str, took_ns: int) -> None:
        """Keep how long a handling took, for the next record of its mailbox."""
        self._took_ns[mailbox] = took_ns

    @abstractmethod
    def close(self, footer: dict[str, Any], timeout: float = CLOSE_TIMEOUT_S) -> None:
        """Write what is left and end; a disk that takes longer than this is left to itself."""

    @abstractmethod
    def _gather(self, mailbox: str, data: bytes) -> None: ...

    def _head(self, segment: int) -> bytes:
        written_by = {
            "package": {"name": "yunikorn-actors", "version": VERSION},
            "python": platform.python_version(),
        }
        head = {"record": "header", "format": FORMAT_VERSION, **self._header, **written_by}
        return encode(head if segment == 1 else {**head, "segment": segment})

    def _foot(self, footer: dict[str, Any]) -> bytes:
        took = {"took_ns": self._took_ns} if self._took_ns else {}
        return masked_record(encode({"record": "footer", **footer, **took}), self._cover)


def _is_from_outside(delivery: Delivery) -> bool:
    # Only the gateway and callbacks bring words of others.
    return delivery.sender == GATEWAY or is_callback(delivery.sender)


class FileRecorder(Recorder):
    """Writes records as they come."""

    def __init__(self, settings: TraceSettings, header: dict[str, Any]) -> None:
        super().__init__(settings, header)
        self._file = TraceFile(
            self.path,
            compress=settings.compress,
            rotate_bytes=settings.rotate_bytes,
            keep=settings.keep,
        )
        self._changed = threading.Condition()
        """Guards what is gathered and the failure, between the handlers and the writer."""
        self._gathered = [self._head(1)]
        self._waiting_bytes = 0
        """Of what is gathered and of what the disk is taking at the moment."""
        self._dropped: Counter[str] = Counter()
        """How many records of which mailbox are missing at the end of what is gathered."""
        self._segments = 1
        self._closing = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="yunikorn-actors-recorder", daemon=True
        )
        self._thread.start()
        # A program that ends without closing: the interpreter would cut a daemon thread off.
        atexit.register(self._end, CLOSE_TIMEOUT_S)

    def close(self, footer: dict[str, Any], timeout: float = CLOSE_TIMEOUT_S) -> None:
        with self._changed:
            if self.failure is None and not self._closing.is_set():
                self._report_dropped()
                self._gathered.append(self._foot(footer))
        self._end(timeout)

    def _gather(self, mailbox: str, data: bytes) -> None:
        with self._changed:
            if self.failure is not None or self._closing.is_set():
                return
            # Counted against what the disk has not taken yet, or memory would grow.
            if self._waiting_bytes + len(data) > BACKLOG_BYTES_MAX:
                self._dropped[mailbox] += 1
                return
            # Before the record that comes now, so that the gap stands where it is.
            self._report_dropped()
            self._gathered.append(data)
            self._waiting_bytes += len(data)
            self._changed.notify()

    def _report_dropped(self) -> None:
        if self._dropped:
            gap = {"record": "gap", "messages": self._dropped.total(), "mailboxes": self._dropped}
            self._gathered.append(encode(gap))
            self._dropped = Counter()

    def _end(self, timeout: float) -> None:
        atexit.unregister(self._end)
        with self._changed:
            self._closing.set()
            self._changed.notify()
        # The disk may be stuck: then the core goes on without waiting for ever.
        self._thread.join(timeout)
        if self._thread.is_alive():
            self.failure = OSError(
                errno.ETIMEDOUT, "the disk did not take the trace in time", str(self.path)
            )

    # -- on its own thread

    def _run(self) -> None:
        try:
            while data := self._next():
                # Between two writes: a segment ends with whole records.
                if self._file.is_full:
                    self._segments += 1
                    self._file.rotate()
                    self._file.write(self._head(self._segments))
                self._file.write(data)
                self._written(len(data))
                # A pause that the end cuts short: each write takes all that came in it.
                self._closing.wait(GATHER_S)
            self._file.finish()
        except Exception as error:  # noqa: BLE001 - the edge: nothing would be written any more
            with suppress(Exception):
                self._file.close()
            fault = error if isinstance(error, OSError) else None
            self._fail(fault or OSError(errno.EIO, masked_repr(error)))

    def _next(self) -> bytes:
        """Wait until something was gathered; nothing means the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._gathered or self._closing.is_set())
            # Taken away under the lock, written without it: no handler waits for the disk.
            gathered, self._gathered = self._gathered, []
        return b"".join(gathered)

    def _written(self, size: int) -> None:
        with self._changed:
            self._waiting_bytes = max(0, self._waiting_bytes - size)

    def _fail(self, error: OSError) -> None:
        with self._changed:
            self.failure = error
            # What comes from now on is not kept: there is no disk to take it.
            self._gathered = []
        text = f"the trace {self.path} ends here, the core goes on: {error}"
        # Heard in any case: with logs switched off it goes to standard error.
        if not logger.error("{}", text):
            alarm(text)


class FlightRecorder(Recorder):
    """Keeps the last records in memory."""

    def __init__(self, settings: TraceSettings, header: dict[str, Any]) -> None:
        super().__init__(settings, header)
        self._compress = settings.compress
        self._bytes_max = settings.flight_recorder_bytes
        self._lock = threading.Lock()
        self._kept: deque[bytes] = deque()
        self._bytes = 0
        self._has_lost = False
        """Whether it begins later than the run."""

    def close(self, footer: dict[str, Any], timeout: float = CLOSE_TIMEOUT_S) -> None:  # noqa: ARG002
        """Write what is kept if the core has failed: nobody is left to ask for it."""
        if "failure" in footer:
            try:
                self.save(self.path, self._foot(footer))
            except OSError as error:
                self.failure = error
                logger.error("the trace {} could not be written: {}", self.path, error)

    def save(self, path: Path, foot: bytes = b"") -> None:
        """Write what is kept at this moment; without a footer it is a run that goes on."""
        with self._lock:
            kept = tuple(self._kept)
        file = TraceFile(path, compress=self._compress, rotate_bytes=0, keep=0)
        try:
            # The beginning is missing, so it is written as a later segment.
            file.write(self._head(2 if self._has_lost else 1))
            file.write(b"".join(kept) + foot)
            file.finish()
        finally:
            file.close()

    def _gather(self, mailbox: str, data: bytes) -> None:  # noqa: ARG002
        with self._lock:
            self._kept.append(data)
            self._bytes += len(data)
            while self._bytes > self._bytes_max:
                self._bytes -= len(self._kept.popleft())
                self._has_lost = True


def recorder_of(settings: TraceSettings, header: dict[str, Any]) -> Recorder:
    kind = FlightRecorder if settings.flight_recorder_bytes else FileRecorder
    return kind(settings, header)
