"""State dumps in files, or from standard input, for the commands that read them."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from yunikorn_actors.errors import UnknownName
from yunikorn_actors.state.dump import CORE_DUMP_REMEDY, DUMP_FORMAT, DUMP_REMEDY

DUMP_MAX = 1 << 30
_GZIP: Final = b"\x1f\x8b"
_KINDS: Final = {list: "list", str: "string", bool: "boolean", type(None): "null"}
Answer = TypeVar("Answer")


class DumpError(Exception):
    """A dump cannot be read; the text says why."""


def answer_from(name: str, ask: Callable[[dict[str, Any]], Answer], instead: str) -> Answer:
    """Return what a function finds in the dump of a core of this name; `-` is standard input.

    `instead` says what to do with the full state dump of a service, in which it finds nothing.
    """
    dump = read_dump(name, CORE_DUMP_REMEDY)
    try:
        return ask(dump)
    except UnknownName:
        raise  # it is a KeyError, and the dump has what it has to have
    except KeyError as error:
        why = f"{error.args[0]!r} is missing"
    except (TypeError, AttributeError, msgspec.ValidationError) as error:
        why = f"a part has a wrong form: {error}"
    if any(isinstance(it, list) for key, it in dump.items() if key.lower() == "partitions"):
        raise DumpError(f"{name}: it is the full state dump of a service; {instead}")
    raise DumpError(f"{name}: not the state dump of a core: {why}; {CORE_DUMP_REMEDY}")


def read_dump(name: str, remedy: str = DUMP_REMEDY) -> dict[str, Any]:
    """Return what is in the file of this name; `-` is standard input."""
    try:
        text = _text_of(name)
        dump = json.loads(text)
    except OSError as error:
        why = error.strerror or str(error)
    except (ValueError, RecursionError) as error:
        # What is no text is no JSON either, and its error says at which byte.
        is_empty = isinstance(error, json.JSONDecodeError) and not error.doc.strip()
        why = "it is empty" if is_empty else f"not JSON: {error}"
        if isinstance(error, UnicodeDecodeError) and error.object.startswith(_GZIP):
            why = "it is packed by gzip: unpack it first"
    else:
        if isinstance(dump, dict):
            _check_format(name, dump)
            return dump
        kind = _KINDS.get(type(dump), "number")
        why = f"not a state dump: a {kind} at the top, as in a part of one"
    raise DumpError(f"{name}: {why}; {remedy}")


def _text_of(name: str) -> str:
    if name == "-":
        return sys.stdin.read(DUMP_MAX)
    with Path(name).open(encoding="utf-8") as file:
        return file.read(DUMP_MAX)


def _check_format(name: str, dump: dict[str, Any]) -> None:
    number = dump.get("format", DUMP_FORMAT)
    if not isinstance(number, int) or number > DUMP_FORMAT:
        raise DumpError(
            f"{name}: is of format {number!r}, and this version reads up to {DUMP_FORMAT}; read it "
            "with the version that wrote it"
        )
