"""What a resource manager may set beside its queues: the extra configuration, as free text.

It comes with the registration and with each update, which replaces it whole. An unknown key belongs
to somebody else, and a bad value counts as if it were not there: then the settings of the service
hold, or the default.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, convert

from yunikorn_actors.domain.config.properties import (
    SECOND_NS,
    Parser,
    positive_duration,
    whole,
)
from yunikorn_actors.domain.resource import INT64_MAX

_TRUE: Final = ("1", "t", "T", "TRUE", "true", "True")
_FALSE: Final = ("0", "f", "F", "FALSE", "false", "False")
_BOOLEANS: Final = dict.fromkeys(_TRUE, True) | dict.fromkeys(_FALSE, False)


class ExtraConfig(Struct, frozen=True, kw_only=True):
    """The keys that the core understands; None leaves it to the settings of the service."""

    paused_timeout_ns: int | None = None
    confirm_warning_ns: int = 600 * SECOND_NS
    """A release that is not confirmed for so long is reported."""
    undelivered_max: int = 10_000
    """More responses than this, not taken, and nothing new is decided for it."""
    unhandled_max: int = 10_000
    """More requests than this, not handled, and its callers wait."""
    events_tracked: bool = True
    event_push_capacity: int | None = None
    event_ring_capacity: int | None = None
    event_streams_max: int = 100

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> "ExtraConfig":
        read = ((field, parse(texts.get(key, ""))) for key, (field, parse) in _READERS.items())
        return convert({field: value for field, value in read if value is not None}, cls)


_POSITIVE: Final = whole(1, INT64_MAX)
_READERS: Final[dict[str, tuple[str, Parser]]] = {
    "rm.pausedTimeout": ("paused_timeout_ns", positive_duration),
    "rm.confirmWarning": ("confirm_warning_ns", positive_duration),
    "rm.maxUndelivered": ("undelivered_max", _POSITIVE),
    "rm.maxUnhandled": ("unhandled_max", _POSITIVE),
    "event.trackingEnabled": ("events_tracked", _BOOLEANS.get),
    "event.requestCapacity": ("event_push_capacity", _POSITIVE),
    "event.ringBufferCapacity": ("event_ring_capacity", _POSITIVE),
    "event.maxStreams": ("event_streams_max", whole(0, INT64_MAX)),
}
