"""Queue properties: free text in the configuration, typed and defaulted values for the scheduler.

A property never makes a configuration invalid: an unknown one is carried along, and a bad value
counts as if it were not there; `warnings` tells of both. A configured queue has its own properties
on top of what its parent hands down; most are handed down as they are, but what sets a queue apart
from its siblings (its priority, its fences) is handed down as neutral, so that it does not count
once more at each level.
"""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct, convert

from yunikorn_actors.values.durations import HOUR, MINUTE, SECOND
from yunikorn_actors.values.quantity import UINT64_MAX
from yunikorn_actors.values.resource import INT32_MAX, INT32_MIN, INT64_MAX

PERCENT_MAX: Final = 100


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


class PreemptionUnit(StrEnum):
    """What goes as one when work of a queue is preempted."""

    ALLOCATION = "allocation"
    APPLICATION = "application"


class PreemptionBudget(Struct, frozen=True, gc=False):
    """How many allocations of a queue may be preempted within a time."""

    most: int = 0
    """Allocations, or per cent of those that run in the queue."""
    is_share: bool = False
    window_ns: int = 0
    """0 is no budget: as many as are needed."""

    @property
    def is_set(self) -> bool:
        return self.window_ns > 0

    def of(self, running: int) -> int:
        """Return how many may go where so many run; a share is rounded up, so one may always."""
        return -(-running * self.most // PERCENT_MAX) if self.is_share else self.most


class GangAdmission(StrEnum):
    """Whether the placeholders of a gang wait until all of them fit into the quotas."""

    HOLD = "hold"
    IMMEDIATE = "immediate"


class QueueProperties(Struct, frozen=True, kw_only=True, gc=False):
    """The properties of one queue as the scheduler reads them."""

    application_sort_policy: ApplicationSortPolicy = ApplicationSortPolicy.FIFO
    application_policy: str = ""
    """What is written instead of one of these: the name of a policy, if there is such a one."""
    application_sort_priority: bool = True
    priority_fence: bool = False
    priority_offset: int = 0
    preemption_policy: PreemptionPolicy = PreemptionPolicy.DEFAULT
    preemption_delay_ns: int | None = None
    """None: what the service says."""
    preemption_unit: PreemptionUnit | None = None
    """None: the style of the gang says; what is of no hard gang goes by the allocation."""
    preemption_budget: PreemptionBudget = PreemptionBudget()
    preemption_cooldown_ns: int = 0
    """So long after its begin an allocation is no victim for a guarantee."""
    preemption_grace_ns: int = 0
    """How long a victim has to end by itself; 0 says nothing of it."""
    backoff_count: int = 0
    """Asks in one pass that no node holds before the application pauses; 0 is never."""
    backoff_delay_ns: int = 30 * SECOND
    quota_preemption_delay_ns: int = 0
    """0 is never."""
    queue_sort_policy: QueueSortPolicy = QueueSortPolicy.FAIR
    queue_policy: str = ""
    gang_admission: GangAdmission = GangAdmission.HOLD
    reservation_max_nodes_percent: int = 5

    @property
    def rests_ns(self) -> tuple[int, ...]:
        """Return for how long asks may wait for nothing but the time: one kind after the other."""
        return (
            self.preemption_delay_ns or 0,
            self.preemption_cooldown_ns,
            self.preemption_budget.window_ns,
            self.backoff_delay_ns,
        )

    def priority_outside(self, priority: int) -> int:
        """Return how important something in the queue is to those beside it."""
        return self.priority_offset if self.priority_fence else priority + self.priority_offset

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> "QueueProperties":
        """Read effective properties."""
        values: dict[str, object] = {}
        for key, by in READERS.items():
            text = properties.get(key, "")
            value = by.parse(text)
            if value is not None:
                values[by.field] = value
            elif text and key in POLICY_OF:
                values[POLICY_OF[key]] = text
        return convert(values, cls)


def effective_properties(
    parent_effective: Mapping[str, str], own: Mapping[str, str]
) -> dict[str, str]:
    """Return the properties of a configured queue: what its parent hands down, then its own."""
    inherited = {key: handed_down(key, value) for key, value in parent_effective.items()}
    return inherited | dict(own)


def handed_down(key: str, value: str) -> str:
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
    "s": SECOND,
    "m": MINUTE,
    "h": HOUR,
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


def _duration_or_never(text: str) -> int | None:
    delay = parse_duration(text)
    return delay if delay is not None and delay >= 0 else None


_BUDGET: Final = re.compile(r"([0-9]{1,10})(%?)/(.+)")


def _budget(text: str) -> PreemptionBudget | None:
    """Read a budget such as `5/10m` or `10%/10m`; `none` lifts what a parent hands down."""
    if text.lower() == "none":
        return PreemptionBudget()
    found = _BUDGET.fullmatch(text)
    window_ns = positive_duration(found[3]) if found else None
    if found is None or window_ns is None:
        return None
    most, is_share = int(found[1]), bool(found[2])
    if most > (PERCENT_MAX if is_share else INT32_MAX):
        return None
    return PreemptionBudget(most=most, is_share=is_share, window_ns=window_ns)


PRIORITY_POLICY: Final = "priority.policy"
PRIORITY_OFFSET: Final = "priority.offset"
PREEMPTION_POLICY: Final = "preemption.policy"

# What replaces the value that a parent hands down.
_NEUTRAL: Final = {
    PRIORITY_POLICY: "default",
    PRIORITY_OFFSET: "0",
    PREEMPTION_POLICY: PreemptionPolicy.DEFAULT.value,
}


class Reader(NamedTuple):
    """How the text of a property becomes the value of a field."""

    field: str
    parse: Parser
    allowed: str
    """In words, for who wrote something else."""
    words: tuple[str, ...] = ()
    """All that is allowed, where that is a choice of words."""


def _choice(field: str, parse: Parser, *words: str) -> Reader:
    # Members of an enumeration would be no text to what writes a configuration.
    texts = tuple(str(word) for word in words)
    return Reader(field, parse, f"{', '.join(texts[:-1])} or {texts[-1]}", texts)


_DURATION_WORDS: Final = "a duration above 0 such as 30s or 1h30m"
_OR_NONE: Final = "a duration such as 30s; 0 is none"

APPLICATION_SORT_POLICY: Final = "application.sort.policy"
QUEUE_SORT_POLICY: Final = "queue.sort.policy"
POLICY_OF: Final = {
    APPLICATION_SORT_POLICY: "application_policy",
    QUEUE_SORT_POLICY: "queue_policy",
}
"""The properties that may name a policy, and the field of the name."""

# The sort policy of applications alone minds the case.
READERS: Final[dict[str, Reader]] = {
    APPLICATION_SORT_POLICY: _choice(
        "application_sort_policy", _one_of(ApplicationSortPolicy), *ApplicationSortPolicy
    ),
    "application.sort.priority": _choice(
        "application_sort_priority", _switch("enabled", "disabled"), "enabled", "disabled"
    ),
    PRIORITY_POLICY: _choice("priority_fence", _switch("fence", "default"), "default", "fence"),
    PRIORITY_OFFSET: Reader(
        "priority_offset", whole(INT32_MIN, INT32_MAX), "a whole number of 32 bits"
    ),
    PREEMPTION_POLICY: _choice(
        "preemption_policy", _ignoring_case(_one_of(PreemptionPolicy)), *PreemptionPolicy
    ),
    "preemption.delay": Reader("preemption_delay_ns", positive_duration, _DURATION_WORDS),
    "preemption.unit": _choice(
        "preemption_unit", _ignoring_case(_one_of(PreemptionUnit)), *PreemptionUnit
    ),
    "preemption.budget": Reader(
        "preemption_budget",
        _budget,
        "allocations, or a share of those that run, in a time, such as 5/10m or 10%/10m, or none",
    ),
    "preemption.cooldown": Reader("preemption_cooldown_ns", _duration_or_never, _OR_NONE),
    "preemption.grace": Reader("preemption_grace_ns", _duration_or_never, _OR_NONE),
    "application.unschedasks.backoff": Reader(
        "backoff_count", whole(0, UINT64_MAX), "a whole number; 0 is never"
    ),
    "application.unschedasks.backoff.delay": Reader(
        "backoff_delay_ns", positive_duration, _DURATION_WORDS
    ),
    "quota.preemption.delay": Reader(
        "quota_preemption_delay_ns", _duration_or_never, "a duration such as 30s; 0 is never"
    ),
    QUEUE_SORT_POLICY: _choice(
        "queue_sort_policy", _ignoring_case(_one_of(QueueSortPolicy)), *QueueSortPolicy
    ),
    "gang.admission": _choice(
        "gang_admission", _ignoring_case(_one_of(GangAdmission)), *GangAdmission
    ),
    "reservation.max.nodes.percent": Reader(
        "reservation_max_nodes_percent", whole(0, PERCENT_MAX), f"0 to {PERCENT_MAX}"
    ),
}
