"""The model works out a second time who goes where a queue may have less than it uses."""

import pytest

from yunikorn_actors.lab.case import parse_case
from yunikorn_actors.lab.model.follower import FollowedByModel
from yunikorn_actors.lab.mutants.mutant import Mutant, Target
from yunikorn_actors.lab.oracles import oracles
from yunikorn_actors.lab.run_schedule import play
from yunikorn_actors.planning.preemption import quota

QUEUES = """{partitions: [{name: default, preemption: {quotapreemptionenabled: true}, queues: [
  {name: root, submitacl: "*", queues: [{name: a, %s queues: [
    {name: x, resources: {guaranteed: {vcore: 1}}},
    {name: y}, {name: z, properties: {preemption.unit: application}}]}]}]}]}"""
LOWERED = "properties: {quota.preemption.delay: 1s}, resources: {max: {vcore: %s}},"
CASE = f"""\
name: a parent may have less
queues: {QUEUES % ""}
steps:
- create_node: {{id: n1, capacity: {{vcore: 10000}}}}
- add_app: {{id: one, queue: root.a.x}}
- ask: {{app: one, key: plain, resource: {{vcore: 1000}}, count: 3}}
- ask: {{app: one, key: less, resource: {{vcore: 1000}}, priority: -1}}
- ask: {{app: one, key: kept, resource: {{vcore: 1000}}, preemption: {{allow_self: false}}}}
- add_app: {{id: two, queue: root.a.y}}
- ask: {{app: two, key: other, resource: {{vcore: 2000}}}}
- ask: {{app: two, key: small, resource: {{vcore: 1000}}}}
- add_app: {{id: three, queue: root.a.z}}
- ask: {{app: three, key: both, resource: {{vcore: 1000}}, count: 2}}
"""
LOWER = f"""- config: {{queues: {QUEUES % LOWERED}}}
- advance: 2s
"""


def _mutant(where: Target, old: str, new: str) -> Mutant:
    return Mutant("one", "", "others go for a quota", where, old, new)


MUTANTS = {
    "shares are equal": _mutant(
        quota.Enforcement._share, "amount * weight[kind] // totals[kind]", "amount // len(totals)"
    ),
    "shares count what is guaranteed": _mutant(
        quota._weight, "above = _above_guarantee(child, usage)", "above = usage.of(child)"
    ),
    "the more important go": _mutant(
        quota._order, "allocation.spec.priority,", "-allocation.spec.priority,"
    ),
    "none goes that fills a share": _mutant(quota.Enforcement._pick, "<= amount", "< amount"),
    "children give nothing": _mutant(
        quota.Enforcement._gather, "yield from self._gather(child, share)", "yield from ()"
    ),
}


def _played() -> str:
    """Lower it to what leaves parts of shares over, and to what takes them whole."""
    for most in (4, 1):
        case = parse_case(CASE + LOWER % most, "quota.yaml")
        outcome = play(case, case.tape(), (*oracles(), FollowedByModel()))
        if outcome.violation is not None:
            return outcome.violation.text
    return ""


def test_what_goes_is_what_the_rules_say() -> None:
    assert not _played()


@pytest.mark.parametrize("name", MUTANTS)
def test_what_goes_otherwise_is_found(name: str) -> None:
    with MUTANTS[name].applied():
        assert _played()
