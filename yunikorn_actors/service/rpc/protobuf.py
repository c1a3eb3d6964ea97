"""Messages as protobuf and back, by their descriptors.

The classes of protobuf are made from `protos.binpb`, the compiled form of the two files beside it,
in a pool of their own: a program may have compiled another generation of `si.proto` for itself, and
one pool takes a name once. Nothing is generated, so any version of protobuf will do.

Reading is typed and loses nothing in silence: a number that an enumeration does not have is
refused, and a field that is not known here is reported to the reader. A field that was left out has
the default of protobuf, not ours: `maxAllocations` is then 0, which the core refuses.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast

from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message import Message as AnyMessage
from google.protobuf.unknown_fields import UnknownFieldSet
from msgspec import inspect

from yunikorn_actors.recording.logs import logger
from yunikorn_actors.service.rpc.size_limit import TooHeavy, shelves_of, weigh
from yunikorn_actors.si.wire import BESIDE, SiMessage

LOGGED_MAX: Final = 100
"""Fields that are logged; a field comes with every message, or never."""


class UnknownFields:
    """Fields that came and are not known here: each is logged once."""

    def __init__(self) -> None:
        self._logged: set[str] = set()

    def tell(self, path: str) -> None:
        if path not in self._logged and len(self._logged) < LOGGED_MAX:
            self._logged.add(path)
            logger.warning(
                "{} is set by the other side and not known to this version: it was ignored", path
            )


M = TypeVar("M", bound=SiMessage)
Descriptor: TypeAlias = Any
"""Protobuf has several implementations; its types agree in what is used here, but not by name."""
FieldDescriptor: TypeAlias = Any
Message: TypeAlias = Any
Value: TypeAlias = Any
"""Of a field: a message, a number, a text, or a container of these."""
Read: TypeAlias = Callable[[Any], Any]
Tell: TypeAlias = Callable[[str], None]
"""Is given the path of a field that is not known here, as `AllocationRequest.asks.99`."""

DESCRIPTORS: Final = Path(__file__).with_name("protos.binpb")
_PACKAGES: Final = {"yunikorn_actors.si": "si.v1"}
"""Of the interface; all other messages are ours."""
OURS: Final = "yunikorn_actors.v1"
LARGE: Final = 64 * 1024
"""Bytes of a message that is looked at before it is read; it takes long, too."""


class Malformed(ValueError):
    """The bytes are no message of the kind that was expected."""


@cache
def pool() -> DescriptorPool:
    files = descriptor_pb2.FileDescriptorSet.FromString(DESCRIPTORS.read_bytes())
    made = DescriptorPool()
    for file in files.file:
        made.Add(file)
    return made


@cache
def codec(kind: type[M]) -> "Codec[M]":
    return Codec(kind)


@cache
def field_numbers(kind: type[SiMessage]) -> dict[str, int]:
    """By the name on the wire."""
    descriptor = codec(kind).descriptor
    return {field.name: field.number for field in descriptor.fields}


class Codec(Generic[M]):
    """One kind of message, both ways."""

    def __init__(self, kind: type[M]) -> None:
        package = _PACKAGES.get(kind.__module__.rpartition(".")[0], OURS)
        self._kind = kind
        self._class: Any = message_factory.GetMessageClass(
            pool().FindMessageTypeByName(f"{package}.{kind.__name__}")
        )
        self.descriptor: Final[Descriptor] = self._class.DESCRIPTOR
        declared = inspect.type_info(kind)
        assert isinstance(declared, inspect.StructType)
        self._read = _reader(declared, self.descriptor)
        self._fill = _filler(declared)
        self._shelves = shelves_of(self.descriptor)

    def decode(self, data: bytes, tell: Tell) -> M:
        # Before it is parsed: a small text may ask for a lot of memory.
        if len(data) > LARGE:
            self._weigh(data)
        message = self._class()
        try:
            message.ParseFromString(data)
        except DecodeError as error:
            raise Malformed(f"{self._kind.__name__}: {error}") from None
        # They count for the size: what the message loses without them is their share.
        size = message.ByteSize()
        message.DiscardUnknownFields()
        self._tell_of(size - message.ByteSize(), data, tell)
        read: M = self._read(message)
        return read

    def _weigh(self, data: bytes) -> None:
        try:
            weigh(data, self._shelves)
        except TooHeavy as error:
            raise Malformed(f"{self._kind.__name__}: {error}") from None

    def _tell_of(self, lost: int, data: bytes, tell: Tell) -> None:
        """Tell what was lost; each field by itself takes memory, so not of very many."""
        name = self._kind.__name__
        if lost > LARGE:
            tell(f"{name}, more than {LARGE} bytes of it,")
        elif lost:
            # Parsed once more, with what was discarded; that happens once per field.
            for path in dict.fromkeys(_unknown(self._class.FromString(data), name)):
                tell(path)

    def encode(self, message: M) -> bytes:
        filled = self._class()
        self._fill(filled, message)
        data: bytes = filled.SerializeToString()
        return data


def _unknown(message: Message, path: str) -> Iterator[str]:
    for unknown in cast("Iterable[Any]", UnknownFieldSet(message)):
        yield f"{path}.{unknown.field_number}"
    for field, value in message.ListFields():
        if field.message_type is not None:
            step = f"{path}.{field.name}"
            for part in _parts(field, value):
                yield from _unknown(part, step)


def _parts(field: FieldDescriptor, value: Value) -> Iterator[Message]:
    if isinstance(value, AnyMessage):
        yield value
    elif field.message_type.GetOptions().map_entry:
        if field.message_type.fields_by_name["value"].message_type is not None:
            yield from value.values()
    else:
        yield from value


# -- from protobuf


def _reader(declared: inspect.StructType, descriptor: Descriptor) -> Read:
    """Read every field: one that was left out has protobuf's default."""
    declared_fields = _on_the_wire(declared)
    names = {field.encode_name for field in declared_fields}
    # Both sides must have the same fields, or something would get lost.
    assert names == set(descriptor.fields_by_name), (descriptor.full_name, names)
    kind = declared.cls
    fields = tuple(
        (field.name, _value_reader(field.type, descriptor, field.encode_name))
        for field in declared_fields
    )

    def read(message: Message) -> Value:
        return kind(**{name: get(message) for name, get in fields})

    return read


def _on_the_wire(declared: inspect.StructType) -> list[inspect.Field]:
    # Left out: fields that only a core in the same process has.
    return [field for field in declared.fields if not _is_beside(field.type)]


def _is_beside(declared: inspect.Type) -> bool:
    return isinstance(declared, inspect.Metadata) and BESIDE in (declared.extra or {})


def _value_reader(declared: inspect.Type, owner: Descriptor, name: str) -> Read:
    field = owner.fields_by_name[name]
    if isinstance(declared, inspect.UnionType):
        convert = _converter(declared.types[0], field)
        # Only where it can be absent: other fields have a default.
        return lambda message: convert(getattr(message, name)) if message.HasField(name) else None
    convert = _converter(declared, field)
    return lambda message: convert(getattr(message, name))


def _converter(declared: inspect.Type, field: FieldDescriptor) -> Read:
    match declared:
        case inspect.Metadata(type=inner):
            return _converter(inner, field)
        case inspect.EnumType(cls=kind):
            return _enumerated(kind, f"{field.containing_type.name}.{field.name}")
        case inspect.VarTupleType(item_type=item):
            convert = _converter(item, field)
            return lambda values: tuple(map(convert, values))
        case inspect.DictType(value_type=inspect.StructType() as value):
            convert = _reader(value, field.message_type.fields_by_name["value"].message_type)
            return lambda values: {key: convert(item) for key, item in values.items()}
        case inspect.DictType():
            return dict
        case inspect.StructType():
            return _reader(declared, field.message_type)
    return _itself


def _itself(value: Value) -> Value:
    return value


def _enumerated(kind: type[Any], where: str) -> Read:
    def convert(number: int) -> Value:
        try:
            return kind(number)
        except ValueError:
            raise Malformed(f"{where}: there is no {kind.__name__} {number}") from None

    return convert


# -- to protobuf

Put: TypeAlias = Callable[[Any, Any], None]
"""Sets a field of a message."""


def _filler(declared: inspect.StructType) -> Put:
    """Write what is not empty; the rest is protobuf's default, and is left out."""
    fields = tuple(
        (field.name, isinstance(field.type, inspect.UnionType), _putter(field))
        for field in _on_the_wire(declared)
    )

    def fill(message: Message, value: Value) -> None:
        for name, is_optional, put in fields:
            item = getattr(value, name)
            # An optional text may be there and empty; everything else that is empty is not there.
            if item or (is_optional and item is not None):
                put(message, item)

    return fill


def _putter(field: inspect.Field) -> Put:
    name, declared = field.encode_name, field.type
    if isinstance(declared, inspect.UnionType):
        declared = declared.types[0]
    match declared:
        case inspect.StructType():
            return _one(name, _filler(declared))
        case inspect.VarTupleType(item_type=inspect.StructType() as item):
            return _several(name, _filler(item))
        case inspect.VarTupleType():
            return lambda message, values: getattr(message, name).extend(values)
        case inspect.DictType(value_type=inspect.StructType() as item):
            return _mapped(name, _filler(item))
        case inspect.DictType():
            return lambda message, values: getattr(message, name).update(values)
    return lambda message, value: setattr(message, name, value)


def _one(name: str, fill: Put) -> Put:
    def put(message: Message, value: Value) -> None:
        part = getattr(message, name)
        # An empty part that is there is not the same as none.
        part.SetInParent()
        fill(part, value)

    return put


def _several(name: str, fill: Put) -> Put:
    def put(message: Message, values: Value) -> None:
        parts = getattr(message, name)
        for value in values:
            fill(parts.add(), value)

    return put


def _mapped(name: str, fill: Put) -> Put:
    def put(message: Message, values: Value) -> None:
        parts = getattr(message, name)
        for key, value in values.items():
            fill(parts[key], value)

    return put


# -- by hand


def varint(number: int) -> bytes:
    """Write a number seven bits at a time, the last ones first; a bit says that more come."""
    written = bytearray()
    while number >> 7:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*written, number))


def embedded(field: int, data: bytes) -> bytes:
    """Write an encoded message as a field of another one, whose bytes need not be made for that."""
    return varint(field << 3 | 2) + varint(len(data)) + data
