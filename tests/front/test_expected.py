"""When an ask of a program is expected to start."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import pytest
from fronting import PATIENCE_S, is_all_handled
from probes import wait_until

from yunikorn_actors import AsyncScheduler, InvalidRequest, Scheduler, SchedulerCore

Driver = Literal["threads", "direct"]
SECOND = 10**9


@pytest.mark.parametrize("driver", ["threads", "direct"])
def test_an_ask_that_waits_has_a_place_and_an_interval(driver: Driver) -> None:
    with Scheduler(core=SchedulerCore(driver=driver)) as s:
        s.add_node("n1", vcore=2)
        app = s.application("a", user="ann", tags={"yunikorn-actors/runtime": "3600"})
        app.ask("runs", vcore=2).result(PATIENCE_S)
        first, second = app.ask("first", vcore=2), app.ask("second", vcore=1)
        found = app.expected("first")
        assert found is not None
        assert (1, "first", 2) == (found.position, found.key, found.waiting)
        assert found.earliest_ns is not None
        assert found.latest_ns is not None
        assert found.earliest_ns <= (found.likely_ns or 0) <= found.latest_ns
        behind = app.expected("second")
        assert behind is not None
        assert 2 == behind.position
        assert None is app.expected("runs")
        with pytest.raises(InvalidRequest, match="key"):
            app.expected("")
        first.cancel()
        second.cancel()


def test_on_an_event_loop() -> None:
    async def play() -> tuple[int, int] | None:
        async with AsyncScheduler() as s:
            await s.add_node("n1", vcore=1)
            app = await s.application("a", user="ann")
            await app.ask("runs", vcore=1)
            app.ask("waits", vcore=1)
            for _ in range(100):
                found = await app.expected("waits")
                if found is not None:
                    return found.position, found.waiting
                await asyncio.sleep(0.02)
            return None

    assert (1, 1) == asyncio.run(play())


def test_two_first_questions_at_once_leave_one_follower(monkeypatch: pytest.MonkeyPatch) -> None:
    with Scheduler() as s:
        s.add_node("n1", vcore=1)
        app = s.application("app", user="ann")
        app.ask("runs", vcore=1).result(PATIENCE_S)
        app.ask("waits", vcore=1)
        wait_until(lambda: is_all_handled(s))
        both, begun, ended = threading.Barrier(2, timeout=PATIENCE_S), list[str](), list[str]()
        follow, unfollow = s.core.followers.follow, s.core.followers.unfollow

        def together(follower: Any, **lasting: bool) -> str:
            both.wait()
            begun.append(follow(follower, **lasting))
            return begun[-1]

        def end(address: str) -> None:
            ended.append(address)
            unfollow(address)

        monkeypatch.setattr(s.core.followers, "follow", together)
        monkeypatch.setattr(s.core.followers, "unfollow", end)
        with ThreadPoolExecutor(2) as pool:
            asked = [pool.submit(s.core.expected, "app") for _ in range(2)]
            found = [[it.key for it in one.result(PATIENCE_S)] for one in asked]
        assert [["waits"], ["waits"]] == found
        assert 2 == len(begun), "vacuous: they did not come at once"
        assert 1 == len(ended)
        assert set(ended) < set(begun)
