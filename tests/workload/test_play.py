"""Workloads are played by the real scheduler: what starts when can be counted by hand."""

import csv
import gc
import sys
import tracemalloc
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from yunikorn_actors.runtime.virtual_core import LINES_KEPT
from yunikorn_actors.state.applications import Application
from yunikorn_actors.workload import Job, Node, Options, Table, Workload, WorkloadError, play
from yunikorn_actors.workload.batsim_file import write_batsim
from yunikorn_actors.workload.cluster import configured
from yunikorn_actors.workload.figures import Series, percentile, slowdown
from yunikorn_actors.workload.player import _Alive, _Player
from yunikorn_actors.workload.table import Run

POOL = [Node(id="n", resources={"vcore": 4_000})]
SMALL = [Node(id=f"n-{it}", resources={"vcore": 1_000}) for it in range(4)]


def job(id_: int, submit_s: float, run_s: float, tasks: int, **fields: Any) -> Job:
    return Job(
        id=str(id_), number=id_, submit_s=submit_s, run_s=run_s, size={"vcore": 1_000},
        tasks=tasks, **fields,
    )  # fmt: skip


JOBS = (job(1, 0, 100, 3), job(2, 10, 50, 2), job(3, 20, 30, 1), job(4, 20, 200, 4))


def starts(table: Table) -> dict[str, float | None]:
    return {row["job"]: row["start"] for row in table}


def test_what_fits_passes_over_what_does_not() -> None:
    table = play(Workload.of(JOBS), POOL)
    assert {"1": 0, "2": 100, "3": 20, "4": 150} == starts(table)
    ends = {row["job"]: row["end"] for row in table}
    assert {"1": 100, "2": 150, "3": 50, "4": 350} == ends


def test_gangs_hold_what_they_have_got() -> None:
    table = play(Workload.of(JOBS), SMALL, options=Options(jobs="gang"))
    assert {"1": 0, "2": 100, "3": 100, "4": 150} == starts(table)


@pytest.mark.parametrize("jobs", ["ask", "gang"])
@pytest.mark.parametrize("topology", ["fused", "proposing"])
def test_the_invariants_hold_and_both_topologies_agree(jobs: Any, topology: Any) -> None:
    nodes = SMALL if jobs == "gang" else POOL
    told = [
        starts(play(Workload.of(JOBS), nodes, options=Options(jobs=jobs, **given)))
        for given in ({}, {"topology": topology, "checked": True})
    ]
    assert told[0] == told[1]


def test_the_same_run_has_the_same_digest() -> None:
    options = Options(faults=0.5, seed=3)
    first, second = (play(Workload.of(JOBS), POOL, options=options) for _ in range(2))
    assert first.digest() == second.digest()
    assert [*first] == [*second]


def test_faults_put_jobs_back_and_every_job_ends() -> None:
    many = [job(it, 10 * it, 100, 1 + it % 4) for it in range(60)]
    for nodes, how in ((POOL, "ask"), (SMALL, "gang")):
        options = Options(faults=0.3, seed=5, checked=True, jobs=how)  # type: ignore[arg-type]
        table = play(Workload.of(many), nodes, options=options)
        assert {"done"} == {row["state"] for row in table}
        assert table.summary()["restarts"]
        assert {"killed", "nodes lost"} <= table.run.planted.keys()
    assert "confirmed late" in table.run.planted


def test_what_never_fits_is_left_out_and_counted() -> None:
    table = play(Workload.of((*JOBS, job(5, 30, 10, 5))), POOL)
    assert {"never fits": 1} == table.run.left_out
    assert 4 == len(table)


def test_one_that_is_cut_off() -> None:
    table = play(Workload.of(JOBS), POOL, options=Options(until_s=15))
    assert {"1": "running", "2": "waiting"} == {row["job"]: row["state"] for row in table}
    assert {"after the end": 2} == table.run.left_out
    assert 15 == table.summary()["makespan_s"]


def test_nothing_ends_if_all_stay() -> None:
    table = play(Workload.of(JOBS), POOL, options=Options(stays=True))
    assert {"1": 0, "2": None, "3": 20, "4": None} == starts(table)


def test_a_queue_that_is_not_there_is_said() -> None:
    config = (
        "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: a}]}]}]"
    )
    jobs = (job(1, 0, 10, 1, queue="root.a"), job(2, 0, 10, 1, queue="root.b"))
    table = play(Workload.of(jobs), POOL, config)
    states = {row["job"]: row["state"] for row in table}
    assert {"1": "done", "2": "rejected"} == states
    assert "root.b" in next(row["reason"] for row in table if row["job"] == "2")


GPUS = [
    Node(id=name, resources={"vcore": 4_000, "gpu": 2_000}, model=name, devices=2)
    for name in ("P100", "T4")
]


def test_a_job_runs_only_on_models_that_will_do() -> None:
    size = {"vcore": 1_000, "gpu": 2_000}
    jobs = [
        Job(id=str(it), number=it, submit_s=it, run_s=100, size=size, models=("T4",))
        for it in (1, 2)
    ]
    table = play(Workload.of(jobs), GPUS)
    assert [("T4", 1), ("T4", 101)] == [(row["node"], row["start"]) for row in table]


def test_shares_of_a_device_do_not_make_a_whole_one() -> None:
    """Two shares of 600 are on two devices, so 800 are free and none for a third of 600."""
    size = {"vcore": 1_000, "gpu": 600}
    jobs = [
        Job(id=str(it), number=it, submit_s=it, run_s=100, size=size, models=("T4",))
        for it in (1, 2, 3)
    ]
    starts_ = [row["start"] for row in play(Workload.of(jobs), GPUS, options=Options(checked=True))]
    assert [1, 2, 101] == starts_


def test_preempted_work_begins_again() -> None:
    config = """
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: low}
    - {name: high, resources: {guaranteed: {vcore: 4}}, properties: {preemption.delay: 1s}}
"""
    jobs = (job(1, 0, 1000, 4, queue="root.low"), job(2, 100, 50, 4, queue="root.high"))
    table = play(Workload.of(jobs), POOL, config, options=Options(checked=True))
    rows = {row["job"]: row for row in table}
    assert 1 == rows["1"]["preemptions"]
    assert rows["2"]["end"] == rows["1"]["start"]
    assert rows["1"]["end"] == rows["1"]["start"] + 1000


def test_a_policy_is_that_of_every_leaf() -> None:
    config = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: default}]}]}]"
    with pytest.raises(WorkloadError, match="cannot be read"):
        play(Workload.of(JOBS), POOL, "partitions: 5", policy="fifo")
    assert starts(play(Workload.of(JOBS), POOL)) == starts(
        play(Workload.of(JOBS), POOL, config, policy="fifo")
    )


def test_the_files(tmp_path: Path) -> None:
    table = play(Workload.of(JOBS), POOL)
    table.to_csv(tmp_path / "rows.csv")
    rows = [*csv.DictReader((tmp_path / "rows.csv").read_text().splitlines())]
    assert ["1", "2", "3", "4"] == [row["job"] for row in rows]
    assert ("100", "90", "2.8", "n") == tuple(
        rows[1][name] for name in ("start", "wait", "slowdown", "node")
    )
    write_batsim(table, tmp_path / "jobs.csv")
    (first, *_) = csv.DictReader((tmp_path / "jobs.csv").read_text().splitlines())
    assert ("3", "100", "0-2") == tuple(
        first[name]
        for name in ("requested_number_of_resources", "execution_time", "allocated_resources")
    )


def test_the_summary_by_hand() -> None:
    summary = play(Workload.of(JOBS), POOL).summary()
    assert 4 == summary["done"]
    assert {"mean": 55.0, "median": 0.0, "p95": 130.0, "p99": 130.0, "max": 130.0} == summary[
        "wait_s"
    ]
    assert 350 == summary["makespan_s"]
    work = sum(it.run_s * it.tasks for it in JOBS)
    assert pytest.approx(work / (350 * 4)) == summary["utilisation"]["vcore"]
    assert 1.0 == pytest.approx(sum(summary["reasons"].values()))


def test_what_is_made_again_and_again_is_as_small_as_before() -> None:
    series = Series()
    for now_s in range(1, 5001):
        series.advance(now_s, {"used": 0.5})
    assert 16 == series.width_s
    assert pytest.approx([0.5] * 313) == series.means("used")
    assert pytest.approx(0.5) == series.mean("used")


def test_figures_by_hand() -> None:
    assert 3.0 == percentile([1.0, 2.0, 3.0], 95)
    assert 2.0 == percentile([1.0, 2.0, 3.0, 4.0], 50)
    assert 1.0 == slowdown(0, 2)
    assert 2.2 == slowdown(20, 2)


def test_what_has_ended_leaves_nothing_in_the_core() -> None:
    """Applications come and go for as long as a log is, and nobody asks what waits."""
    jobs = [job(it, 10 * it, 5, 1) for it in range(60)]
    gc.collect()
    before = _applications()
    player = _Player(Workload.of(jobs), POOL, configured("", ""), {}, "", Options())
    player.play()
    gc.collect()
    assert _applications() - before <= 2
    assert len(player._core._simulator.lines) <= LINES_KEPT


def _applications() -> int:
    return sum(isinstance(it, Application) for it in gc.get_objects())


def test_a_job_costs_few_messages() -> None:
    """Of a job that runs at once nothing is announced but its start and its end."""
    jobs = [job(it, 10 * it, 5, 1) for it in range(50)]
    assert 11 >= play(Workload.of(jobs), POOL).summary()["messages_per_job"]


def test_why_it_waited_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait has several reasons: each counts for its time, and the row has the longest."""
    heard: list[str] = []
    former = _Player.update_container_scheduling_state

    def hear(self: _Player, request: Any) -> None:
        heard.append(request.reason)
        former(self, request)

    monkeypatch.setattr(_Player, "update_container_scheduling_state", hear)
    limited = """
partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [
  {name: a, resources: {max: {vcore: 2}}}, {name: b}]}]}]
"""
    jobs = (
        job(1, 0, 100, 2, queue="root.a"), job(2, 0, 110, 2, queue="root.b"),
        job(3, 10, 50, 1, queue="root.a"), job(4, 99, 500, 2, queue="root.b"),
        job(5, 100, 20, 1, queue="root.a"),
    )  # fmt: skip
    table = play(Workload.of(jobs), POOL, limited)
    rows = {row["job"]: row for row in table}
    assert "root.a" in rows["3"]["reason"]
    assert "cluster resources" in rows["4"]["reason"]
    shares = table.summary()["reasons"]
    assert len(shares) > 1
    assert pytest.approx(1) == sum(shares.values())
    waited = sum(it["wait"] for it in table)
    assert pytest.approx(waited) == table.run.reasons.total()
    assert len(set(heard)) > 1


def test_a_wait_of_two_reasons_has_the_longer_one() -> None:
    alive = _Alive(job(1, 0, 10, 1), 0, "job-1", "job-1", since_s=0)
    for reason, until_s in (("short", 0), ("long", 10), ("short", 90), ("", 110)):
        alive.waits_for(reason, until_s)
    table = Table(Run(main="vcore"))
    table.submit(alive.job)
    table.waited(0, alive.reasons)
    assert {"short": 30, "long": 80} == alive.reasons == table.run.reasons
    assert "long" == table.row(0)["reason"]


@pytest.mark.parametrize("how", ["ask", "gang"])
def test_jobs_of_batsim_have_the_processors_on_which_they_ran(tmp_path: Path, how: Any) -> None:
    nodes = (
        POOL if how == "ask" else [Node(id=f"n-{it}", resources={"vcore": 2_000}) for it in (0, 1)]
    )
    many = [job(it, 7 * it, 20 + it % 30, 1 + it % 4) for it in range(40)]
    write_batsim(play(Workload.of(many), nodes, options=Options(jobs=how)), tmp_path / "jobs.csv")
    used: list[tuple[float, float, int]] = []
    for row in csv.DictReader((tmp_path / "jobs.csv").read_text().splitlines()):
        numbers = [
            number
            for part in row["allocated_resources"].split()
            for low, _, high in [part.partition("-")]
            for number in range(int(low), int(high or low) + 1)
        ]
        assert (
            int(row["requested_number_of_resources"])
            == len(set(numbers))
            == 1 + int(row["job_id"]) % 4
        )
        begin, end = float(row["starting_time"]), float(row["finish_time"])
        used += [(begin, end, number) for number in numbers]
    assert {0, 1, 2, 3} == {number for _, _, number in used}
    for number in range(4):
        times = sorted(it[:2] for it in used if it[2] == number)
        assert all(a[1] <= b[0] for a, b in pairwise(times)), "two at once on one processor"


def test_processors_by_the_hundred_million_are_written_in_pieces(tmp_path: Path) -> None:
    """A list of their numbers would be larger than the computer."""
    many = 10**8
    nodes = [Node(id=f"n-{it}", resources={"vcore": 1_000 * many}) for it in (0, 1)]
    jobs = (job(1, 0, 100, many - 1), job(2, 5, 20, many), job(3, 10, 100, 1), job(4, 30, 9, 7))
    table = play(Workload.of(jobs), nodes)
    tracemalloc.start()
    write_batsim(table, tmp_path / "jobs.csv")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    rows = csv.DictReader((tmp_path / "jobs.csv").read_text().splitlines())
    found = {
        it["job_id"]: (it["requested_number_of_resources"], it["allocated_resources"])
        for it in rows
    }
    assert most < 1_000_000
    assert {
        "1": (f"{many - 1}", f"0-{many - 2}"),
        "2": (f"{many}", f"{many}-{2 * many - 1}"),
        "3": ("1", f"{many - 1}"),
        "4": ("7", f"{many}-{many + 6}"),
    } == found


def test_two_jobs_of_one_id_are_both_played() -> None:
    table = play(Workload.of((job(1, 0, 100, 1), job(1, 5, 100, 1))), POOL)
    assert [("done", 0), ("done", 5)] == [(row["state"], row["start"]) for row in table]


def test_time_that_has_no_numbers_left_cuts_it_off() -> None:
    long = [job(it, 0, 4e9, 4) for it in range(1, 4)]
    table = play(Workload.of(long), POOL)
    assert ["done", "running", "waiting"] == [row["state"] for row in table]


def test_what_is_typical_of_a_log_is_known_to_its_node_order() -> None:
    config = (
        "partitions: [{name: default, nodesortpolicy: {type: fgd}, "
        "queues: [{name: root, submitacl: '*', queues: [{name: default}]}]}]"
    )
    whole = [
        Job(id=f"w{it}", number=it, submit_s=it, run_s=100, size={"vcore": 1, "gpu": 2_000})
        for it in range(10)
    ]
    share = Job(id="s", number=11, submit_s=0, run_s=1_000, size={"vcore": 1, "gpu": 500})
    mate = Job(id="t", number=12, submit_s=1, run_s=1_000, size={"vcore": 1, "gpu": 500})
    rows = {row["job"]: row for row in play(Workload.of([share, mate, *whole]), GPUS, config)}
    assert rows["s"]["node"] == rows["t"]["node"]


def test_parquet(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra `parquet` is not installed")
    table = play(Workload.of(JOBS), POOL, options=Options(until_s=120))
    table.to_parquet(tmp_path / "rows.parquet")
    read = parquet.read_table(tmp_path / "rows.parquet").to_pylist()
    assert table.rows() == read
    assert any(row["end"] is None for row in read)


def test_parquet_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(WorkloadError, match=r"pip install -e '\.\[parquet\]'"):
        play(Workload.of(JOBS), POOL).to_parquet(tmp_path / "rows.parquet")


def test_where_nothing_ends_no_node_is_kept_for_what_waits() -> None:
    nodes = [Node(id=f"n-{it}", resources={"vcore": 4_000}) for it in range(2)]
    jobs = [job(1, 0, 0, 3), job(2, 0, 0, 3), job(3, 1, 0, 4), job(4, 100, 0, 1), job(5, 200, 0, 1)]
    table = play(Workload.of(jobs), nodes, options=Options(stays=True))
    assert {"1": 0, "2": 0, "3": None, "4": 100, "5": 200} == starts(table)
