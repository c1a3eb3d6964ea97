"""Programs at the front door: gangs go whole and claim whole, though the core may ask for places.

Every program may be asked where an ask fits, so the core once took all of its asks for such that
are decided one by one.
"""

import pytest
from fronting import PATIENCE_S
from probes import wait_until

from yunikorn_actors import Running, Scheduler, SchedulerCore
from yunikorn_actors.drivers.live.clock import RealClock
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName

QUEUES = """
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: serving, properties: {preemption.delay: 10ms}, resources: {guaranteed: {gpu: 4000}}}
    - {name: research, properties: {preemption.grace: 30s}}
    - {name: kept, properties: {preemption.policy: disabled}}
"""
GANG = {"rank": {"count": 4, "gpu": 1}}


@pytest.fixture(params=TOPOLOGIES)
def s(request: pytest.FixtureRequest) -> Scheduler:
    topology: TopologyName = request.param
    return Scheduler(QUEUES, core=SchedulerCore(topology=topology))


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_nobody_goes_for_a_gang_that_does_not_find_room_for_all(topology: TopologyName) -> None:
    """The second search is a quarter of a minute after the first."""
    with Scheduler(QUEUES, core=SchedulerCore(topology=topology, clock=RealClock(20))) as s:
        s.add_node("n1", gpus=4)
        plain = s.application("plain", queue="root.research", user="ann")
        leases = [it.result(PATIENCE_S) for it in plain.ask("p", gpu=1, count=2)]
        kept = s.application("kept", queue="root.kept", user="ann")
        others = [it.result(PATIENCE_S) for it in kept.ask("k", gpu=1, count=2)]
        claim = s.application("claim", queue="root.serving", user="ben", gang=GANG)
        asked = claim.ask("r", group="rank", count=4)
        tried = "no victims were found for it"
        wait_until(lambda: tried in _text(claim.explain("r-1").why))
        assert [False, False] == [it.wanted_back.is_set() for it in leases]
        for it in others:
            it.release()
        wait_until(lambda: all(it.wanted_back.is_set() for it in leases))
        for it in leases:
            it.release()
        assert 4 == len([it.result(PATIENCE_S) for it in asked])


def _text(why: object) -> str:
    its = getattr(why, "preempting", None)
    return "" if its is None else str(its.text)


def test_one_gang_goes_for_several_asks(s: Scheduler) -> None:
    with s:
        for name in ("n1", "n2"):
            s.add_node(name, gpus=4)
        leases = []
        for name in ("one", "two"):
            app = s.application(
                name, queue="root.research", user="ann", gang=GANG, gang_style="Hard"
            )
            leases.append([it.result(PATIENCE_S) for it in app.ask("r", group="rank", count=4)])
        web = s.application("web", queue="root.serving", user="ben")
        asked = web.ask("w", gpu=1, count=3)
        wait_until(lambda: any(it.wanted_back.is_set() for gang in leases for it in gang))
        going = [[it for it in gang if it.wanted_back.is_set()] for gang in leases]
        for it in (it for gang in going for it in gang):
            it.release()
        assert 3 == len([it.result(PATIENCE_S) for it in asked])
        going = [[it for it in gang if it.wanted_back.is_set()] for gang in leases]
        assert [0, 4] == sorted(map(len, going)), "one gang is enough"


@pytest.mark.parametrize("schedulers", [1, 2])
def test_a_victim_says_for_whom_it_goes_and_what_stood_against_the_others(schedulers: int) -> None:
    s = Scheduler(QUEUES, core=SchedulerCore(schedulers=schedulers))
    with s:
        s.add_node("n1", gpus=8)
        leases = {}
        for name in ("one", "two"):
            job = s.application(
                name, queue="root.research", user="ann", gang=GANG, gang_style="Hard"
            )
            leases[name] = [it.result(PATIENCE_S) for it in job.ask(name, group="rank", count=4)]
        web = s.application("web", queue="root.serving", user="ben")
        (asked,) = web.ask("w", gpu=1, count=1)
        wait_until(lambda: all(it.wanted_back.is_set() for it in leases["two"]))
        status = s.explain("two", "two-1")
        assert (status.state, status.node_id, status.cause) == ("placed", "n1", None)
        assert status.why is not None
        its = status.why.preempting
        assert its is not None
        assert (its.rule, its.for_queue, its.for_key) == ("guarantee", "root.serving", "w-1")
        assert {"two"} == {it.application_id for it in its.goes}
        assert {"not needed": 4} == its.against
        assert "it is preempted for w-1 of web in root.serving" in status.text
        assert "it is preempted for w-1 of web" in status.report()
        assert s.explain("one", "one-1").why is None, "it stays"
        for it in leases["two"]:
            it.release()
        asked.result(PATIENCE_S)
        assert s.explain("two", "two-1").state == "released"


@pytest.mark.parametrize("missing", [0, 1])
def test_a_gang_that_goes_on_after_a_crash_of_its_program_goes_whole(
    s: Scheduler, missing: int
) -> None:
    """The members that run are reported, and placeholders are asked for what is missing alone."""
    running = {
        name: [
            Running(
                application=name, key=f"{name}-{number}", node_id="n1",
                resources={"gpu": 1000}, group="rank",
            )
            for number in range(4 - missing)
        ]
        for name in ("one", "two")
    }  # fmt: skip
    with s:
        jobs = {
            name: s.application(
                name, queue="root.research", user="ann", gang=GANG, gang_style="Hard", running=its
            )
            for name, its in running.items()
        }
        s.add_node("n1", gpus=8, running=[it for its in running.values() for it in its])
        for name, job in jobs.items():
            for number in range(missing):
                job.ask(f"{name}-new-{number}", group="rank").result(PATIENCE_S)
        web = s.application("web", queue="root.serving", user="ben")
        web.ask("w", gpu=1, count=2)
        wait_until(
            lambda: any(it.wanted_back.is_set() for job in jobs.values() for it in job.leases)
        )
        its = s.explain("web", "w-1").why
        assert its is not None
        assert its.preempting is not None
        assert {"it goes with its whole application"} == {it.unit for it in its.preempting.goes}
        going = [sum(it.wanted_back.is_set() for it in job.leases) for job in jobs.values()]
        assert [0, 4] == sorted(going), "one gang is enough"
