"""Who may call: anybody without a token, and with one whoever shows it.

The token is compared in constant time and stands in no log.
"""

from collections.abc import Awaitable, Callable
from hmac import compare_digest
from typing import Any, Final

import grpc

OPEN: Final = "/grpc.health.v1.Health/"
"""Whether a service is well is nobody's secret: what watches it has no token."""
_HINT: Final = "send the metadata authorization: Bearer TOKEN, with the token of this service"


class TokenWanted(grpc.aio.ServerInterceptor):
    def __init__(self, token: str) -> None:
        self._expected = f"Bearer {token}".encode()
        self._refusals: dict[tuple[bool, bool], Any] = {
            (False, False): grpc.unary_unary_rpc_method_handler(_refuse),
            (False, True): grpc.unary_stream_rpc_method_handler(_refuse),
            (True, False): grpc.stream_unary_rpc_method_handler(_refuse),
            (True, True): grpc.stream_stream_rpc_method_handler(_refuse),
        }

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        details: grpc.HandlerCallDetails,
    ) -> Any:  # noqa: ANN401 - a handler, None for an unknown method
        handler = await continuation(details)
        if details.method.startswith(OPEN) or self._is_shown(details) or handler is None:
            return handler
        return self._refusals[handler.request_streaming, handler.response_streaming]

    def _is_shown(self, details: grpc.HandlerCallDetails) -> bool:
        shown = [value for key, value in details.invocation_metadata if key == "authorization"]
        return len(shown) == 1 and compare_digest(_bytes(shown[0]), self._expected)


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


async def _refuse(_: object, context: Any) -> None:  # noqa: ANN401 - of grpc
    await context.abort(grpc.StatusCode.UNAUTHENTICATED, _HINT)
