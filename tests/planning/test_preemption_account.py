"""What is said about preemption of an ask that waits."""

import pytest
from confirming import confirming_lab, policy
from support import Lab

from yunikorn_actors import si
from yunikorn_actors.planning.reasons import Preempting, PreemptionCost, Why
from yunikorn_actors.planning.why.explain import explain
from yunikorn_actors.values.tags import TAG_REQUIRED_NODE, TAG_RUNTIME

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


@pytest.mark.parametrize(
    "below",
    [
        "limits: [{limit: l, users: [test], maxresources: {vcore: 1m}}]",
        "maxapplications: 1",
        "properties: {application.sort.policy: stateaware, preemption.delay: 5s}",
    ],
)
@pytest.mark.parametrize("bound", [False, True])
def test_nobody_would_go_where_something_else_than_room_holds_it_back(
    below: str, bound: bool
) -> None:
    lab = confirming_lab(
        "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: "
        f"[{{name: rich}}, {{name: poor, resources: {{guaranteed: {{vcore: 2m}}}}, {below}}}]}}]}}]"
    )
    lab.nodes(n1=3)
    for name, queue in (("rich", "rich"), ("first", "poor"), ("second", "poor")):
        lab.submit(name, queue=f"root.{queue}", user="test")
    lab.settle()
    lab.ask("r0", "r1", app="rich")
    lab.ask("one", app="first")
    lab.settle()
    tags = {TAG_REQUIRED_NODE: "n1"} if bound else {}
    lab.ask("other", app="second", preemption_policy=policy(), tags=tags)
    lab.advance(40)
    assert lab.waiting() == ["other"]
    found = told(lab, "second", "other").preempting
    assert found is not None
    assert (found.goes, found.next_ns) == ((), 0)
    assert "something else than room" in found.text


@pytest.mark.parametrize(
    ("guaranteed", "asked", "words"), [(3, 2, "asked for"), (2, 3, "does not cover")]
)
def test_why_nothing_goes_for_a_gang(guaranteed: int, asked: int, words: str) -> None:
    lab = confirming_lab(CONFIG.replace("SWITCH", "true").replace("2m", f"{guaranteed}m"))
    lab.nodes(n1=3)
    lab.submit("rich", queue="root.rich")
    gang = {"gang_scheduling_style": "Hard", "placeholder_ask": si.Resource.of({"vcore": 3})}
    lab.submit("gang", queue="root.poor", **gang)
    lab.settle()
    lab.ask("r0", "r1", "r2", app="rich")
    lab.settle()
    parts = {"placeholder": True, "task_group_name": "g", "preemption_policy": policy()}
    lab.ask(*(f"g{number}" for number in range(asked)), app="gang", **parts)
    lab.advance(40)
    found = told(lab, "gang", "g0").preempting
    assert found is not None
    assert (found.goes, found.against) == ((), {})
    assert words in found.text


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


# -- who goes, or would, and what stands against the others


def told(lab: Lab, app: str, key: str) -> Why:
    why = lab.simulator.explain(app, key)
    assert isinstance(why, Why)
    return why


MANY = (
    "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: ["
    "{name: rich, properties: {preemption.delay: 1h, preemption.cooldown: 1m, "
    "preemption.grace: 30s}}, "
    "{name: safe, resources: {guaranteed: {vcore: 9m}}}, "
    "{name: shut, properties: {preemption.policy: disabled}}, "
    "{name: poor, properties: {preemption.delay: 5m}, resources: {guaranteed: {vcore: 1m}}}]}]}]"
)


def many() -> Lab:
    lab = confirming_lab(MANY, at_once=False)
    lab.nodes(n1=7)
    for name in ("rich", "safe", "shut", "poor"):
        lab.submit(name, queue=f"root.{name}")
    lab.settle()
    lab.ask("old", "older", app="rich")
    lab.ask("first", app="rich", priority=9)
    lab.ask("s", app="safe")
    lab.ask("t", app="shut")
    lab.settle()
    lab.advance(100)
    lab.ask("new", "newer", app="rich")
    lab.settle()
    lab.advance(1)
    return lab


def test_who_would_go_long_before_the_time_has_come() -> None:
    lab = many()
    lab.ask("k", app="poor", preemption_policy=policy())
    lab.settle()
    lab.advance(1)
    revision = lab.state.revision
    found = told(lab, "poor", "k").preempting
    assert found is not None
    assert ["older"] == [it.key for it in found.goes]
    (gone,) = found.goes
    assert ("root.rich", "n1", 102, {"vcore": 1}) == (
        gone.queue, gone.node_id, gone.ran_s, gone.resource
    )  # fmt: skip
    assert PreemptionCost(allocations=1, lost={"vcore": 102}) == found.cost
    assert {
        "not needed": 1,
        "more important": 1,
        "in the cooldown of its queue": 2,
        "needed for a guarantee of its queue": 1,
        "out of its reach: fenced off, or of a queue that gives nothing": 1,
    } == found.against
    assert not lab.planner.preemptor.decisions.in_flight
    lab.settle()
    assert revision == lab.state.revision, "a question changes nothing"
    assert "would go: older of rich on n1, it has run for 102 s; it goes by itself" in (
        told(lab, "poor", "k").report()
    )


def test_a_victim_says_for_whom_it_goes() -> None:
    lab = many()
    lab.ask("k", app="poor", preemption_policy=policy())
    lab.advance(301)
    lab.settle()
    (victim,) = (
        it.spec.key for it in lab.state.applications["rich"].allocations.values() if it.beneficiary
    )
    why = told(lab, "rich", victim)
    assert why.preempting is not None
    assert (
        "it is preempted for k of poor in root.poor, by the rule of the guarantee" in why.report()
    )
    assert "; it has 29 s to end" in why.preempting.text
    its = why.preempting
    assert ("guarantee", "root.poor", "poor", "k") == (
        its.rule, its.for_queue, its.for_application_id, its.for_key
    )  # fmt: skip
    assert [victim] == [it.key for it in why.preempting.goes]
    its = told(lab, "poor", "k").preempting
    assert its is not None
    assert (victim,) == its.victims
    assert [victim] == [it.key for it in its.goes]


@pytest.mark.parametrize("unit", ["application", "allocation"])
def test_what_is_said_before_a_decision_and_after_it_is_the_same(unit: str) -> None:
    """What went counts as if it had not been asked back, and the ask as if it had no room yet."""
    text = MANY.replace("preemption.grace: 30s", f"preemption.unit: {unit}")
    text = text.replace("preemption.delay: 5m", "preemption.delay: 90s")
    lab = confirming_lab(text, at_once=False)
    lab.nodes(n1=6)
    for name in ("rich", "safe", "poor"):
        lab.submit(name, queue=f"root.{name}")
    lab.settle()
    lab.ask("a", "b", "c", app="rich")
    lab.ask("s", "t", "u", app="safe")
    lab.settle()
    lab.ask("k", app="poor", preemption_policy=policy())
    lab.advance(89)
    before = told(lab, "poor", "k").preempting
    assert before is not None
    assert before.cost is not None
    assert before.goes
    assert before.against
    lab.advance(1)
    after = told(lab, "poor", "k").preempting
    of_victim = told(lab, "rich", before.goes[0].key).preempting
    assert after is not None
    assert of_victim is not None
    for its in (after, of_victim):
        assert its.victims or its.rule
        assert its.cost is not None
        assert before.against == its.against
        assert {it.key: it.unit for it in before.goes} == {it.key: it.unit for it in its.goes}
        assert (before.cost.allocations, before.cost.applications) == (
            its.cost.allocations, its.cost.applications
        )  # fmt: skip


@pytest.mark.parametrize("unit", ["application", "allocation"])
def test_what_a_gang_would_cost(unit: str) -> None:
    text = MANY.replace("preemption.delay: 1h, preemption.cooldown: 1m", f"preemption.unit: {unit}")
    lab = confirming_lab(text, at_once=False)
    lab.nodes(n1=3)
    for name in ("rich", "poor"):
        lab.submit(name, queue=f"root.{name}")
    lab.settle()
    lab.ask("a", "b", "c", app="rich")
    lab.settle()
    lab.ask("k", app="poor", preemption_policy=policy())
    lab.advance(10)
    found = told(lab, "poor", "k").preempting
    assert found is not None
    assert found.cost is not None
    whole = unit == "application"
    assert (3 if whole else 1, int(whole)) == (found.cost.allocations, found.cost.applications)


def test_the_cost_of_a_victim_is_what_it_declares() -> None:
    """The choice among gangs measures the same."""
    lab = many()
    lab.state.applications["rich"].spec.tags[TAG_RUNTIME] = "3600"
    lab.ask("k", app="poor", preemption_policy=policy())
    lab.settle()
    found = told(lab, "poor", "k").preempting
    assert found is not None
    assert PreemptionCost(allocations=1, lost={"vcore": 3600}) == found.cost


def test_nobody_would_go_where_something_forbids_it() -> None:
    lab = full()
    lab.ask("k", app="bare", preemption_policy=policy())
    lab.settle()
    found = told(lab, "bare", "k").preempting
    assert found is not None
    assert () == found.goes
    assert found.cost is None


def test_a_cooldown_says_when_it_ends() -> None:
    text = MANY.replace("preemption.delay: 5m", "preemption.delay: 1s")
    lab = confirming_lab(text, at_once=False)
    lab.nodes(n1=1)
    for name in ("rich", "poor"):
        lab.submit(name, queue=f"root.{name}")
    lab.settle()
    lab.ask("r", app="rich")
    lab.settle()
    began_ns = lab.simulator.now_ns
    lab.ask("k", app="poor", preemption_policy=policy())
    lab.advance(5)
    found = told(lab, "poor", "k").preempting
    assert found is not None
    assert found.text.endswith("or when a budget or a cooldown of those that run ends")
    assert began_ns + 60 * SECOND == found.next_ns
    lab.advance(56)
    assert ("r",) == account(lab, "poor", "k").victims


BREAKING = (
    "partitions: [{name: default, preemption: {quotapreemptionenabled: true}, queues: "
    "[{name: root, submitacl: '*', queues: [{name: poor}, {name: rich, "
    "properties: {quota.preemption.delay: 1s}, resources: {max: {vcore: 4m}}}]}]}]"
)


@pytest.mark.parametrize("rule", ["required node", "quota"])
def test_a_gang_that_is_broken_is_named_and_why(rule: str) -> None:
    """It said of one member that it goes with its whole application."""
    lab = confirming_lab(BREAKING, at_once=False)
    lab.nodes(n1=4)
    lab.submit("gang", queue="root.rich", gang_scheduling_style="Hard",
               placeholder_ask=si.Resource.of({"vcore": 4}))  # fmt: skip
    members = ("a", "b", "c", "d")
    lab.ask(*members, app="gang", placeholder=True, task_group_name="g", preemption_policy=policy())
    lab.settle()
    lab.advance(1)
    if rule == "quota":
        lab.configure(BREAKING.replace("max: {vcore: 4m}", "max: {vcore: 3m}"))
        lab.advance(5)
    else:
        lab.submit("poor", queue="root.poor")
        lab.ask("k", app="poor", tags={TAG_REQUIRED_NODE: "n1"}, preemption_policy=policy())
        lab.settle()
    its = told(lab, "gang", "d").preempting
    assert its is not None
    assert its.cost is not None
    assert rule == its.rule
    broken = "its gang was whole and is broken: a node or a quota needs just so much"
    assert [("gang", "d", broken)] == [(it.application_id, it.key, it.unit) for it in its.goes]
    assert (1, 0) == (its.cost.allocations, its.cost.applications)


def test_a_victim_has_the_time_that_it_was_given_whatever_its_queue_gives_now() -> None:
    """A reload changes what the next victim has, and not what the resource manager was asked."""
    lab = many()
    lab.ask("k", app="poor", preemption_policy=policy())
    lab.advance(301)
    (victim,) = (
        it.spec.key for it in lab.state.applications["rich"].allocations.values() if it.beneficiary
    )
    for grace in ("preemption.grace: 10m", "preemption.grace: 5s", "preemption.policy: default"):
        lab.configure(MANY.replace("preemption.grace: 30s", grace))
        lab.advance(1)
        its = told(lab, "rich", victim).preempting
        assert its is not None
        assert " s to end" in its.text
        assert "; it has 2" in its.text, its.text


def test_what_stands_against_the_others_on_a_required_node() -> None:
    lab = many()
    lab.nodes(n2=2)
    bound = {"tags": {TAG_REQUIRED_NODE: "n1"}, "preemption_policy": policy()}
    lab.submit("agent", queue="root.rich")
    lab.ask("elsewhere", app="rich")
    lab.ask("bound", app="rich", tags={TAG_REQUIRED_NODE: "n2"})
    lab.ask("k", app="agent", priority=1, **bound)
    lab.settle()
    its = told(lab, "agent", "k").preempting
    assert its is not None
    (victim,) = its.victims
    expected = {
        "more important": 1, "not needed": 5, "on another node": 1, "bound to its node": 1
    }  # fmt: skip
    assert expected == its.against
    of_victim = told(lab, "rich", victim).preempting
    assert of_victim is not None
    assert expected == of_victim.against


def test_what_stands_against_the_others_where_a_quota_is_enforced() -> None:
    text = MANY.replace(
        "partitions: [{", "partitions: [{preemption: {quotapreemptionenabled: true}, "
    ).replace("preemption.grace: 30s", "preemption.grace: 30s, quota.preemption.delay: 5s")
    lab = many()
    lab.configure(text.replace("{name: rich, ", "{name: rich, resources: {max: {vcore: 5m}}, "))
    lab.settle()
    lab.configure(text.replace("{name: rich, ", "{name: rich, resources: {max: {vcore: 3m}}, "))
    lab.advance(10)
    victims = [
        it.spec.key for it in lab.state.applications["rich"].allocations.values() if it.beneficiary
    ]
    assert len(victims) == 2
    its = told(lab, "rich", victims[0]).preempting
    assert its is not None
    assert (sorted(victims), {"not needed": 3, "of another queue": 2}) == (
        sorted(it.key for it in its.goes), its.against
    )  # fmt: skip


def test_an_application_that_rests_has_nobody_go_for_it_now() -> None:
    lab = confirming_lab(
        MANY.replace(
            "{name: poor, properties: {preemption.delay: 5m}",
            "{name: poor, properties: {preemption.delay: 5m, application.unschedasks.backoff: 1, "
            "application.unschedasks.backoff.delay: 10m}",
        ),
        at_once=False,
    )
    lab.nodes(n1=1)
    for name in ("rich", "poor"):
        lab.submit(name, queue=f"root.{name}")
    lab.ask("old", app="rich")
    lab.settle()
    lab.ask("k", "l", app="poor", preemption_policy=policy())
    lab.advance(61)
    assert lab.planner.backoff.resting, "vacuous: it does not rest"
    its = told(lab, "poor", "k").preempting
    assert its is not None
    assert ((), "its application rests; victims are looked for when that is over") == (
        its.goes, its.text
    )  # fmt: skip


def test_nobody_goes_for_a_member_that_takes_over_a_placeholder() -> None:
    lab = full()
    lab.nodes(n2=1)
    gang = {"gang_scheduling_style": "Hard", "placeholder_ask": si.Resource.of({"vcore": 1})}
    lab.submit("gang", queue="root.poor", **gang)
    lab.ask("p", app="gang", placeholder=True, task_group_name="g")
    lab.settle()
    bound = {"tags": {TAG_REQUIRED_NODE: "n1"}, "preemption_policy": policy()}
    lab.ask("m", app="gang", task_group_name="g", priority=9, **bound)
    lab.settle()
    its = told(lab, "gang", "m").preempting
    assert its is not None
    assert ((), "it takes over a placeholder of its gang, so nothing goes for it") == (
        its.goes, its.text
    )  # fmt: skip
