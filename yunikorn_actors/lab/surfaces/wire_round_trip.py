"""Requests and answers as they are written on their way: each comes back as it was.

JSON has the names of the interface. Protobuf is looked at where it is installed.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.lab.harness import Oracle
from yunikorn_actors.lab.surfaces.first_difference import differing
from yunikorn_actors.machines.machine import InvariantViolation
from yunikorn_actors.messages.base import RM_PROXY, Delivery, is_manager
from yunikorn_actors.messages.codec import (
    StoredDelivery,
    canonical,
    delivery_of,
    encode,
    has_unknown_fields,
    record_of,
    type_name,
)
from yunikorn_actors.si.wire import SiMessage

try:
    from yunikorn_actors.service.rpc.protobuf import codec
except ImportError:
    codec = None  # type: ignore[assignment]


_RECORDED_EACH: Final = 25
"""One message in so many is read again as a record."""


class Encoded(Oracle):
    """Keeps what it has seen as JSON, for those who compare runs."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._seen = 0

    def delivered(self, _: Simulator, delivery: Delivery) -> None:
        self._seen += 1
        if self._seen % _RECORDED_EACH == 0:
            self.lines += recorded(delivery)
        if delivery.mailbox == RM_PROXY or is_manager(delivery.mailbox):
            for message in messages_in(delivery.message):
                faults = [*self._faults(message)]
                if faults:
                    raise InvariantViolation(f"{type(message).__name__}: " + "; ".join(faults))

    def _faults(self, message: SiMessage) -> Iterator[str]:
        kind = type(message)
        text = si.to_json(message)
        self.lines.append(text.decode())
        back = si.from_json(kind, text)
        if si.to_json(back) != text:
            yield f"as JSON it comes back otherwise: {text!r:.300}"
        if codec is not None:
            found = codec(kind).decode(codec(kind).encode(message), lambda _: None)
            # Maps come back in another order, and what the interface does not have stays here.
            if canonical(found) != canonical(back):
                yield f"as protobuf it comes back otherwise: {differing(back, found)}"


def recorded(delivery: Delivery) -> Iterator[str]:
    """Read a record of it as it was written, and as a later version might have written it."""
    plain = msgspec.msgpack.decode(encode(record_of(delivery)))
    payload = plain["payload"]
    inner = next((it for it in payload.values() if isinstance(it, dict)), payload)
    later: tuple[dict[str, Any], ...] = (
        plain,
        plain | {"payload": payload | {"later": 1}},
        plain | {"payload": {**payload, "later": {}, "of": [1]}, "type": "Later"},
    )
    for record in later:
        yield _read(record)
    inner["later"] = "1"
    yield _read(plain)


def _read(plain: dict[str, Any]) -> str:
    record = msgspec.msgpack.decode(msgspec.msgpack.encode(plain), type=StoredDelivery)
    try:
        message = delivery_of(record).message
    except msgspec.ValidationError as error:
        return str(error)
    return f"{type_name(message)} {has_unknown_fields(record, message)} {message!r}"


def messages_in(message: Any) -> Iterator[SiMessage]:  # noqa: ANN401 - a message of any kind
    """Return what of the interface a message of the core is about."""
    for name in message.__struct_fields__:
        value = getattr(message, name)
        for it in value if isinstance(value, tuple) else (value,):
            if isinstance(it, SiMessage):
                yield it
