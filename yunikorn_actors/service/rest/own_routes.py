"""Our own routes, beside YuniKorn's: why an ask waits, how the actors fare, whether all is well.

The live page is one of them, and what it asks for when a person opens a part of it.
"""

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any, Final

import msgspec

from yunikorn_actors.core.questions import EVERY_NS
from yunikorn_actors.pages.html_page import Document
from yunikorn_actors.planning.reasons import WaitingAnswer
from yunikorn_actors.service.read import overview
from yunikorn_actors.service.read.incremental_answers import Steps
from yunikorn_actors.service.read.load_history import HOURS_MAX
from yunikorn_actors.service.read.read_model import ReadSide
from yunikorn_actors.service.rest.exchange import (
    HTML,
    OWN,
    PAGE,
    TEXT,
    Answer,
    Asked,
    Refusal,
    Route,
)
from yunikorn_actors.service.rest.yunikorn_routes import book_of, number_of
from yunikorn_actors.values.close_names import there_is

ASSETS: Final = files("yunikorn_actors.service.rest") / "assets"
SCRIPTS: Final = (
    "words.js", "panels.js", "sorting.js", "course.js", "grid.js", "details.js", "address.js",
    "page.js",
)  # fmt: skip
POLICY: Final = ("connect-src 'self'", "img-src data:", "frame-ancestors 'none'")
"""The live page asks the service that it came from, and shows its sign in the tab."""
_BAD_REQUEST: Final = 400
_NOT_FOUND: Final = 404
_UNAVAILABLE: Final = 503


def _full_name(side: ReadSide, name: str) -> str:
    book = side.partition(name)
    if book is None:
        raise Refusal(_NOT_FOUND, "Partition not found")
    return book.name


def _why_question(side: ReadSide, asked: Asked) -> tuple[str, ...]:
    missing = [name for name in ("application", "key") if not asked.query.get(name)]
    if missing:
        raise Refusal(
            _BAD_REQUEST, f"Missing parameters: {', '.join(missing)}", "name the ask that is meant"
        )
    query = asked.query
    partition = _full_name(side, query["partition"]) if query.get("partition") else ""
    return "why", query["application"], query["key"], partition


def _why(side: ReadSide, asked: Asked) -> Any:  # noqa: ANN401 - a value
    if "unknown" in asked.answer:
        raise Refusal(_NOT_FOUND, asked.answer["unknown"])
    why = asked.answer["why"]
    partition, name = asked.query.get("partition"), (why["application_id"], why["key"])
    books = [side.partition(partition)] if partition else side.books.values()
    found = (it.expectations.of_ask(*name, side.now_ns) for it in books if it is not None)
    return why | {"expected": next(filter(None, found), None)}


def _waiting_question(side: ReadSide, asked: Asked) -> tuple[str, ...]:
    return "waiting", _full_name(side, asked.path["partition"])


def _waiting(_: ReadSide, asked: Asked) -> Any:  # noqa: ANN401 - a value
    return asked.answer


def _course(side: ReadSide, asked: Asked) -> Any:  # noqa: ANN401 - a value
    hours = number_of(asked, "hours", 1, 1)
    return overview.course(side, book_of(side, asked), min(hours, HOURS_MAX))


def _asks_question(side: ReadSide, asked: Asked) -> tuple[str, ...]:
    reason, text = (asked.query.get(it, "") for it in ("reason", "text"))
    return "asks", book_of(side, asked).name, reason, text, str(overview.LISTED_MAX)


def _asks(side: ReadSide, asked: Asked) -> Any:  # noqa: ANN401 - a value
    return overview.asks(book_of(side, asked), msgspec.convert(asked.answer, WaitingAnswer))


def _expected(side: ReadSide, asked: Asked) -> Steps[Any]:
    book, application = book_of(side, asked), asked.query.get("application", "")
    state, expectations, now_ns = book.state, book.expectations, side.now_ns
    if application and application not in state.applications:
        ended = (it.spec.application_id for it in state.finished.values())
        if application not in ended:
            near = there_is(application, state.applications)
            raise Refusal(_NOT_FOUND, "Application not found", near)
    # Made anew here as well, for those who ask between two samples.
    if expectations.is_stale(book.state, application, now_ns, EVERY_NS):
        yield from expectations.refresh(book.state, now_ns)
    found = expectations.of(application, now_ns)
    return {"total": len(found), "asks": found[: overview.LISTED_MAX]}


def _mailboxes(side: ReadSide, asked: Asked) -> Any:  # noqa: ANN401 - a value
    found = asked.answer
    metered = found["metered"] or {}
    return {
        "mailboxes": found["lengths"],
        "unhandled": found["unhandled"],
        "callback_errors": found["callback_errors"],
        "actors": metered.get("actors", {}),
        "flows": [
            {"from": sender, "to": receiver, "message": message, "count": count}
            for sender, receiver, message, count in metered.get("flows", ())
        ],
        "dead_letters": metered.get("dead_letters", 0),
        "revisions": {name: book.state.revision for name, book in side.books.items()},
    }


def _trace(_: ReadSide, asked: Asked) -> Answer:
    if asked.answer is None:
        raise Refusal(
            _NOT_FOUND,
            "there is no flight recorder",
            "start the service with --flight-recorder FILE, which --cluster does not take",
        )
    named = {"Content-Disposition": 'attachment; filename="trace.msgpack"'}
    return Answer(asked.answer, "application/octet-stream", named)


@cache
def _document() -> Document:
    return Document(ASSETS, SCRIPTS)


def _page(_: ReadSide, __: Asked) -> Answer:
    document = _document()
    headers = {
        "Content-Security-Policy": "; ".join((*document.policy, *POLICY)),
        "Referrer-Policy": "no-referrer",
    }
    return Answer(document.text().encode(), HTML, headers)


def _listing(list_: Callable[..., Any], *names: str) -> Callable[[ReadSide, Asked], Any]:
    """Answer with a list of one partition, as far as these names of the query narrow it down."""

    def listed(side: ReadSide, asked: Asked) -> Any:  # noqa: ANN401 - a value
        book = book_of(side, asked)
        return list_(book, *(asked.query.get(name, "") for name in names))

    return listed


def _live(_: ReadSide, __: Asked) -> Answer:
    return Answer(b"ok\n", TEXT)


def _ready(_: ReadSide, asked: Asked) -> Answer:
    if asked.answer:
        raise Refusal(_UNAVAILABLE, asked.answer)
    return Answer(b"ok\n", TEXT)


ROUTES: Final = (
    Route(PAGE, "the live page", _page, is_yunikorns=False),
    Route(
        f"{OWN}/why",
        "why an ask waits, or what became of it",
        _why,
        _why_question,
        is_yunikorns=False,
        queries=("application", "key", "partition"),
    ),
    Route(
        f"{OWN}/partition/{{partition}}/waiting",
        "the asks that wait, with how many wait for what",
        _waiting,
        _waiting_question,
        is_yunikorns=False,
    ),
    Route(
        f"{OWN}/partition/{{partition}}/asks",
        "asks that wait, by what they wait for (a cause of `why`) or by a text",
        _asks,
        _asks_question,
        is_yunikorns=False,
        queries=("reason", "text"),
    ),
    Route(
        f"{OWN}/partition/{{partition}}/expected",
        "when asks that wait are expected to start, each with its place in its queue",
        _expected,
        is_yunikorns=False,
        queries=("application",),
    ),
    Route(
        f"{OWN}/partition/{{partition}}/applications",
        "applications in a few words, by a text, those that have ended last",
        _listing(overview.applications, "text"),
        is_yunikorns=False,
        queries=("text",),
    ),
    Route(
        f"{OWN}/partition/{{partition}}/history",
        "what waited, how long mailboxes were and what ran, over the last 1 to 24 hours",
        _course,
        is_yunikorns=False,
        queries=("hours",),
    ),
    Route(
        f"{OWN}/partition/{{partition}}/nodes",
        "the names of the nodes, in the order of the live page",
        _listing(overview.node_names),
        is_yunikorns=False,
    ),
    Route(
        f"{OWN}/mailboxes",
        "how long mailboxes are, and who says what to whom",
        _mailboxes,
        lambda _, __: ("mailboxes",),
        is_yunikorns=False,
    ),
    Route(
        f"{OWN}/trace",
        "what the flight recorder has kept",
        _trace,
        lambda _, __: ("trace",),
        is_yunikorns=False,
    ),
    Route(f"{OWN}/live", "whether the process answers", _live, is_yunikorns=False),
    Route(
        f"{OWN}/ready",
        "whether the core takes requests",
        _ready,
        lambda _, __: ("is_ready",),
        is_yunikorns=False,
    ),
)
