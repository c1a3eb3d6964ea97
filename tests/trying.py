"""What trying everything in sorted order decides: slow, and nothing to be wrong about.

It knows nothing of lanes, piles or kept orders: it sorts, tries, and starts again after each
placement. The planner must decide the same.
"""

from collections.abc import Iterator
from functools import cmp_to_key

from msgspec import Struct
from written import Written

from yunikorn_actors.domain.allocation import Ask
from yunikorn_actors.domain.application import SCHEDULABLE, Application
from yunikorn_actors.domain.partition import PartitionState
from yunikorn_actors.domain.queue import Queue
from yunikorn_actors.domain.resource import Resource, charge, fits_in, fits_in_max_undef, sub
from yunikorn_actors.domain.share import comp_usage_ratio, fair_share
from yunikorn_actors.planning.audit import contradictions

Decision = tuple[str, str, str]
"""Application, ask, node."""


class Trial(Struct):
    """What is used and what waits, as the decisions of one pass change it."""

    state: PartitionState
    free: dict[str, Resource]
    used: dict[str, Resource]
    app_used: dict[str, Resource]
    left: dict[tuple[str, str], int]

    @classmethod
    def of(cls, state: PartitionState) -> "Trial":
        return cls(
            state=state,
            free={n.id: dict(n.available) for n in state.nodes.values() if n.is_schedulable},
            used={path: dict(queue.allocated) for path, queue in state.queues.items()},
            app_used={app.id: dict(app.allocated) for app in state.applications.values()},
            left={
                (app.id, key): ask.remaining
                for app in state.applications.values()
                for key, ask in app.asks.items()
            },
        )

    # -- order

    def queues(self, parent: Queue) -> list[Queue]:
        return sorted(parent.children.values(), key=self._queue_key)

    def _queue_key(self, queue: Queue) -> tuple[int, float, int, str]:
        ranks = [self._priority(app) for app in self._apps_below(queue) if self.asks(app)]
        share = fair_share(self.used[queue.path], queue.spec.guaranteed, self._fair_max(queue))
        waiting = sum(
            sum(ask.spec.resource.values()) * self.left[app.id, ask.spec.key]
            for app in self._apps_below(queue)
            for ask in app.asks.values()
        )
        return (-max(ranks, default=0), share, -waiting, queue.path)

    def _fair_max(self, queue: Queue) -> Resource:
        if queue.parent is None:
            return self.state.capacity
        inherited = self._fair_max(queue.parent)
        return inherited | (queue.spec.max or {}) if inherited else {}

    def _apps_below(self, queue: Queue) -> Iterator[Application]:
        for app in self.state.applications.values():
            if queue in app.queue.lineage and app.state in SCHEDULABLE:
                yield app

    def apps(self, leaf: Queue) -> list[Application]:
        properties = leaf.properties

        def compare(left: Application, right: Application) -> int:
            urgency = self._priority(right) - self._priority(left)
            by_policy = left.submitted_ns - right.submitted_ns
            if properties.application_sort_policy == "fair":
                used = self.app_used
                by_policy = comp_usage_ratio(used[left.id], used[right.id], leaf.spec.guaranteed)
            first, second = urgency, by_policy
            if not properties.application_sort_priority:
                first, second = by_policy, urgency
            age = left.submitted_ns - right.submitted_ns
            return first or second or age or left.serial - right.serial

        apps = [app for app in self._apps_below(leaf) if self.asks(app)]
        return sorted(apps, key=cmp_to_key(compare))

    def _priority(self, app: Application) -> int:
        return max(ask.spec.priority for ask in self.asks(app))

    def asks(self, app: Application) -> list[Ask]:
        waiting = [ask for key, ask in app.asks.items() if self.left[app.id, key]]
        return sorted(waiting, key=lambda a: (-a.spec.priority, a.created_ns, a.sequence))

    def nodes(self) -> list[str]:
        return sorted(self.free, key=lambda id_: (self._node_share(id_), id_))

    def _node_share(self, id_: str) -> float:
        capacity = self.state.nodes[id_].capacity
        kinds = [kind for kind in ("memory", "vcore") if kind in capacity]
        used = 0.0
        for kind in kinds:
            used += 1.0 - self.free[id_].get(kind, 0) / capacity[kind]
        share = used / len(kinds) if kinds else 0.0
        config = self.state.config
        return 1.0 - share if config and config.node_sort.policy == "binpacking" else share

    # -- decisions

    def place(self, queue: Queue) -> Decision | None:
        """Place the first ask below this queue that can be placed."""
        if not queue.is_leaf:
            return next((d for d in map(self.place, self.queues(queue)) if d is not None), None)
        for app in self.apps(queue):
            for ask in self.asks(app):
                if self._has_quota(queue, ask.spec.resource):
                    for node in self.nodes():
                        if fits_in(ask.spec.resource, self.free[node]):
                            return self._charge(app, ask, node)
        return None

    def _has_quota(self, leaf: Queue, wanted: Resource) -> bool:
        for level in leaf.lineage:
            room = self.state.capacity if level.parent is None else level.spec.max
            if room is not None:
                left = {
                    kind: size - self.used[level.path].get(kind, 0) for kind, size in room.items()
                }
                fits = fits_in if level.parent is None else fits_in_max_undef
                if not fits(wanted, left):
                    return False
        return True

    def _charge(self, app: Application, ask: Ask, node: str) -> Decision:
        amount = ask.spec.resource
        self.left[app.id, ask.spec.key] -= 1
        self.free[node] = sub(self.free[node], amount)
        charge(self.app_used[app.id], amount)
        for level in app.queue.lineage:
            charge(self.used[level.path], amount)
        return (app.id, ask.spec.key, node)


def expected(state: PartitionState) -> list[Decision]:
    trial = Trial.of(state)
    decisions: list[Decision] = []
    while (decision := trial.place(state.root)) is not None:
        decisions.append(decision)
    return decisions


def decide(written: Written) -> list[Decision]:
    """Plan to the end, take note, and take everything back."""
    proposals = written.plan()
    decisions = [(p.application_id, p.key, p.node_id) for p in proposals]
    for proposal in proposals:
        written.planner.reject(proposal.proposal_id)
    assert [] == contradictions(written.planner)
    return decisions
