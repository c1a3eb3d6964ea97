"""Notes beside a replica, of what nothing is decided by: peaks, logs, times of requests.

They are taken from the same facts that change the replica, some right before and some right after.
A note goes with what it is about.
"""

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct, field

from yunikorn_actors.planning.reasons import CLUSTER, no_room
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import WaitingState
from yunikorn_actors.state.applications import FINISHED, Application, TaskGroup
from yunikorn_actors.state.gates import GateKind, has_room
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.values.quantity import readable
from yunikorn_actors.values.resource import Resource

LOG_MAX: Final = 20
"""So many different refusals of one ask are kept; the one that is oldest goes."""


class LogLine(Struct):
    """One line of the log of an ask."""

    message: str
    count: int
    last_ns: int


class AskNote(Struct):
    log: dict[str, LogLine] = field(default_factory=dict)
    has_preempted: bool = False
    wants_node: bool = False
    """It was reported as one that no node holds: the hint for a cluster that can grow."""

    def say(self, message: str, at_ns: int) -> None:
        # Moved to the end, so that the one that was reported last is the last to go.
        known = self.log.pop(message, None)
        count = 1 if known is None else known.count + 1
        self.log[message] = LogLine(message, count, at_ns)
        if len(self.log) > LOG_MAX:
            del self.log[next(iter(self.log))]


class AppNote(Struct):
    """Of one life of an application."""

    peak: Resource = field(default_factory=dict)
    """The most of each kind that its allocations, or its placeholders, had together."""
    smallest: dict[str, Resource] = field(default_factory=dict)
    """By task group, the size of one placeholder."""
    asks: dict[str, AskNote] = field(default_factory=dict)
    task_groups: dict[str, TaskGroup] = field(default_factory=dict)
    """As they were when it ended."""

    def ask(self, key: str) -> AskNote:
        note = self.asks.get(key)
        if note is None:
            note = self.asks[key] = AskNote()
        return note

    def rise(self, app: Application) -> None:
        peak = self.peak
        # Placeholders and real ones apart: at a swap both would count for a moment.
        for book in (app.allocated, app.placeholders):
            for kind, quantity in book.items():
                if quantity > peak.get(kind, 0):
                    peak[kind] = quantity


class Notes:
    def __init__(self, state: PartitionState) -> None:
        self._state = state
        self.apps: dict[int, AppNote] = {}
        """By serial."""
        self.requested: dict[str, int] = {}
        """UUID of each allocation that took a placeholder over: when that one was asked for."""

    def of(self, serial: int) -> AppNote:
        note = self.apps.get(serial)
        if note is None:
            note = self.apps[serial] = AppNote()
        return note

    def before(self, fact: f.Fact) -> None:
        """Note what is gone once the fact is applied."""
        note = _BEFORE.get(type(fact))
        if note is not None:
            note(self, fact)

    def after(self, fact: f.Fact) -> None:
        note = _AFTER.get(type(fact))
        if note is not None:
            note(self, fact)

    def _app(self, id_: str) -> AppNote:
        return self.of(self._state.applications[id_].serial)

    # -- before

    def _before_swap(self, fact: f.SwapCompleted) -> None:
        # The placeholder is gone after the fact, and its ask was the request.
        app = self._state.applications[fact.application_id]
        placeholder = app.allocations[fact.placeholder]
        self.requested[fact.uuid] = app.asks[placeholder.spec.key].created_ns

    def _before_state(self, fact: f.ApplicationStateChanged) -> None:
        app = self._state.applications.get(fact.application_id)
        if app is not None and app.serial == fact.serial and fact.state in FINISHED:
            note = self.of(fact.serial)
            note.task_groups, note.asks = app.task_groups, {}

    def _before_removal(self, fact: f.ApplicationRemoved) -> None:
        self.apps.pop(fact.serial, None)

    def _before_forgetting(self, fact: f.ApplicationForgotten) -> None:
        self.apps.pop(fact.serial, None)

    def _before_release(self, fact: f.AllocationReleased) -> None:
        self.requested.pop(fact.uuid, None)

    # -- after

    def _grown(self, fact: f.AllocationCommitted | f.AllocationResized | f.SwapCompleted) -> None:
        app = self._state.applications[fact.application_id]
        note = self.of(app.serial)
        note.rise(app)
        self._settle(app, note, fact.key)

    def _all_grown(self, fact: f.AllocationsCommitted) -> None:
        apps = self._state.applications
        grown = [apps[charged.application_id] for charged in fact.charged]
        for app in grown:
            self.of(app.serial).rise(app)
        # A run may have several members of one application.
        for member, key in zip(fact.members, fact.keys, strict=True):
            app = grown[member]
            note = self.apps[app.serial]
            if note.asks:
                self._settle(app, note, key)

    def _recovered(self, fact: f.AllocationRecovered) -> None:
        app = self._state.applications[fact.spec.application_id]
        self.of(app.serial).rise(app)

    def _settle(self, app: Application, note: AppNote, key: str) -> None:
        """Forget what was noted of an ask of which nothing waits any more."""
        ask = app.asks.get(key)
        if ask is None or not ask.is_open:
            note.asks.pop(key, None)

    def _ask_gone(self, fact: f.AskRemoved) -> None:
        app = self._state.applications.get(fact.application_id)
        if app is not None and app.serial in self.apps:
            self._settle(app, self.apps[app.serial], fact.key)

    def _asked(self, fact: f.AskAdded | f.AskReplaced) -> None:
        self._note_smallest(fact.spec.application_id, (fact.spec,))

    def _all_asked(self, fact: f.AsksAdded) -> None:
        # A run has one size, and its placeholders stand side by side.
        self._note_smallest(fact.application_id, fact.specs)

    def _note_smallest(self, id_: str, specs: tuple[Any, ...]) -> None:
        for spec in specs:
            if spec.placeholder:
                # The first of a group counts; all of a group have one size.
                self._app(id_).smallest.setdefault(spec.task_group, spec.resource)

    def _reported(self, fact: f.AskReported) -> None:
        note = self._app(fact.application_id).ask(fact.key)
        if fact.state is WaitingState.FAILED:
            note.wants_node = True
        if not fact.of_shortage and fact.reason:
            note.say(fact.reason, fact.at_ns)

    def _short(self, fact: f.AskShortageChanged) -> None:
        if fact.shortage is not GateKind.NONE:
            room = f"(requested {readable(fact.resource)}, available {readable(fact.available)})"
            self._app(fact.application_id).ask(fact.key).say(
                f"{no_room(self._place(fact))} {room}", fact.at_ns
            )

    def _place(self, fact: f.AskShortageChanged) -> str:
        """Name what has no room: the fact names the leaf, and a queue above it may be meant."""
        if fact.shortage is not GateKind.QUEUE:
            return "its quota"
        wanted = fact.resource.items()
        for level in self._state.queues[fact.queue].lineage:
            is_queue = level.parent is not None
            sizes = level.spec.max if is_queue else self._state.capacity
            if not has_room(sizes, level.allocated, wanted, not is_queue):
                return f"queue {level.path}" if is_queue else CLUSTER
        # The amounts have changed since: then the leaf is named.
        return f"queue {fact.queue}"

    def _refused(self, fact: f.AskRefused) -> None:
        note = self._app(fact.application_id).ask(fact.key)
        for reason in sorted(fact.refusals):
            note.say(reason, fact.at_ns)

    def _preempted(self, fact: f.PreemptionDecided) -> None:
        for_whom = fact.beneficiary
        if for_whom.key and for_whom.application_id in self._state.applications:
            self._app(for_whom.application_id).ask(for_whom.key).has_preempted = True


_BEFORE: Final[dict[type, Callable[[Notes, Any], None]]] = {
    f.SwapCompleted: Notes._before_swap,
    f.ApplicationStateChanged: Notes._before_state,
    f.ApplicationRemoved: Notes._before_removal,
    f.ApplicationForgotten: Notes._before_forgetting,
    f.AllocationReleased: Notes._before_release,
}
_AFTER: Final[dict[type, Callable[[Notes, Any], None]]] = {
    f.AllocationCommitted: Notes._grown,
    f.AllocationsCommitted: Notes._all_grown,
    f.AllocationRecovered: Notes._recovered,
    f.AllocationResized: Notes._grown,
    f.SwapCompleted: Notes._grown,
    f.AskAdded: Notes._asked,
    f.AsksAdded: Notes._all_asked,
    f.AskReplaced: Notes._asked,
    f.AskRemoved: Notes._ask_gone,
    f.AskReported: Notes._reported,
    f.AskShortageChanged: Notes._short,
    f.AskRefused: Notes._refused,
    f.PreemptionDecided: Notes._preempted,
}
