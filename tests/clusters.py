"""Small clusters drawn at random, and what happens to them, as plain values.

A drawn cluster is written out as a configuration and as requests for the core, and is what the
oracle decides on.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple, TypeVar

from yunikorn_actors.domain.config import parse_config
from yunikorn_actors.errors import ConfigError

Amounts = dict[str, int]
record = dataclass(eq=False, kw_only=True)


class Limit(NamedTuple):
    names: tuple[str, ...]
    of_groups: bool
    most: Amounts
    applications: int


@record
class Queue:
    path: str
    parent: "Queue | None" = None
    children: list["Queue"] = field(default_factory=list)
    guaranteed: Amounts = field(default_factory=dict)
    max: Amounts = field(default_factory=dict)
    applications: int = 0
    policy: str = "fifo"
    children_by: str = "fair"
    urgent_first: bool = True
    fence: bool = False
    offset: int = 0
    limits: list[Limit] = field(default_factory=list)

    def up(self) -> list["Queue"]:
        return [self, *(self.parent.up() if self.parent else ())]


@record
class App:
    id: str
    leaf: Queue
    user: str
    groups: tuple[str, ...]
    age: tuple[int, int]
    state: str = "New"
    group: str = ""
    counts: bool = False
    """For limits: from its first allocation on, until it completes."""


@record
class Ask:
    app: App
    key: str
    size: Amounts
    priority: int
    age: tuple[int, int]
    left: int


@record
class Node:
    id: str
    capacity: Amounts
    takes_work: bool = True


class Placed(NamedTuple):
    app: App
    key: str
    node: Node
    size: Amounts


Item = TypeVar("Item")
POLICIES = ("fifo", "fifo", "fair", "fair", "stateaware")
USERS = ("ann", "bob", "cid")
GROUPS = ("dev", "ops")
KINDS = {"vcore": 12, "memory": 40, "gpu": 3}


class Draw:
    def __init__(self, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311 - a repeatable draw, no secret

    def of(self, items: tuple[Item, ...]) -> Item:
        return items[int(self._random.random() * len(items))]

    def whole(self, low: int, high: int) -> int:
        return low + int(self._random.random() * (high - low + 1))

    def once_in(self, times: int) -> bool:
        return self._random.random() * times < 1

    def some(self, most: dict[str, int], *, scale: float = 1.0) -> Amounts:
        """Draw amounts of some of the types, never of none."""
        kinds = [kind for kind in most if self.once_in(2)] or ["vcore"]
        return {kind: self.whole(1, max(1, int(most[kind] * scale))) for kind in kinds}

    # -- queues

    def queue(self, path: str, parent: Queue | None, depth: int) -> Queue:
        queue = Queue(
            path=path,
            parent=parent,
            policy=self.of(POLICIES),
            children_by=self.of(("fair", "fair", "fifo")),
            urgent_first=not self.once_in(4),
            fence=self.once_in(5),
            offset=self.of((0, 0, 0, 2, -1)),
            limits=self.limits() if self.once_in(4) else [],
        )
        if parent is not None:
            queue.guaranteed = self.some(KINDS) if self.once_in(2) else {}
            queue.max = self.some(KINDS, scale=2.0) if self.once_in(3) else {}
            queue.applications = self.of((0, 0, 0, 1, 2))
        if parent is None or (depth < 3 and self.once_in(3)):
            for name in "abc"[: self.whole(1 + (parent is None), 3)]:
                queue.children.append(self.queue(f"{path}.{name}", queue, depth + 1))
        return queue

    def limits(self) -> list[Limit]:
        """Named users and groups first; the wildcards come last."""
        whom = [((self.of(USERS),), False), ((self.of(GROUPS),), True)]
        whom += [(("*",), kind) for kind in (False, True) if self.once_in(2)]
        return [
            Limit(names, of_groups, self.some(KINDS, scale=1.5), self.of((0, 0, 1, 2)))
            for names, of_groups in whom
        ]


def leaves(queue: Queue) -> Iterator[Queue]:
    if not queue.children:
        yield queue
    for child in queue.children:
        yield from leaves(child)


class DrawnCluster(NamedTuple):
    root: Queue
    fills_nodes: bool
    weights: dict[str, float]
    config: str


def valid_cluster(draw: Draw) -> DrawnCluster:
    """Draw queues until they are a valid configuration."""
    weights = draw.of(({}, {"vcore": 1.0}, {"memory": 2.0, "gpu": 0.5, "vcore": 0.0}))
    fills_nodes = draw.once_in(2)
    while True:
        root = draw.queue("root", None, depth=0)
        config = _written(root, "binpacking" if fills_nodes else "fair", weights)
        with suppress(ConfigError):
            parse_config(config)
            return DrawnCluster(root, fills_nodes, weights, config)


# -- as configuration


def _written(root: Queue, policy: str, weights: dict[str, float]) -> str:
    """Write the configuration; JSON is YAML too."""
    order = {"type": policy, "resourceweights": weights}
    partition = {"name": "default", "nodesortpolicy": order, "queues": [_queue(root)]}
    return json.dumps({"partitions": [partition]})


def _queue(queue: Queue) -> dict[str, Any]:
    properties = {
        "application.sort.policy": queue.policy,
        "application.sort.priority": "enabled" if queue.urgent_first else "disabled",
        "queue.sort.policy": queue.children_by,
        "priority.policy": "fence" if queue.fence else "default",
        "priority.offset": str(queue.offset),
    }
    sizes = {"guaranteed": _amounts(queue.guaranteed), "max": _amounts(queue.max)}
    return {
        "name": queue.path.rpartition(".")[2],
        "submitacl": "*",
        "maxapplications": queue.applications,
        "properties": properties,
        "resources": {name: size for name, size in sizes.items() if size},
        "limits": [_limit(limit) for limit in queue.limits],
        "queues": [_queue(child) for child in queue.children],
    }


def _limit(limit: Limit) -> dict[str, Any]:
    return {
        "limit": "drawn",
        "groups" if limit.of_groups else "users": limit.names,
        "maxresources": _amounts(limit.most),
        "maxapplications": limit.applications,
    }


def _amounts(amounts: Amounts) -> dict[str, str]:
    return {kind: f"{n}m" if kind == "vcore" else str(n) for kind, n in amounts.items()}
