"""The other schedulers of a partition: what is theirs to propose, and what they are expected to.

All schedulers of a partition plan all of its work in the same order, on replicas of the same facts.
So they come to the same decisions, and one of them proposes each: the one whose share the
application is in. To the others that decision is *expected*. It is in flight with them like a
proposal of their own, so what comes later in the order gets the room that is left, and nothing else
gets ahead of it; but it is not sent.

An expectation is worth what the facts are that it was made on. A fact that settles it just as
expected changes nothing; after any other fact all expectations are given up, and the next plan
makes them anew. A scheduler whose share is not served for too long counts as absent: the next one
in the circle has its share, until something of it is decided elsewhere.
"""

from collections.abc import Callable, Container
from typing import Any, Final

from yunikorn_actors.domain import facts as f
from yunikorn_actors.domain.beneficiary import PreemptionRule
from yunikorn_actors.domain.partition import PartitionState
from yunikorn_actors.domain.proposals import (
    AdmitGang,
    Allocate,
    CancelPlaceholder,
    Preempt,
    Proposal,
    Replace,
    Reserve,
    Unreserve,
)
from yunikorn_actors.planning.parts.part import NEVER_NS, ResolvingOne

PATIENCE_NS: Final = 2_000_000_000
"""A scheduler that has not decided within this time what was expected of it is absent."""
IN_WANT: Final = frozenset({Reserve, Unreserve, Preempt, f.PreemptionFailed})
"""What is decided because room is wanting."""
Subject = tuple[Any, ...]
"""What a proposal is about, and the fact that commits it: equal if the decision is the same."""


class Peers:
    def __init__(
        self, state: PartitionState, place: int, count: int, *, asks_first: bool = False
    ) -> None:
        """`place` is that of this scheduler among so many.

        If the resource manager is asked before something is proposed, all of an application is in
        one share: so each ask has one scheduler that asks for it, and knows what was refused.
        """
        self._state = state
        self._of_first: Container[object] = () if asks_first else IN_WANT
        self._place = place
        self._count = count
        self.own: dict[int, Proposal] = {}
        """Proposals of this scheduler that are in flight."""
        self.expected: dict[int, tuple[Subject, int]] = {}
        """Decisions in flight that others are to propose; with the place of who is to."""
        self.held: dict[int, Proposal] = {}
        """Proposals in flight that are sent when what was expected before them has come."""
        self._by_subject: dict[Subject, list[int]] = {}
        self._since_ns: dict[int, int] = {}
        """Since when something has been expected of each place."""
        self._absent: dict[int, None] = {}
        self._given_up_ns = 0
        """When expectations were last given up."""

    # -- whose it is

    def _place_of(self, subject: Subject) -> int:
        """Return the place whose share a decision is in.

        An application with all its asks is in one share, so what rests on each other (the admission
        of a gang and its placeholders) is proposed in order. Who lacks room shows only when all
        others have theirs: nodes are kept, and victims chosen, by the first alone.
        """
        app = None if subject[0] in self._of_first else self._state.applications.get(subject[1])
        return 0 if app is None else app.serial % self._count

    def is_mine(self, application_id: str) -> bool:
        """Whether this scheduler places the asks of the application."""
        return self._decider((Allocate, application_id)) == self._place

    def _decider(self, subject: Subject) -> int:
        place = self._place_of(subject)
        while place != self._place and place in self._absent:
            place = (place + 1) % self._count
        return place

    # -- decisions of a plan

    def keep_expected(self, proposals: list[Proposal], now_ns: int) -> list[Proposal]:
        """Return what this scheduler is to propose; what others are to is expected of them."""
        if not self.expected and now_ns - self._given_up_ns > PATIENCE_NS:
            self._since_ns.clear()
        own: list[Proposal] = []
        for proposal in proposals:
            subject = subject_of(proposal)
            place = self._decider(subject)
            if place == self._place and self.expected and subject[0] in IN_WANT:
                # A node that is closed, or a victim that goes, for want of room which the others
                # have not taken yet: were they to come behind it, they would find another order.
                self.held[proposal.proposal_id] = proposal
            elif place == self._place:
                self.own[proposal.proposal_id] = proposal
                own.append(proposal)
            else:
                self.expected[proposal.proposal_id] = subject, place
                self._by_subject.setdefault(subject, []).append(proposal.proposal_id)
                self._since_ns.setdefault(place, now_ns)
        return own

    def take(self, fact: ResolvingOne) -> int | None:
        """Another scheduler has decided this: return the id under which it was expected, if so."""
        subject = subject_of_fact(fact)
        place = self._place_of(subject)
        self._since_ns.pop(place, None)
        self._absent.pop(place, None)
        ids = self._by_subject.get(subject)
        return self._forget(ids[0]) if ids else None

    def give_up(self, now_ns: int) -> list[int]:
        """Expect nothing more; return what was expected, the latest first."""
        self._given_up_ns = now_ns
        ids = sorted((*self.expected, *self.held), reverse=True)
        self.expected.clear()
        self.held.clear()
        self._by_subject.clear()
        return ids

    def release(self) -> list[Proposal]:
        """Return what was held and has nothing before it any more that is expected."""
        first = next(iter(self.expected), None)
        released = [it for id_, it in self.held.items() if first is None or id_ < first]
        for proposal in released:
            self.own[proposal.proposal_id] = self.held.pop(proposal.proposal_id)
        return released

    def _forget(self, proposal_id: int) -> int:
        subject, _ = self.expected.pop(proposal_id)
        ids = self._by_subject[subject]
        ids.remove(proposal_id)
        if not ids:
            del self._by_subject[subject]
        return proposal_id

    # -- those that do not decide

    @property
    def due_ns(self) -> int:
        """When the first of those that something is expected of is to count as absent."""
        awaited = (self._since_ns.get(place, NEVER_NS) for _, place in self.expected.values())
        first_ns = min(awaited, default=NEVER_NS)
        return first_ns if first_ns == NEVER_NS else first_ns + PATIENCE_NS

    def note_absent(self, now_ns: int) -> bool:
        """Say whether somebody has become absent: then its share is to be planned for anew."""
        awaited = {place: None for _, place in self.expected.values()}
        late = [
            place for place in awaited if self._since_ns.get(place, now_ns) + PATIENCE_NS <= now_ns
        ]
        for place in late:
            self._absent[place] = None
            del self._since_ns[place]
        return bool(late)


# -- what a decision is about


def subject_of(proposal: Proposal) -> Subject:
    return _OF_PROPOSALS[type(proposal)](proposal)


def subject_of_fact(fact: ResolvingOne) -> Subject:
    return _OF_FACTS[type(fact)](fact)


def _of_preempt(it: Preempt) -> Subject:
    whom = it.beneficiary
    if whom.rule is PreemptionRule.REQUIRED_NODE and not it.victims:
        return f.PreemptionFailed, whom.application_id, whom.key, it.node_id
    return Preempt, whom.application_id, whom, it.node_id, tuple(ref.uuid for ref in it.victims)


_OF_PROPOSALS: Final[dict[type, Callable[[Any], Subject]]] = {
    Allocate: lambda it: (Allocate, it.application_id, it.key, it.node_id),
    Reserve: lambda it: (Reserve, it.application_id, it.key, it.node_id),
    Unreserve: lambda it: (Unreserve, it.application_id, it.key, it.node_id),
    AdmitGang: lambda it: (AdmitGang, it.application_id),
    Replace: lambda it: (Replace, it.application_id, it.key, it.placeholder, it.node_id),
    CancelPlaceholder: lambda it: (CancelPlaceholder, it.application_id, it.placeholder),
    Preempt: _of_preempt,
}
_OF_FACTS: Final[dict[type, Callable[[Any], Subject]]] = {
    f.AllocationCommitted: lambda it: (Allocate, it.application_id, it.key, it.node_id),
    f.ReservationMade: lambda it: (Reserve, it.application_id, it.key, it.node_id),
    f.ReservationDropped: lambda it: (Unreserve, it.application_id, it.key, it.node_id),
    f.GangAdmitted: lambda it: (AdmitGang, it.application_id),
    f.AskParked: lambda it: (Replace, it.application_id, it.key, it.placeholder, it.node_id),
    f.ReleaseRequested: lambda it: (CancelPlaceholder, it.application_id, it.uuid),
    f.PreemptionFailed: lambda it: (f.PreemptionFailed, it.application_id, it.key, it.node_id),
    f.PreemptionDecided: lambda it: (
        Preempt, it.beneficiary.application_id, it.beneficiary, it.node_id, it.victims,
    ),
}  # fmt: skip
