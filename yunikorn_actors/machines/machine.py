"""What a machine is, and all that it can want.

A machine is a state machine without I/O: it takes one message and the time and returns effects,
which are data. Whoever drives it (threads, the simulator, a replay) carries the effects out, or
only compares them. Within one handler effects happen in their order.
"""

from typing import Any, Protocol

from msgspec import Struct

from yunikorn_actors.messages.base import Message


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
    address: str
    kind: str
    arguments: dict[str, Any]


class StopMachine(Struct, frozen=True, kw_only=True):
    """Nothing is delivered to this address any more."""

    address: str


class Log(Struct, frozen=True, kw_only=True):
    """One line for whoever reads the log; where there is no log it goes nowhere."""

    text: str


Effect = Send | SetTimer | CancelTimer | CallRm | StartMachine | StopMachine | Log


class Machine(Protocol):
    def handle(self, message: Message, now_ns: int) -> list[Effect]: ...

    def canonical_state(self) -> dict[str, Any]:
        """Everything the machine knows, as plain values: what a state digest is made of."""
        ...


class InvariantViolation(Exception):  # noqa: N818 - it names what happened, not who erred
    """The core contradicts itself. `story` is what led there, oldest first."""

    def __init__(self, what: str, story: tuple[str, ...] = ()) -> None:
        super().__init__(what)
        self.what = what
        self.story = story
