"""Asks of a program: they wait, are placed, wanted back, and over; their keys; how they ended.

An ask keeps the key that the program gave it, as long as the core can tell it from others. After a
withdrawal the core may still speak of the former ask of that key, and a question of the core names
a key without its application. Where that could be mistaken the core gets the key with a number.
"""

import dataclasses
import sys
import time
import warnings
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, Literal, TypeVar

from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.errors import (
    AskRejected,
    AskWithdrawn,
    CoreError,
    DeadlinePassed,
    Duplicate,
    anew,
)
from yunikorn_actors.front.lease import BaseLease, Running
from yunikorn_actors.front.outbox import ASK_AGAIN
from yunikorn_actors.front.records import ApplicationRecord, Asked, AskRecord, AskStage, LeaseRef
from yunikorn_actors.front.session import Session
from yunikorn_actors.front.spreading import Whereabouts
from yunikorn_actors.front.subscriptions import LeaseOver, NotPlaced, Placed, WantedBack
from yunikorn_actors.planning.reasons import Cause, Why
from yunikorn_actors.values.devices import devices_in
from yunikorn_actors.values.tags import GPU_DEVICES

L = TypeVar("L", bound=BaseLease)


REMEMBERED_MAX: Final = 10_000
"""Asks that are over and can still be explained."""

Over = Literal["rejected", "withdrawn", "released", "lost"]


@dataclass(frozen=True, kw_only=True)
class AskStatus:
    """The outcome of an ask, in words and in parts."""

    application: str
    """Id of the application."""
    key: str
    """Key of the ask."""
    state: Literal["waiting", "placed", "rejected", "withdrawn", "released", "lost"]
    """What it is now."""
    text: str
    """What there is to say: why it waits, where it runs, why it was rejected."""
    node_id: str = ""
    """The node where it runs, or ran."""
    why: Why | None = None
    """In parts: of an ask that waits what stands in its way, of one that is preempted for whom it
    goes, and why it."""

    @property
    def cause(self) -> Cause | None:
        """Of an ask that waits: why, as a word; of a gang, why its next placeholder waits."""
        if self.why is None or self.state != "waiting":
            return None
        first = self.why.decisive
        return first.cause if first.gang is None else first.gang.cause or first.cause

    def report(self) -> str:
        """Say all of it, one thing on a line, as `report` of `why` does."""
        return self.text if self.why is None else self.why.report()

    def __str__(self) -> str:
        return self.text


class EndedAsks:
    """The asks that were over last, one for each application and key; none of these waits."""

    def __init__(self) -> None:
        self._by_key: OrderedDict[tuple[str, str], AskStatus] = OrderedDict()

    def find(self, application: str, key: str) -> AskStatus | None:
        return self._by_key.get((application, key))

    def keep(self, record: AskRecord[Any], state: Over, reason: str) -> None:
        self._by_key[record.app.id, record.key] = status(record, state, reason)
        # Bounded: a program that runs for months forgets the oldest.
        if len(self._by_key) > REMEMBERED_MAX:
            self._by_key.popitem(last=False)

    def forget(self, record: AskRecord[Any]) -> None:
        """It is asked for again."""
        self._by_key.pop((record.app.id, record.key), None)


def status(record: AskRecord[Any], state: Literal["placed"] | Over, reason: str) -> AskStatus:
    name = record.app.id
    return AskStatus(
        application=name,
        key=record.key,
        state=state,
        node_id=record.running.node_id,
        text=f"{record.key} of {name}: {state}; {reason}",
    )


class Keys(Generic[L]):
    """The records by the keys that the core knows: an answer is never taken for another record's.

    Within an application no two records share a core key. A withdrawn one is not used again before
    the core has answered a later ask. A record with a say in where it runs shares its core key with
    no record of any application. Nobody else changes the keys of an application.
    """

    def __init__(self) -> None:
        self._fits: dict[str, AskRecord[L]] = {}
        """Asks with a say in where they run; no other ask has one of these keys at that time."""
        self._live: Counter[str] = Counter()
        """How many applications use each core key."""
        self._entered = 0
        self._withdrawn: deque[tuple[int, ApplicationRecord[L], str]] = deque()

    def enter(self, record: AskRecord[L]) -> None:
        app = record.app
        # Placeholders have no key of their own.
        if record.key:
            record.core_key = self._free_key(record, record.key)
            app.by_key[record.key] = record
        elif record.rule is not None:
            # Otherwise placeholders of other applications may have the same.
            record.core_key = self._free_key(record, record.core_key)
        self._entered += 1
        record.number = self._entered
        app.by_core_key[record.core_key] = record
        if record.fits is not None or record.rule is not None:
            self._fits[record.core_key] = record
        self._live[record.core_key] += 1

    def _free_key(self, record: AskRecord[L], key: str) -> str:
        """Return a key that the core will not take for another one."""
        app, core_key, number = record.app, key, 1
        # One of its own application, one withdrawn, and one with a say anywhere must not be
        # mistaken.
        while (
            core_key in app.by_core_key
            or core_key in app.withdrawn
            or core_key in self._fits
            or (self._live[core_key] and (record.fits is not None or record.rule is not None))
        ):
            number += 1
            core_key = f"{key}~{number}"
        return core_key

    def leave(self, record: AskRecord[L]) -> None:
        """Forget an ask that is over; its key may be used again."""
        app = record.app
        if app.by_core_key.pop(record.core_key, None) is None:
            return
        if app.by_key.get(record.key) is record:
            del app.by_key[record.key]
        self._fits.pop(record.core_key, None)
        self._live[record.core_key] -= 1
        if not self._live[record.core_key]:
            del self._live[record.core_key]

    def withdraw(self, record: AskRecord[L]) -> None:
        """As `leave`, for an ask that the core may have placed already."""
        self.leave(record)
        # Until the core has answered a later ask it may still speak of this one.
        record.app.withdrawn.add(record.core_key)
        self._withdrawn.append((self._entered, record.app, record.core_key))

    def answered(self, record: AskRecord[L]) -> None:
        """An answer to a later ask: the core has had every withdrawal before it."""
        # In the order in which they were entered: the core reads its messages in that order.
        while self._withdrawn and self._withdrawn[0][0] < record.number:
            _, app, core_key = self._withdrawn.popleft()
            app.withdrawn.discard(core_key)

    def asked_about(self, core_key: str) -> AskRecord[L] | None:
        """Return the ask whose rules say where this key may run; one look-up needs no lock."""
        return self._fits.get(core_key)


LeaseMaker = Callable[[Running, Callable[[], None], Callable[[str], None]], L]
"""Makes a lease of what runs, of how it is released, and of the check that one may wait."""


class Asks(Generic[L]):
    """A record goes through its stages in one direction, and has its keys until it is over.

    Each step is reported at once: to the core where the program made it, to the program where the
    core did. When a record is over, its future has ended or its lease says that it is over, and
    both sides have let go of the room.
    """

    def __init__(self, session: Session[L], make_lease: LeaseMaker[L]) -> None:
        self.keys: Final[Keys[L]] = Keys()
        self.past: Final = EndedAsks()
        self.there: Final[dict[str, dict[AskRecord[L], None]]] = {}
        """What is placed, by node; nodes without any have none."""
        self.idle_since: Final[dict[str, float]] = {}
        """Since when each node that is there has been without work, unless it has some."""
        self.whereabouts: Final[Whereabouts[L]] = Whereabouts()
        self._session = session
        self._make_lease = make_lease

    # -- it begins

    def check_free(self, app: ApplicationRecord[L], key: str) -> None:
        record = app.by_key.get(key)
        if record is not None:
            raise Duplicate(
                f"ask: {key!r} of {app.id!r} {record.standing}; release or cancel it first, "
                "or give this one another key"
            )

    def ask(self, app: ApplicationRecord[L], asked: Asked[L]) -> AskRecord[L]:
        key = asked.ask.allocation_key
        record = AskRecord(
            app=app,
            key=key,
            running=asked.running,
            fits=asked.fits,
            rule=asked.rule,
            promise=asked.promise,
            deadline_s=asked.deadline_s,
        )
        self.keys.enter(record)
        self.past.forget(record)
        same = record.core_key == key
        ask = asked.ask if same else replace(asked.ask, allocation_key=record.core_key)
        record.ask = ask
        self._session.outbox.put(ask)
        return record

    # -- it is placed

    def placed(self, record: AskRecord[L], new: si.Allocation) -> None:
        # Placed already: after a reconnection the core may report it again.
        if record.stage is not AskStage.WAITS:
            return
        self.keys.answered(record)
        record.uuid = new.uuid
        tags = new.allocation_tags
        devices = devices_in(tags) if GPU_DEVICES in tags else ()
        record.running = dataclasses.replace(record.running, node_id=new.node_id, devices=devices)
        # Others that are spread with it may now go where they were refused before.
        if record.rule is not None and self.whereabouts.placed(record, new.node_id):
            self._session.outbox.put(ASK_AGAIN)
        self.hold(record)

    def hold(self, record: AskRecord[L]) -> L | None:
        # Closed in this moment: the core takes back what it has placed.
        if record.app.ended is not None:
            return None
        record.stage = AskStage.HELD
        self.there.setdefault(record.running.node_id, {})[record] = None
        if not record.key:
            # A placeholder: the program has no lease of it.
            return None
        lease = self.lease_of(record)
        promise, record.promise = record.promise, None
        # Only a lease that the program was given is missed when it is dropped.
        if promise is not None:
            record.lease = LeaseRef(lease, warn_of_dropped)
            record.lease.record = record
        if self._session.readers.refs:
            self._session.readers.notify(Placed(lease=lease))
        if promise is not None:
            # One that was cancelled a moment ago is given back as if it had been withdrawn.
            promise.keep(lease, lease._release)
        return lease

    def lease_of(self, record: AskRecord[L]) -> L:
        """Return the lease of one that is placed, made anew if the program has dropped it."""
        if record.lease is not None and (lease := record.lease()) is not None:
            return lease
        release = partial(self._session.unless_closed, partial(self._release, record))
        lease = self._make_lease(record.running, release, self._session.check_may_wait)
        record.lease = LeaseRef(lease)
        # Wanted back before anybody had it in hand: the new one has to show that.
        if record.stage is AskStage.WANTED:
            lease.state, lease.reason = "wanted back", record.reason
            lease._due_s = record.due_s
            lease._want_back()
        return lease

    # -- the program ends it

    def withdraw(self, record: AskRecord[L]) -> None:
        """Withdraw a cancelled ask; if it just got its lease, give that back."""
        if record.stage is not AskStage.WAITS:
            self._release(record)
            return
        self._take_back(record)
        self.past.keep(record, "withdrawn", "its future was cancelled")

    def pass_deadline(self, record: AskRecord[L], reason: str) -> None:
        if record.stage is AskStage.WAITS:
            self._take_back(record)
            which = f"ask {record.key!r} of {record.app.id!r}"
            at = f"at its deadline, {record.deadline_s:g} s"
            self._not_placed(record, DeadlinePassed(f"{which} was withdrawn {at}: {reason}"))

    def _take_back(self, record: AskRecord[L]) -> None:
        record.stage = AskStage.OVER
        if record.rule is not None:
            self.whereabouts.leave(record)
        self.keys.withdraw(record)
        self._session.outbox.put(
            si.AllocationAskRelease(
                partition_name=self._session.options.partition,
                application_id=record.app.id,
                allocation_key=record.core_key,
                termination_type=si.TerminationType.STOPPED_BY_RM,
            )
        )

    def _release(self, record: AskRecord[L]) -> None:
        if record.stage in {AskStage.HELD, AskStage.WANTED}:
            self._give_back(record)
            self._close_lease(record, "released", "")

    def _give_back(self, record: AskRecord[L]) -> None:
        self.drop(record)
        self._session.outbox.put(
            si.AllocationRelease(
                partition_name=self._session.options.partition,
                application_id=record.app.id,
                uuid=record.uuid,
                allocation_key=record.core_key,
                termination_type=record.wanted,
            )
        )

    # -- the core ends it

    def rejected(self, record: AskRecord[L], reason: str) -> None:
        if record.stage is not AskStage.WAITS:
            # What ran before, and the core will not have.
            self.lose(record, reason)
            return
        self.keys.answered(record)
        text = f"ask {record.key!r} of {record.app.id!r} was rejected: {reason}"
        self.refuse(record, AskRejected(text), "rejected")

    def taken_back(self, record: AskRecord[L], why: str) -> None:
        """The core gives up an ask that waits."""
        if record.stage is AskStage.WAITS:
            text = f"the core withdrew ask {record.key!r} of {record.app.id!r}: {why}"
            self.refuse(record, AskWithdrawn(text), "withdrawn")

    def asked_back(self, record: AskRecord[L], release: si.AllocationRelease) -> L | None:
        """The core wants the room of one that was placed; a lease has some time to go.

        Return the lease, if there is one and it was not wanted back before.
        """
        # Of a former life of this ask: another one has its key now.
        if record.stage is AskStage.WAITS or record.uuid not in {"", release.uuid}:
            return None
        record.uuid = release.uuid
        reason = release.message or release.termination_type.name
        # The resource manager itself ended it, so nothing is to be given back.
        if release.termination_type is si.TerminationType.STOPPED_BY_RM:
            self.lose(record, reason)
        elif record.is_placeholder:
            # A placeholder has no lease and no time to go: its room is free at once.
            record.wanted = release.termination_type
            self._give_back(record)
        elif record.stage is AskStage.WANTED:
            # A core that has begun anew asks again, perhaps for another reason.
            record.wanted = release.termination_type
        elif record.stage is AskStage.HELD:
            lease = self.lease_of(record)
            record.stage, record.wanted = AskStage.WANTED, release.termination_type
            record.reason = lease.reason = reason
            lease.state = "wanted back"
            grace_s = release.grace_ms / 1000 or self._session.options.grace
            record.due_s = lease._due_s = time.monotonic() + grace_s
            self._session.readers.notify(WantedBack(lease=lease))
            lease._want_back()
            over = partial(self._grace_over, record, grace_s)
            # On the outbox, which keeps time for all of them.
            self._session.outbox.later(grace_s, partial(self._session.unless_closed, over))
            return lease
        return None

    def _grace_over(self, record: AskRecord[L], grace_s: float) -> None:
        # Released in the meantime, or wanted back again, which has a time of its own.
        if record.stage is AskStage.WANTED:
            self._give_back(record)
            late = f"it was not released within {grace_s:g} s"
            self._close_lease(record, "lost", f"{record.reason}; {late}")

    # -- it is over

    def refuse(
        self, record: AskRecord[L], error: CoreError, state: Literal["rejected", "withdrawn"]
    ) -> None:
        self.drop(record)
        self._not_placed(record, error, state)

    def _not_placed(
        self,
        record: AskRecord[L],
        error: CoreError,
        state: Literal["rejected", "withdrawn"] = "withdrawn",
    ) -> None:
        promise, record.promise = record.promise, None
        if promise is not None:
            promise.fail(error)
            self.past.keep(record, state, str(error))
            self._session.readers.notify(
                NotPlaced(application=record.app.id, key=record.key, error=anew(error))
            )

    def lose(self, record: AskRecord[L], reason: str) -> None:
        self.drop(record)
        lease = self._close_lease(record, "lost", reason)
        if lease is not None:
            # The room is gone: a program that waits for `wanted_back` must wake.
            lease._want_back()

    def _close_lease(
        self, record: AskRecord[L], state: Literal["released", "lost"], why: str
    ) -> L | None:
        if record.lease is None:
            return None
        # Dropped by the program: made anew, because its event needs a lease.
        lease = record.lease() or self.lease_of(record)
        record.lease = None
        lease.reason = why or record.reason
        lease.state = state
        self.past.keep(record, state, lease.reason or "the program gave it back")
        if self._session.readers.refs:
            self._session.readers.notify(LeaseOver(lease=lease))
        return lease

    def drop(self, record: AskRecord[L]) -> None:
        """Let go of it, and say nothing."""
        record.stage = AskStage.OVER
        node_id = record.running.node_id
        there = self.there.get(node_id)
        # The last of its node: from here on the node has nothing to do.
        if there is not None and there.pop(record, True) is None and not there:
            del self.there[node_id]
            if node_id in self.idle_since:
                self.idle_since[node_id] = time.monotonic()
        if record.rule is not None:
            self.whereabouts.leave(record)
        self.keys.leave(record)


def warn_of_dropped(lease: LeaseRef[Any]) -> None:
    """Warn of a lease that the program has dropped, and not given back.

    This runs wherever the collector does, so it takes no lock and changes nothing.
    """
    record = lease.record
    if record.lease is lease and not sys.is_finalizing():
        where = f"{record.key!r} of {record.app.id!r} on {record.running.node_id}"
        warnings.warn(
            f"lease {where} was dropped and not released, so its room stays taken: use it in a "
            "`with` block, release() it, or find it in the leases of its application",
            ResourceWarning,
            stacklevel=2,
        )
