"""`yunikorn-actors unregister MANAGER`: remove everything of a lost resource manager."""

import argparse

from yunikorn_actors.cli.rows import Partition, read
from yunikorn_actors.cli.service_calls import API, OWN, asking, unknown
from yunikorn_actors.cli.service_options import add_server
from yunikorn_actors.cli.terminal import tell
from yunikorn_actors.errors import UnknownName
from yunikorn_actors.recording.plain_text import printable
from yunikorn_actors.service.rest.client import Client


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("manager", help="id of the resource manager, which has to be lost")
    add_server(parser)


def run(options: argparse.Namespace) -> int:
    return asking(options, _ask)


def _ask(options: argparse.Namespace, client: Client) -> int:
    name: str = options.manager
    try:
        client.post(*OWN, "manager", name, "unregister")
    except UnknownName:
        known = read(client.get(*API, "partitions"), list[Partition])
        raise unknown("resource manager", name, {it.cluster_id for it in known}) from None
    said = printable(f"{name} is unregistered: nothing of it is left")
    tell(({"manager": name, "change": "unregister"},) if options.json else None, (said,))
    return 0
