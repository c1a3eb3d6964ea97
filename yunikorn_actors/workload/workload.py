"""A workload: jobs in the order in which they are submitted, as often as they are asked for.

A log is read twice: once to see what it has, and once to play it. So what is in memory is what is
alive in the replay, however long the log is. Only a log whose submits are out of order is sorted in
memory.
"""

import gzip
import heapq
import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from random import Random
from typing import Final, TextIO

from msgspec.structs import replace

from yunikorn_actors.workload.formats import reader_of
from yunikorn_actors.workload.formats.reader import Reader
from yunikorn_actors.workload.jobs import Findings, Job, Mapping, Survey, WorkloadError

HEAD_CHARACTERS: Final = 16_384
SAMPLE: Final = "sample:"
"""What begins with it is a file that comes with the package."""
_GZIP: Final = b"\x1f\x8b"


class Workload:
    """Jobs, by a function that begins anew at each call."""

    def __init__(
        self, name: str, jobs: Callable[[], Iterator[Job]], survey: Survey, findings: Findings
    ) -> None:
        self.name = name
        self.survey = survey
        self.findings = findings
        self._jobs = jobs

    def jobs(self) -> Iterator[Job]:
        """Yield the jobs by submit and number."""
        return self._jobs()

    def __len__(self) -> int:
        return self.survey.jobs

    @classmethod
    def of(cls, jobs: Iterable[Job], name: str = "made") -> "Workload":
        """Make one of jobs that are in memory, in whatever order."""
        listed = sorted(jobs, key=lambda job: job.order)
        survey = _surveyed(listed, Survey(format="made"))
        return cls(name, lambda: iter(listed), survey, Findings())

    @classmethod
    def read(
        cls,
        path: str | Path,
        *,
        mapping: Mapping | None = None,
        is_strict: bool = False,
        limit: int | None = None,
        reader: Reader | None = None,
    ) -> "Workload":
        """Read a log; its format is found by its content unless a reader is given.

        With `is_strict` the first line that cannot be read raises WorkloadError.
        """
        file, mapping = Path(path), mapping or Mapping()
        with open_text(file) as lines:
            head = lines.read(HEAD_CHARACTERS)
        chosen = reader or reader_of(head, str(path))

        def jobs(findings: Findings) -> Iterator[Job]:
            with open_text(file) as lines:
                found = chosen.jobs(enumerate(lines, 1), mapping, findings)
                yield from islice(found, limit)

        findings = Findings(is_strict=is_strict)
        survey = Survey(format=chosen.name, header=chosen.header(head))
        _surveyed(jobs(findings), survey)
        if survey.is_sorted:
            return cls(str(path), lambda: jobs(Findings()), survey, findings)
        listed = sorted(jobs(Findings()), key=lambda job: job.order)
        return cls(str(path), lambda: iter(listed), survey, findings)

    def changed(self, change: Callable[[Job], Job]) -> "Workload":
        """Return the same jobs, each changed; a change must keep their order."""
        return Workload(
            self.name, lambda: map(change, self._jobs()), replace(self.survey), self.findings
        )

    def shaken(self, seconds: float, seed: int) -> "Workload":
        """Return the same jobs, each submitted up to so many seconds later, by the seed."""

        def jobs() -> Iterator[Job]:
            random = Random(f"{seed}, submits")  # noqa: S311 - a repeatable draw, no secret
            later: list[tuple[tuple[float, int], Job]] = []
            for job in self._jobs():
                while later and later[0][0][0] <= job.submit_s:
                    yield heapq.heappop(later)[1]
                moved = replace(job, submit_s=job.submit_s + random.random() * seconds)
                heapq.heappush(later, (moved.order, moved))
            while later:
                yield heapq.heappop(later)[1]

        return Workload(self.name, jobs, self.survey, self.findings)

    def scaled(self, factor: float) -> "Workload":
        """Return the same jobs with submits that many times as far apart."""
        first = self.survey.submitted_s[0]
        return self.changed(
            lambda job: replace(job, submit_s=first + (job.submit_s - first) * factor)
        )


def _surveyed(jobs: Iterable[Job], survey: Survey) -> Survey:
    first, last, before = None, 0.0, (-1.0, -1)
    for job in jobs:
        survey.jobs += 1
        first = job.submit_s if first is None else min(first, job.submit_s)
        last = max(last, job.submit_s)
        survey.is_sorted = survey.is_sorted and before <= job.order
        before = job.order
    survey.submitted_s = (first or 0.0, last)
    return survey


def _sample(name: str) -> Path:
    """Return a file of the samples that come with the package."""
    samples = Path(__file__).parent / "samples"
    known = sorted(it.name for it in samples.iterdir())
    if name not in known:
        raise WorkloadError(f"there is no sample {name!r}: there are {', '.join(known)}")
    return samples / name


@contextmanager
def open_text(file: Path) -> Iterator[TextIO]:
    """Open a log, packed or not: that is seen by its first bytes."""
    name = str(file)
    if name.startswith(SAMPLE):
        file = _sample(name.removeprefix(SAMPLE))
    try:
        raw = file.open("rb")
    except OSError as error:
        raise WorkloadError(f"{file}: {error.strerror}") from error
    with raw:
        is_packed = raw.read(2) == _GZIP
        raw.seek(0)
        data = gzip.GzipFile(fileobj=raw) if is_packed else raw
        try:
            yield io.TextIOWrapper(data, encoding="utf-8", errors="replace")
        except (EOFError, gzip.BadGzipFile) as error:
            raise WorkloadError(f"{file}: cut off or damaged: {error}") from error
