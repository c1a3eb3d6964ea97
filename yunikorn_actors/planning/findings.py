"""What a plan found out about asks that wait, where anybody wants to know."""

from yunikorn_actors.domain.allocation import Ask, WaitingState
from yunikorn_actors.planning.views import AskView, Lane

Finding = tuple[Ask, WaitingState, str]
NO_NODE = "request is waiting for cluster resources become available"


class Findings:
    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted
        self._found: list[Finding] = []

    def take(self) -> list[Finding]:
        """Hand out what was found since the last time."""
        found, self._found = self._found, []
        return found

    def note_lane(self, lane: Lane) -> None:
        """Everything in the lane was refused."""
        if self._wanted:
            for _, app in lane.apps:
                for _, ask in app.piles[lane.shape]:
                    self.note(ask, lane)

    def note(self, ask: AskView, lane: Lane) -> None:
        """Free size of the cluster is no quota: an ask that only this holds back has failed."""
        if not self._wanted:
            return
        gate = lane.refused_by
        if gate is not None and gate.is_quota:
            state, reason = WaitingState.SKIPPED, f"{gate.name} has no room for it"
        else:
            state, reason = WaitingState.FAILED, NO_NODE
        if ask.ask.told is not state:
            self._found.append((ask.ask, state, reason))
