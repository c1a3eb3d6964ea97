"""`yunikorn-actors simulate`: what would happen if something were changed, before it is."""

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

from yunikorn_actors.cli import FAILED, NO
from yunikorn_actors.cli.config_text import Unreadable, name_of, read_text
from yunikorn_actors.cli.dump_files import DumpError, read_dump
from yunikorn_actors.cli.policies import add_policies
from yunikorn_actors.cli.service_calls import OWN, asking
from yunikorn_actors.cli.service_options import OF_SERVICE, add_server, read_twice, unused
from yunikorn_actors.cli.short_changes import add_short_changes, steps_of
from yunikorn_actors.cli.terminal import complain, tell_sentences
from yunikorn_actors.errors import InvalidRequest, JournalError, Refused
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.scenario.change_steps import parse_changes
from yunikorn_actors.service.rest.client import Client
from yunikorn_actors.trace.filters import moment_of
from yunikorn_actors.trace.read import TraceError, TraceReader
from yunikorn_actors.trace.replay import DifferentError
from yunikorn_actors.trace.state_at import reach_of, state_from_trace
from yunikorn_actors.what_if.answer import Answer, AskName
from yunikorn_actors.what_if.change_checks import check_seconds
from yunikorn_actors.what_if.changes import Change
from yunikorn_actors.what_if.core_state import CoreState
from yunikorn_actors.what_if.dumps import state_from_dump, state_from_journal
from yunikorn_actors.what_if.least_change import Wanted, least_changes
from yunikorn_actors.what_if.simulation import simulate
from yunikorn_actors.what_if.text import fit_lines, lines_of

SEARCH_S: Final = 60.0
"""So long a search for the least changes may take."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", nargs="?", metavar="CHANGES",
        help="a file of changes, written as the steps of a scenario; - reads standard input",
    )  # fmt: skip
    parser.add_argument(
        "-c", "--change", action="append", default=[], metavar="STEP",
        help="one such step, as in 'drain_node: node-1'; with others in their order",
    )  # fmt: skip
    add_short_changes(parser)
    parser.add_argument("--config", metavar="FILE", help="first load this configuration")
    parser.add_argument(
        "--dump", metavar="FILE", help="begin with a state dump as JSON; - reads standard input"
    )
    parser.add_argument("--trace", type=Path, metavar="FILE", help="begin within a recording")
    parser.add_argument(
        "--at", metavar="PLACE",
        help="at this time of it, such as 3s, or after this message: a number, or context/751; "
        "its end without",
    )  # fmt: skip
    parser.add_argument("--journal", type=Path, metavar="DIR", help="begin with a journal")
    parser.add_argument(
        "--until", type=float, metavar="SECONDS",
        help="so far ahead; without it until nothing happens any more",
    )  # fmt: skip
    parser.add_argument(
        "--least", action="store_true",
        help="find the least changes that would let what is asked for start at once",
    )  # fmt: skip
    parser.add_argument(
        "--waiting", action="append", default=[], type=_named_ask, metavar="APPLICATION/KEY",
        help="with --least: let this ask start, which waits already",
    )  # fmt: skip
    parser.add_argument(
        "--topology", choices=TOPOLOGIES,
        help="of the core that begins with a dump or a journal (default: proposing)",
    )  # fmt: skip
    add_policies(parser)
    add_server(parser)


def until_fault(options: argparse.Namespace) -> str | None:
    """Say what is wrong with `--until`, before a service is asked or a state is read."""
    try:
        if options.until is not None:
            check_seconds("--until", options.until)
    except InvalidRequest as error:
        return str(error)
    return None


def _named_ask(text: str) -> AskName:
    partition, _, name = text.partition("/") if text.startswith("[") else ("", "", text)
    application, _, key = name.partition("/")
    if not (application and key):
        raise argparse.ArgumentTypeError(f"{text!r} is no APPLICATION/KEY")
    return "/".join(filter(None, (partition, application))), key


def run(options: argparse.Namespace) -> int:
    if (mistake := _mistake(options) or until_fault(options)) is not None:
        complain(mistake)
        return FAILED
    if options.dump is None and options.trace is None and options.journal is None:
        return asking(options, _at_service)
    try:
        changes, policies = _changes(options), options.policies.given
        state = _state(options)
        if state is None:
            its_end = "" if options.at is None else "; without --at its end is taken"
            complain(f"{options.trace}: {reach_of(options.trace)}{its_end}")
            return FAILED
        if options.least:
            end_s = time.monotonic() + SEARCH_S
            found = least_changes(
                state, Wanted(tuple(changes), tuple(options.waiting)),
                left_s=lambda: end_s - time.monotonic(), policies=policies,
            )  # fmt: skip
            tell_sentences([found] if options.json else None, fit_lines(found))
            return 0 if found.options or found.fits else NO
        answer = simulate(state, *changes, until=options.until, policies=policies)
    except DifferentError as error:
        complain(f"{options.trace}: {error.as_warning()}")
        return FAILED
    except (DumpError, InvalidRequest, JournalError, TraceError, Unreadable, ValueError) as error:
        complain(str(error))
        return FAILED
    except OSError as error:
        complain(f"{error.filename}: {error.strerror}")
        return FAILED
    return _tell(options, answer)


def _mistake(options: argparse.Namespace) -> str | None:
    """Say what is given and would not be looked at."""
    sources = ("dump", "trace", "journal", "server")
    given = [f"--{name}" for name in sources if getattr(options, name) is not None]
    if len(given) > 1:
        return f"{' and '.join(given)}: a simulation begins with one state: name one of them"
    if options.at is not None and options.trace is None:
        return "--at: it is a moment of a recording: name that with --trace"
    if (mistake := _idle(options, given)) is not None:
        return mistake
    return read_twice(
        **{"CHANGES": options.file, "--config": options.config, "--dump": options.dump,
           "--trace": options.trace}
    )  # fmt: skip


def _idle(options: argparse.Namespace, sources: list[str]) -> str | None:
    """Say which option says nothing of a simulation that begins there."""
    is_here = bool(sources) and sources != ["--server"]
    if is_here:
        begins = f"a simulation that begins with {sources[0]} asks no service: leave it out"
        if (mistake := unused(options, OF_SERVICE, begins)) is not None:
            return mistake
    elif options.policies.given:
        return "--policies: a service decides with its own: leave it out, or begin with its dump"
    if options.topology is not None and options.dump is None and options.journal is None:
        return "--topology: a service and a recording have their own: leave it out"
    if options.least and options.until is not None:
        return "--until: with --least what is asked for starts at once: leave one of them out"
    if options.waiting and not options.least:
        return "--waiting: it is what --least is to let start: give that as well"
    return None


def _tell(options: argparse.Namespace, answer: Answer) -> int:
    tell_sentences([answer] if options.json else None, lines_of(answer))
    return 0 if answer.course.is_smooth else NO


def _at_service(options: argparse.Namespace, client: Client) -> int:
    try:
        changes = {
            "steps": [text for _, text in _steps(options)],
            "until": options.until,
            "least": options.least,
            "waiting": options.waiting,
        }
    except (Unreadable, InvalidRequest) as error:
        complain(str(error))
        return FAILED
    try:
        found = client.post(*OWN, "simulate", body=json.dumps(changes).encode())
    except Refused as error:
        # As where it is read here: a question that is refused has no answer, not even no.
        complain(str(error))
        return FAILED
    tell_sentences([found["answer"]] if options.json else None, found["lines"])
    return 0 if found["fits"] else NO


def _state(options: argparse.Namespace) -> CoreState | None:
    topology: TopologyName = options.topology or "proposing"
    if options.dump is not None:
        dump = read_dump(options.dump)
        return state_from_dump(dump, topology=topology, where=options.dump)
    if options.journal is not None:
        return state_from_journal(options.journal, topology=topology)
    moment = None if options.at is None else moment_of(options.at)
    with TraceReader(options.trace, policies=options.policies.given) as trace:
        return state_from_trace(trace, moment)


def _steps(options: argparse.Namespace) -> list[tuple[str, str]]:
    """Return the texts of all changes, each with the name of where it stands."""
    texts = [] if options.config is None else [(options.config, config_step(options.config))]
    if options.file is not None:
        texts.append((name_of(options.file), _read(options.file)))
    texts += [("--change", it) for it in _together(options.change)]
    of_kind: Counter[bool] = Counter()
    for name, text in options.short:
        # An ask and a gang may not have one name, an ask and a node may.
        of_kind[name == "node"] += 1
        texts.append((f"--{name}", steps_of(name, text, of_kind[name == "node"])))
    return texts


def _together(changes: list[str]) -> Iterator[str]:
    """Make one text of steps that stand in a line each; what has several is a text of its own."""
    for is_step, some in groupby(changes, key=lambda it: "\n" not in it):
        texts = list(some)
        yield from ["\n".join(f"- {it}" for it in texts)] if is_step else texts


def config_step(name: str) -> str:
    return "- config:\n" + "".join(f"    {line}\n" for line in _read(name).splitlines())


def _read(name: str) -> str:
    try:
        return read_text(name)
    except Unreadable as error:
        raise Unreadable(f"{name_of(name)}: {error}") from None


def _changes(options: argparse.Namespace) -> list[Change]:
    """Read them; the times of each text begin at the beginning."""
    return [it for name, text in _steps(options) for it in parse_changes(text, name)]
