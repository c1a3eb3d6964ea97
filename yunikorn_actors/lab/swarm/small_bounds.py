"""Bounds drawn small, so that small worlds pass them, and what shows that one was passed."""

from collections import Counter
from typing import Any, Final

from yunikorn_actors.config.extra import READERS
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.events import EventPublisher
from yunikorn_actors.machines.scheduler import Scheduler
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages.base import CONTEXT, EVENT_PUBLISHER, RM_PROXY, Delivery
from yunikorn_actors.messages.rm_events import RMHeldBack, RMUpdateAllocation, TurnMarked
from yunikorn_actors.messages.scheduling import FactsAppended, ProposeAllocations, RunSlice

NS: Final = "_ns"
COUNTS: Final = tuple(name for name in Settings.__struct_fields__ if not name.endswith(NS))
TIMES: Final = tuple(name for name in Settings.__struct_fields__ if name.endswith(NS))
_SMALL: Final = (1, 1, 2, 3, 5, 10)
_SHORT: Final = ("1ms", "100ms", "1s", "2s", "5s", "10s", "30s", "1m")
_LAPSES: Final = "placeholder_timeout_ns"
"""After so long a gang that fits nowhere is admitted again: in a minute not a thousand times."""
_FEW: Final = ("1", "1", "2", "3", "5", "20", "100")
_EXTRA: Final = {
    "rm.pausedTimeout": ("1s", "10s", "1m"),
    "rm.confirmWarning": ("1s", "10s", "1m"),
    "rm.maxUndelivered": _FEW,
    "rm.maxUnhandled": _FEW,
    "event.trackingEnabled": ("true", "false"),
    "event.requestCapacity": _FEW,
    "event.ringBufferCapacity": _FEW,
    "event.maxStreams": ("0", "1"),
    "health.checkInterval": ("1s", "30s"),
}
NOT_DRAWN: Final = frozenset({"log.level"})
"""What a simulated core does not do."""
assert _EXTRA.keys() | NOT_DRAWN == READERS.keys()


def drawn_settings(draw: Draw, parts: frozenset[str]) -> dict[str, Any]:
    """Draw the settings of a scenario file; those that are not drawn are as usual."""
    settings: dict[str, Any] = {}
    if "small-bounds" in parts:
        settings |= {name: draw.one_of(_SMALL) for name in COUNTS if draw.once_in(2)}
    if "short-times" in parts:
        times = {
            name: draw.one_of(_SHORT if name != _LAPSES else _SHORT[2:])
            for name in TIMES
            if draw.once_in(3)
        }
        settings |= {name.removesuffix(NS): length for name, length in times.items()}
    return settings


def drawn_extra(draw: Draw, parts: frozenset[str]) -> dict[str, str]:
    """Draw the extra configuration of a resource manager."""
    if "extra-configuration" not in parts:
        return {}
    return {key: draw.one_of(values) for key, values in _EXTRA.items() if draw.once_in(3)}


class Passed:
    """Counts the bounds that a run came to."""

    def __init__(self, settings: Settings) -> None:
        self.counts: Counter[str] = Counter()
        self._settings = settings

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        counts, settings, message = self.counts, self._settings, delivery.message
        if isinstance(message, ProposeAllocations):
            counts["cycle_max"] += len(message.proposals) >= settings.cycle_max
        elif isinstance(message, TurnMarked):
            counts["turn_max"] += 1
        elif isinstance(message, RunSlice):
            counts["slice_max"] += 1
        elif isinstance(message, RMHeldBack):
            counts["undelivered_max"] += message.held
        elif isinstance(message, RMUpdateAllocation):
            counts["managers side by side"] += _other_follows(simulator, message)
        elif isinstance(message, FactsAppended):
            self._look_at_books(simulator)
        if delivery.mailbox == CONTEXT or isinstance(message, ProposeAllocations):
            return
        machine = simulator.machines.get(delivery.mailbox)
        if isinstance(machine, Scheduler):
            full = machine.planner.in_flight_count >= settings.inflight_max
            counts["inflight_max"] += full

    def _look_at_books(self, simulator: Simulator) -> None:
        context, publisher = simulator.machines[CONTEXT], simulator.machines.get(EVENT_PUBLISHER)
        assert isinstance(context, Context)
        for partition in context.partitions.values():
            state = partition.state
            self.counts["history_max"] += len(state.finished) >= self._settings.history_max
            self.counts["rejected_max"] += len(state.rejected) >= self._settings.rejected_max
        if not isinstance(publisher, EventPublisher):
            return  # it has failed and is not replaced yet
        self.counts["event_ring_capacity"] += publisher.ring.lowest_id > 0
        overflow = any(unpushed.overflow for unpushed in publisher.unpushed.values())
        self.counts["event_push_capacity"] += overflow


def _other_follows(simulator: Simulator, message: RMUpdateAllocation) -> bool:
    """Whether a request of another resource manager is next in the mailbox."""
    queue = simulator.channels.get((RM_PROXY, CONTEXT))
    following = queue[0][1].message if queue else None
    return isinstance(following, RMUpdateAllocation) and following.rm_id != message.rm_id
