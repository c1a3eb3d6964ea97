"""The routes on the web server: connections, bounds, streams; what is answered is not known here.

Everything runs on one event loop, so the read side needs no lock. A question to the core waits on a
thread of its own, and the loop goes on.
"""

import asyncio
import gzip
import logging
import re
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, contextmanager, nullcontext, suppress
from functools import partial
from itertools import count
from types import GeneratorType
from typing import Any, Final

import msgspec
from aiohttp import web

from yunikorn_actors.errors import CoreFailed, CoreStopped, NoReply
from yunikorn_actors.messages.base import Message
from yunikorn_actors.recording.logs import logger
from yunikorn_actors.service.listener import Questions
from yunikorn_actors.service.read.incremental_answers import LOOKS, Steps
from yunikorn_actors.service.read.load_history import SAMPLE_NS
from yunikorn_actors.service.read.read_model import ReadSide
from yunikorn_actors.service.read.replica import Book
from yunikorn_actors.service.rest import admin_routes as changes
from yunikorn_actors.service.rest import own_routes as own
from yunikorn_actors.service.rest import yunikorn_routes as yunikorn
from yunikorn_actors.service.rest.exchange import (
    OWN,
    TEXT,
    Answer,
    Asked,
    Refusal,
    Route,
    Texts,
)
from yunikorn_actors.service.rest.json_stream import paused, pieces
from yunikorn_actors.service.rest.live_page import Live
from yunikorn_actors.service.rest.loop_slices import RETRY_S, Slices
from yunikorn_actors.service.rest.request_guard import LOGIN, SESSION, Guard, cookie
from yunikorn_actors.service.rest.simulate_route import SIMULATE, simulate_route
from yunikorn_actors.service.rest.streaming import GZIP_LEVEL, Sending
from yunikorn_actors.service.route_rights import Right, needed_for
from yunikorn_actors.service.tokens import Tokens
from yunikorn_actors.si import EventRecord
from yunikorn_actors.values.masking import masked, masked_repr

BODY_MAX: Final = 4 * 1024 * 1024
LINE_MAX: Final = 8190
HEADERS_MAX: Final = 64
IDLE_S: Final = 10.0
"""A connection is closed after this time without a question and without a read."""
CONNECTIONS_MAX: Final = 1_000
APART_MAX: Final = 8
"""Requests that take long, at one time; they are answered one after the other."""
UNREAD_MAX: Final = 256 * 1024 * 1024
"""Bytes that wait for those who asked for them; then nothing large is answered."""
LARGE: Final = 64 * 1024
STREAMS_MAX: Final = 100
STREAMS_OF_HOST_MAX: Final = 15
GONE_S: Final = 5.0
"""Seconds between two looks of a stream whether its reader is there."""
STREAM_ROOM: Final = 1_000
"""Records that wait for a slow reader; one that falls further behind is cut off."""
SAMPLE_S: Final = SAMPLE_NS / 1e9
WRITE_S: Final = 5.0
PAGE_WRITE_S: Final = 30.0
"""A live page that takes nothing for this time is cut off; it asks again when it can."""
GZIP_MIN: Final = 1_400
_NONE: Final = re.compile(r"q\s*=\s*0(\.0{0,3})?")
"""The weight of a coding that is not wanted."""
_LOOKS: Final = 10
"""So many looks at idle connections make up the time that they have."""
_SILENT: Final = logging.Logger("aiohttp.server")  # noqa: LOG001 - of nobody else
"""The library would log a traceback for each request that is not HTTP; we log our own failures."""
_SILENT.disabled = True
_HEADERS: Final = {
    "Server": "yunikorn-actors",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
_OVER: Final = (CoreStopped, CoreFailed, NoReply)
_BAD_REQUEST: Final = 400
_TOO_SLOW: Final = 408
_TOO_LARGE: Final = 413
_NOT_TAKEN: Final = 415
_FAILED: Final = 500
_UNAVAILABLE: Final = 503
_NOT_FOUND: Final = 404
_NOT_ALLOWED: Final = 405
_STREAM: Final = Route(
    "/ws/v1/events/stream",
    "event records as they come, one JSON object a line",
    lambda _, __: None,
    queries=("count",),
)
_LIVE: Final = Route(
    f"{OWN}/overview",
    "how a partition stands, and every second what has changed (server-sent events)",
    lambda _, __: None,
    is_yunikorns=False,
    queries=("partition",),
)
_LOGIN: Final = Route(
    LOGIN,
    "the cookie of a browser that shows the token in the body; the live page asks for it",
    lambda _, __: None,
    method="POST",
    is_yunikorns=False,
    takes=TEXT,
)
_SESSION: Final = Route(
    SESSION,
    "whether the service has a token, and whether it came with the request",
    lambda _, __: None,
    is_yunikorns=False,
)
_LOGOUT: Final = Route(
    f"{OWN}/logout",
    "takes that cookie away",
    lambda _, __: None,
    method="POST",
    is_yunikorns=False,
    takes=TEXT,
)

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def all_routes() -> tuple[Route, ...]:
    by_itself = (_LIVE, _SESSION, _LOGIN, _LOGOUT)
    own_ones = (*own.ROUTES, simulate_route(), *changes.ROUTES)
    return (*yunikorn.routes(), _STREAM, *own_ones, *by_itself)


class RestServer:
    def __init__(
        self, side: ReadSide, questions: Questions, now_ns: Callable[[], int], guard: Guard
    ) -> None:
        self._side = side
        self._questions = questions
        self._now_ns = now_ns
        self._guard = guard
        self._routes = {route.path: route for route in all_routes()}
        self._failure = ""
        """Why the read side is not the truth any more."""
        self._streams = count(1)
        self._streaming: Counter[str] = Counter()
        """How many streams each host has open."""
        self._open: dict[int, web.Request] = {}
        """By number: requests that are answered with a stream, for as long as that goes on."""
        self._waiting_apart = 0
        self._apart = ThreadPoolExecutor(1, "yunikorn-actors-apart")
        self._dumping = asyncio.Lock()
        self._sendings: set[Sending] = set()
        self._closing = asyncio.Event()
        self._slices = Slices(self._take)
        self._live = Live(
            side, questions, now_ns, lambda: self._failure, self._closing, self._slices
        )
        self._runner: web.AppRunner | None = None
        self._tasks: list[asyncio.Task[None]] = []

    # -- life, on the loop

    async def start(self, listener: socket.socket, tls: ssl.SSLContext | None = None) -> None:
        app = web.Application(client_max_size=BODY_MAX, middlewares=[self._middleware()])
        by_itself = {
            _STREAM: self._stream_events,
            _LIVE: self._follow,
            _SESSION: self._session,
            _LOGIN: self._log_in,
            _LOGOUT: self._log_out,
        }
        for route in self._routes.values():
            handler = by_itself.get(route) or self._answering(route)
            app.router.add_route(route.method, route.path, handler)
            # A page of another origin asks first whether it may; a closed route has no answer to
            # that.
            if not route.is_closed:
                app.router.add_route("OPTIONS", route.path, self._options)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            logger=_SILENT,
            # A packed body may be small and become huge.
            auto_decompress=False,
            keepalive_timeout=IDLE_S,
            max_line_size=LINE_MAX,
            max_field_size=LINE_MAX,
            max_headers=HEADERS_MAX,
        )
        app.on_response_prepare.append(_harden)
        await self._runner.setup()
        await _Site(self._runner, listener, ssl_context=tls).start()
        self._tasks += [asyncio.create_task(it) for it in (self._reap(), self._sample())]

    async def stop(self, grace: float) -> None:
        self._closing.set()
        for task in self._tasks:
            task.cancel()
        if self._runner is not None and self._runner.server is not None:
            # Those that are left after the grace: the library would wait for what they do not read.
            left = [it.transport for it in self._connections() if it.transport is not None]
            self._runner._shutdown_timeout = max(0.1, grace)
            await self._runner.cleanup()
            # What was not read is waited for no longer. The loop closes them in its next turn.
            for transport in left:
                transport.abort()
            await asyncio.sleep(0)
        # Nobody asks any more. Its thread would stay for as long as anybody holds this server.
        self._apart.shutdown(wait=False)

    def receive(self, message: Message, now_ns: int) -> None:
        """Take a message to followers, when nobody reads a state that must not change."""
        self._slices.receive(message, now_ns)

    async def room(self) -> None:
        """Wait while too much is heard that cannot be taken yet."""
        await self._slices.room()

    def _take(self, message: Message, now_ns: int) -> None:
        """What cannot be taken ends all answers."""
        # After a failure the replica is no longer the truth, so nothing changes it any more.
        if self._failure:
            return
        try:
            self._side.handle(message, now_ns)
        except Exception as error:  # noqa: BLE001 - the edge: it is the answer to all that ask
            self._failure = f"the read side has failed: {masked_repr(error)}"
            logger.error("{}", self._failure, exception=error)

    async def _reap(self) -> None:
        """Close connections that ask for nothing, or do not read their answers.

        The server itself would wait for ever for both. When there are too many, those that have
        waited longest go.
        """
        idle: dict[Any, tuple[int, int]] = {}
        while True:
            await asyncio.sleep(IDLE_S / _LOOKS)
            now = dict[Any, tuple[int, int]]()
            for connection in self._connections():
                unread = _unread(connection)
                before, looks = idle.get(connection, (unread, 0))
                # A request that is being answered has bounds of its own.
                if connection._current_request is None:
                    now[connection] = unread, looks + 1 if unread == before else 0
            # Beyond the bound the idlest go, however short that is.
            surplus = len(self._connections()) - CONNECTIONS_MAX
            longest = sorted(now, key=lambda it: now[it][1], reverse=True)
            for place, connection in enumerate(longest):
                if place < surplus or now[connection][1] > _LOOKS:
                    _cut(connection)
            idle = now

    async def _sample(self) -> None:
        """Sample now and then how much waits, for later questions."""
        while True:
            await asyncio.sleep(SAMPLE_S)
            try:
                answer = await asyncio.get_running_loop().run_in_executor(
                    None, self._questions.ask, "mailboxes"
                )
                await self._slices.done(partial(self._sampled, answer))
                for book in list(self._side.books.values()):
                    await self._slices.done(partial(self._expected, book))
            except (*_OVER, Refusal):
                continue  # A core that is over has nothing to be noted; the next one may have.

    def _sampled(self, answer: Any) -> Steps[None]:  # noqa: ANN401 - the core's answer
        states = {name: book.state for name, book in self._side.books.items()}
        yield from self._side.courses.take(states, answer, self._now_ns())

    def _expected(self, book: Book) -> Steps[None]:
        now_ns = self._now_ns()
        # Not anew while it holds: a refresh walks over all that waits.
        if book.expectations.is_stale(book.state, "", now_ns):
            yield from book.expectations.refresh(book.state, now_ns)

    def _connections(self) -> list[Any]:
        assert self._runner is not None
        assert self._runner.server is not None
        return self._runner.server.connections

    # -- every request

    def _middleware(self) -> Any:  # noqa: ANN401 - the web server's own protocol
        @web.middleware
        async def guarded(request: web.Request, handler: _Handler) -> web.StreamResponse:
            try:
                # Where the request names no host the library would ask the resolver for one. Where
                # its first line names one, that is another one than this header's.
                path, headers = request.path, request.headers
                host = headers.get("Host", "")
                self._guard.check_host(host)
                self._guard.check_host(request.host)
                route = self._route_of(request)
                is_closed = route is not None and route.is_closed
                self._guard.check_origin(request.method, path, host, headers, is_closed=is_closed)
                self._guard.check_right(self._needed(request), host, headers, request.cookies)
            except Refusal as refusal:
                return _refused(request, refusal)
            response = await self._respond(request, handler)
            # A stream has sent its headers already.
            if not response.prepared:
                response.headers.update(self._headers(request))
            return response

        return guarded

    async def _respond(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except Refusal as refusal:
            return _refused(request, refusal)
        except web.HTTPException as error:
            return await _plain(request, error)
        except web.RequestPayloadError:
            return _refused(request, Refusal(_BAD_REQUEST, "the body cannot be read"))
        except _OVER as error:
            return _refused(request, Refusal(_UNAVAILABLE, masked(str(error)).partition(";")[0]))
        except ConnectionError:
            # The client has gone: nothing is to be answered, and nothing has failed.
            raise
        except Exception as error:  # noqa: BLE001 - the edge: logged once, and others are answered
            logger.error("{} {:.200} has failed", request.method, request.path, exception=error)
            return _refused(request, Refusal(_FAILED, "the service has failed to answer this"))

    def _headers(self, request: web.Request) -> dict[str, str]:
        return self._guard.headers(self._route_of(request))

    def _route_of(self, request: web.Request) -> Route | None:
        resource = request.match_info.route.resource
        return None if resource is None else self._routes.get(resource.canonical)

    def _needed(self, request: web.Request) -> Right:
        """Return what the request needs; only readers learn that there is no such route."""
        route = self._route_of(request)
        # Without the right to read one cannot find out which routes there are.
        if route is None or route.method != request.method:
            return Right.READ
        return needed_for(f"{route.method} {route.path}")

    def change_tokens(self, tokens: Tokens) -> None:
        """Put other tokens in force, and cut off the streams that were opened with former ones."""
        self._guard.change(tokens)
        for request in tuple(self._open.values()):
            try:
                host, headers = request.headers["Host"], request.headers
                needed = self._needed(request)
                self._guard.check_right(needed, host, headers, request.cookies)
            except Refusal:
                # Its token is no longer in force, so what it reads ends.
                _cut(request.protocol)

    async def _options(self, _: web.Request) -> web.Response:
        return web.Response(status=204, headers={"Allow": "GET, OPTIONS"})

    def _answering(self, route: Route) -> _Handler:
        async def answer(request: web.Request) -> web.StreamResponse:
            with self._room_for(route):
                asked = await self._asked(request, route)
                return await self._answer(request, route, asked)

        return answer

    async def _asked(self, request: web.Request, route: Route) -> Asked:
        query = {name: request.query[name] for name in route.queries if name in request.query}
        body = await self._body(request) if route.method == "POST" else b""
        accept = request.headers.get("Accept", "")
        by = changes.who(request.headers.get(changes.WHO, ""), request.remote or "")
        asked = Asked(dict(request.match_info), query, accept, body, by)
        # Nothing of the core is needed: the replica has the answer.
        if route.question is None:
            return asked
        question = route.question(self._side, asked)
        # On a thread: the core may take its time, and the loop goes on.
        answer = await asyncio.get_running_loop().run_in_executor(
            None, lambda: self._questions.ask(*question)
        )
        return asked._replace(answer=answer)

    async def _body(self, request: web.Request) -> bytes:
        if "Content-Encoding" in request.headers:
            raise Refusal(_NOT_TAKEN, "a packed body is not taken", "send it as it is")
        try:
            return await asyncio.wait_for(request.read(), IDLE_S)
        except TimeoutError:
            raise Refusal(
                _TOO_SLOW, f"the body has not come within {IDLE_S:g} s", "send it at once"
            ) from None

    @contextmanager
    def _room_for(self, route: Route) -> Iterator[None]:
        """What takes long waits for its turn, perhaps with a body; so not many may wait."""
        if not route.is_apart:
            yield
            return
        if self._waiting_apart >= APART_MAX:
            raise Refusal(
                _UNAVAILABLE,
                "too many ask for this at one time",
                "ask again later",
                retry_s=RETRY_S,
            )
        self._waiting_apart += 1
        try:
            yield
        finally:
            self._waiting_apart -= 1

    # -- an answer

    async def _answer(self, request: web.Request, route: Route, asked: Asked) -> web.StreamResponse:
        """Make it in one slice; what takes longer is made in slices, and sent as it is made."""
        made = _Made()
        work = self._work(route, asked)
        # One slice is enough for most answers, and then nothing has to stand still.
        is_all = await self._first(work, made)
        if made.head is not None and callable(made.head.content):
            content = await self._on_a_thread(made.head)
            return await self._sent(request, made.head._replace(content=content))
        if is_all and made.head is not None:
            return await self._sent(request, made.head._replace(content=b"".join(made.pieces)))
        # Begun anew: what the first slice made may be of a state that is not the same any more.
        work.close()
        one_at_a_time = route.is_apart and route.is_diagnostic
        # A dump costs as much memory as the cluster is large: one at a time.
        async with self._dumping if one_at_a_time else nullcontext():
            return await self._stream(request, route, asked)

    async def _first(self, work: Generator[Answer | bytes, None, None], made: "_Made") -> bool:
        self._check_true()
        # Only while nobody needs the state as it is: the time changes what is shown.
        if not self._slices.stands_still:
            self._side.catch_up(max(self._side.now_ns, self._now_ns()))
        return await self._slices.first(work, made.take)

    async def simulated(self, body: bytes) -> bytes:
        """Answer a question that another part of the service was asked; raise Refusal."""
        route, made = self._routes[SIMULATE], _Made()
        with self._room_for(route):
            await self._first(self._work(route, Asked(body=body)), made)
            assert made.head is not None
            return await self._on_a_thread(made.head)

    def _work(self, route: Route, asked: Asked) -> Generator[Answer | bytes, None, None]:
        """Yield the answer's kind, then its text; an empty piece is a pause."""
        found = route.handler(self._side, asked)
        if isinstance(found, GeneratorType):
            found = yield from paused(found)
        answer = found if isinstance(found, Answer) else Answer(found)
        yield answer
        if not callable(answer.content):
            yield from _text_of(answer)

    async def _on_a_thread(self, answer: Answer) -> bytes:
        """What it is made of does not change meanwhile: it was taken out, or nothing changes."""
        loop, executor = asyncio.get_running_loop(), None if answer.reads_state else self._apart
        async with self._slices.standing() if answer.reads_state else nullcontext():
            content = await loop.run_in_executor(executor, answer.content)
        if isinstance(content, bytes):
            return content
        return await loop.run_in_executor(executor, msgspec.json.encode, content)

    async def _sent(self, request: web.Request, answer: Answer) -> web.Response:
        """Make the response; what readers leave unread stays in our memory, so that is bounded."""
        if len(answer.content) <= LARGE:
            # Small answers are sent as they are; packing costs more than it saves.
            return _response(request, answer)
        self._check_unread(len(answer.content))
        packs = _takes_gzip(request)
        content = answer.content
        if packs:
            loop = asyncio.get_running_loop()
            content = await loop.run_in_executor(None, partial(gzip.compress, content, GZIP_LEVEL))
        headers = _headers_of(answer, packs=packs)
        return web.Response(body=content, status=answer.status, headers=headers)

    def _check_unread(self, size: int) -> None:
        unread = sum(map(_unread, self._connections())) + sum(it.size for it in self._sendings)
        # Memory is what it costs: readers that are slow must not fill it.
        if size + unread > UNREAD_MAX:
            raise Refusal(
                _UNAVAILABLE, "too much waits for slow readers", "ask again later", retry_s=RETRY_S
            )

    async def _stream(self, request: web.Request, route: Route, asked: Asked) -> web.StreamResponse:
        """Send an answer while it is made, until its reader leaves; nothing waits for that one."""
        self._check_unread(0)
        sending: Sending | None = None
        try:
            async with (
                self._slices.standing(),
                aclosing(self._slices.pieces(self._work(route, asked))) as slices,
            ):
                async for made in slices:
                    for piece in made:
                        if isinstance(piece, Answer):
                            sending = self._sending(request, piece)
                        elif sending is not None:
                            sending.feed(piece)
                    if sending is not None and sending.has_ended:
                        break
                    # A slow reader is cut off before memory is full.
                    if sum(it.size for it in self._sendings) > UNREAD_MAX:
                        _cut(request.protocol)
                        break
            assert sending is not None
            sending.end()
            with self._opened(request):
                await sending.sent()
        except Exception as error:
            if sending is None:
                raise
            # An answer has begun: its end is missing, which the reader sees.
            logger.error("{} {:.200} has failed", request.method, request.path, exception=error)
            _cut(request.protocol)
        finally:
            if sending is not None:
                self._sendings.discard(sending)
                sending.close()
        return sending.response

    def _sending(self, request: web.Request, answer: Answer) -> Sending:
        packs = _takes_gzip(request)
        headers = _headers_of(answer, packs=packs) | self._headers(request)
        sending = Sending(request, web.StreamResponse(status=answer.status, headers=headers), packs)
        self._sendings.add(sending)
        return sending

    def _check_true(self) -> None:
        if self._failure:
            raise Refusal(_UNAVAILABLE, self._failure)

    @contextmanager
    def _opened(self, request: web.Request) -> Iterator[None]:
        """A stream is open; a reader who takes nothing is cut off, as the end would wait for it."""
        number = next(self._streams)
        self._open[number] = request
        try:
            with suppress(ConnectionError):
                yield
        except TimeoutError:
            _cut(request.protocol)
        finally:
            del self._open[number]

    # -- browsers

    async def _follow(self, request: web.Request) -> web.StreamResponse:
        self._check_true()
        name = request.query.get("partition", "")
        response = web.StreamResponse()
        response.content_type = "text/event-stream"
        response.charset = "UTF-8"
        with self._live.opened(name), self._opened(request):
            await response.prepare(request)
            try:
                async for event in self._live.follow(name):
                    await asyncio.wait_for(response.write(event), PAGE_WRITE_S)
            except (ConnectionError, TimeoutError):
                raise
            except Exception as error:  # noqa: BLE001 - the edge: an answer has begun, so it ends
                logger.error("a picture of {:.200} has failed", name, exception=error)
        return response

    async def _session(self, request: web.Request) -> web.StreamResponse:
        guard, headers = self._guard, request.headers
        is_in = guard.right_of(headers["Host"], headers, request.cookies) > Right.NONE
        return _response(request, Answer({"needs_token": guard.needs_token, "is_in": is_in}))

    async def _log_in(self, request: web.Request) -> web.StreamResponse:
        value = self._guard.log_in(request.remote or "", (await self._body(request)).strip())
        return _with_cookie(request, value)

    async def _log_out(self, request: web.Request) -> web.StreamResponse:
        return _with_cookie(request, "")

    # -- events as they come

    async def _stream_events(self, request: web.Request) -> web.StreamResponse:
        self._check_true()
        yunikorn.check_tracked(self._side)
        asked = Asked(query=dict(request.query))
        # No more than a batch: a reader that wants all of it asks for the batches.
        past = min(yunikorn.BATCH_MAX, yunikorn.number_of(asked, "count", 0, 0))
        host = request.remote or ""
        busy = self._streaming.total() >= STREAMS_MAX
        # Also by host, or one of them could take all places.
        if busy or self._streaming[host] >= STREAMS_OF_HOST_MAX:
            raise Refusal(_UNAVAILABLE, "Too many streaming connections")
        self._streaming[host] += 1
        name = f"{host}#{next(self._streams)}"
        waiting: asyncio.Queue[tuple[EventRecord, ...] | None] = asyncio.Queue(STREAM_ROOM)
        try:
            ring = self._side.events.ring
            first, end = max(ring.lowest_id, ring.next_id - past), ring.next_id
            if not self._side.listen(name, 0, _into_queue(waiting)):
                raise Refusal(_UNAVAILABLE, "Too many streaming connections")
            return await self._write_events(request, range(first, end), waiting)
        finally:
            self._side.leave(name)
            self._streaming[host] -= 1

    async def _write_events(
        self,
        request: web.Request,
        past: range,
        waiting: "asyncio.Queue[tuple[EventRecord, ...] | None]",
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={**self._guard.headers(_STREAM)})
        response.content_type = "application/json"
        response.charset = "UTF-8"
        await response.prepare(request)
        with self._opened(request):
            await _write(response, ({"InstanceUUID": self._side.instance},))
            # In pieces, as they are read from the ring when it is their turn.
            for first in past[::LOOKS]:
                # A reader so slow that they are overwritten meanwhile goes without them.
                count = min(LOOKS, past.stop - first)
                await _write(response, self._side.records(first, count))
            while True:
                records = await self._next(request, waiting)
                if records is None:
                    refusal = Refusal(500, "Event stream was closed by the producer")
                    await _write(response, (refusal.value,))
                    break
                await _write(response, records)
        return response

    async def _next(
        self,
        request: web.Request,
        waiting: "asyncio.Queue[tuple[EventRecord, ...] | None]",
    ) -> tuple[EventRecord, ...] | None:
        """Wait for records; None where the reader was too slow, or the service ends.

        A reader that has gone is looked for: while nothing happens nothing is written, which would
        fail, and its place is missing to others of its host.
        """
        if waiting.full():
            return None
        getting = asyncio.ensure_future(waiting.get())
        closing = asyncio.ensure_future(self._closing.wait())
        try:
            while not (getting.done() or closing.done()):
                await asyncio.wait(
                    (getting, closing), timeout=GONE_S, return_when=asyncio.FIRST_COMPLETED
                )
                if request.transport is None:
                    raise ConnectionResetError("the reader of the stream has gone")
            return getting.result() if getting.done() else None
        finally:
            getting.cancel()
            closing.cancel()


def _with_cookie(request: web.Request, value: str) -> web.Response:
    given = cookie(request.headers["Host"], value, is_encrypted=request.secure)
    return web.Response(status=204, headers={"Set-Cookie": given})


def _into_queue(
    waiting: "asyncio.Queue[tuple[EventRecord, ...] | None]",
) -> Callable[[tuple[EventRecord, ...]], None]:
    def put(records: tuple[EventRecord, ...]) -> None:
        # A reader for whom there is no room any more is cut off when it looks.
        with suppress(asyncio.QueueFull):
            waiting.put_nowait(records)

    return put


async def _harden(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(_HEADERS)


async def _write(response: web.StreamResponse, values: tuple[Any, ...]) -> None:
    for first in range(0, len(values), LOOKS):
        some = values[first : first + LOOKS]
        data = b"".join(msgspec.json.encode(value) + b"\n" for value in some)
        await asyncio.wait_for(response.write(data), WRITE_S)


class _Made:
    """What the first slice has made."""

    def __init__(self) -> None:
        self.head: Answer | None = None
        self.pieces: list[bytes] = []

    def take(self, piece: Answer | bytes) -> None:
        if isinstance(piece, Answer):
            self.head = piece
        else:
            self.pieces.append(piece)


def _text_of(answer: Answer) -> Iterator[bytes]:
    content = answer.content
    if isinstance(content, bytes):
        return iter((content,))
    if isinstance(content, Texts):
        return iter(content)
    return pieces(content, answer.style)


def _takes_gzip(request: web.BaseRequest) -> bool:
    """Whether gzip is listed, and not as one that is not wanted, as in `gzip;q=0`."""
    for item in request.headers.get("Accept-Encoding", "").lower().split(","):
        coding, *parameters = (part.strip() for part in item.split(";"))
        if coding == "gzip":
            # The first that names it decides; its weight may say that it is not wanted.
            return not any(_NONE.fullmatch(it) for it in parameters)
    return False


def _headers_of(answer: Answer, *, packs: bool) -> dict[str, str]:
    packed = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"} if packs else {}
    return {**answer.headers, "Content-Type": answer.type, **packed}


def _response(request: web.BaseRequest, answer: Answer) -> web.Response:
    content = answer.content
    data = content if isinstance(content, bytes) else msgspec.json.encode(content)
    headers = {**answer.headers, "Content-Type": answer.type}
    response = web.Response(body=data, status=answer.status, headers=headers)
    if len(data) >= GZIP_MIN and _takes_gzip(request):
        response.enable_compression(web.ContentCoding.gzip)
        response.headers["Vary"] = "Accept-Encoding"
    return response


class _Protocol(web.RequestHandler):
    """A connection; what the library itself refuses on it is refused as a route refuses."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = _FAILED,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        super().handle_error(request, status, exc, message)
        if status == _FAILED:
            refusal = Refusal(_FAILED, "the service has failed to answer this")
        else:
            what = (message or "").strip().partition("\n")[0]
            refusal = Refusal(status, "this is no request in HTTP", f"{what:.200}")
        response = _refused(request, refusal)
        response.headers.update(_HEADERS)
        response.force_close()
        return response


class _Site(web.SockSite):
    """Makes its connections of that class, which the library's own site has no place for."""

    async def start(self) -> None:
        await web.BaseSite.start(self)
        loop, server = asyncio.get_running_loop(), self._runner.server
        assert server is not None
        self._server = await loop.create_server(
            lambda: _Protocol(server, loop=loop, **server._kwargs),
            sock=self._sock,
            ssl=self._ssl_context,
            backlog=self._backlog,
        )


def _refused(request: web.BaseRequest, refusal: Refusal) -> web.Response:
    retry = {"Retry-After": str(refusal.retry_s)} if refusal.retry_s else {}
    return _response(request, Answer(refusal.value, status=refusal.status, headers=retry))


async def _plain(request: web.Request, error: web.HTTPException) -> web.Response:
    """What the web server refuses: nothing is there, or it is asked in another way."""
    # YuniKorn has no slash at the end, and many clients write one.
    if error.status == _NOT_FOUND and (there := await _without_slash(request)):
        return web.Response(status=301, headers={"Location": there})
    headers = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
    answer = Answer(_plain_refusal(request, error).value, headers=headers, status=error.status)
    return _response(request, answer)


def _plain_refusal(request: web.Request, error: web.HTTPException) -> Refusal:
    if error.status == _NOT_FOUND:
        return Refusal(
            _NOT_FOUND, f"there is no {request.path:.200}", "see docs/reference/routes.md"
        )
    if error.status == _NOT_ALLOWED:
        taken = error.headers.get("Allow", "").replace(",", " and ")
        return Refusal(_NOT_ALLOWED, f"{request.method:.20} is not taken here", f"send {taken}")
    if error.status == _TOO_LARGE:
        most = f"send at most {BODY_MAX} bytes"
        return Refusal(_TOO_LARGE, "the body is too large", most)
    return Refusal(error.status, error.reason.lower())


async def _without_slash(request: web.Request) -> str:
    """Say where the route is that is asked for with a slash too many; nowhere but here."""
    path = request.rel_url.raw_path
    if not path.endswith("/") or not path.strip("/"):
        return ""
    there = request.rel_url.with_path(path.rstrip("/"), encoded=True, keep_query=True)
    found = await request.app.router.resolve(request.clone(rel_url=there))
    return "" if found.http_exception is not None else there.raw_path_qs


def _unread(connection: Any) -> int:  # noqa: ANN401 - the web server's own
    """Bytes that were answered on this connection and not taken yet."""
    transport = connection.transport
    return 0 if transport is None else transport.get_write_buffer_size()


def _cut(connection: Any) -> None:  # noqa: ANN401 - the web server's own
    """Close a connection at once: closing it in order would wait for unread output for ever."""
    if connection.transport is not None:
        connection.transport.abort()
    connection.force_close()
