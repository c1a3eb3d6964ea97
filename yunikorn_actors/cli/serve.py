"""`yunikorn-actors serve`: a scheduler that others reach over the network."""

import argparse
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from yunikorn_actors.errors import ConfigError
from yunikorn_actors.runtime.system import SchedulerCore
from yunikorn_actors.service.serving import KINDS, NotInstalled, Serving

OFF: Final = "off"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="the administrator's configuration"
    )
    parser.add_argument(
        "--topology", choices=("proposing", "fused"), default="proposing",
        help="where planning happens (default: %(default)s)",
    )  # fmt: skip
    for name, kind in KINDS.items():
        parser.add_argument(
            f"--{name}", metavar="ADDR", default=kind.default,
            help=f"where {kind.title} listens, or `{OFF}` (default: %(default)s)",
        )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    addresses = {name: getattr(options, name) for name in KINDS if getattr(options, name) != OFF}
    try:
        core = SchedulerCore(config=options.config, topology=options.topology)
        serving = Serving(core, addresses)
    except (ConfigError, NotInstalled) as error:
        print(error, file=sys.stderr)
        return 2
    with told_to_stop() as stop, serving:
        for name, part in serving.parts.items():
            print(f"{KINDS[name].title} on {part.address}")
        print("ready; Ctrl-C or SIGTERM ends it", flush=True)
        stop.wait()
    return 0


@contextmanager
def told_to_stop() -> Iterator[threading.Event]:
    """Give an event that SIGTERM and Ctrl-C set."""
    stop = threading.Event()
    former = {
        number: signal.signal(number, lambda *_: stop.set())
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield stop
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
