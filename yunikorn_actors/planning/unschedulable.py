"""Findings: what a plan found out about asks that wait.

An event says when an ask finds too little room, and another when it has enough again at its turn. A
resource manager that takes container states gets every refused ask at once, also those behind the
first ask of a lane, because they are refused with it.
"""

from collections import Counter
from collections.abc import Iterable

from yunikorn_actors.planning.model.shape import Use
from yunikorn_actors.planning.model.views import AppView, AskView, Gate, Holder, Lane
from yunikorn_actors.planning.reasons import no_room
from yunikorn_actors.state.allocations import Ask, WaitingState
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.gates import GateKind
from yunikorn_actors.state.proposals import Finding
from yunikorn_actors.values.resource import Resource

RunLimitFinding = tuple[Application, GateKind, str]
NO_NODE = "request is waiting for cluster resources become available"


def _not_runnable(gate: Holder) -> str:
    return f"{gate.name} has reached its maximum of running applications"


def _refusals(ask: AskView) -> dict[str, int]:
    denial = ask.shape.denial
    return {} if denial is None else dict(Counter(denial.refused[Use.PLACING].values()))


class Findings:
    def __init__(self, *, reports: bool) -> None:
        self._reports = reports
        """Whether the resource manager takes container states."""
        self.found: dict[tuple[object, ...], Finding] = {}
        """By all but what is available: what two parts of a plan find is reported once."""
        self.run_limits: list[RunLimitFinding] = []

    def __bool__(self) -> bool:
        """Whether anything was found since the last time."""
        return bool(self.found or self.run_limits)

    def take(self) -> list[Finding]:
        """Hand out what was found since the last time."""
        found, self.found = self.found, {}
        return list(found.values())

    def take_run_limits(self) -> list[RunLimitFinding]:
        found, self.run_limits = self.run_limits, []
        return found

    def note_run_limits(self, moved: Iterable[AppView], apps: dict[int, AppView]) -> None:
        """Tell which applications a run limit blocks now, or blocks no more since the last plan.

        Only the end of the plan counts: in between, one may be woken and blocked again many times.
        """
        for app in moved:
            gate = app.blocked_by
            run_limit = GateKind.NONE if gate is None else gate.kind
            reason = "" if gate is None else _not_runnable(gate)
            # Not of an application that has left since, or of its former life.
            if run_limit is not app.run_limit and apps.get(app.app.serial) is app:
                app.run_limit = run_limit
                self.run_limits.append((app.app, run_limit, reason))

    def note_lane(self, lane: Lane) -> None:
        """Everything in the lane was refused."""
        # Only the first of a lane, unless each refused ask is reported: the others follow it.
        for ask in lane.asks() if self._reports else (lane.first,):
            self.note(ask, lane)

    def note_gang(self, app: AppView, reason: str) -> None:
        """The gang awaits admission: none of its placeholders is tried."""
        if self._reports:
            for ask in app.asks.values():
                if ask.ask.spec.placeholder:
                    self._report(ask.ask, WaitingState.SKIPPED, reason)

    def note_blocked(self, app: AppView, gate: Holder) -> None:
        """A maximum of running applications blocks this one: none of its asks is tried."""
        if self._reports:
            reason = _not_runnable(gate)
            for ask in app.app.asks.values():
                if ask.remaining:
                    self._report(ask, WaitingState.SKIPPED, reason)

    def note_held(self, subject: AskView | AppView, reason: str) -> None:
        """The policy of its leaf holds the ask, or all placeholders of the gang."""
        if self._reports and isinstance(subject, AskView):
            self._report(subject.ask, WaitingState.SKIPPED, reason)
        elif isinstance(subject, AppView):
            self.note_gang(subject, reason)

    def note_all_held(self, subjects: Iterable[AskView | AppView], reason: str) -> None:
        skipped = WaitingState.SKIPPED
        # Many may wait, and most were reported when they came.
        if self._reports:
            for subject in subjects:
                if not isinstance(subject, AskView) or subject.ask.reported is not skipped:
                    self.note_held(subject, reason)

    def note_stuck(self, ask: AskView) -> None:
        """A real ask may not run on the node of its placeholder, and no other node has room."""
        if self._reports:
            self._report(ask.ask, WaitingState.FAILED, NO_NODE)

    def _report(self, ask: Ask, state: WaitingState, reason: str) -> None:
        # Only a change: what was reported already is no news.
        if ask.reported is not state:
            self._find(Finding(ask, state, reason))

    def note(self, ask: AskView, lane: Lane) -> None:
        # The free size of the cluster is no quota: an ask that only this refuses is FAILED, as one
        # that no node holds, because a larger cluster would take it.
        gate = lane.refused_by
        if gate is not None and gate.is_quota:
            state, reason = WaitingState.SKIPPED, no_room(gate.name)
        else:
            state, reason = WaitingState.FAILED, NO_NODE
        shortage = GateKind.NONE if gate is None else gate.kind
        refusals = _refusals(ask) if gate is None else {}
        if shortage is not ask.ask.shortage or refusals:
            available = available_to(ask, shortage)
            self._find(Finding(ask.ask, state, reason, shortage, available, refusals))
        elif self._reports:
            self._report(ask.ask, state, reason)

    def _find(self, found: Finding) -> None:
        spec, refusals = found.ask.spec, tuple(found.refusals.items())
        name = (
            spec.application_id, spec.key, found.state, found.reason, found.shortage, refusals
        )  # fmt: skip
        self.found.setdefault(name, found)


def available_to(ask: AskView, shortage: GateKind) -> Resource:
    """Return the rest of each type that the ask wants and a gate of this kind bounds."""
    if shortage is GateKind.NONE:
        return {}
    # Of queues the levels of the path, of limits those of the user and group.
    levels, limits = ask.app.leaf.limits, ask.app.limits
    queue = shortage is GateKind.QUEUE
    gates: tuple[Gate, ...] = levels if queue else limits
    kinds = [kind for kind, _ in ask.shape.wanted]
    # The cluster has nothing of a type that no node has.
    nothing = dict.fromkeys(kinds, 0) if queue else {}
    return nothing | _least(kinds, (gate.room() for gate in gates))


def _least(kinds: list[str], rooms: Iterable[Resource]) -> Resource:
    least: Resource = {}
    for room in rooms:
        # A type that no gate bounds is left out: there is nothing to say about it.
        for kind in kinds:
            if kind in room:
                least[kind] = min(room[kind], least.get(kind, room[kind]))
    return least
