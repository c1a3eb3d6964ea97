"""Who may ask: browsers are kept from lending their user's place in the network to other pages.

A page of another origin can send any request to an address that its reader can reach. It cannot
choose two headers, Host and Origin. A name in Host that is not ours means that a foreign name was
made to point here (DNS rebinding); an address cannot be made to do so. A request that may change or
cost something, a POST, is taken without Origin, as programs send it, or from our own origin.
"""

import hmac
import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final

from yunikorn_actors.service.rest.asking import OWN, Refusal, Route

_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_BAD_REQUEST: Final = 400
WITHOUT_TOKEN: Final = frozenset({f"{OWN}/live", f"{OWN}/ready"})
_HOST: Final = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[^\[\]:@/]+)(:[0-9]{0,5})?")
LOCAL: Final = frozenset({"localhost"})
CORS: Final = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Headers": "X-Requested-With,Content-Type,Accept,Origin",
}


class Guard:
    def __init__(
        self, names: frozenset[str] = frozenset(), *, cors: bool = True, token: str = ""
    ) -> None:
        """`names`: by which the service may be called, beside its addresses and `localhost`.

        With a token nobody is let in who does not show it.
        """
        self._names = LOCAL | {name.lower() for name in names}
        self._cors = cors
        self._expected = f"Bearer {token}".encode() if token else b""

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

    def check_origin(self, method: str, host: str, headers: Mapping[str, str]) -> None:
        origin = headers.get("Origin")
        is_ours = origin in {None, f"http://{host}", f"https://{host}"}
        site = headers.get("Sec-Fetch-Site", "none")
        if method == "POST" and not (is_ours and site in {"none", "same-origin"}):
            raise Refusal(
                _FORBIDDEN, "pages of another origin may not send this", "ask without a browser"
            )

    def check_token(self, path: str, headers: Mapping[str, str]) -> None:
        """Whether a service is well is nobody's secret: what watches it has no token."""
        if not self._expected or path in WITHOUT_TOKEN:
            return
        shown = headers.get("Authorization", "").encode(errors="surrogateescape")
        # In constant time, and the token stands in no text.
        if not hmac.compare_digest(shown, self._expected):
            raise Refusal(
                _UNAUTHORIZED,
                "the token of this service is missing or wrong",
                "send the header Authorization: Bearer TOKEN",
            )

    def headers(self, route: Route | None) -> dict[str, str]:
        """What lets pages of other origins read an answer; YuniKorn's have always done so."""
        if route is None or not route.is_yunikorns or route.method != "GET" or not self._cors:
            return {}
        return {**CORS, "Access-Control-Allow-Methods": "GET, OPTIONS"}


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
