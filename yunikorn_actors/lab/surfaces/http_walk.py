"""Requests to the HTTP server of a core at which a program works; what each has to be answered.

The server is the read side of the same process, on a port of its own. What a status has to be is
worked out from the request alone, in the order in which the rules are written: whether the host is
ours, whether a page of another origin asks, what the token allows, whether there is such a route,
whether there is such a thing. Answers are read by the client of the standard library.
"""

import gzip
import json
import re
import socket
from collections import deque
from collections.abc import Iterator, Mapping
from http.client import HTTPException, HTTPResponse
from typing import Any, Final, NamedTuple, Self

import msgspec

from yunikorn_actors import si
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces.front_walk import Heard, OnThreads, walk
from yunikorn_actors.service.listener import Site, Standing
from yunikorn_actors.service.rest.in_process import RestPart
from yunikorn_actors.service.rest.request_guard import Guard
from yunikorn_actors.service.tokens import CurrentTokens, Tokens

_ADDRESS: Final = "127.0.0.1:0"
_NAME: Final = "cluster.example"
_FULL, _READ, _OTHER = "full-of-the-laboratory", "read-of-the-laboratory", "another-token"
_WRONG_MAX: Final = 10
_WRONG_S: Final = 60.0
_SESSION_S: Final = 12 * 3_600
_PATIENCE_S: Final = 20.0
_OFTEN: Final = 3
"""After one step of the program in so many requests are made."""
_MOST: Final = 4
_OWN: Final = "/ws/v1/x"
_PART: Final = "/ws/v1/partition/default"
_TELLS_OF_ITSELF: Final = frozenset(
    {"/ws/v1/metrics", f"{_OWN}/mailboxes", "/debug/stack", "/ws/v1/stack", f"{_OWN}/trace", "/"}
)
"""What is answered there is another text each time, or a file."""
_UNSTEADY_HEADERS: Final = frozenset(
    {"date", "set-cookie", "content-length", "content-encoding", "transfer-encoding"}
)
_READERS: Final = re.compile(r'"eventStreams": \[[^]]*\]')
"""In a dump; that one of them has gone is noticed when something is sent to it."""
NONE, READ, FULL = range(3)
_OK, _DONE, _MOVED, _BAD, _NO_TOKEN, _NOT_SO = 200, 204, 301, 400, 401, 405


class Path(NamedTuple):
    """A path that is asked for, and what is known of it."""

    path: str
    needs: int = READ
    method: str = "GET"
    status: int = 200
    """What it is answered if nothing is in the way."""
    is_closed: bool = False
    """Whether pages of other origins may not ask."""
    body: bytes = b""


_ASKED: Final = (
    Path("/ws/v1/clusters"),
    Path("/ws/v1/partitions"),
    Path(f"{_PART}/queues"),
    Path(f"{_PART}/nodes"),
    Path(f"{_PART}/applications/active"),
    Path(f"{_PART}/applications/odd", status=400),
    Path(f"{_PART}/queue/root.batch"),
    Path(f"{_PART}/queue/root.batch/applications"),
    Path(f"{_PART}/queue/root.nowhere", status=404),
    Path(f"{_PART}/node/nowhere", status=404),
    Path(f"{_PART}/application/nobody", status=404),
    Path(f"{_PART}/placementrules"),
    Path(f"{_PART}/usage/users"),
    Path(f"{_PART}/usage/user/nobody", status=404),
    Path("/ws/v1/partition/other/queues", status=404),
    Path("/ws/v1/events/batch?count=5"),
    Path("/ws/v1/events/batch?count=0", status=400),
    Path("/ws/v1/events/batch?count=x", status=400),
    Path("/ws/v1/events/batch?count=", status=400),
    Path("/ws/v1/events/batch?start=99999"),
    Path("/ws/v1/config"),
    Path("/ws/v1/metrics", is_closed=True),
    Path("/ws/v1/scheduler/healthcheck"),
    Path("/ws/v1/history/apps"),
    Path("/ws/v1/validate-conf", method="POST", body=b"partitions: 3", is_closed=True),
    Path("/debug/fullstatedump", is_closed=True),
    Path("/ws/v1/fullstatedump", status=301, is_closed=True),
    Path("/", NONE, is_closed=True),
    Path(f"{_OWN}/live", NONE, is_closed=True),
    Path(f"{_OWN}/ready", NONE, is_closed=True),
    Path(f"{_OWN}/session", NONE, is_closed=True),
    Path(f"{_OWN}/why?application=nobody&key=nothing", status=404, is_closed=True),
    Path(f"{_OWN}/partition/default/waiting", is_closed=True),
    Path(f"{_OWN}/partition/default/nodes", is_closed=True),
    Path(f"{_OWN}/partition/default/expected", is_closed=True),
    Path(f"{_OWN}/mailboxes", is_closed=True),
    Path(f"{_OWN}/partition/default/node/nowhere/drain", FULL, "POST", 404, is_closed=True),
    Path(f"{_OWN}/manager/nobody/unregister", FULL, "POST", 404, is_closed=True),
    Path(f"{_OWN}/manager/rm-1/unregister", FULL, "POST", 409, is_closed=True),
    Path(f"{_OWN}/config", FULL, "POST", 400, is_closed=True, body=b" "),
    Path(f"{_OWN}/config", FULL, "POST", 400, is_closed=True, body=b"\xff"),
    Path(f"{_OWN}/logout", READ, "POST", 204, is_closed=True),
    Path("/ws/v1/nothing", status=404),
    Path("/ws/v1/clusters/", status=301),
    Path(f"{_PART}/nodes/?a=b", status=301),
    Path("/ws/v1/clusters", method="DELETE", status=405),
    Path("/ws/v1/clusters", method="POST", status=405, is_closed=True),
    Path(f"{_OWN}/config", method="GET", status=405, is_closed=True),
    Path("/ws/v1/clusters", method="OPTIONS", status=204),
)
_MALFORMED: Final = (
    b"GET /ws/v1/clusters HTTP/9\r\nHost: localhost\r\n\r\n",
    b"GET  HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /ws/v1/clusters HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n",
    b"GET /ws/v1/clusters HTTP/1.1\r\nHost: localhost\r\nContent-Length: -4\r\n\r\n",
    b"GET /" + b"a" * 9_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 9_000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: a\r\n" * 70 + b"\r\n",
)  # fmt: skip
"""What is no request; it is refused, and the connection ends."""
_HOSTS: Final = (
    ("localhost:{}", 200), ("127.0.0.1:{}", 200), ("[::1]:{}", 200), ("{name}", 200),
    ("CLUSTER.example:{}", 200), ("localhost", 200), ("evil.example", 403), ("", 400),
    ("user@localhost", 400), ("localhost:{}x", 400),
)  # fmt: skip
_GZIP_FROM: Final = 1_400


class Answered(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes


class _Clock:
    now_s = 1_000.0


class _WithServer(OnThreads):
    """The door of a program in its own process, and a server beside it."""

    def __init__(self, arguments: Mapping[str, Any], callback: si.ResourceManagerCallback) -> None:
        super().__init__(arguments, callback)
        self.clock = _Clock()
        self.tokens = CurrentTokens(Tokens(_FULL, _READ))
        guard = Guard(
            frozenset({_NAME}), token=_FULL, read_token=_READ, now_s=lambda: self.clock.now_s
        )
        self._rest = RestPart(Site(self.core, _ADDRESS, Standing(), tokens=self.tokens), guard)

    def __enter__(self) -> Self:
        super().__enter__()
        self._rest.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._rest.stop(_PATIENCE_S)
        super().__exit__(*error)

    @property
    def place(self) -> tuple[str, int]:
        host, _, port = self._rest.address.rpartition(":")
        return host, int(port)


def walk_http(draw: Draw) -> Iterator[tuple[str, Any, list[str]]]:
    """Yield what is asked, what is answered, and what is wrong with that."""
    doors: list[_WithServer] = []

    def opened(arguments: Mapping[str, Any], callback: si.ResourceManagerCallback) -> _WithServer:
        doors.append(_WithServer(arguments, callback))
        return doors[0]

    caller: _Caller | None = None
    for _ in _steps(walk(Draw(draw.number(1 << 30)), opened)):
        if caller is None:
            caller = _Caller(doors[0], draw)
        if draw.once_in(_OFTEN):
            for _ in range(draw.whole(1, _MOST)):
                yield from caller.call()


def _steps(seen: Iterator[Heard]) -> Iterator[Heard]:
    """Yield what comes before the program ends: then there is no core to be asked any more."""
    return (it for it in seen if it[0] != "events")


class _Caller:
    """Makes requests, and knows what each has to be answered."""

    def __init__(self, door: _WithServer, draw: Draw) -> None:
        self._door, self._draw = door, draw
        self._cookie, self._until_s = "", 0.0
        """Of a browser that has logged in, and until when it is let in."""
        self._cookie_token = ""
        self._wrong = deque[float](maxlen=_WRONG_MAX)
        """When a wrong token was shown last."""
        self._full, self._read = _FULL, _READ

    def call(self) -> Iterator[tuple[str, Any, list[str]]]:
        kinds = (
            *(self._route,) * 8, self._login, self._login, self._pass_time, self._change_tokens,
            self._malformed, self._truth, self._truth, self._stream, self._packed, self._pipelined,
        )  # fmt: skip
        self._door.core.followers.catch_up()
        yield from self._draw.one_of(kinds)()

    # -- one request

    def _send(self, *requests: bytes) -> list[Answered]:
        """Send them at once, in two pieces, and read as many answers."""
        data = b"".join(requests)
        cut = self._draw.number(len(data))
        with socket.create_connection(self._door.place, _PATIENCE_S) as connection:
            connection.sendall(data[:cut])
            connection.sendall(data[cut:])
            with connection.makefile("rb") as file:
                return [_read(file, it) for it in requests]

    def _bytes(
        self, path: Path, host: str, headers: Mapping[str, str], *, lasting: bool = False
    ) -> bytes:
        lines = [f"{path.method} {path.path} HTTP/1.1"]
        if host:
            lines.append(f"Host: {host}")
        lines += (f"{name}: {value}" for name, value in headers.items())
        if path.body or path.method == "POST":
            lines.append(f"Content-Length: {len(path.body)}")
        if not lasting:
            lines.append("Connection: close")
        return "\r\n".join((*lines, "", "")).encode() + path.body

    @property
    def _host(self) -> str:
        return f"localhost:{self._door.place[1]}"

    def _route(self) -> Iterator[tuple[str, Any, list[str]]]:
        draw, path = self._draw, self._draw.one_of(_ASKED)
        written, host_status = _HOSTS[0] if draw.once_in(2) else draw.one_of(_HOSTS)
        host = written.format(self._door.place[1], name=_NAME)
        headers, is_foreign = self._origin(host)
        right = FULL if draw.once_in(2) else None
        if right is None:
            right = self._shown(headers, host, is_foreign=is_foreign)
        else:
            headers["Authorization"] = f"Bearer {self._full}"
        wanted = _status_of(path, host_status, right, is_foreign=is_foreign)
        (answer,) = self._send(self._bytes(path, host, headers))
        said = f"{path.method} {path.path} of {written} with {sorted(headers)}"
        yield said, _shown_of(path.path, answer), [
            *_of_status(said, answer, wanted), *_of_form(said, path, answer),
        ]  # fmt: skip

    def _origin(self, host: str) -> tuple[dict[str, str], bool]:
        match self._draw.number(8):
            case 0:
                return {"Origin": "http://evil.example"}, True
            case 1:
                return {"Sec-Fetch-Site": "cross-site"}, True
            case 2:
                return {"Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}, False
            case 3:
                return {"Origin": f"http://{host}1"}, True
            case _:
                return {}, False

    def _shown(self, headers: dict[str, str], host: str, *, is_foreign: bool) -> int:
        """Show some token or none; return what that allows, less than nothing where it is alien."""
        draw, port = self._draw, self._door.place[1]
        match draw.number(6):
            case 0:
                return NONE
            case 1:
                headers["Authorization"] = f"Bearer {self._read}"
                return READ
            case 2:
                headers["Authorization"] = f"bEARER {self._full}"
                return FULL
            case 3:
                headers["Authorization"] = draw.one_of(
                    (f"Bearer {_OTHER}", f"Basic {self._full}", f"Bearer  {self._full}", "Bearer")
                )
                return NONE
            case _:
                headers["Cookie"] = f"yunikorn-actors-{port}={self._cookie or 'none.at-all'}"
                is_named = host.rpartition("]")[2].partition(":")[2] == str(port)
                if not (self._is_logged_in and is_named):
                    return NONE
                if is_foreign:
                    return -1
                return FULL if self._cookie_token == self._full else READ

    @property
    def _is_logged_in(self) -> bool:
        is_known = self._cookie_token in {self._full, self._read}
        return bool(self._cookie) and is_known and self._until_s > int(self._door.clock.now_s)

    # -- who may ask

    def _login(self) -> Iterator[tuple[str, Any, list[str]]]:
        draw, now_s = self._draw, self._door.clock.now_s
        shown = draw.one_of((self._full, self._read, _OTHER, _OTHER, _OTHER))
        for _ in range(draw.one_of((1, 1, 4))):
            path = Path(f"{_OWN}/login", method="POST", body=f" {shown}\n".encode())
            (answer,) = self._send(self._bytes(path, self._host, {}))
            is_locked = len(self._wrong) == _WRONG_MAX and self._wrong[0] + _WRONG_S > now_s
            is_right = shown in {self._full, self._read}
            wanted = 429 if is_locked else 204 if is_right else _NO_TOKEN
            faults = [*_of_status("a login", answer, wanted)]
            if wanted == _NO_TOKEN:
                self._wrong.append(now_s)
            elif wanted == _DONE:
                faults += self._take_cookie(answer, shown)
            elif f"wait for {int(self._wrong[0] + _WRONG_S - now_s + 0.999)} s" not in str(answer):
                faults.append(f"a login that has to wait: {answer.body!r}")
            yield f"a login at {now_s}", (answer.status, answer.body.decode()), faults

    def _take_cookie(self, answer: Answered, shown: str) -> Iterator[str]:
        given = answer.headers.get("set-cookie", "")
        name, _, rest = given.partition("=")
        self._cookie, *words = rest.split("; ")
        self._cookie_token, self._until_s = shown, int(self._door.clock.now_s) + _SESSION_S
        wanted = ["Path=/", f"Max-Age={_SESSION_S}", "HttpOnly", "SameSite=Strict"]
        if name != f"yunikorn-actors-{self._door.place[1]}" or words != wanted:
            yield f"the cookie is given so: {name} {words}"
        if shown in given:
            yield "the token stands in the cookie"

    def _pass_time(self) -> Iterator[tuple[str, Any, list[str]]]:
        self._door.clock.now_s += self._draw.one_of((1.0, 30.5, 61.0, 3_600.0, float(_SESSION_S)))
        yield "time passes", self._door.clock.now_s, []

    def _change_tokens(self) -> Iterator[tuple[str, Any, list[str]]]:
        """Streams of the former ones end; what comes next needs the others."""
        self._full = self._draw.one_of((_FULL, f"{_FULL}-2"))
        self._read = self._draw.one_of((_READ, f"{_READ}-2"))
        self._door.tokens.change(Tokens(self._full, self._read))
        yield "other tokens", "", []

    # -- forms

    def _malformed(self) -> Iterator[tuple[str, Any, list[str]]]:
        data = self._draw.one_of(_MALFORMED)
        with socket.create_connection(self._door.place, _PATIENCE_S) as connection:
            connection.sendall(data)
            with connection.makefile("rb") as file:
                answer, rest = _read(file, data), file.read(1)
        said = f"a request of {data[:60]!r}"
        faults = [*_of_status(said, answer, 400)]
        if rest:
            faults.append(f"{said} leaves the connection open")
        yield said, (answer.status, _plain(answer.body)), faults

    def _packed(self) -> Iterator[tuple[str, Any, list[str]]]:
        """An answer that is packed has the same in it; a packed body is not taken."""
        path = self._draw.one_of([it for it in _ASKED if it.status == _OK and it.method == "GET"])
        if path.path.partition("?")[0] in _TELLS_OF_ITSELF:
            return
        headers = {"Authorization": f"Bearer {self._full}"}
        plain, packed = (
            self._send(self._bytes(path, self._host, {**headers, **more}))[0]
            for more in ({}, {"Accept-Encoding": "gzip, br"})
        )
        is_packed = packed.headers.get("content-encoding") == "gzip"
        faults = []
        # What takes longer than one slice is sent while it is made: its size is not known then.
        is_streamed = "content-length" not in packed.headers
        if is_packed != (is_streamed or len(plain.body) >= _GZIP_FROM):
            faults.append(f"{len(plain.body)} bytes of {path.path} are packed: {is_packed}")
        if (gzip.decompress(packed.body) if is_packed else packed.body) != plain.body:
            faults.append(f"{path.path} is another text where it is packed")
        taken = Path("/ws/v1/validate-conf", method="POST", body=b"x", is_closed=True)
        (answer,) = self._send(
            self._bytes(taken, self._host, {**headers, "Content-Encoding": "gzip"})
        )
        faults += _of_status("a packed body", answer, 415)
        yield f"{path.path} packed", "", faults

    def _pipelined(self) -> Iterator[tuple[str, Any, list[str]]]:
        """Several requests on one connection are answered in their order."""
        draw = self._draw
        paths = [draw.one_of([it for it in _ASKED if it.method == "GET"]) for _ in range(3)]
        headers = {"Authorization": f"Bearer {self._full}"}
        answers = self._send(
            *(self._bytes(it, self._host, headers, lasting=True) for it in paths[:-1]),
            self._bytes(paths[-1], self._host, headers),
        )
        faults = [
            fault
            for path, answer in zip(paths, answers, strict=True)
            for fault in _of_status(f"{path.path} behind another", answer, path.status)
        ]
        yield "three at once", [it.status for it in answers], faults

    # -- contents

    def _get(self, path: str) -> Any:  # noqa: ANN401 - the JSON of an answer
        headers = {"Authorization": f"Bearer {self._full}"}
        (answer,) = self._send(self._bytes(Path(path), self._host, headers))
        return json.loads(answer.body)

    def _truth(self) -> Iterator[tuple[str, Any, list[str]]]:
        """What is answered of nodes and applications is what the core has."""
        (state,) = self._door.core.state_dump()["partitions"].values()
        told_of = self._get(f"{_PART}/nodes")
        nodes = {it["nodeID"]: len(it.get("allocations") or ()) for it in told_of}
        wanted = dict.fromkeys(state["nodes"], 0)
        for app in state["applications"].values():
            for it in app["allocations"]:
                wanted[it["node"]] += 1
        faults = [] if nodes == wanted else [f"nodes {nodes}, there are {wanted}"]
        active = {it["applicationID"] for it in self._get(f"{_PART}/applications/active")}
        if active != {*state["applications"]}:
            faults.append(f"applications {active}, there are {[*state['applications']]}")
        found = self._door.core.events(0, 10_000)
        count = self._draw.whole(1, 9)
        batch = self._get(f"/ws/v1/events/batch?start={found.lowest_id}&count={count}")
        records = [msgspec.to_builtins(it) for it in found.records[:count]]
        told = [it["objectID"] for it in batch.get("EventRecords") or ()]
        if told != [it["objectID"] for it in records]:
            faults.append(f"event records {told}, there are {records}")
        yield "what is there", (nodes, sorted(active), told), faults

    def _stream(self) -> Iterator[tuple[str, Any, list[str]]]:
        """A stream of events begins with the last ones."""
        count = self._draw.whole(0, 6)
        found = self._door.core.events(0, 10_000)
        wanted = [it.object_id for it in found.records[max(0, len(found.records) - count) :]]
        path = Path(f"/ws/v1/events/stream?count={count}")
        headers = {"Authorization": f"Bearer {self._read}"}
        with socket.create_connection(self._door.place, _PATIENCE_S) as connection:
            connection.sendall(self._bytes(path, self._host, headers))
            with connection.makefile("rb") as file:
                response = _Response(file)
                response.begin()
                lines = [json.loads(response.readline()) for _ in range(len(wanted) + 1)]
        told = [it.get("objectID", "") for it in lines[1:]]
        faults = [] if told == wanted else [f"the stream begins with {told}, not with {wanted}"]
        if "InstanceUUID" not in lines[0]:
            faults.append(f"the stream begins with {lines[0]}")
        yield f"a stream from {count} before", told, faults


class _Response(HTTPResponse):
    """Reads what comes on a file of a connection."""

    def __init__(self, file: Any, method: str = "GET") -> None:  # noqa: ANN401 - of a socket
        super().__init__(_Kept(file), method=method)  # type: ignore[arg-type]


class _Kept:
    """A socket that has a file already, which stays open behind a response."""

    def __init__(self, file: Any) -> None:  # noqa: ANN401 - as above
        self._file = file

    def makefile(self, _: str) -> "_Kept":
        return self

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a method of the file
        return getattr(self._file, name)

    def close(self) -> None:
        """The next answer comes on the same."""


def _read(file: Any, request: bytes) -> Answered:  # noqa: ANN401 - of a socket
    response = _Response(file, request.partition(b" ")[0].decode())
    try:
        response.begin()
        body = response.read()
    except HTTPException as error:
        return Answered(0, {}, repr(error).encode())
    return Answered(
        response.status, {name.lower(): value for name, value in response.getheaders()}, body
    )


# -- what has to be answered


def _status_of(path: Path, host_status: int, right: int, *, is_foreign: bool) -> int:
    if host_status != _OK:
        return host_status
    if is_foreign and (path.is_closed or path.method == "POST" or path.path.startswith(_OWN)):
        return 403
    if path.needs != NONE and right < 0:
        return 403
    if path.needs != NONE and right == NONE:
        return 401
    if right < path.needs:
        return 403
    return path.status


def _of_status(said: str, answer: Answered, wanted: int) -> Iterator[str]:
    if answer.status != wanted:
        yield f"{said} is answered with {answer.status} and not {wanted}: {answer.body[:200]!r}"


def _of_form(said: str, path: Path, answer: Answered) -> Iterator[str]:
    """What each answer has, whatever it is about."""
    headers = answer.headers
    for name, value in (
        ("server", "yunikorn-actors"), ("x-content-type-options", "nosniff"),
        ("cache-control", "no-store"),
    ):  # fmt: skip
        if headers.get(name) != value and path.path != "/":
            yield f"{said} has {name} {headers.get(name)}"
    if answer.status >= _BAD:
        error = json.loads(answer.body)
        if error.get("status_code") != answer.status or not error.get("message"):
            yield f"{said} is refused so: {error}"
    if answer.status == _NOT_SO and not {"GET", "POST"} & {*headers.get("allow", "").split(",")}:
        yield f"{said} does not say what is allowed: {headers}"
    there = "/debug/fullstatedump" if "dump" in path.path else path.path.replace("/?", "?")
    if answer.status == _MOVED and headers.get("location") != there.rstrip("/"):
        yield f"{said} leads to {headers.get('location')}"
    is_open = answer.status == path.status == _OK and not path.is_closed
    if is_open and headers.get("access-control-allow-origin") != "*":
        yield f"pages of other origins may not read {said}"
    if path.is_closed and "access-control-allow-origin" in headers:
        yield f"pages of other origins may read {said}"


def _shown_of(path: str, answer: Answered) -> Any:  # noqa: ANN401 - plain values
    headers = sorted((k, v) for k, v in answer.headers.items() if k not in _UNSTEADY_HEADERS)
    is_its_own = path.partition("?")[0] in _TELLS_OF_ITSELF or answer.status == _MOVED
    body = "" if is_its_own else _READERS.sub("", _plain(answer.body))
    return answer.status, headers, body


def _plain(body: bytes) -> str:
    return body.decode(errors="replace")
