"""The planner: its model of a partition, and the parts that decide, in order.

docs/explanation/planning.md explains why the stages of a plan come in this order. Each decision is
put in flight; a fact with the id of its proposal, or `reject`, takes it out again.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final

from yunikorn_actors.planning.apply_fact import CHANGES, RESOLVING, adopt, resolve
from yunikorn_actors.planning.model.partition_model import Model
from yunikorn_actors.planning.model.requeue import Requeue
from yunikorn_actors.planning.model.shape import Use
from yunikorn_actors.planning.model.tree import rekey
from yunikorn_actors.planning.model.views import QueueView
from yunikorn_actors.planning.refusals import Refusals
from yunikorn_actors.planning.stages.allocate import Placer
from yunikorn_actors.planning.stages.backoff import Backoff
from yunikorn_actors.planning.stages.denials import Denials, Denied
from yunikorn_actors.planning.stages.gangs import Admitter, Swapper
from yunikorn_actors.planning.stages.gating import Gatekeeper
from yunikorn_actors.planning.stages.preempt import Preemptor
from yunikorn_actors.planning.stages.reporting import Explainer
from yunikorn_actors.planning.stages.reserve import Reserver
from yunikorn_actors.planning.stages.stage import OpenProposals
from yunikorn_actors.planning.unschedulable import Findings
from yunikorn_actors.planning.waiting_sums import WaitingSums
from yunikorn_actors.policies.registry import NO_POLICIES, Policies
from yunikorn_actors.state.facts import Fact, MachineReplaced
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.proposals import (
    AskRef,
    Placing,
    Preempt,
    Proposal,
)

# What everything else relies on: sizes, shares and the order of queues.

STEPS_IN_ONE: Final = 2_000
"""Steps of measuring in one plan; each queue takes four."""


class Measurer:
    """Where there are many queues, it needs several plans, and nothing else is planned till then.

    If something changes again before the end, the next plan measures everything at once: a cluster
    that never stands still is planned for, too.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._marks = model.requeue.measures
        self._left: Iterator[None] | None = None
        """The steps that are left."""
        self._newest: QueueView | None = None
        """The last queue when it began: one that came since then is not among those measured."""

    def plan(self, _now_ns: int, _room: int) -> list[Proposal]:
        marks = self._marks
        # A plan that measures decides nothing: an order that is half done misleads.
        if marks.is_stale and not self._is_measured():
            return []
        # Marked by everything that changes a leaf: one walk puts all of them right.
        for leaf in marks.leaves:
            rekey(leaf)
        marks.leaves.clear()
        return []

    def _is_measured(self) -> bool:
        """The cluster or the configuration changed: limits and shares have new measures."""
        model, marks = self._model, self._marks
        queues = model.tree.queues.values()
        newest = next(reversed(queues), None)
        # The rest of the last round, unless something has changed since.
        steps: int | None = STEPS_IN_ONE
        if self._left is None or not marks.is_under_way or newest is not self._newest:
            # Interrupted by a change: all at once, or a busy cluster would never be measured to its
            # end.
            steps = STEPS_IN_ONE if self._left is None else None
            self._left = model.tree.measure(model.state.capacity)
            self._newest, marks.is_under_way = newest, True
        done = sum(1 for _ in islice(self._left, steps))
        # The bound was reached, so more is left: the next plan goes on here.
        if done == steps:
            return False
        self._left = None
        # Sizes before places: a gate that allows more now wakes what it blocked.
        for queue in queues:
            model.participants.wake_blocked(queue)
        # Only these can be due to preempt: nothing else has a guarantee and something waiting.
        model.requeue.measured(
            leaf for leaf in queues if leaf.is_entitled and (leaf.lanes or leaf.held)
        )
        return True


Step = Callable[[int, int], list[Proposal]]
"""Takes the time, and how many proposals the plan may still make."""


class Planner:
    """The parts, their order, and the owner of each proposal; it decides nothing by itself."""

    def __init__(
        self,
        state: PartitionState,
        scheduler_number: int = 0,
        *,
        is_shared: bool = False,
        reports: bool = False,
        reservation_delay_ns: int = 0,
        preemption_delay_ns: int = 0,
        policies: Policies = NO_POLICIES,
    ) -> None:
        """Shared is what the resource manager refuses, if there are several planners."""
        self.state = state
        self.requeue = Requeue(reports=reports)
        self.findings = Findings(reports=reports)
        self.model = model = Model(state, self.requeue, policies)
        self.open_proposals = open_proposals = OpenProposals(scheduler_number, self.findings)
        self._refusals = Refusals(model)
        # Several planners share what the resource manager refuses (`NodeDenied`).
        self._is_shared = is_shared
        self.denials = Denials(model, is_shared=is_shared)
        self.backoff = Backoff(model)
        self.measurer = Measurer(model)
        self.swapper = Swapper(model, open_proposals)
        self.admitter = Admitter(model, open_proposals)
        self.gatekeeper = Gatekeeper(model, open_proposals, self.admitter)
        self.reserver = Reserver(model, open_proposals, reservation_delay_ns)
        self.preemptor = Preemptor(model, open_proposals, self.admitter, preemption_delay_ns)
        self.placer = Placer(
            model,
            open_proposals,
            admitter=self.admitter,
            backoff=self.backoff,
            gatekeeper=self.gatekeeper,
            reserver=self.reserver,
        )
        self.waiting_sums = WaitingSums(model)
        self.explainer = Explainer(model, open_proposals, self.placer)
        self._planned_ns = 0
        self._has_new_keys = True
        """A fact has come since the keys were looked at that change with more than one thing."""
        self.failures: dict[str, tuple[str, str]] = {}
        """By queue the policy that has failed and was replaced, and how; not reported yet."""

    # -- deciding

    def _first(self, now_ns: int) -> Iterator[Step]:
        """Yield the steps up to the measuring that have something to do now."""
        # First of all: what has rested for long enough is a candidate like any other in this plan,
        # and in a gated leaf one that its pass has not seen.
        if self.denials.due_ns <= now_ns:
            self.gatekeeper.is_stale = True
            yield self.denials.plan
        if self.backoff.due_ns <= now_ns:
            self.gatekeeper.is_stale = True
            yield self.backoff.plan
        # All that follows goes by the order of queues, so that is put right before anything is
        # tried.
        measures = self.requeue.measures
        if measures.is_stale or measures.leaves:
            yield self.measurer.plan

    def _next(self, _now_ns: int) -> Iterator[Step]:
        """Yield the steps that place something; each is looked at when those before it are done."""
        requeue, model = self.requeue, self.model
        gangs, admitter = requeue.gangs, self.admitter
        # A placeholder left this room for these asks: nobody may take it before them.
        if gangs.first:
            yield self.placer.place_first
        # A reserved node is closed to others: the sooner it is used, the sooner it opens.
        if model.reserved_nodes:
            yield self.placer.place_reserved
        # A member has room in the quotas already; new work must not take the node it moves to.
        if gangs.looking:
            yield self.swapper.plan
        # Before the main loop, because room only shrinks in it: what does not fit now needs no
        # entry.
        if gangs.room_has_changed or admitter.commitments is not None:
            yield admitter.plan
        # Without a gated leaf those that there were are to be ended.
        if model.deciders.gated or self.gatekeeper.passes:
            yield self.gatekeeper.plan
        # Everything before has its room. What is left is for all, one after the other in order.
        root = model.tree.root
        if requeue.places or admitter.lapsed or (root is not None and root.children):
            yield self.placer.plan

    def _last(self, now_ns: int) -> Iterator[Step]:
        """Yield the steps for what was not placed."""
        requeue, preemptor, reserver = self.requeue, self.preemptor, self.reserver
        # An application rests only after victims were sought for its asks: those that rest since
        # this plan come back for the preemptor, and rests are decided behind it.
        if requeue.passes:
            yield self.backoff.end_passes
        if preemptor.has_work or preemptor.due_ns <= now_ns:
            yield preemptor.plan
        if requeue.passes:
            yield self.backoff.begin_rests
        # Preemption makes room now, a reservation only waits for it.
        if requeue.reserving.is_stale or reserver.due_ns <= now_ns:
            yield reserver.plan
        # Only now is it known why an ask waits: earlier it might be wrong at the end.
        if requeue.explaining.asks or requeue.explaining.apps or self.explainer.left:
            yield self.explainer.plan

    # Only looks at marks: it is asked after each message, and a plan that finds nothing to do costs
    # far more.
    @property
    def has_work(self) -> bool:
        """Whether anything might be decided now: some part has something to look at."""
        requeue, root = self.requeue, self.model.tree.root
        gangs, explaining, deciders = requeue.gangs, requeue.explaining, self.model.deciders
        has_marks = (
            (root is not None and (root.children or root.open_lanes))
            or requeue.places
            or requeue.measures.is_stale
            or requeue.reserving.is_stale
            or gangs.first
            or gangs.looking
            or (gangs.room_has_changed and self.model.gangs.awaiting)
            or self.admitter.lapsed
            or requeue.passes
            or explaining.asks
            or explaining.apps
            or self.explainer.left
            or self.preemptor.has_work
            or ((deciders.gated or self.gatekeeper.passes) and self.gatekeeper.has_work)
            or ((deciders.news or deciders.raised) and deciders.has_news)
        )
        return bool(has_marks) and not self.state.decides_nothing

    @property
    def due_ns(self) -> int:
        """The earliest moment at which a delay, a pause or a rest ends."""
        return min(
            self.denials.due_ns,
            self.backoff.due_ns,
            self.gatekeeper.due_ns,
            self.reserver.due_ns,
            self.preemptor.due_ns,
        )

    def plan(self, limit: int, now_ns: int) -> list[Proposal]:
        """Decide, one at a time, until nothing can be placed or the limit is reached."""
        proposals: list[Proposal] = []
        self._planned_ns = now_ns
        # Nothing is decided for a partition that is suspended or half changed.
        if not self.state.decides_nothing and limit > 0:
            deciders = self.model.deciders
            # The time of keys moves before the order is used.
            for leaf in deciders.timed:
                if leaf.follow_time(now_ns):
                    self._has_new_keys = self.gatekeeper.is_stale = True
            if self._has_new_keys and deciders.moving:
                self._has_new_keys = False
                self.model.tree.rekey_moving()
            if (deciders.news or deciders.raised) and deciders.has_news:
                self.failures.update(self.model.replace_failed())
            room = limit
            for steps in (self._first, self._next, self._last):
                # Each step is looked at when those before it are done: they may have given it
                # something.
                for step in steps(now_ns):
                    if made := step(now_ns, room):
                        proposals.extend(made)
                        room -= len(made)
                # A policy failed and was replaced, or something else asks for a new measure: what
                # follows would go by an old order.
                if self.requeue.measures.is_stale:
                    break
        # It was decided on these facts, so it would be decided again.
        refused = self._refusals.refused
        made = self._without_refused(proposals, sets_aside=True) if refused else proposals
        self._refusals.note_made(made)
        return made

    # -- the outcomes of decisions

    @property
    def in_flight_count(self) -> int:
        """What is bounded: allocations, swaps and admissions on their way."""
        flights = self.model.flights
        return len(flights.placements) + len(flights.swaps) + len(flights.admissions)

    @property
    def unresolved(self) -> list[int]:
        """Proposals that Context has not answered yet."""
        return sorted(self.open_proposals.owner)

    def is_in_flight(self, proposal_id: int) -> bool:
        """Whether Context is still to answer it."""
        return proposal_id in self.open_proposals.owner

    def refuse(self, proposal_id: int) -> None:
        """Context refused: the ask waits again, and until there is news if nothing was newer."""
        # Before the proposal is forgotten: its subject is known by its owner.
        subject = self.open_proposals.owner[proposal_id].subject_of(proposal_id)
        is_hopeless = self._refusals.refuse(proposal_id, self._planned_ns)
        self.reject(proposal_id)
        self._refusals.try_again_without(proposal_id)
        if is_hopeless:
            self._refusals.set_aside(subject)

    def reject(self, proposal_id: int) -> None:
        """What the proposal took is free again, and the ask is tried again."""
        # Only the part that made it knows what it took.
        self.open_proposals.reject(proposal_id)
        self._refusals.gave_up()
        self.gatekeeper.is_stale = True

    def send(self, proposals: list[Proposal]) -> list[Proposal]:
        """Return what Context gets now: an answer to a question may have taken long.

        What was refused meanwhile may have been decided on older facts than that: it is tried again
        on those of now.
        """
        refused = self._refusals.refused
        sent = self._without_refused(proposals, sets_aside=False) if refused else proposals
        self._refusals.note_sent(sent)
        return sent

    def _without_refused(self, proposals: list[Proposal], *, sets_aside: bool) -> list[Proposal]:
        """Leave out what Context has refused on the same facts."""
        refused = [it for it in proposals if self._refusals.was_refused(it)]
        gangs = frozenset(it.gang for it in refused if isinstance(it, Preempt) and it.gang)
        kept: list[Proposal] = []
        for proposal in proposals:
            # All for a gang or none (G31).
            if proposal in refused or (isinstance(proposal, Preempt) and proposal.gang in gangs):
                subject = self.open_proposals.owner[proposal.proposal_id].subject_of(
                    proposal.proposal_id
                )
                self.reject(proposal.proposal_id)
                if sets_aside:
                    self._refusals.set_aside(subject)
            else:
                kept.append(proposal)
        return kept

    def answered(self) -> None:
        """The resource manager has answered, or made a request: what was refused may be allowed."""
        self._refusals.something_arrived()
        self.gatekeeper.is_stale = True

    # -- several planners

    def note_denied(self, denied: Denied, now_ns: int) -> None:
        """The resource manager refused it to another planner."""
        # That one has asked, so what has rested for long enough rests no more.
        self.denials.lift_due(now_ns)
        self._deny(denied, now_ns, elsewhere=True)
        self.answered()

    def note_lifted(self, asks: Iterable[AskRef]) -> None:
        """Another planner has learned that they may be asked about again."""
        self.denials.lift(asks)
        self.answered()

    def time_came(self, now_ns: int) -> None:
        """A delay, a pause or a back-off has ended."""
        self._refusals.time_came(now_ns)
        self.requeue.time_came()
        self.gatekeeper.time_came(now_ns)

    def deny(self, proposal: Placing | Preempt, reason: str, now_ns: int, use: Use) -> None:
        """The resource manager refused: the ask waits again, and not for this node."""
        self._deny(Denied.of(proposal, reason, use), now_ns)
        # Behind the denial: the ask is tried again at once, and must not find this node again.
        self.reject(proposal.proposal_id)
        self.answered()

    def _deny(self, denied: Denied, now_ns: int, *, elsewhere: bool = False) -> None:
        ask = self.model.ask_of(denied.application_id, denied.key)
        # An ask that was sent again since then has another sequence: the answer is not about it.
        if ask is not None and ask.ask.sequence == denied.sequence:
            self.denials.add(ask, denied, now_ns, elsewhere=elsewhere)

    # -- what is known

    def adopt(self) -> None:
        """Begin with a whole state, from a snapshot; treat everything in it as new."""
        adopt(self.model)
        self.gatekeeper.is_stale = True

    def observe(self, fact: Fact) -> None:
        """Bring the model up to date with a fact that the state has just applied."""
        kind = type(fact)
        # The owner first. It takes the decision out of what is in flight, and `change` then sees
        # the replica as it is: the other way round the same amount would count twice for a moment,
        # and all that waits for room would be asked in vain.
        if kind in RESOLVING:
            resolve(self.model, self.open_proposals, fact)
        change = CHANGES.get(kind)
        if change is not None:
            change(self.model, fact)
        # A reservation waits for whatever is on its way, and each fact may be the end of that.
        if self.requeue.reserving.waits:
            self.requeue.something_came_out()
        if self.requeue.recounts is not None:
            self.waiting_sums.keep_up()
        # Behind the change: what was set aside is tried on the state as it is now.
        if not fact.is_record:
            self.gatekeeper.is_stale = True
            self._has_new_keys = True
            if self._refusals.has_notes:
                self._refusals.something_arrived()
        if self._is_shared and isinstance(fact, MachineReplaced):
            # It may be the one that would have learned what is allowed again.
            self.denials.forget_all()
