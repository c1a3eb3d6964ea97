"""What led to a message, and what it led to.

Every effect stands behind its cause in a recording. So one reading that keeps two numbers for each
message is enough to find all that came before one, and another to find what came of it.
"""

from array import array
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from msgspec import Struct

from yunikorn_actors.messages.base import Cause, Delivery
from yunikorn_actors.trace.read import TraceReader

_STEP_BITS: Final = 40
_STEP_MASK: Final = (1 << _STEP_BITS) - 1
_NOBODY: Final = -1


class Link(Struct, frozen=True, kw_only=True):
    """A message of the chain, and how many messages lead to it in the chain."""

    depth: int
    delivery: Delivery
    is_wanted: bool = False
    """Whether it is the one that was asked about."""


class NotThere(LookupError):  # noqa: N818 - it says what is the matter
    """The recording has no such step."""


class Causes:
    """Who caused whom, in eight bytes a message."""

    def __init__(self, deliveries: Iterable[Delivery]) -> None:
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []
        self._of: list[array[int]] = []
        """The causes of the steps of each mailbox."""
        self._first: list[int] = []
        """The number of the first step of each mailbox that is in the recording."""
        for delivery in deliveries:
            self._note(delivery)

    def _note(self, delivery: Delivery) -> None:
        number = self._number(delivery.mailbox)
        causes = self._of[number]
        if not causes:
            self._first[number] = delivery.step
        # A caller's mailbox counts its answers from one again, and those lead nowhere.
        if delivery.step == self._first[number] + len(causes):
            causes.append(self._packed(delivery.cause))

    def _number(self, mailbox: str) -> int:
        number = self._numbers.setdefault(mailbox, len(self._names))
        if number == len(self._names):
            self._names.append(mailbox)
            self._of.append(array("q"))
            self._first.append(0)
        return number

    def _packed(self, cause: Cause) -> int:
        return self._number(cause.mailbox) << _STEP_BITS | cause.step if cause.step else _NOBODY

    def of(self, step: Cause) -> Cause | None:
        """Return what caused a step; None if it came from outside, or that is not recorded."""
        number = self._numbers.get(step.mailbox)
        if number is None:
            return None
        position = step.step - self._first[number]
        if not 0 <= position < len(self._of[number]):
            return None
        packed = self._of[number][position]
        return (
            None
            if packed == _NOBODY
            else Cause(self._names[packed >> _STEP_BITS], packed & _STEP_MASK)
        )

    def up(self, step: Cause) -> list[Cause]:
        """Return the step and all before it, the first one first."""
        found: list[Cause] = []
        at: Cause | None = step
        while at is not None:
            found.append(at)
            at = self.of(at)
        return found[::-1]


def upwards(step: Cause, path: Path) -> list[Link]:
    """Read a recording twice, and return what led to a step, from outside down to it."""
    with TraceReader(path) as trace:
        steps = Causes(trace).up(step)
    depths = {it: depth for depth, it in enumerate(steps)}
    with TraceReader(path) as trace:
        found = {at: it for it in trace if (at := Cause(it.mailbox, it.step)) in depths}
    if step not in found:
        raise NotThere(f"{step.mailbox}/{step.step}")
    return [
        Link(depth=depth, delivery=found[it], is_wanted=it == step)
        for it, depth in depths.items()
        if it in found
    ]


def downwards(step: Cause, path: Path) -> list[Link]:
    """Return a step and all that it led to, each behind what caused it."""
    below: dict[Cause, list[Link]] = {}
    known: dict[Cause, Link] = {}
    with TraceReader(path) as trace:
        for delivery in trace:
            at, cause = Cause(delivery.mailbox, delivery.step), known.get(delivery.cause)
            if at == step:
                known[at] = Link(depth=0, delivery=delivery, is_wanted=True)
            elif cause is not None:
                known[at] = Link(depth=cause.depth + 1, delivery=delivery)
                below.setdefault(delivery.cause, []).append(known[at])
    if step not in known:
        raise NotThere(f"{step.mailbox}/{step.step}")
    return _in_order(known[step], below)


def _in_order(first: Link, below: dict[Cause, list[Link]]) -> list[Link]:
    found: list[Link] = []
    rest = [first]
    while rest:
        link = rest.pop()
        found.append(link)
        at = Cause(link.delivery.mailbox, link.delivery.step)
        rest.extend(reversed(below.get(at, ())))
    return found
