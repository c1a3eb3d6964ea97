"""The bytes of a recording: from a file, from the segments of one, or from standard input.

Where it was compressed is seen by its first byte, so no command has to be told.
"""

import shutil
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import BinaryIO, Final

STANDARD_INPUT: Final = Path("-")
CHUNK: Final = 64 * 1024
_COMPRESSED: Final = b"\x78"
"""What zlib begins with; a record begins with a map."""


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
        """Yield what is there so far; raise OSError, or zlib.error where it is damaged."""
        for file in self._files:
            chunk = file.read(CHUNK)
            if chunk[:1] == _COMPRESSED:
                yield from _unpacked(file, chunk)
                continue
            while chunk:
                yield chunk
                chunk = file.read(CHUNK)


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


def _unpacked(file: BinaryIO, chunk: bytes) -> Iterator[bytes]:
    pack = zlib.decompressobj()
    while chunk:
        yield pack.decompress(chunk, CHUNK)
        while pack.unconsumed_tail:
            yield pack.decompress(pack.unconsumed_tail, CHUNK)
        chunk = file.read(CHUNK)
