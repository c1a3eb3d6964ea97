"""A resource manager of batch jobs, and jobs that are drawn."""

from collections import defaultdict
from collections.abc import Mapping

from tests.helpers.batch_pools import Job
from tests.helpers.support import default_checkers
from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.simulator import EPOCH_NS, Checker, Simulator
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import Topology, TopologyName
from yunikorn_actors.policies.registry import Policies, Policy
from yunikorn_actors.values.durations import SECOND

POOL = 8
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
        self,
        policy: str,
        jobs: list[Job],
        topology: TopologyName,
        *,
        gangs: bool,
        checkers: tuple[Checker, ...] = (),
        policies: Mapping[str, Policy] | None = None,
    ) -> None:
        built = Topology(
            topology, settings=Settings(), instance="batch", policies=Policies(policies)
        )
        self.core = Simulator(built, checkers=(*default_checkers(), *checkers))
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
