"""Logging: silent unless the embedder asks, but for failures (`hooks`), and never a secret.

`enable_logs` says where the library's lines go: into the sinks of loguru, to one stream, or into a
logger of the standard library. Until then no line is even put together, and loguru is not imported.
What others have named is escaped as in a recording that is shown, so none of it forges a line.
Whatever looks like the value of a secret is masked before a line goes anywhere, in the text of an
exception as in a message. A traceback goes out as text: loguru would add the values of variables to
it.
"""

import logging
import sys
import traceback
from collections.abc import Callable
from typing import Final, NamedTuple, TextIO

from yunikorn_actors.recording.plain_text import printable
from yunikorn_actors.values.masking import masked

_NAME: Final = "yunikorn_actors"
DEFAULT_LEVEL: Final = "INFO"
_FORMAT: Final = "%(asctime)s.%(msecs)03d %(levelname)s %(origin)s %(message)s"


class _Place(NamedTuple):
    """Where lines go from a level on; `write` says whether anybody takes the line."""

    least: int
    write: Callable[[str, str], bool]


class Lines:
    """The library's lines, from the level on that is wished."""

    def __init__(self) -> None:
        self._places: dict[object, _Place] = {}
        self._wishes: dict[str, int] = {}
        self._least = _number(DEFAULT_LEVEL)

    def wish(self, owner: str, level: str | None) -> None:
        """Have lines of this level and above; of several owners the finest wish counts."""
        if level is None:
            self._wishes.pop(owner, None)
        else:
            self._wishes[owner] = _number(level)
        self._least = min(self._wishes.values(), default=_number(DEFAULT_LEVEL))

    def send_to(self, key: object, place: _Place) -> None:
        # Replaced, not changed: other threads may be going through it.
        self._places = {**self._places, key: place}

    def leave(self, key: object) -> None:
        self._places = {it: place for it, place in self._places.items() if it is not key}

    def debug(self, text: str, *args: object) -> None:
        self._write("DEBUG", text, args)

    def info(self, text: str, *args: object) -> None:
        self._write("INFO", text, args)

    def warning(self, text: str, *args: object) -> None:
        self._write("WARNING", text, args)

    def error(self, text: str, *args: object, exception: BaseException | None = None) -> bool:
        """Say whether anybody has taken the line."""
        return self._write("ERROR", text, args, exception)

    def _write(
        self,
        level: str,
        text: str,
        args: tuple[object, ...],
        exception: BaseException | None = None,
    ) -> bool:
        number = _number(level)
        places = [place for place in self._places.values() if place.least <= number]
        if not places or number < self._least:
            return False
        # Formatted only with arguments: a text with braces of its own stays as it is.
        line = text.format(*map(_shown, args)) if args else text
        if exception is not None:
            line += "\n" + "".join(traceback.format_exception(exception)).rstrip()
        line = masked(line)
        is_taken = False
        for place in places:
            is_taken |= place.write(level, line)
        return is_taken


def _shown(value: object) -> object:
    """A name from outside begins no line; an error of several lines is indented."""
    match value:
        case str():
            return printable(value)
        case BaseException():
            return "\n  ".join(map(printable, str(value).splitlines()))
    return value


def _number(level: str) -> int:
    numbers = logging.getLevelNamesMapping()
    if level not in numbers:
        raise ValueError(f"no log level is called {level!r}: give one of {', '.join(numbers)}")
    return numbers[level]


logger = Lines()


def enable_logs(
    sink: TextIO | logging.Logger | None = None, level: str = DEFAULT_LEVEL
) -> Callable[[], None]:
    """Have the library's log lines, from this level on; what is returned ends that.

    Without a sink they go where loguru writes, which is standard error in a program that has not
    set it up. A text stream gets them alone: nothing is written anywhere else. A
    `logging.Logger` of the standard library gets them as records, so its level, handlers and
    filters decide what becomes of them: `enable_logs(logging.getLogger("scheduler"))`. Several
    sinks may be on at one time; the same one given again gets the new level.

    The bridge is a logger that is given, not a handler that loguru calls: so a program of the
    standard library sets up, or silences, no second logging system before it sees one line. And as
    no line takes both ways, a program that hands loguru's lines on to `logging` sees none twice.
    """
    key: object = _NAME if sink is None else sink
    logger.send_to(key, _Place(_number(level), _writer(sink)))
    return lambda: logger.leave(key)


def _writer(sink: TextIO | logging.Logger | None) -> Callable[[str, str], bool]:
    if sink is None:
        return _to_loguru
    return _to_logging(sink if isinstance(sink, logging.Logger) else _logger_of(sink))


def _to_loguru(level: str, line: str) -> bool:
    import loguru  # noqa: PLC0415 - on first use only: it is a large part of a start

    # Loguru does not tell whether a name is enabled; but it patches only what it hands on.
    handed_on: list[object] = []
    loguru.logger.patch(handed_on.append).opt(depth=3).log(level, "{}", line)
    return bool(handed_on)


def _to_logging(target: logging.Logger) -> Callable[[str, str], bool]:
    def write(level: str, line: str) -> bool:
        number = _number(level)
        if not target.isEnabledFor(number):
            return False
        # Who wrote the line stands three calls up, here as for loguru.
        origin = sys._getframe(3).f_globals["__name__"]
        target.log(number, line, stacklevel=4, extra={"origin": origin})
        return True

    return write


def _logger_of(stream: TextIO) -> logging.Logger:
    """Make a logger that nobody else finds, for one stream."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter(_FORMAT, "%Y-%m-%dT%H:%M:%S"))
    target = logging.Logger(_NAME)  # noqa: LOG001 - `getLogger` would hand it to the whole program
    target.addHandler(handler)
    return target


def alarm(text: str) -> None:
    """Tell operators of what must not stay unheard: on standard error, logs enabled or not."""
    if sys.stderr is not None:
        sys.stderr.write(f"{_NAME}: {masked(text)}\n")


__all__ = ["alarm", "enable_logs", "logger"]
