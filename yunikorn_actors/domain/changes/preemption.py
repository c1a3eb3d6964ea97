"""How facts about preemption change a partition."""

from yunikorn_actors.domain import facts as f
from yunikorn_actors.domain.beneficiary import PreemptionRule
from yunikorn_actors.domain.partition import PartitionState


def preemption_decided(state: PartitionState, fact: f.PreemptionDecided) -> None:
    """A quota is enforced once for each time it was armed."""
    if fact.beneficiary.rule is PreemptionRule.QUOTA:
        del state.quotas[fact.beneficiary.queue]


def victim_marked(state: PartitionState, fact: f.VictimMarked) -> None:
    allocation = state.applications[fact.application_id].allocations[fact.uuid]
    allocation.beneficiary = fact.beneficiary


def preemption_failed(state: PartitionState, fact: f.PreemptionFailed) -> None:
    """A record for operators alone: no state changes."""


def quota_preemption_armed(state: PartitionState, fact: f.QuotaPreemptionArmed) -> None:
    state.quotas[fact.path] = fact.due_ns


def quota_preemption_cleared(state: PartitionState, fact: f.QuotaPreemptionCleared) -> None:
    del state.quotas[fact.path]
