"""Random clusters in which queues take back what they are guaranteed.

After everything has settled with a resource manager that confirms at once, a search through all
sets of victims on every node must find nobody who could still be served. While it runs no decision
may take a queue that gives below its guarantee, nor the taker above its own.
"""

import json
from collections.abc import Iterator
from itertools import chain, combinations
from random import Random
from typing import Any

import pytest
from confirming import PREEMPTED, Victims, confirming_lab, policy
from msgspec import Struct
from support import Lab, facts_of

from yunikorn_actors.domain import facts as f
from yunikorn_actors.domain.allocation import Allocation, Ask, Reservation
from yunikorn_actors.domain.beneficiary import PreemptionRule
from yunikorn_actors.domain.partition import PartitionState
from yunikorn_actors.domain.queue import Queue
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.messages.base import CONTEXT, Delivery
from yunikorn_actors.sim.simulator import Simulator

CLUSTERS = 300
VCORE = "vcore"
REQUIRED = "yunikorn.apache.org/requiredNode"


class Play(Struct):
    config: str
    leaves: list[str]
    nodes: dict[str, int]
    asks: list[tuple[str, int, dict[str, Any]]]
    """Leaf, size and fields of each ask, in the order in which they come."""


class Dice(Random):
    """Draws queues and asks."""

    def chance(self, part: float) -> bool:
        return self.random() < part

    def properties(self) -> dict[str, str]:
        drawn = {"preemption.delay": "5s"}
        if self.chance(0.2):
            drawn["preemption.policy"] = self.choice(("fence", "disabled", "default"))
        if self.chance(0.3):
            drawn["priority.offset"] = str(self.choice((-2, 1, 2)))
        if self.chance(0.1):
            drawn["priority.policy"] = "fence"
        return drawn

    def leaf(self, name: str, *, limited: bool) -> dict[str, Any]:
        sizes = {"guaranteed": self.randint(1, 6) if self.chance(0.6) else 0}
        sizes["max"] = self.randint(8, 12) if limited and self.chance(0.5) else 0
        return self._queue(name, sizes)

    def parent(self, name: str, children: list[dict[str, Any]]) -> dict[str, Any]:
        """What is guaranteed to a parent covers its children, and may be more."""
        below = (child["resources"].get("guaranteed", {VCORE: "0m"}) for child in children)
        total = sum(int(sizes[VCORE][:-1]) for sizes in below)
        sizes = {"guaranteed": total + self.randint(0, 3) if self.chance(0.6) else 0}
        return {**self._queue(name, sizes), "queues": children}

    def _queue(self, name: str, sizes: dict[str, int]) -> dict[str, Any]:
        resources = {what: {VCORE: f"{size}m"} for what, size in sizes.items() if size}
        return {"name": name, "properties": self.properties(), "resources": resources}

    def ask(self, nodes: dict[str, int]) -> dict[str, Any]:
        willing, pushy = self.chance(0.8), self.chance(0.9)
        fields: dict[str, Any] = {
            "priority": self.choice((0, 0, 0, 1, 3)),
            "originator": self.chance(0.1),
            "preemption_policy": policy(willing=willing, pushy=pushy),
        }
        if self.chance(0.08):
            fields["tags"] = {REQUIRED: self.choice(sorted(nodes))}
        return fields


def draw(seed: int, *, limited: bool) -> Play:
    dice = Dice(seed)
    leaves: list[str] = []
    below: list[dict[str, Any]] = []
    for name in "abc":
        names = [name] if dice.chance(0.5) else [f"{name}.{n}" for n in range(dice.randint(2, 3))]
        leaves.extend(f"root.{path}" for path in names)
        drawn = [dice.leaf(path.rpartition(".")[2], limited=limited) for path in names]
        below.append(drawn[0] if names == [name] else dice.parent(name, drawn))
    root = {"name": "root", "submitacl": "*", "queues": below}
    nodes = {f"n{number}": dice.randint(4, 8) for number in range(dice.randint(1, 3))}
    asks = [
        (dice.choice(leaves), dice.choice((1, 1, 1, 2, 3)), dice.ask(nodes))
        for _ in range(dice.randint(10, 24))
    ]
    config = json.dumps({"partitions": [{"name": "default", "queues": [root]}]})
    return Play(config, leaves, nodes, asks)


def perform(play: Play, seed: int, topology: TopologyName, *checkers: Any) -> Lab:
    lab = confirming_lab(play.config, seed=seed, topology=topology, checkers=checkers)
    lab.nodes(**play.nodes)
    for number, path in enumerate(play.leaves):
        lab.submit(f"app-{number}", queue=path)
    lab.settle()
    for number, (path, size, fields) in enumerate(play.asks):
        app = f"app-{play.leaves.index(path)}"
        lab.ask(f"k{number:02}", app=app, vcore=size, **fields)
        lab.advance(1)
    lab.advance(300)
    return lab


# -- the oracle


def used(queue: Queue) -> int:
    return queue.allocated.get(VCORE, 0)


def guaranteed(queue: Queue) -> int:
    return (queue.spec.guaranteed or {}).get(VCORE, 0)


def entitlement(leaf: Queue) -> list[Queue]:
    own = [leaf] if guaranteed(leaf) else list(leaf.lineage)
    return [queue for queue in own if guaranteed(queue)]


def seen_from(queue: Queue, top: Queue, priority: int) -> int | None:
    """How important something of this leaf is to the children of the top; None is beyond any."""
    for level in queue.lineage:
        if level is top:
            break
        properties = level.properties
        priority = properties.priority_offset + (0 if properties.priority_fence else priority)
    return priority


def may_be_taken(state: PartitionState, ask: Ask, leaf: Queue, victim: Allocation) -> bool:
    giver = state.applications[victim.spec.application_id].queue
    if (
        giver is leaf
        or victim.spec.required_node
        or giver.properties.preemption_policy == "disabled"
    ):
        return False
    for level in leaf.lineage:
        if level in giver.lineage:
            mine = seen_from(leaf, level, ask.spec.priority)
            return seen_from(giver, level, victim.spec.priority) <= mine
        if level.properties.preemption_policy == "fence":
            return False
    raise AssertionError("two leaves meet in the root at last")


def is_fair(state: PartitionState, ask: Ask, leaf: Queue, victims: tuple[Allocation, ...]) -> bool:
    """Nobody who gives ends below the guarantee, the taker not above its own."""
    taken: dict[str, int] = {}
    for victim in victims:
        giver = state.applications[victim.spec.application_id].queue
        for level in giver.lineage:
            taken[level.path] = taken.get(level.path, 0) + victim.resource[VCORE]
        own = [q for q in giver.lineage if guaranteed(q) and q not in leaf.lineage]
        common = any(guaranteed(q) for q in leaf.lineage if q in giver.lineage)
        if common and not own and not guaranteed(leaf):
            return False
        if any(used(q) - taken.get(q.path, 0) < guaranteed(q) for q in own):
            return False
    wanted = ask.spec.resource[VCORE]
    return all(used(q) + wanted - taken.get(q.path, 0) <= guaranteed(q) for q in entitlement(leaf))


def servable(state: PartitionState) -> Iterator[str]:
    """Yield the asks that still wait although others could go for them."""
    for app in state.applications.values():
        for ask in app.waiting_asks():
            spec = ask.spec
            fenced = app.queue.properties.preemption_policy == "fence"
            may = spec.allow_preempt_other and entitlement(app.queue)
            if may and not (spec.required_node or fenced):
                yield from served_on_some_node(state, ask, app.queue)


def served_on_some_node(state: PartitionState, ask: Ask, leaf: Queue) -> Iterator[str]:
    wanted = ask.spec.resource[VCORE]
    for node in state.nodes.values():
        free = node.available.get(VCORE, 0)
        # Room that is kept for somebody who waits longer is no matter of preemption.
        if free >= wanted or any(
            not gives_way(state, it, ask) for it in node.reservations.values()
        ):
            continue
        able = [v for v in node.allocations.values() if may_be_taken(state, ask, leaf, v)]
        for victims in chain.from_iterable(combinations(able, n + 1) for n in range(len(able))):
            room = free + sum(victim.resource[VCORE] for victim in victims)
            needless = room - min(victim.resource[VCORE] for victim in victims) >= wanted
            if room >= wanted and not needless and is_fair(state, ask, leaf, victims):
                keys = [victim.spec.key for victim in victims]
                yield f"{ask.spec.key} of {leaf.path} could have {keys} go on {node.id}"


def gives_way(state: PartitionState, held: Reservation, ask: Ask) -> bool:
    other = state.applications[held.application_id].asks[held.key]
    return held.is_ordinary and other.spec.priority <= ask.spec.priority


class Fair:
    """Listens to every decision: what it leads to is within the guarantees of both sides."""

    def __init__(self) -> None:
        self.decisions = 0

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        if delivery.mailbox != CONTEXT:
            return
        context: Any = simulator.machines[CONTEXT]
        for fact in facts_of(simulator, delivery):
            if isinstance(fact, f.PreemptionDecided):
                self.decisions += 1
                if fact.beneficiary.rule is PreemptionRule.GUARANTEE:
                    (partition,) = context.partitions.values()
                    self._judge(partition.state, fact)

    def _judge(self, state: PartitionState, fact: f.PreemptionDecided) -> None:
        leaf = state.queues[fact.beneficiary.queue]
        for queue in entitlement(leaf):
            coming = queue.claimed.get(VCORE, 0) - queue.leaving.get(VCORE, 0)
            assert used(queue) + coming <= guaranteed(queue), queue.path
        node = state.nodes[fact.node_id]
        wanted = state.applications[fact.beneficiary.application_id].asks[fact.beneficiary.key]
        going = [item for item in node.allocations.values() if item.releasing is not None]
        room = node.available.get(VCORE, 0) + sum(item.resource[VCORE] for item in going)
        for item in node.allocations.values():
            if item.uuid in fact.victims:
                # Nobody of them could have stayed; quotas may ask for more than the node does.
                spare = room - item.resource[VCORE] >= wanted.spec.resource[VCORE]
                assert not spare or any(queue.spec.max for queue in leaf.lineage), item.spec.key
                giver = state.applications[item.spec.application_id].queue
                for queue in giver.lineage:
                    if queue not in leaf.lineage:
                        left = used(queue) - queue.leaving.get(VCORE, 0)
                        assert left >= guaranteed(queue), queue.path


@pytest.mark.parametrize("topology", ["proposing", "fused"])
def test_nobody_is_left_who_could_be_served(topology: TopologyName) -> None:
    decisions = 0
    for seed in range(CLUSTERS):
        fair, victims = Fair(), Victims()
        play = draw(seed, limited=False)
        lab = perform(play, seed % 7, topology, fair, victims)
        assert [] == list(servable(lab.state)), f"seed {seed}"
        told = [key for key, type_ in lab.rm.told("released") if type_ == PREEMPTED.name]
        assert sorted(told) == sorted(victims.keys()), f"seed {seed}"
        assert len(set(told)) == len(told) <= len(play.asks), f"seed {seed}: one went twice"
        decisions += fair.decisions
    assert decisions > CLUSTERS / 4, "vacuous: hardly anybody preempted"


def test_quotas_that_bind_keep_the_guarantees_too() -> None:
    decisions = 0
    for seed in range(100):
        fair = Fair()
        perform(draw(seed, limited=True), seed % 7, "proposing", fair)
        decisions += fair.decisions
    assert decisions > 20, "vacuous"


def test_the_same_seed_has_the_same_victims() -> None:
    def victims_of(seed: int) -> list[str]:
        victims = Victims()
        perform(draw(seed, limited=True), seed, "proposing", victims)
        return victims.keys()

    found = [victims_of(seed) for seed in range(20)]
    assert any(found), "vacuous"
    assert found == [victims_of(seed) for seed in range(20)]
