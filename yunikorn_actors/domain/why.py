"""Why an ask waits: the words in which it is said.

One obstacle is named for each ask, the first that refuses it. Another one behind it shows only when
the first is gone.
"""

from enum import StrEnum

from msgspec import Struct, field

from yunikorn_actors.domain.resource import Resource


class Cause(StrEnum):
    RM_PAUSED = "RM_PAUSED"
    APP_STATE = "APP_STATE"
    PARKED = "PARKED"
    ON_ITS_WAY = "ON_ITS_WAY"
    BACKING_OFF = "BACKING_OFF"
    GANG_HELD = "GANG_HELD"
    GANG_WAITS = "GANG_WAITS"
    APP_LIMIT = "APP_LIMIT"
    STATEAWARE_BUSY = "STATEAWARE_BUSY"
    QUEUE_LIMIT = "QUEUE_LIMIT"
    CLUSTER_FULL = "CLUSTER_FULL"
    USER_LIMIT = "USER_LIMIT"
    NODE_KEPT = "NODE_KEPT"
    NO_NODE = "NO_NODE"
    PREDICATES = "PREDICATES"
    NEXT = "NEXT"


class NodeCheck(StrEnum):
    """The checks of a node, in the order in which they are made."""

    NO_WORK = "NO_WORK"
    KEPT = "KEPT"
    TOO_SMALL = "TOO_SMALL"
    FULL = "FULL"
    REFUSED = "REFUSED"


class NearMiss(Struct, frozen=True, kw_only=True):
    """The node that is short by the least."""

    node_id: str
    check: NodeCheck
    lacks: Resource


class Obstacle(Struct, frozen=True, kw_only=True, omit_defaults=True):
    cause: Cause
    text: str
    remedy: str
    """Which change would take this obstacle away."""
    where: str = ""
    """Path of the queue, or id of the node."""
    lacks: Resource = field(default_factory=dict)
    """How much room is missing there."""
    nodes: dict[str, int] = field(default_factory=dict)
    """For each check, how many nodes fail it first."""
    near_miss: NearMiss | None = None
    refusals: dict[str, int] = field(default_factory=dict)
    """For each reason of the resource manager's predicate, how many nodes it refused."""
    until_ns: int = 0
    """When the ask is tried again without any other change; 0 if that does not happen."""


class Preempting(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether victims are preempted for the ask."""

    text: str
    victims: tuple[str, ...] = ()
    """Keys of the preempted allocations whose end is not confirmed yet."""
    tried_ns: int = 0
    """When the last search found no victims; 0 if none has failed."""
    next_ns: int = 0
    """When the next search may begin; 0 if it does not wait for a time."""


class Why(Struct, frozen=True, kw_only=True):
    application_id: str
    key: str
    repeats: int
    """How many of its repeats wait."""
    since_ns: int
    reserved: tuple[str, ...]
    """Nodes that are reserved for it."""
    obstacle: Obstacle
    preempting: Preempting | None = None
    """None if no repeat of it waits for room."""

    def __str__(self) -> str:
        return f"{self.key} of {self.application_id}: {self.obstacle.text}; {self.obstacle.remedy}"
