"""A state from a dump: that of `core.state_dump()`, or a full state dump of YuniKorn's REST.

A dump was made to be read; what it does not say is listed.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from yunikorn_actors.config import ConfigError
from yunikorn_actors.errors import InvalidRequest, JournalError
from yunikorn_actors.journal.file_sequence import row_of
from yunikorn_actors.journal.folder import Folder
from yunikorn_actors.journal.headers import ENTRIES, SNAPSHOT
from yunikorn_actors.journal.restore import policies_of, read
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.state.dump import DUMP_REMEDY
from yunikorn_actors.what_if.core_dump import state_of_core_dump
from yunikorn_actors.what_if.core_state import BEGUN_ANEW, CoreState
from yunikorn_actors.what_if.dump_parts import DumpPath, times_in
from yunikorn_actors.what_if.yunikorn_dump import state_of_yunikorn_dump

_OF_ROUTES: Final = {"queuename", "nodesinfo", "applicationid", "clusterid", "checksum", "healthy"}
"""Names in what other routes answer, and in no dump at the top."""


def state_from_dump(
    dump: Mapping[str, Any],
    *,
    topology: TopologyName = "proposing",
    settings: Settings | None = None,
    where: str = "dump",
) -> CoreState:
    """Return the state that a dump tells of; raise InvalidRequest where it is no such dump.

    `where` says where it comes from, such as a file.
    """
    path = DumpPath()
    try:
        # What could not be written again could not be decided by: such as a number of 80 digits.
        msgspec.msgpack.encode(dump)
        is_ours = isinstance(dump.get("partitions"), Mapping)
        read = state_of_core_dump if is_ours else state_of_yunikorn_dump
        return read(dump, path, topology=topology, settings=settings or Settings())
    except KeyError as error:
        what = f"{error.args[0]!r} is missing{_elsewhere(dump)}"
    except ConfigError as error:
        it = error.faults[0]
        # Of the text in which it was found nobody has seen a line.
        found = f"{it.path}: {it.what} ({it.remedy})"
        raise InvalidRequest(f"{where}: its configuration cannot be loaded: {found}") from None
    except (
        TypeError, AttributeError, LookupError, ValueError, OverflowError, msgspec.MsgspecError
    ) as error:  # fmt: skip
        what = f"a part has a wrong form: {error}"
    part = f"{path.name}: " if path.name else ""
    raise InvalidRequest(f"{where}: {part}{what}; {DUMP_REMEDY}")


def _elsewhere(dump: Mapping[str, Any]) -> str:
    """Say where what was given instead may come from."""
    if {it.lower() for it in dump} & _OF_ROUTES:
        return ": it looks like the answer of another route, which is a part of a state dump"
    return ""


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
        at_ns=truth.at_ns or max(times_in(state.images), default=0),
        topology=topology,
        settings=settings or Settings(),
        policies=policies_of(row, truth),
        lacks=LACKS,
    )
