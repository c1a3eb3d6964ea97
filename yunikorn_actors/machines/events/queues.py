"""Event records of queues, of the partition they are in, and of the limits configured there."""

from functools import partial

from yunikorn_actors.config import LimitConfig
from yunikorn_actors.machines.events.record import Builder, Chosen, Fixed, event_record
from yunikorn_actors.si import ChangeDetail, ChangeType, EventRecord, EventType
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.queues import QueueSpec

_D = ChangeDetail
_SET, _ADD, _REMOVE = ChangeType.SET, ChangeType.ADD, ChangeType.REMOVE
_BEHIND = "its resource manager does not take its messages: nothing new is decided for it"
_TAKES = "its resource manager takes its messages again"
_QUEUE, _USER = EventType.QUEUE, EventType.USERGROUP


def _queue_added(fact: f.QueueAdded) -> EventRecord:
    detail = _D.DETAILS_NONE if fact.spec.managed else _D.QUEUE_DYNAMIC
    return event_record(_QUEUE, fact.path, fact, _ADD, detail)


def queue_removed(fact: f.QueueRemoved) -> EventRecord:
    detail = _D.QUEUE_CONFIG if fact.managed else _D.QUEUE_DYNAMIC
    return event_record(_QUEUE, fact.path, fact, _REMOVE, detail)


def queue_state(fact: f.QueueStateChanged) -> EventRecord:
    """Only the configuration makes a queue drain, or brings it back."""
    message = f"queue state: {fact.state.value}"
    return event_record(_QUEUE, fact.path, fact, _SET, _D.QUEUE_CONFIG, message=message)


def _queue_config(fact: f.QueueReconfigured) -> EventRecord:
    return event_record(_QUEUE, fact.path, fact, _SET, _D.QUEUE_CONFIG)


def _queue_max(fact: f.QueueReconfigured) -> EventRecord:
    return event_record(_QUEUE, fact.path, fact, _SET, _D.QUEUE_MAX, resource=fact.spec.max)


def _suspension(message: str, fact: f.SchedulingHeld) -> EventRecord:
    return event_record(_QUEUE, "root", fact, ChangeType.NONE, _D.DETAILS_NONE, message=message)


def of_suspension(fact: f.SchedulingHeld) -> tuple[Builder, ...]:
    """Record that a manager fell behind, or takes again; one that is away reports that itself."""
    if fact.held and not fact.behind:
        return ()
    return (partial(_suspension, _BEHIND if fact.behind else _TAKES),)


def root_max(fact: f.ClusterResized) -> EventRecord:
    return event_record(_QUEUE, "root", fact, _SET, _D.QUEUE_MAX, resource=fact.capacity)


def machine_replaced(fact: f.MachineReplaced) -> EventRecord:
    """There is no record of a partition as such: its root stands for it."""
    message = f"{fact.machine} was replaced after a failure: {fact.failure}"
    if fact.lost_records or fact.missed_facts:
        message = (
            f"{fact.machine} was replaced after a failure, {fact.lost_records} event records are "
            f"lost and {fact.missed_facts} changes have none: {fact.failure}"
        )
    return event_record(_QUEUE, "root", fact, ChangeType.NONE, _D.DETAILS_NONE, message=message)


def configuration_refused(fact: f.ConfigurationRefused) -> EventRecord:
    """There is no record of a partition as such: its root stands for it."""
    message = f"The configuration was refused, the former one stays: {fact.reason}"
    return event_record(_QUEUE, "root", fact, ChangeType.NONE, _D.QUEUE_CONFIG, message=message)


def policy_failed(fact: f.PolicyFailed) -> EventRecord:
    """That of the nodes is of the root, which stands for the partition."""
    id_ = fact.queue or "root"
    return event_record(_QUEUE, id_, fact, ChangeType.NONE, _D.QUEUE_CONFIG, message=fact.text)


def administrator_acted(fact: f.AdministratorActed) -> EventRecord:
    """Of the node, or else of the root, which stands for the partition."""
    type_, id_ = (EventType.NODE, fact.node_id) if fact.node_id else (_QUEUE, "root")
    message = f"{fact.what} by {fact.by}"
    return event_record(type_, id_, fact, ChangeType.NONE, _D.DETAILS_NONE, message=message)


def _queue_guaranteed(fact: f.QueueReconfigured) -> EventRecord:
    resource = fact.spec.guaranteed
    return event_record(_QUEUE, fact.path, fact, _SET, _D.QUEUE_GUARANTEED, resource=resource)


def _queue_type(fact: f.QueueReconfigured) -> EventRecord:
    message = f"leaf queue: {str(fact.spec.leaf).lower()}"
    return event_record(_QUEUE, fact.path, fact, _SET, _D.QUEUE_TYPE, message=message)


def _limit(
    owner: str,
    change: ChangeType,
    detail: ChangeDetail,
    fact: f.QueueAdded | f.QueueReconfigured,
) -> EventRecord:
    return event_record(_USER, owner, fact, change, detail, reference=fact.path)


def _limit_changes(old: QueueSpec | None, new: QueueSpec) -> tuple[Builder, ...]:
    """Return a record for each user and group whose limit is new, changed or gone."""
    builders: list[Builder] = []
    for detail, names in ((_D.UG_USER_LIMIT, _users), (_D.UG_GROUP_LIMIT, _groups)):
        before = names(old.limits) if old is not None else {}
        after = names(new.limits)
        for owner, limit in after.items():
            if before.get(owner) != limit:
                builders.append(partial(_limit, owner, _SET, detail))
        gone = [owner for owner in before if owner not in after]
        builders.extend(partial(_limit, owner, _REMOVE, detail) for owner in gone)
    return tuple(builders)


def _users(limits: tuple[LimitConfig, ...]) -> dict[str, LimitConfig]:
    return {user: limit for limit in limits for user in limit.users}


def _groups(limits: tuple[LimitConfig, ...]) -> dict[str, LimitConfig]:
    return {group: limit for limit in limits for group in limit.groups}


def of_queue_added(fact: f.QueueAdded) -> tuple[Builder, ...]:
    return (_queue_added, *_limit_changes(None, fact.spec))


def of_queue_change(fact: f.QueueReconfigured) -> tuple[Builder, ...]:
    old, new = fact.old_spec, fact.spec
    changed = (
        # A dynamic queue that changes its spec does so by tags or by a template, and not by
        # configuration.
        (new.managed, _queue_config),
        (old.max != new.max, _queue_max),
        (old.guaranteed != new.guaranteed, _queue_guaranteed),
        (old.leaf != new.leaf, _queue_type),
    )
    found = tuple(builder for differs, builder in changed if differs)
    return (*found, *_limit_changes(old, new))


FIXED: Fixed = {
    f.ClusterResized: (root_max,),
    f.QueueStateChanged: (queue_state,),
    f.MachineReplaced: (machine_replaced,),
    f.ConfigurationRefused: (configuration_refused,),
    f.PolicyFailed: (policy_failed,),
    f.AdministratorActed: (administrator_acted,),
    f.QueueRemoved: (queue_removed,),
}
CHOSEN: Chosen = {
    f.SchedulingHeld: of_suspension,
    f.QueueAdded: of_queue_added,
    f.QueueReconfigured: of_queue_change,
}
