"""Questions that are out at resource managers, and what becomes of each.

Every question gets exactly one answer: the callback's, or a no when none came within the time that
a predicate may take. What comes later is dropped and counted.
"""

from typing import Any

from yunikorn_actors.machines.machine import CallRm, CancelTimer, Effect, Send, SetTimer
from yunikorn_actors.messages import predicates as p
from yunikorn_actors.messages.base import Message
from yunikorn_actors.messages.rm_calls import CallPredicates, CallPreemptionPredicates
from yunikorn_actors.si import PreemptionPredicatesResponse

NOBODY = "the resource manager is away"
TOO_LATE = "the resource manager did not answer in time"

Question = p.CheckPredicates | p.CheckPreemptionPredicates


class Questions:
    def __init__(self, timeout_ns: int) -> None:
        self._timeout_ns = timeout_ns
        self._open: dict[tuple[str, int], Question] = {}
        self.dropped = 0

    def canonical_state(self) -> dict[str, Any]:
        return {"open": [list(key) for key in sorted(self._open)], "dropped": self.dropped}

    def ask(self, question: Question, callback: str | None, now_ns: int) -> list[Effect]:
        if callback is None:
            return [Send(to=question.reply_to, message=_no(question, NOBODY))]
        asker, id_ = question.reply_to, question.question_id
        self._open[asker, id_] = question
        due = p.PredicateDue(question_id=id_, asker=asker)
        return [
            CallRm(callback=callback, call=_call(question)),
            SetTimer(name=_name(asker, id_), due_ns=now_ns + self._timeout_ns, message=due),
        ]

    def answered(
        self, message: p.PredicatesAnswered | p.PreemptionPredicatesAnswered
    ) -> list[Effect]:
        asker, id_ = message.asker, message.question_id
        if self._open.pop((asker, id_), None) is None:
            self.dropped += 1
            return []
        answer: Message
        if isinstance(message, p.PredicatesAnswered):
            answer = p.PredicatesChecked(question_id=id_, reason=message.reason)
        else:
            answer = p.PreemptionPredicatesChecked(question_id=id_, response=message.response)
        return [CancelTimer(name=_name(asker, id_)), Send(to=asker, message=answer)]

    def due(self, message: p.PredicateDue) -> list[Effect]:
        question = self._open.pop((message.asker, message.question_id), None)
        if question is None:
            return []
        return [Send(to=message.asker, message=_no(question, TOO_LATE))]


def _name(asker: str, question_id: int) -> str:
    return f"predicate/{asker}/{question_id}"


def _call(question: Question) -> Message:
    if isinstance(question, p.CheckPredicates):
        return CallPredicates(
            question_id=question.question_id, asker=question.reply_to, args=question.args
        )
    return CallPreemptionPredicates(
        question_id=question.question_id, asker=question.reply_to, args=question.args
    )


def _no(question: Question, reason: str) -> Message:
    if isinstance(question, p.CheckPredicates):
        return p.PredicatesChecked(question_id=question.question_id, reason=reason)
    return p.PreemptionPredicatesChecked(
        question_id=question.question_id, response=PreemptionPredicatesResponse(success=False)
    )
