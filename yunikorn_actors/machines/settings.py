"""Settings: what an operator may set for the whole service; times in ns, or as text (`30s`)."""

from typing import TYPE_CHECKING, Self

from msgspec import Struct
from msgspec.structs import force_setattr

from yunikorn_actors.config import parse_duration
from yunikorn_actors.values.durations import HOUR, MINUTE, SECOND
from yunikorn_actors.values.resource import INT64_MAX

_COUNT = f"a whole number from 1 to {INT64_MAX}"
_TIME = f"a duration above 0 such as '30s' or '1h30m', or nanoseconds from 1 to {INT64_MAX}"


class InvalidSetting(ValueError):
    """A field of the settings has a value that it cannot have."""

    def __init__(self, field: str, value: object, allowed: str) -> None:
        super().__init__(f"Settings.{field}: {value!r:.100} is not allowed: give {allowed}")
        self.field = field
        self.value = value
        self.allowed = allowed

    def __reduce__(self) -> tuple[type[Self], tuple[str, object, str]]:
        """From another process it comes whole."""
        return type(self), (self.field, self.value, self.allowed)


class InvalidTopology(ValueError):
    """The topology does not exist, or cannot have this number of schedulers."""


class Settings(Struct, frozen=True, kw_only=True):
    """Checked when they are made; times that are given as text are nanoseconds from then on."""

    completing_timeout_ns: int = 30 * SECOND
    """From Completing to Completed."""
    starting_timeout_ns: int = 5 * MINUTE
    """From Starting to Running, in leaves whose policy is `stateaware`."""
    placeholder_timeout_ns: int = 15 * MINUTE
    """How long a gang may take to come together, if its application does not say."""
    reservation_delay_ns: int = 2 * SECOND
    """How long an ask waits before a node is reserved for it."""
    preemption_delay_ns: int = 30 * SECOND
    """How long an ask waits before it may preempt, if its leaf does not say."""
    history_ns: int = 72 * HOUR
    """How long an application that ended is remembered."""
    history_max: int = 20_000
    """How many ended applications a partition remembers at most, rejected ones among them; the
    oldest go early."""
    rejected_max: int = 10_000
    """How many of them may be rejected ones, and how many rejected asks are remembered."""
    paused_timeout_ns: int = 5 * MINUTE
    """How long a lost resource manager may stay away before its partitions go."""
    queue_cleaning_ns: int = 10 * SECOND
    """From empty to removed, for dynamic and draining queues."""
    predicate_timeout_ns: int = SECOND
    """No answer within this time is a no."""
    event_push_ns: int = 2 * SECOND
    """How long event records are gathered before they are pushed."""
    event_ring_capacity: int = 100_000
    """How many event records are kept."""
    event_push_capacity: int = 1_000
    """How many records wait for a push at most; what comes beyond is counted."""

    cycle_max: int = 256
    """Decisions in one cycle: a bound by count keeps every handler short."""
    turn_max: int = 500
    """About how many asks, releases and nodes of one resource manager are at Context at a time, if
    there are several: behind them the others have their turn."""
    slice_max: int = 100
    """How many items of long work, such as the asks of an application that is removed, a machine
    handles before others have their turn."""
    inflight_max: int = 1024
    """Proposals that a scheduler has on their way."""

    if TYPE_CHECKING:
        # The fields are numbers to their readers; a program may give text for a time.
        def __init__(self, **fields: int | str) -> None: ...

    def __post_init__(self) -> None:
        # Checked here and not by a decoder: programs make settings as well as files.
        for field in self.__struct_fields__:
            self._check(field, getattr(self, field))

    def _check(self, field: str, value: object) -> None:
        is_time = field.endswith("_ns")
        number = parse_duration(value) if is_time and isinstance(value, str) else value
        # True is an int as well, and no number that anyone means.
        if type(number) is not int or not 0 < number <= INT64_MAX:
            raise InvalidSetting(field, value, _TIME if is_time else _COUNT)
        # Frozen, so written once, before anyone reads it.
        if number is not value:
            force_setattr(self, field, number)
