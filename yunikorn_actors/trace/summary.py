"""Messages and facts in a few words.

The words name what a person looks for: keys, nodes, states. For most messages the ids in them are
enough; the tables have the others. Lists are cut short; `--full` prints the whole payload.
"""

from collections.abc import Callable, Iterable
from itertools import starmap
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
from yunikorn_actors.state.allocations import AskSpec
from yunikorn_actors.state.beneficiary import Beneficiary
from yunikorn_actors.state.proposals import (
    AdmitGang,
    CancelPlaceholder,
    Preempt,
    Proposal,
    Replace,
)
from yunikorn_actors.state.resource_seconds import tracked
from yunikorn_actors.state.termination import ASKED_BACK
from yunikorn_actors.values.resource import Resource

SHOWN_MAX = 4
"""How many items of a list are named; the others are counted."""


_TELLING = frozenset(
    {"rm_id", "partition", "application_id", "key", "node_id", "path", "kind", "reason"}
)


def message_summary(message: Message) -> str:
    return _MESSAGES.get(type(message), _ids)(message)


def fact_summary(fact: f.Fact) -> str:
    return _FACTS.get(type(fact), _ids)(fact)


def in_json(part: Struct) -> bytes:
    """Return the payload of a message, or a fact, on one line."""
    return msgspec.json.encode(part.payload if isinstance(part, UnknownMessage) else part)


def _ids(value: Struct) -> str:
    names = [name for name in value.__struct_fields__ if name in _TELLING]
    return " ".join(getattr(value, name) for name in names)


# -- parts


def _list(label: str, words: Iterable[str]) -> str:
    """Name the first few items; an empty list gives an empty text."""
    all_words = tuple(words)
    if not all_words:
        return ""
    rest = len(all_words) - SHOWN_MAX
    more = f" +{rest} more" if rest > 0 else ""
    return f"{label} {', '.join(all_words[:SHOWN_MAX])}{more}"


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def _amounts(resource: Resource | None) -> str:
    if resource is None:
        return "unset"
    return ",".join(f"{kind}={quantity}" for kind, quantity in resource.items()) or "nothing"


def _limit(label: str, resource: Resource | None) -> str:
    return "" if resource is None else f" {label} {_amounts(resource)}"


def _repeats(spec: AskSpec) -> str:
    return f" x{spec.max_allocations}" if spec.max_allocations != 1 else ""


def _ask(spec: AskSpec) -> str:
    return f"{spec.application_id} {spec.key} {_amounts(spec.resource)}{_repeats(spec)}"


def _placed(key: str, node_id: str) -> str:
    return f"{key} -> {node_id}"


def _refused(items: Iterable[rm.Rejected]) -> str:
    return _list("rejected", (f"{item.id} ({item.reason})" for item in items))


# -- facts


def _schedule(fact: f.NodeAdded | f.NodeScheduleChanged) -> str:
    drained = "drained" if fact.drained else "open"
    ready = drained if fact.ready else f"{drained}, not ready"
    is_awaited = isinstance(fact, f.NodeScheduleChanged) and fact.awaited
    return f"{ready}, awaited" if is_awaited else ready


def _queue_added(fact: f.QueueAdded) -> str:
    kind = "leaf" if fact.spec.leaf else "parent"
    guaranteed, limit = _limit("guaranteed", fact.spec.guaranteed), _limit("max", fact.spec.max)
    return f"{fact.path} {kind}{guaranteed}{limit}"


def _resized(fact: f.NodeResized) -> str:
    before = f"{_amounts(fact.old_capacity)} occupied {_amounts(fact.old_occupied)}"
    after = f"{_amounts(fact.capacity)} occupied {_amounts(fact.occupied)}"
    return f"{fact.node_id} {before} -> {after}"


def _committed(fact: f.AllocationCommitted) -> str:
    placed = _placed(fact.key, fact.node_id)
    return f"{fact.application_id} {placed} {_amounts(fact.resource)} as {fact.uuid}"


def _asks(fact: f.AsksAdded) -> str:
    size = _amounts(fact.specs[0].resource) if fact.specs else ""
    keys = _list("", (f"{spec.key}{_repeats(spec)}" for spec in fact.specs))
    return f"{len(fact.specs)} of {fact.application_id} {size} each:{keys}"


def _run(fact: f.AllocationsCommitted) -> str:
    ids = ", ".join(charged.application_id for charged in fact.charged)
    placed = _list("", starmap(_placed, zip(fact.keys, fact.node_ids, strict=False)))
    return f"{len(fact.keys)} of {ids} {_amounts(fact.resource)} each:{placed}"


def _recovered(fact: f.AllocationRecovered) -> str:
    spec = fact.spec
    placed = _placed(spec.key, fact.node_id)
    return f"{spec.application_id} {placed} {_amounts(spec.resource)} as {fact.uuid}"


def _allocation_resized(fact: f.AllocationResized) -> str:
    sizes = f"{_amounts(fact.old_resource)} -> {_amounts(fact.resource)}"
    return f"{fact.application_id} {fact.key} on {fact.node_id} {sizes}"


def _released(fact: f.AllocationReleased) -> str:
    what = f"{fact.application_id} {fact.key} from {fact.node_id} {fact.uuid}"
    if fact.given_back is None:
        return f"{what} {fact.type.name}"
    answer = "" if fact.type is fact.given_back else f", confirmed as {fact.type.name}"
    return f"gives back {what} {fact.given_back.name}{answer}"


def _swapped(fact: f.SwapCompleted) -> str:
    member = f"{fact.application_id} {fact.key} swapped for {fact.placeholder_key}"
    return f"{member} on {fact.node_id}, {fact.uuid} for {fact.placeholder}"


def _preempted(fact: f.PreemptionDecided) -> str:
    where = f" on {fact.node_id}" if fact.node_id else ""
    return f"{len(fact.victims)} victims for {_beneficiary(fact.beneficiary)}{where}"


_FACTS: dict[type, Callable[[Any], str]] = {
    f.PartitionConfigured: lambda fact: f"{fact.config.name}",
    f.SchedulingHeld: lambda fact: (
        ("suspended, backpressured" if fact.behind else "suspended") if fact.held else "open"
    ),
    f.LongWorkStarted: lambda fact: fact.work.text,
    f.LongWorkEnded: lambda _: "",
    f.ConfigurationRefused: lambda fact: fact.reason,
    f.PolicyFailed: lambda fact: fact.text,
    f.AdministratorActed: lambda fact: f"{fact.node_id} {fact.what} by {fact.by}".lstrip(),
    f.QueueAdded: _queue_added,
    f.QueueStateChanged: lambda fact: f"{fact.path} -> {fact.state.value}",
    f.NodeAdded: lambda fact: f"{fact.node_id} {_amounts(fact.capacity)} {_schedule(fact)}",
    f.NodeResized: _resized,
    f.NodeScheduleChanged: lambda fact: f"{fact.node_id} {_schedule(fact)}",
    f.ClusterResized: lambda fact: _amounts(fact.capacity),
    f.NodeActionRefused: lambda fact: f"{fact.node_id} action {fact.action}: {fact.reason}",
    f.ApplicationAdded: lambda fact: (
        f"{fact.spec.application_id} of {fact.spec.user} in {fact.queue}"
    ),
    f.ApplicationRejected: lambda fact: f"{fact.spec.application_id}: {fact.reason}",
    f.ApplicationStateChanged: lambda fact: f"{fact.application_id} -> {fact.state.value}",
    f.ApplicationSummarized: lambda fact: (
        f"{fact.application_id} used {tracked(fact.history.used)}"
    ),
    f.ApplicationForgotten: lambda fact: f"serial {fact.serial}",
    f.AskAdded: lambda fact: _ask(fact.spec),
    f.AsksAdded: _asks,
    f.AskReplaced: lambda fact: _ask(fact.spec),
    f.AskShortageChanged: lambda fact: f"{fact.key}: {fact.shortage.value or 'none'}",
    f.AskReported: lambda fact: f"{fact.application_id} {fact.key} {fact.state.value}",
    f.AskRemoved: lambda fact: f"{fact.application_id} {fact.key} {fact.type.name}",
    f.GangAdmitted: lambda fact: f"{fact.application_id} has {_amounts(fact.commitment)} to come",
    f.GangLapsed: lambda fact: f"{fact.application_id} had {_amounts(fact.commitment)} to come",
    f.ReleaseRequested: lambda fact: f"asks back {fact.application_id} {fact.key} {fact.type.name}",
    f.AskParked: lambda fact: (
        f"{fact.application_id} {fact.key} parked for {fact.placeholder} on {fact.node_id}"
    ),
    f.AskUnparked: lambda fact: (
        f"{fact.application_id} {fact.key} no longer parked for {fact.placeholder}: {fact.reason}"
    ),
    f.PlaceholderCancelled: lambda fact: f"{fact.placeholder} for {fact.key}",
    f.SwapCompleted: _swapped,
    f.ConfirmationMissed: lambda fact: (
        f"{fact.application_id} does not give back {fact.key} {fact.type.name}"
    ),
    f.AllocationCommitted: _committed,
    f.AllocationsCommitted: _run,
    f.AllocationRecovered: _recovered,
    f.AllocationResized: _allocation_resized,
    f.AllocationReleased: _released,
    f.PreemptionFailed: lambda fact: f"{fact.application_id} {fact.key} on {fact.node_id}",
    f.PreemptionDecided: _preempted,
    f.VictimMarked: lambda fact: (
        f"{fact.application_id} {fact.key} on {fact.node_id} for {_beneficiary(fact.beneficiary)}"
    ),
    f.ForeignAllocationPut: lambda put: f"{_placed(put.key, put.node_id)} {_amounts(put.resource)}",
}


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
        _list("asks", (ask.allocation_key for ask in request.asks)),
        _list("allocations", (item.allocation_key for item in request.allocations)),
        _list("takes back asks", map(_named, releases.allocation_asks_to_release)),
        _list("releases", map(_named, ended)),
        _list("gives back", map(_named, confirmed)),
    )


def _update_allocation(message: rm.RMUpdateAllocation) -> str:
    return _joined(
        _list("asks", (item.spec.key for item in message.asks if not item.node_id)),
        _list(
            "reports",
            (_placed(item.spec.key, item.node_id) for item in message.asks if item.node_id),
        ),
        _list(
            "takes back asks",
            (item.key or f"all of {item.application_id}" for item in message.ask_releases),
        ),
        _list(
            "releases",
            (_ended(item) for item in message.releases if type(item) is rm.ReleaseItem),
        ),
        _list(
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
        _list("new", (item.application_id for item in message.request.new)),
        _list("remove", (item.application_id for item in message.request.remove)),
    )


def _update_application(message: rm.RMUpdateApplication) -> str:
    return _joined(
        _list("new", (item.spec.application_id for item in message.added)),
        _list("remove", (item.application_id for item in message.removed)),
    )


def _actions(nodes: Iterable[si.NodeInfo | rm.NodeItem]) -> str:
    return _list("nodes", (f"{item.node_id} {item.action.name}" for item in nodes))


# -- answers


def _release_allocation(message: rm.RMReleaseAllocation) -> str:
    return _joined(
        _list("withdrawn", (f"{item.key} {item.type.name}" for item in message.withdrawn)),
        _list("asks back", _typed(message.released, rm.AskedBack)),
        _list("released", _typed(message.released, rm.AnnouncedRelease)),
    )


def _typed(items: Iterable[rm.AnnouncedRelease | rm.AskedBack], kind: type) -> Iterable[str]:
    return (f"{item.key} {item.type.name}" for item in items if type(item) is kind)


def _taken(application_id: str, where: rm.Accepted | si.AcceptedApplication) -> str:
    """Name the queue where the application did not choose it."""
    return f"{application_id} (in {where.queue})" if where.by_last_resort else application_id


def _application_update(message: rm.RMApplicationUpdate) -> str:
    return _joined(
        _list("accepted", (_taken(item.id, item) for item in message.accepted)),
        _refused(message.rejected),
        _list("updated", (f"{it.application_id} {it.state.value}" for it in message.updated)),
    )


def _node_update(message: rm.RMNodeUpdate) -> str:
    return _joined(_list("accepted", message.accepted), _refused(message.rejected))


def _states(items: Iterable[rm.ContainerState | s.Observation]) -> str:
    return _list(
        "asks",
        (
            f"{it.application_id} {it.key} {it.state.value}"
            + (f" ({it.reason})" if it.reason else "")
            for it in items
        ),
    )


def _call_states(message: c.CallUpdateContainerSchedulingState) -> str:
    return _list(
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
        _list("new", (_placed(item.allocation_key, item.node_id) for item in it.new)),
        _list("asks back", map(_named, asked_back)),
        _list("released", map(_named, released)),
        _list("asks taken back", map(_named, it.released_asks)),
        _list("rejected", map(_refused_key, it.rejected)),
        _list("rejected", map(_refused_key, it.rejected_allocations)),
    )


def _call_update_application(message: c.CallUpdateApplication) -> str:
    it = message.response
    return _joined(
        _list("accepted", (_taken(item.application_id, item) for item in it.accepted)),
        _list("rejected", (f"{item.application_id} ({item.reason})" for item in it.rejected)),
        _list("updated", (f"{item.application_id} {item.state}" for item in it.updated)),
    )


def _call_update_node(message: c.CallUpdateNode) -> str:
    it = message.response
    return _joined(
        _list("accepted", (item.node_id for item in it.accepted)),
        _list("rejected", (f"{item.node_id} ({item.reason})" for item in it.rejected)),
    )


def _new_allocations(message: rm.RMNewAllocations) -> str:
    alone = (_placed(it.spec.key, it.node_id) for it in message.allocations)
    in_runs = (pair for run in message.runs for pair in zip(run.specs, run.node_ids, strict=False))
    return _list("new", (*alone, *(_placed(spec.key, node_id) for spec, node_id in in_runs)))


def _facts_appended(message: s.FactsAppended) -> str:
    last = message.first_revision + f.revisions_of(message.facts) - 1
    if last == message.first_revision:
        return f"{message.partition} revision {last}"
    return f"{message.partition} revisions {message.first_revision} to {last}"


def _proposals(message: s.ProposeAllocations) -> str:
    return _list(f"as of {message.as_of}:", map(_proposal, message.proposals))


def _proposal(it: Proposal) -> str:
    match it:
        case AdmitGang():
            return f"the gang of {it.application_id}"
        case Replace():
            return f"swap {it.key} for {it.placeholder} on {it.node_id}"
        case CancelPlaceholder():
            return f"no {it.placeholder} for {it.key}"
        case Preempt():
            return f"{len(it.victims)} victims for {_beneficiary(it.beneficiary)}"
        case _:
            return _placed(it.key, it.node_id)


def _beneficiary(it: Beneficiary) -> str:
    whom = f"{it.application_id} {it.key}" if it.key else it.queue
    return f"{whom} ({it.rule.value})"


Question = p.Question | c.CallPredicates | c.CallPreemptionPredicates


def _question(message: Question) -> str:
    return _placed(message.args.allocation_key, message.args.node_id)


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
    rm.RMGivenBackUnasked: lambda it: _list("gave back unasked", it.uuids),
    rm.RMRejectedAllocationAsk: lambda it: _list("rejected", map(_refused_key, it.rejected)),
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
    p.NodeDenied: lambda it: f"{it.application_id} {_placed(it.key, it.node_id)}: {it.reason}",
    p.NodesAllowed: lambda it: _list(
        "asks", (f"{ask.application_id} {ask.key}" for ask in it.asks)
    ),
    s.ReportPolicyFailed: lambda it: f"{it.policy} of {it.queue or 'the nodes'}: {it.failure}",
    s.ReportWaiting: lambda it: _joined(
        _states(it.observations),
        _list(
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
