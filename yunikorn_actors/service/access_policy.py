"""Who may reach the service: what is needed beyond this computer, and the files that say so."""

import ipaddress
import ssl
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from yunikorn_actors.service.address import HOW, parted

SHORTEST_TOKEN: Final = 16
LONGEST_TOKEN: Final = 1024
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
"""What a mode allows to others than the owner."""
_TIMES: Final = {9: "its time has not begun", 10: "it has expired"}
"""What OpenSSL says of a certificate, by its number (X509_V_ERR_CERT...)."""
_LOCAL_NAMES: Final = ("localhost", "ip6-localhost")


class Unsafe(ValueError):
    """The service would be open to others, or cannot be protected as was asked for."""


class Tls(NamedTuple):
    """A certificate with its chain, and its key; both as the bytes of their PEM files."""

    chain: bytes
    key: bytes
    clients: bytes = b""
    """The certificates that sign those of clients; empty where a client needs none."""

    def server_context(self) -> ssl.SSLContext:
        """The library reads certificates from files alone; these are gone when it has."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with TemporaryDirectory() as folder:
            chain, key = Path(folder, "chain.pem"), Path(folder, "key.pem")
            chain.write_bytes(self.chain)
            key.write_bytes(self.key)
            context.load_cert_chain(chain, key)
        if self.clients:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=self.clients.decode("ascii"))
        return context

    def __repr__(self) -> str:
        """Keep the key out of logs and of texts of errors."""
        return f"Tls(clients={bool(self.clients)})"


class TokenFiles(NamedTuple):
    """Where the tokens of a service stand."""

    full: Path | None = None
    """The token for everything; a second line is the token for reading alone."""
    reading: Path | None = None
    """The token for reading alone, where the other file has one line."""

    def read(self) -> tuple[str, str]:
        """Return the full token and that for reading; nothing that is raised tells any of them."""
        if self.full is None:
            if self.reading is not None:
                raise Unsafe("--read-token-file: needs --token-file beside it, with the full token")
            return "", ""
        tokens = _tokens_in("--token-file", self.full, 2)
        if self.reading is not None:
            if len(tokens) > 1:
                raise Unsafe(f"--read-token-file: --token-file {self.full} has a second line, too")
            tokens += _tokens_in("--read-token-file", self.reading, 1)
        full, read = (*tokens, "")[:2]
        # With one token for both, a caller that should only read could change everything.
        if full == read:
            raise Unsafe("the token for reading alone is the full token, too: give it another one")
        return full, read

    @property
    def given(self) -> tuple[Path, ...]:
        return tuple(it for it in self if it is not None)

    def can_be_followed(self) -> bool:
        """Whether they can be read again, which a pipe cannot."""
        # A pipe gives its text once: it cannot be looked at again.
        return bool(self.given) and all(it.is_file() for it in self.given)

    def exposed(self) -> list[str]:
        return [warning for it in self.given for warning in exposed(it)]


class Access(NamedTuple):
    """How callers are let in."""

    tls: Tls | None = None
    token: str = ""
    insecure: bool = False
    """The operator has declared that the service's network is trusted."""
    names: tuple[str, ...] = ()
    """By which it may be called over HTTP, beside its addresses and `localhost`."""
    cors: bool = True
    """Pages of other origins may read what YuniKorn's pages read."""
    read_token: str = ""
    """It lets a caller read and change nothing; empty where there is none."""
    files: TokenFiles = TokenFiles()
    """Those that the tokens were read from, to be followed."""

    def __repr__(self) -> str:
        """Keep tokens out of logs and of texts of errors."""
        return f"Access(tls={self.tls}, has_token={bool(self.token)}, insecure={self.insecure})"

    @property
    def is_protected(self) -> bool:
        """Whether the connection is encrypted, and only known callers are let in."""
        return self.tls is not None and bool(self.token or self.tls.clients)

    def check(self, addresses: Mapping[str, str]) -> None:
        """Refuse to listen where others are, unless it is protected; addresses by their option."""
        for option, address in addresses.items():
            if parted(address) is None:
                raise Unsafe(f"--{option} {address:.100}: is no address to listen at: {HOW}")
        if self.insecure or self.is_protected:
            return
        for option, address in addresses.items():
            if not is_local(address):
                raise Unsafe(
                    f"--{option} {address}: others can reach this address: give --tls-cert, "
                    "--tls-key and --token-file (or --tls-client-ca), or --insecure if nobody else "
                    "is on that network"
                )


def is_local(address: str) -> bool:
    """Whether only this computer can reach `HOST:PORT`."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host in _LOCAL_NAMES


def read_tls(certificate: Path | None, key: Path | None, clients: Path | None = None) -> Tls | None:
    """`clients` holds the certificates that sign those of clients, which each has to show then."""
    own = own_certificate(certificate, key)
    if own is None:
        if clients is not None:
            raise Unsafe("--tls-client-ca: needs --tls-cert and --tls-key beside it")
        return None
    certificate, key = own
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
    return tls if clients is None else tls._replace(clients=_signers(clients))


def own_certificate(certificate: Path | None, key: Path | None) -> tuple[Path, Path] | None:
    """Return the files of a client's own certificate, None where it has none."""
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise Unsafe("--tls-cert and --tls-key belong together: give both")
    return certificate, key


def _signers(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=data.decode("ascii"))
    except (OSError, ValueError) as error:
        raise Unsafe(f"--tls-client-ca {path}: holds no certificate (PEM): {error}") from None
    return data


def _time_fault(server: ssl.SSLContext, certificate: Path) -> str:
    """Say why clients refuse a certificate by its time, signed by any authority; else empty.

    Only a handshake tells it: the library reads the dates of no certificate of one's own.
    """
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    # Without its chain: only the time of the certificate matters here.
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    client.load_verify_locations(certificate)
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(down, up)
    answering = server.wrap_bio(up, down, server_side=True)
    try:
        # Client, server, client: then the client has looked at the certificate.
        for side in (asking, answering, asking):
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
    except ssl.SSLCertVerificationError as error:
        # Any other reason is for the clients to see; only the time is known to all of them.
        return _TIMES.get(error.verify_code, "")
    return ""


def read_token(path: Path | None) -> str:
    """Read the token that a client shows: the first of the file."""
    return "" if path is None else _tokens_in("--token-file", path, 2)[0]


def _tokens_in(option: str, path: Path, most: int) -> tuple[str, ...]:
    """Read one token a line; nothing that is raised here tells any of it."""
    try:
        with path.open(encoding="ascii") as file:
            # Bounded: a file that is none must not be read whole.
            text = file.read(2 * most * LONGEST_TOKEN)
    except OSError as error:
        raise Unsafe(f"{option} {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Unsafe(f"{option} {path} must be plain ASCII") from None
    tokens = tuple(line.strip() for line in text.strip().split("\n"))
    # Nothing of the file is shown: it holds secrets.
    if len(tokens) > most or not all(map(_is_token, tokens)):
        lines = "one word" if most == 1 else "one word a line, two lines at most,"
        raise Unsafe(
            f"{option} {path} must hold {lines} of at least {SHORTEST_TOKEN} characters, and "
            f"at most {LONGEST_TOKEN}: make one with `openssl rand -hex 32 > {path}`"
        )
    return tokens


def _is_token(token: str) -> bool:
    is_word = token.isprintable() and " " not in token
    return is_word and SHORTEST_TOKEN <= len(token) <= LONGEST_TOKEN


def exposed(path: Path) -> list[str]:
    """Warn of a file with a secret that other users can read or replace; empty if they cannot."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return []
    if not mode & _OTHERS:
        return []
    return [f"other users can read {path} (mode {mode:04o}): `chmod 600 {path}`"]
