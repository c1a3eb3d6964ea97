"""The configuration in force, written down again as a document that reads the same.

The core keeps what a text says, not the text. Amounts are written in base units, which mean the
same: `8` vcores come back as `8000m`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from yunikorn_actors.config import (
    FilterConfig,
    LimitConfig,
    PartitionConfig,
    QueueConfig,
    RuleConfig,
    TemplateConfig,
)
from yunikorn_actors.config.placement_rules import FIXED, TAG, is_qualified
from yunikorn_actors.messages.followers import ManagerDescribed
from yunikorn_actors.service.read.incremental_answers import Each
from yunikorn_actors.service.read.rendering import Value, lean
from yunikorn_actors.state.placement import RECOVERY_PATH
from yunikorn_actors.values.resource import Resource
from yunikorn_actors.values.tags import CPU

_EXPRESSION: Final = frozenset("^$*+?()[{}|")
_GO_NAMES: Final = {
    "adminacl": "AdminACL", "checksum": "Checksum", "childtemplate": "ChildTemplate",
    "create": "Create", "deadlockdetectionenabled": "DeadlockDetectionEnabled",
    "deadlocktimeoutseconds": "DeadlockTimeoutSeconds", "enabled": "Enabled", "extra": "Extra",
    "filter": "Filter", "groups": "Groups",
    "guaranteed": "Guaranteed", "limit": "Limit", "limits": "Limits", "max": "Max",
    "maxapplications": "MaxApplications", "maxresources": "MaxResources", "name": "Name",
    "nodesortpolicy": "NodeSortPolicy", "parent": "Parent", "partitions": "Partitions",
    "placementrules": "PlacementRules", "preemption": "Preemption", "properties": "Properties",
    "queues": "Queues", "quotapreemptionenabled": "QuotaPreemptionEnabled",
    "resources": "Resources", "resourceweights": "ResourceWeights", "submitacl": "SubmitACL",
    "type": "Type", "usergroupresolver": "UserGroupResolver", "users": "Users", "value": "Value",
}  # fmt: skip
_FREE_KEYS: Final = frozenset(
    {"extra", "properties", "guaranteed", "max", "maxresources", "resourceweights"}
)
"""Their keys are names of the user's."""
Below = Callable[[Sequence[QueueConfig]], "list[Value] | Each"]


def document(shown: ManagerDescribed | None, *, piecemeal: bool = False) -> Value:
    """Write the configuration of a resource manager, in the words of the document.

    `piecemeal`: each queue is made when it is written.
    """
    if shown is None:
        return {"partitions": []}
    below = _each_queue if piecemeal else _all_queues
    return {"partitions": [partition(it, below) for it in shown.config.partitions]}


def _all_queues(configs: Sequence[QueueConfig]) -> list[Value]:
    return [_queue(child, _all_queues) for child in configs]


def _each_queue(configs: Sequence[QueueConfig]) -> Each | list[Value]:
    # Only when it is written: a configuration may have very many queues.
    return Each(lambda child: _queue(child, _each_queue), configs) if configs else []


def partition(config: PartitionConfig, below: Below = _all_queues) -> Value:
    sort = config.node_sort
    return lean(
        {
            "name": config.name,
            "queues": below((config.root,)),
            "placementrules": [_rule(rule) for rule in config.placement_rules],
            "preemption": {
                "enabled": config.preemption_enabled,
                "quotapreemptionenabled": config.quota_preemption_enabled,
            },
            "nodesortpolicy": {"type": sort.policy, "resourceweights": dict(sort.weights)},
            "usergroupresolver": lean({"type": config.user_group_resolver}),
        }
    )


def _queue(config: QueueConfig, below: Below) -> Value:
    return lean(
        {
            "name": config.name,
            "parent": config.parent,
            "resources": _resources(config),
            "maxapplications": config.max_applications,
            "properties": dict(config.properties),
            "adminacl": config.admin_acl,
            "submitacl": config.submit_acl,
            "childtemplate": {} if config.template is None else _template(config.template),
            "queues": below(config.children),
            "limits": [_limit(limit) for limit in config.limits],
        }
    )


def _resources(config: QueueConfig | TemplateConfig) -> Value:
    return lean({"guaranteed": _amounts(config.guaranteed), "max": _amounts(config.max)})


def _amounts(resource: Resource | None) -> Mapping[str, str]:
    """A plain number of vcores is whole ones; a core counts thousandths."""
    return {
        # A number without a unit would be whole cpus.
        kind: f"{quantity}m" if kind == CPU else str(quantity)
        for kind, quantity in (resource or {}).items()
    }


def _template(config: TemplateConfig) -> Value:
    return lean(
        {
            "maxapplications": config.max_applications,
            "properties": dict(config.properties),
            "resources": _resources(config),
        }
    )


def _limit(config: LimitConfig) -> Value:
    return lean(
        {
            "limit": config.description,
            "users": list(config.users),
            "groups": list(config.groups),
            "maxresources": _amounts(config.max_resources),
            "maxapplications": config.max_applications,
        }
    )


def _rule(config: RuleConfig) -> Value:
    return lean(
        {
            "name": config.name,
            "create": config.create,
            "filter": {} if config.filter is None else _filter(config.filter),
            "parent": {} if config.parent is None else _rule(config.parent),
            "value": config.value,
        }
    )


def _filter(config: FilterConfig) -> Value:
    return lean({"type": config.type, "users": list(config.users), "groups": list(config.groups)})


def in_go_names(value: Any) -> Any:  # noqa: ANN401 - any part of a document
    """Write a document as Go's encoder writes the JSON of the same structures."""
    if isinstance(value, list):
        return [in_go_names(item) for item in value]
    if isinstance(value, Each):
        return Each(in_go_names, value)
    if not isinstance(value, dict):
        return value
    return {
        # Names of the user's are not words of the document.
        _GO_NAMES[key]: item if key in _FREE_KEYS else in_go_names(item)
        for key, item in value.items()
    }


def of_go_names(value: Any) -> Any:  # noqa: ANN401 - any part of what another scheduler has written
    """Read what Go's encoder wrote as a document: in its words, and without what is empty."""
    if isinstance(value, list):
        return [of_go_names(item) for item in value]
    if not isinstance(value, dict):
        return value
    # Go writes what is empty, which a document leaves out.
    words = {key.lower(): item for key, item in value.items() if item not in (None, "", [], {})}
    return {key: item if key in _FREE_KEYS else of_go_names(item) for key, item in words.items()}


# -- placement rules


def rules(config: PartitionConfig) -> list[Value]:
    """List the rules in the order in which they are tried; the last one is always there."""
    # It is not configured, and is tried last.
    recovery = {"name": "recovery", "parameters": {"queue": RECOVERY_PATH}}
    return [*(_shown(rule) for rule in config.placement_rules), recovery]


def _shown(rule: RuleConfig) -> Value:
    own = _PARAMETERS.get(rule.name)
    return lean(
        {
            "name": rule.name,
            "parameters": {
                **({} if own is None else own(rule)),
                "create": str(rule.create).lower(),
            },
            "filter": {} if rule.filter is None else _shown_filter(rule.filter),
            "parentRule": {} if rule.parent is None else _shown(rule.parent),
        }
    )


_PARAMETERS: Final[dict[str, Callable[[RuleConfig], dict[str, str]]]] = {
    FIXED: lambda rule: {
        "queue": rule.value,
        "qualified": str(is_qualified(rule.value)).lower(),
    },
    TAG: lambda rule: {"tagName": rule.value},
}


def _shown_filter(config: FilterConfig) -> Value:
    value: Value = {"type": config.type}
    for noun, names in (("user", config.users), ("group", config.groups)):
        if len(names) == 1 and not _EXPRESSION.isdisjoint(names[0]):
            value[f"{noun}Exp"] = names[0]
        elif names:
            value[f"{noun}List"] = list(names)
    return value
