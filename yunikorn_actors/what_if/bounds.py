"""Maxima that keep an application from having more: where they stand, and how each is raised.

A bound is of a queue on the path, or of a limit there. Which limit counts for whom is said by the
table that the core itself asks: a wildcard does not count for who is named.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from yunikorn_actors.config import LimitConfig, QueueConfig, SchedulerConfig, TemplateConfig
from yunikorn_actors.config.names import WILDCARD
from yunikorn_actors.state.queues import LimitTable
from yunikorn_actors.values.ids import DEFAULT_PARTITION, manager_of_partition, short_partition_name
from yunikorn_actors.values.quantity import quantity
from yunikorn_actors.what_if.changes import Reconfigure

APPS: Final = "applications"
"""Stands for the maximum of running applications among the types of resources."""
_NAMED_MAX: Final = 3
_EVERY_OTHER: Final = "every other user (*)"
_ALL_OTHER: Final = "all other groups (*)"


@dataclass(frozen=True, slots=True)
class Submission:
    """Where an application is, and for whom."""

    partition: str
    """By its full name."""
    queue: str
    user: str
    groups: tuple[str, ...]
    group: str | None = None
    """In which it counts; None while that is not decided."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A maximum that may be raised: of a queue, of a user or group in it, or how many run."""

    queue: str
    kind: str
    present: int
    partition: str
    user: str = ""
    group: str = ""
    whose: str = field(default="", compare=False)
    """For whom else it is raised as well, in words."""
    template: str = ""
    """The queue by whose template this one will be made, so that it is raised there."""

    def raised(self, amount: int) -> Reconfigure:
        is_count = self.kind == APPS
        return Reconfigure(
            queue=self.template or self.queue,
            template=bool(self.template),
            user=self.user,
            group=self.group,
            rm_id=manager_of_partition(self.partition),
            partition=short_partition_name(self.partition),
            max={} if is_count else {self.kind: amount},
            max_applications=amount if is_count else None,
        )

    def text(self, amount: int) -> str:
        queue = f"queues created below {self.template}" if self.template else self.queue
        where = f"{queue}{in_partition(self.partition)}"
        numbers = f"from {_written(self.kind, self.present)} to {_written(self.kind, amount)}"
        return f"{self.kind}{self.whose} in {where} {numbers}"


def in_partition(partition: str, word: str = "of") -> str:
    """Name a partition behind what is in it; the usual one needs no name."""
    name = short_partition_name(partition)
    return "" if name in {"", DEFAULT_PARTITION} else f" {word} partition {name}"


def _written(kind: str, amount: int) -> str:
    return str(amount) if kind == APPS else quantity(kind, amount)


def bounds_at(config: SchedulerConfig, place: Submission) -> Iterator[Bound]:
    """Yield the maxima that count at a place, from the root on; the capacity is none of them."""
    levels = list(_levels(config, place))
    tables = [LimitTable(level.limits) for _, level in levels]
    group = place.group
    if group is None:
        # From its queue upwards, as the core decides it when the application comes.
        found = (table.group_among(place.groups) for table in reversed(tables))
        group = next(filter(None, found), "")
    for (queue, level), table in zip(levels, tables, strict=True):
        most = {} if queue == "root" else level.max
        maxima = [(most, level.max_applications, ("", "", ""))]
        mine, ours = table.for_user(place.user), table.for_group(group) if group else None
        if mine is not None:
            user = place.user if place.user in mine.users else WILDCARD
            owner = (user, "", _whose(mine, user))
            maxima.append((mine.max_resources, mine.max_applications, owner))
        if ours is not None:
            owner = ("", group, _whose(ours, group))
            maxima.append((ours.max_resources, ours.max_applications, owner))
        for amounts, apps, owner in maxima:
            for kind, amount in {**(amounts or {}), **({APPS: apps} if apps else {})}.items():
                yield Bound(queue, kind, amount, place.partition, *owner)
    above = next((it for it in reversed(levels) if it[1].template is not None), None)
    if above is not None and len(levels) <= place.queue.count("."):
        # Placement creates it, unless it is there: what has been made is raised by no template.
        for kind, amount in _positive(above[1].template):
            yield Bound(place.queue, kind, amount, place.partition, template=above[0])


def _positive(template: TemplateConfig | None) -> Iterator[tuple[str, int]]:
    if template is not None:
        yield from ((kind, it) for kind, it in (template.max or {}).items() if it > 0)
        yield from [(APPS, template.max_applications)] * bool(template.max_applications)


def _whose(limit: LimitConfig, name: str) -> str:
    """Name all for whom this entry counts, the one that is asked about first."""
    users = [_EVERY_OTHER if it == WILDCARD else it for it in limit.users]
    groups = [_ALL_OTHER if it == WILDCARD else it for it in limit.groups]
    names = sorted([*users, *groups], key=lambda it: it != name)
    more = [f"{len(names) - _NAMED_MAX} more"] if len(names) > _NAMED_MAX else []
    return f" of {' and '.join(names[:_NAMED_MAX] + more)}"


def _levels(config: SchedulerConfig, place: Submission) -> Iterator[tuple[str, QueueConfig]]:
    """Yield the configured queues on a path, from the root on."""
    partition = short_partition_name(place.partition)
    roots = [it.root for it in config.partitions if it.name == partition]
    level, name = (roots[0] if roots else None), ""
    for part in place.queue.lower().split("."):
        if level is None or (not name and part != level.name):
            return
        if name:
            level = next((it for it in level.children if it.name == part), None)
        if level is not None:
            name = f"{name}.{part}" if name else part
            yield name, level
