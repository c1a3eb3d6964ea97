"""Queues of a drawn world: what of a configuration belongs to its parts, and rules of placement."""

import json
from contextlib import suppress
from typing import Any, Final

from yunikorn_actors.config import ConfigError, parse_config
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.swarm.reloads import RULES, Config, users_queue, with_acls

_WHOM: Final[tuple[dict[str, Any], ...]] = (
    {}, {"users": ["ann"]}, {"users": ["bob", "Cid"]}, {"users": ["^a"]}, {"users": [".*o"]},
    {"users": ["a.*", "bob"]}, {"users": ["^a", "bob"]}, {"groups": ["dev"]},
    {"groups": ["ops", "none"]}, {"groups": ["^d"]}, {"groups": ["d.*", "ops"]},
    {"users": ["ann"], "groups": ["ops"]}, {"users": ["x"], "groups": ["^o"]},
)  # fmt: skip
_FIXED: Final = ("root.fixed", "fixed", "fixed.below", "root.users", "users", "root.default")
_DEPTH_MAX: Final = 2
_TRIES: Final = 40
_PROPERTIES: Final = {
    "application.sort.policy": "sort-policies",
    "queue.sort.policy": "sort-policies",
    "application.sort.priority": "priorities",
    "priority.policy": "priorities",
    "priority.offset": "priorities",
    "preemption.policy": "fences",
    "preemption.unit": "gangs",
    "preemption.budget": "fences",
    "preemption.cooldown": "fences",
    "preemption.grace": "fences",
    "quota.preemption.delay": "quota-preemption",
    "reservation.max.nodes.percent": "reservations",
}
_QUEUE: Final = {"limits": "limits", "maxapplications": "application-limits"}
_RESOURCES: Final = {"max": "quotas", "guaranteed": "guarantees"}


def with_rules(draw: Draw, configs: tuple[Config, ...], *, is_one: bool) -> tuple[Config, ...]:
    """Have applications placed, in all of them alike; now and then not everybody is let in.

    In a world that is about nothing else each has rules of its own.
    """
    if is_one:
        drawn = tuple(with_drawn_rules(draw, it) for it in configs)
        has_acls = draw.once_in(3)
        return tuple(
            {**it, "queues": [with_acls(draw, it["queues"][0])]} if has_acls else it for it in drawn
        )
    rules, users, has_acls = draw.one_of(RULES), users_queue(draw), draw.once_in(4)
    placing: list[Config] = []
    for config in configs:
        (root,) = config["queues"]
        root = {**root, "queues": [*root.get("queues", ()), users]}
        root = with_acls(draw, root) if has_acls else root
        placing.append({**config, "placementrules": rules, "queues": [root]})
    return tuple(placing)


def with_parts(config: Config, parts: frozenset[str], name: str) -> Config:
    """Leave out what belongs to parts that the run has not, and give the partition its name."""
    (partition,) = config["partitions"]
    left = {**partition, "name": name, "queues": [_queue(it, parts) for it in partition["queues"]]}
    if "node-orders" not in parts:
        left.pop("nodesortpolicy", None)
    preemption = left.pop("preemption", {})
    if "no-preemption" in parts and "enabled" in preemption:
        left["preemption"] = preemption
    elif "quota-preemption" in parts:
        left["preemption"] = {"quotapreemptionenabled": True}
    return left


def _queue(queue: dict[str, Any], parts: frozenset[str]) -> dict[str, Any]:
    left = {word: it for word, it in queue.items() if _QUEUE.get(word, "") in {"", *parts}}
    for word, of_parts in (("properties", _PROPERTIES), ("resources", _RESOURCES)):
        kept = {
            key: it
            for key, it in queue.get(word, {}).items()
            if of_parts.get(key, "") in {"", *parts}
        }
        left.pop(word, None)
        if kept:
            left[word] = kept
    if "queues" in queue:
        left["queues"] = [_queue(below, parts) for below in queue["queues"]]
    return left


def _rule(draw: Draw, depth: int = 0) -> dict[str, Any]:
    name = draw.one_of(("provided", "provided", "user", "tag", "tag", "fixed"))
    rule: dict[str, Any] = {"name": name}
    if not draw.once_in(3):
        rule["create"] = True
    if name == "tag":
        rule["value"] = draw.one_of(("namespace", "Namespace", "team"))
    elif name == "fixed":
        rule["value"] = draw.one_of(_FIXED)
    if draw.once_in(2):
        rule["filter"] = dict(draw.one_of(_WHOM))
        if draw.once_in(2):
            rule["filter"]["type"] = draw.one_of(("deny", "allow", "deny"))
    if depth < _DEPTH_MAX and draw.once_in(3):
        rule["parent"] = _rule(draw, depth + 1)
    return rule


def with_drawn_rules(draw: Draw, config: Config) -> Config:
    """Give a configuration rules of every form, and some queues below which they create others."""
    (root,) = config["queues"]
    more = [users_queue(draw)]
    if draw.once_in(2):
        more.append({"name": "fixed", "parent": draw.once_in(2)})
    if draw.once_in(3):
        more.append({"name": "default"})
    changed = {**config, "queues": [{**root, "queues": [*root.get("queues", ()), *more]}]}
    for _ in range(_TRIES):
        changed["placementrules"] = [_rule(draw) for _ in range(draw.whole(1, 3))]
        with suppress(ConfigError):
            parse_config(json.dumps({"partitions": [changed]}))
            return changed
    return config
