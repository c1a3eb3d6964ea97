"""What was refused in a run, by whom, and why."""

from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from yunikorn_actors.messages import predicates as p
from yunikorn_actors.messages import queries as q
from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages import scheduling as s
from yunikorn_actors.messages.base import EVENT_PUBLISHER, RM_PROXY, Cause, Delivery, Message
from yunikorn_actors.state import facts as f


class Refusal(Struct, frozen=True, kw_only=True):
    what: str
    """A kind of thing: `ask`, `application`, `node` and so on."""
    reason: str
    id: str = ""
    """Which one, where the message names it."""


class RefusalGroup(Struct, kw_only=True):
    """All that was refused for one reason."""

    what: str
    reason: str
    count: int
    first: str
    first_at: Cause
    first_ns: int
    stimulus: str


def refusals_in(delivery: Delivery) -> Iterator[Refusal]:
    """Yield what a message refuses; a refusal is listed once, not again on its way."""
    refusals = REFUSING.get(type(delivery.message))
    return iter(()) if refusals is None or _is_repeated(delivery) else refusals(delivery.message)


def _is_repeated(delivery: Delivery) -> bool:
    """Whether another delivery brings the same: facts go to each Scheduler, and to the events."""
    if isinstance(delivery.message, s.FactsAppended):
        return delivery.mailbox != EVENT_PUBLISHER
    return isinstance(delivery.message, q.Declined) and delivery.sender == RM_PROXY


def is_refusal(delivery: Delivery) -> bool:
    return next(refusals_in(delivery), None) is not None


def grouped(deliveries: Iterator[Delivery]) -> list[RefusalGroup]:
    """Count what was refused, by what it was and for which reason; the first one stands for all."""
    groups: dict[tuple[str, str], RefusalGroup] = {}
    for delivery in deliveries:
        for refusal in refusals_in(delivery):
            group = groups.get((refusal.what, refusal.reason))
            if group is not None:
                group.count += 1
                continue
            groups[refusal.what, refusal.reason] = RefusalGroup(
                what=refusal.what, reason=refusal.reason, count=1, first=refusal.id,
                first_at=Cause(delivery.mailbox, delivery.step), first_ns=delivery.at_ns,
                stimulus=delivery.stimulus,
            )  # fmt: skip
    return sorted(groups.values(), key=lambda group: (-group.count, group.what, group.reason))


# -- by type of message


def _asks(message: rm.RMRejectedAllocationAsk) -> Iterator[Refusal]:
    for ask in message.rejected:
        yield Refusal(what="ask", reason=ask.reason, id=f"{ask.application_id}/{ask.key}")


def _each(what: str) -> Callable[[rm.RMApplicationUpdate | rm.RMNodeUpdate], Iterator[Refusal]]:
    def refusals(message: rm.RMApplicationUpdate | rm.RMNodeUpdate) -> Iterator[Refusal]:
        for it in message.rejected:
            yield Refusal(what=what, reason=it.reason, id=it.id)

    return refusals


_Whole = rm.RMRegistrationRejected | rm.RMConfigRejected | rm.AdminConfigRefused | q.Declined


def _one(what: str) -> Callable[[_Whole], Iterator[Refusal]]:
    def refusals(message: _Whole) -> Iterator[Refusal]:
        yield Refusal(what=what, reason=message.reason, id=getattr(message, "rm_id", ""))

    return refusals


def _proposal(message: s.ProposalRejected) -> Iterator[Refusal]:
    yield Refusal(what="proposal", reason=message.reason.name, id=str(message.proposal_id))


def _node_actions(message: s.NodeActionsRefused) -> Iterator[Refusal]:
    yield from map(_node_action, message.refused)


def _predicates(message: p.PredicatesChecked) -> Iterator[Refusal]:
    if message.reason:
        yield Refusal(what="predicate", reason=message.reason)


def _node_action(fact: f.NodeActionRefused) -> Refusal:
    return Refusal(what="node action", reason=fact.reason, id=fact.node_id)


def _preemption(fact: f.PreemptionFailed) -> Refusal:
    reason = f"no work on {fact.node_id} may be preempted for it"
    return Refusal(what="preemption", reason=reason, id=f"{fact.application_id}/{fact.key}")


BY_FACT: Final[dict[type[f.Fact], Callable[..., Refusal]]] = {
    f.NodeActionRefused: _node_action,
    f.PreemptionFailed: _preemption,
}
"""The facts that are all that is left of a refusal; of the others a message says more."""


def _facts(message: s.FactsAppended) -> Iterator[Refusal]:
    for fact in message.facts:
        refusal = BY_FACT.get(type(fact))
        if refusal is not None:
            yield refusal(fact)


REFUSING: Final[dict[type[Message], Callable[..., Iterator[Refusal]]]] = {
    rm.RMRejectedAllocationAsk: _asks,
    rm.RMApplicationUpdate: _each("application"),
    rm.RMNodeUpdate: _each("node"),
    rm.RMRegistrationRejected: _one("registration"),
    rm.RMConfigRejected: _one("configuration"),
    rm.AdminConfigRefused: _one("configuration"),
    q.Declined: _one("question"),
    s.ProposalRejected: _proposal,
    s.NodeActionsRefused: _node_actions,
    p.PredicatesChecked: _predicates,
    s.FactsAppended: _facts,
}
