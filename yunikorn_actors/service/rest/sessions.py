"""Logging in: a browser shows the token once, and a cookie from then on.

A cookie says until when it lets its browser in, signed with a key that this process alone has and
that goes with it. So nothing is kept for a browser, and the token stands in no cookie. The token
that was shown is a part of what is signed: a cookie ends with its token.
"""

import hmac
import secrets
from collections import OrderedDict, deque
from collections.abc import Callable
from hashlib import sha256
from typing import Final

SESSION_S: Final = 12 * 3_600
WRONG_MAX: Final = 10
WRONG_S: Final = 60.0
"""A host that has shown so many wrong tokens within this time has to wait."""
HOSTS_MAX: Final = 1_000
"""Wrong tokens of so many hosts are remembered; the host that was wrong the longest ago goes."""


class Sessions:
    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._key = secrets.token_bytes(32)

    def open(self, token: str) -> str:
        """Return what a browser that has shown this token shows from now on."""
        return self._signed(str(int(self._now_s()) + SESSION_S), token)

    def is_open(self, shown: str, token: str) -> bool:
        """Whether it is the cookie of a browser that has shown this token."""
        until, _, _ = shown.partition(".")
        # Signed with a token that is in force: another one makes another signature.
        is_ours = shown.isascii() and hmac.compare_digest(shown, self._signed(until, token))
        return is_ours and int(until) > self._now_s()

    def _signed(self, until: str, token: str) -> str:
        signature = hmac.new(self._key, f"{until} {token}".encode(), sha256).hexdigest()
        return f"{until}.{signature}"


class Attempts:
    """The wrong tokens of the last while, by the host that showed them."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._wrong: OrderedDict[str, deque[float]] = OrderedDict()

    def wait_s(self, host: str) -> float:
        """Return how long this host has to wait before it may try again; mostly it need not."""
        times = self._wrong.get(host)
        if times is None or len(times) < WRONG_MAX:
            return 0.0
        # From the first of the last ten on: then there are fewer than ten in that time.
        return max(0.0, times[0] + WRONG_S - self._now_s())

    def note_wrong(self, host: str) -> None:
        times = self._wrong.setdefault(host, deque(maxlen=WRONG_MAX))
        times.append(self._now_s())
        self._wrong.move_to_end(host)
        if len(self._wrong) > HOSTS_MAX:
            self._wrong.popitem(last=False)
