"""State dumps in files, or from standard input, for the commands that read them."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from yunikorn_actors.state.dump import DUMP_FORMAT

DUMP_MAX = 1 << 30
Told = TypeVar("Told")


class DumpError(Exception):
    """A dump cannot be read; the text says why."""


def told_of(name: str, tell: Callable[[dict[str, Any]], Told]) -> Told:
    """Return the facts in the dump of this name; `-` is standard input."""
    try:
        return tell(_read(name))
    except OSError as error:
        why = error.strerror or str(error)
    except (KeyError, TypeError, AttributeError, msgspec.ValidationError) as error:
        why = f"not a state dump: {error!r} is missing or has a wrong type"
    except (ValueError, RecursionError) as error:
        why = f"not JSON: {error}"
    raise DumpError(f"{name}: {why}; write one with json.dump(core.state_dump(), file)")


def _read(name: str) -> dict[str, Any]:
    if name == "-":
        dump = json.loads(sys.stdin.read(DUMP_MAX))
    else:
        with Path(name).open(encoding="utf-8") as file:
            dump = json.loads(file.read(DUMP_MAX))
    if not isinstance(dump, dict):
        raise TypeError(f"{type(dump).__name__} at the top")
    number = dump.get("format", DUMP_FORMAT)
    if not isinstance(number, int) or number > DUMP_FORMAT:
        raise DumpError(
            f"{name}: is of format {number!r}, and this version reads up to {DUMP_FORMAT}; read it "
            "with the version that wrote it"
        )
    return dump
