"""State dumps of resource managers: each question gets one answer, or an error in time.

What a callback answers too late is dropped. Until it returns it is asked nothing more, so questions
do not pile up in front of a callback that is stuck.
"""

from typing import Any

from yunikorn_actors.machines.machine import CallRm, CancelTimer, Effect, Send, SetTimer
from yunikorn_actors.machines.rm_proxy.predicate_calls import TOO_LATE
from yunikorn_actors.messages.queries import RmDump, RmDumpAnswered, RmDumpDue
from yunikorn_actors.messages.rm_calls import CallGetStateDump

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
