"""Anything a resource manager may say, in any order, on any schedule: the core stays sound.

The checkers look after every message. At the end everything is removed and nothing may be left.
"""

import json
import re
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import TypeVar

import pytest
import ranges
from support import RM, Lab, settled

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.simulator import Checker
from yunikorn_actors.lab.swarm.scripts import drawn_queues
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName

STEPS = 50
APPS = ("app-1", "app-2", "app-3")
KEYS = ("k1", "k2", "k3", "k4")
NODES = ("n1", "n2", "n3")
QUEUES = ("root.default", "root.fair", "root.deep.first", "root.deep.second")
_LEAVES = {
    "root.default": "{name: default}",
    "small": "{name: fair, resources: {guaranteed: {vcore: 2m}, max: {vcore: 4m}}, "
    "properties: {application.sort.policy: fair}}",
    "large": "{name: fair, maxapplications: 2, resources: {max: {vcore: 9m}}}",
}
CONFIGS = tuple(
    "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: "
    f"[{{name: default}}, {fair}, {{name: deep, parent: true, queues: [{deep}]}}]}}]}}]"
    for fair, deep in (
        (_LEAVES["small"], "{name: first}, {name: second}"),
        (_LEAVES["large"], "{name: first, resources: {max: {vcore: 2m}}}"),
        (_LEAVES["small"], "{name: second, properties: {application.sort.policy: stateaware}}"),
    )
)

Item = TypeVar("Item")


class Workload:
    def __init__(
        self,
        seed: int,
        topology: TopologyName,
        configs: tuple[str, ...] = CONFIGS,
        checkers: tuple[Checker, ...] = (),
        queues: tuple[str, ...] = QUEUES,
        bounds: Settings | None = None,
    ) -> None:
        self.configs = configs
        self.queues = queues
        self.random = Random(seed)  # noqa: S311 - a repeatable workload, no secret
        bounds = bounds or Settings(
            inflight_max=self.one_of((1, 2, 5, 99)), cycle_max=self.one_of((1, 3, 99))
        )
        self.lab = Lab(
            seed=seed, topology=topology, config=configs[0], settings=bounds, checkers=checkers
        )

    def one_of(self, choices: tuple[Item, ...]) -> Item:
        return choices[int(self.random.random() * len(choices))]

    def some(self, most: int, make: Callable[[], Item]) -> tuple[Item, ...]:
        return tuple(make() for _ in range(self.one_of(tuple(range(most + 1)))))

    def amount(self) -> si.Resource:
        amounts = {"vcore": self.one_of((0, 1, 1, 2, 3, 5)), "memory": self.one_of((0, 0, 1, 2))}
        return si.Resource.of({kind: many for kind, many in amounts.items() if many})

    # -- items

    def an_ask(self) -> si.AllocationAsk:
        return si.AllocationAsk(
            application_id=self.one_of(APPS),
            allocation_key=self.one_of(KEYS),
            resource_ask=self.amount(),
            max_allocations=self.one_of((1, 1, 2, 4)),
            priority=self.one_of((0, 0, 1, 2)),
            tags=self.one_of(({}, {si.constants.TAG_CREATION_TIME: self.one_of(("1", "50"))})),
        )

    def a_report(self) -> si.Allocation:
        return si.Allocation(
            application_id=self.one_of(APPS),
            allocation_key=self.one_of(KEYS),
            node_id=self.one_of((*NODES, "")),
            resource_per_alloc=self.amount(),
        )

    def a_foreign_one(self) -> si.Allocation:
        return si.Allocation(
            allocation_key=self.one_of(("f1", "f2")),
            node_id=self.one_of(NODES),
            resource_per_alloc=self.amount(),
            allocation_tags={si.constants.TAG_FOREIGN: si.constants.FOREIGN_DEFAULT},
        )

    def an_ask_release(self) -> si.AllocationAskRelease:
        app, key = self.one_of(APPS), self.one_of(KEYS)
        owner, name = self.one_of(((app, key), (app, key), ("", key), (app, "")))
        return si.AllocationAskRelease(application_id=owner, allocation_key=name)

    def a_release(self) -> si.AllocationRelease:
        app, key = self.one_of(APPS), self.one_of((*KEYS, "f1", "f2"))
        owner, name = self.one_of(((app, key), (app, key), ("", key), (app, "")))
        type_ = self.one_of(tuple(si.TerminationType))
        return si.AllocationRelease(
            application_id=owner, allocation_key=name, termination_type=type_
        )

    def a_node(self) -> si.NodeInfo:
        action = si.ActionFromRM
        return si.NodeInfo(
            node_id=self.one_of(NODES),
            action=self.one_of((action.CREATE, action.CREATE, *action)),
            schedulable_resource=self.one_of((None, self.amount(), si.Resource.of({"vcore": 8}))),
            occupied_resource=self.one_of((None, None, si.Resource.of({"vcore": 1}))),
            attributes=self.one_of(({}, {}, {"ready": "false"}, {"ready": "true"})),
        )

    # -- what is said

    def speak_of_allocations(self) -> None:
        releases = si.AllocationReleasesRequest(
            allocations_to_release=self.some(1, self.a_release),
            allocation_asks_to_release=self.some(1, self.an_ask_release),
        )
        self.lab.request(
            asks=self.some(4, self.an_ask),
            allocations=self.some(1, self.a_report) + self.some(1, self.a_foreign_one),
            releases=releases,
        )

    def speak_of_nodes(self) -> None:
        request = si.NodeRequest(rm_id=RM, nodes=self.some(3, self.a_node))
        self.lab.simulator.update_node(request)

    def submit(self) -> None:
        queue, user = self.one_of(self.queues), self.one_of(("bob", "alice"))
        self.lab.submit(self.one_of(APPS), queue=queue, user=user)

    def remove(self) -> None:
        self.lab.remove(self.one_of(APPS))

    def reload(self) -> None:
        self.lab.configure(self.one_of(self.configs))

    def wait(self) -> None:
        self.lab.advance(self.one_of((1, 5, 11, 31, 301)))

    def listen(self) -> None:
        for _ in range(self.one_of((1, 3, 9, 20))):
            self.lab.simulator.step()

    def move(self) -> None:
        often = (self.speak_of_allocations, self.speak_of_allocations, self.listen, self.submit)
        self.one_of((*often, *often, self.speak_of_nodes, self.remove, self.reload, self.wait))()

    def run(self) -> None:
        for _ in range(STEPS):
            self.move()


@ranges.seeds(499, usual=30)
@pytest.mark.parametrize("topology", ["proposing", "fused"])
def test_nothing_is_ever_unsound_and_nothing_is_left(topology: TopologyName, seeds: range) -> None:
    refusals: Counter[str] = Counter()
    heard: Counter[str] = Counter()
    for seed in seeds:
        workload = Workload(seed, topology)
        workload.run()
        assert {} == workload.lab.leftovers()
        refusals += workload.lab.races.refusals
        heard.update(line[0] for line in workload.lab.rm.heard)
    assert heard.keys() >= {"new", "released", "rejected", "application", "state", "node"}
    if topology == "proposing":
        assert refusals.total() > 4, "vacuous: hardly any race was lost"
    else:
        assert {} == refusals, "what plans on the truth is never refused"


def _in_small(config: str) -> str:
    """Thousandths of a cpu for cpus: what is asked for here is as small."""
    return re.sub(r'"vcore": (\d+)(?=[,}])', r'"vcore": "\1m"', config)


def on_drawn_queues(seed: int, topology: TopologyName) -> Workload:
    """Draw the queues, their limits and the order of nodes too; reloads go between two of them."""
    configs, leaves = drawn_queues("order", seed)
    paths = tuple(path for path, _ in leaves)
    texts = tuple(_in_small(json.dumps(config)) for config in configs)
    workload = Workload(seed, topology, texts, queues=paths, bounds=Settings())
    size = si.Resource.of({"vcore": 8, "memory": 20})
    nodes = tuple(
        si.NodeInfo(node_id=name, action=si.ActionFromRM.CREATE, schedulable_resource=size)
        for name in NODES
    )
    workload.lab.simulator.update_node(si.NodeRequest(rm_id=RM, nodes=nodes))
    for name in APPS:
        workload.lab.submit(name, queue=workload.one_of(paths))
    return workload


@ranges.seeds(499, first=0, usual=5)
@pytest.mark.timeout(1800)
def test_topologies_settle_to_equal_states(seeds: range) -> None:
    placed = 0
    for seed in seeds:
        proposing, fused = (on_drawn_queues(seed, topology) for topology in TOPOLOGIES)
        for step in range(STEPS):
            for workload in (proposing, fused):
                workload.move()
                workload.lab.settle()
            assert settled(proposing.lab.state) == settled(fused.lab.state), (seed, step)
        placed += len(proposing.lab.rm.told("new"))
    assert placed > 5 * len(seeds), "vacuous: hardly anything was placed"


def test_a_seed_is_a_schedule() -> None:
    """The same seed says and hears the same; another one does not."""
    first, second, third = (Workload(seed, "proposing") for seed in (5, 5, 6))
    for workload in (first, second, third):
        workload.run()
    assert first.lab.simulator.states() == second.lab.simulator.states()
    assert first.lab.rm.heard == second.lab.rm.heard
    assert first.lab.rm.heard != third.lab.rm.heard
