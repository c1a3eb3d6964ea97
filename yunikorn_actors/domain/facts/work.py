"""What is true of asks, allocations and reservations."""

from yunikorn_actors.domain.allocation import AskSpec, WaitingState
from yunikorn_actors.domain.facts.base import Base
from yunikorn_actors.domain.gates import GateKind
from yunikorn_actors.domain.ids import NO_PROPOSAL
from yunikorn_actors.domain.resource import Resource
from yunikorn_actors.domain.termination import TerminationType


class AskAdded(Base, frozen=True, kw_only=True):
    spec: AskSpec
    created_ns: int
    sequence: int
    at_ns: int


class AskReplaced(Base, frozen=True, kw_only=True):
    """Sent again under its key: every field is new but the creation time."""

    spec: AskSpec
    at_ns: int


class AskRemoved(Base, frozen=True, kw_only=True):
    """What still waited of the ask is gone; its allocations live on."""

    application_id: str
    key: str
    resource: Resource
    type: TerminationType
    at_ns: int


class AskReported(Base, frozen=True, kw_only=True):
    """The resource manager is told how an ask that waits is doing."""

    application_id: str
    key: str
    state: WaitingState
    reason: str
    at_ns: int
    of_shortage: bool = False
    """That has a fact of its own."""


class AskShortageChanged(Base, frozen=True, kw_only=True):
    """What is left for an ask is too little, or was and is not any more."""

    application_id: str
    key: str
    queue: str
    old_shortage: GateKind
    shortage: GateKind
    resource: Resource
    available: Resource
    at_ns: int


class AskRefused(Base, frozen=True, kw_only=True):
    """Its resource manager has refused every node that has room for it."""

    application_id: str
    key: str
    refusals: dict[str, int]
    """The reasons, and of how many nodes."""
    at_ns: int


class AllocationCommitted(Base, frozen=True, kw_only=True):
    """One repeat of an ask has its place; by a proposal, or reported by the resource manager."""

    application_id: str
    queue: str
    user: str
    key: str
    uuid: str
    node_id: str
    resource: Resource
    at_ns: int
    proposal_id: int = NO_PROPOSAL
    group: str = ""


class AllocationRecovered(Base, frozen=True, kw_only=True):
    """Running work without an ask in this life of the core."""

    spec: AskSpec
    queue: str
    user: str
    uuid: str
    node_id: str
    created_ns: int
    sequence: int
    at_ns: int
    group: str = ""


class ReservationMade(Base, frozen=True, kw_only=True):
    application_id: str
    key: str
    node_id: str
    required: bool
    resource: Resource
    """Of the repeat that the node is kept for."""
    by_preemption: bool = False
    """Others have to go for it: the room counts as used from now on."""
    at_ns: int
    proposal_id: int = NO_PROPOSAL


class ReservationDropped(Base, frozen=True, kw_only=True):
    application_id: str
    key: str
    node_id: str
    reason: str
    resource: Resource
    at_ns: int
    proposal_id: int = NO_PROPOSAL


class AllocationResized(Base, frozen=True, kw_only=True):
    application_id: str
    queue: str
    user: str
    key: str
    uuid: str
    node_id: str
    old_resource: Resource
    resource: Resource
    at_ns: int
    group: str = ""


class ReleaseRequested(Base, frozen=True, kw_only=True):
    """The core wants the allocation back; it stays charged until the resource manager confirms."""

    application_id: str
    key: str
    uuid: str
    type: TerminationType
    message: str
    at_ns: int
    proposal_id: int = NO_PROPOSAL


class ConfirmationMissed(Base, frozen=True, kw_only=True):
    """The resource manager has not confirmed a release for too long; it is still waited for."""

    application_id: str
    key: str
    uuid: str
    type: TerminationType
    asked_back_ns: int
    at_ns: int


class AllocationReleased(Base, frozen=True, kw_only=True):
    """It is charged nowhere any more."""

    application_id: str
    queue: str
    user: str
    key: str
    uuid: str
    node_id: str
    resource: Resource
    type: TerminationType
    at_ns: int
    group: str = ""
    placeholder: bool = False
    with_ask: bool = False
    """The release meant its ask too, of which nothing is left now."""
