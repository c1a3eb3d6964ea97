"""The formats of logs: each has a reader, and a log is recognised by what it begins with.

A reader holds nothing, so one reads any number of logs. Give `Workload.read` one of your own for
another format.
"""

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from yunikorn_actors.workload.jobs import (
    CPU,
    DEVICE,
    GPU,
    MEMORY,
    MIB,
    NOT_READ,
    VCORE,
    Findings,
    Job,
    Mapping,
    Numbered,
    WorkloadError,
    in_words,
    json_of,
    number,
)  # fmt: skip


class Reader(Protocol):
    @property
    def name(self) -> str: ...

    def matches(self, head: str) -> bool:
        """Whether a log that begins so is of this format."""
        ...

    def header(self, head: str) -> dict[str, str]:
        """Return what the log says of itself: `MaxProcs`, `UnixStartTime`."""
        ...

    def jobs(self, lines: Numbered, mapping: Mapping, findings: Findings) -> Iterator[Job]:
        """Yield the jobs in the order of the log, and put into `findings` what is wrong."""
        ...


def _readable(
    items: Iterable[tuple[int, Any]], read: Callable[[Any, int], Job], findings: Findings
) -> Iterator[Job]:
    """Yield the jobs of numbered items; name those that cannot be read by their number."""
    for at, item in items:
        try:
            job = read(item, at)
        except (*NOT_READ, csv.Error) as error:
            findings.fault(at, error)
        else:
            yield job


# -- workloads as this package writes them: a line of JSON for each job, after one that says so

_HEAD: Final = '{"workload": 1}'
_job_of_json = msgspec.json.Decoder(Job)


class Own:
    name = "jobs"

    def matches(self, head: str) -> bool:
        return head.split("\n", 1)[0].replace(" ", "").strip() == _HEAD.replace(" ", "")

    def header(self, _: str) -> dict[str, str]:
        return {}

    def jobs(self, lines: Numbered, _: Mapping, findings: Findings) -> Iterator[Job]:
        """The names stand as they are: they are those of a scheduler already."""
        written = ((at, line) for at, line in lines if at > 1 and line.strip())
        return _readable(written, lambda line, _: _job_of_json.decode(line), findings)


def write_jobs(jobs: Iterable[Job], file: Path) -> None:
    with file.open("wb") as out:
        out.write(f"{_HEAD}\n".encode())
        out.writelines(msgspec.json.encode(job) + b"\n" for job in jobs)


# -- Batsim: one JSON document with jobs and profiles


class Batsim:
    """Profiles that say how long they take are read: a `delay`, a `runtime`, or a `seq` of such.

    JSON cannot be read line by line, so the document is in memory while it is read.
    """

    name = "batsim"

    def matches(self, head: str) -> bool:
        # With sorted keys a long list of jobs stands before both of the others.
        keys = ("nb_res", "profiles", "subtime")
        return head.lstrip().startswith("{") and any(f'"{it}"' in head for it in keys)

    def header(self, head: str) -> dict[str, str]:
        _, found, rest = head.partition('"nb_res"')
        digits = rest.lstrip(": \t").split(",", 1)[0].split("}", 1)[0].strip()
        return {"MaxProcs": digits} if found and digits.isdigit() else {}

    def jobs(self, lines: Numbered, mapping: Mapping, findings: Findings) -> Iterator[Job]:
        try:
            document = json_of(lines)
            jobs, profiles = [*document["jobs"]], dict(document["profiles"])
        except NOT_READ as error:
            raise WorkloadError(f"no workload of Batsim: {in_words(error):.200}") from error
        known: dict[str, float] = {}
        # The document has no lines that mean anything: the jobs are counted from 1.
        return _readable(
            enumerate(jobs, 1), lambda it, at: _job_of_batsim(it, at, profiles, known, mapping),
            findings,
        )  # fmt: skip


def _job_of_batsim(
    item: Any, at: int, profiles: dict[str, Any], known: dict[str, float], mapping: Mapping  # noqa: ANN401 - any JSON
) -> Job:  # fmt: skip
    item = msgspec.convert(item, dict[str, Any])
    extra = item.get("extra_data")
    extra = extra if isinstance(extra, dict) else {}
    user = str(item.get("user", extra.get("user", "")))
    return Job(
        id=str(item["id"]), number=at - 1, submit_s=number(item["subtime"]),
        run_s=_seconds(item["profile"], profiles, known),
        size={VCORE: CPU}, tasks=int(number(item["res"])),
        declared_s=max(0.0, number(item.get("walltime") or 0)),
        **mapping.names(user=user, group=user, queue=str(extra.get("queue", ""))),
    )  # fmt: skip


def _seconds(
    name: str, profiles: dict[str, Any], known: dict[str, float], within: tuple[str, ...] = ()
) -> float:
    """Return how long a profile takes: each is added up once, however often it is a part."""
    if name in within:
        raise ValueError(f"the profile {name!r:.40} is a part of itself")
    if name not in known:
        profile = msgspec.convert(profiles[name], dict[str, Any])
        if "seq" in profile:
            parts = (_seconds(it, profiles, known, (*within, name)) for it in profile["seq"])
            known[name] = number(profile.get("repeat", 1)) * sum(parts)
        elif time := profile.keys() & {"delay", "runtime"}:
            known[name] = number(profile[min(time)])
        else:
            kind = profile.get("type")
            raise ValueError(f"the profile {name!r:.40} of type {kind!r:.40} says no time")
    return known[name]


# -- openb: the pods of the GPU cluster of Alibaba (2023), a CSV with a header


class Openb:
    """A pod without a deletion has no run time; a whole GPU is a thousand of `gpu_milli`."""

    name = "openb"

    def matches(self, head: str) -> bool:
        return {*_cells(head.split("\n", 1)[0])} >= {"cpu_milli", "creation_time"}

    def header(self, _: str) -> dict[str, str]:
        return {}

    def jobs(self, lines: Numbered, mapping: Mapping, findings: Findings) -> Iterator[Job]:
        columns = _cells(next(lines)[1])

        def pod(line: str, at: int) -> Job:
            return _job_of_pod(dict(zip(columns, _cells(line), strict=False)), at, mapping)

        return _readable(((at, line) for at, line in lines if line.strip()), pod, findings)


def _cells(line: str) -> list[str]:
    """Read a line by itself: a quote that is not closed damages no other."""
    return [cell.strip() for cells in csv.reader([line.rstrip("\r\n")]) for cell in cells]


def _job_of_pod(row: dict[str, str], at: int, mapping: Mapping) -> Job:
    created, deleted = number(row["creation_time"]), row.get("deletion_time")
    scheduled = row.get("scheduled_time")
    began = number(scheduled) if scheduled else None
    gpus = int(number(row.get("num_gpu") or 0))
    # With several devices each is taken whole, whatever share is written.
    gpu = int(number(row.get("gpu_milli") or DEVICE)) if gpus == 1 else gpus * DEVICE
    memory = int(number(row.get("memory_mib") or 0)) * MIB
    size = {VCORE: int(number(row["cpu_milli"])), MEMORY: memory, GPU: gpu}
    name, qos = row.get("name") or f"line-{at}", (row.get("qos") or "none").lower()
    return Job(
        id=name, number=at, submit_s=created,
        # One that was never scheduled would have had the life that was left to it.
        run_s=number(deleted) - (created if began is None else began) if deleted else 0.0,
        size={kind: amount for kind, amount in size.items() if amount},
        models=tuple(it for it in (row.get("gpu_spec") or "").split("|") if it),
        waited_s=None if began is None else began - created,
        **mapping.names(name=name, user=qos, group=qos, queue=qos),
    )  # fmt: skip


# -- SWF: the Standard Workload Format of the Parallel Workloads Archive, version 2.2

_FIELDS: Final = 18
_STATUS: Final = 10
_PARTIAL: Final = frozenset({"2", "3", "4"})
"""A part that was continued, the last one of a job that succeeded, and that of one that failed."""
PART: Final = "part of a job that is counted whole"
_WHOLE: Final = re.compile(r"(?:-?[0-9]{1,15}(?:\.[0-9]+)?(?:\s+|$))+", re.ASCII).fullmatch
_KIB: Final = 1_024


class Swf:
    """Comments begin with `;`, a line has 18 numbers, and -1 is unknown.

    Real logs have floats in any field, blank lines, no header, submits that are out of order, and
    jobs without requested processors.
    """

    name = "swf"

    def matches(self, head: str) -> bool:
        data = [it for line in head.splitlines() if (it := line.strip()) and it[0] != ";"]
        # The first lines of a log may be damaged as any other.
        return any(map(_is_job, data)) if data else bool(head.strip())

    def header(self, head: str) -> dict[str, str]:
        """A key that is repeated, as `Queue` is, keeps its first value."""
        found: dict[str, str] = {}
        for line in head.splitlines():
            key, colon, value = line.lstrip().lstrip(";").partition(":")
            if colon and value.strip() and line.lstrip()[0] == ";":
                found.setdefault(key.strip(), value.strip())
        return found

    def jobs(self, lines: Numbered, mapping: Mapping, findings: Findings) -> Iterator[Job]:
        data = ((at, it) for at, line in lines if (it := line.strip()) and it[0] != ";")
        whole = _without_parts(data, findings)
        return _readable(whole, lambda text, _: _job_of_swf(text, mapping), findings)


def _without_parts(data: Numbered, findings: Findings) -> Numbered:
    """Leave out the parts of a job that was interrupted: the line before them is all of it."""
    id_ = ""
    for at, text in data:
        words = text.split(maxsplit=_STATUS + 1)
        if words[0] == id_ and len(words) > _STATUS and words[_STATUS] in _PARTIAL:
            findings.leave_out(PART)
        else:
            id_ = words[0]
            yield at, text


def _numbers(text: str) -> list[float]:
    words = text.split()
    if len(words) < _FIELDS:
        raise ValueError(f"{len(words)} fields, and there should be {_FIELDS}")
    if not _WHOLE(text):
        return [number(word) for word in words[:_FIELDS]]
    # Nearly every line: as `number` reads each, in a quarter of the time.
    return [*map(float, words[:_FIELDS])]


def _is_job(text: str) -> bool:
    with suppress(ValueError):
        return bool(_numbers(text))
    return False


def _job_of_swf(text: str, mapping: Mapping) -> Job:
    values = _numbers(text)
    id_, submit, waited, run, allocated, _, used, wanted, declared, asked_memory = values[:10]
    user, group, executable, queue, partition = (int(it) for it in values[11:16])
    memory = {"requested": asked_memory, "used": used}.get(mapping.memory, 0.0)
    return Job(
        id=str(int(id_)), number=int(id_), submit_s=submit, run_s=run,
        size={VCORE: CPU} | ({MEMORY: int(memory * _KIB)} if memory > 0 else {}),
        tasks=int(wanted if wanted > 0 else allocated),
        declared_s=max(0.0, declared), waited_s=waited if waited >= 0 else None,
        **mapping.names(
            user=f"u{user}", group=f"g{group}", queue=f"q{queue}",
            partition=f"p{partition}", executable=f"e{executable}",
        ),
    )  # fmt: skip


# -- which one

READERS: Final[tuple[Reader, ...]] = (Own(), Batsim(), Openb(), Swf())
_OTHERS: Final = {
    "a recording: `workload from-trace` makes a workload of it": ("record", "header", "topology"),
    "a dump of YuniKorn: `workload from-yunikorn` makes a workload of it": (
        '"timestamp"',
        '"partitions"',
    ),
    "events of YuniKorn: `workload from-yunikorn` makes a workload of them": ('"timestampNano"',),
}


def reader_of(head: str, name: str) -> Reader:
    """Return the reader of a log that begins so."""
    for reader in READERS:
        if reader.matches(head):
            return reader
    known = ", ".join(reader.name for reader in READERS)
    if not head.strip():
        raise WorkloadError(f"{name}: empty, and so of no format: {known}")
    for what, words in _OTHERS.items():
        if all(word in head for word in words):
            raise WorkloadError(f"{name}: {what}")
    begin = head.strip().splitlines()[0]
    raise WorkloadError(
        f"{name}: of no format that is known here: {known}; it begins with {begin!r:.60}; "
        "write one of these, or read it in Python with a reader of your own"
    )
