"""The options of the commands that ask a service: where it is, and what it wants to be shown."""

import argparse
from pathlib import Path
from typing import Final

from yunikorn_actors.cli.config_text import STANDARD_INPUT

DEFAULT: Final = "127.0.0.1:9080"


def add_server(parser: argparse.ArgumentParser, without: str = f"default: {DEFAULT}") -> None:
    parser.add_argument(
        "--server", metavar="ADDR", help=f"where the service answers REST ({without})",
    )  # fmt: skip
    parser.add_argument(
        "--tls-ca", type=Path, metavar="FILE",
        help="the certificate to trust (PEM); the service is asked by TLS then",
    )  # fmt: skip
    parser.add_argument(
        "--tls-cert", type=Path, metavar="FILE",
        help="the caller's own certificate (PEM), where the service wants one; with --tls-key",
    )  # fmt: skip
    parser.add_argument("--tls-key", type=Path, metavar="FILE", help="the key of that certificate")
    parser.add_argument(
        "--token-file", type=Path, metavar="FILE", help="holds the token of the service"
    )
    parser.add_argument(
        "--insecure", action="store_true", help="show the token to another computer without TLS"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object on a line")


def add_partition(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--partition", default="", metavar="NAME",
        help="only this partition, such as default or [rm-1]default",
    )  # fmt: skip


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
