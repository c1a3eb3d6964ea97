"""Worlds about where applications go: rules of every form, and names that are odd but allowed.

Elsewhere rules are one of a few lists, and nearly all applications name a leaf that is there. Here
they do little but come and go, while queues drain, are left out and come back.
"""

import json
from contextlib import suppress
from typing import Any, Final

from yunikorn_actors.config import ConfigError, parse_config
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.swarm.reloads import NO_LEAVES, Config, users_queue
from yunikorn_actors.lab.swarm.scenes_of_one import Moves, PartitionWriter
from yunikorn_actors.values.tags import APP_TAG_CREATE_FORCE, APP_TAG_QUEUE_FALLBACK

_USERS: Final = ("ann", "ann", "bob", "bob.c", "Cid", "a_1")
_GROUPS: Final = (["dev"], ["ops", "dev"], ["ops"], ["d.e"], ["none"])
_NAMES: Final = (
    "root.default", "root.fixed", "fixed", "a", "root.a", "a.b", "root.a.b.c", "root.b", "B",
    "ROOT.A", "rootish", "root", "root.users", *NO_LEAVES,
)  # fmt: skip
_TAGS: Final = ("dev", "Dev", "a.b", "root.a", "root.users.x", "", "a b", "ops")
_WHOM: Final[tuple[dict[str, Any], ...]] = (
    {}, {"users": ["ann"]}, {"users": ["bob", "Cid"]}, {"users": ["^a"]}, {"users": [".*o"]},
    {"users": ["a.*", "bob"]}, {"users": ["^a", "bob"]}, {"groups": ["dev"]},
    {"groups": ["ops", "none"]}, {"groups": ["^d"]}, {"groups": ["d.*", "ops"]},
    {"users": ["ann"], "groups": ["ops"]}, {"users": ["x"], "groups": ["^o"]},
)  # fmt: skip
_FIXED: Final = ("root.fixed", "fixed", "fixed.below", "root.users", "users", "root.default")
_PAUSES: Final = ("1s", "9s", "10s", "11s", "31s")
"""Around the time after which an empty queue is removed."""
_DEPTH_MAX: Final = 2
_TRIES: Final = 40


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


def begin(writer: PartitionWriter) -> None:
    for _ in range(writer.draw.whole(2, 5)):
        _comes(writer)


def _comes(writer: PartitionWriter) -> None:
    """An application comes, and names a queue that is there, or was, or never will be."""
    draw, name = writer.draw, f"{writer.prefix}-{len(writer.apps) + 1}"
    leaf, _ = draw.one_of(writer.leaves)
    queue = draw.one_of((leaf, leaf, leaf.upper(), draw.one_of(_NAMES), draw.one_of(_NAMES)))
    app: dict[str, Any] = {"id": name, "queue": queue, "user": draw.one_of(_USERS)}
    tags: dict[str, str] = {}
    if not draw.once_in(3):
        tags[draw.one_of(("namespace", "namespace", "NameSpace", "team"))] = draw.one_of(_TAGS)
    if draw.once_in(8):
        tags[APP_TAG_CREATE_FORCE] = draw.one_of(("true", "1", "yes"))
    if draw.once_in(8):
        tags[APP_TAG_QUEUE_FALLBACK] = draw.one_of(("false", "0", "no"))
    writer.apps[name] = False
    writer.add("add_app", {**app, "groups": draw.one_of(_GROUPS), "tags": tags})


def _asks(writer: PartitionWriter) -> None:
    writer.add_ask(
        writer.draw.one_of(list(writer.apps)),
        {"key": f"k{len(writer.keys)}", "resource": {"vcore": 1000}},
    )


def pause(writer: PartitionWriter) -> None:
    writer.add("advance", writer.draw.one_of(_PAUSES))


def of_placement(writer: PartitionWriter) -> Moves:
    """Return what changes where the next application goes."""
    manager = writer.manager

    def comes() -> None:
        _comes(writer)

    def asks() -> None:
        _asks(writer)

    return {
        "": (
            *(comes,) * 6, asks, writer.remove, writer.remove, manager.leave_queue_out,
            manager.leave_queue_out, manager.reload,
        ),
        "reported-work": (writer.bind, writer.bind),
        "application-tags": (writer.app,),
        "lost-managers": (manager.leave,),
    }  # fmt: skip
