"""Certificates for localhost that have signed themselves."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

CURVE, NAME = "ec_paramgen_curve:prime256v1", "/CN=localhost"
Certify = Callable[[], tuple[Path, Path]]
"""Returns the files of a new certificate and of its key."""


def certificate_in(folder: Path, days: int = 2) -> tuple[Path, Path]:
    """Make one that ends so many days from now."""
    files = folder / "server.pem", folder / "server.key"
    request, names = folder / "server.csr", folder / "names"
    names.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1")
    commands = (
        f"req -newkey ec -pkeyopt {CURVE} -nodes -subj {NAME} -out {request} -keyout {files[1]}",
        f"x509 -req -in {request} -signkey {files[1]} -out {files[0]} -days {days} -extfile {names}",
    )
    try:
        for command in commands:
            subprocess.run(["openssl", *command.split()], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("there is no openssl here")
    return files
