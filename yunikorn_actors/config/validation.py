"""What must hold of a configuration, in the order in which it is checked.

`CHECKS` is that order, and the first fault is the reason. All of them are made, and each tells all
that it finds, so that a text is mended in one go. While keys or types of a text are wrong, only
single values are checked: what is missing may be what was misspelt.

Partitions share one hierarchy: a queue name has the same parents wherever it stands.

Queues that only one partition has are fine. A name may also stand in several places of a partition,
and another partition that has the name too may have some of these places, or more. So the places in
each partition must contain those in every partition that has fewer of them.
"""

from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from itertools import chain, pairwise
from typing import Final

from msgspec import Struct

from yunikorn_actors.config.acl import Acl, AclError
from yunikorn_actors.config.fault import Fault, refuse_any
from yunikorn_actors.config.limits import (
    application_hierarchy_faults,
    list_faults,
    quota_faults,
    resource_hierarchy_faults,
)
from yunikorn_actors.config.names import QUEUE_CHARACTERS, RECOVERY_QUEUE, is_queue_name
from yunikorn_actors.config.node_order import NODE_ORDERS
from yunikorn_actors.config.placement_rules import rule_faults
from yunikorn_actors.config.policy_names import PolicyNames
from yunikorn_actors.config.properties import POLICY_OF, READERS
from yunikorn_actors.config.resources import quantity_faults, resource_faults
from yunikorn_actors.config.site import PartitionSite, Site, meaning, site_of
from yunikorn_actors.config.written import Entry, WrittenConfig
from yunikorn_actors.values.quantity import meant_by

# What is legal in a configuration and can hardly be meant: warnings, or faults in strict mode.

_COMPARED_MAX: Final = 100
"""A longer key is no slip of anyone's fingers, and would take long to compare."""
_ALIKE: Final = 0.75


def warnings_of(partition: PartitionSite) -> Iterator[Fault]:
    """Yield what to warn of in a partition without faults."""
    if not any(_lets_in(site) for site in partition.root.walk()):
        what = "nobody may submit an application: no queue has a submitacl or adminacl"
        yield partition.fault(
            partition.written.line_of("queues"), what, "set submitacl, on root for all queues"
        )
    for site in partition.root.walk():
        for entry in (*site.written.properties, *site.written.childtemplate.properties):
            yield from _property_warnings(site, entry, partition.names)
        yield from _type_warnings(site)


def _lets_in(site: Site) -> bool:
    acls = map(Acl.parse, (site.written.submitacl, site.written.adminacl))
    return any(acl.everybody or acl.users or acl.groups for acl in acls)


def _type_warnings(site: Site) -> Iterator[Fault]:
    written = site.written
    both = (written.resources, written.childtemplate.resources)
    listed = [it.guaranteed or () for it in both] + [it.max or () for it in both]
    limits = (limit.maxresources for limit in written.limits)
    for entry in chain(*listed, *limits):
        if (meant := meant_by(entry.key)) is not None:
            what = f"resource type {entry.key!r:.100} is one that nothing else has"
            yield site.fault(entry.line, what, f"did you mean {meant!r}?")


def _property_warnings(site: Site, entry: Entry[str], names: PolicyNames) -> Iterator[Fault]:
    key = entry.key
    if key not in READERS:
        known = ", ".join(sorted(READERS))
        remedy = _meant(key, tuple(READERS)) or f"known properties: {known}"
        yield site.fault(entry.line, f"unknown property {key!r:.100} has no effect", remedy)
    else:
        yield from value_warnings(site, entry, names)


def value_warnings(site: Site, entry: Entry[str], names: PolicyNames) -> Iterator[Fault]:
    """Tell of a value that a known property cannot have."""
    key, text = entry.key, entry.value
    if names.is_open and key in POLICY_OF:
        return
    policies = names.of_property(key) if key in POLICY_OF else ()
    if text and READERS[key].parse(text) is None and text not in policies:
        words = (*READERS[key].words, *policies)
        allowed = READERS[key].allowed
        if policies:
            allowed += f", or a policy: {', '.join(policies)}"
        remedy = _meant(text, words) or f"use {allowed}"
        what = f"property {key}: {text!r:.100} is no value for it and counts as not set"
        yield site.fault(entry.line, what, remedy)


def _meant(text: str, known: tuple[str, ...]) -> str:
    near = get_close_matches(text[:_COMPARED_MAX].lower(), known, n=1, cutoff=_ALIKE)
    return f"did you mean {str(near[0])!r}?" if near else ""


class _Places(Struct, frozen=True, kw_only=True):
    """Where one name stands in one partition."""

    index: int
    partition: str
    sites: dict[str, Site]


def hierarchy_faults(partitions: Iterable[PartitionSite]) -> list[Fault]:
    """Check each queue name that stands in more than one partition."""
    by_name: dict[str, list[_Places]] = {}
    for index, partition in enumerate(partitions):
        for name, sites in _sites_by_name(partition).items():
            by_name.setdefault(name, []).append(
                _Places(index=index, partition=partition.name, sites=sites)
            )
    return [fault for places in by_name.values() for fault in _place_faults(places)]


def _sites_by_name(partition: PartitionSite) -> dict[str, dict[str, Site]]:
    """Return the queues of a partition by name, then by path."""
    sites: dict[str, dict[str, Site]] = {}
    for site in partition.root.walk():
        sites.setdefault(site.name, {})[site.path] = site
    return sites


def _place_faults(places: list[_Places]) -> Iterator[Fault]:
    ascending = sorted(places, key=lambda place: (len(place.sites), place.index))
    for fewer, more in pairwise(ascending):
        if fewer.sites.keys() <= more.sites.keys():
            continue
        earlier, later = sorted((fewer, more), key=lambda place: place.index)
        site = next(site for path, site in later.sites.items() if path not in earlier.sites)
        what = (
            f"queue name {site.name!r} has other parents in partition {later.partition} "
            f"than in partition {earlier.partition} ({', '.join(earlier.sites)})"
        )
        yield site.fault(site.written.line_of("name"), what, "rename or move one of them")


UNSERVED_RESOLVERS: Final = ("ldap", "test")
"""YuniKorn has them and this core does not: every application would be rejected."""


def validated(config: WrittenConfig, names: PolicyNames) -> tuple[PartitionSite, ...]:
    """Return the partitions of a configuration in which everything holds, or refuse it."""
    partitions = tuple(site_of(partition, names) for partition in config.partitions)
    refuse_any(_faults(partitions))
    return partitions


def value_faults(config: WrittenConfig, names: PolicyNames) -> Iterator[Fault]:
    """Yield the faults of single values; they show even where keys are misspelt or missing."""
    for partition in (site_of(it, names) for it in config.partitions):
        for site in partition.root.walk():
            yield from _acls_faults(site)
            for limit in site.written.limits:
                yield from quota_faults(site, limit)
        yield from quantity_faults(partition)
        yield from _node_sort_faults(partition)
        yield from _resolver_faults(partition)


def _faults(partitions: tuple[PartitionSite, ...]) -> Iterator[Fault]:
    taken: set[str] = set()
    for partition in partitions:
        yield from _name_faults(partition, taken)
        taken.add(partition.name.lower())
        for check in CHECKS:
            yield from check(partition)
    yield from hierarchy_faults(partitions)


def _name_faults(partition: PartitionSite, taken: set[str]) -> Iterator[Fault]:
    name, line = partition.name, partition.written.line_of("name")
    if name.lower() in taken:
        what = f"duplicate partition name found with name {name}"
        yield partition.fault(line, what, "rename one of them; case does not count")
    # The core puts the resource manager in brackets before the name.
    if "[" in name or "]" in name:
        yield partition.fault(line, f"invalid partition name {name!r}", "leave out the brackets")


def _structure_faults(partition: PartitionSite) -> Iterator[Fault]:
    if partition.written.queues is None:
        what = "queue config is not set"
        yield partition.fault(partition.written.line, what, "add queues, an empty list will do")
    resources = partition.root.written.resources
    if resources.guaranteed is not None or resources.max is not None:
        what = "root queue must not have resource limits set"
        line = partition.root.written.line_of("resources")
        yield partition.root.fault(line, what, "set them on the queues below root")


def _limits_faults(partition: PartitionSite) -> Iterator[Fault]:
    ours, roots = partition.written.limits, partition.root.written.limits
    if ours and [meaning(limit) for limit in ours] != [meaning(limit) for limit in roots]:
        what = "partition limits and root queue limits are not equivalent"
        yield partition.fault(partition.written.line_of("limits"), what, "keep one of the two")


# --- queue by queue -------------------------------------------------------------------------------


def _queue_faults(partition: PartitionSite) -> Iterator[Fault]:
    for site in partition.root.walk():
        yield from _acls_faults(site)
        yield from list_faults(site)
        yield from _child_name_faults(site)


def _acls_faults(site: Site) -> Iterator[Fault]:
    yield from _acl_faults(site, "adminacl", site.written.adminacl)
    yield from _acl_faults(site, "submitacl", site.written.submitacl)


def _acl_faults(site: Site, key: str, text: str) -> Iterator[Fault]:
    try:
        Acl.parse(text)
    except AclError as error:
        remedy = "write users, one blank, groups; commas without blanks inside the lists"
        yield site.fault(site.written.line_of(key), f"{key}: {error}", remedy)


def _child_name_faults(site: Site) -> Iterator[Fault]:
    seen: dict[str, Site] = {}
    for child in site.children:
        name, line = child.written.name, child.written.line_of("name")
        if not is_queue_name(name):
            yield site.fault(line, f"invalid name {name!r} of a queue", f"use {QUEUE_CHARACTERS}")
        elif child.name == RECOVERY_QUEUE:
            yield site.fault(line, f"queue name {name!r} belongs to the core", "choose another")
        elif child.name in seen:
            what = f"duplicate queue name {name!r}, also on line {seen[child.name].written.line}"
            yield site.fault(line, what, "rename one of them; case does not count")
        seen.setdefault(child.name, child)


# --- the rest of a partition ----------------------------------------------------------------------


def _node_sort_faults(partition: PartitionSite) -> Iterator[Fault]:
    written = partition.written.nodesortpolicy
    known = (*NODE_ORDERS, *partition.names.nodes)
    if not partition.names.is_open and written.type not in ("", *known):
        what = f"undefined policy: {written.type}"
        remedy = f"use {' or '.join(known)}, in lower case"
        yield partition.fault(written.line_of("type"), what, remedy)
    for weight in written.resourceweights:
        if weight.value < 0:
            what = f"negative weight {weight.value} of resource {weight.key!r}"
            yield partition.fault(weight.line, what, "use 0 or more")


def _policy_faults(partition: PartitionSite) -> Iterator[Fault]:
    """Where policies are given, one of them is meant: another name is more than a warning."""
    if partition.names.is_closed:
        for site in partition.root.walk():
            for entry in (*site.written.properties, *site.written.childtemplate.properties):
                if entry.key in POLICY_OF:
                    yield from value_warnings(site, entry, partition.names)


def _resolver_faults(partition: PartitionSite) -> Iterator[Fault]:
    written = partition.written.usergroupresolver
    if written.type in UNSERVED_RESOLVERS:
        what = f"usergroupresolver {written.type!r} cannot be served: there is no such resolver yet"
        remedy = "use os, or none and send the groups with each application"
        yield partition.fault(written.line_of("type"), what, remedy)


def _application_faults(partition: PartitionSite) -> Iterator[Fault]:
    for site in partition.root.walk():
        most = site.written.maxapplications
        if most:
            for child in site.children:
                yield from _child_application_faults(child, most)


def _child_application_faults(child: Site, most: int) -> Iterator[Fault]:
    own, line = child.written.maxapplications, child.written.line_of("maxapplications")
    remedy = f"set maxapplications from 1 to {most}"
    if not own:
        what = (
            "maxApplications is either undefined or zero, "
            "which is not allowed when parent queue's maxApplications is defined"
        )
        yield child.fault(line, what, remedy)
    elif own > most:
        what = f"maxApplications {own} is larger than maxApplications {most} of the parent queue"
        yield child.fault(line, what, remedy)


CHECKS: Final[tuple[Callable[[PartitionSite], Iterator[Fault] | list[Fault]], ...]] = (
    _structure_faults,
    _limits_faults,
    _queue_faults,
    resource_faults,
    rule_faults,
    _node_sort_faults,
    _policy_faults,
    _resolver_faults,
    _application_faults,
    lambda partition: resource_hierarchy_faults(partition.root),
    lambda partition: application_hierarchy_faults(partition.root),
)
