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
        lines = [line for line in head.splitlines() if line.strip()]
        data = [line for line in lines if not line.lstrip().startswith(";")]
        if not data:
            return bool(lines)
        words = data[0].split()
        return len(words) >= COLUMNS and all(map(_is_number, words[:COLUMNS]))

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
            if not text or text.startswith(";"):
                continue
            words = text.split()
            if len(words) < COLUMNS:
                findings.fault(at, f"{len(words)} fields, and there should be {COLUMNS}")
                continue
            try:
                values = [number(word) for word in words[:COLUMNS]]
            except ValueError:
                wrong = next(word for word in words if not _is_number(word))
                findings.fault(at, f"{wrong!r:.40} is no number")
                continue
            job = self._job(values, mapping, findings)
            if job is not None:
                yield job

    def _job(self, values: list[float], mapping: Mapping, findings: Findings) -> Job | None:
        id_, submit, waited, run, allocated, _, used, wanted, declared, asked_memory = values[:10]
        user, group, executable, queue, partition = (int(it) for it in values[11:16])
        processors = int(wanted if wanted > 0 else allocated)
        if run <= 0 or processors <= 0 or submit < 0:
            findings.leave_out(
                "no run time" if run <= 0 else "no processors" if processors <= 0 else "no submit"
            )
            return None
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
            tasks=processors,
            declared_s=max(0.0, declared),
            waited_s=waited if waited >= 0 else None,
            **mapping.names(
                user=f"u{user}",
                group=f"g{group}",
                queue=f"q{queue}",
                partition=f"p{partition}",
                executable=f"e{executable}",
            ),
        )


def _is_number(word: str) -> bool:
    try:
        number(word)
    except ValueError:
        return False
    return True
