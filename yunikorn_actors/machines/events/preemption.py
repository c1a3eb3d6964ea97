"""Event records of preemption: of victims, of asks without any, and of queues."""

from yunikorn_actors.machines.events.record import Builder, Chosen, Fixed, event_record, of_request
from yunikorn_actors.si import ChangeDetail, ChangeType, EventRecord, EventType
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import PreemptionRule
from yunikorn_actors.values.resource import describe


def victim(fact: f.VictimMarked) -> EventRecord:
    whom = fact.beneficiary
    message = f"Preempted by {whom.key} from application {whom.application_id} in {whom.queue}"
    if whom.rule is PreemptionRule.QUOTA:
        message = f"Preempted by Quota change enforcement process in {whom.queue}"
    return of_request(fact, fact.key, message, fact.resource)


def no_victim(fact: f.PreemptionFailed) -> EventRecord:
    message = (
        f"Unschedulable request '{fact.key}' with required node '{fact.node_id}', "
        "no preemption victim found"
    )
    return of_request(fact, fact.key, message)


def of_decision(fact: f.PreemptionDecided) -> tuple[Builder, ...]:
    """A quota tells how it was enforced, where there was anybody to choose from."""
    enforced = fact.beneficiary.rule is PreemptionRule.QUOTA and fact.victims
    return (_quota_enforced,) if enforced else ()


def _quota_enforced(fact: f.PreemptionDecided) -> EventRecord:
    message = (
        f"Quota Preemption results summary: {len(fact.victims)} allocations are preempted to "
        f"come down to {describe(fact.max)}"
    )
    return event_record(
        EventType.QUEUE,
        fact.beneficiary.queue,
        fact,
        ChangeType.SET,
        ChangeDetail.QUEUE_PREEMPTION,
        message=message,
        resource=fact.max,
    )


FIXED: Fixed = {
    f.VictimMarked: (victim,),
    f.PreemptionFailed: (no_victim,),
}
CHOSEN: Chosen = {
    f.PreemptionDecided: of_decision,
}
