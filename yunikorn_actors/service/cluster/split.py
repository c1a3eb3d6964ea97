"""Which partition an item belongs to; requests and configurations, cut by partition."""

from collections.abc import Collection, Mapping
from typing import Any, Final, TypeAlias

import yaml
from msgspec import structs

from yunikorn_actors import si
from yunikorn_actors.config import DEFAULT_TEXT, parse_config
from yunikorn_actors.policies.registry import NO_POLICIES, Policies
from yunikorn_actors.values.ids import partition_name, short_partition_name
from yunikorn_actors.values.tags import NODE_PARTITION

Request: TypeAlias = si.AllocationRequest | si.ApplicationRequest | si.NodeRequest
_RELEASES: Final = tuple(si.AllocationReleasesRequest.__struct_fields__)
_LISTS: Final[Mapping[type, tuple[str, ...]]] = {
    si.AllocationRequest: ("asks", "allocations"),
    si.ApplicationRequest: ("new", "remove"),
    si.NodeRequest: ("nodes",),
}


def names_in(text: str, policies: Policies = NO_POLICIES) -> tuple[str, ...]:
    """Name the partitions of a configuration; raise ConfigError for one with a fault.

    Policies of installed packages are known without being given: each host has them.
    """
    config = parse_config(text, policies.names_for(text))
    return tuple(it.name for it in config.partitions)


def config_for(text: str, partition: str) -> str:
    """Return the part of a configuration that is about this partition; it has no fault."""
    document = yaml.safe_load(text if text.strip() else DEFAULT_TEXT)
    mine = [it for it in document["partitions"] if str(it["name"]) == partition]
    return yaml.safe_dump({"partitions": mine}, sort_keys=False)


def split(request: Request, homes: Collection[str]) -> dict[str, Request]:
    """Return the part of each partition, in the order in which the request names them.

    What names a partition that is not there goes to the first one, which refuses it in the words of
    the interface.
    """
    homes = tuple(homes)
    parts: dict[str, dict[str, list[Any]]] = {}
    for field, item in _items(request):
        name = home_of(request.rm_id, item)
        lists = parts.setdefault(name if name in homes else homes[0], {})
        lists.setdefault(field, []).append(item)
    # One part, which is nearly always so: nothing is copied.
    if len(parts) == 1:
        return dict.fromkeys(parts, request)
    return {name: _request(request, lists) for name, lists in parts.items()}


def home_of(rm_id: str, item: Any) -> str:  # noqa: ANN401 - an item of any list
    """Name the partition of an item, as the configuration calls it."""
    if isinstance(item, si.NodeInfo):
        named = item.attributes.get(NODE_PARTITION, "")
    else:
        named = item.partition_name
    return short_partition_name(partition_name(rm_id, named))


def _items(request: Request) -> list[tuple[str, Any]]:
    found = [(field, it) for field in _LISTS[type(request)] for it in getattr(request, field)]
    if isinstance(request, si.AllocationRequest) and request.releases is not None:
        found += [(field, it) for field in _RELEASES for it in getattr(request.releases, field)]
    return found


def _request(whole: Request, lists: Mapping[str, list[Any]]) -> Request:
    filled = {field: tuple(lists.get(field, ())) for field in _LISTS[type(whole)]}
    if isinstance(whole, si.AllocationRequest):
        released = {field: tuple(lists[field]) for field in _RELEASES if field in lists}
        releases = si.AllocationReleasesRequest(**released) if released else None
        return structs.replace(whole, releases=releases, **filled)
    return structs.replace(whole, **filled)
