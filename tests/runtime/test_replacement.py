"""On threads one machine fails, and the others go on: of what holds no truth there is another."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from probes import PATIENCE_S, add_nodes, register, wait_until
from support import APP, QUEUE, Recorder

from yunikorn_actors import CoreFailed, NoReply, SchedulerCore, si
from yunikorn_actors.checks.health_checks import health_of
from yunikorn_actors.machines.machine import InvariantViolation
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.base import CONTEXT, EVENT_PUBLISHER, RM_PROXY
from yunikorn_actors.messages.rm_events import RMUnregistered
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.replay import replay

MACHINES_FAIL = True
"""Here they are meant to."""
RMS = ("rm-1", "rm-2")


class Fault(Exception):
    pass


class Cluster:
    """A core with two resource managers, each with a node and an application."""

    def __init__(self, topology: TopologyName = "proposing", trace: Path | None = None) -> None:
        self.core = SchedulerCore(topology=topology, trace=trace).start()
        self.rms = {rm_id: Recorder() for rm_id in RMS}
        self.wanted: dict[str, list[str]] = {rm_id: [] for rm_id in RMS}
        for rm_id, rm in self.rms.items():
            register(self.core, rm, rm_id)
            add_nodes(self.core, "n1", rm_id=rm_id)
            new = si.AddApplicationRequest(
                application_id=APP,
                queue_name=QUEUE,
                ugi=si.UserGroupInformation(user="bob"),
            )
            self.core.update_application(si.ApplicationRequest(rm_id=rm_id, new=(new,)))
        self.rest()

    def ask(self, key: str, rm_id: str = "rm-1") -> None:
        self.wanted[rm_id].append(key)
        size = si.Resource.of({"vcore": 1})
        ask = si.AllocationAsk(application_id=APP, allocation_key=key, resource_ask=size)
        self.core.update_allocation(si.AllocationRequest(rm_id=rm_id, asks=(ask,)))

    def await_placed(self) -> None:
        """Each ask is placed, and each once."""
        wait_until(lambda: all(len(rm.running) >= len(self.wanted[i]) for i, rm in self.heard()))
        self.rest()
        for rm_id, rm in self.heard():
            assert sorted(self.wanted[rm_id]) == sorted(key for key, _ in rm.told("new"))

    def heard(self) -> list[tuple[str, Recorder]]:
        return list(self.rms.items())

    def rest(self) -> None:
        wait_until(self.core.is_settled)

    def address(self, rm_id: str = "rm-1") -> str:
        """Of the scheduler of this resource manager."""
        found = [it for it in self.core._actors.machines() if it.startswith(f"scheduler:[{rm_id}]")]
        return found[0] if found else ""

    def plant(self, address: str, error: BaseException, gate: threading.Event | None = None) -> Any:
        """Have the machine raise at its next message, at once or when let go."""
        machine: Any = self.core._actors.machines()[address]
        entered = threading.Event()

        def fail(*_: object) -> None:
            entered.set()
            if gate is not None:
                assert gate.wait(PATIENCE_S)
            raise error

        machine.handle = fail
        return entered

    def failed_machines(self) -> dict[str, int]:
        counts: dict[str, int] = self.core.state_dump()["failed_machines"]
        return counts


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster()
    yield cluster
    cluster.core.stop(PATIENCE_S)


def test_a_scheduler_is_replaced_and_decides_on(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    dead, other = cluster.address(), cluster.address("rm-2")
    cluster.plant(dead, Fault("planted"))
    for number in range(5):
        cluster.ask(f"a{number}")
        cluster.ask(f"b{number}", "rm-2")
    cluster.await_placed()
    assert {"scheduler": 1} == cluster.failed_machines(), "vacuous: nothing failed"
    assert (f"{dead}.1", other) == (cluster.address(), cluster.address("rm-2"))
    assert cluster.core.failure is None
    failing = [it.name for it in health_of(cluster.core.state_dump()).checks if not it.succeeded]
    assert ["Failed machines"] == failing
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"yunikorn_actors: {dead} failed on FactsAppended (")
    assert line.endswith("Fault('planted'); another takes its place")
    told = [record for record in cluster.core.events().records if "Fault" in record.message]
    assert 1 == len(told), "the other resource manager has no part in it"
    for rm in cluster.rms.values():
        assert ["n1"] == [node for node, _ in rm.told("node")]


def test_the_publisher_is_replaced_and_numbers_go_on(cluster: Cluster) -> None:
    stream = cluster.core.event_stream()
    before = cluster.core.events().highest_id
    cluster.plant(EVENT_PUBLISHER, Fault())
    cluster.ask("a")
    cluster.await_placed()
    cluster.ask("b", "rm-2")
    cluster.await_placed()
    wait_until(lambda: cluster.failed_machines() == {"event publisher": 1})
    found = cluster.core.events(first_id=before + 1)
    assert before < found.lowest_id
    assert 2 == sum("were replaced" in it.message or "lost" in it.message for it in found.records)
    assert "event records are lost" in next(iter(stream)).message
    stream.close()


def test_what_waits_for_the_dead_is_let_go(cluster: Cluster) -> None:
    """Callers whose question was in its mailbox, before it failed and after."""
    gate = threading.Event()
    entered = cluster.plant(EVENT_PUBLISHER, Fault(), gate)
    cluster.ask("a")
    assert entered.wait(PATIENCE_S)
    raised: list[str] = []

    def ask() -> None:
        try:
            cluster.core.events()
        except NoReply as error:
            raised.append(str(error))

    callers = [threading.Thread(target=ask) for _ in range(3)]
    for caller in callers:
        caller.start()
    wait_until(lambda: len(cluster.core._replies._slots) == 3)
    time.sleep(0.01)
    begun = time.monotonic()
    gate.set()
    for caller in callers:
        caller.join(PATIENCE_S)
    assert time.monotonic() - begun < 20
    assert all("has failed and is being replaced" in text for text in raised)
    assert raised, "vacuous: all came too late"
    cluster.await_placed()
    assert cluster.core.events().highest_id > 0


def test_what_waits_behind_the_stop_of_the_dead_is_let_go(cluster: Cluster) -> None:
    """The stop of its actor overtook the question, which nobody takes out any more."""
    gate = threading.Event()
    entered = cluster.plant(EVENT_PUBLISHER, Fault(), gate)
    cluster.ask("a")
    assert entered.wait(PATIENCE_S)
    dead = cluster.core._actors.by_address[EVENT_PUBLISHER]
    dead.actor_ref.stop(block=False)
    raised: list[str] = []

    def ask() -> None:
        with pytest.raises(NoReply) as error:
            cluster.core.events()
        raised.append(str(error.value))

    caller = threading.Thread(target=ask)
    begun = time.monotonic()
    caller.start()
    wait_until(lambda: len(cluster.core._replies._slots) == 1)
    time.sleep(0.01)
    gate.set()
    caller.join(PATIENCE_S)
    assert time.monotonic() - begun < 20
    assert ["has failed" in text for text in raised] == [True]


def test_the_fourth_failure_within_a_minute_stops_the_core(cluster: Cluster) -> None:
    for number in range(3):
        cluster.plant(cluster.address(), Fault(f"number {number}"))
        cluster.ask(f"a{number}")
        cluster.await_placed()
        assert {"scheduler": number + 1} == cluster.failed_machines()
    cluster.plant(cluster.address(), Fault("number 3"))
    cluster.ask("last")
    wait_until(lambda: cluster.core.failure)
    assert "number 0" in str(cluster.core.failure)
    assert isinstance(cluster.core.failure, CoreFailed)
    assert isinstance(cluster.core.failure.__cause__, Fault)
    with pytest.raises(CoreFailed, match="number 0"):
        cluster.core.state_dump()


@pytest.mark.parametrize("address", [CONTEXT, RM_PROXY])
def test_who_holds_the_truth_is_not_replaced(cluster: Cluster, address: str) -> None:
    cluster.plant(address, Fault("truth"))
    cluster.ask("a")
    wait_until(lambda: cluster.core.failure)
    assert "truth" in str(cluster.core.failure)


def test_a_machine_that_exits_is_not_replaced(cluster: Cluster) -> None:
    cluster.plant(cluster.address(), SystemExit())
    cluster.ask("a")
    wait_until(lambda: cluster.core.failure)
    assert "SystemExit" in str(cluster.core.failure)


def test_a_broken_invariant_of_a_replica_is_made_good(cluster: Cluster) -> None:
    scheduler: Any = cluster.core._actors.machines()[cluster.address()]
    scheduler.replica.revision += 1
    cluster.ask("a")
    cluster.await_placed()
    assert {"scheduler": 1} == cluster.failed_machines()
    survived = cluster.core.inside.survived[0].__cause__
    assert isinstance(survived, InvariantViolation)
    assert "was sent facts from revision" in survived.what


def test_a_partition_that_goes_meanwhile_stays_gone(cluster: Cluster) -> None:
    """Its scheduler is stopped before Context hears that it has failed."""
    gate = threading.Event()
    entered = cluster.plant(cluster.address(), Fault(), gate)
    cluster.ask("a")
    assert entered.wait(PATIENCE_S)
    # As RmProxy sends it: in the mailbox of Context before the report of the scheduler.
    cluster.core._post(CONTEXT, RMUnregistered(rm_id="rm-1"), "test")
    gate.set()
    wait_until(lambda: not cluster.address())
    cluster.core.unregister_resource_manager("rm-1")
    wait_until(lambda: cluster.failed_machines() == {"scheduler": 1})
    cluster.rest()
    assert "" == cluster.address()
    assert cluster.core.failure is None


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_recording_in_which_machines_failed_is_replayed(
    topology: TopologyName, tmp_path: Path
) -> None:
    path = tmp_path / "a.trace"
    cluster = Cluster(topology, path)
    for number in range(10):
        cluster.ask(f"a{number}")
        if number == 3:
            cluster.plant(EVENT_PUBLISHER, Fault())
        if number == 6 and topology == "proposing":
            cluster.plant(cluster.address(), Fault())
    cluster.await_placed()
    cluster.core.events()
    failed = cluster.failed_machines()
    cluster.core.stop(PATIENCE_S)
    assert 1 + (topology == "proposing") == sum(failed.values()), "vacuous: nothing failed"
    with TraceReader(path) as trace:
        outcome = replay(trace)
    assert outcome.difference is None, outcome.report()
    assert sum(failed.values()) == len(outcome.failures)
    assert outcome.complete
    assert outcome.states == len(cluster.core._actors.machines())
