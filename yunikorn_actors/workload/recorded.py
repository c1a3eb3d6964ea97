"""What a scheduler did, as a workload: the life of each ask, collected from what it left behind.

Each placement is a job: submitted when its ask came, as long as it ran. What was never placed says
nothing of how long it would have run, so it is left out, and so are placeholders: members of a gang
are jobs of their own. What still runs at the end is taken as ending there. A core leaves a
recording or a journal; `yunikorn` reads what a cluster of YuniKorn answers.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

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
from yunikorn_actors.workload.jobs import SECOND, Findings, Job, Node, WorkloadError
from yunikorn_actors.workload.log_formats import write_jobs

AskKey = tuple[str, str]
"""Application and key."""
PLACEHOLDER: Final = "placeholder"
STILL_RAN: Final = "still ran at the end, taken as ending there"
NEVER_PLACED: Final = "never placed"
REFUSED: Final = "refused by the core"
_facts: Final = msgspec.msgpack.Decoder(FactsAppended)


class _Ask(Struct):
    asked_ns: int
    number: int
    is_placeholder: bool
    fields: dict[str, Any]
    """Of its job."""
    is_placed: bool = False


class _Life(Struct):
    ask: _Ask
    key: AskKey
    began_ns: int
    fields: dict[str, Any]


class Lives:
    """Jobs, nodes and configuration of what a scheduler did."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.nodes: dict[str, Node] = {}
        self.config = ""
        self.findings = Findings()
        self.last_ns = 0
        """The latest time that was seen."""
        self._asks: dict[AskKey, _Ask] = {}
        self._running: dict[object, _Life] = {}
        """By what names a placement."""
        self._ended: list[tuple[_Life, int]] = []

    def asked(self, key: AskKey, at_ns: int, fields: dict[str, Any], *,
              is_placeholder: bool = False) -> None:  # fmt: skip
        """Note an ask; `fields` are those of its job."""
        self._asks[key] = _Ask(at_ns, len(self._asks), is_placeholder, fields)

    def knows(self, key: AskKey, *, is_placeholder: bool = False) -> bool:
        """Whether there is an ask; note that it is one of a placeholder."""
        ask = self._asks.get(key)
        if ask is not None and is_placeholder:
            ask.is_placeholder = True
        return ask is not None

    def began(self, name: object, key: AskKey, at_ns: int, fields: dict[str, Any]) -> None:
        """Note a placement; `fields` are what its ask did not say."""
        if (ask := self._asks.get(key)) is not None:
            ask.is_placed = True
            self._running[name] = _Life(ask, key, at_ns, fields)

    def ended(self, name: object, at_ns: int, *, is_placeholder: bool = False) -> None:
        life = self._running.pop(name, None)
        if life is not None:
            if is_placeholder or life.ask.is_placeholder:
                self.findings.leave_out(PLACEHOLDER)
            else:
                self._ended.append((life, at_ns))

    def finish(self) -> "Lives":
        """Make the jobs of what was collected; times are seconds since the first ask."""
        for name in tuple(self._running):
            self.findings.leave_out(STILL_RAN)
            self.ended(name, self.last_ns)
        for ask in self._asks.values():
            if not ask.is_placed and not ask.is_placeholder:
                self.findings.leave_out(NEVER_PLACED)
        zero_ns = min((ask.asked_ns for ask in self._asks.values()), default=0)
        jobs = (
            Job(
                id=f"{'/'.join(life.key)}#{at}", number=life.ask.number,
                submit_s=(life.ask.asked_ns - zero_ns) / SECOND,
                run_s=(end_ns - life.began_ns) / SECOND,
                waited_s=(life.began_ns - life.ask.asked_ns) / SECOND,
                **{**life.fields, **life.ask.fields},
            )
            for at, (life, end_ns) in enumerate(self._ended)
        )  # fmt: skip
        self.jobs = sorted(jobs, key=lambda job: job.order)
        return self

    def write(self, folder: Path) -> None:
        """Write `jobs.jsonl`, `nodes.yaml` and, if there was one, the configuration."""
        folder.mkdir(parents=True, exist_ok=True)
        write_jobs(self.jobs, folder / "jobs.jsonl")
        (folder / "nodes.yaml").write_text("\n".join([*self._node_lines(), ""]), encoding="utf-8")
        if self.config:
            (folder / "queues.yaml").write_text(self.config, encoding="utf-8")

    def _node_lines(self) -> Iterator[str]:
        for node in self.nodes.values():
            fields = {"id": node.id, "base": node.resources, "model": node.model}
            yield "- " + msgspec.json.encode({**fields, "devices": node.devices}).decode()


# -- of a core


def read_recorded(path: str | Path) -> Lives:
    """Read a recording, or the folder of a journal."""
    path = Path(path)
    recorded = _Recorded()
    (recorded.read_journal if path.is_dir() else recorded.read_trace)(path)
    return recorded.finish()


class _Recorded(Lives):
    def __init__(self) -> None:
        super().__init__()
        self._groups: dict[str, str] = {}

    def read_trace(self, path: Path) -> None:
        with TraceReader(path) as trace:
            for delivery in trace:
                message = delivery.message
                if delivery.mailbox == EVENT_PUBLISHER and isinstance(message, FactsAppended):
                    self._take(message)
                elif isinstance(message, RMRejectedAllocationAsk):
                    self.findings.left_out[REFUSED] += len(message.rejected)
                elif isinstance(message, RegistrationRequested) and message.request.config:
                    self.config = message.request.config
        findings = self.findings
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
            self.last_ns = max(self.last_ns, getattr(fact, "at_ns", 0))
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
                self.asked(key, at_ns, fields, is_placeholder=spec.placeholder)
            case f.AsksAdded() | f.AllocationsCommitted():
                for part in fact.parts():
                    self._apply(part)
            case f.ApplicationAdded(spec=spec):
                self._groups[spec.application_id] = next(iter(spec.groups), spec.user)
            case f.AllocationCommitted() | f.SwapCompleted():
                if isinstance(fact, f.SwapCompleted):
                    self.ended(fact.placeholder, fact.at_ns)
                application = fact.application_id
                group = self._groups.get(application, fact.user)
                fields = {"user": fact.user, "group": group, "queue": fact.queue}
                self.began(fact.uuid, (application, fact.key), fact.at_ns, fields)
            case f.AllocationReleased(uuid=uuid, at_ns=at_ns):
                self.ended(uuid, at_ns)
            case f.NodeAdded(node_id=node_id, capacity=capacity, attributes=attributes):
                devices = attributes.get(tags.GPU_DEVICES, "")
                self.nodes[node_id] = Node(
                    id=node_id, resources=dict(capacity), model=attributes.get(tags.GPU_MODEL, ""),
                    devices=int(devices) if devices.isdigit() else 0,
                )  # fmt: skip
