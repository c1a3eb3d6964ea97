"""What is true of preemption: who has to go, for whom, and which quota is enforced when."""

from yunikorn_actors.state.beneficiary import Beneficiary
from yunikorn_actors.state.facts.fact import Base
from yunikorn_actors.values.ids import NO_PROPOSAL
from yunikorn_actors.values.resource import Resource


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


class VictimMarked(Base, frozen=True, kw_only=True):
    application_id: str
    queue: str
    key: str
    uuid: str
    node_id: str
    resource: Resource
    beneficiary: Beneficiary
    at_ns: int


class PreemptionFailed(Base, frozen=True, kw_only=True):
    """An ask can run on this node alone, and no work there may be preempted for it."""

    application_id: str
    key: str
    node_id: str
    at_ns: int
    proposal_id: int = NO_PROPOSAL


class QuotaPreemptionArmed(Base, frozen=True, kw_only=True):
    """The queue is above its maximum, and work of it is preempted from then on."""

    path: str
    due_ns: int
    at_ns: int


class QuotaPreemptionCleared(Base, frozen=True, kw_only=True):
    path: str
    at_ns: int
