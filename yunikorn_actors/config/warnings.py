"""What is legal in a configuration and can hardly be meant: warnings, or faults in strict mode."""

from collections.abc import Iterator
from difflib import get_close_matches
from itertools import chain
from typing import Final

from yunikorn_actors.config.acl import Acl
from yunikorn_actors.config.fault import Fault
from yunikorn_actors.config.policy_names import PolicyNames
from yunikorn_actors.config.properties import POLICY_OF, READERS
from yunikorn_actors.config.site import PartitionSite, Site
from yunikorn_actors.config.written import Entry
from yunikorn_actors.values.quantity import meant_by

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
