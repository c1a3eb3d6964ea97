"""Liveness: what must come about when everything was handled (G29, G30).

Nothing waits that could go on. Derived from the smallest parts of the state and not from the checks
that hold an ask back, as those may be what is wrong. It errs on the side of silence: where
reservations, promises, a policy or an order of starting have a say, an ask that waits is left
alone.
"""

from collections.abc import Callable, Iterator

from yunikorn_actors.checks.decision_rules import committed, is_wanted_model, overfills, unplaced
from yunikorn_actors.checks.state_invariants import is_kept_for
from yunikorn_actors.config import ApplicationSortPolicy, GangAdmission
from yunikorn_actors.state.allocations import Allocation, Ask, AskSpec
from yunikorn_actors.state.applications import (
    SCHEDULABLE,
    Application,
    ApplicationState,
)
from yunikorn_actors.state.gates import has_room
from yunikorn_actors.state.limits import limits_of
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.values.devices import WHOLE
from yunikorn_actors.values.resource import fits_in
from yunikorn_actors.values.tag_lookup import is_switched_on
from yunikorn_actors.values.tags import GPU

Refuses = Callable[[str, str], bool]
"""Whether the resource manager refuses this ask on this node."""

IDLES = frozenset({ApplicationState.ACCEPTED, ApplicationState.STARTING, ApplicationState.RUNNING})
"""States that an application leaves when it has no work any more."""


def stuck(state: PartitionState, refuses: Refuses, keeps_tag: str) -> Iterator[str]:
    """Yield what should have gone on by itself, in a partition at rest."""
    if state.decides_nothing:
        return
    for app in state.applications.values():
        if _is_idle(app) and not is_switched_on(app.spec.tags, keeps_tag):
            yield f"G29: {app.id} is {app.state.value}, and has nothing that could complete it"
        if app.state in SCHEDULABLE and _may_go_on(app):
            for ask in app.asks.values():
                if ask.remaining and _could_go_on(state, app, ask, refuses):
                    yield f"G30: {ask.spec.key} of {app.id} waits, and nothing holds it back"


def _is_idle(app: Application) -> bool:
    """One whose gang was dissolved may wait for asks of another kind."""
    was_dissolved = any(it.state is ApplicationState.RESUMING for it in app.state_log.entries)
    return app.state in IDLES and not app.asks and not app.allocations and not was_dissolved


def _may_go_on(app: Application) -> bool:
    properties = app.queue.properties
    # Each of these may keep an ask waiting by its own rules, which are not repeated here.
    return (
        properties.application_sort_policy is not ApplicationSortPolicy.STATEAWARE
        and not properties.application_policy
        and not properties.backoff_count
        and not any(any(level.earmarked.values()) for level in app.queue.lineage)
    )


def _could_go_on(state: PartitionState, app: Application, ask: Ask, refuses: Refuses) -> bool:
    spec = ask.spec
    if app.state is ApplicationState.ACCEPTED and is_kept_for(app) and _bounds_of(app):
        # A reload may leave fewer places than there are reservations: the oldest have them.
        return False
    gang = [item for item in app.asks.values() if item.spec.placeholder and item.remaining]
    if spec.placeholder:
        if _awaits_room_for_its_gang(state, app):
            return False
    elif gang:
        return False
    else:
        group = _placeholders(app, spec.task_group)
        if group:
            return any(_could_swap(state, ask, item, refuses) for item in group)
    if any(overfills(state, app, ask)):
        return False
    return any(
        _has_room(node, ask) for node in state.nodes.values() if not refuses(spec.key, node.id)
    )


def _placeholders(app: Application, task_group: str) -> list[Allocation]:
    return [
        item
        for item in app.allocations.values()
        if item.spec.placeholder and item.spec.task_group == task_group
    ]


def _could_swap(state: PartitionState, ask: Ask, placeholder: Allocation, refuses: Refuses) -> bool:
    """In its place no other room is needed."""
    spec = ask.spec
    return (
        placeholder.releasing is None
        and fits_in(spec.resource, placeholder.resource)
        and spec.may_run_on(placeholder.node_id)
        and not refuses(spec.key, placeholder.node_id)
        and _are_such(state.nodes[placeholder.node_id], spec)
    )


def _awaits_room_for_its_gang(state: PartitionState, app: Application) -> bool:
    holds = app.queue.properties.gang_admission is GangAdmission.HOLD
    # Without holding every placeholder is tried by itself.
    if not holds or app.is_admitted:
        return False
    need = unplaced(app).items()
    fits = all(has_room(most, used, need) for _, most, used in committed(state, app))
    return not fits or _awaits_place_of_a_gang(state, app)


def _awaits_place_of_a_gang(state: PartitionState, app: Application) -> bool:
    """Whether an admitted gang that has placed nothing may claim the place of this one."""
    bounds = _bounds_of(app)
    others = (state.applications[id_] for id_ in state.admitted.values())
    return any(
        level.path in bounds
        for other in others
        if not other.allocations
        for level in other.queue.lineage
    )


def _bounds_of(app: Application) -> list[str]:
    """Return the queues that bound how many applications run, by themselves or for its owner."""
    # Without such bounds no place can be missing.
    bounds = [queue.path for queue in app.queue.lineage if queue.spec.max_applications]
    limits = limits_of(app.queue, app.spec.user, app.group)
    return bounds + [limit.path for limit in limits if limit.max_applications]


def _has_room(node: Node, ask: Ask) -> bool:
    spec = ask.spec
    if node.reservations or not fits_in(spec.resource, node.available):
        return False
    if not _has_devices(node, spec):
        return False
    if spec.required_node:
        return spec.required_node == node.id and not node.awaited
    return node.is_schedulable


def _are_such(node: Node, spec: AskSpec) -> bool:
    """Whether devices of this node could be the ask's, were they free."""
    amount = spec.resource.get(GPU, 0)
    if amount <= 0:
        return True
    if not is_wanted_model(node, spec):
        return False
    return node.parts is None or amount < WHOLE or amount % WHOLE == 0


def _has_devices(node: Node, spec: AskSpec) -> bool:
    amount, parts = spec.resource.get(GPU, 0), node.parts
    if amount <= 0 or parts is None or not _are_such(node, spec):
        return _are_such(node, spec)
    if amount < WHOLE:
        return max(parts, default=0) >= amount
    return sum(part >= WHOLE for part in parts) * WHOLE >= amount
