"""The predicate gate: proposals that wait for an answer of their resource manager.

A resource manager that has predicates is asked about every placement before it is proposed, unless
the ask has none, and about the victims that an ask needs. Until the answer comes the proposal is in
flight like any other: its room is taken, and the scheduler decides on other work. After a yes this
one proposal is sent, and Context checks it like any other (H-10). After a no its room is free
again, and the planner remembers that this ask may not have this node. The question has the id of
its proposal.

Preemption that enforces a quota makes room for no single ask, so nothing is asked there.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from yunikorn_actors.machines.life import Life
from yunikorn_actors.machines.machine import Effect, Send
from yunikorn_actors.messages import predicates as p
from yunikorn_actors.messages.base import RM_PROXY
from yunikorn_actors.planning.model.shape import Use
from yunikorn_actors.planning.planner import Planner
from yunikorn_actors.planning.preemption import required_node as required
from yunikorn_actors.planning.preemption.claimant import Claimant, candidates_on, victims_of
from yunikorn_actors.planning.preemption.throttle import Throttle
from yunikorn_actors.planning.preemption.victim_rules import ExpectedUsage
from yunikorn_actors.planning.preemption.victim_units import Units
from yunikorn_actors.planning.stages.denials import Denied
from yunikorn_actors.si import PredicatesArgs, PreemptionPredicatesArgs
from yunikorn_actors.state.allocations import Allocation, PreemptionRule
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.proposals import (
    Allocate,
    Placing,
    Preempt,
    Proposal,
    Replace,
    Reserve,
    VictimRef,
)

# What a resource manager is asked before work is preempted: the victims and further candidates.
#
# The victims that the preemptor picked are needed for the room. A resource manager may need more
# than room, so it is also offered the rest of the node, as far as the rules allow; it decides how
# far down this list to preempt.


class Offer(NamedTuple):
    keys: tuple[str, ...]
    """Keys on the node, the needed victims first; empty if no victim is there."""
    start: int
    """The position of the last needed victim."""
    further: tuple[VictimRef, ...]


def offer_of(state: PartitionState, proposal: Preempt, now_ns: int) -> Offer:
    picked = [
        state.applications[ref.application_id].allocations[ref.uuid] for ref in proposal.victims
    ]
    keys = [item.spec.key for item in picked if item.node_id == proposal.node_id]
    further = tuple(_further(state, proposal, picked, now_ns)) if keys else ()
    return Offer(
        keys=(*keys, *(item.spec.key for item in further)),
        start=len(keys) - 1,
        further=tuple(map(VictimRef.to, further)),
    )


def _further(
    state: PartitionState, proposal: Preempt, picked: list[Allocation], now_ns: int
) -> Iterator[Allocation]:
    """In the order in which Context will check them: after all that were picked."""
    beneficiary, node = proposal.beneficiary, state.nodes[proposal.node_id]
    app = state.applications[beneficiary.application_id]
    spec = app.asks[beneficiary.key].spec
    if beneficiary.rule is PreemptionRule.REQUIRED_NODE:
        yield from (item for item in required.candidates(state, node, spec) if item not in picked)
        return
    claimant = Claimant(state, ExpectedUsage(), Throttle(state, now_ns), app.queue, spec)
    units = Units(frozenset(allocation.uuid for allocation in picked))
    for victim in victims_of(state, picked):
        claimant.take(victim)
    for victim in candidates_on(state, node, claimant, units):
        if victim.allocations[0] not in picked and claimant.may_take(victim):
            claimant.take(victim)
            yield from victim.allocations


REFUSED = "its resource manager refuses the node, whatever is preempted there"


class _Asked(NamedTuple):
    """A proposal that waits for the answer to its question."""

    proposal: Placing | Preempt
    question: p.Question
    further: tuple[VictimRef, ...] = ()
    """More allocations that may be preempted, if the resource manager wants it."""


class PredicateGate:
    def __init__(self, planner: Planner, life: Life, reply_to: str) -> None:
        self._planner = planner
        self._life = life
        self._reply_to = reply_to
        self.denied: list[p.NodeDenied] = []
        """What the other schedulers of the partition have not been informed of yet."""
        self._has_predicates = life.capabilities.has_predicates
        self._has_preemption_predicates = life.capabilities.has_preemption_predicates
        # The planner has to know: victims that are asked about are decided one by one (G31).
        planner.preemptor.decisions.asks_about_places = self._has_predicates
        planner.preemptor.decisions.asks_about_victims = self._has_preemption_predicates
        self._open: dict[int, _Asked] = {}
        self.dropped = 0
        """How many answers came that match no question."""

    def canonical_state(self) -> dict[str, Any]:
        return {"open": sorted(self._open), "dropped": self.dropped}

    @property
    def is_waiting(self) -> bool:
        """Whether an answer is to come."""
        return bool(self._open)

    def put(self, proposals: list[Proposal], now_ns: int) -> tuple[list[Proposal], list[Effect]]:
        """Ask about the proposals that need it; return the others, which are sent at once."""
        ready: list[Proposal] = []
        questions: list[Effect] = []
        for proposal in proposals:
            asked = self._asked(proposal, now_ns)
            if asked is None:
                ready.append(proposal)
            else:
                self._open[proposal.proposal_id] = asked
                questions.append(Send(to=RM_PROXY, message=asked.question))
        return ready, questions

    def answered(self, message: p.Checked, now_ns: int) -> Proposal | None:
        """Return the proposal if the answer was yes; after a no tell the planner."""
        # Popped before anything else: each question has one answer.
        asked = self._open.pop(message.question_id, None)
        if asked is None:
            # A second answer, or one to a question of a planner that was replaced.
            self.dropped += 1
            return None
        reason = _objection(asked, message)
        if reason:
            use = _use_of(asked)
            self._planner.deny(asked.proposal, reason, now_ns, use)
            # The others plan for the same asks on replicas that know nothing of questions.
            if self._life.planners > 1:
                self.denied.append(self._message_of(Denied.of(asked.proposal, reason, use)))
            return None
        if isinstance(message, p.PreemptionPredicatesChecked):
            return self._with_further(asked, message.response.index)
        return asked.proposal

    def _message_of(self, denied: Denied) -> p.NodeDenied:
        return p.NodeDenied(
            partition=self._life.partition,
            epoch=self._life.epoch,
            scheduler=self._life.number,
            application_id=denied.application_id,
            key=denied.key,
            sequence=denied.sequence,
            node_id=denied.node_id,
            reason=denied.reason,
            use=denied.use.value,
        )

    def _with_further(self, asked: _Asked, index: int) -> Preempt:
        """Add the victims up to the index; the needed ones are in the proposal already."""
        proposal, question = asked.proposal, asked.question
        assert isinstance(proposal, Preempt)
        assert isinstance(question, p.CheckPreemptionPredicates)
        count = max(0, index - question.args.start_index)
        return self._planner.preemptor.decisions.extend(proposal, asked.further[:count])

    # -- what is asked

    def _asked(self, proposal: Proposal, now_ns: int) -> _Asked | None:
        """Return the proposal with its question; None if nothing needs to be asked."""
        if isinstance(proposal, Preempt):
            return self._asked_preemption(proposal, now_ns)
        if not self._has_predicates or not isinstance(proposal, Placing):
            return None
        ask = self._planner.model.ask_of(proposal.application_id, proposal.key)
        # The ask itself says so, by a tag: then the resource manager has nothing to add.
        if ask is not None and not ask.ask.spec.has_predicates:
            return None
        # To reserve the only node where an ask can run needs no consent.
        if isinstance(proposal, Reserve) and (ask is None or ask.shape.required_node):
            return None
        takes_room = _takes_room(proposal)
        return _Asked(proposal, self._question(proposal, proposal.key, allocate=takes_room))

    def _asked_preemption(self, proposal: Preempt, now_ns: int) -> _Asked | None:
        """Ask about the victims on the node, or whether the ask may have the node.

        Without victims on the node itself it has room, so the ask is to be placed there. With
        victims, and a resource manager that overrides `predicates` alone, it is only reserved now.
        """
        key = proposal.beneficiary.key
        # An empty decision without a guarantee reports that nothing can go.
        if not proposal.victims and proposal.beneficiary.rule is not PreemptionRule.GUARANTEE:
            return None
        # A quota: no node, and nobody to ask for.
        if not proposal.node_id:
            return None
        # More victims than needed are offered, in an order from which the resource manager may take
        # the first few.
        offer = offer_of(self._planner.state, proposal, now_ns)
        if offer.keys and self._has_preemption_predicates:
            question = self._preemption_question(proposal, offer)
            return _Asked(proposal, question, offer.further)
        ask = self._planner.model.ask_of(proposal.beneficiary.application_id, key)
        # Its preemption callback is not overridden: placing on the node is all that it can judge.
        if self._has_predicates and (ask is None or ask.ask.spec.has_predicates):
            return _Asked(proposal, self._question(proposal, key, allocate=not offer.keys))
        return None

    def _question(
        self, proposal: Placing | Preempt, key: str, *, allocate: bool
    ) -> p.CheckPredicates:
        return p.CheckPredicates(
            rm_id=self._life.rm_id,
            partition=self._life.partition,
            epoch=self._life.epoch,
            question_id=proposal.proposal_id,
            args=PredicatesArgs(allocation_key=key, node_id=proposal.node_id, allocate=allocate),
            reply_to=self._reply_to,
        )

    def _preemption_question(self, proposal: Preempt, offer: Offer) -> p.CheckPreemptionPredicates:
        return p.CheckPreemptionPredicates(
            rm_id=self._life.rm_id,
            partition=self._life.partition,
            epoch=self._life.epoch,
            question_id=proposal.proposal_id,
            args=PreemptionPredicatesArgs(
                allocation_key=proposal.beneficiary.key,
                node_id=proposal.node_id,
                preempt_allocation_keys=offer.keys,
                start_index=offer.start,
            ),
            reply_to=self._reply_to,
        )


def _takes_room(proposal: Placing) -> bool:
    """Whether it takes room now: a swap on one node takes over the room of its placeholder."""
    if isinstance(proposal, Replace):
        return proposal.crosses
    return isinstance(proposal, Allocate)


def _use_of(asked: _Asked) -> Use:
    question = asked.question
    if isinstance(question, p.CheckPredicates) and question.args.allocate:
        return Use.PLACING
    return Use.PREEMPTING if isinstance(asked.proposal, Preempt) else Use.KEEPING


def _objection(asked: _Asked, message: p.Checked) -> str:
    """Return why the answer is a no, empty after a yes; an index beyond the list is a no."""
    if isinstance(message, p.PredicatesChecked):
        return message.reason
    assert isinstance(asked.question, p.CheckPreemptionPredicates)
    offered = asked.question.args.preempt_allocation_keys
    response = message.response
    return "" if response.success and response.index < len(offered) else REFUSED
