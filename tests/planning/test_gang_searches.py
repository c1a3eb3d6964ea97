"""How often a cluster is searched for a gang of several sizes that finds no room."""

from pathlib import Path

import pytest
from confirming import confirming_lab, policy

from yunikorn_actors import si
from yunikorn_actors.lab.mutants.mutant import Mutant
from yunikorn_actors.planning.preemption.gang_claims import GangClaims
from yunikorn_actors.planning.preemption.scene import Scene
from yunikorn_actors.scenario.document import read_scenario
from yunikorn_actors.scenario.runner import RunOptions, run_scenario

NODES, GANGS = 50, 4
FILES = Path(__file__).parents[1] / "scenarios" / "preemption"


def test_no_set_is_searched_where_the_single_work_is_too_much_to_pack(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Single work of `batch` could make room, but for what `batch` is guaranteed."""
    searched: list[str] = []
    search = GangClaims._find_in_orders

    def counted(claims: GangClaims, *args: object) -> object:
        searched.append("all")
        return search(claims, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(GangClaims, "_find_in_orders", counted)
    lab = confirming_lab(
        "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: ["
        f"{{name: batch, resources: {{guaranteed: {{vcore: {3 * NODES - 4}m}}}}}}, {{name: gangs}},"
        " {name: web, properties: {preemption.delay: 1s}, resources: {guaranteed: {vcore: 20m}}}"
        "]}]}]"
    )
    lab.nodes(**{f"n{number}": 3 for number in range(NODES)})
    lab.submit("batch", queue="root.batch")
    gang = {"gang_scheduling_style": "Hard", "placeholder_ask": si.Resource.of({"vcore": 1})}
    for number in range(GANGS):
        lab.submit(f"gang{number}", queue="root.gangs", **gang)
    gang["placeholder_ask"] = si.Resource.of({"vcore": 10})
    lab.submit("web", queue="root.web", **gang)
    lab.settle()
    member = {"placeholder": True, "task_group_name": "t", "preemption_policy": policy()}
    lab.ask(*(f"b{number}" for number in range(3 * NODES)), app="batch", preemption_policy=policy())
    lab.settle()
    lab.nodes(**{f"g{number}": 1 for number in range(GANGS)})
    for number in range(GANGS):
        lab.ask(f"g{number}", app=f"gang{number}", **member)
    lab.settle()
    assert len(lab.running()) == 3 * NODES + GANGS
    lab.ask("small-0", "small-1", app="web", vcore=2, priority=5, **member)
    lab.ask("large-0", "large-1", app="web", vcore=3, priority=5, **member)
    lab.advance(10)
    assert len(lab.waiting()) == 4
    assert searched == ["all"]


def test_an_ask_that_only_waits_leaves_the_node_open_for_the_next() -> None:
    """In some orders a part of a gang is gone when the plan is made: one ask waits for the rest.

    Nothing is asked for that one, so the next finds room there, and no second gang goes.
    """
    scenario = read_scenario(FILES / "165-one-gang-goes-for-several-asks-of-an-asked-manager.yaml")
    closes = Mutant(
        id="closes",
        source="",
        wrong="An ask that only waits closes its node.",
        where=Scene.promise,
        old="not (waits or self.is_trial)",
        new="not self.is_trial",
    )
    seeds = range(30)

    def is_right() -> bool:
        return run_scenario(scenario, RunOptions(topology="proposing", seeds=seeds)).ok

    assert is_right()
    with closes.applied():
        assert not is_right(), "vacuous: in none of these orders an ask only waits"
