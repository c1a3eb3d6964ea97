"""What a route is asked, what it answers, and how it refuses."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from yunikorn_actors.service.read.read_model import ReadSide
from yunikorn_actors.service.rest.json_stream import PLAIN, Style

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
    """What is answered, and in which form.

    The content is bytes, pieces of text one after the other, or a value that becomes JSON. A
    function makes it on a thread: what cannot be made in slices.
    """

    content: Any
    type: str = JSON
    headers: Mapping[str, str] = {}
    status: int = 200
    style: Style = PLAIN
    reads_state: bool = False
    """The function looks at the read side, which has to stand still meanwhile."""


class Refusal(Exception):
    """The request is answered with an error."""

    def __init__(
        self, status: int, message: str, description: str = "", *, retry_s: int = 0
    ) -> None:
        """`retry_s`: after so many seconds it may be asked again; 0 where that does not help."""
        super().__init__(message)
        self.retry_s = retry_s
        self.status = status
        self.message = message
        self.description = description or message

    @property
    def text(self) -> str:
        """The error as one sentence, for callers that do not come over REST."""
        more = "" if self.description == self.message else f": {self.description}"
        return self.message + more

    @property
    def value(self) -> dict[str, Any]:
        return {
            "status_code": self.status,
            "message": self.message,
            "description": self.description,
        }


class Texts:
    """A text that is made piece by piece while it is written."""

    def __init__(self, parts: Iterable[bytes]) -> None:
        self._parts = parts

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._parts)


Handler = Callable[[ReadSide, Asked], Any]
"""Returns an `Answer`, the value of one, or steps that return one of them."""


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
    """Its answer is made on a thread and may take long: not many may wait for it."""
    is_diagnostic: bool = False
    """It tells of everything, or costs much: one is made at a time, and no page of another origin
    may ask for it."""
    takes: str = YAML
    """What the body of a POST is."""

    @property
    def is_closed(self) -> bool:
        """Whether pages of other origins may not even ask."""
        return self.is_diagnostic or not self.is_yunikorns or self.method != "GET"
