"""Certificates for localhost that have signed themselves."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Certify = Callable[[], tuple[Path, Path]]
"""Returns the files of a new certificate and of its key."""


def certificate_in(folder: Path) -> tuple[Path, Path]:
    files = folder / "server.pem", folder / "server.key"
    command = [
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
        *("-nodes", "-days", "2", "-subj", "/CN=localhost"),
        *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
        *("-out", str(files[0]), "-keyout", str(files[1])),
    ]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("there is no openssl here")
    return files
