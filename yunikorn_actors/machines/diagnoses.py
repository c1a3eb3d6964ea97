"""What resource managers say of their own state, asked for with a state dump.

Each question gets exactly one answer: the callback's, or an error when none came in time. What
comes later is dropped.
"""

from typing import Any

from yunikorn_actors.machines.machine import CallRm, CancelTimer, Effect, Send, SetTimer
from yunikorn_actors.messages.queries import RmDump, RmDumpAnswered, RmDumpDue
from yunikorn_actors.messages.rm_calls import CallGetStateDump

AWAY = "the resource manager is away"
TOO_LATE = "the resource manager did not answer in time"


class Diagnoses:
    def __init__(self, timeout_ns: int) -> None:
        self._timeout_ns = timeout_ns
        self._asked: dict[str, None] = {}
        """Addresses of those who wait."""

    def canonical_state(self) -> dict[str, Any]:
        return {"asked": list(self._asked)}

    def ask(self, reply_to: str, callback: str | None, now_ns: int) -> list[Effect]:
        if callback is None:
            return [Send(to=reply_to, message=RmDump(error=AWAY))]
        self._asked[reply_to] = None
        due_ns, due = now_ns + self._timeout_ns, RmDumpDue(reply_to=reply_to)
        return [
            CallRm(callback=callback, call=CallGetStateDump(reply_to=reply_to)),
            SetTimer(name=_name(reply_to), due_ns=due_ns, message=due),
        ]

    def answered(self, message: RmDumpAnswered) -> list[Effect]:
        if message.reply_to not in self._asked:
            return []
        del self._asked[message.reply_to]
        answer = RmDump(text=message.text, error=message.error)
        return [
            CancelTimer(name=_name(message.reply_to)),
            Send(to=message.reply_to, message=answer),
        ]

    def due(self, message: RmDumpDue) -> list[Effect]:
        if message.reply_to not in self._asked:
            return []
        del self._asked[message.reply_to]
        return [Send(to=message.reply_to, message=RmDump(error=TOO_LATE))]


def _name(reply_to: str) -> str:
    return f"dump/{reply_to}"
