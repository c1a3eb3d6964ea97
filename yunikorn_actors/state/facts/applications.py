"""Facts about applications: their coming and going, their states and timers."""

from collections.abc import Iterable
from typing import ClassVar

from yunikorn_actors.state.applications import (
    COUNTS_AS_RUNNING,
    FINISHED,
    GANG_IS_OVER,
    LEAVES_USER_COUNT,
    TRANSITIONS,
    Application,
    ApplicationEvent,
    ApplicationSpec,
    ApplicationState,
    FinishedApplication,
    StateEntry,
    StateLog,
    Timer,
    UsageHistory,
    tracked,
)
from yunikorn_actors.state.facts.fact import (
    Base,
    Incident,
    IncidentKind,
)
from yunikorn_actors.state.gangs import dissolve_gang, forget_gang
from yunikorn_actors.state.gates import GateKind
from yunikorn_actors.state.ledger import attach, count_holding, detach, forget_holding, relink
from yunikorn_actors.state.partition import PartitionState

__all__ = [
    "ApplicationAdded",
    "ApplicationCrowded",
    "ApplicationFact",
    "ApplicationForgotten",
    "ApplicationLinked",
    "ApplicationRejected",
    "ApplicationRemoved",
    "ApplicationStateChanged",
    "ApplicationSummarized",
    "TimerArmed",
    "TimerCancelled",
]

REJECTED = TRANSITIONS[ApplicationState.NEW, ApplicationEvent.REJECT]


class ApplicationAdded(Base, frozen=True, kw_only=True, omit_defaults=True):
    spec: ApplicationSpec
    queue: str
    serial: int
    at_ns: int
    by_last_resort: bool = False
    """No placement rule matched, so `root.default` took it."""

    def placement(self) -> str:
        """Say which queue was asked for and which one it got; only where these differ."""
        asked = f"queue {self.spec.queue_name}" if self.spec.queue_name else "no queue"
        if self.by_last_resort:
            return (
                f"it asked for {asked} and is in {self.queue}, the last resort, because no "
                "placement rule matched"
            )
        return f"it asked for {asked}, and a placement rule put it into {self.queue}"

    @property
    def is_elsewhere(self) -> bool:
        """Whether its queue is not the one that it asked for."""
        # Names of queues ignore case.
        return self.spec.queue_name.lower() != self.queue

    def change(self, state: PartitionState) -> None:
        queue = state.queues[self.queue]
        # Opened with the application, so charging never has to make a book.
        usages = attach(state.users, self.spec.user, queue)
        app = Application(
            self.spec, serial=self.serial, queue=queue, usages=usages, now_ns=self.at_ns
        )
        state.applications[app.id] = app
        queue.applications[app.serial] = app.id

    def in_words(self) -> str:
        return f"{self.spec.application_id} of {self.spec.user} in {self.queue}"


class ApplicationRejected(Base, frozen=True, kw_only=True):
    is_record: ClassVar[bool] = True
    spec: ApplicationSpec
    serial: int
    reason: str
    at_ns: int

    def change(self, state: PartitionState) -> None:
        state.rejected[self.serial] = None
        state.remember(
            FinishedApplication(
                spec=self.spec,
                serial=self.serial,
                queue="",
                state=REJECTED,
                message=self.reason,
                state_log=StateLog([StateEntry(self.at_ns, REJECTED)]),
                submitted_ns=self.at_ns,
            ),
        )

    def in_words(self) -> str:
        return f"{self.spec.application_id}: {self.reason}"

    def incidents(self) -> Iterable[Incident]:
        yield Incident(IncidentKind.REFUSED, self.spec.application_id, self.reason)


class ApplicationStateChanged(Base, frozen=True, kw_only=True):
    application_id: str
    serial: int
    queue: str
    state: ApplicationState
    event: ApplicationEvent
    message: str
    at_ns: int
    group: str = ""
    """Whose count it leaves by ending, or is back in; empty where neither is so."""

    def change(self, state: PartitionState) -> None:
        app = state.applications.get(self.application_id)
        # Of a former life: only its history changes (H-24).
        if app is None or app.serial != self.serial:
            finished = state.finished[self.serial]
            finished.state = self.state
            finished.state_log.note(self.at_ns, self.state)
            return
        # Counted at every level of the tree (H-13).
        counted, counts = app.state in COUNTS_AS_RUNNING, self.state in COUNTS_AS_RUNNING
        if counted is not counts:
            for level in app.queue.lineage:
                level.running_apps += 1 if counts else -1
        # Set once: the execution limit and the summary count from the first run.
        if counts and not app.started_ns:
            app.started_ns = self.at_ns
        app.state = self.state
        if self.state in GANG_IS_OVER:
            dissolve_gang(state, app)
        app.state_log.note(self.at_ns, self.state)
        if self.state in LEAVES_USER_COUNT:
            # Left once and for all levels; states that come later find nothing.
            for usage in (*app.usages, *app.group_usages):
                usage.running.pop(app.serial, None)
        # Places by holding depend on the state.
        count_holding(app)
        if self.state in FINISHED:
            _detach(state, app)
            ended = FinishedApplication(
                spec=app.spec,
                serial=app.serial,
                queue=app.queue.path,
                state=self.state,
                message=self.message,
                state_log=app.state_log,
                submitted_ns=app.submitted_ns,
                started_ns=app.started_ns,
                history=app.history,
            )
            state.remember(ended)

    def in_words(self) -> str:
        return f"{self.application_id} -> {self.state.value}"


class ApplicationLinked(Base, frozen=True, kw_only=True):
    """From here on the application counts in a group; an empty one ends that."""

    application_id: str
    serial: int
    old_group: str
    """Empty too where it has left the count of that one already, by ending."""
    group: str
    at_ns: int

    def change(self, state: PartitionState) -> None:
        relink(state.groups, state.applications[self.application_id], self.group)


class ApplicationCrowded(Base, frozen=True, kw_only=True):
    """A run limit blocks it, because no more applications may run, or does not any more."""

    is_record: ClassVar[bool] = True
    application_id: str
    serial: int
    old_crowd: GateKind
    crowd: GateKind
    reason: str
    at_ns: int

    def change(self, state: PartitionState) -> None:
        state.applications[self.application_id].run_limit = self.crowd


class ApplicationRemoved(Base, frozen=True, kw_only=True):
    """Removed by its resource manager; its asks and allocations went before it."""

    application_id: str
    serial: int
    queue: str
    at_ns: int
    group: str = ""
    """Whose count it leaves with this."""

    def change(self, state: PartitionState) -> None:
        app = state.applications[self.application_id]
        if app.state in COUNTS_AS_RUNNING:
            for level in app.queue.lineage:
                level.running_apps -= 1
        _detach(state, app)


class ApplicationSummarized(Base, frozen=True, kw_only=True):
    """The summary of an application that has ended; none for one that never ran."""

    is_record: ClassVar[bool] = True
    rm_id: str
    application_id: str
    serial: int
    queue: str
    user: str
    state: ApplicationState
    """In which it ended; one that was removed, in which it was."""
    submitted_ns: int
    started_ns: int
    history: UsageHistory
    at_ns: int

    def line(self) -> str:
        """Sum the application up in one line, as operators know it from their logs."""
        return (
            f"YK_APP_SUMMARY: ApplicationID: {self.application_id}, "
            f"SubmissionTime: {self.submitted_ns}, StartTime: {self.started_ns}, "
            f"FinishTime: {self.at_ns}, User: {self.user}, Queue: {self.queue}, "
            f"State: {self.state.value}, RmID: {self.rm_id}, "
            f"ResourceUsage: {tracked(self.history.used)}, "
            f"PreemptedResource: {tracked(self.history.preempted)}, "
            f"PlaceholderResource: {tracked(self.history.placeholder)}"
        )

    def change(self, state: PartitionState) -> None:
        """A record for operators alone: what it sums up has been kept as it came about."""

    def in_words(self) -> str:
        return f"{self.application_id} used {tracked(self.history.used)}"


class ApplicationForgotten(Base, frozen=True, kw_only=True):
    """The history of a finished application expired."""

    is_record: ClassVar[bool] = True
    serial: int
    at_ns: int

    def change(self, state: PartitionState) -> None:
        state.forget(self.serial)

    def in_words(self) -> str:
        return f"serial {self.serial}"


class TimerArmed(Base, frozen=True, kw_only=True):
    is_record: ClassVar[bool] = True
    application_id: str
    kind: str
    generation: int
    due_ns: int

    def change(self, state: PartitionState) -> None:
        timer = Timer(generation=self.generation, due_ns=self.due_ns)
        state.applications[self.application_id].timers[self.kind] = timer


class TimerCancelled(Base, frozen=True, kw_only=True):
    is_record: ClassVar[bool] = True
    application_id: str
    kind: str

    def change(self, state: PartitionState) -> None:
        state.applications[self.application_id].timers.pop(self.kind, None)


ApplicationFact = (
    ApplicationAdded
    | ApplicationRejected
    | ApplicationStateChanged
    | ApplicationLinked
    | ApplicationCrowded
    | ApplicationRemoved
    | ApplicationSummarized
    | ApplicationForgotten
    | TimerArmed
    | TimerCancelled
)


def _detach(state: PartitionState, app: Application) -> None:
    """The application leaves the active ones, its queue, and the books of its user."""
    # In this order: what it held is forgotten while the links to its queue are still there.
    forget_holding(app)
    forget_gang(state, app)
    del state.applications[app.id]
    del app.queue.applications[app.serial]
    detach(state.users, app.spec.user, app)
    if app.group:
        detach(state.groups, app.group, app)
