"""`yunikorn-actors validate FILE`: whether a service would take a configuration."""

import argparse

from yunikorn_actors.cli import FAILED, NO
from yunikorn_actors.cli.config_text import Unreadable, name_of, read_text
from yunikorn_actors.cli.rows import Verdict, read
from yunikorn_actors.cli.service_calls import API, asking
from yunikorn_actors.cli.service_options import add_server
from yunikorn_actors.cli.terminal import complain, tell
from yunikorn_actors.service.rest.client import Client


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a configuration; - reads standard input")
    add_server(parser)


def run(options: argparse.Namespace) -> int:
    return asking(options, _ask)


def _ask(options: argparse.Namespace, client: Client) -> int:
    name = name_of(options.file)
    try:
        text = read_text(options.file)
    except Unreadable as error:
        complain(f"{name}: {error}")
        return FAILED
    verdict = read(client.post(*API, "validate-conf", body=text.encode()), Verdict)
    if options.json:
        tell((verdict,), ())
    elif verdict.allowed:
        tell(None, (f"{name}: would be taken",))
    else:
        for line in verdict.reason.splitlines():
            complain(f"{name}: {line}")
    return 0 if verdict.allowed else NO
