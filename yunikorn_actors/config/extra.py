"""What a resource manager may set beside its queues: the extra configuration, as free text.

It comes with the registration and with each update, which replaces it whole. An unknown key belongs
to another program, and a bad value counts as if it were not there: then the settings of the service
hold, or the default. Which values are bad can be asked for.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, convert

from yunikorn_actors.config.properties import (
    Parser,
    parse_duration,
    positive_duration,
    whole,
)
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.values.resource import INT64_MAX

_TRUE: Final = ("1", "t", "T", "TRUE", "true", "True")
_FALSE: Final = ("0", "f", "F", "FALSE", "false", "False")
_BOOLEANS: Final = dict.fromkeys(_TRUE, True) | dict.fromkeys(_FALSE, False)


LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_LEVEL_NAMES: Final = {
    "debug": "DEBUG",
    "info": "INFO",
    "warn": "WARNING",
    "warning": "WARNING",
    "error": "ERROR",
    "dpanic": "CRITICAL",
    "panic": "CRITICAL",
    "fatal": "CRITICAL",
}
_LEVEL_NUMBER: Final = whole(-INT64_MAX, INT64_MAX)


def _level(text: str) -> str | None:
    """Read the name of a level, or its number: -1 is the finest, and beyond 5 there is none."""
    number = _LEVEL_NUMBER(text)
    if not isinstance(number, int):
        return _LEVEL_NAMES.get(text.lower())
    return LEVELS[min(max(number, -1) + 1, len(LEVELS) - 1)]


class ExtraConfig(Struct, frozen=True, kw_only=True):
    """The keys that the core understands; None leaves it to the settings of the service."""

    paused_timeout_ns: int | None = None
    confirm_warning_ns: int = 600 * SECOND
    """A release that is not confirmed for so long is reported."""
    undelivered_max: int = 10_000
    """More responses than this, not taken, and nothing new is decided for it."""
    unhandled_max: int = 10_000
    """More requests than this, not handled, and its callers wait."""
    events_tracked: bool = True
    event_push_capacity: int | None = None
    event_ring_capacity: int | None = None
    event_streams_max: int = 100
    log_level: str | None = None
    """From which the lines of the library are wanted."""
    health_check_ns: int | None = None
    """How often the health is checked; 0 or less is never."""

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> "ExtraConfig":
        read = ((field, parse(texts.get(key, ""))) for key, (field, parse) in READERS.items())
        return convert({field: value for field, value in read if value is not None}, cls)

    @classmethod
    def faults_of(cls, texts: Mapping[str, str]) -> tuple[str, ...]:
        """Name the values that count as if they were not there."""
        return tuple(
            f"{key}: {text!r} is no value for it and counts as not set"
            for key, text in texts.items()
            if text and key in READERS and READERS[key][1](text) is None
        )


_POSITIVE: Final = whole(1, INT64_MAX)
READERS: Final[dict[str, tuple[str, Parser]]] = {
    "rm.pausedTimeout": ("paused_timeout_ns", positive_duration),
    "rm.confirmWarning": ("confirm_warning_ns", positive_duration),
    "rm.maxUndelivered": ("undelivered_max", _POSITIVE),
    "rm.maxUnhandled": ("unhandled_max", _POSITIVE),
    "event.trackingEnabled": ("events_tracked", _BOOLEANS.get),
    "event.requestCapacity": ("event_push_capacity", _POSITIVE),
    "event.ringBufferCapacity": ("event_ring_capacity", _POSITIVE),
    "event.maxStreams": ("event_streams_max", whole(0, INT64_MAX)),
    "log.level": ("log_level", _level),
    "health.checkInterval": ("health_check_ns", parse_duration),
}
