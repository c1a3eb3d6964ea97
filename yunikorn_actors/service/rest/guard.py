"""Who may ask: browsers are kept from lending their user's place in the network to other pages.

A page of another origin can send any request to an address that its reader can reach. It cannot
choose two headers, Host and Origin. A name in Host that is not ours means that a foreign name was
made to point here (DNS rebinding); an address cannot be made to do so. A request that may change or
cost something, a POST, is taken without Origin, as programs send it, or from our own origin.
"""

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final

from yunikorn_actors.service.rest.asking import Refusal, Route

_FORBIDDEN: Final = 403
_BAD_REQUEST: Final = 400
LOCAL: Final = frozenset({"localhost"})
CORS: Final = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Headers": "X-Requested-With,Content-Type,Accept,Origin",
}


class Guard:
    def __init__(self, names: frozenset[str] = frozenset(), *, cors: bool = True) -> None:
        """`names`: by which the service may be called, beside its addresses and `localhost`."""
        self._names = LOCAL | {name.lower() for name in names}
        self._cors = cors

    def check_host(self, host: str) -> None:
        if not host:
            raise Refusal(_BAD_REQUEST, "the request names no host")
        name = name_of(host)
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

    def headers(self, route: Route | None) -> dict[str, str]:
        """What lets pages of other origins read an answer; YuniKorn's have always done so."""
        if route is None or not route.is_yunikorns or route.method != "GET" or not self._cors:
            return {}
        return {**CORS, "Access-Control-Allow-Methods": "GET, OPTIONS"}


def name_of(host: str) -> str:
    """Return the name in a Host header, without the port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
