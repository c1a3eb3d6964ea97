"""Streaming: one large answer, fed at the pace of the loop and taken at that of its reader.

It is packed on a thread. What was not taken yet stays in memory, and its producer bounds that; a
reader that takes nothing for too long is given up.
"""

import asyncio
import zlib
from collections import deque
from contextlib import suppress
from typing import Final

from aiohttp import web

CHUNK: Final = 64 * 1024
WRITE_S: Final = 30.0
GZIP_LEVEL: Final = 4
"""What a level more saves takes longer than to send it."""
_GZIP: Final = 16 + zlib.MAX_WBITS


class Sending:
    def __init__(self, request: web.Request, response: web.StreamResponse, packs: bool) -> None:
        self.response = response
        self.size = 0
        """Bytes that were fed and not taken."""
        self._request = request
        self._packer = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, _GZIP) if packs else None
        self._gathered: list[bytes] = []
        self._gathered_size = 0
        self._chunks: deque[bytes] = deque()
        self._fed = asyncio.Event()
        self._is_all = False
        self._task = asyncio.create_task(self._write())
        self._task.add_done_callback(_heed)

    @property
    def has_ended(self) -> bool:
        """Whether nothing is taken any more: its reader has gone."""
        transport = self._request.transport
        return self._task.done() or transport is None or transport.is_closing()

    def feed(self, piece: bytes) -> None:
        self.size += len(piece)
        self._gathered.append(piece)
        self._gathered_size += len(piece)
        # Packed in large pieces: each costs a turn of a thread.
        if self._gathered_size >= CHUNK:
            self._hand_on()

    def end(self) -> None:
        self._hand_on()
        self._is_all = True
        self._fed.set()

    def _hand_on(self) -> None:
        if self._gathered:
            self._chunks.append(b"".join(self._gathered))
            self._gathered, self._gathered_size = [], 0
            self._fed.set()

    async def sent(self) -> None:
        """Wait until its reader has taken it."""
        await self._task

    def close(self) -> None:
        self._task.cancel()
        self._chunks.clear()

    # -- to the reader

    async def _write(self) -> None:
        await self.response.prepare(self._request)
        while not self._is_all or self._chunks:
            if not self._chunks:
                self._fed.clear()
                await self._fed.wait()
                continue
            chunk = self._chunks.popleft()
            await self._put(await self._packed(chunk))
            # Only now is it out of our memory.
            self.size -= len(chunk)
        if self._packer is not None:
            await self._put(self._packer.flush())
        # The reader may be gone at the very end.
        with suppress(ConnectionError):
            await self.response.write_eof()

    async def _packed(self, chunk: bytes) -> bytes:
        if self._packer is None:
            return chunk
        return await asyncio.get_running_loop().run_in_executor(None, self._packer.compress, chunk)

    async def _put(self, data: bytes) -> None:
        if data:
            await asyncio.wait_for(self.response.write(data), WRITE_S)


def _heed(task: "asyncio.Task[None]") -> None:
    """Take its failure: it is raised at the end as well, but perhaps nobody waits for that."""
    if not task.cancelled():
        task.exception()
