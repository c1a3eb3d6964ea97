"""The Standard Workload Format of the Parallel Workloads Archive, version 2.2.

Comments begin with `;`, a line has 18 numbers, and -1 is unknown. Real logs have floats in any
field, blank lines, no header, submits that are out of order, and jobs without requested processors.
"""

from collections.abc import Iterator

from yunikorn_actors.workload.jobs import (
    CPU,
    MEMORY,
    VCORE,
    Findings,
    Job,
    Mapping,
    Numbered,
    number,
)

COLUMNS = 18
KIB = 1_024


class Swf:
    name = "swf"

    def matches(self, head: str) -> bool:
        lines = [line.strip() for line in head.splitlines() if line.strip()]
        data = [line for line in lines if not line.startswith(";")]
        # The first lines of a log may be damaged as any other.
        return any(map(_is_job, data)) if data else bool(lines)

    def header(self, head: str) -> dict[str, str]:
        """A key that is repeated, as `Queue` is, keeps its first value."""
        found: dict[str, str] = {}
        for line in head.splitlines():
            text = line.lstrip()
            if text.startswith(";"):
                key, colon, value = text.lstrip(";").partition(":")
                if colon and value.strip():
                    found.setdefault(key.strip(), value.strip())
        return found

    def jobs(self, lines: Numbered, mapping: Mapping, findings: Findings) -> Iterator[Job]:
        for at, line in lines:
            text = line.strip()
            if text and not text.startswith(";"):
                try:
                    job = _job(text, mapping)
                except ValueError as error:
                    findings.fault(at, error)
                else:
                    yield job


def _numbers(text: str) -> list[float]:
    words = text.split()
    if len(words) < COLUMNS:
        raise ValueError(f"{len(words)} fields, and there should be {COLUMNS}")
    return [number(word) for word in words[:COLUMNS]]


def _is_job(text: str) -> bool:
    try:
        return bool(_numbers(text))
    except ValueError:
        return False


def _job(text: str, mapping: Mapping) -> Job:
    values = _numbers(text)
    id_, submit, waited, run, allocated, _, used, wanted, declared, asked_memory = values[:10]
    user, group, executable, queue, partition = (int(it) for it in values[11:16])
    size = {VCORE: CPU}
    memory = {"requested": asked_memory, "used": used}.get(mapping.memory, 0.0)
    if memory > 0:
        size[MEMORY] = int(memory * KIB)
    return Job(
        id=str(int(id_)),
        number=int(id_),
        submit_s=submit,
        run_s=run,
        size=size,
        tasks=int(wanted if wanted > 0 else allocated),
        declared_s=max(0.0, declared),
        waited_s=waited if waited >= 0 else None,
        **mapping.names(
            user=f"u{user}", group=f"g{group}", queue=f"q{queue}",
            partition=f"p{partition}", executable=f"e{executable}",
        ),
    )  # fmt: skip
