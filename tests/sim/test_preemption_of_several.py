"""Preemption in several partitions of several resource managers, by several schedulers at once.

Everything has the same names everywhere: queues, nodes, applications and asks. What belongs to one
partition must never go for another's. A watcher keeps its own account of each rule about who goes
how (units, gangs as claimants, budgets, cooldowns, graces), from the facts of a partition alone,
so what is in flight in another scheduler, a reload and a restart make no difference to it.
"""

import json
import math
import re
from collections import Counter
from random import Random
from typing import Any, NamedTuple

import pytest
import ranges
from confirming import policy
from contesting import contest
from msgspec import msgpack
from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.checkers import default_checkers, facts_in
from yunikorn_actors.drivers.simulator.choosers import chooser_of
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.events import EventPublisher
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import Topology, TopologyName
from yunikorn_actors.messages.base import CONTEXT, EVENT_PUBLISHER, Delivery
from yunikorn_actors.messages.restart import CoreRestored
from yunikorn_actors.messages.scheduling import FactsMissed, ProposalRejected
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import PreemptionRule
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.state.snapshot import image_of
from yunikorn_actors.values.durations import SECOND

PREEMPTED = si.TerminationType.PREEMPTED_BY_SCHEDULER
TIMED_OUT = si.TerminationType.TIMEOUT
GIVING = ("research", "batch")
TAKING = ("serving", "training")
WORDS = {"s": 1, "m": 60}
WAYS: list[tuple[TopologyName, int]] = [
    ("proposing", 1), ("proposing", 2), ("proposing", 3), ("fused", 1)
]  # fmt: skip


def seconds(text: str) -> int:
    return int(text[:-1]) * WORDS[text[-1]]


# -- what is drawn


class Partition(NamedTuple):
    root: dict[str, Any]
    nodes: dict[str, int]
    works: list[tuple[str, dict[str, Any], list[si.AllocationAsk]]]
    """Leaf, what is peculiar to the application, and its asks; those that take come last."""


def properties(rng: Random) -> dict[str, str]:
    drawn = {}
    if rng.random() < 0.7:
        drawn["preemption.budget"] = rng.choice(
            ("1/1m", "2/1m", "4/2m", "5/10m", "10%/10m", "30%/1m", "50%/2m")
        )
    if rng.random() < 0.3:
        drawn["preemption.cooldown"] = rng.choice(("10s", "40s"))
    if rng.random() < 0.5:
        drawn["preemption.grace"] = rng.choice(("5s", "30s"))
    if rng.random() < 0.25:
        drawn["preemption.unit"] = rng.choice(("allocation", "application"))
    return drawn


def queues(rng: Random, size: int) -> dict[str, Any]:
    leaves = [{"name": name, "properties": properties(rng)} for name in GIVING]
    left = size
    for name in TAKING:
        due = rng.randint(1, max(1, left - 1))
        left -= due
        leaves.append(
            {
                "name": name,
                "properties": {"preemption.delay": f"{rng.choice((1, 5))}s"},
                "resources": {"guaranteed": {"vcore": f"{due}m"}},
            }
        )
    return {"name": "root", "submitacl": "*", "queues": leaves}


def gang(rng: Random, name: str, count: int, *, style: str, beyond: int = 0) -> tuple[Any, Any]:
    said = {"placeholder_ask": si.Resource.of({"vcore": count}), "gang_scheduling_style": style}
    asks = [ask(f"{name}-h", count, placeholder=True, task_group_name="g")]
    if rng.random() < 0.5:
        # Members for some or all of them, or more.
        asks.append(ask(f"{name}-m", rng.randint(1, count) + beyond, task_group_name="g"))
    return said, asks


def ask(key: str, count: int, **fields: Any) -> si.AllocationAsk:
    size = si.Resource.of({"vcore": 1})
    return si.AllocationAsk(allocation_key=key, resource_ask=size, max_allocations=count, **fields)


def partition(rng: Random) -> Partition:
    nodes = {f"n{number}": rng.randint(3, 8) for number in range(rng.randint(1, 3))}
    size = sum(nodes.values())
    works: list[tuple[str, dict[str, Any], list[si.AllocationAsk]]] = []
    number = 0
    left = size
    while left > 0:
        count = min(left, rng.randint(1, 5))
        leaf, name = rng.choice(GIVING), f"w{number}"
        if rng.random() < 0.6:
            style = rng.choice(("Hard", "Hard", "Soft"))
            said, asks = gang(rng, name, count, style=style, beyond=rng.choice((0, 0, 1)))
        else:
            said, asks = {}, [ask(name, count, priority=rng.choice((0, 0, 1)))]
        works.append((leaf, said, asks))
        number += 1
        left -= count
    for _ in range(rng.randint(0, 4)):
        count, name, pushy = rng.randint(1, 4), f"w{number}", {"preemption_policy": policy()}
        if rng.random() < 0.5:
            said, asks = gang(rng, name, count, style=rng.choice(("Hard", "Soft")))
        else:
            said, asks = {}, [ask(name, count, priority=2)]
        works.append((rng.choice(TAKING), said, [replace(it, **pushy) for it in asks]))
        number += 1
    return Partition(queues(rng, size), nodes, works)


# -- who watches


class Manager(si.ResourceManagerCallback):
    """Ends what it is asked for, sooner or later; it never hears of what is not its own."""

    def __init__(self, play: "Play", rm: str) -> None:
        self.play, self.rm = play, rm
        self.running: dict[str, si.Allocation] = {}
        self.to_confirm: dict[str, si.AllocationRelease] = {}

    def update_allocation(self, response: si.AllocationResponse) -> None:
        for new in response.new:
            self.running[new.uuid] = new
        released = {gone.uuid for gone in response.released}
        for gone in response.released:
            its = self.running.get(gone.uuid)
            if gone.termination_type is PREEMPTED and gone.uuid not in self.to_confirm:
                assert its is not None, f"{gone} is not of {self.rm}"
                assert its.partition_name == gone.partition_name
                assert its.application_id == gone.application_id
                assert self.play.watcher.with_it[self.rm, gone.uuid] <= released, "one by one"
                self.play.watcher.hear(self.rm, gone)
            if gone.termination_type in {PREEMPTED, TIMED_OUT}:
                self.to_confirm[gone.uuid] = gone
            elif gone.termination_type is si.TerminationType.PLACEHOLDER_REPLACED:
                self.play.release(self.rm, gone)
            else:
                self.running.pop(gone.uuid, None)

    def confirm(self, count: int) -> None:
        for uuid in list(self.to_confirm)[:count]:
            self.play.release(self.rm, self.to_confirm.pop(uuid))


class Watcher:
    """What is true of each partition, by its facts."""

    def __init__(self) -> None:
        self.marked: dict[str, list[f.VictimMarked]] = {}
        self.gone: dict[tuple[str, str], list[int]] = {}
        """When victims of a leaf were marked, since it has a budget."""
        self.graces: dict[tuple[str, str], str] = {}
        """Of each victim, what its leaf said then."""
        self.with_it: dict[tuple[str, str], set[str]] = {}
        """Of each victim, what goes of its application in the same decision."""
        self.seen: Counter[str] = Counter()
        self._whole: dict[tuple[str, str], bool] = {}

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        if isinstance(delivery.message, ProposalRejected):
            self.seen[delivery.message.reason.value] += 1
        if delivery.mailbox != CONTEXT or delivery is not simulator.last:
            return
        context = simulator.machines[CONTEXT]
        assert isinstance(context, Context)
        for name, facts in facts_in(simulator.effects).items():
            if name in context.partitions:
                state = context.partitions[name].state
                self._judge(name, state, facts, simulator.now_ns)
        for name, it in context.partitions.items():
            for app in it.state.applications.values():
                self._whole[name, app.id] = is_whole(app)

    def _judge(
        self, name: str, state: PartitionState, facts: tuple[f.Fact, ...], now_ns: int
    ) -> None:
        for path, queue in state.queues.items():
            if "preemption.budget" not in queue.spec.properties:
                self.gone.pop((name, path), None)
        marked = [fact for fact in facts if isinstance(fact, f.VictimMarked)]
        for decided in (fact for fact in facts if isinstance(fact, f.PreemptionDecided)):
            its = [fact for fact in marked if fact.uuid in decided.victims]
            for fact in its:
                same = {it.uuid for it in its if it.application_id == fact.application_id}
                self.with_it[rm_id_of(name), fact.uuid] = same
        taking = [it for it in marked if it.beneficiary.rule is PreemptionRule.GUARANTEE]
        for fact in marked:
            self.marked.setdefault(name, []).append(fact)
            said = state.queues[fact.queue].spec.properties
            self.graces[name, fact.uuid] = said.get("preemption.grace", "")
            if "preemption.budget" in said:
                self.gone.setdefault((name, fact.queue), []).append(fact.at_ns)
            whom = state.applications[fact.beneficiary.application_id]
            assert whom.queue.path == fact.beneficiary.queue, f"{name}: for another partition"
        for path in dict.fromkeys(fact.queue for fact in taking):
            self._judge_budget(name, state, state.queues[path], now_ns)
        for fact in taking:
            self._judge_cooldown(name, state, fact)
            self._judge_claim(name, state, fact)
        for id_ in dict.fromkeys(fact.application_id for fact in taking):
            self._judge_unit(name, state.applications[id_])

    def _judge_budget(self, name: str, state: PartitionState, leaf: Queue, now_ns: int) -> None:
        text = leaf.spec.properties.get("preemption.budget", "")
        found = re.fullmatch(r"(\d+)(%?)/(.+)", text)
        if found is None:
            return
        since_ns = now_ns - seconds(found[3]) * SECOND
        gone = sum(at_ns > since_ns for at_ns in self.gone[name, leaf.path])
        most = int(found[1])
        if found[2]:
            runs = sum(
                it.releasing is None
                for id_ in leaf.applications.values()
                for it in state.applications[id_].allocations.values()
            )
            most = math.ceil((runs + gone) * most / 100)
        assert gone <= most, f"{name}: {gone} of {leaf.path} went, and {most} may ({text})"
        self.seen["share" if found[2] else "budget"] += gone == most

    def _judge_cooldown(self, name: str, state: PartitionState, fact: f.VictimMarked) -> None:
        text = state.queues[fact.queue].spec.properties.get("preemption.cooldown")
        if text:
            began_ns = state.applications[fact.application_id].allocations[fact.uuid].allocated_ns
            assert fact.at_ns >= began_ns + seconds(text) * SECOND, f"{name}: {fact.key}"
            self.seen["cooled"] += 1

    def _judge_claim(self, name: str, state: PartitionState, fact: f.VictimMarked) -> None:
        """Room, there or coming, for all placeholders of a gang, or nothing went for it."""
        app = state.applications[fact.beneficiary.application_id]
        if app.spec.is_gang and app.asks[fact.beneficiary.key].spec.placeholder:
            waiting = sum(it.remaining for it in app.asks.values() if it.spec.placeholder)
            promised = sum(
                kept.repeats
                for node in state.nodes.values()
                for kept in node.reservations.values()
                if kept.application_id == app.id and kept.earmark is not None
            )
            # What is free, or comes free, and is promised to nobody needs no earmark.
            free = sum(max(0, unpromised_on(node)) for node in state.nodes.values())
            assert waiting <= promised + free, f"{name}: {app.id} has {promised} of {waiting}"
            self.seen["claim of a gang"] += 1

    def _judge_unit(self, name: str, app: Application) -> None:
        unit = app.queue.spec.properties.get("preemption.unit", "")
        bound = unit == "application" or (not unit and app.spec.is_gang and app.spec.is_hard)
        stays = [it for it in app.allocations.values() if it.releasing is None]
        if bound and stays and self._whole.get((name, app.id), True):
            assert app.spec.is_gang, f"{name}: a part of {app.id} went"
            assert is_whole(app), f"{name}: {app.id} was whole, and {len(stays)} stay"
        self.seen["whole" if bound and not stays else "part"] += 1

    def hear(self, rm: str, gone: si.AllocationRelease) -> None:
        text = self.graces[f"[{rm}]{gone.partition_name}", gone.uuid]
        told = seconds(text) if text else 0
        assert told * 1000 == gone.grace_ms
        assert (f"it has {told} s to end" in gone.message) is bool(told)
        self.seen["grace"] += bool(told)


def unpromised_on(node: Node) -> int:
    coming = sum(it.resource["vcore"] for it in node.allocations.values() if it.frees_node)
    return node.available["vcore"] + coming - node.promised.get("vcore", 0)


def rm_id_of(partition: str) -> str:
    return partition[1:].partition("]")[0]


def is_whole(app: Application) -> bool:
    """All members or their placeholders are there; each has one cpu."""
    stays = sum(not it.comes_free and it.spec.task_group == "g" for it in app.allocations.values())
    return stays + app.spared.get("vcore", 0) >= app.spec.placeholder_ask.get("vcore", 0)


# -- a run


class Play:
    def __init__(self, seed: int, topology: TopologyName, schedulers: int) -> None:
        self.rng = Random(seed)  # noqa: S311 - which states, no secret
        self.seed = seed
        self.schedulers, self.topology = schedulers, topology
        self.watcher = Watcher()
        self.drawn = {
            f"rm-{number}": {
                name: partition(self.rng) for name in ("default", "other")[: self.rng.randint(1, 2)]
            }
            for number in range(1, self.rng.randint(2, 3) + 1)
        }
        self.managers: dict[str, Manager] = {}
        self._begin()
        for rm in self.drawn:
            self._register(rm)
            self._nodes(rm)
        self.simulator.settle()

    def _begin(self) -> None:
        self.simulator = Simulator(
            Topology(
                self.topology,
                settings=Settings(),
                schedulers=self.schedulers,
                instance=f"core-{self.watcher.seen['restart']}",
            ),
            chooser=chooser_of(self.seed),
            checkers=(*default_checkers(), self.watcher),
        )

    def _config(self, rm: str) -> str:
        parts = [
            {"name": name, "queues": [it.root], "preemption": {"enabled": True}}
            for name, it in self.drawn[rm].items()
        ]
        return json.dumps({"partitions": parts})

    def _register(self, rm: str) -> None:
        former = self.managers.get(rm)
        manager = self.managers[rm] = Manager(self, rm)
        if former is not None:
            manager.running, manager.to_confirm = former.running, former.to_confirm
        request = si.RegisterResourceManagerRequest(
            rm_id=rm, policy_group=rm, config=self._config(rm)
        )
        self.simulator.register_resource_manager(request, manager)

    def _nodes(self, rm: str) -> None:
        runs = self.managers[rm].running.values()
        infos = [
            si.NodeInfo(
                node_id=id_,
                action=si.ActionFromRM.CREATE,
                schedulable_resource=si.Resource.of({"vcore": vcore}),
                attributes={si.constants.NODE_PARTITION: name},
                existing_allocations=tuple(
                    at for at in runs if (at.partition_name, at.node_id) == (name, id_)
                ),
            )
            for name, it in self.drawn[rm].items()
            for id_, vcore in it.nodes.items()
        ]
        self.simulator.update_node(si.NodeRequest(rm_id=rm, nodes=tuple(infos)))

    def release(self, rm: str, item: si.AllocationRelease) -> None:
        self.managers[rm].running.pop(item.uuid, None)
        gone = si.AllocationReleasesRequest(allocations_to_release=(item,))
        self.simulator.update_allocation(si.AllocationRequest(rm_id=rm, releases=gone))

    def _submit(self, rm: str, name: str, number: int) -> None:
        leaf, said, asks = self.drawn[rm][name].works[number]
        id_ = f"w{number}"
        new = si.AddApplicationRequest(
            application_id=id_, queue_name=f"root.{leaf}", partition_name=name,
            ugi=si.UserGroupInformation(user="ann"), **said,
        )  # fmt: skip
        self.simulator.update_application(si.ApplicationRequest(rm_id=rm, new=(new,)))
        items = tuple(replace(it, application_id=id_, partition_name=name) for it in asks)
        self.simulator.update_allocation(si.AllocationRequest(rm_id=rm, asks=items))

    def run(self) -> None:
        works = [
            (rm, name, number, work[0] in TAKING)
            for rm, partitions in self.drawn.items()
            for name, it in partitions.items()
            for number, work in enumerate(it.works)
        ]
        for taking in (False, True):
            for rm, name, number, takes in works:
                if takes is taking:
                    self._submit(rm, name, number)
                    if self.rng.random() < 0.3:
                        self._pass(self.rng.choice((1, 5, 20)))
        for _ in range(self.rng.randint(4, 10)):
            self._disturb()
            self._pass(self.rng.choice((1, 10, 30, 61, 130, 700)))
        for _ in range(3):
            for manager in self.managers.values():
                manager.confirm(len(manager.to_confirm))
            self._pass(61)

    def _pass(self, duration_s: int) -> None:
        self.simulator.advance(duration_s * SECOND)
        for manager in self.managers.values():
            manager.confirm(self.rng.randint(0, len(manager.to_confirm)))

    def _disturb(self) -> None:
        rm = self.rng.choice(list(self.drawn))
        name = self.rng.choice(list(self.drawn[rm]))
        match self.rng.choice(("reload", "restart", "end", "end", "nothing", "nothing")):
            case "reload":
                self._reload(rm, name)
            case "restart":
                self._restart()
            case "end":
                self._end_some(rm, name)

    def _reload(self, rm: str, name: str) -> None:
        """Another budget, cooldown, grace and unit for what gives; what may be claimed stays."""
        drawn = self.drawn[rm][name]
        former = {queue["name"]: queue for queue in drawn.root["queues"]}
        leaves = [{"name": leaf, "properties": properties(self.rng)} for leaf in GIVING]
        root = {**drawn.root, "queues": leaves + [former[leaf] for leaf in TAKING]}
        self.drawn[rm][name] = drawn._replace(root=root)
        request = si.UpdateConfigurationRequest(rm_id=rm, policy_group=rm, config=self._config(rm))
        self.simulator.update_configuration(request)
        self.watcher.seen["reload"] += 1

    def _end_some(self, rm: str, name: str) -> None:
        runs = self.managers[rm].running.values()
        mine = [it for it in runs if it.partition_name == name]
        for it in self.rng.sample(mine, min(len(mine), 2)):
            self.release(
                rm,
                si.AllocationRelease(
                    partition_name=name, application_id=it.application_id, uuid=it.uuid,
                    termination_type=si.TerminationType.STOPPED_BY_RM,
                ),
            )  # fmt: skip

    def _restart(self) -> None:
        """Another core begins with what a journal has, and all come back and report."""
        self.simulator.settle()
        former, truth = self.simulator, truth_of(self.simulator)
        self.watcher.seen["restart"] += 1
        self._begin()
        self.simulator.now_ns = former.now_ns
        self.simulator._post(CONTEXT, truth, "restart")
        self.simulator.settle()
        for rm in self.drawn:
            self._register(rm)
            self._nodes(rm)
        self.simulator.settle()


def truth_of(simulator: Simulator) -> CoreRestored:
    context, publisher = simulator.machines[CONTEXT], simulator.machines[EVENT_PUBLISHER]
    assert isinstance(context, Context)
    assert isinstance(publisher, EventPublisher)
    partitions = context.partitions.items()
    known = tuple(
        FactsMissed(partition=name, epoch=it.epoch, revision=it.state.revision)
        for name, it in partitions
    )
    message = CoreRestored(
        registered=context.registered,
        images={name: image_of(it.state) for name, it in partitions},
        events=replace(publisher.remembered(2**20), known=known),
    )
    return msgpack.decode(msgpack.encode(message), type=CoreRestored)


def seen_in(seeds: range, ways: list[tuple[TopologyName, int]]) -> Counter[str]:
    seen: Counter[str] = Counter()
    for seed in seeds:
        play = Play(seed, *ways[seed % len(ways)])
        try:
            play.run()
        except AssertionError as error:
            error.add_note(f"seed {seed}")
            raise
        seen += play.watcher.seen
    return seen


@ranges.seeds(400, usual=4)
def test_each_rule_holds_in_each_partition(seeds: range) -> None:
    seen = seen_in(seeds, WAYS)
    wanted = ("budget", "share", "cooled", "grace", "claim of a gang", "whole", "part")
    assert all(seen[what] for what in (*wanted, "reload", "restart")), f"vacuous: {seen}"


@ranges.seeds(200, first=3, usual=2)
def test_where_all_decide_at_once_as_well(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each plans as if it had the token; what is in flight in another counts in no budget."""
    contest(monkeypatch)
    seen = seen_in(seeds, [("proposing", 3), ("proposing", 2)])
    assert min(seen["VICTIM_GONE"], seen["budget"] + seen["share"], seen["claim of a gang"]), (
        f"vacuous: {seen}"
    )
