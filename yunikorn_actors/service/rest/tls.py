"""A certificate as the web server wants it."""

import ssl
from pathlib import Path
from tempfile import TemporaryDirectory

from yunikorn_actors.service.access_policy import Tls


def context_of(tls: Tls) -> ssl.SSLContext:
    """The library reads certificates from files alone; these are gone when it has."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with TemporaryDirectory() as folder:
        chain, key = Path(folder, "chain.pem"), Path(folder, "key.pem")
        chain.write_bytes(tls.chain)
        key.write_bytes(tls.key)
        context.load_cert_chain(chain, key)
    if tls.clients:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=tls.clients.decode("ascii"))
    return context
