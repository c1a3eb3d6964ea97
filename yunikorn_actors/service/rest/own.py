"""Our own routes, beside YuniKorn's: why an ask waits, how the actors fare, whether all is well."""

from typing import Any, Final

from yunikorn_actors.service.read.side import ReadSide
from yunikorn_actors.service.rest.asking import OWN, TEXT, Answer, Asked, Refusal, Route

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


def _why(_: ReadSide, asked: Asked) -> Any:  # noqa: ANN401 - a value
    if "unknown" in asked.answer:
        raise Refusal(_NOT_FOUND, asked.answer["unknown"])
    return asked.answer["why"]


def _waiting_question(side: ReadSide, asked: Asked) -> tuple[str, ...]:
    return "waiting", _full_name(side, asked.path["partition"])


def _waiting(_: ReadSide, asked: Asked) -> Any:  # noqa: ANN401 - a value
    return asked.answer


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
            _NOT_FOUND, "there is no flight recorder", "start the service with one to have it"
        )
    named = {"Content-Disposition": 'attachment; filename="trace.msgpack"'}
    return Answer(asked.answer, "application/octet-stream", named)


def _live(_: ReadSide, __: Asked) -> Answer:
    return Answer(b"ok\n", TEXT)


def _ready(_: ReadSide, asked: Asked) -> Answer:
    if asked.answer:
        raise Refusal(_UNAVAILABLE, asked.answer)
    return Answer(b"ok\n", TEXT)


ROUTES: Final = (
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
