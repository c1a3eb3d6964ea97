"""What every message shares: the envelope, and the address book.

A mailbox is named by an address, which is a string. `cause` is the message that was being handled
when this one was sent, as mailbox and step: it gives happens-before for free. `stimulus` is the
request from outside that started the chain. Drivers fill in both; machines never see an envelope.
"""

from typing import NamedTuple

from msgspec import Struct

RM_PROXY = "rm_proxy"
CONTEXT = "context"
EVENT_PUBLISHER = "event_publisher"
GATEWAY = "gateway"
TIMER = "timer"

_SCHEDULER = "scheduler:"
_CALLBACK = "rm:"
_STREAM = "events:"
_REPLY = "reply:"


class Message(Struct, frozen=True, kw_only=True):
    """The base of all that travels.

    Subclasses spell `frozen=True, kw_only=True` again, because msgspec inherits `kw_only` not.
    """


class Cause(NamedTuple):
    mailbox: str
    step: int


class Envelope(NamedTuple):
    sender: str
    message: Message
    cause: Cause
    stimulus: str


def scheduler_address(partition: str, epoch: int, life: int = 0) -> str:
    """Name the mailbox of one scheduler; the next one of the same partition has another."""
    return f"{_SCHEDULER}{partition}#{epoch}" + (f".{life}" if life else "")


def callback_address(rm_id: str, registration: int) -> str:
    """Name the mailbox in front of one registration's callback.

    A second registration of the same resource manager has another one, so nothing of the first life
    reaches it.
    """
    return f"{_CALLBACK}{rm_id}#{registration}"


def is_callback_of(address: str, rm_id: str) -> bool:
    return address.rpartition("#")[0] == _CALLBACK + rm_id


def stream_address(number: int) -> str:
    """Name the mailbox in front of one reader of events."""
    return f"{_STREAM}{number}"


def reply_address(number: int) -> str:
    """Name the slot of a caller who waits for an answer."""
    return f"{_REPLY}{number}"


def is_reply(address: str) -> bool:
    return address.startswith(_REPLY)


def is_callback(address: str) -> bool:
    """The callee is outside the core: a resource manager, or a reader of events."""
    return address.startswith((_CALLBACK, _STREAM))


def is_outside(address: str) -> bool:
    """Whether a user of the core is there, and not a machine."""
    return address == GATEWAY or is_callback(address) or is_reply(address)


class Delivery(NamedTuple):
    """One message as it was handled: what a trace is made of."""

    mailbox: str
    step: int
    sender: str
    cause: Cause
    stimulus: str
    at_ns: int
    message: Message
