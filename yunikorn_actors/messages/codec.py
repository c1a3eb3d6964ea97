"""Messages as bytes: records of a trace, and digests.

A record is a MessagePack map that any language can read. Its first key tells the kind of record,
and the type of a message stands beside its payload. A digest is made from the same maps with sorted
keys, so it depends on the deliveries and their order alone.
"""

import hashlib
from typing import Any

import msgspec
from msgspec import Struct

from yunikorn_actors.messages import events, predicates, queries, rm_calls, rm_events, scheduling
from yunikorn_actors.messages.base import Cause, Delivery, Message
from yunikorn_actors.messages.older import RENAMED, renewed

FORMAT_VERSION = 1

_encoder = msgspec.msgpack.Encoder()
_canonical = msgspec.msgpack.Encoder(order="sorted")

MESSAGE_TYPES: dict[str, type[Message]] = {
    kind.__name__: kind
    for module in (events, predicates, queries, rm_calls, rm_events, scheduling)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, Message) and kind is not Message
}


class DeliveryRecord(
    Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="record", tag="delivery"
):
    """One delivered message as a trace holds it; read back, the payload is plain values."""

    mailbox: str
    step: int
    sender: str
    cause: Cause
    stimulus: str
    at_ns: int
    type: str
    payload: Any
    joined: bool = False


class UnknownMessage(LookupError):  # noqa: N818 - it says what the record holds
    """A record names a type of message that does not exist."""


def record_of(delivery: Delivery) -> DeliveryRecord:
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


def encode(record: Struct | dict[str, Any]) -> bytes:
    return _encoder.encode(record)


def canonical(value: Any) -> bytes:  # noqa: ANN401 - whatever MessagePack can hold
    return _canonical.encode(value)


def delivery_of(record: DeliveryRecord) -> Delivery:
    """Read a record back; raise UnknownMessage or msgspec.ValidationError if it is malformed."""
    kind = MESSAGE_TYPES.get(RENAMED.get(record.type, record.type))
    if kind is None:
        raise UnknownMessage(f"{record.type!r} is no type of message")
    return Delivery(
        mailbox=record.mailbox,
        step=record.step,
        sender=record.sender,
        cause=record.cause,
        stimulus=record.stimulus,
        at_ns=record.at_ns,
        message=msgspec.convert(renewed(record.type, record.payload), kind),
        joined=record.joined,
    )


def state_digest(state: dict[str, Any]) -> str:
    return hashlib.sha256(canonical(state)).hexdigest()


class TraceDigest:
    """SHA-256 over deliveries in their order."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, delivery: Delivery) -> None:
        self._hash.update(canonical(record_of(delivery)))

    def hex(self) -> str:
        return self._hash.hexdigest()
