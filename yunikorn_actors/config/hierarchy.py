"""Partitions share one hierarchy: a queue name has the same parents wherever it stands.

Queues that only one partition has are fine. A name may also stand in several places of a partition,
and another partition that has the name too may have some of these places, or more. So the places in
each partition must contain those in every partition that has fewer of them.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise

from msgspec import Struct

from yunikorn_actors.config.fault import Fault
from yunikorn_actors.config.site import PartitionSite, Site


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
