"""Random clusters in which queues take back what they are guaranteed.

After everything has settled with a resource manager that confirms at once, a search through all
sets of victims on every node must find nobody who could still be served. While it runs no decision
may take a queue that gives below its guarantee, nor the taker above its own.
"""

import json
from collections.abc import Iterable, Iterator
from itertools import chain, combinations
from random import Random
from typing import Any, NamedTuple

import pytest
import ranges
from confirming import PREEMPTED, Confirming, Victims, confirming_lab, policy
from msgspec import Struct
from support import RM, Lab, facts_of

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.messages.base import CONTEXT, Delivery
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import Allocation, Ask, PreemptionRule, Reservation
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.values.resource import add, charge, sub

clusters = ranges.seeds(299, first=0, usual=10)
UNITS = {"vcore": "m", "memory": ""}
GANGS = 2
Sizes = dict[str, int]
REQUIRED = "yunikorn.apache.org/requiredNode"


class Play(Struct):
    config: str
    nodes: dict[str, Sizes]
    asks: list[tuple[str, str, Sizes, dict[str, Any]]]
    """Application, key, size and fields of each ask, in the order in which they come."""
    apps: dict[str, str]
    """Application to its leaf."""


class Drawn(NamedTuple):
    guaranteed: Sizes
    queue: dict[str, Any]


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

    def sizes(self, low: int, high: int) -> Sizes:
        return {kind: self.randint(low, high) for kind in UNITS}

    def amount(self) -> Sizes:
        """Small work is many, so that several have to go for what is big."""
        return {kind: self.choice((1, 1, 1, 2, 3)) for kind in UNITS}

    def leaf(self, name: str, *, limited: bool) -> Drawn:
        guaranteed = self.sizes(2, 8) if self.chance(0.6) else {}
        if self.chance(0.3):
            guaranteed.pop("memory", None)
        most = self.sizes(8, 12) if limited and self.chance(0.5) else {}
        return self._queue(name, guaranteed, most)

    def parent(self, name: str, children: list[Drawn]) -> Drawn:
        """What is guaranteed to a parent covers its children, and may be more."""
        guaranteed: Sizes = {}
        if self.chance(0.6):
            for kind in UNITS:
                total = sum(child.guaranteed.get(kind, 0) for child in children)
                guaranteed[kind] = total + self.randint(0, 3)
        drawn = self._queue(name, guaranteed, {})
        drawn.queue["queues"] = [child.queue for child in children]
        return drawn

    def _queue(self, name: str, guaranteed: Sizes, most: Sizes) -> Drawn:
        resources = {
            what: {kind: f"{size}{UNITS[kind]}" for kind, size in sizes.items()}
            for what, sizes in (("guaranteed", guaranteed), ("max", most))
            if sizes
        }
        queue = {"name": name, "properties": self.properties(), "resources": resources}
        return Drawn(guaranteed, queue)

    def ask(self, nodes: Iterable[str]) -> dict[str, Any]:
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
        below.append((drawn[0] if names == [name] else dice.parent(name, drawn)).queue)
    root = {"name": "root", "submitacl": "*", "queues": below}
    nodes = {f"n{number}": dice.sizes(4, 8) for number in range(dice.randint(1, 3))}
    apps = {f"app-{number}": path for number, path in enumerate(leaves)}
    apps |= {f"gang-{number}": dice.choice(leaves) for number in range(GANGS)}
    asks = [
        (dice.choice(sorted(apps)), f"k{number:02}", dice.amount(), dice.ask(sorted(nodes)))
        for number in range(dice.randint(12, 28))
    ]
    config = json.dumps({"partitions": [{"name": "default", "queues": [root]}]})
    return Play(config, nodes, asks, apps)


def perform(
    play: Play, seed: int, topology: TopologyName, *checkers: Any, at_once: bool = True
) -> Lab:
    lab = confirming_lab(
        play.config, seed=seed, topology=topology, checkers=checkers, at_once=at_once
    )
    for name, sizes in play.nodes.items():
        size, create = si.Resource.of(sizes), si.ActionFromRM.CREATE
        node = si.NodeInfo(node_id=name, action=create, schedulable_resource=size)
        lab.simulator.update_node(si.NodeRequest(rm_id=RM, nodes=(node,)))
    for name, path in play.apps.items():
        lab.submit(name, queue=path, placeholder_ask=gang_of(play, name))
    lab.settle()
    for app, key, sizes, fields in play.asks:
        gang = {"placeholder": True, "task_group_name": "g"} if is_gang(app) else {}
        lab.ask(key, app=app, resource_ask=si.Resource.of(sizes), **fields, **gang)
        lab.advance(1)
    lab.advance(300)
    return lab


def is_gang(app: str) -> bool:
    return app.startswith("gang")


def gang_of(play: Play, name: str) -> si.Resource | None:
    """All that its placeholders will ask for: it is admitted with the first of them."""
    if not is_gang(name):
        return None
    mine = [sizes for app, _, sizes, _ in play.asks if app == name]
    return si.Resource.of({kind: sum(sizes[kind] for sizes in mine) for kind in UNITS})


# -- the oracle


def guaranteed(queue: Queue) -> Sizes:
    return queue.spec.guaranteed or {}


def is_within(wanted: Sizes, room: Sizes) -> bool:
    return all(quantity <= room.get(kind, 0) for kind, quantity in wanted.items())


def exceeds(queue: Queue, wanted: Sizes, taken: Sizes) -> bool:
    """Whether the ask would take the queue above what it is guaranteed."""
    return any(
        queue.allocated.get(kind, 0) + wanted[kind] - taken.get(kind, 0) > size
        for kind, size in guaranteed(queue).items()
    )


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
        bounded = level in entitlement(leaf) and exceeds(level, ask.spec.resource, {})
        if bounded or level.properties.preemption_policy == "fence":
            return False
    raise AssertionError("two leaves meet in the root at last")


def is_fair(state: PartitionState, ask: Ask, leaf: Queue, victims: tuple[Allocation, ...]) -> bool:
    """Nobody who gives ends below the guarantee, the taker not above its own."""
    taken: dict[str, Sizes] = {}
    for victim in victims:
        giver = state.applications[victim.spec.application_id].queue
        for level in giver.lineage:
            charge(taken.setdefault(level.path, {}), victim.resource)
        own = [q for q in giver.lineage if guaranteed(q) and q not in leaf.lineage]
        common = any(guaranteed(q) for q in leaf.lineage if q in giver.lineage)
        if common and not own and not guaranteed(leaf):
            return False
        for queue in own:
            left = add(queue.allocated, {k: -n for k, n in taken[queue.path].items()})
            if not is_within(guaranteed(queue), left):
                return False
    wanted = ask.spec.resource
    return not any(exceeds(q, wanted, taken.get(q.path, {})) for q in entitlement(leaf))


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
    wanted = ask.spec.resource
    for node in state.nodes.values():
        free = node.available
        # Room that is kept for somebody who waits longer is no matter of preemption.
        if is_within(wanted, free) or any(
            not gives_way(state, it, ask) for it in node.reservations.values()
        ):
            continue
        able = [v for v in node.allocations.values() if may_be_taken(state, ask, leaf, v)]
        for victims in chain.from_iterable(combinations(able, n + 1) for n in range(len(able))):
            if is_enough(wanted, free, victims) and is_fair(state, ask, leaf, victims):
                keys = [victim.spec.key for victim in victims]
                yield f"{ask.spec.key} of {leaf.path} could have {keys} go on {node.id}"


def is_enough(wanted: Sizes, free: Sizes, victims: tuple[Allocation, ...]) -> bool:
    """They make room, and without any of them there would be none."""
    room = dict(free)
    for victim in victims:
        charge(room, victim.resource)
    return is_within(wanted, room) and not any(
        is_within(wanted, sub(room, victim.resource)) for victim in victims
    )


def gives_way(state: PartitionState, held: Reservation, ask: Ask) -> bool:
    other = state.applications[held.application_id].asks[held.key]
    return held.is_ordinary and other.spec.priority <= ask.spec.priority


class Fair:
    """Listens to every decision: what it leads to is within the guarantees of both sides."""

    def __init__(self) -> None:
        self.decisions = 0
        self.placeholders = 0
        """Those that had to go for others."""
        self.shared = 0
        """Decisions that need no victims of their own."""
        self.lent = 0
        """Givers that have their guarantee by what is promised to them, and not by what runs."""

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        if delivery.mailbox != CONTEXT:
            return
        context: Any = simulator.machines[CONTEXT]
        decided = [
            fact for fact in facts_of(simulator, delivery) if isinstance(fact, f.PreemptionDecided)
        ]
        if not decided:
            return
        self.decisions += len(decided)
        (partition,) = context.partitions.values()
        state = partition.state
        rooms = {id_: unspoken_on(node) for id_, node in state.nodes.items()}
        earmarked = {path: dict(queue.earmarked) for path, queue in state.queues.items()}
        # What the later ones decided is taken back before the earlier ones are looked at.
        for fact in reversed(decided):
            if fact.beneficiary.rule is PreemptionRule.GUARANTEE:
                self._judge(state, fact, rooms, earmarked)
                for queue in state.queues[fact.beneficiary.queue].lineage:
                    wanted = asking_of(state, fact).spec.resource
                    earmarked[queue.path] = sub(earmarked[queue.path], wanted)
            for item in victims_of(state, fact):
                rooms[item.node_id] = sub(rooms[item.node_id], item.resource)

    def _judge(
        self,
        state: PartitionState,
        fact: f.PreemptionDecided,
        rooms: dict[str, Sizes],
        earmarked: dict[str, Sizes],
    ) -> None:
        leaf = state.queues[fact.beneficiary.queue]
        for queue in entitlement(leaf):
            coming = add(left_of(queue), earmarked[queue.path])
            assert is_within({k: coming.get(k, 0) for k in guaranteed(queue)}, guaranteed(queue))
        node = state.nodes[fact.node_id]
        asking = asking_of(state, fact)
        wanted = asking.spec.resource
        rooms[node.id] = room = add(rooms[node.id], wanted)
        self.shared += not fact.victims
        limited = any(queue.spec.max for queue in leaf.lineage)
        for item in victims_of(state, fact):
            # Nobody of them could have stayed; quotas may ask for more than the node does.
            spare = item.node_id == node.id and is_within(wanted, sub(room, item.resource))
            assert limited or not spare or is_free_for_another(state, node, asking), item.spec.key
            self.placeholders += item.spec.placeholder
        if fact.victims and not limited:
            self._judge_room(state, fact, wanted, rooms)
        self._judge_givers(state, leaf, fact, earmarked)

    def _judge_room(
        self,
        state: PartitionState,
        fact: f.PreemptionDecided,
        wanted: Sizes,
        rooms: dict[str, Sizes],
    ) -> None:
        """Nothing goes in vain: what is on its way, and not spoken for, makes no room for it."""
        going: dict[str, Sizes] = {}
        leaf = state.queues[fact.beneficiary.queue]
        for item in victims_of(state, fact):
            giver = state.applications[item.spec.application_id].queue
            if any(queue in giver.lineage for queue in entitlement(leaf)):
                # It goes for the guarantee that both live on, whatever room there is.
                return
            charge(going.setdefault(item.node_id, {}), item.resource)
        for id_, room in rooms.items():
            held = state.nodes[id_].reservations.values()
            if is_within(wanted, state.nodes[id_].available):
                # What is free already may be meant for another ask of the same plan.
                continue
            if all(item.earmark is not None for item in held):
                assert not is_within(wanted, sub(room, going.get(id_, {}))), (fact, id_)

    def _judge_givers(
        self,
        state: PartitionState,
        leaf: Queue,
        fact: f.PreemptionDecided,
        earmarked: dict[str, Sizes],
    ) -> None:
        """What a queue has less of than it is guaranteed stands in nobody's way, but no more.

        Room that is promised to it counts as used: of the giver as of the taker.
        """
        taken: dict[str, Sizes] = {}
        for app in state.applications.values():
            for item in app.allocations.values():
                if item.uuid in fact.victims:
                    for queue in app.queue.lineage:
                        charge(taken.setdefault(queue.path, {}), item.resource)
        for path, amount in taken.items():
            queue = state.queues[path]
            for kind, size in guaranteed(queue).items() if queue not in leaf.lineage else ():
                runs = left_of(queue).get(kind, 0)
                left = runs + earmarked[path].get(kind, 0)
                assert left >= size or left + amount[kind] < size, path
                self.lent += runs < size <= left


def asking_of(state: PartitionState, fact: f.PreemptionDecided) -> Ask:
    return state.applications[fact.beneficiary.application_id].asks[fact.beneficiary.key]


def is_free_for_another(state: PartitionState, node: Node, asking: Ask) -> bool:
    """Whether what is free already may be meant for another ask, which needs no victim then."""
    return any(
        ask is not asking
        and entitlement(app.queue)
        and is_within(ask.spec.resource, node.available)
        for app in state.applications.values()
        for ask in app.waiting_asks()
    )


def victims_of(state: PartitionState, fact: f.PreemptionDecided) -> list[Allocation]:
    return [
        item
        for app in state.applications.values()
        for item in app.allocations.values()
        if item.uuid in fact.victims
    ]


def unspoken_on(node: Node) -> Sizes:
    """What is free or on its way, less what is promised."""
    room = dict(node.available)
    for item in node.allocations.values():
        if item.releasing is not None:
            charge(room, item.resource)
    for held in node.reservations.values():
        for _ in range(held.repeats):
            room = sub(room, held.earmark)
    return room


def left_of(queue: Queue) -> Sizes:
    return sub(queue.allocated, queue.leaving)


@clusters
@pytest.mark.parametrize("topology", ["proposing", "fused"])
def test_nobody_is_left_who_could_be_served(topology: TopologyName, seeds: range) -> None:
    decisions, placeholders = 0, 0
    for seed in seeds:
        fair, victims = Fair(), Victims()
        play = draw(seed, limited=False)
        lab = perform(play, seed % 7, topology, fair, victims)
        assert [] == list(servable(lab.state)), f"seed {seed}"
        told = [key for key, type_ in lab.rm.told("released") if type_ == PREEMPTED.name]
        assert sorted(told) == sorted(victims.keys()), f"seed {seed}"
        assert len(set(told)) == len(told) <= len(play.asks), f"seed {seed}: one went twice"
        decisions += fair.decisions
        placeholders += fair.placeholders
    assert decisions > len(seeds) / 4, "vacuous: hardly anybody preempted"
    assert placeholders > len(seeds) / 20, "vacuous: hardly a placeholder had to go"


@clusters
def test_whoever_was_promised_room_has_it_when_all_are_confirmed_late(seeds: range) -> None:
    """One big decision after the other, and nobody answers until no more is decided."""
    shared = 0
    for seed in seeds:
        fair = Fair()
        lab = perform(draw(seed, limited=False), seed % 7, "fused", fair, at_once=False)
        assert isinstance(lab.rm, Confirming)
        for _ in range(20):
            lab.rm.confirm_all()
            lab.advance(60)
        assert [] == list(servable(lab.state)), f"seed {seed}"
        promised = [id_ for id_, it in lab.state.nodes.items() if any(it.promised.values())]
        assert [] == promised, f"seed {seed}"
        shared += fair.shared
    assert shared > len(seeds) / 20, "vacuous: hardly anybody lived on what others left"


@pytest.mark.parametrize("seed", [1135, 1300])
def test_what_is_promised_to_a_queue_counts_towards_its_guarantee(seed: int) -> None:
    """A queue gives running work for what is on its way to it, and has its guarantee in the end."""
    fair = Fair()
    perform(draw(seed, limited=False), seed % 7, "fused", fair, at_once=False)
    assert fair.lent, "vacuous: nobody lives on what is promised"


@clusters
def test_quotas_that_bind_keep_the_guarantees_too(seeds: range) -> None:
    decisions = 0
    for seed in seeds:
        fair = Fair()
        perform(draw(seed, limited=True), seed % 7, "proposing", fair)
        decisions += fair.decisions
    assert decisions > len(seeds) / 5, "vacuous"


def test_the_same_seed_has_the_same_victims() -> None:
    def victims_of(seed: int) -> list[str]:
        victims = Victims()
        perform(draw(seed, limited=True), seed, "proposing", victims)
        return victims.keys()

    found = [victims_of(seed) for seed in range(8)]
    assert any(found), "vacuous"
    assert found == [victims_of(seed) for seed in range(8)]
