"""A program whose work is preempted knows how long it has, and hears once of a whole gang."""

import asyncio

import pytest
from fronting import PATIENCE_S
from looping import on_a_loop
from probes import wait_until

from yunikorn_actors import Application, AsyncScheduler, Lease, Scheduler

QUEUES = """
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: train, properties: {preemption.grace: GRACE}}
    - {name: serve, properties: {preemption.delay: 10ms}, resources: {guaranteed: {vcore: 4}}}
"""
GANG = {"rank": {"count": 4, "vcore": 1}}


def four(s: Scheduler, *, is_gang: bool) -> tuple[Application, list[Lease]]:
    """Have four leases fill the node."""
    s.add_node("n1", vcore=4)
    if is_gang:
        app = s.application("t", queue="root.train", user="ann", gang=GANG, gang_style="Hard")
        futures = app.ask("r", group="rank", count=4)
    else:
        app = s.application("t", queue="root.train", user="ann")
        futures = app.ask("r", vcore=1, count=4)
    return app, [it.result(PATIENCE_S) for it in futures]


def wanted(leases: list[Lease]) -> list[Lease]:
    return [it for it in leases if it.wanted_back.is_set()]


@pytest.mark.parametrize("is_gang", [True, False])
def test_a_gang_that_goes_is_one_event(is_gang: bool) -> None:
    with Scheduler(QUEUES.replace("GRACE", "30s"), grace=1) as s:
        _, leases = four(s, is_gang=is_gang)
        assert [None] * 4 == [it.seconds_left for it in leases]
        with s.events("wanted_back", "application_wanted_back") as heard:
            waiting = s.application("web", queue="root.serve", user="ann").ask("w", vcore=1)
            number = 4 if is_gang else 1
            wait_until(lambda: number == len(wanted(leases)))
            for lease in wanted(leases):
                left = lease.seconds_left
                assert left is not None
                assert 20 < left <= 30, "what the queue says, and not the second of the scheduler"
                assert lease.reason.endswith("; it has 30 s to end")
            gone = wanted(leases)
            for lease in gone:
                lease.release()
            assert [None] * number == [it.seconds_left for it in gone]
            waiting.result(PATIENCE_S).release()
        together = [event for event in heard if event.kind == "application_wanted_back"]
        assert ["t"] * is_gang == [it.application for it in together]
        assert all(set(gone) == set(it.leases) for it in together)


def test_without_a_word_of_the_queue_the_grace_of_the_scheduler_counts() -> None:
    with Scheduler(QUEUES.replace("GRACE", "0s"), grace=0.2) as s:
        _, leases = four(s, is_gang=False)
        waiting = s.application("web", queue="root.serve", user="ann").ask("w", vcore=1)
        wait_until(lambda: 1 == len(wanted(leases)))
        left = wanted(leases)[0].seconds_left
        assert left is None or left <= 0.2
        waiting.result(PATIENCE_S).release()
        assert wanted(leases)[0].lost


@pytest.mark.parametrize("is_gang", [True, False])
@on_a_loop
async def test_the_same_on_a_loop(is_gang: bool) -> None:
    async with AsyncScheduler(QUEUES.replace("GRACE", "30s"), grace=1) as s:
        await s.add_node("n1", vcore=4)
        if is_gang:
            app = await s.application(
                "t", queue="root.train", user="ann", gang=GANG, gang_style="Hard"
            )
            futures = app.ask("r", group="rank", count=4)
        else:
            app = await s.application("t", queue="root.train", user="ann")
            futures = app.ask("r", vcore=1, count=4)
        leases = [await asyncio.wait_for(it, PATIENCE_S) for it in futures]
        assert [None] * 4 == [it.seconds_left for it in leases]
        async with s.events("application_wanted_back") as heard:
            web = await s.application("web", queue="root.serve", user="ann")
            waiting = web.ask("w", vcore=1)
            if is_gang:
                event = await asyncio.wait_for(anext(aiter(heard)), PATIENCE_S)
                assert ("t", set(leases)) == (event.application, set(event.leases))
            else:
                first = [asyncio.ensure_future(it.wanted_back.wait()) for it in leases]
                await asyncio.wait(first, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
                for it in first:
                    it.cancel()
            gone = [it for it in leases if it.wanted_back.is_set()]
            assert (4 if is_gang else 1) == len(gone)
            assert all(it.seconds_left is not None and 20 < it.seconds_left <= 30 for it in gone)
            for lease in gone:
                lease.release()
            assert {None} == {it.seconds_left for it in gone}
            (await asyncio.wait_for(waiting, PATIENCE_S)).release()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(aiter(heard)), 0.05)
