"""Facts: what is true from now on, in one partition.

Context writes them down, numbers them and applies them; every replica applies the same facts in the
same order and is equal. A fact can be understood by itself, so that a reader without a replica (the
event publisher, a person) needs no other; sums are the business of `changes.apply`. Times
are given, never read.
"""

from collections.abc import Collection, Iterable

from yunikorn_actors.state.facts.allocations import (
    AllocationCommitted,
    AllocationRecovered,
    AllocationReleased,
    AllocationResized,
    AllocationsCommitted,
    AskAdded,
    AskRefused,
    AskRemoved,
    AskReplaced,
    AskReported,
    AsksAdded,
    AskShortageChanged,
    Charged,
    ConfirmationMissed,
    ReleaseRequested,
    ReservationDropped,
    ReservationMade,
)
from yunikorn_actors.state.facts.applications import (
    ApplicationAdded,
    ApplicationCrowded,
    ApplicationForgotten,
    ApplicationLinked,
    ApplicationRejected,
    ApplicationRemoved,
    ApplicationStateChanged,
    ApplicationSummarized,
    TimerArmed,
    TimerCancelled,
)
from yunikorn_actors.state.facts.cluster import (
    AdministratorActed,
    ClusterResized,
    ConfigurationRefused,
    ForeignAllocationPut,
    ForeignAllocationRemoved,
    LongWorkEnded,
    LongWorkStarted,
    MachineReplaced,
    NodeActionRefused,
    NodeAdded,
    NodeAttributesReplaced,
    NodeRemoved,
    NodeResized,
    NodeScheduleChanged,
    PartitionConfigured,
    PolicyFailed,
    QueueAdded,
    QueueReconfigured,
    QueueRemoved,
    QueueStateChanged,
    SchedulingHeld,
)
from yunikorn_actors.state.facts.fact import Base
from yunikorn_actors.state.facts.gangs import (
    AskParked,
    AskUnparked,
    GangAdmitted,
    GangLapsed,
    PlaceholderCancelled,
    SwapCompleted,
)
from yunikorn_actors.state.facts.preemption import (
    PreemptionDecided,
    PreemptionFailed,
    QuotaPreemptionArmed,
    QuotaPreemptionCleared,
    VictimMarked,
)

__all__ = [
    "AdministratorActed",
    "AllocationCommitted",
    "AllocationRecovered",
    "AllocationReleased",
    "AllocationResized",
    "AllocationsCommitted",
    "ApplicationAdded",
    "ApplicationCrowded",
    "ApplicationForgotten",
    "ApplicationLinked",
    "ApplicationRejected",
    "ApplicationRemoved",
    "ApplicationStateChanged",
    "ApplicationSummarized",
    "AskAdded",
    "AskParked",
    "AskRefused",
    "AskRemoved",
    "AskReplaced",
    "AskReported",
    "AskShortageChanged",
    "AskUnparked",
    "AsksAdded",
    "Base",
    "Charged",
    "ClusterResized",
    "ConfigurationRefused",
    "ConfirmationMissed",
    "Fact",
    "ForeignAllocationPut",
    "ForeignAllocationRemoved",
    "GangAdmitted",
    "GangLapsed",
    "LongWorkEnded",
    "LongWorkStarted",
    "MachineReplaced",
    "NodeActionRefused",
    "NodeAdded",
    "NodeAttributesReplaced",
    "NodeRemoved",
    "NodeResized",
    "NodeScheduleChanged",
    "PartitionConfigured",
    "PlaceholderCancelled",
    "PolicyFailed",
    "PreemptionDecided",
    "PreemptionFailed",
    "QueueAdded",
    "QueueReconfigured",
    "QueueRemoved",
    "QueueStateChanged",
    "QuotaPreemptionArmed",
    "QuotaPreemptionCleared",
    "ReleaseRequested",
    "ReservationDropped",
    "ReservationMade",
    "Run",
    "SchedulingHeld",
    "SwapCompleted",
    "TimerArmed",
    "TimerCancelled",
    "VictimMarked",
    "parts_of",
    "revisions_of",
]

Fact = (
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
    | NodeAdded
    | NodeResized
    | NodeAttributesReplaced
    | NodeScheduleChanged
    | NodeRemoved
    | ClusterResized
    | NodeActionRefused
    | ApplicationAdded
    | ApplicationRejected
    | ApplicationStateChanged
    | ApplicationLinked
    | ApplicationCrowded
    | ApplicationRemoved
    | ApplicationSummarized
    | ApplicationForgotten
    | TimerArmed
    | TimerCancelled
    | AskAdded
    | AsksAdded
    | AskReplaced
    | AskRemoved
    | AskReported
    | AskShortageChanged
    | AskRefused
    | AllocationCommitted
    | AllocationsCommitted
    | AllocationRecovered
    | GangAdmitted
    | GangLapsed
    | AskParked
    | AskUnparked
    | PlaceholderCancelled
    | SwapCompleted
    | ReservationMade
    | ReservationDropped
    | AllocationResized
    | ReleaseRequested
    | ConfirmationMissed
    | AllocationReleased
    | PreemptionFailed
    | PreemptionDecided
    | VictimMarked
    | QuotaPreemptionArmed
    | QuotaPreemptionCleared
    | ForeignAllocationPut
    | ForeignAllocationRemoved
)


Run = AllocationsCommitted | AsksAdded
"""Stands for as many facts as it has parts, and counts as that many revisions."""
_RUNS = (AllocationsCommitted, AsksAdded)


def parts_of(fact: Fact) -> Iterable[Fact]:
    """Say a run one by one; any other fact is its only part."""
    return fact.parts() if isinstance(fact, _RUNS) else (fact,)


def revisions_of(facts: Collection[Fact]) -> int:
    """Count the revisions that these facts make: one for each part."""
    count = len(facts)
    for fact in facts:
        if isinstance(fact, _RUNS):
            count += fact.count - 1
    return count
