"""Worlds about where applications go: rules of every form, and names that are odd but allowed.

Elsewhere rules are one of a few lists, and nearly all applications name a leaf that is there. Here
they do little but come and go, while queues drain, are left out and come back.
"""

from typing import Any, Final

from yunikorn_actors.lab.swarm.manager_moves import leave, leave_queue_out, reload
from yunikorn_actors.lab.swarm.reloads import NO_LEAVES
from yunikorn_actors.lab.swarm.scripts import Writer
from yunikorn_actors.lab.swarm.worlds import Moves, PartitionWriter
from yunikorn_actors.values.tags import APP_TAG_CREATE_FORCE, APP_TAG_QUEUE_FALLBACK

_USERS: Final = ("ann", "ann", "bob", "bob.c", "Cid", "a_1")
_GROUPS: Final = (["dev"], ["ops", "dev"], ["ops"], ["d.e"], ["none"])
_NAMES: Final = (
    "root.default", "root.fixed", "fixed", "a", "root.a", "a.b", "root.a.b.c", "root.b", "B",
    "ROOT.A", "rootish", "root", "root.users", *NO_LEAVES,
)  # fmt: skip
_TAGS: Final = ("dev", "Dev", "a.b", "root.a", "root.users.x", "", "a b", "ops")
_PAUSES: Final = ("1s", "9s", "10s", "11s", "31s")
"""Around the time after which an empty queue is removed."""


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


OF_PLACEMENT: Final[Moves] = {
    "": (
        *(_comes,) * 6, _asks, Writer.remove, Writer.remove, leave_queue_out,
        leave_queue_out, reload,
    ),
    "reported-work": (Writer.bind, Writer.bind),
    "application-tags": (Writer.app,),
    "lost-managers": (leave,),
}  # fmt: skip
"""What changes where the next application goes."""
