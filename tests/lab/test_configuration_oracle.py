"""What is read of a configuration is compared with what is written."""

import pytest

from yunikorn_actors.config import build, properties
from yunikorn_actors.lab.case import parse_case
from yunikorn_actors.lab.mutants.mutant import Mutant, Target
from yunikorn_actors.lab.oracles.configuration_oracle import Configurations
from yunikorn_actors.lab.run_schedule import play

CASE = """\
name: much is written
queues:
  partitions:
  - name: default
    nodesortpolicy: {type: binpacking, resourceweights: {memory: 2.0}}
    preemption: {quotapreemptionenabled: true}
    placementrules:
    - {name: fixed, value: root.a, filter: {type: deny, users: [bob]}}
    queues:
    - name: root
      submitacl: "*"
      queues:
      - name: a
        resources: {guaranteed: {vcore: 1, gpu: 4}, max: {vcore: 2, memory: "10"}}
        properties: {preemption.budget: 30%/10s, preemption.cooldown: 2s, priority.policy: fence}
        limits: [{limit: drawn, users: [ann], maxapplications: 2, maxresources: {vcore: 1}}]
      - {name: b, parent: true, childtemplate: {maxapplications: 1}}
steps:
- advance: 1s
- config: {queues: {partitions: [{name: default, queues: [{name: root, queues: [{name: c}]}]}]}}
"""


def _mutant(where: Target, old: str, new: str) -> Mutant:
    return Mutant("one", "", "a configuration is read wrongly", where, old, new)


MUTANTS = {
    "the node order": _mutant(build._node_sort, "written.type or default.policy", "default.policy"),
    "the type of rule fixed": _mutant(
        build._filter, "written.type.lower() or FilterConfig().type", "FilterConfig().type"
    ),
    "preemption.budget of root.a": _mutant(properties._budget, "bool(found[2])", "False"),
    "resources of a limit of root.a": _mutant(
        build._limit, "resource_of(written.maxresources)", "None"
    ),
    "that root.b has a template": _mutant(build._template, "written.maxapplications", "0"),
}


def _played(text: str) -> str:
    case = parse_case(text, "written.yaml")
    outcome = play(case, case.tape(), (Configurations(),))
    return "" if outcome.violation is None else outcome.violation.text


def test_what_is_read_is_what_is_written() -> None:
    assert not _played(CASE)


@pytest.mark.parametrize("says", MUTANTS)
def test_what_is_read_wrongly_is_found(says: str) -> None:
    with MUTANTS[says].applied():
        # A text that was read before is not read again.
        found = _played(CASE.replace("limit: drawn", f"limit: {says}"))
    assert "a configuration is read wrongly" in found
    assert says in found


@pytest.mark.parametrize(
    ("written", "as_people_do"),
    [("{vcore: 1, gpu: 4}", "{vcore: 500m, gpu: 4}"), ("2s", "1m30s"), ("name: a", "name: A")],
)
def test_what_only_people_write_is_left_alone(written: str, as_people_do: str) -> None:
    assert not _played(CASE.replace(written, as_people_do, 1))
