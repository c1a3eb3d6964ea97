"""Asks and the allocations that they turn into.

An ask may stand for several allocations (`max_allocations`): `remaining` counts the repeats that
still wait, and the ask is forgotten when none waits and none of its allocations lives. The identity
of an allocation is its UUID; the key is shared by all repeats of one ask.
"""

from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from yunikorn_actors.state.gates import GateKind
from yunikorn_actors.state.termination import FREES, TerminationType
from yunikorn_actors.values.devices import Devices, is_of_model
from yunikorn_actors.values.resource import Resource
from yunikorn_actors.values.tags import GPU_MODEL, TAG_PREDICATES, TAG_REQUIRED_NODE


class PreemptionRule(StrEnum):
    GUARANTEE = "guarantee"
    """A queue below its guarantee takes back what another uses above its own."""
    REQUIRED_NODE = "required node"
    QUOTA = "quota"
    """A queue is above a maximum that was lowered."""


class Beneficiary(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The ask or queue that victims make room for, and by which rule; a quota names no ask."""

    rule: PreemptionRule
    queue: str
    application_id: str = ""
    key: str = ""

    def in_words(self) -> str:
        """Say who it is: the ask, or the queue where a quota is enforced, and by which rule."""
        whom = f"{self.application_id} {self.key}" if self.key else self.queue
        return f"{whom} ({self.rule.value})"


class AskOrder(Struct, frozen=True, order=True, gc=False):
    """Where an ask stands among those of its application; the smaller is tried first.

    Priority first, then age; arrival decides between equals. It is no tuple, as the garbage
    collector would visit one for each ask that waits.
    """

    negated_priority: int
    created_ns: int
    sequence: int

    @property
    def priority(self) -> int:
        return -self.negated_priority


class WaitingState(StrEnum):
    """Which state of an ask the resource manager was sent last; each is sent on change only."""

    UNREPORTED = ""
    SCHEDULED = "SCHEDULED"
    RESERVED = "RESERVED"
    SKIPPED = "SKIPPED"
    FAILED = "FAILED"


Demand = tuple[tuple[tuple[str, int], ...], str]
"""Amounts, and the models of devices that will do, as a text."""


class AskSpec(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The ask as its resource manager sent it, or as it was reported running."""

    application_id: str
    key: str
    resource: Resource
    max_allocations: int = 1
    priority: int = 0
    task_group: str = ""
    placeholder: bool = False
    originator: bool = False
    required_node: str = ""
    gpu_model: str = ""
    """Models of devices that will do, if not all do."""
    allow_preempt_self: bool = True
    allow_preempt_other: bool = False
    timeout_ms: int = 0
    created_ns: int | None = None
    """From the creation time tag; without one the ask is as old as its arrival."""
    tags: dict[str, str] = field(default_factory=dict)
    later_form: bool = False
    """It came in `allocations`, and is answered in that form."""

    @property
    def has_predicates(self) -> bool:
        """Whether the resource manager, if it has predicates, is asked about each of its nodes."""
        return not self.tags or self.tags.get(TAG_PREDICATES) != "false"

    @property
    def is_choosy(self) -> bool:
        """Whether room is not enough: one node alone will do, or some models of devices."""
        return bool(self.required_node or self.gpu_model)

    def may_run_on(self, node_id: str) -> bool:
        return self.required_node in {"", node_id}

    @property
    def demand(self) -> Demand:
        """The needs that a node must meet: asks with equal needs may run on the same nodes."""
        return tuple(sorted(self.resource.items())), self.gpu_model

    @property
    def models(self) -> tuple[str, ...]:
        """The models of devices that will do; none if any will."""
        return tuple(self.gpu_model.split("|")) if self.gpu_model else ()

    def takes_model(self, model: str) -> bool:
        """Whether devices of this model will do, for an ask that needs devices."""
        return is_of_model(model, self.gpu_model)


# The translation fills these fields from this table, so a field by tag has one place.
TAGGED: Final = (("required_node", TAG_REQUIRED_NODE), ("gpu_model", GPU_MODEL))
"""Fields of an ask that are texts, for which the interface has tags: without one they are empty."""


class Ask(Struct, kw_only=True, gc=False):
    """An ask as it stands now; nothing in it leads back to it, so the collector need not look."""

    spec: AskSpec
    created_ns: int
    sequence: int
    remaining: int
    # Counts repeats that have ended, too: a new ask with fewer repeats cannot undo them.
    taken: int = 0
    """Repeats that have been allocated, whether or not they still live."""
    uuids: tuple[str, ...] | dict[str, None] = ()
    """Its allocations; a tuple while there is one at most, as of most asks, because it is small."""
    reported: WaitingState = field(default=WaitingState.UNREPORTED, name="told")
    shortage: GateKind = GateKind.NONE
    refused_ns: int | None = None
    """When it was last reported that its resource manager refuses every node that has room."""
    parked: int = 0
    """Repeats whose swap is in flight: neither waiting nor allocated."""
    reserved: tuple[str, ...] = ()
    """Nodes that are kept for it, at most one for each repeat that waits."""

    def gain(self, uuid: str) -> None:
        if not self.uuids:
            self.uuids = (uuid,)
            return
        if isinstance(self.uuids, tuple):
            self.uuids = dict.fromkeys(self.uuids)
        self.uuids[uuid] = None

    def lose(self, uuid: str) -> None:
        if isinstance(self.uuids, tuple):
            self.uuids = ()
        else:
            del self.uuids[uuid]

    @property
    def is_open(self) -> bool:
        """Something of it can be taken back: it waits, or is parked."""
        return bool(self.remaining or self.parked)

    @property
    def is_over(self) -> bool:
        """Nothing of it waits, is parked or lives."""
        return not (self.remaining or self.parked or self.uuids)

    def order(self) -> AskOrder:
        return AskOrder(-self.spec.priority, self.created_ns, self.sequence)


class Allocation(Struct, kw_only=True, gc=False):
    uuid: str
    spec: AskSpec
    node_id: str
    resource: Resource
    allocated_ns: int
    releasing: TerminationType | None = None
    """Why the core asked for it back; from then on it does not ask again (G12, G13)."""
    is_left_over: bool = False
    """It was asked back for a swap that is off, and nobody takes its room over."""
    is_moving: bool = False
    """It was asked back for a swap to another node, which holds the room for that already."""
    beneficiary: Beneficiary | None = None
    """For whom it was preempted."""

    instance_type: str = ""
    """Of its node when it was placed."""
    charged_s: int = 0
    """Seconds of its life that are in the history of its application already."""
    asked_back_ns: int = 0
    grace_ns: int = 0
    """The time that it had to end, as a victim; its queue may give another one by now."""
    is_overdue: bool = False
    """It was asked back long ago, and reported as never confirmed."""
    devices: Devices = ()
    """The numbers of its devices; empty if it has none, or its node does not tell them apart."""

    @property
    def may_be_released(self) -> bool:
        """Whether the core may ask for it back, for whatever reason."""
        return self.releasing is None

    @property
    def comes_free(self) -> bool:
        """Whether it is on its way out and leaves its room to anybody; all books ask this."""
        # A swap hands its room on to the member, so it frees none for others.
        return self.releasing in FREES or self.is_left_over

    @property
    def frees_node(self) -> bool:
        """As `comes_free`, for its node: a swap to another node needs no room here any more."""
        return self.comes_free or self.is_moving


class Reservation(Struct, frozen=True, kw_only=True):
    """A node is kept for one open repeat of an ask, or for as many repeats as have an earmark."""

    application_id: str
    key: str
    node_id: str
    required: bool
    """The ask can run on this node alone; such reservations share a node with their like only."""
    made_ns: int
    earmark: Resource | None = field(default=None, name="claim")
    """Room on its way that each repeat was promised; None for one that only waits.

    Earmarked ones share a node with their like only, and together promise what is there, once.
    """
    repeats: int = 1
    secured: Resource = {}
    """Room on the node that no other ask takes: its victims left it, or it was free when they were
    asked back and is needed beside theirs."""
    due: Resource = {}
    """What its victims were to make room for, if the ask requires the node: it may have become
    larger since. Empty in images of former versions."""
    former: tuple[str, ...] = ()
    """Victims that were on their way out for the ask, which requires the node, before this was
    made: it gave their room up with its reservation of that time."""

    @property
    def is_ordinary(self) -> bool:
        """It only waits: its ask could run elsewhere, and no victims are preempted for it."""
        return not self.required and self.earmark is None

    @property
    def promised(self) -> Resource:
        """The room of this node that is kept from others."""
        return {kind: size * self.repeats for kind, size in (self.earmark or {}).items()}


ReservationKey = tuple[str, str]
"""Of the reservations of a node: the application and the key of the ask."""


class ForeignAllocation(Struct, frozen=True, kw_only=True):
    """Work of another scheduler on a node: it takes room there and counts in no queue."""

    # Foreign work has no application: it is found by its key alone.
    key: str
    node_id: str
    resource: Resource
    tags: dict[str, str] = field(default_factory=dict)
    priority: int = 0
    created_ns: int = 0
