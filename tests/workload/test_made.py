"""Workloads that are made by draw, or like a log."""

from itertools import islice, pairwise
from statistics import fmean, median

import pytest

from yunikorn_actors.workload import (
    Workload,
    diurnal,
    exponential,
    fitted,
    lognormal,
    made,
    one_of,
    play,
    read_nodes,
)


def test_the_same_seed_makes_the_same_jobs() -> None:
    one, two, other = (
        [*made(50, arrivals=exponential(10), runs=lognormal(60, 1), seed=seed).jobs()]
        for seed in (1, 1, 2)
    )
    assert one == two != other


def test_they_are_as_they_were_ordered() -> None:
    workload = made(
        4_000, arrivals=exponential(10), runs=lognormal(60, 1), sizes=one_of([1, 8], [3, 1]),
        overestimate=one_of([2]),
    )  # fmt: skip
    jobs = [*workload.jobs()]
    gaps = [b.submit_s - a.submit_s for a, b in pairwise(jobs)]
    assert pytest.approx(10, rel=0.1) == fmean(gaps)
    assert pytest.approx(60, rel=0.1) == median(it.run_s for it in jobs)
    assert pytest.approx(0.25, abs=0.03) == fmean(it.tasks == 8 for it in jobs)
    assert all(it.declared_s == 2 * it.run_s for it in jobs)
    assert workload.survey.submitted_s == (jobs[0].submit_s, jobs[-1].submit_s)


def test_the_day_is_busier_than_the_night() -> None:
    workload = made(20_000, arrivals=exponential(30), runs=one_of([60]), busy=diurnal(1.8, at_h=14))
    hours = [0] * 24
    for job in workload.jobs():
        hours[int(job.submit_s // 3600) % 24] += 1
    assert hours[14] > 3 * hours[2]


def test_one_like_a_log() -> None:
    log = Workload.read("sample:cluster.swf")
    like = fitted(log, 2_000, seed=3)
    sizes = [fmean(it.tasks for it in workload.jobs()) for workload in (log, like)]
    assert pytest.approx(sizes[0], rel=0.2) == sizes[1]
    assert {it.tasks for it in like.jobs()} <= {it.tasks for it in log.jobs()}


def test_it_is_played_as_a_log_is() -> None:
    workload = made(100, arrivals=exponential(10), runs=lognormal(60, 1), seed=4)
    table = play(workload, read_nodes("8"))
    assert 100 == sum(row["state"] == "done" for row in table)


def test_jobs_are_made_as_they_are_needed() -> None:
    drawn: list[float] = []

    def gap(_: object) -> float:
        drawn.append(1.0)
        return 1.0

    workload = made(100, arrivals=gap, runs=one_of([1]))
    drawn.clear()
    assert 3 == len([*islice(workload.jobs(), 3)])
    assert len(drawn) <= 4
