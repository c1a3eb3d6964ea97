"""Look into a recorded run, or run it again."""

import argparse
import difflib
import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Final, get_args

from msgspec.structs import replace

from yunikorn_actors.cli import FAILED, INTERRUPTED, NO
from yunikorn_actors.cli.config_text import Unreadable, line_of, name_of, read_text
from yunikorn_actors.cli.policies import add_policies
from yunikorn_actors.cli.service_options import read_twice, unused
from yunikorn_actors.cli.terminal import Progress, complain, json_of, tell, tell_sentences, width
from yunikorn_actors.cli.trace_export import (
    add_export,
    add_query,
    ask,
    export,
    warn_of_end,
    whole_file,
)
from yunikorn_actors.cli.trace_view import add_view, view
from yunikorn_actors.config import ConfigError, parse_config
from yunikorn_actors.messages.base import Cause
from yunikorn_actors.messages.codec import MESSAGE_TYPES
from yunikorn_actors.policies.registry import MissingPolicy, PolicyChanged
from yunikorn_actors.recording.plain_text import printable
from yunikorn_actors.state.facts import Fact
from yunikorn_actors.trace.causes import why_of
from yunikorn_actors.trace.chain import Link, NotThere, by_causes, downwards, upwards
from yunikorn_actors.trace.compare_runs import compare, comparison_lines, comparison_rows
from yunikorn_actors.trace.fields import change_line, change_row
from yunikorn_actors.trace.filters import FilterOptions, Moment, moment_of, strangers
from yunikorn_actors.trace.other_configuration import what_if, what_if_lines
from yunikorn_actors.trace.path import path_of
from yunikorn_actors.trace.read import TraceError, TraceReader
from yunikorn_actors.trace.records.source import STANDARD_INPUT, readable_twice
from yunikorn_actors.trace.refused import grouped
from yunikorn_actors.trace.replay import DifferentError, Extent, outcome_rows, replay
from yunikorn_actors.trace.scrub.scrub import Scrubbed, ScrubError
from yunikorn_actors.trace.state_at import reach_of, state_changes, states_at
from yunikorn_actors.trace.stats import stats
from yunikorn_actors.trace.story import NotFound, story
from yunikorn_actors.trace.text.draw import draw
from yunikorn_actors.trace.text.show import Look, show, shown_rows, tail
from yunikorn_actors.trace.text.tables import (
    chain_lines,
    path_lines,
    refusal_lines,
    stats_lines,
    story_lines,
    wait_lines,
    wait_problems,
    wait_rows,
)

_OF_TEXT: Final = ("full", "times", "clock")
"""How lines are written."""
TAIL_S: Final = 0.2
"""How long to wait for more of a run that goes on."""
_PLACE: Final = (
    "a time since the start such as 2900ms, a step such as context/751, or the number of a record"
)


_Command = tuple[
    str, Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace], int]
]
"""What it is for, what it takes beside the file, and what runs it; it returns the exit status."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="part", required=True, metavar="COMMAND")
    for name, (help_, add, run_) in COMMANDS.items():
        command = commands.add_parser(name, help=help_, description=help_)
        command.add_argument("file", type=Path, help="a recorded trace, or - for standard input")
        add(command)
        command.set_defaults(part=run_)


def run(options: argparse.Namespace) -> int:
    with warnings.catch_warnings(record=True, action="always", category=PolicyChanged) as changed:
        status = _run(options)
    for warning in changed:
        print(printable(str(warning.message)), file=sys.stderr)
    return status


def _run(options: argparse.Namespace) -> int:
    files = {"FILE": options.file, "OTHER": getattr(options, "other", None)}
    # `what-if` has the file of a configuration there.
    mistake = read_twice(**files, **{"--config": getattr(options, "config", None)})
    if mistake is None and getattr(options, "json", False):
        mistake = unused(options, _OF_TEXT, "--json has whole messages with their times as data")
        mistake = mistake and f"{mistake}: leave one of them out"
    if mistake is not None:
        complain(mistake)
        return FAILED
    try:
        status: int = options.part(options)
    except (TraceError, MissingPolicy) as error:
        print(printable(str(error)), file=sys.stderr)
        return FAILED
    except RecursionError:
        print(
            f"{options.file}: a payload is nested deeper than a recorder writes; the file is "
            "damaged, record the run again",
            file=sys.stderr,
        )
        return FAILED
    return status


# -- what a command takes


def _add_wanted(parser: argparse.ArgumentParser, end: str = "--to") -> None:
    for name, metavar, about in (
        ("mailbox", "NAME", "messages to this mailbox, such as context or scheduler"),
        ("stimulus", "NAME", "what this request from outside led to, such as allocation-3"),
        ("about", "ID", "what mentions this application, allocation key, uuid, node or queue"),
    ):
        parser.add_argument(
            f"--{name}", action="append", default=[], metavar=metavar,
            help=f"only {about}; given several times, any of these",
        )  # fmt: skip
    parser.add_argument(
        "--type", action="append", default=[], type=_type, metavar="NAME",
        help="only messages of this type, such as FactsAppended, or with facts of it, such as "
        "AskAdded; given several times, any of these",
    )  # fmt: skip
    parser.add_argument("--refused", action="store_true", help="only what refuses something")
    parser.add_argument(
        "--from", dest="begin", type=_moment, metavar="PLACE",
        help=f"from here on: {_PLACE}",
    )  # fmt: skip
    parser.add_argument(
        end, dest="end", type=_moment, metavar="PLACE", help="up to here, as with --from"
    )


def _add_shown(parser: argparse.ArgumentParser) -> None:
    _add_drawn(parser)
    _add_look(parser)
    _add_json(parser)


def _add_tailed(parser: argparse.ArgumentParser) -> None:
    _add_wanted(parser)
    _add_clock(parser)
    _add_look(parser)


def _add_look(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--full", action="store_true", help="print payloads whole, as JSON")
    parser.add_argument(
        "--times", action="store_true",
        help="print how long messages waited in the mailbox and how long the step before took",
    )  # fmt: skip


def _add_drawn(parser: argparse.ArgumentParser) -> None:
    _add_wanted(parser)
    parser.add_argument(
        "--limit", default=0, type=_positive, metavar="N", help="stop after so many messages"
    )
    _add_clock(parser)


def _add_filtered(parser: argparse.ArgumentParser) -> None:
    _add_wanted(parser)
    _add_json(parser)


def _add_chained(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("step", type=_step, metavar="STEP", help="such as context/751")
    direction = parser.add_mutually_exclusive_group()
    direction.add_argument(
        "--down", action="store_true", help="what came of it, not what led to it"
    )
    parser.add_argument(
        "--about", default="", metavar="ID",
        help="follow this item of the message, by its key or its application; else the first one",
    )  # fmt: skip
    direction.add_argument(
        "--causes", action="store_true",
        help="follow what was being handled when each message was sent, whatever it is about",
    )  # fmt: skip
    _add_clock(parser)
    _add_json(parser)


def _add_life(parser: argparse.ArgumentParser) -> None:
    _add_named(parser)
    _add_clock(parser)


def _add_named(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", metavar="ID",
        help="an application, an ask (its key, or APPLICATION/KEY), the uuid of an allocation, a "
        "node, a queue or a user",
    )  # fmt: skip
    _add_json(parser)


def _add_clock(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--clock", action="store_true",
        help="print the time of day as well (UTC), beside the time since the start",
    )  # fmt: skip


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object on a line")


# -- what is typed


def _type(name: str) -> str:
    known = {*MESSAGE_TYPES, *(kind.__name__ for kind in get_args(Fact))}
    if name in known:
        return name
    near = difflib.get_close_matches(name, sorted(known), n=1)
    hint = f"did you mean {near[0]}?" if near else f"choose from {', '.join(sorted(known))}"
    raise argparse.ArgumentTypeError(f"no message and no fact is of type {name!r}; {hint}")


def _positive(text: str) -> int:
    number = int(text) if text.isascii() and text.isdecimal() else 0
    if not number:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return number


def _moment(text: str) -> Moment:
    try:
        return moment_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _step(text: str) -> Cause:
    step = _moment(text).step
    if step is None:
        raise argparse.ArgumentTypeError(f"{text!r:.80} is no step: write one as context/751")
    return step


def _wanted(options: argparse.Namespace) -> FilterOptions:
    return FilterOptions(
        mailbox=tuple(options.mailbox),
        stimulus=tuple(options.stimulus),
        type=tuple(options.type),
        about=tuple(options.about),
        refused=options.refused,
        begin=options.begin,
        end=options.end,
    )


def _colour() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


# -- commands


def _show(options: argparse.Namespace) -> int:
    look = Look(
        colour=_colour(), width=width(), full=options.full, times=options.times,
        limit=options.limit, clock=options.clock,
    )  # fmt: skip
    wanted = _wanted(options)
    with TraceReader(options.file) as trace:
        shown = (
            _show_rows(trace, wanted, options.limit)
            if options.json
            else show(trace, sys.stdout, wanted, look)
        )
    return 0 if shown else _look_for(options.file, wanted)


def _show_rows(trace: TraceReader, wanted: FilterOptions, limit: int) -> int:
    shown = 0
    for row in shown_rows(trace, wanted, limit):
        shown += 1
        print(json_of(row))
    if not shown == limit > 0:
        warn_of_end(trace)
    return shown


def _tail(options: argparse.Namespace) -> int:
    look = Look(
        colour=_colour(), width=width(), full=options.full, times=options.times, clock=options.clock
    )
    try:
        tail(options.file, sys.stdout, _wanted(options), look, lambda: time.sleep(TAIL_S))
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _draw(options: argparse.Namespace) -> int:
    wanted = _wanted(options)
    how = {"width": width(), "limit": options.limit, "clock": options.clock}
    drawn = 0
    with readable_twice(options.file) as path:
        for line in draw(path, wanted, **how):
            drawn += 1
            print(line)
    return 0 if drawn else _look_for(options.file, wanted)


def _look_for(path: Path, wanted: FilterOptions) -> int:
    """Say which of the names that were asked for nobody has in this recording."""
    if path == STANDARD_INPUT or not (wanted.about or wanted.stimulus or wanted.mailbox):
        return 0
    with TraceReader(path) as trace:
        unknown = list(strangers(trace, wanted))
    for text in unknown:
        print(printable(f"{path}: {text}"), file=sys.stderr)
    return NO if unknown else 0


def _add_exported(parser: argparse.ArgumentParser) -> None:
    _add_wanted(parser, end="--until")
    add_export(parser)


def _export(options: argparse.Namespace) -> int:
    wanted = _wanted(options)
    exported = export(options, wanted)
    if exported is None:
        return FAILED
    return 0 if exported else _look_for(options.file, wanted)


def _add_viewed(parser: argparse.ArgumentParser) -> None:
    add_view(parser)
    _add_wanted(parser)


def _view(options: argparse.Namespace) -> int:
    wanted = _wanted(options)
    if all(view(options, wanted)):
        return 0
    return max(_look_for(path, wanted) for path in (options.file, options.other) if path)


def _add_queried(parser: argparse.ArgumentParser) -> None:
    add_query(parser)
    _add_wanted(parser)


def _query(options: argparse.Namespace) -> int:
    return 0 if ask(options, _wanted(options)) else FAILED


def _add_replayed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--to", dest="end", type=_moment, metavar="PLACE", help=f"only up to here: {_PLACE}"
    )
    parser.add_argument(
        "--all", action="store_true", help="go on after the first difference, and count them"
    )
    add_policies(parser)
    _add_json(parser)


def _replay(options: argparse.Namespace) -> int:
    extent = Extent(until=options.end, goes_on=options.all)
    with (
        TraceReader(options.file, policies=options.policies.given) as trace,
        Progress() as progress,
    ):
        outcome = replay(trace, extent, progress.tell)
    tell(outcome_rows(outcome) if options.json else None, (outcome.report(),))
    return 0 if outcome.difference is None else NO


def _add_scrubbed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--out", required=True, type=Path, metavar="OUT", help="the file for the result"
    )
    add_policies(parser)


def _scrub(options: argparse.Namespace) -> int:
    try:
        with readable_twice(options.file) as path, whole_file(options.out) as out:
            scrubbed = Scrubbed(path, options.policies.given)
            with out.open("wb") as file:
                file.writelines(scrubbed)
    except ScrubError as error:
        print(printable(f"{options.file}: {error}"), file=sys.stderr)
        return NO
    print(f"replaced {scrubbed.names} names in {scrubbed.messages} messages")
    return 0


def _refusals(options: argparse.Namespace) -> int:
    wanted = _wanted(options)
    with TraceReader(options.file) as trace:
        groups = grouped(wanted.over(trace))
        lines = refusal_lines(trace, groups)
    tell(groups if options.json else None, lines)
    warn_of_end(trace)
    return 0 if groups else _look_for(options.file, wanted)


def _stats(options: argparse.Namespace) -> int:
    wanted = _wanted(options)
    with TraceReader(options.file) as trace:
        found = stats(trace, wanted)
        lines = stats_lines(trace, found)
    tell((found,) if options.json else None, lines)
    warn_of_end(trace)
    return 0 if found.messages else _look_for(options.file, wanted)


def _chain(options: argparse.Namespace) -> int:
    if options.causes and options.about:
        complain("--about: --causes follows messages, whatever they are about: leave one out")
        return FAILED
    try:
        with readable_twice(options.file) as path:
            links = _links(options, path)
            lines = chain_lines(path, links, clock=options.clock)
            tell(links if options.json else None, lines)
    except NotThere as error:
        print(printable(f"{options.file}: {error}"), file=sys.stderr)
        return NO
    return 0


def _links(options: argparse.Namespace, path: Path) -> list[Link]:
    if options.down:
        return downwards(options.step, path, options.about)
    if options.causes:
        return by_causes(options.step, path)
    return upwards(options.step, path, options.about)


def _story(options: argparse.Namespace) -> int:
    try:
        with readable_twice(options.file) as path:
            subject, lines = story(path, options.name)
            text = story_lines(path, subject, lines, clock=options.clock)
            tell(lines if options.json else None, text)
    except NotFound as error:
        print(printable(f"{options.file}: {error}"), file=sys.stderr)
        return NO
    return 0


def _path(options: argparse.Namespace) -> int:
    try:
        with readable_twice(options.file) as path:
            way = path_of(path, options.name)
    except NotFound as error:
        print(printable(f"{options.file}: {error}"), file=sys.stderr)
        return NO
    tell((way,) if options.json else None, path_lines(way, clock=options.clock))
    return 0 if way.parts else NO


def _add_why(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "keys", nargs="+", metavar="KEY",
        help="key of an ask, or APPLICATION/KEY; several are answered by one replay",
    )  # fmt: skip
    parser.add_argument(
        "--each", action="store_true", help="tell each answer, also those that are much the same"
    )
    add_policies(parser)
    _add_clock(parser)
    _add_json(parser)


def _why(options: argparse.Namespace) -> int:
    with Progress() as progress:
        waits = why_of(
            options.file, options.keys, tell=progress.tell, policies=options.policies.given
        )
        answer = waits.grouped(each=options.each)
    for names in map(answer.names, options.keys):
        if len(names) > 1:
            text = f"{options.file}: say which, as several have it: {', '.join(names)}"
            print(printable(text), file=sys.stderr)
            return FAILED
    tell(wait_rows(answer) if options.json else None, wait_lines(answer, clock=options.clock))
    problems = [*wait_problems(answer, options.keys)]
    for problem in problems:
        print(printable(f"{options.file}: {problem}"), file=sys.stderr)
    return NO if problems else 0


def _add_at(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("place", type=_moment, metavar="PLACE", help=_PLACE)
    parser.add_argument(
        "--diff", type=_moment, metavar="PLACE", help="print only what is different there"
    )
    add_policies(parser)
    _add_json(parser)


def _at(options: argparse.Namespace) -> int:
    places = [options.place] if options.diff is None else [options.place, options.diff]
    try:
        with TraceReader(options.file, policies=options.policies.given) as trace:
            states = [state for state in states_at(trace, places) if state is not None]
    except DifferentError as error:
        print(printable(f"{options.file}: {error.as_warning()}"), file=sys.stderr)
        return NO
    if len(states) < len(places):
        print(printable(f"{options.file}: {reach_of(options.file)}"), file=sys.stderr)
        return NO
    if options.diff is None:
        print(json.dumps(states[0], indent=None if options.json else 2))
        return 0
    changed = list(state_changes(*states))
    tell(map(change_row, changed) if options.json else None, map(change_line, changed))
    return 0


def _add_compared(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("other", type=Path, metavar="OTHER", help="a recording of the other run")
    _add_json(parser)


def _diff(options: argparse.Namespace) -> int:
    with readable_twice(options.file) as one, readable_twice(options.other) as other:
        found = compare(one, other)
    paths = (options.file, options.other)
    rows = comparison_rows(paths, found) if options.json else None
    tell(rows, comparison_lines(paths, found))
    return 0 if found.is_same else NO


def _add_what_if(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config", required=True, metavar="NEW",
        help="the other configuration, in the place of each that was loaded",
    )  # fmt: skip
    add_policies(parser)
    _add_json(parser)


def _what_if(options: argparse.Namespace) -> int:
    try:
        text = read_text(options.config)
        # Another name would decide nothing, and nothing would fare otherwise by it.
        names = replace(options.policies.names_for(text), is_closed=True)
        config = parse_config(text, names)
        with TraceReader(options.file, policies=options.policies.given) as trace:
            found = what_if(trace, config)
    except ConfigError as error:
        complain("\n".join(line_of(name_of(options.config), it) for it in error.faults))
        return FAILED
    except Unreadable as error:
        complain(f"{name_of(options.config)}: {error}")
        return FAILED
    tell_sentences([found] if options.json else None, what_if_lines(found))
    return NO if found.answer.differences else 0


COMMANDS: Final[dict[str, _Command]] = {
    "show": ("print a recorded run, one message on a line", _add_shown, _show),
    "tail": ("print a run that is being recorded, as it goes on", _add_tailed, _tail),
    "draw": (
        "draw the messages between the machines of a recorded run, from top to bottom",
        _add_drawn, _draw,
    ),
    "chain": ("print what led to a message, or what came of it", _add_chained, _chain),
    "story": ("print the life of one thing", _add_life, _story),
    "path": ("print where the time of an ask went, from call to callback", _add_life, _path),
    "refusals": ("print what was refused, grouped by the reason", _add_filtered, _refusals),
    "stats": (
        "print how many messages there were, how long they waited and how long they took",
        _add_filtered, _stats,
    ),
    "export": ("write a recorded run for another program", _add_exported, _export),
    "view": ("write a page that shows a recorded run, or two", _add_viewed, _view),
    "query": ("ask a recorded run a question in SQL", _add_queried, _query),
    "replay": (
        "run the recorded messages through the core again and compare all effects",
        _add_replayed, _replay,
    ),
    "scrub": (
        "replace all names in a recorded run, so that it can be handed in with a bug",
        _add_scrubbed, _scrub,
    ),
    "diff": ("tell two runs apart: where they part, and how they end", _add_compared, _diff),
    "at": ("print the state after a message, or how two states differ", _add_at, _at),
    "why": ("say why an ask waited, from when to when", _add_why, _why),
    "what-if": (
        "say what another configuration would have done with the same requests",
        _add_what_if, _what_if,
    ),
}  # fmt: skip
