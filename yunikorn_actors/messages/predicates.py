"""Questions to a resource manager about one placement, and their way back.

A scheduler asks RmProxy, RmProxy asks the callback, and the answer returns by the same way. The
ids of questions come from the scheduler that asks. A reason means no; no reason means yes.
"""

from yunikorn_actors.messages.base import Message
from yunikorn_actors.si import (
    PredicatesArgs,
    PreemptionPredicatesArgs,
    PreemptionPredicatesResponse,
)


class CheckPredicates(Message, frozen=True, kw_only=True):
    rm_id: str
    question_id: int
    args: PredicatesArgs
    reply_to: str


class CheckPreemptionPredicates(Message, frozen=True, kw_only=True):
    rm_id: str
    question_id: int
    args: PreemptionPredicatesArgs
    reply_to: str


class PredicatesAnswered(Message, frozen=True, kw_only=True):
    """What the callback said, on its way back to RmProxy."""

    question_id: int
    asker: str
    reason: str


class PreemptionPredicatesAnswered(Message, frozen=True, kw_only=True):
    question_id: int
    asker: str
    response: PreemptionPredicatesResponse


class PredicatesChecked(Message, frozen=True, kw_only=True):
    question_id: int
    reason: str


class PreemptionPredicatesChecked(Message, frozen=True, kw_only=True):
    question_id: int
    response: PreemptionPredicatesResponse


class PredicateDue(Message, frozen=True, kw_only=True):
    """Nobody answered in time."""

    question_id: int
    asker: str
