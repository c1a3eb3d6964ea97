"""Explain: why an ask waits, worked out on demand.

`CHECKS` is the table: one line for each thing that can hold an ask back, in the order in which the
planner meets them. Each rule is asked where it stands: of gates, gangs, nodes and the back-off.
What a check says of one ask serves all that share it, so a list of all of them costs little more.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Final, NamedTuple

from msgspec.structs import replace

from yunikorn_actors.planning.model.shape import Use
from yunikorn_actors.planning.model.views import AppView, AskView, Gate, QueueView
from yunikorn_actors.planning.planner import Planner
from yunikorn_actors.planning.reasons import (
    Cause,
    Gang,
    Obstacle,
    Preempting,
    Why,
    decisive,
)
from yunikorn_actors.planning.stages.gangs import name_of
from yunikorn_actors.planning.why.inquiry import (
    FULL,
    Case,
    Inquiry,
    Words,
    amounts_of,
    named,
    some_of,
)
from yunikorn_actors.planning.why.node_obstacles import node_obstacles, reserved_node_obstacles
from yunikorn_actors.planning.why.preempting import account_of, asks_on_behalf_of
from yunikorn_actors.planning.why.quota_obstacles import limit_obstacles, quota_obstacles
from yunikorn_actors.policies.folds import policy_name, runtime_in_words
from yunikorn_actors.state.allocations import Allocation, Ask
from yunikorn_actors.state.applications import Application, ApplicationState
from yunikorn_actors.state.gangs import unplaced, waits_for_gang
from yunikorn_actors.state.gates import has_room, shortfall
from yunikorn_actors.state.limits import Limit
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.values.durations import duration_of
from yunikorn_actors.values.resource import add

HOLDERS_MAX = 10


class Found(NamedTuple):
    """What was found out about the asks of a partition."""

    asks: list[Why]
    total: int
    """All that wait, also those that are not in the list."""
    causes: dict[str, int]
    """How many of them wait for what first."""


def explain(
    planner: Planner, application_id: str, key: str, now_ns: int, words: Words = FULL
) -> Why | None:
    """Say why an ask waits, or where it was placed; None if it is not known."""
    app = planner.state.applications.get(application_id)
    record = None if app is None else app.asks.get(key)
    if app is None or record is None:
        return None
    return why_of(Inquiry(planner, now_ns, words), planner.model.apps[app.serial], record)


def explain_all(planner: Planner, limit: int, now_ns: int, words: Words = FULL) -> Found:
    """Say it of up to `limit` waiting asks, in the order of their applications; count them all."""
    # One for all of them: what is found out for one ask serves the others.
    inquiry = Inquiry(planner, now_ns, words)
    asks: list[Why] = []
    causes: Counter[str] = Counter()
    for app in planner.model.apps.values():
        for record in app.app.asks.values():
            if not record.is_open:
                continue
            # Beyond the limit only the first obstacle is worked out, which costs far less.
            if len(asks) < limit:
                asks.append(why_of(inquiry, app, record))
                causes[asks[-1].obstacle.cause.value] += 1
            else:
                causes[first_obstacle(inquiry, app, record).cause.value] += 1
    return Found(asks, causes.total(), dict(sorted(causes.items())))


def why_of(inquiry: Inquiry, app: AppView, record: Ask) -> Why:
    # There is always one: `_obstacles` yields `NEXT` where nothing refuses.
    first, *behind = _all_obstacles(inquiry, app, record)
    why = Why(
        application_id=app.app.id,
        key=record.spec.key,
        repeats=record.remaining + record.parked,
        since_ns=record.created_ns,
        # Several repeats may have a reservation on one node.
        reserved=tuple(dict.fromkeys(record.reserved)),
        obstacle=first,
        behind=tuple(behind),
        queue=app.leaf.queue.path,
        placed=_nodes_of(app.app, record),
        runtime=runtime_in_words(app.app, record.spec),
        at_ns=inquiry.now_ns,
    )
    # Nothing of it waits: no place in the queue, no nodes and no victims to look for.
    return _of_waiting(inquiry, app.asks[record.spec.key], why) if record.remaining else why


def _of_waiting(inquiry: Inquiry, ask: AskView, why: Why) -> Why:
    found = inquiry.survey_of(Case(inquiry, ask))
    line = inquiry.line_of(ask.app.leaf)
    return replace(
        why,
        preempting=_preempting(inquiry, ask),
        position=line.place_of(ask),
        waiting=line.total,
        nodes_with_room=None if found is None else found.fitting,
    )


# Its gang may stand in front of it: then victims are looked for on behalf of a placeholder.
def _preempting(inquiry: Inquiry, ask: AskView) -> Preempting:
    asking = asks_on_behalf_of(ask, inquiry.next_member)
    account = account_of(inquiry.planner, asking)
    if asking is ask:
        return account
    return replace(account, text=f"{asking.ask.spec.key}: {account.text}")


def _nodes_of(app: Application, record: Ask) -> dict[str, int]:
    return dict(Counter(app.allocations[uuid].node_id for uuid in record.uuids))


def _all_obstacles(inquiry: Inquiry, app: AppView, record: Ask) -> Iterator[Obstacle]:
    if record.remaining:
        return _obstacles(Case(inquiry, app.asks[record.spec.key]))
    return iter((_parked(app.app, record) if record.parked else _placed(app.app, record),))


def first_obstacle(inquiry: Inquiry, app: AppView, record: Ask) -> Obstacle:
    """Return what it waits for: what the planner meets first."""
    return next(_all_obstacles(inquiry, app, record))


def _obstacles(case: Case) -> Iterator[Obstacle]:
    """Nothing else is asked of an ask that is decided, or that takes over a placeholder's room."""
    is_free = True
    for check in CHECKS:
        for obstacle in check(case):
            is_free = False
            yield obstacle
            # What is on its way, or waits for its gang, is tried no further: more would mislead.
            if obstacle.cause in _ENDS:
                return
    if is_free:
        yield Obstacle(
            cause=Cause.NEXT,
            text="nothing refuses it",
            remedy="it is tried after the asks before it",
        )


_ENDS = frozenset({Cause.ON_ITS_WAY, Cause.GANG_WAITS})


# -- asks of which nothing waits


def _parked(app: Application, record: Ask) -> Obstacle:
    # Parked: each of its repeats takes over a placeholder that is being released.
    placeholders = [
        app.allocations[uuid] for uuid, s in app.swaps.items() if s.key == record.spec.key
    ]
    text = "it replaces a placeholder that is being released"
    late = [item.spec.key for item in placeholders if item.is_overdue]
    if late:
        text += f"; the release of {late[0]} was not confirmed in time"
    return Obstacle(
        cause=Cause.PARKED,
        where=placeholders[0].node_id,
        text=text,
        remedy="its resource manager must confirm that the placeholder is gone",
    )


def _placed(app: Application, record: Ask) -> Obstacle:
    allocations = [app.allocations[uuid] for uuid in record.uuids]
    nodes = list(dict.fromkeys(item.node_id for item in allocations))
    what = "it keeps room" if record.spec.placeholder else "it runs"
    text = f"{what} on {named(nodes)}"
    leaving = [_leaving(item) for item in allocations if item.releasing is not None]
    remedy = ""
    if leaving:
        text += f"; asked back: {len(leaving)} of {len(allocations)} "
        text += f"({named(dict.fromkeys(leaving))})"
        remedy = "its resource manager must confirm the release"
    return Obstacle(cause=Cause.PLACED, where=nodes[0], text=text, remedy=remedy)


def _leaving(allocation: Allocation) -> str:
    assert allocation.releasing is not None
    whom = allocation.beneficiary
    if whom is None or not whom.key:
        return allocation.releasing.name
    return f"{allocation.releasing.name} for {whom.key} of {whom.application_id}"


# -- before any room is looked for


def _pause(case: Case) -> Iterator[Obstacle]:
    # Both suspend the partition: the cause tells them apart, as the remedies differ.
    state = case.planner.state
    if state.suspended and state.is_backpressured:
        yield Obstacle(
            cause=Cause.RM_PAUSED,
            text="its resource manager does not take its messages",
            remedy="its callback must return from its calls, or the manager must register again",
        )
    elif state.suspended:
        yield Obstacle(
            cause=Cause.RM_PAUSED,
            text="its resource manager is away, so its partitions are suspended",
            remedy="the resource manager must register again",
        )
    elif state.long_work is not None:
        yield Obstacle(
            cause=Cause.RM_PAUSED,
            text=f"its partition is being changed: {state.long_work.text}",
            remedy="nothing: it ends by itself",
        )


def _application(case: Case) -> Iterator[Obstacle]:
    if not case.app.is_schedulable:
        state = case.app.app.state
        yield Obstacle(
            cause=Cause.APP_STATE,
            where=state.value,
            text=f"its application is {state.value}",
            remedy=_STATES.get(state, "asks of an application in this state are not placed"),
        )


_STATES: Final = {
    ApplicationState.RESUMING: "it goes on when the resource manager has confirmed the release of "
    "its placeholders",
    ApplicationState.FAILING: "it fails when the resource manager has confirmed its releases; "
    "submit the application again",
}


def _decision(case: Case) -> Iterator[Obstacle]:
    ask = case.ask
    # Repeats that wait are explained, even while others are in flight.
    if ask.open or not ask.inflight:
        return
    flights = case.planner.model.flights.placements.values()
    node = next((flight.node.id for flight in flights if flight.ask is ask), "")
    yield Obstacle(
        cause=Cause.ON_ITS_WAY,
        where=node,
        text="a node has been chosen" + (f", {node}" if node else ""),
        remedy="a predicate of its resource manager, or the core, is checking that choice",
    )


def _rest(case: Case) -> Iterator[Obstacle]:
    until_ns = case.planner.backoff.resting.get(case.app)
    if until_ns is not None:
        left_ns = max(0, until_ns - case.inquiry.now_ns)
        # A reload may have taken the back-off away; a rest that has begun goes on.
        count = case.app.leaf.queue.properties.backoff_count
        which = f"{count} or more" if count else "too many"
        yield Obstacle(
            cause=Cause.BACKING_OFF,
            where=case.app.leaf.queue.path,
            until_ns=until_ns,
            left_ns=left_ns,
            text=f"its application rests, because {which} of its asks found no node",
            remedy=f"it is tried again in {duration_of(left_ns)}",
        )


# -- gangs


def _gang(case: Case) -> Iterator[Obstacle]:
    app, spec = case.app, case.ask.ask.spec
    # Only while it waits for its gang; an admitted placeholder is explained by room.
    if not waits_for_gang(app.app, spec, is_admitting=app.is_admitting):
        return
    if not spec.placeholder:
        yield _behind_placeholders(case) if app.app.waiting_placeholders else _unswapped(case)
        return
    place = case.inquiry.commitments.refusing(app)
    if place is not None:
        yield _held(case, place)
    elif not case.inquiry.commitments.may_start(app):
        yield Obstacle(
            cause=Cause.GANG_HELD,
            where=app.leaf.queue.path,
            gang=_gang_of(app.app),
            text="others, or gangs that were admitted before it, take the last places of running "
            "applications",
            remedy="end one of them, or raise the maximum",
        )


def _gang_of(app: Application, member: str = "", cause: Cause | None = None) -> Gang:
    size = sum(group.alive + group.replaced for group in app.task_groups.values())
    return Gang(placed=size - app.waiting_placeholders, size=size, member=member, cause=cause)


def _behind_placeholders(case: Case) -> Obstacle:
    """What refuses the next placeholder keeps all real asks of the gang waiting."""
    member = case.inquiry.next_member(case.app)
    assert member is not None
    # The decisive obstacle of the member keeps this ask waiting as well.
    key, refused = member.ask.spec.key, decisive(_obstacles(Case(case.inquiry, member)))
    gang = _gang_of(case.app.app, key, refused.cause)
    return Obstacle(
        cause=Cause.GANG_WAITS,
        where=case.ask.ask.spec.task_group,
        never=refused.never,
        gang=gang,
        text=f"{gang.placed} of {gang.size} placeholders of its gang are placed; "
        f"{key} waits: {refused.text}",
        remedy=refused.remedy,
    )


def _unswapped(case: Case) -> Obstacle:
    """All placeholders are placed, and none of its group has been given up for it yet."""
    ask, group = case.ask, case.ask.ask.spec.task_group
    found = list(case.app.usable.get(group, {}).values())
    if not found:
        text = f"the placeholders of its task group {group} are being released"
        remedy = "its resource manager must confirm that they are gone"
    elif refusals := _refused_swaps(ask, [item.node_id for item in found]):
        # Refused on the nodes of its placeholders: it has to find another node.
        text = f"it may not take over a placeholder: {refusals}; no other node has room"
        remedy = "make room on another node"
    else:
        text = f"a placeholder keeps the room for it on {named(it.node_id for it in found)}"
        remedy = "it takes that over next"
    gang = _gang_of(case.app.app)
    return Obstacle(cause=Cause.GANG_WAITS, where=group, gang=gang, text=text, remedy=remedy)


def _refused_swaps(ask: AskView, nodes: list[str]) -> str:
    required, denial = ask.shape.required_node, ask.shape.denial
    if required and required not in nodes:
        return f"it requires node {required}"
    refused = {} if denial is None else denial.refused[Use.KEEPING]
    return named(f"{node} ({refused[node]})" for node in nodes if node in refused)


def _held(case: Case, place: Queue | Limit) -> Obstacle:
    """Tell a gang that can never fit, because the maximum is too small, from one that must wait."""
    app, model = case.app.app, case.planner.model
    if isinstance(place, Queue):
        sizes, used = place.spec.max or {}, model.tree.queues[place.path].used
    else:
        sizes, used = place.max_resources or {}, model.used_of(place)
    # The configured maximum, as at the admission: the size of the cluster does not count.
    need = {kind: quantity for kind, quantity in unplaced(app).items() if kind in sizes}
    committed = case.inquiry.commitments.in_place(place)
    # Larger than the maximum itself: no work that ends makes room for it.
    never = not has_room(sizes, {}, need.items())
    # With what is to come of other gangs, which are not placed yet.
    lacks = shortfall(sizes, add(used, committed), need.items())
    name = name_of(place)
    if never:
        text = f"{name} never has room for the whole gang: {case.words.too_large(need, sizes)}"
        remedy = "raise the maximum, or make the gang smaller"
    else:
        text = f"{name} has no room for the whole gang, {case.words.short(lacks, used, sizes)}"
        text += case.words.besides(some_of(lacks, committed), "are to come of other gangs")
        remedy = "release work there until all of the gang fits, or raise the maximum"
    if app.lapsed_ns:
        text += "; its commitment lapsed, because no placeholder could be placed in time"
    return Obstacle(
        cause=Cause.GANG_HELD,
        where=place.path,
        never=never,
        wanted=need,
        used=amounts_of(need, used),
        promised=some_of(need, committed),
        maximum=amounts_of(need, sizes),
        lacks=lacks,
        gang=_gang_of(app),
        text=text,
        remedy=remedy,
    )


# -- policies


def _held_by_policy(case: Case) -> Iterator[Obstacle]:
    """The gate of its leaf is asked of what has room: a gang as a whole, an ask by itself."""
    leaf, app = case.app.leaf, case.app
    # The gate is asked about a gang as a whole, so its hold may be on the application.
    hold = leaf.holds.get(case.ask) or (app.awaiting_gang and leaf.holds.get(app)) or None
    if hold is not None:
        left_ns = max(0, hold.until_ns - case.inquiry.now_ns)
        yield Obstacle(
            cause=Cause.POLICY,
            where=leaf.queue.path,
            until_ns=hold.until_ns,
            left_ns=left_ns,
            text=f"{policy_name(leaf.queue)} lets it wait: {hold.reason}",
            remedy=f"it is asked about again in {duration_of(left_ns)}" if hold.until_ns else "",
        )


# -- places of running applications


def _start(case: Case) -> Iterator[Obstacle]:
    app = case.app
    # Only what has not started: the others have their place already.
    if app.app.state is ApplicationState.ACCEPTED:
        gates: tuple[Gate, ...] = (*app.leaf.lineage, *app.limits)
        for gate in gates:
            if not gate.may_start(app):
                yield _run_limit(case, gate)


def _run_limit(case: Case, gate: Gate) -> Obstacle:
    if isinstance(gate, QueueView):
        path, most = gate.queue.path, gate.queue.spec.max_applications
        # Behind others of a stateaware leaf: a larger maximum would not let it start.
        if gate.is_stateaware and not gate.is_next_to_start(case.app):
            before = [other.app.id for other in gate.starting_before(case.app)]
            return Obstacle(
                cause=Cause.STATEAWARE_BUSY,
                where=path,
                holders=tuple(before[:HOLDERS_MAX]),
                text=f"{gate.name} starts one application at a time, before it: {named(before)}",
                remedy="what is before it must run, or be withdrawn",
            )
    else:
        path, most = gate.limit.path, gate.limit.max_applications
    holders = case.inquiry.holders_of(gate)
    running = len(holders)
    return Obstacle(
        cause=Cause.APP_LIMIT,
        where=path,
        running=running,
        running_max=most,
        holders=holders[:HOLDERS_MAX],
        text=f"{gate.name} has reached its maximum of running applications, "
        f"{running} of {most}: {named(holders)}",
        remedy="end one of them, or raise the maximum",
    )


# -- room in queues, limits and on nodes


def _lane(case: Case) -> Iterable[Obstacle]:
    """What is short is the same for all asks of one shape and one owner in one leaf."""
    rooms = case.inquiry.rooms
    # An ask with a reservation has room of its own, so its answer is not that of its lane.
    if case.ask.ask.reserved:
        return tuple(_room(case))
    lane = (case.app.leaf, case.app.owner, case.ask.shape)
    if lane not in rooms:
        rooms[lane] = tuple(_room(case))
    return rooms[lane]


def _room(case: Case) -> Iterator[Obstacle]:
    return chain(quota_obstacles(case), limit_obstacles(case), node_obstacles(case))


# The order of the planner, not of importance: what stands behind may be worse.
CHECKS: Final[tuple[Callable[[Case], Iterable[Obstacle]], ...]] = (
    _pause,
    _application,
    _decision,
    reserved_node_obstacles,
    _rest,
    _gang,
    _start,
    _lane,
    _held_by_policy,
)
"""A new reason for an ask to wait gets its line here, in the order of the planner's checks; a node
that is reserved for the ask comes before what stands in its way elsewhere."""
