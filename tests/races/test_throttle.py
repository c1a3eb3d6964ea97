"""What holds preemption back: a budget, a cooldown, a time to end, and nobody takes back what was taken.

The rules themselves stand in scenario files; here is what a file cannot say.
"""

import random

import pytest
import ranges
from confirming import Confirming, Victims, confirming_lab, policy
from restarting import Restarted
from support import Lab

from yunikorn_actors import si
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.state.dump import snapshot
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.snapshot import image_of, restore

PUSHY = {"preemption_policy": policy()}
EVERY = pytest.mark.parametrize("topology", TOPOLOGIES)


def two(properties: str, guaranteed: int = 4) -> str:
    return (
        "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: ["
        f"{{name: rich, properties: {{{properties}}}}}, "
        "{name: poor, properties: {preemption.delay: 1s}, "
        f"resources: {{guaranteed: {{vcore: {guaranteed}m}}}}}}]}}]}}]"
    )


def contest(properties: str, topology: TopologyName = "proposing", at_once: bool = True) -> Lab:
    """Four small parts of `rich` fill the node; `poor` wants all four."""
    lab = confirming_lab(two(properties), topology=topology, at_once=at_once)
    lab.nodes(n1=4)
    lab.submit("rich", queue="root.rich")
    lab.submit("poor", queue="root.poor")
    lab.settle()
    lab.ask(*(f"r{number}" for number in range(4)), app="rich")
    lab.settle()
    lab.ask(*(f"p{number}" for number in range(4)), app="poor", **PUSHY)
    lab.advance(20)
    lab.settle()
    return lab


def gone(lab: Lab) -> int:
    return sum("PREEMPTED" in type_ for _, type_ in lab.rm.told("released"))


@EVERY
def test_what_a_budget_counts_is_in_image_and_dump(topology: TopologyName) -> None:
    lab = contest("preemption.budget: 2/10m", topology)
    assert 2 == gone(lab)
    again = PartitionState(lab.state.name)
    restore(again, image_of(lab.state))
    assert [2] == list(again.queues["root.rich"].preempted.values())
    assert snapshot(lab.state) == snapshot(again)
    assert snapshot(lab.state)["queues"]["root.rich"]["preempted"]


@EVERY
def test_a_budget_counts_on_after_a_restart_of_the_core(topology: TopologyName) -> None:
    former = contest("preemption.budget: 2/10m", topology)
    lab = Restarted(former, topology)
    assert [2] == list(lab.state.queues["root.rich"].preempted.values())


def test_a_log_keeps_no_more_than_its_window() -> None:
    lab = contest("preemption.budget: 1/1m")
    for _ in range(3):
        lab.advance(61)
        lab.settle()
    assert 4 == gone(lab)
    assert 1 == len(lab.state.queues["root.rich"].preempted), "only the last one counts"


def test_a_gang_whose_claim_a_budget_refused_claims_when_it_ends() -> None:
    """Nothing else happens until then."""
    lab = contest("preemption.budget: 2/10m")
    lab.submit("gang", queue="root.poor", placeholder_ask=si.Resource.of({"vcore": 2}))
    lab.withdraw("p2", "p3", app="poor")
    lab.settle()
    placeholder = {"placeholder": True, "task_group_name": "g"}
    lab.ask("h0", "h1", app="gang", **placeholder, **PUSHY)
    lab.advance(30)
    lab.settle()
    assert 2 == gone(lab), "vacuous: the budget refused nothing"
    lab.advance(600)
    lab.settle()
    assert 4 == gone(lab)


def test_a_log_ends_with_its_budget() -> None:
    lab = contest("preemption.budget: 2/10m")
    lab.configure(two("preemption.budget: none"))
    lab.settle()
    assert {} == lab.state.queues["root.rich"].preempted


@EVERY
def test_a_victim_learns_how_long_it_has(topology: TopologyName) -> None:
    lab = contest("preemption.grace: 30s", topology, at_once=False)
    assert isinstance(lab.rm, Confirming)
    assert [30_000] * 4 == [item.grace_ms for item in lab.rm.outstanding]
    assert all(item.message.endswith("; it has 30 s to end") for item in lab.rm.outstanding)
    assert b"graceMs" not in si.to_json(lab.rm.outstanding[0])
    lab.rm.confirm_all()
    lab.settle()
    assert 4 == sum(key.startswith("p") for key in lab.running()), "who ends earlier is not awaited"


def test_without_a_grace_nothing_is_said_of_it() -> None:
    lab = contest("preemption.delay: 1s", at_once=False)
    assert isinstance(lab.rm, Confirming)
    assert {0} == {item.grace_ms for item in lab.rm.outstanding}
    assert not any("to end" in item.message for item in lab.rm.outstanding)


def test_a_core_in_which_a_budget_is_used_up_comes_to_rest() -> None:
    lab = contest("preemption.budget: 0/10m")
    before = lab.simulator.delivered
    lab.advance(3600)
    lab.settle()
    assert 0 == gone(lab)
    assert lab.simulator.delivered - before < 50, "nobody waits for a time that never comes"


def racing(seed: int, schedulers: int = 1) -> tuple[Lab, Victims]:
    """The time to preempt comes and a victim ends by itself: who is first is up to the seed."""
    victims = Victims()
    lab = confirming_lab(
        two("preemption.budget: 2/10m"), seed=seed, checkers=(victims,), schedulers=schedulers
    )
    lab.nodes(n1=2, n2=2)
    lab.submit("rich", queue="root.rich")
    lab.submit("poor", queue="root.poor")
    lab.settle()
    lab.ask(*(f"r{number}" for number in range(4)), app="rich")
    lab.settle()
    lab.ask(*(f"p{number}" for number in range(4)), app="poor", **PUSHY)
    lab.let_timers_fire(2)
    for _ in range(seed // 4):
        lab.simulator.step()
    (uuid,) = [uuid for uuid, key in lab.rm.running.items() if key == "r2"]
    lab.release("r2", app="rich", uuid=uuid)
    lab.advance(30)
    lab.settle()
    return lab, victims


@pytest.mark.parametrize("schedulers", [1, 2])
def test_what_was_refused_counts_in_no_budget(schedulers: int) -> None:
    refused = 0
    for seed in range(1, 9):
        lab, victims = racing(seed, schedulers)
        spent = lab.state.queues["root.rich"].preempted
        assert len(victims.marked) == sum(spent.values()) == 2, f"seed {seed}"
        assert sum(key.startswith("p") for key in lab.running()) in {2, 3}, f"seed {seed}"
        refused += lab.races.refusals["VICTIM_GONE"]
    assert refused, "vacuous: no proposal named a victim that had ended"


# -- nobody takes back what was taken


def drawn(rng: random.Random) -> str:
    """Draw a tree with guarantees of two types, priorities and fences."""

    def queue(name: str, depth: int) -> tuple[str, dict[str, int]]:
        below = [
            queue(f"{name}{number}", depth - 1)
            for number in range(rng.randint(1, 3) if depth and rng.random() < 0.6 else 0)
        ]
        due: dict[str, int] = {}
        for kind in ("vcore", "memory"):
            least = sum(its.get(kind, 0) for _, its in below)
            if least or rng.random() < 0.6:
                due[kind] = least + rng.randint(1, 3)
        parts = [f"name: {name}"]
        if due:
            texts = (f"{kind}: {n}{'m' * (kind == 'vcore')}" for kind, n in due.items())
            parts.append(f"resources: {{guaranteed: {{{', '.join(texts)}}}}}")
        properties = ["preemption.delay: 1s"]
        if rng.random() < 0.3:
            properties.append(f"priority.offset: {rng.choice('12')}")
        parts.append(f"properties: {{{', '.join(properties)}}}")
        if below:
            parts.append(f"queues: [{', '.join(text for text, _ in below)}]")
        return f"{{{', '.join(parts)}}}", due

    below = ", ".join(queue(name, 1)[0] for name in "abc")
    return (
        "partitions: [{name: default, queues: "
        f"[{{name: root, submitacl: '*', queues: [{below}]}}]}}]"
    )


class Stubborn(Confirming):
    """Asks again at once for whatever is preempted."""

    asked = 0

    def confirm_all(self) -> None:
        again = [(item, self.running[item.uuid]) for item in self.outstanding]
        super().confirm_all()
        for item, was in again:
            self.asked += 1
            self.lab.request(
                asks=(
                    si.AllocationAsk(
                        allocation_key=f"again-{self.asked}",
                        application_id=item.application_id,
                        resource_ask=was.resource_per_alloc,
                        max_allocations=1,
                        priority=was.priority,
                        **PUSHY,
                    ),
                )
            )


@ranges.seeds(300, usual=6)
def test_nobody_takes_back_what_was_taken(seeds: range) -> None:
    marked = 0
    for seed in seeds:
        rng = random.Random(seed)  # noqa: S311 - which states, no secrets
        victims, rm = Victims(), Stubborn()
        lab = confirming_lab(drawn(rng), seed=seed, rm=rm, checkers=(victims,))
        for node in range(rng.randint(1, 3)):
            size = si.Resource.of({"vcore": rng.randint(2, 6), "memory": rng.randint(2, 6)})
            info = si.NodeInfo(
                node_id=f"n{node}", action=si.ActionFromRM.CREATE, schedulable_resource=size
            )
            lab.simulator.update_node(si.NodeRequest(rm_id="rm-1", nodes=(info,)))
        lab.settle()
        leaves = [path for path, it in lab.state.queues.items() if it.is_leaf]
        for number, path in enumerate(rng.sample(leaves, len(leaves))):
            lab.submit(f"app-{number}", queue=path)
            lab.settle()
            for ask in range(rng.randint(1, 5)):
                size = si.Resource.of({"vcore": rng.randint(0, 3), "memory": rng.randint(1, 3)})
                lab.ask(
                    f"a-{number}-{ask}",
                    app=f"app-{number}",
                    resource_ask=size,
                    priority=rng.randint(0, 1),
                    **PUSHY,
                )
            lab.advance(2)
            lab.settle()
        lab.advance(600)
        lab.settle()
        took: set[tuple[str, str]] = set()
        for fact in victims.marked:
            pair = (fact.beneficiary.application_id, fact.application_id)
            assert pair[::-1] not in took, f"seed {seed}: {pair} takes back"
            took.add(pair)
        marked += len(victims.marked)
    assert marked, "vacuous: nobody was preempted"
