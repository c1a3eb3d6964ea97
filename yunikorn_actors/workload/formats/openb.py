"""The pods of the GPU cluster of Alibaba (openb, 2023): a CSV with a header.

A pod without a deletion has no run time. A share of a GPU is in thousandths, a whole GPU is a
thousand; `gpu_spec` names the models that will do.
"""

import csv
from collections.abc import Iterator

from yunikorn_actors.workload.jobs import (
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
    number,
)

NEEDED = {"cpu_milli", "creation_time"}


class Openb:
    name = "openb"

    def matches(self, head: str) -> bool:
        return {it.strip() for it in head.split("\n", 1)[0].split(",")} >= NEEDED

    def header(self, _: str) -> dict[str, str]:
        return {}

    def jobs(self, lines: Numbered, mapping: Mapping, findings: Findings) -> Iterator[Job]:
        _, first = next(lines)
        columns = [it.strip() for it in first.split(",")]
        for at, line in lines:
            if not line.strip():
                continue
            try:
                # A line by itself: a quote that is not closed damages no other.
                (row,) = csv.reader([line.rstrip("\r\n")])
                job = _job(dict(zip(columns, row, strict=False)), at, mapping)
            except (*NOT_READ, csv.Error) as error:
                findings.fault(at, error)
                continue
            yield job


def _job(row: dict[str, str], at: int, mapping: Mapping) -> Job:
    created, deleted = number(row["creation_time"]), row.get("deletion_time")
    scheduled = row.get("scheduled_time")
    began = number(scheduled) if scheduled else None
    gpus = int(number(row.get("num_gpu") or 0))
    # With several devices each is taken whole, whatever share is written.
    gpu = int(number(row.get("gpu_milli") or DEVICE)) if gpus == 1 else gpus * DEVICE
    size = {
        VCORE: int(number(row["cpu_milli"])),
        MEMORY: int(number(row.get("memory_mib") or 0)) * MIB,
        GPU: gpu,
    }
    name, qos = row.get("name") or f"line-{at}", (row.get("qos") or "none").lower()
    return Job(
        id=name,
        number=at,
        submit_s=created,
        # One that was never scheduled would have had the life that was left to it.
        run_s=number(deleted) - (created if began is None else began) if deleted else 0.0,
        size={kind: amount for kind, amount in size.items() if amount},
        models=tuple(it for it in (row.get("gpu_spec") or "").split("|") if it),
        waited_s=None if began is None else began - created,
        **mapping.names(name=name, user=qos, group=qos, queue=qos),
    )
