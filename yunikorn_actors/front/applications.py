"""The applications of a front, and what the core placed for them before the program asked.

A core that begins from its journal still knows the asks that waited, and goes on placing them when
the nodes are back. The program that comes back asks for the same again, and may do so later.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, Generic, TypeVar

from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.errors import (
    ApplicationEnded,
    ApplicationRejected,
    CoreError,
    Duplicate,
    QueueNotFound,
    anew,
)
from yunikorn_actors.front.asks import Asks
from yunikorn_actors.front.lease import BaseLease, Running
from yunikorn_actors.front.records import ApplicationRecord, AskRecord, AskStage, Unanswered
from yunikorn_actors.front.session import Session
from yunikorn_actors.front.subscriptions import ApplicationChanged, ApplicationWantedBack

L = TypeVar("L", bound=BaseLease)


_PREEMPTED: Final = si.TerminationType.PREEMPTED_BY_SCHEDULER
ENDINGS: Final = ("Completed", "Failed", "Rejected", "Expired")
"""States in which an application takes no more asks."""


class Applications(Generic[L]):
    """One record for each id, from the request on until it ends; then it has no ask left.

    What the core says of an id is about this one once it has been accepted. Until then it is
    about a former one of that id, and is ignored.
    """

    def __init__(self, session: Session[L], asks: Asks[L]) -> None:
        self._session = session
        self._asks = asks
        self._by_id: dict[str, ApplicationRecord[L]] = {}
        self._new: Unanswered[ApplicationRecord[L]] = Unanswered()
        self._early = EarlyPlacements()

    # Without a handle an application is still being made.
    @property
    def ids(self) -> list[str]:
        """Of those that the program has been given."""
        return [name for name, it in self._by_id.items() if it.handle is not None]

    def find(self, application_id: str) -> ApplicationRecord[L] | None:
        return self._by_id.get(application_id)

    def find_ask(self, application_id: str, core_key: str) -> AskRecord[L] | None:
        """Return what the core means; None for what was withdrawn or has ended meanwhile."""
        app = self._by_id.get(application_id)
        if app is None or not app.is_known:
            return None
        return app.by_core_key.get(core_key)

    # -- what the program does

    def add(
        self,
        app: ApplicationRecord[L],
        request: si.AddApplicationRequest,
        placeholders: Iterable[si.AllocationAsk],
    ) -> None:
        if app.id in self._by_id:
            raise Duplicate(
                f"application: there is one {app.id!r} already; close() it first, or give "
                "this one another id"
            )
        app.request = request
        self._by_id[app.id] = app
        self._new.asked(app.id, app)
        # The request before its placeholders, or the core would not know where they belong.
        self._session.outbox.put(request)
        for ask in placeholders:
            group = ask.task_group_name
            running = Running(
                application=app.id,
                key="",
                node_id="",
                resources=app.groups[group].written,
                group=group,
            )
            core_key, rule = ask.allocation_key, app.groups[group].treatment.rule
            record = AskRecord(app=app, key="", core_key=core_key, running=running, rule=rule)
            self._asks.keys.enter(record)
            same = record.core_key == core_key
            # Another application may use the same key: then the core gets it with a number.
            record.ask = ask if same else replace(ask, allocation_key=record.core_key)
            self._session.outbox.put(record.ask)

    def close(self, app: ApplicationRecord[L]) -> None:
        """Remove an application with all its asks and leases, which are lost at once."""
        if app.ended is not None:
            return
        partition = self._session.options.partition
        self._session.outbox.put(
            si.RemoveApplicationRequest(application_id=app.id, partition_name=partition)
        )
        closed = f"application {app.id!r} was closed"
        app.accepted.fail(ApplicationEnded(closed))
        error = ApplicationEnded(f"{closed}; make another one to ask again")
        self._end(app, error, "Removed")

    def end(self, reason: CoreError) -> None:
        for app in list(self._by_id.values()):
            app.accepted.fail(anew(reason))
            self._end(app, reason)

    def _end(self, app: ApplicationRecord[L], error: CoreError, state: str = "") -> None:
        """Let go of everything that it has; the core keeps nothing of it either."""
        app.ended = error
        self._early.close(app.id)
        if self._by_id.get(app.id) is app:
            del self._by_id[app.id]
        for record in list(app.by_core_key.values()):
            if record.stage is AskStage.WAITS:
                self._asks.refuse(record, anew(error), "withdrawn")
            else:
                self._asks.lose(record, str(error))
        if state:
            app.state = state
            self._report_state(app, str(error))

    # -- for a core that may have forgotten all of it

    @property
    def records(self) -> list[AskRecord[L]]:
        return [record for it in self._by_id.values() for record in it.by_core_key.values()]

    def again(self) -> list[si.AddApplicationRequest]:
        """Return requests that submit all applications again; answers from now on are to these."""
        # Answers to former requests may still come, and must not be taken for these.
        self._new.forget()
        for app in self._by_id.values():
            app.is_known = False
            self._new.asked(app.id, app)
        return [_again(it) for it in self._by_id.values()]

    def early_on(self, node_id: str) -> list[si.Allocation]:
        """Return early placements there of applications that may still ask for them."""
        return [it for it in self._early.on(node_id) if it.application_id in self._by_id]

    # -- what the core says

    def rejected(self, update: si.RejectedApplication) -> None:
        app = self._new.answered(update.application_id)
        if app is not None and app.ended is None:
            text = f"application {app.id!r} was rejected: {update.reason}"
            error = (
                QueueNotFound(text, update.queues) if update.queues else ApplicationRejected(text)
            )
            app.accepted.fail(error)
            self._end(app, error, "Rejected")

    def accepted(self, update: si.AcceptedApplication) -> None:
        app = self._new.answered(update.application_id)
        if app is not None:
            app.is_known = True
            app.queue = update.queue or app.queue
            app.accepted.keep(app)
            # What the core placed meanwhile is claimed now, by those that asked for it.
            for record in list(app.by_core_key.values()):
                self.claim(record)

    def placed(self, new: si.Allocation) -> None:
        app = self._by_id.get(new.application_id)
        record = (
            app.by_core_key.get(new.allocation_key) if app is not None and app.is_known else None
        )
        if record is not None:
            # Known to the records: it is placed as any other.
            self._asks.placed(record, new)
        elif app is None or new.allocation_key not in app.withdrawn:
            # Not known: kept for a program that is about to ask, unless it was withdrawn.
            self._early.keep(new)

    def claim(self, record: AskRecord[L]) -> None:
        """Give a new record the allocation that was placed for it before it was made."""
        if not self._early.placed or not record.app.is_known:
            return
        if new := self._early.take(record.app.id, record.core_key):
            self._asks.placed(record, new)

    def asked_back(self, releases: Sequence[si.AllocationRelease]) -> None:
        """The core wants room back; what the program never asked for is given back at once.

        Who loses several leases of an application at once hears it once.
        """
        preempted: dict[str, list[L]] = {}
        for release in releases:
            application_id, key = release.application_id, release.allocation_key
            if record := self.find_ask(application_id, key):
                lease = self._asks.asked_back(record, release)
                if lease is not None and release.termination_type is _PREEMPTED:
                    preempted.setdefault(application_id, []).append(lease)
            elif self._early.take(application_id, key):
                self._session.outbox.put(release)
        for name, leases in preempted.items():
            if len(leases) > 1:
                event = ApplicationWantedBack(application=name, leases=tuple(leases))
                self._session.readers.notify(event)

    def changed(self, update: si.UpdatedApplication) -> None:
        app = self._by_id.get(update.application_id)
        if app is None or not app.is_known:
            return
        app.state = update.state
        if update.state in ENDINGS:
            self._end(app, _ended(update), update.state)
        else:
            self._report_state(app, update.message)

    # Nobody listens, mostly: then no event is made.
    def _report_state(self, app: ApplicationRecord[L], message: str) -> None:
        if self._session.readers.refs:
            self._session.readers.notify(
                ApplicationChanged(application=app.id, state=app.state, message=message)
            )


def _again(app: ApplicationRecord[L]) -> si.AddApplicationRequest:
    """Return the request as it is now: with the rest of its gang, and forced if any of it runs."""
    request = app.request
    assert request is not None
    records = app.by_core_key.values()
    tags = dict(request.tags)
    # What runs must be taken in, even if its queue is gone by now.
    if any(it.is_held for it in records):
        tags.setdefault(si.constants.APP_TAG_CREATE_FORCE, "true")
    its: Counter[str] = Counter()
    for record in records:
        is_member = record.is_held and record.running.group in app.groups
        if record.is_placeholder or is_member:
            its.update(si.Resource.parse(record.running.resources).amounts())
    return replace(request, tags=tags, placeholder_ask=si.Resource.of(its) if its else None)


_WORDS: Final = {
    "ResourceReservationTimeout": "there was no room for all of its gang in time",
    "completeApplication": "it had no work",
}
"""What the core says in one word."""


def in_words(message: str) -> str:
    return _WORDS.get(message, message)


def _ended(update: si.UpdatedApplication) -> ApplicationEnded:
    why = f" ({in_words(update.message)})" if update.message else ""
    remedy = "make another one to ask again"
    # It idled: the way to keep an idle application is named.
    if update.state == "Completed":
        remedy += ", or make it with stays=True if it may idle"
    return ApplicationEnded(
        f"application {update.application_id!r} is {update.state}{why}; {remedy}"
    )


EARLY_MAX: Final = 100_000
FORMER_MAX: Final = 10_000


class EarlyPlacements:
    """By application and key, until the program asks or the core takes it back.

    What the core still says of an application that the program has closed is not for the next one
    of that id, so nothing of it is kept.
    """

    def __init__(self) -> None:
        self.placed: dict[tuple[str, str], si.Allocation] = {}
        self._former: dict[str, None] = {}

    def keep(self, new: si.Allocation) -> None:
        # Of a closed application nothing is kept: it was reported, and is not asked for again.
        if new.application_id not in self._former and len(self.placed) < EARLY_MAX:
            self.placed[new.application_id, new.allocation_key] = new

    def take(self, application_id: str, core_key: str) -> si.Allocation | None:
        return self.placed.pop((application_id, core_key), None)

    def on(self, node_id: str) -> list[si.Allocation]:
        return [it for it in self.placed.values() if it.node_id == node_id]

    def close(self, application_id: str) -> None:
        """Forget what was placed for this application: the program has reported it."""
        for key in [it for it in self.placed if it[0] == application_id]:
            del self.placed[key]
        self._former[application_id] = None
        if len(self._former) > FORMER_MAX:
            del self._former[next(iter(self._former))]
