"""`yunikorn-actors health DUMP`: judge a state dump, from a file or from standard input."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from yunikorn_actors.domain.health import Health, health_of

DUMP_MAX = 1 << 30


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dump", help="a state dump as JSON; - reads standard input")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(options: argparse.Namespace) -> int:
    try:
        health = health_of(_read(options.dump))
    except OSError as error:
        return _unreadable(options.dump, error.strerror or str(error))
    except ValueError as error:
        return _unreadable(options.dump, f"not JSON: {error}")
    except (KeyError, TypeError, AttributeError) as error:
        why = f"not a state dump: {error!r} is missing or has a wrong type"
        return _unreadable(options.dump, why)
    if options.json:
        print(json.dumps(msgspec.to_builtins(health), indent=2))
    else:
        _print(health)
    return 0 if health.healthy else 1


def _read(name: str) -> Any:  # noqa: ANN401 - judged as it is used
    if name == "-":
        return json.loads(sys.stdin.read(DUMP_MAX))
    with Path(name).open(encoding="utf-8") as file:
        return json.loads(file.read(DUMP_MAX))


def _unreadable(name: str, why: str) -> int:
    print(f"{name}: {why}; write one with json.dump(core.state_dump(), file)", file=sys.stderr)
    return 2


def _print(health: Health) -> None:
    for check in health.checks:
        mark = "ok  " if check.succeeded else "FAIL"
        print(f"{mark} {check.name}: {check.description}")
        if not check.succeeded:
            print(f"     {check.diagnosis}")
    print("healthy" if health.healthy else "NOT healthy")
