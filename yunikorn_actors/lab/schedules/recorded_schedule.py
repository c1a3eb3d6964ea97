"""Follows a recording in the simulator: each mailbox gets its messages in the recorded order.

Machines share nothing, so the same order in each mailbox gives the same run, whatever threads it
was recorded on. Written down by a `TapeWriter` that is a tape.

What was handled together comes when the last of it came: nobody saw before what it led to.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice

from yunikorn_actors.drivers.simulator.choosers import Channel, oldest
from yunikorn_actors.lab.harness import World, timer_name
from yunikorn_actors.lab.tapes.tape import Entry
from yunikorn_actors.lab.tapes.tape_names import message_name, subject
from yunikorn_actors.messages.base import (
    GATEWAY,
    TIMER,
    Delivery,
    Envelope,
    is_callback,
    is_outside,
)
from yunikorn_actors.scenario.step_structs import Advance


class Following:
    """First in, first out from where the recording cannot be followed, and after its end."""

    watched: frozenset[str] | None = None

    def __init__(self, deliveries: Iterable[Delivery]) -> None:
        # On threads a caller has its answer at once, without a mailbox.
        self._ahead = deque(_turns(it for it in deliveries if not _is_caller(it.mailbox)))
        self.lost = ""
        """The first recorded message that does not come in the simulator; empty if all do."""

    def choose(self, world: World) -> Channel | Entry | None:
        answers = (channel for channel in world.channels if _is_caller(channel[1]))
        answer = next(answers, None)
        if answer is not None or not self._ahead:
            return answer or (oldest(world.channels) if world.channels else None)
        wanted, *joined = self._ahead[0]
        channel = _channel_of(wanted, world)
        if channel is None:
            return self._bring(wanted, world)
        if wanted.at_ns > world.simulator.now_ns and world.next_step and _is_advance(world):
            # It was still under way when time went on.
            return None
        behind = tuple(_names_behind(channel, joined, world))
        if len(behind) < len(joined):
            return self._lose(joined[len(behind)], world)
        for name in behind:
            if name not in world.simulator.joining:
                return Entry("join", name)
        self._ahead.popleft()
        return channel

    def _bring(self, wanted: Delivery, world: World) -> Channel | Entry | None:
        """Do what sends the message: a step of the case, or a timer that fires."""
        is_open = bool(world.next_step)
        if is_open and wanted.sender in {GATEWAY, TIMER} and _is_advance(world):
            # Time goes on to the next timer, or to the end of the step.
            return None
        if wanted.sender == TIMER:
            name = _timer_of(wanted, world)
            if name:
                return Entry("fire", name)
        elif wanted.sender == GATEWAY and is_open:
            return Entry("do", world.next_step) if world.channels else None
        elif wanted.sender == GATEWAY and not world.script:
            # What is sent after the case is sent by the world itself.
            self._ahead.clear()
            return self.choose(world)
        return self._lose(wanted, world)

    def _lose(self, wanted: Delivery, world: World) -> Channel | Entry | None:
        self.lost = message_name(_envelope(wanted), wanted.mailbox)
        self._ahead.clear()
        return self.choose(world)

    def happened(self, event: str) -> None:
        """What comes next stands in the recording."""

    def confirmation(self, _: str) -> str:
        return ""


def _turns(deliveries: Iterable[Delivery]) -> Iterator[list[Delivery]]:
    """Put together what was handled together."""
    turns: list[list[Delivery]] = []
    last: dict[str, list[Delivery]] = {}
    for delivery in deliveries:
        turn = [delivery]
        if delivery.joined:
            # What is left in the place of the first is empty.
            turn = [*last[delivery.mailbox], delivery]
            last[delivery.mailbox].clear()
        last[delivery.mailbox] = turn
        turns.append(turn)
    return filter(None, turns)


def _names_behind(channel: Channel, joined: list[Delivery], world: World) -> Iterator[str]:
    """Name the messages that wait behind the first, as far as they are those that joined it."""
    behind = islice(world.channels[channel], 1, None)
    for (number, envelope), wanted in zip(behind, joined, strict=False):
        if not _is_like(envelope, wanted):
            return
        yield world.name_of(number)


def _is_caller(address: str) -> bool:
    return is_outside(address) and not is_callback(address)


def _is_advance(world: World) -> bool:
    return isinstance(world.script[0].step, Advance)


def _timer_of(wanted: Delivery, world: World) -> str:
    """Return how the tape calls the timer; empty if none like it is armed."""
    for (address, _), envelope in world.simulator.timers.armed():
        if address == wanted.mailbox and _is_like(envelope, wanted):
            return timer_name(envelope, address)
    return ""


def _channel_of(wanted: Delivery, world: World) -> Channel | None:
    """Find the channel in which the message is first; what callbacks say may come in two."""
    found = [
        (channel, queue[0][1].message)
        for channel, queue in world.channels.items()
        if channel[1] == wanted.mailbox and _is_like(queue[0][1], wanted)
    ]
    same = (channel for channel, message in found if message == wanted.message)
    return next(same, found[0][0] if found else None)


def _is_like(envelope: Envelope, wanted: Delivery) -> bool:
    message = envelope.message
    return (
        envelope.sender == wanted.sender
        and type(message) is type(wanted.message)
        and subject(message) == subject(wanted.message)
    )


def _envelope(delivery: Delivery) -> Envelope:
    return Envelope(delivery.sender, delivery.message, delivery.cause, delivery.stimulus)
