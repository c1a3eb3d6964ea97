"""Our routes that change something, for an administrator: each is a POST and names who asked.

Reading and changing have one address, one token and one guard; the core decides what is done, on
its truth. The replica here only says what is not there at all.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from yunikorn_actors.service.node_acts import NODE_ACTS
from yunikorn_actors.service.read.read_model import ReadSide
from yunikorn_actors.service.rest.exchange import OWN, Asked, Refusal, Route
from yunikorn_actors.service.rest.yunikorn_routes import book_of

WHO: Final = "From"
"""The header in which a caller says who it is."""
_NAME: Final = re.compile(r"[\w.+@-]{1,100}", re.ASCII)
_BAD_REQUEST: Final = 400
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409


def who(claimed: str, remote: str) -> str:
    """Name who asks: by the word of the caller, and by the address that was seen.

    The token says that a caller may; it belongs to no one person, so the name is a claim.
    """
    if claimed and not _NAME.fullmatch(claimed):
        raise Refusal(
            _BAD_REQUEST,
            f"the header {WHO} names nobody",
            "give letters, digits and . + @ - _ only, at most 100",
        )
    return f"{claimed or 'somebody'} at {remote}"


def _node_question(question: str, side: ReadSide, asked: Asked) -> tuple[str, ...]:
    book = book_of(side, asked)
    if asked.path["node"] not in book.state.nodes:
        raise Refusal(_NOT_FOUND, "Node not found")
    return question, book.name, asked.path["node"], asked.by


def _unregister_question(side: ReadSide, asked: Asked) -> tuple[str, ...]:
    if asked.path["manager"] not in side.managers:
        raise Refusal(_NOT_FOUND, "Resource manager not found")
    return "unregister", asked.path["manager"], asked.by


def _load_question(_: ReadSide, asked: Asked) -> tuple[str, ...]:
    try:
        text = asked.body.decode()
    except UnicodeDecodeError:
        raise Refusal(_BAD_REQUEST, "the configuration is not UTF-8") from None
    if not text.strip():
        raise Refusal(_BAD_REQUEST, "the configuration is empty", "send the text of queues.yaml")
    return "load", text, asked.by


def _done(_: ReadSide, asked: Asked) -> Any:  # noqa: ANN401 - a value
    if "refused" in asked.answer:
        raise Refusal(_CONFLICT, asked.answer["refused"])
    return asked.answer


_NODE: Final = f"{OWN}/partition/{{partition}}/node/{{node}}"


def _post(path: str, summary: str, question: Callable[[ReadSide, Asked], tuple[str, ...]]) -> Route:
    return Route(path, summary, _done, question, method="POST", is_yunikorns=False)


ROUTES: Final = (
    *(
        _post(f"{_NODE}/{name}", act.summary, partial(_node_question, name))
        for name, act in NODE_ACTS.items()
    ),
    _post(
        f"{OWN}/manager/{{manager}}/unregister",
        "everything of a lost resource manager is removed",
        _unregister_question,
    ),
    _post(f"{OWN}/config", "the administrator's configuration is this one now", _load_question),
)
