"""Messages to those who follow the truth from outside: read sides, each with a replica of its own.

A follower receives everything that its replica and its own book of events need, in the order in
which it became true: first how things stand, then every fact.
"""

from yunikorn_actors.config import ExtraConfig, SchedulerConfig
from yunikorn_actors.messages.base import Message
from yunikorn_actors.messages.rm_events import Capabilities


class FollowRequested(Message, frozen=True, kw_only=True):
    """Tell `follower` how everything stands, and from then on all that becomes true."""

    follower: str
    reply_to: str


class HistoryRequested(Message, frozen=True, kw_only=True):
    """Tell `follower` the newest event records, as the facts that they tell of.

    Context asks the event publisher for it between two facts: so the records end exactly where what
    the follower hears of itself begins.
    """

    follower: str


class CatchUpRequested(Message, frozen=True, kw_only=True):
    """Answer when `follower` has received all that is true by now.

    It goes through Context, so it comes behind everything that Context sent the follower before.
    """

    follower: str
    reply_to: str


class FollowEnded(Message, frozen=True, kw_only=True):
    """The follower has gone."""

    follower: str


class ManagerDescribed(Message, frozen=True, kw_only=True):
    """A resource manager has registered, or lives under another configuration."""

    rm_id: str
    version: str
    policy_group: str
    build_info: dict[str, str]
    extra_config: dict[str, str]
    extra: ExtraConfig
    config: SchedulerConfig
    """The one in force."""
    capabilities: Capabilities = Capabilities()
    """What the core asks and tells it; recordings of before do not say."""


class ManagerLeft(Message, frozen=True, kw_only=True):
    """Nothing of this resource manager is left."""

    rm_id: str


class EventPushDue(Message, frozen=True, kw_only=True):
    """EventPublisher's own timer: send the records that have waited for two seconds."""

    life: int = 0
    """The life of the publisher that set the timer: its successor has a timer of its own."""
