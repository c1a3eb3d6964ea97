"""A recording of an earlier version is read, whatever its messages are called by now."""

from collections import Counter
from pathlib import Path

import msgspec
import pytest
from recordings import records

from yunikorn_actors.messages.codec import GATHERED, MESSAGE_TYPES, RENAMED
from yunikorn_actors.messages.rm_events import Capabilities, RegistrationRequested, RMRegistration
from yunikorn_actors.state.allocations import Ask, AskSpec, Reservation, WaitingState
from yunikorn_actors.trace.read import TraceReader

RECORDED = Path(__file__).parent / "recorded" / "with-former-names.msgpack"


def test_it_names_all_that_is_named_otherwise_now() -> None:
    """Else it would not show that they are read."""
    types = {record["type"] for record in records(RECORDED) if record["record"] == "delivery"}
    assert types >= {*RENAMED, *GATHERED}
    assert RENAMED.keys().isdisjoint(MESSAGE_TYPES)


def test_each_message_is_read_as_what_it_is_now() -> None:
    recorded = [record for record in records(RECORDED) if record["record"] == "delivery"]
    with TraceReader(RECORDED) as trace:
        read = list(trace)
    names = Counter(RENAMED.get(record["type"], record["type"]) for record in recorded)
    assert names == Counter(type(delivery.message).__name__ for delivery in read)
    can = [
        delivery.message.capabilities
        for delivery in read
        if isinstance(delivery.message, RegistrationRequested | RMRegistration)
    ]
    assert [Capabilities(hears_states=True, has_predicates=True)] * 4 == can


@pytest.mark.parametrize("step", ["RMLost", "RMUnregistered", "RequestsMarked"])
def test_it_is_followed_from_the_gateway_to_context(step: str) -> None:
    with TraceReader(RECORDED) as trace:
        way = [it.mailbox for it in trace if type(it.message).__name__ == step]
    assert way[:2] == ["rm_proxy", "context"]


def test_a_field_with_another_name_is_written_and_read_as_before() -> None:
    """A partition as plain values stands in recordings: its reservations and asks are data."""
    kept = Reservation(
        application_id="a", key="k", node_id="n", required=False, made_ns=0, earmark={"vcore": 1}
    )
    spec = AskSpec(application_id="a", key="k", resource={})
    ask = Ask(spec=spec, created_ns=0, sequence=0, remaining=1, reported=WaitingState.RESERVED)
    for item, former in ((kept, ("claim", {"vcore": 1})), (ask, ("told", "RESERVED"))):
        written = msgspec.to_builtins(item)
        assert former in written.items()
        assert msgspec.convert(written, type(item)) == item
