"""Who goes where a queue may have less than it uses, worked out a second time.

What is to go is what the queue uses above its maximum, as far as neither it nor a queue below it
would come below its guarantee. A parent shares that among its queues by what each uses above its
guarantee, a leaf gives what fits into its share, in order, and all leaves together what fits into
the plan. All sums are made anew for each question.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from yunikorn_actors.lab.model import sums
from yunikorn_actors.lab.model.judged_cluster import App, Cluster, Placed, Queue
from yunikorn_actors.lab.model.rules import units
from yunikorn_actors.lab.model.rules.units import ALONE, BROKEN, SURPLUS, WHOLE
from yunikorn_actors.values.durations import HOUR
from yunikorn_actors.values.resource import Resource


class QuotaVictims:
    """Of one decision: who was chosen counts as gone for who is chosen next."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._gone: list[Placed] = []
        self._queue: Queue
        self._plan: Resource = {}
        self._left: Resource = {}

    def victims_of(self, queue: Queue) -> set[str]:
        """Return the UUIDs."""
        above = self._above(queue)
        over = {
            kind: min(self._uses(queue).get(kind, 0) - most, above.get(kind, 0))
            for kind, most in (queue.spec.max or {}).items()
        }
        self._queue = queue
        self._plan = {kind: n for kind, n in over.items() if n > 0}
        self._left = dict(self._plan)
        self._share_out(queue, self._plan)
        return {placed.uuid for placed in self._gone}

    def _uses(self, queue: Queue) -> Resource:
        return sums.stays(self._cluster, queue, self._gone)

    def _above(self, queue: Queue) -> Resource:
        due = queue.spec.guaranteed or {}
        return {k: n - due.get(k, 0) for k, n in self._uses(queue).items() if n > due.get(k, 0)}

    def _weight(self, queue: Queue) -> Resource:
        due = queue.spec.guaranteed
        return {k: n for k, n in self._above(queue).items() if not due or k in due}

    def _share_out(self, queue: Queue, over: Resource) -> None:
        if not any(over.values()):
            return
        below = [it for it in self._cluster.queues.values() if it.parent is queue]
        if not below:
            self._take_from(queue, over)
            return
        weights = [(child, self._weight(child)) for child in below]
        whole = {kind: sum(weight.get(kind, 0) for _, weight in weights) for kind in over}
        for child, weight in sorted(weights, key=lambda it: it[0].path):
            share = {k: n * weight[k] // whole[k] for k, n in over.items() if weight.get(k)}
            self._share_out(child, share)

    def _take_from(self, leaf: Queue, over: Resource) -> None:
        left = dict(over)
        below = leaf.up[: leaf.up.index(self._queue) + 1]
        for unit in list(self._units(leaf, {kind: n for kind, n in over.items() if n})):
            rest = [it for it in unit if it not in self._gone]
            sizes = {kind: sum(it.size.get(kind, 0) for it in rest) for kind in _kinds(rest)}
            fits = all(sizes.get(k, 0) <= n for of in (left, self._left) for k, n in of.items())
            if fits and all(self._may_give(level, sizes, self._plan) for level in below):
                self._gone += rest
                left = {kind: n - sizes.get(kind, 0) for kind, n in left.items()}
                self._left = {kind: n - sizes.get(kind, 0) for kind, n in self._left.items()}

    def _may_give(self, queue: Queue, sizes: Resource, over: Resource) -> bool:
        """Whether it is above its guarantee in what is to go, and not below it afterwards."""
        used = self._uses(queue)
        due = {k: n for k, n in (queue.spec.guaranteed or {}).items() if sizes.get(k, 0) > 0}
        wanted = [kind for kind in due if kind in over] or list(due)
        if due and not any(used.get(kind, 0) > due[kind] for kind in wanted):
            return False
        return all(
            used.get(kind, 0) < n or used.get(kind, 0) - sizes[kind] >= n for kind, n in due.items()
        )

    def _units(self, leaf: Queue, over: Resource) -> Iterator[list[Placed]]:
        """Yield victims that go together: what hurts gangs least, least important and newest."""
        cluster, seen = self._cluster, set[str]()
        able = [it for it in cluster.placed.values() if it.app.leaf is leaf and _may_go(it, over)]
        apps = dict.fromkeys(it.app for it in able)
        parts = {uuid: part for app in apps for uuid, part in self._parts(app, over).items()}
        for placed in sorted(able, key=lambda it: self._order(it, parts[it.uuid], over)):
            if placed.uuid in seen:
                continue
            unit = [placed]
            if parts[placed.uuid] == WHOLE and units.is_bound(placed.app, None):
                unit = units.stay_of(cluster, placed.app)
            seen |= {it.uuid for it in unit if parts[it.uuid] == WHOLE}
            if not any(it.leaving or it.spec.required_node for it in unit):
                yield unit

    def _parts(self, app: App, over: Resource) -> dict[str, int]:
        """Rank all that stays of an application by what its gang loses with it.

        Surplus is what the gang stays whole without, when what is before it is gone as well: what
        may go first, in the order of all victims.
        """
        stays = units.stay_of(self._cluster, app)
        if not units.goes_whole(app):
            return {placed.uuid: ALONE for placed in stays}
        is_gang = any(app.spec.placeholder_ask.values())
        if is_gang and not units.makes_whole(app, stays):
            part = BROKEN if app.leaf.says.preemption_unit is None else WHOLE
            return {placed.uuid: part for placed in stays}
        parts = {placed.uuid: WHOLE for placed in stays}
        left = stays

        def rank(it: Placed) -> tuple[Any, ...]:
            return (not _may_go(it, over), self._order(it, SURPLUS, over))

        if is_gang:
            for placed in sorted(stays, key=rank):
                rest = [it for it in left if it is not placed]
                is_free = not placed.leaving and not placed.spec.originator
                if is_free and units.makes_whole(app, rest):
                    parts[placed.uuid], left = SURPLUS, rest
        return parts

    def _order(self, placed: Placed, part: int, over: Resource) -> tuple[Any, ...]:
        spec, app, most = placed.spec, placed.app, placed.app.leaf.spec.max or {}
        ask = self._cluster.asks[app.id, spec.key]
        shares = [
            placed.size.get(kind, 0) / (most[kind] if most.get(kind, 0) > 0 else 1) for kind in over
        ]
        harm = units.harm(self._cluster, app, part)
        return (
            not spec.allow_preempt_self,
            spec.originator,
            harm,
            -sum(kind in placed.size for kind in over),
            spec.priority,
            -app.serial if harm == WHOLE else 0,
            -(ask.created // HOUR),
            max(shares, default=0.0),
            -ask.sequence,
            placed.uuid,
        )


def _may_go(placed: Placed, over: Resource) -> bool:
    is_of_use = any(placed.size.get(kind, 0) > 0 for kind in over)
    return is_of_use and not placed.leaving and not placed.spec.required_node


def _kinds(unit: Iterable[Placed]) -> set[str]:
    return {kind for placed in unit for kind in placed.size}
