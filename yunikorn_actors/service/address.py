"""The address of a service: how it is written and taken, and what a client trusts there."""

import errno
import os
import re
import socket
from pathlib import Path
from typing import Final, NamedTuple

_ADDRESS: Final = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[\w.-]+)):(?P<port>\d{1,5})")
_PORT_MAX: Final = 65_535
HOW: Final = "give HOST:PORT, with an IPv6 address in brackets ([::1]:3333)"
_REMEDIES: Final = {
    errno.EADDRINUSE: "end what listens there (`ss -ltnp` names it), or give another port",
    errno.EACCES: "give a port above 1023",
}
_REMEDY: Final = "give an address or a name of this computer"


class Trust(NamedTuple):
    """Files of PEM for TLS."""

    ca: str | Path | None
    """The certificate to trust; None where the service has no TLS."""
    cert: str | Path | None = None
    key: str | Path | None = None


def parted(address: str) -> tuple[str, int] | None:
    """Return host and port of `HOST:PORT`, None for anything else."""
    found = _ADDRESS.fullmatch(address)
    if found is None or int(found["port"]) > _PORT_MAX:
        return None
    return found["v6"] or found["name"], int(found["port"])


def named(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def listen_at(address: str) -> socket.socket:
    """Take the address at once; who starts the service learns why that is impossible."""
    found = parted(address)
    if found is None:
        raise OSError(f"{address!r:.100} is no address to listen at: {HOW}")
    try:
        family = socket.AF_INET6 if ":" in found[0] else socket.AF_INET
        return socket.create_server(found, family=family)
    except OSError as error:
        # The text of `create_server` repeats the address in another form.
        number = error.errno or 0
        why = os.strerror(number) if number in errno.errorcode else error.strerror
        remedy = _REMEDIES.get(number, _REMEDY)
        raise OSError(f"cannot listen on {address}: {why}: {remedy}") from None
