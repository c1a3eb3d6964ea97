"""The log of a service: lines of text, or one JSON object a line, of this package and of others.

Libraries that the service uses write through the standard library's logging. Their warnings come in
the same form, masked as ours are, so a reader of the log meets one form.
"""

import json
import logging
import traceback
from collections.abc import Callable
from typing import Final, Literal, NamedTuple, TextIO, get_args

from yunikorn_actors.recording.logs import DEFAULT_LEVEL, enable_logs
from yunikorn_actors.recording.plain_text import moment
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.values.masking import masked

LogFormat = Literal["text", "json"]
LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR")
FORMATS: Final[tuple[LogFormat, ...]] = get_args(LogFormat)


class LogStyle(NamedTuple):
    level: str = DEFAULT_LEVEL
    format: LogFormat = "text"

    def enable(self, stream: TextIO) -> Callable[[], None]:
        """Write lines of this level and above to a stream; what is returned ends that."""
        handler = logging.StreamHandler(stream)
        handler.setFormatter(_Json() if self.format == "json" else _Text())
        # A logger of its own: a program with a logger of this name keeps that.
        ours = logging.Logger("yunikorn_actors")  # noqa: LOG001 - `getLogger` would share it
        ours.addHandler(handler)
        # The libraries write there; their lines get the same form.
        root = logging.getLogger()
        root.addHandler(handler)
        end_ours = enable_logs(ours, self.level)

        def end() -> None:
            end_ours()
            root.removeHandler(handler)

        return end


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"{_moment(record)} {record.levelname} {_origin(record)} {_message(record)}"


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": _moment(record),
            "level": record.levelname,
            "origin": _origin(record),
            "message": _message(record),
        }
        return json.dumps(fields, ensure_ascii=False)


def _moment(record: logging.LogRecord) -> str:
    return moment(int(record.created * SECOND))


def _origin(record: logging.LogRecord) -> str:
    origin: str = getattr(record, "origin", record.name)
    return origin


def _message(record: logging.LogRecord) -> str:
    """Return the text with the traceback of an error that a library has logged."""
    text = record.getMessage()
    if record.exc_info and record.exc_info[1] is not None:
        text += "\n" + "".join(traceback.format_exception(record.exc_info[1])).rstrip()
    # Our own lines are masked where they are written.
    return text if hasattr(record, "origin") else masked(text)
