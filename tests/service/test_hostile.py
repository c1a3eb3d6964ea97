"""What strangers may send: typed refusals, bounded memory, and others go on unharmed."""

import random
import socket
from collections.abc import Callable

import pytest

pytest.importorskip("grpc")
import grpc
from calling import EXTENSION, PATIENCE_S, SCHEDULER, Caller, application, asks, node
from probes import wait_until

from yunikorn_actors import si
from yunikorn_actors.service.rpc import messages as m
from yunikorn_actors.service.rpc.protobuf import codec, embedded
from yunikorn_actors.service.rpc.server import LARGEST_REQUEST
from yunikorn_actors.service.serving import Serving

UNARY = [
    f"{SCHEDULER}/RegisterResourceManager",
    *(f"{EXTENSION}/{name}" for name in ("Unregister", "UpdateConfiguration", "Explain", "Events")),
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
