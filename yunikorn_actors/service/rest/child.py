"""The read side in a process of its own, which is given the numbers of its two sockets.

It follows by a pipe to the process that has the core, and answers clients. It ends when the
line does, however the other side ended.
"""

import asyncio
import os
import signal
import socket
import ssl
import sys
import time
from concurrent.futures import Future
from contextlib import suppress
from itertools import count
from typing import Any, Final

import msgspec

from yunikorn_actors.errors import NoReply
from yunikorn_actors.messages.codec import decoded
from yunikorn_actors.policies.loading import loaded_from
from yunikorn_actors.service.access_policy import Tls
from yunikorn_actors.service.log_lines import LogStyle
from yunikorn_actors.service.read.read_model import ReadSide
from yunikorn_actors.service.rest.exchange import Refusal
from yunikorn_actors.service.rest.http_server import RestServer
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
    frame,
)
from yunikorn_actors.service.rest.request_guard import Guard
from yunikorn_actors.service.tokens import Tokens
from yunikorn_actors.values.masking import masked_str

ANSWER_S: Final = 30.0
YIELDS: Final = 5
"""How far this process gives way to the core's, as a priority of processes."""
GRACE_S: Final = 1.0
"""How long those who are being answered are waited for at the end."""
_down: Final = msgspec.msgpack.Decoder(Down)


class Child:
    def __init__(self, line: socket.socket, listener: socket.socket) -> None:
        self._line = line
        self._listener = listener
        self._numbers = count(1)
        self._asked: dict[int, Future[Any]] = {}
        self._simulating: set[asyncio.Task[None]] = set()
        self._shift_ns = 0
        """From this process's monotonic clock to the core's."""

    async def run(self) -> None:
        reader, self._writer = await asyncio.open_connection(sock=self._line)
        self._loop = asyncio.get_running_loop()
        begin = await _next(reader)
        assert isinstance(begin, Begin)
        if begin.log_level:
            LogStyle(begin.log_level, begin.log_format).enable(sys.stderr)
        # Times of facts are the core's; its clock and this one have begun at different moments.
        self._shift_ns = begin.now_ns - time.monotonic_ns()
        policies, faults = loaded_from(begin.own_policies)
        side = ReadSide(
            settings=begin.settings, instance=begin.instance, start_ns=begin.start_ns,
            names=begin.policies, topology=begin.topology, schedulers=begin.schedulers,
            policies=policies, policy_faults=faults,
        )  # fmt: skip
        guard = Guard(
            frozenset(begin.names), cors=begin.cors, token=begin.token, read_token=begin.read_token
        )
        self._server = RestServer(side, self, self._now_ns, guard)
        tls: ssl.SSLContext | None = None
        if begin.chain:
            tls = Tls(begin.chain, begin.key, begin.clients).server_context()
        await self._server.start(self._listener, tls)
        self._writer.write(frame(Ready()))
        # It ends with the line, however the process of the core ended.
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await self._follow(reader)
        # A copy: those who ask give up on threads of their own.
        for waiting in tuple(self._asked.values()):
            waiting.cancel()
        await self._server.stop(GRACE_S)

    async def _follow(self, reader: asyncio.StreamReader) -> None:
        while True:
            entry = await _next(reader)
            if isinstance(entry, CoreMessage):
                self._server.receive(decoded(entry.kind, entry.payload), entry.now_ns)
                # Nothing more is read from the line while the read side is behind: that side waits.
                await self._server.room()
            elif isinstance(entry, Renewed):
                self._server.change_tokens(Tokens(entry.token, entry.read_token))
            elif isinstance(entry, Answered):
                waiting = self._asked.pop(entry.number, None)
                # Given up in the meantime; the answer is of use to nobody.
                if waiting is not None and not waiting.cancelled():
                    waiting.set_result(entry)
            elif isinstance(entry, Simulate):
                # As a task: a simulation takes long, and facts come meanwhile.
                self._simulating.add(task := asyncio.create_task(self._simulate(entry)))
                task.add_done_callback(self._simulating.discard)
            # A line that is never empty must not keep those who ask waiting.
            await asyncio.sleep(0)
            # Nor what it costs the threads of the core, which want a processor for a moment each.
            os.sched_yield()

    async def _simulate(self, asked: Simulate) -> None:
        try:
            found = Simulated(asked.number, await self._server.simulated(asked.body))
        except Refusal as refusal:
            found = Simulated(asked.number, error=refusal.text)
        except Exception as error:  # noqa: BLE001 - the edge: somebody waits for an answer
            found = Simulated(asked.number, error=masked_str(error))
        self._writer.write(frame(found))

    def ask(self, question: str, *arguments: str) -> Any:  # noqa: ANN401 - plain values
        """Ask the core, on a thread that may wait."""
        number, waiting = next(self._numbers), Future[Answered]()
        self._asked[number] = waiting
        data = frame(Question(number, question, arguments))
        # On the loop, which alone may write.
        self._loop.call_soon_threadsafe(self._writer.write, data)
        try:
            answered = waiting.result(ANSWER_S)
        except TimeoutError:
            raise NoReply(f"no answer to {question} within {ANSWER_S:.0f} s") from None
        finally:
            self._asked.pop(number, None)
        if answered.error:
            raise NoReply(answered.error)
        return answered.value

    def _now_ns(self) -> int:
        return time.monotonic_ns() + self._shift_ns


async def _next(reader: asyncio.StreamReader) -> Down:
    size = int.from_bytes(await reader.readexactly(LENGTH_BYTES), "big")
    entry: Down = _down.decode(await reader.readexactly(size))
    return entry


def main(line: str, listener: str) -> None:
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    # Blocked until now, by who started this process: one that came meanwhile is ignored, too.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, IGNORED)
    # Readers must not take the processor from the core.
    os.nice(YIELDS)
    asyncio.run(Child(socket.socket(fileno=int(line)), socket.socket(fileno=int(listener))).run())
