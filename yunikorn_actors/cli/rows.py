"""What the commands read of the answers of a service; the names on the wire are YuniKorn's."""

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field

from yunikorn_actors.values.quantity import Unit, unit_of

T = TypeVar("T")
Amounts = dict[str, int]
Units = dict[str, Unit]
"""By type of resource: what its amounts are written in, on one table."""


class Partition(Struct, rename="camel"):
    name: str
    cluster_id: str = ""
    """Its resource manager."""


class Queue(Struct, rename="camel"):
    path: str = field(name="queuename")
    status: str = ""
    running_apps: int = 0
    max_running_apps: int = 0
    allocated_resource: Amounts = field(default_factory=dict)
    pending_resource: Amounts = field(default_factory=dict)
    guaranteed_resource: Amounts = field(default_factory=dict)
    max_resource: Amounts = field(default_factory=dict)


class Allocation(Struct, rename="camel"):
    allocation_key: str
    application_id: str = ""
    node_id: str = ""
    resource: Amounts = field(default_factory=dict)


class Application(Struct, rename="camel"):
    id: str = field(name="applicationID")
    application_state: str = ""
    queue_name: str = ""
    user: str = ""
    submission_time: int = 0
    used_resource: Amounts = field(default_factory=dict)
    requests: list[Allocation] = field(default_factory=list)
    """Asks of which something waits."""
    allocations: list[Allocation] = field(default_factory=list)
    rejected_message: str = ""
    finished_time: int = 0

    @property
    def is_alive(self) -> bool:
        return not self.finished_time


class Node(Struct, rename="camel"):
    id: str = field(name="nodeID")
    schedulable: bool = True
    capacity: Amounts = field(default_factory=dict)
    allocated: Amounts = field(default_factory=dict)
    occupied: Amounts = field(default_factory=dict)
    allocations: list[Allocation] = field(default_factory=list)
    reservations: list[str] = field(default_factory=list)


class Event(Struct, rename="camel"):
    type: int = 0
    object_id: str = field(name="objectID", default="")
    message: str = ""
    timestamp_nano: int = 0
    event_change_type: int = 0
    event_change_detail: int = 0
    reference_id: str = field(name="referenceID", default="")


class Events(Struct):
    """Those that are stored, by their numbers."""

    lowest: int = field(name="LowestID")
    highest: int = field(name="HighestID")
    records: list[dict[str, Any]] | None = field(name="EventRecords", default=None)


class ExpectedStart(Struct):
    key: str
    position: int
    waiting: int
    earliest_ns: int | None = None
    latest_ns: int | None = None


class ExpectedStarts(Struct):
    asks: tuple[ExpectedStart, ...] = ()


class Verdict(Struct):
    allowed: bool
    reason: str = ""


class Loaded(Struct):
    follows: str = ""
    """The file of the service that counts again when it changes."""


def units_of(books: Iterable[Amounts]) -> Units:
    """Choose for each type of resource the unit of all its amounts."""
    known: dict[str, list[int]] = {}
    for book in books:
        for kind, amount in book.items():
            known.setdefault(kind, []).append(amount)
    return {kind: unit_of(kind, amounts) for kind, amounts in known.items()}


def read(value: Any, kind: type[T]) -> T:  # noqa: ANN401 - any JSON
    return msgspec.convert(value, kind)
