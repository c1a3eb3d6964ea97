"""What an ask carries goes on through a break: devices, rules, deadlines, what waits; on both fronts."""

import asyncio
import threading
from collections import Counter
from collections.abc import Coroutine, Iterator
from typing import Any, cast

import pytest

pytest.importorskip("grpc")
from breaking import BREAKS, Place, broken, state
from fronting import QUEUES, raised
from probes import wait_until

from yunikorn_actors import (
    AsyncScheduler,
    Connection,
    ConnectionLost,
    DeadlinePassed,
    NoReply,
    Scheduler,
    connect,
    connect_async,
)
from yunikorn_actors.front import aio, session
from yunikorn_actors.service import breaks

PATIENCE_S = 60.0
ZONES = {"n1": "a", "n2": "a", "n3": "b"}


class Looped:
    """A front on a loop of its own thread, called as one on threads is."""

    def __init__(self, address: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.front: AsyncScheduler = self.run(connect_async(address, QUEUES).start())

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)

    def close(self) -> None:
        self.run(self.front.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def connection(self) -> Connection:
        return self.front.connection

    def add_node(self, *args: Any, **given: Any) -> Any:
        return self.run(self.front.add_node(*args, **given))

    def waiting(self) -> Any:
        return self.run(self.front.waiting())

    def application(self, *args: Any, **given: Any) -> "LoopedApplication":
        return LoopedApplication(self, self.run(self.front.application(*args, **given)))

    def states(self, expected: int) -> list[str]:
        """Return the states that events of kind `connection` have, from now on."""
        return cast("list[str]", self.run(self._states(expected)))

    async def _states(self, expected: int) -> list[str]:
        async with self.front.events("connection") as events:
            return [(await anext(events)).connection.state for _ in range(expected)]


class LoopedApplication:
    def __init__(self, front: Looped, app: Any) -> None:
        self._front, self._app = front, app

    def ask(self, *args: Any, **given: Any) -> Any:
        async def ask() -> Any:
            return self._app.ask(*args, **given)

        made = self._front.run(ask())
        many = [LoopedFuture(self._front, it) for it in (made if "count" in given else [made])]
        return many if "count" in given else many[0]

    def explain(self, key: str) -> Any:
        return self._front.run(self._app.explain(key))


class LoopedFuture:
    def __init__(self, front: Looped, future: Any) -> None:
        self._front, self._future = front, future

    def result(self, timeout: float) -> Any:
        return self._front.run(asyncio.wait_for(self._future, timeout))

    def done(self) -> bool:
        done: bool = self._future.done()
        return done


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breaks, "LONGEST_DELAY_S", 0.2)


@pytest.fixture(params=BREAKS)
def place(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[Place]:
    made = Place(request.param, tmp_path)
    yield made
    made.close()


@pytest.fixture(params=["threads", "loop"])
def s(place: Place, request: pytest.FixtureRequest) -> Iterator[Any]:
    address = place.proxy.address
    made = connect(address, QUEUES).start() if request.param == "threads" else Looped(address)
    yield made
    made.close()


def zoned(s: Any) -> Any:
    for name, zone in ZONES.items():
        s.add_node(name, vcore=4, attributes={"zone": zone})
    return s.application("app", queue="root.batch", user="ann")


def test_devices_stay_with_their_leases(place: Place, s: Any) -> None:
    s.add_node("n1", vcore=8, gpus=4, gpu_model="A100")
    app = s.application("app", queue="root.batch", user="ann")
    whole = [it.result(PATIENCE_S) for it in app.ask("whole", vcore=1, gpu=1, count=2)]
    share = app.ask("share", vcore=1, gpu=0.5).result(PATIENCE_S)
    waits = app.ask("waits", vcore=1, gpu=3, gpu_model="A100")
    before = [it.devices for it in (*whole, share)]
    assert 3 == len({number for devices in before for number in devices})
    broken(place, s)
    assert before == [it.devices for it in (*whole, share)]
    # Nobody gets one of theirs, nor more of the shared one than is left of it.
    other = app.ask("other", vcore=1, gpu=1).result(PATIENCE_S)
    assert {0, 1, 2, 3} - {it for devices in before for it in devices} == {*other.devices}
    half = app.ask("half", vcore=1, gpu=0.5).result(PATIENCE_S)
    assert share.devices == half.devices
    wait_until(lambda: ["A100"] == [it.gpu_model for it in s.waiting()])
    assert not waits.done()
    for lease in (*whole, other):
        lease.release()
    assert 3 == len(waits.result(PATIENCE_S).devices)


def test_rules_hold_for_what_was_placed_before(place: Place, s: Any) -> None:
    app = zoned(s)
    spread = [it.result(PATIENCE_S) for it in app.ask("web", vcore=1, spread="zone", count=2)]
    assert {"a": 1, "b": 1} == Counter(ZONES[it.node_id] for it in spread)
    first = app.ask("db", vcore=1, apart_from="db", where={"zone": "b"}).result(PATIENCE_S)
    assert "n3" == first.node_id
    waits = app.ask("db-b", vcore=1, apart_from="db", where={"zone": "b"})
    place.end()
    wait_until(lambda: state(s) == "away")
    # Asked while nobody is there; the rules are judged when the service asks.
    more = app.ask("more", vcore=1, spread="zone", count=2)
    others = app.ask("others", vcore=1, apart_from="db", count=2)
    place.begin()
    assert {"a": 1, "b": 1} == Counter(ZONES[it.result(PATIENCE_S).node_id] for it in more)
    assert {"n1", "n2"} == {it.result(PATIENCE_S).node_id for it in others}
    assert not waits.done()
    first.release()
    assert "n3" == waits.result(PATIENCE_S).node_id


def test_a_gang_with_rules_keeps_its_room_and_its_members_find_it(place: Place, s: Any) -> None:
    zoned(s)
    gang = {"w": {"vcore": 1, "count": 3, "apart_from": "gang"}}
    app = s.application("gang", queue="root.batch", user="ann", gang=gang)
    first = app.ask("first", group="w").result(PATIENCE_S)
    wait_until(lambda: 3 == len(place.placed("gang")))
    before = {*place.placed("gang").values()}
    broken(place, s)
    wait_until(lambda: before == {*place.placed("gang").values()})
    rest = [it.result(PATIENCE_S) for it in app.ask("m", group="w", count=2)]
    assert {*ZONES} == {it.node_id for it in (first, *rest)}


def test_a_deadline_passes_while_the_service_is_away(place: Place, s: Any) -> None:
    app = zoned(s)
    late = app.ask("late", vcore=8, deadline=0.3)
    place.end()
    wait_until(lambda: state(s) == "away")
    asked = app.ask("asked", vcore=1, deadline=0.3)
    in_time = app.ask("in-time", vcore=1, deadline=PATIENCE_S)
    assert "late" in raised(lambda: late.result(PATIENCE_S), DeadlinePassed)
    assert "asked" in raised(lambda: asked.result(PATIENCE_S), DeadlinePassed)
    assert not in_time.done()
    place.begin()
    in_time.result(PATIENCE_S)
    wait_until(lambda: {"in-time"} == place.placed().keys())
    wait_until(lambda: not place.asks())


def test_what_waits_is_said_again_and_meanwhile_where_it_is_not_known(place: Place, s: Any) -> None:
    app = zoned(s)
    app.ask("big", vcore=5, count=3)
    app.ask("zone", vcore=1, where={"zone": "x"})
    wait_until(lambda: 4 == sum(it.count for it in s.waiting()))
    before = {(it.cause, it.count, *it.size.items()) for it in s.waiting()}
    place.end()
    wait_until(lambda: state(s) == "away")
    said = raised(s.waiting, ConnectionLost)
    assert f"at {place.proxy.address} has broken, and is made again by itself" in said
    place.begin()
    wait_until(lambda: state(s) == "connected")
    wait_until(lambda: before == {(it.cause, it.count, *it.size.items()) for it in s.waiting()})


def test_an_answer_that_does_not_come_names_the_service(
    place: Place, s: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "REPLY_TIMEOUT_S", 0.2)
    monkeypatch.setattr(aio, "REPLY_TIMEOUT_S", 0.2)
    zoned(s)
    place.end()
    wait_until(lambda: state(s) == "away")
    for call in (
        lambda: s.add_node("n9", vcore=1),
        lambda: s.application("late", queue="root.batch", user="ann"),
    ):
        said = raised(call, NoReply)
        assert f"away with the service at {place.proxy.address}" in said
        assert "make the call again" in said
    place.begin()
    wait_until(lambda: state(s) == "connected")
    # What was given up is not made behind the program's back.
    wait_until(lambda: {"app"} == place.applications().keys())
    monkeypatch.setattr(session, "REPLY_TIMEOUT_S", PATIENCE_S)
    monkeypatch.setattr(aio, "REPLY_TIMEOUT_S", PATIENCE_S)
    s.add_node("n9", vcore=1)
    s.application("late", queue="root.batch", user="ann")


def test_an_event_says_that_it_went_and_came(place: Place, s: Any) -> None:
    found: list[str] = []

    def read() -> None:
        if isinstance(s, Scheduler):
            with s.events("connection") as events:
                found.extend(next(events).connection.state for _ in range(4))
        else:
            found.extend(s.states(4))

    reader = threading.Thread(target=read)
    reader.start()
    front = s if isinstance(s, Scheduler) else s.front
    wait_until(lambda: front._operations.session.readers.refs)
    for _ in range(2):
        broken(place, s)
    reader.join(PATIENCE_S)
    assert ["away", "connected"] * 2 == found


class Pool:
    """The executor of either front, called as the one on threads is."""

    def __init__(self, s: Any) -> None:
        self._front = None if isinstance(s, Scheduler) else s
        made = (s if self._front is None else s.front).executor(queue="root.batch", user="ann")
        self._made = made.__enter__() if self._front is None else self._front.run(made.start())

    def submit(self, *call: Any) -> Any:
        if self._front is None:
            return self._made.submit(*call)

        async def submit() -> Any:
            return self._made.submit(*call)

        return LoopedFuture(self._front, self._front.run(submit()))

    def close(self) -> None:
        if self._front is None:
            self._made.shutdown()
        else:
            self._front.run(self._made.close())


def test_functions_go_on_while_the_service_is_away(place: Place, s: Any) -> None:
    go, begun = threading.Event(), threading.Semaphore(0)

    def work() -> bool:
        begun.release()
        return go.wait(PATIENCE_S)

    s.add_node("n1", vcore=2)
    pool = Pool(s)
    runs = [pool.submit(work) for _ in range(3)]
    assert all(begun.acquire(timeout=PATIENCE_S) for _ in range(2))
    place.end()
    wait_until(lambda: state(s) == "away")
    later = pool.submit(pow, 2, 10)
    place.begin()
    wait_until(lambda: state(s) == "connected")
    # Both have their leases, so there is no room for the third.
    assert not begun.acquire(timeout=0.1)
    go.set()
    results = [it.result(PATIENCE_S) for it in runs]
    assert ([True] * 3, 1024) == (results, later.result(PATIENCE_S))
    # Each began once.
    assert begun.acquire(timeout=0)
    assert not begun.acquire(timeout=0.1)
    pool.close()


@pytest.mark.parametrize("is_async", [False, True])
def test_conditions_of_asks_hold_on_what_comes_back(
    place: Place, s: Any, *, is_async: bool
) -> None:
    if is_async and isinstance(s, Scheduler):
        pytest.skip("those are for a front on a loop")
    asked: list[str] = []

    def fits(node_id: str) -> bool:
        asked.append(node_id)
        return node_id == "n3"

    async def fits_later(node_id: str) -> bool:
        await asyncio.sleep(0)
        return fits(node_id)

    app = zoned(s)
    condition = fits_later if is_async else fits
    first = app.ask("first", vcore=3, fits=condition).result(PATIENCE_S)
    waits = app.ask("waits", vcore=2, fits=condition)
    place.end()
    wait_until(lambda: state(s) == "away")
    later = app.ask("later", vcore=1, fits=condition)
    asked.clear()
    place.begin()
    wait_until(lambda: state(s) == "connected")
    assert "n3" == later.result(PATIENCE_S).node_id
    assert "n3" in asked
    assert not waits.done()
    first.release()
    assert "n3" == waits.result(PATIENCE_S).node_id
