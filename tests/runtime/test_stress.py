"""A short run of `python -m tests.stress`, and faults that it has to find."""

import sys
from collections.abc import Callable
from typing import get_args

import pytest
import stress
from stress import Run

from yunikorn_actors import si
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.base import CONTEXT
from yunikorn_actors.runtime.scheduler_core import CoreDriver


@pytest.mark.parametrize("driver", get_args(CoreDriver))
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_short_run(topology: TopologyName, driver: CoreDriver) -> None:
    before = sys.getswitchinterval()
    run, failure = stress.stress(seconds=1, seed=1, topology=topology, driver=driver)
    assert failure is None
    assert run.counts["allocations"] > 0, "vacuous: nothing was placed"
    assert run.counts["registrations"] >= len(run.managers)
    assert " 0 failures; RSS " in run.summary(0)
    assert before == sys.getswitchinterval()


def _books(run: Run) -> None:
    context = run.core._actors.machines()[CONTEXT]
    assert isinstance(context, Context)
    for partition in context.partitions.values():
        partition.state.owners["nobody's"] = "nobody"


def _told(run: Run) -> None:
    new = si.Allocation(uuid="nobody's", allocation_key="k", application_id="app", node_id="n1")
    next(run.core._records.current()).notified(si.AllocationResponse(new=(new,)))


def _registered(run: Run) -> None:
    run.core._registered.popitem()


def _slots(run: Run) -> None:
    run.core._replies.open()


FAULTS: dict[str, tuple[Callable[[Run], None], str]] = {
    "books": (_books, "allocation"),
    "told": (_told, "for rm-1 nobody's \\(k of app\\) runs on n1, and the core does not have it"),
    "registered": (_registered, "registered is False, and the core has"),
    "slots": (_slots, "callers wait for answers"),
}


@pytest.mark.parametrize(("fault", "words"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_found(fault: Callable[[Run], None], words: str) -> None:
    run = Run(seed=1, topology="fused")
    with run.core:
        for manager in run.managers:
            manager.register(stress.Draw(1))
        run._come_to_rest()
        run._check()
        fault(run)
        with pytest.raises(stress.Failure, match=words):
            run._check()


def test_memory_that_grows_is_found() -> None:
    run = Run(seed=1, topology="fused")
    run.counts["rounds"] = stress.JUDGED_ROUNDS
    run.rss_mib = [50.0 + number for number in range(stress.JUDGED_ROUNDS)]
    with pytest.raises(stress.Failure, match="memory grew from"):
        run.check_memory()
    run.rss_mib = [50.0] * stress.JUDGED_ROUNDS
    run.check_memory()
