"""A drawn world: resource managers with partitions, what has happened to them, and its steps.

Each partition has a writer of its own, which knows what is there. All of them use the same few
names, so what belongs to one is taken for another's where a name alone is looked at.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from yunikorn_actors.config import parse_duration
from yunikorn_actors.config.node_order import NODE_ORDERS
from yunikorn_actors.config.policy_names import SHIPPED_NAMES
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.swarm import device_words
from yunikorn_actors.lab.swarm.reloads import (
    NO_LEAVES,
    with_back_off,
    with_capitals,
    with_policies,
    with_second_type,
)
from yunikorn_actors.lab.swarm.request_forms import in_later_form
from yunikorn_actors.lab.swarm.scripts import THEMES, Writer, drawn_queues
from yunikorn_actors.lab.swarm.small_bounds import NS, TIMES, drawn_settings
from yunikorn_actors.lab.swarm.world_queues import with_parts, with_rules
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.policies.loading import policies_at
from yunikorn_actors.state.reserved_nodes import WAIT_NS
from yunikorn_actors.values.durations import HOUR, SECOND
from yunikorn_actors.values.tags import (
    APP_TAG_CREATE_FORCE,
    APP_TAG_CREATION_TIME,
    APP_TAG_NAMESPACE_RESOURCE_GUARANTEED,
    APP_TAG_NAMESPACE_RESOURCE_MAX_APPS,
    APP_TAG_NAMESPACE_RESOURCE_QUOTA,
    APP_TAG_NODE_SORT_POLICY,
    APP_TAG_QUEUE_FALLBACK,
    APP_TAG_STATE_AWARE_DISABLE,
    TAG_CREATION_TIME,
)

Move = Callable[["PartitionWriter"], None]
Moves = dict[str, tuple[Move, ...]]
"""What may happen, by the part of a world that it belongs to."""

PARTITIONS: Final = ("default", "gpu", "spare")
_WORDS: Final = {
    "priority": "priorities",
    "required_node": "required-nodes",
    "preemption": "opt-outs",
    "originator": "opt-outs",
    "max_allocations": "repeats",
    "timeout": "timeouts",
    "occupied": "foreign-work",
}
"""The part to which a word of a step belongs."""
TIMEOUTS: Final = ("5s", "10s", "20s", "40s", "2m")
CREATED: Final = ("1767225500", "1767225590", "1767225605")
"""Seconds: before the first moment of a run, and after it."""
_BEGUN_S: Final = 1767225600
_APART_S: Final = (-90, -10, -1, 1, 5, 60, 600)
_TAGS: Final[tuple[dict[str, str], ...]] = (
    *({APP_TAG_NODE_SORT_POLICY: name} for name in NODE_ORDERS),
    {APP_TAG_STATE_AWARE_DISABLE: "true"},
    {APP_TAG_CREATE_FORCE: "true"},
    {APP_TAG_QUEUE_FALLBACK: "false"},
    {APP_TAG_NAMESPACE_RESOURCE_MAX_APPS: "2"},
    {APP_TAG_NAMESPACE_RESOURCE_QUOTA: '{"resources": {"vcore": {"value": 3000}}}'},
    {
        APP_TAG_NAMESPACE_RESOURCE_QUOTA: '{"resources": {"vcore": {"value": 4000}}}',
        APP_TAG_NAMESPACE_RESOURCE_GUARANTEED: '{"resources": {"vcore": {"value": 2000}}}',
    },
)
_OF_DEVICES: Final = {
    "create_node": device_words.node_with_devices,
    "update_node": device_words.changed_devices,
    "ask": device_words.with_model,
    "bind": device_words.with_devices,
}
_OF_EVICTIONS: Final = {"one-eviction", "one-quota"}
_TO_PACK: Final = (
    {"vcore": 1000}, {"vcore": 2000}, {"vcore": 3000}, {"vcore": 2000, "memory": 2},
    {"vcore": 1000, "memory": 3},
)  # fmt: skip
_NODES_TO_PACK: Final = (
    {"vcore": 3000, "memory": 6}, {"vcore": 4000, "memory": 6}, {"vcore": 5000, "memory": 8},
    {"vcore": 6000, "memory": 8},
)  # fmt: skip
"""Several of them fit on a node, and not in any way."""
_UNITS: Final = ({"vcore": 1000}, {"vcore": 1000}, {"vcore": 2000}, {"vcore": 1000, "memory": 1})
"""Small multiples of what quotas, guarantees and nodes are made of, so that bounds are met."""
_UNIT_NODES: Final = (
    {"vcore": 2000, "memory": 8}, {"vcore": 3000, "memory": 8},
    {"vcore": 4000, "memory": 8}, {"vcore": 4000, "memory": 8},
)  # fmt: skip
_OF_TWO_TYPES: Final = (
    {"vcore": 1000, "memory": 1}, {"vcore": 1000, "memory": 2}, {"vcore": 2000, "memory": 1},
    {"vcore": 1000}, {"memory": 1}, {"memory": 3}, {"vcore": 3000, "memory": 2},
    {"vcore": 1000, "memory": 3}, {"vcore": 2000, "memory": 4},
)  # fmt: skip
_NODES_OF_TWO_TYPES: Final = (
    {"vcore": 4000, "memory": 6}, {"vcore": 4000, "memory": 3}, {"vcore": 6000, "memory": 4},
    {"vcore": 8000, "memory": 8}, {"vcore": 2000, "memory": 8},
)  # fmt: skip
"""What is short is now the one type, now the other."""
_TREES: Final = 250
"""So many trees of queues there are for each theme: to draw one takes long, so they are kept."""
_THEMES: Final = {"order": "", "gangs": "gangs", "preempt": "guarantees", "limits": "limits"}
"""What the queues of a theme are for."""
_ALIKE: Final = 0.7
_OF_WORDS: Final = 9
"""The seed of words that steps have now and then."""
_ENDS: Final = (
    "STOPPED_BY_RM", "TIMEOUT", "PREEMPTED_BY_SCHEDULER", "PLACEHOLDER_REPLACED",
    "PREEMPTED_BY_SCHEDULER", "PLACEHOLDER_REPLACED", "UNKNOWN_TERMINATION_TYPE",
)  # fmt: skip


class Scene(NamedTuple):
    """A world that has nothing but one thing, and what belongs to that."""

    queues: str
    """The theme of its queues."""
    parts: frozenset[str]
    """What else belongs to it."""
    begin: Move
    moves: Moves
    nodes: tuple[int, int] = (1, 2)
    """So many nodes it has at least and at most, before anything else happens."""


class World:
    """All of it: the resource managers, and what happens, as far as the parts allow."""

    def __init__(
        self, draw: Draw, parts: frozenset[str], policies: str, scenes: dict[str, Scene]
    ) -> None:
        self.draw, self.policies = draw, policies
        self.names = policies_at(policies).own_names if policies else SHIPPED_NAMES
        self.scene = next((scene for scene in scenes if scene in parts), "")
        """What this world is about and has little else."""
        self.about = scenes.get(self.scene)
        self.parts = parts | (self.about.parts if self.about else frozenset())
        self.steps: list[dict[str, Any]] = []
        self.passed_ns = 0
        """How much time has passed so far, about."""
        self._is_together = False
        self.settings = drawn_settings(draw, parts)
        self.is_large = "large" in parts and not self.scene
        several = "several-partitions" in parts and not self.scene
        self.partition_names = PARTITIONS[: draw.whole(2, 3) if several else 1]
        known = Settings(**{f"{it}{NS}": n for it, n in self.settings.items() if _is_time(it)})
        times = (getattr(known, name) for name in TIMES)
        self.times_ns = [time_ns for time_ns in times if time_ns <= HOUR]
        if "reservations" in self.parts:
            self.times_ns += (WAIT_NS, WAIT_NS)
        """After so long something may be due."""
        self._first_tree: tuple[str, int] | None = None
        count = 1
        if "several-managers" in parts:
            count = 2 if self.scene else draw.whole(2, 4)
        self.managers: list[Manager] = []
        for number in range(1, count + 1):
            self.managers.append(Manager(self, f"rm-{number}"))
        self.queues = self.managers[0].config()
        """What a resource manager registers with that brings no other queues."""

    def tree(self) -> tuple[str, int]:
        """Draw what its queues are like: often like those of the first resource manager."""
        themes = [theme for theme in THEMES if _THEMES[theme] in {"", *self.parts}]
        if self.about:
            themes = [self.about.queues]
        drawn = (self.draw.one_of(themes), self.draw.number(_TREES))
        self._first_tree = self._first_tree or drawn
        return self._first_tree if self.draw.chance(_ALIKE) else drawn

    @contextmanager
    def together(self) -> Iterator[None]:
        """Have what is added meanwhile begin without a pause; what is joined is one anyway."""
        if self._is_together or any(it.is_joining for it in self.managers):
            yield
            return
        steps, self.steps, self._is_together = self.steps, [], True
        yield
        self._is_together = False
        if self.steps:
            steps.append({"together": self.steps})
        self.steps = steps


class Manager:
    """A resource manager: its partitions, and what it does with all of them at once."""

    def __init__(self, world: World, rm_id: str) -> None:
        self.world = world
        self.draw = world.draw
        self.rm_id = rm_id
        self.is_lost = False
        self.is_joining = False
        """Whether what it does now becomes one request."""
        self.tree = world.tree()
        self.partitions = [PartitionWriter(self, name) for name in world.partition_names]

    def config(self) -> dict[str, Any]:
        return {"partitions": [partition.config for partition in self.partitions]}

    def add(self, step: str, fields: dict[str, Any]) -> None:
        """Add a step; it names the resource manager, which may not be the first any more."""
        self.world.steps.append({step: {"rm": self.rm_id, **self._varied(step, fields)}})

    def _varied(self, step: str, fields: dict[str, Any]) -> dict[str, Any]:
        """Use words now and then that a step hardly needs; drawn apart from all else."""
        draw, parts = Draw(_OF_WORDS, len(self.world.steps)), self.world.parts
        match step:
            case "create_node" if "drained-nodes" in parts and draw.once_in(6):
                return {**fields, "draining": True}
            case "create_node" if "priorities" in parts and fields.get("allocations"):
                running = [{**it, "priority": draw.whole(-1, 2)} for it in fields["allocations"]]
                return {**fields, "allocations": running}
            case "bind" if "priorities" in parts and fields.get("app") and draw.once_in(3):
                return {**fields, "priority": draw.whole(-1, 2)}
            case "confirm" if draw.once_in(3):
                some = [(it.name, *key) for it in self.partitions for key in it.keys[-6:]]
                if some:
                    partition, app, key = draw.one_of(some)
                    named = {"partition": partition, "app": app, "key": key}
                    return {**named, "type": draw.one_of(_ENDS)}
        return fields

    def add_raw(self, call: str, request: dict[str, Any]) -> None:
        self.world.steps.append({"raw": {"call": call, "request": request}})


class PartitionWriter(Writer):
    """What happens in one partition."""

    def __init__(self, manager: Manager, name: str) -> None:
        self.manager = manager
        self.world = manager.world
        self.name = name
        draw, parts = manager.draw, manager.world.parts
        theme, number = manager.tree
        several = {"reloads", "several-partitions"} & parts
        configs, leaves = drawn_queues(theme, number, 3 if several else 1)
        drawn = tuple(with_parts(config, parts, name) for config in configs)
        if "back-off" in parts:
            drawn = tuple(with_back_off(draw, config) for config in drawn)
        if "capitals" in parts:
            drawn = tuple(with_capitals(draw, config) for config in drawn)
        if "policies" in parts:
            is_one = manager.world.scene == "one-gate"
            names = manager.world.names
            drawn = tuple(with_policies(draw, it, names, is_one=is_one) for it in drawn)
        if manager.world.scene in _OF_EVICTIONS:
            self.sizes, self.capacities = _UNITS, _UNIT_NODES
        if manager.world.scene == "one-packing":
            self.sizes, self.capacities = _TO_PACK, _NODES_TO_PACK
        if "second-type" in parts:
            drawn = tuple(with_second_type(draw, config) for config in drawn)
            self.sizes, self.capacities = _OF_TWO_TYPES, _NODES_OF_TWO_TYPES
        if "devices" in parts:
            self.sizes, self.capacities = device_words.SIZES, device_words.NODES
        if "placement-rules" in parts:
            is_one = manager.world.scene == "one-placement"
            drawn = with_rules(draw, drawn, is_one=is_one)
        super().__init__(draw, theme, drawn, leaves, manual="manual-confirmations" in parts)
        if name != PARTITIONS[0]:
            # What is notified names no partition, so one resource manager needs names of its own.
            self.prefix = name
        # The same names below the same parents, as the rules want it, and other properties.
        self.config = self.configs[PARTITIONS.index(name) % len(self.configs)]
        self.busy: list[str] = []
        """Applications for which most of the jobs come."""
        self.greedy = ""
        """The application that has taken all room."""
        self.entitled: dict[str, bool] = {}
        """Whether an application is in a leaf with a guarantee."""
        self.asked: dict[str, dict[str, Any]] = {}
        """The ask that a world is about, as each application sent it last."""
        self.sent: dict[str, list[dict[str, Any]]] = {}
        """The steps that were written, by their words."""
        self.places: dict[tuple[str, str], str] = {}
        """Where work was reported to run: the application, the key, and the node."""

    def add(self, step: str, fields: object) -> None:
        """Write a step without the words whose part this run has not."""
        if step == "advance":
            self.world.steps.append({step: fields})
            self.world.passed_ns += parse_duration(str(fields)) or 0
            return
        parts = self.world.parts
        words: dict[str, Any] = fields if isinstance(fields, dict) else {"id": fields}
        kept = {word: it for word, it in words.items() if _WORDS.get(word, "") in {"", *parts}}
        if step == "ask" and "creation-times" not in parts and "policies" not in parts:
            kept.pop("tags", None)
        if self.name != PARTITIONS[0]:
            kept.setdefault("partition", self.name)
        is_placed = step == "add_app" and "placement-rules" in parts
        if is_placed and self.world.scene != "one-placement":
            kept = self._placed_by_rules(kept)
        if step in {"add_app", "ask"}:
            kept = self._with_time(step, kept)
        if step == "add_app" and "application-tags" in parts and self.draw.once_in(3):
            kept = {**kept, "tags": {**kept.get("tags", {}), **self.draw.one_of(_TAGS)}}
        if step == "ask" and "odd-amounts" in parts:
            kept = self._with_odd_amounts(kept)
        if "devices" in parts and (words_of := _OF_DEVICES.get(step)) is not None:
            kept = words_of(self.draw, kept)
        if "policies" in parts and step in {"add_app", "ask"}:
            kept = device_words.with_runtime(self.draw, kept)
        self.sent.setdefault(step, []).append(kept)
        self.send(step, kept)

    def send(self, step: str, fields: dict[str, Any]) -> None:
        later = step == "ask" and "later-form" in self.world.parts and self.draw.once_in(2)
        # The later form has no timeout.
        later = later and "timeout" not in fields
        # What is joined is still to be read as a step.
        if later and not self.manager.is_joining:
            has_policy = not self.draw.once_in(3)
            raw = in_later_form(self.manager.rm_id, {step: fields}, has_policy=has_policy)
            self.world.steps.append(raw)
        else:
            self.manager.add(step, fields)

    def _with_time(self, step: str, fields: dict[str, Any]) -> dict[str, Any]:
        """Bound the time that it may run, and have it come from before."""
        draw, parts = self.draw, self.world.parts
        if "timeouts" in parts and "timeout" not in fields and draw.once_in(4):
            fields = {**fields, "timeout": draw.one_of(TIMEOUTS)}
        if "timeout" in fields:
            self.world.times_ns.append(parse_duration(fields["timeout"]))
        if step == "ask" and "creation-times" in parts and draw.once_in(5):
            tags = {**fields.get("tags", {}), TAG_CREATION_TIME: self.created_time()}
            fields = {**fields, "tags": tags}
        if step == "add_app" and "creation-times" in parts and draw.once_in(3):
            tags = {**fields.get("tags", {}), APP_TAG_CREATION_TIME: self.created_time()}
            fields = {**fields, "tags": tags}
        return fields

    def created_time(self) -> str:
        """Draw a time around the beginning of the run, or around now: also one that is to come."""
        around_now = _BEGUN_S + self.world.passed_ns // SECOND + self.draw.one_of(_APART_S)
        return self.draw.one_of((*CREATED, *(str(around_now),) * 3))

    def _with_odd_amounts(self, ask: dict[str, Any]) -> dict[str, Any]:
        """Ask for a unit more, or less, than what quotas and nodes are made of."""
        draw, size = self.draw, ask.get("resource")
        if not size or min(size.values()) < 1:
            return ask
        return {**ask, "resource": {it: n + draw.one_of((-1, 0, 0, 1)) for it, n in size.items()}}

    def _placed_by_rules(self, app: dict[str, Any]) -> dict[str, Any]:
        """Ask for a queue that is not there, or have a tag by which a rule places it."""
        draw = self.draw
        if draw.once_in(3):
            app = {**app, "queue": draw.one_of(NO_LEAVES)}
        if draw.once_in(3):
            app = {**app, "tags": {"namespace": draw.one_of(("dev", "ops"))}}
        return app

    def earlier(self, step: str) -> dict[str, Any] | None:
        sent = self.sent.get(step)
        return dict(self.draw.one_of(sent)) if sent else None

    def add_gang(self, fields: dict[str, Any]) -> None:
        if {"gangs", "one-gang"} & self.world.parts:
            super().add_gang(fields)
        else:
            self.apps[fields["id"]] = False
            self.add("add_app", fields)

    def confirm(self) -> None:
        if self.manual:
            self.manager.add("confirm", {})


def allowed(moves: Moves, parts: frozenset[str]) -> tuple[Move, ...]:
    """Return the moves of the parts that a world has, as often as they stand there."""
    return tuple(
        move for part, several in moves.items() if not part or part in parts for move in several
    )


def _is_time(setting: str) -> bool:
    return f"{setting}{NS}" in TIMES
