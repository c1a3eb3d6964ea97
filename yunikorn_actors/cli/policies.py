"""Policies of the user's own on the command line."""

import argparse
import sys
from collections.abc import Mapping
from importlib import import_module

from yunikorn_actors.policies.registry import InvalidPolicy, Policies, Policy


def add_policies(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--policies", metavar="MODULE:ATTRIBUTE", type=policies_at,
        help="policies of your own: a mapping of names to classes, in a module here or that Python "
        "finds",
    )  # fmt: skip


def policies_at(text: str) -> Mapping[str, Policy]:
    """Load what MODULE:ATTRIBUTE names; a module in the present folder is found as with `-m`."""
    if "" not in sys.path:
        sys.path.insert(0, "")
    module, _, attribute = text.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except Exception as error:  # noqa: BLE001
        # It is a program of others: whatever it raises while it is read is a mistake in it.
        raise argparse.ArgumentTypeError(f"{text}: {error!r:.300}") from None
    if not isinstance(found, Mapping):
        raise argparse.ArgumentTypeError(f"{text}: must be a mapping of names to policies")
    try:
        Policies(found)
    except InvalidPolicy as error:
        raise argparse.ArgumentTypeError(f"{text}: {error}") from None
    return found
