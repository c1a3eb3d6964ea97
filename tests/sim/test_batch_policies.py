"""The shipped policies of batch systems, against a pool that shares nothing with the core."""

from collections import Counter

import pytest
import ranges

from tests.helpers.batch_jobs import POOL, Batch, drawn
from tests.helpers.batch_pools import Job, Pool
from yunikorn_actors.machines.topology import TopologyName

POLICIES = ("fcfs", "easy", "conservative", "sjf")


@pytest.mark.parametrize(
    ("gangs", "topology"),
    [
        pytest.param(False, "proposing", id="one node"),
        pytest.param(True, "fused", id="gangs"),
        pytest.param(False, "fused", marks=pytest.mark.slow),
        pytest.param(True, "proposing", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("policy", POLICIES)
@ranges.seeds(9, usual=1)
def test_every_job_starts_when_the_rules_say(
    policy: str, topology: TopologyName, gangs: bool, seeds: range
) -> None:
    for seed in seeds:
        jobs = drawn(seed)
        wanted = Pool(policy, jobs, POOL).run()
        found = Batch(policy, jobs, topology, gangs=gangs).run()
        assert found == wanted, f"seed {seed}"


@pytest.mark.parametrize("gangs", [False, True])
def test_nothing_happens_at_the_end_that_a_job_outlives(gangs: bool) -> None:
    """Yet from then on the last one delays the first no more: both would have room."""
    jobs = [Job(0, 0, 100, 3, 5), Job(0, 1, 100, 3, 20), Job(0, 2, 50, 5, 5), Job(1, 3, 60, 2, 60)]
    found = Batch("easy", jobs, "fused", gangs=gangs).run()
    assert found == Pool("easy", jobs, POOL).run() == {0: 0, 1: 0, 2: 100, 3: 20}


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
@ranges.seeds(9, usual=1)
def test_jobs_that_run_longer_than_they_say(policy: str, seeds: range) -> None:
    for seed in seeds:
        longer = [job._replace(declared=1 + job.declared // 3) for job in drawn(seed)]
        found = Batch(policy, longer, "fused", gangs=False).run()
        assert found == Pool(policy, longer, POOL).run(), f"seed {seed}"


def test_the_policies_differ_on_these_jobs() -> None:
    """Else the comparison would say nothing."""
    found = Counter(tuple(sorted(Pool(name, drawn(1), POOL).run().items())) for name in POLICIES)
    assert len(found) == len(POLICIES)
