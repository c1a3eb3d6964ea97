"""Workloads of Batsim: one JSON document with jobs and profiles.

Of the profiles those that say how long they take are read: all that have a `delay` or a `runtime`,
and what is composed of such. JSON cannot be read line by line, so the document is in memory while
it is read.
"""

from collections.abc import Iterator
from typing import Any

from yunikorn_actors.workload.jobs import (
    CPU,
    NOT_READ,
    VCORE,
    Findings,
    Job,
    Mapping,
    Numbered,
    WorkloadError,
    json_of,
    number,
)


class Batsim:
    name = "batsim"

    def matches(self, head: str) -> bool:
        return head.lstrip().startswith("{") and ('"nb_res"' in head or '"profiles"' in head)

    def header(self, head: str) -> dict[str, str]:
        _, found, rest = head.partition('"nb_res"')
        digits = rest.lstrip(": \t").split(",", 1)[0].split("}", 1)[0].strip()
        return {"MaxProcs": digits} if found and digits.isdigit() else {}

    def jobs(self, lines: Numbered, mapping: Mapping, findings: Findings) -> Iterator[Job]:
        try:
            document = json_of(lines)
            jobs, profiles = [*document["jobs"]], dict(document["profiles"])
        except NOT_READ as error:
            raise WorkloadError(f"no workload of Batsim: {error!r:.200}") from error
        for order, item in enumerate(jobs):
            try:
                job = _job(item, profiles, order, mapping)
            except NOT_READ as error:
                # The document has no lines that mean anything: the jobs are counted from 1.
                findings.fault(order + 1, error)
                continue
            yield job


def _job(item: Any, profiles: dict[str, Any], order: int, mapping: Mapping) -> Job:  # noqa: ANN401 - any JSON
    extra = item.get("extra_data")
    extra = extra if isinstance(extra, dict) else {}
    user = str(item.get("user", extra.get("user", "")))
    return Job(
        id=str(item["id"]),
        number=order,
        submit_s=number(item["subtime"]),
        run_s=_seconds(item["profile"], profiles),
        size={VCORE: CPU},
        tasks=int(number(item["res"])),
        declared_s=max(0.0, number(item.get("walltime") or 0)),
        **mapping.names(user=user, group=user, queue=str(extra.get("queue", ""))),
    )


def _seconds(name: str, profiles: dict[str, Any]) -> float:
    profile = profiles[name]
    if "seq" in profile:
        return number(profile.get("repeat", 1)) * sum(
            _seconds(it, profiles) for it in profile["seq"]
        )
    return number(profile["delay"] if "delay" in profile else profile["runtime"])
