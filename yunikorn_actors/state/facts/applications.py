"""What is true of applications: their coming and going, their states and timers."""

from yunikorn_actors.state.applications import (
    ApplicationEvent,
    ApplicationSpec,
    ApplicationState,
)
from yunikorn_actors.state.facts.fact import Base
from yunikorn_actors.state.gates import GateKind
from yunikorn_actors.state.resource_seconds import UsageHistory, tracked


class ApplicationAdded(Base, frozen=True, kw_only=True, omit_defaults=True):
    spec: ApplicationSpec
    queue: str
    serial: int
    at_ns: int
    by_last_resort: bool = False
    """No placement rule matched, so `root.default` took it."""

    def placement(self) -> str:
        """Say which queue was asked for and which one it got, where these differ."""
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
        return self.spec.queue_name.lower() != self.queue


class ApplicationRejected(Base, frozen=True, kw_only=True):
    spec: ApplicationSpec
    serial: int
    reason: str
    at_ns: int


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


class ApplicationLinked(Base, frozen=True, kw_only=True):
    """From here on the application counts in a group; an empty one ends that."""

    application_id: str
    serial: int
    old_group: str
    """Empty too where it has left the count of that one already, by ending."""
    group: str
    at_ns: int


class ApplicationCrowded(Base, frozen=True, kw_only=True):
    """A run limit blocks it, because no more applications may run, or does not any more."""

    application_id: str
    serial: int
    old_crowd: GateKind
    crowd: GateKind
    reason: str
    at_ns: int


class ApplicationRemoved(Base, frozen=True, kw_only=True):
    """Removed by its resource manager; its asks and allocations went before it."""

    application_id: str
    serial: int
    queue: str
    at_ns: int
    group: str = ""
    """Whose count it leaves with this."""


class ApplicationSummarized(Base, frozen=True, kw_only=True):
    """What one that has ended was and used; nothing of one that never ran."""

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


class ApplicationForgotten(Base, frozen=True, kw_only=True):
    """The history of a finished application expired."""

    serial: int
    at_ns: int


class TimerArmed(Base, frozen=True, kw_only=True):
    application_id: str
    kind: str
    generation: int
    due_ns: int


class TimerCancelled(Base, frozen=True, kw_only=True):
    application_id: str
    kind: str
