"""Logging: silent unless the embedder asks, but for failures (`hooks`), and never a secret.

The library logs under its own name through loguru, disabled at import. A program that uses loguru
turns it on with `loguru.logger.enable("yunikorn_actors")` and gets the lines in its own sinks;
`enable_logs` is for the others. Whatever looks like the value of a secret is masked before the line
reaches any sink, in the text of an exception as in a message. A traceback goes out as text: loguru
would add the values of variables to it.
"""

import re
import sys
import traceback
from typing import TYPE_CHECKING, Any, TextIO

import loguru

if TYPE_CHECKING:
    from loguru import Record

_NAME = "yunikorn_actors"
DEFAULT_LEVEL = "INFO"
_VALUE = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|(?:bearer|basic)\s+\S+|[^\s,;&})\]]+"
_SECRETS = (
    (
        re.compile(
            r"(?i)((?<![\w-])[\w-]*(?:passw(?:or)?d|passphrase|secret|token|credential|api[_-]?key"
            rf"|private[_-]?key|authorization)[\w-]*['\"]?\s*[:=]\s*)(?:{_VALUE})"
        ),
        r"\1***",
    ),
    (re.compile(r"(?i)\b(bearer\s+)\S+"), r"\1***"),
    (re.compile(r"(://[^\s/:@]*:)[^\s/@]+(?=@)"), r"\1***"),
)
"""What is named like a secret; a bearer's token; the password in an address."""


def masked(text: str) -> str:
    """Replace the value of everything that is named like a secret."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def _mask(record: "Record") -> None:
    text = record["message"]
    raised = record["exception"]
    if raised is not None:
        text += "\n" + "".join(traceback.format_exception(raised.value)).rstrip()
        record["exception"] = None
    record["message"] = masked(text)


class Lines:
    """The library's lines, from the level on that is wished."""

    def __init__(self) -> None:
        self._logger = loguru.logger.patch(_mask)
        self._wishes: dict[str, int] = {}
        self._least = self._number(DEFAULT_LEVEL)

    def wish(self, owner: str, level: str | None) -> None:
        """Have lines of this level and above; of several owners the finest wish counts."""
        if level is None:
            self._wishes.pop(owner, None)
        else:
            self._wishes[owner] = self._number(level)
        self._least = min(self._wishes.values(), default=self._number(DEFAULT_LEVEL))

    def debug(self, text: str, *args: object) -> None:
        self._write("DEBUG", text, args)

    def info(self, text: str, *args: object) -> None:
        self._write("INFO", text, args)

    def warning(self, text: str, *args: object) -> None:
        self._write("WARNING", text, args)

    def error(self, text: str, *args: object, exception: BaseException | bool = False) -> bool:
        """Say whether the logs are on, and so whether any sink has got the line."""
        return self._write("ERROR", text, args, exception)

    def _write(
        self,
        level: str,
        text: str,
        args: tuple[object, ...],
        exception: BaseException | bool = False,
    ) -> bool:
        if self._number(level) < self._least:
            return False
        # Loguru does not tell whether a name is enabled; but it patches only what it hands on.
        handed_on: list[object] = []
        line = self._logger.patch(handed_on.append)
        line.opt(depth=2, exception=exception or None).log(level, text, *args)
        return bool(handed_on)

    @staticmethod
    def _number(level: str) -> int:
        return loguru.logger.level(level).no


loguru.logger.disable(_NAME)
logger = Lines()


def enable_logs(sink: TextIO | Any = None, level: str = "INFO") -> int | None:  # noqa: ANN401
    """Turn the library's log lines on, for one more sink from this level on; returns its handle.

    The sinks that loguru has get them in any case. It comes with one on standard error, so without
    a sink of its own a program that has configured nothing sees them there.
    """
    loguru.logger.enable(_NAME)
    if sink is None:
        return None
    return loguru.logger.add(
        sink,
        level=level,
        filter=_NAME,
        format="{time:YYYY-MM-DDTHH:mm:ss.SSSZ} {level} {name} {message}",
        diagnose=False,
    )


def alarm(text: str) -> None:
    """Tell operators of what must not stay unheard: on standard error, logs enabled or not."""
    if sys.stderr is not None:
        sys.stderr.write(f"{_NAME}: {masked(text)}\n")


__all__ = ["alarm", "enable_logs", "logger", "masked"]
