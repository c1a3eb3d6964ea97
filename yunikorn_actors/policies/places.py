"""The places where a policy decides, and what it sees there.

A policy is a class with one or several of these methods; it derives from nothing. What it is given
is read-only. With `observe` it is a fold: it keeps what it needs in its own attributes, and only
that method changes them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

from yunikorn_actors.policies.inputs import Candidate, Change, Hold, Job, Running
from yunikorn_actors.values.devices import Devices, Parts
from yunikorn_actors.values.resource import Resource

Key: TypeAlias = Any
"""Whatever compares with the other keys of the place: a number, a text, a tuple of them."""


class ApplicationSeen(Protocol):
    """An application of the leaf.

    Everything but `used`, `runtime_ns`, `size`, `priority` and `waited_ns` stays as it is; a policy
    whose key reads one of these names it in `reads`.
    """

    @property
    def id(self) -> str: ...
    @property
    def queue(self) -> str: ...
    @property
    def user(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def tags(self) -> Mapping[str, str]: ...
    @property
    def submitted_ns(self) -> int: ...
    @property
    def guaranteed(self) -> Resource:
        """What its queue is guaranteed."""

    @property
    def capacity(self) -> Resource:
        """Of the cluster, as it was when everything was measured last."""

    @property
    def used(self) -> Resource:
        """What it has, with what is on its way."""

    @property
    def runtime_ns(self) -> int:
        """How long the longest that waits of it says that it runs."""

    @property
    def size(self) -> Resource:
        """The largest that waits of it, a gang as a whole."""

    @property
    def priority(self) -> int:
        """The highest that waits of it; 0 if nothing waits."""

    @property
    def waited_ns(self) -> int:
        """How long ago it was submitted, as it was at the last multiple of `every_s` seconds."""


class QueueSeen(Protocol):
    """A queue among its siblings; its key may read all of it."""

    @property
    def path(self) -> str: ...
    @property
    def position(self) -> int: ...
    @property
    def used(self) -> Resource: ...
    @property
    def guaranteed(self) -> Resource: ...
    @property
    def due(self) -> Resource:
        """What its share is a share of: the guarantee, else the fair maximum."""


class NodeSeen(Protocol):
    """A node; `free` is what no decision has taken yet, and `parts` that of each device."""

    @property
    def id(self) -> str: ...
    @property
    def capacity(self) -> Resource: ...
    @property
    def free(self) -> Resource: ...
    @property
    def attributes(self) -> Mapping[str, str]: ...
    @property
    def model(self) -> str:
        """Of its devices."""

    @property
    def parts(self) -> Parts | None:
        """What is free of each device; None if it does not tell them apart."""


class Pool(Protocol):
    """What a gate sees: the room for its leaf, and what has been decided in this pass."""

    @property
    def now_ns(self) -> int: ...
    @property
    def queue(self) -> str: ...
    @property
    def waiting(self) -> Sequence[Job]:
        """All that waited when the pass began, in order."""

    @property
    def running(self) -> Sequence[Running]:
        """All that runs in the partition."""

    @property
    def held(self) -> Sequence[Job]:
        """Those before this one that do not start: for want of room, or by this gate."""

    def end_of(self, job: Job) -> int:
        """When it ends as declared, if it starts now."""

    def earliest(self, job: Job) -> int:
        """When it fits at last, if all that runs ends as declared; `NEVER_NS` if that is never."""

    def fits_beside(self, job: Job, other: Job, at_ns: int) -> bool:
        """Whether the job leaves room for the other one at that moment, while it runs itself."""


METHODS: Final[dict[str, tuple[str, ...]]] = {
    "application_key": ("app",),
    "ask_key": ("ask",),
    "queue_key": ("queue",),
    "score": ("node", "shape"),
    "devices": ("node", "shape", "free"),
    "may_start": ("job", "pool"),
    "victim_key": ("victim", "now_ns"),
    "observe": ("fact", "now_ns"),
}
"""What a policy may have, and what each is given."""


@runtime_checkable
class ApplicationOrder(Protocol):
    def application_key(self, app: ApplicationSeen) -> Key: ...


@runtime_checkable
class AsksOrder(Protocol):
    def ask_key(self, ask: Job) -> Key: ...


@runtime_checkable
class QueueOrder(Protocol):
    def queue_key(self, queue: QueueSeen) -> Key: ...


@runtime_checkable
class NodeScore(Protocol):
    def score(self, node: NodeSeen, shape: Resource) -> float:
        """Say how well the node suits an ask of this size; the lowest comes first."""


@runtime_checkable
class DeviceChoice(Protocol):
    """What a node score may have beside."""

    def devices(self, node: NodeSeen, shape: Resource, free: Parts) -> Devices | None:
        """Choose devices for an ask of this size; None leaves that to the core.

        `free` is what the ask may have of each.
        """


OwnScore: TypeAlias = Callable[[NodeSeen, Resource], float]
OwnDevices: TypeAlias = Callable[[NodeSeen, Resource, Parts], Devices | None]
"""The two as functions that cannot raise: what a policy says, guarded."""


@runtime_checkable
class Gate(Protocol):
    def may_start(self, job: Job, pool: Pool) -> Hold | None:
        """Say whether a job that has room may start now.

        The core asks in the order of the leaf, and not of a job that has no room.
        """


@runtime_checkable
class VictimOrder(Protocol):
    def victim_key(self, victim: Candidate, now_ns: int) -> Key:
        """Say whom an ask of this leaf preempts first, of those that it may: the lowest.

        Guarantees, fences and limits are the core's, and so is that what opted out, what runs an
        application, and then whole gangs go last, and as few of them as will do.
        """


@runtime_checkable
class Fold(Protocol):
    def observe(self, fact: Change, now_ns: int) -> None: ...
