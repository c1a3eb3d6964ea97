"""What a policy is given: jobs, what becomes of them, and the answer of a gate.

A job is what starts as one: an ask, or a gang that is admitted as a whole.
"""

from msgspec import Struct

from yunikorn_actors.values.durations import NEVER_NS
from yunikorn_actors.values.resource import Resource


def declared_ns(text: str) -> int | None:
    """Return the run time that a tag declares, in seconds; None if it is no such number."""
    try:
        runtime_s = float(text)
    except ValueError:
        return None
    # Compared as floats: what is too large, or infinite, is no whole number.
    return round(runtime_s * 1e9) if 0 <= runtime_s < NEVER_NS / 1e9 else None


class Job(Struct, frozen=True, kw_only=True):
    """An ask that waits, or a gang that awaits its admission; a value of its own."""

    id: str
    """Of an ask the ids of its application and its own, with a slash; of a gang its application."""
    application_id: str
    queue: str
    user: str
    group: str
    size: Resource
    """What one of it takes."""
    count: int = 1
    """So many of that size: repeats of an ask. A gang is one of the size of all its members."""
    runtime_ns: int = NEVER_NS
    """How long it says that it will run; `NEVER_NS` if it says nothing."""
    submitted_ns: int
    priority: int = 0

    @property
    def total(self) -> Resource:
        """What all of it takes."""
        return {kind: self.count * quantity for kind, quantity in self.size.items()}

    def __deepcopy__(self, _: object) -> "Job":
        """It is a value; a gate that is a fold is copied with all that it keeps in each pass."""
        return self

    def end_ns(self, start_ns: int) -> int:
        """When it ends as declared, if it starts then."""
        return min(NEVER_NS, start_ns + self.runtime_ns)


class Running(Struct, frozen=True):
    """Work that runs, or is on its way to a node."""

    size: Resource
    end_ns: int
    """As declared; `NEVER_NS` if it says nothing."""


class Candidate(Struct, frozen=True, kw_only=True):
    """Work that may be preempted: what goes as one, an allocation or a whole application."""

    id: str
    """Of an allocation the ids of its application and of its ask, with a slash."""
    application_id: str
    queue: str
    user: str
    group: str
    size: Resource
    """All that comes free when it goes."""
    count: int
    """Of so many allocations."""
    priority: int
    """The highest of them."""
    started_ns: int
    """When the first of them was placed."""
    end_ns: int
    """As declared, of the last of them; `NEVER_NS` if one says nothing."""


class Hold(Struct, frozen=True):
    """The no of a gate."""

    reason: str
    """What `explain` says."""
    until_ns: int = 0
    """When the gate may say yes though nothing has happened; 0 if time alone changes nothing."""
    ends_pass: bool = False
    """Nobody behind this one may start either: the gate is not asked about them in this pass."""


class Sized(Struct, frozen=True, tag=True):
    """The cluster has another size now."""

    capacity: Resource


class Arrived(Struct, frozen=True, tag=True):
    """A job waits from now on."""

    job: Job


class Left(Struct, frozen=True, tag=True):
    """A job waits no more, and has not started."""

    job: Job


class Started(Struct, frozen=True, tag=True):
    """A job runs: its ask has a place for the first time, or its gang was admitted."""

    job: Job


class Ended(Struct, frozen=True, tag=True):
    """Nothing of a job that ran is left."""

    job: Job


Change = Sized | Arrived | Left | Started | Ended
"""What `observe` is given, in the order in which it became true."""
