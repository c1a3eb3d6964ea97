"""Written queues in their place: below root, with a path.

A tree without a single root gets one, so that everything after this sees exactly one tree. This
works for any document, right or wrong; the checks find what is wrong with it.
"""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from yunikorn_actors.config.fault import Fault
from yunikorn_actors.config.names import ROOT
from yunikorn_actors.config.policy_names import PolicyNames
from yunikorn_actors.config.written import WrittenLimit, WrittenPartition, WrittenQueue
from yunikorn_actors.values.ids import DEFAULT_PARTITION


class Site(Struct, frozen=True, kw_only=True):
    """One queue of the tree."""

    name: str
    path: str
    written: WrittenQueue
    children: "tuple[Site, ...]"

    @property
    def is_root(self) -> bool:
        return self.path == ROOT

    @property
    def is_parent(self) -> bool:
        return self.written.parent or bool(self.children) or self.is_root

    def fault(self, line: int, what: str, remedy: str) -> Fault:
        return Fault(line=line, path=self.path, what=what, remedy=remedy)

    def walk(self) -> "Iterator[Site]":
        """Yield this queue and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


class PartitionSite(Struct, frozen=True, kw_only=True):
    name: str
    written: WrittenPartition
    root: Site
    names: PolicyNames
    """The policies that it may name."""

    @property
    def path(self) -> str:
        return f"partition {self.name}"

    def fault(self, line: int, what: str, remedy: str) -> Fault:
        return Fault(line=line, path=self.path, what=what, remedy=remedy)


def site_of(partition: WrittenPartition, names: PolicyNames) -> PartitionSite:
    """Put the queues of a partition below one root, which takes over the partition's limits."""
    root = _root(partition)
    if partition.limits and not root.limits:
        root = replace(root, limits=partition.limits)
    is_default = partition.name.lower() in ("", DEFAULT_PARTITION)
    return PartitionSite(
        name=DEFAULT_PARTITION if is_default else partition.name,
        written=partition,
        root=_placed(root, ""),
        names=names,
    )


def _root(partition: WrittenPartition) -> WrittenQueue:
    tops = partition.queues or ()
    if len(tops) == 1 and tops[0].name.lower() == ROOT:
        return tops[0]
    return WrittenQueue(line=partition.line_of("queues"), name=ROOT, queues=tops)


def _placed(queue: WrittenQueue, parent_path: str) -> Site:
    name = queue.name.lower()
    path = f"{parent_path}.{name}" if parent_path else name
    children = tuple(_placed(child, path) for child in queue.queues)
    return Site(name=name, path=path, written=queue, children=children)


def meaning(limit: WrittenLimit) -> tuple[object, ...]:
    """Return what a limit says, without the lines it stands on."""
    return (
        limit.limit,
        tuple(word.text for word in limit.users),
        tuple(word.text for word in limit.groups),
        {amount.key: amount.value for amount in limit.maxresources},
        limit.maxapplications,
    )
