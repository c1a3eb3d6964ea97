"""Quiescence: whether a core comes to rest; if messages go round, the run ends and names them.

A core works because something came from outside, or because time has passed. That work ends: each
cycle of a planner places or files something, and no proposal is refused twice on the same facts
(`drivers/simulator/refusal_checks.py`).
"""

from collections import deque
from collections.abc import Sequence

from yunikorn_actors.errors import CoreError
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.machine import Effect, Machine, Send
from yunikorn_actors.messages.base import (
    CONTEXT,
    EVENT_PUBLISHER,
    GATEWAY,
    Delivery,
    Message,
    is_callback,
)
from yunikorn_actors.messages.scheduling import FactsAppended, RunCycle

CYCLES_MAX = 1_000
"""Cycles of planners without a fact, beside one for each ask that waits."""
MESSAGES_MAX = 1_000_000
"""Messages without a stimulus, beside a hundred for each repeat of an ask that waits or runs."""
_ROUND_MAX = 40
"""The longest round that is looked for, and the number of messages that are remembered twice."""


class NoRest(CoreError, TimeoutError):
    """The core did not come to rest: messages keep coming though nothing new has happened."""


class RestWatch:
    """Counts what was delivered since something came from outside, or time went on.

    Long work is not taken for a loop. A planner that files 50,000 asks one by one needs fewer
    cycles than there are asks, and a planner that places them records facts.
    """

    def __init__(self) -> None:
        self._now_ns = 0
        self._cycles = 0
        """Cycles of planners since the last fact, stimulus or moment."""
        self._messages = 0
        """Messages since the last stimulus or moment."""
        self._cycles_max = CYCLES_MAX
        self._messages_max = MESSAGES_MAX
        self._is_raised = False
        """Both bounds are as high as the work that there was when the first was reached."""
        self._recent: deque[tuple[str, type[Message]]] = deque(maxlen=2 * _ROUND_MAX)

    def note(self, delivery: Delivery, effects: Sequence[Effect], context: Machine | None) -> None:
        """Count a message that was handled; raise NoRest if too many came without a reason."""
        # Something from outside, or another moment: the core has a reason to work again.
        if delivery.at_ns != self._now_ns or delivery.sender == GATEWAY:
            self._now_ns = delivery.at_ns
            self._cycles = self._messages = 0
            self._recent.clear()
            self._cycles_max, self._messages_max = CYCLES_MAX, MESSAGES_MAX
            self._is_raised = False
            return
        self._messages += 1
        kind = type(delivery.message)
        self._recent.append((delivery.mailbox, kind))
        # News restart the count of cycles, never that of messages: machines may go round with
        # facts.
        if self._cycles and _brings_news(delivery, effects):
            self._cycles = 0
        if kind is RunCycle:
            self._cycles += 1
        if self._cycles > self._cycles_max or self._messages > self._messages_max:
            self._judge(context)

    def _judge(self, context: Machine | None) -> None:
        """Raise the bounds by the work that there is, once: work that makes work goes round too."""
        if not self._is_raised:
            # Counting all asks takes a while, so it is done only where the small bound is reached.
            self._is_raised = True
            asks, repeats = _work_of(context)
            self._cycles_max += asks
            self._messages_max += 100 * repeats
        if self._cycles > self._cycles_max:
            raise NoRest(
                f"does not come to rest: {self._cycles} cycles of planning and no fact since "
                f"{_moment(self._now_ns)}, and nothing came from outside; {self._round()}"
            )
        if self._messages > self._messages_max:
            raise NoRest(
                f"does not come to rest: {self._messages} messages since {_moment(self._now_ns)}, "
                f"and nothing came from outside; {self._round()}"
            )

    def _round(self) -> str:
        """Name the messages that go round, each with its mailbox."""
        recent = list(self._recent)
        # The shortest round that the last messages repeat.
        for length in range(1, _ROUND_MAX + 1):
            if recent[-length:] == recent[-2 * length : -length]:
                return "these go round: " + ", ".join(map(_named, recent[-length:]))
        return "the last were: " + ", ".join(map(_named, recent[-8:]))


def _work_of(context: Machine | None) -> tuple[int, int]:
    """Count the asks, and their repeats that wait or run."""
    assert isinstance(context, Context)
    asks = repeats = 0
    for partition in context.partitions.values():
        for app in partition.state.applications.values():
            asks += len(app.asks)
            repeats += len(app.allocations) + sum(it.remaining for it in app.asks.values())
    return asks, repeats


def _named(message: tuple[str, type[Message]]) -> str:
    mailbox, kind = message
    return f"{kind.__name__} to {mailbox}"


def _moment(now_ns: int) -> str:
    return f"virtual time {now_ns / 1e9:.3f} s"


def _brings_news(delivery: Delivery, effects: Sequence[Effect]) -> bool:
    """Whether a planner may find more than before: a fact, or what a resource manager answers.

    Two managers that only answer each other go round as well, so their messages are still counted.
    """
    if is_callback(delivery.sender):
        return True
    return delivery.mailbox == CONTEXT and any(map(_has_facts, effects))


def _has_facts(effect: Effect) -> bool:
    return (
        isinstance(effect, Send)
        and effect.to == EVENT_PUBLISHER
        and isinstance(effect.message, FactsAppended)
    )
