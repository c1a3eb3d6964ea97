"""What must hold of decisions about gangs, derived from the smallest parts (G11, G23)."""

from collections.abc import Iterator

from yunikorn_actors.config import GangAdmission
from yunikorn_actors.state.allocations import Ask
from yunikorn_actors.state.applications import Application, ApplicationState
from yunikorn_actors.state.limits import limits_of
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.values.resource import Resource, charge


def before_its_gang(app: Application, ask: Ask) -> Iterator[str]:
    """Yield why an ask of this application may not be placed plainly."""
    spec = ask.spec
    if spec.placeholder:
        holds = app.queue.properties.gang_admission is GangAdmission.HOLD
        if holds and not app.is_admitted and any(unplaced(app).values()):
            yield "G23: its gang is not admitted"
        return
    yield from of_a_part_of_a_gang(app)
    for item in app.allocations.values():
        if item.spec.placeholder and item.spec.task_group == spec.task_group:
            yield f"G11: placeholder {item.spec.key} stands, and is to be replaced by it"


def of_a_part_of_a_gang(app: Application) -> Iterator[str]:
    """Yield the placeholders that still wait: no member comes before them."""
    for ask in app.asks.values():
        if ask.spec.placeholder and ask.remaining:
            yield f"G11: placeholder {ask.spec.key} of its gang still waits"


def unplaced(app: Application) -> Resource:
    wanted = app.spec.placeholder_ask.items()
    return {kind: max(0, quantity - app.placed.get(kind, 0)) for kind, quantity in wanted}


def _to_come(app: Application) -> Resource:
    waits = any(ask.spec.placeholder and ask.remaining for ask in app.asks.values())
    return unplaced(app) if waits or app.state is ApplicationState.ACCEPTED else {}


def committed(state: PartitionState, app: Application) -> Iterator[tuple[str, Resource, Resource]]:
    """Yield each bound of a gang with what is used there, and is to come of admitted gangs."""
    others = [state.applications[id_] for id_ in state.admitted.values()]
    for queue in app.queue.lineage[:-1]:
        used = dict(queue.allocated)
        for other in others:
            if queue in other.queue.lineage:
                charge(used, _to_come(other))
        yield queue.path, queue.spec.max or {}, used
    for limit in limits_of(app.queue, app.spec.user, app.group):
        used = dict(state.usage_of(limit).amounts)
        for other in others:
            owner = other.group if limit.of_group else other.spec.user
            if owner == limit.owner and state.queues[limit.path] in other.queue.lineage:
                charge(used, _to_come(other))
        yield f"{limit.owner} in {limit.path}", limit.max_resources or {}, used
