"""The cluster of a replay: its nodes, what fits on them, and its configuration."""

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from itertools import accumulate, islice
from math import inf
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml
from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.values.quantity import QuantityError
from yunikorn_actors.workload.job_stream import SAMPLE, Workload, open_text
from yunikorn_actors.workload.jobs import (
    COUNT_MAX,
    CPU,
    DEVICE,
    GPU,
    MEMORY,
    MIB,
    SECONDS_MAX,
    VCORE,
    Job,
    Node,
    WorkloadError,
    in_words,
)

_POOL: Final = re.compile(r"([0-9]{1,9})(?:x([0-9]{1,9}))?")
ORDER: Final = "application.sort.policy"
_OPEN: Final = """
partitions:
- name: default
  placementrules:
  - {name: provided, create: true}
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: default
"""
NODES_MAX: Final = 1_000_000
_SPAN_KEYS: Final = ("from_s", "until_s", "drained")
_NODE_KEYS: Final = frozenset({"id", "count", "resources", "base", "model", "devices", *_SPAN_KEYS})


def read_nodes(given: str | None, workload: Workload | None = None) -> list[Node]:
    """Read `N` (one node of N processors), `NxP` (N nodes of P processors) or a file.

    The file is the CSV of openb, or YAML: a list of `{id, count, resources, model}`, with `from_s`,
    `until_s` and `drained` for what changes. Without any a log says itself how many processors
    there are.
    """
    if given is None:
        processors = "" if workload is None else workload.survey.header.get("MaxProcs", "")
        if not processors.isdecimal():
            raise WorkloadError("the log does not say on what it ran: name the nodes (--nodes)")
        given = processors
    pool = _POOL.fullmatch(given)
    if pool is None and not (given.startswith(SAMPLE) or Path(given).exists()):
        raise WorkloadError(f"nodes {given}: write N, NxP or the name of a file that is there")
    try:
        made = _of_pool(pool) if pool else _of_file(Path(given))
        nodes = list(islice(made, NODES_MAX + 1))
    except (ValueError, KeyError, TypeError, yaml.YAMLError, QuantityError) as error:
        if isinstance(error, WorkloadError):
            raise
        raise WorkloadError(f"{given}: no nodes: {in_words(error):.200}") from error
    if not 0 < len(nodes) <= NODES_MAX:
        raise WorkloadError(f"nodes {given}: write from 1 to {NODES_MAX:,} of them")
    _check_spans(given, nodes)
    return nodes


def _check_spans(given: str, nodes: Iterable[Node]) -> None:
    """A name is that of one node at a time."""
    ends: dict[str, float] = {}
    for node in sorted(nodes, key=lambda it: it.from_s):
        until_s = inf if node.until_s is None else node.until_s
        if not 0 <= node.from_s < until_s or not (until_s <= SECONDS_MAX or until_s == inf):
            raise WorkloadError(
                f"{given}: node {node.id}: from_s {node.from_s:g} until_s {node.until_s}: write "
                "seconds since the first submit, the end behind the begin"
            )
        if node.from_s < ends.get(node.id, 0.0):
            raise WorkloadError(f"{given}: two nodes of the name {node.id} at one time")
        ends[node.id] = until_s


def scaled_nodes(nodes: Iterable[Node], factor: float) -> list[Node]:
    """Return the same nodes, with their changes that many times as far apart."""
    return [
        replace(
            it, from_s=it.from_s * factor,
            until_s=None if it.until_s is None else it.until_s * factor,
        )
        for it in nodes
    ]  # fmt: skip


def _of_pool(pool: re.Match[str]) -> Iterator[Node]:
    count, each = (int(pool[1]), int(pool[2])) if pool[2] else (1, int(pool[1]))
    for number in _numbers(count if each else 0):
        yield Node(id=f"n-{number}", resources={VCORE: each * CPU})


def _numbers(count: int) -> range:
    """Refuse too many before they are made."""
    if count > NODES_MAX:
        raise WorkloadError(f"{count:,} nodes: write from 1 to {NODES_MAX:,} of them")
    return range(count)


def _of_file(file: Path) -> Iterator[Node]:
    with open_text(file) as lines:
        text = lines.read()
    return _of_openb(text) if "cpu_milli" in text.split("\n", 1)[0] else _of_yaml(text)


def _of_openb(text: str) -> Iterator[Node]:
    for row in csv.DictReader(text.splitlines()):
        devices = int(row["gpu"])
        amounts = (int(row["cpu_milli"]), int(row["memory_mib"]) * MIB, devices * DEVICE)
        resources = {it: n for it, n in zip((VCORE, MEMORY, GPU), amounts, strict=True) if n}
        yield Node(id=row["sn"], resources=resources, model=row["model"] or "", devices=devices)


def _of_yaml(text: str) -> Iterator[Node]:
    document: Any = yaml.safe_load(text)
    for item in document or ():
        if not isinstance(item, dict) or not item.keys() <= _NODE_KEYS:
            raise ValueError(f"a node has {', '.join(sorted(_NODE_KEYS))}")
        # Amounts as people write them, with whole devices, or plain ones in base units.
        resources = item.get("base") or _amounts(item["resources"])
        devices = int(item.get("devices", resources.get(GPU, 0) // DEVICE))
        model = str(item.get("model", ""))
        until = item.get("until_s")
        node = Node(
            id=str(item["id"]), resources=resources, model=model, devices=devices,
            from_s=float(item.get("from_s", 0)), until_s=None if until is None else float(until),
            drained=bool(item.get("drained", False)),
        )  # fmt: skip
        if "count" not in item:
            yield node
        for number in _numbers(int(item.get("count", 0))):
            yield replace(node, id=f"{node.id}-{number}")


def _amounts(written: dict[str, Any]) -> dict[str, int]:
    amounts = si.Resource.parse(written).amounts()
    return amounts | ({GPU: amounts[GPU] * DEVICE} if GPU in amounts else {})


class Capacity:
    """What fits on nodes that are empty, at the moment when most does."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        changes: list[tuple[float, int, _NodeRoom]] = []
        kinds: set[str] = set()
        for node in nodes:
            _check_amounts(node)
            room = _NodeRoom(node.id, tuple(sorted(node.resources.items())), node.model)
            changes.append((node.from_s, 1, room))
            if node.until_s is not None:
                changes.append((node.until_s, -1, room))
            kinds.update(name for name, amount in node.resources.items() if amount)
        # At one moment what leaves goes before what comes: a node that changes is one.
        self._changes = [(sign, room) for _, sign, room in sorted(changes, key=itemgetter(0, 1))]
        self.total = {name: self._most(partial(_amount, name)) for name in sorted(kinds)}
        """Of each resource the most that there is at once."""
        if not self.total:
            raise WorkloadError("the nodes have nothing on which a job could run: name resources")
        self._fitting: dict[tuple[tuple[tuple[str, int], ...], tuple[str, ...], str], int] = {}

    def _most(self, of: Callable[["_NodeRoom"], int]) -> int:
        """Return the largest sum over the nodes that are there at one time."""
        return max(accumulate(sign * of(room) for sign, room in self._changes))

    @property
    def main(self) -> str:
        """The resource in which the size of a job is counted: the scarcest kind that there is."""
        return GPU if GPU in self.total else VCORE if VCORE in self.total else min(self.total)

    def fits(self, job: Job) -> bool:
        """Whether all tasks of a job have room at once."""
        key = (tuple(sorted(job.size.items())), job.models, job.node)
        if key not in self._fitting:
            tasks_on = cache(partial(_tasks_on, size=key[0]))

            def tasks(room: _NodeRoom) -> int:
                will_do = room.id == job.node or not job.node
                will_do = will_do and (not job.models or room.model in job.models)
                return tasks_on(room.resources) if will_do else 0

            self._fitting[key] = self._most(tasks)
        return job.tasks <= self._fitting[key]


class _NodeRoom(NamedTuple):
    """Of a node what matters to the size of a job."""

    id: str
    resources: tuple[tuple[str, int], ...]
    model: str


def _check_amounts(node: Node) -> None:
    if node.devices < 0:
        raise WorkloadError(f"node {node.id}: devices {node.devices}: write 0 or more")
    for name, amount in node.resources.items():
        if not isinstance(amount, int) or not 0 <= amount <= COUNT_MAX:
            raise WorkloadError(
                f"node {node.id}: {name} {amount!r:.40}: write a whole number from 0 to "
                f"{COUNT_MAX:,} of base units"
            )


def _amount(name: str, room: _NodeRoom) -> int:
    return dict(room.resources).get(name, 0)


def _tasks_on(resources: tuple[tuple[str, int], ...], size: tuple[tuple[str, int], ...]) -> int:
    room = dict(resources)
    return min((room.get(kind, 0) // amount for kind, amount in size), default=0)


# -- the configuration


def configured(text: str, policy: str) -> str:
    """Return the configuration under which a replay runs; without a text it takes every queue.

    A policy is that of every leaf, whatever is written there.
    """
    if not policy:
        return text or _OPEN
    try:
        document: Any = yaml.safe_load(text or _OPEN)
        for _, queue in _queues(document):
            is_parent = queue.get("parent") or queue.get("queues") or queue["name"] == "root"
            place = queue.setdefault("childtemplate", {}) if is_parent else queue
            place.setdefault("properties", {})[ORDER] = policy
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise WorkloadError(f"the configuration cannot be read: {error!r:.200}") from error
    return yaml.safe_dump(document, sort_keys=False)


def guaranteed_shares(text: str, kind: str, total: int) -> dict[str, float]:
    """Return the share of a resource of the cluster that each queue is guaranteed, by full name."""
    found: dict[str, float] = {}
    for path, queue in _queues(yaml.safe_load(text or _OPEN)):
        amount = ((queue.get("resources") or {}).get("guaranteed") or {}).get(kind)
        if amount is not None and total:
            found[path] = si.Resource.parse({kind: amount}).amounts()[kind] / total
    return found


def _queues(document: Any) -> Iterator[tuple[str, dict[str, Any]]]:  # noqa: ANN401 - any YAML
    """Yield every queue that is written, with its full name; those above before those below."""
    left = [("", queue) for part in document["partitions"] for queue in part.get("queues") or ()]
    while left:
        above, queue = left.pop(0)
        path = f"{above}{queue['name']}"
        yield path, queue
        left += [(f"{path}.", below) for below in queue.get("queues") or ()]
