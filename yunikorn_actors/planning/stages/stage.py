"""The stage: what the parts of the planner have in common, and who owns each proposal."""

from typing import Protocol

from yunikorn_actors.planning.model.views import AppView, AskView
from yunikorn_actors.planning.unschedulable import Findings
from yunikorn_actors.state import facts as f
from yunikorn_actors.values.ids import first_proposal_id

ResolvingOne = (
    f.AllocationCommitted
    | f.AskParked
    | f.GangAdmitted
    | f.PreemptionDecided
    | f.PreemptionFailed
    | f.ReleaseRequested
    | f.ReservationDropped
    | f.ReservationMade
)
"""Facts that may carry the id of the proposal that led to them."""
Resolving = ResolvingOne | f.AllocationsCommitted
Subject = AskView | AppView | str
"""What a proposal is for: an ask, a gang, or the queue of this path."""


class Owner(Protocol):
    """A part that makes proposals and learns the outcome of each."""

    def resolve(self, proposal_id: int, fact: Resolving) -> bool:
        """Context committed it. Say whether just as it was decided: then it is charged already."""

    def reject(self, proposal_id: int) -> None:
        """Context or the resource manager refused: what the proposal took is free again."""

    def subject_of(self, proposal_id: int) -> Subject:
        """Return what the proposal is for."""


class OpenProposals:
    """What the parts hand in: findings, and who made which proposal until Context has answered."""

    def __init__(self, scheduler_number: int, findings: Findings) -> None:
        self.findings = findings
        self._last_id = first_proposal_id(scheduler_number)
        self.owner: dict[int, Owner] = {}

    def next_id(self, owner: Owner) -> int:
        self._last_id += 1
        self.owner[self._last_id] = owner
        return self._last_id

    def resolve(self, proposal_id: int, fact: Resolving) -> bool:
        """Say whether it was committed as decided; False too for a decision of another planner."""
        owner = self.owner.pop(proposal_id, None)
        return owner is not None and owner.resolve(proposal_id, fact)

    def reject(self, proposal_id: int) -> None:
        self.owner.pop(proposal_id).reject(proposal_id)
