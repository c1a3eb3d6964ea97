"""The bytes of a recording: from a file, from the segments of one, or from standard input.

Whether it was compressed, or written as JSON, is seen by its first byte, so no command has
an option for it.
"""

import os
import shutil
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, Final, NamedTuple, Self

import msgspec

from yunikorn_actors.trace.records.foreign_files import HEAD

STANDARD_INPUT: Final = Path("-")
INDEX: Final = ".index"
"""How the name of a file ends that is kept beside a recording, and belongs to it."""
CHUNK: Final = 64 * 1024
_COMPRESSED: Final = b"\x78"
"""What zlib begins with; a record begins with a map."""
_JSON: Final = b"{"
"""What a line of JSON begins with; as MessagePack it would be a number."""
LINE_MAX: Final = 64 * 1024 * 1024
COMMAS_MAX: Final = 4_000_000
"""In a line of JSON: what has more takes too much memory before anybody can look at it."""


class FileId(NamedTuple):
    """What tells a file from another of its name; nobody can set the time of its last change."""

    device: int
    number: int
    size: int
    changed_ns: int

    @classmethod
    def of(cls, it: os.stat_result) -> Self:
        return cls(it.st_dev, it.st_ino, it.st_size, it.st_ctime_ns)


class Source:
    """Opened when it is made: a run that goes on may put its segments elsewhere meanwhile."""

    def __init__(self, path: Path, wait: Callable[[], None] | None = None) -> None:
        """Raise OSError where there is nothing to read.

        With `wait` the end of what is there is not the end: that is called, and then more is read.
        """
        self._path = path
        self._wait = wait
        self.head = b""
        """What the first file begins with, as it is on the disk; known once that is read."""
        with ExitStack() as opened:
            self._files = [opened.enter_context(_open(part)) for part in parts(path)]
            self._opened = opened.pop_all()

    @property
    def is_followed(self) -> bool:
        return self._wait is not None

    @property
    def files(self) -> tuple[FileId, ...]:
        """Tell what was opened as it is now."""
        return tuple(FileId.of(os.fstat(file.fileno())) for file in self._files)

    def close(self) -> None:
        self._opened.close()

    def chunks(self) -> Iterator[bytes]:
        """Yield MessagePack as far as it is there.

        Raise OSError, or where it is damaged zlib.error, ValueError, msgspec.DecodeError or
        RecursionError.
        """
        for file in self._files:
            # Nothing at all means the end to who reads; here it is a step of unpacking.
            yield from filter(None, _packed(_plain(self._read(file))))

    def _read(self, file: BinaryIO) -> Iterator[bytes]:
        """Yield the bytes of a segment; the last one may go on, and be put away for the next."""
        while True:
            for chunk in iter(lambda: file.read(CHUNK), b""):
                if len(self.head) < HEAD and file is self._files[0]:
                    self.head += chunk[: HEAD - len(self.head)]
                yield chunk
            if self._wait is None or file is not self._files[-1]:
                return
            self._wait()
            if self._is_put_away(file):
                # It was written to its end before that, and read only to where it was then.
                yield from iter(lambda: file.read(CHUNK), b"")
                self._files.append(self._opened.enter_context(_open(self._path)))
                return

    def _is_put_away(self, file: BinaryIO) -> bool:
        if self._path == STANDARD_INPUT:
            return False
        try:
            return not os.path.samestat(os.fstat(file.fileno()), self._path.stat())
        except FileNotFoundError:
            return False


@contextmanager
def readable_twice(path: Path) -> Iterator[Path]:
    """Keep what comes from standard input in a file as long as it is needed."""
    if path != STANDARD_INPUT:
        yield path
        return
    with TemporaryDirectory(prefix="yunikorn-actors-") as folder:
        copy = Path(folder, "standard-input.trace")
        with copy.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield copy


def parts(path: Path) -> list[Path]:
    """Return all segments of a recording, the oldest first."""
    if path == STANDARD_INPUT:
        return [path]
    if path.is_dir():
        path = _newest(path)
    former = {
        int(number): file
        for file in path.parent.glob(f"{path.name}.*")
        if (number := file.name.removeprefix(f"{path.name}.")).isdecimal()
    }
    return [*(former[number] for number in sorted(former, reverse=True)), path]


def _newest(folder: Path) -> Path:
    """Return the one recording in a folder; its former segments end in a number."""
    found = [
        file
        for file in sorted(folder.iterdir())
        if file.is_file() and not file.suffix[1:].isdecimal() and file.suffix != INDEX
    ]
    if len(found) != 1:
        raise IsADirectoryError(
            0, f"Is a directory, with {len(found)} files that could be a recording", str(folder)
        )
    return found[0]


def _open(path: Path) -> BinaryIO:
    return sys.stdin.buffer if path == STANDARD_INPUT else path.open("rb")


def _plain(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Unpack a segment if it is compressed."""
    first = next(chunks, b"")
    if first[:1] != _COMPRESSED:
        yield first
        yield from chunks
        return
    pack = zlib.decompressobj()
    for chunk in chain((first,), chunks):
        yield pack.decompress(chunk, CHUNK)
        while pack.unconsumed_tail:
            yield pack.decompress(pack.unconsumed_tail, CHUNK)


def _packed(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield lines of JSON as MessagePack, and MessagePack as it is."""
    first = next(filter(None, chunks), b"")
    if first[:1] != _JSON:
        yield first
        yield from chunks
        return
    rest: list[bytes] = []
    for chunk in chain((first,), chunks):
        *ends, begin = chunk.split(b"\n")
        for end in ends:
            yield _as_messagepack(b"".join((*rest, end)))
            rest.clear()
        rest.append(begin)
        if len(rest) > LINE_MAX // CHUNK:
            break
    # The last line may lack its end, or be cut off: then it is no JSON.
    with suppress(msgspec.DecodeError):
        yield _as_messagepack(b"".join(rest))


def _as_messagepack(line: bytes) -> bytes:
    if not line.strip():
        return b""
    if len(line) > LINE_MAX:
        raise ValueError(f"a line is larger than {LINE_MAX >> 20} MiB")
    if line.count(b",") > COMMAS_MAX:
        raise ValueError(f"a line has more than {COMMAS_MAX} items")
    try:
        return msgspec.msgpack.encode(msgspec.json.decode(line))
    except OverflowError as error:
        raise ValueError("a number has more than 64 bits") from error
