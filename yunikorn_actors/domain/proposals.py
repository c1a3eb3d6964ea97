"""What a scheduler asks Context to do, and why Context may refuse.

A proposal is made on a view that may be old. Context checks everything again and settles each
proposal exactly once: by a fact that carries its id, or by a refusal with one of these reasons.
"""

from enum import StrEnum

from msgspec import Struct


class Refusal(StrEnum):
    ASK_GONE = "ASK_GONE"
    APP_STATE = "APP_STATE"
    APP_LIMIT = "APP_LIMIT"
    STATEAWARE_BUSY = "STATEAWARE_BUSY"
    NODE_GONE = "NODE_GONE"
    NODE_DRAINING = "NODE_DRAINING"
    NODE_FULL = "NODE_FULL"
    NODE_RESERVED = "NODE_RESERVED"
    RESERVATION_LIMIT = "RESERVATION_LIMIT"
    RESERVATION_GONE = "RESERVATION_GONE"
    USER_LIMIT = "USER_LIMIT"
    QUEUE_LIMIT = "QUEUE_LIMIT"
    RM_PAUSED = "RM_PAUSED"


class Allocate(Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """Give one repeat of an ask its place.

    The sequence says which ask: the key may have been cancelled and asked again since.
    """

    proposal_id: int
    application_id: str
    key: str
    sequence: int
    node_id: str


class Reserve(Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """Keep a node for one repeat of an ask that no node holds now."""

    proposal_id: int
    application_id: str
    key: str
    sequence: int
    node_id: str


class Unreserve(Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """Give a reserved node free: its ask has had no headroom for too long."""

    proposal_id: int
    application_id: str
    key: str
    sequence: int
    node_id: str


Proposal = Allocate | Reserve | Unreserve
