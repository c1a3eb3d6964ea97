"""Names of things and how they are written.

A partition of the core belongs to one resource manager, so its full name carries that manager:
`[rm-1]default`. The full form is used everywhere inside the core; the edge translates. A proposal
id is one integer that holds the number of the scheduler that made it, so that several schedulers
can work on one partition without ever meeting.
"""

from functools import lru_cache
from typing import Final

DEFAULT_PARTITION = "default"
NO_PROPOSAL = 0

NAMES_MAX: Final = 1_000
"""Names of partitions that are kept: each item of each request has one, and they are few."""

_SCHEDULER_SHIFT = 48


@lru_cache(NAMES_MAX)
def partition_name(rm_id: str, name: str) -> str:
    """Return the full name of a resource manager's partition; its own full name is kept.

    A name in brackets of another manager is just a name: nobody reaches into another's partition.
    """
    own = f"[{rm_id}]"
    return name if name.startswith(own) else f"{own}{name or DEFAULT_PARTITION}"


@lru_cache(NAMES_MAX)
def short_partition_name(full_name: str) -> str:
    """Return the name by which the resource manager knows the partition."""
    return full_name.rpartition("]")[2]


def manager_of_partition(full_name: str) -> str:
    """Return the resource manager that the partition belongs to."""
    return full_name[1 : -len(short_partition_name(full_name)) - 1]


def first_proposal_id(scheduler_number: int) -> int:
    """Return the id before the first one of this scheduler; ids count up from there."""
    return (scheduler_number + 1) << _SCHEDULER_SHIFT


def scheduler_of(proposal_id: int) -> int:
    """Return the number of the scheduler that made the proposal."""
    return (proposal_id >> _SCHEDULER_SHIFT) - 1
