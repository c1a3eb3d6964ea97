"""Logging: silent unless the embedder asks, and never a secret.

The library logs under its own name through loguru, disabled at import. `enable_logs` turns it on
for a program that wants it. Whatever looks like the value of a secret is masked before any sink.
"""

import re
import sys
from typing import TYPE_CHECKING, Any, TextIO

from loguru import logger

if TYPE_CHECKING:
    from loguru import Record

_NAME = "yunikorn_actors"
_SECRET = re.compile(
    r"(?i)\b(password|passwd|secret|token|credential|bindpassword|authorization)"
    r"(['\"]?\s*[:=]\s*)(\"[^\"]*\"|'[^']*'|bearer\s+\S+|[^\s,;}]+)"
)

logger.disable(_NAME)


def masked(text: str) -> str:
    """Replace the value of everything that is named like a secret."""
    return _SECRET.sub(r"\1\2***", text)


def enable_logs(sink: TextIO | Any = None, level: str = "INFO") -> int:  # noqa: ANN401
    """Send the library's log lines to a sink (standard error by default); returns its handle."""
    logger.enable(_NAME)
    return logger.add(
        sink if sink is not None else sys.stderr,
        level=level,
        filter=_NAME,
        format=_masking_format,
        diagnose=False,
    )


def _masking_format(record: "Record") -> str:
    """Mask the message; `diagnose` is off because it would print values of variables."""
    record["extra"]["masked"] = masked(record["message"])
    return "{time:YYYY-MM-DDTHH:mm:ss.SSSZ} {level} {name} {extra[masked]}\n{exception}"


__all__ = ["enable_logs", "logger", "masked"]
