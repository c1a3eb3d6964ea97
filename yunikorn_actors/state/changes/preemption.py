"""How facts about preemption change a partition."""

from yunikorn_actors.state import facts as f
from yunikorn_actors.state.beneficiary import Beneficiary, PreemptionRule
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.preemption import note_due, secure_free_room
from yunikorn_actors.values.resource import Resource, charge


def preemption_decided(state: PartitionState, fact: f.PreemptionDecided) -> None:
    """A quota is enforced once for each time it was armed."""
    whom = fact.beneficiary
    if whom.rule is PreemptionRule.QUOTA:
        del state.quotas[whom.queue]
    elif whom.rule is PreemptionRule.REQUIRED_NODE:
        # An earmark secures it for the other rule.
        node, size = state.nodes[fact.node_id], _size_of(state, whom)
        victims: Resource = {}
        # What its queue binds together goes on other nodes as well.
        for allocation in filter(None, map(node.allocations.get, fact.victims)):
            charge(victims, allocation.resource)
        holder = (whom.application_id, whom.key)
        note_due(node, holder, size)
        secure_free_room(node, holder, size, victims)


def _size_of(state: PartitionState, whom: Beneficiary) -> Resource:
    return state.applications[whom.application_id].asks[whom.key].spec.resource


def victim_marked(state: PartitionState, fact: f.VictimMarked) -> None:
    allocation = state.applications[fact.application_id].allocations[fact.uuid]
    allocation.beneficiary = fact.beneficiary
    state.queues[fact.queue].note_preempted(fact.at_ns)


def preemption_failed(state: PartitionState, fact: f.PreemptionFailed) -> None:
    """A record for operators alone: no state changes."""


def quota_preemption_armed(state: PartitionState, fact: f.QuotaPreemptionArmed) -> None:
    state.quotas[fact.path] = fact.due_ns


def quota_preemption_cleared(state: PartitionState, fact: f.QuotaPreemptionCleared) -> None:
    del state.quotas[fact.path]
