"""Configurations that a random resource manager may bring, most of them sound.

Delays are no whole milliseconds, as timeouts are: what two actors do at the same instant is a race,
and topologies are compared where there is none.
"""

import pytest

from yunikorn_actors.config import ConfigError, parse_config


def _config(leaves: str, *, settings: str = "", name: str = "default", root: str = "") -> str:
    queues = f"queues: [{{name: root, submitacl: '*', {root} queues: [{leaves}]}}]"
    return f"{{name: {name}, {settings} {queues}}}"


_LEAVES = (
    "{name: default}, {name: limited, resources: {max: {vcore: 6m, memory: 40}, "
    "guaranteed: {vcore: 5m}}, properties: {preemption.delay: 1500us}}, "
    "{name: fair, resources: {guaranteed: {vcore: 6m}}, "
    "properties: {application.sort.policy: fair, preemption.delay: 1500us}}, "
    "{name: aware, properties: {application.sort.policy: stateaware}}, "
    "{name: busy, maxapplications: 2, queues: [{name: one, maxapplications: 1}, {name: two, maxapplications: 2}]}"
)
_TIGHT = (
    "{name: default, properties: {priority.offset: '5', quota.preemption.delay: 1000500us}, "
    "resources: {max: {vcore: 5m}}}, "
    "{name: limited, resources: {max: {vcore: 2m}, guaranteed: {vcore: 1m}}}, "
    "{name: fair, resources: {guaranteed: {vcore: 9m}}, properties: {preemption.delay: 1500us}}, "
    "{name: aware, properties: {preemption.policy: disabled}}, {name: busy, queues: [{name: one, maxapplications: 3}]}"
)
_LIMITED = (
    "{name: default, limits: ["
    "{limit: one, users: [bob], maxresources: {vcore: 4m}, maxapplications: 2}, "
    "{limit: any, users: ['*'], maxresources: {vcore: 2m}}]}, "
    "{name: fair, limits: [{limit: team, groups: [alice, bob], maxresources: {memory: 30}}]}, "
    "{name: limited, properties: {application.sort.priority: disabled}}"
)
_GROWN = "{name: default, queues: [{name: inner}]}, {name: busy, maxapplications: 1}"
_TEMPLATE = (
    "{name: users, parent: true, childtemplate: {maxapplications: 2, "
    "resources: {max: {vcore: 5m}}}}, {name: default}"
)
_RULES = (
    "placementrules: [{name: provided, create: false}, "
    "{name: tag, value: namespace, create: true, parent: {name: fixed, value: users, create: true}}, "
    "{name: user, create: true}],"
)


def _text(*partitions: str) -> str:
    return f"partitions: [{', '.join(partitions)}]"


CONFIGS = (
    _text(_config(_LEAVES)),
    _text(
        _config(
            _TIGHT,
            settings="nodesortpolicy: {type: binpacking}, preemption: {quotapreemptionenabled: true},",
        )
    ),
    _text(_config(_LEAVES), _config("{name: default}", name="other")),
    _text(_config(_TEMPLATE, settings=_RULES)),
    _text(_config(_GROWN)),
    _text(_config(_LIMITED)),
    _text(_config("{name: default}", name="other")),
    "",
)
BAD_CONFIGS = (
    "partitions: [",
    "partitions: [{name: default, queues: [{name: root, colour: red}]}]",
    _text(_config("{name: limited, resources: {max: {vcore: -1}}}")),
)


def first_fault(text: str) -> tuple[int, str, str]:
    """Return line, path and text of the first fault of a configuration that is refused."""
    with pytest.raises(ConfigError) as caught:
        parse_config(text)
    fault = caught.value.faults[0]
    return fault.line, fault.path, fault.what
