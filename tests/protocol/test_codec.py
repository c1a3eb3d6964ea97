"""Messages come back from their bytes as they were, and digests depend on content alone."""

from typing import Any

import msgpack  # type: ignore[import-untyped]  # it ships no types
import msgspec
import pytest
import ranges
from drawn import values_of
from hypothesis import given, settings

from yunikorn_actors.config import ExtraConfig
from yunikorn_actors.messages.base import Cause, Delivery, Message
from yunikorn_actors.messages.codec import (
    MESSAGE_TYPES,
    UNKNOWN_BYTES_MAX,
    StoredDelivery,
    TraceDigest,
    UnknownMessage,
    delivery_of,
    encode,
    record_of,
    state_digest,
    type_name,
)
from yunikorn_actors.messages.queries import StateDump
from yunikorn_actors.messages.rm_events import Capabilities, RMRegistration
from yunikorn_actors.messages.scheduling import ProposalRejected, RunCycle
from yunikorn_actors.state.proposals import Refusal


def delivered(message: Message, **fields: Any) -> Delivery:
    given_fields = {
        "mailbox": "context", "step": 7, "sender": "rm_proxy", "cause": Cause("rm_proxy", 3),
        "stimulus": "allocation-1", "at_ns": 1_767_225_600_000_000_001,
    }  # fmt: skip
    return Delivery(**{**given_fields, **fields}, message=message)


def read_back(data: bytes) -> Delivery:
    """By the way of any language: MessagePack to plain values, and back."""
    plain = msgpack.unpackb(data, strict_map_key=True)
    return delivery_of(msgspec.msgpack.decode(msgpack.packb(plain), type=StoredDelivery))


@ranges.examples(6, 400)
@pytest.mark.parametrize("kind", MESSAGE_TYPES.values(), ids=lambda kind: kind.__name__)
def test_each_message_comes_back_as_it_was(kind: type[Message], examples: int) -> None:
    @settings(max_examples=examples)
    @given(message=values_of(kind))
    def round_trip(message: Message) -> None:
        delivery = delivered(message)
        back = read_back(encode(record_of(delivery)))
        assert delivery == back
        assert type(message) is type(back.message)
        assert _types(message) == _types(back.message)

    round_trip()


def _types(value: object) -> object:
    """Types all the way down: numbers and enumerations are equal where they are not the same."""
    if isinstance(value, msgspec.Struct):
        return (type(value), [_types(getattr(value, name)) for name in value.__struct_fields__])
    if isinstance(value, tuple | list):
        return (type(value), [_types(item) for item in value])
    if isinstance(value, dict):
        return (dict, {key: _types(item) for key, item in value.items()})
    return type(value)


def test_the_bytes_of_a_delivery_are_these() -> None:
    cycle = RunCycle(partition="[rm-1]default", epoch=1)
    expected = (
        b"\x89\xa6record\xa8delivery\xa7mailbox\xa7context\xa4step\x07\xa6sender\xa8rm_proxy"
        b"\xa5cause\x92\xa8rm_proxy\x03\xa8stimulus\xacallocation-1"
        b"\xa5at_ns\xcf\x18\x86\x72\x51\xed\xfa\x00\x01\xa4type\xa8RunCycle"
        b"\xa7payload\x82\xa9partition\xad[rm-1]default\xa5epoch\x01"
    )
    assert expected == encode(record_of(delivered(cycle)))


@pytest.mark.parametrize("hears", [False, True])
def test_what_a_callback_can_do_is_read_as_it_was_written_before(hears: bool) -> None:
    """These were three fields of the message itself."""
    can = Capabilities(hears_states=hears, has_preemption_predicates=True)
    message = RMRegistration(
        rm_id="rm-1", version="", policy_group="", build_info={}, config=None, extra_config={},
        extra=ExtraConfig(), callback="rm:rm-1#1", capabilities=can, reply_to="reply:1",
    )  # fmt: skip
    record = msgpack.unpackb(encode(record_of(delivered(message))))
    record["payload"] |= record["payload"].pop("capabilities")
    assert message == read_back(msgpack.packb(record)).message
    del record["payload"]["has_predicates"]
    with pytest.raises(msgspec.ValidationError, match="missing required field `capabilities`"):
        read_back(msgpack.packb(record))


def test_a_type_that_is_not_known_is_kept_with_its_payload() -> None:
    record = msgpack.unpackb(encode(record_of(delivered(RunCycle(partition="p", epoch=1)))))
    record["type"] = "Go"
    back = read_back(msgpack.packb(record)).message
    assert UnknownMessage(type="Go", payload={"partition": "p", "epoch": 1}) == back
    assert "Go" == type_name(back)


def test_a_large_payload_of_a_type_that_is_not_known_is_counted() -> None:
    record = msgpack.unpackb(encode(record_of(delivered(RunCycle(partition="p", epoch=1)))))
    record |= {"type": "Go", "payload": [{}] * UNKNOWN_BYTES_MAX}
    (size,) = read_back(msgpack.packb(record)).message.payload.values()  # type: ignore[attr-defined]
    assert size > UNKNOWN_BYTES_MAX


def test_a_payload_of_another_type_is_refused() -> None:
    record = msgpack.unpackb(encode(record_of(delivered(RunCycle(partition="p", epoch=1)))))
    record["payload"] = {"partition": 1, "epoch": 1}
    with pytest.raises(msgspec.ValidationError, match="partition"):
        read_back(msgpack.packb(record))


# -- digests


def digest(*deliveries: Delivery) -> str:
    trace = TraceDigest()
    for delivery in deliveries:
        trace.add(delivery)
    return trace.hex()


def dump(state: dict[str, Any]) -> Delivery:
    return delivered(StateDump(state=state))


STATE = {"a": 1, "b": {"c": 2, "d": 3}}
SAME_STATE = {"b": {"d": 3, "c": 2}, "a": 1}
ONE = dump(STATE)


def test_a_digest_does_not_depend_on_the_order_in_which_a_dict_was_filled() -> None:
    assert digest(ONE) == digest(dump(SAME_STATE))
    assert state_digest(STATE) == state_digest(SAME_STATE)
    assert encode(record_of(ONE)) != encode(record_of(dump(SAME_STATE)))


DIFFERENT = {
    "payload": dump({"a": 2, "b": {"c": 2, "d": 3}}),
    "deep in the payload": dump({"a": 1, "b": {"c": 2, "d": 4}}),
    "type": delivered(RunCycle(partition="p", epoch=1)),
    "mailbox": ONE._replace(mailbox="rm_proxy"),
    "step": ONE._replace(step=8),
    "sender": ONE._replace(sender="gateway"),
    "cause": ONE._replace(cause=Cause("rm_proxy", 4)),
    "stimulus": ONE._replace(stimulus="allocation-2"),
    "time": ONE._replace(at_ns=1),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_a_digest_depends_on(what: str) -> None:
    assert digest(ONE) != digest(DIFFERENT[what])


def test_a_digest_depends_on_the_order_of_delivery() -> None:
    rejected = delivered(ProposalRejected(proposal_id=1, reason=Refusal.NODE_FULL))
    assert digest(ONE, rejected) != digest(rejected, ONE)
    assert digest(ONE) != digest(ONE, ONE)
