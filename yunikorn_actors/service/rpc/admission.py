"""Admission: how much has come in over all connections and is not dealt with.

gRPC takes a message in as a whole before it shows any of it, and bounds one message only: thousands
of streams, each with most of a large message, would take all memory. So the bytes that each
connection has received are compared with those that were dealt with, as the kernel counts the
former. Where too many are held in sum, the connections that hold most are ended: they cannot wait,
as they have sent already.
"""

import asyncio
import os
import socket
import stat
import struct
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import grpc

from yunikorn_actors.recording.logs import logger
from yunikorn_actors.service.rpc.statuses import ERRORS, TooMany, end

HELD_MAX: Final = 512 * 1024 * 1024
"""Bytes, of all connections: some thirty of the largest requests."""
PERIOD_S: Final = 0.1
SHARE: Final = 20
"""Looking takes at most one part in so many of the time of the loop."""
FRAMING: Final = 64
"""Bytes around a message, with what its sender says of flow control."""
FRAMES: Final = 8
"""Bits to shift its length by, for the frames of a large one."""
DESCRIPTORS: Final = "/proc/self/fd"
_COUNTS: Final = struct.Struct("=QQ")
_COUNTS_AT: Final = 120
"""Where `tcpi_bytes_acked` and `tcpi_bytes_received` stand in the TCP_INFO of Linux."""


class Wire(NamedTuple):
    """The counts of one connection at the last look."""

    sent: int = 0
    received: int = 0
    held: int = 0
    is_condemned: bool = False


class OpenCall:
    """One call of a client: what is read from it is held until the next is read."""

    def __init__(self, intake: "Intake", context: "grpc.aio.ServicerContext[Any, Any]") -> None:
        self._intake = intake
        self._context = context
        self.peer: Final = named(context.peer())
        self._under_way = 0

    async def read(self) -> Any:  # noqa: ANN401 - bytes, or gRPC's own end
        # With the next read the one before is dealt with.
        self.done()
        data: Any = await self._context.read()
        if data is not grpc.aio.EOF:
            self._under_way = len(data)
        return data

    async def write(self, data: bytes) -> None:
        await self._context.write(data)

    def done(self) -> None:
        """What was read last is dealt with."""
        if self._under_way:
            self._intake.dealt_with(self.peer, self._under_way)
            self._under_way = 0

    async def abort(self, error: Exception) -> None:
        with suppress(grpc.aio.AbortError, grpc.aio.UsageError, *ERRORS):
            await end(self._context, error)


class Intake:
    def __init__(self) -> None:
        self._wires: dict[str, Wire] = {}
        self._dealt_with: Counter[str] = Counter()
        """Since the last look, by peer."""
        self._calls: dict[str, set[OpenCall]] = {}

    @property
    def held(self) -> int:
        """Bytes that were held when it was looked at last."""
        return sum(wire.held for wire in self._wires.values())

    def open(self, context: "grpc.aio.ServicerContext[Any, Any]") -> OpenCall:
        call = OpenCall(self, context)
        self._calls.setdefault(call.peer, set()).add(call)
        return call

    def close(self, call: OpenCall) -> None:
        call.done()
        calls = self._calls[call.peer]
        calls.discard(call)
        if not calls:
            del self._calls[call.peer]

    def dealt_with(self, peer: str, size: int) -> None:
        # As long as it was on the wire, roughly: the kernel counts the frames, too.
        self._dealt_with[peer] += size + (size >> FRAMES) + FRAMING

    # -- looking

    async def watch(self, port: int) -> None:
        """Look again and again at the connections of the server that listens at this port."""
        if not os.path.isdir(DESCRIPTORS):  # noqa: ASYNC240, PTH112 - of the kernel, no disk
            return
        has_failed = False
        while True:
            begun = time.monotonic()
            try:
                await self._look(port)
            except Exception as error:  # noqa: BLE001 - the edge: without looks nothing is bounded
                # Descriptors may be at their limit for a while.
                if not has_failed:
                    logger.warning("gRPC connections could not be looked at: {}", error)
                has_failed = True
            else:
                has_failed = False
            # Looking at very many connections takes longer, and then it is done less often.
            await asyncio.sleep(max(PERIOD_S, SHARE * (time.monotonic() - begun)))

    async def _look(self, port: int) -> None:
        dealt_with, self._dealt_with = self._dealt_with, Counter()
        wires = dict[str, Wire]()
        for peer, connection in connections_at(port):
            former = self._wires.get(peer, Wire())
            if former.is_condemned:
                # It had its answer with the look before; now its connection ends.
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
                continue
            wires[peer] = _seen(connection, former, dealt_with[peer])
        self._wires = wires
        for peer in self._largest_beyond(HELD_MAX):
            await self._condemn(peer)

    def _largest_beyond(self, most: int) -> list[str]:
        """Name the peers that hold the most, until the rest holds no more than the bound."""
        found, held = [], self.held
        for peer in sorted(self._wires, key=lambda it: self._wires[it].held, reverse=True):
            if held <= most:
                break
            found.append(peer)
            held -= self._wires[peer].held
        return found

    async def _condemn(self, peer: str) -> None:
        """Say why on each call; the connection goes with the next look, whatever it does then."""
        wire = self._wires[peer]
        self._wires[peer] = wire._replace(is_condemned=True)
        logger.warning(
            "a gRPC client at {} was cut off: it held {} bytes of requests", peer, wire.held
        )
        error = TooMany(
            f"requests of more than {HELD_MAX} bytes were coming in, most of them by this "
            "connection: send fewer at a time"
        )
        for call in tuple(self._calls.get(peer, ())):
            await call.abort(error)


def _seen(connection: socket.socket, former: Wire, dealt_with: int) -> Wire:
    """Count the bytes it holds: received, without those that may answer what was sent to it."""
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    sent, received = _COUNTS.unpack_from(info, _COUNTS_AT)
    excess = (received - former.received) - (sent - former.sent) - dealt_with
    # Never below nothing: what was counted as dealt with is an estimate.
    return Wire(sent, received, max(0, former.held + excess))


def connections_at(port: int) -> Iterator[tuple[str, socket.socket]]:
    """Find the connections that this port has taken, each with its peer; a copy for the moment."""
    for entry in os.scandir(DESCRIPTORS):
        try:
            # What is found may be closed at any time, and its number given away; a copy is not.
            number = os.dup(int(entry.name))
        except OSError:
            continue
        if not stat.S_ISSOCK(os.fstat(number).st_mode):
            os.close(number)
            continue
        # One without a peer listens, or is over.
        with socket.socket(fileno=number) as copy, suppress(OSError):
            if copy.family in _FAMILIES and copy.getsockname()[1] == port:
                yield _name(*copy.getpeername()[:2]), copy


_FAMILIES: Final = (socket.AF_INET, socket.AF_INET6)


def named(peer: str) -> str:
    """Name a peer, which gRPC calls `ipv6:%5B::1%5D:4711`, as its socket does."""
    host, _, port = unquote(peer.partition(":")[2]).rpartition(":")
    return _name(host.strip("[]"), port)


def _name(host: str, port: object) -> str:
    return f"{host.partition('%')[0].removeprefix('::ffff:')}:{port}"
