"""A lease that the program drops and does not give back is warned of; nothing else is."""

import asyncio
import gc
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import run

import pytest
from fronting import PATIENCE_S, QUEUES
from looping import on_a_loop, until
from probes import wait_until

from yunikorn_actors import Application, AsyncScheduler, Scheduler


@contextmanager
def heard() -> Iterator[list[str]]:
    """Hear the warnings of any thread, and what a finalizer raised."""
    told: list[str] = []
    unraisable = sys.unraisablehook
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sys.unraisablehook = lambda it: told.append(repr(it))
        try:
            yield told
        finally:
            gc.collect()
            sys.unraisablehook = unraisable
    told += [str(it.message) for it in caught if issubclass(it.category, ResourceWarning)]


def a_job(s: Scheduler) -> Application:
    s.add_node("n1", vcore=8)
    return s.application("a", queue="root.batch", user="ann")


WARNED = (
    "lease 't' of 'a' on n1 was dropped and not released, so its room stays taken: use it in a "
    "`with` block, release() it, or find it in the leases of its application"
)


def test_a_dropped_lease_is_warned_of_and_its_room_stays_taken() -> None:
    with Scheduler(QUEUES) as s, heard() as told:
        app = a_job(s)
        lease = app.ask("t", vcore=1).result(PATIENCE_S)
        del lease
        gc.collect()
        assert ["t"] == [it.key for it in app.leases]
        (again,) = app.leases
        assert again is app.leases[0]
        assert ("held", "n1") == (again.state, again.node_id)
        again.release()
        assert [] == app.leases
    assert [WARNED] == told


def test_a_future_that_nobody_looked_at_is_a_dropped_lease_too() -> None:
    with Scheduler(QUEUES) as s, heard() as told:
        app = a_job(s)
        app.ask("t", vcore=1)
        wait_until(lambda: len(app.leases) == 1)
        gc.collect()
    assert [WARNED] == told


def test_what_is_released_lost_or_kept_is_not_warned_of() -> None:
    with heard() as told, Scheduler(QUEUES, grace=0.01) as s:
        app = a_job(s)
        app.ask("released", vcore=1).result(PATIENCE_S).release()
        with app.ask("left", vcore=1).result(PATIENCE_S):
            pass
        kept = app.ask("kept", vcore=1).result(PATIENCE_S)
        app.ask("other", vcore=1).cancel()
        s.add_node("n2", vcore=1)
        lost = app.ask("lost", vcore=1, required_node="n2").result(PATIENCE_S)
        s.remove_node("n2")
        assert lost.wanted_back.wait(PATIENCE_S)
        del lost
        gc.collect()
        closed = s.application("b", queue="root.batch", user="ann")
        lease = closed.ask("u", vcore=1).result(PATIENCE_S)
        closed.close()
        del lease
        assert "held" == kept.state
    assert [] == told
    assert "lost" == kept.state


def test_a_dropped_lease_that_is_wanted_back_is_so_when_it_is_found_again() -> None:
    with Scheduler(QUEUES) as s, s.events("wanted_back", "lease_over") as events, heard() as told:
        s.add_node("n1", vcore=4)
        app = s.application("a", queue="root.batch", user="ann")
        app.ask("t", vcore=4).result(PATIENCE_S)
        gc.collect()
        sure = s.application("b", queue="root.sure", user="bob").ask("u", vcore=4)
        event = next(events)
        assert event.kind == "wanted_back"
        reason = event.lease.reason
        del event
        gc.collect()
        (found,) = app.leases
        assert ("wanted back", reason) == (found.state, found.reason)
        assert found.wanted_back.is_set()
        found.release()
        assert "released" == found.state
        over = next(events)
        assert over.kind == "lease_over"
        assert over.lease is found
        sure.result(PATIENCE_S).release()
    assert [WARNED] == told


def test_a_dropped_lease_that_is_lost_is_told_of() -> None:
    with Scheduler(QUEUES, grace=0.01) as s, s.events("lease_over") as events, heard():
        app = a_job(s)
        app.ask("t", vcore=1).result(PATIENCE_S)
        gc.collect()
        s.remove_node("n1")
        event = next(events)
        assert event.kind == "lease_over"
        assert ("t", "lost") == (event.lease.key, event.lease.state)
        assert event.lease.wanted_back.is_set()
        assert "lost" == app.explain("t").state


def test_leases_that_are_cancelled_as_they_come_are_not_warned_of() -> None:
    """Cancelling and placing meet: whichever comes first, the lease is given back."""
    outcomes = set()
    with Scheduler(QUEUES) as s, heard() as told:
        app = a_job(s)
        for number in range(300):
            future = app.ask(f"t{number}", vcore=1)
            if number % 3:
                threading.Event().wait(number % 7 * 0.0002)
            outcomes.add(future.cancel())
            if not future.cancelled():
                future.result(PATIENCE_S).release()
            del future
        wait_until(lambda: not app.leases)
    assert {True, False} == outcomes
    assert [] == told


@on_a_loop
async def test_the_async_front_warns_as_well() -> None:
    with heard() as told:
        async with AsyncScheduler(QUEUES) as s:
            await s.add_node("n1", vcore=8)
            app = await s.application("a", queue="root.batch", user="ann")
            await app.ask("t", vcore=1)
            gc.collect()
            async with await app.ask("u", vcore=1):
                pass
            for number in range(100):
                future = app.ask(f"c{number}", vcore=1)
                await asyncio.sleep(number % 7 * 0.0002)
                if not future.cancel():
                    (await future).release()
                del future
            await until(lambda: len(app.leases) == 1)
    assert [WARNED] == told


def test_the_collector_may_find_one_wherever_it_runs() -> None:
    """Under the lock of the books, with warnings as errors: nothing is raised, nothing waits."""
    with heard() as told, Scheduler(QUEUES) as s:
        app = a_job(s)
        cycle: list[object] = [app.ask("t", vcore=1).result(PATIENCE_S)]
        cycle.append(cycle)
        done = threading.Event()

        def collect() -> None:
            with s._operations.session.outbox._changed:
                gc.collect()
            done.set()

        with s._operations.session.lock:
            # Whoever waits for this lock in a finalizer never comes to its end.
            thread = threading.Thread(target=collect)
            del cycle
            thread.start()
            assert done.wait(PATIENCE_S)
        thread.join()
    assert [WARNED] == told


@pytest.mark.parametrize("filters", [[], ["-W", "error"]], ids=["default", "errors"])
def test_a_program_that_ends_with_leases_says_nothing(filters: list[str]) -> None:
    """It never closes its scheduler, so leases and books go together as the interpreter ends."""
    program = (
        "from yunikorn_actors import Scheduler\n"
        "s = Scheduler().start()\n"
        "s.add_node('n1', vcore=4)\n"
        "lease = s.application('a', user='ann').ask('t', vcore=1).result(10)\n"
    )
    ended = run([sys.executable, *filters, "-c", program], capture_output=True, check=True)
    assert b"" == ended.stderr
