"""Records in a file: each with its length and checksums, so that damage is found and placed.

    length of the payload | CRC-32 of the payload | CRC-32 of these eight bytes | payload

Numbers are 32 bits, the highest byte first. A process that is killed leaves its last record cut
short; a machine that loses power may leave zeros. Both stand at the end of the file and are
dropped. Anything else is damage: what stands behind it cannot be trusted to follow.
"""

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple
from zlib import crc32

_NUMBERS: Final = struct.Struct(">II")
_CHECK: Final = struct.Struct(">I")
_HEAD: Final = _NUMBERS.size + _CHECK.size


class Damaged(Exception):
    """What stands at this place of a file is no record."""

    def __init__(self, place: int, end: int) -> None:
        super().__init__(f"is damaged at byte {place} of {end}")
        self.place = place


class Frame(NamedTuple):
    payload: memoryview
    place: int
    """Where it begins in the file."""
    end: int
    """The place in the file behind it."""
    check: int
    """The checksum of its payload."""


def framed(payload: bytes) -> bytes:
    numbers = _NUMBERS.pack(len(payload), crc32(payload))
    return numbers + _CHECK.pack(crc32(numbers)) + payload


def check_of(record: bytes) -> int:
    """Return the checksum of the payload of a framed record."""
    check: int = _NUMBERS.unpack_from(record)[1]
    return check


def frames_in(data: bytes, end: int | None) -> Iterator[Frame]:
    """Yield the records in the bytes of a file up to this place.

    Without one that is the end of the file, or of the last record that was written whole.
    """
    view = memoryview(data)
    is_last, stop = end is None, len(data) if end is None else end
    place = 0
    while place < stop:
        frame = frame_at(view[:stop], place)
        if frame is None:
            # Only the last file may be torn, and only at its end; anywhere else something was
            # damaged.
            if is_last and is_torn(view, place):
                return
            raise Damaged(place, stop)
        yield frame
        place = frame.end


def frame_at(data: memoryview, place: int) -> Frame | None:
    size = _size_at(data, place)
    if size is None:
        return None
    start = place + _HEAD
    payload = data[start : start + size]
    _, check = _NUMBERS.unpack_from(data, place)
    is_whole = len(payload) == size and crc32(payload) == check
    return Frame(payload, place, start + size, check) if is_whole else None


def _size_at(data: memoryview, place: int) -> int | None:
    if len(data) - place < _HEAD:
        return None
    # The length has a checksum of its own: a wrong one would send the reader anywhere.
    numbers = data[place : place + _NUMBERS.size]
    (check,) = _CHECK.unpack_from(data, place + _NUMBERS.size)
    return _NUMBERS.unpack(numbers)[0] if crc32(numbers) == check else None


def is_torn(data: memoryview, place: int) -> bool:
    """Whether nothing stands behind what is wrong here."""
    if len(data) - place < _HEAD or not any(data[place:]):
        return True
    size = _size_at(data, place)
    # The record would reach beyond the file: it was being written.
    return size is not None and place + _HEAD + size >= len(data)
