"""A YuniKorn cluster as a workload: from its full state dump and from its events.

Events say what was asked for, when it was placed and when it ended. A dump says who owns what,
which nodes there are, what runs and what waits now, and under which configuration. Either alone
says less; what is missing is listed. Fields that are not known here are passed over, and an object
that cannot be read is counted and named.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from yunikorn_actors.service.read.configuration import of_go_names
from yunikorn_actors.si.enums import ChangeDetail, ChangeType
from yunikorn_actors.values.durations import MILLISECOND
from yunikorn_actors.workload.job_stream import open_text
from yunikorn_actors.workload.jobs import NOT_READ, Findings, Node, WorkloadError
from yunikorn_actors.workload.lives import AskKey, Lives

DEFAULT: Final = "default"
WHOLE_APPLICATION: Final = "ended before its events begin: one job, of the most that it used"
NO_REQUEST: Final = "no event of its request: taken as submitted when it was placed"
NO_OWNER: Final = "no dump says who its user is"
NO_QUEUE: Final = "nothing says what its queue is"
OTHER_PARTITION: Final = "of another partition"
_ENDED: Final = frozenset(it for it in ChangeDetail if it.name.startswith("ALLOC_"))
_WITHDRAWN: Final = frozenset({ChangeDetail.REQUEST_CANCEL, ChangeDetail.REQUEST_TIMEOUT})
_OF_PLACEHOLDER: Final = frozenset({ChangeDetail.ALLOC_REPLACED, ChangeDetail.ALLOC_TIMEOUT})


def read_yunikorn(files: Sequence[str | Path]) -> Lives:
    """Read dumps (`/debug/fullstatedump`) and events (`/ws/v1/events/batch`, `.../stream`)."""
    cluster = _Cluster()
    documents = [item for file in files for item in _documents(Path(file), cluster.findings)]
    dumps = [it for it in documents if "applications" in it or "nodes" in it]
    records = [it for it in documents if "timestampNano" in it]
    for document in documents:
        batch = document.get("EventRecords")
        records += batch if isinstance(batch, list) else ()
    if not dumps and not records:
        raise WorkloadError(f"{files[0]}: neither a state dump of YuniKorn nor a batch of events")
    for dump in dumps:
        cluster.each("a dump's configuration", [dump], cluster.take_configuration)
        cluster.each("applications", dump.get("applications"), cluster.take_owner)
        cluster.each("nodes", dump.get("nodes"), cluster.take_nodes)
    known = [it for it in records if isinstance(it, dict) and _is_time(it.get("timestampNano"))]
    for _ in range(len(records) - len(known)):
        cluster.findings.fault(0, "an event has no time")
    cluster.each("events", sorted(known, key=lambda it: it["timestampNano"]), cluster.take_event)
    cluster.each("applications", cluster.applications, cluster.take_application)
    cluster.count_what_is_missing()
    return cluster.finish()


def _documents(file: Path, findings: Findings) -> Iterator[dict[str, Any]]:
    """Read one document, or one on each line, as a stream of events is."""
    with open_text(file) as lines:
        text = lines.read()
    found, faults = [], dict[int, object]()
    with suppress(*NOT_READ):
        found = [msgspec.json.decode(text)]
    for at, line in enumerate(() if found else text.splitlines(), 1):
        try:
            found += [msgspec.json.decode(line)] if line.strip() else ()
        except NOT_READ as error:
            faults[at] = error
    if not found and faults:
        raise WorkloadError(f"{file}: no JSON: {faults.popitem()[1]}")
    for at, what in faults.items():
        findings.fault(at, what, f"{file.name}:{at}: ")
    yield from (it for it in found if isinstance(it, dict))


class _Cluster(Lives):
    def __init__(self) -> None:
        super().__init__()
        self.applications: list[dict[str, Any]] = []
        """Those of the dumps that can be read."""
        self._partition = ""
        self._seen_keys: set[AskKey] = set()
        """Placements of which there are events."""
        self._seen: set[str] = set()
        """Applications of which there are events of a placement."""

    def each(self, place: str, items: Any, take: Callable[[Any], None]) -> None:  # noqa: ANN401 - any JSON
        """Take each of a list; name those that cannot be read by their place."""
        if not isinstance(items, list | None):
            self.findings.fault(0, "it is no list", f"{place}: ")
            items = None
        for at, item in enumerate(items or ()):
            try:
                take(item)
            except NOT_READ as error:
                self.findings.fault(0, error, f"{place}[{at}]: ")

    # -- the dump

    def take_configuration(self, dump: dict[str, Any]) -> None:
        self.last_ns = max(self.last_ns, _time(dump.get("timestamp")))
        config = of_go_names(dump.get("config") or {})
        parts = [it for it in config.get("partitions") or () if isinstance(it, dict)]
        names = [it.get("name", DEFAULT) for it in parts]
        self._partition = DEFAULT if DEFAULT in names or not names else names[0]
        if parts:
            chosen = {**parts[names.index(self._partition)], "name": DEFAULT}
            self.config = yaml.safe_dump({"partitions": [chosen]}, sort_keys=False)

    def take_owner(self, app: dict[str, Any]) -> None:
        user = str(app.get("user") or "nobody")
        groups = app.get("groups") or [user]
        owner = {"user": user, "group": str(groups[0]), "queue": str(app["queueName"])}
        self.owners[str(app["applicationID"])] = owner
        self.applications.append(app)

    def take_nodes(self, listed: dict[str, Any]) -> None:
        name, nodes = listed.get("partitionName", DEFAULT), listed.get("nodesInfo") or []
        if not self._is_here(name):
            for _ in nodes:
                self.findings.leave_out(f"node {OTHER_PARTITION}")
            return
        self.each(f"nodes of {name}", nodes, self._take_node)

    def _take_node(self, node: dict[str, Any]) -> None:
        """What others than YuniKorn occupy on a node is not there for its work."""
        capacity, occupied = _amounts(node["capacity"]), _amounts(node.get("occupied"))
        room = {kind: amount - occupied.get(kind, 0) for kind, amount in capacity.items()}
        id_ = str(node["nodeID"])
        self.node(Node(id=id_, resources={k: v for k, v in room.items() if v > 0}), 0)

    def take_application(self, app: dict[str, Any]) -> None:
        id_ = str(app["applicationID"])
        if not self._is_here(app.get("partition", DEFAULT)):
            self.findings.leave_out(f"application {OTHER_PARTITION}")
            return
        self.each(f"requests of {id_}", app.get("requests"), lambda it: self._take_request(id_, it))
        self.each(f"allocations of {id_}", app.get("allocations"), lambda it: self._runs(id_, it))
        started = _time(app.get("startTime")) * MILLISECOND
        finished = _time(app.get("finishedTime"))
        if id_ not in self._seen and 0 < started < finished:
            self.findings.leave_out(WHOLE_APPLICATION)
            asked, key = _time(app.get("submissionTime")) or started, (id_, "all")
            size = _amounts(app.get("maxUsedResource"))
            self.asked(key, asked, {"size": size})
            self._began(key, started)
            self.ended(key, finished)

    def _take_request(self, id_: str, it: dict[str, Any]) -> None:
        key, is_placeholder = (id_, str(it["allocationKey"])), it.get("placeholder") is True
        if not self.knows(key, is_placeholder=is_placeholder):
            asked_ns = _time(it.get("requestTime")) or _time(it["allocationTime"])
            fields = {"size": _amounts(it["resource"]), "priority": int(it.get("priority") or 0)}
            self.asked(key, asked_ns, fields, is_placeholder=is_placeholder)

    def _runs(self, id_: str, it: dict[str, Any]) -> None:
        key = id_, str(it["allocationKey"])
        self._take_request(id_, it)
        if key not in self._seen_keys:
            self._began(key, _time(it["allocationTime"]))
        self._seen.add(id_)

    # -- events

    def take_event(self, record: dict[str, Any]) -> None:
        at_ns, object_ = record["timestampNano"], str(record.get("objectID", ""))
        change = record.get("eventChangeType"), record.get("eventChangeDetail")
        key = object_, str(record.get("referenceID", ""))
        self.last_ns = max(self.last_ns, at_ns)
        match change:
            case ChangeType.ADD, ChangeDetail.APP_REQUEST:
                self.asked(key, at_ns, {"size": _amounts(record["resource"])})
            case ChangeType.ADD, ChangeDetail.APP_ALLOC:
                if not self.knows(key):
                    self.findings.leave_out(NO_REQUEST)
                    self.asked(key, at_ns, {"size": _amounts(record["resource"])})
                self._seen.add(object_)
                self._seen_keys.add(key)
                self._began(key, at_ns)
            case ChangeType.REMOVE, detail if detail in _WITHDRAWN:
                self.withdrawn(key)
            case ChangeType.REMOVE, detail if detail in _ENDED:
                self.ended(key, at_ns, is_placeholder=detail in _OF_PLACEHOLDER)
            case ChangeType.ADD, ChangeDetail.QUEUE_APP:
                self.owners.setdefault(key[1], {})["queue"] = object_
            case ChangeType.SET, ChangeDetail.UG_APP_LINK:
                self.owners.setdefault(key[1], {}).setdefault("group", object_)

    # -- parts

    def _began(self, key: AskKey, at_ns: int) -> None:
        self.owners.setdefault(key[0], {})
        self.began(key, key, at_ns)

    def _is_here(self, partition: str) -> bool:
        self._partition = self._partition or partition
        return partition == self._partition

    def count_what_is_missing(self) -> None:
        for owner in self.owners.values():
            for name, what in (("user", NO_OWNER), ("queue", NO_QUEUE)):
                if name not in owner:
                    self.findings.leave_out(f"application: {what}")


def _is_time(value: object) -> bool:
    return isinstance(value, int) and 0 < value < 1 << 63


def _time(value: object) -> int:
    """Return a time, 0 for what is none: an application that never started has one before 1970."""
    return value if isinstance(value, int) and _is_time(value) else 0


def _amounts(value: Any) -> dict[str, int]:  # noqa: ANN401 - any JSON
    """Read a resource in each of its forms: plain, of an event, and as version 1.5 nested it."""
    inner = (value or {}).get("resources", (value or {}).get("Resources", value)) or {}
    amounts = {
        str(kind): int(it.get("value", 0) if isinstance(it, dict) else it)
        for kind, it in inner.items()
    }
    return {kind: amount for kind, amount in amounts.items() if amount > 0}
