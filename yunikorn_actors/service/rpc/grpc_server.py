"""The server for gRPC: one event loop on a thread of its own, for all streams."""

import asyncio
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Final

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2

from yunikorn_actors.recording.logs import logger
from yunikorn_actors.service.address import listen_at
from yunikorn_actors.service.listener import START_S, Part, Site
from yunikorn_actors.service.rpc import extension
from yunikorn_actors.service.rpc import si_service as scheduler
from yunikorn_actors.service.rpc.access import TokenWanted
from yunikorn_actors.service.rpc.extension import Extension
from yunikorn_actors.service.rpc.managers import Managers
from yunikorn_actors.service.rpc.protobuf import UnknownFields, pool

LARGEST_REQUEST: Final = 16 * 1024 * 1024
"""Some 100,000 asks, the most that one request may have."""
STREAMS_MAX: Final = 1_000
"""Of one connection at one time: its client waits with the next."""
CONNECTIONS_MAX: Final = 1_000
CALLS_MAX: Final = 20_000
"""Of all connections at one time; what is beyond them is refused."""
IDLE_S: Final = 60
"""A connection without any call is closed after this; its client makes another when it calls."""
HANDSHAKE_S: Final = 10
"""How long a connection may take to say what it speaks."""
ALIVE_S: Final = 20
"""A connection that was silent for this time is asked whether it is there, and has as long to
answer: then its streams have ended."""
OPTIONS: Final = (
    ("grpc.max_receive_message_length", LARGEST_REQUEST),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_concurrent_streams", STREAMS_MAX),
    ("grpc.max_allowed_incoming_connections", CONNECTIONS_MAX),
    ("grpc.max_connection_idle_ms", IDLE_S * 1000),
    ("grpc.server_handshake_timeout_ms", HANDSHAKE_S * 1000),
    ("grpc.keepalive_time_ms", ALIVE_S * 1000),
    ("grpc.keepalive_timeout_ms", ALIVE_S * 1000),
    # Of pings that measure the line: none to keep alive is sent beside one that has no answer.
    ("grpc.http2.ping_timeout_ms", ALIVE_S * 1000),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    # Two services on one port would get a connection each, at random.
    ("grpc.so_reuseport", 0),
)
POLL_S: Final = 0.01
LAST_S: Final = 0.5
"""Kept from the time to stop for the end itself."""


def make(site: Site) -> Part:
    return RpcPart(site)


class RpcPart(Part):
    def __init__(self, site: Site) -> None:
        self._site = site
        self._address = site.address
        self._started: Future[str] = Future()
        self._thread = threading.Thread(target=self._run, name="yunikorn-actors-rpc", daemon=True)

    @property
    def address(self) -> str:
        return self._address

    def listen(self) -> None:
        # The server for gRPC takes no socket that is open already; so this one says whether the
        # address can be had, and why not, which that server only writes to standard error.
        listen_at(self._site.address).close()

    def close(self) -> None:
        """No socket is held before it starts, and the server closes its own."""

    def start(self) -> None:
        self._thread.start()
        try:
            self._address = self._started.result()
        except BaseException:
            # An interrupt, perhaps: then it has started, or will.
            self.stop(START_S)
            raise

    def stop(self, grace: float) -> None:
        """Stop the server, even if it has begun only in part."""
        if self._thread.ident is None:
            return
        self._until = time.monotonic() + grace - LAST_S
        # Until then there is nothing to stop; where it could not start the thread ends by itself.
        with suppress(Exception):
            self._started.result(grace)
            self._loop.call_soon_threadsafe(self._wanted_to_stop.set)
        self._thread.join(grace)

    # -- on its thread

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - the edge: it is raised where it was started
            if self._started.done():
                logger.error("the gRPC server has ended by an error", exception=error)
            else:
                self._started.set_exception(error)

    async def _serve(self) -> None:
        core = self._site.core
        self._loop = asyncio.get_running_loop()
        answer_s = core.topology.settings.predicate_timeout_ns / 1e9
        self._wanted_to_stop = asyncio.Event()
        self._managers = Managers(core, answer_s)
        core.when_over.append(self._managers.core_is_over)
        interceptors = self._interceptors()
        self._server = grpc.aio.server(
            interceptors=interceptors, options=OPTIONS, maximum_concurrent_rpcs=CALLS_MAX
        )
        self._add_services()
        port = self._listen()
        await self._server.start()
        host, _, _ = self._site.address.rpartition(":")
        self._started.set_result(f"{host}:{port}")
        watching = asyncio.create_task(self._managers.intake.watch(port))
        await self._wanted_to_stop.wait()
        watching.cancel()
        await self._close(self._until)

    def _interceptors(self) -> list[TokenWanted]:
        tokens = self._site.tokens
        if tokens is None or not tokens.now.full:
            return []
        wanted = TokenWanted(tokens.now)
        tokens.subscribe(lambda changed: self._managers.on_loop(partial(wanted.change, changed)))
        # Once more, on the loop: they may have changed in between.
        wanted.change(tokens.now)
        return [wanted]

    def _add_services(self) -> None:
        unknown_fields = UnknownFields()
        services = (
            scheduler.methods(self._managers, unknown_fields),
            Extension(self._managers, unknown_fields, self._site.standing).methods(),
        )
        self._server.add_generic_rpc_handlers(services)
        self._health = health.aio.HealthServicer()
        self._site.standing.subscribe(self._tell_of)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        # Reflection names what a client may call.
        names = (scheduler.NAME, extension.NAME, health.SERVICE_NAME, reflection.SERVICE_NAME)
        described = pool()
        for module in (health_pb2, reflection_pb2):
            described.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
        reflection.enable_server_reflection(names, self._server, pool=described)

    def _tell_of(self, topic: str, fault: str) -> None:
        """Called on any thread."""
        status = health_pb2.HealthCheckResponse
        state = status.NOT_SERVING if fault else status.SERVING
        telling = self._health.set(topic, state)
        try:
            asyncio.run_coroutine_threadsafe(telling, self._loop)
        except RuntimeError:
            # The loop is closed: nobody asks any more.
            telling.close()

    def _listen(self) -> int:
        address = self._site.address
        self.listen()
        try:
            if self._site.tls is None:
                return self._server.add_insecure_port(address)
            tls = self._site.tls
            credentials = grpc.ssl_server_credentials(
                [(tls.key, tls.chain)],
                root_certificates=tls.clients or None,
                require_client_auth=bool(tls.clients),
            )
            return self._server.add_secure_port(address, credentials)
        except RuntimeError as error:
            raise OSError(f"gRPC cannot listen on {address}: {error}") from None

    async def _close(self, until: float) -> None:
        await self._health.enter_graceful_shutdown()
        await self._managers.close(lambda: self._deliver(until))
        await self._server.stop(max(0.1, until - time.monotonic()))

    async def _deliver(self, until: float) -> None:
        # Nobody tells when the core has come to rest.
        while not self._managers.is_delivered() and time.monotonic() < until:  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)
