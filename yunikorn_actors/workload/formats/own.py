"""Workloads as this package writes them: a line of JSON for each job, after a line that says so."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from yunikorn_actors.workload.jobs import NOT_READ, Findings, Job, Mapping, Numbered

_HEAD = '{"workload": 1}'
_jobs = msgspec.json.Decoder(Job)


class Own:
    name = "jobs"

    def matches(self, head: str) -> bool:
        return head.startswith(_HEAD)

    def header(self, _: str) -> dict[str, str]:
        return {}

    def jobs(self, lines: Numbered, _: Mapping, findings: Findings) -> Iterator[Job]:
        """The names stand as they are: they are those of a scheduler already."""
        for at, line in lines:
            if at > 1 and line.strip():
                try:
                    job = _jobs.decode(line)
                except NOT_READ as error:
                    findings.fault(at, error)
                else:
                    yield job


def write_jobs(jobs: Iterable[Job], file: Path) -> None:
    with file.open("wb") as out:
        out.write(f"{_HEAD}\n".encode())
        out.writelines(msgspec.json.encode(job) + b"\n" for job in jobs)
