"""What a core did, from its recording or its journal, as a workload.

Each placement is a job: submitted when its ask came, as long as it ran. What was never placed says
nothing of how long it would have run, so it is left out, and so are placeholders: members of a gang
are jobs of their own. What still runs at the end is taken as ending there.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from yunikorn_actors.journal.folder import Folder
from yunikorn_actors.journal.frames import Damaged, frames_in
from yunikorn_actors.journal.restored_state import stored_entry
from yunikorn_actors.messages.base import EVENT_PUBLISHER
from yunikorn_actors.messages.rm_events import RegistrationRequested
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import AskSpec
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.values import tags
from yunikorn_actors.workload.jobs import SECOND, Job, Node, WorkloadError

_facts: Final = msgspec.msgpack.Decoder(FactsAppended)
_Ask = tuple[str, str]
"""Application and key."""


class Recorded:
    """Jobs, nodes and configuration of what was recorded."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.nodes: dict[str, Node] = {}
        self.config = ""
        self.left_out: Counter[str] = Counter()
        self._asks: dict[_Ask, tuple[AskSpec, int, int]] = {}
        """With when it came, and its number."""
        self._groups: dict[str, str] = {}
        self._placed: set[_Ask] = set()
        self._running: dict[str, tuple[_Ask, Any, int]] = {}
        """By UUID: the ask, the fact of the placement, and when."""
        self._numbers = 0
        self._began_ns: int | None = None
        self._last_ns = 0

    @classmethod
    def read(cls, path: str | Path) -> "Recorded":
        """Read a recording, or the folder of a journal."""
        recorded = cls()
        if Path(path).is_dir():
            recorded._read_journal(Path(path))
        else:
            recorded._read_trace(Path(path))
        recorded._finish()
        return recorded

    def _read_trace(self, path: Path) -> None:
        with TraceReader(path) as trace:
            for delivery in trace:
                message = delivery.message
                if delivery.mailbox == EVENT_PUBLISHER and isinstance(message, FactsAppended):
                    self._take(message)
                elif isinstance(message, RegistrationRequested) and message.request.config:
                    self.config = message.request.config

    def _read_journal(self, path: Path) -> None:
        folder = Folder(path)
        numbers = folder.numbers("entries")
        if not numbers:
            raise WorkloadError(f"{path}: no journal: there is no file with entries")
        for number in numbers:
            try:
                self._read_entries(folder.file("entries", number).read_bytes())
            except Damaged as damaged:
                raise WorkloadError(f"{path}: damaged at byte {damaged.place}") from damaged

    def _read_entries(self, data: bytes) -> None:
        for frame in list(frames_in(data, None))[1:]:
            for kind, payload in stored_entry(frame.payload).issued:
                if kind == FactsAppended.__name__:
                    self._take(_facts.decode(payload))

    def _take(self, message: FactsAppended) -> None:
        for fact in message.facts:
            at_ns = getattr(fact, "at_ns", 0)
            self._last_ns = max(self._last_ns, at_ns)
            if self._began_ns is None and at_ns:
                self._began_ns = at_ns
            self._apply(fact)

    def _apply(self, fact: Any) -> None:  # noqa: ANN401 - any fact
        match fact:
            case f.AskAdded(spec=spec, at_ns=at_ns) | f.AskReplaced(spec=spec, at_ns=at_ns):
                self._numbers += 1
                self._asks[spec.application_id, spec.key] = spec, at_ns, self._numbers
            case f.AsksAdded() | f.AllocationsCommitted():
                for part in fact.parts():
                    self._apply(part)
            case f.ApplicationAdded(spec=spec):
                self._groups[spec.application_id] = next(iter(spec.groups), spec.user)
            case f.AllocationCommitted() | f.SwapCompleted():
                if isinstance(fact, f.SwapCompleted):
                    self._running.pop(fact.placeholder, None)
                ask = fact.application_id, fact.key
                self._placed.add(ask)
                self._running[fact.uuid] = ask, fact, fact.at_ns
            case f.AllocationReleased(uuid=uuid, at_ns=at_ns):
                self._end(uuid, at_ns)
            case f.NodeAdded(node_id=node_id, capacity=capacity, attributes=attributes):
                devices = attributes.get(tags.GPU_DEVICES, "")
                self.nodes[node_id] = Node(
                    id=node_id, resources=dict(capacity), model=attributes.get(tags.GPU_MODEL, ""),
                    devices=int(devices) if devices.isdigit() else 0,
                )  # fmt: skip

    def _end(self, uuid: str, at_ns: int) -> None:
        found = self._running.pop(uuid, None)
        if found is None or found[0] not in self._asks:
            return
        ask, fact, start_ns = found
        spec, asked_ns, number = self._asks[ask]
        if spec.placeholder:
            self.left_out["placeholder"] += 1
            return
        began_ns = self._began_ns or 0
        self.jobs.append(
            Job(
                id=f"{spec.application_id}/{spec.key}#{len(self.jobs)}",
                number=number,
                submit_s=(asked_ns - began_ns) / SECOND,
                run_s=(at_ns - start_ns) / SECOND,
                size=dict(spec.resource),
                declared_s=float(spec.tags.get(tags.TAG_RUNTIME, 0) or 0),
                user=fact.user,
                group=self._groups.get(spec.application_id, fact.user),
                queue=fact.queue,
                models=tuple(it for it in spec.gpu_model.split("|") if it),
                priority=spec.priority,
                waited_s=(start_ns - asked_ns) / SECOND,
            )
        )

    def _finish(self) -> None:
        for uuid in tuple(self._running):
            self.left_out["still ran at the end, taken as ending there"] += 1
            self._end(uuid, self._last_ns)
        waiting = sum(
            ask not in self._placed and not spec.placeholder
            for ask, (spec, _, _) in self._asks.items()
        )
        if waiting:
            self.left_out["never placed"] = waiting
        self.jobs.sort(key=lambda job: job.order)

    def nodes_yaml(self) -> Iterator[str]:
        """Write the nodes as `--nodes` reads them."""
        for node in self.nodes.values():
            told = {"id": node.id, "base": node.resources, "model": node.model}
            yield "- " + msgspec.json.encode({**told, "devices": node.devices}).decode()
