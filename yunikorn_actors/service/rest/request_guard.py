"""The guard of REST: browsers may not lend their user's place in the network to other pages.

A page of another origin can send any request to an address that its reader can reach. It cannot
choose two headers, Host and Origin. A name in Host that is not ours means that a foreign name was
made to point here (DNS rebinding); an address cannot be made to do so. A request that may change or
cost something (a POST, one for a dump) and one for a route of ours is taken without Origin, as
programs send it, or from our own origin. A cookie lets in what our own page asks and nothing else:
a page on another port of this host is of the same site, and its requests carry our cookies.
"""

import math
import re
import time
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from typing import Final

from yunikorn_actors.service.rest.exchange import OWN, Refusal, Route
from yunikorn_actors.service.rest.sessions import SESSION_S, Attempts, Sessions
from yunikorn_actors.service.route_rights import Right
from yunikorn_actors.service.tokens import Tokens, bearer

_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_BAD_REQUEST: Final = 400
_TOO_MANY: Final = 429
_HOST: Final = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[^\[\]:@/]+)(:[0-9]{0,5})?")
LOGIN: Final = f"{OWN}/login"
SESSION: Final = f"{OWN}/session"
LOCAL: Final = frozenset({"localhost"})
CORS: Final = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Headers": "X-Requested-With,Content-Type,Accept,Origin",
}


class Guard:
    def __init__(
        self,
        names: frozenset[str] = frozenset(),
        *,
        cors: bool = True,
        token: str = "",
        read_token: str = "",
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`names`: by which the service may be called, beside its addresses and `localhost`.

        With a token nobody is let in who does not show it, or has not done so before; the other
        one lets its callers read.
        """
        self._names = LOCAL | {name.lower() for name in names}
        self._cors = cors
        self._tokens = Tokens(token, read_token)
        self._sessions = Sessions(now_s)
        self._attempts = Attempts(now_s)

    def check_host(self, host: str) -> None:
        if not host:
            raise Refusal(_BAD_REQUEST, "the request names no host")
        name = name_of(host)
        if not name:
            raise Refusal(_BAD_REQUEST, "the header Host is not NAME or NAME:PORT")
        if name.lower() not in self._names and not _is_address(name):
            raise Refusal(
                _FORBIDDEN,
                f"{name:.100} is not a name of this service",
                "ask by an address or by localhost, or give the service this name",
            )

    def check_origin(
        self,
        method: str,
        path: str,
        host: str,
        headers: Mapping[str, str],
        *,
        is_closed: bool = False,
    ) -> None:
        """`is_closed`: the route that is asked for is closed to pages of other origins."""
        if is_closed or method == "POST" or path.startswith(f"{OWN}/"):
            _check_same_origin(host, headers)

    def check_right(
        self, needed: Right, host: str, headers: Mapping[str, str], cookies: Mapping[str, str]
    ) -> None:
        if needed is Right.NONE:
            return
        right = self.right_of(host, headers, cookies)
        if right is Right.NONE:
            raise Refusal(
                _UNAUTHORIZED,
                "the token of this service is missing or wrong",
                "send the header Authorization: Bearer TOKEN",
            )
        if right < needed:
            raise Refusal(
                _FORBIDDEN,
                "this needs the full token, and the token that was shown is for reading alone",
                "show the token of the first line of the service's --token-file",
            )

    @property
    def needs_token(self) -> bool:
        return bool(self._tokens.full)

    def change(self, tokens: Tokens) -> None:
        """Take other tokens; the former ones and their cookies end."""
        self._tokens = tokens

    def right_of(self, host: str, headers: Mapping[str, str], cookies: Mapping[str, str]) -> Right:
        """Return what the token allows that comes with a request, or whose cookie comes with it."""
        header = headers.get("Authorization", "").encode(errors="surrogateescape")
        shown = bearer(header)
        # A token in the header is of a program: no browser sends one for another page.
        if (right := self._tokens.right_of(shown)) is not Right.NONE:
            return right
        cookie = cookies.get(cookie_of(host), "")
        for token in filter(None, self._tokens):
            if self._sessions.is_open(cookie, token):
                # The cookie says who the browser is, and this, that our page asks.
                _check_same_origin(host, headers)
                return self._tokens.right_of(token.encode())
        return Right.NONE

    def log_in(self, remote: str, shown: bytes) -> str:
        """Let a browser in that shows the token; return the value of its cookie."""
        if wait_s := self._attempts.wait_s(remote):
            raise Refusal(
                _TOO_MANY,
                "too many wrong tokens",
                f"wait for {math.ceil(wait_s)} s, and copy the token from its file",
            )
        if self._tokens.right_of(shown) is Right.NONE:
            self._attempts.note_wrong(remote)
            raise Refusal(
                _UNAUTHORIZED, "this is not the token of this service", "copy it from its file"
            )
        return self._sessions.open(shown.decode(errors="replace"))

    def headers(self, route: Route | None) -> dict[str, str]:
        """What lets pages of other origins read an answer; YuniKorn's have always done so."""
        if route is None or route.is_closed or not self._cors:
            return {}
        return {**CORS, "Access-Control-Allow-Methods": "GET, OPTIONS"}


def cookie_of(host: str) -> str:
    """Name the cookie of the service at this Host; its port is part of that.

    Browsers give a cookie to all ports of a host, and several services may run on one.
    """
    # Behind the bracket: an address of IPv6 has colons of its own.
    port = host.rpartition("]")[2].partition(":")[2]
    return f"yunikorn-actors-{port}" if port.isdecimal() else "yunikorn-actors"


def cookie(host: str, value: str, *, is_encrypted: bool) -> str:
    """Write the header that gives a browser its cookie; without a value it takes it away."""
    lives_s = SESSION_S if value else 0
    secure = "; Secure" if is_encrypted else ""
    name = cookie_of(host)
    # Scripts cannot read it, and requests of other sites do not carry it.
    return f"{name}={value}; Path=/; Max-Age={lives_s}; HttpOnly; SameSite=Strict{secure}"


def _check_same_origin(host: str, headers: Mapping[str, str]) -> None:
    is_ours = headers.get("Origin") in {None, f"http://{host}", f"https://{host}"}
    is_near = headers.get("Sec-Fetch-Site") in {None, "none", "same-origin"}
    if not (is_ours and is_near):
        raise Refusal(
            _FORBIDDEN, "pages of another origin may not send this", "ask without a browser"
        )


def name_of(host: str) -> str:
    """Return the name in a Host header, without the port; empty where it is none."""
    found = _HOST.fullmatch(host)
    return "" if found is None else found["name"].strip("[]")


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
