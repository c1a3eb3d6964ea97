"""What a machine is, and all effects that it can return.

A machine is a state machine without I/O: it takes one message and the time and returns effects,
which are data. Its driver (threads, direct, simulator, replay) carries the effects out, or only
compares them. Within one handler effects happen in their order.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar, Final, Protocol, runtime_checkable

from msgspec import Struct

from yunikorn_actors.messages.base import CONTEXT, GATEWAY, Envelope, Message, is_reply
from yunikorn_actors.messages.queries import Declined
from yunikorn_actors.messages.scheduling import MachineFailed
from yunikorn_actors.values.durations import MINUTE
from yunikorn_actors.values.masking import masked_repr

FAILED_MEANWHILE = "who was asked has failed and is being replaced: ask again"


class Send(Struct, frozen=True, kw_only=True):
    to: str
    message: Message


class SetTimer(Struct, frozen=True, kw_only=True):
    """Deliver the message to this very mailbox when the time comes.

    A name that is armed already is armed anew.
    """

    name: str
    due_ns: int
    message: Message


class CancelTimer(Struct, frozen=True, kw_only=True):
    """A firing may be on its way already, so its message carries a generation as well."""

    name: str


class CallRm(Struct, frozen=True, kw_only=True):
    """Call one method of a resource manager's callback, in order, outside the core."""

    callback: str
    call: Message


class StartMachine(Struct, frozen=True, kw_only=True):
    """A machine that is at this address already is stopped."""

    address: str
    kind: str
    arguments: dict[str, Any]


class StopMachine(Struct, frozen=True, kw_only=True):
    """Nothing is delivered to this address any more."""

    address: str


class Log(Struct, frozen=True, kw_only=True):
    """One line for the log; without a log it is dropped."""

    text: str
    is_warning: bool = False
    is_alarm: bool = False
    """It is written to standard error as well, with a log or without one."""


class StopCore(Struct, frozen=True, kw_only=True):
    """Machines fail again and again: stop as for a failure of the truth, with the first of them."""


# A small closed set: every driver has a branch for each. None waits for an answer, as that would
# stop the thread on which everything runs.
Effect = Send | SetTimer | CancelTimer | CallRm | StartMachine | StopMachine | StopCore | Log


class Machine(Protocol):
    def handle(self, message: Message, now_ns: int) -> list[Effect]: ...

    def canonical_state(self) -> dict[str, Any]:
        """Everything the machine knows, as plain values: what a state digest is made of."""
        ...


class Joining:
    """A machine that handles some messages together with others that wait behind them.

    No protocol and no `ABC`: the drivers ask at each message whether a machine is one, and for
    these Python runs code of its own to find out, longer than many a handler.
    """

    joined: ClassVar[frozenset[type[Message]]]
    """The kinds that go to `handle_together`, also one by itself; all others go to `handle`.

    A set, because the drivers look at each message, and a call costs more.
    """

    @property
    def is_at_rest(self) -> bool:
        """Whether no long work is under way for any message it got."""
        return True

    def joins(self, first: Message, message: Message) -> bool:
        """Whether a message may be handled with `first`, one of `joined`, and those between."""
        raise NotImplementedError

    def handle_together(self, messages: Iterator[Message], now_ns: int) -> list[Effect]:
        """Handle one after the other, all at one moment; the driver decides how many there are.

        Each is asked for when the one before it is done, so the driver may look at its clock.
        """
        raise NotImplementedError


# Runtime-checkable, because a driver asks only when something has failed.
@runtime_checkable
class Replaceable(Machine, Protocol):
    """A machine that holds no truth: another can take its place when it fails."""

    def legacy(self) -> dict[str, Any]:
        """Read the counts that have to go on. It has failed, so nothing is worked out here."""
        ...


def report_of(machine: Replaceable, address: str, error: Exception) -> Send:
    """Return the report that a driver sends, from its address, for a machine that has failed."""
    # `legacy` must not work anything out: the machine stands in the middle of what raised.
    failed = MachineFailed(address=address, failure=masked_repr(error), legacy=machine.legacy())
    return Send(to=CONTEXT, message=failed)


def refusal_of(envelope: Envelope) -> Send | None:
    """Return the refusal for a caller whose question reached a failed machine; None for others."""
    reply_to = getattr(envelope.message, "reply_to", "")
    # Only callers from outside wait; machines have `MachineFailed`.
    if envelope.sender != GATEWAY or not is_reply(reply_to):
        return None
    return Send(to=reply_to, message=Declined(reason=FAILED_MEANWHILE))


class InvariantViolation(Exception):
    """The core contradicts itself. `story` is what led there, oldest first."""

    def __init__(self, what: str, story: tuple[str, ...] = ()) -> None:
        super().__init__(what)
        self.what = what
        self.story = story


WITHIN_NS: Final = MINUTE
REPLACED_MAX: Final = 3
"""Failures within a minute that a new machine makes good; one more says that it does not help."""


class Failures:
    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._recent: list[int] = []

    def may_go_on(self, role: str, now_ns: int) -> bool:
        """Count one more failure; return whether to replace the machine."""
        self._counts[role] += 1
        # By a window and not by a total: a core may live for years.
        self._recent = [at_ns for at_ns in self._recent if now_ns - at_ns < WITHIN_NS]
        self._recent.append(now_ns)
        return len(self._recent) <= REPLACED_MAX

    def canonical(self) -> dict[str, int]:
        return dict(sorted(self._counts.items()))
