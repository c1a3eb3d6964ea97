"""A program on an event loop answers the core: predicates, states, its own dump."""

import asyncio
import threading
from contextlib import suppress
from typing import Any

import pytest
from looping import CONFIG, accepted_nodes, app_request, ask_request, node_request, on_a_loop, until

from yunikorn_actors import (
    AsyncResourceManagerCallback,
    AsyncSchedulerCore,
    InvalidRequest,
    ResourceManagerCallback,
    UnknownAsk,
    si,
)
from yunikorn_actors.runtime.async_callback import TAKEN
from yunikorn_actors.runtime.responses import Responses

REQUEST = si.RegisterResourceManagerRequest(rm_id="rm-1", policy_group="rm-1", config=CONFIG)
DISK = "it has no disk"


class Awaiting(AsyncResourceManagerCallback):
    """Refuses n1; every method is asynchronous."""

    def __init__(self) -> None:
        self.threads: set[str] = set()
        self.states: list[si.SchedulingState] = []

    async def predicates(self, args: si.PredicatesArgs) -> str | None:
        await asyncio.sleep(0)
        self.threads.add(threading.current_thread().name)
        return DISK if args.node_id == "n1" else None

    async def update_container_scheduling_state(
        self, request: si.UpdateContainerSchedulingStateRequest
    ) -> None:
        await asyncio.sleep(0)
        self.threads.add(threading.current_thread().name)
        self.states.append(request.state)

    async def get_state_dump(self) -> str:
        await asyncio.sleep(0)
        self.threads.add(threading.current_thread().name)
        return '{"mine": 1}'


class Plain(ResourceManagerCallback):
    """The same, as a program without a loop has it."""

    def __init__(self) -> None:
        self.threads: set[str] = set()
        self.states: list[si.SchedulingState] = []

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        self.threads.add(threading.current_thread().name)
        return DISK if args.node_id == "n1" else None

    def update_container_scheduling_state(
        self, request: si.UpdateContainerSchedulingStateRequest
    ) -> None:
        self.threads.add(threading.current_thread().name)
        self.states.append(request.state)

    def get_state_dump(self) -> str:
        self.threads.add(threading.current_thread().name)
        return '{"mine": 1}'


async def _asked(core: AsyncSchedulerCore, callback: Any) -> Responses:
    handle = await core.register_resource_manager(REQUEST, callback)
    await core.update_node(node_request("n1"))
    assert ["n1"] == accepted_nodes(await anext(handle.nodes()))
    await core.update_application(app_request("app"))
    await core.update_allocation(ask_request("a"))
    return handle


async def _refused(core: AsyncSchedulerCore, reason: str) -> None:
    """The ask comes to Context, and the no behind it, some time after the call."""
    while True:
        with suppress(UnknownAsk):
            if reason in str(await core.explain("app", "a")):
                return
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("kind", [Awaiting, Plain])
@on_a_loop
async def test_it_is_asked_on_the_loop(kind: type[Awaiting] | type[Plain]) -> None:
    async with AsyncSchedulerCore() as core:
        callback = kind()
        handle = await _asked(core, callback)
        await _refused(core, DISK)
        await core.update_node(node_request("n2"))
        (new,) = (await anext(handle.allocations())).new
        assert "n2" == new.node_id
        assert {"mine": 1} == (await core.state_dump())["rm_diagnostics"]["rm-1"]
        await until(lambda: si.SchedulingState.SCHEDULED in callback.states)
        assert {threading.current_thread().name} == callback.threads


class Preempting(AsyncResourceManagerCallback):
    async def preemption_predicates(
        self,
        args: si.PreemptionPredicatesArgs,
    ) -> si.PreemptionPredicatesResponse | None:
        return si.PreemptionPredicatesResponse(success=True, index=args.start_index)


@on_a_loop
async def test_it_is_asked_about_what_it_overrides_alone() -> None:
    async with AsyncSchedulerCore() as core:
        await core.register_resource_manager(REQUEST, Preempting())
        inbox = core._inboxes["rm-1"]
        methods = [it for it in vars(AsyncResourceManagerCallback) if not it.startswith("_")]
        assert ["preemption_predicates"] == [it for it in methods if inbox.answers(it)]
        args = si.PreemptionPredicatesArgs(preempt_allocation_keys=("a", "b"), start_index=1)
        said = await asyncio.to_thread(inbox.preemption_predicates, args)
        assert si.PreemptionPredicatesResponse(success=True, index=1) == said


@pytest.mark.parametrize("error", [ValueError("its own"), SystemExit("its own")], ids=repr)
@on_a_loop
async def test_what_it_raises_is_a_no_and_is_told(error: BaseException) -> None:
    class Raising(AsyncResourceManagerCallback):
        async def predicates(self, args: si.PredicatesArgs) -> str | None:  # noqa: ARG002
            raise error

    told: asyncio.Queue[Any] = asyncio.Queue()
    async with AsyncSchedulerCore(on_callback_error=told.put_nowait) as core:
        handle = await _asked(core, Raising())
        assert ("rm-1", "predicates", error) == await told.get()
        await _refused(core, "its own")
        del handle


@on_a_loop
async def test_an_answer_that_never_comes_holds_up_no_stop() -> None:
    class Silent(AsyncResourceManagerCallback):
        def __init__(self) -> None:
            self.is_asked = asyncio.Event()

        async def predicates(self, args: si.PredicatesArgs) -> str | None:  # noqa: ARG002
            self.is_asked.set()
            await asyncio.Event().wait()
            return None

    told: list[object] = []
    core = await AsyncSchedulerCore(on_callback_error=told.append).start()
    callback = Silent()
    handle = await _asked(core, callback)
    await callback.is_asked.wait()
    await core.stop(timeout=120)
    assert [] == told
    del handle


@on_a_loop
async def test_a_callback_that_would_never_be_called_is_refused() -> None:
    async with AsyncSchedulerCore() as core:
        wrong: Any = object()
        with pytest.raises(InvalidRequest, match="callback: must be an AsyncResourceManagerCall"):
            await core.register_resource_manager(REQUEST, wrong)
        for method in TAKEN:
            kind = type("Hearing", (ResourceManagerCallback,), {method: lambda _, __: None})
            with pytest.raises(InvalidRequest, match=rf"callback.{method}: is never called here"):
                await core.register_resource_manager(REQUEST, kind())
