"""Facts about preemption: which work has to go, for which ask, and which quota is enforced when."""

from collections.abc import Iterable
from typing import ClassVar

from yunikorn_actors.state.allocations import Beneficiary, PreemptionRule
from yunikorn_actors.state.facts.fact import Base, Incident, IncidentKind
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.preemption import note_due, secure_free_room
from yunikorn_actors.values.ids import NO_PROPOSAL
from yunikorn_actors.values.resource import Resource, charge

__all__ = [
    "PreemptionDecided",
    "PreemptionFact",
    "PreemptionFailed",
    "QuotaPreemptionArmed",
    "QuotaPreemptionCleared",
    "VictimMarked",
]


class PreemptionDecided(Base, frozen=True, kw_only=True):
    """All of these have to go; each is marked and asked back by facts of its own."""

    beneficiary: Beneficiary
    node_id: str
    """The node whose room the ask gets; empty for a quota."""
    victims: tuple[str, ...]
    """Their UUIDs."""
    max: Resource
    """The quota that is enforced; empty otherwise."""
    at_ns: int
    proposal_id: int = NO_PROPOSAL

    def change(self, state: PartitionState) -> None:
        """A quota is enforced once for each time it was armed."""
        whom = self.beneficiary
        if whom.rule is PreemptionRule.QUOTA:
            del state.quotas[whom.queue]
        elif whom.rule is PreemptionRule.REQUIRED_NODE:
            # An earmark secures it for the other rule.
            node, size = state.nodes[self.node_id], _size_of(state, whom)
            victims: Resource = {}
            # What its queue binds together goes on other nodes as well.
            for allocation in filter(None, map(node.allocations.get, self.victims)):
                charge(victims, allocation.resource)
            holder = (whom.application_id, whom.key)
            note_due(node, holder, size)
            # What is free besides the victims is secured now, or others would take it while they
            # end.
            secure_free_room(node, holder, size, victims)

    def in_words(self) -> str:
        where = f" on {self.node_id}" if self.node_id else ""
        return f"{len(self.victims)} victims for {self.beneficiary.in_words()}{where}"


class VictimMarked(Base, frozen=True, kw_only=True):
    application_id: str
    queue: str
    key: str
    uuid: str
    node_id: str
    resource: Resource
    beneficiary: Beneficiary
    at_ns: int

    def change(self, state: PartitionState) -> None:
        allocation = state.applications[self.application_id].allocations[self.uuid]
        allocation.beneficiary = self.beneficiary
        # The budget of the leaf counts from the mark, not from the end (G33).
        state.queues[self.queue].note_preempted(self.at_ns)

    def in_words(self) -> str:
        whom = self.beneficiary.in_words()
        return f"{self.application_id} {self.key} on {self.node_id} for {whom}"


class PreemptionFailed(Base, frozen=True, kw_only=True):
    """An ask can run on this node alone, and no work there may be preempted for it."""

    is_record: ClassVar[bool] = True
    application_id: str
    key: str
    node_id: str
    at_ns: int
    proposal_id: int = NO_PROPOSAL

    def change(self, state: PartitionState) -> None:
        """A record for operators alone: no state changes."""

    def in_words(self) -> str:
        return f"{self.application_id} {self.key} on {self.node_id}"

    def incidents(self) -> Iterable[Incident]:
        what = "no work may be preempted for it on the nodes that it may have"
        yield Incident(IncidentKind.REFUSED, self.application_id, what, self.key)


class QuotaPreemptionArmed(Base, frozen=True, kw_only=True):
    """The queue is above its maximum, and work of it is preempted from then on."""

    path: str
    due_ns: int
    at_ns: int

    def change(self, state: PartitionState) -> None:
        state.quotas[self.path] = self.due_ns


class QuotaPreemptionCleared(Base, frozen=True, kw_only=True):
    path: str
    at_ns: int

    def change(self, state: PartitionState) -> None:
        del state.quotas[self.path]


PreemptionFact = (
    PreemptionDecided
    | VictimMarked
    | PreemptionFailed
    | QuotaPreemptionArmed
    | QuotaPreemptionCleared
)


def _size_of(state: PartitionState, whom: Beneficiary) -> Resource:
    return state.applications[whom.application_id].asks[whom.key].spec.resource
