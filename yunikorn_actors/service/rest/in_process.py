"""REST in the process of its core: a follower, and a loop on a thread of its own that answers.

For an embedder and for tests, who want no second process; it takes its share of the core's time.
"""

import asyncio
import socket
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

from yunikorn_actors.errors import Refused
from yunikorn_actors.messages.base import Message
from yunikorn_actors.policies.registry import Policies
from yunikorn_actors.service.address import listen_at, named
from yunikorn_actors.service.core_queries import questions_of
from yunikorn_actors.service.listener import START_S, Part, Site
from yunikorn_actors.service.read.read_model import ReadSide
from yunikorn_actors.service.rest.exchange import Refusal
from yunikorn_actors.service.rest.http_server import RestServer
from yunikorn_actors.service.rest.request_guard import Guard
from yunikorn_actors.service.tokens import CurrentTokens, Tokens

T = TypeVar("T")


class RestPart(Part):
    """The read side in a thread of this process."""

    def __init__(self, site: Site, guard: Guard | None = None) -> None:
        self._core = site.core
        self._standing = site.standing
        self._wanted = site.address
        self._tls = None if site.tls is None else site.tls.server_context()
        self._tokens = site.tokens or CurrentTokens()
        token, read_token = self._tokens.now
        self._guard = guard or Guard(
            frozenset(site.names), cors=site.cors, token=token, read_token=read_token
        )
        self._questions = questions_of(site)
        self._listener: socket.socket | None = None
        self._loop = asyncio.new_event_loop()
        self._thread: threading.Thread | None = None
        self._server: RestServer | None = None
        self._following = ""

    @property
    def address(self) -> str:
        return self._wanted if self._listener is None else named(self._listener)

    def listen(self) -> None:
        if self._listener is None:
            self._listener = listen_at(self._wanted)

    def start(self) -> None:
        self.listen()
        assert self._listener is not None
        core = self._core
        clock = core.clock
        # Counted from here on: figures of the actors are made for those who read.
        core.measure()
        side = ReadSide(
            settings=core.topology.settings,
            instance=core.topology.instance,
            start_ns=clock.now_ns(),
            names=core.topology.policies.names,
            topology=core.topology.name,
            schedulers=core.topology.schedulers,
            policies=Policies(core.topology.policies.given),
        )
        self._server = RestServer(side, self._questions, clock.now_ns, self._guard)
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="yunikorn-actors-rest", daemon=True
        )
        self._thread.start()
        # Answers first, then facts: a reader that comes early finds an empty read side.
        self._on_loop(self._server.start(self._listener, self._tls)).result(START_S)
        self._tokens.subscribe(self._renew)
        self._following = core.followers.follow(self)
        self._standing.simulate = self.simulate

    def receive(self, message: Message) -> None:
        """Hand a message to followers over to the loop; called on a thread of the core."""
        assert self._server is not None
        now_ns = self._core.clock.now_ns()
        # The loop may have ended: then nobody is left to hear of it.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._server.receive, message, now_ns)

    def simulate(self, body: bytes) -> bytes:
        """Say what would happen, to another part of the service; on a thread that may wait."""
        assert self._server is not None
        try:
            return self._on_loop(self._server.simulated(body)).result()
        except Refusal as refusal:
            raise Refused(refusal.text) from None

    def _renew(self, tokens: Tokens) -> None:
        assert self._server is not None
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._server.change_tokens, tokens)

    def stop(self, grace: float) -> None:
        if self._following:
            # First, so that no more facts come.
            self._core.followers.unfollow(self._following)
        if self._server is not None and self._thread is not None:
            with suppress(TimeoutError):
                # It waits a third for answers, and as long again for their handlers to end.
                self._on_loop(self._server.stop(grace / 3)).result(grace)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(grace)
        if not self._loop.is_running():
            self._loop.close()
        self.close()

    def close(self) -> None:
        if self._listener is not None:
            self._listener.close()

    def _on_loop(self, work: Coroutine[object, object, T]) -> "Future[T]":
        return asyncio.run_coroutine_threadsafe(work, self._loop)
