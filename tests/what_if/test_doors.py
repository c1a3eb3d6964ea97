"""The same question at every door: a core on threads, on a loop, and the front door."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from probes import wait_until
from support import RM

from tests.what_if.test_change_checks import REFUSED
from tests.what_if.test_simulate import CONFIG, asks, node
from yunikorn_actors import (
    AsyncScheduler,
    AsyncSchedulerCore,
    CoreStopped,
    InvalidRequest,
    Scheduler,
    SchedulerCore,
    WouldBlock,
    si,
)
from yunikorn_actors.front.arguments import simulating
from yunikorn_actors.messages.base import Message
from yunikorn_actors.messages.followers import CatchUpRequested
from yunikorn_actors.scenario.change_steps import parse_changes
from yunikorn_actors.what_if import Answer, Change, Reconfigure
from yunikorn_actors.what_if.followed import Snapshots

PATIENCE_S = 20.0
"""Less than a call waits for an answer that does not come."""
QUOTA = Reconfigure(queue="root.a", max={"vcore": 8_000})


def app() -> si.ApplicationRequest:
    ugi = si.UserGroupInformation(user="bob", groups=("staff",))
    new = si.AddApplicationRequest(application_id="app", queue_name="root.a", ugi=ugi)
    return si.ApplicationRequest(rm_id=RM, new=(new,))


def check(plain: Answer, raised: Answer) -> None:
    assert [it.key for it in plain.course.placed] == ["1", "2"]
    assert [it.key for it in raised.course.placed] == ["1", "2", "3"]


def test_a_core_on_threads_and_a_callback_that_may_not_wait() -> None:
    raised: list[BaseException] = []

    class Asks(si.ResourceManagerCallback):
        def update_node(self, response: si.NodeResponse) -> None:  # noqa: ARG002
            try:
                core.simulate()
            except WouldBlock as error:
                raised.append(error)

    with SchedulerCore() as core:
        request = si.RegisterResourceManagerRequest(rm_id=RM, config=CONFIG)
        core.register_resource_manager(request, Asks())
        core.update_node(node("n1", 8_000))
        wait_until(lambda: core.is_settled() and bool(raised))
        question = (app(), asks("1", "2", "3"))
        check(core.simulate(*question, until=0), core.simulate(QUOTA, *question, until=0))
        assert core.state_dump()["partitions"]["[rm-1]default"]["applications"] == {}
    assert len(raised) == 1


def test_a_question_waits_for_no_follower_of_another() -> None:
    """That one goes when its question is answered, and would answer no more."""
    asked: list[str] = []
    with SchedulerCore() as core:
        request = si.RegisterResourceManagerRequest(rm_id=RM, config=CONFIG)
        core.register_resource_manager(request, si.ResourceManagerCallback())
        core.expected()
        (lasting,) = core.followers.following
        other = core.followers.follow(Snapshots(), lasts=False)
        posted = core.driver.post

        def noted(address: str, message: Message, name: str) -> None:
            if isinstance(message, CatchUpRequested):
                asked.append(message.follower)
            posted(address, message, name)

        with patch.object(core.followers, "_driver", replace(core.driver, post=noted)):
            core.simulate(until=0)
            core.followers.catch_up()
        core.followers.unfollow(other)
    assert len(asked) == 2, "vacuous: nothing was waited for"
    assert other not in asked
    assert asked[-1] == lasting


@pytest.mark.parametrize("driver", ["threads", "direct"])
def test_many_ask_at_once(driver: Any) -> None:
    together = threading.Barrier(8)
    with SchedulerCore(driver=driver) as core:
        request = si.RegisterResourceManagerRequest(rm_id=RM, config=CONFIG)
        core.register_resource_manager(request, si.ResourceManagerCallback())

        def ask(number: int) -> object:
            together.wait(PATIENCE_S)
            return core.expected() if number % 2 else core.simulate(until=0).course.placed

        with ThreadPoolExecutor(8) as threads:
            answers = [threads.submit(ask, number) for number in range(8)]
            assert [it.result(PATIENCE_S) for it in answers] == [()] * 8


def test_a_core_that_has_stopped_expects_nothing_more() -> None:
    with SchedulerCore() as core:
        assert core.expected() == ()
    with pytest.raises(CoreStopped):
        core.expected()


def test_a_core_on_a_loop() -> None:
    async def ask() -> None:
        async with AsyncSchedulerCore() as core:
            request = si.RegisterResourceManagerRequest(rm_id=RM, config=CONFIG)
            await core.register_resource_manager(request, si.ResourceManagerCallback())
            await core.update_node(node("n1", 8_000))
            while not (await core.state_dump())["partitions"]["[rm-1]default"]["nodes"]:
                pass
            question = (app(), asks("1", "2", "3"))
            check(
                await core.simulate(*question, until=0),
                await core.simulate(QUOTA, *question, until=0),
            )

    asyncio.run(ask())


def test_the_front_door() -> None:
    with Scheduler(queues=CONFIG) as scheduler:
        scheduler.add_node("n1", vcore=8)
        question = (app(), asks("1", "2", "3"))
        check(scheduler.simulate(*question, until=0), scheduler.simulate(QUOTA, *question, until=0))

    async def ask() -> None:
        async with AsyncScheduler(queues=CONFIG) as scheduler:
            await scheduler.add_node("n1", vcore=8)
            check(
                await scheduler.simulate(*question, until=0),
                await scheduler.simulate(QUOTA, *question, until=0),
            )

    asyncio.run(ask())


@pytest.mark.parametrize("kind", [SchedulerCore, AsyncSchedulerCore])
def test_a_core_in_another_process_names_the_remedy(kind: Callable[[], object]) -> None:
    with pytest.raises(InvalidRequest, match="simulate --server ADDR"):
        simulating(object(), kind)  # type: ignore[arg-type]


def both_nodes() -> si.NodeRequest:
    infos = [node(name, 4_000).nodes[0] for name in ("n1", "n2")]
    return si.NodeRequest(rm_id=RM, nodes=tuple(infos))


def test_what_would_change_nothing_is_refused_at_each_door() -> None:
    """Each names the place and the remedy, as a core in virtual time does."""
    request = si.RegisterResourceManagerRequest(rm_id=RM, config=CONFIG)
    first = (both_nodes(), app(), asks("1", "2"))

    with SchedulerCore(driver="direct") as core:
        core.register_resource_manager(request, si.ResourceManagerCallback())
        core.update_node(first[0])
        core.update_application(first[1])
        core.update_allocation(first[2])
        refuse(lambda changes: core.simulate(*changes))

    with Scheduler(queues=CONFIG, rm_id=RM) as scheduler:
        scheduler.core.update_node(first[0])
        scheduler.core.update_application(first[1])
        scheduler.core.update_allocation(first[2])
        wait_until(lambda: has_begun(scheduler.core.state_dump()))
        refuse(lambda changes: scheduler.simulate(*changes))

    async def ask() -> None:
        async with AsyncSchedulerCore() as core:
            await core.register_resource_manager(request, si.ResourceManagerCallback())
            await core.update_node(first[0])
            await core.update_application(first[1])
            await core.update_allocation(first[2])
            while not has_begun(await core.state_dump()):
                pass
            for step, words in REFUSED.items():
                with pytest.raises(InvalidRequest) as found:
                    await core.simulate(*parse_changes(f"- {step}", "f"))
                check_refusal(found.value, step, words)

    asyncio.run(ask())


def has_begun(dump: dict[str, Any]) -> bool:
    apps = dump["partitions"]["[rm-1]default"]["applications"]
    return "app" in apps and len(apps["app"]["asks"]) + len(apps["app"]["allocations"]) >= 2


def refuse(simulate: Callable[[list[Change]], object]) -> None:
    for step, words in REFUSED.items():
        with pytest.raises(InvalidRequest) as found:
            simulate(parse_changes(f"- {step}", "f"))
        check_refusal(found.value, step, words)


def check_refusal(error: Exception, step: str, words: str) -> None:
    assert str(error).startswith(f"f:1: step 1: {step.partition(':')[0]}: "), error
    assert words in str(error)
