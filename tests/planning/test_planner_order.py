"""The planner decides what trying everything in sorted order would decide."""

from random import Random

import pytest
from trying import Decision, decide, expected
from written import Written


class Cluster:
    """Grows and shrinks a partition at random."""

    def __init__(self, seed: int, *, leaves: tuple[str, ...], nodes: str) -> None:
        self.random = Random(seed)  # noqa: S311 - a repeatable workload, no secret
        self.leaves = leaves
        self.written = Written(*leaves)
        self.written.node_order(nodes)
        self._asks = 0
        for number in range(4):
            vcore, memory = self.whole(4, 12), self.whole(10, 40)
            self.written.node(f"n{number}", vcore=vcore, memory=memory)
        for number in range(7):
            self.written.add(f"app-{number}", queue=leaves[number % len(leaves)])

    def whole(self, low: int, high: int) -> int:
        return low + int(self.random.random() * (high - low + 1))

    def ask(self) -> None:
        self._asks += 1
        self.written.ask(
            f"k{self._asks}",
            f"app-{self.whole(0, 6)}",
            repeats=self.whole(1, 3),
            created_ns=self.whole(1, 50),
            priority=self.whole(0, 2),
            vcore=self.whole(1, 5),
            memory=self.whole(0, 2),
        )

    def release_some(self) -> None:
        for app in tuple(self.written.state.applications.values()):
            for uuid in tuple(app.allocations):
                if self.random.random() < 0.4:
                    self.written.release(uuid, app.id)

    def compare(self) -> int:
        """Compare a whole pass, then commit the first part of one; return its length."""
        wanted = expected(self.written.state)
        assert wanted == decide(self.written)
        proposals = self.written.plan(self.whole(1, 8))
        decided = [(p.application_id, p.key, p.node_id) for p in proposals]
        assert wanted[: len(proposals)] == decided
        for proposal in proposals:
            self.written.commit(proposal)
        assert {} == self.written.planner.in_flight
        return len(proposals)

    def run(self) -> int:
        placed = 0
        for _ in range(3):
            for _ in range(6):
                self.ask()
            placed += self.compare()
            self.release_some()
        return placed


POLICIES: dict[str, dict[str, str]] = {
    "fifo": {},
    "fifo, age before priority": {"application.sort.priority": "disabled"},
    "fair": {"application.sort.policy": "fair"},
    "fair, usage before priority": {
        "application.sort.policy": "fair",
        "application.sort.priority": "disabled",
    },
}


@pytest.mark.parametrize("nodes", ["fair", "binpacking"])
@pytest.mark.parametrize("policy", POLICIES)
def test_applications_and_asks_of_one_leaf(policy: str, nodes: str) -> None:
    placed = 0
    for seed in range(50):
        cluster = Cluster(seed, leaves=("root.a",), nodes=nodes)
        limits = {"guaranteed": {"vcore": 5, "memory": 9}, "max": {"vcore": 24}}
        cluster.written.reconfigure("root.a", properties=POLICIES[policy], **limits)
        placed += cluster.run()
    assert placed > 400, "vacuous: hardly anything was placed"


@pytest.mark.parametrize("nodes", ["fair", "binpacking"])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_tree_of_queues(policy: str, nodes: str) -> None:
    """The leaf below two parents competes by what its parents use."""
    placed = 0
    for seed in range(50):
        leaves = ("root.a", "root.b", "root.p.c", "root.p.d")
        cluster = Cluster(seed, leaves=("root.a",), nodes=nodes)
        written = cluster.written = Written("root.a", "root.b")
        written.node_order(nodes)
        written.queue("root.p", leaf=False, max={"vcore": 30})
        properties = POLICIES[policy]
        written.queue("root.p.c", properties=properties, guaranteed={"vcore": 5, "memory": 9})
        written.queue("root.p.d", properties=properties, max={"vcore": 9})
        for number in range(4):
            vcore, memory = cluster.whole(4, 12), cluster.whole(10, 40)
            written.node(f"n{number}", vcore=vcore, memory=memory)
        for number in range(7):
            written.add(f"app-{number}", queue=leaves[number % len(leaves)])
        placed += cluster.run()
    assert placed > 400, "vacuous: hardly anything was placed"


def test_deciding_in_small_steps_is_deciding_at_once() -> None:
    for seed in range(30):
        cluster = Cluster(seed, leaves=("root.a",), nodes="fair")
        cluster.written.reconfigure("root.a", properties=POLICIES["fair"])
        for _ in range(12):
            cluster.ask()
        at_once = decide(cluster.written)
        in_steps: list[Decision] = []
        while proposals := cluster.written.plan(1):
            in_steps.extend((p.application_id, p.key, p.node_id) for p in proposals)
        assert at_once == in_steps
        assert len(in_steps) == len(cluster.written.planner.in_flight)
