"""Choosers: which channel delivers next, and how much of it at once.

This is the only freedom in a simulated run. A channel keeps the order of its messages, so the
choice is between the first messages of channels. Where a machine handles several together, the
chooser says after each whether one more joins them.

Every draw uses `random()` of Python's generator, because no other of its methods promises the same
sequence in every version.
"""

from collections import deque
from random import Random
from typing import Protocol

from yunikorn_actors.messages.base import Envelope

Channel = tuple[str, str]
"""Sender and receiver."""
Channels = dict[Channel, deque[tuple[int, Envelope]]]
"""Those that are not empty. The number of a message tells when it was sent."""


JOINED_SHARE = 0.5
"""Half of what may be joined is."""


class Chooser(Protocol):
    def choose(self, channels: Channels) -> Channel: ...

    def joins(self) -> bool:
        """Whether the next message is handled together with those before it, where it may be."""
        ...


class Fifo:
    """Deliver in the order of sending and one by one, as one thread with one queue would."""

    def choose(self, channels: Channels) -> Channel:
        return oldest(channels)

    def joins(self) -> bool:
        return False


class Seeded:
    """Give every channel the same chance."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311 - a repeatable schedule, no secret
        # Apart, so that a seed draws the same channels as long as nothing is joined.
        self._joining = Random(f"{seed}, joining")  # noqa: S311 - as above

    def choose(self, channels: Channels) -> Channel:
        # Channels stand in the order in which they became non-empty: the same run gives the same
        # list.
        return tuple(channels)[int(self._random.random() * len(channels))]

    def joins(self) -> bool:
        return self._joining.random() < JOINED_SHARE


def oldest(channels: Channels) -> Channel:
    """Return the channel whose first message was sent before all others."""
    if len(channels) == 1:
        return next(iter(channels))
    return min((queue[0][0], channel) for channel, queue in channels.items())[1]


def chooser_of(seed: int) -> Chooser:
    """Seed 0 is plain first in, first out."""
    return Seeded(seed) if seed else Fifo()
