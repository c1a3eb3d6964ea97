"""The folder of a journal: snapshots, and files with what came after each of them.

`snapshot-N` is the state before the first record of `entries-N`. Each of those files says in its
header behind which place of which other it goes on, so the row of them is found from its end. What
stands behind such a place was dropped, and stays so. No file is changed once another goes on.

A file that was begun while a core runs is `early` until the one before it is on the disk: when
that one lacks its end after a power cut, the early one tells of what followed the lost part, and
is left out too.
"""

import fcntl
import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from yunikorn_actors.errors import JournalError
from yunikorn_actors.messages.codec import encode
from yunikorn_actors.messages.restart import CoreRestored
from yunikorn_actors.runtime.journal.frames import Damaged, Frame, framed, frames_in
from yunikorn_actors.runtime.journal.truth import Truth, WrongReplay
from yunikorn_actors.runtime.logs import logger
from yunikorn_actors.version import VERSION

FORMAT: Final = 1
_MODE: Final = 0o600
"""What was submitted stands in it, names of users and all."""
ENTRIES: Final = "entries"
EARLY: Final = "early"
SNAPSHOT: Final = "snapshot"
COUNTED: Final = (ENTRIES, EARLY, SNAPSHOT)
PART: Final = "part"
"""A snapshot that has not got its name: it is being written, or its writer was killed."""
_ANEW: Final = (
    "move the folder away: the core then begins anew, and learns from the resource managers what "
    "runs"
)


class Place(Struct, frozen=True, kw_only=True):
    """The end of what counts of a file with entries."""

    number: int
    bytes: int


class Header(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The first record of a file."""

    journal: str
    format: int
    package: dict[str, str]
    after: Place | None = None
    """Of entries: where they go on; None in the first file."""
    state: str = ""
    """Of a snapshot: the digest of the state that it makes."""


class Link(NamedTuple):
    """A file with entries, as far as it counts."""

    number: int
    path: Path
    end: int | None
    """None in the last one, which may end with a record that was not written whole."""


class Row(NamedTuple):
    """What makes the state: a snapshot, if its number is not 0, and the files after it."""

    snapshot: int
    links: list[Link]


class Folder:
    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()

    def take(self) -> int:
        """Make the folder this process's own; a killed one lets go of it."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _MODE)
        except OSError as error:
            raise JournalError(
                f"the journal {self.path} cannot be kept there: {error.strerror}: name a folder "
                "that this process may make and write"
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(lock)
            raise JournalError(
                f"the journal {self.path} belongs to a core that runs: stop that one, or use "
                "another folder"
            ) from error
        for part in self.path.glob(f"{PART}*"):
            part.unlink()
        return lock

    def numbers(self, *kinds: str) -> list[int]:
        """Return the numbers of the files of these kinds, the lowest first."""
        names = (it.name.rpartition("-")[::2] for it in self.path.glob("*-*"))
        return sorted(int(number) for kind, number in names if kind in kinds and number.isdecimal())

    def file(self, kind: str, number: int) -> Path:
        return self.path / f"{kind}-{number:08}"

    def sync(self) -> None:
        """Bring the names of the files to the disk."""
        folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    # -- writing

    def create(self, kind: str, number: int) -> int:
        """Return the descriptor of a new file."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(self.file(kind, number), flags, _MODE)
        try:
            self.sync()
        except OSError:
            os.close(descriptor)
            self.file(kind, number).unlink()
            raise
        return descriptor

    def write_part(self, number: int, truth: Truth) -> CoreRestored:
        """Bring the snapshot of a state to the disk, and return what stands in it."""
        with without_collections():
            told = truth.told()
            header = header_of(SNAPSHOT, state=truth.digest())
        with os.fdopen(self.create(PART, number), "wb") as file:
            file.write(header + framed(encode(told)))
            file.flush()
            os.fsync(file.fileno())
        return told

    def check_part(self, number: int) -> None:
        """Make the state again from a snapshot, which says what the state has to be."""
        with without_collections():
            _begun_with(self.file(PART, number))

    def adopt(self, number: int) -> None:
        """Give a snapshot its name: from now on it counts."""
        self.file(PART, number).replace(self.file(SNAPSHOT, number))
        self.sync()

    def drop_before(self, number: int) -> None:
        for kind in COUNTED:
            for old in self.numbers(kind):
                if old < number:
                    self.file(kind, old).unlink()

    def settle(self, number: int) -> None:
        """What comes before this file is on the disk."""
        self.file(EARLY, number).replace(self.file(ENTRIES, number))
        self.sync()

    # -- reading

    @property
    def last_snapshot(self) -> int:
        """Its number; 0 if there is none."""
        return max(self.numbers(SNAPSHOT), default=0)

    def bytes_of_snapshot(self) -> int:
        last = self.last_snapshot
        return self.file(SNAPSHOT, last).stat().st_size if last else 0

    def row(self, before: int | None = None) -> Row:
        """Find the files that count: all of them, or those before the one with this number."""
        first = self.last_snapshot
        paths = {
            number: self.file(kind, number)
            for kind in (ENTRIES, EARLY)
            for number in self.numbers(kind)
            if number >= first
        }
        number = self._last(paths) if before is None else before
        links: list[Link] = []
        end: int | None = None
        while number is not None:
            if number not in paths:
                raise JournalError(
                    f"{self.file(ENTRIES, number)} is missing: restore it from a copy; or {_ANEW}"
                )
            if number != before:
                links.append(Link(number, paths[number], end))
            after = _header_of(paths[number], end).after
            if number == first or after is None:
                break
            number, end = after.number, after.bytes
        return Row(first, links[::-1])

    def _last(self, paths: dict[int, Path]) -> int | None:
        for number in sorted(paths, reverse=True):
            if self._counts(number, paths):
                return number
        return None

    def _counts(self, number: int, paths: dict[int, Path]) -> bool:
        """Whether the last of these files was begun, and the file before it is whole."""
        path = paths[number]
        if not has_records(path):
            return False
        after = _header_of(path, None).after
        if path == self.file(ENTRIES, number) or after is None or after.number not in paths:
            return True
        if has_records(paths[after.number], after.bytes):
            return True
        logger.warning(
            "{} lost its end, so {}, which goes on from there, is dropped too",
            paths[after.number],
            path,
        )
        return False

    def read(self, row: Row) -> tuple[Truth, Place | None]:
        """Make the state, and say where the next file goes on."""
        with without_collections():
            return self._read(row)

    def _read(self, row: Row) -> tuple[Truth, Place | None]:
        truth = _begun_with(self.file(SNAPSHOT, row.snapshot)) if row.snapshot else Truth()
        place: Place | None = None
        for link in row.links:
            place = Place(number=link.number, bytes=_replay(truth, link))
        return truth, place


@contextmanager
def without_collections() -> Iterator[None]:
    """Collect no garbage while much is made that stays: it would be visited again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def header_of(kind: str, after: Place | None = None, state: str = "") -> bytes:
    package = {"name": "yunikorn-actors", "version": VERSION}
    header = Header(journal=kind, format=FORMAT, package=package, after=after, state=state)
    return framed(encode(header))


def has_records(path: Path, end: int | None = None) -> bool:
    """Whether there is any, and all are whole up to this place."""
    try:
        return bool(sum(1 for _ in frames_in(path, end)))
    except Damaged:
        return end is None


def _begun_with(file: Path) -> Truth:
    """Make the state that a snapshot is of; refuse one that makes another."""
    older = "move it away, if an older snapshot is there, which is then read with all after it"
    frames = frames_in(file, None)
    try:
        header, told = _decoded(file, next(frames)), next(frames)
    except (Damaged, StopIteration) as error:
        # It got its name when it was whole.
        raise JournalError(f"{file} is damaged: restore it from a copy; or {older}") from error
    truth = Truth()
    truth.begin_with(msgspec.msgpack.decode(told.payload, type=CoreRestored))
    if truth.digest() != header.state:
        raise JournalError(
            f"{file} does not make the state that it was written from: start the version "
            f"{header.package['version']} that wrote it; or {older}"
        )
    return truth


def _replay(truth: Truth, link: Link) -> int:
    """Do again what a file tells; return the place behind it."""
    frames = _frames_of(link)
    first = next(frames)
    version, end = _decoded(link.path, first).package["version"], first.end
    for number, frame in enumerate(frames, 1):
        try:
            truth.take(frame.payload)
        except WrongReplay as wrong:
            raise JournalError(
                f"{link.path}, entry {number}: {wrong}: start the version {version} that wrote it; "
                f"or {_ANEW}"
            ) from wrong
        end = frame.end
    torn = link.path.stat().st_size - end if link.end is None else 0
    if torn:
        logger.warning(
            "{}: the last record was not written whole, {} bytes are dropped", link.path, torn
        )
    return end


def _frames_of(link: Link) -> Iterator[Frame]:
    try:
        yield from frames_in(link.path, link.end)
    except Damaged as damaged:
        raise JournalError(
            f"{link.path} {damaged}: restore it from a copy; or cut it there (truncate -s "
            f"{damaged.place}) and move later files away, which gives up what was decided "
            "afterwards"
        ) from damaged


def _header_of(path: Path, end: int | None) -> Header:
    # The number is of no interest here.
    return _decoded(path, next(_frames_of(Link(0, path, end))))


def _decoded(file: Path, frame: Frame) -> Header:
    header = msgspec.msgpack.decode(frame.payload, type=Header)
    if header.format != FORMAT:
        raise JournalError(
            f"{file} has format {header.format}, this version reads {FORMAT}: start the "
            "version that wrote it"
        )
    return header
