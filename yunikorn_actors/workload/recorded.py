"""What a core did, as a workload: from its recording, or from its journal."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml
from msgspec.structs import replace

from yunikorn_actors.config.model import PartitionConfig
from yunikorn_actors.journal.file_sequence import row_of
from yunikorn_actors.journal.folder import Folder
from yunikorn_actors.journal.frames import Damaged, frames_in
from yunikorn_actors.journal.headers import ENTRIES, SNAPSHOT
from yunikorn_actors.journal.restore import begun_with
from yunikorn_actors.journal.restored_state import stored_entry
from yunikorn_actors.messages.base import EVENT_PUBLISHER
from yunikorn_actors.messages.rm_events import RegistrationRequested, RMRejectedAllocationAsk
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.policies.inputs import declared_ns
from yunikorn_actors.service.read.configuration import partition as partition_document
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import AskSpec
from yunikorn_actors.state.applications import ApplicationSpec
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.values import tags
from yunikorn_actors.values.ids import DEFAULT_PARTITION, short_partition_name
from yunikorn_actors.workload.jobs import NAMED_MAX, SECOND, Node, WorkloadError
from yunikorn_actors.workload.lives import Lives

REFUSED: Final = "refused by the core"
NO_CONFIG: Final = "its configuration is not in it: give one with --config, or all queues are open"
_CUTTING: Final = frozenset(
    # The end of what was on a node that left has no type.
    {TerminationType.PREEMPTED_BY_SCHEDULER, TerminationType.UNKNOWN_TERMINATION_TYPE}
)
_facts: Final = msgspec.msgpack.Decoder(FactsAppended)


def read_recorded(path: str | Path, partition: str = "") -> Lives:
    """Read a recording, or the folder of a journal; of several partitions one has to be named."""
    path = Path(path)
    found = _Found(path)
    (found.read_journal if path.is_dir() else found.read_trace)()
    return found.chosen(partition)


class _Found:
    """What there was of each partition."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._partitions: dict[str, _Recorded] = {}
        self._configs: dict[str, str] = {}
        """Of each resource manager."""
        self._last_ns = 0
        """When the last was recorded."""
        self._refused: Counter[str] = Counter()
        self._faults: list[str] = []

    def chosen(self, partition: str) -> Lives:
        called = {it: {"", it, short_partition_name(it)} for it in self._partitions}
        matching = [it for it, names in called.items() if partition in names]
        if len(matching) != 1 and (self._partitions or partition):
            several = ", ".join(sorted(self._partitions)[:NAMED_MAX])
            raise WorkloadError(
                f"{self._path}: name one of its {len(self._partitions):,} partitions "
                f"(--partition): {several}"
            )
        recorded = self._partitions[matching[0]] if matching else _Recorded()
        recorded.last_ns = max(recorded.last_ns, self._last_ns)
        recorded.config = self._config_of(recorded)
        if not recorded.config:
            self._faults.append(f"{self._path.name}: {NO_CONFIG}")
        if refused := self._refused[recorded.rm_id]:
            recorded.findings.left_out[REFUSED] += refused
        if nodes := recorded.unknown_nodes:
            named = ", ".join(sorted(nodes)[:NAMED_MAX])
            self._faults.append(
                f"{self._path.name}: it begins later than the run, so {len(nodes):,} nodes are not "
                f"in it: write them into nodes.yaml: {named}"
            )
        for fault in self._faults:
            recorded.findings.fault(0, fault)
        return recorded.finish()

    def _config_of(self, recorded: "_Recorded") -> str:
        """Return that in force at the end; the text as it was given where it is that one."""
        given = self._configs.get(recorded.rm_id, "")
        if given and recorded.configurations <= 1:
            return given
        if recorded.in_force is None:
            return ""
        # A replay has one partition.
        shown = partition_document(replace(recorded.in_force, name=DEFAULT_PARTITION))
        return yaml.safe_dump({"partitions": [shown]}, sort_keys=False, allow_unicode=True)

    def read_trace(self) -> None:
        with TraceReader(self._path) as trace:
            for delivery in trace:
                message, self._last_ns = delivery.message, delivery.at_ns
                if delivery.mailbox == EVENT_PUBLISHER and isinstance(message, FactsAppended):
                    self._take(message)
                elif isinstance(message, RMRejectedAllocationAsk):
                    self._refused[message.rm_id] += len(message.rejected)
                elif isinstance(message, RegistrationRequested) and message.request.config:
                    self._configs[message.request.rm_id] = message.request.config
        name = self._path.name
        if trace.lost:
            self._faults.append(f"{name}: {trace.lost:,} messages are not in the recording")
        if trace.footer is None:
            self._faults.append(f"{name}: the recording has no footer: it is cut off, or goes on")

    def read_journal(self) -> None:
        """What was there when the oldest snapshot was made is the beginning."""
        folder = Folder(self._path)
        if not folder.numbers(ENTRIES):
            raise WorkloadError(f"{self._path}: no journal: there is no file with entries")
        row = row_of(folder)
        if row.snapshot:
            truth = begun_with(folder.file(SNAPSHOT, row.snapshot))
            rm_ids = {
                name: known.registration.rm_id
                for known in truth.registered.managers
                for name in known.epochs
            }
            for (name, epoch), state in truth.states.items():
                self._partitions[name] = _Recorded.begun_with(state, rm_ids.get(name, ""), epoch)
        for link in row.links:
            end = None if link.end is None else link.end.bytes
            try:
                frames = [*frames_in(link.path.read_bytes(), end)]
            except Damaged as damaged:
                raise WorkloadError(f"{link.path}: damaged at byte {damaged.place}") from damaged
            for frame in frames[1:]:
                entry = stored_entry(frame.payload)
                self._last_ns = entry.at_ns
                for kind, payload in entry.issued:
                    if kind == FactsAppended.__name__:
                        self._take(_facts.decode(payload))

    def _take(self, message: FactsAppended) -> None:
        recorded = self._partitions.setdefault(message.partition, _Recorded())
        recorded.take(message)


class _Recorded(Lives):
    """What a partition did."""

    def __init__(self) -> None:
        super().__init__()
        self.rm_id = ""
        self.in_force: PartitionConfig | None = None
        self.configurations = 0
        """How many came."""
        self.unknown_nodes: set[str] = set()
        """Those that had come before the recording began."""
        self._epoch = 0

    @classmethod
    def begun_with(cls, state: PartitionState, rm_id: str, epoch: int) -> "_Recorded":
        """Take what is there as what had come before."""
        recorded = cls()
        recorded.rm_id, recorded._epoch = rm_id, epoch
        recorded.in_force = state.config
        for node in state.nodes.values():
            here = Node(
                id=node.id, resources=_room(node.capacity, node.occupied_reported),
                drained=node.drained or not node.ready, **_described(node.attributes),
            )  # fmt: skip
            recorded.node(here, 0)
        for app in state.applications.values():
            recorded._own(app.spec, app.queue.path)
            for ask in app.asks.values():
                spec, key = ask.spec, (app.id, ask.spec.key)
                recorded.asked(
                    key, ask.created_ns, _of_its_job(spec),
                    repeats=ask.remaining + ask.parked + len(ask.uuids),
                    is_placeholder=spec.placeholder,
                )  # fmt: skip
            for allocation in app.allocations.values():
                recorded.began(
                    allocation.uuid, (app.id, allocation.spec.key), allocation.allocated_ns
                )
        return recorded

    def _own(self, spec: ApplicationSpec, queue: str) -> None:
        group = next(iter(spec.groups), spec.user)
        self.owners[spec.application_id] = {"user": spec.user, "group": group, "queue": queue}

    def take(self, message: FactsAppended) -> None:
        if self._epoch and message.epoch != self._epoch:
            # Its resource manager has registered anew: nothing of before is there any more.
            self.everything_ends()
        self.rm_id, self._epoch = message.rm_id, message.epoch
        for fact in message.facts:
            self.last_ns = max(self.last_ns, getattr(fact, "at_ns", 0))
            self._apply(fact)

    def _apply(self, fact: Any) -> None:  # noqa: ANN401 - any fact
        match fact:
            case f.AskAdded(spec=spec, at_ns=at_ns):
                self.asked(
                    (spec.application_id, spec.key), at_ns, _of_its_job(spec),
                    repeats=spec.max_allocations, is_placeholder=spec.placeholder,
                )  # fmt: skip
            case f.AskReplaced(spec=spec):
                key = spec.application_id, spec.key
                self.replaced(key, _of_its_job(spec), spec.max_allocations)
            case f.AskRemoved(application_id=application, key=key):
                self.withdrawn((application, key))
            case f.AsksAdded() | f.AllocationsCommitted():
                for part in fact.parts():
                    self._apply(part)
            case f.AllocationCommitted() | f.SwapCompleted():
                if isinstance(fact, f.SwapCompleted):
                    self.ended(fact.placeholder, fact.at_ns)
                self.placed(fact)
            case f.AllocationReleased(uuid=uuid, at_ns=at_ns):
                why = fact.type if fact.given_back is None else fact.given_back
                self.ended(uuid, at_ns, is_cut_short=why in _CUTTING)
            case _:
                self._apply_to_cluster(fact)

    def placed(self, fact: f.AllocationCommitted | f.SwapCompleted) -> None:
        key, is_member = (fact.application_id, fact.key), isinstance(fact, f.SwapCompleted)
        self.began(fact.uuid, key, fact.at_ns, is_member=is_member)
        if self.node_now(fact.node_id) is None:
            self.unknown_nodes.add(fact.node_id)

    def _apply_to_cluster(self, fact: Any) -> None:  # noqa: ANN401 - any fact
        match fact:
            case f.PartitionConfigured(config=config):
                self.in_force, self.configurations = config, self.configurations + 1
            case f.ApplicationAdded(spec=spec):
                self._own(spec, fact.queue)
            case f.NodeAdded(node_id=id_, at_ns=at_ns, attributes=attributes):
                new = Node(
                    id=id_, resources=_room(fact.capacity, fact.occupied),
                    drained=fact.drained or not fact.ready, **_described(attributes),
                )  # fmt: skip
                self.node(new, at_ns)
            case f.NodeRemoved(node_id=id_, at_ns=at_ns):
                self.node_left(id_, at_ns)
            case f.NodeResized(node_id=id_):
                self._change(id_, fact.at_ns, resources=_room(fact.capacity, fact.occupied))
            case f.NodeAttributesReplaced(node_id=id_):
                self._change(id_, fact.at_ns, **_described(fact.attributes))
            case f.NodeScheduleChanged(node_id=id_):
                self._change(id_, fact.at_ns, drained=fact.drained or not fact.ready)

    def _change(self, id_: str, at_ns: int, **fields: Any) -> None:  # noqa: ANN401 - of a node
        before = self.node_now(id_)
        if before is not None and (after := replace(before, **fields)) != before:
            self.node(after, at_ns)


def _of_its_job(spec: AskSpec) -> dict[str, Any]:
    return {
        "size": dict(spec.resource),
        "priority": spec.priority,
        "preemptible": spec.allow_preempt_self,
        "may_preempt": spec.allow_preempt_other,
        "declared_s": (declared_ns(spec.tags.get(tags.TAG_RUNTIME, "")) or 0) / SECOND,
        "models": tuple(filter(None, spec.models)),
        "node": spec.required_node,
    }


def _room(capacity: Mapping[str, int], occupied: Mapping[str, int]) -> dict[str, int]:
    """What others occupy on a node is not there for what the core places."""
    return {kind: max(0, amount - occupied.get(kind, 0)) for kind, amount in capacity.items()}


def _described(attributes: Mapping[str, str]) -> dict[str, Any]:
    devices = attributes.get(tags.GPU_DEVICES, "")
    count = int(devices) if devices.isascii() and devices.isdigit() else 0
    return {"model": attributes.get(tags.GPU_MODEL, ""), "devices": count}
