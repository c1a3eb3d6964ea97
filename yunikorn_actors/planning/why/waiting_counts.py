"""Counts of what waits: how many asks wait for what, and which they are, a part at a time.

What an ask waits for is what `explain` meets first. Asks of one application and size that wait in
the same way wait for the same, so one look serves them all. Nodes are looked at one by one only for
asks that are explained, and a part ends before a second look at very many of them.
"""

from collections import Counter
from collections.abc import Iterator
from heapq import nsmallest
from itertools import islice
from typing import Final

from yunikorn_actors.planning.model.shape import Shape
from yunikorn_actors.planning.model.views import AppView
from yunikorn_actors.planning.planner import Planner
from yunikorn_actors.planning.reasons import (
    Obstacle,
    WaitingAnswer,
    WaitingAsk,
    WaitingQuestion,
    Why,
)
from yunikorn_actors.planning.why.explain import first_obstacle, why_of
from yunikorn_actors.planning.why.inquiry import BRIEF, Inquiry
from yunikorn_actors.state.allocations import Ask

APPLICATIONS_MAX: Final = 500
ASKS_MAX: Final = 4_000
LOOKS_MAX: Final = 150
"""Different answers that are worked out for one part, at most."""
COST_MAX: Final = 20_000
"""Nodes and applications that are looked at for them, at most."""
EXPLAINED_MAX: Final = 400
"""Asks that are explained in one part, at most."""
SURVEYED_MAX: Final = 10_000
"""Nodes that explained asks may look at in one part, at most; the first look is whole."""
_Alike = tuple[AppView, Shape, str, bool, bool, bool]


def count_waiting(planner: Planner, question: WaitingQuestion, now_ns: int) -> WaitingAnswer:
    return _Count(planner, question, now_ns).part()


class _Count:
    def __init__(self, planner: Planner, question: WaitingQuestion, now_ns: int) -> None:
        self._model = planner.model
        self._question = question
        self._words = question.text.lower()
        # Two inquiries: counting must not use up what explaining may look at.
        self._inquiry = Inquiry(planner, now_ns, BRIEF, looks=0)
        self._found: dict[_Alike, Obstacle] = {}
        self._looks = 0
        self._total = 0
        self._causes = Counter[str]()
        self._listed: list[WaitingAsk] = []
        self._explaining = Inquiry(planner, now_ns, looks=question.looks)
        self._explained: list[Why] = []

    def part(self) -> WaitingAnswer:
        # Where it goes on: the next application, or the same one at a later ask.
        next_ = self._look_at_some()
        serial, place = next_ or (0, 0)
        return WaitingAnswer(
            is_all=next_ is None,
            serial=serial,
            place=place,
            total=self._total,
            causes=dict(self._causes),
            asks=tuple(self._listed),
            explained=tuple(self._explained),
            looks=self._explaining.looked_at,
        )

    def _look_at_some(self) -> tuple[int, int] | None:
        """Count, and return where to go on."""
        seen = 0
        for serial, begin in self._places():
            app = self._model.apps[serial]
            for place, record in enumerate(islice(app.app.asks.values(), begin, None), begin):
                if seen >= ASKS_MAX or self._is_enough or self._is_long(app, record):
                    return serial, place
                seen += 1
                if record.is_open:
                    self._count(app, record)
            # The last application of this part: the next one begins behind it.
            last = serial
        return None if self._is_last else (last + 1, 0)

    @property
    def _is_enough(self) -> bool:
        cost = self._inquiry.cost + self._explaining.cost
        return self._looks >= LOOKS_MAX or cost >= COST_MAX

    @property
    def _explains(self) -> bool:
        return len(self._explained) < self._question.explained

    def _is_long(self, app: AppView, record: Ask) -> bool:
        """Whether to explain this ask is for the next part."""
        # At least one is explained in a part, however large the cluster.
        if not (self._explained and self._explains and record.is_open):
            return False
        if len(self._explained) >= EXPLAINED_MAX:
            return True
        ask = app.asks.get(record.spec.key)
        nodes = 0 if ask is None else self._explaining.nodes_to_look_at(ask)
        return nodes > 0 and self._explaining.looked_at + nodes > SURVEYED_MAX

    def _places(self) -> Iterator[tuple[int, int]]:
        """Yield applications from where the question goes on, and at which of their asks."""
        first, begin = self._question.serial, self._question.place
        behind = (serial for serial in self._model.apps if serial >= first)
        # By serial, so that the next part goes on behind applications that have gone since.
        serials = nsmallest(APPLICATIONS_MAX, behind)
        self._is_last = len(serials) < APPLICATIONS_MAX
        yield from ((serial, begin if serial == first else 0) for serial in serials)

    def _count(self, app: AppView, record: Ask) -> None:
        question = self._question
        if self._words and not self._has_words(app, record):
            return
        lists = len(self._listed) < question.listed
        # Nothing but the number is asked for, so what it waits for is not worked out.
        if not (lists or question.by_cause or question.cause or self._explains):
            self._total += 1
            return
        obstacle = self._obstacle(app, record)
        if question.cause not in {"", obstacle.cause}:
            return
        self._total += 1
        self._causes[obstacle.cause.value] += 1
        if self._explains:
            self._explained.append(why_of(self._explaining, app, record))
        if lists:
            self._listed.append(
                WaitingAsk(
                    application_id=app.app.id,
                    key=record.spec.key,
                    cause=obstacle.cause,
                    text=obstacle.text,
                )
            )

    def _has_words(self, app: AppView, record: Ask) -> bool:
        fields = (record.spec.key, app.app.id, app.leaf.queue.path, app.app.spec.user)
        return any(self._words in it.lower() for it in fields)

    def _obstacle(self, app: AppView, record: Ask) -> Obstacle:
        ask = app.asks.get(record.spec.key)
        if ask is None or record.reserved or not record.remaining:
            # What it says names a node that is its own.
            self._looks += 1
            return first_obstacle(self._inquiry, app, record)
        spec = record.spec
        kind = (app, ask.shape, spec.task_group, spec.placeholder, ask.open > 0, ask.inflight > 0)
        if kind not in self._found:
            self._looks += 1
            self._found[kind] = first_obstacle(self._inquiry, app, record)
        return self._found[kind]
