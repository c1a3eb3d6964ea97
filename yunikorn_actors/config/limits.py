"""Checks of user and group limits: each list by itself, then along the tree.

In one list a name stands once, `*` stands last, and `*` for groups needs a named group before it,
because it means "all other groups". Along the tree a limit may only narrow what the nearest limit
above it gives the same name; where the name has none above, the nearest `*` stands for it.
"""

from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from yunikorn_actors.config.fault import Fault
from yunikorn_actors.config.names import WILDCARD, is_group_name, is_user_name
from yunikorn_actors.config.resources import amount_faults, resource_of
from yunikorn_actors.config.site import Site
from yunikorn_actors.config.written import Word, WrittenLimit
from yunikorn_actors.values.resource import (
    Resource,
    component_wise_min,
    describe,
    fits_in_max_undef,
    strictly_greater_than_zero,
)


class _Kind(Struct, frozen=True, kw_only=True):
    noun: str
    words: Callable[[WrittenLimit], tuple[Word, ...]]
    is_name: Callable[[str], bool]


_USERS: Final = _Kind(noun="user", words=lambda limit: limit.users, is_name=is_user_name)
_GROUPS: Final = _Kind(noun="group", words=lambda limit: limit.groups, is_name=is_group_name)
_KINDS: Final = (_USERS, _GROUPS)


# --- one list -------------------------------------------------------------------------------------


def list_faults(site: Site) -> Iterator[Fault]:
    """Check the limits of one queue."""
    seen: dict[str, set[str]] = {kind.noun: set() for kind in _KINDS}
    for limit in site.written.limits:
        if not limit.users and not limit.groups:
            what = "a limit without users and groups limits nobody"
            yield site.fault(limit.line, what, "name at least one user or group")
        for kind in _KINDS:
            yield from _name_faults(site, kind, limit, seen[kind.noun])
        yield from _quota_faults(site, limit)


def _name_faults(site: Site, kind: _Kind, limit: WrittenLimit, seen: set[str]) -> Iterator[Fault]:
    for word in kind.words(limit):
        name = word.text
        if name != WILDCARD and not kind.is_name(name):
            what = f"invalid {kind.noun} name {name!r} in a limit"
            yield site.fault(word.line, what, f"use a {kind.noun} name or {WILDCARD!r}")
        elif name in seen:
            what = f"duplicate {kind.noun} {name!r} in the limits of this queue"
            yield site.fault(word.line, what, "keep one of them")
        elif WILDCARD in seen:
            what = f"{kind.noun} {name!r} after the wildcard {kind.noun}"
            yield site.fault(word.line, what, "move the wildcard to the end of the limits")
        seen.add(name)
    if kind is _GROUPS and limit.groups and seen == {WILDCARD}:
        what = "the wildcard group without a named group before it"
        remedy = "name a group first, or limit the wildcard user instead"
        yield site.fault(limit.line_of("groups"), what, remedy)


def quota_faults(site: Site, limit: WrittenLimit) -> list[Fault]:
    """Find the resources of a limit that are no quantities."""
    return amount_faults(site.path, limit.maxresources)


def _quota_faults(site: Site, limit: WrittenLimit) -> Iterator[Fault]:
    unreadable = quota_faults(site, limit)
    yield from unreadable
    wanted = None if unreadable else resource_of(limit.maxresources)
    if wanted is not None and not strictly_greater_than_zero(wanted):
        what = "maxresources of a limit are all zero"
        remedy = "give at least one resource type more than zero"
        yield site.fault(limit.line_of("maxresources"), what, remedy)
    if not limit.maxresources and not limit.maxapplications:
        what = "a limit without maxresources and maxapplications limits nothing"
        yield site.fault(limit.line, what, "set one of the two")
    yield from _more_than_queue(site, limit, wanted)


def _more_than_queue(site: Site, limit: WrittenLimit, wanted: Resource | None) -> Iterator[Fault]:
    applications = site.written.maxapplications
    if applications and applications < limit.maxapplications:
        what = f"limit of {limit.maxapplications} applications, the queue has {applications}"
        remedy = "lower the maxapplications of the limit"
        yield site.fault(limit.line_of("maxapplications"), what, remedy)
    amounts = site.written.resources.max
    if site.is_root or amount_faults(site.path, amounts):
        return
    room = resource_of(amounts)
    if not fits_in_max_undef(wanted, room):
        what = f"limit of {describe(wanted)} is larger than the max {describe(room)} of the queue"
        remedy = "lower the maxresources of the limit"
        yield site.fault(limit.line_of("maxresources"), what, remedy)


# --- along the tree -------------------------------------------------------------------------------

_Resources = dict[str, Resource | None]
_Applications = dict[str, int]


def resource_hierarchy_faults(root: Site) -> list[Fault]:
    """Check that no limit gives a name more resources than the nearest limit above."""
    return [fault for kind in _KINDS for fault in _resource_faults(root, kind, {})]


def application_hierarchy_faults(root: Site) -> list[Fault]:
    """Check that no limit gives a name more applications than the nearest limit above."""
    return [fault for kind in _KINDS for fault in _application_faults(root, kind, {})]


def _resource_faults(site: Site, kind: _Kind, above: _Resources) -> Iterator[Fault]:
    carried = above.copy() if site.written.limits else above
    for limit, word in _named(site, kind):
        wanted = resource_of(limit.maxresources)
        room = above.get(word.text, above.get(WILDCARD))
        if not fits_in_max_undef(wanted, room):
            what = (
                f"limit of {kind.noun} {word.text!r} with {describe(wanted)} is larger than "
                f"{describe(room)}, the limit above"
            )
            yield site.fault(limit.line_of("maxresources"), what, "lower it or raise the other")
        carried[word.text] = component_wise_min(wanted, above.get(word.text))
    for child in site.children:
        yield from _resource_faults(child, kind, carried)


def _application_faults(site: Site, kind: _Kind, above: _Applications) -> Iterator[Fault]:
    carried = above.copy() if site.written.limits else above
    for limit, word in _named(site, kind):
        wanted = limit.maxapplications
        room = above.get(word.text, above.get(WILDCARD, 0))
        if room and not 0 < wanted <= room:
            what = (
                f"limit of {kind.noun} {word.text!r} with maxapplications {wanted or 'unset'}, "
                f"the limit above has {room}"
            )
            line = limit.line_of("maxapplications")
            yield site.fault(line, what, f"set maxapplications from 1 to {room}")
        carried[word.text] = wanted
    for child in site.children:
        yield from _application_faults(child, kind, carried)


def _named(site: Site, kind: _Kind) -> Iterator[tuple[WrittenLimit, Word]]:
    return ((limit, word) for limit in site.written.limits for word in kind.words(limit))
