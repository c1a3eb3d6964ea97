"""Workloads that are made: arrivals, sizes and run times by draw, or fitted to a log.

Draws depend on the seed alone, and jobs are made as they are needed: a million take no room.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import exp, log, pi, sin
from random import Random
from statistics import fmean, pstdev

from yunikorn_actors.workload.job_stream import Workload
from yunikorn_actors.workload.jobs import CPU, VCORE, Findings, Job, Survey

DAY_S = 86_400.0
Draw = Callable[[Random], float]
"""Draws one number."""


def exponential(mean: float) -> Draw:
    """Times between arrivals that don't know of each other: a Poisson process."""
    return lambda random: random.expovariate(1 / mean)


def lognormal(median: float, spread: float) -> Draw:
    """Many short and a few long ones, as run times are; `spread` is that of the logarithm."""
    return lambda random: median * exp(random.gauss(0, spread))


def one_of(values: Sequence[float], weights: Sequence[float] | None = None) -> Draw:
    return lambda random: random.choices(values, weights)[0]


ONE: Draw = one_of([1])


def diurnal(peak: float, at_h: float = 14.0) -> Callable[[float], float]:
    """How busy a time of day is: `peak` times the mean at that hour, as much less at night."""
    return lambda time_s: 1 + (peak - 1) * sin(2 * pi * (time_s / DAY_S - (at_h - 6) / 24))


def made(
    jobs: int,
    *,
    arrivals: Draw,
    runs: Draw,
    sizes: Draw = ONE,
    users: int = 10,
    queue: str = "root.default",
    overestimate: Draw = ONE,
    busy: Callable[[float], float] | None = None,
    seed: int = 0,
) -> Workload:
    """Make a workload of so many jobs; `busy` says how many times as often jobs come at a time."""

    def drawn() -> Iterator[Job]:
        random, time_s = Random(seed), 0.0  # noqa: S311 - a repeatable draw, no secret
        for number in range(1, jobs + 1):
            time_s += arrivals(random) / (max(0.05, busy(time_s)) if busy else 1.0)
            run_s = max(1.0, round(runs(random)))
            user = min(users - 1, int(random.expovariate(3 / users)))
            yield Job(
                id=str(number), number=number, submit_s=round(time_s), run_s=run_s,
                size={VCORE: CPU}, tasks=max(1, round(sizes(random))),
                declared_s=run_s * overestimate(random), user=f"u{user}", group="made", queue=queue,
            )  # fmt: skip

    last_s = 0.0
    for job in drawn():
        last_s = job.submit_s
    first_s = next(drawn()).submit_s if jobs else 0.0
    survey = Survey(format="made", jobs=jobs, submitted_s=(first_s, last_s))
    return Workload(f"made, seed {seed}", drawn, survey, Findings())


def fitted(log_: Workload, jobs: int, *, seed: int = 0) -> Workload:
    """Make one like a log: arrivals by the hour of the day, sizes as often, runs as spread."""
    hours, sizes, runs, gaps = [0] * 24, [], [], []
    for before, job in pairwise(log_.jobs()):
        hours[int(job.submit_s // 3_600) % 24] += 1
        gaps.append(job.submit_s - before.submit_s)
        sizes.append(job.tasks)
        runs.append(log(job.run_s))
    if not gaps:
        return made(0, arrivals=exponential(1), runs=exponential(1))
    mean = fmean(hours)
    return made(
        jobs,
        arrivals=exponential(fmean(gaps)),
        runs=lognormal(exp(fmean(runs)), pstdev(runs)),
        sizes=one_of(sizes),
        busy=lambda time_s: hours[int(time_s // 3_600) % 24] / mean,
        seed=seed,
    )
