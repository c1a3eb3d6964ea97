"""What strangers may send: typed refusals, bounded memory, and others go on unharmed."""

import gc
import random
import socket
import weakref
from collections.abc import Callable

import pytest

pytest.importorskip("grpc")
import grpc
from calling import EXTENSION, PATIENCE_S, SCHEDULER, Caller, application, asks, node
from probes import wait_until
from raw_http2 import Hoarder

from yunikorn_actors import si
from yunikorn_actors.runtime.event_streams import Feed
from yunikorn_actors.service.rpc import admission as intake
from yunikorn_actors.service.rpc import extension, managers
from yunikorn_actors.service.rpc import messages as m
from yunikorn_actors.service.rpc import size_limit as weight
from yunikorn_actors.service.rpc.grpc_server import LARGEST_REQUEST, RpcPart
from yunikorn_actors.service.rpc.protobuf import LARGE, Malformed, codec, embedded, varint
from yunikorn_actors.service.service import Serving
from yunikorn_actors.si.wire import SiMessage

UNARY = [
    f"{SCHEDULER}/RegisterResourceManager",
    *(
        f"{EXTENSION}/{name}"
        for name in (
            "Unregister",
            "UpdateConfiguration",
            "Explain",
            "Expected",
            "Events",
            "Simulate",
        )
    ),
]
STREAMS = [
    *(f"{SCHEDULER}/{name}" for name in ("UpdateAllocation", "UpdateApplication", "UpdateNode")),
    f"{EXTENSION}/Converse",
]
EXPECTED = {"OK", "INVALID_ARGUMENT", "FAILED_PRECONDITION", "NOT_FOUND"}
RM = "rm-1"


@pytest.fixture
def address(serve: Callable[..., Serving]) -> str:
    return serve().parts["grpc"].address


def goes_on(address: str) -> None:
    """Somebody else finds everything in order."""
    with Caller(address) as caller:
        caller.register("other")
        assert caller.nodes().say(node("other")).hear(si.NodeResponse).accepted
        said = caller.applications().say(application("other")).hear(si.ApplicationResponse)
        assert said.accepted
        told = caller.allocations().say(asks("other", "a")).hear(si.AllocationResponse)
        assert ["a"] == [it.allocation_key for it in told.new]


def mutated(draw: random.Random) -> bytes:
    """A request with something wrong, or plain noise."""
    request = asks(RM, *(f"{n}" for n in range(3)))
    data = bytearray(codec(si.AllocationRequest).encode(request))
    for _ in range(int(draw.random() * 6)):
        data[int(draw.random() * len(data))] = int(draw.random() * 256)
    return bytes(data[: int(draw.random() * len(data) * 1.5)])


def test_noise_is_refused_with_a_typed_status(address: str) -> None:
    draw = random.Random(7)  # noqa: S311 - noise
    with Caller(address) as caller:
        caller.register(RM)
        caller.nodes().say(si.NodeRequest(rm_id=RM))
        for _ in range(40):
            for method in UNARY:
                call = caller.channel.unary_unary(method)
                code = call.future(mutated(draw), timeout=PATIENCE_S).code()
                assert code.name in EXPECTED, (method, code)
            for method in STREAMS:
                talk = caller.talk(method).say(mutated(draw))
                talk.say(mutated(draw)).say_no_more()
                if "Converse" in method:
                    assert talk.code().name in EXPECTED
                else:
                    talk.cancel()
    goes_on(address)


def test_a_message_that_is_too_large_is_refused(address: str) -> None:
    with Caller(address) as caller:
        refused, _ = caller.refusal(UNARY[0], b"\x00" * (LARGEST_REQUEST + 1))
        assert "RESOURCE_EXHAUSTED" == refused
    goes_on(address)


def test_what_is_nested_without_end_is_refused(address: str) -> None:
    data = b""
    for _ in range(5_000):
        data = embedded(99, data)
    with Caller(address) as caller:
        caller.call(UNARY[0], embedded(99, data) + embedded(1, b"deep"))
        group = b"\x9b\x06" * 5_000
        refused, _ = caller.refusal(UNARY[0], group)
        assert "INVALID_ARGUMENT" == refused
    goes_on(address)


MANY = 210_000
HEAVY = {
    "asks": (si.AllocationRequest, b"\x0a\x00" * MANY),
    "releases": (si.AllocationRequest, embedded(2, b"\x0a\x00" * MANY)),
    "what runs on a node": (si.NodeRequest, embedded(1, b"\x32\x00" * MANY)),
    "entries of a map": (si.RegisterResourceManagerRequest, b"\x32\x00" * MANY),
    "tags of one ask": (si.AllocationRequest, embedded(1, b"\x42\x00" * MANY)),
    "within what is said": (m.Said, embedded(2, b"\x0a\x00" * MANY)),
    "a number without end": (si.AllocationRequest, b"\x08" + b"\xff" * MANY),
    "groups": (si.AllocationRequest, b"\x0b\x0c" * MANY),
}


@pytest.mark.parametrize(("kind", "data"), HEAVY.values(), ids=HEAVY)
def test_what_is_short_to_send_and_long_to_keep_is_refused_before_it_is_read(
    kind: type[SiMessage], data: bytes
) -> None:
    with pytest.raises(Malformed, match=r"has (more than 200000 items|a group|a number of more)"):
        codec(kind).decode(data, pytest.fail)


def test_fields_are_counted_where_there_are_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weight, "PARTS_MAX", 100_000)
    with pytest.raises(Malformed, match="has more than 100000 fields; split the request"):
        codec(si.AllocationRequest).decode(b"\x12\x00" * 110_000, pytest.fail)


def test_a_large_request_that_says_something_is_read() -> None:
    request = asks(RM, *(f"ask-{n}" for n in range(3_000)))
    data = codec(si.AllocationRequest).encode(request)
    assert len(data) > LARGE
    assert request == codec(si.AllocationRequest).decode(data, pytest.fail)


def test_very_many_strange_fields_are_told_together() -> None:
    told: list[str] = []
    strange = b"".join(varint((1000 + n) << 3) + b"\x01" for n in range(40_000))
    codec(si.AllocationRequest).decode(strange, told.append)
    assert ["AllocationRequest, more than 65536 bytes of it,"] == told


def test_a_heavy_request_is_refused_by_the_service(address: str) -> None:
    with Caller(address) as caller:
        talk = caller.allocations().say(HEAVY["asks"][1])
        assert (grpc.StatusCode.INVALID_ARGUMENT, True) == (
            talk.code(),
            "split the request" in talk.details(),
        )
    goes_on(address)


def test_so_many_register_and_no_more(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(managers, "MANAGERS_MAX", 2)
    with Caller(address) as caller:
        for rm_id in ("a", "b", "a"):
            caller.register(rm_id)
        request = si.RegisterResourceManagerRequest(rm_id="c", policy_group="c")
        code, text = caller.refusal(UNARY[0], request)
        assert ("RESOURCE_EXHAUSTED", True) == (code, "2 resource managers are registered" in text)
        caller.call(f"{EXTENSION}/Unregister", m.ResourceManager(rm_id="b"))
        caller.register("c")


def test_who_registers_and_opens_no_stream_is_lost(
    serve: Callable[..., Serving], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(managers, "UNOPENED_S", 0.2)
    serving = serve()
    with Caller(serving.parts["grpc"].address) as caller:
        caller.register(RM)
        wait_until(lambda: serving.core.state_dump()["managers"][RM]["state"] == "Paused")


def test_a_registration_that_is_over_is_not_kept(serve: Callable[..., Serving]) -> None:
    part = serve().parts["grpc"]
    assert isinstance(part, RpcPart)
    with Caller(part.address) as caller:
        for opens in (True, False):
            caller.register(RM)
            kept = weakref.ref(part._managers._by_id[RM])
            if opens:
                assert caller.nodes().say(node(RM)).hear(si.NodeResponse).accepted
            caller.call(f"{EXTENSION}/Unregister", m.ResourceManager(rm_id=RM))
            wait_until(lambda kept=kept: gc.collect() >= 0 and kept() is None)


def test_a_state_dump_that_nobody_reads_is_given_up(
    serve: Callable[..., Serving], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extension, "READ_S", 0.2)
    monkeypatch.setattr(extension, "DUMPS_MAX", 1)
    serving = serve()
    monkeypatch.setattr(serving.core, "state_dump", lambda: {"large": "x" * (32 << 20)})
    address = serving.parts["grpc"].address
    options = [("grpc.http2.bdp_probe", 0), ("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(address, options) as slow, Caller(address) as other:
        unread = slow.unary_stream(f"{EXTENSION}/StateDump")(b"", timeout=PATIENCE_S)
        next(unread)
        # This one comes to its turn because the other has lost it.
        assert sum(map(len, other.calls(f"{EXTENSION}/StateDump"))) > 32 << 20
        with pytest.raises(grpc.RpcError, match="has taken nothing"):
            list(unread)


def test_a_stream_of_events_has_no_more_room_than_a_question_has(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rooms: list[int] = []

    def feed(room: int) -> Feed:
        rooms.append(room)
        return Feed(room)

    monkeypatch.setattr(extension, "Feed", feed)
    with Caller(address) as caller:
        asked = m.EventStreamRequest(history=2**40)
        next(caller.calls(f"{EXTENSION}/EventStream", asked))
    assert [extension.EVENTS_MOST] == rooms


def test_a_name_that_is_too_long_is_refused(address: str) -> None:
    with Caller(address) as caller:
        request = si.RegisterResourceManagerRequest(rm_id="x" * 1025)
        assert "INVALID_ARGUMENT" == caller.refusal(UNARY[0], request)[0]
        markup = si.RegisterResourceManagerRequest(rm_id="<b>\x00\n</b>", config="a: &a [*a]")
        code, text = caller.refusal(UNARY[0], markup)
        assert "INVALID_ARGUMENT" == code
        assert "anchors and aliases" in text
    goes_on(address)


def test_half_open_connections_and_other_protocols_harm_nobody(address: str) -> None:
    host, _, port = address.rpartition(":")
    sockets = [socket.create_connection((host, int(port))) for _ in range(50)]
    try:
        for it in sockets[:25]:
            it.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        for it in sockets[25:40]:
            it.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        goes_on(address)
    finally:
        for it in sockets:
            it.close()


MB = 1 << 20
NEVER_S = 1e6


def send_until_cut_off(hoarder: Hoarder, method: str) -> None:
    for stream in range(1, 200, 2):
        hoarder.call(stream, method)
        hoarder.send(stream, 3 * MB, of=4 * MB)
    hoarder.hear_to_the_end()


@pytest.mark.parametrize("method", [UNARY[0], STREAMS[0], "/grpc.health.v1.Health/Check"])
def test_who_holds_parts_of_many_large_messages_is_cut_off_alone(
    address: str, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(intake, "HELD_MAX", 8 * MB)
    with Caller(address) as caller, Hoarder(address, PATIENCE_S) as one:
        caller.register(RM)
        nodes = caller.nodes().say(node(RM))
        assert nodes.hear(si.NodeResponse).accepted
        one.call(1, method)
        one.send(1, 3 * MB, of=4 * MB)
        with Hoarder(address, PATIENCE_S) as many, pytest.raises(ConnectionError):
            send_until_cut_off(many, method)
        assert caller.applications().say(application(RM)).hear(si.ApplicationResponse).accepted
        one.send(1, 0, of=0)
        goes_on(address)


def test_who_is_cut_off_is_told_why(
    serve: Callable[..., Serving], monkeypatch: pytest.MonkeyPatch
) -> None:
    condemn = intake.Intake._condemn

    async def condemn_and_wait(it: intake.Intake, peer: str) -> None:
        """The next look ends the connection, even if the client has not read why: none comes."""
        monkeypatch.setattr(intake, "PERIOD_S", NEVER_S)
        await condemn(it, peer)

    monkeypatch.setattr(intake.Intake, "_condemn", condemn_and_wait)
    monkeypatch.setattr(intake, "HELD_MAX", MB // 8)
    # A slow look does not put off the next one.
    monkeypatch.setattr(intake, "SHARE", 0)
    serving = serve()
    with Caller(serving.parts["grpc"].address) as caller:
        caller.register(RM)
        # The core has no room, so the request stays where it is.
        monkeypatch.setattr(serving.core, "has_room", lambda _: False)
        monkeypatch.setattr(serving.core, "when_room", lambda *_: None)
        talk = caller.allocations().say(asks(RM, *(f"ask-{n}" for n in range(5_000))))
        assert grpc.StatusCode.RESOURCE_EXHAUSTED == talk.code()
        assert "send fewer at a time" in talk.details()


def test_what_was_dealt_with_is_not_held(serve: Callable[..., Serving]) -> None:
    part = serve().parts["grpc"]
    assert isinstance(part, RpcPart)
    with Caller(part.address) as caller:
        caller.register(RM)
        talk = caller.allocations()
        size = len(codec(si.AllocationRequest).encode(asks(RM, "0" * 1_000)))
        for n in range(MB // size):
            talk.say(asks(RM, f"{n:01000}")).say(si.AllocationRequest(rm_id=RM))
        last = talk.say(asks("nobody", "a"))
        assert grpc.StatusCode.INVALID_ARGUMENT == last.code(), last.details()
        wait_until(lambda: part._managers.intake.held < MB // 64)


@pytest.mark.slow
def test_ten_thousand_streams_wait_their_turn(address: str) -> None:
    """Only so many of one connection are open at a time; the others are not even known here."""
    with Caller(address) as caller:
        stream = caller.channel.unary_stream(f"{EXTENSION}/EventStream")
        calls = [stream(b"", timeout=PATIENCE_S) for _ in range(10_000)]
        goes_on(address)
        for call in calls:
            call.cancel()
    goes_on(address)


def test_streams_that_never_say_who_they_are_hold_nobody_up(address: str) -> None:
    with Caller(address) as silent:
        for _ in range(200):
            silent.nodes()
        goes_on(address)


# -- the conversation


def test_a_conversation_begins_with_its_opening(address: str) -> None:
    with Caller(address) as caller:
        talk = caller.talk(f"{EXTENSION}/Converse").say(m.Said(nodes=node(RM)))
        assert grpc.StatusCode.INVALID_ARGUMENT == talk.code()
        assert "Said.opening: must come first" in talk.details()
        joins = m.Said(opening=m.Opening(rm_id="nobody"))
        assert (
            grpc.StatusCode.FAILED_PRECONDITION
            == caller.talk(f"{EXTENSION}/Converse").say(joins).code()
        )


def test_questions_go_to_a_conversation_beside_the_three_streams(
    address: str,
) -> None:
    registration = si.RegisterResourceManagerRequest(rm_id=RM, policy_group=RM)
    opening = m.Opening(hears=(m.Kind.PREDICATES,), registration=registration)
    with Caller(address) as caller:
        talk = caller.talk(f"{EXTENSION}/Converse").say(m.Said(opening=opening))
        assert talk.hear(m.Told).registered is not None
        assert caller.nodes().say(node(RM)).hear(si.NodeResponse).accepted
        new = si.AddApplicationRequest(
            application_id="app", tags={"namespace": "dev"}, ugi=si.UserGroupInformation(user="ann")
        )
        request = si.ApplicationRequest(rm_id=RM, new=(new,))
        assert caller.applications().say(request).hear(si.ApplicationResponse).accepted
        stream = caller.allocations().say(asks(RM, "a"))
        question = talk.hear(m.Told)
        assert question.predicates is not None
        assert ("a", "node-1") == (question.predicates.allocation_key, question.predicates.node_id)
        # An answer to what nobody has asked changes nothing.
        for number in (question.number + 100, question.number):
            talk.say(m.Said(answer=m.Answer(number=number, verdict=m.Verdict())))
        assert ["a"] == [it.allocation_key for it in stream.hear(si.AllocationResponse).new]


def test_a_question_that_nobody_answers_is_a_no(serve: Callable[..., Serving]) -> None:
    serving = serve()
    registration = si.RegisterResourceManagerRequest(rm_id=RM, policy_group=RM)
    opening = m.Opening(hears=(m.Kind.PREDICATES,), registration=registration)
    with Caller(serving.parts["grpc"].address) as caller:
        talk = caller.talk(f"{EXTENSION}/Converse").say(m.Said(opening=opening))
        assert talk.hear(m.Told).registered is not None
        serving.core.update_node(node(RM))
        tags = {"namespace": "dev"}
        ugi = si.UserGroupInformation(user="ann")
        new = si.AddApplicationRequest(application_id="app", tags=tags, ugi=ugi)
        serving.core.update_application(si.ApplicationRequest(rm_id=RM, new=(new,)))
        serving.core.update_allocation(asks(RM, "a"))
        wait_until(lambda: "PREDICATES" in str(serving.core.state_dump()["waiting"]))
