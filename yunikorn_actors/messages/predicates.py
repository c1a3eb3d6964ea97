"""Questions to a resource manager about one decision, and the answers.

The planning loop asks RmProxy, RmProxy asks the callback, and the answer returns the same way. A
question has the id of the proposal that waits for it; between RmProxy and the callback it has a
number of RmProxy's own. An answer with a reason is a no, one without is a yes.
"""

from yunikorn_actors.messages.base import Message
from yunikorn_actors.si import (
    PredicatesArgs,
    PreemptionPredicatesArgs,
    PreemptionPredicatesResponse,
)
from yunikorn_actors.state.proposals import AskRef


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
    """The answer of the callback, on its way back to RmProxy."""

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

    @property
    def is_yes(self) -> bool:
        return not self.reason


class PreemptionPredicatesChecked(Message, frozen=True, kw_only=True):
    partition: str
    epoch: int
    question_id: int
    response: PreemptionPredicatesResponse

    @property
    def is_yes(self) -> bool:
        return self.response.success


Question = CheckPredicates | CheckPreemptionPredicates
Checked = PredicatesChecked | PreemptionPredicatesChecked


class PredicateDue(Message, frozen=True, kw_only=True):
    """The time for an answer of the resource manager is over."""

    rm_id: str


class NodeDenied(Message, frozen=True, kw_only=True):
    """A scheduler has a no for an ask; the others of the partition learn of it."""

    partition: str
    epoch: int
    scheduler: int
    """The number of the scheduler that asked."""
    application_id: str
    key: str
    sequence: int
    node_id: str
    reason: str
    use: str
    """What the node was wanted for: PLACING, KEEPING or PREEMPTING."""


class NodesAllowed(Message, frozen=True, kw_only=True):
    """The resource manager has made a request: what it refused to these asks counts no more."""

    partition: str
    epoch: int
    scheduler: int
    asks: tuple[AskRef, ...]


class DenialsLifted(Message, frozen=True, kw_only=True):
    """The resource manager has sent a request since its last no: ask about refused nodes again."""

    rm_id: str
