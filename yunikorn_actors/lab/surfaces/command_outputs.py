"""What the commands print: of a service that is asked, of its dump, and of the recording of a run.

A command is called as a shell calls it, by its words. A service that it asks is the read side of
this process: its routes answer without a network between.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPResponse
from io import BytesIO
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import parse_qsl, unquote

import msgspec

from yunikorn_actors.cli import apps, service_calls
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces.command_in_process import called
from yunikorn_actors.lab.surfaces.route_answers import NOTHING, answered, things_in
from yunikorn_actors.lab.surfaces.temporary_folder import temporary_folder
from yunikorn_actors.lab.surfaces.workload_logs import made_of
from yunikorn_actors.service.core_queries import CoreQuestions
from yunikorn_actors.service.node_acts import NODE_ACTS
from yunikorn_actors.service.read.read_model import ReadSide
from yunikorn_actors.service.rest import admin_routes, own_routes, yunikorn_routes
from yunikorn_actors.service.rest.client import Client
from yunikorn_actors.service.rest.exchange import Asked, Refusal, Route
from yunikorn_actors.service.rest.simulate_route import simulate_route

Said = tuple[str, Any]
_ROUTES: Final = (
    *yunikorn_routes.routes(), *own_routes.ROUTES, simulate_route(), *admin_routes.ROUTES,
)  # fmt: skip
_PARTS: Final = re.compile(r"\\{(\w+)\\}")
_PATHS: Final = tuple(
    (re.compile(_PARTS.sub(r"(?P<\1>[^/]+)", re.escape(it.path))), it) for it in _ROUTES
)
_TOOK: Final = re.compile(r'"wall_ms": [0-9.]+|, [0-9.]+ ms(?=\))')
"""What a busy computer prints otherwise."""
_LIVES: Final = ("active", "new", "accepted", "running", "completing", "completed", "rejected")
_FILES: Final = {
    "config.yaml": """
partitions:
- name: default
  placementrules: [{name: tag, value: namespace, create: true}, {name: provided}]
  limits: [{limit: all, users: ['*'], maxapplications: 3}]
  queues:
  - name: root
    submitacl: '*'
    queues:
    - {name: a, parent: true, resources: {guaranteed: {vcore: 1}, max: {vcore: 4, memory: 8G}}}
    - name: b
      maxapplications: 2
      properties: {application.sort.policy: stateaware, preemption.delay: 10s, odd: thing}
      limits: [{limit: some, users: [ann, '*'], groups: [dev], maxapplications: 1}]
""",
    "other.yaml": """
partitions:
- name: default
  preemption: {enabled: false}
  queues:
  - {name: root, submitacl: 'ann,bob dev', queues: [{name: a, maxapplications: 5}, {name: c}]}
- {name: gpu, nodesortpolicy: {type: fair}, queues: [{name: root}]}
""",
    "wrong.yaml": """
partitions:
- name: default
  queues:
  - name: root
    queues: [{name: a, resources: {max: {vcore: 1}, guaranteed: {vcore: 2}}}, {name: a}, {name: B}]
""",
    "small.yaml": """
name: small
steps:
- create_node: {ids: [n1, n2], capacity: {vcore: 4, memory: 8}}
- add_app: {id: app-1, queue: root.default, user: ann}
- ask: {app: app-1, key: a, resource: {vcore: 3}, count: 3}
- together:
  - drain_node: n2
  - release_ask: {app: app-1, key: a}
- advance: 5s
- expect:
    apps: {app-1: {state: Running, allocated: {vcore: 3}, allocations: "1..2"}}
    nodes: {n1: {allocated: {vcore: "<= 4"}}, n2: {schedulable: false}}
    rm: {accepted_apps: [app-1], new: [a-0], app_states: {app-1: [Accepted, Running]}}
- expect:
    any_of: [{queues: {root.default: {pending: {vcore: 1}}}}, {pending: {app-1: [a-1, a-2]}}]
    events: [{object: app-1, detail: APP_ALLOC}, {object: nothing}]
""",
    "steps.yaml": "- create_node: {id: more, capacity: {vcore: 4, memory: 8}}\n- advance: 5s\n",
}
_ASKED: Final = (
    "queues {queue}", "queues", "nodes", "nodes {node}", "apps", "apps {application}",
    "apps --state {state}", "apps --queue {queue}", "events --count 7", "events {application}",
    "events {node} --count 3", "why", "why {application}", "why {application} {key}",
    "nodes --partition {partition}", *(f"{verb} {{node}}" for verb in NODE_ACTS),
    "unregister {manager}",
    "validate {file}", "config show", "config load {file}", "simulate --ask queue={queue},cpu=1",
    "simulate steps.yaml --until 20", "simulate --gang queue={queue},cpu=1,count=2",
)  # fmt: skip
"""Of a service."""
_OF_FILES: Final = (
    "config check {file}", "config check {file} --strict", "config diff {file} {other}",
    "health dump.json", "health other.json", "why --dump dump.json",
    "why {application} --dump dump.json", "why {application} {key} --dump dump.json",
    "simulate --dump dump.json --ask queue={queue},cpu=1",
    "simulate steps.yaml --dump dump.json --config {file}",
    # In the form of YuniKorn's own dump.
    "why --dump other.json", "why {application} {key} --dump other.json",
    "simulate --dump other.json --ask queue={queue},cpu=1",
    "simulate steps.yaml --dump other.json --config {file} --until 20",
    "scenario run small.yaml --seed 3", "scenario run small.yaml --topology fused",
    "scenario run wrong.yaml small.yaml",
)  # fmt: skip
_OF_RECORDINGS: Final = (
    "show {file}", "show {file} --about {name}", "show {file} --full --limit 3",
    "show {file} --refused --times", "draw {file} --limit 9", "chain {file} {step}",
    "chain {file} {step} --down", "story {file} {name}", "path {file} {name}", "refusals {file}",
    "stats {file}", "stats {file} --about {name}", "export {file} --to markdown",
    "replay {file}", "replay {file} --to {step} --all", "diff {file} {file}", "at {file} {step}",
    "at {file} 0 --diff {step}", "why {file} {name}", "why {file} {name} --each --clock",
    "show {file} --type FactsAppended --from {step}", "export {file} --to jsonl --until {step}",
)  # fmt: skip
_SHARE: Final = 3
"""Of the commands one in so many is given."""


class _Clock:
    """What a command takes for the time of its computer."""

    def __init__(self, now_ns: int) -> None:
        self._now_ns = now_ns

    def time_ns(self) -> int:
        return self._now_ns


@contextmanager
def _set(thing: object, name: str, value: object) -> Iterator[None]:
    before = getattr(thing, name)
    setattr(thing, name, value)
    try:
        yield
    finally:
        setattr(thing, name, before)


class Commands:
    def __init__(self, side: ReadSide, questions: CoreQuestions, draw: Draw) -> None:
        self._side, self._questions, self._draw = side, questions, draw
        self._clock = _Clock(side.now_ns)

    def said(self, dump: Mapping[str, Any]) -> Iterator[Said]:
        """Give some commands; `dump` is that of the core."""
        with temporary_folder() as folder:
            self._folder = folder
            for name, text in _FILES.items():
                Path(folder, name).write_text(text, encoding="utf-8")
            Path(folder, "dump.json").write_bytes(msgspec.json.encode(dump))
            route = next(it for it in _ROUTES if it.path == "/debug/fullstatedump")
            shown = answered(self._side, route, Asked(), self._questions)
            Path(folder, "other.json").write_bytes(shown)
            route = next(it for it in _ROUTES if it.path == "/ws/v1/events/batch")
            records = answered(self._side, route, Asked(), self._questions)
            Path(folder, "events.json").write_bytes(records)
            if self._draw.once_in(_SHARE):
                answers = [str(Path(folder, it)) for it in ("other.json", "events.json")]
                yield from made_of(answers, "from-yunikorn", self._draw)
            for words in (*_ASKED, *_OF_FILES):
                if self._draw.once_in(_SHARE):
                    yield f"what is said to {words}", self._one(words)

    def _one(self, template: str) -> tuple[int, str, str]:
        draw = self._draw
        here = [*map(things_in, self._side.books.values())]
        things = draw.one_of(here) if here and not draw.once_in(6) else NOTHING
        files = {it: draw.one_of([*_FILES]) for it in ("file", "other")}
        own = {"state": draw.one_of(_LIVES), **files}
        words = [
            str(Path(self._folder, it)) if it in {*_FILES, "dump.json", "other.json"} else it
            for it in (word.format(**things, **own) for word in template.split())
        ]
        if draw.once_in(4):
            words.append("--json")
        making = _asked_here(self._side, self._questions)
        with _set(service_calls, "Client", making), _set(apps, "time", self._clock):
            status, *texts = called(words, draw)
        out, errors = (_TOOK.sub("", text.replace(self._folder, "")) for text in texts)
        return status, out, errors


def _asked_here(side: ReadSide, questions: CoreQuestions) -> Any:  # noqa: ANN401 - makes a client
    class Near(Client):
        """Asks the read side that is here."""

        @contextmanager
        def _asked(
            self, method: str, target: str, body: bytes, accept: str, *, endless: bool = False
        ) -> Iterator[HTTPResponse]:
            del endless
            response = _answer_to(side, questions, method, target, body, accept)
            if response.status != _OK:
                self._refuse(target, cast("HTTPResponse", response))
            yield cast("HTTPResponse", response)

    return Near


_OK: Final = 200
_NOT_FOUND: Final = 404


class _Response:
    """What `http.client` has of an answer, as far as a client looks at it."""

    length = 0

    def __init__(self, status: int, data: bytes) -> None:
        self.status, self.reason = status, ""
        self._data = BytesIO(data)
        self.read, self.readline = self._data.read, self._data.readline


def _answer_to(
    side: ReadSide, questions: CoreQuestions, method: str, target: str, body: bytes, accept: str
) -> _Response:
    path, _, query = target.partition("?")
    found = _route_of(method, path)
    if found is None:
        return _Response(_NOT_FOUND, b"")
    route, parts = found
    asked = Asked(parts, dict(parse_qsl(query)), accept, body, "somebody")
    try:
        return _Response(_OK, answered(side, route, asked, questions))
    except Refusal as refusal:
        return _Response(refusal.status, msgspec.json.encode(refusal.value))


def _route_of(method: str, path: str) -> tuple[Route, dict[str, str]] | None:
    for pattern, route in _PATHS:
        found = pattern.fullmatch(path) if route.method == method else None
        if found is not None:
            return route, {name: unquote(text) for name, text in found.groupdict().items()}
    return None


def said_of_recording(
    file: Path, names: list[str], step: str, draw: Draw
) -> Iterator[tuple[str, Any]]:
    """Ask a recording by commands; names and steps are some of those that are in it."""
    queues, page = file.with_name("queues.yaml"), file.with_name("page.html")
    queues.write_text(_FILES["config.yaml"], encoding="utf-8")
    for template in _OF_RECORDINGS:
        if not draw.once_in(2 * _SHARE):
            continue
        things = {"file": file, "name": draw.one_of(names), "queues": queues, "page": page}
        words = [it.format(**things, step=step) for it in shlex.split(template)]
        if draw.once_in(4):
            words.append("--json")
        yield f"what is said to trace {template}", called(["trace", *words], draw)
