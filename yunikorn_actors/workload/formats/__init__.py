"""The formats of logs: each has a reader, and a log is recognised by what it begins with."""

from typing import Final

from yunikorn_actors.workload.formats.batsim import Batsim
from yunikorn_actors.workload.formats.openb import Openb
from yunikorn_actors.workload.formats.own import Own
from yunikorn_actors.workload.formats.reader import Reader
from yunikorn_actors.workload.formats.swf import Swf
from yunikorn_actors.workload.jobs import WorkloadError

READERS: Final[tuple[Reader, ...]] = (Own(), Batsim(), Openb(), Swf())


def reader_of(head: str, name: str) -> Reader:
    """Return the reader of a log that begins so."""
    for reader in READERS:
        if reader.matches(head):
            return reader
    known = ", ".join(reader.name for reader in READERS)
    what = "of no format that is known here" if head.strip() else "empty, and so of no format"
    raise WorkloadError(f"{name}: {what}: {known}")
