"""The full state dump of YuniKorn's REST, played to a core that begins.

The parts have the shapes of the routes, and were made to be read: they say less than a core decides
by. So a resource manager reports them as it does to a core that has started again: configuration,
applications, nodes with what runs there, then what waits. Placement and the counts are the core's.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, get_args, get_type_hints

from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.config import (
    PartitionConfig,
    QueueConfig,
    RuleConfig,
    SchedulerConfig,
    parse_config,
)
from yunikorn_actors.config.policy_names import ANY_NAMES
from yunikorn_actors.config.written import Written, WrittenConfig
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import Topology, TopologyName
from yunikorn_actors.messages.base import CONTEXT
from yunikorn_actors.messages.rm_events import Capabilities, RMHeldBack
from yunikorn_actors.state.queues import QueueSpec, QueueState
from yunikorn_actors.state.snapshot import Image
from yunikorn_actors.values import tags
from yunikorn_actors.values.close_names import first_few
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.values.ids import short_partition_name
from yunikorn_actors.what_if.core_state import CoreState, state_of
from yunikorn_actors.what_if.dump_parts import (
    PREDICATES,
    PREEMPTION,
    DumpPath,
    amounts,
    left_states,
    whole,
)
from yunikorn_actors.what_if.run import Manager

Row = Mapping[str, Any]
_LACKS: Final = (
    "revisions: each is 0",
    "that an application of which nothing runs now has begun: it begins anew",
    "how often an ask repeats: each counts once",
    PREEMPTION,
    PREDICATES,
    "styles and timeouts of gangs, and whether they were admitted: they are Soft",
    "tags of applications, such as a run time for all that one asks",
    "time limits of applications and of asks: nothing ends by them",
    "swaps and releases under way, but for preemption: placeholders go on without their members",
    "in which of the groups of its user an application counts: that is decided anew",
    "whether a node that takes no work is not ready: it is drained",
    "reservations, back-offs, due quotas and what was found of asks: all of it is found anew",
    "which of several asks of one time came first: that is their order in the dump",
)
_MISSING: Final = {
    "applications": "that part is missing, so nothing waits, and what runs belongs to none",
    "nodes": "that part is missing, so there are none, and nothing runs",
    "queues": "that part is missing, so there are those of the configuration alone",
}
"""Parts without which a state can be made, and what is assumed then."""
_OVER: Final = frozenset({"Completed", "Failed", "Rejected", "Expired"})
_NOT_READ: Final = frozenset({"statedumpfilepath"})
"""Keys of a configuration by which nothing is decided."""
_PROVIDED: Final = (RuleConfig(name="provided", create=True),)
_A: Final = si.ActionFromRM


def state_of_yunikorn_dump(
    dump: Row, path: DumpPath, *, topology: TopologyName, settings: Settings
) -> CoreState:
    simulator = Simulator(Topology(topology, settings=settings, instance="simulated"))
    return _YunikornDump(_without_nulls(dump), path).played_to(simulator)


def _without_nulls(value: Any) -> Any:  # noqa: ANN401 - of a dump
    """Go's encoder writes a null for a list without elements."""
    if isinstance(value, list):
        return [_without_nulls(it) for it in value]
    if not isinstance(value, dict):
        return value
    return {name: _without_nulls(it) for name, it in value.items() if it is not None}


class _Collected:
    """Keeps what the core does not take of the dump."""

    def __init__(self) -> None:
        self.refused: list[str] = []

    def receive(self, rm_id: str, response: si.AllocationResponse) -> None:
        """Do nothing: what runs was reported."""

    def refuse(self, rm_id: str, what: str, name: str, reason: str) -> None:  # noqa: ARG002 - names say it
        self.refused.append(f"{name}: {reason}")

    def fits(self, key: str, node: str) -> str | None:
        """Nobody asks."""


class _YunikornDump:
    def __init__(self, dump: Row, path: DumpPath) -> None:
        # Older versions write the names at the top as Go has them.
        self._dump = {name[:1].lower() + name[1:]: it for name, it in dump.items()}
        self._path = path
        self._at_ns = whole("timestamp", self._dump["timestamp"])
        path.at("partitions", "")
        clusters = [(it["clusterId"], it["name"]) for it in _rows(self._dump, "partitions")]
        if not clusters:
            raise ValueError("there is none, so nothing is known of a cluster")
        self._rm_id = clusters[0][0]
        own = (name for rm_id, name in clusters if rm_id == self._rm_id)
        self._partitions = {*map(short_partition_name, own)}
        self._others = sorted({rm_id for rm_id, _ in clusters} - {self._rm_id})
        self._draining: set[str] = set()
        """Queues that are no more in the configuration."""
        self._elsewhere: set[str] = set()
        """Applications and nodes of partitions that the dump does not describe."""
        self._left_out: set[str] = set()
        """Keys of the configuration that this version does not know."""
        self._applications = self._active()
        self._nodes = list(self._all_nodes())

    def played_to(self, simulator: Simulator) -> CoreState:
        simulator.now_ns, rm_id, collected = self._at_ns, self._rm_id, _Collected()
        config = self._config()
        open_ = replace(config, partitions=tuple(map(_opened, config.partitions)), checksum="open")
        registered = si.RegisterResourceManagerRequest(rm_id=rm_id, policy_group=rm_id)
        manager = Manager(rm_id, Capabilities(), collected)
        simulator.managers.register(registered, manager, open_)
        held = RMHeldBack(rm_id=rm_id, callback=next(reversed(simulator.callbacks)), held=True)
        simulator._post(CONTEXT, held, "dump")
        new = tuple(self._new_applications())
        simulator.update_application(si.ApplicationRequest(rm_id=rm_id, new=new))
        simulator.update_node(si.NodeRequest(rm_id=rm_id, nodes=tuple(self._new_nodes())))
        asks, foreign = tuple(self._asks()), tuple(self._foreign())
        simulator.update_allocation(
            si.AllocationRequest(rm_id=rm_id, asks=asks, allocations=foreign)
        )
        simulator.settle()
        update = si.UpdateConfigurationRequest(rm_id=rm_id, policy_group=rm_id)
        simulator.managers.configure(update, config)
        simulator.settle()
        state = state_of(simulator)
        for name, image in state.images.items():
            self._complete(short_partition_name(name), image)
        refused = (f"this version does not take {it}" for it in collected.refused)
        return replace(state, lacks=(*self._lacks(), *refused))

    def _lacks(self) -> Iterator[str]:
        yield from _LACKS
        yield from (f"the configuration of {it}: it is left out" for it in self._others)
        if self._left_out:
            names = ", ".join(sorted(self._left_out))
            yield f"what these keys of the configuration mean, which are left out: {names}"
        yield from (f"{name}: {it}" for name, it in _MISSING.items() if name not in self._dump)
        states = {it["applicationID"]: it["applicationState"] for it in self._applications}
        yield from left_states(states)
        for what, those in self._unreadable().items():
            if those:
                yield f"{what}: {first_few(sorted(those))}"

    def _unreadable(self) -> dict[str, set[str]]:
        """Name what the dump says, and a core that begins cannot be given."""
        at_nodes = {
            (it["applicationId"], it["allocationKey"])
            for _, node in self._nodes
            for it in _rows(node, "allocations")
        }
        listed = {
            (app["applicationID"], it["allocationKey"])
            for app in self._applications
            for it in _rows(app, "allocations")
        }
        parts = _rows(self._dump, "partitions")
        return {
            "nodes without a capacity, and what runs there": {
                node["nodeID"] for _, node in self._nodes if not node.get("capacity")
            },
            "work that an application lists and no node has": {
                "/".join(it) for it in listed - at_nodes
            },
            "that these partitions drain": {
                it["name"] for it in parts if it.get("state") == "Draining"
            },
            "limits of queues that drain": self._draining,
            "what is of a partition that it does not describe": self._elsewhere,
        }

    # -- what is reported

    def _config(self) -> SchedulerConfig:
        self._path.at("config", "")
        words = self._in_words(_of_kind(self._dump["config"], Mapping, "an object"), WrittenConfig)
        return parse_config(json.dumps({"partitions": words["partitions"]}), ANY_NAMES)

    def _in_words(self, value: Any, kind: type[Written] | None) -> Any:  # noqa: ANN401 - of a dump
        """Write the configuration, which Go's encoder wrote, in the words of the document."""
        if isinstance(value, list):
            return [self._in_words(it, kind) for it in value]
        if kind is None or not isinstance(value, Mapping):
            return value
        hints = get_type_hints(kind)
        given = {key.lower(): it for key, it in value.items() if it not in (None, "", [], {})}
        if kind is not WrittenConfig:
            self._left_out |= given.keys() - hints.keys() - _NOT_READ
        known = (name for name in given if name in hints)
        return {name: self._in_words(given[name], _kind_of(hints[name])) for name in known}

    def _active(self) -> list[Row]:
        active: list[Row] = []
        self._path.at("applications", "")
        for number, it in enumerate(_rows(self._dump, "applications"), 1):
            self._path.at("application", f"{number} of the list")
            self._path.at("application", it["applicationID"])
            app = {**it, "submissionTime": whole("submissionTime", it["submissionTime"])}
            if app["applicationState"] not in _OVER and self._is_ours(app["partition"], it):
                active.append(app)
        return sorted(active, key=lambda it: it["submissionTime"])

    def _is_ours(self, partition: str, it: Row) -> bool:
        is_ours = short_partition_name(partition) in self._partitions
        if not is_ours:
            name = it.get("applicationID") or it["nodeID"]
            self._elsewhere.add(f"{name} of {partition}")
        return is_ours

    def _new_applications(self) -> Iterator[si.AddApplicationRequest]:
        for app in self._applications:
            self._path.at("application", app["applicationID"])
            gang: dict[str, int] = {}
            for group in _rows(app, "placeholderData"):
                count = whole("count", group.get("count", 0))
                for kind, amount in amounts(group.get("minResource")).items():
                    gang[kind] = gang.get(kind, 0) + amount * count
            yield si.AddApplicationRequest(
                application_id=app["applicationID"],
                queue_name=app["queueName"],
                partition_name=short_partition_name(app["partition"]),
                ugi=si.UserGroupInformation(
                    user=app.get("user", ""), groups=tuple(app.get("groups", ()))
                ),
                tags={tags.APP_TAG_CREATE_FORCE: "true"},
                placeholder_ask=si.Resource.of(gang) if gang else None,
            )

    def _all_nodes(self) -> Iterator[tuple[str, Row]]:
        self._path.at("nodes", "")
        for part in _rows(self._dump, "nodes"):
            self._path.at("nodes", "")
            name = short_partition_name(part["partitionName"])
            for number, node in enumerate(_rows(part, "nodesInfo"), 1):
                self._path.at("node", f"{number} of the list")
                self._path.at("node", node["nodeID"])
                if self._is_ours(name, node):
                    yield name, node

    def _new_nodes(self) -> Iterator[si.NodeInfo]:
        for name, node in self._nodes:
            self._path.at("node", node["nodeID"])
            # What is foreign there is reported by itself.
            occupied = amounts(node.get("occupied"))
            for it in _rows(node, "foreignAllocations"):
                for kind, amount in amounts(it.get("resource")).items():
                    occupied[kind] = occupied.get(kind, 0) - amount
            yield si.NodeInfo(
                node_id=node["nodeID"],
                action=_A.CREATE if node.get("schedulable") else _A.CREATE_DRAIN,
                attributes={**node.get("attributes", {}), tags.NODE_PARTITION: name},
                schedulable_resource=si.Resource.of(amounts(node.get("capacity"))),
                occupied_resource=si.Resource.of({k: it for k, it in occupied.items() if it > 0}),
                existing_allocations=tuple(self._running(name, node)),
            )

    def _running(self, partition: str, node: Row) -> Iterator[si.Allocation]:
        for it in _rows(node, "allocations"):
            key = it.get("allocationKey", "")
            self._path.at("node", node["nodeID"], "allocation", key)
            yield si.Allocation(
                allocation_tags={**it.get("allocationTags", {}), **_since(it, "allocationTime")},
                resource_per_alloc=si.Resource.of(amounts(it.get("resource"))),
                node_id=it["nodeId"],
                application_id=it["applicationId"],
                **_of_both(it, partition),
            )

    def _asks(self) -> Iterator[si.AllocationAsk]:
        found = [(app, it) for app in self._applications for it in _rows(app, "requests")]
        for app, it in sorted(found, key=lambda one: one[1].get("requestTime", 0)):
            self._path.at("application", app["applicationID"], "ask", it.get("allocationKey", ""))
            required = it.get("requiredNodeId", "")
            yield si.AllocationAsk(
                application_id=app["applicationID"],
                resource_ask=si.Resource.of(amounts(it.get("resource"))),
                **_of_both(it, short_partition_name(app["partition"])),
                tags={
                    **it.get("allocationTags", {}),
                    **_since(it, "requestTime"),
                    **({tags.TAG_REQUIRED_NODE: required} if required else {}),
                },
            )

    def _foreign(self) -> Iterator[si.Allocation]:
        for name, node in self._nodes:
            for it in _rows(node, "foreignAllocations"):
                key = it.get("allocationKey", "")
                self._path.at("node", node["nodeID"], "foreign allocation", key)
                yield si.Allocation(
                    allocation_key=it["allocationKey"],
                    allocation_tags={tags.TAG_FOREIGN: "default"},
                    resource_per_alloc=si.Resource.of(amounts(it.get("resource"))),
                    node_id=node["nodeID"],
                    partition_name=name,
                )

    # -- what nobody reports to a core

    def _complete(self, partition: str, image: Image) -> None:
        """Let it be as old as in the dump, with its queues, and what was preempted on its way out.

        Nothing else that was asked back is said.
        """
        # It was held while it was made, so that nothing is decided before the first change.
        image["held"] = image["behind"] = False
        # That of the copy counts what was reported to it, and no core has had it.
        image["revision"] = 0
        # What policies keep is made anew of what runs since when.
        image.pop("folds", None)
        queues = {path: it for path, *it in image["queues"]}
        for root in _rows(self._dump, "queues"):
            self._path.at("queue", root.get("queuename", ""))
            if short_partition_name(root["partition"]) == partition:
                queues.update(self._made_by_placement(root))
        image["queues"] = [[path, *it] for path, it in queues.items()]
        made = {it["spec"]["application_id"]: it for it in image["applications"]}
        for app in self._applications:
            self._path.at("application", app["applicationID"])
            if short_partition_name(app["partition"]) == partition:
                _date(made.get(app["applicationID"]), app)
        running: defaultdict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
        for id_, app in made.items():
            for it in app["allocations"].values():
                # Several repeats of one ask may run on one node.
                running[id_, it["spec"]["key"], it["node_id"]].append(it)
        for name, node in self._nodes:
            for it in _rows(node, "allocations") if name == partition else ():
                self._path.at("node", node["nodeID"], "allocation", it["allocationKey"])
                if alike := running[it["applicationId"], it["allocationKey"], node["nodeID"]]:
                    self._begin(alike.pop(0), it, image)

    def _begin(self, made: dict[str, Any], it: Row, image: Image) -> None:
        # Where a clock was set back, it has begun at the moment of the dump.
        began_ns = whole("allocationTime", it.get("allocationTime") or self._at_ns)
        made["allocated_ns"] = min(began_ns, self._at_ns)
        if it.get("preempted"):
            made["releasing"] = si.TerminationType.PREEMPTED_BY_SCHEDULER
            made["asked_back_ns"] = self._at_ns
            image["unconfirmed"][made["uuid"]] = it["applicationId"]

    def _made_by_placement(self, queue: Row) -> Iterator[tuple[str, list[Any]]]:
        """Yield what the configuration does not say: of queues that are not, or no more, in it."""
        for below in _rows(queue, "children"):
            self._path.at("queue", below.get("queuename", ""))
            if below["isManaged"] and below["status"] == QueueState.DRAINING:
                self._draining.add(below["queuename"])
            if not below["isManaged"] or below["status"] == QueueState.DRAINING:
                spec = QueueSpec(
                    leaf=below["isLeaf"],
                    managed=below["isManaged"],
                    max=amounts(below.get("maxResource")) or None,
                    guaranteed=amounts(below.get("guaranteedResource")) or None,
                    max_applications=whole("maxRunningApps", below.get("maxRunningApps", 0)),
                    properties=below.get("properties", {}),
                )
                yield below["queuename"], [spec, QueueState(below["status"]), []]
            yield from self._made_by_placement(below)


def _of_both(it: Row, partition: str) -> dict[str, Any]:
    """Read what asks and allocations have alike."""
    return {
        "allocation_key": it["allocationKey"],
        "partition_name": partition,
        "priority": whole("priority", it.get("priority", 0)),
        "task_group_name": it.get("taskGroupName", ""),
        "placeholder": it.get("placeholder", False),
        "originator": it.get("originator", False),
    }


def _rows(row: Row, name: str) -> Sequence[Row]:
    """Return a list of objects; what is empty may be left out."""
    rows: Sequence[Row] = _of_kind(row.get(name, []), list, f"a list: {name}")
    return [_of_kind(it, Mapping, f"an object in {name}") for it in rows]


def _of_kind(value: Any, kind: type, words: str) -> Any:  # noqa: ANN401 - of a dump
    if not isinstance(value, kind):
        raise TypeError(f"it must be {words}, and is a {type(value).__name__}")
    return value


def _date(made: dict[str, Any] | None, app: Row) -> None:
    if made is None:
        return
    made["submitted_ns"] = app["submissionTime"]
    for it in _rows(app, "requests"):
        ask = made["asks"].get(it["allocationKey"])
        if ask is not None and it.get("requestTime"):
            ask["created_ns"] = whole("requestTime", it["requestTime"])


def _since(it: Row, name: str) -> dict[str, str]:
    at_ns = it.get(name)
    return {tags.TAG_CREATION_TIME: str(whole(name, at_ns) // SECOND)} if at_ns else {}


def _kind_of(hint: Any) -> type[Written] | None:  # noqa: ANN401 - a type, written in any way
    if isinstance(hint, type) and issubclass(hint, Written):
        return hint
    return next(filter(None, map(_kind_of, get_args(hint))), None)


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
