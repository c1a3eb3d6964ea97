"""`config diff OLD NEW`: what a configuration changes, before it is loaded."""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec

from yunikorn_actors import si
from yunikorn_actors.cli import FAILED, NO
from yunikorn_actors.cli.config_text import Unreadable, line_of, name_of, read_text
from yunikorn_actors.cli.dump_files import DumpError, read_dump
from yunikorn_actors.cli.policies import add_policies
from yunikorn_actors.cli.service_options import OF_SERVICE, add_server, read_twice, unused
from yunikorn_actors.cli.terminal import complain, tell
from yunikorn_actors.config import ConfigError, SchedulerConfig, parse_config
from yunikorn_actors.config.diff import ConfigChange, Kind, config_changes
from yunikorn_actors.config.policy_names import ANY_NAMES, PolicyNames
from yunikorn_actors.errors import InvalidRequest, Refused
from yunikorn_actors.policies.registry import MissingPolicy
from yunikorn_actors.recording.plain_text import printable
from yunikorn_actors.values.close_names import first_few

if TYPE_CHECKING:
    from yunikorn_actors.service.rest.client import Client
    from yunikorn_actors.what_if.answer import Answer


class Mistake(Exception):
    """A configuration cannot be read; the lines say where and why."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", metavar="OLD", help="a configuration; - reads standard input")
    parser.add_argument("new", metavar="NEW", help="the one that is to take its place")
    parser.add_argument(
        "--dump", metavar="FILE",
        help="try both on this state dump, of ours or of the Go core: which asks fare otherwise",
    )  # fmt: skip
    parser.add_argument(
        "--until", type=float, metavar="SECONDS",
        help="try them so far ahead; without it until nothing happens any more",
    )  # fmt: skip
    add_policies(parser)
    add_server(parser, without="none is asked without it")


def run(options: argparse.Namespace) -> int:
    if (mistake := _mistake(options)) is not None:
        complain(mistake)
        return FAILED
    try:
        texts = _text_of(options.old), _text_of(options.new)
        # Without policies a name may stand for one of a service.
        names = options.policies.names if options.policies.given else ANY_NAMES
        files = (options.old, options.new)
        old, new = (_config_of(*it, names) for it in zip(files, texts, strict=True))
        answer = None if options.dump is None else _on_dump(options, *texts)
    except (Mistake, DumpError, InvalidRequest, MissingPolicy) as mistake:
        complain(str(mistake))
        return FAILED
    changes = tuple(config_changes(old, new))
    if options.server is not None:
        from yunikorn_actors.cli.service_calls import asking  # noqa: PLC0415 - as below

        return asking(options, partial(_on_service, changes))
    return _tell(options, changes, answer)


def _mistake(options: argparse.Namespace) -> str | None:
    """Say what is given and would not be looked at."""
    if options.dump is not None and options.server is not None:
        return "--dump and --server: both are tried on one state: name one of them"
    if options.server is None:
        no_service = "no service is asked: name it with --server, or leave that out"
        if (mistake := unused(options, OF_SERVICE, no_service)) is not None:
            return mistake
    if options.until is not None:
        if options.dump is None and options.server is None:
            return "--until: nothing is tried without a state: name one by --dump or --server"
        from yunikorn_actors.cli.simulate import until_fault  # noqa: PLC0415 - as below

        if (mistake := until_fault(options)) is not None:
            return mistake
    return read_twice(**{"OLD": options.old, "NEW": options.new, "--dump": options.dump})


def _tell(
    options: argparse.Namespace, changes: Sequence[ConfigChange], answer: "Answer | None"
) -> int:
    differences = () if answer is None else answer.differences
    lines = [*lines_of(changes)]
    if answer is not None:
        from yunikorn_actors.what_if.text import differing_lines  # noqa: PLC0415 - as below

        lines += differing_lines(answer)
    tell((*changes, *differences) if options.json else None, map(printable, lines))
    return NO if differences or _counting(changes) else 0


def _on_dump(options: argparse.Namespace, old: str, new: str) -> "Answer":
    """Load each into a copy of the state, and compare what becomes of it."""
    # A comparison of two files alone needs no simulator.
    from yunikorn_actors.what_if.answer import differences_of  # noqa: PLC0415
    from yunikorn_actors.what_if.changes import Change  # noqa: PLC0415
    from yunikorn_actors.what_if.dumps import state_from_dump  # noqa: PLC0415
    from yunikorn_actors.what_if.simulation import simulate  # noqa: PLC0415

    state = state_from_dump(read_dump(options.dump), where=options.dump)
    simulated = partial(simulate, state, compare=False, policies=options.policies.given)

    def loaded(config: str, file: str) -> Change:
        return Change(si.UpdateConfigurationRequest(config=config), where=name_of(file))

    answer = simulated(loaded(new, options.new), until=options.until)
    without = simulated(loaded(old, options.old), until=answer.course.until_s).course
    return replace(answer, without=without, differences=differences_of(answer.course, without))


def _on_service(
    changes: Sequence[ConfigChange], options: argparse.Namespace, client: "Client"
) -> int:
    """Have the service try it; there it is compared with what is in force."""
    from yunikorn_actors.cli.service_calls import OWN  # noqa: PLC0415 - as above
    from yunikorn_actors.cli.simulate import config_step  # noqa: PLC0415
    from yunikorn_actors.what_if.answer import Answer  # noqa: PLC0415

    question = {"steps": [config_step(options.new)], "until": options.until}
    try:
        found = client.post(*OWN, "simulate", body=msgspec.json.encode(question))
    except Refused as error:
        # What is refused has no answer, not even that something fares otherwise.
        complain(str(error))
        return FAILED
    return _tell(options, changes, msgspec.convert(found["answer"], Answer))


def _text_of(file: str) -> str:
    try:
        return read_text(file)
    except Unreadable as error:
        raise Mistake(f"{name_of(file)}: {error}") from None


def _config_of(file: str, text: str, names: PolicyNames) -> SchedulerConfig:
    name = name_of(file)
    try:
        return parse_config(text, names)
    except ConfigError as error:
        raise Mistake("\n".join(line_of(name, it) for it in error.faults)) from None


def _counting(changes: Iterable[ConfigChange]) -> list[ConfigChange]:
    return [it for it in changes if it.kind is not Kind.IGNORED]


def lines_of(changes: Sequence[ConfigChange]) -> Iterator[str]:
    if not _counting(changes):
        yield "both mean the same"
    for partition, some in groupby(_counting(changes), lambda it: it.partition):
        yield f"partition {partition}"
        own = [it for it in some if it.kind is not Kind.INHERITED]
        for queue, here in groupby(own, lambda it: it.queue):
            yield from _of_place(queue, tuple(here))
    yield from _listed("inherited", [it for it in changes if it.kind is Kind.INHERITED])
    yield from _listed("ignored", [it for it in changes if it.kind is Kind.IGNORED])


def _of_place(queue: str, changes: Sequence[ConfigChange]) -> Iterator[str]:
    first, *rest = changes
    whole = first if first.what in {"queue", "partition"} else None
    if queue:
        yield f"  queue {queue}" + ("" if whole is None else f": {_ended(whole)}")
    elif whole is not None:
        yield f"  {_ended(whole)}"
    indent = "    " if queue else "  "
    for it in changes if whole is None else rest:
        kind = it.what if it.kind is Kind.CHANGED or whole else f"{it.what} {it.kind.value}"
        yield f"{indent}{kind}: {_values(it)}"


def _ended(change: ConfigChange) -> str:
    return f"{change.kind.value}; {change.after}" if change.after else change.kind.value


def _values(change: ConfigChange) -> str:
    if change.kind is Kind.ADDED:
        return change.after
    return f"{change.before} -> {change.after}" if change.after else change.before


def _listed(head: str, changes: Iterable[ConfigChange]) -> Iterator[str]:
    """Put together what several queues have of one change; `--json` names all of them."""
    queues: dict[tuple[str, str], list[str]] = {}
    for it in changes:
        text = f"{it.what}: {_values(it)}"
        queues.setdefault((it.partition, text), []).append(it.queue)
    for partition, some in groupby(queues.items(), lambda it: it[0][0]):
        yield f"{head} in partition {partition}"
        for (_, text), paths in some:
            yield f"  {text}, in {first_few(paths)}"
