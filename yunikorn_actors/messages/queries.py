"""Questions from outside, each with an address for the answer, and the answers."""

from typing import Any

from msgspec import field

from yunikorn_actors.messages.base import Message
from yunikorn_actors.planning.reasons import WaitingAnswer, WaitingQuestion, Why
from yunikorn_actors.si import EventRecord


class StateDumpRequested(Message, frozen=True, kw_only=True, omit_defaults=True):
    reply_to: str
    is_whole: bool = False
    """With what asks and applications declared, and the time."""


class StateDump(Message, frozen=True, kw_only=True):
    state: dict[str, Any]


class CountsRequested(Message, frozen=True, kw_only=True):
    """Ask Context for the counters that facts do not carry."""

    reply_to: str


class CountsFound(Message, frozen=True, kw_only=True):
    """What Context has counted, and who failed."""

    issued_uuids: int
    stale_messages: int
    scheduling_errors: int
    """Asks that named an application that is not there."""
    rejected_asks: int
    refused_node_actions: int
    """Of partitions that are not there; others are facts."""
    failed_nodes: tuple[str, ...]
    failed_machines: dict[str, int]
    failed_policies: tuple[str, ...] = ()


class ExplainRequested(Message, frozen=True, kw_only=True):
    """Ask how an ask stands; without a key and an application, why asks of a partition wait.

    Without a partition it is that of the application.
    """

    partition: str
    application_id: str
    key: str
    reply_to: str
    waiting: WaitingQuestion | None = None
    """Count the asks of the partition that wait, a part at a time, instead of explaining each."""
    in_units: bool = False
    """Texts of the answer have amounts in units for people, not in base units."""
    with_victims: bool = False
    """Of one ask: say who is or would be preempted for it, and what stands against others."""


class Explanation(Message, frozen=True, kw_only=True):
    """Which asks wait and why, as the planner of the partition sees it.

    A Scheduler sends it to Context, not to the caller: if it is stopped before it answers, Context
    can still answer the caller.
    """

    partition: str
    epoch: int
    reply_to: str
    as_of: int
    waiting: tuple[Why, ...]
    """To a question about one ask that was placed or rejected, that one."""
    is_complete: bool
    """Whether these are all waiting asks of the question."""
    total: int = 0
    """How many there are."""
    causes: dict[str, int] = field(default_factory=dict)
    """How many of them wait for what first."""
    rejected: tuple[Why, ...] = ()
    """To a question about all: the asks that were rejected last."""
    counted: WaitingAnswer | None = None
    """To a question that counts."""


class RmDumpRequested(Message, frozen=True, kw_only=True):
    """Ask a resource manager for its own state."""

    rm_id: str
    reply_to: str


class RmDumpAnswered(Message, frozen=True, kw_only=True):
    """The answer of its callback, on its way back to RmProxy."""

    reply_to: str
    text: str
    error: str


class RmDumpDue(Message, frozen=True, kw_only=True):
    """The resource manager did not answer in time."""

    reply_to: str


class RmDump(Message, frozen=True, kw_only=True):
    """The state as JSON, or the reason why there is none."""

    text: str = ""
    error: str = ""


class EventsRequested(Message, frozen=True, kw_only=True):
    """The stored records from this id on, at most `count`."""

    first_id: int
    count: int
    reply_to: str


class EventsFound(Message, frozen=True, kw_only=True):
    """Event records, and which of them are stored: from `lowest_id` to `highest_id`."""

    records: tuple[EventRecord, ...]
    """The records, in order."""
    lowest_id: int
    """Number of the oldest record that is stored."""
    highest_id: int
    """Number of the newest record that is stored."""


class EventStreamRequested(Message, frozen=True, kw_only=True):
    """Call `hearer` with the last `history` records, and with every new one."""

    hearer: str
    history: int
    reply_to: str


class EventStreamLeft(Message, frozen=True, kw_only=True):
    """The reader of this stream has gone."""

    hearer: str


class Accepted(Message, frozen=True, kw_only=True):
    """The answer to a request: it was accepted."""


class Declined(Message, frozen=True, kw_only=True):
    """The answer to a request: it was refused."""

    reason: str
