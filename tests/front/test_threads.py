"""Any thread may call, done callbacks do what they like, and every failure reaches the program."""

import gc
import os
import random
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait

import pytest
from fronting import PATIENCE_S, QUEUES, break_down, raised
from probes import wait_until

from yunikorn_actors import (
    Application,
    ApplicationEnded,
    ApplicationRejected,
    CoreFailed,
    CoreStopped,
    Lease,
    NodeRejected,
    ResponsesLost,
    Scheduler,
    SchedulerClosed,
    SchedulerCore,
    Settings,
    UnknownResourceManager,
    WouldBlock,
    si,
)
from yunikorn_actors.front import callback, futures, subscriptions
from yunikorn_actors.front.futures import CallbackThreads


def a_job(s: Scheduler, name: str = "a") -> Application:
    return s.application(name, queue="root.batch", user="ann")


# -- done callbacks


def test_done_callbacks_that_block_or_raise_harm_nobody(capfd: pytest.CaptureFixture[str]) -> None:
    gate = threading.Event()
    called: list[str] = []

    def blocks(_: "Future[Lease]") -> None:
        called.append("blocks")
        gate.wait(PATIENCE_S)

    def raises(_: "Future[Lease]") -> None:
        called.append("raises")
        raise SystemExit("enough")

    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=8)
        app = a_job(s)
        for number, callback in enumerate([blocks, raises, blocks, raises, blocks]):
            future = app.ask(f"t{number}", vcore=1)
            future.add_done_callback(callback)
            future.result(PATIENCE_S)
        told = threading.Event()
        app.ask("last", vcore=1).add_done_callback(lambda _: told.set())
        assert told.wait(PATIENCE_S)
        wait_until(lambda: sorted(called) == ["blocks"] * 3 + ["raises"] * 2)
        gate.set()
    printed: list[str] = []

    def complaints() -> int:
        printed.append(capfd.readouterr().err)
        return "".join(printed).count("SystemExit: enough")

    wait_until(lambda: complaints() == 2)


def test_a_done_callback_may_make_any_call() -> None:
    done: "Future[list[object]]" = Future()

    def calls(future: "Future[Lease]") -> None:
        try:
            said: list[object] = [future.result().key]
            other = a_job(s, "b")
            s.add_node("n2", vcore=1)
            said.append(other.ask("u", vcore=1).result(PATIENCE_S).key)
            future.result().release()
            said.append(str(app.explain("t")))
            s.close()
            done.set_result(said)
        except BaseException as error:
            done.set_exception(error)
            raise

    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=4)
        app = a_job(s)
        waits = app.ask("waits", vcore=100)
        app.ask("t", vcore=1).add_done_callback(calls)
        assert ["t", "u", "t of a: released; the program gave it back"] == done.result(PATIENCE_S)
        raised(lambda: waits.result(PATIENCE_S), SchedulerClosed)


def test_a_callback_of_a_future_that_is_done_runs_elsewhere_too() -> None:
    threads: list[threading.Thread] = []
    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=4)
        future = a_job(s).ask("t", vcore=1)
        future.result(PATIENCE_S)
        future.add_done_callback(lambda _: threads.append(threading.current_thread()))
        wait_until(lambda: threads)
    assert threading.current_thread() not in threads


def test_many_quick_calls_need_few_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    monkeypatch.setattr(futures, "IDLE_S", 0.01)
    start = CallbackThreads._start

    def counted(self: CallbackThreads) -> None:
        started.append(1)
        start(self)

    monkeypatch.setattr(CallbackThreads, "_start", counted)
    pool, made = CallbackThreads(), []
    for number in range(1_000):
        pool.call(lambda number=number: made.append(number))  # type: ignore[misc]
    wait_until(lambda: len(made) == 1_000)
    assert list(range(1_000)) == sorted(made)
    assert len(started) < 500
    pool.close()
    pool.call(lambda: made.append(-1))
    wait_until(lambda: -1 in made)


# -- inside the core


def test_fits_may_call_but_not_wait() -> None:
    blocked: list[str] = []
    asked: "list[Future[Lease]]" = []

    def fits(_: str) -> bool:
        if not asked:
            asked.append(app.ask("u", vcore=1))
        calls: tuple[Callable[[], object], ...] = (
            lambda: a_job(s, "b"),
            lambda: s.add_node("n2", vcore=1),
            lambda: app.explain("t"),
        )
        blocked.extend(raised(call, WouldBlock) for call in calls)
        return True

    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=4)
        app = a_job(s)
        app.ask("t", vcore=1, fits=fits).result(PATIENCE_S)
        assert "n1" == asked[0].result(PATIENCE_S).node_id
    assert 3 == len(blocked)


def test_fits_that_raises_is_a_no_and_is_told() -> None:
    told: list[str] = []

    def fits(node_id: str) -> bool:
        raise ValueError(node_id)

    core = SchedulerCore(
        settings=Settings(predicate_timeout_ns="1m"),
        on_callback_error=lambda raised: told.append(repr(raised.error)),
    )
    with Scheduler(QUEUES, core=core) as s:
        s.add_node("n1", vcore=4)
        app = a_job(s)
        future = app.ask("t", vcore=1, fits=fits)
        wait_until(lambda: told)
        assert "ValueError('n1')" in told
        assert not future.done()


def test_fits_that_does_not_return_is_told_of_once(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its question comes while the timer of an earlier one, that was answered, still runs."""
    monkeypatch.setattr(callback, "STUCK_S", 0.1)
    go_on = threading.Event()
    told = ""

    def is_told() -> bool:
        nonlocal told
        told += capfd.readouterr().err
        return "has not returned" in told

    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=4)
        app = a_job(s)
        app.ask("quick", vcore=1, fits=lambda _: True).result(PATIENCE_S)
        slow = app.ask("slow", vcore=1, fits=lambda _: go_on.wait(PATIENCE_S))
        wait_until(is_told)
        assert not s._operations.session.outbox._due
        go_on.set()
        assert "n1" == slow.result(PATIENCE_S).node_id
    is_told()
    assert 1 == told.count("\n")
    assert "fits of 'slow' of 'a' was asked about 'n1' and has not returned for 0.1 s" in told


def test_the_scheduler_may_be_closed_inside_fits() -> None:
    def fits(_: str) -> bool:
        s.close()
        return True

    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=4)
        future = a_job(s).ask("t", vcore=1, fits=fits)
        raised(lambda: future.result(PATIENCE_S), SchedulerClosed)


def test_an_answer_is_for_the_one_that_was_asked_about() -> None:
    """A node and an application are taken back, and asked for again, before the core answers."""
    go_on = threading.Event()
    with Scheduler(QUEUES) as s, ThreadPoolExecutor(4) as threads:
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
        node = threads.submit(s.add_node, "n1", vcore=4)
        app = threads.submit(s.application, "a", queue="root.batch", user="ann")
        wait_until(lambda: s.nodes and s._operations._applications.find("a"))
        s.remove_node("n1")
        s._operations.close_application(s._operations._applications.find("a"))
        assert "was removed" in raised(lambda: node.result(PATIENCE_S), NodeRejected)
        raised(lambda: app.result(PATIENCE_S), ApplicationEnded)
        node = threads.submit(s.add_node, "n1", vcore=2)
        app = threads.submit(s.application, "a", queue="root.nope", user="ann")
        wait_until(lambda: s.nodes and s._operations._applications.find("a"))
        go_on.set()
        assert [] == node.result(PATIENCE_S)
        assert "no queue root.nope" in raised(lambda: app.result(PATIENCE_S), ApplicationRejected)
        assert {"n1": 2_000} == {
            name: it["capacity"]["vcore"]
            for name, it in s.core.state_dump()["partitions"]["[rm-1]default"]["nodes"].items()
        }


# -- failures


def test_a_core_that_fails_ends_everything_with_its_failure(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(CoreFailed), Scheduler(QUEUES) as s:  # noqa: PT012
        s.add_node("n1", vcore=4)
        app = a_job(s)
        lease = app.ask("t", vcore=3).result(PATIENCE_S)
        waits = app.ask("u", vcore=3)
        heard = s.events("node")
        break_down(s)
        assert "context failed" in raised(lambda: waits.result(PATIENCE_S), CoreFailed)
        assert lease.wanted_back.wait(PATIENCE_S)
        assert lease.lost
        assert "context failed" in lease.reason
        raised(lambda: next(heard), CoreFailed)
        for call in (
            lambda: app.ask("v", vcore=1),
            lambda: a_job(s, "b"),
            lambda: s.add_node("n2", vcore=1),
            lambda: app.explain("u"),
        ):
            raised(call, CoreFailed)
        lease.release()
        app.close()
    assert "context failed" in capfd.readouterr().err


def test_a_core_that_is_stopped_below_ends_everything() -> None:
    with Scheduler(QUEUES) as s:
        waits = a_job(s).ask("u", vcore=3)
        s.core.stop()
        assert "stopped" in raised(lambda: waits.result(PATIENCE_S), CoreStopped)


def test_a_resource_manager_that_left_ends_everything() -> None:
    """A program may do anything to the core below; what the front cannot survive, it says."""
    with Scheduler(QUEUES) as s:
        app = a_job(s)
        waits = app.ask("u", vcore=3)
        s.core.unregister_resource_manager("rm-1")
        # What the front says next tells it; that may be the first ask, which was still on its way.
        told = raised(lambda: app.ask("v", vcore=3).result(PATIENCE_S), UnknownResourceManager)
        assert "not registered" in told
        assert "not registered" in raised(lambda: waits.result(PATIENCE_S), UnknownResourceManager)


def test_an_iterator_that_nobody_reads_says_what_it_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "ROOM", 2)
    with Scheduler(QUEUES) as s:
        with s.events("node") as heard:
            for name in ("n1", "n2", "n3", "n4"):
                s.add_node(name, vcore=1)
            assert ["n1", "n2"] == [next(heard).node_id, next(heard).node_id]  # type: ignore[union-attr]
            assert "2 events were dropped" in raised(lambda: next(heard), ResponsesLost)
            s.add_node("n5", vcore=1)
            assert "n5" == next(heard).node_id  # type: ignore[union-attr]
        s.add_node("n6", vcore=1)
        assert [] == list(heard)


def test_an_iterator_that_was_let_go_of_is_not_kept() -> None:
    with Scheduler(QUEUES) as s:
        left = weakref.ref(s.events())
        gc.collect()
        assert left() is None
        with s.events("node") as heard:
            assert 1 == len(s._operations.session.readers.refs)
            s.add_node("n1", vcore=1)
            assert "accepted" == next(heard).state  # type: ignore[union-attr]
        assert not s._operations.session.readers.refs


def in_a_child(call: Callable[[], None]) -> int:
    child = os.fork()
    if not child:
        try:
            call()
        except BaseException:  # noqa: BLE001 - the parent looks at it
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_the_copy_in_a_forked_process_says_so() -> None:
    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=4)
        app = a_job(s)
        lease = app.ask("t", vcore=3).result(PATIENCE_S)
        waits = app.ask("u", vcore=3)
        heard = s.events()

        def look() -> None:
            for call in (
                lambda: waits.result(PATIENCE_S),
                lambda: app.ask("v", vcore=1),
                lambda: a_job(s, "b"),
                lambda: next(heard),
                lambda: s.drain("n1"),
            ):
                raised(call, CoreStopped)
            lease.release()
            app.close()
            waits.cancel()
            s.close()

        with s._operations.session.lock:
            assert 0 == in_a_child(look)
        assert "held" == lease.state
        lease.release()
        assert "n1" == waits.result(PATIENCE_S).node_id


# -- everything at once


@pytest.mark.parametrize("seed", range(3))
def test_many_threads_at_once(seed: int) -> None:
    """Ask, cancel, release, drain and lose nodes on many threads: nothing is lost or given twice."""
    with Scheduler(QUEUES, grace=0.01) as s:
        for number in range(3):
            s.add_node(f"n{number}", vcore=4)
        apps = [
            s.application(f"a{n}", queue="root.batch", user="ann", stays=True) for n in range(2)
        ]

        def work(number: int) -> None:
            dice = random.Random(f"{seed} {number}")  # noqa: S311 - drawn, not secret
            for step in range(40):
                play(s, apps, dice, f"{number}-{step % 5}")

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(work, range(6), timeout=PATIENCE_S))
        s.add_node("last", vcore=8)
        for app in apps:
            for future in app.ask("end", vcore=1, count=2):
                future.result(PATIENCE_S).release()
        wait_until(lambda: not used(s))
        assert not s._operations._asks.keys._live
        assert not s._operations._asks.keys._fits


def play(s: Scheduler, apps: list[Application], dice: random.Random, key: str) -> None:
    app = apps[int(dice.random() * len(apps))]
    draw = dice.random()
    node = f"n{int(dice.random() * 3)}"
    if draw < 0.15:
        with _moving:
            disturb(s, node, for_good=draw > 0.1)
        return
    fits = (lambda _: True) if draw < 0.4 else None
    future = app.ask(key, vcore=1 + int(dice.random() * 3), fits=fits)
    if draw < 0.6 or not wait([future], timeout=0.05).done:
        future.cancel()
    try:
        with future.result(PATIENCE_S) as lease:
            assert lease.key == key
    except CancelledError:
        pass


_moving = threading.Lock()


def disturb(s: Scheduler, node: str, *, for_good: bool) -> None:
    if for_good:
        s.remove_node(node)
        s.add_node(node, vcore=4)
    else:
        s.drain(node)
        s.resume(node)


def used(s: Scheduler) -> dict[str, int]:
    partition = s.core.state_dump()["partitions"]["[rm-1]default"]
    return {
        name: node["allocated"]["vcore"]
        for name, node in partition["nodes"].items()
        if any(node["allocated"].values())
    }
