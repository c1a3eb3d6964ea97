"""The shipped policies of batch systems, against a pool that shares nothing with the core."""

from collections import Counter

import pytest

from tests.helpers.batch_jobs import POOL, Batch, drawn
from tests.helpers.batch_pools import Pool
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
def test_every_job_starts_when_the_rules_say(
    policy: str, topology: TopologyName, gangs: bool
) -> None:
    for seed in range(3):
        jobs = drawn(seed)
        wanted = Pool(policy, jobs, POOL).run()
        found = Batch(policy, jobs, topology, gangs=gangs).run()
        assert found == wanted, f"seed {seed}"


def test_the_policies_differ_on_these_jobs() -> None:
    """Else the comparison would say nothing."""
    found = Counter(tuple(sorted(Pool(name, drawn(1), POOL).run().items())) for name in POLICIES)
    assert len(found) == len(POLICIES)
