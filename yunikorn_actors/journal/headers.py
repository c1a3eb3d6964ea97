"""The first record of each file of a journal, and what it says of the files around it.

A file names itself and what it follows: which journal it belongs to, its number, and the place in
another file behind which it goes on, with the checksum of the record that ends there. Each entry
names the checksum of the record before it. So a record or a file that is removed, doubled, moved or
exchanged is found, not only bytes that changed. Files of versions before this lack some of it; then
that part is not verified.
"""

import os
import stat
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from yunikorn_actors.errors import JournalError
from yunikorn_actors.journal.frames import (
    Damaged,
    Frame,
    frame_at,
    framed,
    is_torn,
)
from yunikorn_actors.messages.codec import encode
from yunikorn_actors.version import VERSION

FORMAT: Final = 1
ENTRIES: Final = "entries"
EARLY: Final = "early"
SNAPSHOT: Final = "snapshot"
COUNTED: Final = (ENTRIES, EARLY, SNAPSHOT)
PART: Final = "part"
"""A snapshot that has not got its name: it is being written, or its writer was killed."""
_HEADER_BYTES_MAX: Final = 2**16


class EndOfFile(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The end of what counts of a file with entries."""

    number: int
    bytes: int
    """0 where nothing of that file counts, because it was lost beside its snapshot."""
    check: int | None = None
    """The checksum of the record that ends there."""


class Header(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The first record of a file."""

    journal: str
    format: int
    package: dict[str, str]
    after: EndOfFile | None = None
    """Where entries go on, or what a snapshot holds; None in the first file."""
    state: str = ""
    """Of a snapshot: the digest of the state that it makes."""
    journal_id: str = ""
    """One for all files of a folder."""
    number: int = 0
    """The number in the name of the file."""
    policies: dict[str, str] = {}
    """Of entries: the digests of the policies that could decide beside those of the package."""

    @property
    def is_chained(self) -> bool:
        """Whether the entries name the record before them; versions before this wrote no id."""
        return bool(self.journal_id)


class Begun(Struct, frozen=True, kw_only=True):
    """The last file that was begun for good, as the file `lock` holds it.

    Without it nobody would notice that the newest files were removed.
    """

    journal_id: str = ""
    number: int = 0


def header_of(
    kind: str,
    number: int,
    journal_id: str,
    after: EndOfFile | None,
    state: str = "",
    policies: dict[str, str] | None = None,
) -> bytes:
    package = {"name": "yunikorn-actors", "version": VERSION}
    header = Header(
        journal=kind,
        format=FORMAT,
        package=package,
        after=after,
        state=state,
        journal_id=journal_id,
        number=number,
        policies=policies or {},
    )
    return framed(encode(header))


def begun_in(data: bytes) -> Begun:
    """Read what stands in the file `lock`; it is empty in journals of versions before this."""
    frame = frame_at(memoryview(data), 0)
    try:
        return Begun() if frame is None else msgspec.msgpack.decode(frame.payload, type=Begun)
    except msgspec.MsgspecError:
        return Begun()


def check_is_file(path: Path) -> None:
    """Refuse whatever else has this name: to read a pipe or a device may never end."""
    try:
        is_file = stat.S_ISREG(path.stat().st_mode)
    except OSError:
        is_file = not path.is_symlink()
    if not is_file:
        what = "leads to no file" if path.is_symlink() else "is no file"
        raise JournalError(
            f"{path} {what} (byte 0): move it away, and restore the file from a copy if there was "
            "one"
        )


def bytes_of(path: Path, at_most: int | None = None) -> bytes:
    check_is_file(path)
    try:
        with path.open("rb") as file:
            return file.read(-1 if at_most is None else at_most)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise JournalError(
            f"{path} cannot be read (byte 0): {error.strerror}: let user {os.geteuid()} read it "
            "(chown, chmod), or restore it from a copy"
        ) from error


def first_header(path: Path) -> Header | None:
    """Read the first record; None where the file ends before that was written whole."""
    # A header is small: of a file of 64 MiB only its beginning is read.
    data = memoryview(bytes_of(path, _HEADER_BYTES_MAX))
    frame = frame_at(data, 0)
    if frame is None:
        # Whether it is torn or damaged shows only with all of the file.
        whole = memoryview(bytes_of(path))
        if is_torn(whole, 0):
            return None
        raise Damaged(0, len(whole))
    return decoded(path, frame)


def decoded(path: Path, frame: Frame) -> Header:
    try:
        header = msgspec.msgpack.decode(frame.payload, type=Header)
    except msgspec.MsgspecError as error:
        # It is a record, of another kind: those before it are missing, or came behind it.
        raise Damaged(0, path.stat().st_size) from error
    # The remedy is the version that wrote it, which its header names.
    if header.format != FORMAT:
        raise JournalError(
            f"{path} has format {header.format} (byte 0), this version reads {FORMAT}: start the "
            f"version {header.package.get('version', '')} that wrote it"
        )
    return header
