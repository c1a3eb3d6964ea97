"""A machine that holds no truth fails: another takes its place, and nothing is lost or doubled."""

from typing import Any

import pytest
import ranges
from faults import Killer, PlantedFault
from support import PARTITION, Lab, Recorder, in_transit

from yunikorn_actors import si
from yunikorn_actors.checks.health_checks import health_of
from yunikorn_actors.errors import NoReply
from yunikorn_actors.machines.machine import InvariantViolation
from yunikorn_actors.machines.scheduler import Scheduler
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages import scheduling as s
from yunikorn_actors.messages.base import CONTEXT, EVENT_PUBLISHER, RM_PROXY, scheduler_address
from yunikorn_actors.messages.followers import EventPushDue
from yunikorn_actors.messages.queries import EventsFound
from yunikorn_actors.state.dump import snapshot
from yunikorn_actors.state.proposals import Allocate


def lab_with(killer: Killer, topology: TopologyName = "proposing", **made_with: Any) -> Lab:
    return Lab(topology=topology, checkers=(killer,), replaced_for=(PlantedFault,), **made_with)


def kill(lab: Lab, address: str) -> None:
    """Have the machine at this address fail at its next message."""
    machine: Any = lab.simulator.machines[address]

    def fail(*_: object) -> None:
        raise PlantedFault(address)

    machine.handle = fail


def scheduler_of(lab: Lab) -> str:
    assert lab.partition.planning is not None
    return lab.partition.planning


def work(lab: Lab) -> None:
    """Plain asks, a gang whose members take over, and an ask that has to wait."""
    lab.nodes(n1=6, n2=6)
    lab.submit("app-1")
    lab.submit("gang", placeholder_ask=si.Resource.of({"vcore": 4}))
    lab.ask("ph", vcore=2, app="gang", task_group_name="g", placeholder=True, max_allocations=2)
    lab.ask("a", "b", "c", vcore=1)
    for _ in range(9):
        lab.simulator.step()
    lab.ask("m", vcore=2, app="gang", task_group_name="g", max_allocations=2)
    lab.ask("r", vcore=1, max_allocations=3)
    lab.settle()
    lab.ask("late", vcore=3)
    lab.settle()
    lab.release("a", "b", "c")
    lab.settle()


EXPECTED = ["late", "m", "m", "r", "r", "r"]


class Confirming(Recorder):
    """Confirms every release that the core asks for."""

    lab: Lab

    def update_allocation(self, response: si.AllocationResponse) -> None:
        super().update_allocation(response)
        for item in response.released:
            if item.termination_type is si.TerminationType.PLACEHOLDER_REPLACED:
                gone = si.AllocationReleasesRequest(allocations_to_release=(item,))
                self.lab.request(releases=gone)


def worked(killer: Killer, topology: TopologyName, seed: int) -> Lab:
    rm = Confirming()
    lab = lab_with(killer, topology, rm=rm, seed=seed)
    rm.lab = lab
    work(lab)
    return lab


@pytest.mark.parametrize(("late", "topology"), ranges.one_each([False, True], TOPOLOGIES))
def test_every_ask_is_placed_as_often_as_it_should(topology: TopologyName, late: bool) -> None:
    """Whichever message it fails at; the checkers compare the replica with the truth at rest."""
    watching = Killer()
    assert EXPECTED == worked(watching, topology, 1).running()
    assert watching.handled > 10
    for position in range(1, watching.handled + 1):
        killer = Killer(position, late=late)
        lab = worked(killer, topology, 1)
        assert 1 == len(killer.killed), "vacuous: nothing failed"
        assert EXPECTED == lab.running(), killer.killed
        if topology == "proposing":
            scheduler = lab.simulator.machines[scheduler_of(lab)]
            assert isinstance(scheduler, Scheduler)
            assert snapshot(lab.state) == snapshot(scheduler.replica)
        assert {} == lab.leftovers()


def test_what_is_told_of_it() -> None:
    lab = lab_with(Killer())
    lab.nodes(n1=4)
    lab.settle()
    kill(lab, scheduler_of(lab))
    lab.submit("app-1")
    lab.ask("a")
    lab.settle()
    assert ["a"] == lab.running()
    dump = lab.simulator.state_dump()
    assert {"scheduler": 1} == dump["failed_machines"]
    (check,) = [check for check in health_of(dump).checks if not check.succeeded]
    assert ("Failed machines", "the scheduler failed and was replaced 1 times") == (
        check.name,
        check.diagnosis,
    )
    told = [record for record in lab.simulator.events().records if "replaced" in record.message]
    assert ["root"] == [record.object_id for record in told]
    assert "scheduler was replaced after a failure: PlantedFault" in told[0].message


def test_a_proposal_of_a_former_life_is_refused() -> None:
    lab = lab_with(Killer())
    lab.nodes(n1=4)
    lab.submit("app-1")
    lab.settle()
    kill(lab, scheduler_of(lab))
    lab.ask("large", vcore=9)
    lab.settle()
    assert scheduler_address(PARTITION, 1, 1) == scheduler_of(lab)
    lab.node("n1", si.ActionFromRM.UPDATE, 10)
    late = Allocate(
        proposal_id=(1 << 48) + 1,
        application_id="app-1",
        key="large",
        sequence=lab.state.applications["app-1"].asks["large"].sequence,
        node_id="n1",
    )
    own = late.proposal_id + (1 << 48)
    assert (
        1 == lab.planner.open_proposals._last_id >> 48 or lab.planner.open_proposals._last_id < own
    )
    before = lab.stale_messages
    proposed = s.ProposeAllocations(partition=PARTITION, epoch=1, as_of=0, proposals=(late,))
    lab.simulator._post(CONTEXT, proposed, "test")
    assert before + 1 == lab.stale_messages
    lab.settle()
    assert ["large"] == lab.running(), "its own scheduler places it, once"


def test_a_snapshot_is_for_an_empty_replica_alone() -> None:
    lab = lab_with(Killer())
    lab.nodes(n1=4)
    lab.settle()
    again = s.PartitionSnapshot(partition=PARTITION, epoch=1, image={})
    lab.simulator._post(scheduler_of(lab), again, "test")
    with pytest.raises(InvariantViolation, match="and was sent a snapshot"):
        lab.settle()


class Choosy(Recorder):
    def predicates(self, args: si.PredicatesArgs) -> str | None:
        del args


def test_the_answer_to_a_question_of_the_dead_is_dropped() -> None:
    lab = lab_with(Killer(), rm=Choosy())
    lab.nodes(n1=4)
    lab.submit("app-1")
    lab.settle()
    dead = scheduler_of(lab)
    lab.ask("a")
    while not any(
        it.message.__class__.__name__ == "CallPredicates" for it in in_transit(lab.simulator)
    ):
        assert lab.simulator.step()
    kill(lab, dead)
    lab.submit("app-2")
    lab.settle()
    assert dead != scheduler_of(lab), "vacuous: nothing failed"
    assert ["a"] == lab.running()
    assert [] == lab.planner.unresolved


def test_who_asked_the_dead_why_something_waits_is_told_by_the_next() -> None:
    lab = lab_with(Killer())
    lab.nodes(n1=4)
    lab.submit("app-1")
    lab.ask("large", vcore=9)
    lab.settle()
    dead = scheduler_of(lab)
    kill(lab, dead)
    assert "large" == lab.simulator.explain("app-1", "large").key
    assert dead != scheduler_of(lab), "vacuous: nothing failed"


def test_the_fourth_failure_within_a_minute_stops_the_core() -> None:
    lab = lab_with(Killer())
    lab.nodes(n1=99)
    lab.submit("app-1")
    lab.settle()
    for number in range(6):
        if number == 3:
            lab.advance(61)
        kill(lab, scheduler_of(lab))
        lab.ask(f"a{number}")
        lab.settle()
    assert [f"a{number}" for number in range(6)] == lab.running()
    first = scheduler_address(PARTITION, 1, 3)
    kill(lab, scheduler_of(lab))
    lab.ask("last")
    with pytest.raises(PlantedFault) as raised:
        lab.settle()
    assert first == str(raised.value), "the first of those within the minute is kept"


@pytest.mark.parametrize("address", [CONTEXT, RM_PROXY])
def test_who_holds_the_truth_is_not_replaced(address: str) -> None:
    lab = lab_with(Killer())
    kill(lab, address)
    lab.nodes(n1=4)
    with pytest.raises(PlantedFault):
        lab.settle()


def test_what_nobody_planted_ends_the_run() -> None:
    """Runs are there to find it."""
    lab = lab_with(Killer())
    machine: Any = lab.simulator.machines[EVENT_PUBLISHER]
    machine.ring = None
    lab.nodes(n1=4)
    with pytest.raises(AttributeError):
        lab.settle()


class TestEventPublisher:
    def test_numbers_go_on_and_the_loss_is_told(self) -> None:
        lab = lab_with(Killer())
        lab.nodes(n1=4, n2=4)
        lab.settle()
        before = lab.simulator.events()
        assert len(before.records) > 3
        kill(lab, EVENT_PUBLISHER)
        lab.nodes(n3=4)
        lab.settle()
        lab.nodes(n4=4)
        lab.settle()
        after = lab.simulator.events(first_id=before.highest_id + 1)
        assert before.highest_id + 1 == after.lowest_id
        told = after.records[0].message
        assert f"{len(before.records)} event records are lost and 2 changes have none" in told
        assert "n4" in [record.object_id for record in after.records]
        assert () == lab.simulator.events(first_id=0).records
        assert {"event publisher": 1} == lab.simulator.state_dump()["failed_machines"]

    def test_who_reads_along_goes_on_reading(self) -> None:
        lab, reader = lab_with(Killer()), Recorder()
        lab.simulator.followers.open_stream(reader, 0)
        kill(lab, EVENT_PUBLISHER)
        lab.nodes(n1=4)
        lab.settle()
        lab.nodes(n2=4)
        lab.settle()
        told = [record.object_id for record in reader.records]
        assert ("root", 2) == (told[0], told.count("n2"))
        assert "n1" not in told

    def test_a_caller_is_let_go(self) -> None:
        lab = lab_with(Killer())
        kill(lab, EVENT_PUBLISHER)
        with pytest.raises(NoReply, match="has failed and is being replaced: ask again"):
            lab.simulator.events()
        lab.settle()
        assert isinstance(lab.simulator.events(), EventsFound)

    def test_a_timer_of_a_former_life_does_nothing(self) -> None:
        lab = lab_with(Killer())
        kill(lab, EVENT_PUBLISHER)
        lab.nodes(n1=4)
        lab.settle()
        pushed = len(lab.rm.records)
        lab.simulator._post(EVENT_PUBLISHER, EventPushDue(life=0), "test")
        lab.settle()
        assert pushed == len(lab.rm.records)
        lab.advance(3)
        assert pushed < len(lab.rm.records)
