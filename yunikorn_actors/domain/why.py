"""Why an ask waits: the words in which it is said.

One obstacle is named for each ask, the first that refuses it; what stands behind that one shows
when it is gone.
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
    """What a node fails first, in this order."""

    NO_WORK = "NO_WORK"
    KEPT = "KEPT"
    TOO_SMALL = "TOO_SMALL"
    FULL = "FULL"
    REFUSED = "REFUSED"


class NearMiss(Struct, frozen=True, kw_only=True):
    """The node that lacks least."""

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
    """How much more room it would take there."""
    nodes: dict[str, int] = field(default_factory=dict)
    """How many nodes fail which check first."""
    near_miss: NearMiss | None = None
    refusals: dict[str, int] = field(default_factory=dict)
    """What the resource manager's predicate said, and of how many nodes."""
    until_ns: int = 0
    """When time alone will change it; 0 where it will not."""


class Preempting(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether victims are preempted for the ask."""

    text: str
    victims: tuple[str, ...] = ()
    """Keys of those who go and are not confirmed yet."""
    tried_ns: int = 0
    """When no victim was found; 0 if that did not happen."""
    next_ns: int = 0
    """Not before then; 0 where time is not what it waits for."""


class Why(Struct, frozen=True, kw_only=True):
    application_id: str
    key: str
    repeats: int
    """How many of its repeats wait."""
    since_ns: int
    reserved: tuple[str, ...]
    """Nodes that are kept for it."""
    obstacle: Obstacle
    preempting: Preempting | None = None
    """None where nothing of it waits for room."""

    def __str__(self) -> str:
        return f"{self.key} of {self.application_id}: {self.obstacle.text}; {self.obstacle.remedy}"
