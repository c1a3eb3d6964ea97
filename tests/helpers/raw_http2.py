"""A client that sends part of a message and no more: HTTP/2 by hand, as libraries send wholes."""

import socket
import struct
from typing import Final, Self

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 4, 6, 7, 8
END_HEADERS, ACK = 4, 1
FIRST_WINDOW: Final = 65_535
PIECE: Final = 16_384


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return (
        len(payload).to_bytes(3, "big") + bytes((kind, flags)) + struct.pack(">I", stream) + payload
    )


def _field(name: str, value: str) -> bytes:
    """A literal that no table keeps; both are shorter than 127 bytes."""
    return b"\x00" + bytes((len(name),)) + name.encode() + bytes((len(value),)) + value.encode()


class Hoarder:
    """One connection; used in a `with` block."""

    def __init__(self, address: str, patience_s: float) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=patience_s)
        self._socket.sendall(PREFACE + frame(SETTINGS, 0, 0, b""))
        self._file = self._socket.makefile("rb")
        self._windows = {0: FIRST_WINDOW}
        self._first_window = FIRST_WINDOW
        self.statuses: list[bytes] = []
        """Of streams that the server has ended."""

    def call(self, stream: int, method: str) -> None:
        fields = {
            ":method": "POST", ":scheme": "http", ":path": method, ":authority": "localhost",
            "content-type": "application/grpc", "te": "trailers",
        }  # fmt: skip
        block = b"".join(_field(name, value) for name, value in fields.items())
        self._windows[stream] = self._first_window
        self._socket.sendall(frame(HEADERS, END_HEADERS, stream, block))

    def send(self, stream: int, size: int, *, of: int) -> None:
        """Send that much of a message; wait where the server lets it wait."""
        left = struct.pack(">BI", 0, of) + bytes(size)
        while left:
            room = min(self._windows[0], self._windows[stream], PIECE)
            if room <= 0:
                self.hear()
                continue
            piece, left = left[:room], left[room:]
            self._windows[0] -= len(piece)
            self._windows[stream] -= len(piece)
            self._socket.sendall(frame(DATA, 0, stream, piece))

    def hear(self) -> None:
        """Take one frame; raise ConnectionError at the end."""
        head = self._file.read(9)
        if len(head) < 9:
            raise ConnectionResetError("the server has closed the connection")
        payload = self._file.read(int.from_bytes(head[:3], "big"))
        kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
        if kind == WINDOW_UPDATE:
            self._windows[stream] = self._windows.get(stream, 0) + int.from_bytes(payload, "big")
        elif kind == SETTINGS and not flags & ACK:
            self._set(payload)
            self._socket.sendall(frame(SETTINGS, ACK, 0, b""))
        elif kind == PING and not flags & ACK:
            self._socket.sendall(frame(PING, ACK, 0, payload))
        elif kind == HEADERS and flags & 1:
            self.statuses.append(payload)

    def _set(self, payload: bytes) -> None:
        for name, value in struct.iter_unpack(">HI", payload):
            if name == 4:  # how much of each stream may be sent at first
                for stream in self._windows:
                    self._windows[stream] += (value - self._first_window) * (stream > 0)
                self._first_window = value

    def hear_to_the_end(self) -> None:
        while True:
            self.hear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
