"""`yunikorn-actors drain NODE`: nothing new is placed on a node; what runs there goes on."""

import argparse

from yunikorn_actors.cli.nodes import nodes_called
from yunikorn_actors.cli.service_calls import asked_partitions, asking, only_one
from yunikorn_actors.cli.service_options import add_partition, add_server
from yunikorn_actors.cli.terminal import tell
from yunikorn_actors.errors import Refused
from yunikorn_actors.recording.plain_text import printable
from yunikorn_actors.service.node_acts import NODE_ACTS
from yunikorn_actors.service.rest.client import Client


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("node", help="id of the node")
    add_partition(parser)
    add_server(parser)


def run(options: argparse.Namespace) -> int:
    return asking(options, _ask)


def _ask(options: argparse.Namespace, client: Client) -> int:
    return change(options, client, "drain")


def change(options: argparse.Namespace, client: Client, verb: str) -> int:
    """Find the node first: a name that is not there is answered with those like it."""
    chosen = asked_partitions(client, options.partition)
    it = only_one("node", options.node, nodes_called(client, options.node, chosen))
    try:
        client.post(*it.place.own_path("node", it.row.id, verb))
    except Refused as error:
        raise Refused(f"{it.row.id}: {error}") from None
    runs = len(it.row.allocations)
    done = {"node": it.row.id, "partition": it.place.name, "change": verb, "allocations": runs}
    text = NODE_ACTS[verb].done.format(node=it.row.id, allocations=runs)
    tell((done,) if options.json else None, (printable(text),))
    return 0
