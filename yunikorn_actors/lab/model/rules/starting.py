"""Which applications may run: places in queues and limits, and turns of stateaware leaves."""

from functools import partial

from yunikorn_actors.lab.model import sums
from yunikorn_actors.lab.model.judged_cluster import App, Ask, Cluster
from yunikorn_actors.lab.model.rules import gangs
from yunikorn_actors.lab.model.sums import Gate, once

LIVING = ("Accepted", "Starting", "Running", "Completing")


@once
def may_run(cluster: Cluster, app: App) -> bool:
    """Running ones always; an accepted one when there is a place for it everywhere."""
    if app.state != "Accepted":
        return app.state in LIVING
    if app.leaf.says.application_sort_policy == "stateaware" and not _is_next(cluster, app):
        return False
    return all(_has_place_in(cluster, app, gate) for gate in sums.gates(cluster, app))


def _has_place_in(cluster: Cluster, app: App, gate: Gate) -> bool:
    """Allocations take places first, then reservations, the older ones first."""
    takes = partial(takes_place, cluster) if gate.queue else counts
    if not gate.most_apps or takes(app):
        return True
    keepers = list(dict.fromkeys(kept.ask.app for kept in (*cluster.ending, *cluster.kept)))
    first = keepers[: keepers.index(app)] if app in keepers else keepers
    return sum(takes(other) or other in first for other in gate.apps) < gate.most_apps


def _is_next(cluster: Cluster, app: App, *, surely: bool = False) -> bool:
    """Whether a stateaware leaf may let the application start.

    Whether an older one bars it whose gang is held is open: a held gang bars nobody. One whose
    first real allocation takes a placeholder's room over is as good as Starting.
    """
    for other in sums.applications_below(cluster, app.leaf):
        older = other.state == "Accepted" and (other.age, other.serial) < (app.age, app.serial)
        swaps = other.state == "Accepted" and sums.is_swapping(cluster, other)
        if other is not app and (other.state == "Starting" or swaps):
            return False
        asks = sums.asks_of(cluster, other)
        if older and asks and (surely or not all(gangs.is_held_back(cluster, ask) for ask in asks)):
            return False
    return True


def surely_runs(cluster: Cluster, app: App) -> bool:
    aware = app.leaf.says.application_sort_policy == "stateaware" and app.state == "Accepted"
    return may_run(cluster, app) and (not aware or _is_next(cluster, app, surely=True))


def may_swap(cluster: Cluster, ask: Ask) -> bool:
    """Its placeholders have a place and room already, so no order of a leaf holds it up."""
    waits = gangs.awaits_placeholders(cluster, ask.app)
    return ask.app.state in LIVING and not waits and not ask.spec.placeholder


def takes_place(cluster: Cluster, app: App) -> bool:
    """Whether it takes a place in its queues."""
    holds = app.state in ("Accepted", "Resuming") and bool(sums.allocations_of(cluster, app))
    return holds or app.state in ("Starting", "Running")


def keeps_node(cluster: Cluster, app: App) -> bool:
    return any(kept.ask.app is app for kept in (*cluster.kept, *cluster.ending))


def counts(app: App) -> bool:
    """Whether it takes a place in the limits of its user and group."""
    return app.counts
