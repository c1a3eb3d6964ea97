"""A proxy for TCP that cuts connections, or swallows what is sent to one side, when a test wants it."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, Literal

Side = Literal["client", "service"]


class Cutter:
    """Listens at `address` and leads to `target`, which may be another one for the next client.

    What is swallowed is gone, so a connection that has lost some is of no use until it is cut.
    """

    def __init__(self, target: str) -> None:
        self.target: str | None = target
        """Where the next connection leads; None: it is closed as soon as it comes."""
        self.taken = 0
        """Connections that have come."""
        self.swallowed: Final[dict[Side, int]] = {"client": 0, "service": 0}
        """Bytes that were sent to this side and did not reach it."""
        self._deaf: set[Side] = set()
        self._lock = threading.Lock()
        self._open: list[tuple[socket.socket, socket.socket]] = []
        self._all: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: Final = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._listen, name="cutter", daemon=True).start()

    def swallow(self, *sides: Side) -> None:
        """From now on nothing reaches these sides, on the connections that there are."""
        with self._lock:
            self._deaf.update(sides)

    def cut(self) -> None:
        """Break all connections, as a router does that has forgotten them; new ones pass."""
        with self._lock:
            left, self._open = self._open, []
            self._deaf.clear()
        for pair in left:
            for end in pair:
                _reset(end)

    def forget(self) -> None:
        """Leave the connections as they are, half open and deaf; new ones pass."""
        with self._lock:
            self._open = []
            self._deaf.clear()

    def close(self) -> None:
        self._listener.close()
        self.target = None
        self.cut()
        for end in self._all:
            _reset(end)

    # -- on threads

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self.taken += 1
                self._lead(client)

    def _lead(self, client: socket.socket) -> None:
        if self.target is None:
            _reset(client)
            return
        host, _, port = self.target.rpartition(":")
        try:
            service = socket.create_connection((host, int(port)))
        except OSError:
            _reset(client)
            return
        pair = (client, service)
        with self._lock:
            self._open.append(pair)
            self._all += pair
        for source, sink, side in ((client, service, "service"), (service, client, "client")):
            threading.Thread(
                target=self._carry, args=(pair, source, sink, side), name="cutter", daemon=True
            ).start()

    def _carry(
        self,
        pair: tuple[socket.socket, socket.socket],
        source: socket.socket,
        sink: socket.socket,
        side: Side,
    ) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                with self._lock:
                    is_heard = pair in self._open and side not in self._deaf
                    if not is_heard:
                        self.swallowed[side] += len(data)
                if is_heard:
                    sink.sendall(data)
        with self._lock:
            is_known = pair in self._open
        if is_known:
            # One side has closed; so does the other.
            with suppress(OSError):
                sink.shutdown(socket.SHUT_WR)


def _reset(end: socket.socket) -> None:
    """Close it so that the other side hears of it at once."""
    with suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        end.shutdown(socket.SHUT_RDWR)
    with suppress(OSError):
        end.close()


@contextmanager
def cutter(target: str) -> Iterator[Cutter]:
    made = Cutter(target)
    try:
        yield made
    finally:
        made.close()
