"""Requests about applications and asks: new ones, odd ones, and those that come again.

What is named lives or lived, so that steps meet.
"""

from typing import Any, Final

from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.swarm.broken_requests import damaged
from yunikorn_actors.lab.swarm.reloads import paths_below
from yunikorn_actors.lab.swarm.request_forms import release_of_all, release_of_one
from yunikorn_actors.lab.swarm.scripts import GROUPS, USERS
from yunikorn_actors.lab.swarm.worlds import TIMEOUTS, PartitionWriter
from yunikorn_actors.scenario.drivers import INSTANCE

_RUNS: Final = (8, 12, 20, 30)
_LARGE_RUNS: Final = (60, 100, 150, 250)
_ENDS: Final = (
    "TIMEOUT",
    "PREEMPTED_BY_SCHEDULER",
    "PLACEHOLDER_REPLACED",
    "UNKNOWN_TERMINATION_TYPE",
)
ISSUED: Final = 30
"""So many UUIDs a small world comes to, about."""


def run(writer: PartitionWriter) -> None:
    """Ask for many alike at once."""
    draw = writer.draw
    fields = {
        "key": f"run{len(writer.keys)}",
        "resource": draw.one_of(writer.sizes[:5]),
        "count": draw.one_of(_LARGE_RUNS if writer.world.is_large else _RUNS),
    }
    writer.add_ask(draw.one_of(list(writer.apps)), fields)


def reject_app(writer: PartitionWriter) -> None:
    """An application comes whose queue is not there."""
    app = {"id": f"no-{writer.prefix}-{writer.draw.whole(1, 3)}", "queue": "root.nowhere"}
    writer.add("add_app", {**app, "partition": "nowhere"} if writer.draw.once_in(4) else app)


def reject_ask(writer: PartitionWriter) -> None:
    """An ask comes whose application is not there, or which asks for nothing sound."""
    app = writer.draw.one_of(("nobody", *writer.apps))
    key, size = f"no{writer.draw.whole(1, 5)}", writer.draw.one_of(({}, {"vcore": -1}))
    writer.add("ask", {"app": app, "key": key, "resource": size})


def break_request(writer: PartitionWriter) -> None:
    """Something that was requested before comes again with one thing wrong in it."""
    if writer.sent:
        step = writer.draw.one_of(sorted(writer.sent))
        words = {step: writer.draw.one_of(writer.sent[step])}
        writer.world.steps.append(damaged(writer.draw, writer.manager.rm_id, words))


def ask_again(writer: PartitionWriter) -> None:
    ask = writer.earlier("ask")
    if ask is not None:
        writer.add("ask", ask)


def change_ask(writer: PartitionWriter) -> None:
    """Ask with a key that is known for something else."""
    ask, draw = writer.earlier("ask"), writer.draw
    if ask is not None:
        changes: tuple[dict[str, Any], ...] = (
            {"resource": draw.one_of(writer.sizes)},
            {"priority": draw.one_of((-1, 0, 1, 2))},
            {"max_allocations": draw.whole(1, 4)},
            {"app": draw.one_of(list(writer.apps))},
        )
        writer.add("ask", ask | draw.one_of(changes))


def daemon(writer: PartitionWriter) -> None:
    """Ask for what has to run on one node."""
    draw = writer.draw
    if writer.nodes:
        fields = {"key": f"d{len(writer.keys)}", "resource": draw.one_of(writer.sizes[:5])}
        where = {"required_node": draw.one_of(writer.nodes)}
        writer.add_ask(draw.one_of(list(writer.apps)), {**fields, **where})


def large_daemon(writer: PartitionWriter) -> None:
    """Ask for more than a node has, or for nearly all of it: it may become larger."""
    draw = writer.draw
    if writer.nodes:
        size, where = {"vcore": draw.one_of((4000, 5000, 7000))}, draw.one_of(writer.nodes)
        fields = {"key": f"d{len(writer.keys)}", "resource": size, "required_node": where}
        writer.add_ask(draw.one_of(list(writer.apps)), fields)


def cancel_all(writer: PartitionWriter) -> None:
    writer.add("release_ask", {"app": writer.draw.one_of(list(writer.apps))})


def release_otherwise(writer: PartitionWriter) -> None:
    """End work as nobody should: by a type that the core alone begins with."""
    if writer.keys:
        app, key = writer.draw.one_of(writer.keys)
        writer.add("release", {"app": app, "key": key, "type": writer.draw.one_of(_ENDS)})


def release_by_name(writer: PartitionWriter) -> None:
    """End one by its UUID, if any has that by then, and perhaps name its application."""
    draw, uuid = writer.draw, f"{INSTANCE}-{issued(writer.draw, len(writer.keys))}"
    if writer.places and draw.once_in(3):
        (_, key), _ = draw.one_of(tuple(writer.places.items()))
        uuid = f"{key}-recovered"
    app = draw.one_of(list(writer.apps)) if draw.once_in(4) else ""
    type_ = "STOPPED_BY_RM" if draw.once_in(2) else draw.one_of(_ENDS)
    writer.world.steps.append(
        release_of_one(writer.manager.rm_id, writer.name, uuid, app=app, type_=type_)
    )


def release_all(writer: PartitionWriter) -> None:
    """End all that runs in the partition, or all of one application."""
    type_ = "STOPPED_BY_RM" if writer.draw.once_in(2) else writer.draw.one_of(_ENDS)
    if writer.draw.once_in(2):
        writer.add("release", {"app": writer.draw.one_of(list(writer.apps)), "type": type_})
    else:
        writer.world.steps.append(release_of_all(writer.manager.rm_id, writer.name, type_))


def replace(writer: PartitionWriter) -> None:
    """Remove an application and add it again at once, under its name."""
    app = writer.earlier("add_app")
    if app is not None:
        writer.add("remove_app", app["id"])
        writer.add("add_app", app)
        writer.apps.setdefault(app["id"], "placeholder_ask" in app)


def come_again(writer: PartitionWriter) -> None:
    """An application whose time is limited has all its work end, and asks again in time."""
    draw, name = writer.draw, f"{writer.prefix}-{len(writer.apps) + 1}"
    leaf, _ = draw.one_of(writer.leaves)
    writer.apps[name] = False
    timeout = draw.one_of(TIMEOUTS)
    writer.add("add_app", {"id": name, "queue": leaf, "user": draw.one_of(USERS),
                         "groups": draw.one_of(GROUPS), "timeout": timeout})  # fmt: skip
    for pause in (draw.one_of(("1s", "3s")), draw.one_of(("1s", "9s")), timeout):
        key = f"again{len(writer.keys)}"
        writer.add_ask(name, {"key": key, "resource": draw.one_of(writer.sizes[:3])})
        writer.add("advance", pause)
        writer.add("release", {"app": name})


def everybody(writer: PartitionWriter, most: int = 1) -> None:
    """Applications come into each leaf, often of one user."""
    whose, (root, *_) = writer.draw.one_of(USERS), writer.config["queues"]
    entitled = {
        path for path, queue in paths_below(root) if "guaranteed" in queue.get("resources", {})
    }
    leaves = [leaf for leaf, _ in writer.leaves for _ in range(writer.draw.whole(1, most))]
    for number, leaf in enumerate(leaves, 1):
        name = f"{writer.prefix}-{number}"
        writer.apps[name] = False
        writer.entitled[name] = leaf in entitled or is_entitled(writer, leaf)
        user = whose if writer.draw.once_in(2) else writer.draw.one_of(USERS)
        fields = {"id": name, "queue": leaf, "user": user, "groups": writer.draw.one_of(GROUPS)}
        writer.add("add_app", fields)


_CLAIMED: Final = ("one-eviction", "one-packing")


def is_entitled(writer: PartitionWriter, leaf: str) -> bool:
    """Whether it may claim by the guarantee of the queue that has one in each such world."""
    return writer.world.scene in _CLAIMED and f"{leaf}.".startswith("root.a.")


def wait_until_due(writer: PartitionWriter) -> None:
    """Let as much time pass as something takes, or a nanosecond less and then that one."""
    due_ns = writer.draw.one_of(writer.world.times_ns)
    if due_ns > 1 and writer.draw.once_in(3):
        writer.add("advance", f"{due_ns - 1}ns")
        writer.add("advance", "1ns")
    else:
        writer.add("advance", f"{due_ns}ns")


def refuse_for(writer: PartitionWriter, keys: str, nodes: int) -> None:
    """Predicates refuse so many nodes for asks with these keys; some go by victims as well."""
    draw = writer.draw
    denied = dict.fromkeys(draw.one_of(writer.nodes) for _ in range(nodes if writer.nodes else 0))
    fields: dict[str, Any] = {"deny": [{"node": it, "key": f"{keys}*"} for it in denied]}
    if "victims" in writer.world.parts:
        fields["victims"] = draw.whole(0, 2)
    writer.manager.add("predicate", fields)


def issued(draw: Draw, about: int) -> int:
    """Draw the number of a UUID that the core may have given to something by then."""
    return draw.whole(1, max(3, min(about, ISSUED)))
