"""`config show` and `config load`: the configuration of a service."""

import argparse
from typing import Final

from yunikorn_actors.cli import FAILED, NO
from yunikorn_actors.cli.config_text import Unreadable, name_of, read_text
from yunikorn_actors.cli.rows import Loaded, read
from yunikorn_actors.cli.service_calls import API, OWN, asking
from yunikorn_actors.cli.terminal import complain, tell
from yunikorn_actors.errors import Refused
from yunikorn_actors.recording.plain_text import printable
from yunikorn_actors.service.rest.client import Client

_LOADED: Final = "is in force wherever no resource manager has brought one of its own"


def show(options: argparse.Namespace) -> int:
    return asking(options, _show)


def load(options: argparse.Namespace) -> int:
    return asking(options, _load)


def _show(options: argparse.Namespace, client: Client) -> int:
    if options.json:
        tell((client.get(*API, "config"),), ())
    else:
        tell(None, map(printable, client.text(*API, "config").splitlines()))
    return 0


def _load(options: argparse.Namespace, client: Client) -> int:
    name = name_of(options.file)
    try:
        text = read_text(options.file)
        loaded = read(client.post(*OWN, "config", body=text.encode()), Loaded)
    except Unreadable as error:
        complain(f"{name}: {error}")
        return FAILED
    except Refused as error:
        for line in str(error).splitlines():
            complain(f"{name}: {line}")
        return NO
    tell((loaded,) if options.json else None, (f"{name}: {_LOADED}",))
    if loaded.follows:
        complain(
            f"the service follows {loaded.follows}: what that says is in force again when it "
            "changes, or when the service is restarted"
        )
    return 0
