"""Look into a recorded run, or run it again."""

import argparse
import difflib
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from yunikorn_actors.messages.codec import MESSAGE_TYPES
from yunikorn_actors.trace.draw import draw
from yunikorn_actors.trace.read import TraceError, TraceReader
from yunikorn_actors.trace.replay import replay
from yunikorn_actors.trace.show import Look, Wanted, printable, show

_Command = tuple[
    str, Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace], int]
]
"""What it is for, what it takes beside the file, and what runs it; it returns the exit status."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="part", required=True, metavar="COMMAND")
    for name, (help_, add, run_) in _COMMANDS.items():
        command = commands.add_parser(name, help=help_, description=help_)
        command.add_argument("file", type=Path, help="a recorded trace")
        add(command)
        command.set_defaults(part=run_)


def run(options: argparse.Namespace) -> int:
    try:
        status: int = options.part(options)
    except TraceError as error:
        print(printable(str(error)), file=sys.stderr)
        return 2
    except RecursionError:
        print(
            f"{options.file}: a payload is nested deeper than a recorder writes; the file is "
            "damaged, record the run again",
            file=sys.stderr,
        )
        return 2
    return status


def _add_wanted(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--mailbox", metavar="NAME",
        help="only messages to this mailbox, such as context or scheduler",
    )  # fmt: skip
    parser.add_argument(
        "--stimulus", metavar="NAME",
        help="only messages that this request from outside led to, such as allocation-3",
    )  # fmt: skip
    parser.add_argument(
        "--type", type=_message_type, metavar="NAME",
        help="only messages of this type, such as FactsAppended",
    )  # fmt: skip
    parser.add_argument(
        "--about", action="append", default=[], metavar="ID",
        help="only messages that mention this application, allocation key, uuid, node or queue; "
        "given several times, any of these",
    )  # fmt: skip
    parser.add_argument(
        "--limit", default=0, type=_positive, metavar="N", help="stop after so many messages"
    )


def _message_type(name: str) -> str:
    if name in MESSAGE_TYPES:
        return name
    near = difflib.get_close_matches(name, MESSAGE_TYPES, n=1)
    hint = f"did you mean {near[0]}?" if near else f"choose from {', '.join(sorted(MESSAGE_TYPES))}"
    raise argparse.ArgumentTypeError(f"no message is of type {name!r}; {hint}")


def _positive(text: str) -> int:
    number = int(text) if text.isascii() and text.isdecimal() else 0
    if not number:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return number


def _wanted(options: argparse.Namespace) -> Wanted:
    return Wanted(
        mailbox=options.mailbox,
        stimulus=options.stimulus,
        type=options.type,
        about=tuple(options.about),
    )


def _width() -> int:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def _add_show(parser: argparse.ArgumentParser) -> None:
    _add_wanted(parser)
    parser.add_argument("--full", action="store_true", help="print payloads whole, as JSON")


def _show(options: argparse.Namespace) -> int:
    look = Look(
        colour=sys.stdout.isatty() and not os.environ.get("NO_COLOR"),
        width=_width(),
        full=options.full,
        limit=options.limit,
    )
    with TraceReader(options.file) as trace:
        show(trace, sys.stdout, _wanted(options), look)
    return 0


def _draw(options: argparse.Namespace) -> int:
    with TraceReader(options.file) as trace:
        lines = draw(trace, _wanted(options), width=_width(), limit=options.limit)
        sys.stdout.writelines(f"{line}\n" for line in lines)
    return 0


def _add_nothing(parser: argparse.ArgumentParser) -> None:
    """The file is all that the command needs to know."""


def _replay(options: argparse.Namespace) -> int:
    with TraceReader(options.file) as trace:
        outcome = replay(trace)
    print(outcome.report())
    return 0 if outcome.difference is None else 1


_COMMANDS: Final[dict[str, _Command]] = {
    "show": ("print a recorded run, one message on a line", _add_show, _show),
    "draw": (
        "draw the messages between the machines of a recorded run, from top to bottom",
        _add_wanted,
        _draw,
    ),
    "replay": (
        "run the recorded messages through the core again and compare all effects",
        _add_nothing,
        _replay,
    ),
}
