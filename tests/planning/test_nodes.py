"""The order of nodes is that of a sort, and the first fit that of a scan, whatever came before."""

from itertools import permutations
from random import Random

import pytest
import ranges

from yunikorn_actors.config.node_order import NODE_ORDERS
from yunikorn_actors.planning.model.nodes import RUN_LENGTH, NodeIndex, NodeRuns, NodeView
from yunikorn_actors.planning.model.shape import Shape, shape_key
from yunikorn_actors.state.allocations import AskSpec
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.values.resource import Resource

POLICIES = tuple(NODE_ORDERS)
WEIGHTS = {"vcore": 1.0, "memory": 1.0}
SIZES = ({"vcore": 8}, {"vcore": 16, "memory": 64}, {"memory": 32, "gpu": 2}, {"gpu": 4})
WANTED = (
    {"vcore": 1},
    {"vcore": 9},
    {"vcore": 2, "memory": 40},
    {"memory": 33},
    {"gpu": 1},
    {"gpu": 0, "vcore": 3},
    {"disk": 1},
)


def _shape(**wanted: int) -> Shape:
    return Shape(shape_key(AskSpec(application_id="app-1", key="a", resource=wanted)))


def _node(name: str, capacity: Resource, *, drained: bool = False) -> Node:
    return Node.reported(
        name, capacity=capacity, occupied={}, attributes={}, drained=drained, ready=True
    )


class Nodes:
    """An index, and the plain way to the same answers."""

    def __init__(self, policy: str, weights: dict[str, float]) -> None:
        self.index = NodeIndex()
        self.policy = policy
        self.weights = weights
        self.index.set_order(NODE_ORDERS[policy], weights)
        self.shapes = [_shape(**wanted) for wanted in WANTED]

    def add(self, name: str, capacity: Resource) -> NodeView:
        view = NodeView(_node(name, capacity))
        self.index.add(view)
        self.index.refresh(view, dict(capacity))
        return view

    def score(self, view: NodeView, policy: str = "") -> float:
        policy = policy or self.policy
        if policy == "least-fragmentation":
            return self.usable(view)
        capacity = view.node.capacity
        used = total = 0.0
        for kind in sorted(self.weights):
            if self.weights[kind] and kind in capacity:
                used += self.weights[kind] * (1.0 - view.free.get(kind, 0) / capacity[kind])
                total += self.weights[kind]
        share = used / total if total else 0.0
        return share if policy == "fair" else 1.0 - share

    def usable(self, view: NodeView) -> float:
        capacity, product = view.node.capacity, 1.0
        heaviest = max((w for k, w in self.weights.items() if k in capacity), default=0.0)
        for kind in sorted(self.weights):
            if self.weights[kind] and kind in capacity:
                used = 1.0 - view.free.get(kind, 0) / capacity[kind]
                product *= max(0.0, 1.0 - self.weights[kind] / heaviest * used)
        return product

    def sorted(self, policy: str = "") -> list[str]:
        open_ones = [v for v in self.index.views.values() if v.node.is_schedulable]
        return [v.id for v in sorted(open_ones, key=lambda v: (self.score(v, policy), v.id))]

    def scan(self, shape: Shape, order: list[str]) -> str | None:
        return next((n for n in order if _fits(self.index.views[n].free, shape)), None)

    def check(self) -> None:
        runs = self.index.runs
        assert self.sorted() == [view.id for view in self.index.in_order()]
        for run, ceiling in zip(runs._runs, runs._ceilings, strict=True):
            assert 0 < len(run) <= 2 * RUN_LENGTH
            for _, _, view in run:
                assert all(
                    quantity <= ceiling.get(k, 0) or quantity <= 0
                    for k, quantity in view.free.items()
                )

    def check_fits(self) -> None:
        order = self.sorted()
        for shape in self.shapes:
            found = self.index.first_fit(shape)
            assert self.scan(shape, order) == (None if found is None else found.id)

    def check_own(self, policy: str) -> None:
        """Whoever has an order of their own is given what a sort by that would give."""
        order = self.sorted(policy)
        for shape in self.shapes:
            first = self.index.first_fit(shape, NODE_ORDERS[policy])
            assert self.scan(shape, order) == (None if first is None else first.id)
            assert first is None or self.index.knows(first)
            name = "" if first is None else first.id
            second = self.index.first_other(shape, name, NODE_ORDERS[policy])
            others = [n for n in order if n != name]
            assert self.scan(shape, others) == (None if second is None else second.id)


def _fits(free: Resource, shape: Shape) -> bool:
    return all(quantity <= free.get(kind, 0) for kind, quantity in shape.wanted)


def _amount(random: Random, of: Resource) -> Resource:
    return {kind: int(random.random() * quantity) for kind, quantity in of.items()}


class Workload:
    """Random changes of the nodes, as the planner makes them."""

    def __init__(self, nodes: Nodes, seed: int, count: int) -> None:
        self.nodes = nodes
        self.random = Random(seed)  # noqa: S311 - a repeatable workload, no secret
        self.taken: list[tuple[NodeView, Resource]] = []
        self._number = 0
        for _ in range(count):
            self.add()

    def any(self) -> NodeView:
        views = list(self.nodes.index.views.values())
        return views[int(self.random.random() * len(views))]

    def add(self) -> None:
        self._number += 1
        size = SIZES[int(self.random.random() * len(SIZES))]
        self.nodes.add(f"n{self._number:04}", size)

    def remove(self) -> None:
        """One stays, so that there is always something to change."""
        if len(self.nodes.index.views) == 1:
            return
        view = self.any()
        self.taken = [(taken, amount) for taken, amount in self.taken if taken is not view]
        self.nodes.index.discard(view)

    def come_back(self) -> None:
        view = self.any()
        self.taken = [(taken, amount) for taken, amount in self.taken if taken is not view]
        self.nodes.index.discard(view)
        self.nodes.add(view.id, view.node.capacity)

    def take(self) -> None:
        view = self.any()
        amount = _amount(self.random, view.node.capacity)
        self.nodes.index.take(view, amount)
        self.taken.append((view, amount))

    def give_back(self) -> None:
        if self.taken:
            view, amount = self.taken.pop(int(self.random.random() * len(self.taken)))
            self.nodes.index.give_back(view, amount)

    def refresh(self) -> None:
        """Another size, drained or opened again."""
        view = self.any()
        view.node.drained = self.random.random() < 0.3
        view.node.capacity = SIZES[int(self.random.random() * len(SIZES))]
        self.nodes.index.refresh(view, _amount(self.random, view.node.capacity))
        self.taken = [(taken, amount) for taken, amount in self.taken if taken is not view]

    def step(self) -> None:
        moves = (self.take, self.take, self.take, self.give_back, self.give_back, self.refresh)
        rare = (self.add, self.remove)
        moves_or_rare = rare if self.random.random() < 0.1 else moves
        moves_or_rare[int(self.random.random() * len(moves_or_rare))]()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("steps", [1, 5])
@ranges.each("seed", 100, usual=3)
def test_random_changes_of_a_few_nodes(policy: str, steps: int, seed: int) -> None:
    nodes = Nodes(policy, WEIGHTS)
    workload = Workload(nodes, seed, 9)
    for _ in range(250 // steps):
        for _ in range(steps):
            workload.step()
        nodes.check()
        nodes.check_fits()


@pytest.mark.parametrize("policy", POLICIES)
def test_each_node_moves_once_however_often_it_changed(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    moves: list[str] = []

    def move(runs: NodeRuns, view: NodeView) -> None:
        moves.append(view.id)
        original(runs, view)

    original = NodeRuns.move
    monkeypatch.setattr(NodeRuns, "move", move)
    nodes = Nodes(policy, WEIGHTS)
    views = [nodes.add(f"n{number}", {"vcore": 10}) for number in range(5)]
    for number, view in enumerate(views[:3]):
        for _ in range(2 + number):
            nodes.index.take(view, {"vcore": 1})
    assert moves == []
    nodes.check()
    assert moves == ["n0", "n1", "n2"]
    nodes.check()
    assert moves == ["n0", "n1", "n2"]


@pytest.mark.parametrize("policy", POLICIES)
def test_random_changes_of_many_nodes(policy: str) -> None:
    """Enough for several runs, which split, shrink and go."""
    nodes = Nodes(policy, {"vcore": 2.0, "gpu": 0.5, "memory": 0.0})
    workload = Workload(nodes, 99, 450)
    assert len(nodes.index.runs._runs) > 2
    for number in range(1500):
        workload.step()
        if not number % 25:
            nodes.check()
            nodes.check_fits()
    while len(nodes.index.views) > 1:
        workload.remove()
    nodes.check()
    nodes.check_fits()


@pytest.mark.parametrize(("policy", "own"), list(permutations(POLICIES, 2)))
@pytest.mark.parametrize("count", [3, 9, 150])
def test_an_order_of_ones_own_follows_random_changes(policy: str, own: str, count: int) -> None:
    """Searches come seldom, so that nodes leave and come back under their names in between."""
    nodes = Nodes(policy, WEIGHTS)
    workload = Workload(nodes, count, count)
    for number in range(600):
        workload.step()
        if not number % 7:
            workload.come_back()
        if not number % 5:
            nodes.check_own(own)
        if number == 300:
            nodes.weights = {"vcore": 2.0, "gpu": 0.5, "memory": 0.0}
            nodes.index.set_order(NODE_ORDERS[policy], nodes.weights)
    nodes.check()
    nodes.check_fits()


@pytest.mark.parametrize("policy", POLICIES)
def test_filling_the_cluster_with_equal_asks(policy: str) -> None:
    """The path of every allocation: find a node, take from it, until there is no room."""
    nodes = Nodes(policy, WEIGHTS)
    for number in range(350):
        nodes.add(f"n{number:04}", {"vcore": 3, "memory": 10})
    shape = _shape(vcore=2)
    expected = 0
    while (found := nodes.index.first_fit(shape)) is not None:
        expected += 1
        nodes.index.take(found, {"vcore": 2})
    assert expected == 350
    nodes.check()
    nodes.index.give_back(nodes.index.views["n0007"], {"vcore": 2})
    again = nodes.index.first_fit(shape)
    assert again is nodes.index.views["n0007"]


def test_another_policy_turns_the_order_round() -> None:
    nodes = Nodes("fair", WEIGHTS)
    for number in range(250):
        view = nodes.add(f"n{number:04}", {"vcore": 1000})
        nodes.index.take(view, {"vcore": number})
    nodes.check()
    nodes.policy = "binpacking"
    nodes.index.set_order(NODE_ORDERS["binpacking"], WEIGHTS)
    nodes.check()
    nodes.check_fits()


def test_what_nobody_offers_fits_nowhere_and_nothing_fits_everywhere() -> None:
    nodes = Nodes("fair", WEIGHTS)
    assert nodes.index.first_fit(_shape()) is None
    nodes.add("n1", {"vcore": 1})
    assert nodes.index.first_fit(_shape(gpu=1)) is None
    everywhere = nodes.index.first_fit(_shape(gpu=0))
    assert everywhere is nodes.index.views["n1"]


@pytest.mark.parametrize("policy", POLICIES)
def test_an_overcommitted_node_offers_nothing(policy: str) -> None:
    nodes = Nodes(policy, WEIGHTS)
    nodes.index.take(nodes.add("n1", {"vcore": 1}), {"vcore": 5})
    nodes.add("n2", {"vcore": 1})
    found = nodes.index.first_fit(_shape(vcore=1))
    assert found is nodes.index.views["n2"]
    nodes.check()
