"""A follower hears how everything stands, then every fact: its replica is the truth."""

import time
from typing import Any

import pytest
from probes import Lab, add_nodes, register, wait_until
from support import APP, QUEUE, Recorder, ask

from yunikorn_actors import SchedulerCore, si
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages.base import Message
from yunikorn_actors.messages.followers import ManagerDescribed, ManagerLeft
from yunikorn_actors.messages.restart import EventsRestored
from yunikorn_actors.messages.scheduling import FactsAppended, PartitionClosed, PartitionSnapshot
from yunikorn_actors.service.read.read_model import ReadSide
from yunikorn_actors.state.dump import snapshot


class Following:
    """Feeds a read side, and keeps what it was told."""

    def __init__(self) -> None:
        self.heard: list[Message] = []
        self.side = ReadSide(settings=Settings(), instance="i", start_ns=0)

    def receive(self, message: Message) -> None:
        self.heard.append(message)
        self.side.handle(message, 0)

    def kinds(self) -> set[type]:
        return {type(message) for message in self.heard}


def replicas(following: Following) -> dict[str, Any]:
    return {name: snapshot(book.state) for name, book in following.side.books.items()}


def work(lab: Lab, number: int) -> None:
    """A node, an application with more asks than the node has room for, and a release."""
    core, app = lab.core, f"{APP}-{number}"
    add_nodes(core, f"n{number}")
    new = si.AddApplicationRequest(application_id=app, queue_name=QUEUE)
    core.update_application(si.ApplicationRequest(rm_id="rm-1", new=(new,)))
    lab.rest()
    asks = tuple(ask(f"{number}-{n}", 3, app=app) for n in range(4))
    core.update_allocation(si.AllocationRequest(rm_id="rm-1", asks=asks))
    lab.rest()
    release = si.AllocationRelease(
        application_id=app,
        allocation_key=f"{number}-0",
        termination_type=si.TerminationType.STOPPED_BY_RM,
    )
    releases = si.AllocationReleasesRequest(allocations_to_release=(release,))
    core.update_allocation(si.AllocationRequest(rm_id="rm-1", releases=releases))
    lab.rest()


def test_from_the_start_and_in_the_middle_of_a_life(every_lab: Lab) -> None:
    early, late = Following(), Following()
    every_lab.core.followers.follow(early)
    register(every_lab.core, Recorder())
    work(every_lab, 1)
    every_lab.core.followers.follow(late)
    work(every_lab, 2)
    truth = every_lab.core.state_dump()["partitions"]
    assert truth == replicas(early) == replicas(late)
    assert {EventsRestored, ManagerDescribed, FactsAppended} == early.kinds()
    stands = {PartitionSnapshot, EventsRestored}
    assert stands | {ManagerDescribed, FactsAppended} >= late.kinds() >= stands


def test_it_hears_of_an_end_and_then_nothing(lab: Lab) -> None:
    following = Following()
    address = lab.core.followers.follow(following)
    register(lab.core, Recorder())
    lab.core.unregister_resource_manager("rm-1")
    lab.rest()
    assert {} == replicas(following) == following.side.managers
    assert {PartitionClosed, ManagerLeft} <= following.kinds()
    lab.core.followers.unfollow(address)
    heard = len(following.heard)
    register(lab.core, Recorder())
    lab.rest()
    assert len(following.heard) == heard


class Slow(Following):
    def receive(self, message: Message) -> None:
        time.sleep(0.02)
        super().receive(message)


def test_who_waits_for_those_who_follow_finds_that_they_know(every_lab: Lab) -> None:
    core, following = every_lab.core, Slow()
    address = core.followers.follow(following)
    register(core, Recorder())
    add_nodes(core, "n1", "n2")
    every_lab.rest()
    for name in ("n1", "n2"):
        core.operator.set_drained("[rm-1]default", name, "ann", drained=True)
    core.followers.catch_up()
    truth = core.state_dump()["partitions"]
    assert truth == replicas(following)
    assert all(it.drained for it in following.side.books["[rm-1]default"].state.nodes.values())
    core.followers.unfollow(address)
    core.followers.catch_up()


class Raising(Following):
    def receive(self, message: Message) -> None:
        super().receive(message)
        raise RuntimeError("it is too much")


def test_one_that_raises_is_left_and_the_core_goes_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    raising, other = Raising(), Following()
    with SchedulerCore() as core:
        core.followers.follow(raising)
        core.followers.follow(other)
        register(core, Recorder())
        add_nodes(core, "n1")
        wait_until(core.is_settled)
        assert core.state_dump()["partitions"] == replicas(other)
        assert 1 == len(raising.heard)
    assert "follows no more: RuntimeError('it is too much')" in capsys.readouterr().err
