"""Functions under leases on an event loop: awaited, cancelled, ended with their lease."""

import asyncio
import os
import threading
import time
from concurrent.futures import wait as wait_for
from typing import Any

import pytest
from called import fail, square
from fronting import PATIENCE_S, QUEUES
from looping import on_a_loop, until

from yunikorn_actors import (
    AskRejected,
    AsyncScheduler,
    InvalidRequest,
    LeaseLost,
    SchedulerClosed,
    WouldBlock,
    current_lease,
)


def held(s: AsyncScheduler) -> int:
    return s.nodes["here"].used.get("vcore", 0)


async def started(s: AsyncScheduler) -> AsyncScheduler:
    await s.add_node("here", vcore=4, memory="8Gi")
    return s


@pytest.mark.parametrize("kind", ["threads", "processes"])
@on_a_loop
async def test_functions_are_awaited(kind: Any) -> None:
    loop = asyncio.get_running_loop()
    async with AsyncScheduler(QUEUES) as s:
        await started(s)
        async with s.executor(kind, queue="root.batch", user="ann", name="pool") as pool:
            assert 49 == await pool.submit(square, 7)
            assert 64 == await loop.run_in_executor(pool, square, 8)
            with pytest.raises(LookupError, match="no such"):
                await pool.submit(fail, "no such")
            assert [0, 1, 4] == await asyncio.gather(*[pool.submit(square, it) for it in range(3)])
            assert [0, 1, 4, 9] == [it async for it in pool.map(square, range(4))]
            assert (os.getpid() == await pool.submit(os.getpid)) == (kind == "threads")
            assert 5 == await pool.submit(int, "10", base=5)
            assert "pool" in s.applications
        assert "pool" not in s.applications
        await until(lambda: held(s) == 0)


@on_a_loop
async def test_as_many_run_as_there_is_room_for_and_the_loop_goes_on() -> None:
    go, begun = threading.Event(), list[int]()

    def work() -> bool:
        begun.append(threading.get_ident())
        return go.wait(PATIENCE_S)

    async with AsyncScheduler(QUEUES) as s, s.executor(queue="root.batch", user="ann") as pool:
        await started(s)
        futures = [pool.submit(work) for _ in range(6)]
        await until(lambda: held(s) == 4_000)
        await asyncio.sleep(0.05)
        assert not any(it.done() for it in futures)
        # Withdrawn on cancelling: the last that waits, and one by a time limit.
        assert futures.pop().cancel()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(futures.pop(), 0.05)
        go.set()
        assert [True] * 4 == await asyncio.gather(*futures)
    assert 4 == len(begun), "what was cancelled has not run"


@on_a_loop
async def test_a_function_sees_that_its_lease_is_wanted_back() -> None:
    began = threading.Event()

    def work() -> str:
        lease = current_lease()
        assert lease is not None
        began.set()
        assert lease.wanted_back.wait(PATIENCE_S)
        return f"{lease.state}: {lease.reason}"

    async with AsyncScheduler(QUEUES) as s:
        await started(s)
        async with s.executor(queue="root.batch", user="ann", vcore=4) as pool:
            future = pool.submit(work)
            await until(began.is_set)
            claim = await s.application("claim", queue="root.sure", user="bob")
            async with await claim.ask("claim", vcore=4):
                assert "wanted back: " in await future
    assert current_lease() is None


@pytest.mark.parametrize("kind", ["threads", "processes"])
@on_a_loop
async def test_a_node_that_goes_takes_the_function_with_it(kind: Any) -> None:
    async with AsyncScheduler(QUEUES) as s:
        await started(s)
        async with s.executor(kind, queue="root.batch", user="ann") as pool:
            future = pool.submit(time.sleep, 0.5 if kind == "threads" else 60)
            await until(lambda: held(s) == 1_000)
            s.remove_node("here")
            with pytest.raises(LeaseLost, match="Node here Removed"):
                await future


@on_a_loop
async def test_what_is_wrong_says_what_to_write() -> None:
    async def coroutine() -> None:
        """Never called."""

    async with AsyncScheduler(QUEUES) as s:
        await started(s)
        pool = s.executor(queue="root.batch", user="ann")
        with pytest.raises(RuntimeError, match="async with"):
            pool.submit(square, 1)
        with pytest.raises(TypeError, match="async with"), pool:
            pass
        assert pool is await pool
        with pytest.raises(InvalidRequest, match="await app"):
            pool.submit(coroutine)
        with pytest.raises(TypeError, match=r"await asyncio\.wait"):
            wait_for([pool.submit(square, 1)])
        with pytest.raises(InvalidRequest, match="must be a client of Dask"):
            s.executor(user="ann", workers="tcp://here")  # type: ignore[arg-type]
        with pytest.raises(InvalidRequest, match="must be a function, not int"):
            pool.submit(3)  # type: ignore[arg-type]
        with pytest.raises(InvalidRequest, match="await pool"):
            pool.shutdown()
        with pytest.raises(asyncio.InvalidStateError, match="write `await`"):
            pool.submit(square, 1).result()
        with pytest.raises(AskRejected):
            await pool.submit(square, 1, vcore=0)
        with pytest.raises(RuntimeError, match="StopIteration"):
            await pool.submit(next, iter(()))
        pool.shutdown(wait=False)
        with pytest.raises(RuntimeError, match="after shutdown"):
            pool.submit(square, 1)
        await pool.close()
        await pool.close()


@on_a_loop
async def test_a_result_is_not_awaited_inside_fits() -> None:
    blocked: list[str] = []

    async def fits(_: str) -> bool:
        for wait in (asyncio.shield, lambda it: asyncio.wait_for(it, 1), lambda it: it):
            try:
                await wait(pool.submit(square, 1))
            except WouldBlock as error:
                blocked.append(str(error))
        try:
            await other.close()
        except WouldBlock as error:
            blocked.append(str(error))
        return True

    async with AsyncScheduler(QUEUES) as s, s.executor(queue="root.batch", user="ann") as pool:
        await started(s)
        other = await s.executor(queue="root.batch", user="ann", vcore=9)
        waits = other.submit(square, 1)
        app = await s.application("a", queue="root.batch", user="ann")
        async with await app.ask("t", vcore=1, fits=fits):
            assert waits.cancel()
        await other.close()
    assert 4 == len(blocked)


@on_a_loop
async def test_all_ends_with_the_scheduler() -> None:
    s = await AsyncScheduler(QUEUES).start()
    await s.add_node("here", vcore=1)
    pool = await s.executor(queue="root.batch", user="ann")
    go = threading.Event()
    runs, waits = pool.submit(go.wait, PATIENCE_S), pool.submit(square, 1)
    await until(lambda: held(s) == 1_000)
    await s.close()
    with pytest.raises(SchedulerClosed):
        await waits
    with pytest.raises(LeaseLost, match="the scheduler was closed"):
        await runs
    go.set()
    await pool.close()


@on_a_loop
async def test_an_error_in_the_block_withdraws_what_waits() -> None:
    go = threading.Event()
    async with AsyncScheduler(QUEUES) as s:
        await started(s)
        futures: list[asyncio.Future[Any]] = []

        async def block() -> None:
            async with s.executor(queue="root.batch", user="ann", vcore=4) as pool:
                futures.extend([pool.submit(go.wait, PATIENCE_S), pool.submit(square, 1)])
                await until(lambda: held(s) == 4_000)
                asyncio.get_running_loop().call_later(0.05, go.set)
                raise LookupError("the block")

        with pytest.raises(LookupError, match="the block"):
            await block()
        assert await futures[0]
        assert futures[1].cancelled()
