"""What is to be tried again and is not is found by a planner that is made anew, at rest."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from yunikorn_actors.lab.case import parse_case, read_case
from yunikorn_actors.lab.mutants.mutant import Mutant
from yunikorn_actors.lab.oracles.run_oracles import all_oracles, oracles
from yunikorn_actors.lab.run_schedule import Outcome, play
from yunikorn_actors.lab.tapes.tape import parse_tape
from yunikorn_actors.messages.scheduling import FactsAppended, ProposalRejected
from yunikorn_actors.planning.model.requeue import Requeue
from yunikorn_actors.state.facts import PreemptionDecided

SCENARIOS = Path(__file__).parents[1] / "scenarios"


class Planted(NamedTuple):
    where: Callable[..., Any]
    old: str
    new: str
    steps: str
    words: str


TWO_LEAVES = """\
  partitions:
  - queues:
    - name: root
      submitacl: '*'
      queues: [{name: a}, {name: b}]
"""
PLANTED = {
    "a guarantee by a reload": Planted(
        Requeue.measured, "preempting.leaves.update(dict.fromkeys(entitled))", "pass",
        f"""\
queues:
{TWO_LEAVES}
steps:
- create_node: {{id: n1, capacity: {{vcore: 2}}}}
- add_app: {{id: app-1, queue: root.a}}
- ask: {{app: app-1, key: work, resource: {{vcore: 1}}, count: 2}}
- add_app: {{id: app-2, queue: root.b}}
- ask: {{app: app-2, key: wants, resource: {{vcore: 1}}}}
- advance: 1m
- config: {{queues: {{partitions: [{{queues: [{{name: root, submitacl: '*', queues: [
    {{name: a}}, {{name: b, resources: {{guaranteed: {{vcore: 1}}}}}}]}}]}}]}}}}
""", "Preempt for app-2/wants",
    ),
    "an ask that comes of age": Planted(
        Requeue.time_came, "self.reserving.is_stale = True", "pass",
        f"""\
queues:
{TWO_LEAVES}
steps:
- create_node: {{id: n, count: 2, capacity: {{vcore: 2}}}}
- add_app: {{id: app-1, queue: root.a}}
- ask: {{app: app-1, key: work, resource: {{vcore: 1}}, count: 2}}
- ask: {{app: app-1, key: large, resource: {{vcore: 2}}}}
- advance: 1m
- add_app: {{id: app-2, queue: root.b}}
""", "Reserve for app-1/large",
    ),
}  # fmt: skip


def _play(planted: Planted) -> Outcome:
    case = parse_case(f"name: planted\n{planted.steps}", "planted.yaml")
    return play(case, case.tape(), oracles())


@pytest.mark.parametrize("name", PLANTED)
def test_a_sound_core_is_woken(name: str) -> None:
    outcome = _play(PLANTED[name])
    assert outcome.ok, outcome.violation


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_not_woken_is_named(name: str) -> None:
    planted = PLANTED[name]
    mutant = Mutant(name, "", "", planted.where, planted.old, planted.new)
    with mutant.applied():
        violation = _play(planted).violation
    assert violation is not None
    assert planted.words in violation.text, violation.text


REFUSED = """\
tape 2 of guarantee-of-the-parent.yaml sha256 {digest} on proposing, steps 0 2-3 5-6
restart core by 44540 after step 2
shrink node n1 after step 3
hold RunCycle(step 3) from scheduler to scheduler until after \
FactsAppended(ApplicationStateChanged a) from context to event_publisher
hold FactsAppended(NodeResized n1) from context to scheduler until after the end
hold ProposalRejected(NODE_FULL) from context to scheduler until after the end
"""


def test_victims_are_looked_for_again_when_placements_are_refused() -> None:
    """While they were on their way their room was counted as used, and no victims were enough."""
    case = read_case(SCENARIOS / "preemption/guarantee-of-the-parent.yaml")
    tape = parse_tape(REFUSED.format(digest=case.digest))
    outcome = play(case, tape, all_oracles())
    assert outcome.ok, outcome.violation
    messages = [it.message for it in outcome.deliveries]
    refused = [it for it in messages if isinstance(it, ProposalRejected)]
    assert len(refused) > 2, "vacuous: nothing was refused"
    facts = [
        it for message in messages if isinstance(message, FactsAppended) for it in message.facts
    ]
    assert any(isinstance(it, PreemptionDecided) for it in facts)
