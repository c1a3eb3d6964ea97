"""An answer of Context that comes in several messages, and is delivered as one."""

from itertools import chain
from typing import Any

from yunikorn_actors.messages.base import Message


class Parts:
    """The parts that have come: calls of one kind, whose lists follow each other."""

    def __init__(self) -> None:
        self.is_ahead = False
        """Whether more follow behind the next part."""
        self._calls: list[Any] = []

    def add(self, call: Message) -> None:
        self._calls.append(call)

    def together(self) -> Message:
        first: Any = self._calls[0]
        whole: Message = (
            type(first)(response=_joined([call.response for call in self._calls]))
            if hasattr(first, "response")
            else _joined(self._calls)
        )
        return whole


def _joined(parts: list[Any]) -> Any:  # noqa: ANN401 - a call, or its response
    names = [it for it in parts[0].__struct_fields__ if isinstance(getattr(parts[0], it), tuple)]
    lists = {name: tuple(chain.from_iterable(getattr(it, name) for it in parts)) for name in names}
    return type(parts[0])(**lists)
