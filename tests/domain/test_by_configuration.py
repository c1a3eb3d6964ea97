"""What is against the configuration is named: queues that are made, and where applications go."""

import pytest

from yunikorn_actors.checks.configured_queues import against_the_configuration, described
from yunikorn_actors.config import parse_config
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.applications import ApplicationSpec
from yunikorn_actors.state.facts import apply
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import QueueSpec

RULES = """
partitions:
- name: default
  placementrules:
  - {name: tag, value: team, create: true, parent: {name: fixed, value: root.teams}}
  - {name: user, filter: {type: deny, users: [bob]}}
  - {name: provided}
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: teams
      parent: true
      childtemplate: {maxapplications: 3, resources: {max: {vcore: 2}}}
    - {name: ann}
    - {name: default}
"""


@pytest.fixture
def state() -> PartitionState:
    made = PartitionState("[rm-1]default")
    (config,) = parse_config(RULES).partitions
    apply(made, f.PartitionConfigured(config=config))
    for path, spec in described(config.root):
        apply(made, f.QueueAdded(path=path, spec=spec, at_ns=0))
    return made


def _added(
    queue: str, *, user: str = "bob", asks_for: str = "", team: str = ""
) -> f.ApplicationAdded:
    tags = {"team": team} if team else {}
    spec = ApplicationSpec(application_id="a", user=user, queue_name=asks_for, tags=tags)
    return f.ApplicationAdded(spec=spec, queue=queue, serial=9, at_ns=0)


@pytest.mark.parametrize(
    "fact",
    [
        _added("root.teams.red", team="red"),
        _added("root.ann", user="ann", asks_for="root.default"),
        _added("root.default", asks_for="default"),
        _added("root.default", asks_for="nowhere"),
        _added("root.ann", asks_for="root.ann"),
    ],
    ids=["by its tag", "by its user", "as it asks", "the last resort", "the rule is not for it"],
)
def test_an_application_that_goes_where_the_rules_say(
    state: PartitionState, fact: f.ApplicationAdded
) -> None:
    assert [] == list(against_the_configuration(state, fact, ()))
    (elsewhere,) = against_the_configuration(state, _elsewhere(fact), ())
    assert elsewhere.startswith(f"G28: a comes to root.teams, expected {fact.queue}")
    reason = "failed to place application a: no rule"
    refused = f.ApplicationRejected(spec=fact.spec, serial=9, reason=reason, at_ns=0)
    (line,) = against_the_configuration(state, refused, ())
    assert line == f"G28: a is refused, expected in {fact.queue}"


def _elsewhere(fact: f.ApplicationAdded) -> f.ApplicationAdded:
    return f.ApplicationAdded(spec=fact.spec, queue="root.teams", serial=9, at_ns=0)


def test_a_queue_that_no_rule_may_create(state: PartitionState) -> None:
    """It is there only because it was made for this application."""
    spec = QueueSpec(leaf=True, managed=False)
    made = f.QueueAdded(path="root.new", spec=spec, at_ns=0)
    assert [] == list(against_the_configuration(state, made, ()))
    apply(state, made)
    fact = _added("root.new", asks_for="new")
    assert [] == list(against_the_configuration(state, fact, ()))
    (line,) = against_the_configuration(state, fact, {"root.new": None})
    assert line == "G28: a comes to root.new, expected root.default"


@pytest.mark.parametrize("most", [{"vcore": 2000}, None])
def test_a_queue_that_is_made_against_its_template(
    state: PartitionState, most: dict[str, int] | None
) -> None:
    spec = QueueSpec(leaf=True, managed=False, max=most, max_applications=3)
    fact = f.QueueAdded(path="root.teams.red", spec=spec, at_ns=0)
    assert bool(most) is not any(against_the_configuration(state, fact, ()))
