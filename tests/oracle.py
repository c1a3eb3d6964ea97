"""What is decided, by the rules alone: one decision at a time, everything worked out anew for each.

A small model of a cluster that shares nothing with the product. It is told what the core is told.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import field
from typing import Any

from clusters import Amounts, App, Ask, Limit, Node, Placed, Queue, record

NOTHING_WAITS = -(2**31)


@record
class Oracle:
    root: Queue
    fills_nodes: bool
    weights: dict[str, float]
    apps: list[App] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    asks: list[Ask] = field(default_factory=list)
    placed: list[Placed] = field(default_factory=list)

    def ask(self, ask: Ask) -> None:
        app = ask.app
        if app.state == "New":
            app.group = next(filter(None, (group_at(q, app.groups) for q in app.leaf.up())), "")
        app.state = {"New": "Accepted", "Completing": "Running"}.get(app.state, app.state)
        app.age = (min(app.age[0], ask.age[0]), app.age[1])
        self.asks.append(ask)

    def settle(self, app: App) -> None:
        """Something of the application has gone."""
        if not self.waiting(app) and all(placed.app is not app for placed in self.placed):
            app.state, app.counts = "Completing", False

    def decide(self) -> list[tuple[str, str]]:
        """Return keys with their nodes, in the order of the decisions."""
        decisions = []
        while (placed := self.first(self.root)) is not None:
            self.placed.append(placed)
            placed.app.counts = True
            starts = placed.app.state == "Accepted" and placed.app.leaf.policy == "stateaware"
            placed.app.state = "Starting" if starts else "Running"
            decisions.append((placed.key, placed.node.id))
        return decisions

    def first(self, queue: Queue) -> Placed | None:
        for child in sorted(queue.children, key=self.rank_of_queue):
            if (placed := self.first(child)) is not None:
                return placed
        apps = [app for app in self.apps if app.leaf is queue and self.waiting(app)]
        for app in filter(self.may_run, sorted(apps, key=self.rank_of_app)):
            for ask in sorted(self.waiting(app), key=lambda ask: (-ask.priority, ask.age)):
                if self.has_headroom(ask):
                    for node in sorted(self.nodes, key=lambda node: (self.score(node), node.id)):
                        if node.takes_work and fits(ask.size, self.free(node)):
                            ask.left -= 1
                            return Placed(app, ask.key, node, ask.size)
        return None

    def waiting(self, *apps: App) -> list[Ask]:
        return [ask for ask in self.asks if ask.app in apps and ask.left]

    def below(self, queue: Queue) -> list[App]:
        return [app for app in self.apps if queue in app.leaf.up()]

    def used(self, apps: list[App]) -> Counter[str]:
        return total([placed.size for placed in self.placed if placed.app in apps])

    def free(self, node: Node) -> Amounts:
        taken = total([placed.size for placed in self.placed if placed.node is node])
        return {kind: size - taken[kind] for kind, size in node.capacity.items()}

    def rank_of_queue(self, queue: Queue) -> tuple[Any, ...]:
        assert queue.parent
        rank = self.share(queue)
        if queue.parent.children_by == "fifo":
            rank = queue.parent.children.index(queue)
        urgency = -self.priority(queue)
        waits = sum(a.left * sum(a.size.values()) for a in self.waiting(*self.below(queue)))
        ranks = (urgency, rank) if queue.parent.urgent_first else (rank, urgency)
        return (*ranks, -waits, queue.path)

    def share(self, queue: Queue) -> float:
        due: Amounts = total([node.capacity for node in self.nodes])
        for level in reversed(queue.up()):
            due = due | level.max if due else {}
        due |= queue.guaranteed
        used = self.used(self.below(queue)).items()
        parts = [n / due[kind] if due[kind] else 1.0 for kind, n in used if n and kind in due]
        return max(parts, default=0.0)

    def priority(self, queue: Queue) -> int:
        shown = [self.priority(child) for child in queue.children]
        if not shown:
            shown = [ask.priority for ask in self.waiting(*self.below(queue))]
        if (highest := max(shown, default=NOTHING_WAITS)) == NOTHING_WAITS:
            return NOTHING_WAITS
        return queue.offset if queue.fence else highest + queue.offset

    def rank_of_app(self, app: App) -> tuple[Any, ...]:
        urgency, rank = -max(ask.priority for ask in self.waiting(app)), app.age[:1]
        if app.leaf.policy == "fair":
            due = app.leaf.guaranteed
            shares = [n / (due.get(kind) or 1) for kind, n in self.used([app]).items() if n]
            rank = tuple(sorted(shares, reverse=True))
        return (urgency, rank, app.age) if app.leaf.urgent_first else (rank, urgency, app.age)

    def score(self, node: Node) -> float:
        free, share = self.free(node), 0.0
        weights = {k: w for k, w in sorted(self.weights.items()) if w and k in node.capacity}
        for kind, weight in weights.items():
            share += weight * (1.0 - free[kind] / node.capacity[kind])
        share = share / sum(weights.values()) if weights else 0.0
        return 1.0 - share if self.fills_nodes else share

    def may_run(self, app: App) -> bool:
        if app.state != "Accepted":
            return True
        if not app.counts:
            for most, _, apps in self.bounds(app):
                if 0 < most <= sum(other.counts for other in apps):
                    return False
        if app.leaf.policy == "stateaware":
            for other in self.below(app.leaf):
                waits = other.state == "Accepted" and self.waiting(other)
                if other.state == "Starting" or (waits and other.age < app.age):
                    return False
        for level in app.leaf.up():
            running = sum(other.state in {"Starting", "Running"} for other in self.below(level))
            if 0 < level.applications <= running:
                return False
        return True

    def bounds(self, app: App) -> Iterator[tuple[int, Amounts, list[App]]]:
        """Yield how many may run, how much they may use, and who shares it."""
        for level in app.leaf.up():
            below = self.below(level)
            yield 0, level.max, below
            for limit in limits_at(level, False, app.user, "*")[:1]:
                yield limit.applications, limit.most, [o for o in below if o.user == app.user]
            for limit in limits_at(level, True, app.group)[:1]:
                yield limit.applications, limit.most, [o for o in below if o.group == app.group]

    def has_headroom(self, ask: Ask) -> bool:
        return all(
            n <= max(0, most[kind] - self.used(apps)[kind])
            for _, most, apps in self.bounds(ask.app)
            for kind, n in ask.size.items()
            if kind in most
        )


def total(items: list[Amounts]) -> Counter[str]:
    return sum(map(Counter, items), Counter())


def fits(wanted: Amounts, free: Amounts) -> bool:
    return all(amount <= max(0, free.get(kind, 0)) for kind, amount in wanted.items())


def limits_at(queue: Queue, of_groups: bool, *names: str) -> list[Limit]:
    limits = [limit for limit in queue.limits if limit.of_groups is of_groups]
    return [limit for name in names for limit in limits if name in limit.names]


def group_at(queue: Queue, groups: tuple[str, ...]) -> str:
    names = [name for limit in queue.limits if limit.of_groups for name in limit.names]
    return next((name for name in names if name in groups), "*" if "*" in names else "")
