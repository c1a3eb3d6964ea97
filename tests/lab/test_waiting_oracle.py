"""All ways to ask why asks wait tell the same."""

import pytest

from yunikorn_actors.lab.case import parse_case
from yunikorn_actors.lab.mutants.mutant import Mutant, Target
from yunikorn_actors.lab.oracles.waiting_oracle import Waiting
from yunikorn_actors.lab.run_schedule import play
from yunikorn_actors.planning import reasons, waiting_sums
from yunikorn_actors.planning.why import explain, victim_objections, waiting_counts

CASE = """\
name: work waits for many things
queues:
  partitions:
  - name: default
    queues:
    - name: root
      submitacl: "*"
      queues:
      - {name: small, resources: {max: {vcore: 1}}}
      - {name: owed, resources: {guaranteed: {vcore: 3}}}
      - name: resting
        properties:
          {application.unschedasks.backoff: "1", application.unschedasks.backoff.delay: 20s}
      - name: any
steps:
- create_node: {id: n1, capacity: {vcore: 4000}}
- add_app: {id: filling, queue: root.any}
- ask: {app: filling, key: fill, resource: {vcore: 1000}, count: 4}
- add_app: {id: bounded, queue: root.small}
- ask: {app: bounded, key: over, resource: {vcore: 2000}, count: 2}
- add_app: {id: claiming, queue: root.owed}
- ask: {app: claiming, key: claim, resource: {vcore: 1000}, count: 2}
- add_app: {id: large, queue: root.resting}
- ask: {app: large, key: large, resource: {vcore: 3000}, count: 3}
"""


def _mutant(where: Target, old: str, new: str) -> Mutant:
    return Mutant("one", "", "something else is told of what waits", where, old, new)


MUTANTS = {
    "the sums of what waits are": _mutant(
        waiting_sums._counts, "app.waits[kind] - opened", "app.waits[kind]"
    ),
    "counted by cause": _mutant(
        waiting_counts._Count._count, "self._causes[obstacle.cause.value] += 1", "pass"
    ),
    "and it costs": _mutant(
        victim_objections.cost,
        "allocations=sum(len(victim.allocations) for victim in units)",
        "allocations=1 + len(units)",
    ),
    "stays": _mutant(victim_objections.against, "allocation.uuid not in named", "True"),
    "are at": _mutant(explain._of_waiting, "line.place_of(ask)", "1"),
    "the report of": _mutant(reasons._lines, ": {obstacle.text}", ""),
}


def _played(text: str) -> str:
    case = parse_case(text, "waiting.yaml")
    outcome = play(case, case.tape(), (Waiting(one_in=1),))
    return "" if outcome.violation is None else outcome.violation.text


def test_all_ways_tell_the_same() -> None:
    assert not _played(CASE)


@pytest.mark.parametrize("says", MUTANTS)
def test_what_is_told_in_one_way_alone_is_found(says: str) -> None:
    with MUTANTS[says].applied():
        assert says in _played(CASE)


BEHIND = """\
name: one that no node could hold stands behind one that ends the pass of its gate
queues:
  partitions:
  - queues:
    - name: root
      submitacl: '*'
      queues: [{name: a, properties: {application.sort.policy: fcfs}}]
steps:
- create_node: {id: n1, capacity: {vcore: 2000, memory: 1}}
- create_node: {id: n2, capacity: {vcore: 2000}}
- add_app: {id: app-4, queue: root.a}
- add_app: {id: app-5, queue: root.a}
- ask: {app: app-5, key: job1, resource: {vcore: 0, memory: 0}}
- ask: {app: app-4, key: job2-1, resource: {memory: 2}}
- ask: {app: app-4, key: job2-2, resource: {memory: 1}}
- ask: {app: app-5, key: job5, resource: {vcore: 4000}}
- ask: {app: app-5, key: job5, resource: {vcore: 4000}}
"""


def test_one_behind_a_gate_that_fits_nowhere_may_be_told_as_held() -> None:
    """A list looks at no node, so it tells what comes behind the nodes."""
    assert not _played(BEHIND)
