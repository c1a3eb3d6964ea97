"""A program that comes back, to a core that began from its journal or to one that knows nothing."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from fronting import PATIENCE_S, QUEUES
from probes import wait_until

from yunikorn_actors import Running, Scheduler, SchedulerCore, si


@pytest.mark.parametrize("application_first", [True, False])
def test_an_ask_that_is_placed_before_it_is_made_again_gets_its_lease(
    tmp_path: Path, *, application_first: bool
) -> None:
    with Scheduler(QUEUES, core=SchedulerCore(journal=tmp_path / "j")) as s:
        s.application("etl", queue="root.batch", user="ann").ask("t1", vcore=1)
        wait_until(lambda: "t1" in str(s.core.state_dump()))
        # Killed here: nothing is told to the core.
        s.core.stop()
    with Scheduler(QUEUES, core=SchedulerCore(journal=tmp_path / "j")) as s:
        if application_first:
            app = s.application("etl", queue="root.batch", user="ann")
        s.add_node("n1", vcore=1)
        wait_until(lambda: allocated(s))
        if not application_first:
            app = s.application("etl", queue="root.batch", user="ann")
        lease = app.ask("t1", vcore=1).result(PATIENCE_S)
        assert {"vcore": 1_000} == allocated(s)
        assert ("n1", "held") == (lease.node_id, lease.state)
        lease.release()
        wait_until(lambda: not allocated(s))


def test_what_was_placed_early_and_nobody_asks_for_is_given_back_when_the_core_wants_it(
    tmp_path: Path,
) -> None:
    with Scheduler(QUEUES, core=SchedulerCore(journal=tmp_path / "j")) as s:
        s.application("etl", queue="root.batch", user="ann")
        ask = si.AllocationAsk(
            allocation_key="t1",
            application_id="etl",
            resource_ask=si.Resource.of({"vcore": 1_000}),
            execution_timeout_milli_seconds=500,
        )
        s.core.update_allocation(si.AllocationRequest(rm_id="rm-1", asks=(ask,)))
        wait_until(lambda: "t1" in str(s.core.state_dump()))
        s.core.stop()
    heard = Heard()
    with Scheduler(QUEUES, core=SchedulerCore(journal=tmp_path / "j"), callback=heard) as s:
        s.add_node("n1", vcore=1)
        wait_until(lambda: heard.released)
        wait_until(lambda: not allocated(s))


def test_the_driver_of_an_application_goes_late_after_a_restart_too() -> None:
    """And its work counts as long as it was declared: both decide what is preempted first."""
    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=4)
        app = s.application("etl", queue="root.batch", user="ann")
        worker = app.ask("worker", vcore=2, runtime=90, tags={"team": "blue"})
        driver = app.ask("driver", vcore=2, originator=True)
        kept = json.dumps([asdict(it.result(PATIENCE_S).running) for it in (worker, driver)])
        before = victims_of(s)
    running = [Running(**it) for it in json.loads(kept)]
    with Scheduler(QUEUES) as s:
        s.application("etl", queue="root.batch", user="ann", running=running)
        s.add_node("n1", vcore=4, running=running)
        assert before == victims_of(s)
    assert ("driver", True, {}) in before
    assert ("worker", False, {si.constants.TAG_RUNTIME: "90", "team": "blue"}) in before


def victims_of(s: Scheduler) -> list[tuple[str, bool, dict[str, str]]]:
    """What the choice of victims reads of all that runs."""
    apps = s.core.state_dump()["partitions"]["[rm-1]default"]["applications"]
    running = [it for app in apps.values() for it in app["allocations"]]
    return sorted(
        (it["key"], "originator" in it, without_predicates(it.get("tags", {}))) for it in running
    )


def without_predicates(tags: dict[str, str]) -> dict[str, str]:
    return {tag: it for tag, it in tags.items() if tag != si.constants.TAG_PREDICATES}


class Heard(si.ResourceManagerCallback):
    def __init__(self) -> None:
        self.released: list[si.AllocationRelease] = []

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.released += response.released


def allocated(s: Scheduler) -> dict[str, int]:
    used: dict[str, int] = s.core.state_dump()["partitions"]["[rm-1]default"]["nodes"]["n1"][
        "allocated"
    ]
    return used
