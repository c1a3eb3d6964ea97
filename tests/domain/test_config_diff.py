"""What one configuration changes against another, compared with what a core makes of the two."""

import json
from collections.abc import Iterator
from itertools import pairwise, product
from typing import Any

import pytest
from configurations import CONFIGS
from drawn_scripts import TREES

from yunikorn_actors import si
from yunikorn_actors.cli.config_diff import lines_of
from yunikorn_actors.config import QueueConfig, QueueProperties, SchedulerConfig, parse_config
from yunikorn_actors.config.diff import ConfigChange, Kind, config_changes
from yunikorn_actors.config.names import WILDCARD
from yunikorn_actors.config.policy_names import ANY_NAMES
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.swarm.reloads import with_acls, with_one_change
from yunikorn_actors.lab.swarm.scripts import THEMES, drawn_queues
from yunikorn_actors.runtime.virtual_core import VirtualCore
from yunikorn_actors.state.queues import LimitTable

RM = "rm-1"
OF_SPEC = (
    "leaf", "max", "guaranteed", "max_applications", "properties", "submit_acl", "admin_acl",
    "limits", "template",
)  # fmt: skip
NUMBERS = range(6)


def _drawn(theme: str, number: int) -> Iterator[tuple[str, str]]:
    configs = [it["partitions"][0] for it in drawn_queues(theme, number)[0]]
    draw = Draw(1, number)
    one = with_one_change(draw, configs[0], configs[1:])
    two = {**configs[0], "queues": [with_acls(draw, configs[0]["queues"][0])]}
    chain = [configs[0], *configs[1:], one or configs[0], configs[0], two]
    texts = [json.dumps({"partitions": [it]}) for it in chain]
    yield from pairwise(texts)


DRAWN = [
    pytest.param(
        theme, number, id=f"{theme}-{number}", marks=() if number in NUMBERS else pytest.mark.slow
    )
    for theme in THEMES
    for number in range(TREES)
]


def _changes(old: str, new: str) -> list[ConfigChange]:
    return list(config_changes(parse_config(old), parse_config(new)))


class _Nobody(si.ResourceManagerCallback):
    """What is answered does not matter here."""


def _in_a_core(old: str, new: str) -> tuple[dict[str, Any], dict[str, Any]]:
    with VirtualCore(topology="fused") as core:
        request = si.RegisterResourceManagerRequest(rm_id=RM, config=old)
        core.register_resource_manager(request, _Nobody())
        core.run_until_idle()
        before = core.state_dump()["partitions"]
        core.update_configuration(si.UpdateConfigurationRequest(rm_id=RM, config=new))
        core.run_until_idle()
        after = core.state_dump()["partitions"]
    return before, after


@pytest.mark.parametrize(("theme", "number"), DRAWN)
def test_a_core_changes_what_is_named(theme: str, number: int) -> None:
    """Queues of which the core changes something are those that are named, and no others."""
    for old, new in _drawn(theme, number):
        _compare_with_core(old, new)


@pytest.mark.parametrize(("old", "new"), list(product(range(len(CONFIGS)), repeat=2)))
def test_a_core_changes_what_is_named_of_other_configurations(old: int, new: int) -> None:
    _compare_with_core(CONFIGS[old], CONFIGS[new])


def _compare_with_core(old: str, new: str) -> None:
    changes = _changes(old, new)
    before, after = _in_a_core(old, new)
    names = {name: f"[{RM}]{name}" for name in {it.partition for it in changes}}
    for name, whole in names.items():
        kinds = {it.kind for it in changes if it.partition == name and it.what == "partition"}
        assert (whole not in before) == (Kind.ADDED in kinds)
        assert (whole not in after) == (Kind.REMOVED in kinds)
    for whole in before.keys() & after.keys():
        mine = [it for it in changes if f"[{RM}]{it.partition}" == whole]
        _compare_partitions(mine, before[whole], after[whole])


def _compare_partitions(
    changes: list[ConfigChange], before: dict[str, Any], after: dict[str, Any]
) -> None:
    old, new = before["queues"], after["queues"]
    whole = {it.queue: it.kind for it in changes if it.what == "queue"}
    assert {path for path, it in whole.items() if it is Kind.ADDED} == new.keys() - old.keys()
    assert {path for path, it in whole.items() if it is Kind.REMOVED} == {
        path for path, queue in new.items() if queue["state"] == "Draining"
    }
    settled = {path for path in old.keys() & new.keys() if path not in whole}
    written = {path for path in settled if _written(old[path]) != _written(new[path])}
    meant = {path for path in settled if _meant(old[path]) != _meant(new[path])}
    named = {
        it.queue for it in changes
        if it.queue in settled and it.what != "order of its queues"
        and (it.kind is Kind.CHANGED or it.what.startswith(("property", "queues created")))
    }  # fmt: skip
    # A default that is written now means what it meant: to name it or not are both true.
    assert meant <= named <= written
    of_all = [it for it in changes if not it.queue]
    assert bool(of_all) == (before["config"] != after["config"])


def _written(queue: dict[str, Any]) -> dict[str, Any]:
    return {name: queue[name] for name in OF_SPEC}


def _meant(queue: dict[str, Any]) -> dict[str, Any]:
    return _written(queue) | {"properties": QueueProperties.of(queue["properties"])}


# -- limits, by hand


def _levels(config: SchedulerConfig) -> dict[str, tuple[QueueConfig, ...]]:
    found: dict[str, tuple[QueueConfig, ...]] = {}

    def walk(queue: QueueConfig, above: tuple[QueueConfig, ...]) -> None:
        levels = (*above, queue)
        found[".".join(it.name for it in levels)] = levels
        for child in queue.children:
            walk(child, levels)

    walk(config.partitions[0].root, ())
    return found


def _most(levels: tuple[QueueConfig, ...], user: str, kind: str) -> int | None:
    limits = [it for level in levels if (it := LimitTable(level.limits).for_user(user))]
    found = [
        it.max_applications if kind == "applications" else (it.max_resources or {}).get(kind)
        for it in limits
    ]
    return min((it for it in found if it or (it == 0 and kind != "applications")), default=None)


def _named_users(levels: tuple[QueueConfig, ...]) -> set[str]:
    return {user for level in levels for limit in level.limits for user in limit.users}


def test_what_a_user_may_have_below_a_limit() -> None:
    """A user who is named in both has another limit in a queue only where that is named."""
    pairs = [pair for number in NUMBERS for pair in _drawn("limits", number)]
    assert sum(map(_compare_limits, pairs))


def _compare_limits(pair: tuple[str, str]) -> int:
    """Return how many limits changed."""
    before, after = (_levels(parse_config(it)) for it in pair)
    named = {(it.queue, it.what) for it in _changes(*pair)}
    changed = 0
    for path in before.keys() & after.keys():
        both = _named_users(before[path]) & _named_users(after[path]) - {WILDCARD}
        for user, kind in product(sorted(both), ("vcore", "memory", "applications")):
            if _most(before[path], user, kind) != _most(after[path], user, kind):
                changed += 1
                assert (path, f"limit of user {user}: {kind}") in named
    return changed


# -- by example


def _one(queue: str, partition: str = "") -> str:
    below = f"queues: [{{name: root, submitacl: '*', queues: [{queue}]}}]"
    return f"partitions: [{{name: default, {partition} {below}}}]"


PARENT = "{{name: a, {}, queues: [{{name: b{}}}, {{name: c}}]}}"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (_one("{name: a}"), _one("{name: a}") + "\n# the same", []),
        (_one("{name: a, properties: {priority.policy: Fence}}"), _one("{name: a, properties: {priority.policy: fence}}"), []),
        (
            _one("{name: a, resources: {max: {memory: 1Gi}}}"),
            _one("{name: a, resources: {max: {memory: 1500M, vcore: 100m}}}"),
            ["root.a max memory: 1Gi -> 1500M", "root.a max vcore: no limit -> 100m"],
        ),
        (
            _one(PARENT.format("resources: {max: {vcore: 9}}", "")),
            _one(PARENT.format("resources: {max: {vcore: 5}}", "")),
            [
                "root.a max vcore: 9 -> 5",
                "root.a.b max vcore: 9 (of root.a) -> 5 (of root.a)",
                "root.a.c max vcore: 9 (of root.a) -> 5 (of root.a)",
            ],
        ),
        (
            _one(PARENT.format("resources: {max: {vcore: 9}}", ", resources: {max: {vcore: 7}}")),
            _one(PARENT.format("resources: {max: {memory: 2G}}", ", resources: {max: {vcore: 7}}")),
            [
                "root.a max vcore: 9 -> no limit",
                "root.a max memory: no limit -> 2G",
                "root.a.b max memory: no limit -> 2G (of root.a)",
                "root.a.c max memory: no limit -> 2G (of root.a)",
                "root.a.c max vcore: 9 (of root.a) -> no limit",
            ],
        ),
        (
            _one(PARENT.format("properties: {priority.offset: '5', preemption.delay: 10s}", "")),
            _one(PARENT.format("properties: {priority.offset: '6', preemption.delay: 10000ms}", "")),
            ["root.a property priority.offset: 5 -> 6"],
        ),
        (
            _one("{name: a, submitacl: 'ann'}").replace("'*'", "bob"),
            _one("{name: a, submitacl: 'ann'}").replace("'*'", "'bob,cid dev'"),
            [
                "root submit access: users bob -> users bob, cid and groups dev",
                "root.a who may submit: users ann, bob -> users ann, bob, cid and groups dev",
            ],
        ),
        (
            _one("{name: a, parent: true}, {name: b}"), _one("{name: b, parent: true}, {name: a}"),
            [
                "root order of its queues: a, b -> b, a",
                "root.b kind of queue: leaf -> parent",
                "root.a kind of queue: parent -> leaf",
            ],
        ),
        (
            _one("{name: a, limits: [{limit: '', groups: [dev], maxapplications: 1}, {limit: '', groups: [ops], maxapplications: 1}]}"),
            _one("{name: a, limits: [{limit: '', groups: [ops], maxapplications: 1}, {limit: '', groups: [dev], maxapplications: 1}]}"),
            ["root.a order of groups in the limits: dev, ops -> ops, dev"],
        ),
        (
            _one("{name: a}", "nodesortpolicy: {type: fair},"),
            _one("{name: a}", "nodesortpolicy: {type: binpacking, resourceweights: {vcore: 2.5}}, preemption: {enabled: false},"),
            [
                " node order: fair -> binpacking", " preemption: on -> off",
                " weight of memory in the node order: 1 -> 0",
                " weight of vcore in the node order: 1 -> 2.5",
            ],
        ),
        (
            _one("{name: a}", "placementrules: [{name: user}, {name: provided}],"),
            _one("{name: a}", "placementrules: [{name: tag, value: namespace}, {name: user}],"),
            [" placement rule 1:  -> tag namespace", " placement rule 2: provided -> "],
        ),
    ],
)  # fmt: skip
def test_changes(old: str, new: str, expected: list[str]) -> None:
    found = [f"{it.queue} {it.what}: {it.before} -> {it.after}" for it in _changes(old, new)]
    assert sorted(expected) == sorted(found)


def test_partitions_that_come_and_go() -> None:
    found = _changes(
        "partitions: [{name: default, queues: [{name: root}]}, {name: old, queues: [{name: root}]}]",
        "partitions: [{name: default, queues: [{name: root}]}, {name: new, queues: [{name: root, queues: [{name: a}]}]}]",
    )
    assert [("old", Kind.REMOVED, "partition"), ("new", Kind.ADDED, "partition")] == [
        (it.partition, it.kind, it.what) for it in found if not it.queue
    ][:2]
    assert ("root.a", Kind.ADDED, "queue") in [(it.queue, it.kind, it.what) for it in found]


def _with(**properties: str) -> str:
    leaf = {"name": "a", "properties": properties}
    root = {"name": "root", "submitacl": "*", "queues": [leaf]}
    return json.dumps({"partitions": [{"name": "default", "queues": [root]}]})


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("application.sort.policy", "fifo"), ("queue.sort.policy", "fair"),
        ("queue.sort.policy", "FAIR"), ("priority.offset", "0"), ("gang.admission", "hold"),
        # What is no value counts as if it were not there.
        ("priority.offset", "much"), ("preemption.delay", "soon"),
    ],
)  # fmt: skip
def test_what_counts_anyway_is_no_change_of_a_property(key: str, text: str) -> None:
    assert _changes(_with(), _with(**{key: text})) == []
    assert _changes(_with(**{key: text}), _with()) == []


def test_a_value_that_does_not_count_is_called_so() -> None:
    (change,) = _changes(_with(**{"priority.offset": "5"}), _with(**{"priority.offset": "much"}))
    assert (change.before, change.after) == ("5", "much (no such value: as if not set)")
    key = "application.sort.policy"
    old, new = (parse_config(_with(**{key: it}), ANY_NAMES) for it in ("fair", "fairr"))
    (change,) = config_changes(old, new)
    assert change.after == "fairr (a policy of your own; if there is none, as if not set)"


OF_X = "{{name: a, limits: [{}]}}"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # What the wildcard gives to each, one who is named has as well.
        (
            _one(OF_X.format("{users: [x, '*'], maxresources: {vcore: 1}}")),
            _one(OF_X.format("{users: ['*'], maxresources: {vcore: 1000m}}")),
        ),
        (
            _one("{name: a}", "placementrules: [{name: user, filter: {type: allow}}],"),
            _one("{name: a}", "placementrules: [{name: user}],"),
        ),
        (
            _one("{name: a}", "placementrules: [{name: user, filter: {users: [ann, bob]}}],"),
            _one("{name: a}", "placementrules: [{name: user, filter: {users: [bob, ann]}}],"),
        ),
    ],
)  # fmt: skip
def test_what_means_the_same_is_no_change(old: str, new: str) -> None:
    assert _changes(old, new) == _changes(new, old) == []


def test_who_is_named_no_more_has_what_the_wildcard_gives() -> None:
    mine, each = (
        "{users: [x], maxresources: {vcore: 1}}",
        "{users: ['*'], maxresources: {vcore: 3}}",
    )
    (change,) = _changes(_one(OF_X.format(f"{mine}, {each}")), _one(OF_X.format(each)))
    assert (change.what, change.before, change.after) == ("limit of user x: vcore", "1", "3 (of *)")
    group = "{groups: [%s], maxresources: {vcore: %s}}"
    ours, first, others = group % ("x", 1), group % ("y", 2), group % ("'*'", 3)
    found = _changes(
        _one(OF_X.format(f"{ours}, {first}, {others}")), _one(OF_X.format(f"{first}, {others}"))
    )
    assert [(it.what, it.before, it.after) for it in found] == [
        ("limit of group x: vcore", "1", "3 (of *)"),
        ("order of groups in the limits", "x, y, *", "y, *"),
    ]


@pytest.mark.parametrize(
    ("queue", "what"),
    [
        ("{{name: a, properties: {{of.ours: {}}}}}", "unknown property of.ours"),
        (
            "{{name: a, parent: true, childtemplate: {{properties: {{of.ours: {}}}}}}}",
            "queues created below: unknown property of.ours",
        ),
        (
            "{{name: a, limits: [{{limit: {}, users: [x], maxapplications: 1}}]}}",
            "limit of user x: description",
        ),
    ],
)  # fmt: skip
def test_what_the_core_ignores_is_no_difference(queue: str, what: str) -> None:
    found = _changes(_one(queue.format("one")), _one(queue.format("two")))
    assert found == [
        ConfigChange(
            partition="default", queue="root.a", kind=Kind.IGNORED, what=what, before="one",
            after="two",
        )
    ]  # fmt: skip
    assert [*lines_of(found)] == [
        "both mean the same", "ignored in partition default", f"  {what}: one -> two, in root.a",
    ]  # fmt: skip
    added = [it for it in _changes(_one(""), _one(queue.format("one"))) if it.what == what]
    assert [it.kind for it in added] == [Kind.IGNORED]


def test_what_is_ignored_is_not_inherited() -> None:
    old = _one("{name: a, queues: [{name: b}]}")
    new = _one("{name: a, properties: {of.ours: one}, queues: [{name: b}]}")
    assert [it.queue for it in _changes(old, new)] == ["root.a"]
