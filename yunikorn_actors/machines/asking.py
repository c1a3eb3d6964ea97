"""Proposals that wait for their resource manager's word.

A resource manager that has predicates is asked about every placement before it is proposed. While
the question is out the proposal is in flight like any other: what it would take is taken, and the
scheduler goes on with other work. A yes sends this one proposal on its way; a no gives back what it
held, and the planner remembers that this ask may not go to this node. The question has the id of
its proposal.
"""

from typing import Any

from yunikorn_actors.domain.proposals import Allocate, Placing, Proposal, Replace, Reserve
from yunikorn_actors.machines.machine import Effect, Send
from yunikorn_actors.messages import predicates as p
from yunikorn_actors.messages.base import RM_PROXY
from yunikorn_actors.planning.planner import Planner
from yunikorn_actors.si import PredicatesArgs


class Asking:
    def __init__(
        self, planner: Planner, *, rm_id: str, partition: str, epoch: int, reply_to: str
    ) -> None:
        self._planner = planner
        self._rm_id = rm_id
        self._partition = partition
        self._epoch = epoch
        self._reply_to = reply_to
        self._open: dict[int, Placing] = {}
        self.dropped = 0
        """Answers to questions that nobody asked."""

    def canonical_state(self) -> dict[str, Any]:
        return {"open": sorted(self._open), "dropped": self.dropped}

    def put(self, proposals: list[Proposal]) -> tuple[list[Proposal], list[Effect]]:
        """Ask about those that need it; return the others, which may go at once."""
        ready: list[Proposal] = []
        questions: list[Effect] = []
        for proposal in proposals:
            if isinstance(proposal, Placing) and self._is_asked_about(proposal):
                self._open[proposal.proposal_id] = proposal
                questions.append(Send(to=RM_PROXY, message=self._question(proposal)))
            else:
                ready.append(proposal)
        return ready, questions

    def answered(self, message: p.PredicatesChecked, now_ns: int) -> Placing | None:
        """Return the proposal if the answer was yes; after a no the planner knows better."""
        proposal = self._open.pop(message.question_id, None)
        if proposal is None:
            self.dropped += 1
        elif message.reason:
            allocate = _is_allocation(proposal)
            self._planner.deny(proposal, message.reason, now_ns, allocate=allocate)
        else:
            return proposal
        return None

    def _is_asked_about(self, proposal: Placing) -> bool:
        """Keeping its one node for an ask that can run nowhere else needs nobody's consent."""
        if not isinstance(proposal, Reserve):
            return True
        ask = self._planner.ask_of(proposal.application_id, proposal.key)
        return ask is not None and not ask.shape.required_node

    def _question(self, proposal: Placing) -> p.CheckPredicates:
        return p.CheckPredicates(
            rm_id=self._rm_id,
            partition=self._partition,
            epoch=self._epoch,
            question_id=proposal.proposal_id,
            args=PredicatesArgs(
                allocation_key=proposal.key,
                node_id=proposal.node_id,
                allocate=_is_allocation(proposal),
            ),
            reply_to=self._reply_to,
        )


def _is_allocation(proposal: Placing) -> bool:
    """Whether it takes room now: a swap in place takes over what its placeholder holds."""
    if isinstance(proposal, Replace):
        return proposal.crosses
    return isinstance(proposal, Allocate)
