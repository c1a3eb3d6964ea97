"""A state from a dump: that of `core.state_dump()`, or a full state dump of YuniKorn's REST.

A dump was made to be read. So the state is made again as a resource manager reports it to a core
that begins: its configuration, applications, nodes with what runs there, then what waits. What a
dump does not say is listed.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.config import (
    ConfigError,
    PartitionConfig,
    QueueConfig,
    RuleConfig,
    SchedulerConfig,
    parse_config,
)
from yunikorn_actors.config.policy_names import ANY_NAMES
from yunikorn_actors.drivers.simulator.simulator import EPOCH_NS, Simulator
from yunikorn_actors.errors import InvalidRequest
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import Topology, TopologyName
from yunikorn_actors.messages.base import CONTEXT
from yunikorn_actors.messages.rm_events import RMHeldBack
from yunikorn_actors.state.applications import (
    COUNTS_AS_RUNNING,
    ApplicationSpec,
    ApplicationState,
)
from yunikorn_actors.state.dump import DUMP_REMEDY
from yunikorn_actors.state.queues import QueueSpec, QueueState
from yunikorn_actors.state.snapshot import Image
from yunikorn_actors.values import tags
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.values.ids import manager_of_partition, short_partition_name
from yunikorn_actors.values.resource import INT64_MAX
from yunikorn_actors.what_if.core_state import BEGUN_ANEW, CoreState, state_of

Rows = list[dict[str, Any]]
_NOTHING_RUNS: Final = "that an application of which nothing runs now has begun: it begins anew"
_PREEMPTION: Final = (
    "preemption policies: what runs may be preempted, and what waits preempts nothing of others"
)
_OF_OURS: Final = (
    "reservations, and for whom work was asked back: they are made anew",
    "in which order the asks of what runs came",
    "applications that have ended: what is refused for that says less",
    BEGUN_ANEW,
)
_OF_FORMER: Final = (
    "tags of asks, such as run times and required nodes",
    _PREEMPTION,
    "sizes, styles and timeouts of gangs",
    "sizes of members whose swap is under way: each is as large as its placeholder",
    "the moment at which it was made: it is that of its last event",
)
"""What earlier versions do not write, nor the time."""
_OF_YUNIKORN: Final = (
    _NOTHING_RUNS,
    "how often an ask repeats: each counts once",
    _PREEMPTION,
    "styles and timeouts of gangs, and whether they were admitted: they are Soft",
    "reservations, back-offs and what was found of asks: all of it is found anew",
    "which of several asks of one time came first: that is their order in the dump",
)
_MISSING: Final = {
    "applications": "that part is missing, so nothing waits, and what runs belongs to none",
    "nodes": "that part is missing, so there are none, and nothing runs",
    "queues": "that part is missing, so there are those of the configuration alone",
}
"""Parts without which a state can be made, and what is assumed then."""
_PROVIDED: Final = (RuleConfig(name="provided", create=True),)
_OF_ROUTES: Final = {"queuename", "nodesinfo", "applicationid", "clusterid", "checksum", "healthy"}
"""Names in what other routes answer, and in no dump at the top."""
_FREE: Final = ("properties", "guaranteed", "max", "maxresources", "resourceweights")


def state_from_dump(
    dump: Mapping[str, Any],
    *,
    topology: TopologyName = "proposing",
    settings: Settings | None = None,
    where: str = "dump",
) -> CoreState:
    """Return the state that a dump tells of; raise InvalidRequest where it is no such dump.

    `where` says where it comes from, such as a file.
    """
    built = Topology(topology, settings=settings or Settings(), instance="simulated")
    place = DumpPath()
    try:
        # What could not be written again could not be decided by: such as a number of 80 digits.
        msgspec.msgpack.encode(dump)
        is_ours = isinstance(dump.get("partitions"), Mapping)
        read = _Ours(dump, place) if is_ours else _YuniKorns(_without_nulls(dump), place)
        return _made(read, Simulator(built))
    except KeyError as error:
        what = f"{error.args[0]!r} is missing{_elsewhere(dump)}"
    except ConfigError as error:
        it = error.faults[0]
        # Of the text in which it was found nobody has seen a line.
        found = f"{it.path}: {it.what} ({it.remedy})"
        raise InvalidRequest(f"{where}: its configuration cannot be loaded: {found}") from None
    except (
        TypeError, AttributeError, ValueError, OverflowError, msgspec.MsgspecError
    ) as error:  # fmt: skip
        what = f"a part has a wrong form: {error}"
    part = f"{place.name}: " if place.name else ""
    raise InvalidRequest(f"{where}: {part}{what}; {DUMP_REMEDY}")


class DumpPath:
    """What of a dump is being read, for the words of an error."""

    def __init__(self) -> None:
        self.name = ""

    def at(self, *parts: object) -> None:
        """Name it by its kinds and names in turn."""
        words = map(str, parts)
        self.name = ", ".join(
            f"{kind} {name}".strip() for kind, name in zip(words, words, strict=True)
        )


def _elsewhere(dump: Mapping[str, Any]) -> str:
    """Say where what was given instead may come from."""
    if {it.lower() for it in dump} & _OF_ROUTES:
        return ": it looks like the answer of another route, which is a part of a state dump"
    return ""


class _Collected(si.ResourceManagerCallback):
    """Keeps what the core does not take of the dump."""

    def __init__(self) -> None:
        self.refused: list[str] = []

    def update_allocation(self, response: si.AllocationResponse) -> None:
        for ask in response.rejected:
            self.refused.append(f"{ask.application_id}/{ask.allocation_key}: {ask.reason}")
        for item in response.rejected_allocations:
            self.refused.append(f"{item.application_id}/{item.allocation_key}: {item.reason}")

    def update_application(self, response: si.ApplicationResponse) -> None:
        self.refused.extend(f"{it.application_id}: {it.reason}" for it in response.rejected)

    def update_node(self, response: si.NodeResponse) -> None:
        self.refused.extend(f"{it.node_id}: {it.reason}" for it in response.rejected)


def _made(read: "_Ours | _YuniKorns", simulator: Simulator) -> CoreState:
    simulator.now_ns = read.at_ns
    collected = _Collected()
    configs: dict[str, SchedulerConfig] = {}
    """By policy group: its members share one."""
    for rm_id in read.managers:
        config, group = read.config(rm_id), read.group(rm_id)
        configs.setdefault(group, config)
        open_ = replace(config, partitions=tuple(map(_opened, config.partitions)), checksum="open")
        registered = si.RegisterResourceManagerRequest(rm_id=rm_id, policy_group=group)
        simulator.managers.register(registered, collected, open_)
        held = RMHeldBack(rm_id=rm_id, callback=next(reversed(simulator.callbacks)), held=True)
        simulator._post(CONTEXT, held, "dump")
        applications = tuple(read.applications(rm_id))
        simulator.update_application(si.ApplicationRequest(rm_id=rm_id, new=applications))
        simulator.update_node(si.NodeRequest(rm_id=rm_id, nodes=tuple(read.nodes(rm_id))))
        simulator.update_allocation(
            si.AllocationRequest(
                rm_id=rm_id, asks=tuple(read.asks(rm_id)), allocations=tuple(read.foreign(rm_id))
            )
        )
        simulator.settle()
    for rm_id in read.managers:
        group = read.group(rm_id)
        update = si.UpdateConfigurationRequest(rm_id=rm_id, policy_group=group)
        simulator.managers.configure(update, configs[group])
    simulator.settle()
    refused = (f"this version does not take {it}" for it in collected.refused)
    state = state_of(simulator)
    for name, image in state.images.items():
        # It was held while it was made, so that nothing is decided before the first change.
        image["held"] = image["behind"] = False
        image["queues"] = _as_dumped(image["queues"], read.queues(name))
        # What policies keep is made anew of what runs since when, where the dump does not say it.
        image.pop("folds", None)
        read.leave(name, image)
    return replace(state, lacks=(*read.lacks, *refused))


def _as_dumped(made: list[Any], dumped: Iterable[tuple[str, dict[str, Any]]]) -> list[Any]:
    """Return the queues of an image with all that the dump says of them.

    What placement made has what a template, or the tags of an application, asked for at the time,
    and stays for a while without applications; what a configuration has left out is draining.
    """
    queues = {path: it for path, *it in made}
    for path, words in dumped:
        spec, _, reserving = queues.get(path, ({"leaf": True}, None, []))
        spec = {**msgspec.to_builtins(spec), **words}
        state = QueueState(spec.pop("state"))
        queues[msgspec.convert(path, str)] = [msgspec.convert(spec, QueueSpec), state, reserving]
    return [[path, *it] for path, it in queues.items()]


def _opened(config: PartitionConfig) -> PartitionConfig:
    """Let every application into the queue where it is, whatever was placed there and why.

    A maximum that was lowered, or an order that was changed since, does not end a gang that came
    before.
    """
    root = replace(_unbounded(config.root), submit_acl="*", parent=True)
    return replace(config, root=root, placement_rules=_PROVIDED)


def _unbounded(queue: QueueConfig) -> QueueConfig:
    template = queue.template and replace(queue.template, max=None, properties={})
    below = tuple(map(_unbounded, queue.children))
    return replace(queue, max=None, properties={}, template=template, children=below)


def _seconds(ns: Any) -> dict[str, str]:  # noqa: ANN401 - of a dump
    return {tags.TAG_CREATION_TIME: str(_whole("its time", ns) // SECOND)} if ns else {}


def _resource(amounts: Any) -> si.Resource:  # noqa: ANN401 - of a dump
    return si.Resource.of({name: _whole(name, it) for name, it in (amounts or {}).items()})


def _whole(name: str, value: Any) -> int:  # noqa: ANN401 - of a dump
    try:
        return int(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is no whole number: {value!r:.80}") from None


# -- the state dump of a core


class _Ours:
    def __init__(self, dump: Mapping[str, Any], place: DumpPath) -> None:
        self._place = place
        self._dump = dump
        self._partitions: dict[str, dict[str, Any]] = dict(dump["partitions"])
        self.managers = list(
            dict.fromkeys(
                manager_of_partition(name) for name in self._partitions if name.startswith("[")
            )
        )
        self.at_ns = dump.get("at_ns") or max(self._times(), default=EPOCH_NS)
        parts = self._partitions.values()
        states: dict[str, str] = {}
        for it in parts:
            for id_, app in it["applications"].items():
                place.at("application", id_)
                states[id_] = app["state"]
        place.at()
        self.lacks = (
            *_OF_OURS,
            *(() if "at_ns" in dump else _OF_FORMER),
            *_left_states(states),
        )

    def _times(self) -> Iterator[int]:
        for name, part in self._partitions.items():
            self._place.at("partition", name)
            for app in (*part["applications"].values(), *part["finished"]):
                yield app["submitted_ns"]
                yield from (at_ns for at_ns, _ in app["state_log"])
            for app in part["applications"].values():
                yield from (it["created_ns"] for it in app["asks"])
                yield from (it["allocated_ns"] for it in app["allocations"])

    def group(self, rm_id: str) -> str:
        """Return its policy group; earlier versions do not write it."""
        group: str = self._dump.get("managers", {}).get(rm_id, {}).get("policy_group", rm_id)
        return group

    def _of(self, rm_id: str) -> Iterator[tuple[str, dict[str, Any]]]:
        for name, part in self._partitions.items():
            if manager_of_partition(name) == rm_id:
                yield short_partition_name(name), part

    def config(self, rm_id: str) -> SchedulerConfig:
        self._place.at("configuration", "")
        parts = tuple(
            msgspec.convert({**part["config"], "root": _tree(part["queues"])}, PartitionConfig)
            for _, part in self._of(rm_id)
        )
        return SchedulerConfig(partitions=parts, checksum="dump")

    def queues(self, partition: str) -> Iterator[tuple[str, dict[str, Any]]]:
        for path, queue in sorted(self._partitions[partition]["queues"].items()):
            self._place.at("queue", path)
            words = {name: queue[name] for name in ("state", "leaf", *_OF_QUEUES)}
            amounts = {name: queue[name] or None for name in ("guaranteed", "max")}
            if "." not in path:
                # What is written there is the capacity.
                del amounts["max"]
            yield path, {**words, **amounts, "managed": not queue["dynamic"]}

    def applications(self, rm_id: str) -> Iterator[si.AddApplicationRequest]:
        for name, part in self._of(rm_id):
            for id_, app in sorted(part["applications"].items(), key=lambda it: it[1]["serial"]):
                self._place.at("application", id_)
                yield _application(name, id_, app["queue"], app["user"], app["groups"], app)

    def nodes(self, rm_id: str) -> Iterator[si.NodeInfo]:
        for name, part in self._of(rm_id):
            running: dict[str, list[si.Allocation]] = {}
            for id_, app in part["applications"].items():
                for it in app["allocations"]:
                    self._place.at("application", id_, "allocation", it["key"])
                    running.setdefault(it["node"], []).append(_running(name, id_, it))
            for id_, node in part["nodes"].items():
                self._place.at("node", id_)
                yield si.NodeInfo(
                    node_id=id_,
                    action=_A.CREATE_DRAIN if node["drained"] else _A.CREATE,
                    attributes={
                        **node["attributes"],
                        tags.NODE_PARTITION: name,
                        tags.NODE_READY_ATTRIBUTE: _takes_work(node),
                    },
                    schedulable_resource=_resource(node["capacity"]),
                    occupied_resource=_resource(node["occupied_reported"]),
                    existing_allocations=tuple(running.get(id_, ())),
                )

    def asks(self, rm_id: str) -> Iterator[si.AllocationAsk]:
        found = [
            (it["sequence"], name, id_, it)
            for name, part in self._of(rm_id)
            for id_, app in part["applications"].items()
            for it in app["asks"]
        ]
        running = Counter(
            (name, id_, it["key"])
            for name, part in self._of(rm_id)
            for id_, app in part["applications"].items()
            for it in (*app["allocations"], *app.get("swaps", ()))
        )
        waiting = {(name, id_, it["key"]) for _, name, id_, it in found}
        for name, part in self._of(rm_id):
            for id_, app in part["applications"].items():
                placeholders = {it["uuid"]: it for it in app["allocations"]}
                for it in app.get("swaps", ()):
                    if (name, id_, it["key"]) not in waiting:
                        own = {name: it[name] for name in it if name not in _OF_SWAPS}
                        placeholder = placeholders[it["placeholder"]]
                        alike = {name: placeholder[name] for name in _OF_MEMBERS}
                        # Behind what waits; of those that are parked nobody asks who came first.
                        found.append((INT64_MAX, name, id_, {**alike, **own, **_PARKED}))
        for _, name, id_, it in sorted(found, key=lambda one: one[0]):
            self._place.at("application", id_, "ask", it["key"])
            yield si.AllocationAsk(
                partition_name=name,
                application_id=id_,
                allocation_key=it["key"],
                resource_ask=_resource(it["resource"]),
                # What runs under its key counts for it.
                max_allocations=it["repeats"] + running[name, id_, it["key"]],
                priority=it["priority"],
                task_group_name=it["task_group"],
                placeholder=it["placeholder"],
                originator=it.get("originator", False),
                execution_timeout_milli_seconds=it.get("timeout_ms", 0),
                preemption_policy=_preemption(it),
                tags=it.get("tags", {}),
            )

    def foreign(self, rm_id: str) -> Iterator[si.Allocation]:
        for name, part in self._of(rm_id):
            for key, it in part["foreign"].items():
                self._place.at("foreign allocation", key)
                yield _foreign(name, key, it["node"], it["resource"])

    def leave(self, partition: str, image: Image) -> None:
        """Let it be as old as in the dump, and on its way out, and its swaps under way."""
        self._place.at("partition", partition)
        part = self._partitions[partition]
        image["quotas"] = dict(part["quotas"])
        image |= {name: part[name] for name in ("held", "behind") if name in part}
        if (folds := self._dump.get("folds", {}).get(partition)) is not None:
            image["folds"] = folds
        spent = ((path, it.get("preempted")) for path, it in part["queues"].items())
        image["preempted"] = [[path, some] for path, some in spent if some]
        nodes = {it["node_id"]: it for it in image["nodes"]}
        made = {it["spec"]["application_id"]: it for it in image["applications"]}
        for id_, app in part["applications"].items():
            if id_ not in made:
                continue
            self._place.at("application", id_)
            asks, allocations = made[id_]["asks"], made[id_]["allocations"]
            _as_old(made[id_], app)
            _as_far(made[id_], app)
            # In the order in which they began, which those of one moment have by their number.
            began = sorted(
                allocations, key=lambda it: (allocations[it]["allocated_ns"], len(it), it)
            )
            allocations = made[id_]["allocations"] = {it: allocations[it] for it in began}
            for it in app["allocations"]:
                if it["uuid"] in allocations:
                    allocations[it["uuid"]]["devices"] = it.get("devices", ())
                if it["releasing"] and it["uuid"] in allocations:
                    why = si.TerminationType[it["releasing"]]
                    _ask_back(image, made[id_], it["uuid"], why, self.at_ns)
            for it in app.get("swaps", ()):
                uuid, ask = it["placeholder"], asks.get(it["key"])
                if ask is None or uuid not in allocations:
                    continue
                ask["remaining"] -= 1
                ask["parked"] += 1
                made[id_]["swaps"][uuid] = {**it, "node_id": it["node"]}
                placeholder = allocations[uuid]
                placeholder["is_moving"] = it["crosses"]
                if it["crosses"]:
                    size = {name: placeholder[name] for name in ("resource", "devices")}
                    nodes[it["node"]]["incoming"][uuid] = {"application_id": id_, **size}


def _as_old(made: dict[str, Any], app: Mapping[str, Any]) -> None:
    """Let an application be as declared, and as old as in the dump, and what is of it."""
    made["submitted_ns"] = app["submitted_ns"]
    declared = [it for it in ApplicationSpec.__struct_fields__ if it in app]
    made["spec"].update((name, app[name]) for name in declared)
    asks, allocations = made["asks"], made["allocations"]
    for it in app["asks"]:
        if it["key"] in asks:
            asks[it["key"]]["created_ns"] = it["created_ns"]
    for it in app["allocations"]:
        if it["uuid"] in allocations:
            allocations[it["uuid"]]["allocated_ns"] = it["allocated_ns"]


def _as_far(made: dict[str, Any], app: Mapping[str, Any]) -> None:
    """Let an application be in its state, with its timers, and with what its gang has had."""
    state = ApplicationState(app["state"])
    made |= {name: app[name] for name in _OF_LIVES if name in app}
    made |= {
        "is_admitted": app["admitted"],
        # Of what runs it counts already.
        "counts": made["counts"] or state in COUNTS_AS_RUNNING,
        "state_log": {"entries": app["state_log"], "dropped": app["state_log_dropped"]},
        "timers": {
            kind: {"generation": 1, "due_ns": due_ns} for kind, due_ns in app["timers"].items()
        },
    }


_OF_LIVES: Final = (
    "state", "started_ns", "task_groups", "lapsed_ns", "crowd", "placed", "spared",
)  # fmt: skip
"""What a dump and an image call alike."""


def _preemption(it: Mapping[str, Any]) -> si.PreemptionPolicy | None:
    """Return what was declared; None where that is nothing, or a tag says it."""
    given = {name: it[name] for name in ("allow_preempt_self", "allow_preempt_other") if name in it}
    return si.PreemptionPolicy(**{"allow_preempt_self": True, **given}) if given else None


_OF_SWAPS: Final = ("placeholder", "node", "crosses")
_OF_MEMBERS: Final = ("resource", "priority", "task_group")
"""What a member of a gang has as its placeholder, as long as a dump does not say it."""
_PARKED: Final = {"sequence": 0, "repeats": 0, "placeholder": False}
_A: Final = si.ActionFromRM
_OF_QUEUES: Final = (
    "max_applications", "properties", "admin_acl", "submit_acl", "limits", "template", "position",
)  # fmt: skip
"""What a dump, a configuration and a queue call alike."""


def _tree(queues: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Make the configuration of the queues that stand in one; the root is the first."""
    made: dict[str, dict[str, Any]] = {}
    for path, queue in sorted(queues.items()):
        if queue["dynamic"] or queue["state"] == QueueState.DRAINING:
            continue
        made[path] = {
            "name": path.rpartition(".")[2],
            "parent": not queue["leaf"],
            "max": queue["max"] if queue["max"] and "." in path else None,
            "guaranteed": queue["guaranteed"] or None,
            "children": [],
            **{name: queue[name] for name in _OF_QUEUES},
        }
    for path, queue in made.items():
        if "." in path:
            made[path.rpartition(".")[0]]["children"].append(queue)
    for queue in made.values():
        queue["children"].sort(key=lambda it: it["position"])
    return made["root"]


def _application(
    partition: str, id_: str, queue: str, user: str, groups: Iterable[str], app: Mapping[str, Any]
) -> si.AddApplicationRequest:
    return si.AddApplicationRequest(
        application_id=id_,
        queue_name=queue,
        partition_name=partition,
        ugi=si.UserGroupInformation(user=user, groups=tuple(groups)),
        tags={**app.get("tags", {}), tags.APP_TAG_CREATE_FORCE: "true"},
        execution_timeout_milli_seconds=app.get("timeout_ms", 0),
        placeholder_ask=_resource(app["placeholder_ask"]) if app.get("placeholder_ask") else None,
    )


def _takes_work(node: Mapping[str, Any]) -> str:
    """A node that a core awaited may be gone, so nothing is placed there."""
    return str(node["ready"] and not node.get("awaited", False)).lower()


def _running(partition: str, id_: str, it: Mapping[str, Any]) -> si.Allocation:
    return si.Allocation(
        allocation_key=it["key"],
        allocation_tags={**it.get("tags", {}), **_seconds(it["allocated_ns"])},
        uuid=it.get("uuid", ""),
        resource_per_alloc=_resource(it["resource"]),
        priority=_whole("priority", it["priority"]),
        node_id=it["node"],
        application_id=id_,
        partition_name=partition,
        task_group_name=it.get("task_group", ""),
        placeholder=it.get("placeholder", False),
        originator=it.get("originator", False),
        preemption_policy=_preemption(it),
    )


def _foreign(partition: str, key: str, node: str, amounts: Any) -> si.Allocation:  # noqa: ANN401
    return si.Allocation(
        allocation_key=key,
        allocation_tags={tags.TAG_FOREIGN: "default"},
        resource_per_alloc=_resource(amounts),
        node_id=node,
        partition_name=partition,
    )


def _ask_back(image: Image, app: Image, uuid: str, why: si.TerminationType, at_ns: int) -> None:
    """Let the core have asked for an allocation, which is not confirmed yet."""
    app["allocations"][uuid] |= {"releasing": why, "asked_back_ns": at_ns}
    image["unconfirmed"][uuid] = app["spec"]["application_id"]


_PREEMPTED: Final = si.TerminationType.PREEMPTED_BY_SCHEDULER
_LEFT: Final = ("Failing", "Resuming")
"""States whose way out no dump says: what is asked back, and when."""


def _left_states(states: Mapping[str, str]) -> Iterator[str]:
    """Name applications that begin in another state than they are in."""
    for state in _LEFT:
        names = [id_ for id_, it in states.items() if it == state]
        if names:
            more = f" and {len(names) - _NAMED_MAX} more" if len(names) > _NAMED_MAX else ""
            listed = ", ".join(names[:_NAMED_MAX])
            yield f"how far {listed}{more} came while {state}: they go on as if they were not"


_NAMED_MAX: Final = 3


# -- the full state dump of YuniKorn's REST


class _YuniKorns:
    """The parts have the shapes of the routes; that of the service here is one of these."""

    def __init__(self, dump: Mapping[str, Any], place: DumpPath) -> None:
        """`dump` is without nulls: Go's encoder writes one for a list without elements."""
        self._place = place
        # Older versions write the names at the top as Go has them.
        self._dump = dump = {name[:1].lower() + name[1:]: it for name, it in dump.items()}
        self.at_ns = _whole("timestamp", dump["timestamp"])
        partitions: Rows = dump["partitions"]
        self.managers = list(dict.fromkeys(it["clusterId"] for it in partitions))[:1]
        others = sorted({it["clusterId"] for it in partitions} - {*self.managers})
        left_out = (f"the configuration of {it}: it is left out" for it in others)
        self._names = {it["name"] for it in partitions if it["clusterId"] in self.managers}
        states = {it["applicationID"]: it["applicationState"] for it in self._applications()}
        place.at()
        missing = (f"{name}: {it}" for name, it in _MISSING.items() if name not in dump)
        self.lacks = (*_OF_YUNIKORN, *left_out, *missing, *_left_states(states))

    def group(self, rm_id: str) -> str:
        return rm_id

    def config(self, _: str) -> SchedulerConfig:
        self._place.at("config", "")
        if not isinstance(self._dump["config"], Mapping):
            kind = type(self._dump["config"]).__name__
            raise TypeError(f"it must be an object, and is a {kind}")
        found = _lowered(self._dump["config"])
        text = json.dumps({"partitions": found["partitions"]})
        return parse_config(text, ANY_NAMES)

    def queues(self, partition: str) -> Iterator[tuple[str, dict[str, Any]]]:
        name = short_partition_name(partition)
        for root in self._dump.get("queues", ()):
            self._place.at("queues", "")
            if short_partition_name(root["partition"]) == name:
                yield from _made_by_placement(root)

    def _applications(self) -> Rows:
        active: Rows = []
        for number, it in enumerate(self._dump.get("applications", ()), 1):
            self._place.at("application", it.get("applicationID", f"{number} of the list"))
            it["submissionTime"] = _whole("submissionTime", it["submissionTime"])
            is_over = it["applicationState"] in {"Completed", "Failed", "Rejected", "Expired"}
            if short_partition_name(it["partition"]) in self._names and not is_over:
                active.append(it)
        return sorted(active, key=lambda it: it["submissionTime"])

    def applications(self, _: str) -> Iterator[si.AddApplicationRequest]:
        for app in self._applications():
            self._place.at("application", app["applicationID"])
            gang: dict[str, int] = {}
            for group in app.get("placeholderData", ()):
                for kind, amount in group.get("minResource", {}).items():
                    gang[kind] = gang.get(kind, 0) + amount * group.get("count", 0)
            yield _application(
                short_partition_name(app["partition"]), app["applicationID"], app["queueName"],
                app.get("user", ""), app.get("groups", ()), {"placeholder_ask": gang},
            )  # fmt: skip

    def nodes(self, _: str) -> Iterator[si.NodeInfo]:
        for name, node in self._nodes():
            self._place.at("node", node["nodeID"])
            others = [it.get("resource", {}) for it in node.get("foreignAllocations", ())]
            occupied = {
                kind: amount - sum(it.get(kind, 0) for it in others)
                for kind, amount in node.get("occupied", {}).items()
            }
            yield si.NodeInfo(
                node_id=node["nodeID"],
                action=_A.CREATE if node.get("schedulable") else _A.CREATE_DRAIN,
                attributes={**node.get("attributes", {}), tags.NODE_PARTITION: name},
                schedulable_resource=_resource(node.get("capacity")),
                occupied_resource=_resource({k: it for k, it in occupied.items() if it > 0}),
                existing_allocations=tuple(self._running(name, node)),
            )

    def _running(self, partition: str, node: Mapping[str, Any]) -> Iterator[si.Allocation]:
        for it in node.get("allocations", ()):
            key = it.get("allocationKey", "")
            self._place.at("node", node["nodeID"], "allocation", key)
            yield _running(partition, it["applicationId"], _in_our_words(it))

    def _nodes(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for part in self._dump.get("nodes", ()):
            name = short_partition_name(part["partitionName"])
            if name in self._names:
                for node in part.get("nodesInfo", ()):
                    yield name, node

    def asks(self, _: str) -> Iterator[si.AllocationAsk]:
        found = [(app, it) for app in self._applications() for it in app.get("requests", ())]
        for app, it in sorted(found, key=lambda one: one[1].get("requestTime", 0)):
            self._place.at("application", app["applicationID"], "ask", it.get("allocationKey", ""))
            required = it.get("requiredNodeId", "")
            yield si.AllocationAsk(
                partition_name=short_partition_name(app["partition"]),
                application_id=app["applicationID"],
                allocation_key=it["allocationKey"],
                resource_ask=_resource(it.get("resource")),
                priority=_whole("priority", it.get("priority", 0)),
                task_group_name=it.get("taskGroupName", ""),
                placeholder=it.get("placeholder", False),
                originator=it.get("originator", False),
                tags={
                    **it.get("allocationTags", {}),
                    **_seconds(it.get("requestTime")),
                    **({tags.TAG_REQUIRED_NODE: required} if required else {}),
                },
            )

    def leave(self, partition: str, image: Image) -> None:
        """Let it be as old as in the dump, and on its way out what was preempted.

        Nothing else that was asked back is said.
        """
        made = {it["spec"]["application_id"]: it for it in image["applications"]}
        for app in self._applications():
            self._place.at("application", app["applicationID"])
            if short_partition_name(app["partition"]) == short_partition_name(partition):
                self._date(made.get(app["applicationID"]), app)
        running: dict[tuple[str, str, str], list[str]] = {}
        for id_, app in made.items():
            for uuid, it in app["allocations"].items():
                # Several repeats of one ask may run on one node.
                running.setdefault((id_, it["spec"]["key"], it["node_id"]), []).append(uuid)
        for name, node in self._nodes():
            if name != short_partition_name(partition):
                continue
            for it in node.get("allocations", ()):
                alike = running.get((it["applicationId"], it["allocationKey"], node["nodeID"]))
                if not alike:
                    continue
                self._place.at("node", node["nodeID"], "allocation", it["allocationKey"])
                app, uuid = made[it["applicationId"]], alike.pop(0)
                # Where a clock was set back, it has begun at the moment of the dump.
                began_ns = _whole("allocationTime", it.get("allocationTime") or self.at_ns)
                app["allocations"][uuid]["allocated_ns"] = min(began_ns, self.at_ns)
                if it.get("preempted"):
                    _ask_back(image, app, uuid, _PREEMPTED, self.at_ns)

    def _date(self, made: dict[str, Any] | None, app: Mapping[str, Any]) -> None:
        if made is not None:
            made["submitted_ns"] = app["submissionTime"]
            for it in app.get("requests", ()):
                ask = made["asks"].get(it["allocationKey"])
                if ask is not None and it.get("requestTime"):
                    ask["created_ns"] = _whole("requestTime", it["requestTime"])

    def foreign(self, _: str) -> Iterator[si.Allocation]:
        for name, node in self._nodes():
            for it in node.get("foreignAllocations", ()):
                self._place.at("node", node["nodeID"], "foreign allocation", it["allocationKey"])
                yield _foreign(name, it["allocationKey"], node["nodeID"], it.get("resource"))


def _made_by_placement(queue: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what the configuration does not say: of queues that are not, or no more, in it."""
    for below in queue.get("children", ()):
        is_managed = below["isManaged"]
        if not is_managed or below["status"] == QueueState.DRAINING:
            yield (
                below["queuename"],
                {
                    "state": below["status"],
                    "leaf": below["isLeaf"],
                    "managed": is_managed,
                    "max": below.get("maxResource") or None,
                    "guaranteed": below.get("guaranteedResource") or None,
                    "max_applications": below.get("maxRunningApps", 0),
                    "properties": below.get("properties", {}),
                },
            )
        yield from _made_by_placement(below)


def _in_our_words(it: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "key": it["allocationKey"],
        "tags": it.get("allocationTags", {}),
        "allocated_ns": it.get("allocationTime"),
        "resource": it.get("resource"),
        "priority": it.get("priority", 0),
        "node": it["nodeId"],
        "task_group": it.get("taskGroupName", ""),
        "placeholder": it.get("placeholder", False),
        "originator": it.get("originator", False),
    }


def _without_nulls(value: Any) -> Any:  # noqa: ANN401 - of a dump
    if isinstance(value, list):
        return [_without_nulls(it) for it in value]
    if not isinstance(value, dict):
        return value
    return {name: _without_nulls(it) for name, it in value.items() if it is not None}


def _lowered(value: Any) -> Any:  # noqa: ANN401 - of a dump
    """Write the configuration, which Go's encoder wrote, in the words of the document."""
    if isinstance(value, list):
        return [_lowered(it) for it in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for key, it in value.items():
        name = key.lower()
        if it not in (None, "", [], {}):
            found[name] = it if name in _FREE else _lowered(it)
    return found
