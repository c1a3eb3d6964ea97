"""Configurations that a resource manager may send after its first one, and rules of placement."""

import copy
import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from yunikorn_actors.config import ConfigError, parse_config
from yunikorn_actors.config.policy_names import ANY_NAMES, PolicyNames
from yunikorn_actors.lab.schedules.random_draw import Draw

Config = dict[str, Any]
"""Of one partition, in the words of the document."""

RULES: Final[tuple[list[dict[str, Any]], ...]] = (
    [{"name": "provided", "create": True}],
    [{"name": "tag", "value": "namespace", "create": True}, {"name": "provided"}],
    [{"name": "fixed", "value": "root.fixed", "create": True, "filter": {"users": ["ann"]}},
     {"name": "provided", "create": True}],
    [{"name": "user", "create": True, "filter": {"type": "deny", "users": ["bob"]},
      "parent": {"name": "fixed", "value": "root.users"}}, {"name": "provided"}],
    [{"name": "user"}, {"name": "provided"}],
    [{"name": "tag", "value": "namespace", "create": True, "filter": {"groups": ["^d" ]},
      "parent": {"name": "user", "create": True,
                 "parent": {"name": "fixed", "value": "root.users"}}},
     {"name": "provided", "create": True, "filter": {"type": "deny", "groups": ["ops", "none"]}}],
)  # fmt: skip
_BELOW_USERS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"queues": [{"name": "team", "parent": True}]},
    {"queues": [{"name": "team", "parent": True, "childtemplate": {"maxapplications": 2}}]},
)
_TEMPLATES: Final[tuple[dict[str, Any], ...]] = (
    {"maxapplications": 1, "resources": {"max": {"vcore": 3}}},
    {"resources": {"guaranteed": {"vcore": 1}, "max": {"vcore": 4}},
     "properties": {"application.sort.policy": "fair", "priority.offset": "1"}},
    {"resources": {"max": {"vcore": 1}}, "properties": {"quota.preemption.delay": "5s"}},
)  # fmt: skip
NO_LEAVES: Final = (
    "root.fresh", "root.fresh.below", "bare", "", "root.users.ann", "root.users.team.ann",
    "root.users.new.ann", "root.nowhere.else", "team.red",
)  # fmt: skip
"""Queues that an application may ask for, and that are not there at first."""
_ACLS: Final = ("", "ann", "ann,bob", " dev", "cid ops")
_GATES: Final = ("fcfs", "easy", "easy", "conservative", "conservative", "sjf")
"""Policies that say who may start; those that go by run times are named twice."""
IGNORE_CASE: Final = frozenset({
    "application.sort.priority", "priority.policy", "preemption.policy", "preemption.unit",
    "gang.admission", "queue.sort.policy",
})  # fmt: skip
"""Properties that are words in whatever case."""
_DELAY: Final = "quota.preemption.delay"
_CHANGED: Final = ("limits", "resources", "maxapplications", "properties", "childtemplate")
"""What may change of one queue, with all else as it is."""


def users_queue(draw: Draw) -> dict[str, Any]:
    """Draw a queue below which rules create others."""
    below, template = draw.one_of(_BELOW_USERS), draw.one_of(_TEMPLATES)
    return {"name": "users", "parent": True, "childtemplate": template, **below}


def with_acls(draw: Draw, root: dict[str, Any]) -> dict[str, Any]:
    """Let some in at the root, and some more below it."""
    below = [{**queue, "submitacl": draw.one_of(_ACLS)} for queue in root.get("queues", ())]
    return {**root, "submitacl": draw.one_of(_ACLS), "queues": below}


def with_back_off(draw: Draw, config: Config) -> Config:
    """Have applications of some leaves rest, if too many of their asks find no node."""
    changed = copy.deepcopy(config)
    for _, queue in paths_below(changed["queues"][0]):
        if not queue.get("queues") and not draw.once_in(3):
            own = queue.setdefault("properties", {})
            own["application.unschedasks.backoff"] = draw.one_of(("1", "1", "2"))
            own["application.unschedasks.backoff.delay"] = draw.one_of(("3s", "20s"))
    return changed


def with_capitals(draw: Draw, config: Config) -> Config:
    """Write words in capitals where the case means nothing, and one that means nothing itself."""
    changed = copy.deepcopy(config)
    for _, queue in paths_below(changed["queues"][0]):
        own = queue.get("properties", {})
        for key in sorted(own.keys() & IGNORE_CASE):
            if draw.once_in(2):
                own[key] = draw.one_of((own[key].upper(), own[key].capitalize()))
        # There is no such policy, so it is the one that holds without: fifo.
        if own.get("application.sort.policy") == "fifo" and draw.once_in(2):
            own["application.sort.policy"] = "FIFO"
    return changed


def with_second_type(draw: Draw, config: Config) -> Config:
    """Have quotas, guarantees and limits bound memory as well as cores, or instead of them.

    All of them in one proportion, so a tree that was valid is valid.
    """
    changed, times, instead = copy.deepcopy(config), draw.whole(1, 3), draw.once_in(4)
    for _, queue in paths_below(changed["queues"][0]):
        for holder in (queue, queue.get("childtemplate", {})):
            for amounts in holder.get("resources", {}).values():
                _bound_memory(amounts, times, instead=instead)
        for limit in queue.get("limits", ()):
            _bound_memory(limit.get("maxresources", {}), times, instead=instead)
    return changed


def _bound_memory(amounts: dict[str, Any], times: int, *, instead: bool) -> None:
    if "vcore" in amounts:
        amounts["memory"] = amounts["vcore"] * times
        if instead:
            del amounts["vcore"]


def with_policies(draw: Draw, config: Config, names: PolicyNames, *, is_one: bool) -> Config:
    """Have policies decide in some leaves, or one of them in all, and which node comes first."""
    changed = copy.deepcopy(config)
    usual = draw.one_of(names.applications) if names.applications else ""
    gates = [name for name in _GATES if name in names.applications]
    if is_one and gates and not draw.once_in(4):
        usual = draw.one_of(gates)
    for _, queue in paths_below(changed["queues"][0]):
        if queue.get("queues"):
            if names.queues and draw.once_in(2):
                own = queue.setdefault("properties", {})
                own["queue.sort.policy"] = draw.one_of(names.queues)
        elif usual and (is_one or not draw.once_in(3)):
            own = queue.setdefault("properties", {})
            other = draw.one_of(names.applications)
            own["application.sort.policy"] = other if draw.once_in(4) and not is_one else usual
    if names.nodes and draw.once_in(3):
        changed["nodesortpolicy"] = {"type": draw.one_of(names.nodes)}
    return changed


def paths_below(queue: dict[str, Any], above: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    path = f"{above}.{queue['name']}" if above else queue["name"]
    yield path, queue
    for below in queue.get("queues", ()):
        yield from paths_below(below, path)


def _valid(config: Config) -> Config | None:
    try:
        parse_config(json.dumps({"partitions": [config]}), ANY_NAMES)
    except ConfigError:
        return None
    return config


def with_lower_quota(draw: Draw, config: Config) -> Config | None:
    """Give a queue less than it perhaps uses; or one that has less another time to come down."""
    changed = copy.deepcopy(config)
    _, *below = (queue for _, queue in paths_below(changed["queues"][0]))
    parents = [queue for queue in below if queue.get("queues")]
    lowered = [queue for queue in below if _DELAY in queue.get("properties", {})]
    among = next((it for it in (lowered, parents) if it and draw.once_in(3)), below)
    queue = draw.one_of(among)
    queue.setdefault("properties", {})[_DELAY] = draw.one_of(("1s", "5s", "20s"))
    if among is not lowered or draw.once_in(2):
        most = {"vcore": draw.whole(1, 3)}
        queue["resources"] = {**queue.get("resources", {}), "max": most}
    return _valid(changed)


def with_little(draw: Draw, config: Config, path: str) -> Config | None:
    """Give this queue little, at once or soon; mostly nothing below it is guaranteed."""
    changed = copy.deepcopy(config)
    queue = dict(paths_below(changed["queues"][0])).get(path)
    if queue is None:
        return None
    queue.setdefault("properties", {})[_DELAY] = draw.one_of(("1s", "2s"))
    keeps = draw.once_in(3)
    for _, below in paths_below(queue):
        if not keeps:
            below.get("resources", {}).pop("guaranteed", None)
        below.get("resources", {}).pop("max", None)
    queue["resources"] = {**queue.get("resources", {}), "max": {"vcore": draw.whole(1, 4)}}
    return _valid(changed)


def with_one_change(draw: Draw, config: Config, others: Sequence[Config]) -> Config | None:
    """Have one thing of one queue as another configuration says it."""
    changed = copy.deepcopy(config)
    path, queue = draw.one_of(list(paths_below(changed["queues"][0])))
    other = dict(paths_below(draw.one_of(others)["queues"][0])).get(path, {})
    what = draw.one_of(_CHANGED)
    queue.pop(what, None)
    if what in other:
        queue[what] = copy.deepcopy(other[what])
    return _valid(changed)


def with_other_limits(draw: Draw, config: Config) -> Config | None:
    """Let users and groups of one queue have more or less; or nobody is limited there any more."""
    changed = copy.deepcopy(config)
    queues = [queue for _, queue in paths_below(changed["queues"][0])]
    queue = draw.one_of([it for it in queues if it.get("limits")] or queues)
    if draw.once_in(4):
        queue.pop("limits", None)
        return _valid(changed)
    for limit in queue.setdefault("limits", [{"limit": "all", "users": ["*"]}]):
        if draw.once_in(2):
            limit["maxresources"] = {"vcore": draw.whole(1, 6)}
        else:
            limit["maxapplications"] = draw.whole(1, 3)
    return _valid(changed)


def without_a_queue(draw: Draw, config: Config) -> Config | None:
    """Leave a queue out, with all below it; the one above stays a parent."""
    changed = copy.deepcopy(config)
    # The root keeps one.
    above = [
        it
        for path, it in paths_below(changed["queues"][0])
        if len(it.get("queues", ())) > (path == "root")
    ]
    if not above:
        return None
    queue = draw.one_of(above)
    gone = draw.number(len(queue["queues"]))
    queue["queues"] = [it for number, it in enumerate(queue["queues"]) if number != gone]
    queue["parent"] = True
    return _valid(changed)
