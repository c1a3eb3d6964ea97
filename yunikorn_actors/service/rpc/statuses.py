"""Errors as status codes of gRPC, and back: a code for any client, a name for ours.

The name travels in the trailing metadata, because several errors share a code.
"""

from typing import Any, Final, NoReturn, TypeAlias

from grpc import StatusCode
from grpc.aio import ServicerContext

from yunikorn_actors import errors
from yunikorn_actors.service.rpc.protobuf import Malformed
from yunikorn_actors.values.masking import masked


class StreamOver(errors.CoreError):
    """The stream was ended by another one, or by another registration."""


class TooMany(errors.CoreError):
    """A bound is reached: no more are taken."""


NAME: Final = "yunikorn-error"
"""Key of the metadata."""
LONGEST: Final = 2_000
"""Characters of a text: metadata of more than 8 kB is refused by most clients."""
_CODES: Final[dict[type[Exception], StatusCode]] = {
    Malformed: StatusCode.INVALID_ARGUMENT,
    errors.InvalidRequest: StatusCode.INVALID_ARGUMENT,
    errors.ConfigError: StatusCode.INVALID_ARGUMENT,
    errors.UnknownResourceManager: StatusCode.FAILED_PRECONDITION,
    errors.Refused: StatusCode.FAILED_PRECONDITION,
    errors.UnknownAsk: StatusCode.NOT_FOUND,
    errors.CallbackStuck: StatusCode.ABORTED,
    StreamOver: StatusCode.ABORTED,
    TooMany: StatusCode.RESOURCE_EXHAUSTED,
    errors.NoReply: StatusCode.DEADLINE_EXCEEDED,
    errors.CoreStopped: StatusCode.UNAVAILABLE,
    errors.CoreFailed: StatusCode.UNAVAILABLE,
}
ERRORS: Final = tuple(_CODES)
"""What a call may raise that is no fault of the service."""


def code_of(error: Exception) -> StatusCode:
    return next(code for kind, code in _CODES.items() if isinstance(error, kind))


async def end(context: "ServicerContext[bytes, bytes]", error: Exception) -> NoReturn:
    """End a call with what an error says; names and texts stay short enough for any client."""
    # The name first: several errors have one code.
    context.set_trailing_metadata(((NAME, type(error).__name__),))
    await context.abort(code_of(error), masked(str(error))[:LONGEST])


# -- back


Raised: TypeAlias = Any
"""An `RpcError`; what is raised has the methods of a call, which its type does not say."""


def error_of(raised: Raised) -> Exception:
    """Return what the call would have raised within one process."""
    code, text = raised.code(), raised.details() or "no reason was given"
    if code is StatusCode.CANCELLED:
        # What one has cancelled oneself is not asked for its error.
        text = "the service has ended the call: connect again"
    # Not of ours: then only the text says what it was.
    names = [value for key, value in raised.trailing_metadata() or () if key == NAME]
    kind = _NAMED.get(str(names[0])) if names else None
    if kind is not None:
        return kind(text)
    return errors.ConnectionLost(f"{text} ({code.name})")


_NAMED: Final[dict[str, type[Exception]]] = {
    **{kind.__name__: kind for kind in _CODES},
    # These have parts that do not travel; here the text was checked before it was sent.
    **dict.fromkeys(("Malformed", "ConfigError"), errors.InvalidRequest),
}
