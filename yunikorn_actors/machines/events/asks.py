"""Event records of asks and their allocations: coming, waiting, placed, gone.

An allocation is an event of its application, its ask, its node, its queue, and of its user in every
queue of the path; all of it follows from the one fact.
"""

from functools import partial
from typing import Any

from yunikorn_actors.machines.events.record import (
    Builder,
    Chosen,
    Fixed,
    event_record,
    of_request,
    without_runtime,
)
from yunikorn_actors.si import ChangeDetail, ChangeType, EventRecord, EventType
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.gates import GateKind
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.values.resource import Resource, describe

_D = ChangeDetail
_NONE, _SET = ChangeType.NONE, ChangeType.SET
_ADD, _REMOVE = ChangeType.ADD, ChangeType.REMOVE
_REQUEST, _APP, _NODE = EventType.REQUEST, EventType.APP, EventType.NODE
_QUEUE, _USER = EventType.QUEUE, EventType.USERGROUP


def ask_added(fact: f.AskAdded | f.AskReplaced) -> EventRecord:
    """Say as well that a run time counts as none: nobody would see why such an ask waits."""
    spec = fact.spec
    return event_record(
        _APP,
        spec.application_id,
        fact,
        _ADD,
        _D.APP_REQUEST,
        reference=spec.key,
        message=without_runtime(f"request '{spec.key}'", spec.tags),
        resource=spec.resource,
    )


def ask_removed(fact: f.AskRemoved) -> EventRecord:
    timeout = fact.type is TerminationType.TIMEOUT
    detail = _D.REQUEST_TIMEOUT if timeout else _D.REQUEST_CANCEL
    return event_record(
        _APP,
        fact.application_id,
        fact,
        _REMOVE,
        detail,
        reference=fact.key,
        resource=fact.resource,
    )


def of_report(fact: f.AskReported) -> tuple[Builder, ...]:
    # The shortage has records of its own.
    return () if fact.of_shortage else (_ask_reported,)


def _ask_reported(fact: f.AskReported) -> EventRecord:
    return _tell_of(fact, f"Request '{fact.key}' is {fact.state.value}: {fact.reason}")


def _tell_of(
    fact: f.AskReported | f.AskShortageChanged | f.AskRefused, message: str
) -> EventRecord:
    return of_request(fact, fact.key, message)


def ask_refused(fact: f.AskRefused) -> EventRecord:
    reasons = "; ".join(f"{reason} ({n}x)" for reason, n in sorted(fact.refusals.items()))
    return _tell_of(fact, f"Unschedulable request '{fact.key}': {reasons}")


def _over_headroom(fact: f.AskShortageChanged) -> EventRecord:
    where = f"does not fit in queue '{fact.queue}'"
    return _tell_of(fact, f"Request '{fact.key}' {where} {_amounts(fact)}")


def _in_headroom(fact: f.AskShortageChanged) -> EventRecord:
    return _tell_of(fact, f"Request '{fact.key}' has become schedulable in queue '{fact.queue}'")


def _over_quota(fact: f.AskShortageChanged) -> EventRecord:
    where = "exceeds the available user quota"
    return _tell_of(fact, f"Request '{fact.key}' {where} {_amounts(fact)}")


def _in_quota(fact: f.AskShortageChanged) -> EventRecord:
    return _tell_of(fact, f"Request '{fact.key}' fits in the available user quota")


def _amounts(fact: f.AskShortageChanged) -> str:
    return f"(requested {describe(fact.resource)}, available {describe(fact.available)})"


_BEGINS: dict[GateKind, tuple[Builder, ...]] = {
    GateKind.NONE: (),
    GateKind.QUEUE: (_over_headroom,),
    GateKind.QUOTA: (_over_quota,),
}
_ENDS: dict[GateKind, tuple[Builder, ...]] = {
    GateKind.NONE: (),
    GateKind.QUEUE: (_in_headroom,),
    GateKind.QUOTA: (_in_quota,),
}


def of_shortage(fact: f.AskShortageChanged) -> tuple[Builder, ...]:
    return (*_ENDS[fact.old_shortage], *_BEGINS[fact.shortage])


RELEASE_DETAILS = {
    TerminationType.UNKNOWN_TERMINATION_TYPE: _D.ALLOC_NODEREMOVED,
    TerminationType.STOPPED_BY_RM: _D.ALLOC_CANCEL,
    TerminationType.TIMEOUT: _D.ALLOC_TIMEOUT,
    TerminationType.PREEMPTED_BY_SCHEDULER: _D.ALLOC_PREEMPT,
    TerminationType.PLACEHOLDER_REPLACED: _D.ALLOC_REPLACED,
}


def _app_of(fact: Any) -> str:  # noqa: ANN401 - facts about allocations
    id_: str = (
        fact.spec.application_id if type(fact) is f.AllocationRecovered else (fact.application_id)
    )
    return id_


def _key_of(fact: Any) -> str:  # noqa: ANN401
    key: str = fact.spec.key if type(fact) is f.AllocationRecovered else fact.key
    return key


def _amount_of(fact: Any) -> Resource:  # noqa: ANN401
    amount: Resource = fact.spec.resource if type(fact) is f.AllocationRecovered else fact.resource
    return amount


def _changed(change: ChangeType, fact: Any) -> Resource:  # noqa: ANN401
    """Return the amount that usage grows or shrinks by; a new size may do both."""
    if type(fact) is not f.AllocationResized:
        return _amount_of(fact)
    before, after = fact.old_resource, fact.resource
    # Removing is the same with the sizes changed over.
    if change is _REMOVE:
        before, after = after, before
    grown = {kind: quantity - before.get(kind, 0) for kind, quantity in after.items()}
    return {kind: quantity for kind, quantity in grown.items() if quantity > 0}


def _app_alloc(fact: Any) -> EventRecord:  # noqa: ANN401
    return event_record(
        _APP,
        _app_of(fact),
        fact,
        _ADD,
        _D.APP_ALLOC,
        reference=_key_of(fact),
        resource=_amount_of(fact),
    )


def _request_alloc(fact: f.AllocationCommitted) -> EventRecord:
    return event_record(
        _REQUEST,
        fact.key,
        fact,
        _SET,
        _D.REQUEST_ALLOC,
        reference=fact.application_id,
        resource=fact.resource,
    )


def _app_released(fact: f.AllocationReleased) -> EventRecord:
    return _app_loses(fact, RELEASE_DETAILS[fact.type])


def _ask_ended(fact: f.AllocationReleased) -> EventRecord:
    return _app_loses(fact, _D.REQUEST_CANCEL)


def _app_loses(fact: f.AllocationReleased, detail: ChangeDetail) -> EventRecord:
    return event_record(
        _APP,
        fact.application_id,
        fact,
        _REMOVE,
        detail,
        reference=fact.key,
        resource=fact.resource,
    )


def node_alloc(change: ChangeType, fact: Any) -> EventRecord:  # noqa: ANN401
    return event_record(
        _NODE,
        fact.node_id,
        fact,
        change,
        _D.NODE_ALLOC,
        reference=_key_of(fact),
        resource=_amount_of(fact),
    )


def _queue_alloc(change: ChangeType, fact: Any) -> EventRecord:  # noqa: ANN401
    return event_record(
        _QUEUE,
        fact.queue,
        fact,
        change,
        _D.QUEUE_ALLOC,
        reference=_app_of(fact),
        resource=_amount_of(fact),
    )


def _usage(
    owner: str,
    detail: ChangeDetail,
    change: ChangeType,
    level: int,
    fact: Any,  # noqa: ANN401
) -> EventRecord:
    """Tell the usage of a user or a group in one queue of the path; level 0 is the root."""
    # Worked out from the path alone: the publisher has no queues.
    path = ".".join(fact.queue.split(".")[: level + 1])
    return event_record(
        _USER,
        getattr(fact, owner),
        fact,
        change,
        detail,
        reference=path,
        resource=_changed(change, fact),
    )


# Deeper queues get no more user records than this.
DEPTH_MAX = 64
_USER_LEVELS, _GROUP_LEVELS = (
    {
        change: tuple(partial(_usage, owner, detail, change, level) for level in range(DEPTH_MAX))
        for change in (_ADD, _REMOVE)
    }
    for owner, detail in (("user", _D.UG_USER_RESOURCE), ("group", _D.UG_GROUP_RESOURCE))
)
_COMMITTED = (_app_alloc, _request_alloc, partial(node_alloc, _ADD), partial(_queue_alloc, _ADD))
_RECOVERED = (_app_alloc, partial(node_alloc, _ADD), partial(_queue_alloc, _ADD))
_RELEASED = (_app_released, partial(node_alloc, _REMOVE), partial(_queue_alloc, _REMOVE))
_ENDED = (*_RELEASED, _ask_ended)
_ByDepth = list[tuple[Builder, ...]]


# Prepared for every depth, so that no builder is made for an allocation.
def _by_depth(first: tuple[Builder, ...], change: ChangeType) -> _ByDepth:
    """Prepare the builders for every depth of a queue, leaf level last."""
    levels = _USER_LEVELS[change]
    return [(*first, *levels[: depth + 1]) for depth in range(DEPTH_MAX)]


_COMMITTED_BY_DEPTH = _by_depth(_COMMITTED, _ADD)
_RECOVERED_BY_DEPTH = _by_depth(_RECOVERED, _ADD)
_RELEASED_BY_DEPTH = _by_depth(_RELEASED, _REMOVE)
_ENDED_BY_DEPTH = _by_depth(_ENDED, _REMOVE)


def _depth(fact: Any) -> int:  # noqa: ANN401
    depth: int = fact.queue.count(".")
    return min(depth, DEPTH_MAX - 1)


def _with_group(by_depth: _ByDepth, change: ChangeType, fact: Any) -> tuple[Builder, ...]:  # noqa: ANN401
    depth: int = min(fact.queue.count("."), DEPTH_MAX - 1)
    if not fact.group:
        return by_depth[depth]
    return (*by_depth[depth], *_GROUP_LEVELS[change][: depth + 1])


_of_commitment = partial(_with_group, _COMMITTED_BY_DEPTH, _ADD)
_of_recovery = partial(_with_group, _RECOVERED_BY_DEPTH, _ADD)


def count_of_run(fact: f.AllocationsCommitted) -> int:
    """Count what the parts have: as many as the depth of the queue says, for each application."""
    # Each part has the records of an allocation at its depth, which is that of its application.
    counts = [len(_of_commitment(charged)) for charged in fact.charged]
    return sum([counts[member] for member in fact.members])


def of_release(fact: f.AllocationReleased) -> tuple[Builder, ...]:
    by_depth = _ENDED_BY_DEPTH if fact.with_ask else _RELEASED_BY_DEPTH
    return _with_group(by_depth, _REMOVE, fact)


def of_resize(fact: f.AllocationResized) -> tuple[Builder, ...]:
    """Only usage changes: no allocation came or went."""
    depth = _depth(fact)
    builders: tuple[Builder, ...] = ()
    for change in (_ADD, _REMOVE):
        if _changed(change, fact):
            groups = _GROUP_LEVELS[change][: depth + 1] if fact.group else ()
            builders = (*builders, *_USER_LEVELS[change][: depth + 1], *groups)
    return builders


FIXED: Fixed = {
    f.AskAdded: (ask_added,),
    f.AskReplaced: (ask_added,),
    f.AskRefused: (ask_refused,),
    f.AskRemoved: (ask_removed,),
    f.ForeignAllocationPut: (partial(node_alloc, ChangeType.ADD),),
    f.ForeignAllocationRemoved: (partial(node_alloc, ChangeType.REMOVE),),
}
CHOSEN: Chosen = {
    f.AskReported: of_report,
    f.AskShortageChanged: of_shortage,
    f.AllocationCommitted: _of_commitment,
    f.AllocationRecovered: _of_recovery,
    f.AllocationReleased: of_release,
    f.AllocationResized: of_resize,
}
