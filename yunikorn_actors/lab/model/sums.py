"""Sums over single asks and allocations, made anew for each question.

The model shares no ledger with the product: a wrong sum of one is not repeated by the other.
"""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, NamedTuple, TypeVar, cast

from yunikorn_actors.checks.state_invariants import total
from yunikorn_actors.lab.model.judged_cluster import (
    App,
    Ask,
    Cluster,
    Kept,
    Node,
    Placed,
    Queue,
    Victims,
)
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import Beneficiary
from yunikorn_actors.values.resource import (
    Resource,
    add,
    discharge,
    fits_in,
    fits_in_max_undef,
    sub,
    sub_only_existing,
)

Work = TypeVar("Work", bound=Callable[..., Any])


class Gate(NamedTuple):
    """A queue, or a limit of a user or group: how much those below it may use, how many may run."""

    queue: Queue | None
    most: Resource | None
    most_apps: int
    apps: list[App]
    used: Resource


def once(work: Work) -> Work:
    """Answer the same question only once between two facts."""

    @wraps(work)
    def answer(cluster: Cluster, *about: Any) -> Any:  # noqa: ANN401 - as what it wraps
        answers, question = cluster.answers, (work, *about)
        if question not in answers:
            answers[question] = work(cluster, *about)
        return answers[question]

    return cast("Work", answer)


@once
def waiting(cluster: Cluster) -> list[Ask]:
    return [ask for ask in cluster.asks.values() if ask.left]


@once
def asks_of(cluster: Cluster, app: App) -> list[Ask]:
    return [ask for ask in waiting(cluster) if ask.app is app]


def placeholders_of(cluster: Cluster, app: App) -> list[Placed]:
    return [placed for placed in allocations_of(cluster, app) if placed.spec.placeholder]


def reals_of(cluster: Cluster, app: App) -> list[Placed]:
    return [placed for placed in allocations_of(cluster, app) if not placed.spec.placeholder]


def is_swapping(cluster: Cluster, app: App) -> bool:
    """Whether a real ask of it is about to take a placeholder's room over."""
    return any(swap.ask.app is app for swap in cluster.swaps.values())


def leaving(cluster: Cluster, queue: Queue) -> Resource:
    """What comes free; a swap frees nothing, it hands over."""
    mine = (
        p
        for app in applications_below(cluster, queue)
        for p in allocations_of(cluster, app)
        if p.leaving
    )
    return total(p.size for p in mine if p.uuid not in cluster.swaps)


def claimed(cluster: Cluster, apps: list[App], but: Ask | None = None) -> Resource:
    """What is promised to asks of these applications."""
    claims = [kept for kept in cluster.kept if kept.claims and kept.ask is not but]
    return total(kept.size for kept in claims if kept.ask.app in apps)


def redeems(cluster: Cluster, ask: Ask) -> Resource:
    """What is promised to an ask and its next repeat uses up: nothing while others need it."""
    mine = [kept for kept in cluster.kept if kept.ask is ask and kept.claims]
    if any(kept.ask is ask for kept in cluster.ending):
        return {}
    there = any(fits_in(ask.size, free_on(cluster, cluster.nodes[kept.node])) for kept in mine)
    return mine[0].size if mine and (there or len(mine) >= ask.left) else {}


@once
def pending(cluster: Cluster, queue: Queue) -> Resource:
    return all_repeats_of(ask for ask in waiting(cluster) if queue in ask.app.leaf.up)


@once
def gates(cluster: Cluster, app: App) -> list[Gate]:
    """List the queues of an application, and the limits that bind it."""
    found = []
    for queue in app.leaf.up:
        spec, below, user, group = (
            queue.spec,
            applications_below(cluster, queue),
            app.spec.user,
            app.group,
        )
        found.append(Gate(queue, spec.max, spec.max_applications, below, usage(cluster, queue)))
        mine = [it for name in (user, "*") for it in spec.limits if name in it.users]
        ours = [it for it in spec.limits if group and group in it.groups]
        for limits, apps in (
            (mine, [other for other in below if other.spec.user == user]),
            (ours, [other for other in below if other.group == group]),
        ):
            for it in limits[:1]:
                most, used = it.max_resources or None, usage_by(cluster, apps)
                found.append(Gate(None, most, it.max_applications, apps, used))
    return found


@once
def allocations_of(cluster: Cluster, app: App) -> list[Placed]:
    return [placed for placed in cluster.placed.values() if placed.app is app]


@once
def applications_below(cluster: Cluster, queue: Queue) -> list[App]:
    return [app for app in cluster.apps.values() if queue in app.leaf.up]


@once
def usage(cluster: Cluster, queue: Queue) -> Resource:
    return usage_by(cluster, applications_below(cluster, queue))


def usage_by(cluster: Cluster, apps: list[App]) -> Resource:
    return total(placed.size for app in apps for placed in allocations_of(cluster, app))


@once
def total_capacity(cluster: Cluster) -> Resource:
    return total(node.capacity for node in cluster.nodes.values())


@once
def free_on(cluster: Cluster, node: Node) -> Resource:
    free = dict(node.capacity)
    for taken in (
        node.occupied,
        *node.foreign.values(),
        *(p.size for p in cluster.placed.values() if p.node == node.id),
        *(s.size for s in cluster.swaps.values() if s.crosses and s.node == node.id),
    ):
        discharge(free, taken)
    return free


def keeps_of(cluster: Cluster, ask: Ask) -> list[Kept]:
    return [kept for kept in (*cluster.kept, *cluster.ending) if kept.ask is ask]


def stays(cluster: Cluster, queue: Queue, victims: Victims = ()) -> Resource:
    """What a queue uses still when these and all that was asked back are gone."""
    gone = total(v.size for v in victims if queue in v.app.leaf.up)
    return sub(sub(usage(cluster, queue), leaving(cluster, queue)), gone)


def spoken_for(cluster: Cluster, queue: Queue, victims: Victims = ()) -> Resource:
    """As `stays`, and what is promised counts as used."""
    return add(stays(cluster, queue, victims), claimed(cluster, applications_below(cluster, queue)))


def leaves_room(most: Resource | None, used: Resource, size: Resource) -> bool:
    return fits_in_max_undef(size, sub_only_existing(most, used))


def keepers(cluster: Cluster, whom: f.ReservationDropped | Beneficiary, node: str) -> list[Kept]:
    """Return the reservations of an ask on a node."""
    named = (whom.application_id, whom.key, node)
    return [k for k in cluster.kept if (k.ask.app.id, k.ask.spec.key, k.node) == named]


def all_repeats_of(asks: Iterable[Ask]) -> Resource:
    return total(ask.size for ask in asks for _ in range(ask.left))
