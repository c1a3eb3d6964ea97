"""Limits of users and groups, along the path of a queue.

A limit that names a user counts for that user; the wildcard counts for every other user separately.
A group's limit is one pot for all its applications, and the wildcard group is one pot for all
applications whose group is not named. Which group an application counts in is decided once: from
its queue upwards, in the order of the configuration, the first that its user is a member of.
"""

from collections.abc import Iterator

from msgspec import Struct

from yunikorn_actors.config import LimitConfig
from yunikorn_actors.state.applications import Application, Usage
from yunikorn_actors.state.queues import NO_LIMITS, Queue
from yunikorn_actors.values.resource import Resource

LimitKey = tuple[str, str, bool]


class Limit(Struct, frozen=True, kw_only=True, gc=False):
    """What one user or group may have in one queue."""

    path: str
    owner: str
    of_group: bool
    max_resources: Resource | None
    max_applications: int

    @property
    def key(self) -> LimitKey:
        """Where and for whom it counts, whatever its amounts are by now."""
        return (self.path, self.owner, self.of_group)

    @property
    def name(self) -> str:
        kind = "group" if self.of_group else "user"
        return f"limit of {kind} {self.owner} in {self.path}"


def limits_of(queue: Queue, user: str, group: str) -> Iterator[Limit]:
    """List every limit that counts for an application, from its queue upwards."""
    for level in queue.lineage:
        limits = level.limits
        # Most queues have none, and this is asked for each of them.
        if limits is NO_LIMITS:
            continue
        mine = limits.for_user(user)
        if mine is not None:
            yield _limit(level.path, user, mine, of_group=False)
        ours = limits.for_group(group) if group else None
        if ours is not None:
            yield _limit(level.path, group, ours, of_group=True)


def limits_on(app: Application) -> Iterator[tuple[LimitConfig, Usage]]:
    """List the same limits, each with what counts against it.

    An application holds on to that: for each allocation nothing is made or looked up by name.
    """
    user, group = app.spec.user, app.group
    # By position: the usages of an application stand in the order of its lineage.
    for place, level in enumerate(app.queue.lineage):
        limits = level.limits
        if limits is NO_LIMITS:
            continue
        mine = limits.for_user(user)
        if mine is not None:
            yield mine, app.usages[place]
        ours = limits.for_group(group) if group else None
        if ours is not None:
            yield ours, app.group_usages[place]


def group_of(queue: Queue, groups: tuple[str, ...]) -> str:
    """Decide which group an application of this queue counts in; empty for none."""
    for level in queue.lineage:
        group = level.limits.group_among(groups)
        if group:
            return group
    return ""


def is_limited(queue: Queue, group: str) -> bool:
    """Whether any queue of the path still has a limit for this group."""
    return any(level.limits.for_group(group) is not None for level in queue.lineage)


def _limit(path: str, owner: str, config: LimitConfig, *, of_group: bool) -> Limit:
    return Limit(
        path=path,
        owner=owner,
        of_group=of_group,
        max_resources=config.max_resources,
        max_applications=config.max_applications,
    )
