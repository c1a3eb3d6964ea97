"""Who may reach the service: what is needed beyond this computer, and the files it is read from."""

import ipaddress
import ssl
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from yunikorn_actors.service.address import HOW, parted

SHORTEST_TOKEN: Final = 16
LONGEST_TOKEN: Final = 1024
_TIMES: Final = {9: "its time has not begun", 10: "it has expired"}
"""What OpenSSL says of a certificate, by its number (X509_V_ERR_CERT...)."""
_LOCAL_NAMES: Final = ("localhost", "ip6-localhost")


class Unsafe(ValueError):  # noqa: N818 - named like InvalidRequest
    """The service would be open to others, or cannot be protected as was asked for."""


class Tls(NamedTuple):
    """A certificate with its chain, and its key; both as the bytes of their PEM files."""

    chain: bytes
    key: bytes


class Access(NamedTuple):
    """How callers are let in."""

    tls: Tls | None = None
    token: str = ""
    insecure: bool = False
    """Whoever runs the service has said that its network is trusted."""
    names: tuple[str, ...] = ()
    """By which it may be called over HTTP, beside its addresses and `localhost`."""
    cors: bool = True
    """Pages of other origins may read what YuniKorn's pages read."""

    def check(self, addresses: Mapping[str, str]) -> None:
        """Refuse to listen where others are, unless it is protected; addresses by their option."""
        for option, address in addresses.items():
            if parted(address) is None:
                raise Unsafe(f"--{option} {address:.100}: is no address to listen at: {HOW}")
        if self.insecure or (self.tls is not None and self.token):
            return
        for option, address in addresses.items():
            if not is_local(address):
                raise Unsafe(
                    f"--{option} {address}: others can reach this address: give --tls-cert, "
                    "--tls-key and --token-file, or --insecure if nobody else is on that network"
                )


def is_local(address: str) -> bool:
    """Whether only this computer can reach `HOST:PORT`."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host in _LOCAL_NAMES


def read_tls(certificate: Path | None, key: Path | None) -> Tls | None:
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise Unsafe("--tls-cert and --tls-key belong together: give both")
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        # It says what is wrong with them, which a server would only show to its clients.
        server.load_cert_chain(certificate, key)
        tls = Tls(certificate.read_bytes(), key.read_bytes())
        fault = _time_fault(server, certificate)
    except OSError as error:
        raise Unsafe(f"{certificate} with {key}: no certificate with its key: {error}") from None
    if fault:
        raise Unsafe(f"--tls-cert {certificate}: {fault}, so all clients refuse it: give another")
    return tls


def _time_fault(server: ssl.SSLContext, certificate: Path) -> str:
    """Say why clients refuse a certificate whoever signed it: its time. Empty if that is right.

    Only a handshake tells it: the library reads the dates of no certificate of one's own.
    """
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    client.load_verify_locations(certificate)
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(down, up)
    answering = server.wrap_bio(up, down, server_side=True)
    try:
        for side in (asking, answering, asking):
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
    except ssl.SSLCertVerificationError as error:
        return _TIMES.get(error.verify_code, "")
    return ""


def read_token(path: Path | None) -> str:
    """Read the token; nothing that is raised here tells any of it."""
    if path is None:
        return ""
    try:
        with path.open(encoding="ascii") as file:
            token = file.read(2 * LONGEST_TOKEN).strip()
    except OSError as error:
        raise Unsafe(f"--token-file {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Unsafe(f"--token-file {path}: must be plain ASCII") from None
    is_word = token.isprintable() and " " not in token
    if not is_word or not SHORTEST_TOKEN <= len(token) <= LONGEST_TOKEN:
        raise Unsafe(
            f"--token-file {path}: must hold one word of at least {SHORTEST_TOKEN} characters, and "
            f"at most {LONGEST_TOKEN}: make one with `openssl rand -hex 32 > {path}`"
        )
    return token
