"""Listeners that tell whether what a test is about took place."""

from collections import Counter

from support import facts_of

from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.messages.base import CONTEXT, Delivery
from yunikorn_actors.messages.scheduling import QueueCleaningDue
from yunikorn_actors.state import facts as f


class Cleaner:
    """Counts what the cleaner did: queues it took away, and firings that came to nothing."""

    def __init__(self) -> None:
        self.removed = 0
        self.stale = 0

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        if delivery.mailbox == CONTEXT and isinstance(delivery.message, QueueCleaningDue):
            facts = facts_of(simulator, delivery)
            self.removed += sum(1 for fact in facts if isinstance(fact, f.QueueRemoved))
            self.stale += not facts


class Kept:
    """Counts reservations, made and dropped, and swaps that were completed."""

    def __init__(self) -> None:
        self.made = 0
        self.dropped: Counter[str] = Counter()
        """By reason."""
        self.swapped = 0

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        if delivery.mailbox == CONTEXT:
            for fact in facts_of(simulator, delivery):
                self.made += isinstance(fact, f.ReservationMade)
                self.swapped += isinstance(fact, f.SwapCompleted)
                if isinstance(fact, f.ReservationDropped):
                    self.dropped[fact.reason] += 1
