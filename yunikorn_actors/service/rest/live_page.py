"""What live pages are sent: at most one picture a second, worked out once for all of them.

A picture comes in parts, and a page is sent those that have changed since the one that it took
last. A browser that does not read is waited for; then it gets the newest picture, and those in
between were never made for it. So a page costs the same however slow it is, and however much
happens.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, Generic, NamedTuple

import msgspec

from yunikorn_actors.errors import CoreFailed, CoreStopped, NoReply
from yunikorn_actors.messages.base import role_of
from yunikorn_actors.planning.reasons import IN_WORDS
from yunikorn_actors.service.listener import Questions
from yunikorn_actors.service.read.incremental_answers import Steps, T
from yunikorn_actors.service.read.overview import overview
from yunikorn_actors.service.read.read_model import ReadSide
from yunikorn_actors.service.rest.exchange import Refusal
from yunikorn_actors.service.rest.loop_slices import Slices
from yunikorn_actors.values.masking import masked

EVERY_S: Final = 1.0
SHARE: Final = 20
"""A picture is followed by a pause that is at least so many times as long as the work on it."""
PAGES_MAX: Final = 20
QUIET_S: Final = 5.0
"""What asks wait for may change without any fact: a rest ends, a node is refused."""
FLOWS_MAX: Final = 60
_UNAVAILABLE: Final = 503


class Picture(NamedTuple):
    parts: dict[str, bytes]
    """Each as JSON."""
    made_s: float
    pause_s: float


class Counted(NamedTuple):
    """What asks of a partition waited for, and for how long that holds if nothing happens."""

    revision: int
    until_s: float
    causes: dict[str, int]


class Live:
    def __init__(
        self,
        side: ReadSide,
        questions: Questions,
        now_ns: Callable[[], int],
        failure: Callable[[], str],
        closing: asyncio.Event,
        slices: Slices,
    ) -> None:
        """`failure` says why the read side is not the truth any more; empty while it is."""
        self._side = side
        self._questions = questions
        self._now_ns = now_ns
        self._failure = failure
        self._closing = closing
        self._slices = slices
        self._pages = Counter[str]()
        """How many show which partition, by the name that they asked for."""
        self._pictures: dict[str, Picture] = {}
        self._counted: dict[str, Counted] = {}
        """By partition; written by the thread that asks, one at a time."""
        self._making = asyncio.Lock()

    @contextmanager
    def opened(self, name: str) -> Iterator[None]:
        """Count a page that shows this partition; there are so many and no more."""
        if self._pages.total() >= PAGES_MAX:
            raise Refusal(
                _UNAVAILABLE,
                f"{PAGES_MAX} live pages are open, and more are not served",
                "close one; a page that is not in front is not counted",
            )
        self._pages[name] += 1
        try:
            yield
        finally:
            self._pages[name] -= 1
            if not self._pages[name]:
                del self._pages[name]
                self._pictures.pop(name, None)

    async def follow(self, name: str) -> AsyncGenerator[bytes]:
        """Yield server-sent events, each when the one before it was taken."""
        # What this page has taken; only other parts are sent.
        sent: dict[str, bytes] = {}
        while not self._closing.is_set():
            picture = await self._picture(name)
            yield _event(self._now_ns(), picture.parts, sent)
            sent = picture.parts
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), picture.pause_s)

    async def _picture(self, name: str) -> Picture:
        # One at a time: the others wait for the picture and share it.
        async with self._making:
            last = self._pictures.get(name)
            # Of the last second, or of the pause that its cost has earned.
            if last is None or time.monotonic() >= last.made_s + last.pause_s:
                last = self._pictures[name] = await self._make(name)
            return last

    async def _make(self, name: str) -> Picture:
        book = self._side.partition(name) if name else next(iter(self._side.books.values()), None)
        shown = None if book is None else (book.name, book.state.revision)
        # On a thread, before anything stands still.
        answer = await asyncio.get_running_loop().run_in_executor(None, self._core_parts, shown)
        parts: dict[str, Any] = answer | {"failure": self._failure() or answer["failure"]}
        work = Timed(lambda: self._encoded(parts, name))
        encoded = await self._slices.done(work.begin)
        return Picture(encoded, time.monotonic(), max(EVERY_S, SHARE * work.took_s))

    def _encoded(self, parts: dict[str, Any], name: str) -> Steps[dict[str, bytes]]:
        if not self._failure():
            # Only if nobody needs the state as it is: the time changes what is shown.
            if not self._slices.stands_still:
                self._side.catch_up(max(self._side.now_ns, self._now_ns()))
            found = yield from overview(self._side, name)
            parts = parts | {"since_ns": self._side.start_ns} | found
        return {part: msgspec.json.encode(value) for part, value in parts.items()}

    def _core_parts(self, shown: tuple[str, int] | None) -> dict[str, Any]:
        """Ask the core what facts cannot tell: of the partition that is shown, if there is one."""
        try:
            failure = self._questions.ask("is_ready")
            answer = {"failure": failure, "core": _core(self._questions.ask("mailboxes"))}
            if shown is not None and not failure:
                answer |= {"waiting": self._causes(*shown), "words": IN_WORDS}
        except (CoreStopped, CoreFailed, NoReply) as error:
            return {"failure": masked(str(error)).partition(";")[0]}
        else:
            return answer

    def _causes(self, partition: str, revision: int) -> dict[str, int]:
        """Ask how many asks wait for what; without any news only now and then.

        Each question is handled by the planner, and shows in the figures of the actors.
        """
        last = self._counted.get(partition)
        # The same revision and lately counted: nothing has happened that would change it.
        if last is not None and last.revision == revision and time.monotonic() < last.until_s:
            return last.causes
        causes: dict[str, int] = self._questions.ask("causes", partition).get(partition, {})
        self._counted[partition] = Counted(revision, time.monotonic() + QUIET_S, causes)
        return causes


class Timed(Generic[T]):
    """Steps, and how much of a processor they took."""

    def __init__(self, steps: Callable[[], Steps[T]]) -> None:
        self._steps = steps
        self.took_s = 0.0

    def begin(self) -> Steps[T]:
        steps = self._steps()
        while True:
            # Time of the processor, not of the clock: pauses cost nothing.
            begin_s = time.thread_time()
            try:
                next(steps)
            except StopIteration as end:
                value: T = end.value
                return value
            finally:
                self.took_s += time.thread_time() - begin_s
            yield


def _core(answer: dict[str, Any]) -> dict[str, Any]:
    metered = answer["metered"] or {}
    lengths, boxes = Counter[str](), Counter[str]()
    for address, length in answer["lengths"].items():
        lengths[role_of(address)] += length
        boxes[role_of(address)] += 1
    figures = metered.get("actors", {})
    flows = sorted(metered.get("flows", ()), key=lambda flow: -flow[-1])[:FLOWS_MAX]
    return {
        "actors": [
            {
                "role": role,
                "length": lengths[role],
                "boxes": boxes[role],
                **_figures(figures.get(role)),
            }
            for role in sorted(lengths | figures)
        ],
        "flows": [
            {"from": sender, "to": receiver, "message": message, "count": count}
            for sender, receiver, message, count in flows
        ],
        "dead_letters": metered.get("dead_letters", 0),
        "callback_errors": sum(answer["callback_errors"].values()),
        "unhandled": sum(answer["unhandled"].values()),
    }


def _figures(measured: dict[str, Any] | None) -> dict[str, int]:
    if measured is None:
        return {"messages": 0, "waiting_ns": 0, "busy_ns": 0, "worst_ns": 0}
    return {
        "messages": measured["messages"],
        "waiting_ns": measured["waiting_ns"],
        "busy_ns": measured["handling"]["total_ns"],
        "worst_ns": measured["worst_ns"],
    }


def _event(now_ns: int, parts: dict[str, bytes], sent: dict[str, bytes]) -> bytes:
    # What is the same as what was sent is left out.
    changed = {name: msgspec.Raw(it) for name, it in parts.items() if sent.get(name) != it}
    return b"data: " + msgspec.json.encode({"now_ns": now_ns, **changed}) + b"\n\n"
