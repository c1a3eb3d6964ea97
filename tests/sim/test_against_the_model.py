"""The core does what a model of the rules allows, and nothing waits that it says must go on.

The model and the scripts stand in `tests/differential`; many more of them are run by
`python -m tests.differential`.
"""

from collections import Counter
from typing import Any

import pytest
import ranges
import yaml
from differential.runs import judged, kind_of, shrunk
from differential.scripts import drawn_script

from yunikorn_actors.config.node_order import NODE_ORDERS
from yunikorn_actors.lab.scenario_documents import written
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.scenario.document import parse_scenario
from yunikorn_actors.state.allocations import Ask, AskOrder

SCRIPTS = 300
PARTS = 12


@ranges.each("part", PARTS, usual=1)
def test_drawn_scripts_in_both_topologies(part: int) -> None:
    checks: Counter[str] = Counter()
    undecided: Counter[str] = Counter()
    for number in range(1 + part, SCRIPTS + 1, PARTS):
        topology = TOPOLOGIES[number // PARTS % 2]
        verdict = judged(drawn_script(number), topology, number if number % 4 > 1 else 0)
        assert not verdict.difference, (number, topology)
        checks += verdict.checks
        undecided += verdict.undecided
    assert checks["order"] > SCRIPTS // 2, "vacuous: hardly anybody could have been first"
    assert min(checks[kind] for kind in ("gang", "swap", "preempt", "victim", "reservation")) > 0
    assert undecided.total() < checks.total() / 100, "hardly anything may be left open"


@pytest.mark.parametrize("order", NODE_ORDERS)
def test_drawn_scripts_by_every_node_order(order: str) -> None:
    checks: Counter[str] = Counter()
    for number in range(1, 9):
        script = drawn_script(number)
        for partition in script["queues"]["partitions"]:
            partition["nodesortpolicy"] = {**partition.get("nodesortpolicy", {}), "type": order}
        verdict = judged(script, TOPOLOGIES[number % 2], number)
        assert not verdict.difference, number
        checks += verdict.checks
    assert checks["node"] > 25, "vacuous: hardly any node was chosen among several"


URGENT = """
name: two asks of one application, and one of them is urgent
steps:
- add_app: {id: app}
- ask: {app: app, key: plain, resource: {vcore: 2000}}
- ask: {app: app, key: urgent, resource: {vcore: 2000}, priority: 1}
- advance: 1s
- create_node: {id: n1, capacity: {vcore: 4000}}
- advance: 1s
"""


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_planted_fault_is_found_and_made_small(
    monkeypatch: pytest.MonkeyPatch, topology: TopologyName
) -> None:
    """The least important ask goes first."""
    script: dict[str, Any] = yaml.safe_load(URGENT)
    assert not judged(script, topology).difference
    monkeypatch.setattr(
        Ask, "order", lambda ask: AskOrder(ask.spec.priority, ask.created_ns, ask.sequence)
    )
    verdict = judged(script, topology)
    assert "placed app/plain, but app/urgent comes first" in verdict.difference
    kind = kind_of(verdict.difference)
    small = shrunk(script, lambda it: kind_of(judged(it, topology).difference) == kind)
    assert len(small["steps"]) == len(script["steps"]) - 2
    parse_scenario(written(small), "small.yaml")
