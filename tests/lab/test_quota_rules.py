"""The model works out a second time who goes where a queue may have less than it uses."""

import pytest
import ranges

from yunikorn_actors.lab.case import parse_case
from yunikorn_actors.lab.model.follower import FollowedByModel
from yunikorn_actors.lab.mutants.mutant import Mutant, Target
from yunikorn_actors.lab.oracles.run_oracles import oracles
from yunikorn_actors.lab.run_schedule import play
from yunikorn_actors.planning.preemption import quota
from yunikorn_actors.planning.preemption.victim_units import Units

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

GANGS = """{partitions: [{name: default, preemption: {quotapreemptionenabled: true}, queues: [
  {name: root, submitacl: "*", queues: [
    {name: a, properties: {%s quota.preemption.delay: 1s}, resources: {max: {gpu: %s}}}]}]}]}"""
OF_GANGS = f"""\
name: a queue of gangs may have less
queues: {GANGS % ("%s", 20)}
steps:
- create_node: {{id: n1, capacity: {{gpu: 20}}}}
- add_app: {{id: wide, queue: root.a, placeholder_ask: {{gpu: 2}}, style: Hard}}
- ask: {{app: wide, key: w-hold, count: 2, resource: {{gpu: 1}}, task_group: r, placeholder: true}}
- ask: {{app: wide, key: w-m, count: 2, resource: {{gpu: 1}}, task_group: r}}
- ask: {{app: wide, key: w-aside, resource: {{gpu: 1}}}}
- ask: {{app: wide, key: w-more, count: 2, resource: {{gpu: 1}}, task_group: r}}
- add_app: {{id: old, queue: root.a, placeholder_ask: {{gpu: 3}}, style: Hard}}
- ask: {{app: old, key: o-hold, count: 3, resource: {{gpu: 1}}, task_group: r, placeholder: true}}
- ask: {{app: old, key: o-m, count: 3, resource: {{gpu: 1}}, task_group: r, priority: 9}}
- release: {{app: old, key: o-m-2}}
- add_app: {{id: plain, queue: root.a}}
- ask: {{app: plain, key: p, resource: {{gpu: 1}}}}
- add_app: {{id: soft, queue: root.a, placeholder_ask: {{gpu: 2}}, style: Soft}}
- ask: {{app: soft, key: s-hold, count: 2, resource: {{gpu: 1}}, task_group: r, placeholder: true}}
- ask: {{app: soft, key: s-m, count: 2, resource: {{gpu: 1}}, task_group: r}}
- advance: 1s
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
        quota.Enforcement._gather, "yield from self._gather(child, part)", "yield from ()"
    ),
}


OF_GANG_MUTANTS = {
    "what a gang loses does not count": _mutant(quota._order, "        part,\n", ""),
    "the older gang goes first": _mutant(quota._order, "-app.serial", "app.serial"),
    "broken gangs go last": _mutant(Units._parts_of, "Part.OF_BROKEN", "Part.OF_WHOLE"),
    "nothing is surplus": _mutant(Units._parts_of, "= Part.SURPLUS", "= Part.OF_WHOLE"),
    "the oldest are surplus": _mutant(
        Units.surplus_among, "sorted(able, key", "sorted(able, reverse=True, key"
    ),
    "all that could be is surplus": _mutant(
        Units.surplus_among, "discharge(left, _of_types(allocation.resource, left))", "pass"
    ),
    "what went counts again with its gang": _mutant(
        quota.Enforcement._pick, "not in picked", "not in ()"
    ),
    "no gang goes as one": _mutant(Units.with_it, "return self.whole(app)", "pass"),
}


def _played(*cases: str) -> str:
    for text in cases:
        case = parse_case(text, "quota.yaml")
        outcome = play(case, case.tape(), (*oracles(), FollowedByModel()))
        if outcome.violation is not None:
            return outcome.violation.text
    return ""


def _of_parents() -> str:
    """Lower it to what leaves parts of shares over, and to what takes them whole."""
    return _played(*(CASE + LOWER % most for most in (4, 1)))


def _of_gangs() -> str:
    """Lower it to each size, with the unit as it is and as a leaf may set it."""
    units = ("", "preemption.unit: application,", "preemption.unit: allocation,")
    return _played(
        *(
            OF_GANGS % unit + f"- config: {{queues: {GANGS % (unit, most)}}}\n- advance: 2s\n"
            for unit in units
            for most in range(10)
        )
    )


def test_what_goes_is_what_the_rules_say() -> None:
    assert not _of_parents()


def test_what_goes_of_gangs_is_what_the_rules_say() -> None:
    assert not _of_gangs()


@pytest.mark.parametrize("name", MUTANTS)
def test_what_goes_otherwise_is_found(name: str) -> None:
    with MUTANTS[name].applied():
        assert _of_parents()


@pytest.mark.parametrize("name", ranges.first([*OF_GANG_MUTANTS], 3))
def test_what_goes_otherwise_of_gangs_is_found(name: str) -> None:
    with OF_GANG_MUTANTS[name].applied():
        assert _of_gangs()
