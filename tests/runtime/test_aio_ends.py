"""The core on an event loop: slow consumers, several of everything, and the end."""

import asyncio
import gc
import threading
from collections import Counter
from collections.abc import AsyncIterator
from io import StringIO
from typing import Any

import pykka
import pytest
from looping import (
    CONFIG,
    PATIENCE_S,
    accepted_nodes,
    app_request,
    ask_request,
    break_down,
    gated,
    node_request,
    on_a_loop,
    outcome,
    register,
    take_all,
    tick,
    until,
)

from yunikorn_actors import (
    AsyncSchedulerCore,
    CoreFailed,
    CoreStopped,
    InvalidRequest,
    Refused,
    ResponsesLost,
    enable_logs,
    si,
)
from yunikorn_actors.runtime.responses import ROOM, Responses

# -- slow consumers


@on_a_loop
async def test_a_slow_consumer_loses_nothing_and_holds_up_nobody() -> None:
    names = [f"n{number}" for number in range(2 * ROOM)]
    async with AsyncSchedulerCore() as core:
        slow = await register(core, "rm-1")
        quick = await register(core, "rm-2")
        for name in names:
            await core.update_node(node_request(name))
        inbox = core._inboxes["rm-1"]
        await until(lambda: inbox._has_waited)
        while len((await core.state_dump())["partitions"]["[rm-1]default"]["nodes"]) < len(names):
            await tick()
        await core.update_node(node_request("other", "rm-2"))
        assert ["other"] == accepted_nodes(await anext(quick.nodes()))
        assert ROOM == len(inbox._kept["node"])
        heard: list[str] = []
        async for answer in slow.nodes():
            heard += accepted_nodes(answer)
            if len(heard) == len(names):
                break
        assert names == heard
        assert not inbox._kept["node"]


@on_a_loop
async def test_who_has_dropped_the_handle_is_not_waited_for() -> None:
    async with AsyncSchedulerCore() as core:
        await register(core)
        for number in range(ROOM + 10):
            await core.update_node(node_request(f"n{number}"))
        await until(core._core.is_settled)
        assert [0, 0, 0, 0] == [len(kept) for kept in core._inboxes["rm-1"]._kept.values()]


@on_a_loop
async def test_a_handle_that_is_dropped_lets_a_delivery_go_that_waits() -> None:
    async with AsyncSchedulerCore() as core:
        handle = await register(core)
        for number in range(ROOM + 10):
            await core.update_node(node_request(f"n{number}"))
        inbox = core._inboxes["rm-1"]
        await until(lambda: inbox._has_waited)
        del handle
        gc.collect()
        await until(core._core.is_settled)
        assert not inbox._kept["node"]


@on_a_loop
async def test_an_iterator_alone_keeps_its_handle() -> None:
    async with AsyncSchedulerCore() as core:
        nodes = (await register(core)).nodes()
        gc.collect()
        await core.update_node(node_request("n1"))
        assert ["n1"] == accepted_nodes(await anext(nodes))


@on_a_loop
async def test_a_stop_lets_a_delivery_go_that_waits() -> None:
    core = await AsyncSchedulerCore().start()
    handle = await register(core)
    for number in range(ROOM + 10):
        await core.update_node(node_request(f"n{number}"))
    await until(lambda: core._inboxes["rm-1"]._has_waited)
    # A delivery that is left waiting would be waited for until the test has run out of patience.
    await core.stop(timeout=2 * PATIENCE_S)
    assert ROOM == len(await take_all(handle.nodes()))


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("yunikorn_actors.runtime.responses.ROOM", 10)
    monkeypatch.setattr("yunikorn_actors.runtime.responses.PATIENCE_S", 0.05)
    return 10


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch, short: int) -> int:
    monkeypatch.setattr("yunikorn_actors.runtime.responses.PATIENCE_S", PATIENCE_S)
    return short


@on_a_loop
async def test_who_takes_one_kind_alone_goes_on_hearing_it(
    short: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """The others are bounded by themselves; whoever comes to a gap is told how much it was."""
    async with AsyncSchedulerCore() as core:
        handle = await register(core)
        await core.update_application(app_request("app"))
        for number in range(2 * short):
            await core.update_node(node_request(f"n{number}"))
        await core.update_allocation(ask_request("a"))
        assert ["a"] == [item.allocation_key for item in (await anext(handle.allocations())).new]
        nodes = handle.nodes()
        heard = [accepted_nodes(await anext(nodes)) for _ in range(short)]
        assert [[f"n{number}"] for number in range(short)] == heard
        with pytest.raises(ResponsesLost, match=rf"^{short} node responses for rm-1 were dropped"):
            await anext(nodes)
        await core.update_node(node_request("late"))
        assert ["late"] == accepted_nodes(await anext(nodes))
    told = capsys.readouterr().err
    assert 1 == told.count("yunikorn_actors: node responses for rm-1 are dropped")


@on_a_loop
async def test_a_gap_has_its_place_among_all(short: int) -> None:
    async with AsyncSchedulerCore() as core:
        handle = await register(core, wants=("allocation", "application", "node"))
        await core.update_application(app_request("app"))
        for number in range(short + 1):
            await core.update_node(node_request(f"n{number}"))
        await core.update_allocation(ask_request("a"))
        await anext(handle.allocations())
        everything = handle.responses()
        kinds = [(await anext(everything)).kind for _ in range(short + 1)]
        assert {"node": short, "application": 1} == Counter(kinds)
        with pytest.raises(ResponsesLost, match=r"^1 node"):
            await anext(everything)


@on_a_loop
async def test_a_slow_taker_of_every_kind_loses_nothing(patient: int) -> None:
    """It is not given up as long as it takes something now and then."""
    short = patient
    async with AsyncSchedulerCore() as core:
        handle = await register(core)
        idle = asyncio.create_task(anext(handle.allocations()))
        for number in range(3 * short):
            await core.update_node(node_request(f"n{number}"))
        heard: list[str] = []
        async for answer in handle.nodes():
            heard += accepted_nodes(answer)
            if len(heard) == 3 * short:
                break
            await asyncio.sleep(0.002)
        assert [f"n{number}" for number in range(3 * short)] == heard
        idle.cancel()


@on_a_loop
async def test_a_kind_that_is_not_wanted_is_not_kept(short: int) -> None:
    async with AsyncSchedulerCore() as core:
        handle = await register(core, wants=["allocation"])
        await core.update_application(app_request("app"))
        for number in range(2 * short):
            await core.update_node(node_request(f"n{number}"))
        await core.update_allocation(ask_request("a"))
        assert "allocation" == (await anext(handle.responses())).kind
        inbox = core._inboxes["rm-1"]
        assert (0, False) == (sum(map(len, inbox._kept.values())), inbox._has_waited)
        with pytest.raises(InvalidRequest, match=r"does not want 'node', so it is not kept; name"):
            handle.nodes()
        with pytest.raises(InvalidRequest, match=r"wants: 'nodes' is none of allocation, app"):
            await register(core, wants=["nodes"])  # type: ignore[list-item]


# -- several


@on_a_loop
async def test_two_cores_on_one_loop() -> None:
    async with AsyncSchedulerCore() as one, AsyncSchedulerCore(topology="fused") as two:
        handles = await asyncio.gather(register(one), register(two))
        await asyncio.gather(
            one.update_node(node_request("east")), two.update_node(node_request("west"))
        )
        answers = [accepted_nodes(await anext(handle.nodes())) for handle in handles]
        assert [["east"], ["west"]] == answers
        await one.stop()
        assert [] == await take_all(handles[0].nodes())
        await two.update_node(node_request("south"))
        assert ["south"] == accepted_nodes(await anext(handles[1].nodes()))


@on_a_loop
async def test_who_registers_again_hears_nothing_on_the_former_handle() -> None:
    async with AsyncSchedulerCore() as core:
        former = await register(core)
        waiting = asyncio.create_task(take_all(former.nodes()))
        await tick()
        handle = await register(core)
        assert [] == await waiting
        await core.update_node(node_request("n1"))
        assert ["n1"] == accepted_nodes(await anext(handle.nodes()))
        await core.resource_manager_lost("rm-1")
        assert [] == await take_all(handle.nodes())


@on_a_loop
async def test_a_refused_registration_leaves_the_others_alone() -> None:
    async with AsyncSchedulerCore() as core:
        handle = await register(core)
        other = CONFIG.replace("{name: default}]", "{name: default}, {name: other}]")
        rival = si.RegisterResourceManagerRequest(rm_id="rm-2", policy_group="rm-1", config=other)
        assert Refused is await outcome(core.register_resource_manager(rival))
        assert ["rm-1"] == list(core._inboxes)
        await core.update_node(node_request("n1"))
        assert ["n1"] == accepted_nodes(await anext(handle.nodes()))


# -- the end


def iterators(handle: Responses) -> list[AsyncIterator[Any]]:
    return [
        handle.allocations(),
        handle.applications(),
        handle.nodes(),
        handle.events(),
        handle.responses(),
    ]


@on_a_loop
async def test_a_stop_ends_every_iterator() -> None:
    core = AsyncSchedulerCore()
    async with core:
        handle = await register(core)
        waiting = [asyncio.create_task(take_all(stream)) for stream in iterators(handle)]
        await tick()
        await asyncio.gather(core.stop(), core.stop())
        assert [[], [], [], [], []] == await asyncio.gather(*waiting)
    assert [] == await take_all(handle.nodes())
    assert core.failure is None


@on_a_loop
async def test_what_has_arrived_before_the_stop_can_be_taken_after_it() -> None:
    async with AsyncSchedulerCore() as core:
        handle = await register(core)
        await core.update_node(node_request("n1"))
        await until(lambda: core._inboxes["rm-1"]._kept["node"])
    assert [["n1"]] == [accepted_nodes(answer) for answer in await take_all(handle.nodes())]


@on_a_loop
async def test_somebody_who_stops_all_actors_ends_the_iterators_as_well() -> None:
    async with AsyncSchedulerCore() as core:
        handle = await register(core)
        waiting = asyncio.create_task(take_all(handle.responses()))
        await until(core._core.is_settled)
        await asyncio.to_thread(pykka.ActorRegistry.stop_all)
        assert [] == await waiting


@on_a_loop
async def test_a_stop_ends_the_calls_that_wait() -> None:
    async with AsyncSchedulerCore() as core:
        await register(core)
        gate = gated(core)
        calls = [asyncio.create_task(outcome(core.state_dump())) for _ in range(3)]
        await tick()
        stopping = asyncio.create_task(core.stop())
        assert [CoreStopped] * 3 == await asyncio.gather(*calls)
        gate.let_go()
        await stopping


@on_a_loop
async def test_a_failure_is_raised_in_calls_iterators_and_at_the_end() -> None:
    core = AsyncSchedulerCore()

    async def program() -> None:
        async with core:
            handle = await register(core)
            gate = gated(core)
            waiting = [asyncio.create_task(outcome(take_all(it))) for it in iterators(handle)]
            await tick()
            break_down(core)
            questions = [asyncio.create_task(outcome(core.state_dump())) for _ in range(3)]
            await tick()
            gate.let_go()
            assert [CoreFailed] * 5 == await asyncio.gather(*waiting)
            assert [CoreFailed] * 3 == await asyncio.gather(*questions)
            assert CoreFailed is await outcome(core.state_dump())
            assert CoreFailed is await outcome(core.update_node(node_request("n1")))
            assert CoreFailed is await outcome(register(core, "rm-2"))

    with pytest.raises(CoreFailed, match="context failed on Accepted"):
        await program()
    assert isinstance(core.failure, CoreFailed)


@on_a_loop
async def test_what_arrived_before_a_failure_is_given_out_before_it() -> None:
    core = await AsyncSchedulerCore().start()
    handle = await register(core)
    await core.update_node(node_request("n1"))
    await until(lambda: core._inboxes["rm-1"]._kept["node"])
    break_down(core)
    await until(lambda: core.failure)
    nodes = handle.nodes()
    assert ["n1"] == accepted_nodes(await anext(nodes))
    raised = [await _raised(nodes), await _raised(nodes)]
    assert raised[0] is not raised[1]
    await core.stop()
    assert raised[0].args == (await _raised(nodes)).args


async def _raised(stream: AsyncIterator[Any]) -> CoreFailed:
    with pytest.raises(CoreFailed) as caught:
        await anext(stream)
    return caught.value


@on_a_loop
async def test_an_error_of_the_program_is_not_hidden_by_a_failure_of_the_core() -> None:
    async def program() -> None:
        async with AsyncSchedulerCore() as core:
            await register(core)
            break_down(core)
            await until(lambda: core.failure)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await program()


def test_a_loop_that_is_closed_early_is_no_fault_of_the_delivery_thread() -> None:
    log = StringIO()
    end_logs = enable_logs(log, "WARNING")

    async def begin() -> tuple[AsyncSchedulerCore, Responses]:
        core = await AsyncSchedulerCore().start()
        return core, await register(core)

    try:
        core, handle = asyncio.run(begin())
        inbox = core._inboxes["rm-1"]
        core._core.update_node(node_request("n1"))
        while not core._core.is_settled():
            threading.Event().wait(0.001)
        core._core.update_node(node_request("n2"))
        while not core._core.is_settled():
            threading.Event().wait(0.001)
        assert inbox._is_closed
        assert "" == log.getvalue()
        asyncio.run(core.stop())
        assert "" == log.getvalue()
        del handle
    finally:
        end_logs()


def test_a_program_that_is_interrupted_leaves_nothing_running() -> None:
    """Whatever ends the program first, the core is stopped on the way out."""

    async def program() -> None:
        async with AsyncSchedulerCore() as core:
            handle = await register(core)
            async with asyncio.timeout(0):
                await take_all(handle.responses())

    with pytest.raises(TimeoutError):
        asyncio.run(program())
