"""Draws a world: resource managers with partitions, and what happens to them, as a scenario file.

Each partition has a writer of its own, which knows what is there. All of them use the same few
names, so what belongs to one is taken for another's where a name alone is looked at.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from yunikorn_actors.config import parse_duration
from yunikorn_actors.config.node_order import NODE_ORDERS
from yunikorn_actors.config.policy_names import SHIPPED_NAMES
from yunikorn_actors.lab.scenario_documents import Document
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.swarm import (
    device_words,
    scenes_of_limits,
    scenes_of_one,
    scenes_of_placement,
    scenes_of_precedence,
    scenes_of_swaps,
)
from yunikorn_actors.lab.swarm.broken_requests import damaged
from yunikorn_actors.lab.swarm.reloads import (
    NO_LEAVES,
    RULES,
    Config,
    paths_below,
    users_queue,
    with_acls,
    with_back_off,
    with_capitals,
    with_little,
    with_lower_quota,
    with_one_change,
    with_policies,
    with_second_type,
    without_a_queue,
)
from yunikorn_actors.lab.swarm.request_forms import (
    as_raw,
    in_later_form,
    joined,
    release_of_all,
    release_of_one,
)
from yunikorn_actors.lab.swarm.scripts import (
    AWARE,
    CONTEST,
    EVICTIONS,
    FENCED,
    GROUPS,
    LIMITED,
    LOWERED,
    TASK_GROUPS,
    THEMES,
    USERS,
    Writer,
    drawn_queues,
)
from yunikorn_actors.lab.swarm.small_bounds import NS, TIMES, drawn_extra, drawn_settings
from yunikorn_actors.lab.swarm.world_parts import OF_ONE, OPERATORS
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.policies.loading import policies_at
from yunikorn_actors.scenario.drivers import INSTANCE
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
    FOREIGN_DEFAULT,
    NODE_READY_ATTRIBUTE,
    TAG_CREATION_TIME,
    TAG_FOREIGN,
    TAG_RUNTIME,
)

Move = Callable[[], None]
Moves = dict[str, tuple[Move, ...]]
"""What may happen, by the part that it belongs to."""

PARTITIONS: Final = ("default", "gpu", "spare")
_TREES: Final = 250
"""So many trees of queues there are for each theme: to draw one takes long, so they are kept."""
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
_THEMES: Final = {"order": "", "gangs": "gangs", "preempt": "guarantees", "limits": "limits"}
"""What the queues of a theme are for."""
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
_SCENES: Final = {
    "one-gang": "gangs",
    "one-contest": CONTEST,
    "one-rush": "limits",
    "one-reservation": "limits",
    "one-gate": "limits",
    "one-eviction": EVICTIONS,
    "one-quota": LOWERED,
    "one-node": "limits",
    "one-ask": "limits",
    "one-manager": "limits",
    "one-swap": "limits",
    "one-user": LIMITED,
    "one-placement": "order",
    "one-priority": FENCED,
    "one-leaf": AWARE,
}
"""The parts of which a world has nothing but one, each with what its queues are for."""
_OF_SCENES: Final = {
    "one-gang": frozenset[str](),
    "one-contest": frozenset({"guarantees", "waits"}),
    "one-rush": frozenset({"quotas", "limits"}),
    "one-reservation": frozenset({"reservations", "waits"}),
    "one-gate": frozenset({"policies", "releases", "waits"}),
    "one-eviction": frozenset({"guarantees", "fences", "gangs", "opt-outs", "repeats", "waits"}),
    "one-quota": frozenset({
        "guarantees", "fences", "gangs", "opt-outs", "quota-preemption", "quotas", "waits",
    }),
    "one-node": frozenset({"reservations", "required-nodes"}),
    "one-ask": frozenset({"reservations", "repeats"}),
    "one-manager": frozenset({"extra-configuration", "quotas"}),
    "one-swap": frozenset({"gangs", "repeats", "required-nodes", "waits"}),
    "one-user": frozenset({"limits", "application-limits", "reloads", "waits"}),
    "one-placement": frozenset({"placement-rules", "reloads", "quotas", "quota-preemption"}),
    "one-priority": frozenset({"guarantees", "fences", "priorities", "waits"}),
    "one-leaf": frozenset({"gangs", "quotas", "application-limits", "sort-policies", "waits"}),
}  # fmt: skip
"""What else belongs to it."""
_ALIKE: Final = 0.7
_TIMEOUTS: Final = ("5s", "10s", "20s", "40s", "2m")
_CREATED: Final = ("1767225500", "1767225590", "1767225605")
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
_GROUP: Final = "together"
"""The policy group of those that share a configuration."""
_OF_DEVICES: Final = {
    "create_node": device_words.node_with_devices,
    "update_node": device_words.changed_devices,
    "ask": device_words.with_model,
    "bind": device_words.with_devices,
}
_OF_EVICTIONS: Final = {"one-eviction", "one-quota"}
_NODES_OF_SCENES: Final = {
    "one-reservation": (1, 5), "one-quota": (2, 4), "one-eviction": (1, 3), "one-ask": (1, 3),
    "one-swap": (2, 3),
}  # fmt: skip
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
_MANNERS_OF_WORK: Final[tuple[dict[str, Any], ...]] = (
    {}, {"priority": 1}, {"priority": -1}, {"preemption": {"allow_self": False}},
    {"originator": True},
)  # fmt: skip
_WINDOWS: Final = ("2s", "5s", "10s", "15s", "20s")
"""Times that leaves name for their budgets and cooldowns, and the pause of a search."""
_RUNS: Final = (8, 12, 20, 30)
_JOBS: Final = (
    {"vcore": 1000}, {"vcore": 1000}, {"vcore": 2000}, {"vcore": 3000}, {"vcore": 4000},
    {"vcore": 6000}, {"vcore": 2000, "memory": 10}, {"vcore": 1000, "memory": 20},
)  # fmt: skip
_RUNTIMES: Final = ("1", "3", "5", "8", "20", "60")
"""Seconds."""
_LARGE_RUNS: Final = (60, 100, 150, 250)
_ENDS: Final = (
    "TIMEOUT",
    "PREEMPTED_BY_SCHEDULER",
    "PLACEHOLDER_REPLACED",
    "UNKNOWN_TERMINATION_TYPE",
)
_ISSUED: Final = 30
"""So many UUIDs a small world comes to, about."""
_ATTRIBUTES: Final = (
    {NODE_READY_ATTRIBUTE: "false"},
    {NODE_READY_ATTRIBUTE: "false", "zone": "a"},
    {NODE_READY_ATTRIBUTE: "true"},
    {"zone": "a"},
    {"zone": "b"},
)
_BURST: Final = 6
"""So many steps come without a pause at most."""
_JOINED: Final = 5
"""So many moves make one request at most."""


class World:
    """All of it: the resource managers, and what happens, as far as the parts allow."""

    def __init__(self, draw: Draw, parts: frozenset[str], policies: str = "") -> None:
        self.draw, self.policies = draw, policies
        self.names = policies_at(policies).own_names if policies else SHIPPED_NAMES
        self.scene = next((scene for scene in _SCENES if scene in parts), "")
        """What this world is about and has little else."""
        self.parts = parts | _OF_SCENES.get(self.scene, frozenset())
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
        if self.scene:
            themes = [_SCENES[self.scene]]
        drawn = (self.draw.one_of(themes), self.draw.number(_TREES))
        self._first_tree = self._first_tree or drawn
        return self._first_tree if self.draw.chance(_ALIKE) else drawn

    def script(self, name: str) -> Document:
        draw = self.draw
        for manager in self.managers:
            manager.begin()
        for _ in range(self._length()):
            if "bursts" in self.parts and draw.once_in(5):
                self._burst()
            else:
                draw.one_of(self.managers).move()
        script: Document = {"name": name, "queues": self.queues}
        if self.policies:
            script["policies"] = self.policies
        if self.settings:
            script["settings"] = self.settings
        if "manual-confirmations" in self.parts:
            script["rm"] = {"confirm": "manual"}
        return {**script, "steps": self.steps}

    def _length(self) -> int:
        if self.is_large:
            return self.draw.whole(25, 50)
        if self.scene == "one-gate" or self.scene in OF_ONE:
            # A job has to come, to wait, and to be passed; and so with all that comes to one thing.
            return self.draw.whole(6, 16)
        return self.draw.whole(3, 10 if self.scene else 18)

    def _burst(self) -> None:
        """Several at once, of any resource managers, so that they meet in the mailboxes."""
        with self.together():
            for _ in range(self.draw.whole(2, _BURST)):
                self.draw.one_of(self.managers).move(at_once=True)

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
        if world.scene:
            in_no_time = [it.moves_of_scene() for it in self.partitions]
        else:
            in_no_time = [self._moves(), *(it.moves() for it in self.partitions)]
        self._at_once = self._allowed(*in_no_time)
        in_time = (it.moves_in_time() for it in self.partitions)
        self._all = (*self._at_once, *self._at_once, *self._allowed(*in_time))

    def _moves(self) -> Moves:
        return {
            "reloads": (self.reload, self.change_queue, self.leave_queue_out),
            "quota-preemption": (self.lower_quota,),
            "removed-partitions": (self.leave_partition_out,),
            "lost-managers": (self.leave,),
            "new-registrations": (self.register, self.come_back),
            "predicates": (self.refuse_nodes,),
            "manual-confirmations": (self.confirm, self.confirm),
            "joined-requests": (self.join, self.join),
        }

    def _allowed(self, *moves: Moves) -> tuple[Move, ...]:
        parts = self.world.parts
        return tuple(
            move
            for by_part in moves
            for part, several in by_part.items()
            if not part or part in parts
            for move in several
        )

    def config(self) -> dict[str, Any]:
        return {"partitions": [partition.config for partition in self.partitions]}

    def add(self, step: str, fields: dict[str, Any]) -> None:
        """Add a step; it names the resource manager, which may not be the first any more."""
        self.world.steps.append({step: {"rm": self.rm_id, **fields}})

    def begin(self) -> None:
        self.register()
        for partition in self.partitions:
            partition.begin()

    def move(self, *, at_once: bool = False) -> None:
        if self.is_lost and self.draw.once_in(2):
            self.come_back()
        else:
            self.draw.one_of(self._at_once if at_once else self._all)()

    # -- what happens to all partitions

    def register(self) -> None:
        config = self.config()
        fields: dict[str, Any] = {} if config == self.world.queues else {"config": config}
        if extra := drawn_extra(self.draw, self.world.parts):
            fields["extra"] = extra
        if "policy-groups" in self.world.parts and self.draw.once_in(2):
            self._register_in_group(config, extra)
        elif OPERATORS in self.world.parts and self.draw.once_in(4):
            # It lives under what an operator loads.
            names = {"rmID": self.rm_id, "config": "", "extraConfig": extra}
            self._raw("register_resource_manager", names)
        else:
            self.add("register", fields)
        self.is_lost = False

    def _register_in_group(self, config: dict[str, Any], extra: dict[str, str]) -> None:
        """Members bring the same configuration, or none."""
        text = "" if self.draw.once_in(3) else json.dumps(config)
        names = {"rmID": self.rm_id, "policyGroup": _GROUP}
        self._raw("register_resource_manager", {**names, "config": text, "extraConfig": extra})

    def _raw(self, call: str, request: dict[str, Any]) -> None:
        self.world.steps.append({"raw": {"call": call, "request": request}})

    def come_back(self) -> None:
        """Register, and report what there was; the order of that differs."""
        self.register()
        for partition in self.partitions:
            partition.report_all()

    def leave(self) -> None:
        step = "unregister" if self.draw.once_in(4) else "lose_rm"
        self.world.steps.append({step: self.rm_id})
        self.is_lost = True

    def reload(self) -> None:
        partition = self.draw.one_of(self.partitions)
        self._reload(partition, self.draw.one_of(partition.configs))

    def lower_quota(self) -> None:
        """Send a configuration in which a queue may have less than it perhaps uses."""
        partition = self.draw.one_of(self.partitions)
        self._reload(partition, with_lower_quota(self.draw, partition.config))

    def bring_down(self, partition: "PartitionWriter", path: str) -> None:
        """Send a configuration in which this queue may have little, and soon."""
        self._reload(partition, with_little(self.draw, partition.config, path))

    def change_queue(self) -> None:
        partition = self.draw.one_of(self.partitions)
        changed = with_one_change(self.draw, partition.config, partition.configs)
        self._reload(partition, changed)

    def leave_queue_out(self) -> None:
        """Send a configuration without one of the queues; the next one may have it again."""
        partition = self.draw.one_of(self.partitions)
        self._reload(partition, without_a_queue(self.draw, partition.config))

    def _reload(self, partition: "PartitionWriter", config: Config | None) -> None:
        if config is not None:
            partition.config = config
            self._configure(self.config())

    def leave_partition_out(self) -> None:
        """Send a configuration without one of the partitions; the next one has it again."""
        gone = self.draw.one_of(self.partitions)
        left = [it.config for it in self.partitions if it is not gone]
        if left:
            self._configure({"partitions": left})

    def _configure(self, config: dict[str, Any]) -> None:
        fields: dict[str, Any] = {"queues": config}
        if extra := drawn_extra(self.draw, self.world.parts):
            fields["extra"] = extra
        if "policy-groups" in self.world.parts and self.draw.once_in(2):
            names = {"rmID": self.rm_id, "policyGroup": _GROUP, "config": json.dumps(config)}
            self._raw("update_configuration", {**names, "extraConfig": extra})
        else:
            self.add("config", fields)

    def refuse_nodes(self) -> None:
        """Its predicates refuse some nodes from now on, or none any more."""
        nodes = self.draw.one_of(self.partitions).nodes
        deny: list[dict[str, Any]] = []
        if nodes and not self.draw.once_in(3):
            deny.append({"node": self.draw.one_of(nodes), "key": self.draw.one_of(("*", "k*"))})
            if self.draw.once_in(4):
                deny[0]["raises"] = True
        fields: dict[str, Any] = {"deny": deny}
        if "victims" in self.world.parts:
            fields["victims"] = self.draw.whole(0, 2)
        self.add("predicate", fields)

    def confirm(self) -> None:
        self.add("confirm", {})

    def join(self) -> None:
        """Say several things in one request, in one of each kind."""
        world, partition = self.world, self.draw.one_of(self.partitions)
        steps, world.steps, self.is_joining = world.steps, [], True
        for _ in range(self.draw.whole(2, _JOINED)):
            self.draw.one_of(self._allowed(partition.moves_to_join()))()
        world.steps = [*steps, *joined(self.rm_id, world.steps)]
        self.is_joining = False


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
        drawn = tuple(_with_parts(config, parts, name) for config in configs)
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
        if "second-type" in parts:
            drawn = tuple(with_second_type(draw, config) for config in drawn)
            self.sizes, self.capacities = _OF_TWO_TYPES, _NODES_OF_TWO_TYPES
        if "devices" in parts:
            self.sizes, self.capacities = device_words.SIZES, device_words.NODES
        if "placement-rules" in parts:
            is_one = manager.world.scene == "one-placement"
            drawn = _with_rules(draw, drawn, is_one=is_one)
        super().__init__(draw, theme, drawn, leaves, manual="manual-confirmations" in parts)
        if name != PARTITIONS[0]:
            # What is notified names no partition, so one resource manager needs names of its own.
            self.prefix = name
        # The same names below the same parents, as the rules want it, and other properties.
        self.config = self.configs[PARTITIONS.index(name) % len(self.configs)]
        self._busy: list[str] = []
        """Applications for which most of the jobs come."""
        self._greedy = ""
        """The application that has taken all room."""
        self._entitled: dict[str, bool] = {}
        """Whether an application is in a leaf with a guarantee."""
        self.asked: dict[str, dict[str, Any]] = {}
        """The ask that a world is about, as each application sent it last."""
        self._sent: dict[str, list[dict[str, Any]]] = {}
        """The steps that were written, by their words."""
        self._places: dict[tuple[str, str], str] = {}
        """Where work was reported to run: the application, the key, and the node."""

    def begin(self) -> None:
        draw = self.draw
        if "asked-victims" in self.world.parts:
            self.refuse_for("k", nodes=0)
        if self.world.scene:
            least, most = _NODES_OF_SCENES.get(self.world.scene, (1, 2))
            for _ in range(draw.whole(least, most)):
                self.node()
            _BEGINNINGS[self.world.scene](self)
            return
        for _ in range(draw.whole(1, 3)):
            self.node()
        if self.world.is_large:
            self.add(
                "create_node",
                {"id": "m", "count": draw.whole(2, 6), "capacity": self.capacities[3]},
            )
        for _ in range(draw.whole(1, 3)):
            self.app()

    # -- steps

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
        self._sent.setdefault(step, []).append(kept)
        self._send(step, kept)

    def _send(self, step: str, fields: dict[str, Any]) -> None:
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
            fields = {**fields, "timeout": draw.one_of(_TIMEOUTS)}
        if "timeout" in fields:
            self.world.times_ns.append(parse_duration(fields["timeout"]))
        if step == "ask" and "creation-times" in parts and draw.once_in(5):
            tags = {**fields.get("tags", {}), TAG_CREATION_TIME: self._created()}
            fields = {**fields, "tags": tags}
        if step == "add_app" and "creation-times" in parts and draw.once_in(3):
            tags = {**fields.get("tags", {}), APP_TAG_CREATION_TIME: self._created()}
            fields = {**fields, "tags": tags}
        return fields

    def _created(self) -> str:
        """Draw a time around the beginning of the run, or around now: also one that is to come."""
        around_now = _BEGUN_S + self.world.passed_ns // SECOND + self.draw.one_of(_APART_S)
        return self.draw.one_of((*_CREATED, *(str(around_now),) * 3))

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

    def _earlier(self, step: str) -> dict[str, Any] | None:
        sent = self._sent.get(step)
        return dict(self.draw.one_of(sent)) if sent else None

    # -- what happens

    def moves(self) -> Moves:
        """Return what happens in no time."""
        return {
            "": (self.ask, self.ask, self.ask, self.newcomer, self.app, self.node),
            "runs": (self.run, self.run),
            "gangs": (self.gang, self.gang_work),
            "rejections": (self.reject_app, self.reject_ask),
            "required-nodes": (self.daemon,),
            "re-sent-asks": (self.ask_again,),
            "changed-asks": (self.change_ask,),
            "withdrawals": (self.cancel, self.cancel_all),
            "releases": (
                self.release,
                self.release,
                self.release_otherwise,
                self.release_all,
                self.release_by_name,
            ),
            "removals": (self.remove, self.replace),
            "reported-work": (
                self.bind,
                self.bind_again,
                self.report_by_key,
                self.node_with_work,
                self.gang_returns,
            ),
            "named-work": (self.bind_by_name,),
            "late-placeholders": (self.late_placeholder,),
            "foreign-work": (self.foreign, self.foreign_ends),
            "drained-nodes": (self.drain, self.open, self.describe_node),
            "lost-nodes": (self.lose_node, self.return_node),
            "resized-nodes": (self.resize_node,),
            "broken-requests": (self.break_request,) * 9,
        }

    def moves_to_join(self) -> Moves:
        """Return what may stand in one request."""
        return {
            "": (self.ask, self.ask, self.app, self.newcomer, self.node),
            "gangs": (self.gang_work,),
            "rejections": (self.reject_app, self.reject_ask),
            "re-sent-asks": (self.ask_again,),
            "changed-asks": (self.change_ask,),
            "withdrawals": (self.cancel,),
            "releases": (self.release, self.release_otherwise),
            "removals": (self.remove,),
            "reported-work": (self.bind, self.node_with_work),
            "lost-nodes": (self.lose_node,),
        }

    def moves_of_scene(self) -> Moves:
        return _MOVES[self.world.scene](self)

    def moves_of_contest(self) -> Moves:
        """Return what happens where all room is taken, and some have more right to it."""
        confirm, manager = self.confirm, self.manager
        return {
            "": (self.fill, self.claim, self.claim, self.claim, self.ask),
            "required-nodes": (self.daemon, self.daemon),
            "quota-preemption": (manager.lower_quota,),
            "manual-confirmations": (confirm, confirm),
            "releases": (self.release,),
            "withdrawals": (self.cancel,),
            "lost-nodes": (self.lose_node,),
            "resized-nodes": (self.resize_node,),
            "drained-nodes": (self.drain, self.open, self.describe_node),
            "reported-work": (self.bind,),
            "foreign-work": (self.foreign,),
            "re-sent-asks": (self.ask_again,),
            "changed-asks": (self.change_ask,),
            "reloads": (manager.reload, manager.change_queue),
            "gangs": (self.gang_work,),
            "asked-victims": (manager.refuse_nodes, self.daemon, self.claim),
        }

    def moves_of_eviction(self) -> Moves:
        """Return what happens where some have to go, whole gangs among them, within bounds."""
        confirm, manager = self.confirm, self.manager
        return {
            "": (self.fill, self.claim, self.claim, self.whole_gang, self.drop_claim),
            "opt-outs": (self.varied_work,),
            "required-nodes": (self.daemon,),
            "predicates": (manager.refuse_nodes,),
            "quota-preemption": (manager.lower_quota,),
            "manual-confirmations": (confirm, confirm),
            "releases": (self.release,),
            "removals": (self.remove,),
            "withdrawals": (self.drop_claim,),
            "lost-nodes": (self.lose_node,),
            "resized-nodes": (self.resize_node,),
            "drained-nodes": (self.drain, self.open),
            "reported-work": (self.bind,),
            "changed-asks": (self.change_ask,),
            "reloads": (manager.change_queue,),
            "gangs": (self.gang, self.gang_work),
        }

    def moves_of_quota(self) -> Moves:
        """Return what happens where queues may have less from now on than they use."""
        confirm, manager = self.confirm, self.manager
        return {
            "": (self.lower_busy, manager.lower_quota, self.varied_work, self.whole_gang),
            "manual-confirmations": (confirm, confirm),
            "releases": (self.release,),
            "removals": (self.remove,),
            "lost-nodes": (self.lose_node,),
            "reported-work": (self.bind,),
            "required-nodes": (self.daemon,),
            "reloads": (manager.change_queue, manager.reload),
            "contests": (self.claim,),
        }

    def moves_of_rush(self) -> Moves:
        """Return what happens where many ask for the same at once, and little is left for them."""
        confirm = self.confirm
        return {
            "": (self.rush, self.rush, self.rush, self.release, self.newcomer),
            "releases": (self.release, self.release),
            "joined-requests": (self.manager.join,),
            "re-sent-asks": (self.ask_again,),
            "removals": (self.remove, self.replace),
            "lost-nodes": (self.lose_node, self.return_node),
            "resized-nodes": (self.resize_node,),
            "reloads": (self.manager.reload, self.manager.change_queue),
            "reported-work": (self.bind, self.node_with_work),
            "manual-confirmations": (confirm,),
            "predicates": (self.manager.refuse_nodes,),
            "lost-managers": (self.manager.leave,),
            "new-registrations": (self.manager.come_back,),
        }

    def moves_of_reservation(self) -> Moves:
        """Return what happens where all nodes are full, and one is kept for who wants much."""
        confirm, manager = self.confirm, self.manager
        return {
            "": (self.fill, self.newcomer, self.newcomer, self.release, self.ask),
            "required-nodes": (self.daemon, self.daemon, self.large_daemon),
            "manual-confirmations": (confirm, confirm),
            "releases": (self.release, self.release),
            "withdrawals": (self.cancel,),
            "removals": (self.remove,),
            "lost-nodes": (self.lose_node, self.return_node),
            "resized-nodes": (self.resize_node, self.resize_node),
            "drained-nodes": (self.drain, self.open, self.describe_node),
            "reported-work": (self.bind, self.overfill),
            "foreign-work": (self.foreign, self.foreign_ends),
            "re-sent-asks": (self.ask_again,),
            "changed-asks": (self.change_ask,),
            "reloads": (manager.reload, manager.change_queue),
            "guarantees": (self.claim,),
            "gangs": (self.gang_work,),
        }

    def moves_of_gate(self) -> Moves:
        """Return what happens where more jobs wait than there is room for, in their order."""
        confirm, manager = self.confirm, self.manager
        return {
            "": (self.job, self.job, self.job, self.job_ends, self.job_ends, self.newcomer),
            "required-nodes": (self.daemon,),
            "manual-confirmations": (confirm, confirm),
            "releases": (self.release,),
            "withdrawals": (self.cancel,),
            "removals": (self.remove,),
            "lost-nodes": (self.lose_node, self.return_node),
            "resized-nodes": (self.resize_node, self.node),
            "drained-nodes": (self.drain, self.open),
            "reported-work": (self.bind,),
            "foreign-work": (self.foreign, self.foreign_ends),
            "re-sent-asks": (self.ask_again,),
            "changed-asks": (self.change_ask,),
            "reloads": (manager.reload, manager.change_queue),
            "gangs": (self.gang, self.gang_work),
        }

    def moves_of_one_gang(self) -> Moves:
        """Return what happens around a gang: it has little room, and its members come and go."""
        confirm = self.confirm
        return {
            "": (self.gang_work, self.gang_work, self.node, self.gang),
            "releases": (self.release, self.release),
            "manual-confirmations": (confirm, confirm, confirm),
            "withdrawals": (self.cancel,),
            "lost-nodes": (self.lose_node, self.return_node),
            "drained-nodes": (self.drain, self.open, self.describe_node),
            "resized-nodes": (self.resize_node,),
            "reported-work": (self.gang_returns,),
            "late-placeholders": (self.late_placeholder, self.late_placeholder),
            "removals": (self.remove,),
            "re-sent-asks": (self.ask_again,),
            "lost-managers": (self.manager.leave,),
            "new-registrations": (self.manager.come_back,),
            "predicates": (self.manager.refuse_nodes,),
            "contests": (self.newcomer,),
        }

    def moves_in_time(self) -> Moves:
        """Return what needs time to pass."""
        return {
            "waits": (self.wait,) * 4,
            "due-times": (self.wait_until_due,) * 3,
            "contests": (self.contest, self.contest),
            "reservations": (self.large,),
            "one-contest": (self.claim_and_wait,) * 4,
            "one-gang": (self.late_node, self.late_node),
            "one-reservation": (self.large, self.large, self.wait_until_due),
            "one-gate": (self.let_run, self.let_run, self.let_run, self.wait),
            "one-eviction": (
                *(self.claim_and_wait,) * 3,
                self.claiming_gang,
                *(self.wait_for_window,) * 3,
            ),
            "one-quota": (self.bring_down,) * 2 + (self.wait_for_window,) * 2,
            "timeouts": (self.come_again,),
            "one-node": (*(lambda: scenes_of_one.pause(self),) * 3, self.large),
            "one-ask": (lambda: scenes_of_one.pause(self),) * 4,
            "one-manager": (lambda: scenes_of_one.pause(self),) * 3,
            "one-swap": (lambda: scenes_of_one.pause(self),) * 4,
            "one-user": (lambda: scenes_of_limits.pause(self),) * 4,
            "one-placement": (lambda: scenes_of_placement.pause(self),) * 3,
            "one-priority": (lambda: scenes_of_precedence.claim_and_wait(self),) * 4,
            "one-leaf": (lambda: scenes_of_precedence.pause(self),) * 4,
        }

    def _gang(self, fields: dict[str, Any]) -> None:
        if {"gangs", "one-gang"} & self.world.parts:
            super()._gang(fields)
        else:
            self.apps[fields["id"]] = False
            self.add("add_app", fields)

    def run(self) -> None:
        """Ask for many alike at once."""
        draw = self.draw
        fields = {
            "key": f"run{len(self.keys)}",
            "resource": draw.one_of(self.sizes[:5]),
            "count": draw.one_of(_LARGE_RUNS if self.world.is_large else _RUNS),
        }
        self.add_ask(draw.one_of(list(self.apps)), fields)

    def everybody(self, most: int = 1) -> None:
        """Applications come into each leaf, often of one user."""
        whose, (root, *_) = self.draw.one_of(USERS), self.config["queues"]
        entitled = {
            path for path, queue in paths_below(root) if "guaranteed" in queue.get("resources", {})
        }
        leaves = [leaf for leaf, _ in self.leaves for _ in range(self.draw.whole(1, most))]
        for number, leaf in enumerate(leaves, 1):
            name = f"{self.prefix}-{number}"
            self.apps[name] = False
            self._entitled[name] = leaf in entitled or self._is_entitled(leaf)
            user = whose if self.draw.once_in(2) else self.draw.one_of(USERS)
            fields = {"id": name, "queue": leaf, "user": user, "groups": self.draw.one_of(GROUPS)}
            self.add("add_app", fields)

    def _is_entitled(self, leaf: str) -> bool:
        """Whether it may claim by the guarantee of the queue that has one in each such world."""
        return self.world.scene == "one-eviction" and f"{leaf}.".startswith("root.a.")

    def runners(self) -> None:
        """Each runs something already: what it gets from then on changes amounts alone."""
        for _ in range(self.draw.whole(1, 3)):
            self.nodes.append(f"n{len(self.nodes) + 1}")
            self.add("create_node", {"id": self.nodes[-1], "capacity": self.capacities[3]})
        self.everybody(2)
        for app in list(self.apps):
            self.add_ask(app, {"key": f"first{len(self.keys)}", "resource": self.sizes[0]})

    def contestants(self) -> None:
        """One takes all room before the others ask for theirs."""
        self.everybody()
        self.fill()
        self.add("advance", "1s")
        self.claim_and_wait()

    def fill(self) -> None:
        draw = self.draw
        fields = {"resource": draw.one_of(self.sizes[:4]), "count": draw.whole(4, 12)}
        self._greedy = self._one_of_apps(has_guarantee=False)
        self.add_ask(self._greedy, {"key": f"fill{len(self.keys)}", **fields})

    def refuse_for(self, keys: str, nodes: int) -> None:
        """Predicates refuse so many nodes for asks with these keys; some go by victims as well."""
        draw = self.draw
        denied = dict.fromkeys(draw.one_of(self.nodes) for _ in range(nodes if self.nodes else 0))
        fields: dict[str, Any] = {"deny": [{"node": it, "key": f"{keys}*"} for it in denied]}
        if "victims" in self.world.parts:
            fields["victims"] = draw.whole(0, 2)
        self.manager.add("predicate", fields)

    def claim(self) -> None:
        """Ask for room that others have."""
        draw = self.draw
        fields: dict[str, Any] = {
            "resource": draw.one_of(self.sizes[:5]),
            "count": draw.whole(1, 3),
        }
        if draw.once_in(3):
            fields["priority"] = draw.one_of((1, 2, -1))
        if draw.once_in(4):
            fields["preemption"] = draw.one_of(({"allow_self": False}, {"allow_other": False}))
        if draw.once_in(4):
            fields["max_allocations"] = fields.pop("count")
        app = self._one_of_apps(has_guarantee=True)
        self.add_ask(app, {"key": f"claim{len(self.keys)}", **fields})

    def _one_of_apps(self, *, has_guarantee: bool) -> str:
        """Draw an application; more often one in a leaf with a guarantee, or without."""
        wanted = [
            app
            for app in self.apps
            if (self._entitled.get(app, False) is has_guarantee) and app != self._greedy
        ]
        return self.draw.one_of(wanted if wanted and not self.draw.once_in(4) else list(self.apps))

    def residents(self) -> None:
        """What runs has all room: gangs that go as one, and single work of every kind."""
        self.everybody()
        for _ in range(self.draw.whole(0, 3)):
            self.whole_gang()
        for _ in range(self.draw.whole(1, 3)):
            self.varied_work()
        self.add("advance", self.draw.one_of(("1s", "3s", "11s")))

    def evicted(self) -> None:
        self.residents()
        self.fill()
        self.draw.one_of((self.claim_and_wait, self.claim_and_wait, self.claiming_gang))()

    def brought_down(self) -> None:
        self.residents()
        for _ in range(self.draw.whole(1, 4)):
            self.varied_work()
        self.bring_down()

    def bring_down(self) -> None:
        """A queue comes down, and its time is up."""
        self.lower_busy()
        self.wait_for_window()

    def lower_busy(self) -> None:
        """A queue in which something was asked for may have less."""
        busy = {app for app, _ in self.keys}
        leaves = [it["queue"] for it in self._sent["add_app"] if it["id"] in busy]
        path = self.draw.one_of(leaves or [leaf for leaf, _ in self.leaves])
        if path.count(".") > 1 and self.draw.once_in(2):
            path = path.rpartition(".")[0]
        self.manager.bring_down(self, path)

    def whole_gang(self) -> None:
        """A hard gang comes, with no more than its placeholders or with work for some of them."""
        self._whole_gang([leaf for leaf, _ in self.leaves if not self._is_entitled(leaf)])

    def claiming_gang(self) -> None:
        """A gang comes that may have others go, and then all that it lacks has to come free."""
        self._whole_gang([leaf for leaf, _ in self.leaves if self._is_entitled(leaf)], claims=True)
        self.add("advance", self.draw.one_of(("3s", "6s", "21s", "35s")))

    def _whole_gang(self, leaves: list[str], *, claims: bool = False) -> None:
        draw, name = self.draw, f"{self.prefix}-{len(self.apps) + 1}"
        leaves = leaves or [leaf for leaf, _ in self.leaves]
        self.apps[name] = True
        self._entitled[name] = False
        size, count = draw.one_of(self.sizes[:3]), draw.whole(1, 3)
        whole = {kind: n * count for kind, n in size.items()}
        fields = {"id": name, "queue": draw.one_of(leaves), "user": draw.one_of(USERS)}
        style = "Soft" if draw.once_in(4) else "Hard"
        has_bound = claims and self.nodes and "required-nodes" in self.world.parts
        if has_bound := bool(has_bound and draw.once_in(2)):
            whole = {kind: n * (count + 1) for kind, n in size.items()}
        self.add("add_app", {**fields, "style": style, "placeholder_ask": whole})
        if has_bound:
            one = {"resource": size, "placeholder": True, "task_group": TASK_GROUPS[0]}
            bound = {"required_node": draw.one_of(self.nodes)}
            self.add_ask(name, {"key": f"{name}-bound", **one, **bound})
        both = {"resource": size, "count": count, "task_group": TASK_GROUPS[0]}
        if priority := draw.one_of((0, 0, 0, 1)):
            both["priority"] = priority
        self.add_ask(name, {"key": f"{name}-ph", "placeholder": True, **both})
        if draw.once_in(2):
            more = {"count": draw.whole(1, count + 1), "originator": draw.once_in(3)}
            self.add_ask(name, {"key": f"{name}-real", **both, **more})

    def varied_work(self) -> None:
        """Work that is as good as any other, but for one thing that says who goes first."""
        draw = self.draw
        fields: dict[str, Any] = {"resource": draw.one_of(self.sizes), "count": draw.whole(1, 3)}
        fields |= draw.one_of(_MANNERS_OF_WORK)
        self.add_ask(draw.one_of(list(self.apps)), {"key": f"v{len(self.keys)}", **fields})

    def drop_claim(self) -> None:
        """What was asked for last is withdrawn, often while others go for it."""
        if self.keys:
            app, key = self.draw.one_of(self.keys[-4:])
            self.add("release_ask", {"app": app, "key": key})

    def wait_for_window(self) -> None:
        self.add("advance", self.draw.one_of(_WINDOWS))

    def claim_and_wait(self) -> None:
        """Wait until the others have to give it."""
        self.claim()
        self.add("advance", self.draw.one_of(("3s", "6s", "21s", "35s")))

    def rush(self) -> None:
        """Several applications ask for the same, some for several, all at once."""
        draw, size = self.draw, self.draw.one_of(self.sizes[:4])
        with self.world.together():
            for _ in range(draw.whole(2, 4)):
                app, key = draw.one_of(list(self.apps)), f"rush{len(self.keys)}"
                count = draw.one_of((2, 3, 5, 8))
                self.add_ask(app, {"key": key, "resource": size, "count": count})
            if draw.once_in(4):
                self.manager.lower_quota()

    def jobs_come(self) -> None:
        """More come than there is room for, most of them into one leaf."""
        self.everybody()
        leaf = self.draw.one_of(self.leaves)
        for _ in range(self.draw.whole(1, 3)):
            self.app(leaf)
            self._busy.append(list(self.apps)[-1])
        for _ in range(self.draw.whole(4, 9)):
            self.job()

    def job(self) -> None:
        """Ask for a part of a node or for all of it; most say how long they run."""
        draw = self.draw
        fields: dict[str, Any] = {"key": f"job{len(self.keys)}", "resource": draw.one_of(_JOBS)}
        if not draw.once_in(6):
            fields["tags"] = {TAG_RUNTIME: draw.one_of(_RUNTIMES)}
        if draw.once_in(5):
            fields["count"] = draw.whole(2, 3)
        elif draw.once_in(8):
            fields["max_allocations"] = 2
        if draw.once_in(6):
            fields["priority"] = draw.one_of((1, -1))
        others = draw.once_in(4) or not self._busy
        self.add_ask(draw.one_of(list(self.apps) if others else self._busy), fields)

    def job_ends(self) -> None:
        """End one that came early, and so perhaps runs."""
        if self.keys:
            app, key = self.keys[self.draw.number(len(self.keys) // 2 + 1)]
            self.add("release", {"app": app, "key": key})

    def let_run(self) -> None:
        """Let so much time pass as jobs say that they run."""
        self.add("advance", f"{self.draw.one_of(_RUNTIMES)}s")

    def full_nodes(self) -> None:
        """All room is taken, and an ask wants more than is left of any node."""
        self.everybody()
        self.fill()
        self.large()

    def large_daemon(self) -> None:
        """Ask for more than a node has, or for nearly all of it: it may become larger."""
        draw = self.draw
        if self.nodes:
            size, where = {"vcore": draw.one_of((4000, 5000, 7000))}, draw.one_of(self.nodes)
            fields = {"key": f"d{len(self.keys)}", "resource": size, "required_node": where}
            self.add_ask(draw.one_of(list(self.apps)), fields)

    def daemon(self) -> None:
        """Ask for what has to run on one node."""
        draw = self.draw
        if self.nodes:
            fields = {"key": f"d{len(self.keys)}", "resource": draw.one_of(self.sizes[:5])}
            where = {"required_node": draw.one_of(self.nodes)}
            self.add_ask(draw.one_of(list(self.apps)), {**fields, **where})

    def gang(self) -> None:
        """A gang comes, and asks for all of it at once."""
        draw, name = self.draw, f"{self.prefix}-{len(self.apps) + 1}"
        leaves = [path for path, policy in self.leaves if policy != "fair"]
        if leaves:
            self.apps[name] = True
            fields = {"id": name, "queue": draw.one_of(leaves), "user": draw.one_of(USERS)}
            self._gang({**fields, "groups": draw.one_of(GROUPS)})

    def reject_app(self) -> None:
        """An application comes whose queue is not there."""
        app = {"id": f"no-{self.prefix}-{self.draw.whole(1, 3)}", "queue": "root.nowhere"}
        self.add("add_app", {**app, "partition": "nowhere"} if self.draw.once_in(4) else app)

    def reject_ask(self) -> None:
        """An ask comes whose application is not there, or which asks for nothing sound."""
        app = self.draw.one_of(("nobody", *self.apps))
        key, size = f"no{self.draw.whole(1, 5)}", self.draw.one_of(({}, {"vcore": -1}))
        self.add("ask", {"app": app, "key": key, "resource": size})

    def break_request(self) -> None:
        """Something that was requested before comes again with one thing wrong in it."""
        if self._sent:
            step = self.draw.one_of(sorted(self._sent))
            words = {step: self.draw.one_of(self._sent[step])}
            self.world.steps.append(damaged(self.draw, self.manager.rm_id, words))

    def late_node(self) -> None:
        """A gang that no node can hold waits longer than it may, and then a node comes."""
        draw, name = self.draw, f"{self.prefix}-{len(self.apps) + 1}"
        leaves = [path for path, policy in self.leaves if policy != "fair"]
        if not leaves:
            return
        self.apps[name] = True
        size, count = {"vcore": 7000}, draw.whole(1, 2)
        app = {"id": name, "queue": draw.one_of(leaves), "user": draw.one_of(USERS)}
        whole = {"vcore": 7000 * count}
        self.add("add_app", {**app, "placeholder_ask": whole, "timeout": "10s"})
        fields = {"resource": size, "count": count, "placeholder": True, "task_group": "tg"}
        self.add_ask(name, {"key": f"{name}-ph", **fields})
        self.add("advance", draw.one_of(("10s", "21s", "15m", "31m")))
        self.nodes.append(f"n{len(self.nodes) + 1}")
        self.add("create_node", {"id": self.nodes[-1], "capacity": self.capacities[3]})

    def gang_work(self) -> None:
        """Ask for what takes the place of placeholders."""
        draw = self.draw
        gangs = [app for app, is_gang in self.apps.items() if is_gang]
        if gangs:
            size, count = draw.one_of(self.sizes[:3]), draw.whole(1, 4)
            fields: dict[str, Any] = {"key": f"g{len(self.keys)}", "resource": size}
            fields["max_allocations" if draw.once_in(4) else "count"] = count
            self.add_ask(draw.one_of(gangs), {**fields, "task_group": "tg"})

    def ask_again(self) -> None:
        ask = self._earlier("ask")
        if ask is not None:
            self.add("ask", ask)

    def change_ask(self) -> None:
        """Ask with a key that is known for something else."""
        ask, draw = self._earlier("ask"), self.draw
        if ask is not None:
            changes: tuple[dict[str, Any], ...] = (
                {"resource": draw.one_of(self.sizes)},
                {"priority": draw.one_of((-1, 0, 1, 2))},
                {"max_allocations": draw.whole(1, 4)},
                {"app": draw.one_of(list(self.apps))},
            )
            self.add("ask", ask | draw.one_of(changes))

    def confirm(self) -> None:
        if self.manual:
            self.manager.confirm()

    def cancel_all(self) -> None:
        self.add("release_ask", {"app": self.draw.one_of(list(self.apps))})

    def release_otherwise(self) -> None:
        """End work as nobody should: by a type that the core alone begins with."""
        if self.keys:
            app, key = self.draw.one_of(self.keys)
            self.add("release", {"app": app, "key": key, "type": self.draw.one_of(_ENDS)})

    def release_by_name(self) -> None:
        """End one by its UUID, if any has that by then, and perhaps name its application."""
        draw, uuid = self.draw, f"{INSTANCE}-{_issued(self.draw, len(self.keys))}"
        if self._places and draw.once_in(3):
            (_, key), _ = draw.one_of(tuple(self._places.items()))
            uuid = f"{key}-recovered"
        app = draw.one_of(list(self.apps)) if draw.once_in(4) else ""
        type_ = "STOPPED_BY_RM" if draw.once_in(2) else draw.one_of(_ENDS)
        self.world.steps.append(
            release_of_one(self.manager.rm_id, self.name, uuid, app=app, type_=type_)
        )

    def release_all(self) -> None:
        """End all that runs in the partition, or all of one application."""
        type_ = "STOPPED_BY_RM" if self.draw.once_in(2) else self.draw.one_of(_ENDS)
        if self.draw.once_in(2):
            self.add("release", {"app": self.draw.one_of(list(self.apps)), "type": type_})
        else:
            self.world.steps.append(release_of_all(self.manager.rm_id, self.name, type_))

    def wait_until_due(self) -> None:
        """Let as much time pass as something takes, or a nanosecond less and then that one."""
        due_ns = self.draw.one_of(self.world.times_ns)
        if due_ns > 1 and self.draw.once_in(3):
            self.add("advance", f"{due_ns - 1}ns")
            self.add("advance", "1ns")
        else:
            self.add("advance", f"{due_ns}ns")

    def come_again(self) -> None:
        """An application whose time is limited has all its work end, and asks again in time."""
        draw, name = self.draw, f"{self.prefix}-{len(self.apps) + 1}"
        leaf, _ = draw.one_of(self.leaves)
        self.apps[name] = False
        timeout = draw.one_of(_TIMEOUTS)
        self.add("add_app", {"id": name, "queue": leaf, "user": draw.one_of(USERS),
                             "groups": draw.one_of(GROUPS), "timeout": timeout})  # fmt: skip
        for pause in (draw.one_of(("1s", "3s")), draw.one_of(("1s", "9s")), timeout):
            key = f"again{len(self.keys)}"
            self.add_ask(name, {"key": key, "resource": draw.one_of(self.sizes[:3])})
            self.add("advance", pause)
            self.add("release", {"app": name})

    def replace(self) -> None:
        """Remove an application and add it again at once, under its name."""
        app = self._earlier("add_app")
        if app is not None:
            self.add("remove_app", app["id"])
            self.add("add_app", app)
            self.apps.setdefault(app["id"], "placeholder_ask" in app)

    def bind_again(self) -> None:
        """Report work with another size that was reported before, sometimes elsewhere."""
        if self._places:
            (app, key), where = self.draw.one_of(tuple(self._places.items()))
            if self.draw.once_in(4):
                where = self.draw.one_of(self.nodes)
            size = self.draw.one_of(self.sizes)
            self.add("bind", {"app": app, "key": key, "node": where, "resource": size})

    def report_by_key(self) -> None:
        """Report work by its key and its node alone: it may be known, or some of it may wait."""
        if self.keys and self.nodes:
            draw, (app, key) = self.draw, self.draw.one_of(self.keys)
            where = self._places.get((app, key), draw.one_of(self.nodes))
            work = {"app": app, "key": key, "node": where, "resource": draw.one_of(self.sizes[:3])}
            if self.name != PARTITIONS[0]:
                work["partition"] = self.name
            raw = as_raw(self.manager.rm_id, {"bind": work})
            for item in raw["raw"]["request"]["allocations"]:
                item.pop("UUID", None)
            self.world.steps.append(raw)

    def bind_by_name(self) -> None:
        """Report work under a UUID that the core gives next, or has given to something else."""
        # The books of a resource manager know an allocation by its UUID, in whichever partition.
        if self.nodes and len(self.world.partition_names) == 1:
            draw, where = self.draw, self.draw.one_of(self.nodes)
            app, key = draw.one_of(list(self.apps)), f"b{len(self.keys)}"
            if self.keys and draw.once_in(2):
                app, key = draw.one_of(self.keys)
            work = {"app": app, "key": key, "node": where, "resource": draw.one_of(self.sizes)}
            self.keys.append((app, key))
            self.add("bind", {**work, "uuid": f"{INSTANCE}-{_issued(draw, _ISSUED)}"})

    def late_placeholder(self) -> None:
        """A placeholder runs already that waits, or whose gang has been dissolved meanwhile."""
        gangs = [app for app, is_gang in self.apps.items() if is_gang]
        if gangs and self.nodes:
            draw, app = self.draw, self.draw.one_of(gangs)
            key = f"{app}-{TASK_GROUPS[0]}-ph-{draw.whole(0, 5)}"
            work = {"app": app, "key": key, "node": draw.one_of(self.nodes)}
            held = {"placeholder": True, "task_group": TASK_GROUPS[0]}
            self.add("bind", {**work, "resource": draw.one_of(self.sizes[:3]), **held})

    def foreign(self) -> None:
        if self.nodes:
            key, where = f"f{self.draw.whole(1, 3)}", self.draw.one_of(self.nodes)
            work = {"key": key, "node": where, "resource": self.draw.one_of(self.sizes)}
            self.add("bind", {**work, "tags": {TAG_FOREIGN: FOREIGN_DEFAULT}})

    def foreign_ends(self) -> None:
        self.add("release", {"key": f"f{self.draw.whole(1, 3)}"})

    # -- nodes

    def node_with_work(self) -> None:
        """A node comes that runs something already."""
        self.nodes.append(f"n{len(self.nodes) + 1}")
        self._create_again({"id": self.nodes[-1], "capacity": self.draw.one_of(self.capacities)})

    def gang_returns(self) -> None:
        """A gang comes of which some placeholders, or what replaced them, run already."""
        draw, name = self.draw, f"{self.prefix}-{len(self.apps) + 1}"
        leaves = [path for path, policy in self.leaves if policy != "fair"]
        if not leaves:
            return
        self.apps[name] = True
        app = {"id": name, "queue": draw.one_of(leaves), "placeholder_ask": {"vcore": 3000}}
        fields: dict[str, Any] = {**app, "user": draw.one_of(USERS)}
        if draw.once_in(2):
            fields["timeout"] = draw.one_of(("10s", "70s", "10m"))
        if "creation-times" in self.world.parts and draw.once_in(2):
            fields["tags"] = {APP_TAG_CREATION_TIME: self._created()}
        self.add("add_app", fields)
        running: list[dict[str, Any]] = []
        for number in range(draw.whole(1, 3)):
            key = f"{name}-ph-{number}"
            self.keys.append((name, key))
            work = {"app": name, "key": key, "resource": {"vcore": 1000}}
            if "creation-times" in self.world.parts and draw.once_in(2):
                work["tags"] = {TAG_CREATION_TIME: draw.one_of(_CREATED[:2])}
            is_held = not draw.once_in(4)
            running.append({**work, "task_group": TASK_GROUPS[0], "placeholder": is_held})
        self.nodes.append(f"n{len(self.nodes) + 1}")
        node = {"id": self.nodes[-1], "capacity": draw.one_of(self.capacities)}
        self.add("create_node", {**node, "allocations": running})

    def _create_again(self, node: dict[str, Any]) -> None:
        draw = self.draw
        if "count" in node:
            # Each of them would run the same.
            self.add("create_node", node)
            return
        work = [draw.one_of(self.keys) for _ in range(draw.whole(0, 3)) if self.keys]
        for it in work:
            self._places.setdefault(it, node["id"])
        running = [
            {"key": key, "app": app, "resource": draw.one_of(self.sizes[:5])}
            for app, key in dict.fromkeys(work)
        ]
        self.add("create_node", {**node, "allocations": running} if running else node)

    def drain(self) -> None:
        self._about_node("drain_node")

    def open(self) -> None:
        self._about_node("undrain_node")

    def describe_node(self) -> None:
        """Say whether a node is ready, or something else of it."""
        if self.nodes:
            attributes = self.draw.one_of(_ATTRIBUTES)
            self.add("update_node", {"id": self.draw.one_of(self.nodes), "attributes": attributes})

    def lose_node(self) -> None:
        self._about_node("remove_node")

    def _about_node(self, step: str) -> None:
        if self.nodes:
            self.add(step, self.draw.one_of(self.nodes))

    def return_node(self) -> None:
        """A node comes that is there already, or was."""
        node = self._earlier("create_node")
        if node is not None:
            self.add("create_node", node)

    def resize_node(self) -> None:
        if self.nodes:
            fields: dict[str, Any] = {"id": self.draw.one_of(self.nodes)}
            what = "occupied" if self.draw.once_in(4) else "capacity"
            self.add("update_node", {**fields, what: self.draw.one_of(self.capacities)})

    def overfill(self) -> None:
        """More is reported to run on a node than it has: the cluster as a whole may be full."""
        if self.nodes:
            where, app = self.draw.one_of(self.nodes), self.draw.one_of(list(self.apps))
            self.keys.append((app, f"much{len(self.keys)}"))
            _, key = self.keys[-1]
            work = {"key": key, "app": app, "node": where, "resource": {"vcore": 12000}}
            self.add("bind", work)

    def report_all(self) -> None:
        """Report what there was before a registration: applications, nodes with work, asks."""
        apps = {app["id"]: app for app in self._sent.get("add_app", ())}
        nodes = {node["id"]: node for node in self._sent.get("create_node", ())}
        for app in apps.values():
            self._send("add_app", app)
        for node in nodes.values():
            if not self.draw.once_in(4):
                self._create_again({word: it for word, it in node.items() if word != "allocations"})
        for ask in self._sent.get("ask", ())[-4:]:
            self._send("ask", ask)


_BEGINNINGS: Final[dict[str, Callable[[PartitionWriter], None]]] = {
    "one-gang": PartitionWriter.gang,
    "one-contest": PartitionWriter.contestants,
    "one-rush": PartitionWriter.runners,
    "one-reservation": PartitionWriter.full_nodes,
    "one-gate": PartitionWriter.jobs_come,
    "one-eviction": PartitionWriter.evicted,
    "one-quota": PartitionWriter.brought_down,
    "one-node": scenes_of_one.begin,
    "one-ask": scenes_of_one.begin_with_ask,
    "one-manager": PartitionWriter.everybody,
    "one-swap": scenes_of_swaps.begin,
    "one-user": scenes_of_limits.begin,
    "one-placement": scenes_of_placement.begin,
    "one-priority": scenes_of_precedence.begin_with_fences,
    "one-leaf": scenes_of_precedence.begin_in_leaf,
}
_MOVES: Final[dict[str, Callable[[PartitionWriter], Moves]]] = {
    "one-gang": PartitionWriter.moves_of_one_gang,
    "one-contest": PartitionWriter.moves_of_contest,
    "one-rush": PartitionWriter.moves_of_rush,
    "one-reservation": PartitionWriter.moves_of_reservation,
    "one-gate": PartitionWriter.moves_of_gate,
    "one-eviction": PartitionWriter.moves_of_eviction,
    "one-quota": PartitionWriter.moves_of_quota,
    "one-node": scenes_of_one.of_node,
    "one-ask": scenes_of_one.of_ask,
    "one-manager": scenes_of_one.of_manager,
    "one-swap": scenes_of_swaps.of_swaps,
    "one-user": scenes_of_limits.of_limits,
    "one-placement": scenes_of_placement.of_placement,
    "one-priority": scenes_of_precedence.of_fences,
    "one-leaf": scenes_of_precedence.of_leaf,
}
assert _SCENES.keys() == _BEGINNINGS.keys() == _MOVES.keys()


def _issued(draw: Draw, about: int) -> int:
    """Draw the number of a UUID that the core may have given to something by then."""
    return draw.whole(1, max(3, min(about, _ISSUED)))


def _is_time(setting: str) -> bool:
    return f"{setting}{NS}" in TIMES


def _with_rules(draw: Draw, configs: tuple[Config, ...], *, is_one: bool) -> tuple[Config, ...]:
    """Have applications placed, in all of them alike; now and then not everybody is let in.

    In a world that is about nothing else each has rules of its own.
    """
    if is_one:
        drawn = tuple(scenes_of_placement.with_drawn_rules(draw, it) for it in configs)
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


def _with_parts(config: Config, parts: frozenset[str], name: str) -> Config:
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
