"""A state dump: a partition as plain values, for people, digests and comparisons.

Amounts leave the books here, so they are clamped to int64 and zeros are left out; everything stands
in an order that does not depend on how the state came about.
"""

from typing import Any

from msgspec import to_builtins

from yunikorn_actors.config import PartitionConfig
from yunikorn_actors.state.allocations import Allocation, AskSpec
from yunikorn_actors.state.applications import (
    Application,
    ApplicationSpec,
    FinishedApplication,
    StateLog,
    Usage,
    UsageHistory,
)
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.values.recorded_form import as_recorded
from yunikorn_actors.values.resource import Resource, pruned, saturated

DUMP_FORMAT = 1
"""Number of the form of a state dump: another one where a reader of this one would be misled."""
CORE_DUMP_REMEDY = "write one with json.dump(core.state_dump(), file)"
DUMP_REMEDY = f"{CORE_DUMP_REMEDY}, or take /debug/fullstatedump of a service"
"""What to do where something else was given, and the dump of a service is taken as well."""


def snapshot(state: PartitionState) -> dict[str, Any]:
    return {
        "name": state.name,
        "revision": state.revision,
        "held": state.suspended,
        "behind": state.is_backpressured,
        **({} if state.long_work is None else {"long_work": state.long_work.text}),
        "config": _config(state.config),
        "capacity": _amounts(state.capacity),
        "allocations": state.allocation_count,
        # Sorted everywhere: a replica is compared with the truth by this, and both came about
        # differently.
        "refused_node_actions": state.refused_node_actions,
        "queues": {path: _queue(state, queue) for path, queue in sorted(state.queues.items())},
        "nodes": {id_: _node(node) for id_, node in sorted(state.nodes.items())},
        "applications": {id_: _application(app) for id_, app in sorted(state.applications.items())},
        "remembered": {
            "ended": len(state.finished) - len(state.rejected),
            "rejected": len(state.rejected),
        },
        "finished": [_finished(app) for _, app in sorted(state.finished.items())],
        "users": {user: _usages(by_path) for user, by_path in sorted(state.users.items())},
        "groups": {group: _usages(by_path) for group, by_path in sorted(state.groups.items())},
        "quotas": dict(sorted(state.quotas.items())),
        "foreign": {
            key: {"node": item.node_id, "resource": _amounts(item.resource)}
            for key, item in sorted(state.foreign.items())
        },
    }


_ELSEWHERE = frozenset(
    {
        "application_id",
        "queue_name",
        "created_ns",
        "unresolved",
        "key",
        "max_allocations",
        "later_form",
    }
)
"""Fields that stand in a dump under another name, or concern the interface."""


def add_declared(dump: dict[str, Any], state: PartitionState) -> None:
    """Add to a snapshot what was declared: keys that a dump may lack.

    They stand in no snapshot, because recordings have digests of those.
    """
    for id_, row in dump["applications"].items():
        app = state.applications[id_]
        _declare(row, app.spec)
        for it in row["asks"]:
            _declare(it, app.asks[it["key"]].spec)
        for it in row["allocations"]:
            _declare(it, app.allocations[it["uuid"]].spec)
        for it in row["swaps"]:
            member = app.asks[it["key"]].spec
            it.update(resource=_amounts(member.resource), priority=member.priority)
            # Its placeholder is that which it replaces.
            _declare(it, member)


def _declare(row: dict[str, Any], spec: ApplicationSpec | AskSpec) -> None:
    for name, value in to_builtins(spec).items():
        if name not in row and name not in _ELSEWHERE:
            row[name] = value


def _amounts(resource: Resource | None) -> dict[str, int]:
    return dict(sorted(saturated(pruned(resource)).items())) if resource else {}


def _limit(resource: Resource | None) -> dict[str, int]:
    """A limit of zero is a limit, so zeros stay."""
    return {} if resource is None else dict(sorted(saturated(resource).items()))


def _config(config: PartitionConfig | None) -> dict[str, Any]:
    """Return the settings of the partition itself, without its queues."""
    if config is None:
        return {}
    names = [name for name in config.__struct_fields__ if name != "root"]
    return {name: as_recorded(getattr(config, name)) for name in names}


def _queue(state: PartitionState, queue: Queue) -> dict[str, Any]:
    spec = queue.spec
    return {
        "state": queue.state.value,
        "leaf": spec.leaf,
        "dynamic": not spec.managed,
        # The root has no quota of its own: its maximum is the capacity.
        "max": _limit(state.capacity if queue.parent is None else spec.max),
        "guaranteed": _limit(spec.guaranteed),
        "max_applications": spec.max_applications,
        "properties": dict(sorted(spec.properties.items())),
        "position": spec.position,
        "submit_acl": spec.submit_acl,
        "admin_acl": spec.admin_acl,
        "limits": as_recorded(spec.limits),
        "template": as_recorded(spec.template),
        "allocated": _amounts(queue.allocated),
        "pending": _amounts(queue.pending),
        "preempting": _amounts(queue.preempting),
        "claimed": _amounts(queue.earmarked),
        **({"preempted": [*map(list, queue.preempted.items())]} if queue.preempted else {}),
        "running_apps": queue.running_apps,
        "allocating": sorted(queue.allocating),
        "reserving": sorted(queue.reserving),
        "applications": sorted(queue.applications.values()),
    }


def _node(node: Node) -> dict[str, Any]:
    return {
        "capacity": _amounts(node.capacity),
        "allocated": _amounts(node.allocated),
        "occupied": _amounts(node.occupied),
        "occupied_reported": _amounts(node.occupied_reported),
        "available": _amounts(node.available),
        "schedulable": node.is_schedulable,
        "drained": node.drained,
        "ready": node.ready,
        **({"awaited": True} if node.awaited else {}),
        "attributes": dict(sorted(node.attributes.items())),
        "allocations": sorted(node.allocations),
        "incoming": sorted(node.incoming),
        "reservations": [
            list(key)
            for key, kept in sorted(node.reservations.items())
            for _ in range(kept.repeats)
        ],
        **({} if node.parts is None else {"devices": list(node.parts)}),
    }


def _application(app: Application) -> dict[str, Any]:
    spec = app.spec
    return {
        "serial": app.serial,
        "state": app.state.value,
        "queue": app.queue.path,
        "user": spec.user,
        "groups": list(spec.groups),
        "group": app.group,
        "submitted_ns": app.submitted_ns,
        "started_ns": app.started_ns,
        **_state_log(app.state_log),
        "resource_seconds": _history(app.history),
        "allocated": _amounts(app.allocated),
        "placeholders": _amounts(app.placeholders),
        "pending": _amounts(app.pending),
        "asks": [
            {
                "key": ask.spec.key,
                "sequence": ask.sequence,
                "resource": _amounts(ask.spec.resource),
                "repeats": ask.remaining,
                "taken": ask.taken,
                "priority": ask.spec.priority,
                "created_ns": ask.created_ns,
                "task_group": ask.spec.task_group,
                "placeholder": ask.spec.placeholder,
                # Earlier names stay in dumps, because recordings have digests of these: `told`,
                # `claimed`, `crowd`, `held`.
                "told": ask.reported.value,
                "shortage": ask.shortage.value,
                "reserved": list(ask.reserved),
            }
            for ask in app.waiting_asks()
        ],
        "allocations": [_allocation(item) for _, item in sorted(app.allocations.items())],
        "timers": {kind: timer.due_ns for kind, timer in sorted(app.timers.items())},
        "reservations": app.reservation_count,
        "task_groups": {
            name: {"count": group.count, "replaced": group.replaced, "timed_out": group.timed_out}
            for name, group in sorted(app.task_groups.items())
        },
        "admitted": app.is_admitted,
        "lapsed_ns": app.lapsed_ns,
        "crowd": app.run_limit.value,
        "placed": _amounts(app.placed),
        **({"reported": reported} if (reported := _amounts(app.reported)) else {}),
        **({"spared": spared} if (spared := _amounts(app.spared)) else {}),
        "swaps": [
            {"placeholder": uuid, "key": swap.key, "node": swap.node_id, "crosses": swap.crosses}
            for uuid, swap in sorted(app.swaps.items())
        ],
    }


def _allocation(item: Allocation) -> dict[str, Any]:
    return {
        "uuid": item.uuid,
        "key": item.spec.key,
        "node": item.node_id,
        "resource": _amounts(item.resource),
        "priority": item.spec.priority,
        "placeholder": item.spec.placeholder,
        "task_group": item.spec.task_group,
        "allocated_ns": item.allocated_ns,
        "instance_type": item.instance_type,
        "charged_s": item.charged_s,
        "overdue": item.is_overdue,
        "releasing": "" if item.releasing is None else item.releasing.name,
        "preempted_by": "" if item.beneficiary is None else item.beneficiary.rule.value,
        **({"devices": list(item.devices)} if item.devices else {}),
    }


def _history(exact: UsageHistory) -> dict[str, Any]:
    history = exact.saturated()
    parts = {
        "used": history.used,
        "placeholder": history.placeholder,
        "preempted": history.preempted,
    }
    return {
        name: {instance: _amounts(amounts) for instance, amounts in sorted(part.items())}
        for name, part in parts.items()
    }


def _finished(app: FinishedApplication) -> dict[str, Any]:
    return {
        "application": app.spec.application_id,
        "serial": app.serial,
        "state": app.state.value,
        "queue": app.queue,
        "message": app.message,
        "user": app.spec.user,
        "submitted_ns": app.submitted_ns,
        "started_ns": app.started_ns,
        "finished_ns": app.state_log.entries[-1].at_ns,
        **_state_log(app.state_log),
        "resource_seconds": _history(app.history),
    }


def _state_log(log: StateLog) -> dict[str, Any]:
    return {
        "state_log": [[it.at_ns, it.state.value] for it in log.entries],
        "state_log_dropped": log.dropped,
    }


def _usages(by_path: dict[str, Usage]) -> dict[str, Any]:
    return {
        path: {"usage": _amounts(usage.amounts), "running_apps": len(usage.running)}
        for path, usage in sorted(by_path.items())
        if not usage.is_empty()
    }
