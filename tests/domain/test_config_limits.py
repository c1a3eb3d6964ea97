"""User and group limits: one list by itself, and along the tree."""

import pytest
from configurations import first_fault

from yunikorn_actors.config import parse_config


def with_limits(*limits: str, queue: str = "name: a") -> str:
    """Return a configuration with one queue root.a, whose first limit is line 6."""
    head = "partitions:\n- name: default\n  queues:\n  - {name: root, queues: [{\n"
    return f"{head}    {queue}, limits: [\n" + ",\n".join(limits) + "\n    ]}]}\n"


REFUSALS = {
    "nobody": (with_limits("{maxapplications: 1}"), 6, "a limit without users and groups"),
    "nothing": (with_limits("{users: [bob]}"), 6, "a limit without maxresources and maxapplications"),
    "nothing but an empty map": (with_limits("{users: [bob], maxresources: {}}"), 6, "limit"),
    "zero": (with_limits("{users: [bob],", "maxresources: {vcore: 0}}").replace(",,", ","), 7, "maxresources of a limit are all zero"),
    "quantity": (with_limits("{users: [bob], maxresources: {vcore: -1}}"), 6, "invalid quantity '-1'"),
    "user name": (with_limits("{users: [1bob], maxapplications: 1}"), 6, "invalid user name '1bob'"),
    "group name": (with_limits("{groups: [de/v], maxapplications: 1}"), 6, "invalid group name 'de/v'"),
    "empty name": (with_limits("{users: [''], maxapplications: 1}"), 6, "invalid user name ''"),
    "user twice": (with_limits("{users: [bob,", "bob], maxapplications: 1}").replace(",,", ","), 7, "duplicate user 'bob'"),
    "user twice in two limits": (with_limits("{users: [bob], maxapplications: 1}", "{users: [bob], maxapplications: 1}"), 7, "duplicate user 'bob'"),
    "group twice": (with_limits("{groups: [dev, dev], maxapplications: 1}"), 6, "duplicate group 'dev'"),
    "wildcard twice": (with_limits("{users: ['*', '*'], maxapplications: 1}"), 6, "duplicate user '*'"),
    "user after wildcard": (with_limits("{users: ['*'], maxapplications: 1}", "{users: [bob], maxapplications: 1}"), 7, "user 'bob' after the wildcard user"),
    "user after wildcard in one limit": (with_limits("{users: ['*', bob], maxapplications: 1}"), 6, "wildcard"),
    "group after wildcard": (with_limits("{groups: [dev, '*'], maxapplications: 1}", "{groups: [ops], maxapplications: 1}"), 7, "group 'ops' after the wildcard group"),
    "lone wildcard group": (with_limits("{groups: ['*'], maxapplications: 1}"), 6, "the wildcard group without a named group"),
    "wildcard group before the named one": (with_limits("{groups: ['*'], maxapplications: 1}", "{groups: [dev], maxapplications: 1}"), 6, "wildcard group"),
    "more applications than the queue": (with_limits("{users: [bob], maxapplications: 6}", queue="name: a, maxapplications: 5"), 6, "limit of 6 applications, the queue has 5"),
    "more than the queue": (with_limits("{users: [bob], maxresources: {memory: 6}}", queue="name: a, resources: {max: {memory: 5}}"), 6, "limit of {memory: 6} is larger than the max {memory: 5}"),
    "more than nothing": (with_limits("{users: [bob], maxresources: {memory: 6}}", queue="name: a, resources: {max: {memory: 0}}"), 6, "limit of {memory: 6}"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "line", "words"), REFUSALS.values(), ids=REFUSALS)
def test_a_list_that_is_refused(text: str, line: int, words: str) -> None:
    found_line, path, what = first_fault(text)
    assert (line, "root.a") == (found_line, path)
    assert words in what


ACCEPTED = {
    "named group, then the others": with_limits("{groups: [dev], maxapplications: 1}", "{groups: ['*'], maxapplications: 1}"),
    "named group and the others": with_limits("{groups: [dev, '*'], maxapplications: 1}"),
    "wildcard user alone": with_limits("{users: ['*'], maxapplications: 1}"),
    "one name as user and as group": with_limits("{users: [dev], groups: [dev], maxapplications: 1}"),
    "odd names": with_limits("{users: ['a:b#c/d_e.f@g-h$'], groups: ['a:b_c.d-e'], maxapplications: 1}"),
    "some types zero": with_limits("{users: [bob], maxresources: {memory: 30, gpu: 0}}"),
    "types that the queue does not limit": with_limits("{users: [bob], maxresources: {gpu: 9}}", queue="name: a, resources: {max: {memory: 5}}"),
}  # fmt: skip


@pytest.mark.parametrize("text", ACCEPTED.values(), ids=ACCEPTED)
def test_a_list_that_is_accepted(text: str) -> None:
    expected = 1
    assert expected == len(parse_config(text).partitions)


# --- along the tree: root line 4, root.p line 5, root.p.q line 6 ----------------------------------


def chain(root: str, parent: str, leaf: str) -> str:
    return (
        "partitions:\n- name: default\n  queues:\n"
        f"  - {{name: root, limits: [{root}], queues: [\n"
        f"    {{name: p, limits: [{parent}], queues: [\n"
        f"      {{name: q, limits: [{leaf}]}}]}}]}}\n"
    )


def users(name: str, *, apps: int = 0, **amounts: int) -> str:
    return f"{{users: ['{name}'], {quota(apps, amounts)}}}"


def groups(name: str, *, apps: int = 0, **amounts: int) -> str:
    return f"{{groups: ['{name}'], {quota(apps, amounts)}}}"


def quota(apps: int, amounts: dict[str, int]) -> str:
    resources = ", ".join(f"{kind}: {amount}" for kind, amount in amounts.items())
    return f"maxresources: {{{resources}}}, maxapplications: {apps}"


DEV = groups("dev", memory=99, apps=99)

HIERARCHY_REFUSALS = {
    "same user": (chain(users("bob", memory=5), users("bob", memory=6), ""), 5, "user 'bob'"),
    "same user further down": (chain(users("bob", memory=5), "", users("bob", memory=6)), 6, "user 'bob'"),
    "nearest counts": (chain(users("bob", memory=5), users("bob", memory=3), users("bob", memory=4)), 6, "{memory: 3}"),
    "types add up": (chain(users("bob", memory=5), users("bob", vcore=3), users("bob", memory=6)), 6, "{memory: 5, vcore: 3000}"),
    "wildcard stands for a name": (chain(users("*", memory=5), "", users("bob", memory=6)), 6, "user 'bob'"),
    "same wildcard": (chain(users("*", memory=5), users("*", memory=6), ""), 5, "user '*'"),
    "same group": (chain(groups("dev", memory=5), groups("dev", memory=6), ""), 5, "group 'dev'"),
    "wildcard group": (chain(f"{DEV}, {groups('*', memory=5)}", "", groups("ops", memory=6)), 6, "group 'ops'"),
    "applications": (chain(users("bob", apps=5), users("bob", apps=6), ""), 5, "limit of user 'bob' with maxapplications 6, the limit above has 5"),
    "applications unset": (chain(users("bob", apps=5), users("bob", memory=1), ""), 5, "limit of user 'bob' with maxapplications unset"),
    "applications of the wildcard": (chain(users("*", apps=5), "", users("bob", apps=6)), 6, "user 'bob'"),
    "applications of a group": (chain(groups("dev", apps=5), "", groups("dev", apps=6)), 6, "group 'dev'"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "line", "words"), HIERARCHY_REFUSALS.values(), ids=HIERARCHY_REFUSALS
)
def test_a_hierarchy_that_is_refused(text: str, line: int, words: str) -> None:
    found_line, _, what = first_fault(text)
    assert line == found_line
    assert words in what


HIERARCHY_ACCEPTED = {
    "equal all the way": chain(*[users("bob", memory=5, apps=5)] * 3),
    "other types": chain(users("bob", memory=5), users("bob", vcore=9), ""),
    "other names": chain(users("bob", memory=5), users("al", memory=9), ""),
    "a named limit ends the wildcard": chain(users("*", memory=5), users("bob", memory=4), users("bob", memory=4)),
    "a wildcard below a name": chain(users("bob", memory=5), users("*", memory=9), ""),
    "no applications above": chain(users("bob", memory=5), users("bob", memory=5, apps=9), ""),
    "user and group apart": chain(users("dev", memory=5), groups("dev", memory=9), ""),
    "a list that names nothing": chain(users("bob", memory=5), "", users("bob", memory=5)),
}  # fmt: skip


@pytest.mark.parametrize("text", HIERARCHY_ACCEPTED.values(), ids=HIERARCHY_ACCEPTED)
def test_a_hierarchy_that_is_accepted(text: str) -> None:
    expected = 1
    assert expected == len(parse_config(text).partitions)


def test_siblings_do_not_limit_each_other() -> None:
    first, second = users("bob", memory=5), users("bob", memory=9)
    queues = f"[{{name: a, limits: [{first}]}}, {{name: b, limits: [{second}]}}]"
    config = parse_config(f"partitions:\n- queues: {queues}\n")
    expected = ["a", "b"]
    assert expected == [queue.name for queue in config.partitions[0].root.children]
