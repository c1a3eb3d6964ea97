"""The operations of a front: check a call, take the lock, have it done, answer.

The nouns have modules of their own: `Session` (whether the front is open, and the one lock),
`Nodes`, `Applications`, `Asks` (with their leases, their `Keys` and `EndedAsks`), `Readers` (of
events), `Outbox` (what goes to the core) and `FrontCallback` (what comes from it). `Explanations`
answers what has become of an ask.

`report` is for a core that may have forgotten all of it, or all but the last of it: nobody knows
which of the last requests arrived, and which of the last answers were lost. So everything is
reported as it is in the records: applications, nodes with what runs there, and asks that wait, in
the order in which they were made. A core that resumes from its journal compares; to any other it is
new. What has ended comes first: only a core with a journal may know anything of it.
"""

import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Final, Generic, NamedTuple, TypeVar

from msgspec import structs

from yunikorn_actors import si
from yunikorn_actors.errors import (
    ConnectionLost,
    CoreError,
    CoreFailed,
    CoreStopped,
    StillWaiting,
    UnknownAsk,
    anew,
)
from yunikorn_actors.front.applications import Applications
from yunikorn_actors.front.arguments import Options, check_arguments
from yunikorn_actors.front.asks import Asks, AskStatus, EndedAsks, LeaseMaker, status
from yunikorn_actors.front.callback import FrontCallback, SlowFits
from yunikorn_actors.front.deadlines import Deadlines, Due
from yunikorn_actors.front.futures import CallbackThreads
from yunikorn_actors.front.lease import BaseLease, Running
from yunikorn_actors.front.nodes import Node, Nodes, existing_allocation
from yunikorn_actors.front.outbox import Ending, Item, Outbox
from yunikorn_actors.front.records import (
    ApplicationRecord,
    Asked,
    AskRecord,
    AskStage,
    Fits,
    Promise,
)
from yunikorn_actors.front.session import Session
from yunikorn_actors.front.subscriptions import (
    AnyEvent,
    Connection,
    ConnectionChanged,
    Subscription,
)
from yunikorn_actors.planning.expected import Expected
from yunikorn_actors.runtime.core_api import Core
from yunikorn_actors.si.form import check_names
from yunikorn_actors.values.masking import masked_repr

L = TypeVar("L", bound=BaseLease)

PATIENCE_S: Final = 1.0
"""How long an error waits for the reason that it tells."""
UNSAID: Final = "the core has not said what it waits for"


class Explanations:
    """What is in the records is answered from the records; only of what waits is the core asked."""

    def __init__(
        self,
        session: Session[Any],
        applications: Applications[Any],
        past: EndedAsks,
        threads: CallbackThreads,
    ) -> None:
        self._threads = threads
        self._session = session
        self._partition = session.options.full_partition
        self._applications = applications
        self._past = past

    def explain(self, application: str, key: str) -> AskStatus:
        """Ask the core where an ask waits; the lock is not held meanwhile."""
        check_names("explain", application=application, key=key)
        # Twice: between the look at the records and the answer of the core it may have moved on.
        for _ in range(2):
            with self._session:
                known, waits_as = self._known(application, key)
            if known is not None:
                return self._with_its_claimant(known, waits_as) if waits_as else known
            try:
                why = self._session.core.explain(application, waits_as, partition=self._partition)
            except UnknownAsk:
                # Placed, or not there yet: the second look at the records tells.
                continue
            except ConnectionLost as error:
                text = f"{key} of {application}: it waits; the reason is not known: {error}"
                return AskStatus(application=application, key=key, state="waiting", text=text)
            if not why.waits:
                # It was placed a moment ago, as one that is not known was sent a moment ago.
                continue
            return AskStatus(
                application=application, key=key, state="waiting", text=str(why), why=why
            )
        text = f"{key} of {application}: it is on its way to the core, or back from it; ask again"
        return AskStatus(application=application, key=key, state="waiting", text=text)

    def expected(self, application: str, key: str) -> Expected | None:
        """Return when an ask will start; None if it does not wait, or is not known yet."""
        check_names("expected", application=application, key=key)
        with self._session:
            known, waits_as = self._known(application, key)
        if known is not None:
            return None
        found = self._session.core.expected(application, partition=self._partition)
        return next((it for it in found if it.key == waits_as), None)

    def reason(self, application: str, key: str, within_s: float) -> str:
        """Say what an ask waits for, within a time: the error that tells it must not come late."""
        reason: Future[str] = Future()

        def ask() -> None:
            try:
                status = self.explain(application, key)
            except Exception:  # noqa: BLE001 - the edge: whatever it is, there is no reason to tell
                reason.set_result(UNSAID)
            else:
                reason.set_result(status.text if status.why is None else status.why.reason)

        self._threads.call(ask)
        try:
            return reason.result(within_s)
        except TimeoutError:
            # The thread goes on, and its answer is nobody's.
            return UNSAID

    def _with_its_claimant(self, known: AskStatus, core_key: str) -> AskStatus:
        """Say of a victim for whom it goes, and why it and no other."""
        core = self._session.core
        try:
            why = core.explain(known.application, core_key, partition=self._partition)
        except (UnknownAsk, ConnectionLost):
            return known
        if why.waits or why.preempting is None:
            # It was confirmed, or its key asked for again, a moment ago.
            return known
        return replace(known, text=f"{known.text}; {why.preempting.text}", why=why)

    def _known(self, application: str, key: str) -> tuple[AskStatus | None, str]:
        """Return what the records say, and as what the core knows an ask that waits or a victim."""
        app = self._applications.find(application)
        record = None if app is None else app.by_key.get(key)
        if record is not None and record.stage is AskStage.WAITS:
            return None, record.core_key
        if record is not None:
            is_victim = record.wanted is si.TerminationType.PREEMPTED_BY_SCHEDULER
            placed = status(record, "placed", f"it runs on {record.running.node_id}")
            return placed, record.core_key if is_victim else ""
        past = self._past.find(application, key)
        if past is None:
            raise UnknownAsk(
                f"nobody asked for {key!r} of {application!r} here, or it is long over"
                f"{self._counted(application, key)}"
            )
        return past, ""

    def _counted(self, application: str, key: str) -> str:
        """Point out the keys of an ask that was made with `count`."""
        app = self._applications.find(application)
        mine: Mapping[str, object] = {} if app is None else app.by_key
        number = 0
        while (one := f"{key}-{number + 1}") in mine or self._past.find(application, one):
            number += 1
        if not number:
            return ""
        others = f", or another of its {number} keys to '{key}-{number}'" if number > 1 else ""
        return f"; it was asked with count=: explain '{key}-1'{others}"


def report(applications: Applications[L], nodes: Nodes[L], endings: Iterable[Ending]) -> list[Item]:
    """Return all that is to be sent; from now on answers are taken as answers to this."""
    # Only those that cannot be taken for the end of something later.
    due = [it for it in endings if _is_due(applications, nodes, it)]
    # Nodes before the records are looked at: with one that has gone its leases are lost.
    infos = nodes.again()
    asks = sorted(
        (it for it in applications.records if it.stage is AskStage.WAITS and it.ask is not None),
        # In their order, so that older asks keep their place in the queue of the core.
        key=lambda record: record.number,
    )
    return [*due, *applications.again(), *infos, *(it.ask for it in asks if it.ask is not None)]


def _is_due(applications: Applications[L], nodes: Nodes[L], ending: Ending) -> bool:
    """Whether it may still be unheard, and cannot be taken for the end of what came later."""
    if isinstance(ending, si.NodeInfo):
        return ending.node_id not in nodes.ids
    app = applications.find(ending.application_id)
    if app is None:
        # It has gone here, so the core has to learn that whatever it knows.
        return True
    if isinstance(ending, si.RemoveApplicationRequest):
        return not app.is_known
    # By its UUID it cannot be mistaken for another one.
    if isinstance(ending, si.AllocationRelease) and ending.uuid:
        return True
    record = app.by_core_key.get(ending.allocation_key)
    return record is None or not record.is_held


class Operations(Generic[L]):
    """Takes the calls of the program: looks at their form, takes the lock, and has them done."""

    def __init__(self, core: Core, options: Options, make_lease: LeaseMaker[L]) -> None:
        self.options: Final = options
        outbox = Outbox(core, options.rm_id, self.end)
        self.session: Final[Session[L]] = Session(core, options, outbox)
        self._asks = Asks(self.session, make_lease)
        self._applications = Applications(self.session, self._asks)
        self._nodes = Nodes(self.session, self._applications, self._asks)
        self.callback: Final = FrontCallback(
            self.session, self._nodes, self._applications, self._asks, SlowFits(outbox.later)
        )
        self.threads: Final = CallbackThreads()
        """For what the program is called with, and nobody waits for."""
        self.explanations: Final = Explanations(
            self.session, self._applications, self._asks.past, self.threads
        )
        self._deadlines = Deadlines(self._withdraw_late, self.end)
        self.owns_core = True
        """Closing the front stops the core."""
        self.registration = options.registration
        """With the configuration that was loaded last."""

    # -- open and closed

    def open(self) -> None:
        self.session.open()
        self.session.outbox.start()
        self.session.connection = Connection(
            state="connected", address=getattr(self.session.core, "address", "")
        )

    def refused_by_core(self) -> None:
        """The core was started before: by another front, unless this one is open already."""
        self.owns_core = self.session.was_opened

    def end(self, error: BaseException) -> None:
        """Nothing comes any more: every future, lease and iterator ends with the reason."""
        reason = error
        if not isinstance(reason, CoreError):
            reason = CoreFailed(f"the front failed: {masked_repr(error)}")
        # Under the lock, so that no call of the program gets in between.
        with self.session.lock:
            # Only the first reason counts; a second end would report another one.
            if not self.session.close(reason):
                return
            self._nodes.end(reason)
            self._applications.end(reason)
            # Before the readers end: a program that was replaced learns here why no event comes.
            self._changed(replace(
                self.session.connection, state="closed", reason=str(reason)
            ))  # fmt: skip
            self.session.readers.end(reason if isinstance(reason, CoreFailed) else None)
        self.callback.program.end()
        self.session.outbox.close()
        self._deadlines.close()
        self.threads.close()

    def core_is_over(self) -> None:
        core = self.session.core
        self.end(core.failure or CoreStopped("the core was stopped"))

    def join(self, timeout: float) -> None:
        self.session.outbox.join(timeout)
        self._deadlines.join(timeout)

    # -- a core that goes away and comes back

    def configured(self, config: str) -> None:
        """Use this configuration for every later start of the core."""
        self.registration = structs.replace(self.registration, config=config)

    def went_away(self, reason: Exception) -> None:
        """Keep requests from now on."""
        with self.session.lock:
            self.session.outbox.hold()
            self._changed(Connection(
                state="away", address=self.session.connection.address, reason=str(reason)
            ))  # fmt: skip

    def tried(self, error: Exception) -> None:
        """It has not come back yet."""
        with self.session.lock:
            now = self.session.connection
            # Closed or connected meanwhile: the attempt says nothing any more.
            if now.state == "away":
                self.session.connection = replace(now, attempts=now.attempts + 1, reason=str(error))

    def settle(self) -> None:
        self.session.outbox.settle()

    def came_back(self, endings: Callable[[], list[Ending] | None]) -> None:
        """Report everything to a core that is there again, unless it has gone meanwhile."""
        with self.session.lock:
            sent = endings()
            # Gone again while it was being reported: the next time everything is reported anew.
            if sent is None or self.session.connection.state != "away":
                return
            outbox = self.session.outbox
            # What was sent and may have been lost, and what was never sent.
            ended = [*sent, *outbox.unsent_endings()]
            outbox.resume(report(self._applications, self._nodes, ended))
            self._changed(Connection(state="connected", address=self.session.connection.address))

    def _changed(self, connection: Connection) -> None:
        if self.session.connection.state != "closed":
            self.session.connection = connection
            self.session.readers.notify(ConnectionChanged(connection=connection))

    # -- nodes

    def add_node(
        self, info: si.NodeInfo, running: Sequence[Running], accepted: Promise[list[L]]
    ) -> None:
        existing = tuple(existing_allocation(self.options.partition, it) for it in running)
        info = structs.replace(info, existing_allocations=existing)
        check_arguments("add_node", si.NodeRequest(rm_id=self.options.rm_id, nodes=(info,)))
        with self.session:
            self._nodes.add(info, running, accepted)

    def node(self, node_id: str) -> Node[L]:
        return Node(self.session, self._nodes, node_id)

    def node_ids(self) -> list[str]:
        with self.session.lock:
            return self._nodes.ids

    # -- applications

    def add_application(
        self,
        app: ApplicationRecord[L],
        request: si.AddApplicationRequest,
        placeholders: Iterable[si.AllocationAsk],
    ) -> None:
        submission = si.ApplicationRequest(rm_id=self.options.rm_id, new=(request,))
        check_arguments("application", submission)
        asks = tuple(placeholders)
        kept_free = si.AllocationRequest(rm_id=self.options.rm_id, asks=asks)
        check_arguments("application: gang", kept_free)
        with self.session:
            self._applications.add(app, request, asks)

    def close_application(self, app: ApplicationRecord[L]) -> None:
        self.session.unless_closed(partial(self._applications.close, app))

    def application_ids(self) -> list[str]:
        with self.session.lock:
            return self._applications.ids

    def application(self, application_id: str) -> ApplicationRecord[L] | None:
        with self.session.lock:
            return self._applications.find(application_id)

    def leases(self, app: ApplicationRecord[L]) -> list[L]:
        with self.session.lock:
            held = [it for it in app.by_key.values() if it.lease is not None]
            return [self._asks.lease_of(it) for it in held]

    # -- asks

    def ask(self, app: ApplicationRecord[L], asked: Sequence[Asked[L]]) -> list[AskRecord[L]]:
        """Take all or none."""
        asks = tuple([it.ask for it in asked])
        check_arguments("ask", si.AllocationRequest(rm_id=self.options.rm_id, asks=asks))
        # All or none: the form and the keys of all are looked at before the first is sent.
        with self.session:
            if app.ended is not None:
                raise anew(app.ended)
            for ask in asks:
                self._asks.check_free(app, ask.allocation_key)
            records = []
            for it in asked:
                record = self._asks.ask(app, it)
                records.append(record)
                # The core may have placed it before it was asked for, after a restart.
                self._applications.claim(record)
        # Of the first: all asks of one call have the same deadline.
        if asked[0].deadline_s:
            # What is alike but for its key is explained once.
            alike = (si.to_json(structs.replace(asks[0], allocation_key="")), asked[0].fits)
            self._deadlines.add(records, alike)
        return records

    def _withdraw_late(self, passed: Sequence[Due]) -> None:
        """Withdraw them together; what each lacked is asked for while `PATIENCE_S` lasts."""
        # For all of them together: an error must not come a minute late for many asks.
        end_s = time.monotonic() + PATIENCE_S
        reasons: dict[Hashable, str] = {}
        for _, _, record, alike in passed:
            # Placed while the ones before it were explained.
            if record.stage is not AskStage.WAITS:
                continue
            if alike not in reasons:
                within_s = max(0.0, end_s - time.monotonic())
                reasons[alike] = self.explanations.reason(record.app.id, record.key, within_s)
            self.session.unless_closed(partial(self._asks.pass_deadline, record, reasons[alike]))

    @cached_property
    def tags_without_fits(self) -> dict[str, str]:
        """Of asks without a condition of their own: only a callback could have one.

        The core then asks nothing about them, which is most of the messages of an ask, and takes
        many alike as one run.
        """
        # A callback may say something of any ask, so the core has to ask about all.
        if self.callback.program.answers("predicates"):
            return {}
        return {si.constants.TAG_PREDICATES: "false"}

    def still_waits(self, record: AskRecord[L], after_s: float) -> StillWaiting:
        """Say what an ask waits for; one that was only looked at is not asked about."""
        name, key = record.app.id, record.key
        # Without a wait nothing is asked: a look must be quick.
        waited = f" after {after_s:g} s: " if after_s > 0 else ""
        why = self.explanations.reason(name, key, PATIENCE_S) if waited else ""
        return StillWaiting(
            f"ask {key!r} of {name!r} still waits{waited}{why}. app.explain({key!r}).report() says "
            "more; cancel() withdraws it, as ask(..., deadline=) does by itself"
        )

    def withdraw(self, record: AskRecord[L]) -> None:
        self.session.unless_closed(partial(self._asks.withdraw, record))

    def fits_of(self, core_key: str) -> Fits | None:
        record = self._asks.keys.asked_about(core_key)
        return None if record is None else record.fits

    # -- events

    def subscribe(self, reader: Subscription[AnyEvent[L]]) -> None:
        with self.session:
            self.session.readers.add(reader)

    def leave(self, reader: Subscription[AnyEvent[L]]) -> None:
        with self.session.lock:
            self.session.readers.leave(reader)


class PendingAsk(NamedTuple, Generic[L]):
    """An ask, for the future of its lease."""

    operations: Operations[L]
    record: AskRecord[L]

    def withdraw(self) -> None:
        self.operations.withdraw(self.record)

    def still_waits(self, after_s: float) -> StillWaiting:
        return self.operations.still_waits(self.record, after_s)
