"""The pods of the GPU cluster of Alibaba (openb, 2023): a CSV with a header.

A pod without a deletion is left out unless nothing ends in the replay. A share of a GPU is in
thousandths, a whole GPU is a thousand; `gpu_spec` names the models that will do.
"""

import csv
from collections.abc import Iterator

from yunikorn_actors.workload.jobs import (
    GPU,
    MEMORY,
    VCORE,
    Findings,
    Job,
    Mapping,
    Numbered,
    number,
)

MIB = 1 << 20
DEVICE = 1_000


class Openb:
    name = "openb"

    def matches(self, head: str) -> bool:
        first = head.split("\n", 1)[0]
        return "cpu_milli" in first and "creation_time" in first

    def header(self, head: str) -> dict[str, str]:  # noqa: ARG002 - a CSV says nothing of itself
        return {}

    def jobs(self, lines: Numbered, mapping: Mapping, findings: Findings) -> Iterator[Job]:
        at = 0

        def text() -> Iterator[str]:
            nonlocal at
            for at, line in lines:  # noqa: B007 - the number of the line that is being read
                yield line

        for order, row in enumerate(csv.DictReader(text())):
            try:
                job = self._job(row, order, mapping)
            except (ValueError, TypeError, KeyError) as error:
                findings.fault(at, f"{type(error).__name__}: {error}"[:100])
                continue
            if job.run_s <= 0:
                findings.leave_out("no run time")
            else:
                yield job

    def _job(self, row: dict[str, str], order: int, mapping: Mapping) -> Job:
        created, deleted = number(row["creation_time"]), row["deletion_time"]
        scheduled = row["scheduled_time"]
        began = number(scheduled) if scheduled else None
        gpus = int(number(row["num_gpu"]))
        # With several devices each is taken whole, whatever share is written.
        gpu = int(number(row["gpu_milli"])) if gpus == 1 else gpus * DEVICE
        size = {
            VCORE: int(number(row["cpu_milli"])),
            MEMORY: int(number(row["memory_mib"])) * MIB,
            GPU: gpu,
        }
        qos = row["qos"] or "none"
        names = mapping.names(
            name=row["name"], user=qos.lower(), group=qos.lower(), queue=qos.lower()
        )
        return Job(
            id=row["name"],
            number=order,
            submit_s=created,
            # One that was never scheduled would have had the life that was left to it.
            run_s=number(deleted) - (created if began is None else began) if deleted else 0.0,
            size={kind: amount for kind, amount in size.items() if amount},
            models=tuple(it for it in row["gpu_spec"].split("|") if it),
            waited_s=None if began is None else began - created,
            **names,
        )
