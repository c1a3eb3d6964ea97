"""Queue properties: free text in the configuration, typed and defaulted values for the scheduler.

A property never makes a configuration invalid: an unknown one is carried along, and a bad value
counts as if it were not there. A configured queue has its own properties on top of what its parent
hands down; most are handed down as they are, but what sets a queue apart from its siblings (its
priority, its fences) is handed down as neutral, so that it does not count once more at each level.
"""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final, TypeAlias, TypeVar

from msgspec import Struct, convert

from yunikorn_actors.domain.quantity import UINT64_MAX
from yunikorn_actors.domain.resource import INT64_MAX

INT32_MAX: Final = 2**31 - 1
PERCENT_MAX: Final = 100
SECOND_NS: Final = 1_000_000_000


class ApplicationSortPolicy(StrEnum):
    FIFO = "fifo"
    FAIR = "fair"
    STATEAWARE = "stateaware"


class QueueSortPolicy(StrEnum):
    FAIR = "fair"
    FIFO = "fifo"


class PreemptionPolicy(StrEnum):
    DEFAULT = "default"
    FENCE = "fence"
    DISABLED = "disabled"


class GangAdmission(StrEnum):
    """Whether the placeholders of a gang wait until all of them fit into the quotas."""

    HOLD = "hold"
    IMMEDIATE = "immediate"


class QueueProperties(Struct, frozen=True, kw_only=True):
    """The properties of one queue as the scheduler reads them."""

    application_sort_policy: ApplicationSortPolicy = ApplicationSortPolicy.FIFO
    application_sort_priority: bool = True
    priority_fence: bool = False
    priority_offset: int = 0
    preemption_policy: PreemptionPolicy = PreemptionPolicy.DEFAULT
    preemption_delay_ns: int | None = None
    """None: what the service says."""
    backoff_count: int = 0
    """Asks in one pass that no node holds before the application pauses; 0 is never."""
    backoff_delay_ns: int = 30 * SECOND_NS
    quota_preemption_delay_ns: int = 0
    """0 is never."""
    queue_sort_policy: QueueSortPolicy = QueueSortPolicy.FAIR
    gang_admission: GangAdmission = GangAdmission.HOLD
    reservation_max_nodes_percent: int = 5

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> "QueueProperties":
        """Read effective properties."""
        read = ((field, parse(properties.get(key, ""))) for key, (field, parse) in _READERS.items())
        return convert({field: value for field, value in read if value is not None}, cls)


def effective_properties(
    parent_effective: Mapping[str, str], own: Mapping[str, str]
) -> dict[str, str]:
    """Return the properties of a configured queue: what its parent hands down, then its own."""
    inherited = {key: _handed_down(key, value) for key, value in parent_effective.items()}
    return inherited | dict(own)


def _handed_down(key: str, value: str) -> str:
    if key == PREEMPTION_POLICY and value.lower() == PreemptionPolicy.DISABLED:
        return value
    return _NEUTRAL.get(key, value)


# --- values ---------------------------------------------------------------------------------------

_WHOLE: Final = re.compile(r"[-+]?[0-9]{1,20}")
_UNITS_NS: Final = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,  # the micro sign
    "\u03bcs": 1_000,  # the Greek letter
    "ms": 1_000_000,
    "s": SECOND_NS,
    "m": 60 * SECOND_NS,
    "h": 3600 * SECOND_NS,
}
_UNIT: Final = "|".join(_UNITS_NS)
_TERM: Final = re.compile(rf"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)({_UNIT})")
_DURATION: Final = re.compile(rf"[-+]?(?:0|(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:{_UNIT}))+)")
# More digits before the point overflow with every unit, more behind it are less than 1 ns.
_DIGITS_MAX: Final = 19


def parse_duration(text: str) -> int | None:
    """Read a duration such as `1h30m` or `0.5s` in nanoseconds; None when it is malformed."""
    if not _DURATION.fullmatch(text):
        return None
    total = sum(_nanoseconds(number, unit) for number, unit in _TERM.findall(text))
    if total > INT64_MAX:
        return None
    return -total if text.startswith("-") else total


def _nanoseconds(number: str, unit: str) -> int:
    whole, _, fraction = number.partition(".")
    whole, fraction = whole.lstrip("0"), fraction[:_DIGITS_MAX]
    if len(whole) > _DIGITS_MAX:
        return INT64_MAX + 1
    part: int = int(fraction or "0") * _UNITS_NS[unit] // 10 ** len(fraction)
    return int(whole or "0") * _UNITS_NS[unit] + part


Value = TypeVar("Value", bound=StrEnum)
Parser: TypeAlias = Callable[[str], object]
"""Returns None for what is not acceptable."""


def _one_of(choices: type[Value]) -> Callable[[str], Value | None]:
    by_text = {choice.value: choice for choice in choices}
    return by_text.get


def _ignoring_case(parse: Parser) -> Parser:
    return lambda text: parse(text.lower())


def _switch(on: str, off: str) -> Parser:
    return _ignoring_case({on: True, off: False}.get)


def whole(low: int, high: int) -> Parser:
    """Read a whole number within these bounds."""

    def parse(text: str) -> int | None:
        value = int(text) if _WHOLE.fullmatch(text) else None
        return value if value is not None and low <= value <= high else None

    return parse


def positive_duration(text: str) -> int | None:
    """Read a duration above zero."""
    delay = parse_duration(text)
    return delay if delay and delay > 0 else None


PRIORITY_POLICY: Final = "priority.policy"
PRIORITY_OFFSET: Final = "priority.offset"
PREEMPTION_POLICY: Final = "preemption.policy"

# What replaces the value that a parent hands down.
_NEUTRAL: Final = {
    PRIORITY_POLICY: "default",
    PRIORITY_OFFSET: "0",
    PREEMPTION_POLICY: PreemptionPolicy.DEFAULT.value,
}

# Property to field and parser. The sort policy of applications alone minds the case.
_READERS: Final[dict[str, tuple[str, Parser]]] = {
    "application.sort.policy": ("application_sort_policy", _one_of(ApplicationSortPolicy)),
    "application.sort.priority": ("application_sort_priority", _switch("enabled", "disabled")),
    PRIORITY_POLICY: ("priority_fence", _switch("fence", "default")),
    PRIORITY_OFFSET: ("priority_offset", whole(-INT32_MAX - 1, INT32_MAX)),
    PREEMPTION_POLICY: ("preemption_policy", _ignoring_case(_one_of(PreemptionPolicy))),
    "preemption.delay": ("preemption_delay_ns", positive_duration),
    "application.unschedasks.backoff": ("backoff_count", whole(0, UINT64_MAX)),
    "application.unschedasks.backoff.delay": ("backoff_delay_ns", positive_duration),
    "quota.preemption.delay": ("quota_preemption_delay_ns", positive_duration),
    "queue.sort.policy": ("queue_sort_policy", _ignoring_case(_one_of(QueueSortPolicy))),
    "gang.admission": ("gang_admission", _ignoring_case(_one_of(GangAdmission))),
    "reservation.max.nodes.percent": ("reservation_max_nodes_percent", whole(0, PERCENT_MAX)),
}
