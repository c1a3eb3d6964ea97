"""What is true of asks, allocations and reservations."""

from collections.abc import Iterator

from msgspec import Struct

from yunikorn_actors.state.allocations import AskSpec, WaitingState
from yunikorn_actors.state.facts.fact import Base
from yunikorn_actors.state.gates import GateKind
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.values.devices import Devices
from yunikorn_actors.values.ids import NO_PROPOSAL
from yunikorn_actors.values.resource import Resource


class AskAdded(Base, frozen=True, kw_only=True):
    spec: AskSpec
    created_ns: int
    sequence: int
    at_ns: int


class AsksAdded(Base, frozen=True, kw_only=True):
    """A run: asks of one application that came one right after the other, of one size."""

    application_id: str
    specs: tuple[AskSpec, ...]
    first_sequence: int
    """Of the first; each has the next one."""
    at_ns: int

    @property
    def count(self) -> int:
        return len(self.specs)

    def created_ns(self, spec: AskSpec) -> int:
        return self.at_ns if spec.created_ns is None else spec.created_ns

    def parts(self) -> Iterator[AskAdded]:
        """Say it one by one."""
        for sequence, spec in enumerate(self.specs, self.first_sequence):
            yield AskAdded(
                spec=spec,
                created_ns=self.created_ns(spec),
                sequence=sequence,
                at_ns=self.at_ns,
            )


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
    """The resource manager is notified how an ask that waits is doing."""

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
    devices: Devices = ()
    """The numbers of the devices of its node that it gets."""


class Charged(Struct, frozen=True, kw_only=True, gc=False):
    """Into whose books an allocation is written."""

    application_id: str
    queue: str
    user: str
    group: str = ""


class AllocationsCommitted(Base, frozen=True, kw_only=True):
    """A run: asks of one size that got their places one right after the other."""

    charged: tuple[Charged, ...]
    """Each application once."""
    members: tuple[int, ...]
    """Of each allocation, the place of its application among those; and so on in this order."""
    keys: tuple[str, ...]
    uuids: tuple[str, ...]
    node_ids: tuple[str, ...]
    proposal_ids: tuple[int, ...]
    resource: Resource
    """Of each of them."""
    at_ns: int

    @property
    def count(self) -> int:
        return len(self.keys)

    def parts(self) -> Iterator[AllocationCommitted]:
        """Say it one by one."""
        columns = (self.members, self.keys, self.uuids, self.node_ids, self.proposal_ids)
        for member, key, uuid, node_id, proposal_id in zip(*columns, strict=True):
            charged = self.charged[member]
            yield AllocationCommitted(
                application_id=charged.application_id,
                queue=charged.queue,
                user=charged.user,
                group=charged.group,
                key=key,
                uuid=uuid,
                node_id=node_id,
                resource=self.resource,
                at_ns=self.at_ns,
                proposal_id=proposal_id,
            )


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
    devices: Devices = ()


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
    devices: Devices = ()
    """Those that it has from now on."""


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
    given_back: TerminationType | None = None
    """Why the core had asked it back, where this is the confirmation; else None."""
    placeholder: bool = False
    with_ask: bool = False
    """The release meant its ask too, of which nothing is left now."""
