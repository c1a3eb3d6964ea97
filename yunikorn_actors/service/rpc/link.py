"""The connection of a `RemoteCore`: what it asks, and what it opens, by gRPC."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import grpc

from yunikorn_actors import si
from yunikorn_actors.errors import ConnectionLost, Refused, Replaced
from yunikorn_actors.service.address import Trust
from yunikorn_actors.service.rpc import messages as m
from yunikorn_actors.service.rpc.conversation import Conversation, Over, Raised
from yunikorn_actors.service.rpc.protobuf import UnknownFields, codec
from yunikorn_actors.service.rpc.statuses import StreamOver, error_of
from yunikorn_actors.si.wire import SiMessage

EXTENSION: Final = "/yunikorn_actors.v1.Extension/"
CONNECT_S: Final = 10.0
"""For a service that accepts and is silent; where none listens the error comes at once."""
REPLY_S: Final = 60.0
"""Longer than a core takes to say that it does not answer."""
ALIVE_MS: Final = 20_000
OPTIONS: Final = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.keepalive_time_ms", ALIVE_MS),
    ("grpc.keepalive_timeout_ms", ALIVE_MS),
    # Of pings that measure the line: none to keep alive is sent beside one that has no answer.
    ("grpc.http2.ping_timeout_ms", ALIVE_MS),
    # Channels of one address would share its connection, and how long to wait after a failure.
    ("grpc.use_local_subchannel_pool", 1),
)
_UNTRUSTED: Final = "`ca` names the file of the certificate to trust"
_SIGNS: Final = {
    "certificate has expired": "its certificate has expired, it needs another",
    "certificate is not yet valid": "the time of its certificate has not begun; see to the clocks",
    "ostname Verification": "its certificate is for another name than this address",
    "CERTIFICATE_VERIFY_FAILED": f"its certificate is not trusted: {_UNTRUSTED}",
    "WRONG_VERSION_NUMBER": "it answers without TLS: leave `ca` out",
    "handshaker": "`ca` names a file without a certificate",
    "Socket closed": f"it hung up; if it has TLS, {_UNTRUSTED}",
    "Deadline Exceeded": "what listens there says nothing",
    "Connection refused": "is `yunikorn-actors serve` running there?",
}
"""Errors of the library in an attempt, and what each means to the caller."""
_SIGNS_WITH_TLS: Final = {
    "Socket closed": (
        "it hung up; if it wants a certificate of its clients, `cert` and `key` name one"
    ),
}
_BROKEN: Final = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.INTERNAL,
    }
)
"""Without a name of ours these are about the connection, and do not come from the service."""
# A status of gRPC without our name came from the library, or from something in between.
M = TypeVar("M", bound=SiMessage)


class AnswerStream(NamedTuple):
    """Answers that come one after the other; `next` raises what a call would raise."""

    answers: Iterator[Any]
    cancel: Callable[[], None]


class Link:
    def __init__(self, address: str, token: str, trust: Trust) -> None:
        self._address = address
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
        self._channel = _channel(address, trust)
        self._is_encrypted = trust.ca is not None
        self._unknown_fields = UnknownFields()

    def open(self) -> None:
        """Find out whether a service answers there, and lets us in; raise at once if not."""
        # A question, as a connection is ready without a token, too.
        # Several cores behind one service refuse this one, to who may ask.
        with suppress(Refused):
            self.ask("Events", m.EventsRequest(count=1), m.EventsFound, CONNECT_S)

    def error_of(self, raised: Any) -> Exception:  # noqa: ANN401 - as `statuses` has it
        """Return what the call would have raised within one process, or what to do there."""
        error = error_of(raised)
        if not isinstance(error, ConnectionLost):
            return error
        text = str(error)
        # The service itself answered with that, so it can be reached.
        if raised.code() not in _BROKEN:
            return ConnectionLost(f"the service at {self._address} refuses this: {text}")
        signs = _SIGNS if not self._is_encrypted else _SIGNS | _SIGNS_WITH_TLS
        why = next((why for sign, why in signs.items() if sign in text), text)
        return ConnectionLost(f"no service answers at {self._address}: {why}")

    def end_of(self, raised: Any) -> Exception:  # noqa: ANN401 - as above
        """Return why a conversation has ended that was under way."""
        # A name of ours means that the service has ended it; else the line has.
        if raised.code() in _BROKEN and isinstance(error_of(raised), ConnectionLost):
            return ConnectionLost(
                f"the connection to the service at {self._address} has broken: connect again when "
                "it is back, and bring what runs"
            )
        error = self.error_of(raised)
        if isinstance(error, StreamOver):
            return Replaced(
                f"{error} at the service at {self._address}: give each program an rm_id of its own"
            )
        return error

    def close(self) -> None:
        self._channel.close()

    def ask(
        self, method: str, message: SiMessage, kind: type[M], timeout: float | None = None
    ) -> M:
        call: Any = self._channel.unary_unary(EXTENSION + method)
        data = codec(type(message)).encode(message)
        try:
            with self._unclosed():
                answer = call(data, timeout=timeout or REPLY_S, metadata=self._metadata)
        except grpc.RpcError as raised:
            raise self.error_of(raised) from None
        read: M = codec(kind).decode(answer, self._unknown_fields.tell)
        return read

    def open_stream(self, method: str, message: SiMessage, kind: type[SiMessage]) -> AnswerStream:
        open_: Any = self._channel.unary_stream(EXTENSION + method)
        with self._unclosed():
            call = open_(codec(type(message)).encode(message), metadata=self._metadata)

        def cancel() -> None:
            call.cancel()

        return AnswerStream(self._read(call, kind), cancel)

    def _read(self, call: Any, kind: type[M]) -> Iterator[M]:  # noqa: ANN401 - of grpc
        try:
            for data in call:
                yield codec(kind).decode(data, self._unknown_fields.tell)
        except grpc.RpcError as raised:
            raise self.error_of(raised) from None

    def register(
        self,
        request: si.RegisterResourceManagerRequest,
        callback: si.ResourceManagerCallback,
        raised: Raised,
        over: Over,
        *,
        config_is_default: bool = False,
    ) -> Conversation:
        """Register, and begin to hear; raise what the core has against it."""
        conversation = Conversation(request.rm_id, callback, raised, over, self)
        call: Any = self._channel.stream_stream(f"{EXTENSION}Converse")
        with self._unclosed():
            conversation.open(
                lambda said: call(said, metadata=self._metadata), request, REPLY_S,
                config_is_default=config_is_default,
            )  # fmt: skip
        return conversation

    @contextmanager
    def _unclosed(self) -> Iterator[None]:
        """Another thread may close this in the middle of a call, which gRPC takes for a slip."""
        try:
            yield
        except ValueError as error:
            # Other errors of values are about what was sent.
            if type(error) is not ValueError:
                raise
            text = f"the connection to the service at {self._address} was closed meanwhile"
            raise ConnectionLost(text) from error


def _channel(address: str, trust: Trust) -> grpc.Channel:
    if trust.ca is None:
        return grpc.insecure_channel(address, OPTIONS)
    ca, cert, key = (
        None if path is None else _bytes_of(name, path)
        for name, path in zip(trust._fields, trust, strict=True)
    )
    credentials = grpc.ssl_channel_credentials(ca, key, cert)
    return grpc.secure_channel(address, credentials, OPTIONS)


def _bytes_of(name: str, path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConnectionLost(f"{name}: {path} cannot be read: {error.strerror}") from None
