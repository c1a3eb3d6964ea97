"""What is said of configurations with something wrong in them, or something odd.

A resource manager in error, or a person, writes what nobody drew: a word that no key knows, an
amount that is none, a limit for nobody. One part of a document in which each key stands is changed
at a time, so that what is refused is refused for that.
"""

import copy
import json
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from yunikorn_actors.config import (
    ConfigError,
    PreemptionPolicy,
    SchedulerConfig,
    parse_config,
    warnings_in,
)
from yunikorn_actors.config.diff import config_changes
from yunikorn_actors.config.node_order import BINPACKING
from yunikorn_actors.config.properties import READERS
from yunikorn_actors.lab.schedules.random_draw import Draw

_WHOLE: Final[dict[str, Any]] = {
    "partitions": [
        {
            "name": "default",
            "placementrules": [
                {"name": "user", "create": True,
                 "filter": {"type": "deny", "users": ["ann", "bob"]},
                 "parent": {"name": "fixed", "value": "root.users", "create": True}},
                {"name": "tag", "value": "namespace", "filter": {"groups": ["^d.*"]}},
                {"name": "fixed", "value": "root.a.x"},
                {"name": "provided"},
            ],
            "nodesortpolicy": {
                "type": BINPACKING.name, "resourceweights": {"vcore": 2.5, "memory": 1},
            },
            "preemption": {"enabled": True, "quotapreemptionenabled": True},
            "usergroupresolver": {"type": "none"},
            "queues": [
                {"name": "root", "submitacl": "*", "queues": [
                    {"name": "a", "maxapplications": 9, "adminacl": "ann dev",
                     "properties": {
                         "priority.policy": PreemptionPolicy.FENCE.value, "preemption.delay": "30s",
                     },
                     "resources": {"guaranteed": {"vcore": 2, "memory": "1Gi"},
                                   "max": {"vcore": "9", "memory": "8Gi"}},
                     "limits": [
                         {"limit": "few", "users": ["ann"], "groups": ["dev"], "maxapplications": 3,
                          "maxresources": {"vcore": "3000m"}},
                         {"users": ["*"], "maxresources": {"vcore": 8, "memory": "4G"}},
                     ],
                     "queues": [
                         {"name": "x", "maxapplications": 3,
                          "resources": {"guaranteed": {"vcore": 1}, "max": {"vcore": 4}},
                          "properties": {"application.sort.policy": "fair"},
                          "limits": [{"users": ["ann", "bob"], "maxapplications": 2,
                                      "maxresources": {"vcore": 2}}]},
                         {"name": "y", "maxapplications": 4,
                          "properties": {"preemption.budget": "5/10m"},
                          "resources": {"max": {"vcore": 8}}},
                     ]},
                    {"name": "users", "parent": True, "childtemplate": {
                        "maxapplications": 2, "properties": {"priority.offset": "3"},
                        "resources": {"guaranteed": {"vcore": 1}, "max": {"vcore": 2}}}},
                ]},
            ],
        },
        {"name": "gpu", "limits": [{"users": ["*"], "maxapplications": 5}],
         "queues": [{"name": "root"}, {"name": "other", "submitacl": " dev"}]},
    ]
}  # fmt: skip
"""Each key stands somewhere in it."""
_TEXTS: Final = (
    "", "a b", "*", "root", "a", "x", "ann", "dev", "default", "GPU", "@recovery@", "root.a.x.z",
    "root.none", "a..b", "x" * 70, "Ünicode", "^(", "ann bob cid", " ", "none", "os", "ldap",
    "allow", "fair", "fifo", "fcfs", "binpackin", "user", "provided", "fixd", "disabled", "5",
    "1Gi", "3000m", "1e3", "-1", "0", "5x", "9223372036854775808", "8Ei", "30s", "1h1m", "-5s",
    "5/10m", "10%/1m", "101%/1m", "1.5s",
)  # fmt: skip
_NUMBERS: Final = (-1, 0, 1, 2, 3, 4, 8, 9, 10, 2**64, 1.5, -2.5)
_OTHERS: Final[tuple[Any, ...]] = (
    None, "yes", {}, [], ["ann"], ["*", "ann"], ["ann", "ann"], {"vcore": 1}, {"vcore": 99},
    {"vcore": 0}, {"cpu": 1}, {"memory": "-1"}, [{"name": "b"}], [{"users": []}], *_NUMBERS,
)  # fmt: skip
_OF_ITS_KIND: Final[dict[type, tuple[Any, ...]]] = {
    str: _TEXTS, int: _NUMBERS, float: _NUMBERS, bool: (True, False),
}  # fmt: skip
_WORDS: Final = (
    "vcore", "cpu", "memory", "nvidia.com/gpu", "maxapplication", "submitACL", "queue", "limits",
    "users", "resources", "max", "guaranteed", "prority.offset", "properties", *READERS,
)  # fmt: skip
_CHANGES_MAX: Final = 3
_OF_ANY_KIND: Final = 3
"""In one document of so many something of another kind may stand anywhere."""


_OF_A_PARTITION: Final = (
    "queues: [{name: root, limits: [{users: [ann], maxresources: {vcore: 0}}]}]",
    "queues: [{name: root, limits: [{groups: ['*'], maxapplications: 1}]}]",
    "queues: [{name: root, submitacl: 'a, b c d'}]", "queues: !!set {root}",
    "queues: [{name: root, queues: [{name: '@recovery@'}]}]", "queues: &all [{name: root}]",
    "usergroupresolver: {type: ldap}, queues: [{name: root}]",
    "usergroupresolver: {type: os}, queues: [{name: root}]",
    "nodesortpolicy: {type: fair, resourceweights: {vcore: -1}}, queues: [{name: root}]",
    "limits: [{users: [a]}], queues: [{name: root, limits: [{users: [b]}]}]",
    "placementrules: [{name: tag}], queues: [{name: root}]",
    "placementrules: [{name: fixed}], queues: [{name: root}]",
    "placementrules: [{name: user, filter: {users: ['^(']}}], queues: [{name: root}]",
    "queues: [{name: root, queues: [{name: a, name: b}]}]",
    "queues: [{name: root, submitacl: 2001-01-01}]", "queues: [{name: root, [a]: b}]",
    f"queues: {'[' * 120}{']' * 120}", "queues: [", r'queues: [{name: "\ud800"}]',
    "queues: [{name: root, maxapplications: 0x10}]", "queues: [{name: root, maxapplications: 1_0}]",
)  # fmt: skip
_WRITTEN: Final = (
    *(f"partitions: [{{name: default, {it}}}]" for it in _OF_A_PARTITION),
    "a: b\x07", "a: 1\n---\nb: 2\n", "partitions: [{name: '[a', queues: [{name: root}]}]", "",
    "partitions: []", "- a\n b: [", "odd: 1", "partitions", "5",
)  # fmt: skip
"""With something wrong in most that no document of JSON could have, or that is drawn too rarely."""


def read_as_written(draw: Draw) -> tuple[str, Any]:
    """Return what is said of a text."""
    text = draw.one_of(_WRITTEN)
    try:
        return f"read of {text}", (parse_config(text), warnings_in(text))
    except ConfigError as error:
        return f"refused of {text}", [str(it) for it in error.faults]


def _places(part: Any) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401 - of a document
    """Yield all that can be changed: what holds it, and its key or index there."""
    entries = part.items() if isinstance(part, dict) else enumerate(part)
    for key, value in entries:
        yield part, key
        if isinstance(value, dict | list):
            yield from _places(value)


def _changed(draw: Draw, document: dict[str, Any], *, keeps_kinds: bool) -> None:
    """Change one part of it, to something of its own kind or of any."""
    places = [*_places(document)][1:] or [(document, "partitions")]
    holder, key = draw.one_of(places)
    value = holder[key]
    if draw.once_in(6):
        del holder[key]
    elif isinstance(holder, list) and draw.once_in(2):
        holder.append(copy.deepcopy(value))
    elif isinstance(holder, dict) and draw.once_in(5):
        holder[draw.one_of(_WORDS)] = value
    elif type(value) in _OF_ITS_KIND and (keeps_kinds or draw.once_in(2)):
        holder[key] = draw.one_of(_OF_ITS_KIND[type(value)])
    else:
        # Something of another place: it is right there, and may be wrong here.
        alike = [it[at] for it, at in places if at == key] if keeps_kinds else _OTHERS
        holder[key] = copy.deepcopy(draw.one_of(alike))


def read(draw: Draw) -> tuple[str, Any]:
    """Return what is said of a document: faults, or warnings and how it differs from the whole."""
    document, keeps_kinds = copy.deepcopy(_WHOLE), not draw.once_in(_OF_ANY_KIND)
    for _ in range(draw.whole(1, _CHANGES_MAX)):
        _changed(draw, document, keeps_kinds=keeps_kinds)
    text = json.dumps(document, indent=0)
    try:
        config, warned = parse_config(text), warnings_in(text)
    except ConfigError as error:
        return "a configuration is refused", [str(it) for it in error.faults]
    differing = [str(it) for it in config_changes(_whole(), config)]
    return "a configuration is read", (config, warned, differing)


@cache
def _whole() -> SchedulerConfig:
    return parse_config(json.dumps(_WHOLE, indent=0))
