"""What a reader of a format is: give `Workload.read` one of your own for another format."""

from collections.abc import Iterator
from typing import Protocol

from yunikorn_actors.workload.jobs import Findings, Job, Mapping, Numbered


class Reader(Protocol):
    """Reads one format. It holds nothing, so one reader reads any number of logs."""

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
