"""What the EventPublisher is told by its timer."""

from yunikorn_actors.messages.base import Message


class EventPushDue(Message, frozen=True, kw_only=True):
    """Records have been waiting for two seconds."""

    life: int = 0
    """Of the publisher that waits: another one has a timer of its own."""
