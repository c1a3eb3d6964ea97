"""What a scheduler did, as a workload: the life of each ask, collected from what it left behind.

Each placement is a job: submitted when its ask came, as long as it ran. What still waits at the end
stood in line and had nodes reserved, so it is a job as well: as long as others of its application
or queue ran on the average. What was withdrawn before is left out. The members of a gang of one
size are one job, which runs until the last of them has ended; their placeholders are part of it.
What still runs at the end is taken as ending there. A core leaves a recording or a journal;
`yunikorn` reads what a cluster of YuniKorn answers.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from yunikorn_actors.journal.folder import Folder
from yunikorn_actors.journal.frames import Damaged, frames_in
from yunikorn_actors.journal.restored_state import stored_entry
from yunikorn_actors.messages.base import EVENT_PUBLISHER
from yunikorn_actors.messages.rm_events import RegistrationRequested, RMRejectedAllocationAsk
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.policies.inputs import declared_ns
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import AskSpec
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.values import tags
from yunikorn_actors.values.ids import short_partition_name
from yunikorn_actors.workload.jobs import NAMED_MAX, SECOND, Findings, Job, Node, WorkloadError
from yunikorn_actors.workload.log_formats import write_jobs

AskKey = tuple[str, str]
"""Application and key."""
PLACEHOLDER: Final = "placeholder"
STILL_RAN: Final = "still ran at the end, taken as ending there"
STILL_WAITED: Final = "still waited at the end, taken as running as long as others do"
WITHDRAWN: Final = "withdrawn before it was placed"
NEVER_PLACED: Final = "never placed, as nothing else was: nothing says how long it would run"
REFUSED: Final = "refused by the core"
_facts: Final = msgspec.msgpack.Decoder(FactsAppended)


class _Ask(Struct):
    asked_ns: int
    number: int
    is_placeholder: bool
    fields: dict[str, Any]
    """Of its job."""
    repeats: int
    """So many allocations it is for."""
    placed: int = 0


class _Life(Struct):
    ask: _Ask
    key: AskKey
    began_ns: int
    is_member: bool = False
    """Whether it took the place of a placeholder."""


class Ended(NamedTuple):
    """A placement that has ended."""

    life: _Life
    end_ns: int


class Lives:
    """Jobs, nodes and configuration of what a scheduler did."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.nodes: list[Node] = []
        """One that has changed stands there several times, one after the other."""
        self.config = ""
        self.findings = Findings()
        self.last_ns = 0
        """The latest time that was seen."""
        self._nodes: dict[str, tuple[int, Node]] = {}
        """Those that are there now, and since when they are so."""
        self._nodes_before: list[tuple[int, int, Node]] = []
        """From when to when one was there, or was so."""
        self.owners: dict[str, dict[str, Any]] = {}
        """Of applications the user, the group and the queue; they may become known late."""
        self._asks: dict[AskKey, _Ask] = {}
        self._asked = 0
        self._running: dict[object, _Life] = {}
        """By what names a placement."""
        self._ended: list[Ended] = []

    def asked(self, key: AskKey, at_ns: int, fields: dict[str, Any], *,
              repeats: int = 1, is_placeholder: bool = False) -> None:  # fmt: skip
        """Note an ask; `fields` are those of its job."""
        self._asks[key] = _Ask(at_ns, self._asked, is_placeholder, fields, repeats)
        self._asked += 1

    def replaced(self, key: AskKey, fields: dict[str, Any], repeats: int) -> None:
        """Note that an ask came again: it is as old as before."""
        if (ask := self._asks.get(key)) is not None:
            ask.fields, ask.repeats = fields, repeats

    def withdrawn(self, key: AskKey) -> None:
        """Note that what still waits of an ask is gone."""
        ask = self._asks.get(key)
        if ask is not None and ask.repeats > ask.placed:
            ask.repeats = ask.placed
            if not ask.is_placeholder:
                self.findings.leave_out(WITHDRAWN)

    def knows(self, key: AskKey, *, is_placeholder: bool = False) -> bool:
        """Whether there is an ask; note that it is one of a placeholder."""
        ask = self._asks.get(key)
        if ask is not None and is_placeholder:
            ask.is_placeholder = True
        return ask is not None

    def began(self, name: object, key: AskKey, at_ns: int, *, is_member: bool = False) -> None:
        if (ask := self._asks.get(key)) is not None:
            ask.placed += 1
            self._running[name] = _Life(ask, key, at_ns, is_member)

    def ended(self, name: object, at_ns: int, *, is_placeholder: bool = False) -> None:
        life = self._running.pop(name, None)
        if life is not None:
            if is_placeholder or life.ask.is_placeholder:
                self.findings.leave_out(PLACEHOLDER)
            else:
                self._ended.append(Ended(life, at_ns))

    def everything_ends(self) -> None:
        """Note that the scheduler has begun anew: at the latest time that was seen."""
        for name in tuple(self._running):
            self.ended(name, self.last_ns)
        for id_ in tuple(self._nodes):
            self.node_left(id_, self.last_ns)

    def node(self, node: Node, at_ns: int) -> None:
        """Note a node that comes, or becomes another."""
        self.node_left(node.id, at_ns)
        self._nodes[node.id] = at_ns, node

    def node_now(self, id_: str) -> Node | None:
        return self._nodes[id_][1] if id_ in self._nodes else None

    def node_left(self, id_: str, at_ns: int) -> None:
        if (there := self._nodes.pop(id_, None)) is not None:
            self._nodes_before.append((there[0], at_ns, there[1]))

    def finish(self) -> "Lives":
        """Make the jobs of what was collected; times are seconds since the first ask."""
        for name in tuple(self._running):
            self.findings.assumed[STILL_RAN] += 1
            self.ended(name, self.last_ns)
        zero_ns = min((ask.asked_ns for ask in self._asks.values()), default=0)
        gangs = self._gangs()
        placed = [
            self._job(life.key, life.ask, at, (end_ns - life.began_ns) / SECOND, zero_ns,
                      waited_s=(life.began_ns - life.ask.asked_ns) / SECOND)
            for at, (life, end_ns) in enumerate(self._ended)
            if not (life.is_member and life.key[0] in gangs)
        ]  # fmt: skip
        for id_, members in gangs.items():
            placed.append(self._gang(id_, members, len(placed), zero_ns))
        jobs = [*placed, *self._still_waiting(placed, zero_ns)]
        self.jobs = sorted(jobs, key=lambda job: job.order)
        spans = [(since, None, node) for since, node in self._nodes.values()] + [
            it for it in self._nodes_before if it[1] > max(it[0], zero_ns)
        ]
        self.nodes = [
            replace(
                node, from_s=max(0, since - zero_ns) / SECOND,
                until_s=None if until is None else (until - zero_ns) / SECOND,
            )
            for since, until, node in sorted(spans, key=itemgetter(0))
        ]  # fmt: skip
        return self

    def _job(self, key: AskKey, ask: _Ask, number: int, run_s: float, zero_ns: int,
             waited_s: float | None = None) -> Job:  # fmt: skip
        return Job(
            id=f"{'/'.join(key)}#{number}", number=ask.number, run_s=run_s, waited_s=waited_s,
            submit_s=(ask.asked_ns - zero_ns) / SECOND, application=key[0],
            **{**self.owners.get(key[0], {}), **ask.fields},
        )  # fmt: skip

    def _gangs(self) -> dict[str, list[Ended]]:
        """Return the members of each gang that came together and is of one size."""
        members: dict[str, list[Ended]] = {}
        for it in self._ended:
            if it.life.is_member:
                members.setdefault(it.life.key[0], []).append(it)
        asks = self._placeholder_asks()
        return {
            id_: found
            for id_, found in members.items()
            if len(found) == sum(ask.repeats for ask in asks[id_])
            and len({repr(ask.fields["size"]) for ask in asks[id_]}) == 1
            and min(it.end_ns for it in found) > max(it.life.began_ns for it in found)
        }

    def _placeholder_asks(self) -> dict[str, list[_Ask]]:
        found: dict[str, list[_Ask]] = {}
        for (id_, _), ask in self._asks.items():
            if ask.is_placeholder:
                found.setdefault(id_, []).append(ask)
        return found

    def _gang(self, id_: str, members: list[Ended], number: int, zero_ns: int) -> Job:
        """It was asked for with its placeholders, and ran once the last member had begun."""
        first = min(self._placeholder_asks()[id_], key=lambda ask: ask.number)
        began_ns = max(it.life.began_ns for it in members)
        job = self._job(
            (id_, "gang"), first, number, (max(it.end_ns for it in members) - began_ns) / SECOND,
            zero_ns, (began_ns - first.asked_ns) / SECOND,
        )  # fmt: skip
        return replace(job, tasks=len(members), gang=True, application="")

    def _still_waiting(self, placed: list[Job], zero_ns: int) -> Iterator[Job]:
        runs: dict[str, list[float]] = {}
        for job in placed:
            for whose in (f"application {job.application}", f"queue {job.queue}", ""):
                runs.setdefault(whose, []).append(job.run_s)
        number = len(placed)
        for key, ask in self._asks.items():
            queue = self.owners.get(key[0], {}).get("queue", "")
            others = next(
                (it for whose in (f"application {key[0]}", f"queue {queue}", "")
                 if (it := runs.get(whose))), ()
            )  # fmt: skip
            for _ in range(0 if ask.is_placeholder else ask.repeats - ask.placed):
                if not others:
                    self.findings.leave_out(NEVER_PLACED)
                    continue
                self.findings.assumed[STILL_WAITED] += 1
                yield self._job(key, ask, number, sum(others) / len(others), zero_ns)
                number += 1

    def write(self, folder: Path) -> None:
        """Write `jobs.jsonl`, `nodes.yaml` and, if there was one, the configuration."""
        folder.mkdir(parents=True, exist_ok=True)
        write_jobs(self.jobs, folder / "jobs.jsonl")
        (folder / "nodes.yaml").write_text("\n".join([*self._node_lines(), ""]), encoding="utf-8")
        if self.config:
            (folder / "queues.yaml").write_text(self.config, encoding="utf-8")

    def _node_lines(self) -> Iterator[str]:
        for node in self.nodes:
            fields = {"id": node.id, "base": node.resources, "devices": node.devices}
            rest = {"model": "", "from_s": 0.0, "until_s": None, "drained": False}
            given = {it: value for it, n in rest.items() if (value := getattr(node, it)) != n}
            yield "- " + msgspec.json.encode(fields | given).decode()


# -- of a core


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
        recorded.config = self._configs.get(recorded.rm_id, "")
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
        path = self._path
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
        self.unknown_nodes: set[str] = set()
        """Those that had come before the recording began."""
        self._epoch = 0

    def take(self, message: FactsAppended) -> None:
        if message.epoch != self._epoch:
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
            case f.ApplicationAdded(spec=spec):
                group = next(iter(spec.groups), spec.user)
                self.owners[spec.application_id] = {
                    "user": spec.user, "group": group, "queue": fact.queue
                }  # fmt: skip
            case f.AllocationCommitted() | f.SwapCompleted():
                if isinstance(fact, f.SwapCompleted):
                    self.ended(fact.placeholder, fact.at_ns)
                self.placed(fact)
            case f.AllocationReleased(uuid=uuid, at_ns=at_ns):
                self.ended(uuid, at_ns)
            case _:
                self._apply_to_node(fact)

    def placed(self, fact: f.AllocationCommitted | f.SwapCompleted) -> None:
        key, is_member = (fact.application_id, fact.key), isinstance(fact, f.SwapCompleted)
        self.began(fact.uuid, key, fact.at_ns, is_member=is_member)
        if self.node_now(fact.node_id) is None:
            self.unknown_nodes.add(fact.node_id)

    def _apply_to_node(self, fact: Any) -> None:  # noqa: ANN401 - any fact
        match fact:
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
        "models": tuple(it for it in spec.gpu_model.split("|") if it),
        "node": spec.required_node,
    }


def _room(capacity: Mapping[str, int], occupied: Mapping[str, int]) -> dict[str, int]:
    """What others occupy on a node is not there for what the core places."""
    return {kind: max(0, amount - occupied.get(kind, 0)) for kind, amount in capacity.items()}


def _described(attributes: Mapping[str, str]) -> dict[str, Any]:
    devices = attributes.get(tags.GPU_DEVICES, "")
    count = int(devices) if devices.isascii() and devices.isdigit() else 0
    return {"model": attributes.get(tags.GPU_MODEL, ""), "devices": count}
