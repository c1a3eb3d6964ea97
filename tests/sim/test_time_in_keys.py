"""Orders that go by how long something has waited, against a plain loop over the seconds."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.helpers.batch_jobs import POOL, SECOND, Batch, drawn
from tests.helpers.batch_pools import Job
from yunikorn_actors import si
from yunikorn_actors.cli import main
from yunikorn_actors.lab.policy_check.check import check_policy
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.policies import Hold
from yunikorn_actors.what_if.core_state import state_of
from yunikorn_actors.what_if.simulation import simulate

MINUTE_NS = 60 * SECOND


class Aging:
    """The highest priority first, and each minute of waiting counts as one more."""

    reads = ("priority", "waited_ns")
    every_s = 5

    def application_key(self, app: Any) -> Any:
        return -(app.priority + app.waited_ns / MINUTE_NS * 20)


class Wfp3:
    reads = ("runtime_ns", "size", "waited_ns")
    every_s = 1

    def application_key(self, app: Any) -> Any:
        return -((app.waited_ns / app.runtime_ns) ** 3) * app.size["vcore"]


def strict(policy: type) -> type:
    """Nobody passes the first that has no room."""

    def may_start(_: Any, job: Any, pool: Any) -> Hold | None:
        return Hold(f"{job.id} is not first", ends_pass=True) if pool.held else None

    return type(policy.__name__, (policy,), {"may_start": may_start})


def aging(job: Job, waited: int) -> float:
    return -(job.number % 3 + waited / 60 * 20)


def wfp3(job: Job, waited: int) -> float:
    return -((waited * SECOND / (job.declared * SECOND)) ** 3) * job.size


def plain(
    jobs: list[Job], key: Callable[[Job, int], float], every: int, *, is_strict: bool
) -> dict[int, int]:
    """At each step of the time one pass, then at each second all ends, all arrivals, one pass."""
    starts: dict[int, int] = {}
    ended: set[int] = set()

    def start_some(now: int, latest: int) -> None:
        free = POOL - sum(it.size for it in jobs if it.number in starts.keys() - ended)
        waiting = [it for it in jobs if it.submit <= latest and it.number not in starts]
        steps = now // every * every

        def rank(it: Job) -> Any:
            """Between equal keys the priority decides, then arrival."""
            return key(it, max(0, steps - it.submit)), -(it.number % 3), it

        for job in sorted(waiting, key=rank):
            if job.size <= free:
                starts[job.number], free = now, free - job.size
            elif is_strict:
                return

    for now in range(2000):
        if is_strict and now % every == 0:
            start_some(now, now - 1)
        ended |= {it.number for it in jobs if starts.get(it.number, now) + it.run <= now}
        start_some(now, now)
    assert len(starts) == len(jobs)
    return starts


class Ranked(Batch):
    def _single(self, name: str, job: Job) -> si.AllocationAsk:
        return replace(super()._single(name, job), priority=job.number % 3)


@pytest.mark.parametrize(("is_strict", "topology"), [(False, "proposing"), (True, "fused")])
@pytest.mark.parametrize(("policy", "key"), [(Aging, aging), (Wfp3, wfp3)])
def test_every_job_starts_when_a_plain_loop_says(
    policy: Any, key: Callable[[Job, int], float], is_strict: bool, topology: TopologyName
) -> None:
    made = strict(policy) if is_strict else policy
    jobs = drawn(1, 15)
    named = "mine, application.sort.priority: disabled"
    found = Ranked(named, jobs, topology, gangs=False, policies={"mine": made}).run()
    assert found == plain(jobs, key, policy.every_s, is_strict=is_strict)
    by_arrival = plain(jobs, lambda *_: 0, policy.every_s, is_strict=is_strict)
    assert found != by_arrival, "vacuous: an order without time does the same"


class Undeclared(Aging):
    reads = ("priority",)


class TooOften(Aging):
    every_s = 0


@pytest.mark.parametrize(
    ("policy", "fault"),
    [
        (Wfp3, ""),
        (Undeclared, "application_key: reads waited_ns, which is undeclared"),
        (TooOften, "every_s is 0: make it a number of seconds from 0.001 to 86400"),
    ],
)
def test_policy_check_knows_of_time(policy: Any, fault: str) -> None:
    report = check_policy(policy, worlds=1)
    assert fault in report.text
    assert bool(fault) is not report.is_good, report.text


SCENARIO = """
name: the one that has waited
policies: {aging: "tests.sim.test_time_in_keys:Aging"}
queues:
  partitions:
    - name: default
      queues:
        - name: root
          submitacl: "*"
          queues:
            - name: jobs
              properties: {application.sort.policy: aging, application.sort.priority: disabled}
steps:
  - create_node: {id: n, capacity: {vcore: 1}}
  - add_app: {id: first, queue: root.jobs}
  - ask: {app: first, key: a, resource: {vcore: 1}}
  - add_app: {id: old, queue: root.jobs}
  - ask: {app: old, key: b, resource: {vcore: 1}}
  - advance: 60s
  - add_app: {id: new, queue: root.jobs}
  - ask: {app: new, key: c, resource: {vcore: 1}, priority: PRIORITY}
  - release: {app: first, key: a}
  - expect: {allocations: {WINNER: {node: n}}}
"""


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize(("priority", "winner"), [(19, "b"), (21, "c")])
def test_a_recording_makes_the_same_keys(
    priority: int,
    winner: str,
    topology: TopologyName,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A minute counts as much as twenty."""
    file, trace = tmp_path / "a.yaml", tmp_path / "a.trace"
    file.write_text(SCENARIO.replace("PRIORITY", str(priority)).replace("WINNER", winner), "utf-8")
    options = ("--topology", topology, "--trace", str(trace))
    assert 0 == main(["scenario", "run", str(file), *options]), capsys.readouterr().out
    policies = "tests.sim.test_time_in_keys:MINE"
    assert 0 == main(["trace", "replay", str(trace), "--policies", policies])
    assert "identical" in capsys.readouterr().out


MINE = {"aging": Aging}


class Foretold(Ranked):
    """Once, between two steps of the time, a copy with a planner of its own says what will come."""

    foretold: dict[int, int]
    at: int

    def _tell(self, ended: list[str], new: list[str]) -> None:
        super()._tell(ended, new)
        if self.now == self.at:
            self.core.settle()
            answer = simulate(state_of(self.core), compare=False, origin=self.core)
            self.foretold = {
                self.jobs[it.application].number: self.now + round(it.at_s)
                for it in answer.course.placed
            }


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("policy", [Aging, Wfp3])
@pytest.mark.parametrize("seed", range(3))
def test_a_copy_that_begins_between_two_steps_decides_as_the_truth(
    policy: Any, topology: TopologyName, seed: int
) -> None:
    jobs = [it._replace(declared=it.run) for it in drawn(seed, 15)]
    named = "mine, application.sort.priority: disabled"
    batch = Foretold(named, jobs, topology, gangs=False, policies={"mine": policy})
    batch.at = next(at for at in range(jobs[-1].submit + 1, 999) if at % 5 in {2, 3})
    starts = batch.run()
    assert len(batch.foretold) > 2, "vacuous: hardly anything waits"
    assert batch.foretold == {it: at for it, at in starts.items() if at > batch.at}
