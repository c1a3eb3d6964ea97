"""Long work on the loop, in slices: nobody waits long for the loop, and the work sees one revision.

What is done within one slice is done at once. Work that takes longer begins anew while the read
side stands still: facts wait, everybody else is served, and when it is done what waited is taken in
slices as well. Work that comes while the read side stands still joins, if that has not gone on for
long already; otherwise it waits until all facts are taken, so the read side never stays behind.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager
from typing import Final, TypeVar, cast

from yunikorn_actors.messages.base import Message
from yunikorn_actors.service.rest.exchange import Refusal

T = TypeVar("T")
P = TypeVar("P")
Work = Generator[P, None, T]
SLICE_S: Final = 0.002
POLL_S: Final = 0.005
WORKS_MAX: Final = 4
"""At a time: each has a slice of every turn of the loop."""
JOIN_S: Final = 1.0
"""Facts that have waited for this time are taken before anything else begins."""
WAITING_MAX: Final = 16
PATIENCE_S: Final = 60.0
LATE_MAX: Final = 20_000
"""Messages that may wait; a sender of more waits as well."""
RETRY_S: Final = 5
_UNAVAILABLE: Final = 503


class Slices:
    def __init__(self, take: Callable[[Message, int], None]) -> None:
        self._take = take
        self._late: deque[tuple[Message, int]] = deque()
        self._works = 0
        self._stands_since = 0.0
        self._waiting = 0
        self._beginning = asyncio.Lock()
        self._draining: asyncio.Task[None] | None = None

    @property
    def stands_still(self) -> bool:
        """Whether a reader needs a state that must not change."""
        return self._works > 0

    # -- facts

    def receive(self, message: Message, now_ns: int) -> None:
        """Take the message at once, or queue it behind those that wait."""
        if self._works or self._late:
            self._late.append((message, now_ns))
        else:
            self._take(message, now_ns)

    async def room(self) -> None:
        """Wait while too many messages wait."""
        while len(self._late) > LATE_MAX:  # noqa: ASYNC110 - it empties by itself
            await asyncio.sleep(POLL_S)

    async def _drain(self) -> None:
        while self._late:
            end_s = time.perf_counter() + SLICE_S
            while self._late and time.perf_counter() < end_s:
                self._take(*self._late.popleft())
            await asyncio.sleep(0)

    # -- work

    async def done(self, begin: Callable[[], Work[P, T]]) -> T:
        """Do it; what it yields is nothing but pauses."""
        # A first slice at once: most work needs no more, and nothing has to stand still.
        work = begin()
        is_done, value = _slice(work, _drop)
        if not is_done:
            work.close()
            # It begins anew, because the state may have changed since its first slice.
            async with self.standing():
                work = begin()
                try:
                    while not is_done:
                        is_done, value = _slice(work, _drop)
                        await asyncio.sleep(0)
                finally:
                    work.close()
        return cast(T, value)

    async def first(self, work: Work[P, None], put: Callable[[P], None]) -> bool:
        """Do the first slice of it; say whether that was all.

        Very many may begin in one turn of the loop: those that take long have a turn each.
        """
        # One after the other, as each of them would take a slice of the same turn.
        async with self._beginning:
            begin_s = time.perf_counter()
            is_all, _ = _slice(work, put)
            if time.perf_counter() > begin_s + SLICE_S / 4:
                await asyncio.sleep(0)
        return is_all

    async def pieces(self, work: Work[P, None]) -> AsyncGenerator[list[P]]:
        """Do it while the read side stands still, and give what each slice has made."""
        is_done = False
        try:
            while not is_done:
                made: list[P] = []
                is_done = _slice(work, made.append)[0]
                yield made
                await asyncio.sleep(0)
        finally:
            work.close()

    @asynccontextmanager
    async def standing(self) -> AsyncIterator[None]:
        """Keep the state as it is meanwhile."""
        await self._enter()
        try:
            yield
        finally:
            self._works -= 1
            if not self._works:
                self._draining = asyncio.create_task(self._drain())

    async def _enter(self) -> None:
        if self._waiting >= WAITING_MAX:
            raise _busy()
        self._waiting += 1
        end_s = time.perf_counter() + PATIENCE_S
        try:
            while not self._may_enter():
                if time.perf_counter() > end_s:
                    raise _busy()
                await asyncio.sleep(POLL_S)
        finally:
            self._waiting -= 1
        if not self._works:
            self._stands_since = time.perf_counter()
        self._works += 1

    def _may_enter(self) -> bool:
        # Nobody works: it may begin once the facts are taken that waited for the last one.
        if not self._works:
            return not self._late
        # Not too many at a time, and not once facts have waited for long.
        has_room = self._works < WORKS_MAX
        return has_room and time.perf_counter() < self._stands_since + JOIN_S


def _drop(_: object) -> None:
    """A pause is nothing to keep."""


def _busy() -> Refusal:
    return Refusal(
        _UNAVAILABLE, "too many large answers are being made", "ask again later", retry_s=RETRY_S
    )


def _slice(work: Work[P, T], put: Callable[[P], None]) -> tuple[bool, T | None]:
    """Go on with work for one slice of time; return whether it is done, and its result."""
    end_s = time.perf_counter() + SLICE_S
    while True:
        try:
            put(next(work))
        except StopIteration as end:
            return True, end.value
        if time.perf_counter() >= end_s:
            return False, None
