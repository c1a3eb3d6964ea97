"""What changes while a recording runs is replayed: nodes, applications, what is withdrawn."""

from itertools import count
from pathlib import Path
from typing import Any

import pytest
from journals import SnapshotAtOnce
from probes import PATIENCE_S, wait_until
from support import APP, CONFIG, QUEUE, RM

from yunikorn_actors import (
    Scheduler,
    SchedulerCore,
    StandingClock,
    TraceSettings,
    VirtualCore,
    si,
)
from yunikorn_actors.cli import main
from yunikorn_actors.journal import writing
from yunikorn_actors.journal.folder import Folder
from yunikorn_actors.journal.headers import ENTRIES
from yunikorn_actors.workload import Job, Node, Table, Workload, WorkloadError, play, read_nodes
from yunikorn_actors.workload.lives import (
    CUT_SHORT,
    NEVER_PLACED,
    STILL_WAITED,
    WITHDRAWN,
    Lives,
)
from yunikorn_actors.workload.recorded import read_recorded

SECOND = 1_000_000_000
NODES = """
name: nodes come, change and leave
steps:
- create_node: {id: first, capacity: {vcore: 1000}}
- add_app: {id: app-1, queue: root.default}
- ask: {app: app-1, key: a, resource: {vcore: 1000}}
- ask: {app: app-1, key: b, resource: {vcore: 1000}}
- ask: {app: app-1, key: c, resource: {vcore: 2000}}
- ask: {app: app-1, key: d, resource: {vcore: 1000}}
- advance: 10s
- create_node: {id: second, capacity: {vcore: 2000}, occupied: {vcore: 1000}}
- advance: 5s
- update_node: {id: second, capacity: {vcore: 4000}, occupied: {vcore: 1000}}
- advance: 5s
- drain_node: second
- release: {app: app-1, key: b}
- release_ask: {app: app-1, key: c}
- advance: 5s
- ask: {app: app-1, key: e, resource: {vcore: 1000}}
- advance: 3s
- undrain_node: second
- advance: 5s
- release: {app: app-1, key: e}
- advance: 7s
- remove_node: second
- ask: {app: app-1, key: f, resource: {vcore: 1000}}
- advance: 4s
- release: {app: app-1, key: a}
- advance: 6s
- release: {app: app-1, key: f}
"""

APPLICATIONS = """
name: the older application is served first, whatever it asks for and when
queues:
  partitions:
  - name: default
    queues:
    - name: root
      submitacl: "*"
      queues:
      - {name: line, properties: {application.sort.policy: fifo}}
steps:
- create_node: {id: node-1, capacity: {vcore: 1000}}
- add_app: {id: old, queue: root.line}
- add_app: {id: young, queue: root.line}
- ask: {app: old, key: first, resource: {vcore: 1000}}
- advance: 1s
- ask: {app: young, key: only, resource: {vcore: 1000}}
- advance: 1s
- ask: {app: old, key: second, resource: {vcore: 1000}}
- advance: 1s
- release: {app: old, key: first}
- advance: 5s
- release: {app: old, key: second}
- advance: 5s
- release: {app: young, key: only}
"""

WAITING = """
name: one is withdrawn, and one still waits at the end
steps:
- create_node: {id: node-1, capacity: {vcore: 1000}}
- add_app: {id: app-1, queue: root.default}
- ask: {app: app-1, key: a, resource: {vcore: 1000}}
- ask: {app: app-1, key: b, resource: {vcore: 1000}}
- ask: {app: app-1, key: c, resource: {vcore: 1000}, max_allocations: 2}
- advance: 4s
- release_ask: {app: app-1, key: b}
- release: {app: app-1, key: a}
- advance: 8s
- ask: {app: app-1, key: c, resource: {vcore: 1000}, max_allocations: 2}
"""


GANGS = """
name: a gang waits until all of it has room, and holds it
steps:
- create_node: {id: node-1, capacity: {vcore: 4000}}
- add_app: {id: single, queue: root.default}
- ask: {app: single, key: a, resource: {vcore: 1000}}
- ask: {app: single, key: b, resource: {vcore: 1000}}
- add_app: {id: gang, queue: root.default, placeholder_ask: {vcore: 3000}}
- ask: {app: gang, key: ph, resource: {vcore: 1000}, task_group: workers, placeholder: true,
    max_allocations: 3}
- advance: 5s
- release: {app: single, key: a}
- ask: {app: gang, key: member, resource: {vcore: 1000}, task_group: workers, max_allocations: 3}
- advance: 2s
- ask: {app: single, key: c, resource: {vcore: 1000}}
- advance: 8s
- release: {app: gang, key: member}
- advance: 10s
- release: {app: single, key: c}
"""


PREEMPTED = """
name: preempted work is asked for again by its owner
queues:
  partitions:
  - name: default
    queues:
    - name: root
      submitacl: "*"
      queues:
      - {name: low}
      - {name: high, resources: {guaranteed: {vcore: 2}}, properties: {preemption.delay: 1s}}
steps:
- create_node: {id: node-1, capacity: {vcore: 2000}}
- add_app: {id: low, queue: root.low}
- ask: {app: low, key: first, resource: {vcore: 2000}}
- advance: 100s
- add_app: {id: high, queue: root.high}
- ask: {app: high, key: claimant, resource: {vcore: 2000}}
- advance: 1s
- ask: {app: low, key: again, resource: {vcore: 2000}}
- advance: 49s
- release: {app: high, key: claimant}
- advance: 200s
- release: {app: low, key: again}
"""


def recorded_of(text: str, folder: Path) -> Path:
    (folder / "scenario.yaml").write_text(text, encoding="utf-8")
    trace = folder / "run.trace"
    assert 0 == main(["scenario", "run", str(folder / "scenario.yaml"), "--trace", str(trace)])
    return trace


def replayed(trace: Path) -> tuple[Workload, Table]:
    out = trace.parent / "workload"
    assert 0 == main(["workload", "from-trace", str(trace), "-o", str(out)])
    workload, config = Workload.read(out / "jobs.jsonl"), out / "queues.yaml"
    given = config.read_text(encoding="utf-8") if config.exists() else ""
    return workload, play(workload, read_nodes(str(out / "nodes.yaml")), given)


def waits(workload: Workload, table: Table) -> tuple[dict[str, float | None], dict[str, float]]:
    def key(id_: str) -> str:
        return id_.partition("#")[0]

    recorded = {key(it.id): it.waited_s for it in workload.jobs()}
    return recorded, {key(row["job"]): row["wait"] for row in table}


def test_nodes_are_there_when_they_were(tmp_path: Path) -> None:
    trace = recorded_of(NODES, tmp_path)
    spans = [
        (it.id, it.resources["vcore"], it.from_s, it.until_s, it.drained)
        for it in read_recorded(trace).nodes
    ]
    assert [
        ("first", 1_000, 0, None, False),
        ("second", 1_000, 10, 15, False),
        ("second", 3_000, 15, 20, False),
        ("second", 3_000, 20, 28, True),
        ("second", 3_000, 28, 40, False),
    ] == spans
    recorded, again = waits(*replayed(trace))
    # The fourth had a node reserved, so it went before the third.
    assert {"a": 0, "b": 10, "d": 15, "e": 3, "f": 4} == {
        it.removeprefix("app-1/"): wait for it, wait in recorded.items()
    }
    assert recorded == again


def test_applications_stay_together(tmp_path: Path) -> None:
    recorded, again = waits(*replayed(recorded_of(APPLICATIONS, tmp_path)))
    assert {"old/first": 0, "old/second": 1, "young/only": 7} == recorded == again


def test_a_gang_is_one_job(tmp_path: Path) -> None:
    workload, table = replayed(recorded_of(GANGS, tmp_path))
    (gang,) = [it for it in workload.jobs() if it.gang]
    assert (3, 0, 5, 10) == (gang.tasks, gang.submit_s, gang.waited_s, gang.run_s)
    recorded, again = waits(workload, table)
    assert {"single/a": 0, "single/b": 0, "single/c": 8, "gang/gang": 5} == recorded == again


def test_what_was_preempted_is_not_played_twice(tmp_path: Path) -> None:
    """Its owner asked for it again, and that is in the recording as well."""
    trace = recorded_of(PREEMPTED, tmp_path)
    assert 1 == read_recorded(trace).findings.assumed[CUT_SHORT]
    workload, table = replayed(trace)
    recorded, again = waits(workload, table)
    assert {"low/first": 0, "high/claimant": 1, "low/again": 49} == recorded == again
    assert 350 == table.run.ended_s


@pytest.mark.parametrize("is_cut_short", [False, True])
def test_preempted_work_begins_again_unless_that_was_its_end(*, is_cut_short: bool) -> None:
    config = """
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: low}
    - {name: high, resources: {guaranteed: {vcore: 1}}, properties: {preemption.delay: 1s}}
"""
    low = Job(id="low", number=0, submit_s=0, run_s=60, size={"vcore": 1_000}, queue="root.low",
              is_cut_short=is_cut_short)  # fmt: skip
    high = Job(id="high", number=1, submit_s=5, run_s=60, size={"vcore": 1_000}, queue="root.high")
    table = play(Workload.of([low, high]), [Node(id="n", resources={"vcore": 1_000})], config)
    ends = {row["job"]: (row["state"], row["end"], row["preemptions"]) for row in table}
    again = ("done", 6, 0) if is_cut_short else ("done", 126, 1)
    assert {"low": again, "high": ("done", 66, 0)} == ends


def test_an_application_that_has_completed_comes_again() -> None:
    """It was idle for longer than an application lives without work."""
    jobs = [
        Job(id=f"j{at}", number=at, submit_s=at * 100, run_s=10, size={"vcore": 1_000},
            application="etl")
        for at in range(3)
    ]  # fmt: skip
    node = Node(id="n", resources={"vcore": 1_000})
    table = play(Workload.of(jobs), [node])
    assert [0, 0, 0] == [row["wait"] for row in table]
    assert ["done"] * 3 == [row["state"] for row in table]


def test_what_waited_at_the_end_stands_in_line_again(tmp_path: Path) -> None:
    lives = read_recorded(recorded_of(WAITING, tmp_path))
    assert {WITHDRAWN: 1} == lives.findings.left_out
    assert 1 == lives.findings.assumed[STILL_WAITED]
    waiting = [it for it in lives.jobs if it.waited_s is None]
    assert [(0, 6)] == [(it.submit_s, it.run_s) for it in waiting], "the mean of 4 and 8 seconds"


def test_without_any_run_nothing_says_how_long_the_others_would_have_run() -> None:
    lives = Lives()
    lives.asked(("app", "key"), 0, {"size": {"vcore": 1}})
    assert not lives.finish().jobs
    assert {NEVER_PLACED: 1} == lives.findings.left_out


def test_of_several_partitions_one_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "two.trace"
    with VirtualCore(trace=trace) as core:
        for rm, vcore in ((RM, 1_000), ("other", 2_000)):
            core.register_resource_manager(
                si.RegisterResourceManagerRequest(rm_id=rm, config=CONFIG),
                si.ResourceManagerCallback(),
            )
            size = si.Resource.of({"vcore": vcore})
            node = si.NodeInfo(
                node_id="n", action=si.ActionFromRM.CREATE, schedulable_resource=size
            )
            core.update_node(si.NodeRequest(rm_id=rm, nodes=(node,)))
            ugi = si.UserGroupInformation(user="ann")
            app = si.AddApplicationRequest(application_id=APP, queue_name=QUEUE, ugi=ugi)
            core.update_application(si.ApplicationRequest(rm_id=rm, new=(app,)))
            ask = si.AllocationAsk(application_id=APP, allocation_key=rm, resource_ask=size)
            core.update_allocation(si.AllocationRequest(rm_id=rm, asks=(ask,)))
            core.run_until_idle()
            core.advance_to(core.now_ns + SECOND)
        # Something is recorded at the end.
        core.update_application(si.ApplicationRequest(rm_id=RM))
        core.run_until_idle()
    out = str(tmp_path / "out")
    assert 2 == main(["workload", "from-trace", str(trace), "-o", out])
    error = capsys.readouterr().err
    assert "name one of its 2 partitions (--partition): [other]default, [rm-1]default" in error
    assert 2 == main(["workload", "from-trace", str(trace), "-o", out, "--partition", "default"])
    assert 0 == main(
        ["workload", "from-trace", str(trace), "-o", out, "--partition", "[other]default"]
    )
    assert [2_000] == [it.resources["vcore"] for it in read_nodes(f"{out}/nodes.yaml")]
    assert [f"{APP}/other#0"] == [it.id for it in Workload.read(f"{out}/jobs.jsonl").jobs()]


def test_work_on_a_node_that_leaves_begins_again_elsewhere() -> None:
    job = Job(id="j", number=0, submit_s=0, run_s=10, size={"vcore": 1_000})
    nodes = [
        Node(id="a", resources={"vcore": 1_000}, until_s=6),
        Node(id="b", resources={"vcore": 1_000}, from_s=8),
    ]
    (row,) = play(Workload.of([job]), nodes)
    assert (8, 18, "b", 1) == (row["start"], row["end"], row["node"], row["restarts"])


def test_work_that_ends_as_its_node_leaves_has_ended() -> None:
    job = Job(id="j", number=0, submit_s=0, run_s=6, size={"vcore": 1_000})
    (row,) = play(Workload.of([job]), [Node(id="a", resources={"vcore": 1_000}, until_s=6)])
    assert ("done", 6, 0) == (row["state"], row["end"], row["restarts"])


def test_what_fits_is_what_fits_at_one_time() -> None:
    """Two nodes that are never there together are no room for two tasks."""
    gang = Job(id="j", number=0, submit_s=0, run_s=1, size={"vcore": 1_000}, tasks=2)
    nodes = [
        Node(id="a", resources={"vcore": 1_000}, until_s=6),
        Node(id="b", resources={"vcore": 1_000}, from_s=6),
    ]
    table = play(Workload.of([gang]), nodes)
    assert {"never fits": 1} == table.run.left_out
    assert {"vcore": 1_000} == table.run.capacity


def test_a_daemon_runs_on_its_node() -> None:
    nodes = [Node(id=it, resources={"vcore": 1_000}) for it in ("a", "b", "c")]
    jobs = [
        Job(id=it.id, number=at, submit_s=0, run_s=1, size={"vcore": 10}, node=it.id)
        for at, it in enumerate(reversed(nodes))
    ]
    jobs.append(Job(id="x", number=9, submit_s=0, run_s=1, size={"vcore": 10}, node="gone"))
    table = play(Workload.of(jobs), nodes)
    assert {"a": "a", "b": "b", "c": "c"} == {row["job"]: row["node"] for row in table}
    assert {"never fits": 1} == table.run.left_out


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ("[{id: a, resources: {vcore: 1}, from_s: 5, until_s: 5}]", "the end behind the begin"),
        ("[{id: a, resources: {vcore: 1}, from_s: -1}]", "seconds since the first submit"),
        ("[{id: a, resources: {vcore: 1}, until_s: .nan}]", "seconds since the first submit"),
        ("[{id: a, resources: {vcore: 1}}, {id: a, resources: {vcore: 1}, from_s: 5}]",
         "two nodes of the name a at one time"),
        ("[{id: a, resources: {vcore: 1}, since: 5}]", "a node has base, count"),
    ],
)  # fmt: skip
def test_times_of_nodes_that_mean_nothing(tmp_path: Path, given: str, error: str) -> None:
    (tmp_path / "nodes.yaml").write_text(given, encoding="utf-8")
    with pytest.raises(WorkloadError, match=error):
        read_nodes(str(tmp_path / "nodes.yaml"))


def test_nodes_that_came_before_the_recording_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = TraceSettings(path=tmp_path / "failed.trace", flight_recorder_bytes=50_000)
    core = SchedulerCore(trace=settings)
    with Scheduler(core=core) as scheduler:
        scheduler.add_node("early", vcore=1)
        app = scheduler.application("app", user="ann")
        for at in range(100):
            with app.ask(f"task-{at}", vcore=1).result(PATIENCE_S):
                pass
        core.save_trace(tmp_path / "late.trace")
    assert 0 == main(
        ["workload", "from-trace", str(tmp_path / "late.trace"), "-o", str(tmp_path / "out")]
    )
    error = capsys.readouterr().err
    assert "late.trace: it begins later than the run, so 1 nodes are not in it" in error
    assert error.rstrip().endswith("nodes.yaml: early")


ADMIN = """
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: small, resources: {max: {vcore: 1}}}
"""


def served(core: SchedulerCore, clock: StandingClock) -> None:
    """Two tasks, of which the quota of the administrator's configuration lets one run at a time."""
    with Scheduler(core=core, queues="") as scheduler:
        scheduler.add_node("node", vcore=4)
        app = scheduler.application("app", user="ann", queue="root.small")
        first, second = (app.ask(it, vcore=1) for it in ("first", "second"))
        lease = first.result(PATIENCE_S)
        clock.move_to(clock.now_ns() + 30 * SECOND)
        lease.release()
        lease = second.result(PATIENCE_S)
        clock.move_to(clock.now_ns() + 30 * SECOND)
        lease.release()


@pytest.mark.parametrize("kind", ["journal", "trace"])
def test_the_administrators_configuration_is_that_of_the_replay(tmp_path: Path, kind: str) -> None:
    clock, place = StandingClock(1_767_225_600 * SECOND), tmp_path / "recorded"
    given: dict[str, Any] = {kind: place}
    served(SchedulerCore(config=ADMIN, clock=clock, driver="direct", **given), clock)
    recorded, again = waits(*replayed(place))
    assert {"app/first": 0, "app/second": 30} == recorded == again


def test_what_a_snapshot_took_away_was_there_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes, configuration, what waits and what runs are in the snapshot, and come from there."""
    monkeypatch.setattr(writing, "ROTATE_BYTES", 4_096)
    monkeypatch.setattr(writing, "ROTATE_SNAPSHOTS", 0)
    monkeypatch.setattr(writing, "Folding", SnapshotAtOnce)
    clock, place = StandingClock(1_767_225_600 * SECOND), tmp_path / "journal"
    core = SchedulerCore(config=ADMIN, clock=clock, driver="direct", journal=place)
    with Scheduler(core=core, queues="") as scheduler:
        scheduler.add_node("node", vcore=4)
        app = scheduler.application("app", user="ann", queue="root.small")
        first, second = (app.ask(it, vcore=1) for it in ("first", "second"))
        lease = first.result(PATIENCE_S)
        others = scheduler.application("others", user="bob", queue="root.small")
        number = count()

        def is_taken_away() -> bool:
            others.ask(f"withdrawn-{next(number)}", vcore=1).cancel()
            return Folder(place).numbers(ENTRIES)[0] > 1

        wait_until(is_taken_away)
        clock.move_to(clock.now_ns() + 30 * SECOND)
        lease.release()
        lease = second.result(PATIENCE_S)
        clock.move_to(clock.now_ns() + 30 * SECOND)
        lease.release()
    lives = read_recorded(place)
    assert [("node", 4_000, 0)] == [(it.id, it.resources["vcore"], it.from_s) for it in lives.nodes]
    recorded, again = waits(*replayed(place))
    assert {"app/first": 0, "app/second": 30} == recorded == again


def test_a_recording_without_a_configuration_says_so(
    recording_of_nothing: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(recording_of_nothing.parent / "out")
    assert 0 == main(["workload", "from-trace", str(recording_of_nothing), "-o", out])
    assert "its configuration is not in it: give one with --config" in capsys.readouterr().err


@pytest.fixture
def recording_of_nothing(tmp_path: Path) -> Path:
    with VirtualCore(trace=tmp_path / "nothing.trace"):
        pass
    return tmp_path / "nothing.trace"


def test_members_whose_placeholders_nobody_saw_are_jobs_of_their_own() -> None:
    """The recording began between the two."""
    lives = Lives()
    for number in (0, 1):
        key = "gang", f"member-{number}"
        lives.asked(key, 0, {"size": {"vcore": 1}})
        lives.began(number, key, SECOND, is_member=True)
        lives.ended(number, 3 * SECOND)
    assert [(2, False), (2, False)] == [(it.run_s, it.gang) for it in lives.finish().jobs]
