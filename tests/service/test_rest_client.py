"""What is no service, or one that has gone mad, is one clear line for who asks it."""

import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from yunikorn_actors.cli import main
from yunikorn_actors.errors import ConnectionLost
from yunikorn_actors.service.rest import client
from yunikorn_actors.service.rest.client import Client

Answering = Callable[[bytes | Callable[[bytes], bytes]], str]


@pytest.fixture
def answering() -> Iterator[Answering]:
    """Have every connection answered with these bytes, or what becomes of its request."""
    listeners: list[socket.socket] = []

    def start(answer: bytes | Callable[[bytes], bytes]) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def serve() -> None:
            while True:
                try:
                    line, _ = listener.accept()
                except OSError:
                    return
                with line:
                    line.settimeout(60)
                    asked = line.recv(65536)
                    line.sendall(answer(asked) if callable(answer) else answer)

        threading.Thread(target=serve, daemon=True).start()
        return f"127.0.0.1:{listener.getsockname()[1]}"

    yield start
    for listener in listeners:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def ok(body: bytes, more: bytes = b"") -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n%s" % (len(body), more, body)


def refused(status: bytes, body: bytes) -> bytes:
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


MAD = {
    "nothing": (b"", "no answer in HTTP (RemoteDisconnected)"),
    "no HTTP": (b"\x00\x00\x12\x04\x00\n", "--server is the address of REST, not of gRPC"),
    "no JSON": (ok(b"<html>"), "answers something else than JSON"),
    "half a surrogate": (ok(b'["\\ud800"]'), "answers something else than JSON"),
    "nested too deep": (ok(b"[" * 100_000), "answers something else than JSON"),
    "another shape": (ok(b'[{"nam": 1}]'), "answers otherwise than this version understands"),
    "no list": (ok(b"7"), "answers otherwise than this version understands"),
    "half an answer": (ok(b"[]")[:-1], "has ended in the middle of its answer"),
    "no such route": (refused(b"404 Not Found", b"404: not found"), "has no /ws/v1/partitions: "),
    "a refusal without words": (refused(b"500 Oops", b"[]"), "500 Oops"),
    "moved": (refused(b"301 Moved", b""), "301 Moved"),
    "a core that is over": (
        refused(b"503 No", b'{"message": "the core is stopped", "description": "\\u001b[2J"}'),
        r"the core is stopped: \x1b[2J",
    ),
    "a header without end": (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000, "no answer in HTTP"),
}


@pytest.mark.parametrize(("answer", "says"), MAD.values(), ids=MAD)
def test_whatever_answers_there_is_one_line(
    answering: Answering, answer: bytes, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    server = answering(answer)
    assert 2 == main(["nodes", "--server", server])
    told = capsys.readouterr()
    assert ("", 1) == (told.out, told.err.count("\n"))
    assert told.err.startswith(f"{server}: ")
    assert says in told.err


COMMANDS = (
    "queues", "nodes", "nodes n1", "apps", "apps a1", "why", "why a1", "why a1 k1", "events",
    "events --follow", "config show --json", "drain n1", "undrain n1", "unregister rm-1",
)  # fmt: skip
SHAPES = {
    "a number": b"7",
    "text": b'"x"',
    "nothing": b"null",
    "a list of numbers": b"[7]",
    "an empty object": b"{}",
    "an object in a list": b'[{"children": 3, "queuename": "q", "asks": 7}]',
    "wrong types": b'{"queuename": 3, "nodeID": 3, "applicationID": [], "LowestID": "x"}',
    "deep queues": b'{"queuename": "q", "children": [' * 900 + b"{}" + b"]}" * 900,
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_an_answer_of_any_shape_raises_nothing(
    answering: Answering, command: str, shape: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    def answer(asked: bytes) -> bytes:
        return ok(b'[{"name": "default"}]' if b"/partitions " in asked else shape)

    status = main([*command.split(), "--server", answering(answer)])
    assert (status, capsys.readouterr().err.count("\n")) in {(0, 0), (1, 1), (2, 1)}


def test_nobody_there_is_said_with_what_to_look_at(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    assert 2 == main(["why", "--server", address])
    assert (
        "nobody answers there (Connection refused): is `yunikorn-actors" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    "address", ["localhost", "127.0.0.1:99999", "https://a:1", "http://a", "a:1/b", "::1:9", ""]
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ConnectionLost, match="is no address of a service: give HOST:PORT"):
        Client(address)


def test_an_address_may_be_given_as_a_browser_shows_it(
    answering: Answering, capsys: pytest.CaptureFixture[str]
) -> None:
    address = answering(lambda _: ok(b"[]"))
    assert 0 == main(["nodes", "--server", f"http://{address}/"])
    assert "no resource manager is registered at" in capsys.readouterr().err


def test_an_answer_without_end_is_cut_off(
    answering: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "ANSWER_MAX", 1_000)
    with pytest.raises(ConnectionLost, match="more than 1000 bytes"):
        Client(answering(ok(b"7" * 1_000_000))).get("a")


def test_a_line_without_end_is_cut_off(
    answering: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "LINE_MAX", 1_000)
    lines = Client(answering(ok(b'{"a": 1}\n{"b": ' + b"7" * 10_000))).lines("a")
    assert {"a": 1} == next(lines)
    with pytest.raises(ConnectionLost, match="the service has ended"):
        next(lines)


def test_a_service_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "REPLY_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(ConnectionLost, match=r"no answer within 0\.05 s"):
            Client(f"127.0.0.1:{port}").get("a")


LATER = b'{"message": "too many", "description": "ask later"}'
BUSY = refused(b"503 Busy\r\nRetry-After: %d", LATER)


def test_a_busy_service_is_asked_again_when_it_says(
    answering: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept, answers = list[float](), [BUSY % 3, BUSY % 3, ok(b"[]")]
    monkeypatch.setattr(client.time, "sleep", slept.append)
    assert Client(answering(lambda _: answers.pop(0))).post("x") == []
    assert slept == [3, 3]


def test_a_service_that_stays_busy_is_given_up(
    answering: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [0.0]

    def sleep(seconds: float) -> None:
        now_s[0] += seconds

    monkeypatch.setattr(client.time, "sleep", sleep)
    monkeypatch.setattr(client.time, "monotonic", lambda: now_s[0])
    with pytest.raises(ConnectionLost, match="too many: ask later; it was asked for 60 s"):
        Client(answering(BUSY % 25)).get("x")
    assert now_s == [50.0]


def test_a_busy_service_that_says_no_time_is_not_asked_again(answering: Answering) -> None:
    answers = [BUSY.replace(b"Retry-After: %d\r\n", b"")]
    with pytest.raises(ConnectionLost, match=r"too many: ask later$"):
        Client(answering(lambda _: answers.pop())).get("x")
