"""Why an ask waits, worked out on demand.

`CHECKS` is the table: one line for each thing that can hold an ask back, in the order in which the
planner meets them. The rules are asked where they stand: of gates, gangs, nodes and the back-off.
What a check says of one ask serves all that share it, so a list of all of them costs little more.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Final, NamedTuple

from msgspec.structs import replace

from yunikorn_actors.planning.model.nodes import NodeView
from yunikorn_actors.planning.model.shape import Shape, Use, Wanted
from yunikorn_actors.planning.model.views import (
    AppView,
    AskView,
    Gate,
    Owner,
    QueueView,
    key_of,
)
from yunikorn_actors.planning.planner import Planner
from yunikorn_actors.planning.preemption.attempts import (
    account_of,
    asks_on_behalf_of,
    next_placeholder,
)
from yunikorn_actors.planning.stages.gangs import Commitments, name_of
from yunikorn_actors.planning.why.reasons import (
    CLUSTER,
    LOOKS_MAX,
    Cause,
    Gang,
    NearMiss,
    NodeCheck,
    Obstacle,
    Preempting,
    Why,
    decisive,
    no_room,
    seconds,
)
from yunikorn_actors.planning.why.survey import Survey, survey
from yunikorn_actors.policies.folds import policy_name, runtime_in_words
from yunikorn_actors.state.allocations import Allocation, Ask
from yunikorn_actors.state.applications import Application, ApplicationState
from yunikorn_actors.state.gangs import unplaced, waits_for_gang
from yunikorn_actors.state.gates import has_room, shortfall
from yunikorn_actors.state.limits import Limit
from yunikorn_actors.state.preemption import room_for
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.state.reserved_nodes import own_earmark
from yunikorn_actors.values.devices import WHOLE, number_of
from yunikorn_actors.values.quantity import compared, readable
from yunikorn_actors.values.resource import Resource, add, describe, sub

NAMES_MAX = 3
HOLDERS_MAX = 10


class Found(NamedTuple):
    """What was found out about the asks of a partition."""

    asks: list[Why]
    total: int
    """All that wait, also those that are not in the list."""
    causes: dict[str, int]
    """How many of them wait for what first."""


class Words(NamedTuple):
    """How it is worded; what is found does not depend on it."""

    amounts: Callable[[Resource], str]
    compared: Callable[[Resource, Resource], tuple[str, str]]
    """Writes two, so that they are seen to differ."""
    is_brief: bool
    """Leave out how much is used of how much, and which nodes are short of what."""

    def short(self, lacks: Resource, used: Resource, sizes: Resource) -> str:
        said = f"{self.amounts(lacks)} short"
        if self.is_brief:
            return said
        some, of = self.compared(_of(lacks, used), _of(lacks, sizes))
        return f"{said}: {some} of {of} are used"

    def too_large(self, wanted: Resource, sizes: Resource, has: str = "the maximum is") -> str:
        over = [kind for kind, quantity in wanted.items() if quantity > sizes.get(kind, 0)]
        asked, most = self.compared({kind: wanted[kind] for kind in over}, _of(over, sizes))
        return f"it asks for {asked}, and {has} {most}"

    def besides(self, amounts: Resource, what: str) -> str:
        if self.is_brief or not amounts:
            return ""
        return f", and {self.amounts(amounts)} {what}"


def _both_exact(one: Resource, other: Resource) -> tuple[str, str]:
    return describe(one), describe(other)


FULL: Final = Words(readable, compared, is_brief=False)
BRIEF: Final = Words(readable, compared, is_brief=True)
"""For tables that people read."""
IN_BASE_UNITS: Final = Words(describe, _both_exact, is_brief=False)
"""So that a question of an older recording has the answer that was recorded."""


class Line:
    """The asks that wait in one leaf, in the order in which they are tried."""

    def __init__(self, leaf: QueueView) -> None:
        self.total = 0
        self._before: dict[AppView, int] = {}
        self._orders: dict[AppView, dict[str, int]] = {}
        for app in sorted(leaf.members.values(), key=key_of):
            self._before[app] = self.total
            self.total += sum(1 for record in app.app.asks.values() if record.remaining)

    def place_of(self, ask: AskView) -> int:
        app = ask.app
        if app not in self._orders:
            keys = (record.spec.key for record in app.app.waiting_asks())
            self._orders[app] = {key: place for place, key in enumerate(keys, 1)}
        return self._before[app] + self._orders[app][ask.ask.spec.key]


class Inquiry:
    """One question, with what has been found out for it already."""

    def __init__(
        self, planner: Planner, now_ns: int, words: Words = FULL, looks: int | None = None
    ) -> None:
        """Look at no more nodes than `looks`; with 0 at none."""
        looks = LOOKS_MAX if looks is None else looks
        self.planner = planner
        self.now_ns = now_ns
        self.words = words
        self.commitments = Commitments(planner.model)
        self._looks = looks
        self.looked_at = 0
        """How many nodes were looked at, or would have been."""
        self.cost = 0
        """How many nodes and applications were looked at for it, beside those."""
        self._may_exceed = looks > 0
        """The first look is made, however many nodes there are."""
        self._surveys: dict[Shape | AskView, Survey | None] = {}
        self._rooms: dict[tuple[QueueView, Owner, Shape], tuple[Obstacle, ...]] = {}
        self._lines: dict[QueueView, Line] = {}
        self._holders: dict[Gate, tuple[str, ...]] = {}
        self._members: dict[AppView, AskView | None] = {}

    def survey_of(self, case: "Case") -> Survey | None:
        """Look at all nodes; None if too many were looked at already."""
        whose = _whose(case.ask)
        if whose not in self._surveys:
            nodes = _candidates(case)
            self.looked_at += len(nodes)
            is_first = self._may_exceed and not self._surveys
            may_look = is_first or self.looked_at <= self._looks
            self._surveys[whose] = survey(case.ask, nodes) if may_look else None
        return self._surveys[whose]

    def nodes_to_look_at(self, ask: AskView) -> int:
        """Return how many nodes `survey_of` would look at, and has not looked at for another."""
        is_over = self.looked_at >= self._looks
        return 0 if is_over or _whose(ask) in self._surveys else len(_candidates(Case(self, ask)))

    def room_of(self, case: "Case") -> tuple[Obstacle, ...]:
        """Return what is short for all asks of one shape and one owner in one leaf."""
        if case.ask.ask.reserved:
            return tuple(_room(case))
        lane = (case.app.leaf, case.app.owner, case.ask.shape)
        if lane not in self._rooms:
            self._rooms[lane] = tuple(_room(case))
        return self._rooms[lane]

    def line_of(self, leaf: QueueView) -> Line:
        if leaf not in self._lines:
            self._lines[leaf] = Line(leaf)
        return self._lines[leaf]

    def holders_of(self, gate: Gate) -> tuple[str, ...]:
        """Name the applications that take its places, those that do not run before others."""
        if gate not in self._holders:
            apps, kept = self.planner.model.apps, gate.reserving
            self.cost += len(apps)
            names = [f"{apps[serial].app.id} (a node is reserved for it)" for serial in kept]
            others = (app.app for serial, app in apps.items() if serial not in kept)
            names += [app.id for app in others if gate.counts(apps[app.serial])]
            self._holders[gate] = tuple(names)
        return self._holders[gate]

    def next_member(self, app: AppView) -> AskView | None:
        """Return the placeholder that is tried next."""
        if app not in self._members:
            self._members[app] = next_placeholder(app)
        return self._members[app]


def _whose(ask: AskView) -> Shape | AskView:
    """An ask with a reservation sees its nodes in its own way."""
    return ask if ask.ask.reserved else ask.shape


class Case(NamedTuple):
    inquiry: Inquiry
    ask: AskView

    @property
    def planner(self) -> Planner:
        return self.inquiry.planner

    @property
    def app(self) -> AppView:
        return self.ask.app

    @property
    def words(self) -> Words:
        return self.inquiry.words


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
    inquiry = Inquiry(planner, now_ns, words)
    asks: list[Why] = []
    causes: Counter[str] = Counter()
    for app in planner.model.apps.values():
        for record in app.app.asks.values():
            if not record.is_open:
                continue
            if len(asks) < limit:
                asks.append(why_of(inquiry, app, record))
                causes[asks[-1].obstacle.cause.value] += 1
            else:
                causes[first_obstacle(inquiry, app, record).cause.value] += 1
    return Found(asks, causes.total(), dict(sorted(causes.items())))


def why_of(inquiry: Inquiry, app: AppView, record: Ask) -> Why:
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
    text = f"{what} on {_named(nodes)}"
    leaving = [_leaving(item) for item in allocations if item.releasing is not None]
    remedy = ""
    if leaving:
        text += f"; asked back: {len(leaving)} of {len(allocations)} "
        text += f"({_named(dict.fromkeys(leaving))})"
        remedy = "its resource manager must confirm the release"
    return Obstacle(cause=Cause.PLACED, where=nodes[0], text=text, remedy=remedy)


def _leaving(allocation: Allocation) -> str:
    assert allocation.releasing is not None
    whom = allocation.beneficiary
    if whom is None or not whom.key:
        return allocation.releasing.name
    return f"{allocation.releasing.name} for {whom.key} of {whom.application_id}"


def _named(names: Iterable[str]) -> str:
    """Name the first few."""
    listed = list(names)
    more = len(listed) - NAMES_MAX
    return ", ".join(listed[:NAMES_MAX]) + (f" and {more} more" if more > 0 else "")


# -- before any room is looked for


def _pause(case: Case) -> Iterator[Obstacle]:
    state = case.planner.state
    if state.suspended and state.behind:
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


def _kept(case: Case) -> Iterator[Obstacle]:
    """Nodes are reserved for it and have no room yet; `_node` tells of a node that is refused."""
    shape = case.ask.shape
    for node_id in dict.fromkeys(case.ask.ask.reserved):
        node = case.planner.model.nodes.views[node_id]
        free = room_for(node.node, case.ask.ask.spec, node.free)
        lacks = shortfall(free, {}, shape.wanted, True)
        short = f"{case.words.amounts(lacks)} short"
        if any(free.get(kind, 0) < node.free.get(kind, 0) for kind in lacks):
            short += ", beside the room that victims of other asks made"
        if lacks:
            sizes = _of(shape.wanted, node.node.capacity)
            yield Obstacle(
                cause=Cause.NODE_KEPT,
                where=node_id,
                wanted=dict(shape.wanted),
                used=sub(sizes, _of(shape.wanted, free)),
                maximum=sizes,
                lacks=lacks,
                text=f"{node_id} is reserved for it and is {short}",
                remedy="release that much on the node",
            )
        elif shape.devices and case.planner.model.devices_for(case.ask, node) is None:
            yield Obstacle(
                cause=Cause.NODE_KEPT,
                where=node_id,
                wanted=dict(shape.wanted),
                text=f"{node_id} is reserved for it and has {_no_device(shape.devices)}",
                remedy="release work on its devices",
            )


def _no_device(amount: int) -> str:
    """Say what no device, or too few of them, have left; whatever the sum of all is."""
    if amount < WHOLE:
        return f"no device with {_in_devices(amount)} of one left"
    number = number_of(amount)
    if not number:
        return "no share of several devices: ask for less than one, or for whole ones"
    return "no idle device" if number == 1 else f"less than {number} idle devices"


def _in_devices(amount: int) -> str:
    return f"{amount / WHOLE:g}"


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
            remedy=f"it is tried again in {seconds(left_ns)}",
        )


# -- gangs


def _gang(case: Case) -> Iterator[Obstacle]:
    app, spec = case.app, case.ask.ask.spec
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
            text="gangs that were admitted before it take the last places of running applications",
            remedy="end one of them, or raise the maximum",
        )


def _gang_of(app: Application, member: str = "", cause: Cause | None = None) -> Gang:
    size = sum(group.alive + group.replaced for group in app.task_groups.values())
    return Gang(placed=size - app.waiting_placeholders, size=size, member=member, cause=cause)


def _behind_placeholders(case: Case) -> Obstacle:
    """What refuses the next placeholder keeps all real asks of the gang waiting."""
    member = case.inquiry.next_member(case.app)
    assert member is not None
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
        text = f"it may not take over a placeholder: {refusals}; no other node has room"
        remedy = "make room on another node"
    else:
        text = f"a placeholder keeps the room for it on {_named(it.node_id for it in found)}"
        remedy = "it takes that over next"
    gang = _gang_of(case.app.app)
    return Obstacle(cause=Cause.GANG_WAITS, where=group, gang=gang, text=text, remedy=remedy)


def _refused_swaps(ask: AskView, nodes: list[str]) -> str:
    required, denial = ask.shape.required_node, ask.shape.denial
    if required and required not in nodes:
        return f"it requires node {required}"
    refused = {} if denial is None else denial.refused[Use.KEEPING]
    return _named(f"{node} ({refused[node]})" for node in nodes if node in refused)


def _held(case: Case, place: Queue | Limit) -> Obstacle:
    """Tell a gang that can never fit, because the maximum is too small, from one that must wait."""
    app, model = case.app.app, case.planner.model
    if isinstance(place, Queue):
        sizes, used = place.spec.max or {}, model.tree.queues[place.path].used
    else:
        sizes, used = place.max_resources or {}, model.used_of(place)
    need = {kind: quantity for kind, quantity in unplaced(app).items() if kind in sizes}
    committed = case.inquiry.commitments.in_place(place)
    never = not has_room(sizes, {}, need.items())
    lacks = shortfall(sizes, add(used, committed), need.items())
    name = name_of(place)
    if never:
        text = f"{name} never has room for the whole gang: {case.words.too_large(need, sizes)}"
        remedy = "raise the maximum, or make the gang smaller"
    else:
        text = f"{name} has no room for the whole gang, {case.words.short(lacks, used, sizes)}"
        text += case.words.besides(_some(lacks, committed), "are to come of other gangs")
        remedy = "release work there until all of the gang fits, or raise the maximum"
    if app.lapsed_ns:
        text += "; its commitment lapsed, because no placeholder could be placed in time"
    return Obstacle(
        cause=Cause.GANG_HELD,
        where=place.path,
        never=never,
        wanted=need,
        used=_of(need, used),
        promised=_some(need, committed),
        maximum=_of(need, sizes),
        lacks=lacks,
        gang=_gang_of(app),
        text=text,
        remedy=remedy,
    )


# -- policies


def _held_by_policy(case: Case) -> Iterator[Obstacle]:
    """The gate of its leaf is asked of what has room: a gang as a whole, an ask by itself."""
    leaf, app = case.app.leaf, case.app
    hold = leaf.holds.get(case.ask) or (app.awaiting_gang and leaf.holds.get(app)) or None
    if hold is not None:
        left_ns = max(0, hold.until_ns - case.inquiry.now_ns)
        yield Obstacle(
            cause=Cause.POLICY,
            where=leaf.queue.path,
            until_ns=hold.until_ns,
            left_ns=left_ns,
            text=f"{policy_name(leaf.queue)} lets it wait: {hold.reason}",
            remedy=f"it is asked about again in {seconds(left_ns)}" if hold.until_ns else "",
        )


# -- places of running applications


def _start(case: Case) -> Iterator[Obstacle]:
    app = case.app
    if app.app.state is ApplicationState.ACCEPTED:
        gates: tuple[Gate, ...] = (*app.leaf.lineage, *app.limits)
        for gate in gates:
            if not gate.may_start(app):
                yield _run_limit(case, gate)


def _run_limit(case: Case, gate: Gate) -> Obstacle:
    if isinstance(gate, QueueView):
        path, most = gate.queue.path, gate.queue.spec.max_applications
        if gate.is_stateaware and not gate.is_next_to_start(case.app):
            before = [other.app.id for other in gate.starting_before(case.app)]
            return Obstacle(
                cause=Cause.STATEAWARE_BUSY,
                where=path,
                holders=tuple(before[:HOLDERS_MAX]),
                text=f"{gate.name} starts one application at a time, before it: {_named(before)}",
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
        f"{running} of {most}: {_named(holders)}",
        remedy="end one of them, or raise the maximum",
    )


# -- room in queues, limits and on nodes


def _lane(case: Case) -> Iterable[Obstacle]:
    return case.inquiry.room_of(case)


def _room(case: Case) -> Iterator[Obstacle]:
    return chain(_quota(case), _limit(case), _node(case))


def _quota(case: Case) -> Iterator[Obstacle]:
    """Find quotas without room; an ask that requires a node ignores the size of the cluster.

    What was promised to the ask itself is its own, and what decisions in flight use counts once.
    """
    shape, record = case.ask.shape, case.ask.ask
    own = own_earmark(case.planner.state, record, "")
    for level in case.app.leaf.lineage:
        if level.is_quota:
            # Read where it is configured: what the planner keeps of it may be of before.
            quota = level.queue.quota(add(own, level.redeemed))
            lacks = shortfall(quota, level.used, shape.wanted)
            if lacks:
                sizes = level.queue.spec.max or {}
                kept = sub(sizes, quota)
                full = Full(Cause.QUEUE_LIMIT, level.name, level.queue.path, sizes, level.used)
                yield _full(case, full, lacks, kept)
        elif not shape.required_node:
            yield from _cluster(case, level)


def _cluster(case: Case, root: QueueView) -> Iterator[Obstacle]:
    wanted, capacity = case.ask.shape.wanted, case.planner.state.capacity
    lacks = shortfall(capacity, root.used, wanted, True)
    if not lacks or not case.planner.state.nodes:
        return  # that there is no node is for `_node` to say
    never = not has_room(capacity, {}, wanted, True)
    unknown = sorted(kind for kind, _ in wanted if kind not in capacity)
    remedy = "add nodes that have it, or ask for less"
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
        used=_of(wanted, root.used),
        maximum=_of(wanted, capacity),
        lacks=lacks,
        text=text,
        remedy=remedy,
    )


def _limit(case: Case) -> Iterator[Obstacle]:
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
        text += words.besides(_some(lacks, kept), "are promised to others")
        remedy = "release that much there, or raise the maximum"
    return Obstacle(
        cause=full.cause,
        where=full.path,
        never=never,
        wanted=wanted,
        used=_of(wanted, used),
        promised=_some(wanted, kept),
        maximum=_of(wanted, sizes),
        lacks=lacks,
        text=text,
        remedy=remedy,
    )


def _of(kinds: Iterable[str] | Wanted, amounts: Resource) -> Resource:
    """Take the amounts of these types alone, 0 where there is none."""
    names = (kind if isinstance(kind, str) else kind[0] for kind in kinds)
    return {name: amounts.get(name, 0) for name in names}


def _some(kinds: Iterable[str], amounts: Resource) -> Resource:
    """Take those of them that there is any of."""
    return {kind: amounts[kind] for kind in kinds if amounts.get(kind)}


# -- nodes


def _node(case: Case) -> Iterator[Obstacle]:
    found, ask = case.inquiry.survey_of(case), case.ask
    if found is None:
        # Not looked at again: the planner keeps which shapes found no node, and which were refused.
        if refused := _refused_with_room(case):
            yield _refused(case, refused)
        elif ask.shape.waits_for_node:
            yield Obstacle(cause=Cause.NO_NODE, text="no node has room for it")
    elif found.fitting:
        return
    elif found.refusals:
        yield _refused(case, found)
    elif not ask.shape.required_node or ask.shape.required_node not in ask.ask.reserved:
        # What the one node lacks that is reserved for it is in the answer already.
        yield _no_node(case, found)


def _refused_with_room(case: Case) -> Survey | None:
    """Look at the nodes that its resource manager has refused, whether one has room for it."""
    denial, views = case.ask.shape.denial, case.planner.model.nodes.views
    refused = {} if denial is None else denial.refused[Use.PLACING]
    case.inquiry.cost += len(refused)
    found = survey(case.ask, [views[node] for node in refused if node in views])
    return found if found.refusals else None


def _no_node(case: Case, found: Survey) -> Obstacle:
    required, near = case.ask.shape.required_node, found.near_miss
    if required and not found.total:
        text, remedy = f"node {required} is not registered", "add this node"
    elif not found.total:
        text, remedy = "there is no node", "add a node"
    elif found.is_hopeless:
        text = _hopeless(case.words, found, required)
        larger = "make it larger" if required else "add a node that is large enough"
        remedy = f"{larger}, or ask for less"
    elif required:
        text, remedy = _of_required(case.words, found, required), _node_remedy(found, required)
    else:
        text, remedy = _counted(case.words, found), _node_remedy(found, required)
        if near is not None:
            text += f"; {near.node_id} is nearest, {_short_of(case.words, near)}"
    if found.split:
        where = "that node has" if required else "there is"
        text += f"; {_in_devices(found.split)} GPUs are free, but {where} "
        text += _no_device(case.ask.shape.devices)
    return Obstacle(
        cause=Cause.NO_NODE,
        where=required,
        never=found.is_hopeless,
        wanted=dict(case.ask.shape.wanted),
        nodes=found.first,
        without=found.without,
        exhausted=found.exhausted,
        near_miss=near,
        kept_for=found.kept_for,
        text=text,
        remedy=remedy,
    )


def _hopeless(words: Words, found: Survey, required: str) -> str:
    near = found.near_miss
    if required:
        text = f"node {required} could not hold it even when empty"
    else:
        text = f"none of {found.total} nodes could hold it even when empty"
    if near is None:
        return text
    who = "it" if required else f"{near.node_id} is nearest,"
    return f"{text}; {who} {'is ' if required else ''}{words.amounts(near.lacks)} short"


def _node_remedy(found: Survey, required: str) -> str:
    """List the changes of which one would do."""
    options = [
        words.format(count=found.without[check])
        for check, words in _REMEDIES.items()
        if check in found.without
    ]
    return ", or ".join(options if required else [*options, "add a node that has room"])


_REMEDIES: Final[dict[str, str]] = {
    NodeCheck.NO_WORK: "let nodes take work that are drained or not ready ({count} would do)",
    NodeCheck.AWAITED: "report the nodes that were known before the restart ({count} would do)",
    NodeCheck.KEPT: "withdraw what nodes are reserved for ({count} would do)",
    NodeCheck.FULL: "release that much on the node",
    NodeCheck.SPLIT: "release work on the devices of a node ({count} would do)",
}


def _refused(case: Case, found: Survey) -> Obstacle:
    denial = case.ask.shape.denial
    assert denial is not None
    reasons = "; ".join(f"{reason} ({n}x)" for reason, n in found.refusals.items())
    left_ns = max(0, denial.due_ns - case.inquiry.now_ns)
    other = "make room on another node" if found.near_miss else "add a node that it accepts"
    return Obstacle(
        cause=Cause.PREDICATES,
        wanted=dict(case.ask.shape.wanted),
        nodes=found.first,
        without=found.without,
        exhausted=found.exhausted,
        near_miss=found.near_miss,
        kept_for=found.kept_for,
        refusals=found.refusals,
        until_ns=denial.due_ns,
        left_ns=left_ns,
        text=f"its resource manager refuses every node that has room: {reasons}",
        remedy=f"{other}; all are asked about again after its next request, "
        f"or in {seconds(left_ns)}",
    )


_WORDS: Final[dict[str, str]] = {
    NodeCheck.NO_WORK: "taking no work",
    NodeCheck.AWAITED: "not reported since the restart",
    NodeCheck.KEPT: "reserved for others",
    NodeCheck.DEVICES: "without such devices",
    NodeCheck.TOO_SMALL: "too small",
    NodeCheck.FULL: "too full",
    NodeCheck.SPLIT: "with too little left of each device",
}


def _short_of(words: Words, near: NearMiss) -> str:
    text = f"{words.amounts(near.lacks)} short"
    if near.foreign and not words.is_brief:
        text += f" (others use {words.amounts(near.foreign)} there)"
    return text


def _of_required(words: Words, found: Survey, required: str) -> str:
    """No other node counts, so there is nothing to be counted."""
    text = f"node {required}, which it requires, is {_WORDS[next(iter(found.first))]}"
    for whom in found.kept_for.values():
        text += f" ({whom})"
    return text if found.near_miss is None else f"{text}, {_short_of(words, found.near_miss)}"


def _counted(words: Words, found: Survey) -> str:
    checks = dict(_WORDS)
    if found.kept_for and not words.is_brief:
        kept = (f"{node} for {whom}" for node, whom in found.kept_for.items())
        checks[NodeCheck.KEPT] += f" ({_named(kept)})"
    counts = ", ".join(f"{found.first[it]} {checks[it]}" for it in checks if it in found.first)
    short = ", ".join(f"{kind} on {count}" for kind, count in found.exhausted.items())
    nodes = "1 node" if found.total == 1 else f"{found.total} nodes"
    tail = f" (short of {short})" if short and not words.is_brief else ""
    return f"of {nodes}: {counts}{tail}"


def _candidates(case: Case) -> list[NodeView]:
    views = case.planner.model.nodes.views
    required = case.ask.shape.required_node
    if not required:
        return list(views.values())
    return [views[required]] if required in views else []


CHECKS: Final[tuple[Callable[[Case], Iterable[Obstacle]], ...]] = (
    _pause,
    _application,
    _decision,
    _kept,
    _rest,
    _gang,
    _start,
    _lane,
    _held_by_policy,
)
"""A new reason for an ask to wait gets its line here, in the order of the planner's checks; a node
that is reserved for the ask comes before what stands in its way elsewhere."""
