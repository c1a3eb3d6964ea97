"""Quotas as obstacles: what refuses an ask for want of room in queues, limits and the cluster."""

from collections.abc import Iterator
from typing import NamedTuple

from yunikorn_actors.planning.model.views import QueueView
from yunikorn_actors.planning.reasons import CLUSTER, Cause, Obstacle, no_room
from yunikorn_actors.planning.why.inquiry import Case, amounts_of, some_of
from yunikorn_actors.state.gates import has_room, shortfall
from yunikorn_actors.state.reserved_nodes import own_earmark
from yunikorn_actors.values.resource import Resource, sub


def quota_obstacles(case: Case) -> Iterator[Obstacle]:
    """Find quotas without room; an ask that requires a node ignores the size of the cluster.

    What was promised to the ask itself is its own, and what decisions in flight use counts once.
    """
    shape, record = case.ask.shape, case.ask.ask
    own = own_earmark(case.planner.state, record, "")
    # All of them, not only the first: taking one away would not help alone.
    for level in case.app.leaf.lineage:
        if level.is_quota:
            # Read where it is configured: what the planner keeps of it may be of before.
            quota = level.queue.quota_for(own or {}, level.used, level.redeemed)
            lacks = shortfall(quota, level.used, shape.wanted)
            if lacks:
                sizes = level.queue.spec.max or {}
                # What is promised there to others is taken off the quota.
                kept = sub(sizes, quota)
                full = Full(Cause.QUEUE_LIMIT, level.name, level.queue.path, sizes, level.used)
                yield _full(case, full, lacks, kept)
        elif not shape.required_node:
            yield from _cluster(case, level)


def _cluster(case: Case, root: QueueView) -> Iterator[Obstacle]:
    wanted, capacity = case.ask.shape.wanted, case.planner.state.capacity
    lacks = shortfall(capacity, root.used, wanted, True)
    # Without a node every ask lacks everything: that says less than "there is no node".
    if not lacks or not case.planner.state.nodes:
        return  # that there is no node is for `node_obstacles` to say
    never = not has_room(capacity, {}, wanted, True)
    unknown = sorted(kind for kind, _ in wanted if kind not in capacity)
    remedy = "add nodes that have it, or ask for less"
    # A type that no node has is named by itself: more of the others would not help.
    if unknown:
        text = f"no node has any {', '.join(unknown)}"
    elif never:
        sizes = case.words.too_large(dict(wanted), capacity, "they have")
        text = f"all nodes together are smaller: {sizes}"
    else:
        short = case.words.short(lacks, root.used, capacity)
        text = f"{no_room(CLUSTER)}, {short}"
        remedy = "release that much, or add a node that has it"
    yield Obstacle(
        cause=Cause.CLUSTER_FULL,
        where=root.queue.path,
        never=never,
        wanted=dict(wanted),
        used=amounts_of(wanted, root.used),
        maximum=amounts_of(wanted, capacity),
        lacks=lacks,
        text=text,
        remedy=remedy,
    )


def limit_obstacles(case: Case) -> Iterator[Obstacle]:
    shape = case.ask.shape
    for limit in case.app.limits:
        lacks = limit.lacks(shape.wanted)
        if lacks:
            sizes = limit.limit.max_resources or {}
            path, used = limit.limit.path, limit.used()
            yield _full(case, Full(Cause.USER_LIMIT, limit.name, path, sizes, used), lacks, {})


class Full(NamedTuple):
    """A queue or a limit without room."""

    cause: Cause
    name: str
    path: str
    sizes: Resource
    used: Resource


def _full(case: Case, full: Full, lacks: Resource, kept: Resource) -> Obstacle:
    """`kept` is what is promised there to others."""
    words, sizes, used = case.words, full.sizes, full.used
    wanted = {kind: quantity for kind, quantity in case.ask.shape.wanted if kind in sizes}
    never = not has_room(sizes, {}, wanted.items())
    if never:
        text = f"{full.name} can never hold it: {words.too_large(wanted, sizes)}"
        remedy = "raise the maximum, or ask for less"
    else:
        text = f"{no_room(full.name)}, {words.short(lacks, used, sizes)}"
        text += words.besides(some_of(lacks, kept), "are promised to others")
        remedy = "release that much there, or raise the maximum"
    return Obstacle(
        cause=full.cause,
        where=full.path,
        never=never,
        wanted=wanted,
        used=amounts_of(wanted, used),
        promised=some_of(wanted, kept),
        maximum=amounts_of(wanted, sizes),
        lacks=lacks,
        text=text,
        remedy=remedy,
    )
