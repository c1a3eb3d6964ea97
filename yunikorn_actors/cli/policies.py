"""Policies of the user's own on the command line."""

import argparse
from typing import Any, Final

from yunikorn_actors.policies.loading import policies_at
from yunikorn_actors.policies.registry import NO_POLICIES, InvalidPolicy, Policies

_OPTION: Final[dict[str, Any]] = {
    "metavar": "MODULE:ATTRIBUTE",
    "help": "policies of your own: a mapping of names to classes, in a module here or that Python "
    "finds",
}


def add_policies(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--policies", type=_policies, default=NO_POLICIES, **_OPTION)


def add_place_of_policies(parser: argparse.ArgumentParser) -> None:
    """Have the option give where they stand, for tapes and other processes."""
    parser.add_argument("--policies", type=_place, **_OPTION)


def _policies(place: str) -> Policies:
    try:
        return policies_at(place)
    except InvalidPolicy as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _place(text: str) -> str:
    _policies(text)
    return text
