"""How the address of a service is written."""

import re
from typing import Final

_ADDRESS: Final = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[\w.-]+)):(?P<port>\d{1,5})")
_PORT_MAX: Final = 65_535


def port_of(address: str) -> int | None:
    """Return the port of an address to listen at, None where there is none."""
    port = address.rpartition(":")[2] if ":" in address else ""
    if not (port.isascii() and port.isdecimal()) or len(port) > len(str(_PORT_MAX)):
        return None
    return int(port) if int(port) <= _PORT_MAX else None


def parted(address: str) -> tuple[str, int] | None:
    """Return host and port of `HOST:PORT`, None for anything else."""
    found = _ADDRESS.fullmatch(address)
    if found is None or int(found["port"]) > _PORT_MAX:
        return None
    return found["v6"] or found["name"], int(found["port"])
