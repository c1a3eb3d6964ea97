"""A short run of `python -m tests.stress`, and faults that it has to find."""

import sys
import threading
from collections.abc import Callable
from typing import get_args

import pytest
import ranges
import stress
from recordings import CONFIG, RM, register
from stress import Run

from yunikorn_actors import si
from yunikorn_actors.checks.registrations import Registrations
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.base import CONTEXT, Message
from yunikorn_actors.messages.rm_events import ConfigurationRequested
from yunikorn_actors.runtime.scheduler_core import CoreDriver
from yunikorn_actors.scenario.recorded_core import RecordedCore


@pytest.mark.parametrize(("topology", "driver"), ranges.one_each(TOPOLOGIES, get_args(CoreDriver)))
def test_a_short_run(topology: TopologyName, driver: CoreDriver) -> None:
    before = sys.getswitchinterval()
    run, failure = stress.stress(seconds=0.4, seed=1, topology=topology, driver=driver)
    assert failure is None
    assert run.counts["allocations"] > 0, "vacuous: nothing was placed"
    assert run.counts["registrations"] >= len(run.managers)
    assert " 0 failures; RSS " in run.summary(0)
    assert before == sys.getswitchinterval()


def test_a_request_is_noted_while_nobody_goes_through_the_notes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As of a configuration, which a caller sends without the lock that keeps requests in order."""
    noted, may_be_noted = threading.Event(), threading.Event()
    at_once: list[bool] = []

    def sent(_: Registrations, message: Message) -> None:
        if isinstance(message, ConfigurationRequested):
            at_once.append(not may_be_noted.is_set())
            noted.set()

    monkeypatch.setattr(Registrations, "sent", sent)
    with RecordedCore() as core:
        register(core)
        change = si.UpdateConfigurationRequest(rm_id=RM, config=CONFIG)
        caller = threading.Thread(target=core.update_configuration, args=(change,))
        with core.managers.order:
            caller.start()
            assert not noted.wait(0.1)
            may_be_noted.set()
        caller.join()
    assert at_once == [False]


def _books(run: Run) -> None:
    context = run.core._actors.machines()[CONTEXT]
    assert isinstance(context, Context)
    for partition in context.partitions.values():
        partition.state.owners["nobody's"] = "nobody"


def _told(run: Run) -> None:
    new = si.Allocation(uuid="nobody's", allocation_key="k", application_id="app", node_id="n1")
    next(run.core._records.current()).notified(si.AllocationResponse(new=(new,)))


def _registered(run: Run) -> None:
    run.core.managers.registered.popitem()


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
