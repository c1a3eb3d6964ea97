"""Before a decision, in it and after it the same: who goes, in which unit, at what cost.

In drawn states of gangs and single work with guarantees, budgets, cooldowns and priorities. REST and
the page answer with what `explain` returns, field by field.
"""

import random
from collections.abc import Iterator

import msgspec
import ranges
from confirming import Victims, confirming_lab, policy
from support import Lab

from yunikorn_actors import si
from yunikorn_actors.machines.topology import TOPOLOGIES
from yunikorn_actors.planning.reasons import Preempting, Why

_PROPERTIES = (
    "preemption.budget: 3/1h", "preemption.budget: 50%/1h", "preemption.cooldown: 45s",
    "preemption.cooldown: 1h", "preemption.unit: application", "preemption.unit: allocation",
    "preemption.policy: disabled", "preemption.grace: 30s",
)  # fmt: skip


def _queues(rng: random.Random) -> str:
    queues = []
    for name in ("one", "two", "three"):
        chosen = ", ".join(rng.sample(_PROPERTIES, 1)) if rng.random() < 0.6 else ""
        given = f", resources: {{guaranteed: {{vcore: {rng.randint(1, 6)}m}}}}"
        queues.append(f"{{name: {name}, properties: {{{chosen}}}{rng.choice(('', given))}}}")
    queues.append(
        "{name: poor, properties: {preemption.delay: 60s}, "
        f"resources: {{guaranteed: {{vcore: {rng.randint(1, 8)}m}}}}}}"
    )
    below = ", ".join(queues)
    root = f"{{name: root, submitacl: '*', queues: [{below}]}}"
    return f"partitions: [{{name: default, queues: [{root}]}}]"


def _work(lab: Lab, rng: random.Random, name: str) -> None:
    style, count = rng.choice(("Hard", "Hard", "Soft", "")), rng.randint(1, 4)
    needs = max(1, count - rng.randint(0, 1))
    gang = {"gang_scheduling_style": style, "placeholder_ask": si.Resource.of({"vcore": needs})}
    lab.submit(name, queue=f"root.{rng.choice(('one', 'two', 'three'))}", **(gang if style else {}))
    parts = {"placeholder": True, "task_group_name": "g"} if style else {}
    keys = [f"{name}-{number}" for number in range(count)]
    lab.ask(*keys, app=name, priority=rng.choice((0, 0, 0, 9)), preemption_policy=policy(), **parts)
    lab.settle()
    lab.advance(rng.choice((1, 20)))


def draw(seed: int) -> tuple[Lab, Victims]:
    rng = random.Random(seed)  # noqa: S311 - which states, no secrets
    victims = Victims()
    lab = confirming_lab(
        _queues(rng), at_once=False, topology=TOPOLOGIES[seed % 2], checkers=(victims,)
    )
    lab.nodes(**{f"n{number}": rng.randint(3, 6) for number in range(rng.randint(1, 3))})
    for number in range(rng.randint(2, 6)):
        _work(lab, rng, f"app-{number}")
    lab.submit("poor", queue="root.poor")
    lab.settle()
    count, size = rng.randint(1, 4), rng.randint(1, 2)
    asks = si.AllocationAsk(
        application_id="poor", allocation_key="k", max_allocations=count, priority=1,
        resource_ask=si.Resource.of({"vcore": size}), preemption_policy=policy(),
    )  # fmt: skip
    lab.request(asks=(asks,))
    lab.advance(59)
    return lab, victims


def _said(lab: Lab, app: str, key: str) -> Preempting:
    why = lab.simulator.explain(app, key)
    assert isinstance(why, Why)
    assert why.preempting is not None
    return why.preempting


def _units(its: Preempting) -> dict[str, str]:
    return {it.key: it.unit for it in its.goes}


def _costs(all_of: Iterator[Preempting]) -> tuple[int, int]:
    costs = [its.cost for its in all_of if its.cost is not None]
    return sum(it.allocations for it in costs), sum(it.applications for it in costs)


@ranges.seeds(400, usual=8)
def test_what_would_go_goes_and_says_so(seeds: range) -> None:
    went = whole = 0
    for seed in seeds:
        lab, victims = draw(seed)
        ahead = lab.simulator.explain("poor", "k")
        if not isinstance(ahead, Why) or ahead.preempting is None:
            continue
        before = ahead.preempting
        lab.advance(1)
        for_it = [it for it in victims.marked if it.beneficiary.key == "k"]
        assert sorted(_units(before)) == sorted(it.key for it in for_it), f"seed {seed}"
        if not for_it:
            continue
        after = _said(lab, "poor", "k")
        of_victims = [_said(lab, it.application_id, it.key) for it in for_it]
        for its in (after, *of_victims):
            assert _units(its).items() <= _units(before).items(), f"seed {seed}"
        assert _units(after) == _units(before), f"seed {seed}"
        assert {(it.for_application_id, it.for_key) for it in of_victims} == {("poor", "k")}
        assert _costs(iter([after])) == _costs(iter([before])), f"seed {seed}"
        lab.advance(2)
        whom = "Preempted by k from application poor in root.poor"
        told = [it.object_id for it in lab.rm.records if it.message == whom]
        assert sorted(told) == sorted(_units(before)), f"seed {seed}"
        # Beside the answer in Python stands what REST makes of it.
        assert msgspec.convert(msgspec.to_builtins(after), Preempting) == after
        went += len(for_it)
        whole += _costs(iter([before]))[1]
    assert went > len(seeds) / 2, "vacuous: hardly anything goes"
    assert whole > len(seeds) / 12, "vacuous: hardly any application goes whole"


def test_of_several_that_wait_for_the_same_time_each_is_told_who_goes_for_all_of_them() -> None:
    """For one of them a small gang would do, for all of them the large one is the only one to go."""
    lab = confirming_lab(
        "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: rich}, "
        "{name: poor, properties: {preemption.delay: 30s}, resources: {guaranteed: {vcore: 4m}}}"
        "]}]}]"
    )
    lab.nodes(n1=6)
    for name, size in (("large", 4), ("small", 2)):
        gang = {"gang_scheduling_style": "Hard", "placeholder_ask": si.Resource.of({"vcore": size})}
        lab.submit(name, queue="root.rich", **gang)
        lab.settle()
        parts = {"placeholder": True, "task_group_name": "g"}
        lab.ask(*(f"{name}-{number}" for number in range(size)), app=name, **parts)
        lab.settle()
    lab.submit("web", queue="root.poor")
    keys = [f"w{number}" for number in range(4)]
    lab.ask(*keys, app="web", preemption_policy=policy())
    lab.advance(29)
    for key in keys:
        why = lab.simulator.explain("web", key)
        assert isinstance(why, Why)
        assert why.preempting is not None
        assert {it.application_id for it in why.preempting.goes} == {"large"}
    lab.advance(2)
    assert lab.running() == [*(f"small-{number}" for number in range(2)), *keys]
