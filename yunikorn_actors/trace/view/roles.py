"""What a message is for, by the way it goes: so a message of a later version has a role too."""

from enum import StrEnum

from yunikorn_actors.messages.base import RM_PROXY, TIMER, Delivery, is_outside
from yunikorn_actors.messages.scheduling import FactsAppended


class Role(StrEnum):
    REQUEST = "request"
    """It came from outside, or goes inwards on behalf of that."""
    DECISION = "decision"
    """A proposal, what became of it, and what else planners and Context have to tell each other."""
    FACT = "fact"
    """What Context has written down."""
    CALLBACK = "callback"
    """It goes out, to a resource manager or to a caller."""
    OTHER = "timer"
    """A timer, or what a machine sends itself, such as the next cycle of planning."""


def role_of(delivery: Delivery) -> Role:
    sender, mailbox = delivery.sender, delivery.mailbox
    if isinstance(delivery.message, FactsAppended):
        return Role.FACT
    if sender in {TIMER, mailbox}:
        return Role.OTHER
    if is_outside(mailbox) or (mailbox == RM_PROXY and not is_outside(sender)):
        return Role.CALLBACK
    if is_outside(sender) or sender == RM_PROXY:
        return Role.REQUEST
    return Role.DECISION
