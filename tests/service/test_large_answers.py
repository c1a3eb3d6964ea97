"""Large answers: made in slices, of one revision, sent as they are made, a few at a time."""

import asyncio
import gzip
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest
from probes import wait_until
from served import ANN, BOB, RM, Served, node, register, serving

from yunikorn_actors import si
from yunikorn_actors.planning.expected import Expectations
from yunikorn_actors.policies.registry import NO_POLICIES
from yunikorn_actors.recording.secret_values import masked_dump, masked_json
from yunikorn_actors.service.read.incremental_answers import AT_ONCE, Each, Steps
from yunikorn_actors.service.rest import http_server as servers
from yunikorn_actors.service.rest import loop_slices as slicing
from yunikorn_actors.service.rest.exchange import Refusal, Route
from yunikorn_actors.service.rest.http_server import RestServer, all_routes
from yunikorn_actors.service.rest.json_stream import Foreign, Style, pieces
from yunikorn_actors.service.rest.loop_slices import Slices

P = "/ws/v1/partition/default"
DUMP = "/debug/fullstatedump"
NODES = 300
ASKS = 1_200
"""More than an application shows at once."""
FOREIGN = {"Origin": "http://elsewhere.example"}
NAMES = {
    "partition": "default", "queue": "root.prod", "application": "app-large", "node": "n7",
    "user": "ann", "group": "ops", "manager": "rm-9", "state": "active",
}  # fmt: skip


@pytest.fixture(scope="module")
def large() -> Iterator[Served]:
    """More of everything than is made at once; no test changes it but for one node."""
    with serving() as served:
        register(served)
        served.nodes(*(node(f"n{number}") for number in range(NODES)))
        served.application("app-large", "root.prod", ANN)
        served.asks("app-large", *(f"large-{number}" for number in range(ASKS)), vcore=1000)
        for number in range(AT_ONCE + 10):
            served.application(f"app-{number}", "root.dev.batch", BOB, tags={"namespace": "ns"})
        served.asks("app-0", "small-0")
        yield served


def rest_server(served: Served) -> RestServer:
    found: RestServer = served.part._server  # type: ignore[attr-defined]
    return found


@contextmanager
def tiny_slices(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each slice is over at once, so everything that pauses at all is made in slices."""
    with monkeypatch.context() as patched:
        patched.setattr(slicing, "SLICE_S", 0.0)
        patched.setattr(slicing, "_slice", _one)
        yield


def _one(work: Any, put: Any) -> tuple[bool, Any]:
    try:
        put(next(work))
    except StopIteration as end:
        return True, end.value
    return False, None


def get_routes() -> list[str]:
    found = []
    for route in all_routes():
        path = route.path
        for name, value in NAMES.items():
            path = path.replace(f"{{{name}}}", value)
        if route.method == "GET" and "stream" not in path and "overview" not in path:
            found.append(path)
    return found


def without_times(path: str, body: bytes) -> Any:
    """What tells the time, or of those who ask, differs from one answer to the next."""
    if path.endswith(("metrics", "mailboxes", "stack", "waiting")):
        return None
    try:
        value = json.loads(body)
    except ValueError:
        return body
    if isinstance(value, dict):
        for name in ("timestamp", "at_ns", "begin_ns", "end_ns"):
            value.pop(name, None)
    return value


# -- no route holds the loop


@pytest.mark.parametrize("path", get_routes())
def test_what_is_made_in_slices_is_what_is_made_at_once(
    large: Served, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = large.ask(path)
    with tiny_slices(monkeypatch):
        sliced = large.ask(path)
        packed = large.ask(path, Accept_Encoding="gzip")
    assert at_once.status == sliced.status == packed.status
    assert without_times(path, at_once.body) == without_times(path, sliced.body)
    body = packed.body
    if packed.headers["Content-Encoding"] == "gzip":
        body = gzip.decompress(body)
        assert "Accept-Encoding" == packed.headers["Vary"]
    assert without_times(path, at_once.body) == without_times(path, body)
    own = {"Date", "Content-Length", "Transfer-Encoding"}
    assert set(at_once.headers) - own == set(sliced.headers) - own


def test_what_takes_many_slices_is_noted_as_done_at_its_end_only(
    large: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is begun anew after its first slice, and nothing that happens makes it stale again."""
    (book,) = rest_server(large)._side.books.values()
    path = "/ws/v1/x/partition/default/expected?application=app-large"
    at_once = json.loads(large.ask(path).body)
    assert at_once["total"] > 0
    book.expectations = Expectations(NO_POLICIES)
    with tiny_slices(monkeypatch):
        assert at_once["total"] == json.loads(large.ask(path).body)["total"]


LONG = (
    f"{P}/queues", f"{P}/applications/active", f"{P}/application/app-large", f"{P}/nodes",
    "/ws/v1/scheduler/node-utilizations", "/ws/v1/metrics", DUMP,
    "/ws/v1/events/batch",
)  # fmt: skip
"""What grows with the cluster; the others ask the core, or have a bound."""


@pytest.mark.parametrize("path", LONG)
def test_what_grows_with_the_cluster_pauses(
    large: Served, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two pauses no more is made than what belongs to a few things."""
    pauses = count()
    largest = 0

    def counted(work: Any, put: Any) -> tuple[bool, Any]:
        def look(piece: Any) -> None:
            nonlocal largest
            next(pauses)
            largest = max(largest, len(piece) if isinstance(piece, bytes) else 0)
            put(piece)

        return real(work, look)

    real = slicing._slice
    monkeypatch.setattr(slicing, "_slice", counted)
    assert large.ask(path).status == 200
    assert next(pauses) > 4
    assert largest < 70_000


def test_a_ticker_goes_on_beside_a_large_answer(large: Served) -> None:
    """Others are answered in between: many times for one that is large."""
    server = rest_server(large)
    begun, turns = server._slices.pieces, 0

    async def tick() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += server._slices.stands_still

    ticking = asyncio.run_coroutine_threadsafe(tick(), large.part._loop)  # type: ignore[attr-defined]
    try:
        assert large.ask(DUMP).status == 200
    finally:
        ticking.cancel()
    assert turns > 2
    assert begun == server._slices.pieces


# -- one revision


class Slow:
    """A route that is made in as many slices as a test lets it."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self.go = threading.Event()
        self.has_begun = threading.Event()
        self.seen: list[int] = []

    def handler(self, side: Any, _: Any) -> Steps[Any]:
        def look() -> Iterator[int]:
            while not self.go.is_set():
                self.has_begun.set()
                self.seen.append(len(side.books["[rm-1]default"].state.nodes))
                yield 0

        yield
        return Each(lambda it: it, look())


@contextmanager
def slow(served: Served, path: str = f"{P}/nodes") -> Iterator[Slow]:
    routes = rest_server(served)._routes
    former, it = routes[path.replace("default", "{partition}")], Slow(served)
    changed = former._replace(handler=it.handler)
    app: Any = rest_server(served)._runner.app  # type: ignore[union-attr]
    resource = next(r for r in app.router.resources() if r.canonical == changed.path)
    handlers = {route.method: route for route in resource}
    kept = handlers["GET"]._handler
    handlers["GET"]._handler = rest_server(served)._answering(changed)
    try:
        yield it
    finally:
        it.go.set()
        handlers["GET"]._handler = kept


@pytest.fixture
def served() -> Iterator[Served]:
    with serving() as it:
        register(it)
        it.nodes(node("n0"))
        yield it


def test_an_answer_is_of_one_revision_and_others_are_answered_meanwhile(served: Served) -> None:
    with slow(served) as work:
        told: list[Any] = []
        asking = threading.Thread(target=lambda: told.append(served.ask(f"{P}/nodes")))
        asking.start()
        assert work.has_begun.wait(30)
        wait_until(lambda: rest_server(served)._slices.stands_still)
        served.nodes(node("n1"))
        wait_until(lambda: len(rest_server(served)._slices._late) > 0)
        assert 1 == served.get("/ws/v1/partitions")[0]["totalNodes"]
        assert b"ok\n" == served.ask("/ws/v1/x/live").body
        work.go.set()
        asking.join(30)
    assert {1} == set(work.seen)
    assert 200 == told[0].status
    wait_until(lambda: served.get("/ws/v1/partitions")[0]["totalNodes"] == 2)


def test_facts_that_waited_are_taken_before_the_next_begins() -> None:
    async def run() -> list[str]:
        done: list[str] = []
        slices = Slices(lambda message, _: done.append(str(message)))

        def work(name: str, turns: int) -> Steps[None]:
            for _ in range(turns):
                time.sleep(slicing.SLICE_S)
                yield
            done.append(name)

        slicing_join = slicing.JOIN_S
        slicing.JOIN_S = 0.0  # type: ignore[misc] # none may join
        try:
            first = asyncio.create_task(slices.done(lambda: work("first", 4)))
            while not slices.stands_still:  # noqa: ASYNC110 - until the other task has begun
                await asyncio.sleep(0)
            slices.receive("fact", 1)  # type: ignore[arg-type] # nothing looks at it
            second = asyncio.create_task(slices.done(lambda: work("second", 4)))
            await asyncio.gather(first, second)
        finally:
            slicing.JOIN_S = slicing_join  # type: ignore[misc] # as above
        return done

    assert ["first", "fact", "second"] == asyncio.run(run())


def test_work_joins_what_has_just_begun() -> None:
    async def run() -> int:
        slices, most = Slices(lambda *_: None), 0

        def work() -> Steps[None]:
            nonlocal most
            for _ in range(6):
                most = max(most, slices._works)
                time.sleep(slicing.SLICE_S)
                yield

        await asyncio.gather(*(slices.done(work) for _ in range(slicing.WORKS_MAX + 3)))
        return most

    assert slicing.WORKS_MAX == asyncio.run(run())


def test_so_many_may_wait_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slicing, "WAITING_MAX", 2)

    async def run() -> int:
        slices, busy = Slices(lambda *_: None), 0
        async with slices.standing():
            monkeypatch.setattr(slicing, "JOIN_S", 0.0)
            waiting = [asyncio.create_task(enter(slices)) for _ in range(5)]
            await asyncio.sleep(0)
        for outcome in await asyncio.gather(*waiting, return_exceptions=True):
            if isinstance(outcome, Refusal):
                assert (503, slicing.RETRY_S) == (outcome.status, outcome.retry_s)
                busy += 1
        return busy

    async def enter(slices: Slices) -> None:
        async with slices.standing():
            pass

    assert 3 == asyncio.run(run())


# -- readers


def test_a_reader_that_leaves_ends_the_work(served: Served) -> None:
    with slow(served) as work:
        host, _, port = served.part.address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=30) as asking:
            asking.sendall(f"GET {P}/nodes HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            assert work.has_begun.wait(30)
            wait_until(lambda: rest_server(served)._slices.stands_still)
        wait_until(lambda: not rest_server(served)._slices.stands_still)
        assert not work.go.is_set()
        wait_until(lambda: not rest_server(served)._sendings)
    served.nodes(node("n1"))
    wait_until(lambda: served.get("/ws/v1/partitions")[0]["totalNodes"] == 2)


def test_a_reader_that_takes_nothing_holds_nobody_up(
    large: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work ends, and what was made waits for its reader alone; that one is given up."""
    monkeypatch.setattr("yunikorn_actors.service.rest.streaming.WRITE_S", 0.5)
    host, _, port = large.part.address.rpartition(":")
    server = rest_server(large)
    monkeypatch.setattr(slicing, "_slice", _one)
    with socket.socket() as silent:
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        silent.connect((host, int(port)))
        silent.sendall(f"GET {DUMP} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        wait_until(lambda: bool(server._sendings))
        wait_until(lambda: not server._slices.stands_still)
        monkeypatch.undo()
        assert large.ask(f"{P}/nodes").status == 200
        wait_until(lambda: not server._sendings)


def test_what_readers_leave_is_bounded(large: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "UNREAD_MAX", 0)
    monkeypatch.setattr(slicing, "_slice", _one)
    with pytest.raises((http.client.HTTPException, OSError)):
        large.ask(DUMP)
    wait_until(lambda: not rest_server(large)._sendings)


def test_a_dump_at_a_time(large: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that wait are answered one after the other; so many wait, and others ask again."""
    monkeypatch.setattr(servers, "APART_MAX", 3)
    monkeypatch.setattr(slicing, "SLICE_S", 0.0005)
    told: list[Any] = []
    threads = [threading.Thread(target=lambda: told.append(large.ask(DUMP))) for _ in range(8)]
    for it in threads:
        it.start()
    for it in threads:
        it.join(60)
    refused = [it for it in told if it.status == 503]
    assert {200, 503} == {it.status for it in told}
    assert {str(slicing.RETRY_S)} == {it.headers["Retry-After"] for it in refused}
    nodes = {len(it.json["nodes"][0]["nodesInfo"]) for it in told if it.status == 200}
    assert {NODES} == nodes


def test_an_answer_that_fails_in_the_middle_has_no_end(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        def items() -> Iterator[str]:
            yield "x" * 200_000
            raise RuntimeError("of a test")

        return Each(lambda it: it, items())

    monkeypatch.setattr(slicing, "_slice", _one)
    with slow(served) as work:
        work.handler = broken  # type: ignore[method-assign]
        app: Any = rest_server(served)._runner.app  # type: ignore[union-attr]
        resource = next(
            it for it in app.router.resources() if it.canonical.endswith("{partition}/nodes")
        )
        route = Route(resource.canonical, "", broken)
        next(it for it in resource if it.method == "GET")._handler = rest_server(served)._answering(
            route
        )
        with pytest.raises((http.client.IncompleteRead, OSError)):
            served.ask(f"{P}/nodes")
    assert served.ask("/ws/v1/partitions").status == 200


# -- other origins


CLOSED = [it for it in all_routes() if it.is_closed]


@pytest.mark.parametrize("route", CLOSED, ids=lambda it: f"{it.method} {it.path}")
def test_no_page_of_another_origin_may_ask(large: Served, route: Route) -> None:
    path = route.path
    for name, value in NAMES.items():
        path = path.replace(f"{{{name}}}", value)
    for headers in (FOREIGN, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}):
        answer = large.ask(path, method=route.method, **headers)
        assert 403 == answer.status, (path, headers)
        assert "Access-Control-Allow-Origin" not in answer.headers
    preflight = large.ask(path, method="OPTIONS", **FOREIGN)
    assert "Access-Control-Allow-Origin" not in preflight.headers


def test_what_tells_of_everything_is_closed() -> None:
    closed = {it.path for it in CLOSED}
    diagnostic = {DUMP, "/debug/stack", "/ws/v1/fullstatedump", "/ws/v1/stack", "/ws/v1/metrics"}
    assert diagnostic <= closed
    # YuniKorn's pages come from another origin and read these.
    assert not closed & {f"{P}/nodes".replace("default", "{partition}"), "/ws/v1/clusters"}


@pytest.mark.parametrize("path", [DUMP + "/", "/ws/v1/../../debug/fullstatedump", "//debug/stack"])
def test_nor_by_a_path_written_in_another_way(large: Served, path: str) -> None:
    assert large.ask(path, **FOREIGN).status in {301, 403, 404}


# -- JSON in pieces


def whole(value: Any, style: Style) -> bytes:
    return b"".join(pieces(value, style))


def lazily(value: Any) -> Any:
    """Make every list and every object of it one that is written in pieces."""
    if isinstance(value, list):
        return Each(lazily, value)
    if isinstance(value, dict):
        return {name: lazily(item) for name, item in value.items()}
    return value


VALUES = [
    [], {}, 1, None, 'x\n"y', [[]], [{}], {"a": []}, {"a": {}}, [1, [2, [3]], {"b": [4, {"c": []}]}],
    {"list": [{"n": number, "deep": [[number], {"x": None}]} for number in range(5)], "é": "\u2028"},
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_pieces_make_the_same_json(value: Any) -> None:
    many = [value] * 600
    divided: list[tuple[Any, Any]] = [
        (value, lazily(value)),
        (value, Foreign(value)),
        (many, Foreign(many)),
        ({"a": value, "b": 1}, {"a": lazily(value), "b": 1}),
    ]
    for is_indented in (False, True):
        style = Style(None, is_indented)
        for plain, made in divided:
            text = whole(plain, style)
            assert plain == json.loads(text)
            assert text == whole(made, style)


def test_no_piece_has_a_secret_in_it() -> None:
    value = {
        "api-token": "planted-0",
        "list": [{"tags": {"password": "planted-1"}}, {"note": "token=planted-2"}],
        "deep": {"secret": "planted-3", "items": [{"x": {"credential": "planted-4"}}]},
    }
    text = whole(lazily(value), Style(masked_json, is_indented=True))
    assert b"planted" not in text
    assert json.loads(text) == masked_dump(value)
    assert b"planted" not in whole(Foreign(value), Style(masked_json))


def test_the_dump_has_no_secret_in_it(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    served.application("app-1", "root.prod", ANN)
    served.core.update_allocation(
        si.AllocationRequest(
            rm_id=RM,
            asks=(
                si.AllocationAsk(
                    application_id="app-1",
                    allocation_key="a",
                    resource_ask=si.Resource.of({"vcore": 1}),
                    tags={"api-token": "planted", "note": "password: planted"},
                ),
            ),
        )
    )
    served.settle()
    for _ in range(2):
        text = served.ask(DUMP).body
        assert b"planted" not in text
        assert b'"a"' in text
        monkeypatch.setattr(slicing, "_slice", _one)
