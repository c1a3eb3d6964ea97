"""Quota preemption: when a queue that is above its maximum is made to give back.

A queue whose maximum was lowered below its usage has the delay of its configuration to come down by
itself. Then work of it is preempted, once. Work that was charged by force has the same effect
(R-084). A queue that is under its maximum again is left alone.
"""

from yunikorn_actors.config import QueueProperties
from yunikorn_actors.machines.context.unit_of_work import UnitOfWork
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.queues import Queue, QueueSpec
from yunikorn_actors.values.resource import INT64_MAX, Resource


def queue_reconfigured(unit: UnitOfWork, queue: Queue, old: QueueSpec) -> None:
    """Arm, move or clear the time of a queue that was there before."""
    state = unit.state
    delay_ns = queue.properties.quota_preemption_delay_ns
    due_ns = state.quotas.get(queue.path)
    # Off, or not above: an armed time is over.
    if not delay_ns or not _is_exceeded(queue):
        if due_ns is not None:
            _clear(unit, queue)
        return
    old_delay_ns = QueueProperties.of(old.properties).quota_preemption_delay_ns
    # Both where the maximum is equal. Types may move in different directions: then it is neither.
    is_lowered, is_raised = _is_within(queue.spec.max, old.max), _is_within(old.max, queue.spec.max)
    if due_ns is None:
        # A maximum that was exceeded before is enforced when it becomes lower still, or when
        # enforcing is switched on.
        if is_lowered and (not is_raised or not old_delay_ns):
            _arm(unit, queue, unit.now_ns + delay_ns)
    elif (is_lowered or is_raised) and delay_ns != old_delay_ns:
        # Moved by the difference: the time that has passed counts.
        _arm(unit, queue, due_ns + delay_ns - old_delay_ns)


def _is_within(one: Resource | None, other: Resource | None) -> bool:
    """Whether a limit nowhere allows more than another; where it says nothing it allows all."""
    limit = one or {}
    return all(limit.get(kind, INT64_MAX) <= size for kind, size in (other or {}).items())


def charged_by_force(unit: UnitOfWork, app: Application) -> None:
    """Work was charged by force, above any quota: the quotas are enforced later."""
    config = unit.state.config
    if config is None or not config.quota_preemption_enabled:
        return
    for queue in app.queue.lineage:
        delay_ns = queue.properties.quota_preemption_delay_ns
        # Its clock runs already: work by force does not begin it anew.
        armed = queue.path in unit.state.quotas
        if delay_ns and queue.spec.managed and not armed and _is_exceeded(queue):
            _arm(unit, queue, unit.now_ns + delay_ns)


def follow(unit: UnitOfWork) -> None:
    """Forget the armed time of each queue that has come down by itself."""
    for path in tuple(unit.state.quotas):
        queue = unit.state.queues[path]
        if not _is_exceeded(queue):
            _clear(unit, queue)


def _is_exceeded(queue: Queue) -> bool:
    # Only types that the maximum names; what is allocated counts, promises do not.
    used = queue.allocated
    return any(used.get(kind, 0) > size for kind, size in (queue.spec.max or {}).items())


def _arm(unit: UnitOfWork, queue: Queue, due_ns: int) -> None:
    unit.record(
        f.QuotaPreemptionArmed(path=queue.path, due_ns=min(due_ns, INT64_MAX), at_ns=unit.now_ns),
    )


def _clear(unit: UnitOfWork, queue: Queue) -> None:
    unit.record(f.QuotaPreemptionCleared(path=queue.path, at_ns=unit.now_ns))
