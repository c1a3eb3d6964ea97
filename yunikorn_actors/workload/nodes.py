"""The nodes of a replay: a number of processors, so many nodes of so many, or a file."""

import csv
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

import yaml

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
    VCORE,
    Job,
    Node,
    WorkloadError,
)

_POOL: Final = re.compile(r"([0-9]{1,9})(?:x([0-9]{1,9}))?")
NODES_MAX: Final = 1_000_000
_NODE_KEYS: Final = frozenset({"id", "count", "resources", "base", "model", "devices"})


def read_nodes(given: str | None, workload: Workload | None = None) -> list[Node]:
    """Read `N` (one node of N processors), `NxP` (N nodes of P processors) or a file.

    The file is the CSV of openb, or YAML: a list of `{id, count, resources, model}`. Without any a
    log says itself how many processors there are.
    """
    if given is None:
        processors = "" if workload is None else workload.survey.header.get("MaxProcs", "")
        if not processors.isdigit():
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
        what = f"there is no {error}" if isinstance(error, KeyError) else f"{error}"
        raise WorkloadError(f"{given}: no nodes: {what:.200}") from error
    if not 0 < len(nodes) <= NODES_MAX:
        raise WorkloadError(f"nodes {given}: write from 1 to {NODES_MAX:,} of them")
    if len({node.id for node in nodes}) < len(nodes):
        raise WorkloadError(f"{given}: two nodes of one name")
    return nodes


def _of_pool(pool: re.Match[str]) -> Iterator[Node]:
    count, each = (1, int(pool[1])) if pool[2] is None else (int(pool[1]), int(pool[2]))
    for number in range(count if each else 0):
        yield Node(id=f"n-{number}", resources={VCORE: each * CPU})


def _of_file(file: Path) -> Iterator[Node]:
    with open_text(file) as lines:
        text = lines.read()
    return _of_openb(text) if "cpu_milli" in text.split("\n", 1)[0] else _of_yaml(text)


def _of_openb(text: str) -> Iterator[Node]:
    for row in csv.DictReader(text.splitlines()):
        devices = int(row["gpu"])
        size = {
            VCORE: int(row["cpu_milli"]),
            MEMORY: int(row["memory_mib"]) * MIB,
            GPU: devices * DEVICE,
        }
        resources = {kind: amount for kind, amount in size.items() if amount}
        yield Node(id=row["sn"], resources=resources, model=row["model"] or "", devices=devices)


def _of_yaml(text: str) -> Iterator[Node]:
    document: Any = yaml.safe_load(text)
    for item in document or ():
        if not isinstance(item, dict) or not item.keys() <= _NODE_KEYS:
            raise ValueError(f"a node has {', '.join(sorted(_NODE_KEYS))}")
        count, base = int(item.get("count", 1)), item.get("base")
        # Amounts as people write them, with whole devices, or plain ones in base units.
        resources = base or _amounts(item["resources"])
        devices = int(item.get("devices", resources.get(GPU, 0) // DEVICE))
        for number in range(count):
            id_ = f"{item['id']}-{number}" if "count" in item else str(item["id"])
            yield Node(
                id=id_, resources=resources, model=str(item.get("model", "")), devices=devices
            )


def _amounts(written: dict[str, Any]) -> dict[str, int]:
    amounts = si.Resource.parse(written).amounts()
    return amounts | ({GPU: amounts[GPU] * DEVICE} if GPU in amounts else {})


class Capacity:
    """What fits on nodes that are empty."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._kinds: dict[tuple[tuple[tuple[str, int], ...], str, int], int] = {}
        self.total: dict[str, int] = {}
        for node in nodes:
            kind = (tuple(sorted(node.resources.items())), node.model, node.devices)
            self._kinds[kind] = self._kinds.get(kind, 0) + 1
            for name, amount in node.resources.items():
                if not isinstance(amount, int) or not 0 <= amount <= COUNT_MAX:
                    raise WorkloadError(
                        f"node {node.id}: {name} {amount!r:.40}: write a whole number from 0 to "
                        f"{COUNT_MAX:,} of base units"
                    )
                if amount:
                    self.total[name] = self.total.get(name, 0) + amount
        if not self.total:
            raise WorkloadError("the nodes have nothing on which a job could run: name resources")
        self._fitting: dict[tuple[tuple[tuple[str, int], ...], tuple[str, ...]], int] = {}

    @property
    def main(self) -> str:
        """The resource in which the size of a job is counted: the scarcest kind that there is."""
        return GPU if GPU in self.total else VCORE if VCORE in self.total else min(self.total)

    def fits(self, job: Job) -> bool:
        """Whether all tasks of a job have room at once."""
        key = (tuple(sorted(job.size.items())), job.models)
        if key not in self._fitting:
            self._fitting[key] = sum(
                count * _tasks_on(dict(resources), job)
                for (resources, model, _), count in self._kinds.items()
                if not job.models or model in job.models
            )
        return job.tasks <= self._fitting[key]


def _tasks_on(room: dict[str, int], job: Job) -> int:
    return min((room.get(kind, 0) // amount for kind, amount in job.size.items()), default=0)
