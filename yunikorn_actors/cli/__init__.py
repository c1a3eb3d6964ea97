"""The command line: one module for each command, found by its name.

A command module has a docstring (its help), `add_arguments` and `run`, which returns the exit
status: 0 well, 1 the answer is no, 2 the question could not be understood.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

COMMANDS = {
    "scenario": "run scenario files, in the simulator or on threads",
    "trace": "look into a recorded run, or run it again",
    "demo": "watch the core schedule a small cluster",
    "config": "check a configuration file",
    "health": "judge a state dump",
}
"""Imported only when asked for: a command pays for what it uses."""


def main(arguments: Sequence[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(
        prog="yunikorn-actors", description="The Apache YuniKorn scheduler core as actors."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    asked = next((word for word in arguments if word in COMMANDS), None)
    for name, help_ in COMMANDS.items():
        command = commands.add_parser(name, help=help_, description=help_)
        if name == asked:
            module = import_module(f"yunikorn_actors.cli.{name}")
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    options = parser.parse_args(arguments)
    try:
        status: int = options.run(options)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader went away (`| head`): nothing is wrong, and nothing more can be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status
