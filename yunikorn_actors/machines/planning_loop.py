"""The planning loop: when a cycle runs, how much may be in flight, and when to look again.

A Scheduler runs it on its replica; in the fused topology Context runs it on the truth. They differ
in one thing alone, which is given as `commit`: a Scheduler sends its decisions to Context, where
others may have been faster; Context resolves them on the spot.

The machine resolves what it committed with facts or `Planner.refuse`, and calls `go_on` after
anything that may let something else be decided. A cycle that runs for nothing does no harm; one
that is missing lets asks wait for ever (G30).

Of several schedulers of a partition one has the *token*, and plans: it knows all earlier decisions
as facts. It hands the token on, through Context, behind what it has proposed. The others live a
little in the past: what should have been decided by then, and was not, they decide themselves, and
claim the token (ADR 21).
"""

from collections.abc import Callable
from typing import Any, Final, TypedDict

from yunikorn_actors.machines.life import Life
from yunikorn_actors.machines.machine import Effect, Send, SetTimer
from yunikorn_actors.machines.predicate_gate import PredicateGate
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages import predicates as p
from yunikorn_actors.messages import scheduling as s
from yunikorn_actors.messages.base import CONTEXT, Message
from yunikorn_actors.messages.queries import ExplainRequested, Explanation
from yunikorn_actors.planning.model.shape import Use
from yunikorn_actors.planning.planner import Planner
from yunikorn_actors.planning.reasons import EXPLAINED_MAX
from yunikorn_actors.planning.stages.denials import Denied
from yunikorn_actors.planning.why.explain import Found, explain, explain_all
from yunikorn_actors.planning.why.inquiry import FULL, IN_BASE_UNITS
from yunikorn_actors.planning.why.preempting import with_victims
from yunikorn_actors.planning.why.waiting_counts import count_waiting
from yunikorn_actors.policies.registry import NO_POLICIES, Policies
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.proposals import Proposal
from yunikorn_actors.values.durations import NEVER_NS, SECOND


def explanation(
    planner: Planner, epoch: int, message: ExplainRequested, now_ns: int
) -> Explanation:
    if message.waiting is not None:
        question = message.waiting
        sums = planner.waiting_sums
        return Explanation(
            partition=planner.state.name,
            epoch=epoch,
            reply_to=message.reply_to,
            as_of=planner.state.revision,
            waiting=(),
            is_complete=True,
            counted=(
                sums.part(question) if question.sums else count_waiting(planner, question, now_ns)
            ),
        )
    found = _found(planner, message, now_ns)
    return Explanation(
        partition=planner.state.name,
        epoch=epoch,
        reply_to=message.reply_to,
        as_of=planner.state.revision,
        waiting=tuple(found.asks),
        is_complete=len(found.asks) == found.total,
        total=found.total,
        causes=found.causes,
    )


def _found(planner: Planner, message: ExplainRequested, now_ns: int) -> Found:
    words = FULL if message.in_units else IN_BASE_UNITS
    if not message.application_id:
        return explain_all(planner, EXPLAINED_MAX, now_ns, words)
    why = explain(planner, message.application_id, message.key, now_ns, words)
    if why is not None and message.with_victims:
        why = with_victims(planner, why, now_ns)
    return Found([], 0, {}) if why is None else Found([why], 1, {why.obstacle.cause.value: 1})


Commit = Callable[[list[Proposal], int], list[Effect]]
"""Resolve these decisions now, or send them to be resolved; also tell what the planner found."""
PATIENCE_NS: Final = 2 * SECOND
"""How long the schedulers wait for the one that has the token."""
APART_NS: Final = 100_000_000
"""Added for each scheduler before it, so that they do not claim the token all at once."""


class Delays(TypedDict):
    """What a planner takes of the settings."""

    reservation_delay_ns: int
    preemption_delay_ns: int


def delays_in(settings: Settings) -> Delays:
    return Delays(
        reservation_delay_ns=settings.reservation_delay_ns,
        preemption_delay_ns=settings.preemption_delay_ns,
    )


class PlanningLoop:
    def __init__(
        self,
        state: PartitionState,
        commit: Commit,
        *,
        life: Life,
        address: str,
        settings: Settings,
        policies: Policies = NO_POLICIES,
    ) -> None:
        """Cycles and answers come to `address`."""
        self.planner = Planner(
            state,
            life.number,
            is_shared=life.planners > 1,
            reports=life.capabilities.hears_states,
            policies=policies,
            **delays_in(settings),
        )
        # Without predicates no proposal ever waits here, and there is no object to ask.
        self.predicate_gate: PredicateGate | None = None
        if life.capabilities.answers_questions:
            self.predicate_gate = PredicateGate(self.planner, life, address)
        self._commit = commit
        self._address = address
        self._partition = life.partition
        self._number = life.number
        self.epoch = life.epoch
        self._settings = settings
        # Several hand the token on behind each cycle: with less in one, each has its share sooner.
        self._cycle_max = settings.cycle_max
        if life.planners > 1:
            self._cycle_max = max(1, settings.cycle_max // 2)
        self.cycle_is_coming = False
        """Something may be decided that has not been tried yet."""
        self._due_ns = NEVER_NS
        """When the timer fires that is armed."""
        self._is_alone = life.planners == 1
        self._patience_ns = PATIENCE_NS + life.place * APART_NS
        self.has_token = self._is_alone
        self._round = 0
        self._has_proposed = False
        """Something, since it has the token or has claimed it."""
        self._message_ns = 0
        """When the last message came from Context."""
        self._looks_ns = NEVER_NS
        """When it looks without the token whether something is left that should be decided."""
        self._looked_ns = 0

    def canonical_predicate_gate(self) -> dict[str, Any] | None:
        return None if self.predicate_gate is None else self.predicate_gate.canonical_state()

    # -- what makes it plan

    def handle(self, message: Message, now_ns: int) -> list[Effect]:
        return HANDLERS[type(message)](self, message, now_ns)

    def _on_run_cycle(self, _: s.RunCycle, now_ns: int) -> list[Effect]:
        """Decide as much as may be in flight; some of it waits for the resource manager's word."""
        effects: list[Effect] = []
        # With the token it decides now; without, only what has been due for its whole patience.
        may_plan = self.has_token
        as_of_ns = now_ns if may_plan else now_ns - self._patience_ns
        # What it knows is as old as its patience: the scheduler with the token could have decided
        # it.
        if may_plan or self._message_ns <= as_of_ns:
            # The bound counts what is in flight: with old decisions unresolved, there is less room
            # for new ones.
            room = self._settings.inflight_max - self.planner.in_flight_count
            proposals = self.planner.plan(min(self._cycle_max, room), as_of_ns)
            effects.extend(self._propose(proposals, now_ns))
            if self.planner.failures:
                effects.extend(self._failures())
        # Only now: the commit has asked for no cycle, as it is asked for once, at the end.
        self.cycle_is_coming = False
        if not self._is_alone:
            # Behind the proposals: the next scheduler gets the token after the facts of these.
            effects.extend(self._pass_token())
        effects.extend(self._come_back(now_ns))
        return effects

    def _failures(self) -> list[Effect]:
        """Say which policies have failed: what is built in decides in their place."""
        failures, self.planner.failures = self.planner.failures, {}
        return [self._failure(path, *failed) for path, failed in failures.items()]

    def _failure(self, path: str, name: str, what: str) -> Send:
        failed = s.ReportPolicyFailed(
            partition=self._partition, epoch=self.epoch, queue=path, policy=name, failure=what
        )
        return Send(to=CONTEXT, message=failed)

    def _on_checked(self, message: p.Checked, now_ns: int) -> list[Effect]:
        """Continue with the proposal after a yes; after a no the planner looks elsewhere."""
        assert self.predicate_gate is not None
        proposal = self.predicate_gate.answered(message, now_ns)
        decided = [] if proposal is None else [proposal]
        # Facts say nothing of a refusal, so the other schedulers are informed by a message.
        denied, self.predicate_gate.denied = self.predicate_gate.denied, []
        spread = [Send(to=CONTEXT, message=it) for it in denied]
        return [
            *self._send(decided, now_ns),
            *spread,
            *self._pass_token(),
            *self._come_back(now_ns),
        ]

    def _on_node_denied(self, message: p.NodeDenied, now_ns: int) -> list[Effect]:
        """Another scheduler has asked."""
        self._message_ns = now_ns
        denied = Denied(
            message.application_id, message.key, message.sequence, message.node_id,
            message.reason, Use(message.use),
        )  # fmt: skip
        self.planner.note_denied(denied, now_ns)
        return self._come_back(now_ns)

    def _on_denials_lifted(self, _: p.DenialsLifted, now_ns: int) -> list[Effect]:
        # The resource manager has made a request: it may answer otherwise now.
        self.planner.denials.lift_all()
        self.planner.answered()
        return [*self._report_lifted(), *self.go_on(now_ns)]

    def _on_nodes_allowed(self, message: p.NodesAllowed, now_ns: int) -> list[Effect]:
        self._message_ns = now_ns
        self.planner.note_lifted(message.asks)
        return self._come_back(now_ns)

    def _report_lifted(self) -> list[Effect]:
        lifted = self.planner.denials.lifted
        if not lifted:
            return []
        # Emptied as they are sent, so that each refusal is lifted once at the others.
        self.planner.denials.lifted = {}
        allowed = p.NodesAllowed(
            partition=self._partition, epoch=self.epoch, scheduler=self._number, asks=tuple(lifted)
        )
        return [Send(to=CONTEXT, message=allowed)]

    def _on_planning_due(self, _: s.PlanningDue, now_ns: int) -> list[Effect]:
        if self.has_token:
            self.planner.time_came(now_ns)
            return self.next_cycle()
        self._looks_ns, self._looked_ns = NEVER_NS, now_ns
        as_of_ns = now_ns - self._patience_ns
        # Without the token a planner lives its patience in the past: for it a time comes that much
        # later.
        if self.planner.due_ns <= as_of_ns:
            self.planner.time_came(as_of_ns)
        # What there is was left undecided for a whole patience.
        if self._message_ns <= as_of_ns and self.planner.has_work:
            return self._plan_again()
        return self._look_later(now_ns)

    def _propose(self, proposals: list[Proposal], now_ns: int) -> list[Effect]:
        # The bound counts questions too: their proposals are in flight until the answer comes.
        questions: list[Effect] = []
        if self.predicate_gate is not None:
            proposals, questions = self.predicate_gate.put(proposals, now_ns)
        return [*self._send(proposals, now_ns), *questions]

    def _send(self, proposals: list[Proposal], now_ns: int) -> list[Effect]:
        # Numbered here, and in flight from here on.
        sent = self.planner.send(proposals)
        self._has_proposed |= bool(sent)
        return self._commit(sent, now_ns)

    def explain(self, message: ExplainRequested, now_ns: int) -> Explanation:
        return explanation(self.planner, self.epoch, message, now_ns)

    # -- several schedulers

    @property
    def knows_why(self) -> bool:
        """Whether it can say why asks wait: it plans, or has decisions on their way."""
        return self.has_token or bool(self.planner.open_proposals.owner)

    def _on_token_passed(self, token: s.TokenPassed, now_ns: int) -> list[Effect]:
        self.has_token, self._round = True, token.round
        # The timer may be the one of a scheduler that only looks.
        self._due_ns, self._looks_ns = NEVER_NS, NEVER_NS
        if self.planner.due_ns <= now_ns:
            self.planner.time_came(now_ns)
        return self._come_back(now_ns)

    def _on_token_revoked(self, _: s.TokenRevoked, __: int) -> list[Effect]:
        """Another scheduler has claimed it: say that this one is at work again."""
        # What was proposed is on its way and gets its answer; only planning stops.
        self.has_token = self._has_proposed = False
        return [Send(to=CONTEXT, message=self._token())]

    def _pass_token(self) -> list[Effect]:
        """Let the next one plan, behind what was proposed.

        Not before the resource manager has answered all: the others do not know what it was asked.
        """
        # Nothing proposed: the token stays, or it would go round for ever at rest.
        if self._is_alone or not self._has_proposed:
            return []
        if self.predicate_gate is not None and self.predicate_gate.is_waiting:
            return []
        passed = self._token(is_claimed=not self.has_token)
        self.has_token = self._has_proposed = False
        return [Send(to=CONTEXT, message=passed)]

    def _token(self, *, is_claimed: bool = False) -> s.TokenPassed:
        return s.TokenPassed(
            partition=self._partition,
            epoch=self.epoch,
            scheduler=self._number,
            round=self._round,
            is_claimed=is_claimed,
        )

    def _look_later(self, now_ns: int) -> list[Effect]:
        """See to it that what the scheduler with the token does not decide is decided."""
        planner = self.planner
        due_ns = min(planner.due_ns, self._message_ns if planner.has_work else NEVER_NS)
        if due_ns == NEVER_NS:
            # Nothing to look for: no timer, and at rest no message.
            return []
        due_ns += self._patience_ns
        # One timer at a time: when it fires, all that has come until then is looked at.
        if due_ns <= self._looked_ns or now_ns < self._looks_ns <= due_ns:
            return []
        self._looks_ns = due_ns
        return [self._timer(due_ns)]

    # -- what comes next

    def go_on(self, now_ns: int) -> list[Effect]:
        """Something has come that may let something else be decided."""
        # Also without the token: it says how fresh the view is.
        self._message_ns = now_ns
        return self._next_cycle() if self.has_token else self._look_later(now_ns)

    def after_question(self) -> list[Effect]:
        """A policy may have failed at what it was asked for: what is built in decides, and now."""
        return self.next_cycle() if self.planner.model.deciders.news else []

    def next_cycle(self) -> list[Effect]:
        return self._next_cycle() if self.has_token else []

    def _next_cycle(self) -> list[Effect]:
        """Plan again if that may decide anything; at most one cycle is on its way."""
        # At most one is on its way: it serves all that has come by then.
        if self.cycle_is_coming or not self.planner.has_work:
            return []
        # Full: the answers that make room call `go_on`, which asks again.
        if self.planner.in_flight_count >= self._settings.inflight_max:
            return []
        return self._plan_again()

    def _plan_again(self) -> list[Effect]:
        # A message and not a call: whatever is in the mailbox already is handled first, so one
        # cycle serves all of it.
        self.cycle_is_coming = True
        cycle = s.RunCycle(partition=self._partition, epoch=self.epoch)
        return [Send(to=self._address, message=cycle)]

    def _come_back(self, now_ns: int) -> list[Effect]:
        if not self.has_token:
            return self._look_later(now_ns)
        effects = self._next_cycle()
        # When something comes of age; a timer that comes too early does no harm.
        due_ns = self.planner.due_ns
        if due_ns != NEVER_NS and due_ns != self._due_ns:  # noqa: PLR1714 - no set is made
            self._due_ns = due_ns
            effects.append(self._timer(due_ns))
        return effects

    def _timer(self, due_ns: int) -> SetTimer:
        due = s.PlanningDue(partition=self._partition, epoch=self.epoch)
        name = f"planning/{self._partition}#{self.epoch}"
        return SetTimer(name=name, due_ns=due_ns, message=due)


HANDLERS: dict[type, Callable[[PlanningLoop, Any, int], list[Effect]]] = {
    s.RunCycle: PlanningLoop._on_run_cycle,
    s.PlanningDue: PlanningLoop._on_planning_due,
    s.TokenPassed: PlanningLoop._on_token_passed,
    s.TokenRevoked: PlanningLoop._on_token_revoked,
    p.PredicatesChecked: PlanningLoop._on_checked,
    p.PreemptionPredicatesChecked: PlanningLoop._on_checked,
    p.DenialsLifted: PlanningLoop._on_denials_lifted,
    p.NodeDenied: PlanningLoop._on_node_denied,
    p.NodesAllowed: PlanningLoop._on_nodes_allowed,
}
"""What the machine that plans has no part in."""
