"""Rules on the attributes of nodes are kept at each decision, with what is under way counted."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from typing import Any

import pytest
from looping import on_a_loop
from probes import wait_until

from yunikorn_actors import (
    AsyncScheduler,
    InvalidRequest,
    Lease,
    Running,
    Scheduler,
    SchedulerCore,
    si,
)

PATIENCE_S = 60.0
ZONES = {"n1": "a", "n2": "a", "n3": "b", "n4": "c"}
OPEN = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: default}]}]}]"


@pytest.fixture(autouse=True)
def _nothing_left_behind() -> None:
    """The library for gRPC keeps threads of its own, once it was used."""


@contextmanager
def here() -> Iterator[Scheduler]:
    with Scheduler() as s:
        yield s


@contextmanager
def direct() -> Iterator[Scheduler]:
    with Scheduler(core=SchedulerCore(driver="direct")) as s:
        yield s


@contextmanager
def served() -> Iterator[Scheduler]:
    pytest.importorskip("grpc")
    from yunikorn_actors import connect  # noqa: PLC0415 - needs the extra
    from yunikorn_actors.service.service import Serving  # noqa: PLC0415

    with (
        Serving(SchedulerCore(), {"grpc": "127.0.0.1:0"}) as serving,
        connect(serving.parts["grpc"].address) as s,
    ):
        yield s


@pytest.fixture(params=[here, direct, served], ids=["here", "direct", "served"])
def s(request: pytest.FixtureRequest) -> Iterator[Scheduler]:
    made: Callable[[], AbstractContextManager[Scheduler]] = request.param
    with made() as scheduler:
        yield scheduler


def zoned(s: Scheduler, vcore: int = 8, zones: dict[str, str] = ZONES) -> None:
    for name, zone in zones.items():
        s.add_node(name, vcore=vcore, attributes={"zone": zone})


def leases_of(futures: "list[Future[Lease]]") -> list[Lease]:
    return [it.result(PATIENCE_S) for it in futures]


def zones_of(leases: list[Lease]) -> Counter[str]:
    return Counter(ZONES[it.node_id] for it in leases)


# -- where


def test_an_ask_goes_where_the_attributes_are_as_it_wants(s: Scheduler) -> None:
    zoned(s)
    app = s.application("app", user="ann")
    assert {"b"} == {*zones_of(leases_of(app.ask("b", vcore=1, where={"zone": "b"}, count=5)))}
    several = app.ask("bc", vcore=1, where={"zone": ["b", "c"]}, count=10)
    assert {"b", "c"} == {*zones_of(leases_of(several))}
    assert "n2" == app.ask("n", vcore=1, where={"node": "n2"}).result(PATIENCE_S).node_id
    nowhere = app.ask("d", vcore=1, where={"zone": "d"})
    wait_until(lambda: "its zone is" in str(app.explain("d")))
    assert not nowhere.done()
    s.add_node("n5", vcore=1, attributes={"zone": "d"})
    assert "n5" == nowhere.result(PATIENCE_S).node_id


def test_a_rule_and_a_condition_of_the_program_hold_together(s: Scheduler) -> None:
    zoned(s)
    app = s.application("app", user="ann")
    ask = app.ask("t", vcore=1, where={"zone": "a"}, fits=lambda node: node != "n1")
    assert "n2" == ask.result(PATIENCE_S).node_id


# -- spread


def test_asks_are_spread_over_zones(s: Scheduler) -> None:
    zoned(s)
    app = s.application("app", user="ann")
    leases = leases_of(app.ask("t", vcore=1, spread="zone", count=7))
    assert [2, 2, 3] == sorted(zones_of(leases).values())
    # Those of another application, and those without a rule, do not count.
    others = s.application("other", user="ann").ask("t", vcore=1, spread="zone", count=3)
    assert {"a": 1, "b": 1, "c": 1} == zones_of(leases_of(others))


def test_two_nodes_get_as_many_each(s: Scheduler) -> None:
    """A condition that looks at what has been placed so far lets three of four go to one node."""
    for name in ("a", "b"):
        s.add_node(name, vcore=8)
    app = s.application("app", user="ann")
    leases = leases_of(app.ask("t", vcore=1, spread="node", count=4))
    assert {"a": 2, "b": 2} == Counter(it.node_id for it in leases)


def test_what_would_be_uneven_waits(s: Scheduler) -> None:
    zoned(s, zones={"n1": "a", "n3": "b"}, vcore=2)
    app = s.application("app", user="ann")
    large = app.ask("large", vcore=2, where={"zone": "b"}).result(PATIENCE_S)
    futures = app.ask("t", vcore=1, spread="zone", count=3)
    wait_until(lambda: sum(it.done() for it in futures) == 1)
    (waiting, *_) = [it for it in futures if not it.done()]
    key = f"t-{futures.index(waiting) + 1}"
    wait_until(lambda: "are to be spread" in str(app.explain(key)))
    large.release()
    assert {"a", "b"} == {*zones_of(leases_of(futures))}


def test_one_that_waits_for_another_is_asked_about_anew(s: Scheduler) -> None:
    """Nobody makes a request after that: the front itself sees to it."""
    zoned(s, zones={"n1": "a", "n3": "b"}, vcore=4)
    app = s.application("app", user="ann")
    app.ask("fill", vcore=2, where={"zone": "b"}).result(PATIENCE_S)
    one = app.ask("one", vcore=1, where={"zone": "a"}, spread="zone").result(PATIENCE_S)
    large = app.ask("large", vcore=3, spread="zone")
    wait_until(lambda: "are to be spread" in str(app.explain("large")))
    small = app.ask("small", vcore=1, spread="zone").result(PATIENCE_S)
    assert ["n1", "n3"] == [one.node_id, small.node_id]
    assert "n1" == large.result(5).node_id


def test_a_zone_that_has_gone_holds_nothing_up(s: Scheduler) -> None:
    zoned(s)
    app = s.application("app", user="ann")
    leases = leases_of(app.ask("t", vcore=1, spread="zone", count=6))
    assert {"a": 2, "b": 2, "c": 2} == zones_of(leases)
    s.remove_node("n4")
    wait_until(lambda: 2 == sum(it.lost for it in leases))
    again = leases_of(app.ask("again", vcore=1, spread="zone", count=2))
    assert {"a": 3, "b": 3} == zones_of([*again, *(it for it in leases if not it.lost)])
    s.drain("n3")
    assert {"a": 2} == zones_of(leases_of(app.ask("more", vcore=1, spread="zone", count=2)))


def test_work_that_ends_makes_room_in_its_zone(s: Scheduler) -> None:
    zoned(s)
    app = s.application("app", user="ann")
    leases = leases_of(app.ask("t", vcore=1, spread="zone", count=3))
    (of_b,) = (it for it in leases if it.node_id == "n3")
    of_b.release()
    assert "n3" == app.ask("next", vcore=1, spread="zone").result(PATIENCE_S).node_id


# -- apart


def test_asks_of_a_name_are_apart(s: Scheduler) -> None:
    zoned(s, zones={"n1": "a", "n2": "a", "n3": "b"})
    one, two = (s.application(name, user="ann") for name in ("one", "two"))
    futures = [
        *one.ask("t", vcore=1, apart_from="db", count=2),
        *two.ask("t", vcore=1, apart_from="db", count=2),
    ]
    wait_until(lambda: 3 == sum(it.done() for it in futures))
    wait([it for it in futures if it.done()], 0.2)
    done = [it.result() for it in futures if it.done()]
    assert {"n1", "n2", "n3"} == {it.node_id for it in done}
    (left,) = [it for it in futures if not it.done()]
    done[0].release()
    assert done[0].node_id == left.result(PATIENCE_S).node_id


def test_asks_of_a_name_are_apart_by_zone(s: Scheduler) -> None:
    zoned(s)
    app = s.application("app", user="ann")
    futures = app.ask("t", vcore=1, apart_from={"zone": "db"}, count=4)
    wait_until(lambda: 3 == sum(it.done() for it in futures))
    assert {"a": 1, "b": 1, "c": 1} == zones_of([it.result() for it in futures if it.done()])


# -- as things are


def test_it_holds_whatever_comes_and_goes(s: Scheduler) -> None:
    """Asks with a rule and without, cancelled and released in the middle of it."""
    drawn = random.Random(7)  # noqa: S311
    zoned(s, vcore=40)
    app = s.application("app", user="ann")
    held: list[Lease] = []
    waiting: list[Future[Lease]] = []
    for number in range(150):
        waiting.append(app.ask(f"t{number}", vcore=1, apart_from={"node": f"x{number % 40}"}))
        app.ask(f"plain{number}", vcore="100m")
        if drawn.random() < 0.2:
            waiting.pop(drawn.randrange(len(waiting))).cancel()
        held += [it.result() for it in waiting if it.done() and not it.cancelled()]
        waiting = [it for it in waiting if not it.done()]
        if held and drawn.random() < 0.3:
            held.pop(drawn.randrange(len(held))).release()
        there = Counter((it.node_id, *it.running.apart_from.values()) for it in held)
        assert not there or there.most_common(1)[0][1] == 1
    leases = leases_of(waiting) + held
    there = Counter((it.node_id, *it.running.apart_from.values()) for it in leases)
    assert len(leases) > 40
    assert there.most_common(1)[0][1] == 1


def test_work_that_ran_before_counts() -> None:
    kept: list[dict[str, Any]] = []
    with Scheduler() as s:
        zoned(s)
        app = s.application("app", user="ann")
        futures = [
            *app.ask("t", vcore=1, spread="zone", where={"zone": ["a", "b"]}, count=2),
            app.ask("db", vcore=1, apart_from="db", where={"zone": "c"}),
        ]
        kept = [asdict(it.running) for it in leases_of(futures)]
    running = [Running(**item) for item in kept]
    with Scheduler() as s:
        app = s.application("app", user="ann", running=running)
        for name, zone in ZONES.items():
            here = [it for it in running if it.node_id == name]
            s.add_node(name, vcore=8, attributes={"zone": zone}, running=here)
        assert "n4" == app.ask("u", vcore=1, spread="zone").result(PATIENCE_S).node_id
        futures = app.ask("other", vcore=1, apart_from="db", count=3)
        assert {"n1", "n2", "n3"} == {it.node_id for it in leases_of(futures)}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"where": "a"}, "where: must be a mapping such as"),
        ({"where": {"zone": 7}}, "where: zone: must be a text or several, not 7"),
        ({"where": {"zone": []}}, "where: zone: must be a text or several"),
        ({"spread": 7}, "spread: must be an attribute of nodes, not 7"),
        ({"apart_from": ["a"]}, "apart_from: must be a name, or a mapping"),
        ({"apart_from": {"zone": ""}}, "apart_from: must be a name, or a mapping"),
        ({"spread": "zone", "group": "w"}, "a member goes where its room is kept"),
    ],
)
def test_what_is_no_rule_is_refused(given: dict[str, Any], says: str) -> None:
    with Scheduler() as s:
        app = s.application("app", user="ann", gang={"w": {"vcore": 1}})
        with pytest.raises(InvalidRequest, match=says):
            app.ask("t", vcore=1, **given)


@on_a_loop
async def test_on_a_loop_it_is_the_same() -> None:
    async with AsyncScheduler(OPEN) as s:
        for name, zone in ZONES.items():
            await s.add_node(name, vcore=8, attributes={"zone": zone})
        app = await s.application("app", user="ann")

        async def fits(node: str) -> bool:
            await asyncio.sleep(0)
            return node != "n1"

        futures = app.ask("t", vcore=1, spread="zone", fits=fits, count=6)
        leases = [await asyncio.wait_for(it, PATIENCE_S) for it in futures]
        assert {"a": 2, "b": 2, "c": 2} == Counter(ZONES[it.node_id] for it in leases)
        assert "n1" not in {it.node_id for it in leases}


def test_it_costs_nothing_where_there_is_no_rule() -> None:
    with Scheduler() as s:
        s.add_node("n1", vcore=8)
        lease = s.application("app", user="ann").ask("t", vcore=1).result(PATIENCE_S)
        assert {} == s._operations._asks.whereabouts._at
        lease.release()
        assert si.constants.TAG_PREDICATES


def test_what_is_over_is_forgotten(s: Scheduler) -> None:
    zoned(s)
    app = s.application("app", user="ann")
    leases = leases_of(app.ask("t", vcore=1, spread="zone", apart_from="x", count=4))
    app.ask("waits", vcore=1, spread="zone", apart_from="x").cancel()
    leases[0].release()
    s.remove_node(leases[1].node_id)
    wait_until(lambda: leases[1].lost)
    app.close()
    whereabouts = s._operations._asks.whereabouts
    assert ({}, {}, set()) == (whereabouts._at, whereabouts.counts, whereabouts._refused)
