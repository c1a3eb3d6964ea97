"""`yunikorn-actors health DUMP`: judge a state dump, from a file or from standard input."""

import argparse
import json
import sys

import msgspec

from yunikorn_actors.checks.health_checks import Health, health_of
from yunikorn_actors.cli import FAILED
from yunikorn_actors.cli.dump_files import DumpError, answer_from

OF_A_SERVICE = (
    "the books that are judged are not in it: take /ws/v1/scheduler/healthcheck of that service, "
    "or write the dump of a core with json.dump(core.state_dump(), file)"
)
"""What to do with the full state dump of a service."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dump", help="a state dump as JSON; - reads standard input")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(options: argparse.Namespace) -> int:
    try:
        health = answer_from(options.dump, health_of, OF_A_SERVICE)
    except DumpError as error:
        print(error, file=sys.stderr)
        return FAILED
    if options.json:
        print(json.dumps(msgspec.to_builtins(health), indent=2))
    else:
        _print(health)
    return 0 if health.healthy else 1


def _print(health: Health) -> None:
    for check in health.checks:
        mark = "ok  " if check.succeeded else "FAIL"
        print(f"{mark} {check.name}: {check.description}")
        if not check.succeeded:
            print(f"     {check.diagnosis}")
    print("healthy" if health.healthy else "NOT healthy")
