"""Where the records of a recording begin, so that those that speak of a thing are found at once.

A name stands in a record as it is written. So the bytes are searched, and only what holds the name
is decoded. Where records begin is kept in a file beside a large recording. It is nothing but
numbers, and it counts only for the very files that it was made of: one that is older, foreign or
damaged is made anew.
"""

import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final

import msgspec
from msgspec import Struct

from yunikorn_actors.messages.base import Delivery
from yunikorn_actors.trace.read import TraceReader, not_opened
from yunikorn_actors.trace.records.source import INDEX, FileId, Source, parts

KEPT_FROM: Final = 16 * 2**20
"""Smaller recordings are read in no time."""
SEARCHED_MAX: Final = 50
_AT_ONCE: Final = 2**20
_FORMAT: Final = 1


class _Index(Struct, frozen=True, kw_only=True, tag_field="record", tag="index"):
    format: int
    files: tuple[FileId, ...]
    starts: bytes


class Places:
    """Where each record begins in the plain stream, whatever the files hold."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            files = _files(path)
        except OSError as error:
            raise not_opened(path, error) from error
        starts = _kept(path, files)
        if starts is None:
            starts = _counted(path)
            if sum(file.size for file in files) >= KEPT_FROM:
                _keep(path, files, starts)
        self._starts = starts

    def speaking_of(self, names: Iterable[str]) -> Iterator[Delivery]:
        """Yield the messages in which one of the names stands, and perhaps others."""
        wanted = [name.encode() for name in names]
        with TraceReader(self._path) as trace:
            # Each name is searched by itself: of many, reading all finds them sooner.
            if len(wanted) > SEARCHED_MAX:
                yield from trace
                return
            for number, raw in self._holding(wanted):
                delivery = trace.delivery_in(number, raw)
                if delivery is not None:
                    yield delivery

    def at(self, numbers: Iterable[int]) -> dict[int, Delivery]:
        """Return the messages in the records of these numbers."""
        wanted = sorted(set(numbers))
        found: dict[int, Delivery] = {}
        if not wanted:
            return found
        with TraceReader(self._path) as trace:
            for number, raw in self._numbered(wanted):
                delivery = trace.delivery_in(number, raw)
                if delivery is not None:
                    found[number] = delivery
        return found

    def _numbered(self, numbers: list[int]) -> Iterator[tuple[int, bytes]]:
        """Yield these records; those before and behind are not looked at."""
        rest = iter(numbers)
        number = next(rest, None)
        base, pending = 0, bytearray()
        source = Source(self._path)
        try:
            for chunk in source.chunks():
                pending += chunk
                while number is not None and self._starts[number] <= base + len(pending):
                    begin, end = self._starts[number - 1], self._starts[number]
                    yield number, bytes(pending[begin - base : end - base])
                    number = next(rest, None)
                if number is None:
                    return
                # What the next one does not need is passed over.
                begin = min(self._starts[number - 1], base + len(pending))
                del pending[: begin - base]
                base = begin
        finally:
            source.close()

    def span_of(self, names: Iterable[str]) -> range:
        """Return the numbers from the first record in which one of the names stands to the last."""
        numbers = [number for number, _ in self._holding([name.encode() for name in names])]
        return range(numbers[0], numbers[-1] + 1) if numbers else range(0)

    def _holding(self, names: list[bytes]) -> Iterator[tuple[int, bytes]]:
        source = Source(self._path)
        try:
            base, pending = 0, bytearray()
            for chunk in source.chunks():
                pending += chunk
                if len(pending) >= _AT_ONCE:
                    end = self._starts[bisect_right(self._starts, base + len(pending)) - 1] - base
                    yield from self._records_in(base, bytes(pending[:end]), names)
                    del pending[:end]
                    base += end
            end = self._starts[-1] - base
            yield from self._records_in(base, bytes(pending[:end]), names)
        finally:
            source.close()

    def _records_in(
        self, base: int, data: bytes, names: list[bytes]
    ) -> Iterator[tuple[int, bytes]]:
        """Yield whole records that hold a name, each with its number; a record begins `data`."""
        found = {number for name in names for number in self._numbers(base, data, name)}
        for number in sorted(found):
            begin, end = self._starts[number], self._starts[number + 1]
            yield number + 1, data[begin - base : end - base]

    def _numbers(self, base: int, data: bytes, name: bytes) -> Iterator[int]:
        at = data.find(name)
        # A name that was left out stands everywhere, and behind the last record as well.
        while 0 <= at < len(data):
            number = bisect_right(self._starts, base + at) - 1
            yield number
            at = data.find(name, self._starts[number + 1] - base)


def _counted(path: Path) -> "array[int]":
    """Return where each record begins, and where the last one ends."""
    starts = array("Q", [0])
    with TraceReader(path) as trace:
        starts.append(len(trace.raw_header))
        starts.extend(_ends(len(trace.raw_header), trace.raw()))
    return starts


def _ends(begin: int, records: Iterator[bytes]) -> Iterator[int]:
    for raw in records:
        begin += len(raw)
        yield begin


# -- beside the recording


def _files(path: Path) -> tuple[FileId, ...]:
    return tuple(FileId.of(part.stat()) for part in parts(path))


def _beside(path: Path) -> Path:
    newest = parts(path)[-1]
    return newest.with_name(f".{newest.name}{INDEX}")


def _kept(path: Path, files: tuple[FileId, ...]) -> "array[int] | None":
    try:
        index = msgspec.msgpack.decode(_beside(path).read_bytes(), type=_Index)
    except (OSError, msgspec.DecodeError, ValueError):
        return None
    starts = array("Q")
    if (index.format, index.files) != (_FORMAT, files) or len(index.starts) % starts.itemsize:
        return None
    starts.frombytes(index.starts)
    if sys.byteorder == "big":
        starts.byteswap()
    return starts


def _keep(path: Path, files: tuple[FileId, ...], starts: "array[int]") -> None:
    """Write it if there is a place for it; without it the next question takes longer."""
    if sys.byteorder == "big":
        starts = array("Q", starts)
        starts.byteswap()
    index = _Index(format=_FORMAT, files=files, starts=starts.tobytes())
    with suppress(OSError):
        place = _beside(path)
        with NamedTemporaryFile(prefix=f"{place.name}.", dir=place.parent, delete=False) as file:
            file.write(msgspec.msgpack.encode(index))
        Path(file.name).replace(place)
