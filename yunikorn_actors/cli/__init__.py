"""The command line: one module for each command, found by its name.

A command module has a docstring, `add_arguments` and `run`, which returns the exit status: 0 if all
is well, 1 if the answer is no, 2 if the question could not be understood.
"""

import argparse
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from importlib import import_module
from io import TextIOWrapper
from typing import Final

from yunikorn_actors import __version__
from yunikorn_actors.recording.plain_text import printable
from yunikorn_actors.values.garbage import kept_for_good

NO: Final = 1
"""The answer is no."""
FAILED: Final = 2
"""The command could not be carried out."""
INTERRUPTED: Final = 130
"""As a shell reports a program that SIGINT ended."""


GROUPS: Final = {
    "a service, and what runs in it": {
        "serve": "be a scheduler that others reach over the network",
        "queues": "show the queues of a service",
        "apps": "show the applications of a service",
        "nodes": "show the nodes of a service",
        "events": "show what has happened in a service, and what happens",
        "why": "say why asks wait, in a service or in a state dump",
        "health": "judge a state dump",
        "drain": "place nothing new on a node of a service",
        "undrain": "let a drained node take work again",
        "unregister": "remove everything of a lost resource manager from a service",
    },
    "configurations, and what would be": {
        "config": "check a configuration file, show that of a service or load another",
        "validate": "ask a service whether it would take a configuration",
        "simulate": "say what would happen if something were changed, before it is",
        "workload": "play the log of a cluster through the scheduler, in virtual time",
        "policy": "check a policy of your own",
    },
    "scenarios, races and recordings": {
        "demo": "watch the core schedule a small cluster",
        "scenario": "run scenario files, in the simulator or on threads",
        "lab": "find, shrink and replay races",
        "trace": "look into a recorded run, or run it again",
    },
}
"""By what one is about to do: so a reader of the list passes over two thirds of it."""
COMMANDS: Final = {name: help_ for group in GROUPS.values() for name, help_ in group.items()}
"""A command is imported only when it is used, so that none waits for the imports of others."""


def main(arguments: Sequence[str] | None = None) -> int:
    _open_closed_streams()
    if isinstance(sys.stdout, TextIOWrapper):
        # Names come from outside: characters that the terminal cannot show are written as escapes.
        sys.stdout.reconfigure(errors="backslashreplace")
    # The user of a command needs the warning, and not the line of this package that gives it.
    shown, warnings.formatwarning = warnings.formatwarning, _one_line
    try:
        if arguments is None:
            return _run(sys.argv[1:], is_process=True)
        return _run(arguments)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of the pipe has ended (`| head`): no error, but nothing more can be written.
        _write_no_more()
        return 0
    except OSError as error:
        _write_no_more()
        print(f"cannot go on: {error.strerror or error}", file=sys.stderr)
        return FAILED
    finally:
        warnings.formatwarning = shown


def _one_line(message: Warning | str, *_: object, **__: object) -> str:
    return f"warning: {message}\n"


def _open_closed_streams() -> None:
    """Read nothing from a stream that was closed before (`>&-`), and write to nobody."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def _run(arguments: Sequence[str], *, is_process: bool = False) -> int:
    parser = argparse.ArgumentParser(
        prog="yunikorn-actors",
        usage="%(prog)s [-h] [--version] COMMAND ...",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="The Apache YuniKorn scheduler core as actors.",
        epilog="\n".join(_listed()),
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(
        dest="command",
        required=True,
        metavar="COMMAND",
        prog="yunikorn-actors",
        help=argparse.SUPPRESS,
    )
    asked = next((word for word in arguments if word in COMMANDS), None)
    # The others are listed where none, or no command, was asked for: to make one takes a while.
    is_first = asked is not None and arguments[0] == asked
    for name, help_ in COMMANDS.items():
        if is_first and name != asked:
            continue
        # Without `help`: argparse would list them once more, in one row.
        command = commands.add_parser(name, description=help_)
        if name == asked:
            # Where the command line is given, the process may be somebody else's.
            with kept_for_good() if is_process else nullcontext():
                module = import_module(f"yunikorn_actors.cli.{name}")
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    try:
        options = parser.parse_args(arguments)
        status = _status(options, arguments)
    finally:
        # Flushed here, where `main` can still handle a failure; at exit Python would only print it.
        sys.stdout.flush()
    return status


def _listed() -> Iterator[str]:
    wide = max(map(len, COMMANDS))
    for head, commands in GROUPS.items():
        yield f"{head}:"
        yield from (f"  {name:<{wide}}  {help_}" for name, help_ in commands.items())
        yield ""
    yield "`yunikorn-actors COMMAND --help` says more about one."


def _status(options: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Run the command; say which file, of those that the user named, it cannot use."""
    try:
        status: int = options.run(options)
    except OSError as error:
        if error.filename is None:
            raise
        has_actions = any(it in options for it in _ACTIONS)
        at = arguments.index(options.command)
        command = " ".join(("yunikorn-actors", *arguments[at : at + 1 + has_actions]))
        remedy = "; check the path, and whether you may use it" * isinstance(error, _OF_PATHS)
        text = f"{command}: {error.filename}: {error.strerror}{remedy}"
        print(printable(text), file=sys.stderr)
        return FAILED
    return status


_ACTIONS: Final = ("action", "part", "verb", "subcommand")
"""Where a command with several of them keeps what was asked for; its name is the next word."""
_OF_PATHS: Final = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)


def _write_no_more() -> None:
    """Discard what standard output still buffers, if it is a file."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
