"""`yunikorn-actors undrain NODE`: a node that was drained takes work again."""

import argparse

from yunikorn_actors.cli.drain import add_arguments, change
from yunikorn_actors.cli.service_calls import asking
from yunikorn_actors.service.rest.client import Client

__all__ = ["add_arguments", "run"]


def run(options: argparse.Namespace) -> int:
    return asking(options, _ask)


def _ask(options: argparse.Namespace, client: Client) -> int:
    return change(options, client, "undrain")
