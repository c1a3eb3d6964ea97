"""The messages of `extension.proto`, typed as those of the scheduler interface are."""

from enum import IntEnum

from yunikorn_actors import si
from yunikorn_actors.si.wire import Int64, Name, SiMessage, Text


class Kind(IntEnum):
    """What the core says to a resource manager."""

    KIND_UNKNOWN = 0
    ALLOCATIONS = 1
    APPLICATIONS = 2
    NODES = 3
    PREDICATES = 4
    PREEMPTION_PREDICATES = 5
    CONTAINER_STATES = 6
    EVENTS = 7
    STATE = 8


class Opening(SiMessage, frozen=True, kw_only=True):
    rm_id: Name = ""
    hears: tuple[Kind, ...] = ()
    registration: si.RegisterResourceManagerRequest | None = None
    config_is_default: bool = False


class Verdict(SiMessage, frozen=True, kw_only=True):
    reason: Text = ""


class Answer(SiMessage, frozen=True, kw_only=True):
    number: Int64 = 0
    verdict: Verdict | None = None
    preemption: si.PreemptionPredicatesResponse | None = None
    state: str | None = None
    failure: str | None = None


class Said(SiMessage, frozen=True, kw_only=True):
    opening: Opening | None = None
    allocations: si.AllocationRequest | None = None
    applications: si.ApplicationRequest | None = None
    nodes: si.NodeRequest | None = None
    answer: Answer | None = None


class Records(SiMessage, frozen=True, kw_only=True):
    records: tuple[si.EventRecord, ...] = ()
    missed: Int64 = 0


class StateDumpRequest(SiMessage, frozen=True, kw_only=True):
    pass


class Placement(SiMessage, frozen=True, kw_only=True):
    application_id: Name = ""
    queue: Name = ""
    by_last_resort: bool = False
    queues: tuple[Name, ...] = ()


class Grace(SiMessage, frozen=True, kw_only=True):
    uuid: Name = ""
    milliseconds: Int64 = 0


class Told(SiMessage, frozen=True, kw_only=True):
    number: Int64 = 0
    placements: tuple[Placement, ...] = ()
    graces: tuple[Grace, ...] = ()
    registered: si.RegisterResourceManagerResponse | None = None
    allocations: si.AllocationResponse | None = None
    applications: si.ApplicationResponse | None = None
    nodes: si.NodeResponse | None = None
    predicates: si.PredicatesArgs | None = None
    preemption_predicates: si.PreemptionPredicatesArgs | None = None
    container_state: si.UpdateContainerSchedulingStateRequest | None = None
    events: Records | None = None
    state: StateDumpRequest | None = None


class ResourceManager(SiMessage, frozen=True, kw_only=True):
    rm_id: Name = ""


class Done(SiMessage, frozen=True, kw_only=True):
    pass


class Question(SiMessage, frozen=True, kw_only=True):
    application_id: Name = ""
    allocation_key: Name = ""
    partition: Name = ""


class Simulation(SiMessage, frozen=True, kw_only=True):
    json: str = ""


class Explanation(SiMessage, frozen=True, kw_only=True):
    text: str = ""
    json: str = ""


class Piece(SiMessage, frozen=True, kw_only=True):
    json: bytes = b""


class EventsRequest(SiMessage, frozen=True, kw_only=True):
    first_id: Int64 = 0
    count: Int64 = 0


class EventsFound(SiMessage, frozen=True, kw_only=True):
    records: tuple[si.EventRecord, ...] = ()
    lowest_id: Int64 = 0
    highest_id: Int64 = 0


class EventStreamRequest(SiMessage, frozen=True, kw_only=True):
    history: Int64 = 0
