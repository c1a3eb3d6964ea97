"""A reader that goes while its stream opens leaves nothing behind, on a loop or by gRPC."""

import asyncio
import gc
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("grpc")
import grpc
from calling import EXTENSION
from looping import on_a_loop, register, tick, until
from probes import PATIENCE_S, wait_until

from yunikorn_actors import AsyncSchedulerCore, CoreStopped, NoReply, Refused, SchedulerCore
from yunikorn_actors.core.following import Followers
from yunikorn_actors.messages.base import Message
from yunikorn_actors.messages.followers import FollowEnded
from yunikorn_actors.messages.queries import EventStreamLeft
from yunikorn_actors.runtime import ordered_calls
from yunikorn_actors.runtime.event_streams import Feed
from yunikorn_actors.service.listener import Standing
from yunikorn_actors.service.rpc import messages as m
from yunikorn_actors.service.rpc.extension import Extension
from yunikorn_actors.service.rpc.managers import Manager, Managers
from yunikorn_actors.service.rpc.outgoing import Outlet
from yunikorn_actors.service.rpc.protobuf import UnknownFields, codec
from yunikorn_actors.service.service import Serving

ASKED = codec(m.EventStreamRequest).encode(m.EventStreamRequest(history=0))


class HeldOpening:
    """Opens feeds of a core, each only when it may; so a reader can go in between."""

    def __init__(self, core: SchedulerCore) -> None:
        self._open_feed = core.open_feed
        self.reached = threading.Event()
        self.may_open = threading.Event()
        self.was_opened = threading.Event()
        core.open_feed = self  # type: ignore[method-assign, assignment]

    def __call__(self, feed: Feed, history: int) -> Callable[[], None]:
        self.reached.set()
        assert self.may_open.wait(PATIENCE_S)
        close = self._open_feed(feed, history)
        self.was_opened.set()
        return close


def test_a_call_that_is_cancelled_while_its_stream_opens_holds_no_place(
    serve: Callable[..., Serving], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred of them would lock out every reader for good."""
    has_gone = threading.Event()
    tell = Extension._event_stream

    async def event_stream(self: Extension, *parts: Any) -> None:
        try:
            await tell(self, *parts)
        finally:
            has_gone.set()

    monkeypatch.setattr(Extension, "_event_stream", event_stream)
    serving = serve(core := SchedulerCore())
    held = HeldOpening(core)
    with grpc.insecure_channel(serving.parts["grpc"].address) as channel:
        call = channel.unary_stream(f"{EXTENSION}/EventStream")(ASKED)
        assert held.reached.wait(PATIENCE_S)
        call.cancel()
        assert has_gone.wait(PATIENCE_S)
    assert not held.was_opened.is_set(), "it was to be cancelled while it opens"
    held.may_open.set()
    assert held.was_opened.wait(PATIENCE_S)
    wait_until(lambda: not core._feeds)


@on_a_loop
async def test_a_reader_that_has_gone_before_the_first_answer_holds_no_place() -> None:
    with SchedulerCore() as core:
        managers = Managers(core, 1.0)

        async def write(_: bytes) -> None:
            raise grpc.aio.UsageError("the call is over")

        served = Extension(managers, UnknownFields(), Standing())
        with pytest.raises(grpc.aio.UsageError):
            await served._event_stream(ASKED, write)
        assert not core._feeds
        await managers.close(nothing)


@on_a_loop
async def test_a_request_of_a_caller_that_has_gone_is_refused_without_a_word() -> None:
    """The loop would report the refusal as an error that nobody has looked at."""
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, report: reported.append(report))
    with SchedulerCore() as core:
        managers = Managers(core, 1.0)
        manager = Manager("rm-1", Outlet((), asyncio.get_running_loop(), 1.0))
        taken: list[str] = []
        async with managers._turn("rm-1"):
            asked = managers.say(manager, lambda: taken.append("request"), may_block=False)
            task = asyncio.ensure_future(asked)
            await tick()
            await cancelled(task)
            manager.end(CoreStopped("the service is being stopped"), None)
        await tick()
        gc.collect()
        assert not taken, "it was to be refused"
        assert not reported
        await managers.close(nothing)


async def nothing() -> None:
    pass


async def cancelled(task: "asyncio.Task[Any]") -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@on_a_loop
async def test_a_reader_on_a_loop_that_is_cancelled_while_its_stream_opens_holds_no_place() -> None:
    async with AsyncSchedulerCore() as core:
        held = HeldOpening(core._core)
        opening = asyncio.create_task(core.event_stream())
        await until(held.reached.is_set)
        await cancelled(opening)
        assert not held.was_opened.is_set()
        held.may_open.set()
        await until(held.was_opened.is_set)
        await until(lambda: not core._core._feeds)


@on_a_loop
async def test_a_reader_on_a_loop_that_is_cancelled_while_it_leaves_has_left() -> None:
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setattr(ordered_calls, "THREADS_MAX", 1)
    async with AsyncSchedulerCore() as core:
        monkeypatch.undo()
        await register(core)
        stream = await core.event_stream()
        may_go_on, is_held = threading.Event(), threading.Event()

        def hold() -> None:
            is_held.set()
            may_go_on.wait(PATIENCE_S)

        core._calls.submit(None, hold)
        await until(is_held.is_set)
        leaving = asyncio.create_task(stream.close())
        await tick()
        await cancelled(leaving)
        assert core._core._feeds, "it was to be cancelled before its turn"
        may_go_on.set()
        await until(lambda: not core._core._feeds)
        assert stream._feed.has_ended


@on_a_loop
async def test_a_stream_is_left_though_the_core_was_stopped() -> None:
    async with AsyncSchedulerCore() as core:
        stream = await core.event_stream()
    await stream.close()
    assert [] == [it async for it in stream]


# -- a core that accepts when nobody waits for that any more


class Unanswering:
    """A driver whose core gives no reply in time."""

    def __init__(self, error: Exception) -> None:
        self.posted: list[Message] = []
        self.closed: list[str] = []
        self._error = error
        self.open_callback = self.open_follower = lambda *_: None
        self.close_callback = self.closed.append
        self.afterwards = threading.Lock()
        self.name = str

    def post(self, _: str, message: Message, __: str) -> None:
        self.posted.append(message)

    def await_acceptance(self, *_: object) -> None:
        raise self._error


@pytest.mark.parametrize(
    ("method", "left"), [("open_stream", EventStreamLeft), ("follow", FollowEnded)]
)
def test_who_has_no_reply_in_time_leaves(method: str, left: type[Message]) -> None:
    """The core may accept it later, and would then send to nobody for ever."""
    driver = Unanswering(NoReply("no reply"))
    followers = Followers(driver)  # type: ignore[arg-type]
    arguments = (Feed(1), 0) if method == "open_stream" else (SimpleNamespace(),)
    with pytest.raises(NoReply):
        getattr(followers, method)(*arguments)
    assert [left] == [type(it) for it in driver.posted]
    assert 1 == len(driver.closed)


def test_who_was_refused_has_nothing_to_leave() -> None:
    driver = Unanswering(Refused("too many event streams"))
    with pytest.raises(Refused):
        Followers(driver).open_stream(Feed(1), 0)  # type: ignore[arg-type]
    assert not driver.posted
    assert 1 == len(driver.closed)
