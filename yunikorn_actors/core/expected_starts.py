"""Expected starts: a follower of the core that estimates when waiting asks will start.

It has a replica of its own, so the core's actors do nothing for it.
"""

import threading
from collections.abc import Callable
from typing import Final

from yunikorn_actors.messages.base import Message
from yunikorn_actors.messages.scheduling import FactsAppended, PartitionClosed, PartitionSnapshot
from yunikorn_actors.planning.expected import Expectations, Expected
from yunikorn_actors.policies.folds import Folds
from yunikorn_actors.policies.registry import Policies
from yunikorn_actors.state.facts import apply
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.snapshot import restore
from yunikorn_actors.values.durations import SECOND

EVERY_NS: Final = 2 * SECOND
"""Plans are made at most so often, if no new ask is asked about."""


class ExpectedStarts:
    def __init__(self, policies: Policies, now_ns: Callable[[], int]) -> None:
        self._policies = policies
        self._now_ns = now_ns
        self._lock = threading.Lock()
        """Facts come on a thread of the follower, questions on those of callers."""
        self._states: dict[str, PartitionState] = {}
        self._expectations: dict[str, Expectations] = {}

    def receive(self, message: Message) -> None:
        with self._lock:
            match message:
                case PartitionSnapshot():
                    restore(self._begin(message.partition), message.image)
                case FactsAppended():
                    state = self._states.get(message.partition)
                    # A partition that was opened after this follower began has no snapshot: its
                    # facts begin at 1.
                    if state is None or message.first_revision == 1:
                        state = self._begin(message.partition)
                    expectations = self._expectations[message.partition]
                    for fact in message.facts:
                        # Before the fact is applied: what ends is still there, with the time at
                        # which it began.
                        expectations.before(state, fact)
                        apply(state, fact)
                case PartitionClosed():
                    self._states.pop(message.partition, None)
                    self._expectations.pop(message.partition, None)

    def _begin(self, name: str) -> PartitionState:
        state = self._states[name] = PartitionState(name, Folds(self._policies))
        self._expectations[name] = Expectations(self._policies)
        return state

    def of(self, application_id: str, partition: str) -> tuple[Expected, ...]:
        """Return what is expected of all that waits, of an application or of all."""
        with self._lock:
            found: list[Expected] = []
            for name, state in self._states.items():
                if partition not in {"", name}:
                    continue
                expectations, now_ns = self._expectations[name], self._now_ns()
                # Planning in virtual time takes a while, and many callers ask about the same
                # moment.
                if expectations.is_stale(state, application_id, now_ns, EVERY_NS):
                    for _ in expectations.refresh(state, now_ns):
                        pass
                found += expectations.of(application_id, now_ns)
            return tuple(found)
