"""The tokens in force: what a caller who shows one may do, and their changes during a run.

A change ends the former tokens for the calls that come and for the streams that are open: a token
may be changed because it has leaked.
"""

import threading
from collections.abc import Callable
from hmac import compare_digest
from typing import Final, NamedTuple

from yunikorn_actors.recording.logs import logger
from yunikorn_actors.service.access_policy import TokenFiles
from yunikorn_actors.service.followed_file import FollowedFile, check_no_pipe
from yunikorn_actors.service.route_rights import Right

SCHEME: Final = b"bearer"
"""Of the header, in any case: RFC 9110 (11.1) compares schemes so."""


class Tokens(NamedTuple):
    full: str = ""
    """Empty where the service has no tokens, and everybody may do everything."""
    read: str = ""
    """Empty where there is none for reading alone."""

    def __repr__(self) -> str:
        """Keep them out of logs and of texts of errors."""
        return f"Tokens(full={'***' * bool(self.full)!r}, read={'***' * bool(self.read)!r})"

    def right_of(self, shown: bytes) -> Right:
        if not self.full:
            return Right.FULL
        # Both in constant time, whichever is right: how long it takes tells a caller nothing.
        is_full = compare_digest(shown, self.full.encode())
        is_read = compare_digest(shown, self.read.encode()) and bool(self.read)
        return Right.FULL if is_full else Right.READ if is_read else Right.NONE


def bearer(header: bytes) -> bytes:
    """Return the token of an `authorization` header, nothing where it has another scheme."""
    scheme, _, shown = header.partition(b" ")
    return shown if scheme.lower() == SCHEME else b""


class CurrentTokens:
    """The tokens in force, shared by all parts of a service."""

    def __init__(self, tokens: Tokens | None = None) -> None:
        self._lock = threading.Lock()
        self._tokens = tokens or Tokens()
        self._subscribers: list[Callable[[Tokens], object]] = []

    @property
    def now(self) -> Tokens:
        return self._tokens

    def subscribe(self, subscriber: Callable[[Tokens], object]) -> None:
        """Call it at each change, on any thread; the subscriber does not block."""
        with self._lock:
            self._subscribers.append(subscriber)

    def change(self, tokens: Tokens) -> None:
        with self._lock:
            self._tokens = tokens
            # Under the lock, so that two changes reach everybody in their order.
            for subscriber in self._subscribers:
                subscriber(tokens)


class FollowedTokens(FollowedFile[Tokens]):
    """The token files, followed while the service runs; what cannot be read changes nothing."""

    def __init__(self, files: TokenFiles, current: CurrentTokens) -> None:
        super().__init__("yunikorn-actors-tokens", current.now)
        self._files = files
        self._current = current
        self._reason = ""
        """Why the files were refused last, so that it is logged once."""

    def start(self) -> None:
        self._warn()
        super().start()

    def _read(self) -> Tokens:
        for path in self._files.given:
            check_no_pipe(path)
        return Tokens(*self._files.read())

    def _take(self, found: Tokens) -> None:
        self._reason = ""
        # The same text again: nothing is announced, and no stream is cut.
        if found != self._current.now:
            self._current.change(found)
            self._warn()
            logger.info("the tokens of {} are in force, the former ones are not", self._files.full)

    def _refuse(self, reason: str) -> None:
        if reason != self._reason:
            self._reason = reason
            # Not by the option alone: what follows its name in a line of the log is masked.
            logger.warning(
                "the tokens of {} are refused, the former ones stay in force: {}",
                " and ".join(map(str, self._files.given)),
                reason,
            )

    def _warn(self) -> None:
        for warning in self._files.exposed():
            logger.warning("{}", warning)
