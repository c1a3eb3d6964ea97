"""A core in another process, used from an event loop: the calls and errors of the one within."""

import asyncio
import threading
from collections.abc import Callable

import pytest

pytest.importorskip("grpc")
from fronting import QUEUES, quick_core
from looping import (
    CONFIG,
    accepted_nodes,
    app_request,
    ask_request,
    node_request,
    on_a_loop,
    register,
)
from probes import wait_until

from yunikorn_actors import (
    AsyncRemoteCore,
    AsyncResourceManagerCallback,
    AsyncScheduler,
    CallbackRaised,
    ConnectionLost,
    CoreStopped,
    InvalidRequest,
    RemoteCore,
    UnknownResourceManager,
    WouldBlock,
    connect_async,
    si,
)
from yunikorn_actors.service.rpc import link
from yunikorn_actors.service.service import Serving

PATIENCE_S = 60


@pytest.fixture
def serving(serve: Callable[..., Serving]) -> Serving:
    return serve(quick_core(event_push_ns=1_000_000))


@pytest.fixture
def address(serving: Serving) -> str:
    return serving.parts["grpc"].address


# -- the front door


@on_a_loop
async def test_the_front_door_leads_to_another_process(serving: Serving, address: str) -> None:
    async with connect_async(address) as s:
        await s.add_node("node-1", vcore=16, memory="64Gi")
        app = await s.application("etl-1", user="ann")
        async with await app.ask("task-1", vcore="500m", memory="2Gi") as lease:
            assert "node-1" == lease.node_id
            dump = await s.core.state_dump()
            assert (
                500 == dump["partitions"]["[rm-1]default"]["nodes"]["node-1"]["allocated"]["vcore"]
            )
        assert "released" == (await app.explain("task-1")).state
    # To leave is a request like any other: a question may overtake it.
    await asyncio.to_thread(wait_until, lambda: not serving.core.state_dump()["managers"])


@on_a_loop
async def test_a_gang_comes_together_and_fits_is_asked_on_the_loop(address: str) -> None:
    loop = asyncio.get_running_loop()
    asked: list[str] = []

    async def fits(node_id: str) -> bool:
        assert asyncio.get_running_loop() is loop
        asked.append(node_id)
        await asyncio.sleep(0)
        return node_id == "small"

    async with connect_async(address, QUEUES) as s:
        for name in ("big", "small"):
            await s.add_node(name, vcore=8)
        gang = {"worker": {"count": 3, "vcore": 1}}
        app = await s.application("gang", queue="root.batch", user="ann", gang=gang)
        leases = await asyncio.gather(*(app.ask(f"w-{n}", group="worker") for n in range(3)))
        assert {"big", "small"} >= {lease.node_id for lease in leases}
        other = await s.application("other", queue="root.batch", user="ann")
        assert "small" == (await other.ask("task", vcore=1, fits=fits)).node_id
        assert "small" in asked


@on_a_loop
async def test_inside_a_condition_nothing_waits_for_the_core(address: str) -> None:
    refused: list[Exception] = []

    async with connect_async(address, QUEUES) as s:
        await s.add_node("n1", vcore=8)
        app = await s.application("app", queue="root.batch", user="ann")

        async def fits(_: str) -> bool:
            with pytest.raises(WouldBlock) as raised:
                await s.add_node("n2", vcore=1)
            refused.append(raised.value)
            return True

        await app.ask("task", vcore=1, fits=fits)
        assert refused


@on_a_loop
async def test_when_the_service_ends_so_does_what_waits(serving: Serving, address: str) -> None:
    s = await connect_async(address, give_up_after=0).start()
    try:
        await s.add_node("node-1", vcore=1)
        future = (await s.application("app", user="ann")).ask("task", vcore=8)
        await asyncio.to_thread(serving.stop)
        with pytest.raises((ConnectionLost, CoreStopped)):
            await asyncio.wait_for(future, PATIENCE_S)
        with pytest.raises((ConnectionLost, CoreStopped)):
            await s.add_node("node-2", vcore=1)
    finally:
        await s.close()


@on_a_loop
async def test_a_service_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "CONNECT_S", 0.05)
    with pytest.raises(ConnectionLost, match=r"127\.0\.0\.1:1"):
        await connect_async("127.0.0.1:1").start()


def test_a_core_for_threads_is_refused_at_the_front_door_for_loops(address: str) -> None:
    with pytest.raises(InvalidRequest, match="not RemoteCore"):
        AsyncScheduler(core=RemoteCore(address))  # type: ignore[arg-type]


# -- the scheduler interface


@on_a_loop
async def test_a_resource_manager_hears_by_its_handle(address: str) -> None:
    async with AsyncRemoteCore(address) as core:
        responses = await register(core)
        await core.update_node(node_request("n1"))
        assert ["n1"] == accepted_nodes(await anext(responses.nodes()))
        await core.update_application(app_request("app"))
        await anext(responses.applications())
        await core.update_allocation(ask_request("one"))
        told = await anext(responses.allocations())
        assert ["one"] == [item.allocation_key for item in told.new]
        await core.unregister_resource_manager("rm-1")
        with pytest.raises(UnknownResourceManager):
            await core.update_node(node_request("n2"))
        with pytest.raises(StopAsyncIteration):
            await anext(responses.nodes())


@on_a_loop
async def test_events_are_heard_until_they_are_closed(address: str) -> None:
    async with AsyncRemoteCore(address) as core:
        await register(core)
        async with await core.event_stream() as stream:
            await core.update_node(node_request("n1"))
            assert "n1" == (await anext(stream)).object_id
        # It ends; what had come by then can still be taken.
        assert {"n1", "root"} >= {record.object_id async for record in stream}


@on_a_loop
async def test_a_reader_of_events_learns_that_the_connection_was_lost(address: str) -> None:
    core = await AsyncRemoteCore(address).start()
    stream = await core.event_stream()
    assert core._core._link is not None
    await asyncio.to_thread(core._core._link.close)
    with pytest.raises(ConnectionLost):
        await asyncio.wait_for(anext(stream), PATIENCE_S)
    await core.stop()


@on_a_loop
async def test_what_a_callback_raises_is_told_on_the_loop(address: str) -> None:
    raised: asyncio.Queue[tuple[str, CallbackRaised]] = asyncio.Queue()

    class Broken(AsyncResourceManagerCallback):
        async def get_state_dump(self) -> str:
            raise ValueError("no state today")

    def tell(error: CallbackRaised) -> None:
        raised.put_nowait((threading.current_thread().name, error))

    async with AsyncRemoteCore(address, on_callback_error=tell) as core:
        request = si.RegisterResourceManagerRequest(rm_id="rm-1", policy_group="g", config=CONFIG)
        await core.register_resource_manager(request, Broken())
        await core.state_dump()
        thread, error = await raised.get()
        assert (threading.current_thread().name, "get_state_dump") == (thread, error.method)
        assert "no state today" in str(error)
