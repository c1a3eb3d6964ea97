"""Access by gRPC: a caller shows the token that its call needs, if the service has any.

Tokens are compared in constant time and stand in no log. A stream that was opened with a token ends
when that token is not in force any more.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from inspect import isasyncgenfunction
from typing import Any, Final, NamedTuple

import grpc

from yunikorn_actors.service.route_rights import Right, needed_for
from yunikorn_actors.service.tokens import Tokens, bearer

_MISSING: Final = (
    grpc.StatusCode.UNAUTHENTICATED,
    "send the metadata authorization: Bearer TOKEN, with the token of this service",
)
_READING: Final = (
    grpc.StatusCode.PERMISSION_DENIED,
    (
        "this needs the full token, and the token that was shown is for reading alone: show the "
        "token of the first line of the service's --token-file"
    ),
)
_OVER: Final = (
    grpc.StatusCode.UNAUTHENTICATED,
    "the token that this call was made with is not in force any more: call again with the new one",
)
_MAKERS: Final = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, False): grpc.stream_unary_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}


class _Open:
    """A call that is answered with a stream, while it goes on."""

    def __init__(self, needed: Right, shown: bytes) -> None:
        self.needed: Final = needed
        self.shown: Final = shown
        self.task: Final = asyncio.current_task()
        self.is_over = False

    def end(self) -> None:
        # Once: a second cancellation would hit the answer about the first.
        if self.task is not None and not self.is_over:
            self.is_over = True
            self.task.cancel()


class _Shape(NamedTuple):
    """How a handler is called."""

    request_streaming: bool
    response_streaming: bool

    def made_of(self, handle: object, like: Any = None) -> Any:  # noqa: ANN401 - of grpc
        make: Any = _MAKERS[self.request_streaming, self.response_streaming]
        if like is None:
            return make(handle)
        return make(handle, like.request_deserializer, like.response_serializer)


class TokenWanted(grpc.aio.ServerInterceptor):
    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._open: set[_Open] = set()

    def change(self, tokens: Tokens) -> None:
        """Put other tokens in force, on the loop; streams of former ones end."""
        self._tokens = tokens
        for call in tuple(self._open):
            if tokens.right_of(call.shown) < call.needed:
                call.end()

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        details: grpc.HandlerCallDetails,
    ) -> Any:  # noqa: ANN401 - a handler, None for an unknown method
        handler = await continuation(details)
        needed = needed_for(details.method)
        # Unknown methods are refused by gRPC itself, without a word about tokens.
        if handler is None or needed is Right.NONE:
            return handler
        shape = _Shape(handler.request_streaming, handler.response_streaming)
        shown = _token_of(details)
        right = self._tokens.right_of(shown)
        if right < needed:
            why = _MISSING if right is Right.NONE else _READING
            return shape.made_of(partial(_refuse, why))
        # A call without a stream is over before a token can change.
        if not shape.response_streaming:
            return handler
        inner = handler.stream_stream if shape.request_streaming else handler.unary_stream
        return shape.made_of(self._ending(inner, needed, shown), handler)

    def _ending(self, inner: Any, needed: Right, shown: bytes) -> object:  # noqa: ANN401 - of grpc
        """Wrap a handler so that the call ends with its token; grpc knows two kinds of them."""

        async def answer(request: object, context: Any) -> None:  # noqa: ANN401 - of grpc
            with self._opened(needed, shown) as call:
                try:
                    await inner(request, context)
                except asyncio.CancelledError:
                    # Cancelled by its end of token; whatever else cancels it goes on as that.
                    await _say_over(call, context)

        async def produce(request: object, context: Any) -> AsyncIterator[Any]:  # noqa: ANN401
            with self._opened(needed, shown) as call:
                try:
                    async for item in inner(request, context):
                        yield item
                except asyncio.CancelledError:
                    await _say_over(call, context)

        return produce if isasyncgenfunction(inner) else answer

    @contextmanager
    def _opened(self, needed: Right, shown: bytes) -> Iterator[_Open]:
        call = _Open(needed, shown)
        self._open.add(call)
        try:
            yield call
        finally:
            self._open.discard(call)


def _token_of(details: grpc.HandlerCallDetails) -> bytes:
    """Return the token that comes with a call; none where several come, as none is meant then."""
    shown = [value for key, value in details.invocation_metadata if key == "authorization"]
    if len(shown) != 1:
        return b""
    return bearer(shown[0].encode() if isinstance(shown[0], str) else shown[0])


async def _refuse(why: tuple[grpc.StatusCode, str], _: object, context: Any) -> None:  # noqa: ANN401
    await context.abort(*why)


async def _say_over(call: _Open, context: Any) -> None:  # noqa: ANN401 - of grpc
    """Raise again what has cancelled the call, unless that was the end of its token."""
    if not call.is_over:
        raise asyncio.CancelledError
    assert call.task is not None
    # The cancellation was ours, and the call still has an answer to give.
    call.task.uncancel()
    await context.abort(*_OVER)
