"""A wait that ends says why, and an ask that has a deadline is withdrawn by itself."""

import asyncio
import threading
import time
from concurrent.futures import wait
from typing import Any

import pytest
from fronting import PATIENCE_S, QUEUES, raised
from looping import on_a_loop
from probes import wait_until

from yunikorn_actors import (
    Application,
    AskWithdrawn,
    AsyncScheduler,
    DeadlinePassed,
    InvalidRequest,
    Scheduler,
    StillWaiting,
    UnknownName,
)
from yunikorn_actors.front import deadlines, operations

FULL = "all nodes together are smaller: it asks for vcore 6, and they have vcore 4"


def a_job(s: Scheduler, name: str = "a") -> Application:
    return s.application(name, queue="root.batch", user="ann")


def waiting(s: Scheduler) -> int:
    apps = s.core.state_dump()["partitions"]["[rm-1]default"]["applications"]
    return sum(len(it["asks"]) for it in apps.values())


# -- a wait that ends


def test_a_result_that_does_not_come_says_why() -> None:
    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=4)
        app = a_job(s)
        future = app.ask("big", vcore=6)
        wait_until(lambda: app.explain("big").why)
        for wait_for in (future.result, future.exception):
            with pytest.raises(TimeoutError) as caught:
                wait_for(0.01)
            assert isinstance(caught.value, StillWaiting)
            assert str(caught.value) == (
                f"ask 'big' of 'a' still waits after 0.01 s: {FULL}; add nodes that have it, or ask "
                "for less. app.explain('big').report() says more; cancel() withdraws it, as "
                "ask(..., deadline=) does by itself"
            )
        assert not future.done()
        s.add_node("n2", vcore=4)
        s.add_node("n3", vcore=8)
        assert "n3" == future.result(PATIENCE_S).node_id


def test_a_look_that_does_not_wait_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    with Scheduler(QUEUES) as s:
        future = a_job(s).ask("big", vcore=6)
        monkeypatch.setattr(s.core, "explain", lambda *_, **__: pytest.fail("it asked"))
        told = raised(lambda: future.result(0), StillWaiting)
        assert "ask 'big' of 'a' still waits. app.explain('big').report() says" in told


def test_a_core_that_does_not_answer_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    monkeypatch.setattr(operations, "PATIENCE_S", 0.05)
    with Scheduler(QUEUES) as s:
        app = a_job(s)
        future = app.ask("big", vcore=6)
        late = app.ask("late", vcore=6, deadline=0.05)
        monkeypatch.setattr(s.core, "explain", lambda *_, **__: go_on.wait(PATIENCE_S))
        for wait_for in (future, late):
            told = raised(lambda wait_for=wait_for: wait_for.result(0.5), TimeoutError)  # type: ignore[misc]
            assert "the core has not said what it waits for" in told
        go_on.set()


# -- a deadline


def test_an_ask_is_withdrawn_at_its_deadline() -> None:
    with Scheduler(QUEUES) as s, s.events("not_placed") as events:
        s.add_node("n1", vcore=4)
        app = a_job(s)
        future = app.ask("big", vcore=6, deadline=0.05)
        with pytest.raises(TimeoutError) as caught:
            future.result(PATIENCE_S)
        assert isinstance(caught.value, DeadlinePassed)
        assert isinstance(caught.value, AskWithdrawn)
        told = str(caught.value)
        assert told.startswith("ask 'big' of 'a' was withdrawn at its deadline, 0.05 s: ")
        assert FULL in told
        event = next(events)
        assert event.kind == "not_placed"
        assert ("big", told) == (event.key, str(event.error))
        assert f"big of a: withdrawn; {told}" == str(app.explain("big"))
        wait_until(lambda: not waiting(s))
        app.ask("big", vcore=1).result(PATIENCE_S)


def test_what_is_placed_in_time_stays() -> None:
    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=4)
        app = a_job(s)
        lease = app.ask("t", vcore=1, deadline="100ms").result(PATIENCE_S)
        app.ask("u", vcore=6, deadline="200ms").exception(PATIENCE_S)
        assert "held" == lease.state


def test_a_deadline_that_comes_first_is_the_first_to_end() -> None:
    with Scheduler(QUEUES) as s:
        app = a_job(s)
        late = app.ask("late", vcore=6, deadline=PATIENCE_S)
        soon = app.ask("soon", vcore=6, deadline=0.02)
        assert isinstance(soon.exception(PATIENCE_S), DeadlinePassed)
        assert not late.done()


def test_many_deadlines_end_together() -> None:
    """What is alike is explained once, so that the last of them is hardly later than the first."""
    asked: list[str] = []
    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=4)
        app = a_job(s)
        explain = s.core.explain

        def noted(*arguments: Any, **named: Any) -> Any:
            asked.append(arguments[1])
            return explain(*arguments, **named)

        s.core.explain = noted  # type: ignore[method-assign]
        futures = app.ask("big", vcore=6, count=2_000, deadline=0.2)
        done, _ = wait(futures, timeout=PATIENCE_S)
        assert 2_000 == len(done)
        assert all(FULL in str(it.exception()) for it in futures)
        wait_until(lambda: not waiting(s))
    assert len(asked) < 20


def test_placed_asks_do_not_gather_until_their_deadlines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "KEPT_MIN", 10)
    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=4)
        app = a_job(s)
        for number in range(100):
            app.ask(f"t{number}", vcore=1, deadline="1h").result(PATIENCE_S).release()
        assert len(s._operations._deadlines._due) <= 11


def test_an_ask_that_is_cancelled_or_closed_has_no_deadline_any_more() -> None:
    with Scheduler(QUEUES) as s, s.events("not_placed") as events:
        app = a_job(s)
        cancelled = app.ask("t", vcore=6, deadline=0.05)
        assert cancelled.cancel()
        other = a_job(s, "b")
        ended = other.ask("u", vcore=6, deadline=0.05)
        other.close()
        assert isinstance(app.ask("v", vcore=6, deadline=0.1).exception(PATIENCE_S), DeadlinePassed)
        assert cancelled.cancelled()
        assert not isinstance(ended.exception(), DeadlinePassed)
        assert ["u", "v"] == [next(events).key for _ in range(2)]  # type: ignore[union-attr]


@pytest.mark.parametrize("deadline", [0, -1, "soon", True, float("nan"), [1]], ids=str)
def test_what_is_no_time_is_refused(deadline: Any) -> None:
    with Scheduler(QUEUES) as s:
        app = a_job(s)
        assert "ask: deadline: " in raised(
            lambda: app.ask("t", vcore=1, deadline=deadline), InvalidRequest
        )
        app.ask("t", vcore=1)


def test_a_member_of_a_gang_that_does_not_come_together_has_a_deadline_too() -> None:
    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=3)
        app = s.application(
            "g", queue="root.batch", user="ann", gang={"w": {"count": 2, "vcore": 2}}
        )
        futures = app.ask("m", group="w", count=2, deadline=0.1)
        told = [str(it.exception(PATIENCE_S)) for it in futures]
        assert all("1 of 2 placeholders of its gang are placed; ~w-2 waits: " in it for it in told)


def test_an_unknown_group_is_named_before_anything_is_asked() -> None:
    with Scheduler(QUEUES) as s:
        app = a_job(s)
        raised(lambda: app.ask("t", group="w", deadline=1), UnknownName)
        app.ask("t", vcore=1)


@on_a_loop
async def test_the_async_front_has_deadlines_too() -> None:
    async with AsyncScheduler(QUEUES) as s, s.events("not_placed") as events:
        await s.add_node("n1", vcore=4)
        app = await s.application("a", queue="root.batch", user="ann")
        begun = time.monotonic()
        with pytest.raises(
            TimeoutError, match=r"was withdrawn at its deadline, 0\.05 s: all nodes"
        ):
            await app.ask("big", vcore=6, deadline=0.05)
        assert 0.04 < time.monotonic() - begun
        event = await anext(events)
        assert event.kind == "not_placed"
        assert isinstance(event.error, DeadlinePassed)
        lease = await app.ask("t", vcore=1, deadline="10ms")
        ended = asyncio.gather(
            *app.ask("u", vcore=6, count=3, deadline=0.05), return_exceptions=True
        )
        assert [DeadlinePassed] * 3 == [type(it) for it in await ended]
        assert "held" == lease.state
