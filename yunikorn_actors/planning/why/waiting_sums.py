"""What waits, added up by cause, queue and size: kept as things change, not counted when asked for.

Each application that changes is marked, and only marked ones are counted anew at the next question.
The planner keeps how many repeats of each wait and are open, by shape. Repeats in a lane are added
up by lane, because what refuses one of them refuses all: its cause is found with one look.

A cause is the planner's, for a program that grows the cluster: quotas and limits come before the
size of the cluster, as more nodes do not help where one of those refuses.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from yunikorn_actors.planning.model.partition_model import Model
from yunikorn_actors.planning.model.shape import Shape, Use, Wanted
from yunikorn_actors.planning.model.views import AppView, Holder, Lane, Owner, QueueView
from yunikorn_actors.planning.stages.allocate import gate_of
from yunikorn_actors.planning.stages.backoff import Backoff
from yunikorn_actors.planning.why.reasons import (
    Cause,
    WaitingAnswer,
    WaitingQuestion,
    WaitingSum,
)

APPLICATIONS_MAX: Final = 500
"""So many that are marked are counted anew in one part."""
SUMS_MAX: Final = 500
"""So many causes are looked for in one part."""

_Kind = Cause | Holder | tuple[Shape, Owner]
"""Why repeats wait: by itself, by what blocks their application, or as their lane says."""
_Size = tuple[Wanted, str]
"""Amounts, and the only node that will do, if there is one."""
_Key = tuple[QueueView, _Size, _Kind]
_Rank = tuple[str, _Size, tuple[str, ...], tuple[str, ...]]


class WaitingSums:
    def __init__(self, model: Model) -> None:
        self._model = model
        self._marks = model.wakes.recounts
        self._counted = model.wakes.counted
        self._of: dict[AppView, dict[_Key, int]] = {}
        self._sums: dict[_Key, int] = {}
        self._order: dict[_Key, _Rank] = {}
        """The same in every planner that has seen the same facts."""

    def part(self, question: WaitingQuestion) -> WaitingAnswer:
        """Count and tell, or count a part of the applications and say where to go on."""
        if not question.place and not self._count_some():
            return WaitingAnswer(is_all=False)
        keys = sorted(self._sums, key=self._order.__getitem__)[
            question.place : question.place + SUMS_MAX
        ]
        place = question.place + len(keys)
        found: dict[tuple[Cause, str, _Size], int] = {}
        for key in keys:
            leaf, size, kind = key
            what = (self._cause(leaf, kind), leaf.queue.path, size)
            found[what] = found.get(what, 0) + self._sums[key]
        return WaitingAnswer(
            total=sum(found.values()),
            sums=tuple(
                WaitingSum(
                    cause=cause, queue=path, size=dict(wanted), required_node=node, count=count
                )
                for (cause, path, (wanted, node)), count in found.items()
            ),
            is_all=place >= len(self._sums),
            place=place,
        )

    # -- how many

    def _count_some(self) -> bool:
        """Count some of the marked applications anew; return whether that was all."""
        for app in list(islice(self._marks, APPLICATIONS_MAX)):
            del self._marks[app]
            self._count(app)
        return not self._marks

    def _count(self, app: AppView) -> None:
        sums = self._sums
        self._counted.discard(app)
        for key, count in self._of.pop(app, {}).items():
            left = sums[key] - count
            if left:
                sums[key] = left
            else:
                del sums[key], self._order[key]
        if not app.waits or self._model.apps.get(app.app.serial) is not app:
            return
        self._counted.add(app)
        mine = self._of[app] = {}
        for key, count in _kinds(app):
            if count:
                mine[key] = mine.get(key, 0) + count
                if key not in sums:
                    self._order[key] = _rank_of(key)
                sums[key] = sums.get(key, 0) + count

    # -- what for

    def _cause(self, leaf: QueueView, kind: _Kind) -> Cause:
        state = self._model.state
        if state.suspended or state.long_work is not None:
            return Cause.RM_PAUSED
        if isinstance(kind, Cause):
            return kind
        if isinstance(kind, tuple):
            lane = leaf.lanes.get(kind)
            return Cause.NEXT if lane is None else _cause_of(self._model, lane)
        if isinstance(kind, Backoff):
            return Cause.BACKING_OFF
        is_one_by_one = isinstance(kind, QueueView) and kind.is_stateaware and kind.places() > 0
        return Cause.STATEAWARE_BUSY if is_one_by_one else Cause.APP_LIMIT


def _kinds(app: AppView) -> Iterator[tuple[_Key, int]]:
    """Yield what of an application waits: first what its gang holds back, as the planner asks."""
    leaf, has_gang = app.leaf, bool(app.app.task_groups)
    for (shape, is_placeholder), waits in app.waits.items():
        opened = app.opens.get((shape, is_placeholder), 0)
        size = (shape.wanted, shape.required_node)
        held: _Kind = Cause.NEXT
        taken: _Kind = app.blocked_by or (shape, app.owner)
        if leaf.decider.gate is not None:
            held = Cause.POLICY
        elif has_gang:
            held = Cause.GANG_HELD if is_placeholder else Cause.GANG_WAITS
        if not app.is_schedulable:
            held = taken = Cause.APP_STATE
        yield (leaf, size, held), waits - opened
        yield (leaf, size, taken), opened


def _cause_of(model: Model, lane: Lane) -> Cause:
    shape = lane.shape
    # What a node is kept for may use what was promised to it; few are, and the others are asked.
    plain = (it for _, app in lane.apps for it in app.piles[shape] if not it.ask.reserved)
    ask = next(plain, lane.first)
    gate = gate_of(model.state, ask)
    if gate is not None and not isinstance(gate, QueueView):
        return Cause.USER_LIMIT
    if gate is not None and gate.is_quota:
        return Cause.QUEUE_LIMIT
    if shape.denial is not None and shape.denial.refused[Use.PLACING]:
        return Cause.PREDICATES
    if gate is not None and model.state.nodes:
        return Cause.CLUSTER_FULL
    return Cause.NO_NODE if gate is not None or shape.waits_for_node else Cause.NEXT


def _rank_of(key: _Key) -> _Rank:
    leaf, size, kind = key
    if isinstance(kind, tuple):
        shape, owner = kind
        return (leaf.queue.path, size, shape.key[1:], owner or ())
    return (leaf.queue.path, size, (kind.value if isinstance(kind, Cause) else kind.name,), ())
