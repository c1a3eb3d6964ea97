"""Whether a core comes to rest: that nothing goes round, and what does if something goes round.

A core works because something came from outside, or because time has passed. That work ends: each
cycle of a planner places or files something, and no proposal is refused twice on the same facts.
`RefusalChecker` holds every planner to the second. `RestWatch` bounds the first, so that a run ends
with the message that goes round instead of never.
"""

from collections import deque
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from yunikorn_actors.domain.proposals import Proposal, Refusal
from yunikorn_actors.errors import CoreError
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.machine import Effect, InvariantViolation, Machine, Send
from yunikorn_actors.machines.scheduler import Scheduler
from yunikorn_actors.messages.base import CONTEXT, EVENT_PUBLISHER, GATEWAY, Delivery, is_callback
from yunikorn_actors.messages.predicates import (
    DenialsLifted,
    PredicatesChecked,
    PreemptionPredicatesChecked,
)
from yunikorn_actors.messages.scheduling import (
    FactsAppended,
    PartitionSnapshot,
    PlanningDue,
    ProposalRejected,
    ProposeAllocations,
    RunCycle,
)
from yunikorn_actors.planning.refusals import RECORDS

if TYPE_CHECKING:
    from yunikorn_actors.sim.simulator import Simulator

CYCLES_MAX = 1_000
"""Cycles of planners without a fact, beside one for each ask that waits."""
MESSAGES_MAX = 1_000_000
"""Messages without a stimulus, beside a hundred for each repeat of an ask that waits or runs."""
_ROUND_MAX = 40
"""The longest round that is looked for, and the number of messages that are remembered twice."""


class NoRest(CoreError, TimeoutError):  # noqa: N818 - as the other errors of the core
    """The core did not come to rest: messages keep coming though nothing new has happened."""


class RestWatch:
    """Counts what was delivered since something came from outside, or time went on.

    Long work is not taken for a loop. A planner that files 50,000 asks one by one needs fewer
    cycles than there are asks, and one that places them records facts.
    """

    def __init__(self) -> None:
        self._now_ns = 0
        self._cycles = 0
        """Cycles of planners since the last fact, stimulus or moment."""
        self._messages = 0
        """Messages since the last stimulus or moment."""
        self._cycles_max = CYCLES_MAX
        self._messages_max = MESSAGES_MAX
        self._is_raised = False
        """Both bounds are as high as the work that there was when the first was reached."""
        self._recent: deque[tuple[str, str]] = deque(maxlen=2 * _ROUND_MAX)

    def note(self, delivery: Delivery, effects: Sequence[Effect], context: Machine | None) -> None:
        """Count a message that was handled; raise NoRest if too many came without a reason."""
        if delivery.at_ns != self._now_ns or delivery.sender == GATEWAY:
            self._now_ns = delivery.at_ns
            self._cycles = self._messages = 0
            self._recent.clear()
            self._cycles_max, self._messages_max = CYCLES_MAX, MESSAGES_MAX
            self._is_raised = False
            return
        # A resource manager that answers brings news to a planner, but two that only answer each
        # other go round as well.
        if is_callback(delivery.sender):
            self._cycles = 0
        self._messages += 1
        self._recent.append((delivery.mailbox, type(delivery.message).__name__))
        if delivery.mailbox == CONTEXT and any(map(_has_facts, effects)):
            self._cycles = 0
        if isinstance(delivery.message, RunCycle):
            self._cycles += 1
        if self._cycles > self._cycles_max or self._messages > self._messages_max:
            self._judge(context)

    def _judge(self, context: Machine | None) -> None:
        """Raise the bounds by the work that there is, once: work that makes work goes round too."""
        if not self._is_raised:
            self._is_raised = True
            asks, repeats = _work_of(context)
            self._cycles_max += asks
            self._messages_max += 100 * repeats
        if self._cycles > self._cycles_max:
            raise NoRest(
                f"does not come to rest: {self._cycles} cycles of planning and no fact since "
                f"{_moment(self._now_ns)}, and nothing came from outside; {self._round()}"
            )
        if self._messages > self._messages_max:
            raise NoRest(
                f"does not come to rest: {self._messages} messages since {_moment(self._now_ns)}, "
                f"and nothing came from outside; {self._round()}"
            )

    def _round(self) -> str:
        """Name the messages that go round, each with its mailbox."""
        recent = list(self._recent)
        for length in range(1, _ROUND_MAX + 1):
            if recent[-length:] == recent[-2 * length : -length]:
                return "these go round: " + ", ".join(map(_named, recent[-length:]))
        return "the last were: " + ", ".join(map(_named, recent[-8:]))


def _work_of(context: Machine | None) -> tuple[int, int]:
    """Count the asks, and their repeats that wait or run."""
    assert isinstance(context, Context)
    asks = repeats = 0
    for partition in context.partitions.values():
        for app in partition.state.applications.values():
            asks += len(app.asks)
            repeats += len(app.allocations) + sum(it.remaining for it in app.asks.values())
    return asks, repeats


def _named(message: tuple[str, str]) -> str:
    mailbox, kind = message
    return f"{kind} to {mailbox}"


def _moment(now_ns: int) -> str:
    return f"virtual time {now_ns / 1e9:.3f} s"


def _has_facts(effect: Effect) -> bool:
    return (
        isinstance(effect, Send)
        and effect.to == EVENT_PUBLISHER
        and isinstance(effect.message, FactsAppended)
    )


class RefusalChecker:
    """Check that no planner makes a proposal again that was refused on the same facts.

    It goes by messages alone: what a planner was told, what it proposed, what was refused. Where
    Context plans, it goes by the plan that was just refused.
    """

    def __init__(self) -> None:
        self._planners: dict[str, _Record] = {}
        """By address of the scheduler; where Context plans, by name of the partition."""

    def delivered(self, simulator: "Simulator", delivery: Delivery) -> None:
        machine = simulator.machines.get(delivery.mailbox)
        if isinstance(machine, Scheduler):
            self._follow_scheduler(simulator.effects, delivery)
        elif isinstance(machine, Context) and delivery is simulator.last:
            for name, partition in machine.partitions.items():
                if partition.planner is not None:
                    self._follow_own(name, partition.refused, simulator.effects, delivery)

    def _record(self, name: str) -> "_Record":
        return self._planners.setdefault(name, _Record())

    def _follow_scheduler(self, effects: Sequence[Effect], delivery: Delivery) -> None:
        record, message = self._record(delivery.mailbox), delivery.message
        if isinstance(message, ProposalRejected):
            record.refuse(message.proposal_id, message.reason)
        elif _is_news(message, record, delivery.at_ns):
            record.forget()
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.message, ProposeAllocations):
                for proposal in effect.message.proposals:
                    record.propose(proposal, delivery)

    def _follow_own(
        self,
        name: str,
        refused: Sequence[tuple[Proposal, Refusal]],
        effects: Sequence[Effect],
        delivery: Delivery,
    ) -> None:
        record, message = self._record(name), delivery.message
        if _is_news(message, record, delivery.at_ns):
            record.forget()
        told = (it.message for it in effects if isinstance(it, Send) and it.to == EVENT_PUBLISHER)
        mine = [it for it in told if isinstance(it, FactsAppended) and it.partition == name]
        has_planned = isinstance(message, RunCycle) or _is_answer(message)
        if any(_has_news(it) for it in mine):
            # It is not seen what came first: only a plan without any fact is judged.
            record.forget()
        elif has_planned and getattr(message, "partition", name) == name:
            for proposal, _ in refused:
                record.propose(proposal, delivery)
            for proposal, reason in refused:
                record.refuse(proposal.proposal_id, reason)


class _Record:
    """What one planner has proposed since it last learned something."""

    def __init__(self) -> None:
        self._proposed: dict[int, Hashable] = {}
        self._refused: dict[Hashable, Refusal] = {}
        self.refused_ns = 0
        self._now_ns = 0

    def propose(self, proposal: Proposal, delivery: Delivery) -> None:
        content = replace(proposal, proposal_id=0)
        reason = self._refused.get(content)
        if reason is not None:
            where = f"after {type(delivery.message).__name__} to {delivery.mailbox}"
            raise InvariantViolation(
                f"{where}: refused with {reason} and proposed again though no fact has arrived: "
                f"{content}"
            )
        self._proposed[proposal.proposal_id] = content
        self._now_ns = delivery.at_ns

    def refuse(self, proposal_id: int, reason: Refusal) -> None:
        content = self._proposed.pop(proposal_id, None)
        if content is not None:
            self._refused[content] = reason
            self.refused_ns = self._now_ns

    def forget(self) -> None:
        self._proposed.clear()
        self._refused.clear()


def _is_news(message: object, record: _Record, now_ns: int) -> bool:
    """Whether it tells a planner something on which a decision may depend."""
    if isinstance(message, FactsAppended):
        return _has_news(message)
    if isinstance(message, PlanningDue):
        return now_ns > record.refused_ns
    return isinstance(message, PartitionSnapshot | DenialsLifted) or _is_no(message)


def _is_answer(message: object) -> bool:
    return isinstance(message, PredicatesChecked | PreemptionPredicatesChecked)


def _is_no(message: object) -> bool:
    """Whether a resource manager refuses a node, which a planner then leaves out."""
    if isinstance(message, PredicatesChecked):
        return bool(message.reason)
    return isinstance(message, PreemptionPredicatesChecked) and not message.response.success


def _has_news(message: FactsAppended) -> bool:
    return any(type(fact) not in RECORDS for fact in message.facts)
