"""Policies that fail in drawn worlds: what is built in decides, and everything goes on."""

from collections import Counter
from collections.abc import Iterable

from yunikorn_actors.lab.case import parse_case
from yunikorn_actors.lab.oracles.run_oracles import oracles
from yunikorn_actors.lab.oracles.waiting_oracle import Waiting
from yunikorn_actors.lab.run_schedule import explore, play
from yunikorn_actors.lab.swarm.failing_policies import FOLDS, POLICIES, WHERE, WHERE_FOLDS
from yunikorn_actors.lab.swarm.swarm_runs import Plan
from yunikorn_actors.messages.base import EVENT_PUBLISHER
from yunikorn_actors.messages.scheduling import FactsAppended, ReportPolicyFailed
from yunikorn_actors.state.facts import PolicyFailed

FIRST_FAILS_IN_A_QUESTION = 13
WITH_FAILING_FOLDS = (25, 55)
OTHERS = (*range(14, 20), 29, 47)
WORLDS = (FIRST_FAILS_IN_A_QUESTION, *OTHERS)


def test_all_goes_on_where_policies_fail() -> None:
    """In the first of these worlds a policy fails at a question, and nothing else comes then."""
    assert failures(WHERE, WORLDS).keys() == POLICIES.keys(), "vacuous"


def test_all_goes_on_where_a_policy_fails_at_what_it_remembers() -> None:
    """Replicas, journals and cores that are restored keep that it has failed."""
    assert failures(WHERE_FOLDS, WITH_FAILING_FOLDS).keys() == FOLDS.keys(), "vacuous"


GATE_HAS_FAILED = """
name: a gate has failed
queues: {partitions: [{queues: [{name: root, submitacl: "*", queues: [
  {name: a, properties: {application.sort.policy: fails-at-gate}}]}]}]}
policies: yunikorn_actors.lab.swarm.failing_policies:POLICIES
steps:
- create_node: {id: n, count: 3, capacity: {vcore: 4000}}
- add_app: {id: app-1, queue: root.a}
- ask: {app: app-1, key: large, resource: {vcore: 3000}, count: 3}
- ask: {app: app-1, key: waits, resource: {vcore: 3000}}
- advance: 30s
"""


def test_a_leaf_whose_gate_has_failed_keeps_no_node() -> None:
    """Context goes by the policy of the queue, so a planner must not go by what still decides."""
    case = parse_case(GATE_HAS_FAILED, "gate.yaml")
    outcome = play(case, case.tape(), oracles())
    assert any(isinstance(it.message, ReportPolicyFailed) for it in outcome.deliveries)
    assert outcome.ok, outcome.violation


def failures(policies: str, worlds: Iterable[int]) -> Counter[str]:
    plan, failed = Plan(seed=1, policies=policies), Counter[str]()
    for number in worlds:
        run = plan.drawn(number)
        # That oracle asks the planner itself, beside all questions of the run.
        checkers = tuple(it for it in run.checkers() if not isinstance(it, Waiting))
        outcome = explore(run.case, run.schedule(), checkers)
        assert outcome.ok, f"{number}: {outcome.violation}"
        failed.update(
            fact.policy
            for it in outcome.deliveries
            if it.mailbox == EVENT_PUBLISHER and isinstance(it.message, FactsAppended)
            for fact in it.message.facts
            if isinstance(fact, PolicyFailed)
        )
    return failed
