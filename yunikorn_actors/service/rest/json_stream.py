"""JSON, written piece by piece: a value may hold lists that are made as they are written.

A piece is what one item of such a list becomes, so no piece takes long. An empty piece is a pause.
A piece of a dump has no secret in it, and is indented as the whole would be.
"""

from collections.abc import Callable, Generator, Iterator
from types import GeneratorType
from typing import Any, Final, NamedTuple

import msgspec

from yunikorn_actors.service.read.incremental_answers import Each, Steps, T

PAUSE: Final = b""
_INDENT: Final = 2
_ITEMS_AT_ONCE: Final = 256
"""Of a value of which nobody knows how large it is."""


class Foreign(NamedTuple):
    """A plain value from elsewhere, of any size."""

    value: Any


class Style(NamedTuple):
    cover: Callable[[bytes], bytes] | None = None
    """Replaces the secrets in JSON."""
    is_indented: bool = False

    def text(self, value: Any, level: int) -> bytes:  # noqa: ANN401 - any JSON
        data = _encoder.encode(value)
        if self.cover is not None:
            # Covered before it is formatted, as it is looked for in compact text.
            data = self.cover(data)
        if not self.is_indented:
            return data
        # No string of JSON holds the end of a line.
        return msgspec.json.format(data, indent=_INDENT).replace(b"\n", self.line(level))

    def line(self, level: int) -> bytes:
        return b"\n" + b" " * (_INDENT * level) if self.is_indented else b""


PLAIN: Final = Style()


class _Divisible(Exception):
    """There is something in the value that is written by itself."""


def _refuse(value: Any) -> Any:  # noqa: ANN401 - what msgspec does not know
    if isinstance(value, Each | Foreign | GeneratorType):
        raise _Divisible
    raise TypeError(f"{type(value).__name__} is no value of an answer")


_encoder: Final = msgspec.json.Encoder(enc_hook=_refuse)


def paused(steps: Steps[T]) -> Generator[bytes, None, T]:
    """Yield a pause for each of theirs, and return what they return."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            value: T = end.value
            return value
        yield PAUSE


def pieces(value: Any, style: Style = PLAIN, level: int = 0) -> Iterator[bytes]:  # noqa: ANN401 - any JSON
    if isinstance(value, GeneratorType):
        value = yield from paused(value)
    if isinstance(value, Each):
        yield from _listed(value, style, level)
    elif isinstance(value, Foreign):
        yield from _foreign(value.value, style, level)
    else:
        try:
            yield style.text(value, level)
        except _Divisible:
            if isinstance(value, dict):
                yield from _fields(value, style, level)
            else:
                yield from _listed(value, style, level)


def _listed(items: Any, style: Style, level: int) -> Iterator[bytes]:  # noqa: ANN401 - iterable
    begin, comma = style.line(level + 1), b","
    between = b"[" + begin
    for item in items:
        # The comma comes with the next one, as nobody knows whether there is one.
        yield between
        yield from pieces(item, style, level + 1)
        between = comma + begin
    yield b"[]" if between[:1] == b"[" else style.line(level) + b"]"


def _fields(value: dict[str, Any], style: Style, level: int) -> Iterator[bytes]:
    begin = style.line(level + 1)
    colon = b": " if style.is_indented else b":"
    between = b"{" + begin
    for name, item in value.items():
        # Only what can be divided is written by itself; the rest is one piece.
        if isinstance(item, Each | Foreign | GeneratorType) or _is_divisible(item):
            yield between + _encoder.encode(name) + colon
            yield from pieces(item, style, level + 1)
        else:
            # The name beside its value: it may say that the value is a secret.
            yield between + _inside(style, {name: item}, level)
        between = b"," + begin
    yield b"{}" if between[:1] == b"{" else style.line(level) + b"}"


def _inside(style: Style, value: dict[str, Any], level: int) -> bytes:
    """Write an object of one field without its braces."""
    return style.text(value, level)[1:-1].strip()


def _is_divisible(value: Any) -> bool:  # noqa: ANN401 - any part of an answer
    try:
        _encoder.encode(value)
    except _Divisible:
        return True
    return False


def _foreign(value: Any, style: Style, level: int) -> Iterator[bytes]:  # noqa: ANN401 - any JSON
    """Write a value of unknown type in pieces: large parts are divided again."""
    if not _is_large(value):
        yield style.text(value, level)
    elif isinstance(value, dict):
        divided = {name: Foreign(item) if _is_large(item) else item for name, item in value.items()}
        yield from _fields(divided, style, level)
    else:
        yield from _listed(map(Foreign, value), style, level)


def _is_large(value: Any) -> bool:  # noqa: ANN401 - any JSON
    """Whether it has containers in it, or very many items."""
    if isinstance(value, dict):
        return len(value) > _ITEMS_AT_ONCE or any(
            isinstance(it, dict | list) for it in value.values()
        )
    if isinstance(value, list):
        return len(value) > _ITEMS_AT_ONCE or any(isinstance(it, dict | list) for it in value)
    return False
