"""REST as a part of the service, with the read side in a process of its own.

One interpreter runs one thread at a time. A read side in the core's process takes its share of that
time for every fact and every page; here the core pays for writing each fact down once, and pages
cost it nothing. A process that ends by itself is replaced, and told how everything stands.
"""

import os
import socket
import struct
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final

import msgspec

from yunikorn_actors.errors import CoreFailed, CoreStopped
from yunikorn_actors.messages.base import Message
from yunikorn_actors.messages.codec import encode
from yunikorn_actors.runtime.logs import logger
from yunikorn_actors.service.part import Part, Site
from yunikorn_actors.service.questions import questions_of
from yunikorn_actors.service.rest.line import (
    LENGTH_BYTES,
    Answered,
    Begin,
    Down,
    Heard,
    Question,
    Ready,
    Up,
    frame,
)
from yunikorn_actors.service.rest.part import START_S, listen_at, named

CHILD: Final = "yunikorn_actors.service.rest.child"
CREW: Final = 4
"""So many questions are answered at a time."""
STUCK_S: Final = 30
"""A process that does not read for so long is ended, and so replaced."""
REPLACED_MAX: Final = 3
_up: Final = msgspec.msgpack.Decoder(Up)


def make(site: Site) -> Part:
    return ProcessPart(site)


class ProcessPart(Part):
    def __init__(self, site: Site) -> None:
        self._site = site
        self._core = site.core
        self._questions = questions_of(site)
        self._listener: socket.socket | None = None
        self._line: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._writing = threading.Lock()
        """Frames of facts and frames of answers come from several threads."""
        self._ready = threading.Event()
        self._stopping = False
        self._replaced = 0
        self._following = ""
        self._start_ns = 0
        self._crew = ThreadPoolExecutor(CREW, thread_name_prefix="yunikorn-actors-rest")
        self._reader: threading.Thread | None = None

    @property
    def address(self) -> str:
        return self._site.address if self._listener is None else named(self._listener)

    def start(self) -> None:
        self._listener = listen_at(self._site.address)
        self._core._measure()
        self._start_ns = self._core.clock.now_ns()
        self._spawn()
        self._await_ready()
        self._following = self._core._follow(self)

    def _await_ready(self) -> None:
        assert self._process is not None
        if self._ready.wait(START_S) and self._process.poll() is None:
            return
        ended = self._process.poll()
        self.stop(0.0)
        how = f"within {START_S:g} s" if ended is None else f"and has ended with status {ended}"
        raise OSError(f"the read side has not begun to listen {how}")

    def _spawn(self) -> None:
        assert self._listener is not None
        ours, theirs = socket.socketpair()
        # For sending alone: what is asked may take its time to come.
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", STUCK_S, 0))
        handed = (theirs.fileno(), self._listener.fileno())
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [sys.executable, "-m", CHILD, *map(str, handed)],
                pass_fds=handed,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        self._line = ours
        tls, topology = self._site.tls, self._core._topology
        self._write(
            Begin(
                settings=topology.settings,
                instance=topology.instance,
                start_ns=self._start_ns,
                now_ns=self._core.clock.now_ns(),
                names=self._site.names,
                cors=self._site.cors,
                token=self._site.token,
                chain=b"" if tls is None else tls.chain,
                key=b"" if tls is None else tls.key,
            )
        )
        self._reader = threading.Thread(
            target=self._read, args=(ours, self._process), name="yunikorn-actors-rest", daemon=True
        )
        self._reader.start()

    def hear(self, message: Message) -> None:
        """Write down what the core tells its followers, on one of its threads."""
        now_ns = self._core.clock.now_ns()
        payload = msgspec.Raw(encode(message))
        self._write(Heard(type(message).__name__, now_ns, payload))

    def _write(self, entry: Down) -> None:
        """Write a frame; a process that does not read for so long is ended, and so replaced."""
        line = self._line
        assert line is not None
        try:
            with self._writing:
                line.sendall(frame(entry))
        except OSError:
            if self._process is not None and not self._stopping:
                self._process.kill()

    # -- what the other process asks

    def _read(self, line: socket.socket, process: "subprocess.Popen[bytes]") -> None:
        with line.makefile("rb") as file, suppress(OSError):
            while head := file.read(LENGTH_BYTES):
                entry = _up.decode(file.read(int.from_bytes(head, "big")))
                if isinstance(entry, Ready):
                    self._ready.set()
                else:
                    self._crew.submit(self._answer, entry)
        process.wait()
        line.close()
        self._ready.set()
        if not self._stopping and self._following:
            self._replace()

    def _answer(self, asked: Question) -> None:
        try:
            value = self._questions.ask(asked.question, *asked.arguments)
        except Exception as error:  # noqa: BLE001 - the edge: who asks is told
            self._write(Answered(asked.number, error=str(error) or repr(error)))
        else:
            self._write(Answered(asked.number, value))

    def _replace(self) -> None:
        """Nobody is told anything by a read side that has ended; the next one is told it all."""
        self._core._unfollow(self._following)
        self._replaced += 1
        if self._replaced > REPLACED_MAX:
            logger.error("the read side has ended {} times and is given up", self._replaced)
            return
        logger.warning("the read side has ended, and another takes its place")
        self._spawn()
        with suppress(CoreStopped, CoreFailed):
            self._following = self._core._follow(self)

    # -- the end

    def stop(self, grace: float) -> None:
        self._stopping = True
        if self._following:
            self._core._unfollow(self._following)
        if self._process is not None and self._line is not None:
            # The other side ends with the line; who is in the middle of writing is let go.
            with suppress(OSError):
                self._line.shutdown(socket.SHUT_WR)
            try:
                self._process.wait(grace)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._reader is not None:
            self._reader.join(grace)
        self._crew.shutdown(wait=False, cancel_futures=True)
        if self._listener is not None:
            self._listener.close()
