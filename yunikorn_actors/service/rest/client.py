"""What a program asks a service over HTTP: with the standard library alone, and one clear error.

Reads and changes go to REST, not by gRPC: the read side answers there without costing the core
anything, and who operates a service needs one address and no package beside this one.
"""

import http.client
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, NoReturn
from urllib.parse import quote, urlencode

import msgspec

from yunikorn_actors.errors import ConnectionLost, Refused, UnknownName
from yunikorn_actors.service.address import parted

CONNECT_S: Final = 10.0
REPLY_S: Final = 60.0
"""Longer than a service takes to say that its core does not answer."""
BUSY_S: Final = 60.0
"""So long in all a service that is busy is asked again: as long as a simulation may take there."""
ANSWER_MAX: Final = 1 << 30
LINE_MAX: Final = 1 << 20
ALIVE_S: Final = 20
"""A service that is gone without a word is noticed after some times this."""
JSON: Final = "application/json"
_REFUSALS: Final = (HTTPStatus.BAD_REQUEST, HTTPStatus.CONFLICT)


class _Busy(Exception):
    """The service has not done what it was asked, and says when it may be asked again."""

    def __init__(self, text: str, after_s: int) -> None:
        super().__init__(text)
        self.after_s = after_s


class Client:
    """Calls of one service; each has a connection of its own."""

    def __init__(
        self,
        address: str,
        *,
        token: str = "",
        ca: Path | None = None,
        own: tuple[Path, Path] | None = None,
        who: str = "",
    ) -> None:
        """`ca` names the file of the certificate to trust, for TLS; `who` asks for changes.

        `own` names the files of the caller's own certificate and of its key.
        """
        self._address = address
        self._host, self._port = _parted(address)
        self._headers = {
            name: text
            for name, text in (("Authorization", f"Bearer {token}" * bool(token)), ("From", who))
            if text
        }
        self._tls = None if ca is None else _trusting(ca, own)

    def get(self, *path: str, **query: str) -> Any:  # noqa: ANN401 - any JSON
        """Return the answer of a route; the parts of its path may be any names."""
        return self._value(self._answer("GET", _target(path, query), accept=JSON))

    def text(self, *path: str) -> str:
        return self._answer("GET", _target(path, {})).decode(errors="replace")

    def post(self, *path: str, body: bytes = b"") -> Any:  # noqa: ANN401 - any JSON
        return self._value(self._answer("POST", _target(path, {}), body, accept=JSON))

    def lines(self, *path: str, **query: str) -> Iterator[dict[str, Any]]:
        """Yield what a stream says, for as long as it goes on; raise ConnectionLost at its end."""
        with self._asked("GET", _target(path, query), b"", JSON, endless=True) as response:
            while (line := _next_line(response)).endswith(b"\n"):
                value = self._value(line)
                if not isinstance(value, dict) or "status_code" in value:
                    break
                yield value
        self._lost("the service has ended, or has cut off a reader that was too slow")

    # -- parts

    def _answer(self, method: str, target: str, body: bytes = b"", accept: str = "") -> bytes:
        """Ask until the service has time for it, or has had none for too long."""
        end_s = time.monotonic() + BUSY_S
        while True:
            try:
                return self._answer_now(method, target, body, accept)
            except _Busy as busy:
                if time.monotonic() + busy.after_s > end_s:
                    self._lost(f"{busy}; it was asked for {BUSY_S:g} s")
                time.sleep(busy.after_s)

    def _answer_now(self, method: str, target: str, body: bytes, accept: str) -> bytes:
        with self._asked(method, target, body, accept) as response:
            data: bytes = response.read(ANSWER_MAX)
            # Longer than anything that a service answers: it is another program.
            if len(data) == ANSWER_MAX:
                self._lost(f"answers with more than {ANSWER_MAX} bytes")
            # `read` ends silently where the other side has gone.
            if response.length:
                self._lost("has ended in the middle of its answer")
        return data

    def _value(self, data: bytes) -> Any:  # noqa: ANN401 - any JSON
        try:
            return msgspec.json.decode(data)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            self._lost("answers something else than JSON: it is another program, or a proxy")

    @contextmanager
    def _asked(
        self, method: str, target: str, body: bytes, accept: str, *, endless: bool = False
    ) -> Iterator[http.client.HTTPResponse]:
        connection = self._connected()
        try:
            assert connection.sock is not None
            connection.sock.settimeout(REPLY_S)
            headers = self._headers | ({"Accept": accept} if accept else {})
            # Taken before: a response that closes the connection takes its socket along.
            line = connection.sock
            connection.request(method, target, body or None, headers)
            response = connection.getresponse()
            if response.status != HTTPStatus.OK:
                self._refuse(target, response)
            if endless:
                # Nothing may happen for hours; a peer that has gone is noticed all the same.
                line.settimeout(None)
            yield response
        except TimeoutError:
            self._lost(f"no answer within {REPLY_S:g} s")
        except (http.client.HTTPException, ConnectionError, ssl.SSLError) as error:
            if isinstance(error, ConnectionLost):
                raise
            # A service that wants a certificate of its clients just closes the connection.
            if self._tls is not None:
                self._lost(
                    f"no answer by TLS ({type(error).__name__}): if it wants a certificate of its "
                    "clients, --tls-cert names one that it trusts; or it has just ended"
                )
            self._lost(
                f"no answer in HTTP ({type(error).__name__}): --server is the address of REST, not "
                "of gRPC; a service with TLS needs --tls-ca; or it has just ended"
            )
        finally:
            connection.close()

    def _connected(self) -> http.client.HTTPConnection:
        connection = (
            http.client.HTTPConnection(self._host, self._port, timeout=CONNECT_S)
            if self._tls is None
            else http.client.HTTPSConnection(
                self._host, self._port, timeout=CONNECT_S, context=self._tls
            )
        )
        try:
            connection.connect()
        except ssl.SSLCertVerificationError as error:
            self._lost(
                f"its certificate is not trusted ({error.verify_message}): --tls-ca names the file "
                "of its signer, and --server a name that stands in it"
            )
        except ssl.SSLError:
            self._lost("does not speak TLS: leave --tls-ca out if it has none")
        except OSError as error:
            self._lost(
                f"nobody answers there ({error.strerror or error}): is `yunikorn-actors serve` "
                "running, and is this its address of REST?"
            )
        # Without it a peer that has gone would be noticed never, or hours later.
        _keep_alive(connection.sock)
        return connection

    def _refuse(self, target: str, response: http.client.HTTPResponse) -> NoReturn:
        status, reason = response.status, response.reason
        try:
            said = msgspec.json.decode(response.read(LINE_MAX))
            message, more = str(said["message"]), str(said["description"])
        except (msgspec.MsgspecError, ValueError, RecursionError, KeyError, TypeError):
            if status in {HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED}:
                self._lost(
                    f"has no {target.partition('?')[0]:.200}: it is of another version than this "
                    "command, is YuniKorn itself, or another program"
                )
            self._lost(f"{status} {reason}")
        text = message if more == message else f"{message}: {more}"
        if status == HTTPStatus.NOT_FOUND:
            raise UnknownName(text)
        if status == HTTPStatus.UNAUTHORIZED:
            self._lost("the token is missing or wrong: --token-file names the file of the service")
        if status in _REFUSALS:
            raise Refused(text)
        after = response.headers.get("Retry-After", "")
        if status == HTTPStatus.SERVICE_UNAVAILABLE and after.isdecimal():
            raise _Busy(text, int(after))
        self._lost(text)

    def _lost(self, why: str) -> NoReturn:
        raise ConnectionLost(f"{self._address}: {why}") from None


def _parted(address: str) -> tuple[str, int]:
    # As pages and browsers write it.
    found = parted(address.removeprefix("http://").removesuffix("/"))
    if found is None:
        raise ConnectionLost(f"{address!r:.100} is no address of a service: give HOST:PORT")
    return found


def _target(path: tuple[str, ...], query: dict[str, str]) -> str:
    """Names become parts of a path whatever stands in them; dots alone would lead elsewhere."""
    for part in path:
        if part in {"", ".", ".."}:
            raise UnknownName(f"nothing is called {part!r}: give a name")
    target = "/" + "/".join(quote(part, safe="", errors="replace") for part in path)
    return f"{target}?{urlencode(query, errors='replace')}" if query else target


def _trusting(ca: Path, own: tuple[Path, Path] | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        raise ConnectionLost(f"--tls-ca {ca}: no certificate can be read there: {error}") from None
    if own is not None:
        try:
            context.load_cert_chain(*own)
        except (OSError, ssl.SSLError) as error:
            raise ConnectionLost(
                f"--tls-cert {own[0]} with --tls-key {own[1]}: no certificate with its key: {error}"
            ) from None
    return context


def _next_line(response: http.client.HTTPResponse) -> bytes:
    """Return nothing at the end, however it comes."""
    try:
        return response.readline(LINE_MAX)
    except (http.client.HTTPException, OSError):
        return b""


def _keep_alive(line: socket.socket) -> None:
    line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL):
        line.setsockopt(socket.IPPROTO_TCP, option, ALIVE_S)
