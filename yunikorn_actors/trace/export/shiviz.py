"""The recording as a log for ShiViz: an event for each message, with its vector clock.

The first line is what ShiViz reads the log with, the second what tells several runs apart: each
begins with its name. So runs can be put behind each other, and be compared there.

A clock counts the events that are in the picture. What a filter leaves out has none, and still
hands on what it knows: so before and after stay what they were.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from yunikorn_actors.messages.base import Delivery
from yunikorn_actors.messages.codec import type_name
from yunikorn_actors.recording.plain_text import printable
from yunikorn_actors.trace.export.timeline import Limit, Step, Timeline
from yunikorn_actors.trace.filters import DeliveryFilter
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.text.summary import message_summary

PARSER: Final = r"(?<host>\S+) (?<clock>\{.*\})\t(?<type>\S+) (?<event>.*)"
DELIMITER: Final = "=== (?<trace>.+) ==="
EVENTS: Final = Limit("a log for ShiViz", 2_000)

Clock = dict[str, int]


def shiviz(trace: TraceReader, sieve: DeliveryFilter) -> Iterator[str]:
    yield PARSER
    yield DELIMITER
    yield f"=== {printable(trace.path.name)} ==="
    clocks = _Clocks()
    for step in EVENTS.of(trace, Timeline(trace.header).steps(trace, sieve)):
        clock = clocks.take(step)
        if step.is_wanted:
            yield _event(step.delivery, clock)


def _event(delivery: Delivery, clock: Clock) -> str:
    host, kind = word(delivery.mailbox), word(type_name(delivery.message))
    says = printable(f"{kind} {message_summary(delivery.message)}".rstrip())
    return f"{host} {msgspec.json.encode(clock).decode()}\t{kind} {says}"


class _Clocks:
    """What each step knows of all mailboxes: how many of their events came before it."""

    def __init__(self) -> None:
        self._of: dict[str, Clock] = {}
        """Of the last step of each mailbox."""
        self._at: dict[tuple[str, int], Clock] = {}
        """Of each step; those that tell the same share it."""

    def take(self, step: Step) -> Clock:
        delivery = step.delivery
        mailbox = delivery.mailbox
        own, cause = self._of.get(mailbox, {}), self._at.get(delivery.cause, {})
        clock = _later(own, cause)
        if step.is_wanted:
            host = word(mailbox)
            clock = {**clock, host: clock.get(host, 0) + 1}
        self._of[mailbox] = self._at[mailbox, delivery.step] = clock
        return clock


def _later(one: Clock, other: Clock) -> Clock:
    if all(one.get(host, 0) >= count for host, count in other.items()):
        return one
    return {host: max(one.get(host, 0), other.get(host, 0)) for host in (one | other)}


def word(text: str) -> str:
    """Write a name without blanks, so that no two become the same."""
    if text.isprintable() and not any(char.isspace() or char == "%" for char in text):
        return text
    return "".join(
        char if char.isprintable() and not char.isspace() and char != "%" else f"%{ord(char):02x}"
        for char in text
    )
