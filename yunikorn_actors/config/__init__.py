"""The configuration: from text to values that the core can rely on.

Reading goes through four forms, each in its own module: the text, a strict YAML tree (`document`),
what was written with the line of everything (`schema`, `written`), and, once `validate` has found
nothing, the values of `model`. A text that fails anywhere is refused as a whole with `ConfigError`.
"""

import hashlib
import re
from functools import cache, lru_cache
from itertools import chain, islice
from typing import Final

from yunikorn_actors.config.acl import Acl, AclError
from yunikorn_actors.config.build import partition_config
from yunikorn_actors.config.extra import ExtraConfig
from yunikorn_actors.config.fault import FAULTS_MAX, ConfigError, Fault, refuse_any
from yunikorn_actors.config.model import (
    FilterConfig,
    LimitConfig,
    NodeSortConfig,
    PartitionConfig,
    QueueConfig,
    RuleConfig,
    SchedulerConfig,
    TemplateConfig,
)
from yunikorn_actors.config.policy_names import SHIPPED_NAMES, PolicyNames
from yunikorn_actors.config.properties import (
    ApplicationSortPolicy,
    GangAdmission,
    PreemptionBudget,
    PreemptionPolicy,
    PreemptionUnit,
    QueueProperties,
    QueueSortPolicy,
    effective_properties,
    parse_duration,
)
from yunikorn_actors.config.validation import validated, value_faults, warnings_of

__all__ = [
    "Acl",
    "AclError",
    "ApplicationSortPolicy",
    "ConfigError",
    "DEFAULT_TEXT",
    "ExtraConfig",
    "Fault",
    "FilterConfig",
    "GangAdmission",
    "LimitConfig",
    "NodeSortConfig",
    "PartitionConfig",
    "PolicyNames",
    "PreemptionBudget",
    "PreemptionPolicy",
    "PreemptionUnit",
    "QueueConfig",
    "QueueProperties",
    "QueueSortPolicy",
    "RuleConfig",
    "SchedulerConfig",
    "TemplateConfig",
    "checksum_of",
    "effective_properties",
    "name_warnings",
    "parse_config",
    "parse_duration",
    "warnings_in",
]

DEFAULT_TEXT: Final = """\
partitions:
  - name: default
    placementrules:
      - name: tag
        value: namespace
        create: true
    queues:
      - name: root
        submitacl: "*"
"""
"""What an empty text stands for: a queue for each namespace, open to everybody."""

_CHECKSUM: Final = re.compile("checksum: [0-9A-Fa-f]{64}")


def parse_config(text: str, names: PolicyNames = SHIPPED_NAMES) -> SchedulerConfig:
    """Read and check a configuration; a blank text stands for the built-in default."""
    return _read(text, names)[0]


def warnings_in(text: str, names: PolicyNames = SHIPPED_NAMES) -> tuple[Fault, ...]:
    """Read a configuration as `parse_config` does; tell what is legal and can hardly be meant."""
    return _read(text, names)[1]


@lru_cache(maxsize=4)
def _read(text: str, names: PolicyNames) -> tuple[SchedulerConfig, tuple[Fault, ...]]:
    """Keep the last few: one text comes with every registration anew.

    The warnings belong to the text; the configuration that travels is without them.
    """
    if not text.strip():
        return _default(names)
    return _read_anew(text, names)


@cache
def _default(names: PolicyNames) -> tuple[SchedulerConfig, tuple[Fault, ...]]:
    """Every core begins with it, however many other texts come meanwhile."""
    return _read_anew(DEFAULT_TEXT, names)


def _read_anew(text: str, names: PolicyNames) -> tuple[SchedulerConfig, tuple[Fault, ...]]:
    # On first use only: the reader of YAML is a large part of a start.
    from yunikorn_actors.config.schema import read_document  # noqa: PLC0415

    written, faults = read_document(text)
    if faults:
        refuse_any(chain(faults, value_faults(written, names)))
    partitions = validated(written, names)
    config = SchedulerConfig(
        partitions=tuple(partition_config(partition) for partition in partitions),
        checksum=checksum_of(text),
    )
    warned = chain.from_iterable(warnings_of(partition) for partition in partitions)
    return config, tuple(islice(warned, FAULTS_MAX))


def checksum_of(text: str) -> str:
    """Return the checksum of a configuration text, which may itself carry one."""
    bare = _CHECKSUM.sub("", text.rstrip("\n"))
    return hashlib.sha256(bare.encode()).hexdigest().upper()


def name_warnings(config: SchedulerConfig) -> tuple[str, ...]:
    """Point out queue names that stand in several places of one partition: legal, but confusing."""
    return tuple(
        f"partition {partition.name}: queue name {name!r} stands for {', '.join(paths)}"
        for partition in config.partitions
        for name, paths in _paths_by_name(partition.root, "").items()
        if len(paths) > 1
    )


def _paths_by_name(queue: QueueConfig, prefix: str) -> dict[str, list[str]]:
    path = f"{prefix}{queue.name}"
    paths = {queue.name: [path]}
    for child in queue.children:
        for name, below in _paths_by_name(child, f"{path}.").items():
            paths.setdefault(name, []).extend(below)
    return paths
