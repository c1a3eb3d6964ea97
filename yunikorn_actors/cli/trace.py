"""Look into a recorded run, or run it again."""

import argparse
import difflib
import os
import shutil
import sys
from pathlib import Path

from yunikorn_actors.messages.codec import MESSAGE_TYPES
from yunikorn_actors.trace.read import TraceError, TraceReader
from yunikorn_actors.trace.replay import replay
from yunikorn_actors.trace.show import Look, Wanted, printable, show

_SHOW = "print a recorded run, one message on a line"
_REPLAY = "run the recorded messages through the core again and compare all that it does"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="part", required=True, metavar="COMMAND")
    _add_show(commands.add_parser("show", help=_SHOW, description=_SHOW))
    replayed = commands.add_parser("replay", help=_REPLAY, description=_REPLAY)
    replayed.add_argument("file", type=Path, help="a recorded trace")
    replayed.set_defaults(part=_replay)


def run(options: argparse.Namespace) -> int:
    try:
        status: int = options.part(options)
    except TraceError as error:
        print(printable(str(error)), file=sys.stderr)
        return 2
    except RecursionError:
        print(
            f"{options.file}: a payload is nested deeper than any that is recorded; the file is "
            "damaged, record the run again",
            file=sys.stderr,
        )
        return 2
    return status


def _add_show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="a recorded trace")
    parser.add_argument(
        "--mailbox", metavar="NAME",
        help="only messages to this mailbox, as context or scheduler",
    )  # fmt: skip
    parser.add_argument(
        "--stimulus", metavar="NAME",
        help="only what this request from outside led to, as allocation-3",
    )  # fmt: skip
    parser.add_argument(
        "--type", type=_message_type, metavar="NAME",
        help="only messages of this type, as FactsAppended",
    )  # fmt: skip
    parser.add_argument(
        "--about", metavar="ID",
        help="only messages that mention this application, allocation key, uuid, node or queue",
    )  # fmt: skip
    parser.add_argument("--full", action="store_true", help="print payloads whole, as JSON")
    parser.add_argument(
        "--limit", default=0, type=_positive, metavar="N", help="stop after so many messages"
    )
    parser.set_defaults(part=_show)


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


def _show(options: argparse.Namespace) -> int:
    on_terminal = sys.stdout.isatty()
    wanted = Wanted(
        mailbox=options.mailbox, stimulus=options.stimulus, type=options.type, about=options.about
    )
    look = Look(
        colour=on_terminal and not os.environ.get("NO_COLOR"),
        width=shutil.get_terminal_size().columns if on_terminal else 0,
        full=options.full,
        limit=options.limit,
    )
    with TraceReader(options.file) as trace:
        show(trace, sys.stdout, wanted, look)
    return 0


def _replay(options: argparse.Namespace) -> int:
    with TraceReader(options.file) as trace:
        outcome = replay(trace)
    print(outcome.report())
    return 0 if outcome.difference is None else 1
