"""A portal with hosts in this process, which end and begin anew: nothing is lost, nothing is told twice."""

import asyncio
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hosting import (
    Bookkeeper,
    NearHost,
    application,
    ask,
    node,
    partitions,
    placed,
    portal,
    release,
    remove,
)
from msgspec.structs import replace
from probes import wait_until

from yunikorn_actors import si
from yunikorn_actors.errors import CoreStopped, Refused, UnknownAsk, UnknownResourceManager
from yunikorn_actors.messages.base import Message
from yunikorn_actors.service.cluster import partition_host as host_module
from yunikorn_actors.service.cluster.cluster_queries import ClusterQuestions
from yunikorn_actors.service.cluster.portal import ClusterCore
from yunikorn_actors.service.listener import Standing
from yunikorn_actors.service.read.read_model import ReadSide

ONE, TWO = "default", "gpu"
KEPT = pytest.mark.parametrize("kept", [True, False], ids=["journal", "no journal"])


def register(core: ClusterCore, rm: si.ResourceManagerCallback, config: str = "") -> None:
    core.register_resource_manager(
        si.RegisterResourceManagerRequest(rm_id="rm-1", config=config), rm
    )


def settle(core: ClusterCore, rm: Bookkeeper, applications: int = 2) -> None:
    """Give each partition a node and an application of its name."""
    for name in (ONE, TWO):
        core.update_node(node(name, f"node-{name}"))
        core.update_application(application(name, name))
    wait_until(lambda: 2 == len(rm.nodes) and applications == len(rm.applications))


def again(host: NearHost) -> None:
    host.end()
    host.begin()


def test_each_partition_has_its_own_and_one_manager_hears_of_all() -> None:
    rm = Bookkeeper()
    with portal(ONE, TWO) as (core, hosts):
        register(core, rm)
        settle(core, rm)
        core.update_allocation(
            si.AllocationRequest(
                rm_id="rm-1", asks=ask(ONE, ONE, "a").asks + ask(TWO, TWO, "b").asks
            )
        )
        wait_until(lambda: 2 == len(rm.running))
        for name in (ONE, TWO):
            dump = hosts[name].call("state_dump")["partitions"]
            assert {f"[rm-1]{name}"} == set(dump)
            assert 1 == dump[f"[rm-1]{name}"]["allocations"]
        assert f"runs on node-{TWO}" in str(core.explain(TWO, "b"))
        assert f"runs on node-{TWO}" in str(core.explain(TWO, "b", partition=f"[rm-1]{TWO}"))
        with pytest.raises(UnknownAsk):
            core.explain(ONE, "none")
        core.update_allocation(ask(TWO, TWO, "large", vcore=10**9))
        wait_until(lambda: core.waiting(partition=f"[rm-1]{TWO}"))
        [sum_] = core.waiting(partition=f"[rm-1]{TWO}")
        assert (1, {"vcore": 10**9}) == (sum_.count, sum_.size)
        assert () == core.waiting() == core.waiting(partition="[rm-1]none")
        wait_until(core.expected)
        [expected] = core.expected(partition=f"[rm-1]{TWO}")
        assert (expected,) == core.expected(expected.application_id)
        assert () == core.expected("none") == core.expected(partition="[rm-1]none")
    assert [] == rm.faults


@KEPT
def test_a_core_that_began_anew_is_told_what_there_is(kept: bool, tmp_path: Path) -> None:
    rm = Bookkeeper()
    with portal(ONE, TWO, journal=tmp_path if kept else None) as (core, hosts):
        register(core, rm)
        settle(core, rm)
        for key in "abc":
            core.update_allocation(ask(ONE, ONE, key, vcore=400_000))
        wait_until(lambda: 2 == len(rm.running))
        before = set(rm.running)
        again(hosts[ONE])
        wait_until(lambda: before == placed(core))
        first = next(iter(before))
        core.update_allocation(release(ONE, ONE, first))
        wait_until(lambda: first in rm.ended and 2 == len(rm.running))
        assert {"a", "b", "c"} == {key for _, key in rm.keys}
        assert set(rm.running) == placed(core)
    assert [] == rm.faults


@KEPT
def test_what_was_said_while_a_core_was_away_is_done_when_it_is_back(
    kept: bool, tmp_path: Path
) -> None:
    rm = Bookkeeper()
    with portal(ONE, TWO, journal=tmp_path if kept else None) as (core, hosts):
        register(core, rm)
        settle(core, rm)
        core.update_allocation(ask(ONE, ONE, "a"))
        wait_until(lambda: 1 == len(rm.running))
        [uuid] = rm.running
        hosts[ONE].end()
        core.update_allocation(release(ONE, ONE, uuid))
        core.update_allocation(ask(ONE, ONE, "b"))
        core.update_application(remove(TWO, TWO))
        core.update_application(application(ONE, "later"))
        core.update_allocation(ask(ONE, "later", "c"))
        core.update_allocation(ask(ONE, ONE, "d"))
        hosts[ONE].begin()
        wait_until(lambda: uuid in rm.ended and 3 == len(rm.running))
        assert set(rm.running) == placed(core)
    assert [] == rm.faults


@KEPT
@pytest.mark.parametrize("seed", range(2))
def test_under_load_nothing_is_lost_and_nothing_is_told_twice(
    seed: int, kept: bool, tmp_path: Path
) -> None:
    rm, dice = Bookkeeper(), random.Random(seed)  # noqa: S311 - a test that can be repeated
    with portal(ONE, TWO, journal=tmp_path if kept else None) as (core, hosts):
        register(core, rm)
        settle(core, rm)
        asked, released = 0, set[str]()
        for step in range(400):
            home = (ONE, TWO)[int(dice.random() * 2)]
            core.update_allocation(ask(home, home, f"key-{step}"))
            asked += 1
            running = [it for it in tuple(rm.running.values()) if it.uuid not in released]
            if running and dice.random() < 0.4:
                gone = running[int(dice.random() * len(running))]
                released.add(gone.uuid)
                core.update_allocation(release(gone.partition_name, gone.application_id, gone.uuid))
            if step % 80 == 40:
                again(hosts[home])
        wait_until(lambda: asked == len(rm.keys) and released <= rm.ended)
        wait_until(lambda: set(rm.running) == placed(core))
        assert released == rm.ended
    assert [] == rm.faults


def test_who_registers_elsewhere_is_gone_here() -> None:
    rm, next_ = Bookkeeper(), Bookkeeper()
    with portal(ONE, TWO) as (core, hosts):
        register(core, rm)
        settle(core, rm)
        other = ClusterCore(partitions(ONE, TWO), lambda _: hosts).start()
        register(other, next_)

        def is_gone() -> bool:
            try:
                core.update_allocation(ask(ONE, ONE, "a"))
            except UnknownResourceManager:
                return True
            return False

        wait_until(is_gone)
        settle(other, next_)
        other.update_allocation(ask(ONE, ONE, "b"))
        wait_until(lambda: 1 == len(next_.running))
        other.stop()
    assert {} == rm.running
    assert [] == rm.faults + next_.faults


def test_a_portal_that_asks_no_more_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    rm = Bookkeeper()
    with portal(ONE, TWO) as (core, hosts):
        register(core, rm)
        settle(core, rm)

        def is_held() -> bool:
            dump = core.state_dump()["partitions"]
            return bool(dump[f"[rm-1]{ONE}"]["held"])

        assert not is_held()
        for manager_channel in core._managers["rm-1"].values():
            # As if its process had been killed: it says nothing more.
            manager_channel._over = UnknownResourceManager("gone")
        monkeypatch.setattr(host_module, "SILENT_S", 0.0)
        wait_until(is_held)
        assert hosts[ONE].host is not None


def test_who_registers_with_fewer_partitions_has_left_the_others() -> None:
    with portal(ONE, TWO) as (core, hosts):
        register(core, Bookkeeper())
        register(core, Bookkeeper(), partitions(TWO))
        wait_until(lambda: {} == hosts[ONE].call("state_dump")["partitions"])
        assert {f"[rm-1]{TWO}"} == set(core.state_dump()["partitions"])


def test_what_names_a_partition_that_is_not_there_changes_nothing() -> None:
    rm = Bookkeeper()
    with portal(ONE, TWO) as (core, _):
        register(core, rm)
        settle(core, rm)
        core.update_allocation(ask(ONE, ONE, "a"))
        wait_until(lambda: 1 == len(rm.running))
        core.update_application(remove("none", ONE))
        wait_until(core.is_settled)
        [uuid] = rm.running
        core.update_allocation(release(ONE, ONE, uuid))
        wait_until(lambda: {uuid} == rm.ended)
    assert [] == rm.faults


def test_a_portal_comes_to_rest_that_has_nothing_to_report() -> None:
    rm = Bookkeeper()
    with portal(ONE, TWO) as (core, hosts):
        register(core, rm)
        hosts[ONE].end()
        [unknown] = node(ONE, "none").nodes
        gone = replace(unknown, action=si.ActionFromRM.DECOMISSION)
        core.update_node(si.NodeRequest(rm_id="rm-1", nodes=(gone,)))
        assert not core.is_settled()
        hosts[ONE].begin()
        wait_until(core.is_settled)


def test_a_portal_is_not_at_rest_before_it_has_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    rm, is_asked, may_go_on = Bookkeeper(), threading.Event(), threading.Event()
    with portal(ONE, TWO) as (core, hosts):
        register(core, rm)
        settle(core, rm)
        wait_until(core.is_settled)
        registered = host_module.Host.register

        async def slow(host: host_module.Host, *words: Any) -> str:
            is_asked.set()
            await asyncio.to_thread(may_go_on.wait)
            return await registered(host, *words)

        monkeypatch.setattr(host_module.Host, "register", slow)
        again(hosts[ONE])
        assert is_asked.wait(20)
        assert not core.is_settled()
        may_go_on.set()
        wait_until(core.is_settled)
        [partition] = hosts[ONE].call("state_dump")["partitions"].values()
        assert {f"node-{ONE}"} == set(partition["nodes"])


@pytest.mark.parametrize(
    "change",
    [
        lambda core: register(core, Bookkeeper(), partitions("other")),
        lambda core: core.update_configuration(
            si.UpdateConfigurationRequest(config=partitions(ONE))
        ),
        lambda core: core.update_configuration(
            si.UpdateConfigurationRequest(rm_id="rm-1", config=partitions(ONE))
        ),
    ],
    ids=["of a manager", "reload", "reload of a manager"],
)
def test_other_partitions_are_refused(change: Callable[[ClusterCore], None]) -> None:
    with portal(ONE, TWO) as (core, _):
        register(core, Bookkeeper())
        with pytest.raises(Refused, match=f"this cluster has the partitions {ONE}, {TWO}"):
            change(core)


def test_a_reload_reaches_every_core_and_those_that_come_back() -> None:
    with portal(ONE, TWO) as (core, hosts):
        register(core, Bookkeeper())
        later = partitions(ONE, TWO).replace("work", "play")
        core.update_configuration(si.UpdateConfigurationRequest(config=later))

        def has_play() -> bool:
            parts = core.state_dump()["partitions"].values()
            return 2 == len(parts) and all("root.play" in it["queues"] for it in parts)

        assert has_play()
        again(hosts[TWO])
        wait_until(has_play)


class Picky(Bookkeeper):
    """Has every predicate asked, and refuses one node for good."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        self.asked.append(args.node_id)
        return "not there" if args.node_id == "small" else None

    def get_state_dump(self) -> str:
        return '{"pods": 1}'


def test_questions_are_asked_of_the_manager_far_away() -> None:
    rm = Picky()
    with portal(ONE, TWO) as (core, hosts):
        register(core, rm)
        settle(core, rm)
        core.update_node(node(ONE, "small", vcore=10))
        core.update_allocation(ask(ONE, ONE, "a"))
        wait_until(lambda: bool(rm.running))
        assert {f"node-{ONE}"} == {it.node_id for it in rm.running.values()}
        assert f"node-{ONE}" in rm.asked
        again(hosts[ONE])
        core.update_allocation(ask(ONE, ONE, "b"))
        wait_until(lambda: 2 == len(rm.running))
        questions = ClusterQuestions(core, Standing())
        assert {"rm-1": {"pods": 1}} == questions.ask("diagnostics")
    assert [] == rm.faults


def test_a_read_side_is_asked_for_all_partitions_as_one() -> None:
    rm = Bookkeeper()
    with portal(ONE, TWO) as (core, hosts):
        register(core, rm)
        settle(core, rm)
        for name in (ONE, TWO):
            core.update_allocation(ask(name, name, "fits"))
            core.update_allocation(ask(name, name, "large", vcore=10_000_000))
        wait_until(lambda: 2 == len(rm.running))
        standing = Standing()
        standing.tell("line 7")
        questions = ClusterQuestions(core, standing)
        assert 2 == questions.ask("metrics")["counts"]["issued_uuids"]
        assert "line 7" == questions.ask("health")["configuration_fault"]
        for name in (ONE, TWO):
            wait_until(lambda name=name: 1 == questions.ask("waiting", f"[rm-1]{name}")["total"])
            assert "why" in questions.ask("why", name, "large", "")
            assert "unknown" in questions.ask("why", name, "none", f"[rm-1]{name}")
        assert {} == questions.ask("waiting", "[rm-1]none")
        assert "partition gpu:" in questions.ask("stacks")
        assert questions.ask("trace") is None
        assert "" == questions.ask("is_ready")
        hosts[TWO].end()
        assert "away" in questions.ask("is_ready")
        hosts[TWO].begin()


def test_a_read_side_follows_all_partitions_and_those_that_begin_anew() -> None:
    rm = Bookkeeper()
    with portal(ONE, TWO) as (core, hosts):
        side = ReadSide(settings=core.topology.settings, instance="1", start_ns=0)

        class Reader:
            def receive(self, message: Message) -> None:
                side.handle(message, core.clock.now_ns())

        address = core.followers.follow(Reader())
        register(core, rm)
        settle(core, rm)
        for name in (ONE, TWO):
            core.update_allocation(ask(name, name, "a"))

        def shown() -> set[str]:
            books = dict(side.books)
            return {uuid for it in books.values() for uuid in it.state.owners}

        wait_until(lambda: 2 == len(rm.running) == len(shown()))
        described = side.managers["rm-1"].config.partitions
        assert [ONE, TWO] == [it.name for it in described]
        again(hosts[TWO])
        core.update_allocation(ask(TWO, TWO, "b"))
        wait_until(lambda: 3 == len(rm.running) and shown() == set(rm.running))
        wait_until(
            lambda: "rm-1" in side.managers and 2 == len(side.managers["rm-1"].config.partitions)
        )
        core.unregister_resource_manager("rm-1")
        wait_until(lambda: not side.books and not side.managers)
        core.followers.unfollow(address)


def test_who_reads_after_a_change_reads_of_it() -> None:
    rm = Bookkeeper()
    with portal(ONE, TWO) as (core, hosts):
        side = ReadSide(settings=core.topology.settings, instance="1", start_ns=0)

        class Slow:
            def receive(self, message: Message) -> None:
                time.sleep(0.03)
                side.handle(message, core.clock.now_ns())

        register(core, rm)
        settle(core, rm)
        core.followers.follow(Slow())
        questions, name = ClusterQuestions(core, Standing()), f"[rm-1]{TWO}"
        wait_until(lambda: {ONE, TWO} == {it.short_name for it in dict(side.books).values()})
        for change, drained in (("drain", True), ("undrain", False)):
            assert {} == questions.ask(change, name, f"node-{TWO}", "ann")
            assert drained is side.books[name].state.nodes[f"node-{TWO}"].drained
        later = partitions(ONE, TWO).replace("work", "play")
        assert {"follows": ""} == questions.ask("load", later, "ann")
        shown = side.managers["rm-1"].config.partitions
        assert ["play", "play"] == [it.root.children[0].name for it in shown]
        hosts[TWO].end()
        assert "refused" in questions.ask("drain", f"[rm-1]{ONE}", f"node-{TWO}", "ann")
        hosts[TWO].begin()


def test_a_read_side_that_comes_later_has_the_records_of_all_partitions_once() -> None:
    rm = Bookkeeper()
    with portal(ONE, TWO) as (core, hosts):
        register(core, rm)
        settle(core, rm)
        side = ReadSide(settings=core.topology.settings, instance="1", start_ns=0)

        class Reader:
            def receive(self, message: Message) -> None:
                side.handle(message, core.clock.now_ns())

        address = core.followers.follow(Reader())

        def told(name: str) -> int:
            ring = side.events.ring
            records = ring.read(ring.lowest_id, ring.next_id)
            return [it.object_id for it in records if it.message == ""].count(name)

        wait_until(lambda: told(ONE) and told(TWO))
        before = told(TWO)
        again(hosts[TWO])
        core.update_application(application(TWO, "later"))
        wait_until(lambda: told("later"))
        assert before <= told(TWO) <= 2 * before, "what was there, and what its core tells anew"
        core.followers.unfollow(address)


def test_what_has_no_order_over_partitions_is_refused() -> None:
    with portal(ONE, TWO) as (core, _), pytest.raises(Refused, match="/ws/v1/events/batch"):
        core.events()


def test_an_administrator_reaches_the_core_that_it_is_about() -> None:
    rm = Bookkeeper()
    with portal(ONE, TWO) as (core, _):
        register(core, rm)
        settle(core, rm)
        questions = ClusterQuestions(core, Standing())
        assert {} == questions.ask("drain", f"[rm-1]{TWO}", f"node-{TWO}", "ann")
        assert "draining" in questions.ask("drain", f"[rm-1]{TWO}", f"node-{TWO}", "ann")["refused"]
        assert {} == questions.ask("undrain", f"[rm-1]{TWO}", f"node-{TWO}", "ann")
        later = partitions(ONE, TWO).replace("work", "play")
        assert {"follows": ""} == questions.ask("load", later, "ann")
        assert "partitions come and go" in questions.ask("load", partitions(ONE), "ann")["refused"]
        assert "rm-1 is registered" in questions.ask("unregister", "rm-1", "ann")["refused"]
        core.resource_manager_lost("rm-1")
        wait_until(lambda: {} == questions.ask("unregister", "rm-1", "ann"))
        wait_until(lambda: {} == core.state_dump()["partitions"])


REPLACED = si.TerminationType.PLACEHOLDER_REPLACED


class Member(Bookkeeper):
    """Notes which placeholders are wanted back, and lets a test confirm them."""

    def __init__(self) -> None:
        super().__init__()
        self.wanted: dict[str, si.AllocationRelease] = {}

    def update_allocation(self, response: si.AllocationResponse) -> None:
        back = [it for it in response.released if it.termination_type is REPLACED]
        for it in back:
            if it.uuid in self.wanted:
                self.faults.append(f"{it.allocation_key} is wanted back twice")
            self.wanted[it.uuid] = it
        rest = tuple(it for it in response.released if it not in back)
        super().update_allocation(replace(response, released=rest))


@KEPT
@pytest.mark.parametrize("moment", ["before", "while", "after"])
def test_a_swap_goes_on_when_its_core_begins_anew(
    kept: bool,
    moment: str,
    tmp_path: Path,
) -> None:
    """Before, while or after the placeholder that is asked back is confirmed."""
    rm = Member()
    with portal(ONE, TWO, journal=tmp_path if kept else None) as (core, hosts):
        register(core, rm)
        core.update_node(node(ONE, "n1", vcore=10))
        [gang] = application(ONE, "gang").new
        gang = replace(gang, placeholder_ask=si.Resource.of({"vcore": 4}))
        core.update_application(si.ApplicationRequest(rm_id="rm-1", new=(gang,)))

        def member(key: str, *, placeholder: bool = False) -> si.AllocationRequest:
            [item] = ask(ONE, "gang", key, vcore=4).asks
            item = replace(item, task_group_name="workers", placeholder=placeholder)
            return si.AllocationRequest(rm_id="rm-1", asks=(item,))

        core.update_allocation(member("room", placeholder=True))
        wait_until(lambda: bool(rm.running))
        core.update_allocation(member("real"))
        wait_until(lambda: bool(rm.wanted))
        [back] = rm.wanted.values()
        confirmed = si.AllocationReleasesRequest(allocations_to_release=(back,))
        if moment == "before":
            again(hosts[ONE])
        if moment == "while":
            hosts[ONE].end()
        del rm.running[back.uuid]
        core.update_allocation(si.AllocationRequest(rm_id="rm-1", releases=confirmed))
        if moment == "while":
            hosts[ONE].begin()
        if moment == "after":
            again(hosts[ONE])
        wait_until(lambda: ["real"] == [it.allocation_key for it in rm.running.values()])
        wait_until(lambda: set(rm.running) == placed(core))
    assert [] == rm.faults


def test_who_registers_while_a_core_is_away_is_told_to_come_later() -> None:
    rm = Bookkeeper()
    with portal(ONE, TWO) as (core, hosts):
        hosts[TWO].end()
        with pytest.raises(CoreStopped, match="away"):
            register(core, rm)
        with pytest.raises(UnknownResourceManager):
            core.update_allocation(ask(ONE, ONE, "a"))
        wait_until(lambda: {} == hosts[ONE].call("state_dump")["partitions"])
        hosts[TWO].begin()
        register(core, rm)
        settle(core, rm)
    assert [] == rm.faults
