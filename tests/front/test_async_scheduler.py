"""The front on an event loop: the same books, and futures, events and conditions on the loop."""

import asyncio
import threading
from collections.abc import Callable, Coroutine

import pytest
from fronting import PATIENCE_S, QUEUES
from looping import on_a_loop, until

from yunikorn_actors import (
    ApplicationEnded,
    ApplicationRejected,
    AskRejected,
    AsyncApplication,
    AsyncLease,
    AsyncResourceManagerCallback,
    AsyncScheduler,
    AsyncSchedulerCore,
    CoreStopped,
    Duplicate,
    InvalidRequest,
    NodeRejected,
    SchedulerClosed,
    UnknownName,
    WouldBlock,
    si,
)


async def a_job(s: AsyncScheduler, name: str = "a", queue: str = "root.batch") -> AsyncApplication:
    return await s.application(name, queue=queue, user="ann")


async def placed(future: "asyncio.Future[AsyncLease]") -> AsyncLease:
    return await asyncio.wait_for(future, PATIENCE_S)


@on_a_loop
async def test_an_ask_gets_a_lease() -> None:
    async with AsyncScheduler(QUEUES) as s:
        assert [] == await s.add_node("n1", vcore=4)
        app = await a_job(s)
        async with await placed(app.ask("t", vcore="500m")) as lease:
            assert ("n1", "held") == (lease.node_id, lease.state)
            assert [lease] == app.leases
            assert "placed" == (await app.explain("t")).state
        assert "released" == lease.state
        leases = await asyncio.gather(*app.ask("u", vcore=1, count=3))
        assert ["u-1", "u-2", "u-3"] == [it.key for it in leases]
        assert ["n1"] == list(s.nodes)
        dump = await s.core.state_dump()
        assert 3_000 == dump["partitions"]["[rm-1]default"]["nodes"]["n1"]["allocated"]["vcore"]


@on_a_loop
async def test_what_does_not_wait_may_be_awaited_too() -> None:
    async with AsyncScheduler(QUEUES) as s:
        await s.add_node("n1", vcore=4)
        app = await a_job(s)
        lease = await placed(app.ask("t", vcore=1))
        await s.drain("n1")
        await s.resume("n1")
        await lease.release()
        assert "released" == lease.state
        await asyncio.gather(s.remove_node("n1"), app.close())
        assert {} == s.nodes == s.applications


@on_a_loop
async def test_what_is_refused_is_raised() -> None:
    async with AsyncScheduler(QUEUES) as s:
        await s.add_node("n1", vcore=4)
        app = await a_job(s)
        with pytest.raises(Duplicate):
            await s.add_node("n1", vcore=4)
        with pytest.raises(UnknownName):
            s.drain("n2")
        with pytest.raises(ApplicationRejected, match="no queue"):
            await a_job(s, "b", "root.nope")
        with pytest.raises(AskRejected, match="contains no resources"):
            await app.ask("zero", vcore=0)
        with pytest.raises(InvalidRequest):
            s.events("nonsense")  # type: ignore[arg-type]
        with pytest.raises(InvalidRequest):
            AsyncScheduler(callback=si.ResourceManagerCallback)  # type: ignore[arg-type]


@on_a_loop
async def test_cancelling_withdraws_the_ask() -> None:
    async with AsyncScheduler(QUEUES) as s:
        await s.add_node("n1", vcore=4)
        app = await a_job(s)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(app.ask("big", vcore=100), 0.01)
        await until(lambda: "big" not in app._record.by_key)
        assert "withdrawn" == (await app.explain("big")).state
        waiting = asyncio.ensure_future(placed(app.ask("big", vcore=100)))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        await until(lambda: "big" not in app._record.by_key)
        assert "n1" == (await placed(app.ask("big", vcore=1))).node_id


async def _alone(future: "asyncio.Future[AsyncLease]") -> AsyncLease:
    return await future


async def _in_a_timeout(future: "asyncio.Future[AsyncLease]") -> AsyncLease:
    async with asyncio.timeout(PATIENCE_S):
        return await future


async def _gathered(future: "asyncio.Future[AsyncLease]") -> AsyncLease:
    # Beside one that is never done, so that `gather` has not taken the lease.
    leases = await asyncio.gather(future, asyncio.get_running_loop().create_future())
    lease: AsyncLease = leases[0]
    return lease


@pytest.mark.parametrize("wait", [_alone, _in_a_timeout, _gathered])
@on_a_loop
async def test_a_lease_that_comes_as_its_wait_is_cancelled_goes_back(
    wait: Callable[["asyncio.Future[AsyncLease]"], Coroutine[None, None, AsyncLease]],
) -> None:
    """The future is done, and the task that awaits it is cancelled before it is resumed."""
    async with AsyncScheduler(QUEUES) as s:
        await s.add_node("n1", vcore=4)
        app = await a_job(s)
        future = app.ask("t", vcore=4)
        found = list[bool]()

        def cancel(_: object) -> None:
            found.append(task.cancel())

        # Added before the task awaits it, so this is called before the task is resumed.
        future.add_done_callback(cancel)
        task = asyncio.create_task(wait(future))
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [True] == found
        assert future.done()
        assert not future.cancelled(), "the race did not take place: the lease came too late"
        assert "released" == future.result().state
        assert "next" == (await placed(app.ask("next", vcore=4))).key


@on_a_loop
async def test_a_lease_that_somebody_has_stays_when_its_future_is_cancelled() -> None:
    async with AsyncScheduler(QUEUES) as s:
        await s.add_node("n1", vcore=4)
        app = await a_job(s)
        awaited, read = app.ask("t", vcore=1, count=2)
        lease = await awaited
        await asyncio.wait([read])
        assert "held" == read.result().state
        assert not awaited.cancel()
        assert not read.cancel()
        assert ["held", "held"] == [lease.state, read.result().state]


@on_a_loop
async def test_a_call_that_is_cancelled_has_taken_nothing() -> None:
    go_on = threading.Event()
    async with AsyncScheduler(QUEUES) as s:
        hearing = s._operations.callback
        hear_of_nodes, hear_of_apps = hearing.update_node, hearing.update_application

        def held_node(response: si.NodeResponse) -> None:
            assert go_on.wait(PATIENCE_S)
            hear_of_nodes(response)

        def held_app(response: si.ApplicationResponse) -> None:
            assert go_on.wait(PATIENCE_S)
            hear_of_apps(response)

        hearing.update_node = held_node  # type: ignore[method-assign]
        hearing.update_application = held_app  # type: ignore[method-assign]
        for call in (s.add_node("n1", vcore=4), a_job(s)):
            task = asyncio.ensure_future(call)  # type: ignore[arg-type]
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
        assert [] == list(s.nodes)
        go_on.set()
        await s.add_node("n1", vcore=4)
        assert "n1" == (await placed((await a_job(s)).ask("t", vcore=1))).node_id


@on_a_loop
async def test_calls_are_for_the_loop_of_the_scheduler() -> None:
    async with AsyncScheduler(QUEUES) as s:
        app = await a_job(s)

        def on_another_loop() -> None:
            with pytest.raises(RuntimeError, match="run_coroutine_threadsafe"):
                asyncio.run(asyncio.wait_for(s.add_node("n1", vcore=4), 1))

        def on_no_loop() -> None:
            with pytest.raises(RuntimeError, match="run_coroutine_threadsafe"):
                app.ask("t", vcore=1)

        await asyncio.to_thread(on_another_loop)
        await asyncio.to_thread(on_no_loop)
        assert [] == await s.add_node("n1", vcore=4)
        assert "n1" == (await placed(app.ask("t", vcore=1))).node_id


@on_a_loop
async def test_fits_runs_on_the_loop_and_may_wait() -> None:
    threads: set[int] = set()
    raised: list[type[BaseException]] = []

    async def fits(node_id: str) -> bool:
        threads.add(threading.get_ident())
        await asyncio.sleep(0)
        try:
            await s.add_node(f"{node_id}-more", vcore=1)
        except WouldBlock as error:
            raised.append(type(error))
        return node_id == "n2"

    async with AsyncScheduler(QUEUES) as s:
        await s.add_node("n1", vcore=4)
        await s.add_node("n2", vcore=4)
        app = await a_job(s)
        assert "n2" == (await placed(app.ask("t", vcore=1, fits=fits))).node_id
        lease = await placed(app.ask("u", vcore=1, fits=lambda node_id: node_id == "n1"))
        assert "n1" == lease.node_id
        assert {threading.get_ident()} == threads
        assert {WouldBlock} == set(raised)


@on_a_loop
async def test_fits_that_does_not_return_does_not_hold_up_the_end() -> None:
    is_asked = asyncio.Event()

    async def fits(_: str) -> bool:
        is_asked.set()
        return await asyncio.get_running_loop().create_future()

    async with AsyncScheduler(QUEUES) as s:
        await s.add_node("n1", vcore=4)
        waits = (await a_job(s)).ask("t", vcore=1, fits=fits)
        await is_asked.wait()
    with pytest.raises(SchedulerClosed):
        await waits


@on_a_loop
async def test_the_callback_answers_on_the_loop() -> None:
    class Mine(AsyncResourceManagerCallback):
        async def predicates(self, args: si.PredicatesArgs) -> str | None:
            await asyncio.sleep(0)
            return "no disk" if args.node_id == "n1" else None

        def get_state_dump(self) -> str:
            return '{"mine": 1}'

    async with AsyncScheduler(QUEUES, callback=Mine()) as s:
        await s.add_node("n1", vcore=4)
        await s.add_node("n2", vcore=4)
        assert "n2" == (await placed((await a_job(s)).ask("t", vcore=1))).node_id
        assert {"mine": 1} == (await s.core.state_dump())["rm_diagnostics"]["rm-1"]


@on_a_loop
async def test_a_lease_is_wanted_back() -> None:
    async with AsyncScheduler(QUEUES, grace=PATIENCE_S * 10) as s:
        await s.add_node("n1", vcore=4)
        lease = await placed((await a_job(s)).ask("t", vcore=4))
        sure = (await a_job(s, "s", "root.sure")).ask("u", vcore=4)
        await asyncio.wait_for(lease.wanted_back.wait(), PATIENCE_S)
        assert "wanted back" == lease.state
        lease.release()
        other = await placed(sure)
        s.remove_node("n1")
        await asyncio.wait_for(other.wanted_back.wait(), PATIENCE_S)
        assert other.lost


@on_a_loop
async def test_events_come_on_the_loop() -> None:
    async with AsyncScheduler(QUEUES) as s, s.events("placed", "node") as events:
        await s.add_node("n1", vcore=4)
        (await a_job(s)).ask("t", vcore=1)
        seen: list[str] = []
        async for event in events:
            if event.kind == "placed":
                seen.append(event.lease.key)
                break
            if event.kind == "node":
                seen.append(event.node_id)
        await until(lambda: events)
    assert ["n1", "t"] == seen
    assert [] == [event async for event in events]


@on_a_loop
async def test_when_it_is_closed_everything_ends() -> None:
    async with AsyncScheduler(QUEUES) as s:
        await s.add_node("n1", vcore=4)
        app = await a_job(s)
        lease = await placed(app.ask("t", vcore=3))
        waits = app.ask("u", vcore=3)
        async with await a_job(s, "b") as closed:
            left = closed.ask("v", vcore=100)
        with pytest.raises(ApplicationEnded):
            await left
        told = asyncio.ensure_future(anext(s.events("node")))
        await asyncio.sleep(0)
    with pytest.raises(SchedulerClosed):
        await waits
    with pytest.raises(StopAsyncIteration):
        await told
    await asyncio.wait_for(lease.wanted_back.wait(), PATIENCE_S)
    assert lease.lost
    for call in (
        s.add_node("n2", vcore=1),
        a_job(s, "c"),
        s.explain("a", "t"),
        s.configure(QUEUES),
    ):
        with pytest.raises(SchedulerClosed):
            await call
    await s.close()


@on_a_loop
async def test_a_core_that_is_stopped_ends_everything() -> None:
    async with AsyncScheduler(QUEUES) as s:
        waits = (await a_job(s)).ask("u", vcore=3)
        await s.core.stop()
        # Whether the ask was sent before the core ended is up to the threads.
        with pytest.raises(CoreStopped, match=r"the core (was|is) stopped"):
            await waits


@on_a_loop
async def test_work_that_runs_already_has_its_lease() -> None:
    async with AsyncScheduler(QUEUES) as s:
        await s.add_node("n1", vcore=4)
        kept = (await placed((await a_job(s)).ask("t", vcore=2))).running
    async with AsyncScheduler(QUEUES) as s:
        await a_job(s)
        [lease] = await s.add_node("n1", vcore=4, running=[kept])
        assert kept == lease.running


@on_a_loop
async def test_a_rejected_node_says_why() -> None:
    async with AsyncScheduler(QUEUES, partition="nowhere") as s:
        with pytest.raises(NodeRejected, match="nowhere"):
            await s.add_node("n1", vcore=4)
        assert [] == list(s.nodes)


@on_a_loop
async def test_closing_a_front_that_was_refused_leaves_the_core_to_the_other() -> None:
    core = AsyncSchedulerCore()
    async with AsyncScheduler(QUEUES, core=core) as s:
        await s.add_node("n1", vcore=4)
        app = await a_job(s)
        lease = await placed(app.ask("t", vcore=1))
        other = AsyncScheduler(QUEUES, core=core, rm_id="rm-2")
        with pytest.raises(CoreStopped, match="a core is started once"):
            await other.start()
        await other.close()
        assert "held" == lease.state
        assert "u" == (await placed(app.ask("u", vcore=1))).key
