"""What a core did, from its recording or its journal, as a workload."""

from pathlib import Path
from typing import Any, Final

import msgspec

from yunikorn_actors.journal.folder import Folder
from yunikorn_actors.journal.frames import Damaged, frames_in
from yunikorn_actors.journal.restored_state import stored_entry
from yunikorn_actors.messages.base import EVENT_PUBLISHER
from yunikorn_actors.messages.rm_events import RegistrationRequested, RMRejectedAllocationAsk
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.policies.inputs import declared_ns
from yunikorn_actors.state import facts as f
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.values import tags
from yunikorn_actors.workload.jobs import Node, WorkloadError
from yunikorn_actors.workload.lives import Lives

REFUSED: Final = "refused by the core"
_facts: Final = msgspec.msgpack.Decoder(FactsAppended)


def read_recorded(path: str | Path) -> Lives:
    """Read a recording, or the folder of a journal."""
    path = Path(path)
    recorded = _Recorded()
    if path.is_dir():
        recorded.read_journal(path)
    else:
        recorded.read_trace(path)
    return recorded.lives.finish()


class _Recorded:
    def __init__(self) -> None:
        self.lives = Lives()
        self._groups: dict[str, str] = {}

    def read_trace(self, path: Path) -> None:
        with TraceReader(path) as trace:
            for delivery in trace:
                message = delivery.message
                if delivery.mailbox == EVENT_PUBLISHER and isinstance(message, FactsAppended):
                    self._take(message)
                elif isinstance(message, RMRejectedAllocationAsk):
                    self.lives.findings.left_out[REFUSED] += len(message.rejected)
                elif isinstance(message, RegistrationRequested) and message.request.config:
                    self.lives.config = message.request.config
        findings = self.lives.findings
        if trace.lost:
            findings.fault(0, f"{path.name}: {trace.lost:,} messages are not in the recording")
        if trace.footer is None:
            findings.fault(
                0, f"{path.name}: the recording has no footer: it is cut off, or goes on"
            )

    def read_journal(self, path: Path) -> None:
        folder = Folder(path)
        numbers = folder.numbers("entries")
        if not numbers:
            raise WorkloadError(f"{path}: no journal: there is no file with entries")
        for number in numbers:
            try:
                frames = [*frames_in(folder.file("entries", number).read_bytes(), None)]
            except Damaged as damaged:
                raise WorkloadError(f"{path}: damaged at byte {damaged.place}") from damaged
            for frame in frames[1:]:
                for kind, payload in stored_entry(frame.payload).issued:
                    if kind == FactsAppended.__name__:
                        self._take(_facts.decode(payload))

    def _take(self, message: FactsAppended) -> None:
        for fact in message.facts:
            self.lives.last_ns = max(self.lives.last_ns, getattr(fact, "at_ns", 0))
            self._apply(fact)

    def _apply(self, fact: Any) -> None:  # noqa: ANN401 - any fact
        match fact:
            case f.AskAdded(spec=spec, at_ns=at_ns) | f.AskReplaced(spec=spec, at_ns=at_ns):
                fields = {
                    "size": dict(spec.resource),
                    "priority": spec.priority,
                    "preemptible": spec.allow_preempt_self,
                    "may_preempt": spec.allow_preempt_other,
                    "declared_s": (declared_ns(spec.tags.get(tags.TAG_RUNTIME, "")) or 0) / 1e9,
                    "models": tuple(it for it in spec.gpu_model.split("|") if it),
                }
                key = spec.application_id, spec.key
                self.lives.asked(key, at_ns, fields, is_placeholder=spec.placeholder)
            case f.AsksAdded() | f.AllocationsCommitted():
                for part in fact.parts():
                    self._apply(part)
            case f.ApplicationAdded(spec=spec):
                self._groups[spec.application_id] = next(iter(spec.groups), spec.user)
            case f.AllocationCommitted() | f.SwapCompleted():
                if isinstance(fact, f.SwapCompleted):
                    self.lives.ended(fact.placeholder, fact.at_ns)
                application = fact.application_id
                group = self._groups.get(application, fact.user)
                fields = {"user": fact.user, "group": group, "queue": fact.queue}
                self.lives.began(fact.uuid, (application, fact.key), fact.at_ns, fields)
            case f.AllocationReleased(uuid=uuid, at_ns=at_ns):
                self.lives.ended(uuid, at_ns)
            case f.NodeAdded(node_id=node_id, capacity=capacity, attributes=attributes):
                devices = attributes.get(tags.GPU_DEVICES, "")
                self.lives.nodes[node_id] = Node(
                    id=node_id, resources=dict(capacity), model=attributes.get(tags.GPU_MODEL, ""),
                    devices=int(devices) if devices.isdigit() else 0,
                )  # fmt: skip
