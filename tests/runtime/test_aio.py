"""The core on an event loop: the same calls, the loop goes on, and what is cancelled."""

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from core_parts import OF_OURS
from looping import (
    CONFIG,
    PATIENCE_S,
    TICKS,
    accepted_nodes,
    app_request,
    ask_request,
    gated,
    node_request,
    on_a_loop,
    outcome,
    register,
    release_request,
    take_all,
    tick,
    until,
)

from yunikorn_actors import (
    AsyncSchedulerCore,
    CoreStopped,
    InvalidRequest,
    Refused,
    SchedulerCore,
    UnknownAsk,
    UnknownResourceManager,
    si,
)
from yunikorn_actors.core.entry import Gateway
from yunikorn_actors.drivers.live.clock import RealClock, StandingClock
from yunikorn_actors.runtime.responses import Response, Responses

# -- the same calls

SERVED = OF_OURS - {"waiting"} - {*dir(AsyncSchedulerCore)}
"""For parts of a service and for the front: an event loop has no such parts."""


def test_it_is_made_with_the_arguments_of_the_other() -> None:
    assert inspect.signature(SchedulerCore) == inspect.signature(AsyncSchedulerCore)


@pytest.mark.parametrize(
    "name",
    [it for it in vars(Gateway) if not it.startswith("_") and it not in SERVED] + ["start", "stop"],
)
def test_it_has_each_call_of_the_other(name: str) -> None:
    call, awaited = getattr(SchedulerCore, name), getattr(AsyncSchedulerCore, name)
    wanted = list(inspect.signature(call).parameters)
    assert wanted == [it for it in inspect.signature(awaited).parameters if it != "wants"]
    assert inspect.iscoroutinefunction(awaited)


def test_it_has_whatever_else_the_other_has() -> None:
    calls, awaited = (
        {it for it in dir(kind) if not it.startswith("_") and it not in SERVED}
        for kind in (SchedulerCore, AsyncSchedulerCore)
    )
    assert calls | {"clock", "failure"} == awaited


@on_a_loop
async def test_how_far_it_is() -> None:
    clock = StandingClock(1)
    async with AsyncSchedulerCore(clock=clock) as core:
        await register(core)
        await until(core.is_settled)
        assert core.handled
        assert clock is core.clock
        due_ns = core.next_due_ns
        assert due_ns is not None
        clock.move_to(due_ns)
        core.clock_was_moved()
        await until(lambda: core.next_due_ns != due_ns)


# -- a story


@on_a_loop
async def test_from_registration_to_release() -> None:
    async with AsyncSchedulerCore() as core:
        handle = await register(core)
        await core.update_node(node_request("n1"))
        async for answer in handle.nodes():
            assert ["n1"] == accepted_nodes(answer)
            break
        await core.update_application(app_request("app"))
        answer = await anext(handle.applications())
        assert ["app"] == [item.application_id for item in answer.accepted]
        await core.update_allocation(ask_request("a"))
        (item,) = (await anext(handle.allocations())).new
        assert ("a", "n1") == (item.allocation_key, item.node_id)
        dump = await core.state_dump()
        assert ["app"] == list(dump["partitions"]["[rm-1]default"]["applications"])
        assert {"n1": 1} == (await core.explain("app", "a")).placed
        assert UnknownAsk is await outcome(core.explain("app", "none"))
        await core.update_allocation(release_request(item))
        (gone,) = (await anext(handle.allocations())).released
        assert item.uuid == gone.uuid
        async for change in handle.applications():
            if "Completing" in [update.state for update in change.updated]:
                break
        assert (await core.events()).records
        await core.unregister_resource_manager("rm-1")
        assert [] == await take_all(handle.allocations())


@on_a_loop
async def test_everything_in_one_stream_in_the_order_in_which_it_was_said() -> None:
    async with AsyncSchedulerCore() as core:
        handle = await register(core)
        heard: list[Response] = []
        await core.update_node(node_request("n1"))
        await core.update_application(app_request("app"))
        await core.update_allocation(ask_request("a"))
        async for response in handle.responses():
            heard.append(response)
            if response.kind == "allocation":
                break
        answers = dict.fromkeys((kind, type(value)) for kind, value in heard if kind != "events")
        assert [
            ("node", si.NodeResponse),
            ("application", si.ApplicationResponse),
            ("allocation", si.AllocationResponse),
        ] == list(answers)


@on_a_loop
async def test_events_are_heard_from_the_moment_on_at_which_they_are_asked_for() -> None:
    async with AsyncSchedulerCore(clock=RealClock(1_000)) as core:
        handle = await register(core)
        events = handle.events()
        await core.update_node(node_request("n1"))
        seen: list[str] = []
        while "n1" not in seen:
            seen += [record.object_id for record in await anext(events)]


@on_a_loop
async def test_configurations() -> None:
    async with AsyncSchedulerCore() as core:
        await register(core)
        other = CONFIG.replace("{name: default}]", "{name: default}, {name: other}]")
        await core.update_configuration(
            si.UpdateConfigurationRequest(rm_id="rm-1", policy_group="rm-1", config=other)
        )
        queues = (await core.state_dump())["partitions"]["[rm-1]default"]["queues"]
        assert "root.other" in queues
        await core.update_configuration(si.UpdateConfigurationRequest(config=CONFIG))


@on_a_loop
async def test_what_a_call_raises_is_raised_where_it_is_awaited() -> None:
    async with AsyncSchedulerCore() as core:
        handle = await register(core)
        wrong: Any = {"rm_id": "rm-1"}
        assert InvalidRequest is await outcome(core.update_node(wrong))
        assert InvalidRequest is await outcome(core.register_resource_manager(wrong))
        assert InvalidRequest is await outcome(core.update_node(si.NodeRequest()))
        assert UnknownResourceManager is await outcome(core.update_node(node_request("n", "rm-9")))
        assert UnknownResourceManager is await outcome(core.resource_manager_lost("rm-9"))
        refused = si.UpdateConfigurationRequest(rm_id="rm-1", policy_group="x", config=CONFIG)
        assert Refused is await outcome(core.update_configuration(refused))
        await core.update_node(node_request("n1"))
        assert ["n1"] == accepted_nodes(await anext(handle.nodes()))


@on_a_loop
async def test_before_the_start_and_after_the_stop_a_call_is_refused() -> None:
    core = AsyncSchedulerCore()
    assert CoreStopped is await outcome(core.state_dump())
    async with core:
        await register(core)
    assert CoreStopped is await outcome(core.state_dump())
    assert CoreStopped is await outcome(core.update_node(node_request("n1")))
    assert CoreStopped is await outcome(register(core))
    await core.stop()
    assert CoreStopped is await outcome(core.start())
    await AsyncSchedulerCore().stop()


# -- the loop goes on


@on_a_loop
async def test_the_loop_comes_round_while_a_question_waits() -> None:
    async with AsyncSchedulerCore() as core:
        await register(core)
        gate = gated(core)
        calls = [
            asyncio.create_task(call)
            for call in (
                core.state_dump(),
                register(core, "rm-2"),
                core.update_configuration(si.UpdateConfigurationRequest(config=CONFIG)),
            )
        ]
        assert TICKS == await tick()
        assert [False, False, False] == [call.done() for call in calls]
        gate.let_go()
        dump, *_ = await asyncio.gather(*calls)
        assert ["rm-1"] == list(dump["managers"])


@on_a_loop
async def test_a_slow_directory_holds_up_nobody_but_its_own_resource_manager() -> None:
    asked, known = threading.Event(), threading.Event()

    def lookup(user: str) -> tuple[str, ...]:
        asked.set()
        assert known.wait(PATIENCE_S)
        return (user,)

    async with AsyncSchedulerCore() as core:
        core._core.managers.resolvers._lookups["os"] = lookup
        slow = await register(
            core, "rm-1", CONFIG.replace("queues:", "usergroupresolver: {type: os}, queues:", 1)
        )
        quick = await register(core, "rm-2")
        first = asyncio.create_task(core.update_application(app_request("app")))
        second = asyncio.create_task(core.update_node(node_request("n1")))
        await until(asked.is_set)
        await core.update_application(app_request("app", "rm-2"))
        assert (await anext(quick.applications())).accepted
        await core.state_dump()
        assert TICKS == await tick()
        assert [False, False] == [first.done(), second.done()]
        known.set()
        await asyncio.gather(first, second)
        heard = [response.kind async for response in _first(slow, 2)]
        assert ["application", "node"] == heard


async def _first(handle: Responses, count: int) -> AsyncIterator[Response]:
    stream = handle.responses()
    for _ in range(count):
        response = await anext(stream)
        while response.kind == "events":
            response = await anext(stream)
        yield response


@on_a_loop
async def test_calls_keep_the_order_in_which_their_tasks_were_started() -> None:
    names = [f"n{number}" for number in range(200)]
    async with AsyncSchedulerCore() as core:
        handle = await register(core)
        await asyncio.gather(*(core.update_node(node_request(name)) for name in names))
        heard: list[str] = []
        async for answer in handle.nodes():
            heard += accepted_nodes(answer)
            if len(heard) == len(names):
                break
        assert names == heard


# -- cancellation


@on_a_loop
async def test_a_cancelled_iterator_has_taken_nothing() -> None:
    async with AsyncSchedulerCore() as core:
        handle = await register(core)
        nodes = handle.nodes()
        waiting = [asyncio.create_task(anext(nodes)) for _ in range(5)]
        await tick()
        for task in waiting:
            task.cancel()
        await core.update_node(node_request("n1"))
        await asyncio.gather(*waiting, return_exceptions=True)
        assert ["n1"] == accepted_nodes(await anext(nodes))
        assert all(task.cancelled() for task in waiting)


@on_a_loop
async def test_cancelled_at_the_moment_of_arrival_nothing_is_lost() -> None:
    async with AsyncSchedulerCore() as core:
        handle = await register(core)
        inbox = core._inboxes["rm-1"]
        waiting = asyncio.create_task(anext(handle.nodes()))
        await tick()
        inbox._arrive("node", si.NodeResponse(accepted=(si.AcceptedNode(node_id="n1"),)))
        waiting.cancel()
        assert [asyncio.CancelledError] == [
            type(error) for error in await asyncio.gather(waiting, return_exceptions=True)
        ]
        assert ["n1"] == accepted_nodes(await anext(handle.nodes()))


@on_a_loop
async def test_abandoned_iterators_leave_nothing_behind() -> None:
    async with AsyncSchedulerCore() as core:
        handle = await register(core)
        waiting = asyncio.create_task(anext(handle.nodes()))
        await tick()
        changed = core._inboxes["rm-1"]._changed_on_loop
        assert 1 == len(changed._waiters)
        waiting.cancel()
        await tick()
        assert 0 == len(changed._waiters)
        for number in range(3):
            await core.update_node(node_request(f"n{number}"))
            async for answer in handle.nodes():
                assert [f"n{number}"] == accepted_nodes(answer)
                break
        assert {0} == set(core._inboxes["rm-1"]._untaken.values())


@on_a_loop
async def test_a_call_that_is_cancelled_before_its_turn_is_not_made() -> None:
    async with AsyncSchedulerCore() as core:
        handle = await register(core)
        held, go_on = threading.Event(), threading.Event()

        def hold() -> None:
            held.set()
            assert go_on.wait(PATIENCE_S)

        first = asyncio.create_task(core._call("rm-1", hold))
        await until(held.is_set)
        calls = [asyncio.create_task(core.update_node(node_request(name))) for name in ("n1", "n2")]
        await tick()
        calls[0].cancel()
        await tick()
        go_on.set()
        await asyncio.gather(first, *calls, return_exceptions=True)
        assert ["n2"] == accepted_nodes(await anext(handle.nodes()))


@on_a_loop
async def test_a_question_that_is_cancelled_is_answered_to_nobody() -> None:
    async with AsyncSchedulerCore() as core:
        await register(core)
        gate = gated(core)
        question = asyncio.create_task(core.state_dump())
        await tick()
        question.cancel()
        assert [asyncio.CancelledError] == [
            type(error) for error in await asyncio.gather(question, return_exceptions=True)
        ]
        gate.let_go()
        assert ["rm-1"] == list((await core.state_dump())["managers"])
