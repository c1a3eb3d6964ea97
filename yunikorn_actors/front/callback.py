"""The callback of a front: the core reports here what happens, on its delivery thread, and asks.

While `fits` does not return the core delivers nothing, so a question that takes long is reported.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from yunikorn_actors import si
from yunikorn_actors.core.registered_managers import StandIn
from yunikorn_actors.front.applications import Applications, in_words
from yunikorn_actors.front.asks import Asks
from yunikorn_actors.front.lease import BaseLease
from yunikorn_actors.front.nodes import Nodes
from yunikorn_actors.front.records import AskRecord, AskStage
from yunikorn_actors.front.session import Session
from yunikorn_actors.recording.logs import alarm

L = TypeVar("L", bound=BaseLease)

STUCK_S: Final = 60.0
"""Nobody waits that long for an answer; a core with `patient_settings` takes it for a no then."""


class _Question(NamedTuple):
    record: AskRecord[Any]
    node_id: str
    since_s: float


class SlowFits:
    """A question that has no answer after `STUCK_S` is reported once.

    There is one question at a time, as the core asks on one thread, and at most one timer for all
    of them: a quick answer costs none.
    """

    def __init__(self, later: Callable[[float, Callable[[], None]], None]) -> None:
        """`later` makes a call after a number of seconds."""
        self._later = later
        self._lock = threading.Lock()
        self._question: _Question | None = None
        self._is_timed = False

    @contextmanager
    def over(self, record: AskRecord[Any], node_id: str) -> Iterator[None]:
        with self._lock:
            self._question = _Question(record, node_id, time.monotonic())
            if not self._is_timed:
                self._time(STUCK_S)
        try:
            yield
        finally:
            with self._lock:
                self._question = None

    def _time(self, seconds: float) -> None:
        self._is_timed = True
        self._later(seconds, self._look)

    def _look(self) -> None:
        with self._lock:
            self._is_timed = False
            question = self._question
            # Answered in time: the next question starts a timer of its own.
            if question is None:
                return
            rest = question.since_s + STUCK_S - time.monotonic()
            # Of a later question: the timer was set for the one before.
            if rest > 0:
                self._time(rest)
                return
        record, node_id, _ = question
        alarm(
            f"fits of {record.key!r} of {record.app.id!r} was asked about {node_id!r} and has "
            f"not returned for {STUCK_S:g} s; until it does the core delivers nothing"
        )


CLOSED: Final = "the scheduler is closed"


class ProgramCalls(Protocol):
    """Asks the program on behalf of the core, on the thread or the loop where it wants it."""

    def answers(self, method: str) -> bool: ...

    def ask(self, method: str, *arguments: object, otherwise: Any) -> Any: ...  # noqa: ANN401

    def notify(self, method: str, content: object) -> None: ...

    def end(self) -> None: ...


class FrontCallback(StandIn, Generic[L]):
    """What the core reports is in the records before a callback of the program is called.

    The records are changed under the lock; the program is called, and asked, without it.
    """

    program: ProgramCalls
    """Set once, before the core can call."""

    def __init__(
        self,
        session: Session[L],
        nodes: Nodes[L],
        applications: Applications[L],
        asks: Asks[L],
        slow_fits: SlowFits,
    ) -> None:
        self._session = session
        self._nodes = nodes
        self._applications = applications
        self._asks = asks
        self._slow_fits = slow_fits

    # -- what it reports

    def update_node(self, response: si.NodeResponse) -> None:
        with self._session.lock:
            for refused in response.rejected:
                self._nodes.rejected(refused)
            for accepted in response.accepted:
                self._nodes.accepted(accepted)
        # With an answer, callers may send by themselves again (see `AHEAD_MAX`).
        self._session.outbox.answered()
        self.program.notify("update_node", response)

    def update_application(self, response: si.ApplicationResponse) -> None:
        with self._session.lock:
            for rejected in response.rejected:
                self._applications.rejected(rejected)
            for accepted in response.accepted:
                self._applications.accepted(accepted)
            for updated in response.updated:
                self._applications.changed(updated)
        self._session.outbox.answered()
        self.program.notify("update_application", response)

    def update_allocation(self, response: si.AllocationResponse) -> None:
        find, asks = self._applications.find_ask, self._asks
        refusals: tuple[si.RejectedAllocationAsk | si.RejectedAllocation, ...] = (
            *response.rejected,
            *response.rejected_allocations,
        )
        # In one lock: a program must not see half of what the core reported.
        with self._session.lock:
            for refused in refusals:
                if record := find(refused.application_id, refused.allocation_key):
                    asks.rejected(record, refused.reason)
            for gone in response.released_asks:
                if record := find(gone.application_id, gone.allocation_key):
                    asks.taken_back(record, in_words(gone.message) or gone.termination_type.name)
            if response.released:
                self._applications.asked_back(response.released)
            for new in response.new:
                # One that was withdrawn meanwhile the core takes back by itself.
                self._applications.placed(new)
        self._session.outbox.answered()
        self.program.notify("update_allocation", response)

    def send_event(self, events: tuple[si.EventRecord, ...]) -> None:
        self.program.notify("send_event", events)

    # -- what it asks

    def answers(self, method: str) -> bool:
        """The core asks of this callback what its program answers, and always where asks may go."""
        return method == "predicates" or self.program.answers(method)

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        record = self._asks.keys.asked_about(args.allocation_key)
        if record is None and not self.program.answers("predicates"):
            return None
        # No rule of its own: only the program is asked.
        if record is None or record.rule is None:
            return self._ask_program(record, args)
        # A rule is looked at first: it needs no call of the program.
        with self._session.lock:
            objection = self._asks.whereabouts.objection(record, args.node_id)
        if objection:
            return objection
        if record.fits is None and not self.program.answers("predicates"):
            return None
        refused = self._ask_program(record, args)
        if refused:
            with self._session.lock:
                # The rule's yes has counted it there; the program's no takes that back.
                if record.stage is AskStage.WAITS:
                    self._asks.whereabouts.leave(record)
        return refused

    def _ask_program(self, record: AskRecord[L] | None, args: si.PredicatesArgs) -> str | None:
        watched = nullcontext() if record is None else self._slow_fits.over(record, args.node_id)
        with watched:
            answer: str | None = self.program.ask("predicates", args, otherwise=CLOSED)
        return answer

    def preemption_predicates(
        self, args: si.PreemptionPredicatesArgs
    ) -> si.PreemptionPredicatesResponse | None:
        answer: si.PreemptionPredicatesResponse | None = self.program.ask(
            "preemption_predicates", args, otherwise=None
        )
        return answer

    def update_container_scheduling_state(
        self, request: si.UpdateContainerSchedulingStateRequest
    ) -> None:
        self.program.ask("update_container_scheduling_state", request, otherwise=None)

    def get_state_dump(self) -> str:
        answer: str = self.program.ask("get_state_dump", otherwise="{}")
        return answer
