"""What options would not be looked at: said, and not passed over in silence."""

import argparse
from typing import Final

from yunikorn_actors.cli.config_text import STANDARD_INPUT

OF_SERVICE: Final = ("server", "tls_ca", "tls_cert", "tls_key", "token_file", "insecure")
"""What says where a service is, and what it is shown."""


def unused(options: argparse.Namespace, names: tuple[str, ...], why: str) -> str | None:
    """Complain of those that are given, for they say nothing here; None if none is."""
    given = [name for name in names if _is_given(getattr(options, name, None))]
    text = " and ".join(f"--{it.replace('_', '-')}" for it in given)
    return f"{text}: {why}" if given else None


def _is_given(value: object) -> bool:
    return value is not None and value is not False and value not in ("", [])


def read_twice(**files: object) -> str | None:
    """Complain where several of these are standard input: the second would find it empty."""
    given = [name for name, file in files.items() if str(file) == STANDARD_INPUT]
    if len(given) < 2:  # noqa: PLR2004 - two cannot share it
        return None
    return f"{' and '.join(given)}: only one can be standard input (-): name a file for the others"
