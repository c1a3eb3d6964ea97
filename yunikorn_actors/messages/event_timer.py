"""The message of EventPublisher's timer."""

from yunikorn_actors.messages.base import Message


class EventPushDue(Message, frozen=True, kw_only=True):
    """Send the records that have waited for two seconds."""

    life: int = 0
    """The life of the publisher that set the timer: its successor has a timer of its own."""
