"""A state from the folder of a journal; a core may be writing there."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from yunikorn_actors.errors import JournalError
from yunikorn_actors.journal.file_sequence import row_of
from yunikorn_actors.journal.folder import Folder
from yunikorn_actors.journal.headers import ENTRIES, SNAPSHOT
from yunikorn_actors.journal.restore import policies_of, read
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.what_if.core_state import BEGUN_ANEW, CoreState

LACKS = (
    "settings: those of this command are taken",
    BEGUN_ANEW,
    "the times of snapshots: where nothing was written after one, it is that of the last event",
)


def state_from_journal(
    path: str | Path,
    *,
    topology: TopologyName = "proposing",
    settings: Settings | None = None,
) -> CoreState:
    """Return the state that a core would begin with; the folder stays as it is."""
    folder = Folder(path)
    if not folder.path.is_dir():
        raise JournalError(f"{folder.path}: there is no such folder: name that of a journal")
    if not folder.numbers(SNAPSHOT, ENTRIES):
        raise JournalError(f"{folder.path}: there is no journal in it: name the folder of one")
    row = row_of(folder)
    truth = read(folder, row).truth
    state = truth.as_message()
    return CoreState(
        registered=state.registered,
        images=state.images,
        at_ns=truth.at_ns or max(_times(state.images), default=0),
        topology=topology,
        settings=settings or Settings(),
        policies=policies_of(row, truth),
        lacks=LACKS,
    )


def _times(value: Any) -> Iterator[int]:  # noqa: ANN401 - a part of an image
    """Yield the times at which something had happened."""
    if isinstance(value, Mapping):
        for name, below in value.items():
            if name in {"submitted_ns", "allocated_ns", "created_ns"} and below:
                yield below
            else:
                yield from _times(below)
    elif isinstance(value, list):
        for below in value:
            yield from _times(below)
