"""A connection that breaks, and a service that is killed: a front comes back with all that it has.

A proxy between the front and its service breaks connections, and swallows what is sent just before.
So each test knows what had arrived when the connection broke.
"""

import asyncio
import threading
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

pytest.importorskip("grpc")
from breaking import BREAKS, Place, broken, state
from fronting import QUEUES
from looping import on_a_loop
from probes import wait_until

from yunikorn_actors import (
    ApplicationRejected,
    ConnectionLost,
    Lease,
    Replaced,
    Scheduler,
    SchedulerClosed,
    SchedulerCore,
    UnknownResourceManager,
    connect,
    connect_async,
)
from yunikorn_actors.service import breaks
from yunikorn_actors.service.access_policy import Access
from yunikorn_actors.service.rpc import link
from yunikorn_actors.service.service import Serving
from yunikorn_actors.service.tokens import TokenFiles

PATIENCE_S = 60.0


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breaks, "LONGEST_DELAY_S", 0.2)


@pytest.fixture(params=BREAKS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    made = Place(request.param, tmp_path)
    yield made
    made.close()


@pytest.fixture
def s(place: Place) -> Iterator[Scheduler]:
    scheduler = connect(place.proxy.address, QUEUES).start()
    yield scheduler
    scheduler.close()


def is_untouched(lease: Lease) -> bool:
    return (lease.state, lease.reason, lease.wanted_back.is_set()) == ("held", "", False)


# -- what runs and what waits


def test_leases_go_on_and_asks_go_on_waiting(place: Place, s: Scheduler) -> None:
    s.add_node("n1", vcore=4)
    app = s.application("app", queue="root.batch", user="ann")
    leases = [app.ask(f"t{n}", vcore=1).result(PATIENCE_S) for n in range(4)]
    waiting = [app.ask(f"w{n}", vcore=1) for n in range(3)]
    with s.events() as events:
        broken(place, s)
        wait_until(lambda: place.used() == 4_000)
        leases[0].release()
        assert ["w0"] == [waiting[0].result(PATIENCE_S).key]
        assert not waiting[1].done()
        leases[1].release()
        waiting[1].result(PATIENCE_S)
    assert all(map(is_untouched, leases[2:]))
    seen = list(events)
    assert ["away", "connected"] == [it.connection.state for it in seen if it.kind == "connection"]
    assert {"t0", "t1"} == {it.lease.key for it in seen if it.kind == "lease_over"}
    assert {"t2", "t3", "w0", "w1"} == place.placed().keys()


def test_what_is_asked_while_the_service_is_away_waits_and_is_sent_then(
    place: Place, s: Scheduler
) -> None:
    s.add_node("n1", vcore=4)
    app = s.application("app", queue="root.batch", user="ann")
    held = app.ask("held", vcore=1).result(PATIENCE_S)
    gone = app.ask("gone", vcore=1).result(PATIENCE_S)
    withdrawn = app.ask("withdrawn", vcore=8)
    place.end()
    wait_until(lambda: state(s) == "away")
    gone.release()
    assert withdrawn.cancel()
    asked = app.ask("asked", vcore=3)
    assert "it waits; the reason is not known" in str(app.explain("asked"))
    s.drain("n1")
    s.resume("n1")
    time.sleep(0.3)
    assert not asked.done()
    place.begin()
    assert "n1" == asked.result(PATIENCE_S).node_id
    assert is_untouched(held)
    wait_until(lambda: place.placed().keys() == {"held", "asked"})
    assert "placed" == app.explain("asked").state
    wait_until(lambda: not place.asks())


def test_a_node_that_drains_is_drained_when_the_service_is_back(place: Place, s: Scheduler) -> None:
    s.add_node("n1", vcore=4)
    app = s.application("app", queue="root.batch", user="ann")
    lease = app.ask("t", vcore=1).result(PATIENCE_S)
    s.drain("n1")
    broken(place, s)
    waits = app.ask("waits", vcore=1)
    wait_until(lambda: "drain" in str(app.explain("waits")))
    assert not waits.done()
    s.resume("n1")
    waits.result(PATIENCE_S)
    assert is_untouched(lease)


# -- what was under way when it broke


def test_a_placement_that_was_never_heard_is_heard_then(place: Place, s: Scheduler) -> None:
    s.add_node("n1", vcore=4)
    app = s.application("app", queue="root.batch", user="ann")
    place.proxy.swallow("client")
    future = app.ask("t", vcore=1)
    wait_until(lambda: place.placed() == {"t": "n1"})
    # The core has placed it; what it announces is on its way to the proxy.
    wait_until(lambda: place.proxy.swallowed["client"])
    assert not future.done()
    broken(place, s)
    assert is_untouched(future.result(PATIENCE_S))
    wait_until(lambda: place.used() == 1_000)


def test_a_release_that_the_service_never_heard_is_made_again(place: Place, s: Scheduler) -> None:
    s.add_node("n1", vcore=4)
    app = s.application("app", queue="root.batch", user="ann")
    lease, other = (app.ask(key, vcore=1).result(PATIENCE_S) for key in ("t", "other"))
    waiting = app.ask("waits", vcore=8)
    closed = s.application("closed", queue="root.batch", user="ann")
    closed.ask("x", vcore=8)
    wait_until(lambda: ["x"] == place.asks("closed") and ["waits"] == place.asks())
    place.proxy.swallow("service")
    lease.release()
    waiting.cancel()
    closed.close()
    wait_until(lambda: place.proxy.swallowed["service"])
    assert 2_000 == place.used()
    again = app.ask("t", vcore=2)
    broken(place, s)
    assert is_untouched(again.result(PATIENCE_S))
    assert is_untouched(other)
    wait_until(lambda: place.used() == 3_000)
    wait_until(lambda: "closed" not in place.applications())
    assert not place.asks()


def test_a_swap_of_a_gang_that_was_never_heard_of_is_made(place: Place, s: Scheduler) -> None:
    s.add_node("n1", vcore=4)
    gang = {"worker": {"count": 3, "vcore": 1}}
    app = s.application("app", queue="root.batch", user="ann", gang=gang)
    first = app.ask("w-1", group="worker").result(PATIENCE_S)
    place.proxy.swallow("client")
    second = app.ask("w-2", group="worker")
    wait_until(lambda: place.proxy.swallowed["client"])
    assert not second.done()
    broken(place, s)
    assert is_untouched(second.result(PATIENCE_S))
    assert is_untouched(first)
    assert is_untouched(app.ask("w-3", group="worker").result(PATIENCE_S))
    wait_until(lambda: place.placed().keys() == {"w-1", "w-2", "w-3"})
    wait_until(lambda: place.used() == 3_000)


def test_a_swap_that_was_confirmed_and_not_heard_is_made(place: Place, s: Scheduler) -> None:
    s.add_node("n1", vcore=4)
    gang = {"worker": {"count": 2, "vcore": 1}}
    app = s.application("app", queue="root.batch", user="ann", gang=gang)
    first = app.ask("w-1", group="worker").result(PATIENCE_S)
    place.proxy.swallow("service")
    second = app.ask("w-2", group="worker")
    wait_until(lambda: place.proxy.swallowed["service"])
    broken(place, s)
    assert is_untouched(second.result(PATIENCE_S))
    assert is_untouched(first)
    wait_until(lambda: place.placed().keys() == {"w-1", "w-2"})
    wait_until(lambda: place.used() == 2_000)


def test_a_gang_of_which_members_run_is_as_large_as_before(place: Place, s: Scheduler) -> None:
    """Without its members it would be a smaller gang, and these would be more than it needs."""
    s.add_node("n1", vcore=4)
    gang = {"worker": {"count": 3, "vcore": 1}}
    app = s.application("app", queue="root.batch", user="ann", gang=gang)
    app.ask("w-1", group="worker").result(PATIENCE_S)
    broken(place, s)
    app.ask("w-2", group="worker").result(PATIENCE_S)
    (partition,) = place.core.state_dump()["partitions"].values()
    its = partition["applications"]["app"]
    assert {"vcore": 3_000} == its["placeholder_ask"]
    # A core with a journal knows them from before.
    assert 3_000 == its["placed"]["vcore"] + its.get("reported", {}).get("vcore", 0)


def test_placeholders_keep_their_room(place: Place, s: Scheduler) -> None:
    """Another application would take it, if the front did not report them."""
    s.add_node("n1", vcore=4)
    gang = {"worker": {"count": 3, "vcore": 1}}
    app = s.application("app", queue="root.batch", user="ann", gang=gang)
    first = app.ask("w-1", group="worker").result(PATIENCE_S)
    other = s.application("other", queue="root.batch", user="bob")
    hungry = other.ask("hungry", vcore=2)
    broken(place, s)
    assert all(
        is_untouched(app.ask(key, group="worker").result(PATIENCE_S)) for key in ("w-2", "w-3")
    )
    assert not hungry.done()
    first.release()
    hungry.result(PATIENCE_S)


@pytest.mark.parametrize("stage", ["registration", "report"])
def test_it_may_break_again_in_the_middle(place: Place, s: Scheduler, stage: str) -> None:
    s.add_node("n1", vcore=4)
    app = s.application("app", queue="root.batch", user="ann")
    lease = app.ask("t", vcore=1).result(PATIENCE_S)
    waits = app.ask("waits", vcore=4)
    place.end()
    wait_until(lambda: state(s) == "away")
    if stage == "registration":
        # The service hears of it, and the front hears nothing.
        taken = place.proxy.taken
        place.begin()
        wait_until(lambda: place.proxy.taken > taken)
        place.proxy.swallow("client")
        time.sleep(0.05)
    else:
        place.begin()
        wait_until(lambda: state(s) == "connected")
        place.proxy.swallow("client")
    place.end()
    wait_until(lambda: state(s) == "away")
    place.begin()
    wait_until(lambda: state(s) == "connected")
    wait_until(lambda: place.used() == 1_000)
    assert is_untouched(lease)
    lease.release()
    assert "n1" == waits.result(PATIENCE_S).node_id


def test_a_node_that_is_being_added_is_added(place: Place, s: Scheduler) -> None:
    place.proxy.swallow("service")
    leases: list[list[Lease]] = []
    adding = threading.Thread(target=lambda: leases.append(s.add_node("n1", vcore=4)))
    adding.start()
    wait_until(lambda: place.proxy.swallowed["service"])
    broken(place, s)
    adding.join(PATIENCE_S)
    assert [[]] == leases
    assert ["n1"] == list(s.nodes)


def test_what_is_wanted_back_still_is(tmp_path: Path) -> None:
    place = Place("restarted", tmp_path)
    try:
        with connect(place.proxy.address, QUEUES, grace=60) as s:
            s.add_node("n1", vcore=4)
            batch = s.application("app", queue="root.batch", user="ann")
            lease = batch.ask("long", vcore=4).result(PATIENCE_S)
            page = s.application("sure", queue="root.sure", user="bob").ask("page", vcore=4)
            assert lease.wanted_back.wait(PATIENCE_S)
            broken(place, s)
            assert "wanted back" == lease.state
            lease.release()
            assert "n1" == page.result(PATIENCE_S).node_id
            wait_until(lambda: place.placed("sure") == {"page": "n1"})
    finally:
        place.close()


# -- only where the service says so


def test_only_what_the_service_refuses_is_lost(tmp_path: Path) -> None:
    """It has forgotten its queues: what runs has to continue, and what waits has no place."""
    place = Place("forgotten", tmp_path)
    try:
        with connect(place.proxy.address, queues="") as s:
            place.core.administer(QUEUES)
            s.add_node("n1", vcore=4)
            app = s.application("app", queue="root.batch", user="ann")
            idle = s.application("idle", queue="root.batch", user="ann")
            lease = app.ask("t", vcore=1).result(PATIENCE_S)
            waits = idle.ask("w", vcore=8)
            place.end()
            wait_until(lambda: state(s) == "away")
            place.begin()
            wait_until(lambda: state(s) == "connected")
            with pytest.raises(ApplicationRejected, match="'idle' was rejected"):
                waits.result(PATIENCE_S)
            assert is_untouched(lease)
    finally:
        place.close()


def test_who_is_replaced_does_not_come_back(place: Place, s: Scheduler) -> None:
    s.add_node("n1", vcore=4)
    lease = (
        s.application("app", queue="root.batch", user="ann").ask("t", vcore=1).result(PATIENCE_S)
    )
    events = s.events("connection")
    with connect(place.proxy.address, QUEUES) as other:
        assert lease.wanted_back.wait(PATIENCE_S)
        last = [*events][-1].connection
        assert last == s.connection
        assert "closed" == last.state
        assert "give each program an rm_id of its own" in lease.reason
        with pytest.raises(Replaced):
            s.add_node("n2", vcore=1)
        time.sleep(0.5)
        assert state(other) == "connected"
        assert state(s) == "closed"


def test_who_is_unregistered_does_not_come_back(place: Place, s: Scheduler) -> None:
    s.add_node("n1", vcore=4)
    lease = (
        s.application("app", queue="root.batch", user="ann").ask("t", vcore=1).result(PATIENCE_S)
    )
    with connect(place.proxy.address, QUEUES, rm_id="other") as other:
        other.core.unregister_resource_manager("rm-1")
        assert lease.wanted_back.wait(PATIENCE_S)
    assert "has unregistered rm-1" in lease.reason
    with pytest.raises(UnknownResourceManager):
        s.add_node("n2", vcore=1)


def test_two_fronts_come_back(place: Place, s: Scheduler) -> None:
    with connect(place.proxy.address, QUEUES, rm_id="rm-2") as other:
        leases = []
        for it in (s, other):
            it.add_node("n1", vcore=4)
            app = it.application("app", queue="root.batch", user="ann")
            leases.append(app.ask("t", vcore=1).result(PATIENCE_S))
        place.end()
        wait_until(lambda: {"away"} == {state(s), state(other)})
        place.begin()
        wait_until(lambda: {"connected"} == {state(s), state(other)})
        wait_until(lambda: place.used() == place.used(rm_id="rm-2") == 1_000)
        assert all(map(is_untouched, leases))


# -- away for long, and for ever


def test_attempts_grow_apart_and_are_seen(place: Place, s: Scheduler) -> None:
    place.end()
    wait_until(lambda: s.connection.attempts >= 3)
    assert place.proxy.address in s.connection.reason
    assert place.proxy.address == s.connection.address
    assert "away with the service at" in str(s.connection)
    place.begin()
    wait_until(lambda: state(s) == "connected")


def test_delays_grow_and_are_bounded_and_vary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breaks, "LONGEST_DELAY_S", 5.0)
    several = [list(islice(breaks.backoff(), 12)) for _ in range(50)]
    for number in range(12):
        most = min(5.0, 0.1 * 2**number)
        column = [delays[number] for delays in several]
        assert all(most / 2 <= delay <= most for delay in column)
        assert len(set(column)) > 10


def test_after_so_long_all_is_lost(tmp_path: Path) -> None:
    place = Place("cut", tmp_path)
    s = connect(place.proxy.address, QUEUES, give_up_after=0.5).start()
    try:
        s.add_node("n1", vcore=4)
        app = s.application("app", queue="root.batch", user="ann")
        lease, waits = app.ask("t", vcore=1).result(PATIENCE_S), app.ask("w", vcore=8)
        place.end()
        assert lease.wanted_back.wait(PATIENCE_S)
        assert "was away for 0.5 s: connect again" in lease.reason
        with pytest.raises(ConnectionLost, match=place.proxy.address):
            waits.result(PATIENCE_S)
    finally:
        s.close()
        place.close()


def test_one_that_is_closed_while_the_service_is_away_ends(place: Place, s: Scheduler) -> None:
    s.add_node("n1", vcore=4)
    waits = s.application("app", queue="root.batch", user="ann").ask("t", vcore=8)
    place.end()
    wait_until(lambda: state(s) == "away")
    s.close()
    with pytest.raises(SchedulerClosed):
        waits.result(PATIENCE_S)
    place.begin()
    taken = place.proxy.taken
    time.sleep(0.5)
    assert taken == place.proxy.taken


def test_a_connection_that_is_half_open_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = dict(link.OPTIONS) | {
        "grpc.keepalive_time_ms": 1_000,
        "grpc.keepalive_timeout_ms": 500,
        "grpc.http2.ping_timeout_ms": 500,
    }
    monkeypatch.setattr(link, "OPTIONS", tuple(options.items()))
    place = Place("cut", tmp_path)
    try:
        with connect(place.proxy.address, QUEUES) as s:
            s.add_node("n1", vcore=4)
            app = s.application("app", queue="root.batch", user="ann")
            lease = app.ask("t", vcore=1).result(PATIENCE_S)
            place.proxy.forget()
            asked = app.ask("more", vcore=1)
            assert "n1" == asked.result(PATIENCE_S).node_id
            assert is_untouched(lease)
            assert place.proxy.swallowed["service"]
    finally:
        place.close()


# -- tokens


@pytest.mark.parametrize("knows", [True, False])
def test_a_token_that_is_not_in_force_any_more(tmp_path: Path, *, knows: bool) -> None:
    """A function says the new one; with a text the front tries on, and says why in vain."""
    old, new = "a" * 32, "b" * 32
    path = tmp_path / "token"
    path.write_text(old)
    path.chmod(0o600)
    access = Access(token=old, files=TokenFiles(path))
    with Serving(SchedulerCore(), {"grpc": "127.0.0.1:0"}, access=access) as serving:
        token = path.read_text if knows else old
        with connect(serving.parts["grpc"].address, token=token) as s:
            s.add_node("n1", vcore=4)
            lease = s.application("app", user="ann").ask("t", vcore=1).result(PATIENCE_S)
            with s.events("connection") as events:
                path.write_text(new)
                serving.reload()
                assert "away" == next(events).connection.state
                if knows:
                    assert "connected" == next(events).connection.state
                else:
                    wait_until(lambda: s.connection.attempts > 1)
                    assert "refuses this" in s.connection.reason
                    assert "token" in s.connection.reason
            assert is_untouched(lease)


# -- the first connection


def test_where_no_service_listens_the_error_comes_at_once() -> None:
    begun = time.monotonic()
    with pytest.raises(ConnectionLost, match=r"127\.0\.0\.1:9: is `yunikorn-actors serve` running"):
        connect("127.0.0.1:9").start()
    assert time.monotonic() - begun < 5


def test_who_wants_to_waits_for_the_first_connection(tmp_path: Path) -> None:
    place = Place("cut", tmp_path)
    target, place.proxy.target = place.proxy.target, None
    try:
        threading.Timer(0.5, lambda: setattr(place.proxy, "target", target)).start()
        with connect(place.proxy.address, QUEUES, wait=60) as s:
            assert state(s) == "connected"
        assert place.proxy.taken > 2
        place.proxy.target = None
        with pytest.raises(ConnectionLost, match=place.proxy.address):
            connect(place.proxy.address, wait=0.2).start()
    finally:
        place.close()


def test_a_core_in_this_process_is_always_there() -> None:
    with Scheduler() as s:
        assert ("connected", "") == (s.connection.state, s.connection.address)
    assert "closed" == s.connection.state
    assert "the scheduler was closed" == s.connection.reason


# -- on an event loop


@on_a_loop
async def test_a_front_on_a_loop_comes_back(place: Place) -> None:
    async with connect_async(place.proxy.address, QUEUES) as s:
        await s.add_node("n1", vcore=4)
        app = await s.application("app", queue="root.batch", user="ann")
        lease = await app.ask("t", vcore=4)
        waits = app.ask("waits", vcore=4)
        async with s.events("connection") as events:
            await asyncio.to_thread(place.end)
            assert "away" == (await anext(events)).connection.state
            asked = app.ask("asked", vcore=4)
            assert "the reason is not known" in str(await app.explain("asked"))
            await asyncio.to_thread(place.begin)
            assert "connected" == (await anext(events)).connection.state == s.connection.state
        assert ("held", False) == (lease.state, lease.wanted_back.is_set())
        lease.release()
        (await asyncio.wait_for(waits, PATIENCE_S)).release()
        await asyncio.wait_for(asked, PATIENCE_S)
