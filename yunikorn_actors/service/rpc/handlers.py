"""What all calls have in common: bytes in, bytes out, and errors that become status codes."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import Any, TypeAlias, TypeVar

import grpc

from yunikorn_actors.service.rpc.admission import Intake, OpenCall, named
from yunikorn_actors.service.rpc.managers import Manager, Managers, Stream
from yunikorn_actors.service.rpc.messages import Kind
from yunikorn_actors.service.rpc.outgoing import Item
from yunikorn_actors.service.rpc.protobuf import LARGE, UnknownFields, codec
from yunikorn_actors.service.rpc.statuses import ERRORS, end
from yunikorn_actors.si import InvalidRequest
from yunikorn_actors.si.wire import SiMessage

M = TypeVar("M", bound=SiMessage)
Handler: TypeAlias = "grpc.RpcMethodHandler[bytes, bytes]"
Context: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"
Call: TypeAlias = Callable[[bytes], Awaitable[bytes]]
Talk: TypeAlias = Callable[[OpenCall], Awaitable[None]]

# -- calls


def answering(intake: Intake, call: Call) -> Handler:
    """One question, one answer."""

    async def anybody(request: bytes, _: str) -> bytes:
        return await call(request)

    return answering_whom(intake, anybody)


def answering_whom(intake: Intake, call: Callable[[bytes, str], Awaitable[bytes]]) -> Handler:
    """The same where it matters who asks: as gRPC names its peers."""

    async def handle(request: bytes, context: Context) -> bytes:
        try:
            return await call(request, context.peer())
        except ERRORS as error:
            await end(context, error)
        finally:
            intake.dealt_with(named(context.peer()), len(request))

    return _handler(grpc.unary_unary_rpc_method_handler, handle)


def telling(
    intake: Intake,
    tell: Callable[[bytes, Callable[[bytes], Awaitable[None]]], Awaitable[None]],
) -> Handler:
    """One question, several answers."""

    async def handle(request: bytes, context: Context) -> None:
        try:
            # At once: the question is small, and its answers may take long.
            intake.dealt_with(named(context.peer()), len(request))
            await tell(request, context.write)
        except ERRORS as error:
            await end(context, error)

    return _handler(grpc.unary_stream_rpc_method_handler, handle)


def talking(intake: Intake, talk: Talk) -> Handler:
    """A conversation."""

    async def handle(_: object, context: Context) -> None:
        # At once: gRPC would send it with the first answer, and once more with the end of the call
        # if that comes while the answer is on its way, which it refuses.
        await context.send_initial_metadata(())
        call = intake.open(context)
        try:
            await talk(call)
        except ERRORS as error:
            await end(context, error)
        finally:
            intake.close(call)

    return _handler(grpc.stream_stream_rpc_method_handler, handle)


def _handler(make: Callable[[Any], Handler], handle: object) -> Handler:
    """The types of grpc know its handlers on threads only."""
    # grpc says nothing about handlers that are coroutines.
    return make(handle)


# -- conversations


async def read(managers: Managers, call: OpenCall, kind: type[M], tell: UnknownFields) -> M | None:
    """Read the next message; None when the client has closed its side."""
    data = await call.read()
    if data is grpc.aio.EOF:
        return None
    return await decoded(managers, data, kind, tell)


async def decoded(managers: Managers, data: bytes, kind: type[M], tell: UnknownFields) -> M:
    """Read a message; a large one elsewhere, as nobody else on the loop is to wait for it."""
    decode = partial(codec(kind).decode, data, tell.tell)
    return await managers.call_long(decode) if len(data) > LARGE else decode()


async def converse(
    managers: Managers,
    manager: Manager,
    hears: Collection[Kind],
    hear: Callable[[], Awaitable[None]],
    say: Callable[[Item], Awaitable[None]],
) -> None:
    """Hear and say until the stream is ended, by whomever.

    A client that has closed its side still receives. One that has gone cancels this call.
    """
    stream = manager.open(hears)

    async def say_all() -> None:
        while True:
            item = await manager.outlet.oldest(stream.kinds)
            await say(item)
            # Only now it is out of the outlet: a stream that ends before leaves it to the next.
            manager.outlet.taken(item)

    tasks = [asyncio.create_task(_ending(stream, work)) for work in (hear, say_all)]
    try:
        # Whichever of the two ends first ends both.
        error = await stream.ended
    finally:
        for task in tasks:
            task.cancel()
        managers.leave(manager, stream)
    if error is not None:
        raise error


async def _ending(stream: Stream, work: Callable[[], Awaitable[None]]) -> None:
    """Whatever is raised ends the stream."""
    try:
        await work()
    except Exception as error:  # noqa: BLE001 - the edge: it is raised again where the call ends
        stream.end(error)


def check_same(manager: Manager, rm_id: str) -> None:
    if rm_id != manager.rm_id:
        raise InvalidRequest(
            f"rmID: this stream belongs to {manager.rm_id!r}, not to {rm_id!r}: open another one"
        )
