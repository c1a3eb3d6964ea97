"""From what was written and found to be right to the values that travel."""

from collections.abc import Iterable

from yunikorn_actors.config.model import (
    FilterConfig,
    LimitConfig,
    NodeSortConfig,
    PartitionConfig,
    QueueConfig,
    RuleConfig,
    TemplateConfig,
)
from yunikorn_actors.config.placement_rules import FIXED, PROVIDED
from yunikorn_actors.config.resources import resource_of
from yunikorn_actors.config.site import PartitionSite, Site
from yunikorn_actors.config.written import (
    Entry,
    Word,
    WrittenFilter,
    WrittenLimit,
    WrittenNodeSort,
    WrittenRule,
    WrittenTemplate,
)
from yunikorn_actors.values.resource import Resource, is_zero

_RESOLVER = "os"
"""The one that has a name; any other name means that nothing is looked up."""


def partition_config(partition: PartitionSite) -> PartitionConfig:
    """Build the value of one partition."""
    written = partition.written
    # Without any rule an application goes where it asks to go, if that queue is there.
    rules = written.placementrules or (WrittenRule(name=PROVIDED),)
    resolver = written.usergroupresolver.type
    return PartitionConfig(
        name=partition.name,
        root=_queue(partition.root),
        placement_rules=tuple(_rule(rule) for rule in rules),
        node_sort=_node_sort(written.nodesortpolicy),
        preemption_enabled=written.preemption.enabled,
        quota_preemption_enabled=written.preemption.quotapreemptionenabled,
        user_group_resolver=resolver if resolver == _RESOLVER else "",
    )


def _queue(site: Site) -> QueueConfig:
    written = site.written
    return QueueConfig(
        name=site.name,
        parent=written.parent or site.is_root,
        children=tuple(_queue(child) for child in site.children),
        guaranteed=_promise(written.resources.guaranteed),
        max=resource_of(written.resources.max),
        max_applications=written.maxapplications,
        properties=_texts(written.properties),
        admin_acl=written.adminacl,
        submit_acl=written.submitacl,
        limits=tuple(_limit(limit) for limit in written.limits),
        template=_template(written.childtemplate),
    )


def _promise(amounts: Iterable[Entry[str]] | None) -> Resource | None:
    guaranteed = resource_of(amounts)
    return None if is_zero(guaranteed) else guaranteed


def _texts(entries: Iterable[Entry[str]]) -> dict[str, str]:
    return {entry.key: entry.value for entry in entries}


def _names(words: Iterable[Word]) -> tuple[str, ...]:
    return tuple(word.text for word in words)


def _limit(written: WrittenLimit) -> LimitConfig:
    return LimitConfig(
        description=written.limit,
        users=_names(written.users),
        groups=_names(written.groups),
        max_resources=resource_of(written.maxresources),
        max_applications=written.maxapplications,
    )


def _template(written: WrittenTemplate) -> TemplateConfig | None:
    template = TemplateConfig(
        guaranteed=_promise(written.resources.guaranteed),
        max=resource_of(written.resources.max),
        max_applications=written.maxapplications,
        properties={key: text for key, text in _texts(written.properties).items() if key and text},
    )
    return None if template == TemplateConfig() else template


def _rule(written: WrittenRule) -> RuleConfig:
    name = written.name.lower()
    return RuleConfig(
        name=name,
        create=written.create,
        filter=None if written.filter is None else _filter(written.filter),
        parent=None if written.parent is None else _rule(written.parent),
        value=written.value.lower() if name == FIXED else written.value,
    )


def _filter(written: WrittenFilter) -> FilterConfig:
    return FilterConfig(
        type=written.type.lower() or FilterConfig().type,
        users=_names(written.users),
        groups=_names(written.groups),
    )


def _node_sort(written: WrittenNodeSort) -> NodeSortConfig:
    default = NodeSortConfig()
    weights = {weight.key: weight.value for weight in written.resourceweights}
    return NodeSortConfig(policy=written.type or default.policy, weights=weights or default.weights)
