"""Gates and orders of policies are judged by rules that are written a second time."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from yunikorn_actors.lab.case import parse_case
from yunikorn_actors.lab.model.gate_rules import PlainConservative
from yunikorn_actors.lab.mutants.mutant import Mutant
from yunikorn_actors.lab.oracles.run_oracles import oracles
from yunikorn_actors.lab.run_schedule import Outcome, play
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.policies.conservative import Conservative
from yunikorn_actors.policies.inputs import (
    NEVER_NS,
    Arrived,
    Change,
    Ended,
    Job,
    Left,
    Sized,
    Started,
)
from yunikorn_actors.policies.profile import Profile
from yunikorn_actors.policies.shipped import DominantShare, Easy, Fcfs, LargestFirst

JOBS = """\
- create_node: {{id: n1, capacity: {{vcore: 4}}}}
- add_app: {{id: app-1, queue: root.a}}
- add_app: {{id: app-2, queue: root.a}}
- ask: {{app: app-1, key: runs, resource: {{vcore: 3}}, tags: {{yunikorn-actors/runtime: '10'}}}}
- ask: {{app: app-1, key: head, resource: {{vcore: 4}}, tags: {{yunikorn-actors/runtime: '5'}}}}
- ask: {{app: app-1, key: long, resource: {{vcore: 1}}, tags: {{yunikorn-actors/runtime: '{long}'}}}}
"""


class Planted(NamedTuple):
    policy: str
    where: Callable[..., Any]
    old: str
    new: str
    words: str
    long: int = 60


PLANTED = {
    "fcfs lets one pass": Planted(
        "fcfs", Fcfs.may_start, "if head is job:", "if len(pool.held) < 2:", "passes head",
    ),
    "sjf lets one pass": Planted(
        "sjf", Fcfs.may_start, "if head is job:", "if len(pool.held) < 2:", "passes head",
    ),
    "easy lets one pass that is long": Planted(
        "easy", Easy.may_start, "end_ns <= shadow_ns and", "", "delays head",
    ),
    "easy holds one that is short": Planted(
        "easy", Easy.may_start, "ends_before or", "", "holds long of app-1", 10,
    ),
    "conservative books over another": Planted(
        "conservative", Profile.reserve, "self.earliest(job.total, job.runtime_ns)",
        "self.earliest(job.total)", "has promised",
    ),
}  # fmt: skip


def _play(planted: Planted) -> Outcome:
    policy = f"{{application.sort.policy: {planted.policy}}}"
    queues = f"{{name: root, submitacl: '*', queues: [{{name: a, properties: {policy}}}]}}"
    steps = JOBS.format(long=planted.long)
    text = f"name: jobs\nqueues: {{partitions: [{{queues: [{queues}]}}]}}\nsteps:\n{steps}"
    case = parse_case(text, "jobs.yaml")
    return play(case, case.tape(), oracles())


@pytest.mark.parametrize("name", PLANTED)
def test_a_sound_gate_is_left_alone(name: str) -> None:
    outcome = _play(PLANTED[name])
    assert outcome.ok, outcome.violation


@pytest.mark.parametrize("name", PLANTED)
def test_a_gate_that_is_wrong_is_named(name: str) -> None:
    planted = PLANTED[name]
    mutant = Mutant(name, "", "", planted.where, planted.old, planted.new)
    with mutant.applied():
        violation = _play(planted).violation
    assert violation is not None
    assert planted.words in violation.text, violation.text


# -- who comes first

ORDERED = """\
name: the last free part of a node
queues: {{partitions: [{{queues: [{{name: root, submitacl: '*', queues: [
  {{name: a, properties: {{application.sort.policy: {policy}}}}}, {{name: b}}]}}]}}]}}
steps:
- create_node: {{id: n1, capacity: {{vcore: 2}}}}
- add_app: {{id: app-1, queue: root.a}}
- add_app: {{id: app-2, queue: root.a}}
- add_app: {{id: app-3, queue: root.b}}
- ask: {{app: app-3, key: fill, resource: {{vcore: 1}}}}
- ask: {{app: app-1, key: had, resource: {{vcore: 1}}}}
- ask: {{app: app-1, key: small, resource: {{vcore: 1}}}}
- ask: {{app: app-2, key: big, resource: {{vcore: 2}}}}
- ask: {{app: app-2, key: little, resource: {{vcore: 1}}}}
- release: {{app: app-1, key: had}}
"""
OUT_OF_ORDER = {
    "largest-first": (LargestFirst.application_key, "return -max(", "return max("),
    "dominant-share": (DominantShare.application_key, "return max(", "return -max("),
}


@pytest.mark.parametrize("policy", OUT_OF_ORDER)
def test_an_order_that_is_wrong_is_named(policy: str) -> None:
    text = ORDERED.format(policy=policy)
    if policy == "dominant-share":
        # What it has is to count.
        text = text.replace(
            "- release: {app: app-1, key: had}", "- release: {app: app-3, key: fill}"
        )
    case = parse_case(text, "order.yaml")
    sound = play(case, case.tape(), oracles())
    assert sound.ok, sound.violation
    where, old, new = OUT_OF_ORDER[policy]
    with Mutant(policy, "", "", where, old, new).applied():
        violation = play(case, case.tape(), oracles()).violation
    assert violation is not None
    assert "small of app-1 is placed, and little of app-2 comes first" in violation.text


# -- the plain rules are those of the shipped ones


def _changes(draw: Draw) -> list[tuple[Change, int]]:
    changes: list[tuple[Change, int]] = [(Sized({"v": 8, "m": 20}), 0)]
    now_ns, waiting, running = 0, list[Job](), list[Job]()
    for number in range(40):
        now_ns += draw.one_of((0, 0, 1, 2, 5))
        kind = draw.number(20)
        if kind < 9:
            size = {"v": draw.one_of((1, 2, 3, 4, 8))} | ({"m": 5} if draw.once_in(3) else {})
            job = Job(
                id=f"a/{number}", application_id="a", queue="q", user="u", group="", size=size,
                count=draw.one_of((1, 1, 2)), runtime_ns=draw.one_of((1, 2, 3, 5, 9, NEVER_NS)),
                submitted_ns=now_ns,
            )  # fmt: skip
            waiting.append(job)
            changes.append((Arrived(job), now_ns))
        elif kind < 14 and waiting:
            running.append(waiting.pop(draw.number(len(waiting))))
            changes.append((Started(running[-1]), now_ns))
        elif kind < 17 and running:
            changes.append((Ended(running.pop(draw.number(len(running)))), now_ns))
        elif kind < 18 and waiting:
            changes.append((Left(waiting.pop(draw.number(len(waiting)))), now_ns))
        elif kind == 19:
            changes.append((Sized({"v": draw.one_of((4, 8, 12)), "m": 20}), now_ns))
    return changes


@pytest.mark.parametrize("seed", range(30))
def test_the_plain_promises_are_those_of_the_shipped_policy(seed: int) -> None:
    shipped, plain, compared = Conservative(), PlainConservative(), 0
    for change, now_ns in _changes(Draw(7, seed)):
        shipped.observe(change, now_ns)
        plain.observe(change, now_ns)
        for fold in (shipped, plain):
            fold.settle() if isinstance(fold, PlainConservative) else fold._settle()
        found = {id_: max(at, now_ns) for id_, (_, at) in shipped.waiting.items()}
        assert found == {id_: max(at, now_ns) for id_, (_, at) in plain.promised.items()}
        compared += len(found)
    assert compared, "vacuous: nobody waited"
