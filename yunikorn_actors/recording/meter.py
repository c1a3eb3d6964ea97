"""How busy each actor is: messages, time in handlers and in mailboxes, and who sends what to whom.

A core has a meter only when a reader wants it. Actors are counted by their role, as those of
partitions and callbacks come and go, and so several threads may write the figures of one role.
"""

import threading
from bisect import bisect_left
from typing import Any, Final

from yunikorn_actors.messages.base import Envelope, Message, role_of
from yunikorn_actors.messages.scheduling import RunCycle

BOUNDS_NS: Final = tuple(100_000 * 10**power for power in range(8))
"""From 0.1 ms on, each ten times the one before, as YuniKorn's histograms."""


class Histogram:
    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_NS) + 1)
        """Those up to each bound, without those before it; the last are above all bounds."""
        self.total_ns = 0

    def note(self, ns: int) -> None:
        self.counts[bisect_left(BOUNDS_NS, ns)] += 1
        self.total_ns += ns

    def plain(self) -> dict[str, Any]:
        return {"counts": list(self.counts), "total_ns": self.total_ns}


class Gauge:
    """The figures of one role, written by all actors that have it."""

    def __init__(self, lock: threading.RLock, cycles: Histogram) -> None:
        self.waiting_ns = 0
        """In the mailbox, all messages together."""
        self.messages = 0
        self.handling = Histogram()
        self.worst_ns = 0
        self.flows: dict[tuple[str, type[Message]], int] = {}
        """How many messages of which type came from which role."""
        self._lock = lock
        self._cycles = cycles

    def joined(self, envelope: Envelope, now_ns: int) -> None:
        """Note a message that is handled together with the one before it."""
        with self._lock:
            self._count(envelope, now_ns)

    def handled(self, envelope: Envelope, now_ns: int, took_ns: int) -> None:
        """Note a message and its handling, begun at `now_ns`; several together are one handling."""
        with self._lock:
            self._count(envelope, now_ns)
            self.handling.note(took_ns)
            self.worst_ns = max(self.worst_ns, took_ns)
            # A cycle is one message among others, and what YuniKorn measures.
            if type(envelope.message) is RunCycle:
                self._cycles.note(took_ns)

    def _count(self, envelope: Envelope, now_ns: int) -> None:
        sender, message, _, _, sent_ns = envelope
        self.messages += 1
        # A message may be made after that moment on another thread.
        if sent_ns is not None and sent_ns < now_ns:
            self.waiting_ns += now_ns - sent_ns
        flow = (role_of(sender), type(message))
        self.flows[flow] = self.flows.get(flow, 0) + 1

    def plain(self) -> dict[str, Any]:
        return {
            "messages": self.messages,
            "waiting_ns": self.waiting_ns,
            "handling": self.handling.plain(),
            "worst_ns": self.worst_ns,
        }


class Meter:
    def __init__(self) -> None:
        self._lock = threading.RLock()
        """One for all gauges, so that they are read at one moment."""
        self._gauges: dict[str, Gauge] = {}
        self._cycles = Histogram()
        self._dead_letters = 0

    def gauge(self, address: str) -> Gauge:
        """Return where the figures of an actor belong; the actor keeps that, and asks once."""
        role = role_of(address)
        with self._lock:
            gauge = self._gauges.get(role)
            if gauge is None:
                gauge = self._gauges[role] = Gauge(self._lock, self._cycles)
            return gauge

    def lost(self) -> None:
        """Note a message to an address where nobody is any more."""
        with self._lock:
            self._dead_letters += 1

    def plain(self) -> dict[str, Any]:
        """Return everything as plain values, taken at one moment."""
        with self._lock:
            return {
                "actors": {role: it.plain() for role, it in self._at_work()},
                "flows": sorted(
                    [sender, receiver, kind.__name__, count]
                    for receiver, it in self._gauges.items()
                    for (sender, kind), count in it.flows.items()
                ),
                "cycles": self._cycles.plain(),
                "dead_letters": self._dead_letters,
            }

    def _at_work(self) -> list[tuple[str, Gauge]]:
        """List those of whom there is something to tell."""
        return sorted((role, it) for role, it in self._gauges.items() if it.messages)
