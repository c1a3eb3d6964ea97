"""The state dump of a core, read as the images that another core goes on from.

An image has what cannot be worked out, so sums of a dump are not looked at. What former versions do
not write is as in an application or an ask of which nothing is known.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, convert
from msgspec.structs import replace

from yunikorn_actors.config import PartitionConfig, SchedulerConfig
from yunikorn_actors.config.extra import ExtraConfig
from yunikorn_actors.drivers.simulator.simulator import EPOCH_NS
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import Topology, TopologyName
from yunikorn_actors.messages.followers import ManagerDescribed
from yunikorn_actors.messages.rm_events import Capabilities
from yunikorn_actors.si import TerminationType
from yunikorn_actors.state.allocations import AskSpec
from yunikorn_actors.state.applications import (
    COUNTS_AS_RUNNING,
    LEAVES_USER_COUNT,
    ApplicationSpec,
    ApplicationState,
)
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import QueueSpec, QueueState
from yunikorn_actors.state.snapshot import Image, restore
from yunikorn_actors.values.ids import manager_of_partition, short_partition_name
from yunikorn_actors.what_if.core_state import BEGUN_ANEW, CoreState
from yunikorn_actors.what_if.dump_parts import (
    PREDICATES,
    PREEMPTION,
    DumpPath,
    amounts,
    left_states,
    times_in,
)
from yunikorn_actors.what_if.followed import state_of_replicas

Row = Mapping[str, Any]
Count = Annotated[int, Meta(ge=0)]
_LACKS: Final = (
    "reservations, and for whom work was asked back: they are made anew",
    "in which order the asks of what runs came",
    "applications that have ended: what is refused for that says less",
    BEGUN_ANEW,
)
_FORMER_LACKS: Final = (
    "tags of asks, such as run times and required nodes",
    PREEMPTION,
    "sizes, styles and timeouts of gangs",
    "sizes of members whose swap is under way: each is as large as its placeholder",
    "the moment at which it was made: it is that of its last event",
)
"""What earlier versions do not write, nor the time."""
_IN_QUEUES: Final = (
    "max_applications", "properties", "admin_acl", "submit_acl", "limits", "template", "position",
)  # fmt: skip
"""What a dump, a configuration and a queue call alike."""
_IN_APPLICATIONS: Final = (
    "state", "queue", "serial", "group", "submitted_ns", "started_ns", "task_groups", "lapsed_ns",
    "placed", "crowd", "reported", "spared",
)  # fmt: skip
_IN_ALLOCATIONS: Final = ("uuid", "allocated_ns", "instance_type", "charged_s", "devices")
_IN_ASKS: Final = ("created_ns", "sequence", "taken", "told", "shortage")
"""What a dump and an image call alike."""
_NEW: Final = {"started_ns": 0, "task_groups": {}, "lapsed_ns": 0, "placed": {}, "crowd": ""}
"""What former versions do not write of an application."""


def state_of_core_dump(
    dump: Row, path: DumpPath, *, topology: TopologyName, settings: Settings
) -> CoreState:
    parts: Mapping[str, Row] = dump["partitions"]
    path.at("at_ns", "")
    at_ns = convert(dump.get("at_ns"), int | None) or max(times_in(parts), default=EPOCH_NS)
    folds = dump.get("folds", {})
    images = {}
    for name, part in parts.items():
        images[name] = _Partition(name, part, path, at_ns).image()
        if name in folds:
            images[name]["folds"] = folds[name]
        path.at("partition", name)
        # Parts that contradict each other make no state.
        restore(PartitionState(name), images[name])
    state = state_of_replicas(
        _managers(dump, path), {name: (1, it) for name, it in images.items()},
        Topology(topology, settings=settings, instance="simulated"), at_ns,
    )  # fmt: skip
    former = [] if "at_ns" in dump else [*_FORMER_LACKS]
    if not all("capabilities" in it for it in dump.get("managers", {}).values()):
        former.append(PREDICATES)
    lives = {id_: app["state"] for it in parts.values() for id_, app in it["applications"].items()}
    path.at("policies", "")
    policies = convert(dump.get("policies", {}), dict[str, str])
    lacks = (*_LACKS, *former, *left_states(lives))
    return replace(state, policies=policies, lacks=lacks)


def _managers(dump: Row, path: DumpPath) -> Iterator[ManagerDescribed]:
    of_manager: dict[str, list[tuple[str, Row]]] = {}
    for name, part in dump["partitions"].items():
        of_manager.setdefault(manager_of_partition(name), []).append((name, part))
    described: Mapping[str, Row] = dump.get("managers", {})
    managers = [(rm_id, described.get(rm_id, {})) for rm_id in of_manager]
    # In the order in which they registered: the first makes the changes that name none.
    for rm_id, known in sorted(managers, key=lambda it: int(it[1].get("generation", 0))):
        path.at("resource manager", rm_id)
        configs = tuple(convert(_config(*it), PartitionConfig) for it in of_manager[rm_id])
        extra = convert(known.get("extra_config", {}), dict[str, str])
        yield ManagerDescribed(
            rm_id=rm_id,
            version=convert(known.get("version", ""), str),
            policy_group=convert(known.get("policy_group", rm_id), str),
            build_info=convert(known.get("build_info", {}), dict[str, str]),
            capabilities=convert(known.get("capabilities", {}), Capabilities),
            extra_config=extra,
            extra=ExtraConfig.of(extra),
            config=SchedulerConfig(
                partitions=configs, checksum=sha256(repr(configs).encode()).hexdigest().upper()
            ),
        )


def _config(name: str, part: Row) -> dict[str, Any]:
    """Return the configuration of a partition: that of its queues stands with them."""
    made: dict[str, dict[str, Any]] = {}
    for path, queue in sorted(part["queues"].items()):
        if queue["dynamic"] or queue["state"] == QueueState.DRAINING:
            continue
        above, _, own = path.rpartition(".")
        made[path] = {
            "name": own,
            "parent": not queue["leaf"],
            "max": queue["max"] or None if above else None,
            "guaranteed": queue["guaranteed"] or None,
            "children": [],
            **{word: queue[word] for word in _IN_QUEUES},
        }
        if above:
            made[above]["children"].append(made[path])
    for queue in made.values():
        queue["children"].sort(key=lambda it: it["position"])
    convert(part["config"].get("user_group_resolver", ""), Literal["", "os"])
    return {**part["config"], "name": short_partition_name(name), "root": made["root"]}


class _Partition:
    """Makes the image of one partition."""

    def __init__(self, name: str, part: Row, path: DumpPath, at_ns: int) -> None:
        self._name, self._part, self._path, self._at_ns = name, part, path, at_ns
        self._at: defaultdict[str, list[str]] = defaultdict(list)
        """What runs on each node, in the order in which it began."""
        self._incoming: defaultdict[str, dict[str, Any]] = defaultdict(dict)

    def image(self) -> Image:
        part, path = self._part, self._path
        path.at("partition", self._name)
        apps = sorted(part["applications"].items(), key=lambda it: int(it[1]["serial"]))
        applications = [self._application(*it) for it in apps]
        queues = [self._queue(*it) for it in sorted(part["queues"].items())]
        nodes = [self._node(*it) for it in part["nodes"].items()]
        path.at("partition", self._name)
        if lost := self._at.keys() - part["nodes"].keys():
            raise ValueError(f"work runs on {min(lost)}, which is no node there")
        return {
            "revision": convert(part["revision"], Count),
            "held": convert(part.get("held", False), bool),
            "behind": convert(part.get("behind", False), bool),
            "refused_node_actions": convert(part["refused_node_actions"], Count),
            "config": _config(self._name, part),
            "queues": queues,
            "users": [],
            "groups": [],
            "nodes": nodes,
            "foreign": [
                {"key": key, "node_id": it["node"], "resource": amounts(it["resource"])}
                for key, it in part["foreign"].items()
            ],
            "applications": applications,
            "finished": [],
            "rejected": [],
            "quotas": dict(part["quotas"]),
            "admitted": [id_ for id_, app in apps if app["admitted"]],
            "unconfirmed": {
                uuid: app["spec"]["application_id"]
                for app in applications
                for uuid, it in app["allocations"].items()
                if it["releasing"] is not None
            },
            "preempted": [
                [path, queue["preempted"]]
                for path, queue in part["queues"].items()
                if queue.get("preempted")
            ],
        }

    def _queue(self, path: str, queue: Row) -> list[Any]:
        self._path.at("queue", path)
        words = {name: queue[name] for name in ("leaf", *_IN_QUEUES)}
        limits = {name: queue[name] or None for name in ("guaranteed", "max")}
        if "." not in path:
            # What is written there is the capacity.
            del limits["max"]
        spec = convert({**words, **limits, "managed": not queue["dynamic"]}, QueueSpec)
        return [path, spec, QueueState(queue["state"]), []]

    def _node(self, id_: str, node: Row) -> dict[str, Any]:
        self._path.at("node", id_)
        return {
            "node_id": id_,
            "capacity": amounts(node["capacity"]),
            "occupied": amounts(node["occupied_reported"]),
            "attributes": convert(node["attributes"], dict[str, str]),
            "drained": convert(node["drained"], bool),
            # One that a core awaited may be gone, so nothing is placed there.
            "ready": convert(node["ready"], bool) and not node.get("awaited", False),
            "allocations": self._at[id_],
            "reservations": [],
            "incoming": self._incoming[id_],
        }

    def _application(self, id_: str, app: Row) -> dict[str, Any]:
        self._path.at("application", id_)
        state = ApplicationState(app["state"])
        convert(app.get("group"), str | None)
        # In the order in which they began, which those of one moment have by their number.
        rows = sorted(
            app["allocations"], key=lambda it: (it["allocated_ns"], len(it["uuid"]), it["uuid"])
        )
        allocations = {it["uuid"]: self._allocation(id_, it) for it in rows}
        holds = state in COUNTS_AS_RUNNING or bool(allocations)
        return {
            **_NEW,
            **_given(app, _IN_APPLICATIONS),
            "spec": {**_declared(id_, app, ApplicationSpec), "queue_name": app["queue"]},
            "counts": holds and state not in LEAVES_USER_COUNT,
            "state_log": {"entries": app["state_log"], "dropped": app["state_log_dropped"]},
            "timers": {
                kind: {"generation": 1, "due_ns": due_ns} for kind, due_ns in app["timers"].items()
            },
            "allocations": allocations,
            "asks": self._asks(id_, app, allocations),
            "swaps": {
                it["placeholder"]: {**it, "node_id": it["node"]} for it in app.get("swaps", ())
            },
            "is_admitted": app["admitted"],
            "history": app.get("resource_seconds", {}),
        }

    def _allocation(self, id_: str, it: Row) -> dict[str, Any]:
        self._path.at("application", id_, "allocation", it["key"])
        self._at[it["node"]].append(it["uuid"])
        why = it["releasing"]
        return {
            **_given(it, _IN_ALLOCATIONS),
            "spec": _declared(id_, it, AskSpec),
            "resource": amounts(it["resource"]),
            "node_id": it["node"],
            "releasing": TerminationType[why] if why else None,
            "asked_back_ns": self._at_ns if why else 0,
            "is_overdue": it.get("overdue", False),
        }

    def _asks(self, id_: str, app: Row, allocations: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """Return those of what runs and waits, and members whose placeholders are on their way."""
        asks: dict[str, dict[str, Any]] = {}
        uuids: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for uuid, running in allocations.items():
            spec = running["spec"]
            uuids[spec["key"]][uuid] = None
            asks[spec["key"]] = _ask({**spec}, created_ns=running["allocated_ns"])
        for it in sorted(app["asks"], key=lambda it: int(it["sequence"])):
            self._path.at("application", id_, "ask", it["key"])
            spec = {**_declared(id_, it, AskSpec), "resource": amounts(it["resource"])}
            asks[it["key"]] = _ask(
                spec, remaining=convert(it["repeats"], Count), **_given(it, _IN_ASKS)
            )
        for it in app.get("swaps", ()):
            self._path.at("application", id_, "swap of", it["key"])
            placeholder = allocations[it["placeholder"]]
            if it["key"] not in asks:
                # A member is as its placeholder, as long as a dump does not say it.
                alike = _given(placeholder["spec"], ("resource", "priority", "task_group"))
                asks[it["key"]] = _ask(
                    _declared(id_, {**alike, **it, "placeholder": False}, AskSpec)
                )
            asks[it["key"]]["parked"] += 1
            placeholder["is_moving"] = it["crosses"]
            if it["crosses"]:
                self._incoming[it["node"]][it["placeholder"]] = {
                    "application_id": id_,
                    "resource": asks[it["key"]]["spec"]["resource"],
                    **_given(placeholder, ("devices",)),
                }
        for key, ask in asks.items():
            ask["uuids"] = uuids[key] if len(uuids[key]) > 1 else tuple(uuids[key])
            # What runs under its key counts for it.
            ask["taken"] = max(ask["taken"], len(uuids[key]))
            ask["spec"]["max_allocations"] = ask["remaining"] + ask["parked"] + ask["taken"]
        return asks


def _ask(spec: dict[str, Any], **more: int) -> dict[str, Any]:
    return {
        "spec": spec, "created_ns": 0, "sequence": 0, "remaining": 0, "parked": 0, "taken": 0,
        **more,
    }  # fmt: skip


def _declared(id_: str, row: Row, kind: type[AskSpec | ApplicationSpec]) -> dict[str, Any]:
    """Return what was declared; when an ask came is no part of that."""
    names = (it for it in kind.__struct_fields__ if it != "created_ns")
    return {**_given(row, names), "application_id": id_}


def _given(row: Row, names: Iterable[str]) -> dict[str, Any]:
    return {name: row[name] for name in names if name in row}
