"""What the resource manager is notified of: of each thing that it must know, once."""

from collections import Counter

from yunikorn_actors.lab.model.judging.judged_run import JudgedRun
from yunikorn_actors.messages import rm_calls as c
from yunikorn_actors.messages.base import Message
from yunikorn_actors.state import facts as f

_TOLD_AS_STOPPED = ("STOPPED_BY_RM", "UNKNOWN_TERMINATION_TYPE")
"""Ends that the core did not ask for: by the resource manager, and with a node."""


def _notices_of(fact: f.Fact) -> list[tuple[str, ...]]:
    match fact:
        case f.AllocationCommitted() | f.AllocationRecovered():
            return [("new", fact.uuid)]
        case f.SwapCompleted():
            echo = [("released", fact.placeholder, "STOPPED_BY_RM")]
            return [("new", fact.uuid), *(echo if fact.type.name in _TOLD_AS_STOPPED else [])]
        case f.ReleaseRequested():
            return [("released", fact.uuid, fact.type.name)]
        case f.AllocationReleased() if fact.type.name in _TOLD_AS_STOPPED:
            return [("released", fact.uuid, "STOPPED_BY_RM")]
        case f.ApplicationStateChanged():
            return [("state", fact.application_id, fact.state.value)]
    return []


class RmNotices:
    """Compares what was sent with what the facts make due."""

    def __init__(self) -> None:
        self._due: Counter[tuple[str, ...]] = Counter()
        """Below zero what was sent without a fact."""

    def follow(self, fact: f.Fact) -> None:
        self._due.update(_notices_of(fact))

    def receive(self, message: Message) -> None:
        if isinstance(message, c.CallUpdateAllocation):
            sent = message.response
            self._due.subtract(("new", item.uuid) for item in sent.new)
            self._due.subtract(
                ("released", it.uuid, it.termination_type.name) for it in sent.released
            )
        elif isinstance(message, c.CallUpdateApplication):
            states = message.response.updated
            self._due.subtract(("state", item.application_id, item.state) for item in states)

    def check(self, run: JudgedRun) -> None:
        """Nothing is on its way: all that was due was sent, and nothing else."""
        wrong = [what for what, times in self._due.items() if times]
        run.must("told", not wrong, f"told too often or not at all: {wrong}")
