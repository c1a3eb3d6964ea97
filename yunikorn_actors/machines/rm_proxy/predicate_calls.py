"""Questions to the predicates of resource managers, and the fate of unanswered ones.

Each question gets exactly one answer: that of the callback, or a no if the callback takes longer
than a predicate may. A later answer is dropped and counted. Until it comes the callback gets no
other question. So the questions that wait for a callback that is stuck are bounded by the decisions
in flight.

A no holds until the resource manager makes its next request; every planner that got a no learns of
that request. A manager that is away refuses everything until then: it may come back to a core that
began again, whose planners asked before they knew that it was away.
"""

from collections.abc import Iterable
from typing import Any

from yunikorn_actors.machines.machine import CallRm, CancelTimer, Effect, Send, SetTimer
from yunikorn_actors.messages import predicates as p
from yunikorn_actors.messages.base import Message
from yunikorn_actors.messages.queries import RmDump, RmDumpAnswered, RmDumpDue
from yunikorn_actors.messages.rm_calls import (
    CallGetStateDump,
    CallPredicates,
    CallPreemptionPredicates,
)
from yunikorn_actors.si import PreemptionPredicatesResponse

NOBODY = "the resource manager is away"
TOO_LATE = "the resource manager did not answer in time"

Answer = p.PredicatesAnswered | p.PreemptionPredicatesAnswered


class _Line:
    """The questions for one callback, by the id of the call."""

    __slots__ = ("callback", "deadline_ns", "delayed", "handed", "is_timed", "late")

    def __init__(self, callback: str) -> None:
        self.callback = callback
        self.handed: dict[int, p.Question] = {}
        self.delayed: dict[int, p.Question] = {}
        """Not handed over, because it has not returned from what it was too late for."""
        self.late: dict[int, None] = {}
        self.deadline_ns = 0
        """When it will have been silent for too long."""
        self.is_timed = False


class Questions:
    def __init__(self, timeout_ns: int) -> None:
        self._timeout_ns = timeout_ns
        self._lines: dict[str, _Line] = {}
        self.calls: dict[int, str] = {}
        """Those that have not returned, each with its resource manager."""
        self._last_call = 0
        self.refused: dict[str, dict[str, None]] = {}
        """By resource manager, who got a no since its last request."""
        self.dropped = 0

    def canonical_state(self) -> dict[str, Any]:
        lines = sorted(self._lines.items())
        return {
            "open": {rm_id: sorted([*line.handed, *line.delayed]) for rm_id, line in lines},
            "late": {rm_id: sorted(line.late) for rm_id, line in lines},
            "refused": {rm_id: list(askers) for rm_id, askers in sorted(self.refused.items())},
            "dropped": self.dropped,
        }

    def ask(self, question: p.Question, callback: str | None, now_ns: int) -> list[Effect]:
        # Away: noted as a refusal, so that the planners learn when it is back.
        if callback is None:
            self._note(question.rm_id, question.reply_to)
            return _refuse((question,), NOBODY)
        line = self._lines.setdefault(question.rm_id, _Line(callback))
        # Numbers are given to delayed ones too: they are handed over in this order.
        self._last_call += 1
        # The callback was idle until now. With others before it the time runs from its last answer:
        # it is asked one after the other.
        if not line.handed and not line.delayed:
            line.deadline_ns = now_ns + self._timeout_ns
        # A callback that is behind gets no more questions: each would only be late as well.
        if line.late:
            # Delayed, and timed all the same: a planner must not wait for a callback that never
            # returns.
            line.delayed[self._last_call] = question
            return self._time(line, question.rm_id)
        called = self._hand(line, self._last_call, question)
        return [called, *self._time(line, question.rm_id)]

    def answered(self, message: Answer, now_ns: int) -> list[Effect]:
        # Of a callback that was cut, or answered twice.
        rm_id = self.calls.pop(message.call_id, None)
        if rm_id is None:
            self.dropped += 1
            return []
        line = self._lines[rm_id]
        # Whatever it answered, it is alive: the next question has the whole time.
        line.deadline_ns = now_ns + self._timeout_ns
        question = line.handed.pop(message.call_id, None)
        # The answer to a question that was taken for a no: it counts for nothing but the time.
        if question is None:
            return self._returned(line, message.call_id)
        answer = _answer(question, message)
        # Remembered per planner: each has its own list of refused nodes to lift.
        if not answer.is_yes:
            self._note(rm_id, question.reply_to)
        return [Send(to=question.reply_to, message=answer)]

    def due(self, message: p.PredicateDue, now_ns: int) -> list[Effect]:
        line = self._lines.get(message.rm_id)
        if line is None:
            return []
        line.is_timed = False
        if not line.handed and not line.delayed:
            return []
        # Answers have moved the deadline on since the timer was armed: one timer, moved by need.
        if now_ns < line.deadline_ns:
            return self._time(line, message.rm_id)
        silent = (*line.handed.values(), *line.delayed.values())
        # All of them, not only the oldest: they wait behind the same call, and their room is
        # needed.
        # Late, not forgotten: their answers still say when the callback is free again.
        line.late.update(dict.fromkeys(line.handed))
        line.handed, line.delayed = {}, {}
        for question in silent:
            self._note(message.rm_id, question.reply_to)
        return _refuse(silent, TOO_LATE)

    def cut(self, rm_id: str) -> list[Effect]:
        """Its callback is gone, and with it whatever was asked of it."""
        # A new registration begins without refusals: nothing of the former life counts (H-19).
        self.refused.pop(rm_id, None)
        line = self._lines.pop(rm_id, None)
        if line is None:
            return []
        # Those that were delayed have no entry: they were never handed over.
        for call_id in (*line.handed, *line.late):
            del self.calls[call_id]
        return _refuse((*line.handed.values(), *line.delayed.values()), NOBODY)

    def seen(self, rm_id: str) -> list[Effect]:
        """The resource manager makes a request: no earlier no of it holds any longer."""
        # Popped: a planner is notified once, and refused again it is noted again.
        askers = self.refused.pop(rm_id, None)
        if askers is None:
            return []
        return [Send(to=asker, message=p.DenialsLifted(rm_id=rm_id)) for asker in askers]

    # -- parts

    def _hand(self, line: _Line, call_id: int, question: p.Question) -> CallRm:
        line.handed[call_id] = question
        self.calls[call_id] = question.rm_id
        return CallRm(callback=line.callback, call=_call(question, call_id))

    def _time(self, line: _Line, rm_id: str) -> list[Effect]:
        if line.is_timed:
            return []
        line.is_timed = True
        due = p.PredicateDue(rm_id=rm_id)
        return [SetTimer(name=f"predicate/{rm_id}", due_ns=line.deadline_ns, message=due)]

    def _returned(self, line: _Line, call_id: int) -> list[Effect]:
        """It was too late with this one; with the last of these it has caught up."""
        # Only when all late ones are back: a callback that works through them has no time for new
        # ones.
        self.dropped += 1
        del line.late[call_id]
        if line.late:
            return []
        delayed, line.delayed = line.delayed, {}
        return [self._hand(line, number, question) for number, question in delayed.items()]

    def _note(self, rm_id: str, asker: str) -> None:
        self.refused.setdefault(rm_id, {})[asker] = None


def _call(question: p.Question, call_id: int) -> Message:
    if isinstance(question, p.CheckPredicates):
        return CallPredicates(call_id=call_id, args=question.args)
    return CallPreemptionPredicates(call_id=call_id, args=question.args)


def _answer(question: p.Question, message: Answer) -> p.Checked:
    if isinstance(message, p.PredicatesAnswered):
        return _checked(question, message.reason)
    return _preemption_checked(question, message.response)


def _refuse(questions: Iterable[p.Question], reason: str) -> list[Effect]:
    return [Send(to=item.reply_to, message=_no(item, reason)) for item in questions]


def _no(question: p.Question, reason: str) -> Message:
    if isinstance(question, p.CheckPredicates):
        return _checked(question, reason)
    return _preemption_checked(question, PreemptionPredicatesResponse(success=False))


def _checked(question: p.Question, reason: str) -> p.PredicatesChecked:
    return p.PredicatesChecked(
        partition=question.partition,
        epoch=question.epoch,
        question_id=question.question_id,
        reason=reason,
    )


def _preemption_checked(
    question: p.Question, response: PreemptionPredicatesResponse
) -> p.PreemptionPredicatesChecked:
    return p.PreemptionPredicatesChecked(
        partition=question.partition,
        epoch=question.epoch,
        question_id=question.question_id,
        response=response,
    )


# State dumps of resource managers: each question gets one answer, or an error in time.
#
# What a callback answers too late is dropped. Until it returns it is asked nothing more, so
# questions do not pile up in front of a callback that is stuck.

AWAY = "the resource manager is away"


class Diagnoses:
    def __init__(self, timeout_ns: int) -> None:
        self._timeout_ns = timeout_ns
        self._asked: dict[str, str] = {}
        """Addresses of those who wait, each with the callback that was asked."""
        self._late: dict[str, str] = {}
        """The same of those who wait no longer, while it has not returned."""

    def canonical_state(self) -> dict[str, Any]:
        return {"asked": list(self._asked), "late": list(self._late)}

    def ask(self, reply_to: str, callback: str | None, now_ns: int) -> list[Effect]:
        if callback is None:
            return [Send(to=reply_to, message=RmDump(error=AWAY))]
        # Another caller has waited in vain for this callback: the next would wait as long.
        if callback in self._late.values():
            return [Send(to=reply_to, message=RmDump(error=TOO_LATE))]
        self._asked[reply_to] = callback
        due_ns, due = now_ns + self._timeout_ns, RmDumpDue(reply_to=reply_to)
        return [
            CallRm(callback=callback, call=CallGetStateDump(reply_to=reply_to)),
            SetTimer(name=_name(reply_to), due_ns=due_ns, message=due),
        ]

    def answered(self, message: RmDumpAnswered) -> list[Effect]:
        # Late or not, the callback has come back and may be asked again.
        self._late.pop(message.reply_to, None)
        if self._asked.pop(message.reply_to, None) is None:
            return []
        answer = RmDump(text=message.text, error=message.error)
        return [
            CancelTimer(name=_name(message.reply_to)),
            Send(to=message.reply_to, message=answer),
        ]

    def due(self, message: RmDumpDue) -> list[Effect]:
        callback = self._asked.pop(message.reply_to, None)
        # Answered in this very moment: the timer was cancelled behind its firing.
        if callback is None:
            return []
        self._late[message.reply_to] = callback
        return [Send(to=message.reply_to, message=RmDump(error=TOO_LATE))]

    def cut(self, callback: str) -> list[Effect]:
        """The callback is gone, and with it whatever was asked of it."""
        self._late = {asker: it for asker, it in self._late.items() if it != callback}
        effects: list[Effect] = []
        for asker in [asker for asker, it in self._asked.items() if it == callback]:
            del self._asked[asker]
            effects.append(CancelTimer(name=_name(asker)))
            effects.append(Send(to=asker, message=RmDump(error=AWAY)))
        return effects


def _name(reply_to: str) -> str:
    return f"dump/{reply_to}"
