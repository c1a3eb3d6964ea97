"""A driver and its executors, or nothing: placeholders and their swaps are the front's own affair."""

from concurrent.futures import wait

import pytest
from fronting import PATIENCE_S, QUEUES, events_until, quick_core, raised
from probes import wait_until

from yunikorn_actors import (
    Application,
    ApplicationEnded,
    ApplicationRejected,
    AskWithdrawn,
    Scheduler,
    UnknownName,
)

GANG = {"driver": {"vcore": 1}, "executor": {"count": 3, "vcore": 2}}


def gang(s: Scheduler, style: str = "Hard", timeout: object = None) -> Application:
    return s.application(
        "spark", queue="root.batch", user="ann", gang=GANG, gang_style=style, timeout=timeout
    )  # type: ignore[arg-type]


def used(s: Scheduler) -> int:
    nodes = s.core.state_dump()["partitions"]["[rm-1]default"]["nodes"].values()
    return sum(node["allocated"].get("vcore", 0) for node in nodes)


def test_all_members_get_their_room() -> None:
    with Scheduler(QUEUES) as s, s.events("placed", "wanted_back", "lease_over") as events:
        for name in ("n1", "n2"):
            s.add_node(name, vcore=4)
        app = gang(s)
        driver = app.ask("driver", group="driver").result(PATIENCE_S)
        executors = app.ask("executor", group="executor", count=3)
        leases = [it.result(PATIENCE_S) for it in executors]
        assert {"vcore": 2} == leases[0].resources
        assert 7_000 == used(s)
        assert [driver, *leases] == app.leases
        assert ["placed"] * 4 == [next(events).kind for _ in range(4)]
        for lease in (driver, *leases):
            lease.release()
            assert "lease_over" == next(events).kind
        wait_until(lambda: not used(s))


def test_none_is_placed_before_there_is_room_for_all() -> None:
    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=6)
        app = gang(s)
        driver = app.ask("driver", group="driver")
        executors = app.ask("executor", group="executor", count=3)
        wait_until(lambda: used(s) == 5_000)
        assert [] == app.leases
        assert "waiting" == app.explain("driver").state
        s.add_node("n2", vcore=2)
        wait([driver, *executors], timeout=PATIENCE_S)
        assert 4 == len(app.leases)


def test_a_hard_gang_that_does_not_come_together_raises() -> None:
    with Scheduler(QUEUES) as s, s.events("application") as events:
        s.add_node("n1", vcore=4)
        app = gang(s, "Hard", "50ms")
        futures = [
            app.ask("driver", group="driver"),
            *app.ask("executor", group="executor", count=3),
        ]
        for future in futures:
            with pytest.raises((AskWithdrawn, ApplicationEnded)):
                future.result(PATIENCE_S)
        states = [event.state for event in events_until(events, "Failed")]
        assert ["Accepted", "Failing", "Failed"] == states
        wait_until(lambda: not used(s))
        assert "is Failed" in raised(lambda: app.ask("late", group="driver"), ApplicationEnded)


def test_a_soft_gang_that_does_not_come_together_goes_on_one_by_one() -> None:
    with Scheduler(QUEUES) as s, s.events("application") as events:
        s.add_node("n1", vcore=4)
        app = gang(s, "Soft", 0.05)
        futures = [
            app.ask("driver", group="driver"),
            *app.ask("executor", group="executor", count=3),
        ]
        events_until(events, "Resuming")
        done, _ = wait(futures, timeout=PATIENCE_S, return_when="FIRST_COMPLETED")
        while len(done) < 2:
            done, _ = wait(futures, timeout=0.01)
        assert {"n1"} == {it.result().node_id for it in done}
        s.add_node("n2", vcore=4)
        assert {"n1", "n2"} == {it.result(PATIENCE_S).node_id for it in futures}


def test_a_gang_that_can_never_run_is_rejected() -> None:
    with Scheduler(QUEUES) as s:
        big = {"executor": {"count": 9, "vcore": 1}}
        told = raised(
            lambda: s.application("a", queue="root.batch", user="ann", gang=big),
            ApplicationRejected,
        )
        assert "larger than max" in told


def test_the_groups_are_named() -> None:
    with Scheduler(QUEUES) as s:
        told = raised(lambda: gang(s).ask("x", group="worker"), UnknownName)
        assert "(there: driver, executor)" in told


def test_a_member_may_be_smaller_than_its_group() -> None:
    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=8)
        app = gang(s)
        lease = app.ask("small", group="executor", vcore=1).result(PATIENCE_S)
        assert {"vcore": 1} == lease.resources
        wait_until(lambda: used(s) == 6_000)


def test_placeholders_that_nobody_took_go_with_the_application() -> None:
    with Scheduler(QUEUES, core=quick_core()) as s, s.events("application") as events:
        s.add_node("n1", vcore=8)
        app = gang(s)
        app.ask("driver", group="driver").result(PATIENCE_S).release()
        events_until(events, "Completed")
        wait_until(lambda: not used(s))


def test_a_gang_goes_on_after_a_crash() -> None:
    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=4)
        s.add_node("n2", vcore=4)
        app = gang(s)
        leases = [app.ask("driver", group="driver").result(PATIENCE_S)]
        leases += [it.result(PATIENCE_S) for it in app.ask("executor", group="executor", count=2)]
        kept = [it.running for it in leases]
    with Scheduler(QUEUES) as s:
        app = s.application("spark", queue="root.batch", user="ann", gang=GANG, running=kept)
        back = []
        for name in ("n1", "n2"):
            back += s.add_node(name, vcore=4, running=[it for it in kept if it.node_id == name])
        assert sorted(it.key for it in kept) == sorted(it.key for it in back)
        wait_until(lambda: used(s) == 7_000)
        assert 3 == len(app.leases)
        last = app.ask("executor-3", group="executor").result(PATIENCE_S)
        assert 7_000 == used(s)
        assert "held" == last.state


def test_a_gang_that_runs_as_a_whole_needs_no_placeholders() -> None:
    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=8)
        app = gang(s)
        futures = [
            app.ask("driver", group="driver"),
            *app.ask("executor", group="executor", count=3),
        ]
        kept = [it.result(PATIENCE_S).running for it in futures]
    with Scheduler(QUEUES) as s:
        app = s.application("spark", queue="root.batch", user="ann", gang=GANG, running=kept)
        assert 4 == len(s.add_node("n1", vcore=8, running=kept))
        assert 7_000 == used(s)
        app.leases[3].release()
        assert "n1" == app.ask("again", group="executor").result(PATIENCE_S).node_id
