"""Sums of what waits, by cause, queue and size: kept as things change, not counted when asked for.

From the first question on, each kind of asks of an application that changes is marked; the next
question counts only what is marked.

The planner keeps how many repeats of each wait and are open, by shape. What is of one size in one
leaf, and kept back alike, is one group: asks that one node alone can run have a shape each, and
there may be as many of them as nodes. A quota or a limit refuses all of a group or nothing of it,
so these are asked about once.

A cause is the planner's, for a program that grows the cluster: quotas and limits come before the
size of the cluster, as more nodes do not help where one of those refuses.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable
from itertools import chain, groupby, islice
from operator import attrgetter
from typing import Final, cast

from yunikorn_actors.planning.model.partition_model import Model
from yunikorn_actors.planning.model.shape import Shape, Use
from yunikorn_actors.planning.model.views import (
    AppView,
    Gate,
    Holder,
    Kind,
    Lane,
    Owner,
    QueueView,
)
from yunikorn_actors.planning.reasons import (
    Cause,
    SizeKey,
    WaitingAnswer,
    WaitingQuestion,
    WaitingSum,
    sum_of,
)
from yunikorn_actors.planning.stages.allocate import gate_of
from yunikorn_actors.planning.stages.backoff import Backoff

KINDS_MAX: Final = 2_000
"""Kinds of asks that are counted anew in one part of an answer, at most."""
MARKS_MAX: Final = 50
"""Kinds and applications that may be marked before they are counted."""
SUMS_MAX: Final = 500
"""Causes that are looked for in one part, at most."""

_Kind = Cause | Holder | Owner
"""Why repeats wait: by itself, by what blocks their application, or as the lane of the owner."""
_Key = tuple[QueueView, SizeKey, _Kind]
_Counts = tuple[tuple[_Key, int], ...]
"""Where repeats of one kind are counted, and how many: some may be held, and others not."""
_Rank = tuple[str, SizeKey, tuple[str, ...]]
_RANK: Final = attrgetter("rank")
_DENIAL: Final = attrgetter("denial")
_WAITS_FOR_NODE: Final = attrgetter("waits_for_node")


class _Group:
    """What waits in one leaf, is of one size and is kept back alike, by shape."""

    __slots__ = ("_last", "_names", "count", "kind", "leaf", "shapes", "size")

    def __init__(self, key: _Key) -> None:
        self.leaf, self.size, self.kind = key
        self.count = 0
        self.shapes: dict[Shape, int] = {}
        self._names: list[str] = []
        """The nodes that alone will do, in order; one for each shape."""
        self._last: WaitingSum | None = None
        """The last sum, until something of it changes: programs ask again and again."""

    def add(self, shape: Shape, more: int) -> None:
        self.count += more
        before = self.shapes.get(shape, 0)
        # Empty shapes go: the sums walk over the others each time.
        if before + more:
            self.shapes[shape] = before + more
        else:
            del self.shapes[shape]
        self._last = None
        if not (name := shape.required_node):
            return
        # The first of this shape brings its node, and the last takes it away.
        if not before:
            insort(self._names, name)
        elif shape not in self.shapes:
            del self._names[bisect_left(self._names, name)]

    def all_for(self, cause: Cause) -> WaitingSum:
        if self._last is None or self._last.cause != cause:
            self._last = self.sum(cause, self.count, dict.fromkeys(self._names))
        return self._last

    def some_for(self, cause: Cause, shapes: list[Shape]) -> WaitingSum:
        names = sorted({it.required_node for it in shapes if it.required_node})
        return self.sum(cause, sum([self.shapes[it] for it in shapes]), names)

    def sum(self, cause: Cause, count: int, names: Iterable[str]) -> WaitingSum:
        return sum_of(cause, self.leaf.queue.path, self.size, names, count)

    @property
    def rank(self) -> _Rank:
        kind = self.kind
        # Owners are texts, so groups of one queue and size have one order in every planner.
        if kind is None or isinstance(kind, tuple):
            return (self.leaf.queue.path, self.size, kind or ())
        name = kind.value if isinstance(kind, Cause) else kind.name
        return (self.leaf.queue.path, self.size, ("", name, ""))


class WaitingSums:
    """Sums of waiting asks, kept up with the facts from the first question on."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._of: dict[AppView, dict[Kind, _Counts]] = {}
        self._groups: dict[_Key, _Group] = {}
        self._order: list[list[_Group]] | None = []
        """By queue and size, the same in every planner with the same facts; None when a group is
        new or gone."""

    def part(self, question: WaitingQuestion) -> WaitingAnswer:
        """Answer with some of the sums, or count some applications and say where to go on."""
        requeue = self._model.requeue
        if requeue.recounts is None:
            # The first question marks everything; until then nothing is kept, and nothing costs.
            requeue.recounts = dict.fromkeys((app, None) for app in self._model.apps.values())
        # A question that goes on has to see the same groups, so only its first part counts.
        if not question.place and not self._count_some():
            return WaitingAnswer(is_all=False)
        if self._order is None:
            ranked = sorted(self._groups.values(), key=_RANK)
            self._order = [list(alike) for _, alike in groupby(ranked, key=_place_and_size)]
        # A place in the order: between two parts groups may come and go, which shifts it a little.
        some = self._order[question.place : question.place + SUMS_MAX]
        place = question.place + len(some)
        decides_nothing = self._model.state.decides_nothing
        sums: list[WaitingSum] = []
        for groups in some:
            first, is_one = groups[0], len(groups) == 1
            # Nothing is decided at all: whatever else refuses them, that comes first.
            cause = Cause.RM_PAUSED if decides_nothing else self._cause(first) if is_one else None
            if is_one and cause is not None:
                sums.append(first.all_for(cause))
            else:
                sums += _added_up(chain.from_iterable(self._sums_of(it, cause) for it in groups))
        # All of them or a part: the question goes on at `place`.
        return WaitingAnswer(
            total=sum([it.count for it in sums]),
            sums=tuple(sums),
            is_all=place >= len(self._order),
            place=place,
        )

    # -- how many

    def keep_up(self) -> None:
        """Called with each fact: so a question finds little to count, whatever came before it."""
        marks = self._model.requeue.recounts
        # Bounded, so that a question after a long time does not have to count everything.
        if marks is not None and len(marks) > MARKS_MAX:
            for app, kind in list(marks):
                self._count(app, kind)
            marks.clear()

    def _count_some(self) -> bool:
        """Count some of what is marked anew; return whether that was all."""
        marks, kinds = self._model.requeue.recounts, 0
        assert marks is not None
        for app, kind in list(islice(marks, KINDS_MAX)):
            if kinds > KINDS_MAX:
                break
            # Every kind of an application counts, so a part stays bounded however many it has.
            kinds += 1 if kind is not None else 1 + len(app.waits)
            self._count(app, kind)
            del marks[app, kind]
        return not marks

    def _count(self, app: AppView, kind: Kind | None) -> None:
        # An application that has gone has no counts left.
        is_there = self._model.apps.get(app.app.serial) is app
        counted = self._of.setdefault(app, {})
        # None stands for all of its kinds: those counted before, and those that wait now.
        for it in dict.fromkeys((*counted, *app.waits)) if kind is None else (kind,):
            now = _counts(app, it) if is_there and it in app.waits else ()
            before = counted.pop(it, ())
            if now:
                counted[it] = now
            if now == before:
                continue
            # First what is there: a sum that stays keeps its place among the others.
            for key, count in now:
                self._add(key, it[0], count)
            for key, count in before:
                self._add(key, it[0], -count)
        if not counted:
            del self._of[app]

    def _add(self, key: _Key, shape: Shape, more: int) -> None:
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(key)
            self._order = None
        group.add(shape, more)
        if not group.count:
            del self._groups[key]
            self._order = None

    # -- what for

    def _sums_of(self, group: _Group, cause: Cause | None) -> Iterable[WaitingSum]:
        cause = cause or self._cause(group)
        return self._one_by_one(group) if cause is None else (group.all_for(cause),)

    def _cause(self, group: _Group) -> Cause | None:
        """Find why all of a group waits, without a look at each; None where each is to be asked."""
        leaf, kind, shapes = group.leaf, group.kind, group.shapes
        if isinstance(kind, Cause):
            return kind
        if kind is not None and not isinstance(kind, tuple):
            return _cause_of_holder(kind)
        shape = next(iter(shapes))
        lane = leaf.lanes.get((shape, kind))
        if lane is None:
            return None
        gate = self._gate(lane)
        if gate is not None and (refusal := _refusal(gate)) is not None:
            # A node that is kept for one of them may let that one in: each is looked at.
            return None if self._model.reserved_nodes else refusal
        if len(shapes) == 1:
            is_refused, waits = shape.denial is not None, shape.waits_for_node
        else:
            is_refused = any(map(_DENIAL, shapes))
            # Of several shapes all have to wait for a node, or one of them may be placed.
            waits = gate is not None or all(map(_WAITS_FOR_NODE, shapes))
        if is_refused:
            return None
        if gate is not None:
            return Cause.CLUSTER_FULL if self._model.state.nodes else Cause.NO_NODE
        return Cause.NO_NODE if waits else None

    def _one_by_one(self, group: _Group) -> list[WaitingSum]:
        """What its resource manager refused, and what has room promised to it, is by itself."""
        owner = cast(Owner, group.kind)
        lanes = {shape: group.leaf.lanes.get((shape, owner)) for shape in group.shapes}
        lane = next(filter(None, lanes.values()), None)
        gate = None if lane is None else self._gate(lane)
        by_cause: dict[Cause, list[Shape]] = {}
        for shape, lane in lanes.items():
            cause = Cause.NEXT if lane is None else self._cause_of(lane, gate)
            by_cause.setdefault(cause, []).append(shape)
        return [group.some_for(cause, shapes) for cause, shapes in by_cause.items()]

    def _gate(self, lane: Lane) -> Gate | None:
        """Return what refuses those of a group to which no room was promised."""
        return gate_of(self._model.state, lane.first, has_promised=False)

    def _cause_of(self, lane: Lane, gate: Gate | None) -> Cause:
        shape, first = lane.shape, lane.first
        # What a node is kept for may use what was promised to it; few are, and the others count.
        if first.ask.reserved and all(it.ask.reserved for it in lane.asks()):
            gate = gate_of(self._model.state, first)
        if (refusal := _refusal(gate)) is not None:
            return refusal
        if shape.denial is not None and shape.denial.refused[Use.PLACING]:
            return Cause.PREDICATES
        if gate is not None and self._model.state.nodes:
            return Cause.CLUSTER_FULL
        return Cause.NO_NODE if gate is not None or shape.waits_for_node else Cause.NEXT


def _added_up(sums: Iterable[WaitingSum]) -> Iterable[WaitingSum]:
    """Of one queue and size: add up what waits for the same."""
    # Several groups of a queue and size may wait for the same cause.
    found: dict[Cause, WaitingSum] = {}
    for it in sums:
        same = found.get(it.cause)
        found[it.cause] = it if same is None else it.plus(same)
    return found.values()


def _counts(app: AppView, kind: Kind) -> _Counts:
    """Return what waits of one kind, part of it held by its gang or by itself."""
    shape, is_placeholder = kind
    size = (shape.wanted, shape.models, bool(shape.required_node))
    # What is not open is held: by its gang, by a gate, or by the state of its application.
    opened = app.opens.get(kind, 0)
    held = app.waits[kind] - opened
    taken: _Kind = app.blocked_by or app.owner
    holder = Cause.NEXT
    if not app.is_schedulable:
        taken = holder = Cause.APP_STATE
    elif app.leaf.decider.gate is not None:
        holder = Cause.POLICY
    elif app.app.task_groups:
        holder = Cause.GANG_HELD if is_placeholder else Cause.GANG_WAITS
    found = (((app.leaf, size, taken), opened), ((app.leaf, size, holder), held))
    return tuple([it for it in found if it[1]])


def _cause_of_holder(kind: Holder) -> Cause:
    if isinstance(kind, Backoff):
        return Cause.BACKING_OFF
    is_one_by_one = isinstance(kind, QueueView) and kind.is_stateaware and kind.places() > 0
    return Cause.STATEAWARE_BUSY if is_one_by_one else Cause.APP_LIMIT


def _refusal(gate: Gate | None) -> Cause | None:
    """Name the limit or quota that refuses; more nodes help only against what is neither."""
    if gate is None:
        return None
    if not isinstance(gate, QueueView):
        return Cause.USER_LIMIT
    return Cause.QUEUE_LIMIT if gate.is_quota else None


def _place_and_size(group: _Group) -> tuple[str, SizeKey]:
    return group.leaf.queue.path, group.size
