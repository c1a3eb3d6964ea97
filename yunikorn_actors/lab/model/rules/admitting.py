"""When a held gang is admitted, and which other gang goes before one that has lapsed."""

from functools import partial

from yunikorn_actors.lab.model import sums
from yunikorn_actors.lab.model.judged_cluster import App, Ask, Cluster
from yunikorn_actors.lab.model.rules import gangs, starting


def must_admit(cluster: Cluster, ask: Ask) -> bool:
    """Whether a gang is admitted at its turn, though admitted ones may take a place as well."""
    app = ask.app
    if not (ask.spec.placeholder and gangs.is_held(app) and starting.surely_runs(cluster, app)):
        return False
    if app.lapsed is not None and any(_goes_before(cluster, o, app) for o in sums.waiting(cluster)):
        return False
    for gate in sums.gates(cluster, app):
        takes = partial(starting.takes_place, cluster) if gate.queue else starting.counts
        stay = [takes(other) or starting.keeps_node(cluster, other) for other in gate.apps]
        coming = [it.admitted and not stays for it, stays in zip(gate.apps, stay, strict=True)]
        if any(coming) and 0 < gate.most_apps <= sum(stay) + sum(coming):
            return False
    aware = app.leaf.says.application_sort_policy == "stateaware"
    if aware and any(_is_coming(cluster, it) for it in sums.applications_below(cluster, app.leaf)):
        return False
    return gangs.has_room_for_all(cluster, app, claims=True)


def _is_coming(cluster: Cluster, app: App) -> bool:
    """Whether its gang is admitted and it has no place in its leaf, or none any more."""
    return app.admitted and not (
        starting.takes_place(cluster, app) or starting.keeps_node(cluster, app)
    )


def _goes_before(cluster: Cluster, other: Ask, app: App) -> bool:
    return starting.may_run(cluster, other.app) and fits_before(cluster, other, app)


def fits_before(cluster: Cluster, other: Ask, app: App) -> bool:
    """Whether another gang that fits is held, behind which one that lapsed waits."""
    o = other.app
    if o is app or not other.spec.placeholder or not gangs.is_held(o):
        return False
    first = o.lapsed is None or o.lapsed <= (app.lapsed or 0)
    return first and gangs.has_room_for_all(cluster, o, claims=False)
