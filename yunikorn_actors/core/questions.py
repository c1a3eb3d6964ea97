"""Questions to a core: each is a message to a machine, and its caller waits for the answer."""

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from yunikorn_actors.core.driver import Driver
from yunikorn_actors.core.following import Followers
from yunikorn_actors.core.registered_managers import RegisteredManagers
from yunikorn_actors.errors import NoReply, UnknownAsk
from yunikorn_actors.messages.base import CONTEXT, EVENT_PUBLISHER, RM_PROXY, Message
from yunikorn_actors.messages.callbacks import shown_records
from yunikorn_actors.messages.queries import (
    CountsFound,
    CountsRequested,
    Declined,
    EventsFound,
    EventsRequested,
    ExplainRequested,
    Explanation,
    RmDump,
    RmDumpRequested,
    StateDump,
    StateDumpRequested,
)
from yunikorn_actors.messages.scheduling import FactsAppended, PartitionClosed, PartitionSnapshot
from yunikorn_actors.planning.expected import Expectations, Expected
from yunikorn_actors.planning.reasons import (
    EXPLAINED_MAX,
    LOOKS_MAX,
    WaitingAnswer,
    WaitingAsk,
    WaitingQuestion,
    WaitingSum,
    Why,
    alike,
)
from yunikorn_actors.policies.folds import Folds
from yunikorn_actors.policies.registry import Policies
from yunikorn_actors.si.form import check_counts, check_names
from yunikorn_actors.state.dump import DUMP_FORMAT
from yunikorn_actors.state.facts import apply
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.snapshot import restore
from yunikorn_actors.values.durations import SECOND

# Expected starts: a follower of the core that estimates when waiting asks will start.
#
# It has a replica of its own, so the core's actors do nothing for it.

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


class Questions:
    def __init__(
        self,
        driver: Driver,
        managers: RegisteredManagers,
        followers: Followers,
        *,
        policies: Policies,
        now_ns: Callable[[], int],
        complete: Callable[[dict[str, Any]], dict[str, Any]],
    ) -> None:
        """`complete` adds to a state dump what the driver knows."""
        self._driver = driver
        self._managers = managers
        self._followers = followers
        self._policies = policies
        self._now_ns = now_ns
        self._complete = complete
        self._expected: ExpectedStarts | None = None
        self._expected_lock = threading.Lock()
        """Guards it for a moment: nothing that waits for the core is done under it."""

    def state_dump(self) -> dict[str, Any]:
        """What Context knows at one moment; what others know is read a moment later."""
        # Each of these is a question of its own: what it says may be a little newer than the dump.
        dump = self.context_dump()
        return dump | {
            "format": DUMP_FORMAT,
            "waiting": {name: self.waiting_asks(name) for name in dump["partitions"]},
            "rm_diagnostics": self.diagnostics(),
            "unhandled_requests": self._managers.unhandled(),
            "callback_errors": self._managers.callback_error_counts(),
        }

    def context_dump(self) -> dict[str, Any]:
        """Return what Context knows, and what the driver has to add."""
        state = self._driver.answer(
            StateDump, CONTEXT,
            lambda reply_to: StateDumpRequested(reply_to=reply_to, is_whole=True), "dump",
        ).state  # fmt: skip
        # Adds what only the driver knows, and masks secrets.
        return self._complete(state)

    def explain(self, application_id: str, key: str, *, partition: str = "") -> Why:
        """Say why an ask waits, or what became of it; raise UnknownAsk if it is not known."""
        names = {"application_id": application_id, "key": key, "partition": partition}
        check_names("explain", optional=("partition",), **names)
        answer = self._explanation(partition, application_id, key)
        if isinstance(answer, Declined):
            raise UnknownAsk(answer.reason)
        if not answer.waiting:
            raise UnknownAsk(
                f"no ask {key} of {application_id} is known: it has ended, was withdrawn or never "
                "came"
            )
        return answer.waiting[0]

    def expected(self, application_id: str = "", *, partition: str = "") -> tuple[Expected, ...]:
        """Ask the follower that learns how long work runs; the first call has it begin."""
        names = {"application_id": application_id, "partition": partition}
        check_names("expected", optional=tuple(names), **names)
        # A stopped core would otherwise answer from a follower that gets no facts any more.
        self._driver.check_running()
        if self._expected is None:
            starts = ExpectedStarts(self._policies, self._now_ns)
            address = self._followers.follow(starts, lasts=False)
            # Only then has it the snapshot and every fact up to this moment.
            self._followers.catch_up(address)
            with self._expected_lock:
                is_first = self._expected is None
                self._expected = self._expected or starts
            if is_first:
                self._followers.keep(address)
            else:
                # Two first calls at once: the follower of one of them serves both.
                self._followers.unfollow(address)
        return self._expected.of(application_id, partition)

    def waiting(self, *, partition: str = "") -> tuple[WaitingSum, ...]:
        """Return what waits, added up by cause, queue and size, with the largest sums first."""
        check_names("waiting", optional=("partition",), partition=partition)
        parts = [it.sums for _, it in self._parts(partition, WaitingQuestion(sums=True)) if it.sums]
        return tuple(sorted(_joined(parts), key=lambda it: -it.count))

    def waiting_asks(self, partition: str) -> dict[str, Any]:
        """Explain all waiting asks, and the asks that were rejected last.

        A partition may be removed first, then there are none.
        """
        question = WaitingQuestion(by_cause=True, explained=EXPLAINED_MAX, looks=LOOKS_MAX)
        parts = tuple(self._parts(partition, question))
        if not parts:
            return {}
        counted = [part for _, part in parts]
        # Added up over the parts: each has counted asks of its own.
        causes = sum((Counter(part.causes) for part in counted), Counter[str]())
        asks = [why for part in counted for why in part.explained]
        total = sum(part.total for part in counted)
        return waiting_of(
            replace(
                parts[-1][0],
                waiting=tuple(asks),
                is_complete=len(asks) == total,
                total=total,
                causes=dict(sorted(causes.items())),
                # The rejected ones come with the first part only (`_answered` in Context).
                rejected=parts[0][0].rejected,
            )
        )

    def count_waiting(self, partition: str, question: WaitingQuestion) -> WaitingAnswer:
        """Count asks that wait, or list them: part after part, so that no handler takes long.

        Between two parts the core decides on, so what changes meanwhile may count twice or never.
        """
        total, causes, asks = 0, Counter[str](), list[WaitingAsk]()
        for _, part in self._parts(partition, question):
            total += part.total
            causes.update(part.causes)
            asks += part.asks
        return WaitingAnswer(total=total, causes=dict(causes), asks=tuple(asks))

    def _parts(
        self, partition: str, question: WaitingQuestion
    ) -> Iterator[tuple[Explanation, WaitingAnswer]]:
        """Yield the parts of an answer; there is none where the partition is not there."""
        is_all = False
        # Each part is one message: Context handles others in between (ADR 35).
        while not is_all:
            answer = self._explanation(partition, "", "", question)
            if isinstance(answer, Declined) or answer.counted is None:
                return
            part = answer.counted
            yield answer, part
            is_all = part.is_all
            # Where this part ended the next one begins; what is left of the bounds goes with it.
            question = replace(
                question,
                serial=part.serial,
                place=part.place,
                listed=question.listed - len(part.asks),
                explained=question.explained - len(part.explained),
                looks=max(0, question.looks - part.looks),
            )

    def _explanation(
        self,
        partition: str,
        application_id: str,
        key: str,
        waiting: WaitingQuestion | None = None,
    ) -> Explanation | Declined:
        answer = self._driver.ask(
            CONTEXT,
            lambda reply_to: ExplainRequested(
                partition=partition,
                application_id=application_id,
                key=key,
                reply_to=reply_to,
                waiting=waiting,
                in_units=True,
                # Only for a single ask: finding victims for all of them would take long.
                with_victims=bool(key),
            ),
            self._driver.name("explain"),
        )
        if not isinstance(answer, Explanation | Declined):
            raise NoReply(
                f"the core answered {type(answer).__name__} instead of an Explanation: call again"
            )
        return answer

    def diagnostics(self) -> dict[str, Any]:
        """What each resource manager reports of its own state."""
        return {
            rm_id: self._diagnosis(rm_id, tells_state=registration.tells_state)
            for rm_id, registration in sorted(self._managers.registered.copy().items())
        }

    def _diagnosis(self, rm_id: str, *, tells_state: bool) -> Any:  # noqa: ANN401 - any JSON
        # Without this RmProxy would call a method that the program has not overridden.
        if not tells_state:
            return {"empty": "Resource Manager did not register callback"}
        answer = self._driver.answer(
            RmDump,
            RM_PROXY,
            lambda reply_to: RmDumpRequested(rm_id=rm_id, reply_to=reply_to),
            "dump",
        )
        if answer.error:
            return {"Error": answer.error}
        try:
            return msgspec.json.decode(answer.text)
        except (msgspec.MsgspecError, RecursionError) as error:
            return {"Error": f"get_state_dump returned no JSON: {error}"}

    def events(self, first_id: int = 0, count: int = 10_000) -> EventsFound:
        """Event records from this number on, with the range that is stored."""
        check_counts("events", first_id=first_id, count=count)
        found = self._driver.answer(
            EventsFound,
            EVENT_PUBLISHER,
            lambda reply_to: EventsRequested(first_id=first_id, count=count, reply_to=reply_to),
            "events",
        )
        return replace(found, records=shown_records(found.records))

    def counts(self) -> CountsFound:
        """Return the counters that facts do not carry."""
        return self._driver.answer(
            CountsFound, CONTEXT, lambda reply_to: CountsRequested(reply_to=reply_to), "counts"
        )


def _joined(parts: Sequence[Sequence[WaitingSum]]) -> Iterable[WaitingSum]:
    """Add up what is in several parts; in each is everything once."""
    if len(parts) == 1:
        return parts[0]
    found: dict[Hashable, WaitingSum] = {}
    for one in chain.from_iterable(parts):
        name = alike(one)
        same = found.get(name)
        found[name] = one if same is None else one.plus(same)
    return found.values()


def waiting_of(answer: Explanation) -> dict[str, Any]:
    """Return what a state dump has about the waiting asks of a partition."""
    return {
        "as_of": answer.as_of,
        "is_complete": answer.is_complete,
        "total": answer.total,
        "causes": answer.causes,
        "asks": msgspec.to_builtins(answer.waiting),
        "rejected": msgspec.to_builtins(answer.rejected),
    }
