"""The same question at every door: a core on threads, on a loop, and the front door."""

import asyncio
from collections.abc import Callable

import pytest
from probes import wait_until
from support import RM

from tests.what_if.test_simulate import CONFIG, asks, node
from yunikorn_actors import (
    AsyncScheduler,
    AsyncSchedulerCore,
    InvalidRequest,
    Scheduler,
    SchedulerCore,
    WouldBlock,
    si,
)
from yunikorn_actors.front.arguments import simulating
from yunikorn_actors.what_if import Answer, Reconfigure

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
