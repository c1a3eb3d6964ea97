"""A configuration as it was written: the document's own keys and texts, each with its line.

The classes are named after what they describe, their fields after the keys of the document, because
the keys are what a fault has to quote. Types are right in here, nothing else is known to be.
"""

from typing import Generic, TypeVar

from msgspec import Struct, field

T = TypeVar("T")


class Entry(Struct, Generic[T], frozen=True, kw_only=True):
    """One entry of a mapping whose keys are free."""

    key: str
    value: T
    line: int


class Word(Struct, frozen=True, kw_only=True):
    """One text of a list."""

    text: str
    line: int


class Written(Struct, frozen=True, kw_only=True):
    line: int = 1
    lines: dict[str, int] = field(default_factory=dict)

    def line_of(self, key: str) -> int:
        """Return the line of a key, or of the whole where the key is missing."""
        return self.lines.get(key, self.line)


class WrittenResources(Written, frozen=True, kw_only=True):
    guaranteed: tuple[Entry[str], ...] | None = None
    max: tuple[Entry[str], ...] | None = None


class WrittenTemplate(Written, frozen=True, kw_only=True):
    maxapplications: int = 0
    properties: tuple[Entry[str], ...] = ()
    resources: WrittenResources = WrittenResources()


class WrittenLimit(Written, frozen=True, kw_only=True):
    limit: str = ""
    users: tuple[Word, ...] = ()
    groups: tuple[Word, ...] = ()
    maxresources: tuple[Entry[str], ...] = ()
    maxapplications: int = 0


class WrittenQueue(Written, frozen=True, kw_only=True):
    name: str = ""
    parent: bool = False
    queues: "tuple[WrittenQueue, ...]" = ()
    resources: WrittenResources = WrittenResources()
    maxapplications: int = 0
    properties: tuple[Entry[str], ...] = ()
    adminacl: str = ""
    submitacl: str = ""
    limits: tuple[WrittenLimit, ...] = ()
    childtemplate: WrittenTemplate = WrittenTemplate()


class WrittenFilter(Written, frozen=True, kw_only=True):
    type: str = ""
    users: tuple[Word, ...] = ()
    groups: tuple[Word, ...] = ()


class WrittenRule(Written, frozen=True, kw_only=True):
    name: str = ""
    create: bool = False
    filter: WrittenFilter | None = None
    parent: "WrittenRule | None" = None
    value: str = ""


class WrittenNodeSort(Written, frozen=True, kw_only=True):
    type: str = ""
    resourceweights: tuple[Entry[float], ...] = ()


class WrittenPreemption(Written, frozen=True, kw_only=True):
    enabled: bool = True
    quotapreemptionenabled: bool = False


class WrittenResolver(Written, frozen=True, kw_only=True):
    type: str = ""


class WrittenPartition(Written, frozen=True, kw_only=True):
    name: str = ""
    queues: tuple[WrittenQueue, ...] | None = None
    placementrules: tuple[WrittenRule, ...] = ()
    limits: tuple[WrittenLimit, ...] = ()
    preemption: WrittenPreemption = WrittenPreemption()
    nodesortpolicy: WrittenNodeSort = WrittenNodeSort()
    usergroupresolver: WrittenResolver = WrittenResolver()


class WrittenConfig(Written, frozen=True, kw_only=True):
    partitions: tuple[WrittenPartition, ...] = ()
    checksum: str = ""
