"""The base of messages, their envelope, and the addresses of mailboxes.

An address is a string that names a mailbox. `cause` is the message that was being handled when this
one was sent, as mailbox and step: the causes give the order of happens-before. `stimulus` is the
request from outside that started the chain. Drivers fill in both; machines never see an envelope.
"""

from typing import NamedTuple

from msgspec import Struct

RM_PROXY = "rm_proxy"
CONTEXT = "context"
EVENT_PUBLISHER = "event_publisher"
GATEWAY = "gateway"
TIMER = "timer"

SCHEDULER = "scheduler"
CALLBACK = "rm"
REPLY = "reply"
"""Roles that several mailboxes have."""

_SCHEDULER = f"{SCHEDULER}:"
_CALLBACK = f"{CALLBACK}:"
_STREAM = "events:"
_FOLLOWER = "follower:"
_REPLY = f"{REPLY}:"


class Message(Struct, frozen=True, kw_only=True):
    """The base of all messages.

    Subclasses repeat `frozen=True, kw_only=True`, because msgspec does not inherit `kw_only`.
    """


class Cause(NamedTuple):
    mailbox: str
    step: int


class Envelope(NamedTuple):
    sender: str
    message: Message
    cause: Cause
    stimulus: str
    sent_ns: int | None = None
    """When it was made, if anybody records that."""


def role_of(address: str) -> str:
    """Name what an address stands for: all schedulers are one, and all callbacks, and replies."""
    return address.partition(":")[0]


def scheduler_address(partition: str, epoch: int, number: int = 0) -> str:
    """Name the mailbox of one scheduler; others of the same partition have other numbers."""
    return f"{_SCHEDULER}{partition}#{epoch}" + (f".{number}" if number else "")


def callback_address(rm_id: str, registration: int) -> str:
    """Name the mailbox of the callback of one registration.

    A second registration of the same resource manager has another name, so it never gets a message
    for the first.
    """
    return f"{_CALLBACK}{rm_id}#{registration}"


def is_callback_of(address: str, rm_id: str) -> bool:
    return is_manager(address) and manager_of(address) == rm_id


def is_manager(address: str) -> bool:
    """Whether the receiver is the callback of a resource manager."""
    return address.startswith(_CALLBACK)


def manager_of(address: str) -> str:
    """Name the resource manager of a callback."""
    return address.removeprefix(_CALLBACK).rpartition("#")[0]


def stream_address(number: int) -> str:
    """Name the mailbox of one reader of events."""
    return f"{_STREAM}{number}"


def follower_address(number: int) -> str:
    """Name the mailbox of one follower of the truth."""
    return f"{_FOLLOWER}{number}"


def reply_address(number: int) -> str:
    """Name the slot of a caller that waits for an answer."""
    return f"{_REPLY}{number}"


def is_reply(address: str) -> bool:
    return address.startswith(_REPLY)


def is_callback(address: str) -> bool:
    """Whether the receiver is a callback: of a resource manager, a reader of events, a follower."""
    return address.startswith((_CALLBACK, _STREAM, _FOLLOWER))


def is_outside(address: str) -> bool:
    """Whether the address is that of a user of the core, not of a machine."""
    return address == GATEWAY or is_callback(address) or is_reply(address)


class Delivery(NamedTuple):
    """One handled message; a trace is a series of these."""

    mailbox: str
    step: int
    sender: str
    cause: Cause
    stimulus: str
    at_ns: int
    message: Message
    joined: bool = False
    """Whether it was handled together with the one before it in this mailbox, as one."""
    sent_ns: int | None = None
    """When it was sent, on a real clock. Neither this nor the next is a part of what happened."""
    previous_took_ns: int | None = None
    """How long the handling before this one took in the same mailbox."""
