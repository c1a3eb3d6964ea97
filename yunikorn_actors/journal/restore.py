"""Reading a journal: the state that its files make; what does not follow is refused.

Checksums find bytes that changed. That each record names the one before it finds records that were
removed, doubled or moved. Only what passes both is applied, so a replay that then goes wrong is the
fault of the version and not of the disk.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from yunikorn_actors.errors import JournalError
from yunikorn_actors.journal.file_sequence import ANEW, RESTORE, Link, Row, refused
from yunikorn_actors.journal.folder import Folder
from yunikorn_actors.journal.frames import Damaged, Frame, frames_in
from yunikorn_actors.journal.headers import (
    EARLY,
    ENTRIES,
    SNAPSHOT,
    EndOfFile,
    Header,
    bytes_of,
    decoded,
    first_header,
)
from yunikorn_actors.journal.restored_state import (
    OutOfRow,
    StoredEntry,
    Truth,
    WrongReplay,
    follows,
    stored_entry,
)
from yunikorn_actors.messages.restart import CoreRestored
from yunikorn_actors.policies.folds import digests_in_use
from yunikorn_actors.recording.logs import logger
from yunikorn_actors.values.garbage import without_collections
from yunikorn_actors.version import VERSION

_PARTS_OF_A_SNAPSHOT: Final = 2
"""The header, and the state."""


class Reading(NamedTuple):
    """What a row makes."""

    truth: Truth
    place: EndOfFile | None
    """Where the next file goes on; None if there was nothing."""


def read(folder: Folder, row: Row) -> Reading:
    """Make the state, and find where the next file goes on."""
    # A large state is millions of objects that live: collecting in between takes a third of the
    # time.
    with without_collections():
        return _read(folder, row)


def policies_of(row: Row, truth: Truth) -> dict[str, str]:
    """Return the digests of the policies that decided in the last core and stand in its state."""
    last = first_header(row.links[-1].path) if row.links else None
    return {} if last is None else digests_in_use(last.policies, truth.states.values())


def _read(folder: Folder, row: Row) -> Reading:
    truth = Truth()
    place: EndOfFile | None = None
    if row.snapshot:
        truth = _restored(folder, row.snapshot)
        # A snapshot carries the place where the files behind it go on.
        place = _end_of(folder.file(SNAPSHOT, row.snapshot), row.snapshot)
    for link in row.links:
        place = _Replay(folder, link, truth).place()
    return Reading(truth, place)


# -- a snapshot


def _end_of(file: Path, number: int) -> EndOfFile:
    """Find the place behind which the next file goes on if none is left but the snapshot."""
    header = first_header(file)
    if header is None or header.after is None:
        return EndOfFile(number=number, bytes=0)
    return header.after


class BadSnapshot(Exception):
    """A snapshot does not make the state that it was written from."""

    def __init__(self, what: str, remedy: str = RESTORE) -> None:
        super().__init__(what)
        self.remedy = remedy


def begun_with(file: Path) -> Truth:
    """Make the state that a snapshot is of."""
    data = bytes_of(file)
    try:
        first, state = _parts_of(data)
        header = decoded(file, first)
    except Damaged as damaged:
        raise BadSnapshot(str(damaged)) from damaged
    truth = Truth()
    try:
        truth.begin_with(msgspec.msgpack.decode(state.payload, type=CoreRestored))
    except Exception as error:
        # Whatever it is: another version may have states of other kinds.
        raise BadSnapshot(
            f"cannot be restored from byte {state.place} on ({error!r})", _fault_of(header)
        ) from error
    # The digest is over the whole state: what decodes may still be another state.
    if truth.digest() != header.state:
        raise BadSnapshot(
            f"does not make the state that it was written from (byte {state.place})",
            _fault_of(header),
        )
    return truth


def _parts_of(data: bytes) -> list[Frame]:
    # Up to the end: a snapshot is never torn, as it gets its name when it is on the disk.
    frames = [*frames_in(data, len(data))]
    if len(frames) != _PARTS_OF_A_SNAPSHOT:
        place = frames[1].end if len(frames) > _PARTS_OF_A_SNAPSHOT else len(data)
        raise Damaged(place, len(data))
    return frames


def _fault_of(header: Header) -> str:
    """Give the remedy where checksums hold, and what was written is not what it leads to."""
    version = header.package.get("version", "")
    if version != VERSION:
        return f"start the version {version} that wrote it"
    return "this version wrote it, so report this as a fault of it"


def _restored(folder: Folder, number: int) -> Truth:
    file = folder.file(SNAPSHOT, number)
    try:
        return begun_with(file)
    except BadSnapshot as bad:
        raise JournalError(f"{file} {bad}: {bad.remedy}; or {_without(folder, number)}") from bad


def _without(folder: Folder, number: int) -> str:
    """Say how to go on without a snapshot: by the one before it, if its files are there."""
    older = max((it for it in folder.numbers(SNAPSHOT) if it < number), default=0)
    entries = folder.numbers(ENTRIES, EARLY)
    if not older and 1 not in entries:
        return ANEW
    begins = f"{folder.file(SNAPSHOT, older)}" if older else f"{folder.file(ENTRIES, 1)}"
    return f"move it away: {begins} is then read, with all that came after it"


# -- a file with entries


class _Replay:
    """Doing again what a file tells."""

    def __init__(self, folder: Folder, link: Link, truth: Truth) -> None:
        self._folder = folder
        self._link = link
        self._truth = truth
        self._data = bytes_of(link.path)

    def place(self) -> EndOfFile:
        """Do all of it again; return where the next file goes on."""
        frames = self._frames()
        last = next(frames)
        header = decoded(self._link.path, last)
        is_ended = False
        for number, frame in enumerate(frames, 1):
            entry = self._entry(header, last, frame, number)
            try:
                self._truth.take(entry)
            except OutOfRow as wrong:
                raise self._refused(
                    f"{self._named(wrong, frame)}, entry {number}", frame
                ) from wrong
            except WrongReplay as wrong:
                # The record is sound, and leads to something else: the remedy is the version.
                raise self._wrong(header, wrong, number, frame) from wrong
            last, is_ended = frame, entry.ended
        self._compare_end(last)
        # Only the last file may have lost its end.
        if self._link.end is None:
            self._say_how_it_ends(header, last, is_ended=is_ended)
        return EndOfFile(number=self._link.number, bytes=last.end, check=last.check)

    def _frames(self) -> Iterator[Frame]:
        end = None if self._link.end is None else self._link.end.bytes
        try:
            yield from frames_in(self._data, end)
        except Damaged as damaged:
            raise refused(
                self._folder, self._link.path, self._link.number, str(damaged), damaged.place
            ) from damaged

    def _entry(self, header: Header, last: Frame, frame: Frame, number: int) -> StoredEntry:
        # First whether it stands in its place: the record of another file may be no entry at all.
        if header.is_chained and follows(frame.payload) != last.check:
            raise self._refused(f"{self._named(None, frame)}, entry {number}", frame)
        try:
            return stored_entry(frame.payload)
        except WrongReplay as wrong:
            raise self._wrong(header, wrong, number, frame) from wrong

    def _named(self, wrong: OutOfRow | None, frame: Frame) -> str:
        """Tell which: the record stands there twice, or does not follow the one before it."""
        # Which of the three it is decides what a person looks for.
        payload = bytes(frame.payload)
        for other in self._whole():
            if other.place < frame.place and bytes(other.payload) == payload:
                return (
                    f"repeats at byte {frame.place} the record of byte {other.place}: records "
                    "are repeated"
                )
        if wrong is not None:
            return f"is out of order at byte {frame.place} ({wrong}): records {wrong.how}"
        former = follows(frame.payload)
        if any(other.check == former for other in self._whole()):
            return f"is out of order at byte {frame.place}: records were moved or removed"
        return f"lacks records at byte {frame.place}: the record there follows another one"

    def _whole(self) -> Iterator[Frame]:
        try:
            yield from frames_in(self._data, None)
        except Damaged:
            return

    def _compare_end(self, last: Frame) -> None:
        end = self._link.end
        # Without a checksum, as in older versions, there is nothing to compare.
        if end is None or end.check in (None, last.check):
            return
        raise self._refused(
            f"is not the file that the next one goes on from: it differs before byte {last.end}",
            last._replace(place=last.end),
        )

    def _say_how_it_ends(self, header: Header, last: Frame, *, is_ended: bool) -> None:
        torn = len(self._data) - last.end
        if torn:
            logger.warning(
                "{}: the last record was not written whole, {} bytes are dropped from byte {} on",
                self._link.path,
                torn,
                last.end,
            )
        elif header.is_chained and not is_ended:
            # Stopped cores leave a mark; without it the end may have been cut between two records.
            logger.warning(
                "{} ends at byte {} without the mark of a core that stopped: it was killed, or "
                "what came behind is missing",
                self._link.path,
                last.end,
            )

    def _refused(self, what: str, frame: Frame, remedy: str = RESTORE) -> JournalError:
        link = self._link
        return refused(self._folder, link.path, link.number, what, frame.place, remedy)

    def _wrong(self, header: Header, wrong: WrongReplay, number: int, frame: Frame) -> JournalError:
        what = f"leads to something else at byte {frame.place}, entry {number}: {wrong}"
        return self._refused(what, frame, _fault_of(header))
