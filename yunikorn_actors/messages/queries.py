"""Questions from outside, each with the address of the one who asks, and their answers."""

from typing import Any

from yunikorn_actors.domain.why import Why
from yunikorn_actors.messages.base import Message
from yunikorn_actors.si import EventRecord


class StateDumpRequested(Message, frozen=True, kw_only=True):
    reply_to: str


class StateDump(Message, frozen=True, kw_only=True):
    state: dict[str, Any]


class ExplainRequested(Message, frozen=True, kw_only=True):
    """Why does this ask wait; without a key and an application, why do all of a partition.

    Without a partition the application tells which one is meant.
    """

    partition: str
    application_id: str
    key: str
    reply_to: str


class Explanation(Message, frozen=True, kw_only=True):
    """What waits and why, as the planner of the partition sees it.

    A Scheduler gives it to Context: one that is stopped before it answers must not leave the caller
    without an answer.
    """

    partition: str
    epoch: int
    reply_to: str
    as_of: int
    waiting: tuple[Why, ...]
    is_complete: bool
    """Whether nothing else waits that was asked about."""


class RmDumpRequested(Message, frozen=True, kw_only=True):
    """What has this resource manager to say of its own state."""

    rm_id: str
    reply_to: str


class RmDumpAnswered(Message, frozen=True, kw_only=True):
    """What its callback said, on its way back to RmProxy."""

    reply_to: str
    text: str
    error: str


class RmDumpDue(Message, frozen=True, kw_only=True):
    """No machine answered in time."""

    reply_to: str


class RmDump(Message, frozen=True, kw_only=True):
    """JSON, or why there is none."""

    text: str = ""
    error: str = ""


class EventsRequested(Message, frozen=True, kw_only=True):
    """Records from this id on, as many as asked for and stored."""

    first_id: int
    count: int
    reply_to: str


class EventsFound(Message, frozen=True, kw_only=True):
    records: tuple[EventRecord, ...]
    lowest_id: int
    highest_id: int


class EventStreamRequested(Message, frozen=True, kw_only=True):
    """Call `hearer` with the last records, as many as wished for, and with every new one."""

    hearer: str
    history: int
    reply_to: str


class EventStreamLeft(Message, frozen=True, kw_only=True):
    """This stream has no reader any more."""

    hearer: str


class Accepted(Message, frozen=True, kw_only=True):
    """A request that waits for its answer has been taken."""


class Declined(Message, frozen=True, kw_only=True):
    """A request that waits for its answer has been refused."""

    reason: str
