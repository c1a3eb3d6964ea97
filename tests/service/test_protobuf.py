"""Messages travel as protobuf and come back: whatever either generation can say is understood."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("grpc")
from drawn import values_of
from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor_pool import DescriptorPool
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect

from yunikorn_actors import si
from yunikorn_actors.service.rpc import messages
from yunikorn_actors.service.rpc.outgoing import LARGEST, pieces
from yunikorn_actors.service.rpc.protobuf import (
    DESCRIPTORS,
    Codec,
    Malformed,
    codec,
    embedded,
    field_numbers,
    pool,
)
from yunikorn_actors.si.wire import SiMessage

PROTOS = DESCRIPTORS.parent
CLIENTS = Path(__file__).with_name("clients")


def kinds_of(module: Any) -> list[type[SiMessage]]:
    found = (it for it in vars(module).values() if isinstance(it, type))
    return [it for it in found if issubclass(it, SiMessage) and it is not SiMessage]


KINDS = list(dict.fromkeys([*kinds_of(si), *kinds_of(messages)]))
ONE_OF = (messages.Said, messages.Told, messages.Answer)
"""They hold one thing at a time."""
BESIDE_ONE = ("number", "placements", "graces")
DRAWN = [kind for kind in KINDS if kind not in (messages.Piece, *ONE_OF)]


def no_stranger(path: str) -> None:
    raise AssertionError(path)


def any_codec(kind: type[SiMessage]) -> Codec[Any]:
    return codec(kind)


@given(st.data())
def test_what_is_written_is_read_again(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(DRAWN))
    # Without the fields that only callers in Python have.
    message = si.from_json(kind, si.to_json(data.draw(values_of(kind))))
    assert message == any_codec(kind).decode(any_codec(kind).encode(message), no_stranger)


@pytest.mark.parametrize("kind", ONE_OF, ids=lambda kind: kind.__name__)
def test_one_thing_at_a_time_is_written_and_read_even_if_it_is_empty(kind: Any) -> None:
    optional = [field for field in inspect.type_info(kind).fields if field.name not in BESIDE_ONE]
    for field in optional:
        inner = field.type.types[0]
        empty = inner.cls() if isinstance(inner, inspect.StructType) else ""
        message = kind(**{field.name: empty})
        assert message == any_codec(kind).decode(any_codec(kind).encode(message), no_stranger)


def test_every_message_of_the_files_has_a_type_here() -> None:
    ours = {name.rpartition(".")[2] for name in message_names(DESCRIPTORS.read_bytes())}
    assert ours == {kind.__name__ for kind in KINDS}


# -- the published generations


def compiled(folder: Path, out: Path, *files: str) -> bytes:
    """Return the descriptors that a compiler makes."""
    protoc = pytest.importorskip("grpc_tools.protoc")
    google = Path(protoc.__file__).parent / "_proto"
    options = [f"-I{folder}", f"-I{google}", "--include_imports", f"--descriptor_set_out={out}"]
    assert protoc.main(["protoc", *options, *files]) == 0
    return out.read_bytes()


def message_names(descriptors: bytes) -> list[str]:
    files = descriptor_pb2.FileDescriptorSet.FromString(descriptors).file
    return [
        f"{file.package}.{message.name}"
        for file in files
        if not file.package.startswith("google")
        for message in file.message_type
    ]


def pool_of(descriptors: bytes) -> DescriptorPool:
    made = DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(descriptors).file:
        made.Add(file)
    return made


def test_the_compiled_file_is_that_of_the_files_beside_it(tmp_path: Path) -> None:
    made = compiled(PROTOS, tmp_path / "protos.binpb", "si.proto", "extension.proto")
    remedy = (
        "python -m grpc_tools.protoc -I. --include_imports --descriptor_set_out=protos.binpb "
        "si.proto extension.proto"
    )
    assert made == DESCRIPTORS.read_bytes(), remedy


def fill(message: Any, depth: int = 3) -> None:
    """Set every field."""
    for field in message.DESCRIPTOR.fields:
        values = list(some(field, depth))
        held = getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            value_field = field.message_type.fields_by_name["value"]
            if value_field.message_type is None:
                held["key"] = "value"
            else:
                fill(held["key"], depth - 1)
        elif field.message_type is not None and hasattr(held, "add"):
            if depth:
                fill(held.add(), depth - 1)
        elif field.message_type is not None:
            if depth:
                held.SetInParent()
                fill(held, depth - 1)
        elif hasattr(held, "extend"):
            held.extend(values)
        else:
            setattr(message, field.name, values[0])


def some(field: Any, depth: int) -> Iterator[Any]:
    if field.enum_type is not None:
        yield field.enum_type.values[-1].number
    elif field.cpp_type == field.CPPTYPE_STRING:
        yield f"{field.name}-{depth}"
    elif field.cpp_type == field.CPPTYPE_BOOL:
        yield True
    elif field.message_type is None:
        yield field.number + 1


@pytest.mark.parametrize(("generation", "count"), [("former", 32), ("later", 30)])
def test_a_generation_loses_nothing(generation: str, count: int, tmp_path: Path) -> None:
    """What its clients write is read here field by field, and written again in the same bytes."""
    descriptors = compiled(CLIENTS, tmp_path / "client.binpb", f"{generation}.proto")
    names = message_names(descriptors)
    assert count == len(names)
    theirs = pool_of(descriptors)
    by_name = {kind.__name__: kind for kind in KINDS}
    for name in names:
        kind = any_codec(by_name[name.removeprefix("si.v1.")])
        message = message_factory.GetMessageClass(theirs.FindMessageTypeByName(name))()
        fill(message)
        said = message.SerializeToString(deterministic=True)
        ours = kind.encode(kind.decode(said, no_stranger))
        again = type(message).FromString(ours)
        assert said == again.SerializeToString(deterministic=True), name


# -- what is not understood


def test_an_unknown_field_is_told_wherever_it_is() -> None:
    quantity = codec(si.Quantity).encode(si.Quantity(value=5)) + embedded(9, b"?")
    entry = embedded(1, b"vcore") + embedded(2, quantity)
    ask = embedded(1, b"key") + embedded(4, embedded(1, entry)) + embedded(99, b"?")
    data = embedded(1, ask) + embedded(1, ask) + embedded(3, b"rm") + embedded(77, b"?")
    told: list[str] = []
    request = codec(si.AllocationRequest).decode(data, told.append)
    expected = ["77", "asks.99", "asks.resourceAsk.resources.9"]
    assert [f"AllocationRequest.{path}" for path in expected] == told
    assert {"vcore": 5} == request.asks[0].resource_ask.amounts()  # type: ignore[union-attr]


def test_an_unknown_member_of_an_enumeration_is_refused() -> None:
    action = field_numbers(si.NodeInfo)["action"]
    data = embedded(1, bytes((action << 3, 77)))
    with pytest.raises(Malformed, match=r"NodeInfo\.action: there is no ActionFromRM 77"):
        codec(si.NodeRequest).decode(data, no_stranger)


@pytest.mark.parametrize(
    "data", [b"\xff", b"\x0a\x05ab", embedded(3, b"\xff\xfe"), b"\x0b" * 200], ids=repr
)
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(Malformed, match="AllocationRequest"):
        codec(si.AllocationRequest).decode(data, no_stranger)


def test_a_number_that_is_left_out_is_zero() -> None:
    """The default of the type here is 1, which is ours and not that of the wire."""
    ask = embedded(1, embedded(1, b"key"))
    request = codec(si.AllocationRequest).decode(ask, no_stranger)
    assert 0 == request.asks[0].max_allocations


# -- large answers


def test_a_large_answer_comes_in_pieces_that_say_the_same() -> None:
    tags = {"much": "x" * 1000}
    told = si.AllocationResponse(
        new=tuple(si.Allocation(allocation_key=f"{n}", allocation_tags=tags) for n in range(5_000)),
        released=tuple(si.AllocationRelease(allocation_key=f"{n}") for n in range(10)),
    )
    parts = [codec(si.AllocationResponse).decode(it, no_stranger) for _, it in pieces(told)]
    assert len(parts) > 2
    assert all(len(it) <= LARGEST for _, it in pieces(told))
    assert told.new == tuple(item for part in parts for item in part.new)
    assert told.released == tuple(item for part in parts for item in part.released)
    orders = [bool(part.released) for part in parts]
    assert sorted(orders) == orders


def test_an_item_that_is_too_large_by_itself_goes_as_it_is() -> None:
    told = si.NodeResponse(rejected=(si.RejectedNode(node_id="n", reason="x" * (LARGEST + 1)),))
    assert [codec(si.NodeResponse).encode(told)] == [data for _, data in pieces(told)]


def test_the_pool_is_our_own() -> None:
    """A program may have compiled the interface for itself, in the pool that all share."""
    from google.protobuf import descriptor_pool  # noqa: PLC0415 - the one that all share

    assert pool() is not descriptor_pool.Default()
    with pytest.raises(KeyError):
        descriptor_pool.Default().FindMessageTypeByName("si.v1.AllocationRequest")
