"""Nodes are held to what their resource manager said of them."""

import pytest

from yunikorn_actors.lab.case import parse_case
from yunikorn_actors.lab.mutants.mutant import Mutant
from yunikorn_actors.lab.oracles.run_oracles import oracles
from yunikorn_actors.lab.run_schedule import play
from yunikorn_actors.machines.context import nodes

STEPS = """\
name: a node that is not ready
steps:
- create_node: {id: n1, capacity: {vcore: 4}, attributes: {ready: 'false', rack: r1}}
- update_node: {id: n1, attributes: {rack: r2}}
- drain_node: n1
- undrain_node: n1
- update_node: {id: n1, occupied: {vcore: 1}}
- create_node: {id: n1, capacity: {vcore: 8}}
- remove_node: n1
- create_node: {id: n1, capacity: {vcore: 8}, draining: true}
"""
PLANTED = {
    "an update makes it ready": (nodes._replace_attributes, "otherwise=node.ready", "otherwise=True"),
    "to take a drain back makes it ready": (nodes.set_drained, "ready=node.ready", "ready=True"),
    "an update forgets its size": (
        nodes._update, "node.capacity if item.capacity is None", "{} if item.capacity is None",
    ),
    "a drain from the start is forgotten": (
        nodes._create, "item.action is ActionFromRM.CREATE_DRAIN", "False",
    ),
}  # fmt: skip


@pytest.mark.parametrize("topology", ["proposing", "fused"])
def test_a_sound_core_is_as_reported(topology: str) -> None:
    case = parse_case(STEPS, "nodes.yaml", topology)  # type: ignore[arg-type]
    assert play(case, case.tape(), oracles()).ok


@pytest.mark.parametrize("name", PLANTED)
def test_a_node_that_is_otherwise_is_named(name: str) -> None:
    where, old, new = PLANTED[name]
    case = parse_case(STEPS, "nodes.yaml")
    with Mutant(name, "", "", where, old, new).applied():
        violation = play(case, case.tape(), oracles()).violation
    assert violation is not None
    assert violation.text.startswith("G01: of n1 "), violation.text
