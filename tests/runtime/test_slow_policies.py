"""A policy that is slow decides, and is named: once, by event, health and standard error."""

import time
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from yunikorn_actors import Scheduler, SchedulerCore
from yunikorn_actors.checks.health_checks import health_of
from yunikorn_actors.runtime.health_monitor import SlowPolicies
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.replay import replay

MS = 1_000_000
CONFIG = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - {name: jobs, properties: {application.sort.policy: pondering}}
"""


class Pondering:
    """No call of it ends before a millisecond is over, however quick the computer is."""

    reads = ("used",)

    def application_key(self, app: Any) -> int:
        began = time.perf_counter_ns()
        while time.perf_counter_ns() - began < MS:
            pass
        return int(app.submitted_ns)


@pytest.mark.parametrize(
    ("took_ms", "said"),
    [
        ([1] * 19, []),
        ([1] * 20, ["application_key took 1 ms or more in each of 20 calls"]),
        ([1] * 19 + [0] + [1] * 19, []),
        ([5_000, 0, 5_000, 0, 5_000], []),
        ([100] * 3, ["application_key took 100 ms or more in each of 3 calls"]),
        ([1] * 60, ["application_key took 1 ms or more in each of 20 calls"]),
    ],
)
def test_slow_is_what_takes_long_in_every_call(took_ms: list[int], said: list[str]) -> None:
    ends = accumulate(took_ms, initial=0)
    times = iter([0, *(it for end in list(ends)[1:] for it in (end * MS, end * MS))])
    found: list[str] = []
    slow = SlowPolicies(lambda *words: found.append(words[2]), lambda: next(times))
    for _ in took_ms:
        assert slow.call("root.jobs", "mine", "application_key", lambda: 7) == (7, "")
    assert found == said


@pytest.mark.parametrize("others", range(1, 40))
def test_one_that_becomes_slow_is_named_however_calls_take_turns(others: int) -> None:
    """While all are quick most calls are not measured."""
    now_ns, found = [0], []

    def clock() -> int:
        now_ns[0] += 7  # A look at the clock takes time as well, and drawn numbers come of it.
        return now_ns[0]

    slow = SlowPolicies(lambda *words: found.append(words[1]), clock)

    def takes(ns: int) -> None:
        now_ns[0] += ns

    for turn in range(500):
        for at in range(others):
            slow.call("root.jobs", "quick", "ask_key", takes, 500 + 13 * turn + at)
        slow.call("root.jobs", "late", "ask_key", takes, MS if turn > 10 else 300)
        if found:
            break
    assert found == ["late"]


def test_operators_hear_of_a_slow_policy_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    policies = {"pondering": Pondering}
    core = SchedulerCore(trace=tmp_path / "t", policies=policies)
    with Scheduler(CONFIG, core=core) as scheduler:
        scheduler.add_node("n", vcore=40)
        app = scheduler.application("a", queue="root.jobs", user="ann")
        leases = [app.ask(f"j{at}", vcore=1).result(timeout=60) for at in range(40)]
        assert len(leases) == 40
        faults = [it for it in health_of(core.state_dump()).checks if not it.succeeded]
        (fault,) = faults
        what = "application_key took 1 ms or more in each of 20 calls"
        assert fault.name == "Policies"
        assert what in fault.diagnosis
        texts = [it.message for it in core.events().records if "is slow" in it.message]
    assert texts == [f"the policy pondering of queue root.jobs is slow: {what}"]
    assert capfd.readouterr().err.count("is slow") == 1
    with TraceReader(tmp_path / "t", policies=policies) as trace:
        outcome = replay(trace)
    assert outcome.complete
    assert outcome.difference is None
    assert outcome.failures == ()
