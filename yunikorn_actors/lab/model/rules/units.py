"""What goes as one when it is preempted: whole gangs, their surplus, and what is broken already."""

from collections.abc import Iterable

from yunikorn_actors.checks.state_invariants import total
from yunikorn_actors.lab.model import sums
from yunikorn_actors.lab.model.judged_cluster import App, Ask, Cluster, Placed, Victims
from yunikorn_actors.state.allocations import AskSpec
from yunikorn_actors.values.resource import sub

BROKEN, SURPLUS, ALONE, WHOLE = range(4)
"""What a gang loses with one of its allocations, the least first."""


def is_bound(app: App, ask: Ask | None) -> bool:
    """Whether an application goes as one: for this ask, or for a quota."""
    by_guarantee = ask is not None and not ask.spec.required_node
    is_set = app.leaf.says.preemption_unit is not None
    return (by_guarantee or is_set) and goes_whole(app)


def goes_whole(app: App) -> bool:
    """Whether it is to go as one where no number is to be met, or its leaf says so."""
    unit = app.leaf.says.preemption_unit
    if unit is not None:
        return unit == "application"
    hard = app.spec.gang_style.lower() == "hard"
    return hard and any(app.spec.placeholder_ask.values())


def stay_of(cluster: Cluster, app: App) -> list[Placed]:
    """Return what stays when all that was asked back is gone; a swap goes on."""
    return [
        p for p in sums.allocations_of(cluster, app) if not p.leaving or p.uuid in cluster.swaps
    ]


def makes_whole(app: App, present: Iterable[Placed]) -> bool:
    """Whether with these alone the gang has all that it needs."""
    has = total(p.size for p in present if is_member(app, p.spec))
    needs = sub(app.spec.placeholder_ask, app.spared)
    return all(n <= has.get(kind, 0) for kind, n in needs.items())


def is_member(app: App, spec: AskSpec) -> bool:
    """Where not all placeholders were placed, work of any group may be what takes their place."""
    group, wanted = spec.task_group, app.spec.placeholder_ask.items()
    some_are_missing = any(app.placed.get(kind, 0) < n for kind, n in wanted)
    return group in app.groups or bool(group and some_are_missing)


def tears(cluster: Cluster, app: App, victims: Victims) -> bool:
    """Whether an application that is bound is left in parts when these are gone."""
    stays = stay_of(cluster, app)
    left = [p for p in stays if p not in victims]
    if not left:
        return False
    if not any(app.spec.placeholder_ask.values()):
        return True
    lost = any(p.spec.originator for p in stays if p in victims)
    holds = makes_whole(app, stays) or app.leaf.says.preemption_unit is not None
    return holds and (lost or not makes_whole(app, left))


def part(cluster: Cluster, placed: Placed) -> int:
    """Rank what a gang loses: what is broken, a surplus, work that goes alone, a whole gang.

    A member counts as surplus if the gang is whole without it, whichever is the newest.
    """
    app = placed.app
    gang = any(app.spec.placeholder_ask.values())
    if not goes_whole(app) or not gang:
        return ALONE
    if not makes_whole(app, stay_of(cluster, app)):
        return BROKEN
    return WHOLE if tears(cluster, app, [placed]) else SURPLUS


def harm(cluster: Cluster, app: App, part: int) -> int:
    """Rank a part of what goes as one by what goes with it."""
    if part != WHOLE or app.leaf.says.preemption_unit is None:
        return part
    if not any(app.spec.placeholder_ask.values()):
        return ALONE
    return WHOLE if makes_whole(app, stay_of(cluster, app)) else BROKEN


def are_in_order(ask: Ask | None, other: int, victim: int) -> bool:
    """Whether one of two is surely to go before the other, by what they are to their gangs.

    Which of a gang is its surplus is not known here, nor which of two whole gangs goes first;
    for a guarantee a whole gang goes for several asks at once.
    """
    if SURPLUS in (other, victim) or other == victim == WHOLE:
        return False
    for_guarantee = ask is not None and not ask.spec.required_node
    return not (for_guarantee and WHOLE in (other, victim))
