"""Functions under leases: what the standard library's executors do, and what a lost lease does."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, as_completed, wait
from pathlib import Path
from typing import Any

import pytest
from called import (
    coroutine,
    end_all,
    fail,
    leave,
    let_go,
    square,
    unpicklable,
    wait_for,
)
from fronting import QUEUES
from probes import wait_until

from yunikorn_actors import (
    AskRejected,
    Duplicate,
    InvalidRequest,
    LeaseLost,
    QuantityError,
    Scheduler,
    SchedulerClosed,
    StillWaiting,
    current_lease,
)

PATIENCE_S = 20.0


@pytest.fixture
def s() -> Iterator[Scheduler]:
    with Scheduler(QUEUES, grace=0.3) as scheduler:
        scheduler.add_node("here", vcore=4, memory="8Gi")
        yield scheduler


@pytest.fixture(params=["threads", "processes"])
def pool(s: Scheduler, request: pytest.FixtureRequest) -> Iterator[Executor]:
    with s.executor(request.param, queue="root.batch", user="ann", name="pool") as made:
        yield made


def begun(path: Path) -> Callable[[], bool]:
    return path.with_suffix(".begun").exists


def held(s: Scheduler) -> int:
    node = s.core.state_dump()["partitions"]["[rm-1]default"]["nodes"]["here"]
    amount: int = node["allocated"].get("vcore", 0)
    return amount


# -- as in the standard library


def test_functions_return_and_raise(s: Scheduler, pool: Executor) -> None:
    assert 49 == pool.submit(square, 7).result(PATIENCE_S)
    with pytest.raises(LookupError, match="no such") as caught:
        pool.submit(fail, "no such").result(PATIENCE_S)
    assert "fail" in "".join(getattr(caught.value, "__notes__", ["fail"]))
    assert [n * n for n in range(20)] == list(pool.map(square, range(20), timeout=PATIENCE_S))
    assert 5 == pool.submit(int, "10", base=5).result(PATIENCE_S)
    wait_until(lambda: held(s) == 0)


def test_as_many_run_as_there_is_room_for(s: Scheduler, pool: Executor, tmp_path: Path) -> None:
    files = [tmp_path / str(n) for n in range(6)]
    futures = [pool.submit(wait_for, it) for it in files[:3]]
    wait_until(lambda: all(begun(it)() for it in files[:3]))
    futures.append(pool.submit(wait_for, files[3], vcore=2))  # type: ignore[call-arg]
    futures.append(pool.submit(wait_for, files[4]))
    wait_until(begun(files[4]))
    time.sleep(0.05)
    assert not begun(files[3])()
    assert 4_000 == held(s)
    assert [True, True, True, False, True] == [it.running() for it in futures]
    for path in files:
        let_go(path, path.name)
    assert {"0", "1", "2", "3", "4"} == {
        it.result() for it in as_completed(futures, timeout=PATIENCE_S)
    }


def test_one_that_waits_is_cancelled_and_its_ask_is_withdrawn(
    s: Scheduler, pool: Executor, tmp_path: Path
) -> None:
    first = pool.submit(wait_for, tmp_path / "a", vcore=4)  # type: ignore[call-arg]
    wait_until(begun(tmp_path / "a"))
    second = pool.submit(square, 1, vcore=4)  # type: ignore[call-arg]
    called: list[object] = []
    second.add_done_callback(called.append)
    assert second.cancel()
    assert second.cancel()
    assert [second] == called
    assert ({second}, {first}) == wait([first, second], 0.1)
    with pytest.raises(CancelledError):
        second.result()
    assert not first.cancel()
    wait_until(lambda: "withdrawn" == s.explain("pool", "call-2").state)
    let_go(tmp_path / "a", "done")
    assert "done" == first.result(PATIENCE_S)
    assert not first.cancel()


def test_a_wait_that_ends_says_what_the_function_lacks(s: Scheduler, tmp_path: Path) -> None:
    with s.executor(queue="root.batch", user="ann") as pool:
        future = pool.submit(square, 1, memory="9Gi")
        with pytest.raises(StillWaiting, match="still waits"):
            future.result(0.2)
        assert future.cancel()
        runs = pool.submit(wait_for, tmp_path / "a")
        wait_until(begun(tmp_path / "a"))
        with pytest.raises(TimeoutError) as raised:
            runs.result(0.05)
        assert not isinstance(raised.value, StillWaiting)
        let_go(tmp_path / "a", "")


def test_a_cancellation_and_the_start_exclude_each_other(s: Scheduler) -> None:
    ran: list[int] = []
    with s.executor(queue="root.batch", user="ann") as pool:
        futures = [pool.submit(ran.append, number) for number in range(300)]
        wait_until(lambda: len(ran) > 20)
        cancelled = {number for number, it in enumerate(futures) if it.cancel()}
        wait(futures, PATIENCE_S)
    assert {*range(300)} - cancelled == {*ran}
    assert cancelled
    assert ran
    wait_until(lambda: held(s) == 0)


def test_shutdown_waits_or_withdraws(s: Scheduler, tmp_path: Path) -> None:
    pool = s.executor(queue="root.batch", user="ann", name="one", vcore=4)
    first = pool.submit(wait_for, tmp_path / "a")
    wait_until(begun(tmp_path / "a"))
    second = pool.submit(square, 2)
    pool.shutdown(wait=False)
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(square, 3)
    assert not second.done()
    pool.shutdown(wait=False, cancel_futures=True)
    assert second.cancelled()
    assert first.running()
    threading.Timer(0.1, let_go, [tmp_path / "a", "x"]).start()
    pool.shutdown()
    assert "x" == first.result(0)
    wait_until(lambda: pool.application.state == "Removed")
    # Its id is free again, and no thread of it is left.
    s.executor(queue="root.batch", user="ann", name="one").shutdown()
    wait_until(lambda: not [it for it in threading.enumerate() if "executor" in it.name])


def test_a_block_ends_when_all_have_ended(s: Scheduler) -> None:
    with s.executor(queue="root.batch", user="ann", vcore=4) as pool:
        futures = [pool.submit(time.sleep, 0.05) for _ in range(3)]
    assert all(it.done() for it in futures)


@pytest.mark.parametrize("error", [LookupError, KeyboardInterrupt])
@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_an_error_in_the_block_withdraws_what_waits(
    s: Scheduler, kind: Any, error: type[BaseException], tmp_path: Path
) -> None:
    futures: list[Future[Any]] = []
    left: list[BaseException] = []

    def block() -> None:
        with s.executor(kind, queue="root.batch", user="ann", name="pool", vcore=3) as pool:
            futures.extend([pool.submit(wait_for, tmp_path / "a"), pool.submit(square, 1, vcore=9)])
            wait_until(begun(tmp_path / "a"))
            raise error("the block")

    def program() -> None:
        try:
            block()
        except BaseException as caught:  # noqa: BLE001 - it is what is looked at
            left.append(caught)

    thread = threading.Thread(target=program)
    thread.start()
    try:
        wait_until(lambda: len(futures) == 2 and futures[1].cancelled())
        wait_until(lambda: "withdrawn" == s.explain("pool", "call-2").state)
        assert futures[0].running()
        assert thread.is_alive(), "it waits for what runs"
    finally:
        let_go(tmp_path / "a", "done")
        futures[1].cancel()
        thread.join(PATIENCE_S)
    assert [error] == [type(it) for it in left]
    assert "done" == futures[0].result(0)


def test_what_cannot_be_is_refused(s: Scheduler) -> None:
    with pytest.raises(InvalidRequest, match="kind: must be 'threads' or 'processes', not 'loops'"):
        s.executor("loops", user="ann")  # type: ignore[arg-type]
    with s.executor(queue="root.batch", user="ann", name="one") as pool:
        with pytest.raises(Duplicate):
            s.executor(queue="root.batch", user="ann", name="one")
        with pytest.raises(Exception, match="half"):
            pool.submit(square, 1, vcore="half")
        with pytest.raises(AskRejected):
            pool.submit(square, 1, vcore=0).result(PATIENCE_S)
        with pytest.raises(InvalidRequest, match="must be a function, not str"):
            pool.submit("square")  # type: ignore[arg-type]
        with pytest.raises(InvalidRequest, match="would only make a coroutine"):
            pool.submit(coroutine)
        with pytest.raises(RuntimeError, match=r"shutdown\(wait=False\)"):
            pool.submit(pool.shutdown).result(PATIENCE_S)
        assert 4 == pool.submit(square, 2).result(PATIENCE_S), "nothing has changed"
    with pytest.raises(QuantityError, match="lots"):
        s.executor(queue="root.batch", user="ann", vcore="lots")
    with pytest.raises(InvalidRequest, match="must be a client of Dask"):
        s.executor(queue="root.batch", user="ann", workers=3)  # type: ignore[arg-type]


def test_when_the_scheduler_is_closed_all_futures_end(tmp_path: Path) -> None:
    s = Scheduler().start()
    s.add_node("here", vcore=1)
    pool = s.executor(user="ann")
    runs, waits = pool.submit(wait_for, tmp_path / "a"), pool.submit(square, 1)
    wait_until(begun(tmp_path / "a"))
    s.close()
    with pytest.raises(SchedulerClosed):
        waits.result(PATIENCE_S)
    with pytest.raises(LeaseLost, match="the scheduler was closed"):
        runs.result(PATIENCE_S)
    let_go(tmp_path / "a", "")
    pool.shutdown()


# -- leases that are wanted back, or lost


def preempted(s: Scheduler) -> None:
    """Have all that runs in root.batch preempted."""
    claim = s.application("claim", queue="root.sure", user="bob").ask("claim", vcore=4)
    assert "here" == claim.result(PATIENCE_S).node_id


def test_a_process_is_ended_when_its_lease_is_preempted(tmp_path: Path) -> None:
    with Scheduler(QUEUES, grace=60) as s:
        s.add_node("here", vcore=4)
        with s.executor("processes", queue="root.batch", user="ann", vcore=4) as pool:
            future = pool.submit(wait_for, tmp_path / "a")
            wait_until(begun(tmp_path / "a"))
            pid = int((tmp_path / "a.begun").read_text())
            preempted(s)
            with pytest.raises(LeaseLost, match="preempt"):
                future.result(PATIENCE_S)
            wait_until(lambda: not Path(f"/proc/{pid}").exists())


def test_a_thread_may_look_at_its_lease(s: Scheduler) -> None:
    began = threading.Event()

    def work() -> str:
        lease = current_lease()
        assert lease is not None
        began.set()
        assert lease.wanted_back.wait(PATIENCE_S)
        return "ended early"

    with s.executor(queue="root.batch", user="ann", vcore=4) as pool:
        future = pool.submit(work)
        assert began.wait(PATIENCE_S)
        preempted(s)
        assert "ended early" == future.result(PATIENCE_S)
    assert current_lease() is None


def test_a_thread_that_does_not_end_has_lost_its_lease(s: Scheduler, tmp_path: Path) -> None:
    with s.executor(queue="root.batch", user="ann", vcore=4) as pool:
        future = pool.submit(wait_for, tmp_path / "a")
        wait_until(begun(tmp_path / "a"))
        preempted(s)
        with pytest.raises(LeaseLost, match=r"was not released within 0\.3 s; submit it again"):
            future.result(PATIENCE_S)
        assert not (tmp_path / "a").exists(), "vacuous: the function has ended"
        let_go(tmp_path / "a", "")


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_a_node_that_goes_takes_the_function_with_it(
    s: Scheduler, tmp_path: Path, kind: Any
) -> None:
    with s.executor(kind, queue="root.batch", user="ann", vcore=4) as pool:
        future = pool.submit(wait_for, tmp_path / "a")
        wait_until(begun(tmp_path / "a"))
        s.remove_node("here")
        with pytest.raises(LeaseLost, match="Node here Removed"):
            future.result(PATIENCE_S)
        let_go(tmp_path / "a", "")


# -- processes


def test_processes_are_others_and_are_used_again(s: Scheduler) -> None:
    with s.executor("processes", queue="root.batch", user="ann", vcore=4) as pool:
        pids = {pool.submit(os.getpid).result(PATIENCE_S) for _ in range(4)}
    assert len(pids) == 1
    assert os.getpid() not in pids
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


def test_a_process_that_ends_is_no_end_of_the_others(s: Scheduler) -> None:
    with s.executor("processes", queue="root.batch", user="ann") as pool:
        with pytest.raises(BrokenExecutor, match="has ended with 3"):
            pool.submit(end_all).result(PATIENCE_S)
        with pytest.raises(TypeError, match="cannot pickle"):
            pool.submit(unpicklable).result(PATIENCE_S)
        with pytest.raises(SystemExit):
            pool.submit(leave).result(PATIENCE_S)
        with pytest.raises(Exception, match="pickle"):
            pool.submit(lambda: 1).result(PATIENCE_S)
        assert 4 == pool.submit(square, 2).result(PATIENCE_S)
