"""What each route of a read side answers, without anything of HTTP."""

import re
from collections.abc import Iterator
from types import GeneratorType
from typing import Any, Final

from yunikorn_actors.lab.harness import LabSimulator
from yunikorn_actors.service.core_queries import CoreQuestions
from yunikorn_actors.service.listener import Standing
from yunikorn_actors.service.read.incremental_answers import at_once
from yunikorn_actors.service.read.read_model import ReadSide
from yunikorn_actors.service.read.replica import Book
from yunikorn_actors.service.rest import admin_routes, own_routes, yunikorn_routes
from yunikorn_actors.service.rest.exchange import OWN, PAGE, Answer, Asked, Refusal, Route, Texts
from yunikorn_actors.service.rest.json_stream import pieces
from yunikorn_actors.state.queues import ROOT

_UNSTEADY: Final = frozenset({PAGE, "/debug/stack", f"{OWN}/trace"})
"""Pages that are files, and those that no run determines."""
_PLACE: Final = re.compile(r"{(\w+)}")
_BODY: Final = b"partitions: [{name: default, queues: [{name: root, queues: [{name: a}]}]}]"
"""A configuration, for routes that take one."""
_NOBODY: Final = "nobody"


class _Questioned:
    """A simulated core, with what only a core in service has to say of itself."""

    def __init__(self, core: LabSimulator) -> None:
        self._core = core
        self.trace_failure = None
        self.failure = core.failure
        self.state = "running"

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a method of the core
        return getattr(self._core, name)

    def mailbox_lengths(self) -> dict[str, int]:
        return dict.fromkeys(self._core.machines, 0)

    def metered(self) -> None:
        return None


def questions_of(core: LabSimulator) -> CoreQuestions:
    """Answer as a core does; what was counted holds, however long a busy computer takes."""
    return CoreQuestions(_Questioned(core), Standing(), lambda: 0.0)  # type: ignore[arg-type]


def answers(side: ReadSide, core: LabSimulator) -> Iterator[tuple[str, str]]:
    """Ask each route for things that are there and for one that is not."""
    questions = questions_of(core)
    routes = (*yunikorn_routes.routes(), *own_routes.ROUTES, *admin_routes.ROUTES)
    things = [*map(things_in, side.books.values()), NOTHING]
    for route in routes:
        if route.path in _UNSTEADY:
            continue
        for asked in _asked(route, things):
            words = {**asked.path, **asked.query}
            yield f"{route.path} of {words}", _answer(side, route, asked, questions)


def things_in(book: Book) -> dict[str, str]:
    """Name what is in a partition: of each kind of thing the one that came last."""
    state = book.state
    app = next(reversed(state.applications.values()), None)
    return {
        "partition": book.short_name,
        "queue": app.queue.path if app is not None else next(reversed(state.queues), _NOBODY),
        "application": _NOBODY if app is None else app.id,
        "key": next(iter(app.asks), _NOBODY) if app is not None else _NOBODY,
        "node": next(reversed(state.nodes), _NOBODY),
        "user": next(reversed(state.users), _NOBODY),
        "group": next(reversed(state.groups), _NOBODY),
        "manager": next(iter(_managers(book)), _NOBODY),
    }


def _managers(book: Book) -> list[str]:
    return [book.name.partition("]")[0].removeprefix("[")]


NOTHING: Final = dict.fromkeys(
    ("partition", "queue", "application", "key", "node", "user", "group", "manager"), _NOBODY
)
_STATES: Final = ("active", "completed", "rejected", "other")
_QUERIES: Final[dict[str, tuple[str, ...]]] = {
    "subtree": ("",), "status": ("running", "new", "odd"), "count": ("3", "0", ""),
    "start": ("2", "99999", "", "x"),
    "reason": ("NO_NODE", "QUEUE_LIMIT"), "text": ("a",), "hours": ("2", "x"),
}  # fmt: skip
"""Words of queries that name no thing, with what they may be."""


def _asked(route: Route, things: list[dict[str, str]]) -> Iterator[Asked]:
    """Draw up the requests to a route: about each of these, and with each word of its query."""
    names = _PLACE.findall(route.path)
    if {"queue", "application"} <= {*names}:
        # What is there, and not below this one.
        things = [*things, {**things[0], "queue": ROOT}]
    for thing in things if names else things[:1]:
        for state in _STATES if "state" in names else ("",):
            path = {name: thing.get(name, state) for name in names}
            named = {it: thing[it] for it in route.queries if it in thing}
            asked = Asked(path, named, body=_BODY, by=_NOBODY)
            yield asked
            for name in route.queries:
                for value in _QUERIES.get(name, ()):
                    yield asked._replace(query={**named, name: value})


def _answer(side: ReadSide, route: Route, asked: Asked, questions: CoreQuestions) -> str:
    try:
        return answered(side, route, asked, questions).decode()
    except Refusal as refusal:
        return f"{refusal.status}: {refusal.text}"


def answered(side: ReadSide, route: Route, asked: Asked, questions: CoreQuestions) -> bytes:
    """Ask a route; raise Refusal where it refuses."""
    if route.question is not None:
        question = route.question(side, asked)
        asked = asked._replace(answer=questions.ask(*question))
    found = route.handler(side, asked)
    found = at_once(found) if isinstance(found, GeneratorType) else found
    answer = found if isinstance(found, Answer) else Answer(found)
    content = answer.content() if callable(answer.content) else answer.content
    if isinstance(content, bytes):
        return content
    parts = content if isinstance(content, Texts) else pieces(content, answer.style)
    return b"".join(parts)
