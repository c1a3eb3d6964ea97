"""Who may do what: every route and every method of gRPC, with each kind of token."""

import http.client
import json
import logging
import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("grpc")
import grpc
from calling import EXTENSION, PATIENCE_S, SCHEDULER, Caller, node
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2
from probes import wait_until

from yunikorn_actors import ConnectionLost, SchedulerCore, connect, enable_logs, si
from yunikorn_actors.service import followed_file
from yunikorn_actors.service.access_policy import Access, TokenFiles
from yunikorn_actors.service.rest.http_server import all_routes
from yunikorn_actors.service.route_rights import NEEDS, Right, needed_for
from yunikorn_actors.service.rpc.protobuf import pool
from yunikorn_actors.service.service import Serving
from yunikorn_actors.service.tokens import CurrentTokens, FollowedTokens, Tokens, bearer

FULL, READ, OLD, WRONG = (
    f"{name}-token-of-nothing-0123456789" for name in ("full", "read", "old", "wrong")
)
OLD_READ = "old-read-token-of-nothing-0123456789"
RIGHTS = {
    "": Right.NONE,
    WRONG: Right.NONE,
    OLD: Right.NONE,
    OLD_READ: Right.NONE,
    READ: Right.READ,
    FULL: Right.FULL,
}
LOGIN = "POST /ws/v1/x/login"
METHODS = [it for it in NEEDS if it.startswith("/")]
ROUTES = [it for it in NEEDS if not it.startswith("/")]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_file, "LOOK_S", 0.02)


# -- the table is complete


def methods_of(name: str, pool_: Any) -> Iterator[str]:
    service = pool_.FindServiceByName(name)
    return (f"/{name}/{method.name}" for method in service.methods)


def served_methods() -> set[str]:
    known = pool()
    for module in (health_pb2, reflection_pb2):
        known.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    services = (
        "si.v1.Scheduler",
        "yunikorn_actors.v1.Extension",
        "grpc.health.v1.Health",
        "grpc.reflection.v1alpha.ServerReflection",
    )
    return {method for name in services for method in methods_of(name, known)}


def test_the_table_has_every_route_and_every_method() -> None:
    routes = {f"{route.method} {route.path}" for route in all_routes()}
    assert routes | served_methods() == set(NEEDS)


def test_what_stands_in_no_list_needs_the_full_token() -> None:
    assert Right.FULL is needed_for("GET /ws/v1/x/new") is needed_for("/si.v1.Scheduler/New")


def test_every_post_but_these_changes_something() -> None:
    """A route that changes the core by mistake stands among those that read: look at it twice."""
    posts = {it for it in ROUTES if it.startswith("POST") and NEEDS[it] < Right.FULL}
    harmless = {"POST /ws/v1/validate-conf", "POST /ws/v1/x/simulate", "POST /ws/v1/x/logout"}
    assert {*harmless, LOGIN} == posts


# -- all of it, with each kind of token


@pytest.fixture(scope="module")
def renewed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A service whose tokens have been changed once while it ran."""
    path = tmp_path_factory.mktemp("tokens") / "token"
    path.write_text(f"{OLD}\n{OLD_READ}\n")
    path.chmod(0o600)
    files = TokenFiles(path)
    old, read = files.read()
    access = Access(token=old, read_token=read, files=files)
    addresses = {"grpc": "127.0.0.1:0", "rest": "127.0.0.1:0"}
    with Serving(SchedulerCore(), addresses, access=access) as serving:
        path.write_text(f"{FULL}\n{READ}\n")
        serving.reload()
        wait_until(lambda: code_of(serving, f"{EXTENSION}/Events", FULL) == "OK")
        wait_until(lambda: asked(serving, "GET /ws/v1/clusters", FULL).status == 200)
        yield serving


def asked(serving: Serving, route: str, token: str, **headers: str) -> http.client.HTTPResponse:
    method, _, path = route.partition(" ")
    path = re.sub(r"\{\w+\}", "x", path)
    shown = {"Authorization": f"Bearer {token}"} if token else {}
    body = FULL.encode() if route == LOGIN else b""
    connection = http.client.HTTPConnection(serving.parts["rest"].address, timeout=PATIENCE_S)
    try:
        connection.request(method, path, body, shown | headers)
        response = connection.getresponse()
        if response.status != 200 or ("stream" not in path and "overview" not in path):
            response.body = response.read()  # type: ignore[attr-defined]
        return response
    finally:
        connection.close()


def logged_in(serving: Serving, token: str) -> str:
    """Show a token as a browser does, and return the cookie for it."""
    connection = http.client.HTTPConnection(serving.parts["rest"].address, timeout=PATIENCE_S)
    connection.request("POST", "/ws/v1/x/login", token.encode())
    with connection.getresponse() as response:
        cookie = response.headers["Set-Cookie"].partition(";")[0]
    connection.close()
    return cookie


def code_of(serving: Serving, method: str, token: str) -> str:
    """Call with an empty message; a stream is opened, and left after its first answer."""
    with Caller(serving.parts["grpc"].address, token=token) as caller:
        call = caller.channel.stream_stream(method)(
            iter([b""]), timeout=PATIENCE_S, metadata=caller.metadata
        )
        try:
            next(call, None)
        except grpc.RpcError:
            return str(call.code().name)
        finally:
            call.cancel()
    return "OK"


@pytest.mark.parametrize("route", ROUTES)
def test_a_route_wants_the_token_of_its_kind(renewed: Serving, route: str) -> None:
    for token, right in RIGHTS.items():
        response = asked(renewed, route, token)
        if right >= NEEDS[route]:
            assert response.status not in {401, 403}, token
            continue
        assert (401 if right is Right.NONE else 403) == response.status, token
        value = json.loads(response.body)  # type: ignore[attr-defined]
        named = "this needs the full token" if right else "is missing or wrong"
        assert named in value["message"]
        assert token not in str(value) or not token


@pytest.mark.parametrize("method", METHODS)
def test_a_method_wants_the_token_of_its_kind(renewed: Serving, method: str) -> None:
    refused = {Right.NONE: "UNAUTHENTICATED", Right.READ: "PERMISSION_DENIED"}
    for token, right in RIGHTS.items():
        code = code_of(renewed, method, token)
        if right >= NEEDS[method]:
            assert code not in refused.values(), token
        else:
            assert refused[right] == code, token


def test_the_scheme_may_be_written_in_any_case(renewed: Serving) -> None:
    for scheme in ("bearer", "BEARER", "Bearer"):
        shown = f"{scheme} {FULL}"
        assert 200 == asked(renewed, "GET /ws/v1/clusters", "", Authorization=shown).status
        with Caller(renewed.parts["grpc"].address) as caller:
            caller.metadata = [("authorization", shown)]
            caller.call(f"{EXTENSION}/Events")
    for shown in (FULL, f"Basic {FULL}", f"Bearer{FULL}", f"Bearer  {FULL}"):
        assert 401 == asked(renewed, "GET /ws/v1/clusters", "", Authorization=shown).status


def test_a_browser_that_shows_the_read_token_reads_alone(renewed: Serving) -> None:
    cookie = logged_in(renewed, READ)
    assert 200 == asked(renewed, "GET /ws/v1/clusters", "", Cookie=cookie).status
    assert 403 == asked(renewed, "POST /ws/v1/x/config", "", Cookie=cookie).status


def test_a_program_with_the_read_token_learns_which_one_it_needs(renewed: Serving) -> None:
    address = renewed.parts["grpc"].address
    with (
        pytest.raises(ConnectionLost, match="this needs the full token"),
        connect(address, token=READ) as s,
    ):
        s.add_node("node-1", vcore=1)


# -- a change ends what goes on


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(f"{OLD}\n{READ}\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def service(path: Path) -> Iterator[Serving]:
    addresses = {"grpc": "127.0.0.1:0", "rest": "127.0.0.1:0"}
    access = Access(token=OLD, read_token=READ, files=TokenFiles(path))
    with Serving(SchedulerCore(), addresses, access=access) as serving:
        yield serving


def stream_at(stack: ExitStack, serving: Serving, path: str, **headers: str) -> socket.socket:
    """Open a stream on a connection of its own, and read its beginning."""
    host, _, port = serving.parts["rest"].address.rpartition(":")
    line = stack.enter_context(socket.create_connection((host, int(port)), PATIENCE_S))
    lines = [
        f"GET {path} HTTP/1.1",
        f"Host: {host}:{port}",
        *(f"{k}: {v}" for k, v in headers.items()),
    ]
    line.sendall("\r\n".join([*lines, "", ""]).encode())
    begun = b""
    while b"\r\n\r\n" not in begun or not begun.partition(b"\r\n\r\n")[2]:
        begun += line.recv(65536)
    assert begun.startswith(b"HTTP/1.1 200")
    return line


def has_ended(line: socket.socket) -> bool:
    """Read to the end, which is not polite: the stream is cut off."""
    with suppress(ConnectionResetError):
        while line.recv(65536):
            pass
    return True


def test_a_changed_file_ends_the_streams_of_the_old_token_and_no_others(
    service: Serving, path: Path
) -> None:
    cookie = logged_in(service, OLD)
    old, reading = {"Authorization": f"Bearer {OLD}"}, {"Authorization": f"Bearer {READ}"}
    events, page = "/ws/v1/events/stream", "/ws/v1/x/overview"
    stack = ExitStack()
    ending = [
        stream_at(stack, service, events, **old),
        stream_at(stack, service, page, **old),
        stream_at(stack, service, page, Cookie=cookie),
    ]
    staying = stream_at(stack, service, events, **reading)
    address = service.parts["grpc"].address
    with stack, Caller(address, token=OLD) as former, Caller(address, token=READ) as reader:
        former.register("rm-1")
        nodes = former.nodes()
        nodes.say(node("rm-1", "node-1")).hear(si.NodeResponse)
        former_events = former.calls(f"{EXTENSION}/EventStream")
        next(former_events)
        reader_events = reader.calls(f"{EXTENSION}/EventStream")
        next(reader_events)
        reflecting = former.talk("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
        reflecting.say(b"")

        path.write_text(f"{FULL}\n{READ}\n")
        assert grpc.StatusCode.UNAUTHENTICATED == nodes.code() == reflecting.code()
        assert "is not in force any more" in nodes.details()
        with pytest.raises(grpc.RpcError, match="is not in force any more"):
            list(former_events)
        assert all(map(has_ended, ending))
        assert "UNAUTHENTICATED" == former.refusal(f"{EXTENSION}/Events")[0]
        assert 401 == asked(service, "GET /ws/v1/clusters", "", Cookie=cookie).status
        # Its streams have ended, so the resource manager is lost; what it has stays for it.
        wait_until(lambda: service.core.state_dump()["managers"]["rm-1"]["state"] == "Paused")
        with Caller(address, token=FULL) as again:
            again.register("rm-1")
            assert next(reader_events), "those of the other token go on"
            assert staying.recv(65536)


def test_tokens_may_change_places(service: Serving, path: Path) -> None:
    """A stream keeps the right that it needs, or ends: the tokens are the same, their rights not."""
    with Caller(service.parts["grpc"].address, token=OLD) as caller:
        caller.register("rm-1")
        nodes = caller.nodes()
        nodes.say(node("rm-1", "node-1")).hear(si.NodeResponse)
        path.write_text(f"{READ}\n{OLD}\n")
        assert grpc.StatusCode.UNAUTHENTICATED == nodes.code()
    assert "PERMISSION_DENIED" == code_of(service, f"{SCHEDULER}/UpdateNode", OLD)


def test_a_read_side_that_is_replaced_has_the_tokens_in_force(service: Serving, path: Path) -> None:
    path.write_text(f"{FULL}\n{READ}\n")
    wait_until(lambda: asked(service, "GET /ws/v1/clusters", FULL).status == 200)
    part: Any = service.parts["rest"]
    pid = part._process.pid
    part._process.kill()
    wait_until(lambda: part._process.pid != pid and part._ready.is_set())
    assert 401 == asked(service, "GET /ws/v1/clusters", OLD).status
    assert 200 == asked(service, "GET /ws/v1/clusters", FULL).status


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "No such file"),
        ("", "at least 16 characters"),
        ("half-wr", "at least 16 characters"),
        (f"{FULL}\nhalf", "at least 16 characters"),
        (f"{FULL}\n{READ}\nthree-lines-of-tokens", "two lines at most"),
        (f"{FULL}\n{FULL}\n", "is the full token"),
        ("\udcff" * 20, "plain ASCII"),
        ("folder", "Is a directory"),
        ("pipe", "it is a pipe"),
    ],
)
def test_what_cannot_be_read_keeps_the_former_tokens(
    text: str | None, says: str, path: Path, log: pytest.LogCaptureFixture
) -> None:
    current = CurrentTokens(Tokens(OLD, READ))
    followed = FollowedTokens(TokenFiles(path), current)
    path.unlink()
    if text == "folder":
        path.mkdir()
    elif text == "pipe":
        import os  # noqa: PLC0415 - for this case alone

        os.mkfifo(path)
    elif text is not None:
        path.write_bytes(text.encode("ascii", "surrogateescape"))
    for _ in range(3):
        followed.reload()
        followed._look()
    assert Tokens(OLD, READ) == current.now
    (line,) = [it for it in log.messages if "the former ones stay in force" in it]
    assert says in line
    assert f"the tokens of {path} are refused" in line
    assert "give it another one" in line or "is the full token" not in line
    assert not any(token in log.text for token in (FULL, OLD, READ))


def test_a_file_that_is_being_written_is_not_taken_until_it_stands(path: Path) -> None:
    current = CurrentTokens(Tokens(OLD, READ))
    followed = FollowedTokens(TokenFiles(path), current)
    for text in (FULL[:-4], f"{FULL}\n", f"{FULL}\n{READ[:-3]}", f"{FULL}\n{READ}"):
        path.write_text(text)
        followed._look()
        assert Tokens(OLD, READ) == current.now
    followed._look()
    assert Tokens(FULL, READ) == current.now


def test_the_read_token_may_have_a_file_of_its_own(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "read"
    other.write_text(READ)
    path.write_text(FULL)
    assert (FULL, READ) == TokenFiles(path, other).read()
    for files, says in (
        ((None, other), "needs --token-file beside it"),
        ((path, path), "is the full token"),
        ((path, tmp_path / "none"), "--read-token-file .*none cannot be read: No such file"),
    ):
        with pytest.raises(ValueError, match=says):
            TokenFiles(*files).read()
    path.write_text(f"{FULL}\n{READ}")
    with pytest.raises(ValueError, match="has a second line, too"):
        TokenFiles(path, other).read()


# -- secrets


def test_a_file_that_others_can_read_is_warned_of(
    path: Path, log: pytest.LogCaptureFixture
) -> None:
    files = TokenFiles(path)
    assert [] == files.exposed()
    path.chmod(0o640)
    followed = FollowedTokens(files, CurrentTokens(Tokens(OLD, READ)))
    followed.start()
    followed.stop(PATIENCE_S)
    assert f"other users can read {path} (mode 0640): `chmod 600 {path}`" in log.text


def test_no_token_stands_in_a_log_or_in_a_text(
    service: Serving, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    end = enable_logs(logging.getLogger("of the service"), "DEBUG")
    with caplog.at_level(logging.DEBUG):
        path.write_text(f"{FULL}\n{READ}\n")
        wait_until(lambda: code_of(service, f"{EXTENSION}/Events", FULL) == "OK")
        for token in (OLD, READ, WRONG):
            code_of(service, f"{SCHEDULER}/UpdateNode", token)
            asked(service, "POST /ws/v1/x/config", token)
    end()
    texts = [caplog.text, repr(service.access), repr(service.tokens.now), repr(Tokens(FULL, READ))]
    assert "the tokens of" in caplog.text
    for token in (FULL, READ, OLD, WRONG):
        assert not any(token in text for text in texts)


def test_every_byte_may_be_shown() -> None:
    assert b"" == bearer(b"") == bearer(b"Bearer") == bearer(b"bearer ")
    for shown in (b"", b"\xff", b"\x00" * 2000, "é".encode()):
        assert Right.NONE is Tokens(FULL, READ).right_of(shown)
        assert Right.NONE is Tokens(FULL).right_of(shown)
        assert Right.FULL is Tokens().right_of(shown)
