"""Event records as they come: on threads, on a loop, and what becomes of a slow reader."""

import asyncio
import threading
from collections.abc import Callable
from itertools import islice

import pytest
from looping import break_down, on_a_loop, until
from looping import register as register_on_a_loop
from probes import PATIENCE_S, add_nodes, wait_until
from support import CONFIG, RM, Recorder

from yunikorn_actors import AsyncSchedulerCore, CoreFailed, Refused, SchedulerCore, WouldBlock, si
from yunikorn_actors.messages.base import CONTEXT
from yunikorn_actors.messages.queries import Accepted
from yunikorn_actors.runtime import event_streams as streams
from yunikorn_actors.runtime.aio import AsyncEventStream
from yunikorn_actors.runtime.event_streams import EventStream, Feed


def register(core: SchedulerCore, rm: Recorder | None = None, **extra: str) -> None:
    request = si.RegisterResourceManagerRequest(
        rm_id=RM,
        config=CONFIG,
        extra_config={f"event.{name}": text for name, text in extra.items()},
    )
    core.register_resource_manager(request, rm or Recorder())


def each_node(name: str) -> list[str]:
    """What is told of: that it came, that it is schedulable, how large the cluster is now."""
    return [name, name, "root"]


def test_records_come_as_they_are_made() -> None:
    with SchedulerCore() as core:
        register(core)
        with core.event_stream() as stream:
            add_nodes(core, "n1", "n2")
            told = [*each_node("n1"), *each_node("n2")]
            assert told == [e.object_id for e in islice(stream, len(told))]
            add_nodes(core, "n3")
            assert "n3" == next(stream).object_id
        assert 0 == stream.overflow


def test_history_comes_first_and_nothing_is_missed_or_told_twice() -> None:
    """The stream is opened in the middle of a storm of events."""
    with SchedulerCore() as core:
        register(core)
        names = [f"n{number}" for number in range(300)]
        storm = threading.Thread(target=lambda: [add_nodes(core, name) for name in names])
        storm.start()
        with core.event_stream(history=10_000) as stream:
            told = list(islice(stream, 2 + sum(len(each_node(name)) for name in names)))
        storm.join()
        wait_until(core.is_settled)
        assert list(core.events().records) == told


@pytest.mark.parametrize(("history", "expected"), [(0, 0), (1, 1), (-5, 0), (100, 2)])
def test_as_much_history_as_is_wished_and_stored(history: int, expected: int) -> None:
    with SchedulerCore() as core:
        register(core)
        with core.event_stream(history) as stream:
            add_nodes(core, "n1")
            told = list(islice(stream, expected + 1))
        assert "n1" == told[-1].object_id
        assert ["root", "root.default"][2 - expected :] == [e.object_id for e in told[:-1]]


def test_what_is_too_much_is_counted_and_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yunikorn_actors.runtime.event_streams.ROOM", 3)
    with SchedulerCore() as core:
        register(core)
        with core.event_stream() as slow, core.event_stream(history=100) as quick:
            add_nodes(core, "n1", "n2", "n3")
            wait_until(lambda: slow.overflow)
            assert each_node("n1") == [e.object_id for e in islice(slow, 3)]
            assert 6 == slow.overflow
            assert 11 == len(list(islice(quick, 11)))
            assert 0 == quick.overflow


def test_too_many_streams_are_refused_and_a_closed_one_makes_room() -> None:
    with SchedulerCore() as core:
        register(core, maxStreams="1")
        first = core.event_stream()
        with pytest.raises(Refused, match="too many event streams: 1 are open"):
            core.event_stream()
        first.close()
        first.close()
        core.event_stream().close()
        assert [] == list(first)


def test_a_reader_who_waits_is_let_go_by_whoever_closes() -> None:
    with SchedulerCore() as core:
        register(core)
        stream = core.event_stream()
        told: list[si.EventRecord] = []
        reader = threading.Thread(target=lambda: told.extend(stream))
        reader.start()
        stream.close()
        reader.join(PATIENCE_S)
        assert not reader.is_alive()


ENDS: dict[str, Callable[[SchedulerCore], None]] = {
    "stopped": lambda core: core.stop(),
    "failed": lambda core: (core._post(CONTEXT, Accepted(), "test"), core._go_on()),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_reader_is_told_of_the_end(end: str) -> None:
    core = SchedulerCore().start()
    register(core)
    stream = core.event_stream(history=1)
    assert "root.default" == next(stream).object_id
    ENDS[end](core)
    if end == "failed":
        with pytest.raises(CoreFailed):
            next(stream)
    assert end == "failed" or [] == list(stream)
    stream.close()
    core.stop()


class Opener(Recorder):
    """Opens a stream from inside a callback."""

    def __init__(self, core: SchedulerCore) -> None:
        super().__init__()
        self._core = core
        self.raised: list[Exception] = []

    def update_node(self, response: si.NodeResponse) -> None:
        super().update_node(response)
        try:
            self._core.event_stream()
        except WouldBlock as error:
            self.raised.append(error)


def test_opening_one_inside_a_callback_is_refused() -> None:
    with SchedulerCore() as core:
        rm = Opener(core)
        register(core, rm)
        add_nodes(core, "n1")
        wait_until(lambda: rm.raised)


# -- on a loop


def node(name: str) -> si.NodeRequest:
    info = si.NodeInfo(node_id=name, action=si.ActionFromRM.CREATE)
    return si.NodeRequest(rm_id=RM, nodes=(info,))


@on_a_loop
async def test_on_an_event_loop() -> None:
    async with AsyncSchedulerCore() as core:
        await register_on_a_loop(core)
        async with await core.event_stream(history=1) as stream:
            assert "root.default" == (await anext(stream)).object_id
            waiting = asyncio.ensure_future(anext(stream))
            await asyncio.sleep(0)
            assert not waiting.done()
            await core.update_node(node("n1"))
            assert "n1" == (await waiting).object_id
            assert 0 == stream.overflow


@on_a_loop
async def test_a_stream_on_a_loop_ends_with_the_core() -> None:
    async with AsyncSchedulerCore() as core:
        await register_on_a_loop(core)
        stream = await core.event_stream()
        waiting = asyncio.ensure_future(anext(stream, None))
        await asyncio.sleep(0)
    assert await waiting is None


@on_a_loop
async def test_a_reader_on_a_loop_is_told_of_a_failure() -> None:
    core = await AsyncSchedulerCore().start()
    await register_on_a_loop(core)
    stream = await core.event_stream()
    break_down(core)
    with pytest.raises(CoreFailed):
        await anext(stream)
    await core.stop()


@on_a_loop
async def test_a_slow_reader_on_a_loop_holds_up_nobody() -> None:
    async with AsyncSchedulerCore() as core:
        await register_on_a_loop(core)
        stream = await core.event_stream()
        names = [f"n{number}" for number in range(streams.ROOM)]
        infos = tuple(si.NodeInfo(node_id=n, action=si.ActionFromRM.CREATE) for n in names)
        await core.update_node(si.NodeRequest(rm_id=RM, nodes=infos))
        await until(lambda: stream.overflow == streams.ROOM)
        assert "n0" == (await anext(stream)).object_id
        await stream.close()


class Hurried(Feed):
    """Something happens right after a reader has seen that there is nothing to take."""

    def __init__(self, happens: Callable[[Feed], None]) -> None:
        super().__init__(room=1)
        self._happens = happens
        self.has_happened = False

    def take(self) -> si.EventRecord | None:
        record = super().take()
        if not self.has_happened:
            assert record is None
            self.has_happened = True
            happening = threading.Thread(target=self._happens, args=(self,))
            happening.start()
            # The last step, waking the reader, may have to wait until the reader waits.
            wait_until(lambda: self.has_ended)
        return record


LAST = si.EventRecord(object_id="last")


def tell_and_end(feed: Feed) -> None:
    feed.kept.append(LAST)
    feed.end()


def fail(feed: Feed) -> None:
    feed.end(CoreFailed("it broke"))


def read_on_threads(feed: Feed) -> list[si.EventRecord]:
    return list(EventStream(feed, lambda: None))


def read_on_a_loop(feed: Feed) -> list[si.EventRecord]:
    async def read() -> list[si.EventRecord]:
        return [record async for record in AsyncEventStream(feed, left)]

    async def left() -> None: ...

    return asyncio.run(read())


@pytest.mark.parametrize("read", [read_on_threads, read_on_a_loop])
def test_a_record_and_the_end_come_between_looking_and_waiting(
    read: Callable[[Feed], list[si.EventRecord]],
) -> None:
    feed = Hurried(tell_and_end)
    assert [LAST] == read(feed)
    assert feed.has_happened


@pytest.mark.parametrize("read", [read_on_threads, read_on_a_loop])
def test_a_failure_comes_between_looking_and_waiting(
    read: Callable[[Feed], list[si.EventRecord]],
) -> None:
    feed = Hurried(fail)
    with pytest.raises(CoreFailed):
        read(feed)
    assert feed.has_happened
