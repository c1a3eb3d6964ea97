"""What a route is asked, what it answers, and how it refuses."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from yunikorn_actors.service.read.side import ReadSide

OWN: Final = "/ws/v1/x"
"""Where our own routes stand, beside YuniKorn's."""
PAGE: Final = "/"
"""Where the live page is."""
JSON: Final = "application/json; charset=UTF-8"
YAML: Final = "application/x-yaml; charset=UTF-8"
TEXT: Final = "text/plain; charset=utf-8"
HTML: Final = "text/html; charset=utf-8"


class Asked(NamedTuple):
    """A request, without anything of HTTP that no route looks at."""

    path: Mapping[str, str] = {}
    """The parts of the path that have a name, decoded."""
    query: Mapping[str, str] = {}
    """Of a name that comes twice, the first."""
    accept: str = ""
    body: bytes = b""
    by: str = ""
    """Who asks for a change."""
    answer: Any = None
    """The core's, to the question of the route."""


class Answer(NamedTuple):
    """Bytes, or a value that becomes JSON."""

    content: Any
    type: str = JSON
    headers: Mapping[str, str] = {}
    status: int = 200


class Refusal(Exception):  # noqa: N818 - named like InvalidRequest
    """The request is answered with an error."""

    def __init__(self, status: int, message: str, description: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.description = description or message

    @property
    def value(self) -> dict[str, Any]:
        return {
            "status_code": self.status,
            "message": self.message,
            "description": self.description,
        }


Handler = Callable[[ReadSide, Asked], Any]
"""Returns an `Answer`, or the value of one."""


class Route(NamedTuple):
    path: str
    summary: str
    handler: Handler
    question: Callable[[ReadSide, Asked], tuple[str, ...]] | None = None
    """What has to be asked of the core before."""
    method: str = "GET"
    is_yunikorns: bool = True
    """Pages of other origins may read it, if the service allows that."""
    queries: tuple[str, ...] = ()
    """The names that it reads of the query."""
    is_apart: bool = False
    """Its handler looks at the request alone and may take long: others are answered meanwhile."""
    takes: str = YAML
    """What the body of a POST is."""
