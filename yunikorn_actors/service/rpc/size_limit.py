"""What a large message holds, counted before it is read.

An item of a list takes two bytes to send and some hundred to keep, so a few megabytes could ask for
gigabytes. Nothing is made of what is counted here, and what is no list is passed over unread.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto

ITEMS_MAX: Final = 200_000
"""More than the largest message has room for, if its items say anything."""
PARTS_MAX: Final = 2_000_000
"""Fields that are passed, with those of items that have lists themselves."""
SMALL: Final = 4 * 1024
"""Bytes of an item in which no map is looked for: most have some, and all are small."""
_MORE: Final = 0x80
"""Set in each byte of a number but the last."""
_NUMBER_BYTES_MAX: Final = 10


class TooHeavy(ValueError):
    """More than a message may hold."""


class Shelf(NamedTuple):
    """A field that is a list of messages or a map, or that has such fields within."""

    is_list: bool
    within: "Shelves"
    has_lists: bool = False
    """Whether one of those within is a list, or has one."""
    is_map: bool = False

    @property
    def may_be_long(self) -> bool:
        return self.has_lists or (self.is_list and not self.is_map)


Shelves = Mapping[int, Shelf]
"""By the number of the field."""


def shelves_of(descriptor: Any) -> Shelves:  # noqa: ANN401 - protobuf's own
    """Find what may hold many items in a kind of message."""
    declared = DescriptorProto()
    descriptor.CopyToProto(declared)
    lists = {it.number for it in declared.field if it.label == FieldDescriptorProto.LABEL_REPEATED}
    found = dict[int, Shelf]()
    for field in descriptor.fields:
        kind = field.message_type
        if kind is None:
            continue
        if kind.GetOptions().map_entry:
            found[field.number] = Shelf(is_list=True, within={}, is_map=True)
            continue
        within = shelves_of(kind)
        if field.number in lists or within:
            has_lists = any(it.may_be_long for it in within.values())
            found[field.number] = Shelf(field.number in lists, within, has_lists)
    return found


def weigh(data: bytes, shelves: Shelves) -> None:
    """Refuse a message that holds too much; bytes that are no message are left to the decoder."""
    try:
        _Scale(data).pass_over(0, len(data), shelves)
    except IndexError:
        return


class _Scale:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._items = 0
        self._parts = 0

    def pass_over(self, at: int, end: int, shelves: Shelves) -> None:
        data = self._data
        while at < end:
            self._parts += 1
            if self._parts > PARTS_MAX:
                raise TooHeavy(f"has more than {PARTS_MAX} fields; split the request")
            key, at = _number(data, at)
            match key & 7:
                case 2:
                    size, at = _number(data, at)
                    shelf = shelves.get(key >> 3)
                    if shelf is not None:
                        # Not beyond its parent, whatever its length says.
                        self._put(at, min(at + size, end), shelf)
                    at += size
                case 0:
                    _, at = _number(data, at)
                case 1:
                    at += 8
                case 5:
                    at += 4
                case _:
                    raise TooHeavy("has a group, which no message of this service has")

    def _put(self, at: int, end: int, shelf: Shelf) -> None:
        if shelf.is_list:
            self._items += 1
            if self._items > ITEMS_MAX:
                raise TooHeavy(f"has more than {ITEMS_MAX} items; split the request")
        if shelf.has_lists or end - at > SMALL:
            self.pass_over(at, end, shelf.within)


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Read a number, seven bits at a time; return it with the place behind it."""
    byte = data[at]
    if byte < _MORE:  # nearly all
        return byte, at + 1
    number = byte & 0x7F
    for place in range(1, _NUMBER_BYTES_MAX):
        byte = data[at + place]
        number |= (byte & 0x7F) << 7 * place
        if byte < _MORE:
            return number, at + place + 1
    raise TooHeavy("has a number of more than 64 bits")
