"""A workload: jobs in the order in which they are submitted, as often as they are asked for.

A log is read twice: once to see what it has, and once to play it. So what is in memory is what is
alive in the replay, however long the log is. Only a log whose submits are out of order is sorted in
memory.
"""

import gzip
import heapq
import io
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from math import exp
from pathlib import Path
from random import Random
from typing import Any, Final, TextIO

from msgspec.structs import replace

from yunikorn_actors.workload.jobs import (
    Findings,
    Job,
    Mapping,
    Survey,
    WorkloadError,
    check_number,
)
from yunikorn_actors.workload.log_formats import Reader, reader_of

HEAD_CHARACTERS: Final = 1 << 18
"""Comments of a log may be long before they say how many processors there are."""
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
        survey = Survey(format="made").take(iter(listed))
        return cls(name, lambda: iter(listed), survey, Findings())

    @classmethod
    def read(
        cls,
        path: str | Path,
        *,
        mapping: Mapping | None = None,
        is_strict: bool = False,
        limit: int | None = None,
        stays: bool = False,
        reader: Reader | None = None,
    ) -> "Workload":
        """Read a log; its format is found by its content unless a reader is given.

        With `is_strict` the first line that cannot be read raises WorkloadError. If everything
        `stays`, jobs without a run time are taken as well.
        """
        check_number("limit", limit or 0)
        file, mapping = Path(path), mapping or Mapping()
        with open_text(file) as lines:
            head = lines.read(HEAD_CHARACTERS)
        chosen = reader or reader_of(head, str(path))

        def usable(findings: Findings) -> Iterator[Job]:
            with open_text(file) as lines:
                for job in chosen.jobs(enumerate(lines, 1), mapping, findings):
                    if why := job.unusable(stays=stays):
                        findings.leave_out(why)
                    else:
                        yield job

        def jobs(findings: Findings | None = None) -> Iterator[Job]:
            return islice(usable(findings or Findings()), limit)

        findings = Findings(is_strict=is_strict, log=str(path))
        survey = Survey(format=chosen.name, header=chosen.header(head)).take(jobs(findings))
        if survey.is_sorted:
            return cls(str(path), jobs, survey, findings)
        listed = sorted(jobs(), key=lambda job: job.order)
        return cls(str(path), lambda: iter(listed), survey, findings)

    def changed(self, change: Callable[[Job], Job]) -> "Workload":
        """Return the same jobs, each changed; a change must keep their order."""
        return Workload(
            self.name, lambda: map(change, self._jobs()), replace(self.survey), self.findings
        )

    def shaken(self, seconds: float, seed: int, runs: float = 0.0) -> "Workload":
        """Return the same jobs, each submitted up to so many seconds later, by the seed.

        Run times become longer or shorter: `runs` is the deviation of their logarithm.
        """

        def jobs() -> Iterator[Job]:
            random = Random(f"{seed}, submits")  # noqa: S311 - a repeatable draw, no secret
            later: list[tuple[tuple[float, int], int, Job]] = []
            for place, job in enumerate(self._jobs()):
                while later and later[0][0][0] <= job.submit_s:
                    yield heapq.heappop(later)[2]
                moved = replace(
                    job, submit_s=job.submit_s + random.random() * seconds,
                    run_s=job.run_s * exp(random.gauss(0, runs)) if runs else job.run_s,
                )  # fmt: skip
                heapq.heappush(later, (moved.order, place, moved))
            while later:
                yield heapq.heappop(later)[2]

        return Workload(self.name, jobs, self.survey, self.findings)

    def scaled(self, factor: float) -> "Workload":
        """Return the same jobs with submits that many times as far apart."""
        first = self.survey.submitted_s[0]
        return self.changed(
            lambda job: replace(job, submit_s=first + (job.submit_s - first) * factor)
        )


def _sample(name: str) -> Path:
    """Return a file of the samples that come with the package."""
    samples = Path(__file__).parent / "samples"
    known = sorted(it.name for it in samples.iterdir())
    if name not in known:
        raise WorkloadError(f"there is no sample {name!r}: there are {', '.join(known)}")
    return samples / name


@contextmanager
def open_text(file: Path) -> Iterator[TextIO]:
    """Open a log, packed or not, once or again: that is seen by its first bytes."""
    name = str(file)
    if name.startswith(SAMPLE):
        file = _sample(name.removeprefix(SAMPLE))
    try:
        with file.open("rb") as raw:
            # A pipe cannot be read again, so no more than its first bytes are looked at.
            data: Any = raw
            while data.peek(2)[:2] == _GZIP:
                data = io.BufferedReader(gzip.GzipFile(fileobj=data, mode="rb"))
            yield io.TextIOWrapper(data, encoding="utf-8-sig", errors="replace")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise WorkloadError(f"{file}: cut off or damaged: {error}") from error
    except OSError as error:
        raise WorkloadError(f"{file}: {error.strerror}") from error
