"""What a core did becomes a workload: from its recording, and from its journal."""

import heapq
from pathlib import Path
from queue import SimpleQueue
from random import Random

import pytest
from probes import PATIENCE_S
from support import APP, CONFIG, QUEUE, RM

from yunikorn_actors import SchedulerCore, StandingClock, VirtualCore, si
from yunikorn_actors.cli import main
from yunikorn_actors.workload import Node, Workload, WorkloadError, play, read_nodes
from yunikorn_actors.workload.lives import STILL_RAN
from yunikorn_actors.workload.recorded import read_recorded

SECOND = 1_000_000_000


class Cluster(si.ResourceManagerCallback):
    def __init__(self) -> None:
        self.uuids: dict[str, str] = {}
        self.placed: SimpleQueue[str] = SimpleQueue()

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.uuids.update({it.allocation_key: it.uuid for it in response.new})
        for it in response.new:
            self.placed.put(it.uuid)


def release(core: VirtualCore | SchedulerCore, uuid: str) -> None:
    ended = si.AllocationRelease(application_id=APP, uuid=uuid)
    releases = si.AllocationReleasesRequest(allocations_to_release=(ended,))
    core.update_allocation(si.AllocationRequest(rm_id=RM, releases=releases))


def submit(core: VirtualCore | SchedulerCore, *keys: str) -> None:
    room = si.Resource.of({"vcore": 1_000})
    asks = tuple(
        si.AllocationAsk(application_id=APP, allocation_key=it, resource_ask=room) for it in keys
    )
    core.update_allocation(si.AllocationRequest(rm_id=RM, asks=asks))


def begin(core: VirtualCore | SchedulerCore, cluster: Cluster) -> None:
    core.register_resource_manager(
        si.RegisterResourceManagerRequest(rm_id=RM, config=CONFIG), cluster
    )
    node = si.NodeInfo(
        node_id="n", action=si.ActionFromRM.CREATE,
        schedulable_resource=si.Resource.of({"vcore": 2_000}),
    )  # fmt: skip
    core.update_node(si.NodeRequest(rm_id=RM, nodes=(node,)))
    ugi = si.UserGroupInformation(user="ann", groups=("staff",))
    app = si.AddApplicationRequest(application_id=APP, queue_name=QUEUE, ugi=ugi)
    core.update_application(si.ApplicationRequest(rm_id=RM, new=(app,)))


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Three asks on a node that has room for two; the third waits seven seconds."""
    path = tmp_path / "run.trace"
    with VirtualCore(trace=path) as core:
        cluster = Cluster()
        begin(core, cluster)
        submit(core, "a", "b", "c", "too-late")
        elsewhere = si.AllocationAsk(application_id="none", allocation_key="x")
        core.update_allocation(si.AllocationRequest(rm_id=RM, asks=(elsewhere,)))
        core.run_until_idle()
        for after_s, key in ((7, "a"), (9, "c")):
            core.advance_to(core.now_ns + after_s * SECOND)
            release(core, cluster.uuids[key])
            core.run_until_idle()
    return path


def test_a_recording_becomes_a_workload(recording: Path) -> None:
    recorded = read_recorded(recording)
    jobs = {it.id.partition("#")[0]: it for it in recorded.jobs}
    assert [7, 16, 9] == [jobs[f"{APP}/{it}"].run_s for it in ("a", "b", "c")]
    assert [0, 0, 7] == [jobs[f"{APP}/{it}"].waited_s for it in ("a", "b", "c")]
    # As the core takes an ask that says nothing of preemption.
    assert {(False, True)} == {(it.may_preempt, it.preemptible) for it in recorded.jobs}
    assert {("ann", "staff", QUEUE)} == {(it.user, it.group, it.queue) for it in recorded.jobs}
    assert [Node(id="n", resources={"vcore": 2_000})] == recorded.nodes
    assert CONFIG == recorded.config
    assert {"refused by the core": 1} == recorded.findings.left_out
    assert {STILL_RAN: 2} == recorded.findings.assumed


def test_the_replay_waits_as_the_recording_did(recording: Path, tmp_path: Path) -> None:
    out = tmp_path / "workload"
    assert 0 == main(["workload", "from-trace", str(recording), "-o", str(out)])
    workload = Workload.read(out / "jobs.jsonl")
    assert "jobs" == workload.survey.format
    nodes = read_nodes(str(out / "nodes.yaml"))
    table = play(workload, nodes, (out / "queues.yaml").read_text(encoding="utf-8"))
    recorded = {it.id: it.waited_s for it in workload.jobs()}
    assert recorded == {row["job"]: row["wait"] for row in table}


def test_a_journal_becomes_the_same_workload(tmp_path: Path) -> None:
    clock = StandingClock(1_767_225_600 * SECOND)
    with SchedulerCore(journal=tmp_path / "journal", clock=clock, driver="direct") as core:
        cluster = Cluster()
        begin(core, cluster)
        submit(core, "a")
        uuid = cluster.placed.get(timeout=PATIENCE_S)
        clock.move_to(clock.now_ns() + 5 * SECOND)
        release(core, uuid)
    recorded = read_recorded(tmp_path / "journal")
    assert [(5, 0)] == [(it.run_s, it.waited_s) for it in recorded.jobs]
    assert ["n"] == [it.id for it in recorded.nodes]


def test_a_recording_that_is_cut_off_is_read_as_far_as_it_goes(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not read_recorded(recording).findings.faults
    cut = tmp_path / "cut.trace"
    cut.write_bytes(recording.read_bytes()[:-10])
    assert 0 == main(["workload", "from-trace", str(cut), "-o", str(tmp_path / "cut")])
    assert "cut.trace: the recording has no footer" in capsys.readouterr().err


def test_what_is_no_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "text"
    file.write_text("no recording", encoding="utf-8")
    assert 2 == main(["workload", "from-trace", str(file), "-o", str(tmp_path / "out")])
    assert "text" in capsys.readouterr().err
    with pytest.raises(WorkloadError, match="no journal"):
        read_recorded(tmp_path)


MANY = """
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: ml, resources: {max: {vcore: 24}}}
    - {name: web}
"""


class Churn(si.ResourceManagerCallback):
    """Has work end after its time, as a service's users do."""

    def __init__(self, core: VirtualCore) -> None:
        self.core = core
        self.runs_ns: dict[str, int] = {}
        self.ends: list[tuple[int, str]] = []

    def update_allocation(self, response: si.AllocationResponse) -> None:
        for it in response.new:
            end_ns = self.core.now_ns + self.runs_ns[it.application_id]
            heapq.heappush(self.ends, (end_ns, it.application_id))


def churn(path: Path, *, minutes: int) -> int:
    random, count = Random(3), 0  # noqa: S311 - repeatable
    with VirtualCore(trace=path) as core:
        rm = Churn(core)
        core.register_resource_manager(si.RegisterResourceManagerRequest(rm_id=RM, config=MANY), rm)
        size = si.Resource.of({"vcore": 4_000})
        core.update_node(si.NodeRequest(rm_id=RM, nodes=tuple(
            si.NodeInfo(node_id=f"n{it}", action=si.ActionFromRM.CREATE, schedulable_resource=size)
            for it in range(10)
        )))  # fmt: skip
        next_ns, until_ns = core.now_ns, core.now_ns + minutes * 60 * SECOND
        while next_ns < until_ns:
            while rm.ends and rm.ends[0][0] <= next_ns:
                end_ns, name = heapq.heappop(rm.ends)
                core.advance_to(end_ns)
                gone = (si.RemoveApplicationRequest(application_id=name),)
                core.update_application(si.ApplicationRequest(rm_id=RM, remove=gone))
                core.run_until_idle()
            core.advance_to(next_ns)
            count += 1
            rm.runs_ns[f"a{count}"] = int(random.expovariate(1 / 60) * SECOND) + SECOND
            new = si.AddApplicationRequest(
                application_id=f"a{count}", queue_name="root.ml" if count % 2 else "root.web",
                ugi=si.UserGroupInformation(user=f"u{count % 5}"),
            )  # fmt: skip
            room = si.Resource.of({"vcore": 500 << int(random.random() * 4)})
            ask = si.AllocationAsk(
                application_id=f"a{count}", allocation_key="k", resource_ask=room
            )
            core.update_application(si.ApplicationRequest(rm_id=RM, new=(new,)))
            core.update_allocation(si.AllocationRequest(rm_id=RM, asks=(ask,)))
            core.run_until_idle()
            next_ns += int(random.expovariate(1 / 2.8) * SECOND)
    return count


def test_churn_is_replayed_and_another_configuration_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Most waits are equal; what was never placed stood in line, and is not in the replay."""
    count = churn(tmp_path / "churn.trace", minutes=10)
    out = tmp_path / "workload"
    assert 0 == main(["workload", "from-trace", str(tmp_path / "churn.trace"), "-o", str(out)])
    workload = Workload.read(out / "jobs.jsonl")
    config = (out / "queues.yaml").read_text(encoding="utf-8")
    table = play(workload, read_nodes(str(out / "nodes.yaml")), config)
    waits = {row["job"]: row["wait"] for row in table}
    assert 0.8 * count < len(waits) <= count
    recorded = {it.id: it.waited_s or 0 for it in workload.jobs()}
    assert 20 < sum(it > 1 for it in recorded.values()), "nothing waited"
    equal = sum(abs(waits[it] - recorded[it]) < 1e-6 for it in waits)
    assert equal > 0.75 * len(waits)
    (tmp_path / "narrow.yaml").write_text(config.replace("24", "8"), encoding="utf-8")
    given = [str(out / "queues.yaml"), str(tmp_path / "narrow.yaml"), str(out / "jobs.jsonl")]
    nodes = ["--nodes", str(out / "nodes.yaml"), "--draws", "0"]
    capsys.readouterr()
    assert 1 == main(
        ["workload", "compare", *given, *nodes, "--fail-if", "mean wait of root.ml > 1x"]
    )
    assert "with narrow jobs wait more than with queues" in capsys.readouterr().out
