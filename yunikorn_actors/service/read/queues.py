"""Queues as YuniKorn's REST interface shows them."""

from collections.abc import Iterable
from functools import partial
from typing import Final, Self

from yunikorn_actors.config import PreemptionPolicy, TemplateConfig
from yunikorn_actors.config.policy_names import SHIPPED_NAMES, PolicyNames
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.planning.preemption.victim_rules import delay_of
from yunikorn_actors.policies.folds import policy_name
from yunikorn_actors.recording.secret_values import masked_texts
from yunikorn_actors.service.read.incremental_answers import AT_ONCE, Each, Pauses, Steps
from yunikorn_actors.service.read.rendering import (
    Value,
    go_duration,
    lean,
    most,
    percentages,
    used,
)
from yunikorn_actors.service.read.replica import Book
from yunikorn_actors.state.allocations import Ask
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.values.resource import (
    INT32_MAX,
    INT32_MIN,
    Resource,
    component_wise_min,
    sub_only_existing,
)

NO_PRIORITY: Final = INT32_MIN
"""Of a queue in which nothing waits."""
ALWAYS: Final = frozenset({
    "queuename", "partition", "isLeaf", "isManaged", "currentPriority", "prioritySorting",
    "preemptionEnabled", "isPreemptionFence", "isPriorityFence",
})  # fmt: skip


class Queues:
    """The queues of one partition, at one moment: what belongs to several is worked out once."""

    def __init__(self, book: Book, settings: Settings, names: PolicyNames) -> None:
        """Made with `measured`, which looks at all asks."""
        self._book, self._names = book, names
        self._state = book.state
        self._settings = settings
        """They count where a queue says nothing."""
        self._priorities: dict[str, int] = {}
        """What each queue exports, by path; without those in which nothing waits."""
        self._ids = dict[int, str]()

    @classmethod
    def measured(
        cls, book: Book, settings: Settings, names: PolicyNames = SHIPPED_NAMES
    ) -> "Steps[Self]":
        self = cls(book, settings, names)
        pauses = Pauses()
        for app in self._state.applications.values():
            self._ids[app.serial] = app.id
            highest = NO_PRIORITY
            for ask in app.asks.values():
                if ask.remaining and ask.spec.priority > highest:
                    highest = ask.spec.priority
                if pauses.due:
                    yield
            self._raise(app.queue, highest)
            if pauses.due:
                yield
        return self

    def tree(self) -> Value:
        """Return root with everything below it; it alone names its partition."""
        return self.queue(self._state.root, subtree=True) | {"partition": self._book.short_name}

    def queue(self, queue: Queue, *, subtree: bool) -> Value:
        children = sorted(queue.children.values(), key=lambda child: child.spec.position)
        below: list[Value] | Each = []
        if subtree and children:
            show = partial(self.queue, subtree=True)
            # A large tree is not made at once, however few children each queue has.
            is_large = len(self._state.queues) > AT_ONCE
            below = Each(show, children) if is_large else [show(child) for child in children]
        value = self._own(queue) | {
            "childNames": [child.path for child in children],
            "children": below,
        }
        return lean(value, ALWAYS)

    def _own(self, queue: Queue) -> Value:
        spec, properties = queue.spec, queue.properties
        own_max = self._max(queue)
        return {
            "queuename": queue.path,
            "status": queue.state.value,
            "partition": "",
            "pendingResource": used(queue.pending),
            "maxResource": most(own_max),
            "guaranteedResource": most(spec.guaranteed),
            "allocatedResource": used(queue.allocated),
            "preemptingResource": used(queue.preempting),
            "headroom": most(self._headroom(queue)),
            "isLeaf": queue.is_leaf,
            "isManaged": spec.managed,
            "properties": masked_texts(dict(sorted(spec.properties.items()))),
            "parent": "" if queue.parent is None else queue.parent.path,
            "template": _template(spec.template),
            "absUsedCapacity": percentages(queue.allocated, own_max),
            "maxRunningApps": spec.max_applications,
            "runningApps": queue.running_apps,
            "currentPriority": self._priorities.get(queue.path, NO_PRIORITY),
            "allocatingAcceptedApps": sorted(self._ids[it] for it in queue.allocating),
            "sortingPolicy": self._sorting(queue),
            "prioritySorting": properties.application_sort_priority,
            "preemptionEnabled": properties.preemption_policy is not PreemptionPolicy.DISABLED,
            "isPreemptionFence": properties.preemption_policy is PreemptionPolicy.FENCE,
            "preemptionDelay": go_duration(delay_of(queue, self._settings.preemption_delay_ns)),
            "quotaPreemptionDelay": go_duration(properties.quota_preemption_delay_ns),
            "isPriorityFence": properties.priority_fence,
            "priorityOffset": properties.priority_offset,
        }

    def _sorting(self, queue: Queue) -> str:
        """Name the policy; a name that stands for nothing counts as not set."""
        properties, named = queue.properties, policy_name(queue)
        if queue.is_leaf:
            is_known = named in self._names.applications
            return named if is_known else properties.application_sort_policy.value
        is_known = named in self._names.queues
        return named if is_known else properties.queue_sort_policy.value

    def _max(self, queue: Queue) -> Resource | None:
        return self._state.capacity if queue.parent is None else queue.spec.max

    def _headroom(self, queue: Queue) -> Resource | None:
        """What is left on the whole path, where anything bounds it."""
        room: Resource | None = None
        for level in queue.lineage:
            room = component_wise_min(room, sub_only_existing(self._max(level), level.allocated))
        return room

    def _raise(self, leaf: Queue, priority: int) -> None:
        """Raise the priority of each queue up the path that had a lower one."""
        # Offsets and fences change it on the way up.
        for level in leaf.lineage:
            if priority == NO_PRIORITY:
                return
            outside = level.properties.priority_outside(priority)
            priority = max(NO_PRIORITY, min(INT32_MAX, outside))
            # Not the highest here, so above neither.
            if priority <= self._priorities.get(level.path, NO_PRIORITY):
                return
            self._priorities[level.path] = priority


def highest_priority(asks: Iterable[Ask]) -> int:
    """Return the highest priority of those that wait."""
    return max((ask.spec.priority for ask in asks if ask.remaining), default=NO_PRIORITY)


def _template(template: TemplateConfig | None) -> Value:
    if template is None:
        return {}
    return lean(
        {
            "maxApplications": template.max_applications,
            "maxResource": most(template.max),
            "guaranteedResource": most(template.guaranteed),
            "properties": masked_texts(dict(sorted(template.properties.items()))),
        }
    )
