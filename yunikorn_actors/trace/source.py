"""The bytes of a recording: from a file, from the segments of one, or from standard input.

Whether it was compressed, or written as JSON, is seen by its first byte, so no command has to be
told.
"""

import shutil
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import BinaryIO, Final

import msgspec

STANDARD_INPUT: Final = Path("-")
CHUNK: Final = 64 * 1024
_COMPRESSED: Final = b"\x78"
"""What zlib begins with; a record begins with a map."""
_JSON: Final = b"{"
"""What a line of JSON begins with; as MessagePack it would be a number."""
LINE_MAX: Final = 64 * 1024 * 1024
COMMAS_MAX: Final = 4_000_000
"""In a line of JSON: what has more takes too much memory before anybody can look at it."""


class Source:
    """Opened when it is made: a run that goes on may put its segments elsewhere meanwhile."""

    def __init__(self, path: Path) -> None:
        """Raise OSError where there is nothing to read."""
        with ExitStack() as opened:
            self._files = [opened.enter_context(_open(part)) for part in _parts(path)]
            self._opened = opened.pop_all()

    def close(self) -> None:
        self._opened.close()

    def chunks(self) -> Iterator[bytes]:
        """Yield MessagePack as far as it is there.

        Raise OSError, or where it is damaged zlib.error, ValueError, msgspec.DecodeError or
        RecursionError.
        """
        for file in self._files:
            yield from _packed(_plain(file))


@contextmanager
def readable_twice(path: Path) -> Iterator[Path]:
    """Keep what comes from standard input in a file as long as it is needed."""
    if path != STANDARD_INPUT:
        yield path
        return
    with NamedTemporaryFile(prefix="yunikorn-actors-", suffix=".trace") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
        file.flush()
        yield Path(file.name)


def _parts(path: Path) -> list[Path]:
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
        if file.is_file() and not file.suffix[1:].isdecimal()
    ]
    if len(found) != 1:
        raise IsADirectoryError(
            0, f"Is a directory, with {len(found)} files that could be a recording", str(folder)
        )
    return found[0]


def _open(path: Path) -> BinaryIO:
    return sys.stdin.buffer if path == STANDARD_INPUT else path.open("rb")


def _plain(file: BinaryIO) -> Iterator[bytes]:
    chunk = file.read(CHUNK)
    if chunk[:1] == _COMPRESSED:
        yield from _unpacked(file, chunk)
        return
    while chunk:
        yield chunk
        chunk = file.read(CHUNK)


def _unpacked(file: BinaryIO, chunk: bytes) -> Iterator[bytes]:
    pack = zlib.decompressobj()
    while chunk:
        yield pack.decompress(chunk, CHUNK)
        while pack.unconsumed_tail:
            yield pack.decompress(pack.unconsumed_tail, CHUNK)
        chunk = file.read(CHUNK)


def _packed(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield lines of JSON as MessagePack, and MessagePack as it is."""
    first = next(chunks, b"")
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
