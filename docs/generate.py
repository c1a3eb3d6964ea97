# ruff: noqa: INP001 - a script beside the pages that it writes
"""Writes the pages, and parts of pages, that follow from the code: `python docs/generate.py`.

Messages and facts are read from their source, where each class and field has its words; who makes a
message is found by looking for the calls of its class, who takes it by the tables of the machines.
So a page can say nothing that the code does not, and a test fails when a page is stale. Drawings in
other pages are those of a recorded run of the scenario that stands above them, and what commands
print there is what they print.
"""

import ast
import contextlib
import io
import json
import re
import runpy
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import cleandoc
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec

from yunikorn_actors.cli import main
from yunikorn_actors.config import names
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.lab.mutants.corpus import CORPUS, INEXPRESSIBLE
from yunikorn_actors.lab.mutants.mutant import UNPLAYED, Kind, function_of
from yunikorn_actors.machines import context, events, planning_loop, rm_proxy, scheduler
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import Topology
from yunikorn_actors.service.read.applications import STATUSES
from yunikorn_actors.service.rest.exchange import Route
from yunikorn_actors.service.rest.http_server import all_routes
from yunikorn_actors.state import applications as a
from yunikorn_actors.state.proposals import Refusal
from yunikorn_actors.state.queues import QueueState
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.what_if.core_state import state_of
from yunikorn_actors.what_if.least_change import least_changes
from yunikorn_actors.what_if.text import way_lines

sys.path.append(str(Path(__file__).parents[1] / "tests" / "helpers"))
from shapes import ANSWERS, Refused

Transitions = Mapping[tuple[a.ApplicationState, a.ApplicationEvent], a.ApplicationState]

HOME = Path(__file__).parent
PACKAGE = HOME.parent / "yunikorn_actors"
NOTE = "<!-- Written by `python docs/generate.py` from the code. Do not edit. -->\n"

ABOUT_MESSAGES = """\
A list to look things up in, made from the code: nobody has to read it through.

Everything that travels between mailboxes. A message is frozen; a driver puts it into an envelope
that says who sent it, which message caused it and on whose behalf. Names and order of delivery are
in [the delivery contract](delivery-contract.md).
"""
ABOUT_POLICIES = """\
The protocols of [policies of your own](../how-to/write-a-policy.md): a policy is a class that has
one or several of the methods of `ApplicationOrder`, `AsksOrder`, `QueueOrder`, `NodeScore`,
`DeviceChoice`, `Gate`, `VictimOrder` and `Fold`, and derives from none of them. The other classes
are what it is given. A `Resource` is a mapping of types to whole numbers in base units; a time is
in nanoseconds, since 1970 where it is a moment. `yunikorn_actors.policies` has all of them for type
checkers: the protocols in `places`, the values in `inputs`.
"""
ABOUT_ROUTES = """\
What the service answers over HTTP, on 127.0.0.1:9080 unless it is told otherwise. YuniKorn's routes
have its names, types and units; what differs is in
[the differences](../explanation/upstream-differences.md). [openapi.json](openapi.json) has the same
for programs. A partition is named as its resource manager names it, or in full as `[rm-1]default`;
where several have the name, that of the one who came first is meant.

An error is a JSON object `{status_code, message, description}`. Amounts are whole numbers in base
units (bytes, thousandths of a vcore), times are nanoseconds since 1970, percentages are rounded
down.
"""
ABOUT_GUARDS = """\
## Who may ask

- The Host header has to be an address, `localhost`, or a name that was given to the service. A page
  of another origin can be made to reach this port by a name of its own, and that name is refused.
- Any page may read YuniKorn's routes (`Access-Control-Allow-Origin: *`), which can be switched off;
  none of another origin may read ours.
- A POST with a foreign Origin is refused, and so is every request for our routes, for metrics and
  below `/debug`. Programs send none, and are served.
- With a token each request needs `Authorization: Bearer TOKEN`, except for the live page, liveness
  and readiness: 401 without one that is in force. The token for reading is enough for all routes
  but those that change something, which answer 403 to it. A browser logs in once and gets a cookie
  that no script can read and no other site can use (`HttpOnly`, `SameSite=Strict`); it may do what
  its token may, and ends with it, or after 12 hours. A host that shows ten wrong tokens within a
  minute has to wait.

## Who changed what

Our POST routes change the core, for an administrator. A change is done when it is answered; 409
says why it was refused. An event and a line in the log name who asked: by the header `From` (at
most 100 letters, digits and `. + @ - _`), which is the word of the caller, and by the address that
the service saw. The token says that somebody may, not who it is: all have the same.

## Bounds

A path or header has at most 8,190 bytes, a request 64 headers, a body 4 MiB, unpacked and sent
within 10 s. A connection on which nothing is asked for 10 s, or nothing of an answer is read, is
closed. Of more than 1,000 connections those go that have waited longest. There are at most 100
streams of events, 15 for each host. A reader who is 1,000 batches behind, or takes nothing for 5 s,
is cut off. There are at most 20 live pages; one that takes nothing for 30 s is cut off, and it asks
again when it can.

What slow readers have asked for and not read takes at most 256 MiB; then nothing larger than 64 KiB
is answered (503).

An answer that takes longer than 2 ms is made in slices of 2 ms, and sent while it is made; others
are answered in between. It is as of one revision: facts wait until it is made. Four are made at a
time, and 16 wait for at most a minute. Dumps are made one at a time, configurations are judged and
shown one at a time, and at most 8 wait for that. Whoever would wait behind them is refused with
503, and `Retry-After` says in how many seconds to ask again. An answer that ends early, because its
reader took nothing for 30 s or because it could not be made to its end, has no last chunk.
"""
ABOUT_FACTS = """\
A list to look things up in, made from the code: nobody has to read it through.

What is true from now on, in one partition. Context records facts and numbers them without a gap;
its own state and every replica change by applying them, and by nothing else. `FactsAppended`
carries them, each with its name under the key `fact`.
"""
ABOUT_MUTANTS = f"""\
{len(CORPUS)} mistakes that the core can be made to make, one at a time, to see whether the race
laboratory finds them: `yunikorn-actors lab mutants` plays small cases with each in force,
undisturbed at first, then with messages held back and with faults. With `--swarm N` it plays the
first N drawn worlds of `lab swarm` instead. It looks with the oracles alone: no test has a say.
[What swarms find](../explanation/strategies.md#what-swarms-find) has the figures.

- M01 to M86 are about the order of messages for the most part. M01 to M24 are widely known bugs of
  schedulers; ids like R-041 and H-01 are those of [races](races.md).
- M100 to M199 are slips of the kind that reviews miss; they were planted because others like them
  had not been found.
- M200 to M299 are such slips as well. They were planted when each notice was recorded and judged,
  worlds were drawn and what is reached was counted; so they say more about the laboratory as it is.
- M300 to M399 stand for classes of defects that the laboratory had passed by: for an oracle that
  was missing, or a world that was never drawn.
- M400 to M499 are about devices: which ones work has, and whose they are by now.
- M500 to M599 are about what protects work from going: budgets, cooldowns, and what belongs
  together.
- M600 to M699 are about what operators do, and about records of it.

Not every number has a mutant.

The runs are the same for all mutants. Each is first played on the core as it is, which shows where
a mutant would decide or compute something else. Elsewhere it gives the same run with the mutant as
without, so only the runs that touch a mutant are played with it.

A mutant is an edit of one function, in force inside a `with` block of the process that looks for
it. Nothing in the core knows of mutants, and no setting or call of the core switches one on.
"""
ABOUT_THE_HELD = """\
With its default options and some seeds the search passes these by, or no run of the laboratory has
the part. A test of the suite fails with each of them.
"""
ABOUT_THE_REST = """\
No order of messages can bring these about here: there are no locks to take in the wrong order.
Instead of each the corpus has a mutant about the same two parts, where what one sends crosses what
the other does.
"""
ABOUT_TIMERS = """\
Completing and Starting have a timer ([settings](settings.md)). An application without work is
Completing, unless its tag `application.completing.disable` keeps it. One that has ended takes no
more asks, and is shown until its history expires.
"""
ABOUT_THE_LOG = f"""\
The state dump lists for each application, as `state_log`, when it entered which state. Of one that
idles between its tasks, and so goes to and fro for as long as it lives, the newest
{a.STATE_LOG_MAX} entries are kept; `state_log_dropped` counts those that have gone.
"""
ABOUT_QUEUES = """\
A queue that the configuration no longer describes is `Draining`: what is in it goes on, nothing new
comes in, and it goes some seconds after it became empty ([settings](settings.md)). One that is
described again is `Active` again.
"""

INBOXES: dict[str, Iterable[type]] = {
    "RmProxy": rm_proxy.HANDLERS,
    "Context": context.HANDLERS,
    "Scheduler": {**scheduler.HANDLERS, **planning_loop.HANDLERS},
    "EventPublisher": events.HANDLERS,
}
CONTEXT = "machines/context"
MAKERS = (
    ("core/", "the gateway"),
    ("messages/callbacks.py", "the callback"),
    (f"{CONTEXT}/", "Context"),
    ("machines/scheduler.py", "Scheduler"),
    ("machines/events/publisher.py", "EventPublisher"),
    ("machines/rm_proxy/", "RmProxy"),
    ("machines/machine.py", "the driver"),
    ("machines/predicate_gate.py", "the planning loop"),
    ("machines/planning_loop.py", "the planning loop"),
)
MESSAGE_MODULES = (
    ("rm_events.py", "Between the gateway, RmProxy and Context"),
    ("scheduling.py", "Between Context and its schedulers, and its timers"),
    ("restart.py", "After a restart of the core"),
    ("rm_calls.py", "To the callback of a resource manager"),
    ("predicates.py", "Questions to a resource manager"),
    ("queries.py", "Questions from outside"),
    ("followers.py", "For followers and EventPublisher"),
)
FACT_MODULES = (
    ("queues", "a partition and its queues"),
    ("nodes", "nodes"),
    ("applications", "applications"),
    ("asks", "asks and the nodes that are kept for them"),
    ("allocated", "allocations"),
    ("gangs", "gangs"),
    ("preemption", "preemption"),
)


class Field(NamedTuple):
    name: str
    type: str
    default: str
    about: str


class Described(NamedTuple):
    """A class as it is written."""

    name: str
    bases: tuple[str, ...]
    about: str
    fields: tuple[Field, ...]


# -- reading the source


def classes_of(path: Path) -> Iterator[Described]:
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef):
            bases = tuple(ast.unparse(base) for base in node.bases)
            yield Described(node.name, bases, _words(ast.get_docstring(node)), _fields(node))


def _fields(node: ast.ClassDef) -> tuple[Field, ...]:
    fields: list[Field] = []
    for item, following in pairwise([*node.body, None]):
        if isinstance(item, ast.AnnAssign) and "ClassVar" not in ast.unparse(item.annotation):
            default = "" if item.value is None else ast.unparse(item.value)
            name, type_ = ast.unparse(item.target), ast.unparse(item.annotation)
            fields.append(Field(name, type_, default, _about(following)))
    return tuple(fields)


def _about(node: ast.stmt | None) -> str:
    """A text that follows a field is about it."""
    match node:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return _words(text)
        case _:
            return ""


def _words(text: str | None) -> str:
    return " ".join(cleandoc(text or "").split())


def makers() -> dict[str, tuple[str, ...]]:
    """Who calls which class: by its name, the roles in which it is made."""
    found: dict[str, dict[str, None]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).as_posix()
        role = next((role for start, role in MAKERS if place.startswith(start)), None)
        if role is None:
            continue
        for name in _called(path):
            found.setdefault(name, {})[role] = None
    return {name: tuple(roles) for name, roles in found.items()}


def _called(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                yield name
            case _:
                pass


def takers() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for machine, table in INBOXES.items():
        for kind in table:
            found[kind.__name__] = (*found.get(kind.__name__, ()), machine)
    return found


# -- writing Markdown


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = tuple(head)
    lines = [head, tuple("---" for _ in head), *(tuple(map(_cell, row)) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _fields_table(fields: tuple[Field, ...]) -> str:
    if not fields:
        return "No fields.\n"
    rows = [(f"`{f.name}`", f"`{f.type}`", f.default and f"`{f.default}`", f.about) for f in fields]
    titles = ("field", "type", "default", "about")
    said = [at for at in range(len(titles)) if any(row[at] for row in rows)]
    return table((titles[at] for at in said), ([row[at] for at in said] for row in rows))


def _section(described: Described, extra: str) -> str:
    parts = (f"### {described.name}\n", extra, described.about, _fields_table(described.fields))
    return "\n".join(part if part.endswith("\n") else part + "\n" for part in parts if part)


# -- the pages


def messages() -> str:
    made, taken = makers(), takers()
    parts = [
        "# Messages\n",
        NOTE,
        ABOUT_MESSAGES,
    ]
    for file, title in MESSAGE_MODULES:
        parts.append(f"## {title}\n")
        for described in classes_of(PACKAGE / "messages" / file):
            is_message = "Message" in described.bases
            route = _route(described.name, made, taken) if is_message else "A part of a message."
            parts.append(_section(described, route))
    return "\n".join(parts)


_IN, _OUT = "From the gateway by RmProxy to Context.", "From Context by RmProxy to the gateway."
_HEARD = "From Context to the followers."
HANDED_ON = {
    "RMLost": _IN,
    "RMUnregistered": _IN,
    "RequestsMarked": _IN,
    "RequestsHandled": _OUT,
    "CatchUpRequested": "From the gateway by Context to a follower.",
    "ManagerDescribed": _HEARD,
    "ManagerLeft": _HEARD,
}
"""Of these the source does not tell the way: what hands a message on does not make it, and a
follower is no machine."""


def _route(name: str, made: dict[str, tuple[str, ...]], taken: dict[str, tuple[str, ...]]) -> str:
    if name in HANDED_ON:
        return HANDED_ON[name]
    to = "the callback" if name.startswith("Call") else ", ".join(taken.get(name, ("the asker",)))
    if name not in made:
        return f"Taken by {to}; nothing sends it yet."
    return f"From {', '.join(made[name])} to {to}."


def facts() -> str:
    made = {path.stem: set(_called(path)) for path in sorted((PACKAGE / CONTEXT).glob("*.py"))}
    parts = [
        "# Facts\n",
        NOTE,
        ABOUT_FACTS,
    ]
    for kind, title in FACT_MODULES:
        parts.append(f"## About {title}\n")
        for described in classes_of(PACKAGE / "state" / "facts" / f"{kind}.py"):
            if "Base" in described.bases:
                where = [f"`{module}`" for module, names in made.items() if described.name in names]
                assert where, f"{described.name} is recorded nowhere"
                parts.append(_section(described, f"Recorded by Context in {', '.join(where)}."))
    parts.append("## Refusals\n")
    reasons = "".join(f"- `{reason}`\n" for reason in Refusal)
    parts.append(
        "A proposal is resolved by a fact that carries its `proposal_id`, or by\n"
        "`ProposalRejected` with one of these reasons:\n\n" + reasons
    )
    return "\n".join(parts)


def policies() -> str:
    """List where a policy decides and what it is given, from the protocols themselves."""
    files = [PACKAGE / "policies" / name for name in ("places.py", "inputs.py", "profile.py")]
    found = [node for file in files for node in ast.parse(file.read_text("utf-8")).body]
    shown = [_protocol(node) for node in found if isinstance(node, ast.ClassDef)]
    return "\n".join((NOTE, "# Policies", "", ABOUT_POLICIES, *shown)).rstrip() + "\n"


def _protocol(node: ast.ClassDef) -> str:
    rows = []
    for place, part in enumerate(node.body):
        match part:
            case ast.FunctionDef(name=name, returns=returns) if not name.startswith("_"):
                is_value = any(ast.unparse(it) == "property" for it in part.decorator_list)
                # Without `self`.
                taken = ast.unparse(ast.arguments([], part.args.args[1:], None, [], [], None, []))
                kind = "" if returns is None else ast.unparse(returns)
                shown = name if is_value else f"{name}({taken})"
                rows.append((f"`{shown}`", f"`{kind}`", _words(ast.get_docstring(part))))
            case ast.AnnAssign(target=target, annotation=kind):
                words = _about(node.body[place + 1] if place + 1 < len(node.body) else None)
                shown = ast.unparse(target)
                rows.append((f"`{shown}`", f"`{ast.unparse(kind)}`", words))
    words = _words(ast.get_docstring(node))
    head = f"## {node.name}\n\n" + (f"{words}\n\n" if words else "")
    return head + (table(("member", "type", "meaning"), rows) if rows else "")


def _transitions(table_: Transitions) -> str:
    return table(
        ("state", "event", "next state"),
        (
            (f"`{state.value}`", f"`{event.value}`", f"`{after.value}`")
            for (state, event), after in table_.items()
        ),
    )


def states() -> str:
    arrows = "".join(
        f"    {state.value} --> {after.value}: {event.value.removesuffix('Application')}\n"
        for (state, event), after in a.TRANSITIONS.items()
    )
    sets = {
        "counts as running": a.COUNTS_AS_RUNNING,
        "may be given something": a.SCHEDULABLE,
        "has ended": a.FINISHED,
        "takes no asks": a.TAKES_NO_ASKS,
        "does not count for its user": a.LEAVES_USER_COUNT,
    }
    return "\n".join(
        (
            "# States\n",
            NOTE,
            "## Applications\n",
            "An event without a row is no transition: nothing happens and nothing is announced.\n",
            _transitions(a.TRANSITIONS),
            "In a leaf whose sort policy is `stateaware` this row replaces the one above:\n",
            _transitions(a.STATEAWARE_TRANSITIONS),
            "```mermaid\nstateDiagram-v2\n    [*] --> New\n" + arrows + "```\n",
            table(
                ("an application that", "is in one of"),
                (
                    (what, ", ".join(f"`{s.value}`" for s in a.ApplicationState if s in states))
                    for what, states in sets.items()
                ),
            ),
            ABOUT_TIMERS,
            ABOUT_THE_LOG,
            "## Queues\n",
            f"A queue is one of {', '.join(f'`{state.value}`' for state in QueueState)}.",
            ABOUT_QUEUES,
        )
    )


# -- drawings in pages

_LINES = r"(?:(?!```).*\n)*"
_DRAWING = re.compile(
    rf"^```yaml\n(?P<scenario>{_LINES})```\n{_LINES}```text drawn (?P<options>.*)\n"
    rf"(?P<drawing>{_LINES})```$",
    re.MULTILINE,
)


def redrawn(text: str) -> str:
    """Draw anew every block that is marked `drawn`, with the options that stand there."""
    for found in reversed(list(_DRAWING.finditer(text))):
        start, end = found.span("drawing")
        text = text[:start] + _drawing(found["scenario"], found["options"].split()) + text[end:]
    return text


def _drawing(scenario: str, options: list[str]) -> str:
    """Return what the commands print that a reader would use."""
    with TemporaryDirectory() as folder:
        file, trace = Path(folder, "run.yaml"), Path(folder, "run.trace")
        file.write_text(scenario, "utf-8")
        _printed("scenario", "run", str(file), "--trace", str(trace))
        return _printed("trace", "draw", str(trace), *options)


# -- what commands print

_STORY = re.compile(rf"^```yaml\n({_LINES})```$", re.MULTILINE)
_CONSOLE = re.compile(rf"^```console\n({_LINES})```$", re.MULTILINE)
_TIME = re.compile(r"\d+\.\d ms\)")
RACE_SEED = "4"
"""In this run of the story a proposal comes too late."""


def transcripts(page: str) -> str:
    """Run the commands of a page again, on the first scenario of the page about scenarios."""
    story = _STORY.search((HOME / "how-to/write-a-scenario.md").read_text("utf-8"))
    assert story is not None
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("cancel.yaml").write_text(story[1], "utf-8")
        _printed("scenario", "run", "cancel.yaml", "--seed", RACE_SEED, "--trace", "cancel.trace")
        return _CONSOLE.sub(_transcript, (HOME / page).read_text("utf-8"))


def _transcript(found: re.Match[str]) -> str:
    lines = ["```console\n"]
    for command in re.findall(r"^\$ yunikorn-actors (.*)$", found[1], re.MULTILINE):
        printed = _TIME.sub("7.2 ms)", _printed(*shlex.split(command)))
        lines.append(f"$ yunikorn-actors {command}\n{printed}")
    return "".join([*lines, "```"])


def _printed(*command: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        status = main(list(command))
    assert status == 0, out.getvalue()
    return out.getvalue()


def gangs() -> str:
    return redrawn((HOME / GANGS).read_text("utf-8"))


def race() -> str:
    return transcripts("how-to/reproduce-a-race.md")


def trace() -> str:
    return transcripts("how-to/read-a-trace.md")


def exports() -> str:
    return transcripts("how-to/export-a-trace.md")


# -- what explain says

_SITUATIONS = re.compile(r"^\| situation \| what is said \|\n(?:\|.*\n)*", re.MULTILINE)


def mutants() -> str:
    by_kind: dict[Kind, list[tuple[str, ...]]] = {kind: [] for kind in Kind}
    for mutant in CORPUS:
        function = function_of(mutant.where)
        module = function.__module__.removeprefix("yunikorn_actors.")
        where = f"`{module}.{function.__name__}`"
        by_kind[mutant.kind].append((mutant.id, mutant.source, mutant.wrong, where))
    rest = [(id_, it.why, it.instead) for id_, it in INEXPRESSIBLE.items()]
    held = [(it.id, it.unseen, f"`{it.held_by}`") for it in CORPUS if it.held_by]
    return "\n".join(
        (
            f"# Mutants\n\n{NOTE}",
            ABOUT_MUTANTS,
            *(_mutants_of(kind, rows) for kind, rows in by_kind.items()),
            f"\n## Not found by the search\n\n{ABOUT_THE_HELD}",
            table(("id", "why", "the test that fails with it"), held),
            f"\n## Not to be expressed\n\n{ABOUT_THE_REST}",
            table(("id", "why", "instead"), rest),
        )
    )


def _mutants_of(kind: Kind, rows: list[tuple[str, ...]]) -> str:
    heads = ("id", "comes from", "what is wrong", "where")
    unplayed = "No case has this part; drawn worlds do.\n\n" if kind in UNPLAYED else ""
    return f"\n## {kind.capitalize()}\n\n{unplayed}{table(heads, rows)}"


ABOUT_GRPC = """\
What `yunikorn-actors serve` speaks: [write a client](../how-to/write-a-client.md) has the order of
a conversation, [protect a service](../how-to/protect-a-service.md) the token.

## Services

| service | what for |
| --- | --- |
| `si.v1.Scheduler` | the scheduler interface, both generations |
| `yunikorn_actors.v1.Extension` | what the interface has only within one process |
| `grpc.health.v1.Health` | of the service (an empty name), and of its `configuration` file |
| `grpc.reflection.v1alpha.ServerReflection` | the messages, for tools |

## Status codes

| code | when |
| --- | --- |
| `INVALID_ARGUMENT` | no message, a wrong form, a faulty configuration: the text has the place |
| `FAILED_PRECONDITION` | not registered, or a registration that contradicts the present state |
| `NOT_FOUND` | nobody knows the ask |
| `ABORTED` | the stream was opened again, or its resource manager has registered again |
| `DEADLINE_EXCEEDED` | the core did not answer in time |
| `UNAVAILABLE` | the service is being stopped, or its core is over: connect again later |
| `UNAUTHENTICATED` | the token is missing or wrong |
| `RESOURCE_EXHAUSTED` | a message of more than 16 MB, or many at a time that come in |

The trailing metadata `yunikorn-error` names the [error](errors.md) that a call within one process
raises.

## Fields

No field is lost in silence. One that is not known here (a later generation, another program) is
ignored, and the log names it once. A number that an enumeration does not have is
`INVALID_ARGUMENT`. A response of more than 2 MB comes as several, which say the same in the same
order.
"""


def protocols() -> str:
    """Show the two files as they are."""
    folder = PACKAGE / "service/rpc"
    files = [
        f"\n## {name}\n\n```protobuf\n{(folder / name).read_text('utf-8')}```\n"
        for name in ("si.proto", "extension.proto")
    ]
    return "\n".join((f"# gRPC\n\n{NOTE}", ABOUT_GRPC)) + "".join(files)


def situations() -> str:
    """Set up every situation anew, and write what is said of it."""
    script = runpy.run_path(str(HOME / "situations.py"))
    rows: list[tuple[str, str]] = []
    dumps: list[dict[str, Any]] = []
    for what, arrange in script["SITUATIONS"]:
        simulator = Simulator(Topology("fused", settings=Settings(), instance="docs"))
        whom = arrange(script["Cluster"](simulator, simulator.settle, _passing(simulator)))
        rows.append((what, f"`{simulator.explain(*whom)}`"))
        dumps.append(simulator.state_dump())
    text = _SITUATIONS.sub(
        lambda _: table(("situation", "what is said"), rows), (HOME / WHY).read_text("utf-8")
    )
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("core.json").write_text(json.dumps(dumps[0]), "utf-8")
        return _CONSOLE.sub(_transcript, text)


def fits() -> str:
    """Find the least changes of every situation anew."""
    script = runpy.run_path(str(HOME / "fits.py"))
    parts = []
    for what, arrange in script["MISFITS"]:
        simulator = Simulator(Topology("fused", settings=Settings(), instance="docs"))
        wanted = arrange(script["Cluster"](simulator, simulator.settle, _passing(simulator)))
        found = least_changes(state_of(simulator), wanted)
        parts.append(f"### {what[0].upper()}{what[1:]}\n\n```text\n")
        parts.append("".join(f"{line}\n" for line in way_lines(found)) + "```\n\n")
    text = (HOME / FITS).read_text("utf-8")
    head, tail = text.split("## Ten situations\n")[0], text.split("## What is exact\n")[1]
    between = f"## Ten situations\n\n{ABOUT_FITS}\n{''.join(parts)}## What is exact\n"
    return f"{head}{between}{tail}"


ABOUT_FITS = """\
Each was set up in a small cluster (`docs/fits.py`), and each change that was found was then made
in a core, which placed what was wanted, in both topologies.
"""


def _passing(simulator: Simulator) -> Callable[[int], None]:
    return lambda seconds: simulator.advance(seconds * SECOND)


WHY = "how-to/ask-why-it-waits.md"
FITS = "how-to/would-it-fit.md"
GANGS = "explanation/gang-scheduling.md"


def routes() -> str:
    """Return the page of all routes."""
    of_yunikorn = [route for route in all_routes() if route.is_yunikorns]
    own = [route for route in all_routes() if not route.is_yunikorns]
    return "\n".join(
        (
            "# Routes\n",
            NOTE,
            ABOUT_ROUTES,
            "## Of YuniKorn\n",
            _route_table(of_yunikorn),
            "## Ours\n",
            _route_table(own),
            ABOUT_GUARDS,
        )
    )


def _route_table(listed: list[Route]) -> str:
    rows = [
        f"| `{route.method} {route.path}` | {', '.join(f'`{it}`' for it in route.queries)} "
        f"| {route.summary} |"
        for route in listed
    ]
    return "\n".join(("| route | query | answers |", "| --- | --- | --- |", *rows, ""))


def openapi() -> str:
    """Return the description of all routes for programs."""
    kinds = [*ANSWERS.values(), Refused]
    shapes, named = msgspec.json.schema_components(kinds, ref_template=REF)
    *answers, error = shapes
    of_path = dict(zip(ANSWERS, answers, strict=True))
    described = {
        "openapi": "3.1.0",
        "info": {
            "title": "yunikorn-actors",
            "version": "1",
            "description": "The routes of Apache YuniKorn, and our own under /ws/v1/x.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": {
            route.path: {route.method.lower(): _operation(route, of_path.get(route.path), error)}
            for route in all_routes()
        },
        "components": {"schemas": named},
    }
    return json.dumps(described, indent=1) + "\n"


REF = "#/components/schemas/{name}"
_TEXT = {"type": "string"}
_NAMED = {"type": "string", "minLength": 1}
_COUNT = {"type": "integer", "minimum": 1, "maximum": 2**64 - 1}
_QUEUE = f"({names._QUEUE.pattern})"
PARAMETERS: dict[str, dict[str, Any]] = {
    "queue": {"type": "string", "pattern": rf"^{_QUEUE}(\.{_QUEUE})*$"},
    "user": {"type": "string", "pattern": f"^{names._USER.pattern}$"},
    "group": {"type": "string", "pattern": f"^{names._GROUP.pattern}$"},
    "status": {"type": "string", "enum": ["", *STATUSES]},
    "count": _COUNT,
    "start": _COUNT | {"minimum": 0},
    "application": _NAMED,
    "key": _NAMED,
}
"""What is more than a text, by the name that it has wherever it stands."""
STATES = {
    "/ws/v1/partition/{partition}/applications/{state}": ["active", "rejected", "completed"],
    "/ws/v1/partition/{partition}/queue/{queue}/applications/{state}": ["active"],
}
NEEDED = {"/ws/v1/x/why": ("application", "key")}
MEDIA = {
    "/": "text/html",
    "/ws/v1/metrics": "text/plain",
    "/ws/v1/config": "application/x-yaml",
    "/debug/stack": "text/plain",
    "/ws/v1/x/trace": "application/octet-stream",
    "/ws/v1/stack": "text/plain",
    "/ws/v1/x/overview": "text/event-stream",
    "/ws/v1/x/live": "text/plain",
    "/ws/v1/x/ready": "text/plain",
}
"""Of answers that are no JSON; the stream of events is lines of it."""


WITHOUT_CONTENT = ("/ws/v1/x/login", "/ws/v1/x/logout")


def _operation(route: Route, answer: Any, error: Any) -> dict[str, Any]:  # noqa: ANN401
    media = MEDIA.get(route.path, "application/json")
    refused = {"description": "a refusal", "content": {"application/json": {"schema": error}}}
    answered = {"200": {"description": "the answer", "content": {media: {"schema": answer or {}}}}}
    if route.path in WITHOUT_CONTENT:
        answered = {"204": {"description": "done"}}
    operation: dict[str, Any] = {
        "summary": route.summary,
        "parameters": [*_parameters(route)],
        "responses": {**answered, "default": refused},
    }
    if route.method == "POST":
        operation["requestBody"] = {"content": {route.takes.partition(";")[0]: {"schema": {}}}}
    return operation


def _parameters(route: Route) -> Iterator[dict[str, Any]]:
    for name in re.findall(r"{(\w+)}", route.path):
        schema = PARAMETERS.get(name, _TEXT)
        if name == "state":
            schema = {"type": "string", "enum": STATES[route.path]}
        yield {"name": name, "in": "path", "required": True, "schema": schema}
    for name in route.queries:
        needed = name in NEEDED.get(route.path, ())
        schema = PARAMETERS.get(name, _TEXT)
        yield {"name": name, "in": "query", "required": needed, "schema": schema}


HELPERS = HOME.parent / "tests" / "helpers" / "README.md"
_MODULES = re.compile(r"^\| (module|command) \| what it is \|\n(?:\|.*\n)*", re.MULTILINE)


def helpers() -> str:
    """Write a row for each helper of the tests, and for each command that stands beside them."""
    folder = HELPERS.parent
    commands = (it for it in folder.parent.glob("*.py") if not it.match("*test*"))
    modules = {"module": folder.glob("*.py"), "command": commands}
    return _MODULES.sub(
        lambda found: _module_table(found[1], modules[found[1]]), HELPERS.read_text("utf-8")
    )


def _module_table(kind: str, paths: Iterable[Path]) -> str:
    rows = ((f"`{path.stem}`", _first_line(path).removesuffix(".")) for path in sorted(paths))
    return table((kind, "what it is"), rows)


def _first_line(path: Path) -> str:
    return (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").partition("\n")[0]


PAGES = {
    "reference/routes.md": routes,
    "reference/openapi.json": openapi,
    "reference/grpc.md": protocols,
    "reference/mutants.md": mutants,
    "reference/messages.md": messages,
    "reference/facts.md": facts,
    "reference/policies.md": policies,
    "reference/state-machine.md": states,
    "how-to/reproduce-a-race.md": race,
    "how-to/read-a-trace.md": trace,
    "how-to/export-a-trace.md": exports,
    WHY: situations,
    FITS: fits,
    GANGS: gangs,
}


def rendered() -> dict[Path, str]:
    return {HELPERS: helpers(), **{HOME / name: page() for name, page in PAGES.items()}}


if __name__ == "__main__":
    for path, text in rendered().items():
        path.write_text(text, "utf-8")
