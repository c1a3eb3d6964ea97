"""What the facts about asks tell: that they come and go, and why they wait."""

from yunikorn_actors.machines.events.record import Builder, Chosen, Fixed, event_record, of_request
from yunikorn_actors.si import ChangeDetail, ChangeType, EventRecord, EventType
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.gates import GateKind
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.values.resource import describe

_D = ChangeDetail
_NONE, _ADD, _REMOVE = ChangeType.NONE, ChangeType.ADD, ChangeType.REMOVE
_REQUEST, _APP = EventType.REQUEST, EventType.APP


def ask_added(fact: f.AskAdded | f.AskReplaced) -> EventRecord:
    spec = fact.spec
    return event_record(
        _APP,
        spec.application_id,
        fact,
        _ADD,
        _D.APP_REQUEST,
        reference=spec.key,
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


FIXED: Fixed = {
    f.AskAdded: (ask_added,),
    f.AskReplaced: (ask_added,),
    f.AskRefused: (ask_refused,),
    f.AskRemoved: (ask_removed,),
}
CHOSEN: Chosen = {
    f.AskReported: of_report,
    f.AskShortageChanged: of_shortage,
}
