"""What somebody writes who has read a page only: refused at once, with what to write instead."""

import asyncio
import functools
import warnings
from collections.abc import Callable
from concurrent.futures import Future, as_completed
from concurrent.futures import wait as wait_for
from typing import Any

import pytest
from fronting import PATIENCE_S, QUEUES, raised
from looping import on_a_loop
from probes import wait_until

from yunikorn_actors import (
    AsyncLease,
    AsyncScheduler,
    ConfigWarning,
    InvalidRequest,
    Lease,
    QueueNotFound,
    Scheduler,
    UnknownAsk,
    WouldBlock,
    si,
)

# -- what waits inside the core


def test_waiting_for_an_ask_inside_fits_raises() -> None:
    blocked: list[str] = []
    reader: list[Any] = []

    def fits(_: str) -> bool:
        waits: "Future[Lease]" = app.ask("u", vcore=1)
        calls: tuple[Callable[[], object], ...] = (
            waits.result,
            lambda: waits.result(PATIENCE_S),
            waits.exception,
            lambda: next(reader[0]),
            lambda: wait_for([waits]),
            lambda: wait_for([waits, held], return_when="ALL_COMPLETED"),
            lambda: list(as_completed([waits])),
            held.result().wanted_back.wait,
            lambda: held.result().wanted_back.wait(PATIENCE_S),
        )
        blocked.extend(raised(call, WouldBlock) for call in calls)
        return True

    with Scheduler(QUEUES) as s, s.events("node") as events:
        reader.append(events)
        s.add_node("n1", vcore=4)
        assert next(events)
        app = s.application("a", queue="root.batch", user="ann")
        held = app.ask("held", vcore=1)
        held.result(PATIENCE_S)
        app.ask("t", vcore=1, fits=fits).result(PATIENCE_S)
    assert 9 == len(blocked)
    assert "from inside it (from fits, or from a callback)" in blocked[0]


def test_what_is_there_already_is_no_wait() -> None:
    nodes: list[str] = []

    def fits(_: str) -> bool:
        nodes.append(first.result().node_id)
        return True

    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=4)
        app = s.application("a", queue="root.batch", user="ann")
        first = app.ask("t", vcore=1)
        first.result(PATIENCE_S)
        app.ask("u", vcore=1, fits=fits).result(PATIENCE_S)
    assert ["n1"] == nodes


def test_what_is_there_already_is_no_wait_for_several_either() -> None:
    seen: list[object] = []

    def fits(_: str) -> bool:
        seen.extend(wait_for([first, second]).done)
        seen.extend(as_completed([first, second]))
        return True

    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=4)
        app = s.application("a", queue="root.batch", user="ann")
        first, second = app.ask("t", vcore=1, count=2)
        wait_for([first, second])
        app.ask("u", vcore=1, fits=fits).result(PATIENCE_S)
    assert 4 == len(seen)


def test_a_callback_may_not_wait_either() -> None:
    blocked: list[str] = []

    class Waits(si.ResourceManagerCallback):
        def update_allocation(self, response: si.AllocationResponse) -> None:
            if response.new and not blocked:
                blocked.append(raised(later.result, WouldBlock))

    with Scheduler(QUEUES, callback=Waits()) as s:
        s.add_node("n1", vcore=4)
        app = s.application("a", queue="root.batch", user="ann")
        later = app.ask("later", vcore=5)
        app.ask("t", vcore=1).result(PATIENCE_S)
        wait_until(lambda: blocked)


@on_a_loop
async def test_an_async_fits_may_not_wait_for_the_core() -> None:
    blocked: list[str] = []
    held: list[AsyncLease] = []

    async def fits(_: str) -> bool:
        later = app.ask("later", vcore=1)
        calls: list[Callable[[], Any]] = [
            lambda: later,
            lambda: asyncio.wait_for(later, PATIENCE_S),
            lambda: asyncio.wait([later]),
            lambda: gathered(later, later),
            lambda: asyncio.shield(later),
            lambda: app.explain("t"),
            lambda: s.explain("a", "t"),
            s.waiting,
            lambda: s.configure(QUEUES),
            lambda: s.application("b", queue="root.batch", user="ann"),
            events.__anext__,
            held[0].wanted_back.wait,
        ]
        for call in calls:
            try:
                await call()
            except WouldBlock as error:
                blocked.append(str(error))
        return True

    async with AsyncScheduler(QUEUES) as s, s.events("wanted_back") as events:
        await s.add_node("n1", vcore=4)
        app = await s.application("a", queue="root.batch", user="ann")
        held.append(await app.ask("held", vcore=1))
        await app.ask("t", vcore=1, fits=fits)
    assert 12 == len(blocked)
    assert all("call it from another thread or task" in it for it in blocked)


async def gathered(*futures: "asyncio.Future[Any]") -> None:
    await asyncio.gather(*futures)


def test_a_condition_without_a_return_says_so() -> None:
    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=4)
        app = s.application("a", queue="root.batch", user="ann")
        app.ask("t", vcore=1, fits=lambda _: None)
        wait_until(lambda: "have it return True or False" in app.explain("t").report())
        app.ask("no", vcore=1, fits=lambda _: 0)
        wait_until(lambda: "fits() says that it does not fit" in app.explain("no").report())


@on_a_loop
async def test_an_async_condition_without_a_return_says_so() -> None:
    async def forgot(_: str) -> None:
        await asyncio.sleep(0)

    async with AsyncScheduler(QUEUES) as s:
        await s.add_node("n1", vcore=4)
        app = await s.application("a", queue="root.batch", user="ann")
        app.ask("t", vcore=1, fits=forgot)
        text = ""
        while "have it return True or False" not in text:
            await asyncio.sleep(0.01)
            text = (await app.explain("t")).report()


# -- an async fits


async def _fits(_: str) -> bool:
    return True


class _Fits:
    async def __call__(self, _: str) -> bool:
        return True


@pytest.mark.parametrize(
    "fits", [_fits, functools.partial(_fits), _Fits(), _Fits().__call__], ids=range(4)
)
def test_an_async_fits_is_refused_at_the_ask(fits: Any) -> None:
    with Scheduler(QUEUES) as s:
        app = s.application("a", queue="root.batch", user="ann")
        assert "an async function is for AsyncScheduler" in raised(
            lambda: app.ask("t", vcore=1, fits=fits), InvalidRequest
        )
        assert "fits: must be a function" in raised(
            lambda: app.ask("t", vcore=1, fits=5),  # type: ignore[call-overload]
            InvalidRequest,
        )


# -- a future is no lease


def test_a_future_says_what_to_write() -> None:
    async def awaits(ask: Any) -> None:
        await ask

    async def enters(ask: Any) -> None:
        async with ask:
            pass

    def begins(ask: Any) -> None:
        with ask:
            pass

    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=4)
        ask: Any = s.application("a", queue="root.batch", user="ann").ask("t", vcore=1)
        ask.result(PATIENCE_S)
        assert "with app.ask(...).result(timeout=10) as lease:" in raised(
            lambda: begins(ask), TypeError
        )
        for wrong in (awaits, enters):
            told = raised(lambda wrong=wrong: asyncio.run(wrong(ask)), TypeError)  # type: ignore[misc]
            assert "app.ask(...).result(timeout=10)" in told
            assert "AsyncScheduler" in told
        assert "app.ask(...).result(timeout=10).node_id" in raised(
            lambda: ask.node_id, AttributeError
        )
        assert "has no attribute 'nothing'" in raised(lambda: ask.nothing, AttributeError)
        assert not hasattr(ask, "release")


@on_a_loop
async def test_a_future_of_a_loop_says_what_to_write() -> None:
    async with AsyncScheduler(QUEUES) as s:
        app = await s.application("a", queue="root.batch", user="ann")
        ask: Any = app.ask("t", vcore=1)
        with pytest.raises(TypeError, match=r"async with await app\.ask"), ask:
            pass
        with pytest.raises(TypeError, match=r"async with await app\.ask"):
            async with ask:
                pass
        with pytest.raises(AttributeError, match=r"\(await app\.ask\(\.\.\.\)\)\.node_id"):
            ask.node_id  # noqa: B018 - what is read is wrong
        for arguments in ((), (10,)):
            with pytest.raises((TypeError, asyncio.InvalidStateError), match=r"await app\.ask"):
                ask.result(*arguments)
        await s.add_node("n1", vcore=4)
        lease = await ask
        assert lease is ask.result()
        assert [lease] == await asyncio.gather(ask)


# -- names of resources


@pytest.mark.parametrize(
    ("kind", "meant"),
    [
        ("cpu", "vcore"), ("CPU", "vcore"), ("cores", "vcore"), ("Vcore", "vcore"), ("vcpu", "vcore"),
        ("vcroe", "vcore"), ("mem", "memory"), ("ram", "memory"), ("Memory", "memory"), ("memroy", "memory"),
    ],
)  # fmt: skip
def test_other_names_of_vcore_and_memory_are_refused(kind: str, meant: str) -> None:
    with Scheduler(QUEUES) as s:
        app = s.application("a", queue="root.batch", user="ann")
        size = {kind: 1}
        for call, what in (
            (lambda: s.add_node("n", resources=size), "add_node"),
            (lambda: app.ask("t", resources=size), "ask"),
            (lambda: s.application("g", user="ann", gang={"w": size}), "gang: w"),
        ):
            told = raised(call, InvalidRequest)  # type: ignore[arg-type]
            assert told.startswith(f"{what}: {kind!r} would be a resource type; ")
            assert f"did you mean {meant!r}?" in told


@pytest.mark.parametrize(
    "kind", ["gpu", "nvidia.com/gpu", "disk", "slots", "memory-mb", "hugepages-2Mi"]
)
def test_other_types_are_types(kind: str) -> None:
    with Scheduler(QUEUES) as s:
        s.add_node("n", resources={kind: 4})
        app = s.application("a", queue="root.batch", user="ann")
        assert "n" == app.ask("t", resources={kind: 1}).result(PATIENCE_S).node_id


# -- what is legal in a configuration and can hardly be meant

SLIPS = """
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: a
      resources: {max: {cpu: 4}, guaranteed: {memroy: 1Gi}}
      properties: {preemption.dela: 1s, priority.offset: high}
    - name: b
      childtemplate: {resources: {max: {cores: 1}}}
      parent: true
      limits: [{limit: x, users: ["*"], maxresources: {ram: 1Gi}}]
"""


def test_slips_in_queues_are_told() -> None:
    with pytest.warns(ConfigWarning) as caught:
        Scheduler(SLIPS)
    told = "\n".join(str(it.message) for it in caught)
    for words in (
        "unknown property 'preemption.dela' has no effect (did you mean 'preemption.delay'?)",
        "property priority.offset: 'high' is no value",
        "resource type 'cpu' is one that nothing else has (did you mean 'vcore'?)",
        "resource type 'memroy' is one that nothing else has (did you mean 'memory'?)",
        "'cores'",
        "'ram'",
    ):
        assert words in told
    assert {__file__} == {it.filename for it in caught}
    with Scheduler(QUEUES) as s, pytest.warns(ConfigWarning, match="preemption.dela"):
        s.configure(QUEUES.replace("preemption.delay", "preemption.dela"))


def test_queues_without_slips_warn_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Scheduler(QUEUES)
        Scheduler()


def test_a_timeout_that_is_no_time_is_refused() -> None:
    with Scheduler(QUEUES) as s:
        future = s.application("a", queue="root.batch", user="ann").ask("t", vcore=1)
        with s.executor(queue="root.batch", user="ann", vcore=1) as pool:
            call = pool.submit(pow, 2, 3)
            for wait in (future.result, future.exception, call.result, call.exception):
                said = raised(lambda wait=wait: wait("1s"), InvalidRequest)  # type: ignore[misc]
                assert "timeout: must be seconds, not '1s'" in said
            assert call.cancel()
        with pytest.raises(TimeoutError):
            future.result(0)


# -- names that are not there


def test_a_default_queue_that_is_not_there_names_the_queues() -> None:
    with Scheduler(QUEUES) as s:
        told = raised(lambda: s.application("a", user="ann"), QueueNotFound)
        assert "there is no queue root.default; queues root.batch, root.sure would take it" in told


def test_explain_knows_the_keys_of_count() -> None:
    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=4)
        app = s.application("a", queue="root.batch", user="ann")
        for ask in app.ask("k", vcore=1, count=3):
            ask.result(PATIENCE_S)
        assert "asked with count=: explain 'k-1', or another of its 3 keys to 'k-3'" in raised(
            lambda: app.explain("k"), UnknownAsk
        )
        for lease in app.leases:
            lease.release()
        assert "'k-1'" in raised(lambda: app.explain("k"), UnknownAsk)
        assert "'k-1'" not in raised(lambda: app.explain("j"), UnknownAsk)


# -- arguments that there are none of


@pytest.mark.parametrize(
    ("slip", "instead"),
    [
        ({"cpu": 4}, "write vcore=4"),
        ({"cpus": 4}, "write vcore=4"),
        ({"mem": "4Gi"}, "write memory='4Gi'"),
        ({"resource": {"vcore": 1}}, "write resources={'vcore': 1}"),
        ({"fpga": 1}, "other types of resource go into resources={'fpga': ...}"),
    ],
    ids=str,
)
def test_an_argument_that_there_is_none_of_is_refused_with_what_to_write(
    slip: dict[str, Any], instead: str
) -> None:
    """The most common slip of all had Python's own words for an answer."""
    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=4)
        app = s.application("app", queue="root.batch", user="ann")
        calls = {"add_node": lambda: s.add_node("n2", **slip), "ask": lambda: app.ask("t", **slip)}
        for what, call in calls.items():
            said = raised(call, InvalidRequest)
            assert f"{what}: there is no argument '{next(iter(slip))}': {instead}" == said
        assert ["n1"] == list(s.nodes)


@on_a_loop
async def test_on_a_loop_such_an_argument_is_refused_as_well() -> None:
    async with AsyncScheduler(QUEUES) as s:
        wrong: dict[str, Any] = {"cpu": 4}
        with pytest.raises(InvalidRequest, match="write vcore=4"):
            await s.add_node("n1", **wrong)
