"""What the journal of a core that ended has in its files, which the next core goes on with.

While the core runs its records are kept in memory. Where it ends they are written as a core writes
them: into files behind each other, by a disk that takes a part at a time, with a part of a record
behind the last one. Sometimes a power cut takes the end of a file, and so the file behind it. What
is read from there has to be what the core had.
"""

import errno
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.errors import JournalError, NoReply
from yunikorn_actors.journal import folder, writing
from yunikorn_actors.journal.compaction import fold, write_part
from yunikorn_actors.journal.file_sequence import row_of
from yunikorn_actors.journal.folder import Folder, write_all
from yunikorn_actors.journal.frames import check_of, framed
from yunikorn_actors.journal.headers import EARLY, ENTRIES, EndOfFile, header_of
from yunikorn_actors.journal.journaled_context import Entries
from yunikorn_actors.journal.restore import Reading, read
from yunikorn_actors.journal.restored_state import Entry, Truth, stored_entry
from yunikorn_actors.journal.writing import Journal
from yunikorn_actors.lab.harness import Oracle
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces.journal_check import of_core, stored
from yunikorn_actors.lab.surfaces.temporary_folder import temporary_folder
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.machine import InvariantViolation
from yunikorn_actors.messages.base import CONTEXT, Delivery
from yunikorn_actors.messages.codec import encode
from yunikorn_actors.messages.restart import CoreRestored

_PATIENCE_S: Final = 60.0
_POLL_S: Final = 0.002
_SYNC_S: Final = 0.001


class _Inline:
    """Makes a snapshot in this process, as another one makes it: that takes a while to begin."""

    is_at_work = False

    def __init__(self, folder: Folder, number: int) -> None:
        former = folder.last_snapshot
        fold(folder.path, number)
        folder.adopt(number)
        folder.drop_before(former)

    def stop(self, _: float | None) -> bool:
        """It is over."""
        return True


@contextmanager
def _short_files(*, in_process: bool) -> Iterator[None]:
    space = vars(writing)
    others: dict[str, Any] = {"ROTATE_BYTES": 1, "ROTATE_SNAPSHOTS": 0, "SYNC_S": _SYNC_S}
    if in_process:
        others["Folding"] = _Inline
    former = {name: space[name] for name in others}
    try:
        space.update(others)
        yield
    finally:
        space.update(former)


def append_rotating(path: str, entries: Sequence[Entry], *, in_process: bool) -> None:
    """Write them into several files; wait until there is a snapshot of the first of these."""
    folder, half = Folder(path), len(entries) // 2
    with _short_files(in_process=in_process):
        journal = Journal(path)
        for entry in entries[:half]:
            journal.append(entry)
        if half:
            _wait(folder, journal.number)
        for entry in entries[half:]:
            journal.append(entry)
        journal.close()


def _wait(folder: Folder, number: int) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while folder.last_snapshot <= number or folder.numbers(ENTRIES)[-1] <= number:
        if time.monotonic() > deadline:
            raise NoReply("no snapshot is made of a journal whose file is long enough")
        time.sleep(_POLL_S)


@contextmanager
def full_disk(room: int) -> Iterator[None]:
    """Take so many bytes more, a part of a record perhaps, and nothing behind them."""
    former = folder.write_all

    def write_all(descriptor: int, data: bytes) -> None:
        nonlocal room
        taken = min(room, len(data))
        former(descriptor, data[:taken])
        room -= taken
        if taken < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    assert vars(writing)["write_all"] is former
    try:
        vars(writing)["write_all"] = write_all
        yield
    finally:
        vars(writing)["write_all"] = former


_ID: Final = "drawn"
_ROTATIONS_MAX: Final = 2
_DAMAGES: Final = 2
"""So often the files are damaged, and whole again."""
_BY_JOURNAL: Final = 3
"""One end in so many is written by journals as a core has them: each takes as long as its disk."""
_BY_PROCESS: Final = 8
"""Of snapshots of files before the last one, one in so many is made by another process."""
_OF_JOURNALS: Final = 10
"""The seed of what becomes of them."""
_POWER_CUTS: Final = 3
"""One end in so many is one of the computer, not of the core alone."""


class Ended(Oracle):
    """Keeps the records of the core that runs."""

    receivers: Final = frozenset({CONTEXT})

    def __init__(self) -> None:
        self._context: Context | None = None
        self._restored: CoreRestored | None = None
        self._written: list[Entry] = []

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        if delivery.mailbox != CONTEXT or delivery is not simulator.last:
            return
        context, message = simulator.machines[CONTEXT], delivery.message
        assert isinstance(context, Context)
        if context is not self._context:
            self._context, self._entries = context, Entries(context)
            self._restored = message if isinstance(message, CoreRestored) else None
            self._written = []
        entry = self._entries.of(simulator.taken, simulator.effects, delivery.at_ns)
        if entry is not None:
            self._written.append(entry)

    def truth(self, draw: Draw, damage: "Damage | None" = None) -> CoreRestored:
        """Write all that was kept, end, and return what the next core reads.

        Afterwards the files come to harm, if `damage` is there to note what is said of that.
        """
        with temporary_folder() as name:
            if self._restored is None and draw.once_in(_BY_JOURNAL):
                return stored(self._by_journal(name, draw).as_message())
            folder = Folder(name)
            lock = folder.take()
            try:
                files = _Files(folder, draw, self._restored)
                lost = files.write(self._written)
                made = _read(folder)
                faults = [*self._differences(made.truth, lost), *files.unrefused()]
                if damage is not None:
                    damage.do(folder)
            except JournalError as error:
                faults = [f"it is refused: {error}".replace(name, "")]
            finally:
                os.close(lock)
        if faults:
            raise InvariantViolation("journal of a core that ended: " + "; ".join(faults))
        return stored(made.truth.as_message())

    def _by_journal(self, name: str, draw: Draw) -> Truth:
        """Have two journals after each other write it: the second goes on with a snapshot.

        Now and then the disk gets full on the way, or files are so short that snapshots are made of
        those before the last one.
        """
        first = draw.number(len(self._written) + 1)
        # Tapes of former versions draw on from here as they did.
        draw = Draw(_OF_JOURNALS, first)
        faults = list[str]()
        try:
            _append(name, self._written[:first])
            if draw.once_in(2):
                faults += self._until_full(name, first, draw)
                _append(name, self._written[first:])
            elif draw.once_in(2):
                in_process = not draw.once_in(_BY_PROCESS)
                append_rotating(name, self._written[first:], in_process=in_process)
            else:
                _append(name, self._written[first:])
            journal = Journal(name)
            journal.close()
            made = _read(Folder(name)).truth
            faults += self._differences(made, 0)
            if journal.restored is None and self._written:
                faults.append("a journal that was written has nothing to go on with")
        except JournalError as error:
            faults.append(f"it is refused: {error}".replace(name, ""))
        if faults:
            raise InvariantViolation("journal of a core that ended: " + "; ".join(faults))
        return made

    def _until_full(self, name: str, first: int, draw: Draw) -> Iterator[str]:
        """Go on while there is no room for a whole record: what was taken is kept, and no more."""
        journal = Journal(name)
        whole = len(framed(encode(Entry(at_ns=0))))
        try:
            with full_disk(draw.number(whole)):
                for entry in (*self._written[first:], Entry(at_ns=0))[:2]:
                    try:
                        journal.append(entry)
                    except JournalError as error:
                        if "make room on that disk" not in str(error):
                            yield f"a full disk is reported so: {error}".replace(name, "")
                    else:
                        yield "a full disk takes a record"
            try:
                journal.append(Entry(at_ns=0))
            except JournalError:
                pass
            else:
                yield "after a record that is missing another one is taken"
        finally:
            journal.close()
        yield from self._differences(_read(Folder(name)).truth, len(self._written) - first)

    def _differences(self, made: Truth, lost: int) -> Iterator[str]:
        if not lost and self._context is not None:
            yield from of_core(made, self._context)
            return
        expected = Truth()
        if self._restored is not None:
            expected.begin_with(self._restored)
        for entry in self._written[: len(self._written) - lost]:
            expected.take(stored_entry(memoryview(encode(entry))))
        if made.digest() != expected.digest():
            yield f"without the last {lost} of {len(self._written)} entries it has another state"


def _append(name: str, entries: Sequence[Entry]) -> None:
    journal = Journal(name)
    for entry in entries:
        journal.append(entry)
    journal.close()


class Damage:
    """Damages the files of a folder, one at a time, and notes what a core says that reads them."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self.outcomes: list[str] = []

    def do(self, folder: Folder) -> None:
        files = sorted(it for it in folder.path.iterdir() if it.name != "lock")
        for _ in range(_DAMAGES):
            path = self._draw.one_of(files)
            whole = path.read_bytes()
            path.unlink()
            what = self._put(path, whole, self._draw.one_of(files))
            try:
                outcome = f"{stored(_read(folder).truth.as_message())}"
            except JournalError as error:
                outcome = str(error).replace(str(folder.path), "")
            self.outcomes.append(f"{path.name} {what}: {outcome}")
            path.unlink(missing_ok=True)
            path.write_bytes(whole)

    def _put(self, path: Path, whole: bytes, other: Path) -> str:
        """Put something else there, or nothing."""
        place = self._draw.number(len(whole))
        match self._draw.number(6):
            case 0:
                return "is gone"
            case 1:
                path.write_bytes(whole[:place])
            case 2:
                path.write_bytes(whole + whole[place:])
            case 3 if other.exists():
                path.write_bytes(other.read_bytes())
            case _:
                flipped = bytes([whole[place] ^ 1 << self._draw.number(8)])
                path.write_bytes(whole[:place] + flipped + whole[place + 1 :])
        return f"is changed at byte {place}"


class _File:
    """A file with entries, as far as it was written."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.ends: list[int] = []
        """Of its records, the first of which is the header."""
        self.checks: list[int] = []
        self.last: Entry | None = None

    @property
    def place(self) -> EndOfFile:
        return EndOfFile(number=self.number, bytes=self.ends[-1], check=self.checks[-1])


class _Files:
    def __init__(self, folder: Folder, draw: Draw, restored: CoreRestored | None) -> None:
        self._folder = folder
        self._draw = draw
        self._files: list[_File] = []
        self._descriptor = -1
        self._is_cut = False
        self._begin(None)
        if restored is not None:
            begun = Truth()
            begun.begin_with(restored)
            write_part(folder, 1, _ID, Reading(begun, None))
            folder.adopt(1)
        folder.settle(1, _ID)

    def write(self, entries: list[Entry]) -> int:
        """Write all of them, and return how many a power cut took."""
        draw, count = self._draw, len(entries)
        rotations = sorted(draw.number(count + 1) for _ in range(draw.whole(0, _ROTATIONS_MAX)))
        self._is_cut = bool(rotations) and draw.once_in(_POWER_CUTS)
        first = 0
        for number, last in enumerate((*rotations, count)):
            for entry in entries[first:last]:
                self._append(entry)
            if number < len(rotations):
                self._begin(self._files[-1].place)
                if number < len(rotations) - 1 or not self._is_cut:
                    self._folder.settle(self._files[-1].number, _ID)
            first = last
        torn = framed(encode(Entry(at_ns=0)))
        os.write(self._descriptor, torn[: draw.number(len(torn))])
        os.close(self._descriptor)
        return self._cut() if self._is_cut else 0

    def _begin(self, place: EndOfFile | None) -> None:
        if self._files:
            os.close(self._descriptor)
        file = _File(len(self._files) + 1)
        self._files.append(file)
        self._descriptor = self._folder.create(EARLY, file.number)
        self._write(header_of(ENTRIES, file.number, _ID, place))

    def _append(self, entry: Entry) -> None:
        file = self._files[-1]
        file.last = replace(entry, follows=file.checks[-1])
        self._write(framed(encode(file.last)))

    def _write(self, data: bytes) -> None:
        file = self._files[-1]
        write_all(self._descriptor, data, self._write_some)
        file.ends.append((file.ends[-1] if file.ends else 0) + len(data))
        file.checks.append(check_of(data))

    def _write_some(self, descriptor: int, data: memoryview) -> int:
        return os.write(descriptor, data[: self._draw.whole(1, len(data))])

    def _cut(self) -> int:
        """Have the last file but one lose its end, which was not on the disk yet."""
        former, last = self._files[-2:]
        kept = self._draw.number(len(former.ends) - 1)
        if len(former.ends) == 1:
            # Nothing but its header, which was on the disk: so the file behind it counts.
            return 0
        end = self._draw.whole(former.ends[kept], former.ends[kept + 1] - 1)
        os.truncate(self._folder.file(ENTRIES, former.number), end)
        return len(former.ends) - 1 - kept + len(last.ends) - 1

    def unrefused(self) -> Iterator[str]:
        """Exchange the last record of a file for another that fits: the next file must notice."""
        if not self._is_cut:
            for file in self._files[:-1]:
                if file.last is None:
                    continue
                other = framed(encode(replace(file.last, at_ns=file.last.at_ns + 1)))
                place = file.ends[-2]
                if place + len(other) != file.ends[-1]:
                    continue
                path = self._folder.file(ENTRIES, file.number)
                whole = path.read_bytes()
                path.write_bytes(whole[:place] + other)
                try:
                    _read(self._folder)
                except JournalError:
                    path.write_bytes(whole)
                    continue
                yield f"file {file.number} is taken with another last record than it was left with"


def _read(folder: Folder) -> Reading:
    return read(folder, row_of(folder))
