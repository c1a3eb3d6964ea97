"""What would be wrong with a configuration that was changed as values, if it were written so."""

from collections.abc import Mapping

from yunikorn_actors.config.fault import ConfigError, Fault
from yunikorn_actors.config.model import LimitConfig, QueueConfig, SchedulerConfig, TemplateConfig
from yunikorn_actors.config.policy_names import PolicyNames
from yunikorn_actors.config.site import site_of
from yunikorn_actors.config.validation import validated, warnings_of
from yunikorn_actors.config.written import (
    Entry,
    Word,
    WrittenConfig,
    WrittenLimit,
    WrittenPartition,
    WrittenQueue,
    WrittenResources,
    WrittenTemplate,
)
from yunikorn_actors.values.quantity import quantity
from yunikorn_actors.values.resource import Resource


def new_faults(before: SchedulerConfig, after: SchedulerConfig, names: PolicyNames) -> list[Fault]:
    """Return the faults and warnings of the queues that `after` has and `before` has not.

    What is in force may be wrong: another core let it in, or it was made of a dump.
    """
    known = {(it.path, it.what) for it in _faults_of(before, names)}
    return [it for it in _faults_of(after, names) if (it.path, it.what) not in known]


def _faults_of(config: SchedulerConfig, names: PolicyNames) -> list[Fault]:
    partitions = tuple(
        WrittenPartition(name=it.name, queues=(_queue(it.root),)) for it in config.partitions
    )
    try:
        validated(WrittenConfig(partitions=partitions), names)
    except ConfigError as error:
        return list(error.faults)
    return [fault for it in partitions for fault in warnings_of(site_of(it, names))]


def _queue(config: QueueConfig) -> WrittenQueue:
    return WrittenQueue(
        name=config.name,
        parent=config.parent,
        queues=tuple(map(_queue, config.children)),
        resources=WrittenResources(
            guaranteed=_amounts(config.guaranteed), max=_amounts(config.max)
        ),
        maxapplications=config.max_applications,
        properties=_entries(config.properties),
        adminacl=config.admin_acl,
        submitacl=config.submit_acl,
        limits=tuple(map(_limit, config.limits)),
        childtemplate=_template(config.template or TemplateConfig()),
    )


def _template(config: TemplateConfig) -> WrittenTemplate:
    return WrittenTemplate(
        resources=WrittenResources(
            guaranteed=_amounts(config.guaranteed), max=_amounts(config.max)
        ),
        maxapplications=config.max_applications,
        properties=_entries(config.properties),
    )


def _limit(config: LimitConfig) -> WrittenLimit:
    return WrittenLimit(
        limit=config.description,
        users=tuple(Word(text=it, line=1) for it in config.users),
        groups=tuple(Word(text=it, line=1) for it in config.groups),
        maxresources=_amounts(config.max_resources) or (),
        maxapplications=config.max_applications,
    )


def _amounts(amounts: Resource | None) -> tuple[Entry[str], ...] | None:
    if amounts is None:
        return None
    return _entries({kind: quantity(kind, amount) for kind, amount in amounts.items()})


def _entries(words: Mapping[str, str]) -> tuple[Entry[str], ...]:
    return tuple(Entry(key=key, value=value, line=1) for key, value in words.items())
