"""Refusals: what Context refused is not proposed again on the same facts.

A plan is a function of the facts. If Context refuses a proposal that was made on the newest facts,
the planner and Context disagree, and the same plan would be made and refused again, in every cycle,
for ever. So such a proposal is not sent again, and the ask, gang or queue that it was for is *set
aside*: no part of the planner makes a proposal for it. Both end when a fact arrives on which a
decision may depend, when the resource manager refuses a node or makes a request, or when a time
comes that a rule names.

A proposal that is refused because newer facts were faster is not meant: its ask is tried again at
once, with them. Nor is one that was made around another in flight, which Context refuses as well:
what was set aside is tried again without that one.

This holds for every kind of proposal, because it is decided here, by the order of proposals and
facts alone. Parts ask one thing, `Model.set_aside`.
"""

from collections.abc import Hashable, Sequence

from msgspec.structs import replace

from yunikorn_actors.planning.model.partition_model import Model
from yunikorn_actors.planning.model.views import AppView, AskView
from yunikorn_actors.planning.stages.stage import Subject
from yunikorn_actors.state.proposals import Preempt, Proposal


class Refusals:
    def __init__(self, model: Model) -> None:
        self._model = model
        self.has_notes = False
        """Whether anything below was noted since the newest fact."""
        self._plans: list[tuple[int, Sequence[Proposal]]] = []
        """Proposals decided since then: how many had been given up before those of each plan.

        Hardly any proposal is refused, so they are looked up at a refusal alone.
        """
        self._batches: list[Sequence[Proposal]] = []
        """Proposals sent since then; with a question in between one may be older than the fact."""
        self._made: dict[int, int] = {}
        self._sent: dict[int, Proposal] = {}
        """Of both the same by number, as far as they were noted before the last refusal."""
        self.refused: dict[Hashable, None] = {}
        """What was refused on these facts, whatever its number was."""
        self._given_up = 0
        self._refused_ns = 0
        self._last_made = 0
        self._beside: dict[Subject, int] = {}
        """What is set aside, and the last proposal that was made before."""

    def note_made(self, proposals: Sequence[Proposal]) -> None:
        if proposals:
            self.has_notes = True
            self._plans.append((self._given_up, proposals))
            # Proposals of one plan have ascending ids, so the last one stands for all before it.
            self._last_made = proposals[-1].proposal_id

    def note_sent(self, proposals: Sequence[Proposal]) -> None:
        if proposals:
            self.has_notes = True
            self._batches.append(proposals)

    def was_refused(self, proposal: Proposal) -> bool:
        """Whether Context has refused just this on the same facts."""
        return _content(proposal) in self.refused

    def gave_up(self) -> None:
        """A proposal is in flight no longer, and nothing came of it."""
        # Only its number changes: what was decided with it in view is no disagreement.
        self._given_up += 1

    def refuse(self, proposal_id: int, now_ns: int) -> bool:
        """Note a refusal; say whether what the proposal was for is to be set aside.

        Not if a fact has arrived since the proposal was decided. Not either if an earlier proposal
        was given up since: the planner counted on that one, and decides otherwise without it. If
        it decides the same again, that is not sent.
        """
        # Only at a refusal are the lists spread out by number; hardly any proposal is refused.
        self._look_up()
        sent = self._sent.pop(proposal_id, None)
        # A fact has come since it was sent: then the refusal says nothing about the newest facts.
        if sent is None:
            return False
        self.refused[_content(sent)] = None
        self._refused_ns = now_ns
        return self._made.pop(proposal_id, None) == self._given_up

    def _look_up(self) -> None:
        for given_up, plan in self._plans:
            self._made.update(dict.fromkeys([it.proposal_id for it in plan], given_up))
        for batch in self._batches:
            self._sent.update({it.proposal_id: it for it in batch})
        self._plans.clear()
        self._batches.clear()

    def try_again_without(self, proposal_id: int) -> None:
        """Try again those that were set aside while this refused proposal was in flight.

        The planner counted on it when it decided for them, and Context did not know of it: so the
        two did not disagree on the facts. This ends, because on the same facts no proposal is
        refused twice.
        """
        # Decided while that one was in flight, so it was counted on.
        again = [subject for subject, last in self._beside.items() if proposal_id <= last]
        if again:
            for subject in again:
                del self._beside[subject]
            self._take_back(again)

    def set_aside(self, subject: Subject) -> None:
        self._model.set_aside[subject] = None
        self._beside[subject] = self._last_made
        if isinstance(subject, AskView):
            # What the refusal opened again is closed.
            self._resync(subject)

    def something_arrived(self) -> None:
        """What was refused may be allowed now: everything is tried again."""
        self.has_notes = False
        self._plans.clear()
        self._batches.clear()
        self._made.clear()
        self._sent.clear()
        # Set aside only ever after a refusal: without one there is nothing to take back.
        if self.refused:
            self.refused.clear()
            self._beside.clear()
            self._take_back(tuple(self._model.set_aside))

    def time_came(self, now_ns: int) -> None:
        """A rule named this time; a timer of the moment of the refusal brings nothing new."""
        if now_ns > self._refused_ns:
            self.something_arrived()

    def _take_back(self, subjects: Sequence[Subject]) -> None:
        model = self._model
        # All of them first: waking one may look at the others.
        for subject in subjects:
            model.set_aside.pop(subject, None)
        for subject in subjects:
            if isinstance(subject, AskView):
                if not subject.gone:
                    self._wake_ask(subject)
            elif isinstance(subject, AppView) and subject.app.serial in model.apps:
                model.gangs.follow(subject)
        # It is not known which part made the proposals, so all of them look again.
        model.requeue.gang_may_fit()
        model.requeue.nodes_allowed()
        model.requeue.resolved()
        model.requeue.quota_armed()
        model.requeue.something_came_out()

    def _resync(self, ask: AskView) -> None:
        if not ask.gone:
            self._model.asks.resync(ask)
            self._model.requeue.amounts_changed(ask.app.leaf)

    def _wake_ask(self, ask: AskView) -> None:
        model, views = self._model, self._model.nodes.views
        self._resync(ask)
        # A member looks for a placeholder, not for a node: it is woken as such.
        if ask.app.app.task_groups:
            model.requeue.member_came(ask.app)
        # It comes first to what is reserved for it, so those nodes are looked at, too.
        for node_id in ask.ask.reserved:
            model.amounts.room_came(views[node_id])
        required = views.get(ask.shape.required_node)
        if required is not None:
            model.tree.wake_required(required.id)
            model.requeue.required_node_is_full(required)


def _content(proposal: Proposal) -> Hashable:
    # How many decisions of a gang follow depends on the plan; that it is one of several does not.
    if isinstance(proposal, Preempt):
        return replace(proposal, proposal_id=0, gang=min(1, proposal.gang))
    return replace(proposal, proposal_id=0)
