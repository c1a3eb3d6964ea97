"""What a core that starts again goes on with: the truth of the one before it, as plain values."""

from typing import Any

from msgspec import Struct, field

from yunikorn_actors.config import SchedulerConfig
from yunikorn_actors.messages.base import Message
from yunikorn_actors.messages.rm_events import RMRegistration
from yunikorn_actors.messages.scheduling import FactsMissed
from yunikorn_actors.state.facts import Fact


class KnownManager(Struct, frozen=True, kw_only=True):
    """A resource manager that is registered, or lost, with the partitions that it has."""

    registration: RMRegistration
    """Without its configuration, which its policy group has."""
    checksum: str
    epochs: dict[str, int]
    """Of its partitions, by full name."""


class Registered(Struct, frozen=True, kw_only=True):
    """All that Context knows outside of its partitions."""

    managers: tuple[KnownManager, ...] = ()
    admin: SchedulerConfig | None = None
    brought: dict[str, SchedulerConfig] = {}
    """The configurations of policy groups that brought one."""
    last_epoch: int = 0
    last_generation: int = 0


class EventsRestored(Message, frozen=True, kw_only=True):
    """Begin with these event records, as the facts that they tell of.

    They are of the core before this one or, to a follower, of the time before it came.
    """

    next_id: int
    facts: tuple[Fact, ...]
    """Whose records are the last ones before `next_id`."""
    known: tuple[FactsMissed, ...]
    """How far each partition is."""


class LastNumbers(Struct, frozen=True, array_like=True):
    """The last numbers that were given in a partition, to what may have ended."""

    serial: int = 0
    sequence: int = 0
    timer: int = 0


class CoreRestored(Message, frozen=True, kw_only=True):
    """Go on with this truth. It comes before anything else, to a Context that knows nothing."""

    registered: Registered
    images: dict[str, dict[str, Any]]
    """Of each partition, by full name."""
    events: EventsRestored
    is_reported: bool = False
    """A copy of a core that runs: its resource managers have reported all that there is."""
    issued_uuids: int = 0
    """How many UUIDs that core had issued, so that a copy with its instance goes on behind them."""
    last_numbers: dict[str, LastNumbers] = field(default_factory=dict)
    """Of each partition, by full name."""


class ReturnDue(Message, frozen=True, kw_only=True):
    """A resource manager that came back has had its time to report what it runs."""

    rm_id: str
    generation: int
