"""Messages as bytes: records of a trace, and digests.

A record is a MessagePack map that any language can read. Its first key tells the kind of record,
and the type of a message stands beside its payload. A digest is made from the same maps with sorted
keys, so it depends on the deliveries and their order alone.
"""

import hashlib
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import Struct

from yunikorn_actors.messages import followers as following
from yunikorn_actors.messages import predicates, queries, restart, rm_calls, rm_events, scheduling
from yunikorn_actors.messages.base import Cause, Delivery, Message
from yunikorn_actors.state.termination import ASKED_BACK

# What recordings of earlier versions name otherwise.
#
# A recording is kept for years, and a bug that it shows must still be found with it. So a message
# or a field that gets another name keeps a line here, by which it is read.

RENAMED: Final[dict[str, str]] = {
    "ResourceManagerLost": "RMLost",
    "ResourceManagerLeft": "RMUnregistered",
    "RMRequestsMarked": "RequestsMarked",
    "RMRequestsHandled": "RequestsHandled",
}
"""Each was the same message on another part of its way."""

GATHERED: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    message: {"capabilities": ("hears_states", "has_predicates", "has_preemption_predicates")}
    for message in ("RegistrationRequested", "RMRegistration")
}
"""Fields of a message that stand together in one of its fields now."""


PARTS: Final = frozenset({"RMUpdateAllocation", "RMReleaseAllocation", "RMApplicationUpdate"})
"""Messages with parts that were of one kind, or mere ids, in earlier versions."""


def with_parts(payload: dict[str, Any]) -> dict[str, Any]:
    """Write the parts of a message as this version does.

    An accepted application was an id without a queue. What the core asks for has a type of its
    own. RmProxy did not tell confirmations apart from other releases, and Context handles both
    alike, so all are read as releases.
    """
    changed: dict[str, list[dict[str, Any]]] = {}
    if "accepted" in payload:
        changed["accepted"] = [{"id": id_} for id_ in payload["accepted"]]
    if "releases" in payload:
        changed["releases"] = [{"part": "ReleaseItem"} | item for item in payload["releases"]]
    if "released" in payload:
        changed["released"] = [
            {"part": "AskedBack" if item["type"] in ASKED_BACK else "AnnouncedRelease"} | item
            for item in payload["released"]
        ]
    return payload | changed


def renewed(type_: str, payload: Any) -> Any:  # noqa: ANN401 - whatever a recording holds
    """Return the payload in today's form; one that has it already, or is no map, is unchanged."""
    if not isinstance(payload, dict):
        return payload
    for field, gathered in GATHERED.get(type_, {}).items():
        # Only if all of them are there: a part would be something else.
        if payload.keys() >= set(gathered):
            payload = payload | {field: {name: payload[name] for name in gathered}}
    return payload


FORMAT_VERSION: Final = 2
FORMATS_READ: Final = (1, 2)
"""The first one has no times of sending and handling, and does not tell who wrote it."""
UNKNOWN_BYTES_MAX: Final = 1_000_000
"""So much of a payload is read whose type is not known: nothing says what may stand in it."""

_encoder = msgspec.msgpack.Encoder()
_canonical = msgspec.msgpack.Encoder(order="sorted")

# Every message has its name as its type on the wire, so names are never given again.
MESSAGE_TYPES: dict[str, type[Message]] = {
    kind.__name__: kind
    for module in (
        following,
        predicates,
        queries,
        restart,
        rm_calls,
        rm_events,
        scheduling,
    )
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, Message) and kind is not Message
}


class _Head(
    Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="record", tag="delivery"
):
    """What stands beside the payload of a delivered message."""

    mailbox: str
    step: int
    sender: str
    cause: Cause
    stimulus: str
    at_ns: int
    type: str
    joined: bool = False
    sent_ns: int | None = None
    previous_took_ns: int | None = None


class DeliveryRecord(_Head, frozen=True, kw_only=True, omit_defaults=True, tag="delivery"):
    """One delivered message, to be written."""

    payload: Message | msgspec.Raw
    """A message, or the bytes of one that was encoded already."""


class StoredDelivery(_Head, frozen=True, kw_only=True, omit_defaults=True, tag="delivery"):
    """One delivered message that was read: its type says how to decode the payload."""

    payload: msgspec.Raw


class UnknownMessage(Message, frozen=True, kw_only=True):
    """A message of a type that this version does not know, as the recording has it."""

    type: str
    payload: Any


def record_of(delivery: Delivery) -> DeliveryRecord:
    """Leave out how long it took: this is what runs are compared by."""
    return DeliveryRecord(
        mailbox=delivery.mailbox,
        step=delivery.step,
        sender=delivery.sender,
        cause=delivery.cause,
        stimulus=delivery.stimulus,
        at_ns=delivery.at_ns,
        type=type(delivery.message).__name__,
        payload=delivery.message,
        joined=delivery.joined,
    )


def timed_record_of(
    delivery: Delivery, previous_took_ns: int | None, payload: Message | msgspec.Raw
) -> DeliveryRecord:
    """Return what a recording holds; a constructor of its own, as this is made for each message."""
    return DeliveryRecord(
        mailbox=delivery.mailbox,
        step=delivery.step,
        sender=delivery.sender,
        cause=delivery.cause,
        stimulus=delivery.stimulus,
        at_ns=delivery.at_ns,
        type=type(delivery.message).__name__,
        payload=payload,
        joined=delivery.joined,
        sent_ns=delivery.sent_ns,
        previous_took_ns=previous_took_ns,
    )


def encode(record: Struct | dict[str, Any]) -> bytes:
    return _encoder.encode(record)


def canonical(value: Any) -> bytes:  # noqa: ANN401 - whatever MessagePack can hold
    return _canonical.encode(value)


def delivery_of(record: StoredDelivery) -> Delivery:
    """Read a record back; raise msgspec.ValidationError if its payload is malformed."""
    return Delivery(
        mailbox=record.mailbox,
        step=record.step,
        sender=record.sender,
        cause=record.cause,
        stimulus=record.stimulus,
        at_ns=record.at_ns,
        message=_message_of(record),
        joined=record.joined,
        sent_ns=record.sent_ns,
        previous_took_ns=record.previous_took_ns,
    )


def _message_of(record: StoredDelivery) -> Message:
    name = RENAMED.get(record.type, record.type)
    kind = MESSAGE_TYPES.get(name)
    if kind is None:
        return UnknownMessage(type=record.type, payload=_unknown(record.payload))
    # Its fields have moved since, so it is read as plain values first.
    if record.type in GATHERED:
        return msgspec.convert(renewed(record.type, msgspec.msgpack.decode(record.payload)), kind)
    return decoded(name, record.payload)


def decoded(name: str, payload: msgspec.Raw) -> Message:
    """Read a message of a type of this version, also as an earlier one has written it."""
    kind = MESSAGE_TYPES[name]
    if name not in PARTS:
        return _decoder(kind).decode(payload)
    try:
        # First as it is written today: hardly any recording is of before.
        return _decoder(kind).decode(payload)
    except msgspec.ValidationError:
        return msgspec.convert(_with_parts(payload), kind)


def _with_parts(payload: msgspec.Raw) -> Any:  # noqa: ANN401 - whatever a recording holds
    plain = msgspec.msgpack.decode(payload)
    try:
        return with_parts(plain)
    except (TypeError, KeyError) as error:
        raise msgspec.ValidationError(f"its parts are not readable: {error}") from error


@cache
def _decoder(kind: type[Message]) -> msgspec.msgpack.Decoder[Message]:
    return msgspec.msgpack.Decoder(kind)


def _unknown(payload: msgspec.Raw) -> Any:  # noqa: ANN401 - whatever a later version has written
    size = len(memoryview(payload))
    if size > UNKNOWN_BYTES_MAX:
        return {"bytes": size}
    return msgspec.msgpack.decode(payload)


def has_unknown_fields(record: StoredDelivery, message: Message) -> bool:
    """Whether the payload has fields that were left out because nobody knows them here."""
    if isinstance(message, UnknownMessage) or len(memoryview(record.payload)) <= len(
        encode(message)
    ):
        return False
    former = {name for names in GATHERED.get(record.type, {}).values() for name in names}
    stored = msgspec.msgpack.decode(record.payload)
    return _says_more({name: it for name, it in stored.items() if name not in former}, message)


def _says_more(stored: Any, known: Any) -> bool:  # noqa: ANN401 - whatever a payload holds
    if isinstance(stored, dict) and isinstance(known, Struct):
        fields = {field.encode_name: field.name for field in msgspec.structs.fields(known)}
        return any(
            key != known.__struct_config__.tag_field
            and (key not in fields or _says_more(value, getattr(known, fields[key])))
            for key, value in stored.items()
        )
    if isinstance(stored, dict) and isinstance(known, dict):
        return any(_says_more(value, known.get(key)) for key, value in stored.items())
    if isinstance(stored, list) and isinstance(known, list | tuple):
        return any(_says_more(one, other) for one, other in zip(stored, known, strict=False))
    return False


def type_name(message: Message) -> str:
    return message.type if type(message) is UnknownMessage else type(message).__name__


# Sorted keys, so that the order in which a state was built says nothing.
def state_digest(state: dict[str, Any]) -> str:
    return hashlib.sha256(canonical(state)).hexdigest()


class TraceDigest:
    """SHA-256 over deliveries in their order."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, delivery: Delivery) -> None:
        # Without times: two runs of the same thing differ only in those.
        self._hash.update(canonical(record_of(delivery)))

    def hex(self) -> str:
        return self._hash.hexdigest()
