"""Refusals of whole configurations: order, words, place and line.

Worked examples: configuration.
"""

import pytest
from configurations import first_fault

from yunikorn_actors.config import ConfigError, parse_config
from yunikorn_actors.config.node_order import NODE_ORDERS


def tree(*lines: str) -> str:
    """Return a configuration in which the first of these lines, a queue below root, is line 5."""
    head = "partitions:\n- name: default\n  queues:\n  - {name: root, queues: [\n"
    return head + ",\n".join(lines) + "\n  ]}\n"


REFUSALS = {
    "dotted name": (tree("{name: a}", "{name: a.b}"), 6, "root", "invalid name 'a.b'"),
    "empty name": (tree("{name: ''}"), 5, "root", "name ''"),
    "missing name": (tree("{parent: true}"), 5, "root", "name ''"),
    "name too long": (tree("{name: " + "x" * 65 + "}"), 5, "root", "name 'xxx"),
    "reserved name": (tree("{name: '@Recovery@'}"), 5, "root", "name '@Recovery@'"),
    "equal siblings": (tree("{name: A}", "{name: a}"), 6, "root", "duplicate queue name 'a'"),
    "equal siblings below": (tree("{name: p, queues: [", "{name: a}", "{name: a}]}").replace("[,", "["), 7, "root.p", "duplicate queue name"),
    "submit acl": (tree("{name: a, submitacl: u g x}"), 5, "root.a", "multiple spaces found in ACL: 'u g x'"),
    "admin acl": (tree("{name: a, adminacl: 'u, v g'}"), 5, "root.a", "adminacl: multiple spaces found in ACL"),
    "quantity": (tree("{name: a, resources: {max: {vcore: '1.5'}}}"), 5, "root.a", "invalid quantity '1.5' of resource 'vcore'"),
    "quantity suffix": (tree("{name: a, resources: {guaranteed: {memory: 5K}}}"), 5, "root.a", "invalid suffix"),
    "quantity overflow": (tree("{name: a, resources: {max: {memory: 8Ei}}}"), 5, "root.a", "invalid quantity: overflow"),
    "template quantity": (tree("{name: a, childtemplate: {resources: {max: {memory: -1}}}}"), 5, "root.a", "invalid quantity '-1'"),
    "guaranteed over max": (tree("{name: a, resources: {guaranteed: {vcore: 5}, max: {vcore: 4}}}"), 5, "root.a", "guaranteed resource {vcore: 5000} is larger than maximum resource {vcore: 4000}"),
    "zero max is a limit": (tree("{name: a, resources: {guaranteed: {vcore: 5}, max: {vcore: 0}}}"), 5, "root.a", "is larger than maximum resource {vcore: 0}"),
    "child max": (tree("{name: p, resources: {max: {vcore: 10}}, queues: [{name: a,", "resources: {max: {vcore: 12}}}]}").replace(",,", ","), 6, "root.p.a", "max resource {vcore: 12000} is larger than maximum resource {vcore: 10000}"),
    "grandchild max": (tree("{name: p, resources: {max: {vcore: 10}}, queues: [{name: q, queues: [{name: a, resources: {max: {vcore: 12}}}]}]}"), 5, "root.p.q.a", "max resource"),
    "zero parent max": (tree("{name: p, resources: {max: {vcore: 0}}, queues: [{name: a, resources: {max: {vcore: 1}}}]}"), 5, "root.p.a", "max resource"),
    "guaranteed sum": (tree("{name: p, resources: {guaranteed: {vcore: 10}}, queues: [{name: a, resources: {guaranteed: {vcore: 6}}}, {name: b, resources: {guaranteed: {vcore: 6}}}]}"), 5, "root.p", "sum of the guaranteed resources of the children {vcore: 12000} is larger than the guaranteed resource {vcore: 10000}"),
    "guaranteed sum over max": (tree("{name: p, resources: {max: {vcore: 10}}, queues: [{name: a, resources: {guaranteed: {vcore: 6}}}, {name: b, resources: {guaranteed: {vcore: 6}}}]}"), 5, "root.p", "is larger than the max resource {vcore: 10000}"),
    "guaranteed sum from below": (tree("{name: p, resources: {guaranteed: {vcore: 1}}, queues: [{name: q, queues: [{name: a, resources: {guaranteed: {vcore: 2}}}]}]}"), 5, "root.p", "guaranteed"),
    "applications unset": (tree("{name: p, maxapplications: 5, queues: [", "{name: a}]}").replace("[,", "["), 6, "root.p.a", "maxApplications is either undefined or zero"),
    "applications too many": (tree("{name: p, maxapplications: 5, queues: [", "{name: a, maxapplications: 6}]}").replace("[,", "["), 6, "root.p.a", "maxApplications 6 is larger"),
    "applications below root": ("partitions:\n- queues:\n  - {name: root, maxapplications: 2,\n     queues: [{name: a}]}\n", 4, "root.a", "maxApplications"),
    "no queues": ("partitions:\n- name: default\n", 2, "partition default", "queue config is not set"),
    "null queues": ("partitions:\n- queues:\n", 2, "partition default", "queue config is not set"),
    "resources on root": ("partitions:\n- queues:\n  - name: root\n    resources: {max: {memory: 1}}\n", 4, "root", "root queue must not have resource limits set"),
    "empty resources on root": ("partitions:\n- queues:\n  - name: Root\n    resources:\n      guaranteed: {}\n", 4, "root", "root queue must not have resource limits set"),
    "limits differ": ("partitions:\n- limits: [{users: [bob], maxapplications: 1}]\n  queues:\n  - {name: root, limits: [{users: [bob], maxapplications: 2}]}\n", 2, "partition default", "partition limits and root queue limits are not equivalent"),
    "node sort policy": ("partitions:\n- queues: []\n  nodesortpolicy:\n    type: Fair\n", 4, "partition default", "undefined policy: Fair"),
    "negative weight": ("partitions:\n- queues: []\n  nodesortpolicy:\n    resourceweights:\n      vcore: 1.0\n      memory: -0.5\n", 6, "partition default", "negative weight -0.5 of resource 'memory'"),
    "resolver that is missing": ("partitions:\n- queues: []\n  usergroupresolver:\n    type: ldap\n", 4, "partition default", "usergroupresolver 'ldap' cannot be served"),
    "resolver for tests": ("partitions:\n- queues: []\n  usergroupresolver: {type: test}\n", 3, "partition default", "cannot be served"),
    "equal partitions": ("partitions:\n- queues: []\n- name: Default\n  queues: []\n", 3, "partition default", "duplicate partition name found with name default"),
    "equal partitions by case": ("partitions:\n- {name: gpu, queues: []}\n- {name: GPU, queues: []}\n", 3, "partition GPU", "duplicate partition name found with name GPU"),
    "brackets": ("partitions:\n- name: '[rm-1]gpu'\n  queues: []\n", 2, "partition [rm-1]gpu", "invalid partition name"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "line", "path", "words"), REFUSALS.values(), ids=REFUSALS)
def test_a_configuration_that_is_refused(text: str, line: int, path: str, words: str) -> None:
    found_line, found_path, what = first_fault(text)
    assert (line, path) == (found_line, found_path)
    assert words in what


def test_every_node_order_is_named_where_one_is_refused() -> None:
    text = "partitions:\n- queues: []\n  nodesortpolicy: {type: best}\n"
    with pytest.raises(
        ConfigError,
        match="use fair or binpacking or least-fragmentation or best-fit or fgd, in lower",
    ):
        parse_config(text)
    for name in NODE_ORDERS:
        assert name == parse_config(text.replace("best", name)).partitions[0].node_sort.policy


ACCEPTED = {
    "two top queues": "partitions:\n- queues: [{name: a}, {name: b}]\n",
    "no top queue": "partitions:\n- queues: []\n",
    "equal limits twice": "partitions:\n- limits: [{users: [bob], maxapplications: 1}]\n  queues:\n  - {name: root, limits: [\n    {maxapplications: 1, users: [bob]}]}\n",
    "null resources on root": "partitions:\n- queues: [{name: root, resources: {max: }}]\n",
    "odd characters": tree("{name: 'a_:#/@-Z9'}"),
    "equal names in other places": tree("{name: p, queues: [{name: a}]}", "{name: q, queues: [{name: a}]}"),
    "guaranteed of other types": tree("{name: p, resources: {guaranteed: {vcore: 10}}, queues: [{name: a, resources: {guaranteed: {memory: 6}}}, {name: b, resources: {guaranteed: {memory: 6}}}]}"),
    "max of other types": tree("{name: p, resources: {max: {vcore: 10}}, queues: [{name: a, resources: {max: {memory: 1G}}}]}"),
    "own promise hides those below": tree("{name: p, resources: {guaranteed: {vcore: 5}}, queues: [{name: q, resources: {guaranteed: {vcore: 4}}, queues: [{name: a, resources: {guaranteed: {vcore: 4}}}]}]}"),
    "applications skip a free parent": tree("{name: p, queues: [{name: a, maxapplications: 9}]}"),
    "double blanks": tree("{name: a, submitacl: 'bob  dev'}"),
    "acl with odd names": tree("{name: a, submitacl: '1bob,??? dev'}"),
    "largest count": tree("{name: a, maxapplications: 18446744073709551615}"),
}  # fmt: skip


@pytest.mark.parametrize("text", ACCEPTED.values(), ids=ACCEPTED)
def test_a_configuration_that_is_accepted(text: str) -> None:
    expected = ["default"]
    assert expected == [partition.name for partition in parse_config(text).partitions]


# For each check, in their order: a key with a faulty and a sound value, and what is said of it.
CHECKS = [
    ("structure", "resources: {max: {a: 1}}", "resources: {}", "root queue must not"),
    ("limits", "maxapplications: 2", "maxapplications: 1", "not equivalent"),
    ("queue", "submitacl: a b c", "submitacl: '*'", "multiple spaces"),
    ("resources", "resources: {max: {a: x}}", "resources: {max: {a: 1}}", "invalid quantity"),
    ("rules", "name: none", "name: provided", "unknown rule name specified"),
    ("node_sort", "type: best", "type: fair", "undefined policy"),
    ("resolver", "type: ldap", "type: os", "cannot be served"),
    ("applications", "maxapplications: 0", "maxapplications: 1", "maxApplications"),
    ("limit_resources", "memory: 6", "memory: 5", "limit of user 'bob' with {memory: 6}"),
    ("limit_applications", "maxapplications: 0", "maxapplications: 1", "limit of user 'bob' with maxapplications unset"),
    ("hierarchy", "name: a", "name: e", "has other parents in partition gpu"),
]  # fmt: skip

ALL_CHECKS = """\
partitions:
- limits: [{{users: [bob], maxapplications: 1, maxresources: {{memory: 5}}}}]
  placementrules: [{{{rules}}}]
  nodesortpolicy: {{{node_sort}}}
  usergroupresolver: {{{resolver}}}
  queues:
  - name: root
    {structure}
    {queue}
    limits: [{{users: [bob], {limits}, maxresources: {{memory: 5}}}}]
    queues:
    - {{name: a, {resources}}}
    - {{name: p, maxapplications: 1, queues: [{{name: q, {applications}}}]}}
    - {{name: b, limits: [{{users: [bob], {limit_applications}, maxresources: {{{limit_resources}}}}}]}}
- name: gpu
  queues: [{{name: d, queues: [{{{hierarchy}}}]}}]
"""


@pytest.mark.parametrize("position", range(len(CHECKS)), ids=[check[0] for check in CHECKS])
def test_the_first_check_that_fails_is_the_reason(position: int) -> None:
    values = {
        name: sound if index < position else faulty
        for index, (name, faulty, sound, _) in enumerate(CHECKS)
    }
    assert CHECKS[position][3] in first_fault(ALL_CHECKS.format(**values))[2]


def test_all_checks_are_made() -> None:
    """In their order, so that the reason is the first, and the rest can be mended with it."""
    with pytest.raises(ConfigError) as caught:
        parse_config(ALL_CHECKS.format(**{name: faulty for name, faulty, _, _ in CHECKS}))
    told = [fault.what for fault in caught.value.faults]
    places = [next(i for i, what in enumerate(told) if words in what) for *_, words in CHECKS]
    assert sorted(places) == places


def test_a_check_tells_all_that_it_finds() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(tree("{name: a.b}", "{name: b, submitacl: a b c}", "{name: B}"))
    expected = [(5, "root"), (7, "root"), (6, "root.b")]
    assert expected == [(fault.line, fault.path) for fault in caught.value.faults]


# --- partitions share a hierarchy -----------------------------------------------------------------


def partitions(first: str, second: str) -> str:
    return f"partitions:\n- name: one\n  queues: {first}\n- name: two\n  queues: {second}\n"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("[{name: a}, {name: b}]", "[{name: c}, {name: b}]"),
        ("[{name: p, queues: [{name: a}]}]", "[{name: P, queues: [{name: A}, {name: b}]}]"),
        ("[{name: p, queues: [{name: a}]}, {name: q, queues: [{name: a}]}]", "[{name: q, queues: [{name: a}]}]"),
        ("[{name: q, queues: [{name: a}]}]", "[{name: p, queues: [{name: a}]}, {name: q, queues: [{name: a}]}]"),
    ],
)  # fmt: skip
def test_a_name_may_stand_in_two_partitions(first: str, second: str) -> None:
    expected = 2
    assert expected == len(parse_config(partitions(first, second)).partitions)


@pytest.mark.parametrize(
    ("first", "second", "path"),
    [
        ("[{name: a}]", "[{name: p, queues: [{name: a}]}]", "root.p.a"),
        ("[{name: p, queues: [{name: a}]}]", "[{name: a}]", "root.a"),
        ("[{name: p, queues: [{name: a}]}]", "[{name: q, queues: [{name: a}]}]", "root.q.a"),
        ("[{name: a}]", "[{name: p, queues: [{name: a}]}, {name: q, queues: [{name: a}]}]", "root.p.a"),
    ],
)  # fmt: skip
def test_a_name_has_one_chain_of_parents(first: str, second: str, path: str) -> None:
    line, found_path, what = first_fault(partitions(first, second))
    assert (5, path) == (line, found_path)
    assert "other parents in partition two than in partition one" in what
