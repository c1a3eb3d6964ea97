"""The shipped policies of batch systems, against a pool that shares nothing with the core."""

from collections import Counter, defaultdict

import pytest

from tests.helpers.batch_pools import Job, Pool
from tests.helpers.support import default_checkers
from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.simulator import EPOCH_NS, Simulator
from yunikorn_actors.lab.random_draw import Draw
from yunikorn_actors.machines.settings import SECOND, Settings
from yunikorn_actors.machines.topology import Topology, TopologyName

POOL = 8
POLICIES = ("fcfs", "easy", "conservative", "sjf")
CONFIG = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: jobs
            properties: {application.sort.policy: %s}
"""
RUNTIME = "yunikorn-actors/runtime"


def drawn(seed: int, number: int = 25) -> list[Job]:
    draw, submit, jobs = Draw(seed), 0, []
    for each in range(number):
        submit += draw.number(6)
        run = draw.whole(1, 20)
        declared = run if draw.once_in(2) else run + draw.number(20)
        jobs.append(Job(submit, each, run, draw.whole(1, POOL), declared))
    return jobs


class Batch(si.ResourceManagerCallback):
    """A resource manager that lets jobs arrive and ends them: on one node, or as gangs on many."""

    def __init__(
        self, policy: str, jobs: list[Job], topology: TopologyName, *, gangs: bool
    ) -> None:
        built = Topology(topology, settings=Settings(), instance="batch")
        self.core = Simulator(built, checkers=default_checkers())
        self.jobs, self.gangs = {f"job-{job.number:02}": job for job in jobs}, gangs
        self.starts: dict[int, int] = {}
        self.live: dict[str, list[str]] = defaultdict(list)
        self.core.register_resource_manager(
            si.RegisterResourceManagerRequest(rm_id="rm", config=CONFIG % policy), self
        )
        sizes = [1] * POOL if gangs else [POOL]
        nodes = tuple(
            si.NodeInfo(
                node_id=f"n{place}",
                action=si.ActionFromRM.CREATE,
                schedulable_resource=si.Resource.of({"vcore": size}),
            )
            for place, size in enumerate(sizes)
        )
        self.core.update_node(si.NodeRequest(rm_id="rm", nodes=nodes))
        self.core.settle()

    @property
    def now(self) -> int:
        return (self.core.now_ns - EPOCH_NS) // SECOND

    def update_allocation(self, response: si.AllocationResponse) -> None:
        for item in response.new:
            self.live[item.application_id].append(item.uuid)

    def run(self) -> dict[int, int]:
        while len(self.starts) < len(self.jobs):
            ended = [
                name
                for name, job in self.jobs.items()
                if self.starts.get(job.number, self.now) + job.run == self.now
            ]
            new = [name for name, job in self.jobs.items() if job.submit == self.now]
            self._tell(ended, new)
            self.core.settle()
            self._look()
            self.core.advance(SECOND)
            self._look(self.now)
        return self.starts

    def _look(self, now: int | None = None) -> None:
        for name, uuids in self.live.items():
            job = self.jobs[name]
            if uuids and job.number not in self.starts:
                assert len(uuids) == (job.size if self.gangs else 1), "a gang starts as a whole"
                self.starts[job.number] = self.now if now is None else now

    def _tell(self, ended: list[str], new: list[str]) -> None:
        ask = {True: self._gang, False: self._single}[self.gangs]
        applications = tuple(self._application(name) for name in new)
        self.core.update_application(si.ApplicationRequest(rm_id="rm", new=applications))
        gone = tuple(
            si.AllocationRelease(application_id=name, uuid=uuid)
            for name in ended
            for uuid in self.live[name]
        )
        releases = si.AllocationReleasesRequest(allocations_to_release=gone)
        asks = tuple(ask(name, self.jobs[name]) for name in new)
        self.core.update_allocation(si.AllocationRequest(rm_id="rm", asks=asks, releases=releases))

    def _application(self, name: str) -> si.AddApplicationRequest:
        size = si.Resource.of({"vcore": self.jobs[name].size})
        return si.AddApplicationRequest(
            application_id=name,
            queue_name="root.jobs",
            ugi=si.UserGroupInformation(user="ann"),
            placeholder_ask=size if self.gangs else None,
        )

    def _single(self, name: str, job: Job) -> si.AllocationAsk:
        return si.AllocationAsk(
            application_id=name,
            allocation_key="work",
            resource_ask=si.Resource.of({"vcore": job.size}),
            tags={RUNTIME: str(job.declared)},
        )

    def _gang(self, name: str, job: Job) -> si.AllocationAsk:
        return si.AllocationAsk(
            application_id=name,
            allocation_key="members",
            resource_ask=si.Resource.of({"vcore": 1}),
            max_allocations=job.size,
            placeholder=True,
            task_group_name="all",
            tags={RUNTIME: str(job.declared)},
        )


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
