"""Schedulers that decide at once about the same gangs: whose victim a gang becomes is one decision.

Each scheduler plans as if it had the token, so they are in each other's way; that they were is
asserted.
"""

from collections import Counter

import pytest
import ranges
from confirming import Victims, confirming_lab, policy
from contesting import contest
from support import Lab

from yunikorn_actors import si
from yunikorn_actors.state.proposals import Refusal

CONFIG = (
    "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: research}, "
    + ", ".join(
        f"{{name: {name}, properties: {{preemption.delay: 1s}}, "
        "resources: {guaranteed: {vcore: 3m}}}"
        for name in ("left", "mid", "right")
    )
    + "]}]}]"
)
PUSHY = {"preemption_policy": policy()}


def play(seed: int, schedulers: int) -> tuple[Lab, Victims]:
    """Three hard gangs of three fill the node; three queues want two, one and three."""
    victims = Victims()
    lab = confirming_lab(
        CONFIG, seed=seed, schedulers=schedulers, checkers=(victims,), at_once=seed % 2 == 0
    )
    lab.nodes(n1=9)
    size = si.Resource.of({"vcore": 3})
    for name in ("a", "b", "c"):
        lab.submit(name, queue="root.research", placeholder_ask=size, gang_scheduling_style="Hard")
        lab.ask(*(f"{name}h{n}" for n in range(3)), app=name, task_group_name="g", placeholder=True)
    lab.settle()
    for name in ("left", "mid", "right"):
        lab.submit(name, queue=f"root.{name}")
    lab.settle()
    for name, count in (("left", 2), ("mid", 1), ("right", 3)):
        lab.ask(*(f"{name}{n}" for n in range(count)), app=name, **PUSHY)
    lab.advance(40)
    lab.settle()
    return lab, victims


@ranges.seeds(400, usual=5)
@pytest.mark.parametrize("schedulers", [2, 3])
def test_a_gang_is_the_victim_of_one(
    schedulers: int, seeds: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    contest(monkeypatch)
    refusals: Counter[str] = Counter()
    for seed in seeds:
        lab, victims = play(seed, schedulers)
        whom: dict[str, set[str]] = {}
        gone: Counter[str] = Counter()
        for fact in victims.marked:
            whom.setdefault(fact.application_id, set()).add(str(fact.beneficiary))
            gone[fact.application_id] += 1
        assert all(len(it) == 1 for it in whom.values()), f"seed {seed}: two have its members"
        assert set(gone.values()) == {3}, f"seed {seed}: {gone}"
        assert 2 == len(gone), f"seed {seed}: six are wanted, so two gangs of three go"
        refusals += lab.races.refusals
    assert refusals[Refusal.VICTIM_GONE] > len(seeds) / 4, (
        "vacuous: they were not in each other's way"
    )
