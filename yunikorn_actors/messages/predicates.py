"""Questions to a resource manager about one placement, and their way back.

Who plans asks RmProxy, RmProxy asks the callback, and the answer returns by the same way. A
question has the id of the proposal that waits for it; on the way to the callback it has a number of
RmProxy. A reason means no; no reason means yes.
"""

from yunikorn_actors.messages.base import Message
from yunikorn_actors.si import (
    PredicatesArgs,
    PreemptionPredicatesArgs,
    PreemptionPredicatesResponse,
)


class CheckPredicates(Message, frozen=True, kw_only=True):
    rm_id: str
    partition: str
    epoch: int
    question_id: int
    args: PredicatesArgs
    reply_to: str


class CheckPreemptionPredicates(Message, frozen=True, kw_only=True):
    rm_id: str
    partition: str
    epoch: int
    question_id: int
    args: PreemptionPredicatesArgs
    reply_to: str


class PredicatesAnswered(Message, frozen=True, kw_only=True):
    """What the callback said, on its way back to RmProxy."""

    call_id: int
    reason: str


class PreemptionPredicatesAnswered(Message, frozen=True, kw_only=True):
    call_id: int
    response: PreemptionPredicatesResponse


class PredicatesChecked(Message, frozen=True, kw_only=True):
    partition: str
    epoch: int
    question_id: int
    reason: str


class PreemptionPredicatesChecked(Message, frozen=True, kw_only=True):
    partition: str
    epoch: int
    question_id: int
    response: PreemptionPredicatesResponse


Question = CheckPredicates | CheckPreemptionPredicates
Checked = PredicatesChecked | PreemptionPredicatesChecked


class PredicateDue(Message, frozen=True, kw_only=True):
    """The resource manager may have been silent for too long."""

    rm_id: str


class DenialsLifted(Message, frozen=True, kw_only=True):
    """The resource manager has said something since its last no: it may think otherwise now."""

    rm_id: str
