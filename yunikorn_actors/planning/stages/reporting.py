"""Reporting: the end of a plan, which says why asks still wait and which applications wait.

Both are found while the plan is made, and reported when nothing more is decided.
"""

from collections import deque
from typing import Final

from yunikorn_actors.planning.model.partition_model import Model
from yunikorn_actors.planning.model.views import AskView
from yunikorn_actors.planning.stages.allocate import Placer, gate_of
from yunikorn_actors.planning.stages.stage import OpenProposals
from yunikorn_actors.state.proposals import Proposal

LOOKED_AT_MAX: Final = 500
"""Asks that one plan looks at, at most; the next plan comes at once and takes the others."""


class Explainer:
    def __init__(self, model: Model, open_proposals: OpenProposals, placer: Placer) -> None:
        self._model = model
        self._placer = placer
        self._findings = open_proposals.findings
        self._marks = model.requeue.explaining
        self.left: deque[AskView] = deque()
        """Asks that were marked and have not been looked at."""

    def plan(self, _now_ns: int, room: int) -> list[Proposal]:
        marks = self._marks
        if room > 0 and (marks.asks or self.left):
            self._explain()
        if room > 0 and marks.apps:
            # Taken out first, as noting one may mark others.
            moved, marks.apps = marks.apps, {}
            self._findings.note_run_limits(moved, self._model.apps)
        return []

    def _explain(self) -> None:
        """Find out what holds back the asks that are not tried by themselves.

        A shape that no node has room for is not tried in the other leaves that ask for it: their
        own limits may refuse it too, and then these are to say when that changes.
        """
        # They come at the end of the plan, when it is known which of them were placed.
        self.left.extend(self._marks.asks)
        self._marks.asks = {}
        # Asks come by the hundred of one application and size: one look serves them.
        app, shape = None, None
        for _ in range(min(LOOKED_AT_MAX, len(self.left))):
            ask = self.left.popleft()
            # Not open: nothing of it waits to be tried.
            if not ask.open or (ask.app is app and ask.shape is shape):
                continue
            if not ask.app.is_schedulable or self._placer.is_blocked(ask.app):
                continue
            lane = ask.app.leaf.lanes.get((ask.shape, ask.app.owner))
            if lane is None or lane.is_open:
                # They are tried by themselves, and nothing in here lets another ask open or shut.
                app, shape = ask.app, ask.shape
                continue
            # Filed under what refuses it: what wakes the others wakes it too.
            gate = gate_of(self._model.state, ask) if lane.refused_by is None else None
            if gate is not None:
                self._model.tree.refuse(lane, gate)
            self._findings.note(ask, lane)
