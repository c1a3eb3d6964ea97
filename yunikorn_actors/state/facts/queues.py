"""Facts about a partition itself and about its queues."""

from collections.abc import Iterable
from typing import ClassVar

from yunikorn_actors.config import PartitionConfig
from yunikorn_actors.state.facts.fact import Base, Incident, IncidentKind, in_amounts
from yunikorn_actors.state.partition import LongWork, PartitionState
from yunikorn_actors.state.queues import Queue, QueueSpec, QueueState

__all__ = [
    "AdministratorActed",
    "ConfigurationRefused",
    "LongWorkEnded",
    "LongWorkStarted",
    "MachineReplaced",
    "PartitionConfigured",
    "PolicyFailed",
    "QueueAdded",
    "QueueFact",
    "QueueReconfigured",
    "QueueRemoved",
    "QueueStateChanged",
    "SchedulingHeld",
]


class PartitionConfigured(Base, frozen=True, kw_only=True):
    """The settings of the partition itself; its queues have facts of their own."""

    config: PartitionConfig

    def change(self, state: PartitionState) -> None:
        state.config = self.config

    def in_words(self) -> str:
        return self.config.name


class SchedulingHeld(Base, frozen=True, kw_only=True):
    """The partition is suspended, so nothing new is decided for it; or that ends."""

    held: bool
    behind: bool = False
    """Because its resource manager does not take its messages; else that one is away."""
    at_ns: int

    def change(self, state: PartitionState) -> None:
        state.suspended, state.is_backpressured = self.held, self.behind

    def in_words(self) -> str:
        if not self.held:
            return "open"
        return "suspended, backpressured" if self.behind else "suspended"

    def incidents(self) -> Iterable[Incident]:
        if self.held:
            why = "does not take its messages" if self.behind else "is away"
            what = f"its resource manager {why}, so nothing is decided"
            yield Incident(IncidentKind.LOST, "partition", what)


class LongWorkStarted(Base, frozen=True, kw_only=True):
    """Context handles something in slices: nothing is decided before it has ended."""

    work: LongWork
    at_ns: int

    def change(self, state: PartitionState) -> None:
        state.long_work = self.work

    def in_words(self) -> str:
        return self.work.text


class LongWorkEnded(Base, frozen=True, kw_only=True):
    at_ns: int

    def change(self, state: PartitionState) -> None:
        state.long_work = None

    def in_words(self) -> str:
        return ""


class MachineReplaced(Base, frozen=True, kw_only=True):
    """A machine that serves this partition has failed, and another has taken its place."""

    is_record: ClassVar[bool] = True
    machine: str
    failure: str
    at_ns: int
    lost_records: int = 0
    """Event records that can no longer be read."""
    missed_facts: int = 0
    """Of this partition, of which no record was made."""

    def change(self, state: PartitionState) -> None:
        """A record for operators alone: no state changes."""

    def in_words(self) -> str:
        return f"{self.machine}: {self.failure}"

    def incidents(self) -> Iterable[Incident]:
        what = f"it failed and was replaced: {self.failure}"
        yield Incident(IncidentKind.LOST, self.machine, what)


class ConfigurationRefused(Base, frozen=True, kw_only=True):
    """The administrator's configuration was refused, and the former one stays; for operators."""

    is_record: ClassVar[bool] = True
    reason: str
    at_ns: int

    def change(self, state: PartitionState) -> None:
        """A record for operators alone: no state changes."""

    def in_words(self) -> str:
        return self.reason

    def incidents(self) -> Iterable[Incident]:
        yield Incident(IncidentKind.REFUSED, "configuration", self.reason)


class PolicyFailed(Base, frozen=True, kw_only=True):
    """A policy has failed, and the built-in order decides in its place, or is slow; for operators.

    Without a queue it is that of the nodes.
    """

    is_record: ClassVar[bool] = True
    queue: str
    policy: str
    failure: str
    at_ns: int
    is_slow: bool = False
    """It decides all the same."""

    @property
    def text(self) -> str:
        whose = f"of queue {self.queue}" if self.queue else "of the nodes"
        if self.is_slow:
            return f"the policy {self.policy} {whose} is slow: {self.failure}"
        return f"the policy {self.policy} {whose} has failed and decides no more: {self.failure}"

    def change(self, state: PartitionState) -> None:
        """A record for operators alone: no state changes."""

    def in_words(self) -> str:
        return self.text

    def incidents(self) -> Iterable[Incident]:
        yield Incident(IncidentKind.LOST, self.policy, self.text)


class AdministratorActed(Base, frozen=True, kw_only=True):
    """An administrator has changed something by hand; what followed has facts of its own."""

    is_record: ClassVar[bool] = True
    what: str
    by: str
    """Who, as far as the edge knows."""
    node_id: str = ""
    """If it was a node."""
    at_ns: int

    def change(self, state: PartitionState) -> None:
        """A record for operators alone: no state changes."""

    def in_words(self) -> str:
        return f"{self.node_id} {self.what} by {self.by}".lstrip()


class QueueAdded(Base, frozen=True, kw_only=True):
    path: str
    spec: QueueSpec
    at_ns: int

    def change(self, state: PartitionState) -> None:
        # Parents first, so the parent is there.
        parent_path, _, name = self.path.rpartition(".")
        parent = state.queues[parent_path] if parent_path else None
        queue = Queue(name, self.spec, parent)
        state.queues[self.path] = queue
        if parent is not None:
            parent.children[name] = queue

    def in_words(self) -> str:
        spec = self.spec
        guaranteed = "" if spec.guaranteed is None else f" guaranteed {in_amounts(spec.guaranteed)}"
        limit = "" if spec.max is None else f" max {in_amounts(spec.max)}"
        return f"{self.path} {'leaf' if spec.leaf else 'parent'}{guaranteed}{limit}"


class QueueReconfigured(Base, frozen=True, kw_only=True):
    path: str
    old_spec: QueueSpec
    spec: QueueSpec
    at_ns: int

    def change(self, state: PartitionState) -> None:
        state.queues[self.path].configure(self.spec)


class QueueStateChanged(Base, frozen=True, kw_only=True):
    path: str
    state: QueueState
    at_ns: int

    def change(self, state: PartitionState) -> None:
        state.queues[self.path].state = self.state

    def in_words(self) -> str:
        return f"{self.path} -> {self.state.value}"


class QueueRemoved(Base, frozen=True, kw_only=True):
    path: str
    managed: bool
    at_ns: int

    def change(self, state: PartitionState) -> None:
        queue = state.queues.pop(self.path)
        # Its time goes with it, or a queue of the same name would inherit it.
        state.quotas.pop(self.path, None)
        if queue.parent is not None:
            del queue.parent.children[queue.name]


QueueFact = (
    PartitionConfigured
    | SchedulingHeld
    | LongWorkStarted
    | LongWorkEnded
    | MachineReplaced
    | ConfigurationRefused
    | PolicyFailed
    | AdministratorActed
    | QueueAdded
    | QueueReconfigured
    | QueueStateChanged
    | QueueRemoved
)
