"""Proposals: what a scheduler asks Context to do, and why Context may refuse.

A proposal is made on a view that may be old. Context checks everything again and resolves each
proposal exactly once: by a fact that carries its id, or by a refusal with one of these reasons.
"""

from enum import StrEnum
from typing import Self

from msgspec import Struct

from yunikorn_actors.state.allocations import Allocation, Ask, Beneficiary, WaitingState
from yunikorn_actors.state.gates import GateKind
from yunikorn_actors.values.devices import Devices
from yunikorn_actors.values.resource import Resource


class Refusal(StrEnum):
    ASK_GONE = "ASK_GONE"
    ASK_PARKED = "ASK_PARKED"
    APP_STATE = "APP_STATE"
    APP_LIMIT = "APP_LIMIT"
    STATEAWARE_BUSY = "STATEAWARE_BUSY"
    GANG_HELD = "GANG_HELD"
    NODE_GONE = "NODE_GONE"
    NODE_DRAINING = "NODE_DRAINING"
    NODE_FULL = "NODE_FULL"
    NODE_RESERVED = "NODE_RESERVED"
    RESERVATION_LIMIT = "RESERVATION_LIMIT"
    RESERVATION_GONE = "RESERVATION_GONE"
    USER_LIMIT = "USER_LIMIT"
    QUEUE_LIMIT = "QUEUE_LIMIT"
    PLACEHOLDER_GONE = "PLACEHOLDER_GONE"
    RM_PAUSED = "RM_PAUSED"
    VICTIM_GONE = "VICTIM_GONE"
    PREEMPTION_REFUSED = "PREEMPTION_REFUSED"


class Allocate(Struct, frozen=True, kw_only=True, tag=True, omit_defaults=True, gc=False):
    """Give one repeat of an ask its place.

    The sequence says which ask: the key may have been cancelled and asked again since.
    """

    proposal_id: int
    application_id: str
    key: str
    sequence: int
    node_id: str
    devices: Devices = ()
    """Which devices of the node it gets."""


class Reserve(Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """Keep a node for one repeat of an ask that no node holds now."""

    proposal_id: int
    application_id: str
    key: str
    sequence: int
    node_id: str


class Unreserve(Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """Give a reserved node free: its ask had no headroom, or no leave to start, for too long."""

    proposal_id: int
    application_id: str
    key: str
    sequence: int
    node_id: str


class VictimRef(Struct, frozen=True, kw_only=True, gc=False):
    application_id: str
    uuid: str

    @classmethod
    def to(cls, allocation: Allocation) -> Self:
        return cls(application_id=allocation.spec.application_id, uuid=allocation.uuid)


class AskRef(Struct, frozen=True, kw_only=True, gc=False):
    """One ask: another may come under its key."""

    application_id: str
    key: str
    sequence: int


class Preempt(Struct, frozen=True, kw_only=True, tag=True, omit_defaults=True, gc=False):
    """Have all of these go, or none.

    For an ask of this sequence, which gets the node; or for nobody, to enforce the quota of a
    queue. There may be no victim at all: then it is found that nothing is to be enforced, or that
    nobody may go for an ask that requires its node.
    """

    proposal_id: int
    beneficiary: Beneficiary
    victims: tuple[VictimRef, ...]
    sequence: int = 0
    node_id: str = ""
    gang: int = 0
    """Those of one plan with this number are for one gang, and stand or fall together."""


class AdmitGang(Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """Let the placeholders of a gang be placed: the queue path has room for all of it."""

    proposal_id: int
    application_id: str
    serial: int


class Replace(Struct, frozen=True, kw_only=True, tag=True, omit_defaults=True, gc=False):
    """Let a real ask take the place of a placeholder, on its node or on another."""

    proposal_id: int
    application_id: str
    key: str
    sequence: int
    placeholder: str
    node_id: str
    crosses: bool
    """It leaves the placeholder's node, and takes free room on another."""
    devices: Devices = ()
    """Those of the other node that it gets."""


class CancelPlaceholder(Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """Give up a placeholder that is too small for the member that came."""

    proposal_id: int
    application_id: str
    key: str
    sequence: int
    placeholder: str


Placing = Allocate | Reserve | Replace
"""What the predicates of a resource manager are asked about."""
Proposal = Placing | Unreserve | AdmitGang | CancelPlaceholder | Preempt


class Finding(Struct, frozen=True):
    ask: Ask
    state: WaitingState
    reason: str
    shortage: GateKind | None = None
    """None if the planner did not look."""
    available: Resource = {}
    refusals: dict[str, int] = {}
    """Reasons for which its resource manager refused nodes, and how many."""
