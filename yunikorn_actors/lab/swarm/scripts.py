"""Scripts drawn at random, in the words of scenario files.

A script is a mapping with the keys of a scenario file, so it can be saved, read and run like any
other. Sizes are small and few, so that quotas, nodes and gangs meet.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from yunikorn_actors.config import parse_config
from yunikorn_actors.config.properties import PREEMPTION_POLICY, PRIORITY_POLICY, READERS
from yunikorn_actors.errors import ConfigError
from yunikorn_actors.lab.scenario_documents import Document
from yunikorn_actors.lab.schedules.random_draw import Draw

Tree = dict[str, "Tree"] | None
"""The names of queues, each with those below it; None is a leaf."""
Configs = tuple[dict[str, Any], ...]
Leaves = list[tuple[str, str]]
"""Paths of queues with their sort policies."""
THEMES = ("order", "gangs", "preempt", "limits")
CONTEST = "contest"
"""A theme of drawn worlds: several have a guarantee, and little else bounds them."""
EVICTIONS = "evictions"
"""Another one: as a contest, and most leaves say how their work may be preempted."""
LOWERED = "lowered"
"""Another one: parents with leaves, few of them with a guarantee that keeps a maximum up."""
LIMITED = "limited"
"""Another one: users and groups have limits in nearly every queue, and little else bounds them."""
FENCED = "fenced"
"""Another one: as a contest, and most queues change or hide the priorities below them."""
AWARE = "aware"
"""Another one: all leaves start one application after the other, within small maxima."""
PACKED = "packed"
"""Another one: a guarantee that a whole gang may claim by, and nothing else in its way."""
_CLAIMED = {EVICTIONS: (2, 6), PACKED: (4, 12)}
"""So much is guaranteed to the one queue that may always claim."""
_BARE = {CONTEST, EVICTIONS, LOWERED, FENCED, PACKED}
_OF_PREEMPTION = {"preempt", *_BARE}
USERS = ("ann", "bob", "cid")
GROUPS = (["dev"], ["ops", "dev"], ["ops"], ["none"])
LIMITED_GROUPS = (["dev"], ["ops"], ["dev", "ops"])
TASK_GROUPS = ("tg", "th")
SIZES = (
    {"vcore": 1000}, {"vcore": 1000}, {"vcore": 2000}, {"vcore": 3000},
    {"vcore": 2000, "memory": 5}, {"vcore": 1000, "memory": 10}, {"memory": 8}, {"vcore": 4000},
    {"vcore": 1000, "gpu": 1},
)  # fmt: skip
NODES = (
    {"vcore": 4000, "memory": 30}, {"vcore": 4000, "memory": 20}, {"vcore": 6000, "memory": 20},
    {"vcore": 8000, "memory": 40, "gpu": 2}, {"vcore": 3000},
)  # fmt: skip
NODE_ORDERS: tuple[dict[str, Any], ...] = (
    {"type": "binpacking"},
    {"type": "fair", "resourceweights": {"vcore": 1.0}},
    {"type": "binpacking", "resourceweights": {"memory": 2.0, "gpu": 0.5, "vcore": 0.0}},
    {"type": "fair", "resourceweights": {"vcore": 4.0, "memory": 1.0}},
    {"type": "binpacking", "resourceweights": {"vcore": 1.0, "memory": 5.0}},
    {"type": "least-fragmentation", "resourceweights": {"vcore": 1.0, "memory": 0.3}},
)


class Queues:
    """Draws configurations of one tree of queues."""

    def __init__(self, theme: str, number: int) -> None:
        self.draw = Draw(0, number)
        self._throttle = Draw(1, number)
        """By itself, so that what it draws changes nothing else."""
        self.theme = theme
        self.leaves: Leaves = []
        """Those of the last configuration."""
        draw, names = self.draw, "abc"[: self.draw.whole(2 if theme in _BARE else 1, 3)]
        self.shape = {
            name: dict.fromkeys("xy"[: draw.whole(1, 2)]) if draw.once_in(2) else None
            for name in names
        }
        if theme == LOWERED:
            self.shape["a"] = {"x": None, "y": None}

    def config(self) -> dict[str, Any]:
        """Draw the properties of the tree until they are a valid configuration."""
        while True:
            self.leaves = []
            root = self._queue("root", self.shape, "")
            partition: dict[str, Any] = {"name": "default", "queues": [root]}
            if self.draw.once_in(2):
                partition["nodesortpolicy"] = dict(self.draw.one_of(NODE_ORDERS))
            if self.draw.once_in(8):
                partition["preemption"] = {"enabled": False}
            elif self.draw.once_in(3):
                partition["preemption"] = {"quotapreemptionenabled": True}
            config = {"partitions": [partition]}
            if is_refused_at_sight(root, {}):
                continue
            with suppress(ConfigError):
                parse_config(json.dumps(config))
                return config

    def _queue(self, name: str, children: Tree, above: str, most: int = 0) -> dict[str, Any]:
        """Draw a queue and those below it, of which no more than `most` applications may run."""
        draw, path = self.draw, f"{above}.{name}" if above else name
        queue: dict[str, Any] = {"name": name}
        properties: dict[str, str] = {}
        if not above:
            queue["submitacl"] = "*"
            if draw.once_in(2):
                properties["reservation.max.nodes.percent"] = draw.one_of(("0", "60", "100"))
        else:
            queue |= self._bounds(most)
        if name == "a" and self.theme in _CLAIMED:
            # There is always a claim; its leaves may have guarantees of their own besides.
            queue["resources"] = {"guaranteed": {"vcore": draw.whole(*_CLAIMED[self.theme])}}
        if children:
            if draw.once_in(3):
                properties["queue.sort.policy"] = "fifo"
            most = queue.get("maxapplications", 0)
            queue["queues"] = [
                self._queue(sub, below, path, most) for sub, below in children.items()
            ]
        else:
            properties |= self._of_leaf(path)
        properties |= self._properties()
        if properties:
            queue["properties"] = properties
        if self.theme == LIMITED:
            limits = self._limits_everywhere()
        else:
            limits = self._limits() if draw.once_in(2 if self.theme == "limits" else 5) else []
        if limits:
            queue["limits"] = limits
        return queue

    def _of_leaf(self, path: str) -> dict[str, str]:
        draw, properties = self.draw, dict[str, str]()
        policy = draw.one_of(("fifo", "fifo", "fair", "fair", "stateaware"))
        if self.theme in {"gangs", EVICTIONS, LOWERED, PACKED} and policy == "fair":
            policy = "fifo"
        if self.theme == AWARE:
            policy = "stateaware"
        properties["application.sort.policy"] = policy
        self.leaves.append((path, policy))
        if draw.once_in(8):
            properties["gang.admission"] = "immediate"
        if draw.once_in(2 if self.theme in {EVICTIONS, LOWERED} else 8):
            properties["preemption.unit"] = draw.one_of(("allocation", "application"))
        if self.theme in _OF_PREEMPTION or draw.once_in(3):
            properties["preemption.delay"] = draw.one_of(("1s", "5s", "20s"))
        return properties | self._of_throttle()

    def _of_throttle(self) -> dict[str, str]:
        draw, properties = self._throttle, dict[str, str]()
        if self.theme not in _OF_PREEMPTION:
            return properties
        budgets, others = {EVICTIONS: (2, 3), PACKED: (8, 8)}.get(self.theme, (3, 5))
        if draw.once_in(budgets):
            properties["preemption.budget"] = draw.one_of(
                ("0/20s", "1/5s", "1/20s", "2/1m", "30%/10s", "50%/1m", "none")
            )
        if draw.once_in(others):
            properties["preemption.cooldown"] = draw.one_of(("2s", "10s", "40s"))
        if draw.once_in(others):
            properties["preemption.grace"] = draw.one_of(("5s", "30s"))
        return properties

    def _bounds(self, most: int) -> dict[str, Any]:
        draw = self.draw
        bounds: dict[str, Any] = {}
        resources: dict[str, Any] = {}
        if self.theme == PACKED:
            return {}
        if self.theme in {AWARE, LIMITED, *_BARE}:
            return self._few_bounds()
        if draw.once_in(2 if self.theme == "preempt" else 3):
            resources["guaranteed"] = {"vcore": draw.one_of((2, 4, 6))}
            if draw.once_in(4):
                resources["guaranteed"]["memory"] = "10"
        if "guaranteed" in resources and draw.once_in(3):
            resources["max"] = {"vcore": resources["guaranteed"]["vcore"] + draw.one_of((0, 1, 2))}
        elif draw.once_in(2 if self.theme in ("limits", "gangs") else 3):
            resources["max"] = {"vcore": draw.one_of((3, 4, 6, 8))}
        if resources:
            bounds["resources"] = resources
        if most or draw.once_in(3 if self.theme == "limits" else 6):
            bounds["maxapplications"] = draw.whole(1, most or 3)
        return bounds

    def _few_bounds(self) -> dict[str, Any]:
        """Bound just what the theme is about."""
        draw, resources = self.draw, dict[str, Any]()
        if self.theme == AWARE:
            most_apps = {"maxapplications": draw.whole(1, 3)} if draw.once_in(4) else {}
            return {"resources": {"max": {"vcore": draw.whole(2, 6)}}, **most_apps}
        if self.theme == LIMITED:
            return {"resources": {"max": {"vcore": draw.whole(3, 6)}}} if draw.once_in(5) else {}
        if draw.once_in(2 if self.theme in {CONTEST, FENCED} else 4):
            resources["guaranteed"] = {"vcore": draw.whole(1, 4)}
        if draw.once_in(6):
            resources["max"] = {"vcore": draw.whole(4, 8)}
        return {"resources": resources} if resources else {}

    def _properties(self) -> dict[str, str]:
        draw, properties = self.draw, {}
        rare = 4 if self.theme in _OF_PREEMPTION else 8
        if draw.once_in(6):
            properties["application.sort.priority"] = "disabled"
        if draw.once_in(2 if self.theme == FENCED else 8):
            properties[PRIORITY_POLICY] = READERS[PRIORITY_POLICY].words[-1]
        if draw.once_in(2 if self.theme == FENCED else 6):
            properties["priority.offset"] = draw.one_of(("1", "2", "-1"))
        if draw.once_in(rare * 2):
            # The first of them is the default.
            properties[PREEMPTION_POLICY] = draw.one_of(READERS[PREEMPTION_POLICY].words[1:])
        if draw.once_in(rare):
            properties["quota.preemption.delay"] = "10s"
        return properties

    def _limits(self) -> list[dict[str, Any]]:
        draw, limits = self.draw, []
        drawn = [{"users": names} for names in (["ann"], ["bob", "cid"], ["*"]) if draw.once_in(3)]
        if draw.once_in(2):
            drawn.append({"groups": list(draw.one_of(LIMITED_GROUPS))})
            if draw.once_in(3):
                drawn.append({"groups": ["*"]})
        for whom in drawn:
            limit: dict[str, Any] = {"limit": "drawn", **whom}
            kind = draw.whole(0, 2)
            if kind != 1:
                limit["maxresources"] = {"vcore": draw.one_of((2, 3, 5))}
            if kind != 0:
                limit["maxapplications"] = draw.one_of((1, 2))
            limits.append(limit)
        return limits

    def _limits_everywhere(self) -> list[dict[str, Any]]:
        """Bound one user, everybody, a group and the other groups, so low that two meet it."""
        draw, limits = self.draw, list[dict[str, Any]]()
        for whom in ({"users": ["ann"]}, {"users": ["*"]}, {"groups": ["dev"]}, {"groups": ["*"]}):
            # Nobody is in another group before one is named.
            if draw.once_in(2) and not (whom == {"groups": ["*"]} and len(limits) < 1):
                limit: dict[str, Any] = {"limit": "drawn", **whom}
                kind = draw.whole(0, 2)
                if kind != 1:
                    limit["maxresources"] = {"vcore": draw.whole(1, 4)}
                if kind != 0:
                    limit["maxapplications"] = draw.one_of((1, 1, 2, 3))
                limits.append(limit)
        return limits


def is_refused_at_sight(queue: dict[str, Any], above: dict[tuple[str, str], int]) -> bool:
    """Look for what most drawn configurations are refused for: their limits of applications.

    To read one takes a hundred times as long, and a dozen are drawn for one that is valid.
    """
    below, has_group = {**above}, False
    for limit in queue.get("limits", ()):
        most = limit.get("maxapplications", 0)
        for whom in [(kind, name) for kind in ("users", "groups") for name in limit.get(kind, ())]:
            if whom == ("groups", "*") and not has_group:
                return True
            has_group |= whom[0] == "groups"
            room = above.get(whom, above.get((whom[0], "*"), 0))
            if room and not 0 < most <= room:
                return True
            below[whom] = most
    return any(is_refused_at_sight(it, below) for it in queue.get("queues", ()))


@cache
def drawn_queues(theme: str, number: int, count: int = 3) -> tuple[Configs, Leaves]:
    """Return a configuration, some that may replace it, and the leaves with their policies."""
    queues = Queues(theme, number)
    first = queues.config()
    leaves = queues.leaves
    return (first, *(queues.config() for _ in range(count - 1))), leaves


class Writer:
    """Writes one script; what is named lives or lived, so that steps meet."""

    sizes: Sequence[dict[str, int]] = SIZES
    capacities: Sequence[dict[str, int]] = NODES

    def __init__(
        self, draw: Draw, theme: str, configs: Configs, leaves: Leaves, *, manual: bool
    ) -> None:
        self.draw = draw
        self.steps: list[dict[str, Any]] = []
        self.theme = theme
        self.configs = configs
        self.leaves = leaves
        self.manual = manual
        """Whether releases wait for a step that confirms them."""
        self.prefix = "app"
        """What the names of applications begin with."""
        self.apps: dict[str, bool] = {}
        """With whether each is a gang."""
        self.keys: list[tuple[str, str]] = []
        self.nodes: list[str] = []

    # -- steps

    def add(self, step: str, fields: object) -> None:
        self.steps.append({step: fields})

    def node(self) -> None:
        name = f"n{len(self.nodes) + 1}"
        self.nodes.append(name)
        fields: dict[str, Any] = {"id": name, "capacity": self.draw.one_of(self.capacities)}
        if self.draw.once_in(8):
            fields["occupied"] = {"vcore": 1000}
        self.add("create_node", fields)

    def app(self, *among: tuple[str, str]) -> None:
        """An application comes, in one of these leaves if any are named."""
        draw, name = self.draw, f"{self.prefix}-{len(self.apps) + 1}"
        leaf, policy = draw.one_of(among or self.leaves)
        fields: dict[str, Any] = {
            "id": name, "queue": leaf, "user": draw.one_of(USERS), "groups": draw.one_of(GROUPS),
        }  # fmt: skip
        gang = policy != "fair" and draw.once_in(2 if self.theme == "gangs" else 5)
        self.apps[name] = gang
        if gang:
            self.add_gang(fields)
            return
        if draw.once_in(12):
            fields["timeout"] = "40s"
        self.add("add_app", fields)

    def newcomer(self, *among: tuple[str, str]) -> None:
        """An application asks at once, so that it wants a place among those that run."""
        self.app(*among)
        app = list(self.apps)[-1]
        if not self.apps[app]:
            fields = {"resource": self.draw.one_of(self.sizes[:5]), "count": self.draw.whole(1, 3)}
            self.add_ask(app, {"key": f"k{len(self.keys)}", **fields})

    def add_gang(self, fields: dict[str, Any]) -> None:
        draw, name = self.draw, fields["id"]
        asks: list[dict[str, Any]] = []
        whole: dict[str, int] = {}
        for group in TASK_GROUPS[: 2 if draw.once_in(3) else 1]:
            count = draw.whole(1, 4 // (1 + bool(asks)))
            size = draw.one_of(self.sizes if draw.once_in(2) else self.sizes[:3])
            key = f"{name}-{group}"
            both = {"count": count, "task_group": group}
            asks.append({"key": f"{key}-ph", "resource": size, "placeholder": True, **both})
            if draw.once_in(2):
                mine = size if draw.once_in(2) else draw.one_of(self.sizes)
                asks.append({"key": f"{key}-real", "resource": mine, **both})
            for kind, n in size.items():
                whole[kind] = whole.get(kind, 0) + n * count
        if draw.once_in(3):
            asks.append({"key": f"{name}-driver", "resource": draw.one_of(self.sizes)})
        if draw.once_in(6):
            # It never comes together.
            whole["vcore"] = whole.get("vcore", 0) + 1000
        fields["placeholder_ask"] = whole
        fields["style"] = draw.one_of(("Soft", "Soft", "Hard"))
        if draw.once_in(3):
            fields["timeout"] = draw.one_of(("10s", "30s", "70s"))
        self.add("add_app", fields)
        if draw.once_in(6):
            return
        for ask in asks:
            if priority := draw.one_of((0, 0, 0, 1)):
                ask["priority"] = priority
            self.add_ask(name, ask)

    def add_ask(self, app: str, ask: dict[str, Any]) -> None:
        count = ask.get("count")
        names = [ask["key"]] if count is None else [f"{ask['key']}-{i}" for i in range(count)]
        self.keys += [(app, key) for key in names]
        self.add("ask", {"app": app, **ask})

    def ask(self) -> None:
        draw, app = self.draw, self.draw.one_of(list(self.apps))
        ask: dict[str, Any] = {"key": f"k{len(self.keys)}", "resource": draw.one_of(self.sizes)}
        if draw.once_in(2):
            ask["count"] = draw.whole(1, 5)
        elif draw.once_in(6):
            ask["max_allocations"] = draw.whole(2, 3)
        if draw.once_in(3):
            ask["priority"] = draw.one_of((1, 2, -1))
        if self.apps[app] and draw.once_in(3):
            ask["task_group"] = draw.one_of(TASK_GROUPS)
        if draw.once_in(12) and self.nodes:
            ask["required_node"] = draw.one_of(self.nodes)
        if draw.once_in(5):
            ask["preemption"] = draw.one_of(({"allow_self": False}, {"allow_other": False}))
        if draw.once_in(10):
            ask["originator"] = True
        if draw.once_in(15):
            ask["timeout"] = "20s"
        if draw.once_in(10):
            ask["tags"] = {"creationTime": draw.one_of(("1767225500", "1767225590"))}
        self.add_ask(app, ask)

    def contest(self) -> None:
        """One application takes what there is; the others want their share of it later."""
        draw, (greedy, *others) = self.draw, list(self.apps)[-4:]
        fields = {"resource": draw.one_of(self.sizes[:4]), "count": draw.whole(4, 10)}
        self.add_ask(greedy, {"key": f"fill{len(self.keys)}", **fields})
        self.add("advance", "1s")
        for app in others:
            fields = {"resource": draw.one_of(self.sizes[:5]), "count": draw.whole(1, 4)}
            if draw.once_in(3):
                fields["priority"] = draw.one_of((1, 2, -1))
            self.add_ask(app, {"key": f"share{len(self.keys)}", **fields})
        self.add("advance", draw.one_of(("3s", "21s", "35s")))
        # While victims are still to go, more is asked for, and some room comes from elsewhere.
        for _ in range(draw.whole(0, 2)):
            self.ask()
        draw.one_of((self.node, self.release, self.confirm))()

    def large(self) -> None:
        """A node is kept for a new application; others of its leaf come and want less."""
        draw, leaf = self.draw, self.draw.one_of(self.leaves)
        self.app(leaf)
        app = list(self.apps)[-1]
        if not self.apps[app]:
            size = {"vcore": draw.one_of((4000, 6000))}
            self.add_ask(app, {"key": f"large{len(self.keys)}", "resource": size, "count": 2})
        self.add("advance", "3s")
        self.newcomer(leaf)
        self.newcomer(leaf)

    def release(self) -> None:
        if self.keys:
            app, key = self.draw.one_of(self.keys)
            self.add(
                "release", {"app": app, "key": key} if not self.draw.once_in(8) else {"app": app}
            )

    def cancel(self) -> None:
        if self.keys:
            app, key = self.draw.one_of(self.keys)
            self.add("release_ask", {"app": app, "key": key})

    def remove(self) -> None:
        app = self.draw.one_of(list(self.apps))
        self.add("remove_app", app)
        self.apps.pop(app)
        self.apps[f"gone-{len(self.steps)}"] = False
        self.keys = [item for item in self.keys if item[0] != app]

    def about_node(self) -> None:
        draw = self.draw
        if self.nodes:
            what = draw.one_of(
                ("drain_node", "undrain_node", "undrain_node", "remove_node", "update_node")
            )
            node = draw.one_of(self.nodes)
            if what == "update_node":
                self.add(what, {"id": node, "capacity": draw.one_of(self.capacities)})
            else:
                self.add(what, node)

    def wait(self) -> None:
        self.add(
            "advance",
            self.draw.one_of(("1s", "3s", "3s", "6s", "16s", "21s", "35s", "61s", "16m", "61m")),
        )

    def confirm(self) -> None:
        if self.manual:
            self.add("confirm", "all")

    def reload(self) -> None:
        self.add("config", self.draw.one_of(self.configs))

    def bind(self) -> None:
        if self.nodes:
            key = f"b{len(self.keys)}"
            app = self.draw.one_of(list(self.apps))
            self.keys.append((app, key))
            self.add(
                "bind",
                {
                    "app": app,
                    "key": key,
                    "node": self.draw.one_of(self.nodes),
                    "resource": self.draw.one_of(self.sizes),
                },
            )

    def together(self) -> None:
        """Several at once, so that decisions and news cross."""
        steps, self.steps = self.steps, []
        for _ in range(self.draw.whole(2, 4)):
            self.draw.one_of(
                (self.ask, self.ask, self.release, self.confirm, self.about_node, self.node)
            )()
        if self.steps:
            steps.append({"together": self.steps})
        self.steps = steps

    def script(self, name: str) -> Document:
        opening = [self.node] * self.draw.whole(1, 3)
        for _ in range(self.draw.whole(2, 4)):
            self.app()
        if self.draw.once_in(3):
            # Much waits when the first node comes, so the order between all of it shows.
            opening = [self.ask] * self.draw.whole(2, 5) + opening
        for move in opening:
            move()
        if self.draw.once_in(1 if self.theme == "preempt" else 4):
            self.contest()
        often = (self.ask,) * 6 + (
            self.release, self.wait, self.wait, self.newcomer, self.newcomer, self.confirm,
        )  # fmt: skip
        seldom = (
            self.cancel, self.remove, self.about_node, self.node, self.reload, self.bind,
            self.together, self.confirm, self.app, self.contest, self.large, self.large,
        )  # fmt: skip
        for _ in range(self.draw.whole(8, 22)):
            self.draw.one_of(seldom if self.draw.once_in(3) else often)()
        script: Document = {"name": name, "queues": self.configs[0]}
        if self.manual:
            script["rm"] = {"confirm": "manual"}
        return {**script, "steps": self.steps}
