"""What an operator may set for the whole service; times in nanoseconds."""

from msgspec import Struct

SECOND = 1_000_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE


class Settings(Struct, frozen=True, kw_only=True):
    completing_timeout_ns: int = 30 * SECOND
    starting_timeout_ns: int = 5 * MINUTE
    placeholder_timeout_ns: int = 15 * MINUTE
    reservation_delay_ns: int = 2 * SECOND
    preemption_delay_ns: int = 30 * SECOND
    history_ns: int = 72 * HOUR
    history_max: int = 20_000
    """How many ended applications a partition remembers at most, rejected ones among them; the
    oldest go early."""
    rejected_max: int = 10_000
    """How many of them may be rejected ones."""
    paused_timeout_ns: int = 5 * MINUTE
    """How long a lost resource manager may stay away before its partitions go."""
    queue_cleaning_ns: int = 10 * SECOND
    predicate_timeout_ns: int = SECOND
    """No answer within this time is a no."""
    event_push_ns: int = 2 * SECOND
    event_ring_capacity: int = 100_000
    event_push_capacity: int = 1_000
    """How many records wait for a push at most; what comes beyond is counted."""

    cycle_max: int = 256
    """Decisions in one cycle: a bound by count keeps every handler short."""
    inflight_max: int = 1024
    """Proposals that a scheduler has on their way."""
