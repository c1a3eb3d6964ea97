"""How a tape calls what happens: messages, timers, mailboxes and steps.

A message is named by its type, what it is about, who sent it and to whom:
`RMUpdateAllocation(confirm ph-a) from rm_proxy to context`. Messages of the same name are numbered
in the order of sending. So a name stays the same whatever else is sent, and when: another type of
message, or another timer, moves none.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote

from yunikorn_actors import si
from yunikorn_actors.messages import predicates as p
from yunikorn_actors.messages import rm_calls as c
from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages import scheduling as s
from yunikorn_actors.messages.base import Envelope, Message, is_callback, is_reply
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.proposals import AdmitGang, Preempt, Proposal
from yunikorn_actors.state.termination import ASKED_BACK

START: Final = "the start"
"""What has happened before everything else."""
NAMES_MAX: Final = 4096
"""So many names are kept written: a run has few, and each comes with most messages."""
RETURN: Final = "return"
"""The last step of a program: it makes no more calls."""
STEP_VERBS: Final = (
    "register", "ask", "report", "cancel", "release", "confirm", "add", "remove",
    *(action.name.lower() for action in si.ActionFromRM), "request", "configure", "lose",
    "unregister", "advance", "pass",
)  # fmt: skip
"""What the steps of programs do; `pass` is the second step of `advance`: its time has passed."""
FIRST_SCHEDULER: Final = "scheduler:[rm-1]default#1"


def message_name(envelope: Envelope, to: str) -> str:
    """Name a message; those of one name get a number each."""
    about = subject(envelope.message) or word(envelope.stimulus)
    kind = type(envelope.message).__name__
    return f"{kind}({about}) from {mailbox_name(envelope.sender)} to {mailbox_name(to)}"


def numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name} #{number}"


@lru_cache(NAMES_MAX)
def mailbox_name(address: str) -> str:
    """Leave out what is the same in nearly every run."""
    if is_reply(address):
        return "caller"
    if is_callback(address):
        return word(address.removeprefix("rm:").removesuffix("#1"))
    if address == FIRST_SCHEDULER or address.startswith(f"{FIRST_SCHEDULER}."):
        return f"scheduler{address.removeprefix(FIRST_SCHEDULER)}"
    return word(address)


@lru_cache(NAMES_MAX)
def word(text: str) -> str:
    """Write a name from outside so that it cannot be taken for a word of the tape."""
    return quote(text, safe="-_.:/@#[]+=,*$!~ ").replace("  ", "%20%20").strip() or "nothing"


def subject(message: Message) -> str:
    """Say what a message is about, in a few words; empty if nothing tells it from others."""
    return next(iter(_about(message)), "")


def topics(message: Message) -> tuple[str, ...]:
    """Say all that a message is about."""
    return tuple(dict.fromkeys(_about(message)))


def _about(message: Message) -> Iterable[str]:
    about = _SUBJECTS.get(type(message))
    return () if about is None else about(message)


@lru_cache(NAMES_MAX)
def _id(text: str) -> str:
    """Write an id as one word."""
    return quote(text, safe="-_.:/@#[]+=,*$!~")


def step_label(verb: str, id_: str) -> str:
    """Say what a step of a program does, so that a tape can name it."""
    return f"{verb} {quote(id_, safe='-_.:/@[]+=*$!~') or 'nothing'}"


def request_label(message: Message) -> str:
    """Label a request by the first thing that it is about."""
    return subject(message).replace("#", "%23").replace(",", "%2C") or "request nothing"


# -- requests, and what becomes of them


def _release(key: str, owner: str, type_: object) -> str:
    verb = "confirm" if type_ in ASKED_BACK else "release"
    return f"{verb} {_id(key or owner)}"


def _allocations_requested(message: rm.AllocationsRequested) -> Iterator[str]:
    request = message.request
    for item in request.allocations:
        yield f"{'report' if item.node_id else 'ask'} {_id(item.allocation_key)}"
    for ask in request.asks:
        yield f"ask {_id(ask.allocation_key)}"
    if request.releases is not None:
        for gone in request.releases.allocation_asks_to_release:
            yield f"cancel {_id(gone.allocation_key or gone.application_id)}"
        for end in request.releases.allocations_to_release:
            yield _release(end.allocation_key, end.application_id, end.termination_type)


def _rm_update_allocation(message: rm.RMUpdateAllocation) -> Iterator[str]:
    for item in message.asks:
        yield f"{'report' if item.node_id else 'ask'} {_id(item.spec.key)}"
    for gone in message.ask_releases:
        yield f"cancel {_id(gone.key or gone.application_id)}"
    for end in message.releases:
        yield _release(end.key, end.application_id, end.type)


def _applications_requested(message: rm.ApplicationsRequested) -> Iterator[str]:
    yield from (f"add {_id(new.application_id)}" for new in message.request.new)
    yield from (f"remove {_id(old.application_id)}" for old in message.request.remove)


def _rm_update_application(message: rm.RMUpdateApplication) -> Iterator[str]:
    yield from (f"add {_id(new.spec.application_id)}" for new in message.added)
    yield from (f"remove {_id(old.application_id)}" for old in message.removed)


def _node(action: si.ActionFromRM, node_id: str) -> str:
    return f"{action.name.lower()} {_id(node_id)}"


def _release_announced(message: rm.RMReleaseAllocation) -> Iterator[str]:
    yield from (f"withdrawn {_id(ask.key)}" for ask in message.withdrawn)
    yield from (f"released {_id(item.key)} {item.type.name}" for item in message.released)


def _allocation_response(message: c.CallUpdateAllocation) -> Iterator[str]:
    response = message.response
    yield from (f"new {_id(item.allocation_key)}" for item in response.new)
    for item in response.released:
        yield f"released {_id(item.allocation_key)} {item.termination_type.name}"
    yield from (f"withdrawn {_id(ask.allocation_key)}" for ask in response.released_asks)
    yield from (f"rejected {_id(ask.allocation_key)}" for ask in response.rejected)
    yield from (f"rejected {_id(ask.allocation_key)}" for ask in response.rejected_allocations)


def _verdicts(
    accepted: Iterable[str], rejected: Iterable[str], updated: Iterable[tuple[str, str]] = ()
) -> Iterator[str]:
    yield from (f"accepted {_id(id_)}" for id_ in accepted)
    yield from (f"rejected {_id(id_)}" for id_ in rejected)
    yield from (f"{_id(id_)} {state}" for id_, state in updated)


def _application_response(message: c.CallUpdateApplication) -> Iterator[str]:
    response = message.response
    return _verdicts(
        (item.application_id for item in response.accepted),
        (item.application_id for item in response.rejected),
        ((item.application_id, item.state) for item in response.updated),
    )


def _application_update(message: rm.RMApplicationUpdate) -> Iterator[str]:
    return _verdicts(
        (item.id for item in message.accepted),
        (item.id for item in message.rejected),
        ((item.application_id, item.state.value) for item in message.updated),
    )


# -- facts and proposals

_BOOKKEEPING: Final = (f.TimerArmed, f.TimerCancelled)
"""Facts that come along with others."""


def _facts(message: s.FactsAppended) -> Iterator[str]:
    telling = (fact for fact in message.facts if not isinstance(fact, _BOOKKEEPING))
    for fact in (*telling, *message.facts):
        yield f"{type(fact).__name__} {_id(_about_fact(fact))}".rstrip()


def _about_fact(fact: f.Fact) -> str:
    holder: Any = getattr(fact, "spec", fact)
    for source in (fact, holder):
        for field in ("key", "node_id", "application_id", "path"):
            value = getattr(source, field, "")
            if value:
                return str(value)
    return ""


def _proposal(proposal: Proposal) -> str:
    kind = type(proposal).__name__
    match proposal:
        case AdmitGang():
            return f"{kind} {_id(proposal.application_id)}"
        case Preempt():
            return f"{kind} {_id(proposal.node_id or str(len(proposal.victims)))}"
        case _:
            return f"{kind} {_id(proposal.key)}"


def _waiting(message: s.ReportWaiting) -> Iterator[str]:
    yield from (_id(seen.key) for seen in message.observations)
    yield from (_id(seen.application_id) for seen in message.crowds)


def _question(message: p.Question | c.CallPredicates | c.CallPreemptionPredicates) -> Iterator[str]:
    args = message.args
    yield f"{_id(args.allocation_key)} {_id(args.node_id)}"


_SUBJECTS: Final[dict[type, Callable[[Any], Iterable[str]]]] = {
    rm.AllocationsRequested: _allocations_requested,
    rm.ApplicationsRequested: _applications_requested,
    rm.NodesRequested: lambda message: (
        _node(item.action, item.node_id) for item in message.request.nodes
    ),
    rm.RMUpdateAllocation: _rm_update_allocation,
    rm.RMUpdateApplication: _rm_update_application,
    rm.RMUpdateNode: lambda message: (_node(item.action, item.node_id) for item in message.nodes),
    rm.RMNewAllocations: lambda message: (
        f"new {_id(item.spec.key)}" for item in message.allocations
    ),
    rm.RMReleaseAllocation: _release_announced,
    rm.RMRejectedAllocationAsk: lambda message: (_id(item.key) for item in message.rejected),
    rm.RMContainerSchedulingState: lambda message: (_id(item.key) for item in message.states),
    rm.RMApplicationUpdate: _application_update,
    rm.RMNodeUpdate: lambda message: _verdicts(
        message.accepted, (item.id for item in message.rejected)
    ),
    c.CallUpdateAllocation: _allocation_response,
    c.CallUpdateApplication: _application_response,
    c.CallUpdateNode: lambda message: _verdicts(
        (item.node_id for item in message.response.accepted),
        (item.node_id for item in message.response.rejected),
    ),
    c.CallUpdateContainerSchedulingState: lambda message: (
        _id(request.allocation_key) for request in message.requests
    ),
    c.CallPredicates: _question,
    c.CallPreemptionPredicates: _question,
    p.CheckPredicates: _question,
    p.CheckPreemptionPredicates: _question,
    p.NodeDenied: lambda message: (_id(message.key), message.node_id),
    p.NodesAllowed: lambda message: (_id(ask.key) for ask in message.asks),
    s.FactsAppended: _facts,
    s.ProposeAllocations: lambda message: map(_proposal, message.proposals),
    s.ProposalRejected: lambda message: (message.reason.name,),
    s.ReportWaiting: _waiting,
    s.ApplicationTimerDue: lambda message: (f"{_id(message.application_id)} {message.kind}",),
    s.QueueCleaningDue: lambda message: (_id(message.path),),
}
