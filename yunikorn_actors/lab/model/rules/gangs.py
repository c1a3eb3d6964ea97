"""Gangs: what is held, what placeholders are still to come, when their time is up."""

from yunikorn_actors.checks.state_invariants import total
from yunikorn_actors.lab.model import sums
from yunikorn_actors.lab.model.judged_cluster import App, Ask, Cluster, Placed
from yunikorn_actors.values.durations import MILLISECOND
from yunikorn_actors.values.resource import Resource, add, sub


def is_held_back(cluster: Cluster, ask: Ask) -> bool:
    return blocked(cluster, ask) or (ask.spec.placeholder and is_held(ask.app))


def is_held(app: App) -> bool:
    """Whether its placeholders wait for the admission of the gang."""
    rest = unplaced(app)
    return app.leaf.says.gang_admission == "hold" and not app.admitted and any(rest.values())


def unplaced(app: App) -> Resource:
    rest = sub(app.spec.placeholder_ask, add(app.placed, app.reported))
    return {kind: max(0, n) for kind, n in rest.items()}


def blocked(cluster: Cluster, ask: Ask) -> bool:
    """Whether the rules of gangs keep a real ask from being placed plainly."""
    if ask.spec.placeholder:
        return False
    if awaits_placeholders(cluster, ask.app):
        return True
    group = ask.spec.task_group
    return any(held.spec.task_group == group for held in sums.placeholders_of(cluster, ask.app))


def has_room_for_all(cluster: Cluster, app: App, *, claims: bool) -> bool:
    """Whether each maximum on the way has room for what was never placed of a gang."""
    need = {kind: n for kind, n in unplaced(app).items() if n}
    for gate in sums.gates(cluster, app):
        used = add(gate.used, sums.claimed(cluster, gate.apps) if gate.queue else {})
        if gate.queue or claims:
            used = add(used, promised(cluster, gate.apps, app))
        if not sums.leaves_room(gate.most, used, need):
            return False
    return True


def promised(cluster: Cluster, apps: list[App], but: App) -> Resource:
    """What admitted gangs have not placed yet."""
    return total(
        unplaced(app) for app in apps
        if app is not but and app.admitted
        and (app.state == "Accepted" or awaits_placeholders(cluster, app))
    )  # fmt: skip


def awaits_placeholders(cluster: Cluster, app: App) -> bool:
    return any(ask.spec.placeholder for ask in sums.asks_of(cluster, app))


def usable(cluster: Cluster, ask: Ask) -> list[Placed]:
    """Return the placeholders of the ask's group that were not asked back."""
    group = ask.spec.task_group
    if ask.spec.placeholder or not group:
        return []
    mine = [held for held in sums.placeholders_of(cluster, ask.app) if not held.leaving]
    return [held for held in mine if held.spec.task_group == group]


def gang_timeout(cluster: Cluster, app: App) -> int:
    if app.spec.is_gang and app.spec.timeout_ms > 0:
        return app.spec.timeout_ms * MILLISECOND
    return cluster.settings.placeholder_timeout_ns


def gang_is_over(cluster: Cluster, app: App) -> bool:
    return app.gang_since is not None and app.gang_since + gang_timeout(cluster, app) <= cluster.now
