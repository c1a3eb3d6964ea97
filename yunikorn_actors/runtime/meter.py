"""How busy each actor is: messages, time in handlers and in mailboxes, and who sends what to whom.

A core has a meter only when somebody reads it. Actors are counted by their role, as those of
partitions and callbacks come and go, and so several threads may write the figures of one role.
"""

import threading
from bisect import bisect_left
from collections import Counter
from typing import Any, Final, NamedTuple

from yunikorn_actors.messages.base import Envelope
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


class Flow(NamedTuple):
    sender: str
    receiver: str
    message: str


class _Figures:
    """Of one role."""

    def __init__(self) -> None:
        self.waiting_ns = 0
        """In the mailbox, all messages together."""
        self.messages = 0
        self.handling = Histogram()
        self.worst_ns = 0


class Meter:
    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._figures: dict[str, _Figures] = {}
        self._flows: Counter[Flow] = Counter()
        self._cycles = Histogram()
        self._dead_letters = 0

    def arrived(self, address: str, envelope: Envelope, now_ns: int) -> None:
        flow = Flow(role_of(envelope.sender), role_of(address), type(envelope.message).__name__)
        waited_ns = 0 if envelope.sent_ns is None else max(0, now_ns - envelope.sent_ns)
        with self._lock:
            figures = self._of(flow.receiver)
            figures.messages += 1
            figures.waiting_ns += waited_ns
            self._flows[flow] += 1

    def took(self, address: str, kind: type, took_ns: int) -> None:
        """Note a handling; of several messages together it is one."""
        with self._lock:
            figures = self._of(role_of(address))
            figures.handling.note(took_ns)
            figures.worst_ns = max(figures.worst_ns, took_ns)
            if kind is RunCycle:
                self._cycles.note(took_ns)

    def lost(self) -> None:
        """Note a message to an address where nobody is any more."""
        with self._lock:
            self._dead_letters += 1

    def plain(self) -> dict[str, Any]:
        """Return everything as plain values, taken at one moment."""
        with self._lock:
            return {
                "actors": {
                    role: {
                        "messages": it.messages,
                        "waiting_ns": it.waiting_ns,
                        "handling": it.handling.plain(),
                        "worst_ns": it.worst_ns,
                    }
                    for role, it in sorted(self._figures.items())
                },
                "flows": [[*flow, count] for flow, count in sorted(self._flows.items())],
                "cycles": self._cycles.plain(),
                "dead_letters": self._dead_letters,
            }

    def _of(self, role: str) -> _Figures:
        figures = self._figures.get(role)
        if figures is None:
            figures = self._figures[role] = _Figures()
        return figures


def role_of(address: str) -> str:
    """Name what an address stands for: who has so many that they are no labels is one of them."""
    return address.partition(":")[0]
