"""Messages and facts in a few words.

The words name what a person looks for: keys, nodes, states. For most messages the ids in them are
enough; the tables have the others. Lists are cut short; `--full` prints the whole payload.
"""

from collections.abc import Callable, Iterable
from typing import Any, get_args

import msgspec
from msgspec import Struct

from yunikorn_actors import si
from yunikorn_actors.messages import followers as w
from yunikorn_actors.messages import predicates as p
from yunikorn_actors.messages import queries as q
from yunikorn_actors.messages import rm_calls as c
from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages import scheduling as s
from yunikorn_actors.messages.base import Message
from yunikorn_actors.messages.codec import UnknownMessage
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.facts.fact import in_list, named_in, placed_on
from yunikorn_actors.state.proposals import (
    AdmitGang,
    CancelPlaceholder,
    Preempt,
    Proposal,
    Replace,
)
from yunikorn_actors.state.termination import ASKED_BACK


def message_summary(message: Message) -> str:
    return _MESSAGES.get(type(message), named_in)(message)


def fact_summary(fact: f.Fact) -> str:
    return fact.in_words()


def in_json(part: Struct) -> bytes:
    """Return the payload of a message, or a fact, on one line."""
    return msgspec.json.encode(part.payload if isinstance(part, UnknownMessage) else part)


# -- parts


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def _refused(items: Iterable[rm.Rejected]) -> str:
    return in_list("rejected", (f"{item.id} ({item.reason})" for item in items))


# -- requests of the scheduler interface, and the events made of them


def _named(item: si.AllocationRelease | si.AllocationAskRelease) -> str:
    return item.allocation_key or getattr(item, "uuid", "") or f"all of {item.application_id}"


def _is_asked_back(item: si.AllocationRelease) -> bool:
    """Whether this is a release by the core, or what the resource manager means as its answer."""
    return item.termination_type in ASKED_BACK and bool(item.allocation_key or item.uuid)


def _divided(
    items: Iterable[si.AllocationRelease],
) -> tuple[list[si.AllocationRelease], list[si.AllocationRelease]]:
    """Take those apart that the core asks back, or gets back, and those that just end."""
    all_items = tuple(items)
    return (
        [it for it in all_items if _is_asked_back(it)],
        [it for it in all_items if not _is_asked_back(it)],
    )


def _allocations_requested(message: rm.AllocationsRequested) -> str:
    request = message.request
    releases = request.releases or si.AllocationReleasesRequest()
    confirmed, ended = _divided(releases.allocations_to_release)
    return _joined(
        in_list("asks", (ask.allocation_key for ask in request.asks)),
        in_list("allocations", (item.allocation_key for item in request.allocations)),
        in_list("takes back asks", map(_named, releases.allocation_asks_to_release)),
        in_list("releases", map(_named, ended)),
        in_list("gives back", map(_named, confirmed)),
    )


def _update_allocation(message: rm.RMUpdateAllocation) -> str:
    return _joined(
        in_list("asks", (item.spec.key for item in message.asks if not item.node_id)),
        in_list(
            "reports",
            (placed_on(item.spec.key, item.node_id) for item in message.asks if item.node_id),
        ),
        in_list(
            "takes back asks",
            (item.key or f"all of {item.application_id}" for item in message.ask_releases),
        ),
        in_list(
            "releases",
            (_ended(item) for item in message.releases if type(item) is rm.ReleaseItem),
        ),
        in_list(
            "gives back",
            (_given_back(item) for item in message.releases if isinstance(item, rm.GivenBack)),
        ),
    )


def _ended(item: rm.Released) -> str:
    return item.key or item.uuid or f"all of {item.application_id}"


def _given_back(item: rm.GivenBack) -> str:
    return _ended(item) if item.asked is not None else f"{_ended(item)} (not asked back)"


def _applications_requested(message: rm.ApplicationsRequested) -> str:
    return _joined(
        in_list("new", (item.application_id for item in message.request.new)),
        in_list("remove", (item.application_id for item in message.request.remove)),
    )


def _update_application(message: rm.RMUpdateApplication) -> str:
    return _joined(
        in_list("new", (item.spec.application_id for item in message.added)),
        in_list("remove", (item.application_id for item in message.removed)),
    )


def _actions(nodes: Iterable[si.NodeInfo | rm.NodeItem]) -> str:
    return in_list("nodes", (f"{item.node_id} {item.action.name}" for item in nodes))


# -- answers


def _release_allocation(message: rm.RMReleaseAllocation) -> str:
    return _joined(
        in_list("withdrawn", (f"{item.key} {item.type.name}" for item in message.withdrawn)),
        in_list("asks back", _typed(message.released, rm.AskedBack)),
        in_list("released", _typed(message.released, rm.AnnouncedRelease)),
    )


def _typed(items: Iterable[rm.AnnouncedRelease | rm.AskedBack], kind: type) -> Iterable[str]:
    return (f"{item.key} {item.type.name}" for item in items if type(item) is kind)


def _taken(application_id: str, where: rm.Accepted | si.AcceptedApplication) -> str:
    """Name the queue where the application did not choose it."""
    return f"{application_id} (in {where.queue})" if where.by_last_resort else application_id


def _application_update(message: rm.RMApplicationUpdate) -> str:
    return _joined(
        in_list("accepted", (_taken(item.id, item) for item in message.accepted)),
        _refused(message.rejected),
        in_list("updated", (f"{it.application_id} {it.state.value}" for it in message.updated)),
    )


def _node_update(message: rm.RMNodeUpdate) -> str:
    return _joined(in_list("accepted", message.accepted), _refused(message.rejected))


def _states(items: Iterable[rm.ContainerState | s.Observation]) -> str:
    return in_list(
        "asks",
        (
            f"{it.application_id} {it.key} {it.state.value}"
            + (f" ({it.reason})" if it.reason else "")
            for it in items
        ),
    )


def _call_states(message: c.CallUpdateContainerSchedulingState) -> str:
    return in_list(
        "asks",
        (f"{it.application_id} {it.allocation_key} {it.state.name}" for it in message.requests),
    )


def _refused_key(item: si.RejectedAllocationAsk | si.RejectedAllocation | rm.RejectedAsk) -> str:
    key = item.key if isinstance(item, rm.RejectedAsk) else item.allocation_key
    return f"{key} ({item.reason})"


def _call_update_allocation(message: c.CallUpdateAllocation) -> str:
    it = message.response
    asked_back, released = _divided(it.released)
    return _joined(
        in_list("new", (placed_on(item.allocation_key, item.node_id) for item in it.new)),
        in_list("asks back", map(_named, asked_back)),
        in_list("released", map(_named, released)),
        in_list("asks taken back", map(_named, it.released_asks)),
        in_list("rejected", map(_refused_key, it.rejected)),
        in_list("rejected", map(_refused_key, it.rejected_allocations)),
    )


def _call_update_application(message: c.CallUpdateApplication) -> str:
    it = message.response
    return _joined(
        in_list("accepted", (_taken(item.application_id, item) for item in it.accepted)),
        in_list("rejected", (f"{item.application_id} ({item.reason})" for item in it.rejected)),
        in_list("updated", (f"{item.application_id} {item.state}" for item in it.updated)),
    )


def _call_update_node(message: c.CallUpdateNode) -> str:
    it = message.response
    return _joined(
        in_list("accepted", (item.node_id for item in it.accepted)),
        in_list("rejected", (f"{item.node_id} ({item.reason})" for item in it.rejected)),
    )


def _new_allocations(message: rm.RMNewAllocations) -> str:
    alone = (placed_on(it.spec.key, it.node_id) for it in message.allocations)
    in_runs = (pair for run in message.runs for pair in zip(run.specs, run.node_ids, strict=False))
    return in_list("new", (*alone, *(placed_on(spec.key, node_id) for spec, node_id in in_runs)))


def _facts_appended(message: s.FactsAppended) -> str:
    last = message.first_revision + f.revisions_of(message.facts) - 1
    if last == message.first_revision:
        return f"{message.partition} revision {last}"
    return f"{message.partition} revisions {message.first_revision} to {last}"


def _proposals(message: s.ProposeAllocations) -> str:
    return in_list(f"as of {message.as_of}:", map(_proposal, message.proposals))


def _proposal(it: Proposal) -> str:
    match it:
        case AdmitGang():
            return f"the gang of {it.application_id}"
        case Replace():
            return f"swap {it.key} for {it.placeholder} on {it.node_id}"
        case CancelPlaceholder():
            return f"no {it.placeholder} for {it.key}"
        case Preempt():
            return f"{len(it.victims)} victims for {it.beneficiary.in_words()}"
        case _:
            return placed_on(it.key, it.node_id)


Question = p.Question | c.CallPredicates | c.CallPreemptionPredicates


def _question(message: Question) -> str:
    return placed_on(message.args.allocation_key, message.args.node_id)


def _verdict(it: p.PreemptionPredicatesAnswered | p.PreemptionPredicatesChecked) -> str:
    return f"yes, up to {it.response.index}" if it.response.success else "no"


def _found(message: q.EventsFound) -> str:
    stored = f"{message.lowest_id} to {message.highest_id} stored"
    return f"{len(message.records)} records, {stored}"


_MESSAGES: dict[type, Callable[[Any], str]] = {
    rm.RegistrationRequested: lambda it: f"{it.request.rm_id} with callback {it.callback}",
    rm.AllocationsRequested: _allocations_requested,
    rm.ApplicationsRequested: _applications_requested,
    rm.NodesRequested: lambda it: _actions(it.request.nodes),
    rm.ConfigurationRequested: lambda it: f"{it.request.rm_id}",
    rm.RMUpdateAllocation: _update_allocation,
    rm.RMUpdateApplication: _update_application,
    rm.RMUpdateNode: lambda it: _actions(it.nodes),
    rm.RMNewAllocations: _new_allocations,
    rm.RMReleaseAllocation: _release_allocation,
    rm.RMGivenBackUnasked: lambda it: in_list("gave back unasked", it.uuids),
    rm.RMRejectedAllocationAsk: lambda it: in_list("rejected", map(_refused_key, it.rejected)),
    rm.RMApplicationUpdate: _application_update,
    rm.RMNodeUpdate: _node_update,
    rm.RMContainerSchedulingState: lambda it: _states(it.states),
    rm.RMHeldBack: lambda it: (
        f"{it.rm_id} {'is backpressured' if it.held else 'takes its messages'}"
    ),
    rm.ResponsesDelivered: lambda it: f"{it.rm_id} {it.count}",
    rm.RequestsMarked: lambda it: f"{it.rm_id} {it.count}",
    rm.RequestsHandled: lambda it: f"{it.rm_id} {it.count}",
    rm.TurnMarked: lambda it: it.rm_id,
    rm.TurnHandled: lambda it: it.rm_id,
    rm.SendEvents: lambda it: f"{len(it.events)} records",
    c.CallUpdateAllocation: _call_update_allocation,
    c.CallUpdateApplication: _call_update_application,
    c.CallUpdateNode: _call_update_node,
    c.CallSendEvent: lambda it: f"{len(it.events)} records",
    c.CallUpdateContainerSchedulingState: _call_states,
    c.CallMark: lambda it: f"{it.rm_id} {it.count}",
    p.NodeDenied: lambda it: f"{it.application_id} {placed_on(it.key, it.node_id)}: {it.reason}",
    p.NodesAllowed: lambda it: in_list(
        "asks", (f"{ask.application_id} {ask.key}" for ask in it.asks)
    ),
    s.ReportPolicyFailed: lambda it: f"{it.policy} of {it.queue or 'the nodes'}: {it.failure}",
    s.ReportWaiting: lambda it: _joined(
        _states(it.observations),
        in_list(
            "run limits",
            (f"{at.application_id} by {at.crowd.value or 'none'}" for at in it.crowds),
        ),
    ),
    s.FactsAppended: _facts_appended,
    s.NodeActionsRefused: lambda message: ", ".join(it.node_id for it in message.refused),
    s.ProposeAllocations: _proposals,
    s.ProposalRejected: lambda it: f"proposal {it.proposal_id}: {it.reason.value}",
    s.MachineFailed: lambda it: f"{it.address}: {it.failure}",
    s.HistoryExpiryDue: lambda it: f"{it.partition} serial {it.serial}",
    **dict.fromkeys(get_args(Question), _question),
    **dict.fromkeys((p.PredicatesAnswered, p.PredicatesChecked), lambda it: it.reason or "yes"),
    **dict.fromkeys((p.PreemptionPredicatesAnswered, p.PreemptionPredicatesChecked), _verdict),
    q.EventsRequested: lambda it: f"{it.count} from {it.first_id} on",
    q.EventsFound: _found,
    q.EventStreamRequested: lambda it: f"{it.hearer} with {it.history} past records",
    q.EventStreamLeft: lambda it: f"{it.hearer}",
    q.CountsFound: lambda it: f"{it.rejected_asks} asks rejected",
    w.FollowRequested: lambda it: it.follower,
    w.HistoryRequested: lambda it: it.follower,
    w.CatchUpRequested: lambda it: it.follower,
    w.FollowEnded: lambda it: it.follower,
    w.ManagerDescribed: lambda it: f"{it.rm_id} under {it.config.checksum[:8]}",
    w.ManagerLeft: lambda it: it.rm_id,
}
