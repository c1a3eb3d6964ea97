"""What is said about preemption of an ask that waits."""

import pytest
from confirming import confirming_lab, policy
from support import Lab

from yunikorn_actors.planning.why.explain import explain
from yunikorn_actors.planning.why.reasons import Preempting

CONFIG = (
    "partitions: [{name: default, preemption: {enabled: SWITCH}, queues: "
    "[{name: root, submitacl: '*', queues: [{name: rich}, {name: bare}, "
    "{name: poor, properties: {preemption.delay: 5s}, resources: {guaranteed: {vcore: 2m}}}]}]}]"
)
SECOND = 1_000_000_000


def full(switch: str = "true") -> Lab:
    lab = confirming_lab(CONFIG.replace("SWITCH", switch), at_once=False)
    lab.nodes(n1=2)
    for name in ("rich", "poor", "bare"):
        lab.submit(name, queue=f"root.{name}")
    lab.settle()
    lab.ask("r0", "r1", app="rich", priority=1)
    lab.settle()
    return lab


def account(lab: Lab, app: str, key: str) -> Preempting:
    why = explain(lab.planner, app, key, 0)
    assert why is not None
    assert why.preempting is not None
    return why.preempting


@pytest.mark.parametrize(
    ("app", "pushy", "switch", "words"),
    [
        ("poor", False, "true", "its policy"),
        ("poor", True, "false", "switched off"),
        ("bare", True, "true", "no guarantee"),
    ],
)
def test_what_stands_against_it(app: str, pushy: bool, switch: str, words: str) -> None:
    lab = full(switch)
    lab.ask("k", app=app, preemption_policy=policy(pushy=pushy))
    lab.advance(30)
    assert words in account(lab, app, "k").text


def test_when_it_is_tried_and_what_came_of_it() -> None:
    lab = full()
    began_ns = lab.simulator.now_ns
    lab.ask("low", app="poor", preemption_policy=policy())
    lab.advance(1)
    assert began_ns + 5 * SECOND == account(lab, "poor", "low").next_ns
    lab.advance(9)
    found = account(lab, "poor", "low")
    assert (began_ns + 5 * SECOND, began_ns + 20 * SECOND) == (found.tried_ns, found.next_ns)
    lab.ask("high", app="poor", priority=1, preemption_policy=policy())
    lab.advance(6)
    assert ("r1",) == account(lab, "poor", "high").victims
