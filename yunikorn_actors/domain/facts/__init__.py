"""Facts: what is true from now on, in one partition.

Context writes them down, numbers them and applies them; every replica applies the same facts in the
same order and is equal. A fact can be understood by itself, so that a reader without a replica (the
event publisher, a person) needs no other; sums are the business of `changes.apply`. Times
are given, never read.
"""

from yunikorn_actors.domain.facts.applications import (
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
from yunikorn_actors.domain.facts.base import Base
from yunikorn_actors.domain.facts.cluster import (
    ClusterResized,
    ForeignAllocationPut,
    ForeignAllocationRemoved,
    MachineReplaced,
    NodeActionRefused,
    NodeAdded,
    NodeAttributesReplaced,
    NodeRemoved,
    NodeResized,
    NodeScheduleChanged,
    PartitionConfigured,
    QueueAdded,
    QueueReconfigured,
    QueueRemoved,
    QueueStateChanged,
    SchedulingHeld,
)
from yunikorn_actors.domain.facts.gangs import (
    AskParked,
    AskUnparked,
    GangAdmitted,
    GangLapsed,
    PlaceholderCancelled,
    SwapCompleted,
)
from yunikorn_actors.domain.facts.preemption import (
    PreemptionDecided,
    PreemptionFailed,
    QuotaPreemptionArmed,
    QuotaPreemptionCleared,
    VictimMarked,
)
from yunikorn_actors.domain.facts.work import (
    AllocationCommitted,
    AllocationRecovered,
    AllocationReleased,
    AllocationResized,
    AskAdded,
    AskRefused,
    AskRemoved,
    AskReplaced,
    AskReported,
    AskShortageChanged,
    ConfirmationMissed,
    ReleaseRequested,
    ReservationDropped,
    ReservationMade,
)

__all__ = [
    "AllocationCommitted",
    "AllocationRecovered",
    "AllocationReleased",
    "AllocationResized",
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
    "Base",
    "ClusterResized",
    "ConfirmationMissed",
    "Fact",
    "ForeignAllocationPut",
    "ForeignAllocationRemoved",
    "GangAdmitted",
    "GangLapsed",
    "MachineReplaced",
    "NodeActionRefused",
    "NodeAdded",
    "NodeAttributesReplaced",
    "NodeRemoved",
    "NodeResized",
    "NodeScheduleChanged",
    "PartitionConfigured",
    "PlaceholderCancelled",
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
    "SchedulingHeld",
    "SwapCompleted",
    "TimerArmed",
    "TimerCancelled",
    "VictimMarked",
]

Fact = (
    PartitionConfigured
    | SchedulingHeld
    | MachineReplaced
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
    | AskReplaced
    | AskRemoved
    | AskReported
    | AskShortageChanged
    | AskRefused
    | AllocationCommitted
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
