"""Placement rules that could never be built or never match are refused with the configuration."""

import pytest

from yunikorn_actors.config import ConfigError, parse_config

QUEUES = """
  queues:
  - name: root
    queues:
    - name: tenants
      parent: true
    - name: prod
      queues: [{name: web}]
    - name: rest
"""


def with_rules(*rules: str) -> str:
    """Return a configuration whose first rule is line 4."""
    rows = "".join(f"  - {rule}\n" for rule in rules)
    return "partitions:\n- name: default\n  placementrules:\n" + rows.rstrip() + QUEUES


REFUSALS = {
    "unknown": ("{name: queue}", "unknown rule name specified queue, failing placement rule config"),
    "unknown parent": ("{name: user, parent: {name: mine}}", "unknown rule name specified mine, failing placement rule config"),
    "recovery": ("{name: recovery}", "unknown rule name specified recovery, failing placement rule config"),
    "test": ("{name: test}", "unknown rule name specified test, failing placement rule config"),
    "missing name": ("{create: true}", "invalid rule name ''"),
    "bad name": ("{name: 1user}", "invalid rule name '1user'"),
    "tag without value": ("{name: tag}", "a tag rule without a value"),
    "fixed without value": ("{name: fixed}", "a fixed rule without a value"),
    "fixed with a bad value": ("{name: fixed, value: root.a b}", "invalid queue name 'a b'"),
    "fixed with an empty part": ("{name: fixed, value: root..a}", "invalid queue name ''"),
    "fixed with the recovery queue": ("{name: fixed, value: root.@recovery@}", "invalid queue name '@recovery@'"),
    "qualified with a parent": ("{name: fixed, value: root.rest, parent: {name: user}}", "illegal fully qualified 'fixed' rule"),
    "qualified below fixed": ("{name: fixed, value: Root.rest, parent: {name: fixed, value: tenants}}", "illegal fully qualified 'fixed' rule"),
    "filter type": ("{name: user, filter: {type: maybe}}", "invalid filter type 'maybe'"),
    "filter of a parent": ("{name: user, parent: {name: user, filter: {type: maybe}}}", "invalid filter type 'maybe'"),
    "filter user": ("{name: user, filter: {users: [b b]}}", "filter entry 'b b' is neither a user name"),
    "filter group": ("{name: user, filter: {groups: [d/v]}}", "filter entry 'd/v' is neither a group name"),
    "filter expression": ("{name: user, filter: {users: ['(b']}}", "filter entry '(b'"),
    "filter expression too deep": ("{name: user, filter: {users: ['" + "(" * 9000 + "']}}", "filter entry"),
    "filter expression too large": ("{name: user, filter: {users: ['a{99999999999999999999}']}}", "filter entry"),
    "missing queue": ("{name: fixed, value: none}", "path 'root.none' references non-existing queues below root and create is 'false'"),
    "missing qualified queue": ("{name: fixed, value: root.prod.none}", "references non-existing queues below root.prod"),
    "below a leaf": ("{name: fixed, value: root.rest.a, create: true}", "cannot be created because the last queue (root.rest) in the hierarchy is a leaf"),
    "a flagged parent": ("{name: fixed, value: tenants}", "references a queue (root.tenants) which is not a leaf"),
    "a parent by its children": ("{name: fixed, value: Prod}", "references a queue (root.prod) which is not a leaf"),
    "the root": ("{name: fixed, value: ROOT}", "references a queue (root) which is not a leaf"),
    "dynamic below a leaf": ("{name: user, create: true, parent: {name: fixed, value: rest}}", "references a queue (root.rest) which is a leaf"),
    "dynamic below a missing queue": ("{name: user, parent: {name: fixed, value: none, create: true}}", "create is 'false'"),
    "fixed below fixed": ("{name: fixed, value: web.x, create: true, parent: {name: fixed, value: prod}}", "path 'root.prod.web.x' cannot be created"),
    "starts like root": ("{name: fixed, value: rootish}", "path 'root.rootish' references non-existing"),
}  # fmt: skip


@pytest.mark.parametrize(("rule", "words"), REFUSALS.values(), ids=REFUSALS)
def test_a_rule_that_is_refused(rule: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(with_rules("{name: provided}", rule))
    fault = caught.value.faults[0]
    expected = (5, True)
    assert expected == (fault.line, "placementrules[1]" in fault.path)
    assert words in fault.what


ACCEPTED = {
    "provided": "{name: provided}",
    "any case": "{name: Provided, create: true}",
    "user": "{name: user, create: true}",
    "tag": "{name: tag, value: namespace, create: true}",
    "leaf": "{name: fixed, value: rest}",
    "leaf by children": "{name: fixed, value: Root.Prod.Web}",
    "fixed below fixed": "{name: fixed, value: web, parent: {name: fixed, value: prod}}",
    "created": "{name: fixed, value: none.at.all, create: true}",
    "created below a parent": "{name: fixed, value: tenants.a, create: true}",
    "dynamic below a parent": "{name: user, create: true, parent: {name: fixed, value: root.tenants}}",
    "dynamic below children": "{name: user, parent: {name: fixed, value: prod}}",
    "dynamic below root": "{name: user, parent: {name: fixed, value: root}}",
    "fixed below dynamic": "{name: fixed, value: x, parent: {name: user}}",
    "three levels": "{name: user, create: true, parent: {name: tag, value: a, parent: {name: fixed, value: tenants}}}",
    "starts like root": "{name: fixed, value: rootish, create: true}",
    "filter in any case": "{name: user, filter: {type: Deny, users: [bob]}}",
    "filter expression": "{name: user, filter: {users: ['^b.*$'], groups: ['dev|ops']}}",
    "filter with dubious names": "{name: user, filter: {users: [b b, 'c c']}}",
    "empty filter": "{name: user, filter: {}}",
}  # fmt: skip


@pytest.mark.parametrize("rule", ACCEPTED.values(), ids=ACCEPTED)
def test_a_rule_that_is_accepted(rule: str) -> None:
    expected = 1
    assert expected == len(parse_config(with_rules(rule)).partitions[0].placement_rules)
