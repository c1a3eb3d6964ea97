"""What waits, added up by cause, queue and size: kept as things change, not counted when asked for.

Each application that changes is marked, and only marked ones are counted anew at the next question.
The planner keeps how many repeats of each wait and are open, by shape. Repeats in a lane are added
up by lane, because what refuses one of them refuses all: its cause is found with one look.

A cause is the planner's, for a program that grows the cluster: quotas and limits come before the
size of the cluster, as more nodes do not help where one of those refuses.
"""

from itertools import groupby, islice
from operator import itemgetter
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

KINDS_MAX: Final = 2_000
"""So many kinds of asks of marked applications are counted anew in one part of an answer."""
MARKS_MAX: Final = 50
"""So many applications may be marked, once sums were asked for, before they are counted."""
SUMS_MAX: Final = 500
"""So many causes are looked for in one part."""

_Kind = Cause | Holder | Owner
"""Why repeats wait: by itself, by what blocks their application, or as the lane of the owner."""
_Size = tuple[Wanted, str, str]
"""Amounts, the only node and the models of devices that will do, if there are any."""
_Key = tuple[QueueView, Shape, _Kind]
_Rank = tuple[tuple[str, _Size], tuple[str, ...], tuple[str, ...]]


class WaitingSums:
    """Once they were asked for they are kept up as facts come: programs ask again and again."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._marks = model.wakes.recounts
        self._counted = model.wakes.counted
        self.is_asked = False
        self._of: dict[AppView, dict[_Key, int]] = {}
        self._sums: dict[_Key, int] = {}
        self._order: list[tuple[_Rank, _Key]] | None = []
        """The same in every planner with the same facts; None when a key is new or gone."""

    def part(self, question: WaitingQuestion) -> WaitingAnswer:
        """Answer with some of the sums, or count some applications and say where to go on."""
        self.is_asked = True
        if not question.place and not self._count_some():
            return WaitingAnswer(is_all=False)
        if self._order is None:
            self._order = sorted(((_rank_of(key), key) for key in self._sums), key=itemgetter(0))
        ranked = self._order[question.place : question.place + SUMS_MAX]
        place = question.place + len(ranked)
        sums: list[WaitingSum] = []
        for (path, (wanted, node, model)), alike in groupby(ranked, key=_place_and_size):
            causes: dict[Cause, int] = {}
            for _, key in alike:
                cause = self._cause(key)
                causes[cause] = causes.get(cause, 0) + self._sums[key]
            sums += [
                WaitingSum(
                    cause=cause,
                    queue=path,
                    size=dict(wanted),
                    required_node=node,
                    gpu_model=model,
                    count=count,
                )
                for cause, count in causes.items()
            ]
        return WaitingAnswer(
            total=sum([it.count for it in sums]),
            sums=tuple(sums),
            is_all=place >= len(self._sums),
            place=place,
        )

    # -- how many

    def keep_up(self) -> None:
        """Called with each fact: so a question finds little to count, whatever came before it."""
        if len(self._marks) > MARKS_MAX:
            for app in list(self._marks):
                self._count(app)

    def _count_some(self) -> bool:
        """Count some of the marked applications anew; return whether that was all."""
        kinds = 0
        for app in list(islice(self._marks, KINDS_MAX)):
            if kinds > KINDS_MAX:
                break
            kinds += 1 + len(app.waits)
            self._count(app)
        return not self._marks

    def _count(self, app: AppView) -> None:
        del self._marks[app]
        is_there = app.waits and self._model.apps.get(app.app.serial) is app
        before = self._of.pop(app, {})
        now = _counts(app) if is_there else {}
        if now:
            self._of[app] = now
            self._counted.add(app)
        else:
            self._counted.discard(app)
        sums = self._sums
        for key, count in now.items():
            more = count - before.pop(key, 0)
            if more:
                if key not in sums:
                    sums[key], self._order = 0, None
                sums[key] += more
        for key, count in before.items():
            sums[key] -= count
            if not sums[key]:
                del sums[key]
                self._order = None

    # -- what for

    def _cause(self, key: _Key) -> Cause:
        leaf, shape, kind = key
        state = self._model.state
        if state.suspended or state.long_work is not None:
            return Cause.RM_PAUSED
        if kind is None or isinstance(kind, tuple):
            lane = leaf.lanes.get((shape, kind))
            return Cause.NEXT if lane is None else _cause_of(self._model, lane)
        if isinstance(kind, Cause):
            return kind
        if isinstance(kind, Backoff):
            return Cause.BACKING_OFF
        is_one_by_one = isinstance(kind, QueueView) and kind.is_stateaware and kind.places() > 0
        return Cause.STATEAWARE_BUSY if is_one_by_one else Cause.APP_LIMIT


def _counts(app: AppView) -> dict[_Key, int]:
    """Return what of an application waits, part of it held by its gang or by itself."""
    leaf, has_gang, found = app.leaf, bool(app.app.task_groups), dict[_Key, int]()
    taken: _Kind = app.blocked_by or app.owner
    if not app.is_schedulable:
        taken = Cause.APP_STATE
    for kind, waits in app.waits.items():
        shape, is_placeholder = kind
        opened = app.opens.get(kind, 0)
        if opened:
            key = (leaf, shape, taken)
            found[key] = found.get(key, 0) + opened
        if waits == opened:
            continue
        held = Cause.NEXT
        if not app.is_schedulable:
            held = Cause.APP_STATE
        elif leaf.decider.gate is not None:
            held = Cause.POLICY
        elif has_gang:
            held = Cause.GANG_HELD if is_placeholder else Cause.GANG_WAITS
        key = (leaf, shape, held)
        found[key] = found.get(key, 0) + waits - opened
    return found


def _cause_of(model: Model, lane: Lane) -> Cause:
    shape = lane.shape
    # What a node is kept for may use what was promised to it; few are, and the others are asked.
    ask = lane.first
    if ask.ask.reserved:
        plain = (it for _, app in lane.apps for it in app.piles[shape] if not it.ask.reserved)
        ask = next(plain, ask)
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
    leaf, shape, kind = key
    alike = (leaf.queue.path, (shape.wanted, shape.required_node, shape.gpu_model))
    if kind is None or isinstance(kind, tuple):
        return (alike, shape.key[3:], kind or ())
    return (alike, (kind.value if isinstance(kind, Cause) else kind.name,), ())


def _place_and_size(ranked: tuple[_Rank, _Key]) -> tuple[str, _Size]:
    return ranked[0][0]
