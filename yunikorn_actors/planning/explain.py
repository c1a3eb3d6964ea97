"""Why an ask waits, worked out when somebody asks.

`CHECKS` is the table: one line for each thing that can hold an ask back, in the order in which the
planner meets them. The first check that refuses the ask gives the obstacle.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from msgspec.structs import replace

from yunikorn_actors.domain.allocation import Ask
from yunikorn_actors.domain.application import Application, ApplicationState
from yunikorn_actors.domain.eligibility import check_open
from yunikorn_actors.domain.gang import unplaced, waits_for_gang
from yunikorn_actors.domain.gates import has_room, shortfall
from yunikorn_actors.domain.limits import Limit
from yunikorn_actors.domain.proposals import Refusal
from yunikorn_actors.domain.queue import Queue
from yunikorn_actors.domain.reserving import own_earmark
from yunikorn_actors.domain.resource import Resource, add, describe, fits_in
from yunikorn_actors.domain.why import Cause, NearMiss, NodeCheck, Obstacle, Why
from yunikorn_actors.planning.model.nodes import NodeView
from yunikorn_actors.planning.model.shape import Shape, Use
from yunikorn_actors.planning.model.views import AppView, AskView, Gate, QueueView
from yunikorn_actors.planning.parts.gangs import Commitments, name_of
from yunikorn_actors.planning.planner import Planner
from yunikorn_actors.planning.preempt.account import account_of

NAMES_MAX = 3


class Survey(NamedTuple):
    """How many nodes refuse an ask of one shape, and why."""

    counts: dict[str, int]
    near_miss: NearMiss | None
    refusals: dict[str, int]


PARKED: Final = Obstacle(
    cause=Cause.PARKED,
    text="it replaces a placeholder that is being released",
    remedy="its resource manager must confirm that the placeholder is gone",
)


class Case(NamedTuple):
    planner: Planner
    app: AppView
    ask: AskView
    surveys: dict[Shape, Survey]
    """Shapes whose nodes were looked at already, for another ask of the same shape."""
    commitments: Commitments


def explain(planner: Planner, application_id: str, key: str) -> Why | None:
    """Say why an ask waits; None if no ask of that key waits."""
    app = planner.state.applications.get(application_id)
    record = None if app is None else app.asks.get(key)
    if app is None or record is None:
        return None
    return _why(planner, planner.model.apps[app.serial], record, {}, Commitments(planner.model))


def explain_all(planner: Planner, limit: int) -> list[Why]:
    """Say it for up to `limit` waiting asks, in the order of their applications."""
    surveys: dict[Shape, Survey] = {}
    commitments = Commitments(planner.model)
    found: list[Why] = []
    for app in planner.model.apps.values():
        for record in app.app.asks.values():
            if len(found) >= limit:
                return found
            why = _why(planner, app, record, surveys, commitments)
            if why is not None:
                found.append(why)
    return found


def _why(
    planner: Planner,
    app: AppView,
    record: Ask,
    surveys: dict[Shape, Survey],
    commitments: Commitments,
) -> Why | None:
    if record.remaining:
        case = Case(planner, app, app.asks[record.spec.key], surveys, commitments)
        obstacle = next(_obstacles(case))
    elif record.parked:
        obstacle = _parked(app.app, record)
    else:
        return None
    return Why(
        application_id=app.app.id,
        key=record.spec.key,
        repeats=record.remaining + record.parked,
        since_ns=record.created_ns,
        reserved=record.reserved,
        obstacle=obstacle,
        preempting=account_of(planner, app.asks[record.spec.key]) if record.remaining else None,
    )


def _parked(app: Application, record: Ask) -> Obstacle:
    placeholders = (
        app.allocations[uuid] for uuid, s in app.swaps.items() if s.key == record.spec.key
    )
    late = [item.spec.key for item in placeholders if item.is_overdue]
    if not late:
        return PARKED
    text = f"{PARKED.text}; the release of {late[0]} was not confirmed in time"
    return replace(PARKED, text=text)


def _obstacles(case: Case) -> Iterator[Obstacle]:
    for check in CHECKS:
        obstacle = check(case)
        if obstacle is not None:
            yield obstacle
    yield Obstacle(
        cause=Cause.NEXT,
        text="nothing refuses it",
        remedy="it is tried after the asks before it",
    )


# -- before any room is looked for


def _pause(case: Case) -> Obstacle | None:
    if not case.planner.state.suspended:
        return None
    if case.planner.state.behind:
        return Obstacle(
            cause=Cause.RM_PAUSED,
            text="its resource manager does not take its messages",
            remedy="its callback must return from its calls, or the manager must register again",
        )
    return Obstacle(
        cause=Cause.RM_PAUSED,
        text="its resource manager is away, so its partitions are suspended",
        remedy="the resource manager must register again",
    )


def _application(case: Case) -> Obstacle | None:
    if case.app.is_schedulable:
        return None
    state = case.app.app.state.value
    return Obstacle(
        cause=Cause.APP_STATE,
        where=state,
        text=f"its application is {state}",
        remedy="asks of an application in this state are not placed",
    )


def _decision(case: Case) -> Obstacle | None:
    if case.ask.open or not case.ask.inflight:
        return None
    return Obstacle(
        cause=Cause.ON_ITS_WAY,
        text="a node has been chosen",
        remedy="a predicate of its resource manager, or the core, is checking that choice",
    )


def _rest(case: Case) -> Obstacle | None:
    until_ns = case.planner.backoff.resting.get(case.app)
    if until_ns is None:
        return None
    return Obstacle(
        cause=Cause.BACKING_OFF,
        until_ns=until_ns,
        text="its application rests, because too many of its asks found no node",
        remedy="it is tried again when the delay of its queue is over",
    )


def _gang(case: Case) -> Obstacle | None:
    app, spec = case.app.app, case.ask.ask.spec
    if not waits_for_gang(app, spec, is_admitting=case.app.is_admitting):
        return None
    if not spec.placeholder:
        return Obstacle(
            cause=Cause.GANG_WAITS,
            where=spec.task_group,
            text="placeholders of its gang still wait, or one keeps the room for it",
            remedy="the placeholders must be placed, replaced or withdrawn",
        )
    place = case.commitments.refusing(case.app)
    if place is not None:
        return _held(app, place)
    if case.commitments.may_start(case.app):
        return None
    return Obstacle(
        cause=Cause.GANG_HELD,
        where=app.queue.path,
        text="gangs that were admitted before it take the last places of running applications",
        remedy="end one of them, or raise the maximum",
    )


def _held(app: Application, place: Queue | Limit) -> Obstacle:
    """Tell a gang that can never fit, because the maximum is too small, from one that must wait."""
    sizes = place.spec.max if isinstance(place, Queue) else place.max_resources
    name = name_of(place)
    if not has_room(sizes, {}, unplaced(app).items()):
        text = f"{name} never has room for the whole gang: it is larger than the maximum"
        remedy = "raise the maximum, or make the gang smaller"
    else:
        text = f"{name} has no room for the whole gang beside the commitments of other gangs"
        remedy = "release work there until all of the gang fits, or raise the maximum"
    if app.lapsed_ns:
        text += "; its commitment lapsed, because no placeholder could be placed in time"
    return Obstacle(cause=Cause.GANG_HELD, where=place.path, text=text, remedy=remedy)


def _start(case: Case) -> Obstacle | None:
    app = case.app
    if app.app.state is not ApplicationState.ACCEPTED:
        return None
    gates: tuple[Gate, ...] = (*app.leaf.lineage, *app.limits)
    for gate in gates:
        if not gate.may_start(app):
            return _run_limit(case, gate)
    return None


def _run_limit(case: Case, gate: Gate) -> Obstacle:
    app = case.app
    path = gate.queue.path if isinstance(gate, QueueView) else gate.limit.path
    if isinstance(gate, QueueView) and gate.is_stateaware and not gate.is_next_to_start(app):
        return Obstacle(
            cause=Cause.STATEAWARE_BUSY,
            where=path,
            text=f"{gate.name} starts one application at a time",
            remedy="the application before it must start first",
        )
    return Obstacle(
        cause=Cause.APP_LIMIT,
        where=path,
        text=f"{gate.name} has reached its maximum of running applications: {_holders(case, gate)}",
        remedy="end one of them, or raise the maximum",
    )


def _holders(case: Case, gate: Gate) -> str:
    """Name the first few applications that take the places, those that do not run before others."""
    apps, kept = case.planner.model.apps, gate.reserving
    names = [f"{apps[serial].app.id} (a node is reserved for it)" for serial in kept]
    names += [
        app.app.id for app in apps.values() if gate.counts(app) and app.app.serial not in kept
    ]
    more = len(names) - NAMES_MAX
    return ", ".join(names[:NAMES_MAX]) + (f" and {more} more" if more > 0 else "")


# -- room in queues and limits


def _quota(case: Case) -> Obstacle | None:
    """Find a quota without room; an ask that requires a node ignores the size of the cluster.

    What was promised to the ask itself is its own, and what decisions in flight use counts once.
    """
    shape, record = case.ask.shape, case.ask.ask
    state = case.planner.state
    own = own_earmark(state, record, "")
    for level in case.app.leaf.lineage:
        # Read where it is configured: what the planner keeps of it may be of before.
        quota = level.queue.quota(add(own, level.redeemed))
        sizes = quota if level.is_quota else state.capacity
        lacks = shortfall(sizes, level.used, shape.wanted, not level.is_quota)
        if lacks and level.is_quota:
            return _full(Cause.QUEUE_LIMIT, level, level.queue.path, lacks)
        if lacks and not shape.required_node:
            return Obstacle(
                cause=Cause.CLUSTER_FULL,
                where=level.queue.path,
                lacks=lacks,
                text=f"the whole cluster has no room for it, {describe(lacks)} short",
                remedy="release that much, or add a node that has it",
            )
    return None


def _limit(case: Case) -> Obstacle | None:
    for limit in case.app.limits:
        lacks = limit.lacks(case.ask.shape.wanted)
        if lacks:
            return _full(Cause.USER_LIMIT, limit, limit.limit.path, lacks)
    return None


def _full(cause: Cause, gate: Gate, path: str, lacks: Resource) -> Obstacle:
    return Obstacle(
        cause=cause,
        where=path,
        lacks=lacks,
        text=f"{gate.name} has no room for it, {describe(lacks)} short",
        remedy="release that much there, or raise the maximum",
    )


# -- nodes


def _kept(case: Case) -> Obstacle | None:
    """A node is reserved for it and has no room yet; `_node` tells of a node that is refused."""
    ask = case.ask
    for node_id in ask.ask.reserved:
        node = case.planner.model.nodes.views[node_id]
        lacks = _lacks(node, ask.shape)
        if lacks:
            return Obstacle(
                cause=Cause.NODE_KEPT,
                where=node_id,
                lacks=lacks,
                text=f"{node_id} is reserved for it and is {describe(lacks)} short",
                remedy="release that much on the node",
            )
    return None


def _node(case: Case) -> Obstacle | None:
    shape = case.ask.shape
    if case.ask.ask.reserved:
        survey = _survey(case)
    else:
        survey = case.surveys.get(shape) or case.surveys.setdefault(shape, _survey(case))
    if sum(survey.counts.values()) < len(_candidates(case)):
        return None
    if survey.counts.get(NodeCheck.REFUSED):
        return _refused(case, survey)
    required = shape.required_node
    if required and required not in case.planner.model.nodes.views:
        text, remedy = f"node {required} is not registered", "add this node"
    elif survey.near_miss is None:
        text, remedy = _counted(survey), "add a node, or make one available again"
    else:
        near = survey.near_miss
        text = f"{_counted(survey)}; {near.node_id} is nearest, {describe(near.lacks)} short"
        remedy = "release that much there, or add a node that has room"
    return Obstacle(
        cause=Cause.NO_NODE,
        where=required,
        nodes=survey.counts,
        near_miss=survey.near_miss,
        text=text,
        remedy=remedy,
    )


def _refused(case: Case, survey: Survey) -> Obstacle:
    denial = case.ask.shape.denial
    assert denial is not None
    reasons = "; ".join(f"{reason} ({n}x)" for reason, n in survey.refusals.items())
    return Obstacle(
        cause=Cause.PREDICATES,
        nodes=survey.counts,
        near_miss=survey.near_miss,
        refusals=survey.refusals,
        until_ns=denial.due_ns,
        text=f"its resource manager refuses every node that has room: {reasons}",
        remedy="make room on another node; all are asked about again after its next request",
    )


_WORDS: Final[dict[str, str]] = {
    NodeCheck.NO_WORK: "take no work",
    NodeCheck.KEPT: "are reserved for others",
    NodeCheck.TOO_SMALL: "are too small",
    NodeCheck.FULL: "are too full",
}


def _counted(survey: Survey) -> str:
    counts = survey.counts
    told = [f"{counts[check]} {words}" for check, words in _WORDS.items() if check in counts]
    return f"of {sum(counts.values())} nodes " + ", ".join(told) if told else "there is no node"


def _candidates(case: Case) -> list[NodeView]:
    views = case.planner.model.nodes.views
    required = case.ask.shape.required_node
    if not required:
        return list(views.values())
    return [views[required]] if required in views else []


def _survey(case: Case) -> Survey:
    """Count the nodes by the first check that each fails; a node that passes all is left out."""
    counts: Counter[str] = Counter()
    refusals: Counter[str] = Counter()
    shape = case.ask.shape
    near: tuple[tuple[bool, float, str], NearMiss] | None = None
    for node in _candidates(case):
        check = _first_failing(case, node)
        if check is None:
            continue
        counts[check] += 1
        if check is NodeCheck.REFUSED:
            assert shape.denial is not None
            refusals[shape.denial.refused[Use.PLACING][node.id]] += 1
        elif check in {NodeCheck.TOO_SMALL, NodeCheck.FULL}:
            lacks = _lacks(node, shape)
            wanted = dict(shape.wanted)
            short = max(lacks[kind] / wanted[kind] for kind in lacks)
            rank = (check is NodeCheck.TOO_SMALL, short, node.id)
            if near is None or rank < near[0]:
                near = (rank, NearMiss(node_id=node.id, check=check, lacks=lacks))
    return Survey(
        {check: counts[check] for check in NodeCheck if counts[check]},
        None if near is None else near[1],
        dict(sorted(refusals.items())),
    )


def _first_failing(case: Case, node: NodeView) -> NodeCheck | None:
    """Neither a drain nor a reservation of another stops an ask that requires this node."""
    ask, shape = case.ask, case.ask.shape
    closed = check_open(node.node, ask.ask.spec)
    if closed is not None:
        return NodeCheck.NO_WORK if closed is Refusal.NODE_DRAINING else NodeCheck.KEPT
    if node.keeping and not shape.required_node and node.id not in ask.ask.reserved:
        return NodeCheck.KEPT
    if not fits_in(ask.resource, node.node.capacity):
        return NodeCheck.TOO_SMALL
    if not node.fits(shape.wanted):
        return NodeCheck.FULL
    return NodeCheck.REFUSED if ask.shape.is_refused(node.id, Use.PLACING) else None


def _lacks(node: NodeView, shape: Shape) -> Resource:
    return shortfall(node.free, {}, shape.wanted, True)


CHECKS: Final[tuple[Callable[[Case], Obstacle | None], ...]] = (
    _pause,
    _application,
    _decision,
    _rest,
    _gang,
    _start,
    _quota,
    _limit,
    _kept,
    _node,
)
"""A new reason for an ask to wait gets its line here, in the order of the planner's checks."""
